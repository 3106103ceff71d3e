/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku demo: the five-minute tour in under a minute. A temporary outbox, an application that commits and rolls back, a
 * receiver that misbehaves, a relay that is killed and started again; and at the end, what the receiver counted. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <hikyaku/hikyaku.h>

#include "admin/ui.h"
#include "base/buf.h"
#include "cli/args.h"
#include "cli/demo/demo.h"
#include "cli/out.h"
#include "desk/setup.h"
#include "desk/status.h"

enum {
    ORDERS = 20,
    ROLLED_BACK = 21,
    POISON = 22,
    TICK_MS = 100,
    KILL_AFTER_TICKS = 14,
    GIVE_UP_TICKS = 500
};

struct demo {
    char dir[256], config[300], db[300], url[320], log[300];
    struct hk_demo_receiver *receiver;
    void *app;
    struct hk_config *defaults; /* for the desk; the relay has a file */
    struct hk_desk desk;
    pid_t relay; /* 0 = not running */
    unsigned port;
    unsigned ui_port;   /* of the dashboard */
    char ui_ticket[33]; /* opens it, once */
    bool live;          /* stdout is a terminal: the table stays in place */
};

static volatile sig_atomic_t
    interrupted; /* set by the handler, read by the loops: what sig_atomic_t is for */

static void on_interrupt(int signum)
{
    (void)signum;
    interrupted = 1;
}

static void sleep_ms(long ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    (void)nanosleep(&t, NULL);
}

/* ---- the temporary folder ---- */

static enum hk_code write_config(const struct demo *d, struct hk_err *err)
{
    FILE *f = fopen(d->config, "w");
    if (f == NULL)
        return hk_err_set(err, HK_IO, "%s: %s", d->config, strerror(errno));
    (void)fprintf(f,
                  "# made by hikyaku demo\n"
                  "store: %s\n"
                  "relay: { name: demo, lease: 1s }   # short, so that a killed relay is replaced soon\n"
                  "admin: { listen: 127.0.0.1:%u, auth: tokens }\n"
                  "policies:\n"
                  "  demo:\n"
                  "    backoff: { kind: exponential, base: 200ms, cap: 2s }\n"
                  "    timeout: 1s\n"
                  "destinations:\n"
                  "  shop:\n"
                  "    http: { url: \"http://127.0.0.1:%u/orders\" }\n"
                  "    policy: demo\n"
                  "    breaker: off\n"
                  "    allow: [127.0.0.0/8]           # loopback is refused unless allowed\n",
                  d->url, d->ui_port, d->port);
    return fclose(f) == 0 ? HK_OK : hk_err_set(err, HK_IO, "%s: %s", d->config, strerror(errno));
}

/* A port that nobody listens on, and a secret that only this demo and its relay know. */
static enum hk_code prepare_dashboard(struct demo *d, struct hk_err *err)
{
    unsigned char bytes[16];
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok = fd >= 0 && bind(fd, (struct sockaddr *)&at, len) == 0 &&
              getsockname(fd, (struct sockaddr *)&at, &len) == 0;
    if (fd >= 0)
        (void)close(fd);
    if (!ok || getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return hk_err_set(err, HK_IO, "no port for the dashboard: %s", strerror(errno));
    d->ui_port = ntohs(at.sin_port);
    for (size_t i = 0; i < sizeof bytes; i++)
        (void)snprintf(d->ui_ticket + 2 * i, 3, "%02x", bytes[i]);
    return HK_OK;
}

static enum hk_code make_folder(struct demo *d, struct hk_err *err)
{
    const char *tmp = getenv("TMPDIR");
    (void)snprintf(d->dir, sizeof d->dir, "%s/hikyaku-demo-XXXXXX",
                   tmp != NULL && tmp[0] == '/' ? tmp : "/tmp");
    if (mkdtemp(d->dir) == NULL)
        return hk_err_set(err, HK_IO, "%s: %s", d->dir, strerror(errno));
    (void)snprintf(d->config, sizeof d->config, "%s/hikyaku.yaml", d->dir);
    (void)snprintf(d->db, sizeof d->db, "%s/demo.db", d->dir);
    (void)snprintf(d->url, sizeof d->url, "sqlite:%s", d->db);
    (void)snprintf(d->log, sizeof d->log, "%s/relay.log", d->dir);
    return HK_OK;
}

/* What the demo made, and nothing else. */
static void remove_folder(const struct demo *d)
{
    static const char *const made[] = {"hikyaku.yaml", "relay.log",   "demo.db",
                                       "demo.db-wal",  "demo.db-shm", "demo.db-relay"};
    char path[320];
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", d->dir, made[i]);
        (void)unlink(path);
    }
    (void)rmdir(d->dir);
}

