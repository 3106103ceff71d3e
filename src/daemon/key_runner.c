/* SPDX-License-Identifier: Apache-2.0 */
/* One socket pair that keeps the bounds of packets. A request is a key's id and a number; an answer has the same number, so that an
 * answer to an older request is told from the one that is waited for. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "config/diag.h"
#include "daemon/key_runner.h"
#include "run/program.h"

enum {
    TEXT_MAX = 1024,
    CONTROL = STDERR_FILENO + 1,
    CLOSE_MOST = 65536, /* descriptors */
    END_MS = 2000
};

struct request {
    uint32_t number;
    char id[HK_KEY_ID_MAX];
};

struct answer {
    uint32_t number, code; /* enum hk_code */
    uint32_t len;
    char text[TEXT_MAX]; /* the key as it was printed, or the reason why there is none */
};

/* A key that was asked for. */
struct slot {
    char id[HK_KEY_ID_MAX]; /* "" = this place is free */
    bool answered;
    struct answer answer; /* its number is that of the request */
};

struct hk_key_runner {
    pthread_mutex_t lock;
    pid_t pid;
    int fd;
    uint32_t number; /* of the last request */
    struct slot slots[HK_KEYS_MAX];
};

static int64_t clock_ms(void)
{
    struct timespec t = {.tv_sec = 0};
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- the runner's side ---- */

static const struct hk_conf_seal_key *find_key(const struct hk_config *config, const char *id)
{
    const struct hk_conf_seal_key *keys = config->seal.keys.items;
    for (size_t i = 0; i < config->seal.keys.n; i++)
        if (strcmp(keys[i].id, id) == 0 && keys[i].command.n > 0)
            return &keys[i];
    return NULL;
}

static enum hk_code run_command(const struct hk_conf_seal_key *key, struct hk_buf *out, struct hk_err *err)
{
    const char *argv[HK_PROGRAM_WORDS_MAX + 1] = {NULL};
    const char *const *words = key->command.items;
    for (size_t i = 0; i < key->command.n && i < HK_PROGRAM_WORDS_MAX; i++)
        argv[i] = words[i];
    return hk_program_run(argv, out, err);
}

static enum hk_code find_and_run(const char *path, const char *id, struct hk_buf *out, struct hk_err *err)
{
    struct hk_config *config = NULL;
    struct hk_diags diags;
    hk_diags_init(&diags);
    enum hk_code rc = hk_config_load(path, hk_config_env_operator(), &diags, &config);
    hk_diags_fini(&diags);
    if (rc != HK_OK)
        return hk_err_set(err, HK_INVALID, "the configuration cannot be read again");
    const struct hk_conf_seal_key *key = find_key(config, id);
    rc = key ? run_command(key, out, err)
             : hk_err_set(err, HK_NOTFOUND, "the configuration has no command for it any more");
    hk_config_free(config);
    return rc;
}

static void answer_request(const char *path, const struct request *request)
{
    struct answer answer = {.number = request->number};
    struct hk_err err = {.message = ""};
    struct hk_buf text;
    hk_buf_init(&text, TEXT_MAX);
    enum hk_code rc = find_and_run(path, request->id, &text, &err);
    struct hk_str said = rc == HK_OK ? hk_buf_str(&text) : hk_str_of(err.message);
    answer.code = (uint32_t)rc;
    answer.len = (uint32_t)(said.len < TEXT_MAX ? said.len : TEXT_MAX);
    if (answer.len)
        memcpy(answer.text, said.ptr, answer.len);
    (void)send(CONTROL, &answer, sizeof answer, MSG_NOSIGNAL);
    hk_mem_wipe(&answer, sizeof answer);
    if (text.data)
        hk_mem_wipe(text.data, text.room);
    hk_buf_fini(&text);
}

/* The command takes signals as any other program. */
static void work(const char *path, const struct request *request)
{
    sigset_t none;
    int status = 0;
    pid_t runner = getpid(), pid = fork();
    if (pid == 0) {
        (void)sigemptyset(&none);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        if (getppid() == runner) {
            (void)sigprocmask(SIG_SETMASK, &none, NULL);
            answer_request(path, request);
        }
        _exit(0);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return;
    struct answer failed = {.number = request->number, .code = HK_NOMEM};
    (void)send(CONTROL, &failed, sizeof failed, MSG_NOSIGNAL);
}

static void close_from(int first)
{
    struct rlimit files = {.rlim_cur = CLOSE_MOST};
    (void)getrlimit(RLIMIT_NOFILE, &files);
    for (int fd = first; fd < CLOSE_MOST && (rlim_t)fd < files.rlim_cur; fd++)
        (void)close(fd);
}

/* Ctrl-C and the service manager's SIGTERM are for its parent, which may need a key while it drains. */
static bool settle_in(int control, pid_t parent)
{
    sigset_t all;
    (void)sigfillset(&all);
    bool ok = prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 && getppid() == parent &&
              sigprocmask(SIG_SETMASK, &all, NULL) == 0 && signal(SIGCHLD, SIG_DFL) != SIG_ERR;
    (void)prctl(PR_SET_NAME, "hikyaku-keys", 0, 0, 0);
    int kept = fcntl(control, F_DUPFD_CLOEXEC, CONTROL + 1);
    ok = ok && kept >= 0 && dup2(kept, CONTROL) == CONTROL && fcntl(CONTROL, F_SETFD, FD_CLOEXEC) == 0;
    close_from(CONTROL + 1);
    return ok;
}

static _Noreturn void be_runner(const char *path, int control, pid_t parent)
{
    struct request request;
    bool ok = settle_in(control, parent);
    while (ok) {
        ssize_t n = recv(CONTROL, &request, sizeof request, 0);
        ok = n > 0 || (n < 0 && errno == EINTR);
        request.id[sizeof request.id - 1] = '\0';
        if (n == (ssize_t)sizeof request)
            work(path, &request);
    }
    _exit(0);
}

/* ---- the relay's side ---- */

static enum hk_code no_runner(struct hk_err *err)
{
    return hk_err_set(err, HK_UNAVAILABLE,
                      "the process that runs commands of keys has ended: restart the relay");
}

static struct slot *slot_of(struct hk_key_runner *r, const char *id)
{
    struct slot *spare = NULL;
    for (size_t i = 0; i < HK_KEYS_MAX; i++) {
        if (strcmp(r->slots[i].id, id) == 0)
            return &r->slots[i];
        if (!r->slots[i].id[0])
            spare = &r->slots[i];
    }
    spare = spare ? spare : &r->slots[0]; /* of a configuration of before: it is asked for again */
    hk_mem_wipe(spare, sizeof *spare);
    return hk_str_copy(spare->id, sizeof spare->id, hk_str_of(id)) ? spare : NULL;
}

static void keep_answer(struct hk_key_runner *r, const struct answer *answer)
{
    for (size_t i = 0; i < HK_KEYS_MAX; i++) {
        struct slot *slot = &r->slots[i];
        if (!slot->id[0] || slot->answered || slot->answer.number != answer->number)
            continue;
        slot->answer = *answer;
        slot->answer.len = answer->len < TEXT_MAX ? answer->len : TEXT_MAX;
        slot->answered = true;
    }
}

/* False: the runner has ended. */
static bool hear(struct hk_key_runner *r)
{
    struct answer answer;
    ssize_t n = 0;
    do {
        n = recv(r->fd, &answer, sizeof answer, MSG_DONTWAIT);
        if (n == (ssize_t)sizeof answer)
            keep_answer(r, &answer);
    } while (n > 0 || (n < 0 && errno == EINTR));
    hk_mem_wipe(&answer, sizeof answer);
    return n < 0 && errno == EAGAIN;
}

/* For its answer (NULL: for the runner's end). False: the runner has ended. */
static bool wait_for(struct hk_key_runner *r, const struct slot *slot, int64_t deadline_ms)
{
    bool runs = hear(r);
    for (int64_t left = deadline_ms - clock_ms(); runs && !(slot && slot->answered) && left > 0;
         left = deadline_ms - clock_ms()) {
        struct pollfd ready = {.fd = r->fd, .events = POLLIN};
        (void)poll(&ready, 1, (int)left);
        runs = hear(r);
    }
    return runs || (slot && slot->answered);
}

static bool send_request(struct hk_key_runner *r, struct slot *slot)
{
    struct request request = {.number = ++r->number};
    memcpy(request.id, slot->id, sizeof request.id);
    slot->answered = false;
    slot->answer.number = request.number;
    return send(r->fd, &request, sizeof request, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof request;
}

static enum hk_code take_answer(struct slot *slot, struct hk_buf *out, struct hk_err *err)
{
    enum hk_code rc = (enum hk_code)slot->answer.code;
    struct hk_str text = {slot->answer.text, slot->answer.len};
    if (rc == HK_OK)
        rc = hk_buf_add(out, text.ptr, text.len);
    else
        (void)hk_err_set(err, rc, "%.*s", (int)text.len, text.ptr);
    hk_mem_wipe(slot, sizeof *slot);
    return rc;
}

static enum hk_code ask(struct hk_key_runner *r, struct slot *slot, uint64_t wait_ms, struct hk_buf *out,
                        struct hk_err *err)
{
    bool runs = hear(r), fresh = !slot->answer.number || wait_ms > 0;
    if (runs && fresh && !send_request(r, slot)) {
        hk_mem_wipe(slot, sizeof *slot);
        return no_runner(err);
    }
    if (!wait_for(r, slot, clock_ms() + (int64_t)wait_ms))
        return no_runner(err);
    return slot->answered ? take_answer(slot, out, err)
                          : hk_err_set(err, HK_TIMEOUT, "its command has not answered yet");
}

enum hk_code hk_key_runner_ask(void *arg, const char *id, uint64_t wait_ms, struct hk_buf *out,
                               struct hk_err *err)
{
    struct hk_key_runner *r = arg;
    (void)pthread_mutex_lock(&r->lock);
    struct slot *slot = slot_of(r, id);
    enum hk_code rc =
        slot ? ask(r, slot, wait_ms, out, err) : hk_err_set(err, HK_INVALID, "its id is too long");
    (void)pthread_mutex_unlock(&r->lock);
    return rc;
}

enum hk_code hk_key_runner_open(const char *config_path, struct hk_key_runner **out, struct hk_err *err)
{
    int pair[2];
    struct hk_key_runner *r = hk_mem_zalloc(1, sizeof *r);
    if (!r || pthread_mutex_init(&r->lock, NULL) != 0) {
        hk_mem_free(r);
        return hk_err_set(err, HK_NOMEM, "out of memory");
    }
    r->fd = -1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0) {
        pid_t parent = getpid();
        r->pid = fork();
        if (r->pid == 0)
            be_runner(config_path, pair[1], parent);
        r->fd = pair[0];
        (void)close(pair[1]);
    }
    if (r->pid > 0) {
        *out = r;
        return HK_OK;
    }
    r->pid = 0;
    hk_key_runner_close(r);
    return hk_err_set(err, HK_UNAVAILABLE, "the process that runs commands of keys cannot be made: %s",
                      strerror(errno));
}

/* A runner that waits for a command ends with this process, at the latest. A locked process may not kill it. */
void hk_key_runner_close(struct hk_key_runner *r)
{
    if (!r)
        return;
    if (r->fd >= 0)
        (void)shutdown(r->fd, SHUT_WR);
    if (r->pid > 0 && (!wait_for(r, NULL, clock_ms() + END_MS) || kill(r->pid, SIGKILL) == 0))
        while (waitpid(r->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    if (r->fd >= 0)
        (void)close(r->fd);
    (void)pthread_mutex_destroy(&r->lock);
    hk_mem_wipe(r, sizeof *r);
    hk_mem_free(r);
}
