/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a program for one notice: without a shell, in its own process group, without our open files. The program may hang, flood
 * its output, leave children behind or read nothing: the timeout here ends all of that. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "alert/send.h"
#include "base/mem.h"
#include "base/show.h"
#include "base/str.h"

#define DEFAULT_TIMEOUT_MS 10000
#define TIMEOUT_MAX_MS     600000
#define LOOK_MS            10  /* how often to look whether it has ended */
#define SAID_MAX           300 /* bytes of its output that are kept: the last ones */
#define READS_MAX          64  /* in a row */
#define EXIT_TRY_AGAIN     75  /* EX_TEMPFAIL of sysexits.h */
#define FIRST_FD           3   /* what is not standard input, output or error */

struct child {
    pid_t pid;
    int in, out; /* our ends; -1 = closed */
    struct hk_str input;
    int64_t deadline_ms;
    const atomic_bool *abandoned;
    char said[SAID_MAX];
    size_t n_said;
};

static int64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void shut(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

/* ---- starting ---- */

/* Neither end is one of the first three descriptors, so that putting one in its place cannot close another. */
static bool make_pipe(int ends[2])
{
    int raw[2];
    if (pipe2(raw, O_CLOEXEC) != 0)
        return false;
    for (int i = 0; i < 2; i++) {
        ends[i] = fcntl(raw[i], F_DUPFD_CLOEXEC, FIRST_FD);
        (void)close(raw[i]);
    }
    if (ends[0] >= 0 && ends[1] >= 0)
        return true;
    shut(&ends[0]);
    shut(&ends[1]);
    return false;
}

static int prepare_actions(posix_spawn_file_actions_t *actions, int in, int out)
{
    int rc = posix_spawn_file_actions_adddup2(actions, in, STDIN_FILENO);
    if (rc == 0)
        rc = posix_spawn_file_actions_adddup2(actions, out, STDOUT_FILENO);
    if (rc == 0)
        rc = posix_spawn_file_actions_adddup2(actions, out, STDERR_FILENO);
#ifdef HK_HAVE_CLOSEFROM /* elsewhere O_CLOEXEC, which is everywhere, has to do */
    if (rc == 0)
        rc = posix_spawn_file_actions_addclosefrom_np(actions, FIRST_FD);
#endif
    return rc;
}

/* A group of its own, no signal held back, none ignored. */
static int prepare_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none, usual;
    (void)sigemptyset(&none);
    (void)sigemptyset(&usual);
    static const int signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGCHLD, SIGUSR1, SIGUSR2};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        (void)sigaddset(&usual, signals[i]);
    int rc = posix_spawnattr_setpgroup(attributes, 0);
    if (rc == 0)
        rc = posix_spawnattr_setsigmask(attributes, &none);
    if (rc == 0)
        rc = posix_spawnattr_setsigdefault(attributes, &usual);
    if (rc == 0)
        rc = posix_spawnattr_setflags(attributes,
                                      POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    return rc;
}

/* posix_spawnp takes pointers to char that it does not change. */
static char **copy_list(const char *const *list, size_t n)
{
    char **copy = hk_mem_zalloc(n + 1, sizeof *copy);
    for (size_t i = 0; copy && i < n; i++)
        memcpy(&copy[i], &list[i], sizeof copy[i]);
    return copy;
}

static int spawn(struct child *c, const struct hk_send_exec *program, int in, int out)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    char **argv = copy_list(program->argv, program->n_argv), **env = copy_list(program->env, program->n_env);
    int rc = argv && env ? posix_spawn_file_actions_init(&actions) : ENOMEM;
    if (rc == 0) {
        rc = posix_spawnattr_init(&attributes);
        if (rc == 0) {
            rc = prepare_actions(&actions, in, out);
            if (rc == 0)
                rc = prepare_attributes(&attributes);
            if (rc == 0)
                rc = posix_spawnp(&c->pid, argv[0], &actions, &attributes, argv, env);
            (void)posix_spawnattr_destroy(&attributes);
        }
        (void)posix_spawn_file_actions_destroy(&actions);
    }
    hk_mem_free(argv);
    hk_mem_free(env);
    return rc;
}

static enum hk_code start(struct child *c, const struct hk_send_exec *program, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    int in[2] = {-1, -1}, out[2] = {-1, -1};
    bool piped = make_pipe(in) && make_pipe(out);
    int rc = piped ? spawn(c, program, in[0], out[1]) : errno;
    shut(&in[0]);
    shut(&out[1]);
    c->in = in[1];
    c->out = out[0];
    if (rc == 0) {
        (void)fcntl(c->in, F_SETFL, O_NONBLOCK);
        (void)fcntl(c->out, F_SETFL, O_NONBLOCK);
        return HK_OK;
    }
    shut(&c->in);
    shut(&c->out);
    bool for_now = !piped || rc == EAGAIN || rc == ENOMEM || rc == EMFILE || rc == ENFILE;
    return hk_err_set(err, for_now ? HK_UNAVAILABLE : HK_INVALID, "%s cannot be run: %s",
                      hk_show(hk_str_of(program->argv[0]), shown), strerror(rc));
}

/* ---- talking ---- */

