/* SPDX-License-Identifier: Apache-2.0 */
/* A process that runs the commands of keys (seal.keys, `command`) for a relay that cannot run programs any more (daemon/guard.h). The
 * relay forks it first. The relay names a key, and never a program: the runner reads the configuration file itself, and runs the command
 * that the file has for that key. So an attacker in the relay's process gains only keys that the relay has anyway.
 *
 * Each request has a process of its own, which ends with its answer. Nothing of a key or of the configuration stays behind. */
#ifndef HK_DAEMON_KEY_RUNNER_H
#define HK_DAEMON_KEY_RUNNER_H

#include "config/keys.h"

struct hk_key_runner;

/* Forks: the process must have no second thread yet, and the calling thread must be its main thread. `config_path`: of the file that
 * has the keys. HK_NOMEM; HK_UNAVAILABLE: the process cannot be made. */
enum hk_code hk_key_runner_open(const char *config_path, struct hk_key_runner **out,
                                struct hk_err *err) HK_MUSTCHECK;
/* Nobody asks it any more. Accepts NULL. */
void hk_key_runner_close(struct hk_key_runner *runner);

/* As hk_key_ask_fn, from any thread. `arg`: the runner. */
enum hk_code hk_key_runner_ask(void *arg, const char *id, uint64_t wait_ms, struct hk_buf *out,
                               struct hk_err *err) HK_MUSTCHECK;

#endif
