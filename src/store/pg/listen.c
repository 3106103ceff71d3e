/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that listens (listen.h). All it does can be ended at once, through a pipe that every wait looks at: the relay's
 * end must not wait for a server that does not answer.
 *
 * What strangers say on our channel is as good as what the trigger says: nobody looks at the words, and the engine bounds
 * how often it polls. Notifications are always read as fast as they come: who does not read makes the server keep them. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "run/password.h"
#include "store/pg/listen.h"
#include "store/pg/pg.h"

#define LOOK_MS        UINT64_C(60000)
#define BACKOFF_MIN_MS UINT64_C(250)
#define BACKOFF_MAX_MS UINT64_C(30000)
#define CONNECT_MS     15000 /* all hosts of the URL */
#define ANSWER_MS      10000
#define SQL_MAX        4096

#define QUESTION "SELECT pg_catalog.pg_backend_pid(), " HK_PG_WAKE_COLUMNS " " HK_PG_WAKE_FROM

enum {
    Q_PID,
    Q_OUTBOX,
    Q_TRIGGER,
    Q_FIRES,
    Q_MAY
};

struct hk_listener {
    struct hk_pg_listen_options options;
    struct hk_pg_url url;
    char *question;         /* with names filled in */
    PGconn *conn;           /* NULL between sessions */
    struct hk_err password; /* why there was none for the last one; empty: there was */
    int64_t outbox;         /* the oid that the channel is named after */
    pthread_t thread;
    int stop[2];        /* a pipe: its writing end is closed to end the thread */
    atomic_bool ending; /* the same, for when poll cannot say so */

    pthread_mutex_t lock; /* guards what follows */
    enum hk_listening state;
    char why[HK_LISTENING_WHY_MAX];
};

enum event {
    READY,
    LATE,
    STOP
};

/* ---- waiting ---- */

static int64_t monotonic_ms(void)
{
    struct timespec ts = {0};
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Without a descriptor, or without `events`: for the time to pass, also when poll fails: the server must not be dialled
 * without a pause. */
static enum event wait_on(struct hk_listener *l, int fd, short events, int64_t until_ms)
{
    while (!l->ending) {
        int64_t left_ms = until_ms - monotonic_ms();
        struct pollfd fds[2] = {{.fd = l->stop[0], .events = POLLIN},
                                {.fd = events ? fd : -1, .events = events}};
        int n = poll(fds, 2, left_ms <= 0 ? 0 : left_ms > 60000 ? 60000 : (int)left_ms);
        if (n > 0)
            return fds[0].revents ? STOP : READY;
        bool failed = n < 0 && errno != EINTR;
        if (left_ms <= 0 || (failed && events))
            return LATE;
        if (failed)
            (void)nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL); /* no memory: later, perhaps */
    }
    return STOP;
}

static enum event wait_for(struct hk_listener *l, short events, int64_t until_ms)
{
    return wait_on(l, l->conn ? PQsocket(l->conn) : -1, events, until_ms);
}

/* ---- what is told ---- */

static void tell(struct hk_listener *l, enum hk_listening state, const char *why)
{
    pthread_mutex_lock(&l->lock);
    bool changed = state != l->state || strncmp(why, l->why, sizeof l->why - 1) != 0;
    l->state = state;
    snprintf(l->why, sizeof l->why, "%.*s", (int)sizeof l->why - 1, why);
    pthread_mutex_unlock(&l->lock);
    if (changed)
        l->options.wake(l->options.arg);
}

/* In libpq's words, on one line. */
static void tell_trouble(struct hk_listener *l)
{
    struct hk_pg words = {0};
    const char *text = l->conn                  ? PQerrorMessage(l->conn)
                       : l->password.message[0] ? l->password.message
                                                : "out of memory";
    hk_pg_fail(&words, HK_UNAVAILABLE, *text ? text : "the server does not answer");
    tell(l, HK_LISTENING_NO, words.err.message);
}

/* ---- a session ---- */

static void ignore_notice(void *arg, const char *message)
{
    (void)arg;
    (void)message;
}

/* Like hk_password_ask, but the listener's end need not wait for a command. */
static enum hk_code ask_password(struct hk_listener *l, struct hk_buf *out)
{
    int answer = -1;
    l->password = (struct hk_err){.message = ""};
    enum hk_code rc = hk_password_begin(l->url.keeper, &answer, &l->password);
    if (rc != HK_OK)
        return rc;
    (void)wait_on(l, answer, POLLIN, monotonic_ms() + CONNECT_MS);
    return hk_password_end(answer, out, &l->password);
}

