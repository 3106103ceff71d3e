/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of a command that works on a store: the configuration and the database. Flag > environment > file >
 * default. */
#ifndef HK_CLI_SETTINGS_H
#define HK_CLI_SETTINGS_H

#include "cli/cli.h"
#include "config/config.h"

enum hk_settings_for {
    HK_FOR_SENDING, /* every secret must be there */
    HK_FOR_TRYING,  /* the same, but the caller says itself what it means when one is not */
    HK_FOR_ACTING   /* a secret that cannot be had is left out: operators need not have them */
};

/* The file that --config, HIKYAKU_CONFIG or ./hikyaku.yaml names, or the defaults. What is wrong with it has been
 * printed unless it is HK_EXIT_OK. The caller's to free. */
int hk_settings_config(const struct hk_cli *cli, enum hk_settings_for purpose, struct hk_config **out_config);
/* What was found in a configuration, a line each, to standard error. */
void hk_settings_complain(const struct hk_diags *diags);
/* --db, HIKYAKU_DB, `store:` of the file, sqlite:hikyaku.db. The file's own URL gets the keeper of `password_command` (run/password.h), which
 * is forked here: the process must have no second thread yet. What is wrong has been printed unless it is HK_EXIT_OK. */
int hk_settings_url(const struct hk_cli *cli, struct hk_config *config, const char **out_url);
/* The exit code for what a store said. */
enum hk_exit hk_settings_exit(enum hk_code code);
/* Who acts: --actor, HIKYAKU_ACTOR, else user@host. */
#define HK_ACTOR_MAX 128
const char *hk_settings_actor(const struct hk_cli *cli, char out[HK_ACTOR_MAX]);

#endif
