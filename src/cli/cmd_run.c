/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku run: the relay. SIGTERM and SIGINT drain, a second one hurries; SIGHUP reloads, all or nothing. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hikyaku/hikyaku.h>

#include "cli/args.h"
#include "cli/out.h"
#include "cli/policies.h"
#include "cli/settings.h"
#include "exec/clock.h"
#include "relay/relay.h"

enum {
    DRAIN_MS = 20000,
    HURRY_MS = 1000
};

struct daemon {
    const struct hk_cli *cli;
    struct hk_loop *loop;
    struct hk_relay *relay;
    struct hk_config *config, *previous; /* `previous` is in use until the relay has switched */
    struct hk_log log;
    const char *url;
    char name[128], boot[33];
    unsigned stops;
    enum hk_code ended;
    struct hk_signal *signals[3];
};

static void log_event(struct daemon *d, enum hk_log_level level, const char *event, const char *key,
                      const char *value)
{
    struct hk_log_line line;
    hk_log_begin(&line, &d->log, level, event);
    if (key != NULL)
        hk_log_cstr(&line, key, value);
    hk_log_end(&line);
}

static void on_stopped(void *arg, enum hk_code rc)
{
    struct daemon *d = arg;
    d->ended = rc;
    hk_loop_stop(d->loop);
}

static void on_stop_signal(void *arg, int signum)
{
    struct daemon *d = arg;
    bool first = d->stops++ == 0;
    log_event(d, HK_LOG_INFO, first ? "draining" : "draining in a hurry", "signal",
              signum == SIGINT ? "INT" : "TERM");
    hk_relay_drain(d->relay, first ? DRAIN_MS : HURRY_MS);
}

static void log_diag(struct daemon *d, const struct hk_diag *diag)
{
    struct hk_buf text;
    hk_buf_init(&text, (size_t)1 << 16);
    hk_diag_format(diag, &text);
    log_event(d, diag->severity == HK_SEVERITY_ERROR ? HK_LOG_ERROR : HK_LOG_WARN, "configuration", "error",
              hk_buf_cstr(&text));
    hk_buf_fini(&text);
}

static const struct hk_conf_destination *find(const struct hk_config *config, const char *name)
{
    const struct hk_conf_destination *dest = NULL;
    for (size_t i = 0; (dest = hk_config_destination(config, i)) != NULL; i++)
        if (strcmp(dest->name, name) == 0)
            return dest;
    return NULL;
}

static void log_changes(struct daemon *d, const struct hk_config *before, const struct hk_config *after)
{
    const struct hk_conf_destination *dest = NULL;
    for (size_t i = 0; (dest = hk_config_destination(before, i)) != NULL; i++)
        if (find(after, dest->name) == NULL)
            log_event(d, HK_LOG_INFO, "destination removed", "destination", dest->name);
    for (size_t i = 0; (dest = hk_config_destination(after, i)) != NULL; i++) {
        const struct hk_conf_destination *old = find(before, dest->name);
        if (old == NULL)
            log_event(d, HK_LOG_INFO, "destination added", "destination", dest->name);
        else if (strcmp(old->http.url, dest->http.url) != 0 || strcmp(old->policy, dest->policy) != 0)
            log_event(d, HK_LOG_INFO, "destination changed", "destination", dest->name);
    }
}

static void on_reload(void *arg, int signum)
{
    struct daemon *d = arg;
    (void)signum;
    const char *path = hk_cli_config_path(d->cli);
    if (path == NULL) {
        log_event(d, HK_LOG_WARN, "nothing to reload: there is no configuration file", NULL, NULL);
        return;
    }
    struct hk_config *config = NULL;
    struct hk_diags diags;
    struct hk_err err = {.message = "see the errors above"};
    hk_diags_init(&diags);
    enum hk_code rc = hk_config_load(path, NULL, &diags, &config);
    for (size_t i = 0; i < diags.n; i++)
        log_diag(d, &diags.items[i]);
    hk_diags_fini(&diags);
    if (rc == HK_OK)
        rc = hk_relay_reload(d->relay, config, &err);
    if (rc != HK_OK) {
        log_event(d, HK_LOG_ERROR, "reload refused, the old configuration stays", "error", err.message);
        hk_config_free(config);
        return;
    }
    log_changes(d, d->config, config);
    log_event(d, HK_LOG_INFO, "reloaded", "config", path);
    hk_config_free(d->previous);
    d->previous = d->config;
    d->config = config;
}