/* ---- the relay, as a process of its own ---- */

static enum hk_code start_relay(struct demo *d, struct hk_err *err)
{
    pid_t pid = fork();
    if (pid < 0)
        return hk_err_set(err, HK_IO, "fork: %s", strerror(errno));
    if (pid > 0) {
        d->relay = pid;
        return HK_OK;
    }
    int log = open(d->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log >= 0)
        (void)dup2(log, STDERR_FILENO);
    (void)setenv("HIKYAKU_UI_TICKET", d->ui_ticket, 1);
    (void)execl("/proc/self/exe", "hikyaku", "--config", d->config, "run", (char *)NULL);
    _exit(127);
}

static int stop_relay(struct demo *d, int signum)
{
    int status = 0;
    if (d->relay == 0)
        return 0;
    (void)kill(d->relay, signum);
    while (waitpid(d->relay, &status, 0) < 0 && errno == EINTR)
        ;
    d->relay = 0;
    return status;
}

/* ---- what is seen ---- */

/* How many messages are in each state. */
struct states {
    uint64_t pending, processing, retrying, sent, dead;
};

static enum hk_code ask(struct demo *d, const struct hk_op *op, const void *request, struct hk_pool *mem,
                        void *result, struct hk_err *err)
{
    static const struct hk_caller caller = {.role = HK_ROLE_ADMIN, .actor = "demo"};
    return hk_desk_ask(&d->desk, op, &caller, request, mem, result, err);
}

static bool look(struct demo *d, struct states *out)
{
    static const struct hk_status_ask all = {.all_destinations = true};
    struct hk_pool mem = {NULL};
    struct hk_err err = {.message = ""};
    struct hk_status is = {.n_dests = 0};
    bool ok = ask(d, &hk_op_status, &all, &mem, &is, &err) == HK_OK;
    if (ok) {
        const struct hk_store_status *s = &is.store;
        *out = (struct states){
            .processing = s->processing, .retrying = is.retrying.n, .sent = s->sent.n, .dead = s->dead.n};
        for (size_t i = 0; i < is.n_dests; i++)
            out->pending += is.dests[i].backlog.pending.n;
    }
    hk_pool_fini(&mem);
    return ok;
}

static void show(struct demo *d, const char *what)
{
    struct states s = {.pending = 0};
    if (!look(d, &s))
        return;
    struct hk_demo_counts c = hk_demo_receiver_counts(d->receiver);
    (void)printf(
        "%s%7" PRIu64 " %10" PRIu64 " %8" PRIu64 " %4" PRIu64 " %4" PRIu64 " | %8u %4u %4u %4u %6u   %s%s",
        d->live ? "\r" : "", s.pending, s.processing, s.retrying, s.sent, s.dead, c.requests, c.accepted,
        c.unavailable, c.limited, c.unique, what, d->live && what[0] == '\0' ? "\033[K" : "\n");
    (void)fflush(stdout);
}

static void show_head(void)
{
    (void)printf("          the outbox                    | what the receiver answered\n"
                 "pending processing retrying sent dead | requests  200  503  429 unique\n");
}

/* ---- the story ---- */