static void begin_dial(struct hk_listener *l)
{
    struct hk_buf password;
    hk_buf_init(&password, HK_PASSWORD_MAX);
    l->password.message[0] = '\0';
    if (!l->url.keeper)
        l->conn = hk_pg_dial(&l->url, NULL, CONNECT_MS, false);
    else if (ask_password(l, &password) == HK_OK)
        l->conn = hk_pg_dial(&l->url, hk_buf_cstr(&password), CONNECT_MS, false);
    if (password.data)
        hk_mem_wipe(password.data, password.room);
    hk_buf_fini(&password);
}

static bool dial(struct hk_listener *l)
{
    PostgresPollingStatusType next = PGRES_POLLING_WRITING;
    begin_dial(l);
    if (!l->conn)
        return false;
    int64_t until_ms = monotonic_ms() + CONNECT_MS;
    PQsetNoticeProcessor(l->conn, ignore_notice, NULL);
    while (PQstatus(l->conn) != CONNECTION_BAD && next != PGRES_POLLING_OK && next != PGRES_POLLING_FAILED) {
        if (wait_for(l, next == PGRES_POLLING_READING ? POLLIN : POLLOUT, until_ms) != READY)
            return false;
        next = PQconnectPoll(l->conn);
    }
    return next == PGRES_POLLING_OK && PQstatus(l->conn) == CONNECTION_OK;
}

/* The last result; NULL: it failed, or is not wanted any more. */
static PGresult *ask(struct hk_listener *l, const char *sql)
{
    PGresult *last = NULL, *res = NULL;
    int64_t until_ms = monotonic_ms() + ANSWER_MS;
    if (!PQsendQuery(l->conn, sql))
        return NULL;
    do {
        while (PQisBusy(l->conn))
            if (wait_for(l, POLLIN, until_ms) != READY || !PQconsumeInput(l->conn)) {
                PQclear(last);
                return NULL;
            }
        res = PQgetResult(l->conn);
        if (res) {
            PQclear(last);
            last = res;
        }
    } while (res);
    ExecStatusType status = PQresultStatus(last);
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK)
        return last;
    PQclear(last);
    return NULL;
}

static const char *why_not(const struct hk_listener *l, const PGresult *res)
{
    if (hk_pg_i64(res, 0, Q_PID) != PQbackendPID(l->conn))
        return "a pooler stands between, and through it nothing can be listened for";
    if (!hk_pg_bool(res, 0, Q_TRIGGER))
        return "there is no trigger: 'hikyaku init --notify' makes one";
    if (!hk_pg_bool(res, 0, Q_FIRES))
        return "the trigger is disabled";
    if (!hk_pg_bool(res, 0, Q_MAY))
        return "this role lacks SELECT and UPDATE on the sequence outbox_wake: see 'hikyaku init --print-grants "
               "--notify'";
    return NULL;
}

/* Is it worth while, and the same as before? False: tells why not. */
static bool look(struct hk_listener *l)
{
    PGresult *res = ask(l, l->question);
    if (!res || PQntuples(res) != 1) {
        PQclear(res);
        tell_trouble(l);
        return false;
    }
    const char *why = why_not(l, res);
    int64_t outbox = hk_pg_i64(res, 0, Q_OUTBOX);
    bool same = !l->outbox || l->outbox == outbox; /* somebody may have made the table anew */
    PQclear(res);
    l->outbox = outbox;
    if (why)
        tell(l, HK_LISTENING_NO, why);
    return !why && same;
}

/* No time-out may end a session that has nothing to say; but one that nobody reads must end. */
static bool begin(struct hk_listener *l)
{
    char sql[400];
    snprintf(sql, sizeof sql,
             "LISTEN hikyaku_%lld; SELECT pg_catalog.set_config('idle_session_timeout', '0', false), "
             "pg_catalog.set_config('tcp_user_timeout', '10000', false), "
             "pg_catalog.set_config('tcp_keepalives_idle', '5', false), "
             "pg_catalog.pg_try_advisory_lock_shared(" HK_PG_LISTENERS
             ", %lld::pg_catalog.oid::pg_catalog.int4)",
             (long long)l->outbox, (long long)l->outbox);
    PGresult *res = ask(l, sql);
    bool done = res != NULL;
    PQclear(res);
    if (done)
        tell(l, HK_LISTENING_YES, "");
    else
        tell_trouble(l);
    return done;
}

/* Twice: with encryption, what was received may lie decrypted where poll does not see it. */
static bool hear(struct hk_listener *l)
{
    bool any = false, alive = true;
    for (int i = 0; i < 2; i++) {
        PGnotify *n = NULL;
        alive = PQconsumeInput(l->conn) == 1 && PQstatus(l->conn) == CONNECTION_OK;
        while ((n = PQnotifies(l->conn)) != NULL) {
            PQfreemem(n);
            any = true;
        }
    }
    if (any)
        l->options.wake(l->options.arg);
    if (!alive)
        tell_trouble(l);
    return alive;
}

