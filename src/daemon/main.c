/* SPDX-License-Identifier: Apache-2.0 */
/* The process. SIGTERM and SIGINT drain, a second one hurries; SIGHUP reloads, all or nothing. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <hikyaku/hikyaku.h>

#include "base/mem.h"
#include "config/diff.h"
#include "config/keys.h"
#include "daemon/alerts.h"
#include "daemon/guard.h"
#include "daemon/key_runner.h"
#include "daemon/main.h"
#include "daemon/part.h"
#include "exec/clock.h"
#include "jq/jq.h"
#include "jq/starter.h"
#include "relay/relay.h"
#include "sink/http/sign.h"
#include "sink/kinds.h"
#include "store/turns.h"

enum {
    DRAIN_MS = 20000,
    HURRY_MS = 1000,
    TURN_MS = 15000, /* for which a writer waits for its turn at the store, before it gives up */
    FILES_MIN = 32   /* descriptors that a relay has open before it sends anything, and some to send with */
};

struct hk_daemon {
    struct hk_daemon_options options;
    struct hk_loop *loop;
    struct hk_relay *relay;
    struct hk_config *config, *next; /* `next`: of the reload that is under way */
    bool again;                      /* SIGHUP came meanwhile: once more afterwards */
    struct hk_log log;
    struct hk_part_env env;
    struct hk_parts parts;
    struct hk_alerts_stats alerts;
    char *url;
    struct hk_turns *turns; /* of the process's writers at the store */
    char name[128], boot[33];
    unsigned stops;
    bool locked;             /* no program can be run any more */
    char jq[HK_JQ_PATH_MAX]; /* the helper of `dead fix`; empty: there is none */
    struct hk_jq_starter *jq_starter;
    struct hk_watch *jq_watch; /* for the starter's end */
    struct hk_err jq_error;    /* why there is no starter */
    struct hk_key_runner *key_runner;
    struct hk_key_asker key_asker; /* that runner, where there is one */
    enum hk_code ended;
    struct hk_signal *signals[3];
};

static void log_event(struct hk_daemon *d, enum hk_log_level level, const char *event, const char *key,
                      const char *value)
{
    struct hk_log_line line;
    hk_log_begin(&line, &d->log, level, event);
    if (key != NULL)
        hk_log_cstr(&line, key, value);
    hk_log_end(&line);
}

static const char *config_path(const struct hk_daemon *d)
{
    return d->options.config_path(d->options.arg);
}

/* Flag, else environment, else the configuration. */
static const char *log_setting(const char *wanted, const char *variable)
{
    if (wanted == NULL)
        wanted = getenv(variable);
    return wanted != NULL && wanted[0] != '\0' ? wanted : NULL;
}

/* At the start, and with every reload; options are checked by their table, the environment here. */
static enum hk_code configure_log(struct hk_daemon *d, const struct hk_config *config, struct hk_err *err)
{
    const char *format = log_setting(d->options.log_format, "HIKYAKU_LOG_FORMAT");
    const char *level = log_setting(d->options.log_level, "HIKYAKU_LOG_LEVEL");
    enum hk_log_format f = config->log.format == HK_CONF_LOG_JSON ? HK_LOG_JSON : HK_LOG_LOGFMT;
    enum hk_log_level l = (enum hk_log_level)config->log.level; /* the same words in the same order */
    if (format != NULL && !hk_log_format_by_name(format, &f))
        return hk_err_set(err, HK_INVALID, "HIKYAKU_LOG_FORMAT must be logfmt or json");
    if (level != NULL && !hk_log_level_by_name(level, &l))
        return hk_err_set(err, HK_INVALID, "HIKYAKU_LOG_LEVEL must be error, warn, info or debug");
    hk_log_configure(&d->log, l, f);
    return HK_OK;
}

static void on_stopped(void *arg, enum hk_code rc)
{
    struct hk_daemon *d = arg;
    d->ended = rc;
    hk_loop_stop(d->loop);
}