static enum hk_code make_outbox(struct demo *d, struct hk_err *err)
{
    struct hk_pool mem = {NULL};
    struct hk_inited done;
    if (hk_config_defaults(&d->defaults) != HK_OK)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    hk_desk_init(&d->desk, d->defaults, d->url);
    enum hk_code rc = ask(d, &hk_op_init, &(struct hk_init_ask){.wal = true}, &mem, &done, err);
    hk_pool_fini(&mem);
    return rc;
}

static enum hk_code set_up(struct demo *d, struct hk_err *err)
{
    enum hk_code rc = make_folder(d, err);
    if (rc == HK_OK)
        rc = hk_demo_receiver_start((uint64_t)time(NULL), &d->receiver, &d->port, err);
    if (rc == HK_OK)
        rc = prepare_dashboard(d, err);
    if (rc == HK_OK)
        rc = write_config(d, err);
    if (rc == HK_OK)
        rc = make_outbox(d, err);
    if (rc == HK_OK)
        rc = hk_demo_app_open(d->db, &d->app, err);
    if (rc == HK_OK)
        rc = start_relay(d, err);
    return rc;
}

static enum hk_code commit_orders(struct demo *d, struct hk_err *err)
{
    enum hk_code rc = HK_OK;
    for (unsigned i = 1; rc == HK_OK && i <= ORDERS; i++) {
        rc = hk_demo_app_order(d->app, i, false, true, err);
        if (i == ORDERS)
            show(d, "20 orders committed");
        else if (d->live)
            show(d, "");
        sleep_ms(30);
    }
    if (rc == HK_OK)
        rc = hk_demo_app_order(d->app, ROLLED_BACK, false, false, err);
    if (rc == HK_OK)
        show(d, "one rolled back: it must never arrive");
    if (rc == HK_OK)
        rc = hk_demo_app_order(d->app, POISON, true, true, err);
    if (rc == HK_OK)
        show(d, "one poison message: the receiver will refuse it");
    return rc;
}

static bool settled(struct demo *d)
{
    struct states s = {.pending = 1};
    return look(d, &s) && s.pending + s.processing + s.retrying == 0;
}

/* Until nothing is left to do; on the way the relay is killed and started again. */
static enum hk_code watch(struct demo *d, struct hk_err *err)
{
    enum hk_code rc = HK_OK;
    for (unsigned tick = 0; rc == HK_OK && tick < GIVE_UP_TICKS && !interrupted; tick++) {
        sleep_ms(TICK_MS);
        if (tick == KILL_AFTER_TICKS) {
            (void)stop_relay(d, SIGKILL);
            show(d, "the relay is killed (SIGKILL) …");
            rc = start_relay(d, err);
            show(d, "… and started again");
        }
        if (tick > KILL_AFTER_TICKS && settled(d))
            break;
        if (d->live || tick % 10 == 9)
            show(d, "");
    }
    show(d, "done");
    return rc;
}

/* The receiver's word. */
static bool verdict(struct demo *d)
{
    struct states s = {.pending = 0};
    struct hk_demo_counts c = hk_demo_receiver_counts(d->receiver);
    unsigned lost = 0, again = c.accepted - c.unique;
    for (unsigned i = 1; i <= ORDERS; i++)
        lost += !hk_demo_receiver_has(d->receiver, i);
    bool invented = hk_demo_receiver_has(d->receiver, ROLLED_BACK);
    bool dead = look(d, &s) && s.dead == 1;
    (void)printf(
        "\nThe receiver counted: %u unique, %u duplicate%s, %u lost. Its one hang took the order and answered too\n"
        "late: that is the repeat which a receiver tells by its webhook-id. Rolled back and sent: %s. Dead\n"
        "letters: %" PRIu64 " (HTTP_422, the poison).\n",
        c.unique, again, again == 1 ? "" : "s", lost, invented ? "YES" : "none", s.dead);
    return lost == 0 && !invented && dead && c.unique == ORDERS;
}

