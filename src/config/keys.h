/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the keys of the section `seal` from their sources. */
#ifndef HK_CONFIG_KEYS_H
#define HK_CONFIG_KEYS_H

#include "config/config.h"

/* Makes config->keys; nothing is read yet. `env` lives as long as the configuration. */
enum hk_code hk_config_make_keys(struct hk_config *config, const struct hk_config_env *env,
                                 struct hk_err *err) HK_MUSTCHECK;

/* Has the command of a key run elsewhere, and adds what it prints to `out`. Waits at most `wait_ms`; HK_TIMEOUT: it has not answered
 * yet, and the next call hears it. With `wait_ms` 0 an answer to an earlier call will do. */
typedef enum hk_code hk_key_ask_fn(void *arg, const char *id, uint64_t wait_ms, struct hk_buf *out,
                                   struct hk_err *err);

struct hk_key_asker {
    hk_key_ask_fn *ask; /* NULL: nobody can be asked */
    void *arg;
};

/* For a process that stays: fetches all keys now, and later runs no program for them itself. `asker` lives as long as the configuration:
 * commands that fail now are asked of it again. What cannot be fetched is taken from `older` (NULL: there is none, and commands are run
 * here), where it is the same key. HK_UNAVAILABLE: one of them is missing, and `err` says why. */
enum hk_code hk_config_fetch_keys(struct hk_config *config, const struct hk_config *older,
                                  const struct hk_key_asker *asker, struct hk_err *err) HK_MUSTCHECK;
/* Has one of them a command? */
bool hk_config_runs_for_keys(const struct hk_config *config);

#endif