static void on_stop_signal(void *arg, int signum)
{
    struct hk_daemon *d = arg;
    bool first = d->stops++ == 0;
    log_event(d, HK_LOG_INFO, first ? "draining" : "draining in a hurry", "signal",
              signum == SIGINT ? "INT" : "TERM");
    if (d->relay == NULL) { /* it has not begun: serve() looks at `stops` */
        hk_loop_stop(d->loop);
        return;
    }
    hk_parts_draining(&d->parts);
    hk_relay_drain(d->relay, first ? DRAIN_MS : HURRY_MS);
}

static void log_diag(struct hk_daemon *d, const struct hk_diag *diag)
{
    struct hk_buf text;
    hk_buf_init(&text, (size_t)1 << 16);
    hk_diag_format(diag, &text);
    log_event(d, diag->severity == HK_SEVERITY_ERROR ? HK_LOG_ERROR : HK_LOG_WARN, "configuration", "error",
              hk_buf_cstr(&text));
    hk_buf_fini(&text);
}

/* ---- reload ---- */

#define NAMED_MAX 40 /* changes that a log line names; the rest is counted */

struct changes {
    struct hk_daemon *daemon;
    bool url_given;         /* by an option or the environment */
    struct hk_buf named[2]; /* what took effect; what waits for a restart */
    size_t n[2];
};

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static void add_change(void *arg, enum hk_diff_kind kind, const char *path, bool needs_restart)
{
    static const char *const events[] = {
        [HK_DIFF_ADDED] = "destination added", [HK_DIFF_REMOVED] = "destination removed"};
    static const char section[] = "destinations.";
    struct changes *c = arg;
    struct hk_buf *list = &c->named[needs_restart];
    const char *name = begins(path, section) ? path + strlen(section) : NULL;
    if (c->url_given && begins(path, "store.url"))
        return; /* not the file's affair */
    if (kind != HK_DIFF_CHANGED && name != NULL && strstr(path, ".http.headers.") == NULL)
        log_event(c->daemon, HK_LOG_INFO, events[kind], "destination", name);
    if (c->n[needs_restart]++ < NAMED_MAX)
        (void)hk_buf_addf(list, "%s%s", list->len > 0 ? ", " : "", path);
}

static void log_list(struct hk_log_line *line, const char *key, struct hk_buf *list, size_t n)
{
    if (n > NAMED_MAX)
        (void)hk_buf_addf(list, " and %zu more", n - NAMED_MAX);
    if (n > 0)
        hk_log_str(line, key, hk_buf_str(list));
}

static void log_changes(struct hk_daemon *d, const struct hk_config *before, const struct hk_config *after)
{
    struct changes c = {.daemon = d, .url_given = !begins(d->url, before->store.url)};
    struct hk_log_line line;
    hk_buf_init(&c.named[0], HK_LOG_LINE_MAX);
    hk_buf_init(&c.named[1], HK_LOG_LINE_MAX);
    hk_config_diff(before, after, add_change, &c);
    hk_log_begin(&line, &d->log, c.n[1] > 0 ? HK_LOG_WARN : HK_LOG_INFO, "reloaded");
    hk_log_cstr(&line, "config", config_path(d));
    log_list(&line, "needs_restart", &c.named[1], c.n[1]);
    log_list(&line, "changed", &c.named[0], c.n[0]);
    if (c.n[0] + c.n[1] == 0)
        hk_log_cstr(&line, "changed", "nothing");
    hk_log_end(&line);
    hk_buf_fini(&c.named[0]);
    hk_buf_fini(&c.named[1]);
}

/* Nothing leaves the house by these, and nobody is told: say it. */
static void log_idle_ends(struct hk_daemon *d)
{
    const struct hk_conf_destination *dest = NULL;
    if (d->config->destinations.n == 0 && !d->config->queues.on)
        log_event(d, HK_LOG_WARN,
                  "no destinations are configured: messages for those that the store does not have become "
                  "dead letters",
                  NULL, NULL);
    for (size_t i = 0; (dest = hk_config_destination(d->config, i)) != NULL; i++)
        if (hk_sink_kind_of(dest)->nowhere)
            log_event(d, HK_LOG_WARN, "destination is null: its messages are confirmed and go nowhere",
                      "destination", dest->name);
}

/* ---- what the process gives up ---- */