/* As a shell takes it: in quotes, if there is anything in it that could mean something else. */
static const char *shell_word(const char *text, struct hk_buf *out)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+@:";
    if (text[0] != '\0' && text[strspn(text, plain)] == '\0')
        return text;
    (void)hk_buf_addc(out, '\'');
    for (const char *c = text; *c != '\0'; c++)
        (void)(*c == '\'' ? hk_buf_adds(out, "'\\''") : hk_buf_addc(out, *c));
    (void)hk_buf_addc(out, '\'');
    return hk_buf_status(out) == HK_OK ? hk_buf_cstr(out) : text;
}

/* Lines that can be pasted: nothing but the command stands on them. */
static void next_steps(const struct demo *d, const char *called, bool keep)
{
    struct hk_buf words[3], whole;
    hk_buf_init(&whole, 64 * 1024);
    for (size_t i = 0; i < 3; i++)
        hk_buf_init(&words[i], 64 * 1024);
    char here[4096];
    if (keep && called[0] != '/' && strchr(called, '/') != NULL && getcwd(here, sizeof here) != NULL)
        (void)hk_buf_addf(&whole, "%s/", here); /* another terminal may be elsewhere */
    (void)hk_buf_adds(&whole, called);
    const char *program = shell_word(hk_buf_cstr(&whole), &words[0]);
    const char *config = shell_word(d->config, &words[1]), *db = shell_word(d->db, &words[2]);
    if (keep)
        (void)printf("\nStill running; Ctrl-C ends it. In another terminal:\n"
                     "  %s --config %s status\n"
                     "  %s --config %s messages list\n"
                     "  sqlite3 %s \"SELECT reason_code, error_message, payload FROM dead_letters\"\n",
                     program, config, program, config, db);
    if (keep && hk_ui_n_files > 0)
        (void)printf("In a browser (the link works once):\n  http://127.0.0.1:%u/#/ticket/%s\n", d->ui_port,
                     d->ui_ticket);
    if (!keep)
        (void)printf(
            "\nTry next: the same, left running to play with, also in a browser; when each retry comes; a relay of your own, on\n"
            "sqlite:hikyaku.db:\n"
            "  %s demo --keep\n"
            "  %s policy plan standard\n"
            "  %s init && %s run\n",
            program, program, program, program);
    (void)fflush(stdout);
    hk_buf_fini(&whole);
    for (size_t i = 0; i < 3; i++)
        hk_buf_fini(&words[i]);
}

static void tear_down(struct demo *d)
{
    (void)stop_relay(d, SIGTERM);
    hk_demo_app_close(d->app);
    hk_desk_fini(&d->desk);
    hk_config_free(d->defaults);
    hk_demo_receiver_stop(d->receiver);
    if (d->dir[0] != '\0')
        remove_folder(d);
}

int hk_cmd_demo(struct hk_cli *cli)
{
    struct demo d = {.live = isatty(STDOUT_FILENO) == 1};
    struct sigaction stop = {.sa_handler = on_interrupt};
    struct hk_err err = {.message = ""};
    bool keep = hk_args_flag(cli, "keep"), ok = false;

    (void)sigaction(SIGINT, &stop, NULL);
    (void)sigaction(SIGTERM, &stop, NULL);
    enum hk_code rc = set_up(&d, &err);
    if (rc == HK_OK) {
        (void)printf("A temporary outbox in %s, a receiver on port %u that fails 30 %% of the time.\n\n",
                     d.dir, d.port);
        show_head();
        rc = commit_orders(&d, &err);
    }
    if (rc == HK_OK)
        rc = watch(&d, &err);
    if (rc == HK_OK) {
        ok = verdict(&d);
        next_steps(&d, cli->program, keep);
    }
    while (rc == HK_OK && keep && !interrupted)
        sleep_ms(TICK_MS);
    tear_down(&d);
    if (rc != HK_OK)
        return hk_out_failure(&err);
    return ok ? HK_EXIT_OK
              : hk_out_error(HK_EXIT_FAILURE, "the demo did not end as it should: please report it");
}