static void give(struct child *c)
{
    while (c->in >= 0 && c->input.len > 0) {
        ssize_t n = write(c->in, c->input.ptr, c->input.len);
        if (n > 0) {
            c->input.ptr += n;
            c->input.len -= (size_t)n;
        } else if (errno == EAGAIN) {
            return;
        } else if (errno != EINTR) { /* it does not want to read: that is its own business */
            break;
        }
    }
    shut(&c->in);
}

/* Keeps the last SAID_MAX bytes. */
static void note(struct child *c, const char *bytes, size_t len)
{
    if (len >= SAID_MAX) {
        memcpy(c->said, bytes + len - SAID_MAX, SAID_MAX);
        c->n_said = SAID_MAX;
        return;
    }
    size_t keep = SAID_MAX - len < c->n_said ? SAID_MAX - len : c->n_said;
    memmove(c->said, c->said + c->n_said - keep, keep);
    memcpy(c->said + keep, bytes, len);
    c->n_said = keep + len;
}

static void listen_to(struct child *c)
{
    char bytes[4096];
    for (unsigned i = 0; c->out >= 0 && i < READS_MAX; i++) {
        ssize_t n = read(c->out, bytes, sizeof bytes);
        if (n > 0)
            note(c, bytes, (size_t)n);
        else if (n < 0 && errno == EINTR)
            continue;
        else if (n < 0 && errno == EAGAIN)
            return;
        else
            shut(&c->out);
    }
}

static void wait_a_little(const struct child *c)
{
    struct pollfd p[2] = {{.fd = c->in, .events = POLLOUT}, {.fd = c->out, .events = POLLIN}};
    (void)poll(p, 2, LOOK_MS); /* closed ones are -1, which poll passes over */
}

/* ---- ending ---- */

/* True when it has ended; `*out_status` as waitpid has it. */
static bool has_ended(const struct child *c, int options, int *out_status)
{
    for (;;) {
        pid_t pid = waitpid(c->pid, out_status, options);
        if (pid == c->pid)
            return true;
        if (pid == 0)
            return false;
        if (errno != EINTR) {
            *out_status = SIGKILL; /* somebody else has collected it: nothing is known */
            return true;
        }
    }
}

static bool is_abandoned(const struct child *c)
{
    return c->abandoned && atomic_load(c->abandoned);
}

/* False: the time was up, or nobody waits for it any more, and it was killed with its children. */
static bool attend(struct child *c, int *out_status)
{
    for (;;) {
        give(c);
        listen_to(c);
        if (has_ended(c, WNOHANG, out_status)) {
            listen_to(c);
            return true;
        }
        if (now_ms() >= c->deadline_ms || is_abandoned(c)) {
            (void)kill(-c->pid, SIGKILL);
            return !has_ended(c, 0, out_status);
        }
        wait_a_little(c);
    }
}

/* Its last line: where programs say why. */
static struct hk_str last_words(const struct child *c)
{
    struct hk_str said = {c->said, c->n_said};
    while (said.len > 0 && (said.ptr[said.len - 1] == '\n' || said.ptr[said.len - 1] == '\r'))
        said.len--;
    for (size_t i = said.len; i > 0; i--) {
        if (said.ptr[i - 1] != '\n')
            continue;
        said = (struct hk_str){said.ptr + i, said.len - i};
        break;
    }
    while (said.len > 0 && ((unsigned char)said.ptr[0] & 0xc0) == 0x80) { /* cut within a character */
        said.ptr++;
        said.len--;
    }
    return said;
}

static enum hk_code say(const struct child *c, enum hk_code rc, const char *what, uint64_t number,
                        struct hk_err *err)
{
    struct hk_buf text;
    struct hk_str said = last_words(c);
    hk_buf_init(&text, (size_t)SAID_MAX * 8);
    hk_show_plain(said, SAID_MAX, &text);
    (void)hk_err_set(err, rc, "the program %s %" PRIu64 "%s%s%s", what, number, rc == HK_TIMEOUT ? " ms" : "",
                     said.len ? "; it said: " : "", hk_buf_cstr(&text));
    hk_buf_fini(&text);
    return rc;
}

static enum hk_code judge(const struct child *c, int status, struct hk_err *err)
{
    if (!WIFEXITED(status))
        return say(c, HK_UNAVAILABLE, "was ended by signal", (uint64_t)WTERMSIG(status), err);
    int code = WEXITSTATUS(status);
    if (code == 0)
        return HK_OK;
    return say(c, code == EXIT_TRY_AGAIN ? HK_UNAVAILABLE : HK_INVALID, "ended with", (uint64_t)code, err);
}

enum hk_code hk_send_exec(const struct hk_send_exec *program, struct hk_err *err)
{
    uint64_t ms = program->timeout_ms ? program->timeout_ms : DEFAULT_TIMEOUT_MS;
    ms = ms < TIMEOUT_MAX_MS ? ms : TIMEOUT_MAX_MS;
    int status = 0;
    struct child c = {.in = -1, .out = -1, .input = program->input, .abandoned = program->abandoned};
    c.deadline_ms = now_ms() + (int64_t)ms;
    enum hk_code rc = start(&c, program, err);
    if (rc != HK_OK)
        return rc;
    if (attend(&c, &status))
        rc = judge(&c, status, err);
    else if (is_abandoned(&c))
        rc = hk_err_set(err, HK_CANCELLED, "abandoned: the relay stops");
    else
        rc = say(&c, HK_TIMEOUT, "was killed after", ms, err);
    shut(&c.in);
    shut(&c.out);
    return rc;
}