static bool runs_programs(const struct hk_config *config)
{
    const struct hk_conf_channel *channel = NULL;
    for (size_t i = 0; (channel = hk_config_channel(config, i)) != NULL; i++)
        if (channel->kind == HK_CONF_EXEC)
            return true;
    return false;
}

static void log_sandbox(struct hk_daemon *d, enum hk_log_level level, const char *why)
{
    struct hk_log_line line;
    hk_log_begin(&line, &d->log, level, "sandbox");
    hk_log_cstr(&line, "seccomp", d->locked ? "on" : "off");
    if (why != NULL)
        hk_log_cstr(&line, "why", why);
    hk_log_end(&line);
}

/* Last of all that starts: what is opened once is open. A relay that cannot be locked up relays all the same. */
static void lock_up(struct hk_daemon *d)
{
    struct hk_err err = {.message = ""};
    if (d->options.no_sandbox) {
        log_sandbox(d, HK_LOG_INFO, "--no-sandbox");
    } else if (runs_programs(d->config)) { /* they would inherit it, and few programs are as modest */
        log_sandbox(d, HK_LOG_INFO, "a channel runs a program (exec)");
    } else {
        d->locked = hk_guard_lock(&err) == HK_OK;
        log_sandbox(d, d->locked ? HK_LOG_INFO : HK_LOG_WARN, d->locked ? NULL : err.message);
    }
}

/* Before the configuration is read: who may read it at the start must be able to read it again. */
static enum hk_code lower_rights(const struct hk_daemon_options *options, struct hk_err *err)
{
    enum hk_code rc = options->user != NULL ? hk_guard_become(options->user, err) : HK_OK;
    return rc == HK_OK && !options->core_dumps ? hk_guard_forbid_dumps(err) : rc;
}

/* ---- who runs jq ---- */

/* While the process has one thread and has read no secret. A relay without it relays all the same. */
static void start_jq_starter(struct hk_daemon *d)
{
    if (!hk_jq_find(d->jq))
        d->jq[0] = '\0';
    else if (hk_jq_starter_open(d->jq, &d->jq_starter, &d->jq_error) != HK_OK)
        d->jq_starter = NULL;
}

/* Once the process is locked, nobody can start another one. */
static void on_jq_starter_ended(void *arg, unsigned events)
{
    struct hk_daemon *d = arg;
    (void)events;
    hk_watch_free(d->jq_watch);
    d->jq_watch = NULL;
    hk_jq_starter_reap(d->jq_starter);
    log_event(d, HK_LOG_WARN, "the process that starts jq has ended: dead fix fails here until a restart",
              NULL, NULL);
}

static void watch_jq_starter(struct hk_daemon *d)
{
    struct hk_err err = d->jq_error;
    if (d->jq_starter != NULL && hk_watch_new(d->loop, hk_jq_starter_fd(d->jq_starter), on_jq_starter_ended,
                                              d, &d->jq_watch, &err) == HK_OK)
        hk_watch_set(d->jq_watch, HK_WATCH_READ);
    else if (d->jq[0] != '\0')
        log_event(d, HK_LOG_WARN, "the process that starts jq is missing: dead fix fails in a locked relay",
                  "error", err.message);
}

static void refuse(struct hk_daemon *d, struct hk_config *config, const char *why)
{
    log_event(d, HK_LOG_ERROR, "reload refused, the old configuration stays", "error", why);
    hk_config_free(config);
}

/* A relay without a key goes on: what is sealed with it waits. */
static void fetch_keys(struct hk_daemon *d, struct hk_config *config, const struct hk_config *older)
{
    struct hk_err err = {.message = ""};
    if (hk_config_fetch_keys(config, older, &d->key_asker, &err) != HK_OK)
        log_event(d, HK_LOG_ERROR, "a key is missing: messages that it sealed wait", "error", err.message);
}

static void reload(struct hk_daemon *d)
{
    const char *path = config_path(d);
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
    if (rc == HK_OK && config->destinations.n == 0 && d->config->destinations.n > 0)
        rc = hk_err_set(&err, HK_INVALID,
                        "it has no destinations: is it being written? Every message would be dead");
    if (rc == HK_OK && d->locked && runs_programs(config))
        rc = hk_err_set(&err, HK_INVALID,
                        "a channel runs a program (exec): that needs a restart, "
                        "as this process was locked up without");
    if (rc == HK_OK)
        fetch_keys(d, config, d->config);
    if (rc == HK_OK)
        rc = hk_relay_reload(d->relay, config, &err);
    if (rc != HK_OK) {
        refuse(d, config, err.message);
        return;
    }
    log_event(d, HK_LOG_INFO, "reloading", "config", path);
    hk_parts_reloading(&d->parts);
    d->next = config;
}