/* Until it breaks, or is not worth while any more. How long to wait before the next one. */
static uint64_t session(struct hk_listener *l, uint64_t *backoff_ms)
{
    uint64_t wait_ms = *backoff_ms;
    *backoff_ms = wait_ms * 2 < l->options.backoff_max_ms ? wait_ms * 2 : l->options.backoff_max_ms;
    l->outbox = 0;
    if (!dial(l)) {
        tell_trouble(l);
        return wait_ms;
    }
    if (!look(l))
        return l->options.look_ms;
    if (!begin(l))
        return wait_ms;
    *backoff_ms = l->options.backoff_min_ms;
    for (;;) {
        enum event event = wait_for(l, POLLIN, monotonic_ms() + (int64_t)l->options.look_ms);
        if (event == STOP || (event == LATE && !look(l)))
            return l->options.backoff_min_ms;
        if (!hear(l)) /* also what came with the answer */
            return l->options.backoff_min_ms;
    }
}

static void *thread_main(void *arg)
{
    struct hk_listener *l = arg;
    uint64_t backoff_ms = l->options.backoff_min_ms, wait_ms = 0;
    while (wait_for(l, 0, monotonic_ms() + (int64_t)wait_ms) != STOP) {
        wait_ms = session(l, &backoff_ms);
        PQfinish(l->conn);
        l->conn = NULL;
    }
    return NULL;
}

/* ---- from outside ---- */

/* The thread takes no signals: they are the loop's. */
static int start_thread(struct hk_listener *l)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&l->thread, NULL, thread_main, l);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

static char *fill_names(const struct hk_pg_url *url)
{
    struct hk_buf text;
    hk_buf_init(&text, SQL_MAX);
    hk_pg_url_names(url, QUESTION, &text);
    char *sql = hk_buf_detach(&text);
    hk_buf_fini(&text);
    return sql;
}

static void free_listener(struct hk_listener *l)
{
    for (int i = 0; i < 2; i++)
        if (l->stop[i] >= 0)
            (void)close(l->stop[i]);
    pthread_mutex_destroy(&l->lock);
    hk_mem_free(l->question);
    hk_pg_url_fini(&l->url);
    hk_mem_free(l);
}

static enum hk_code start(struct hk_listener *l, struct hk_err *err)
{
    enum hk_code rc = hk_pg_url_parse(l->options.url, &l->url, err);
    if (rc != HK_OK)
        return rc;
    l->options.url = NULL; /* the caller's */
    l->question = fill_names(&l->url);
    if (!l->question)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    int error = pipe(l->stop) ? errno : 0;
    for (int i = 0; i < 2 && !error; i++)
        error = fcntl(l->stop[i], F_SETFD, FD_CLOEXEC) ? errno : 0;
    if (!error)
        error = start_thread(l);
    return error ? hk_err_set(err, HK_IO, "cannot start a thread that listens: error %d", error) : HK_OK;
}

enum hk_code hk_pg_listen_start(const struct hk_pg_listen_options *options, struct hk_listener **out_listener,
                                struct hk_err *err)
{
    struct hk_listener *l = hk_mem_zalloc(1, sizeof *l);
    if (!l)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    l->options = *options;
    l->stop[0] = l->stop[1] = -1;
    pthread_mutex_init(&l->lock, NULL);
    enum hk_code rc = start(l, err);
    if (rc == HK_OK)
        *out_listener = l;
    else
        free_listener(l);
    return rc;
}

enum hk_code hk_pg_listen(const char *url, void (*wake)(void *arg), void *arg,
                          struct hk_listener **out_listener, struct hk_err *err)
{
    return hk_pg_listen_start(&(struct hk_pg_listen_options){.url = url,
                                                             .wake = wake,
                                                             .arg = arg,
                                                             .look_ms = LOOK_MS,
                                                             .backoff_min_ms = BACKOFF_MIN_MS,
                                                             .backoff_max_ms = BACKOFF_MAX_MS},
                              out_listener, err);
}

enum hk_listening hk_pg_listening(struct hk_listener *l, char out_why[HK_LISTENING_WHY_MAX])
{
    pthread_mutex_lock(&l->lock);
    enum hk_listening state = l->state;
    memcpy(out_why, l->why, sizeof l->why);
    pthread_mutex_unlock(&l->lock);
    return state;
}

void hk_pg_unlisten(struct hk_listener *l)
{
    if (!l)
        return;
    l->ending = true;
    (void)close(l->stop[1]);
    l->stop[1] = -1;
    (void)pthread_join(l->thread, NULL);
    free_listener(l);
}
