/* SPDX-License-Identifier: Apache-2.0 */
/* The process that `hikyaku run` is: the relay, the parts beside it, signals, reloads, and the rights that it gives up. */
#ifndef HK_DAEMON_MAIN_H
#define HK_DAEMON_MAIN_H

#include "config/config.h"

/* Texts and `arg` outlive the daemon. */
struct hk_daemon_options {
    /* Which file a reload reads, asked each time: it may turn up after the start. NULL: there is none. */
    const char *(*config_path)(const void *arg);
    const void *arg;
    const char *log_format, *log_level; /* NULL: as environment or configuration say */
    const char *user;                   /* to become; NULL: stay */
    const char *ui_dir;    /* the dashboard's files, for who works on them; NULL: the program's */
    const char *ui_ticket; /* opens one session of the dashboard; NULL: none */
    bool core_dumps, no_sandbox;
};

struct hk_daemon;

/* Before the configuration is read: holds signals back and lowers rights. */
enum hk_code hk_daemon_new(const struct hk_daemon_options *options, struct hk_daemon **out_daemon,
                           struct hk_err *err) HK_MUSTCHECK;
/* Relays until a signal or an error ends it; once. Takes `config`, also when it fails. `url`: of the store. */
enum hk_code hk_daemon_run(struct hk_daemon *daemon, struct hk_config *config, const char *url,
                           struct hk_err *err) HK_MUSTCHECK;
void hk_daemon_free(struct hk_daemon *daemon);

#endif