static void on_reloaded(void *arg, enum hk_code rc, const struct hk_err *err)
{
    struct hk_daemon *d = arg;
    struct hk_config *next = d->next;
    d->next = NULL;
    if (rc == HK_OK) {
        (void)!configure_log(d, next, NULL); /* what it checks has not changed since the start */
        log_changes(d, d->config, next);
        d->env.config = next;
        hk_parts_reloaded(&d->parts);
        hk_config_free(d->config);
        d->config = next;
        log_idle_ends(d);
    } else {
        refuse(d, next, err->message);
        hk_parts_kept(&d->parts);
    }
    if (d->again) {
        d->again = false;
        reload(d);
    }
}

static void on_reload_signal(void *arg, int signum)
{
    struct hk_daemon *d = arg;
    (void)signum;
    if (d->relay == NULL) {
        d->again = true;
        return;
    }
    if (d->next == NULL) {
        reload(d);
        return;
    }
    d->again = true;
    log_event(d, HK_LOG_INFO, "a reload is under way: the file is read once more after it", NULL, NULL);
}

/* ---- the process ---- */

static void make_names(struct hk_daemon *d)
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

/* What comes before there is somebody to take it waits: a signal to a relay that begins must end it in good order, too. The
 * threads that are made meanwhile take none anyway. */
static void hold_signals(bool hold)
{
    sigset_t ours;
    (void)sigemptyset(&ours);
    (void)sigaddset(&ours, SIGTERM);
    (void)sigaddset(&ours, SIGINT);
    (void)sigaddset(&ours, SIGHUP);
    (void)pthread_sigmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &ours, NULL);
}

static enum hk_code watch_signals(struct hk_daemon *d, struct hk_err *err)
{
    enum hk_code rc = hk_signal_new(d->loop, SIGTERM, on_stop_signal, d, &d->signals[0], err);
    if (rc == HK_OK)
        rc = hk_signal_new(d->loop, SIGINT, on_stop_signal, d, &d->signals[1], err);
    if (rc == HK_OK)
        rc = hk_signal_new(d->loop, SIGHUP, on_reload_signal, d, &d->signals[2], err);
    return rc;
}

static enum hk_code start_parts(struct hk_daemon *d, struct hk_err *err)
{
    d->turns = hk_turns_new(TURN_MS);
    if (!d->turns)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    d->env = (struct hk_part_env){.loop = d->loop,
                                  .config = d->config,
                                  .url = d->url,
                                  .turns = d->turns,
                                  .name = d->name,
                                  .boot = d->boot,
                                  .log = &d->log,
                                  .jq = d->jq[0] != '\0' ? d->jq : NULL,
                                  .jq_starter = d->jq_starter,
                                  .ui_dir = d->options.ui_dir,
                                  .ui_ticket = d->options.ui_ticket,
                                  .alerts = &d->alerts};
    return hk_parts_start(&d->parts, &d->env, err);
}

/* While the process has one thread. A relay without it relays all the same, with the keys that it gets at the start. */
static void start_key_runner(struct hk_daemon *d)
{
    struct hk_err err = {.message = ""};
    const char *path = config_path(d);
    if (!path || !hk_config_runs_for_keys(d->config))
        return;
    if (hk_key_runner_open(path, &d->key_runner, &err) == HK_OK)
        d->key_asker = (struct hk_key_asker){hk_key_runner_ask, d->key_runner};
    else
        log_event(d, HK_LOG_WARN, "commands of keys run only now, and not after a reload", "error",
                  err.message);
}

