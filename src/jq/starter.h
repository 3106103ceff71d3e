/* SPDX-License-Identifier: Apache-2.0 */
/* A process that starts jq helpers for a process that cannot do so any more. The relay gives up running programs (daemon/guard.h),
 * and `dead fix` needs one. So the relay forks a starter first. The starter runs one program, hikyaku-jq, with a socket that it is
 * handed, kills that helper on request and reaps it. It holds no descriptor but its own socket, no capability, and no environment.
 * It ends, with its helpers, when the process that made it ends. */
#ifndef HK_JQ_STARTER_H
#define HK_JQ_STARTER_H

#include <hikyaku/error.h>

struct hk_jq_starter;

#define HK_JQ_STARTER_MOST 8 /* helpers at a time */

/* Forks: the process must have no second thread yet, and the calling thread must be its main thread. `helper`: the path of
 * hikyaku-jq. HK_NOMEM; HK_UNAVAILABLE: no such helper, or the starter cannot be made. */
enum hk_code hk_jq_starter_open(const char *helper, struct hk_jq_starter **out,
                                struct hk_err *err) HK_MUSTCHECK;
/* Ends the starter and its helpers. Waits for at most two seconds. No hk_jq of this starter may be used afterwards; accepts NULL. */
void hk_jq_starter_close(struct hk_jq_starter *starter);

/* Readable once the starter has ended, and never before. Call hk_jq_starter_reap then, so that no zombie stays. */
int hk_jq_starter_fd(const struct hk_jq_starter *starter);
/* By the thread that closes it. */
void hk_jq_starter_reap(struct hk_jq_starter *starter);

#endif