static void make_names(struct daemon *d)
{
    uint64_t a = hk_clock_seed(), b = hk_clock_seed();
    (void)snprintf(d->boot, sizeof d->boot, "%016llx%016llx", (unsigned long long)a, (unsigned long long)b);
    if (d->config->relay.name != NULL && d->config->relay.name[0] != '\0') {
        (void)snprintf(d->name, sizeof d->name, "%s", d->config->relay.name);
        return;
    }
    char host[64] = "relay";
    (void)gethostname(host, sizeof host - 1);
    (void)snprintf(d->name, sizeof d->name, "%s-%ld", host, (long)getpid());
}

static enum hk_code watch_signals(struct daemon *d, struct hk_err *err)
{
    enum hk_code rc = hk_signal_new(d->loop, SIGTERM, on_stop_signal, d, &d->signals[0], err);
    if (rc == HK_OK)
        rc = hk_signal_new(d->loop, SIGINT, on_stop_signal, d, &d->signals[1], err);
    if (rc == HK_OK)
        rc = hk_signal_new(d->loop, SIGHUP, on_reload, d, &d->signals[2], err);
    return rc;
}

static enum hk_code serve(struct daemon *d, struct hk_err *err)
{
    struct hk_relay_options options = {.loop = d->loop,
                                       .config = d->config,
                                       .url = d->url,
                                       .create = true,
                                       .name = d->name,
                                       .boot = d->boot,
                                       .log = &d->log,
                                       .event_log = getenv("HIKYAKU_EVENT_LOG"),
                                       .stopped = on_stopped,
                                       .arg = d};
    enum hk_code rc = hk_relay_start(&options, &d->relay, err);
    if (rc == HK_OK)
        rc = watch_signals(d, err);
    if (rc != HK_OK)
        return rc;
    log_event(d, HK_LOG_INFO, "relay started", "version", hk_version());
    hk_loop_run(d->loop);
    log_event(d, HK_LOG_INFO, "relay stopped", NULL, NULL);
    if (d->ended != HK_OK)
        (void)hk_err_set(err, d->ended, "the relay cannot go on: see the log");
    return d->ended;
}

int hk_cmd_run(struct hk_cli *cli)
{
    struct daemon d = {.cli = cli};
    struct hk_err err = {.message = ""};
    int code = hk_settings_config(cli, &d.config);
    if (code != HK_EXIT_OK)
        return code;
    enum hk_log_level level = HK_LOG_INFO;
    const char *wanted = hk_args_value(cli, "log-level");
    if (wanted != NULL)
        (void)hk_log_level_by_name(wanted, &level); /* a choice: checked by the table */
    hk_log_init(&d.log, STDERR_FILENO, level);
    d.url = hk_settings_url(cli, d.config);
    make_names(&d);
    enum hk_code rc = hk_loop_new(&d.loop, &err);
    if (rc == HK_OK)
        rc = serve(&d, &err);
    for (size_t i = 0; i < sizeof d.signals / sizeof d.signals[0]; i++)
        hk_signal_free(d.signals[i]);
    hk_relay_free(d.relay);
    hk_loop_free(d.loop);
    hk_config_free(d.config);
    hk_config_free(d.previous);
    return rc == HK_OK ? HK_EXIT_OK : hk_out_error(hk_settings_exit(rc), "%s", err.message);
}