static enum hk_code serve(struct hk_daemon *d, struct hk_err *err)
{
    enum hk_code rc = watch_signals(d, err);
    watch_jq_starter(d);
    fetch_keys(d, d->config, NULL);
    if (rc == HK_OK)
        rc = start_parts(d, err);
    hold_signals(false);
    if (rc != HK_OK)
        return rc;
    struct hk_relay_options options = {.loop = d->loop,
                                       .config = d->config,
                                       .url = d->url,
                                       .turns = d->turns,
                                       .create = true,
                                       .name = d->name,
                                       .boot = d->boot,
                                       .log = &d->log,
                                       .event_log = getenv("HIKYAKU_EVENT_LOG"),
                                       .stops = &d->stops,
                                       .watches = d->parts.watches,
                                       .n_watches = d->parts.n,
                                       .stopped = on_stopped,
                                       .reloaded = on_reloaded,
                                       .arg = d};
    rc = hk_relay_start(&options, &d->relay, err);
    d->env.relay = d->relay;
    if (rc == HK_CANCELLED) {
        log_event(d, HK_LOG_INFO, "relay stopped", "why", "before it had begun");
        return HK_OK;
    }
    if (rc != HK_OK)
        return rc;
    log_event(d, HK_LOG_INFO, "relay started", "version", hk_version());
    if (hk_guard_is_root())
        log_event(d, HK_LOG_WARN, "running as root", "advice", "start it as another user, or with --user");
    lock_up(d);
    log_idle_ends(d);
    if (d->again) {
        d->again = false;
        reload(d);
    }
    hk_loop_run(d->loop);
    log_event(d, HK_LOG_INFO, "relay stopped", NULL, NULL);
    if (d->ended != HK_OK)
        (void)hk_err_set(err, d->ended, "the relay cannot continue: see the log");
    return d->ended;
}

/* libuv ends the program without a word when it cannot make a pipe. */
static enum hk_code check_limits(struct hk_err *err)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= FILES_MIN)
        return HK_OK;
    return hk_err_set(err, HK_RANGE,
                      "at most %llu files may be open: a relay needs %d at the least (ulimit -n)",
                      (unsigned long long)files.rlim_cur, FILES_MIN);
}

enum hk_code hk_daemon_new(const struct hk_daemon_options *options, struct hk_daemon **out_daemon,
                           struct hk_err *err)
{
    struct hk_daemon *d = hk_mem_zalloc(1, sizeof *d);
    if (d == NULL)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    d->options = *options;
    hold_signals(true);
    hk_log_init(&d->log, STDERR_FILENO,
                HK_LOG_INFO); /* first: it opens /proc/self/fd, which is closed to us afterwards */
    enum hk_code rc = lower_rights(options, err);
    if (rc != HK_OK) {
        hk_daemon_free(d);
        return rc;
    }
    start_jq_starter(d);
    *out_daemon = d;
    return HK_OK;
}

enum hk_code hk_daemon_run(struct hk_daemon *d, struct hk_config *config, const char *url, struct hk_err *err)
{
    d->config = config;
    make_names(d);
    d->url = hk_mem_strdup(url); /* the configuration may go, the URL stays */
    enum hk_code rc =
        d->url != NULL ? configure_log(d, d->config, err) : hk_err_set(err, HK_NOMEM, "out of memory");
    if (rc == HK_OK)
        rc = check_limits(err);
    if (rc == HK_OK)
        start_key_runner(d);
    if (rc == HK_OK)
        rc = hk_loop_new(&d->loop, err);
    if (rc == HK_OK)
        rc = serve(d, err);
    return rc;
}

void hk_daemon_free(struct hk_daemon *d)
{
    if (d == NULL)
        return;
    for (size_t i = 0; i < sizeof d->signals / sizeof d->signals[0]; i++)
        hk_signal_free(d->signals[i]);
    d->env.relay = NULL;
    hk_relay_free(d->relay);
    hk_parts_stop(&d->parts);
    hk_watch_free(d->jq_watch);
    hk_jq_starter_close(d->jq_starter);
    hk_loop_free(d->loop);
    hk_config_free(d->config);
    hk_config_free(d->next);
    hk_key_runner_close(d->key_runner);
    hk_secret_wipe(d->url, d->url != NULL ? strlen(d->url) : 0); /* a password may stand in it */
    hk_mem_free(d->url);
    hk_turns_unref(d->turns);
    hk_log_fini(&d->log);
    hk_mem_free(d);
}
