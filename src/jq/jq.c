/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's side of the jq helper: starts it, talks in frames, and kills it when it takes too long. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/show.h"
#include "base/str.h"
#include "jq/frame.h"
#include "jq/impl.h"
#include "jq/jq.h"

struct hk_jq {
    char *helper, *program;
    const struct hk_jq_starter *starter; /* NULL: helpers are children of this process */
    uint64_t timeout_ms;
    int fd;    /* -1 = no helper runs */
    pid_t pid; /* of our child */
    int lease; /* or what the starter keeps it for */
};

/* ---- the process ---- */

static void stop(struct hk_jq *jq)
{
    if (jq->fd >= 0)
        (void)close(jq->fd);
    jq->fd = -1;
    if (jq->lease >= 0)
        (void)close(jq->lease); /* the starter kills it and reaps it */
    jq->lease = -1;
    if (jq->pid > 0) {
        (void)kill(jq->pid, SIGKILL);
        while (waitpid(jq->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    jq->pid = 0;
}

static enum hk_code spawn(struct hk_jq *jq, int theirs, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    if (jq->starter)
        return hk_jq_starter_ask(jq->starter, theirs, &jq->lease, err);
    int rc = hk_jq_spawn(jq->helper, theirs, &jq->pid);
    if (rc == 0)
        return HK_OK;
    jq->pid = 0;
    return hk_err_set(err, rc == ENOMEM ? HK_NOMEM : HK_UNAVAILABLE, "cannot run %s: %s",
                      hk_show(hk_str_of(jq->helper), shown), strerror(rc));
}

/* ---- talking ---- */

static enum hk_code died(struct hk_jq *jq, struct hk_err *err)
{
    stop(jq);
    if (jq->starter &&
        !hk_jq_starter_runs(jq->starter)) /* its helpers die with it: not this document's doing */
        return hk_err_set(err, HK_UNAVAILABLE, "%s", HK_JQ_NO_STARTER);
    return hk_err_set(
        err, HK_INVALID,
        "the jq helper died on it: the program needs too much memory, or asks for what it may not do");
}

static enum hk_code wait_for(struct hk_jq *jq, short events, int64_t deadline_ms, struct hk_err *err)
{
    for (;;) {
        int64_t left = deadline_ms - hk_jq_now_ms();
        struct pollfd p = {.fd = jq->fd, .events = events};
        int rc = left <= 0 ? 0 : poll(&p, 1, left > 1000000 ? 1000000 : (int)left);
        if (rc > 0)
            return HK_OK;
        if (rc == 0 && left <= 0) {
            stop(jq);
            return hk_err_set(err, HK_TIMEOUT, "the program took longer than %llu ms",
                              (unsigned long long)jq->timeout_ms);
        }
        if (rc < 0 && errno != EINTR)
            return died(jq, err);
    }
}

static enum hk_code put(struct hk_jq *jq, const void *bytes, size_t len, int64_t deadline_ms,
                        struct hk_err *err)
{
    const char *at = bytes;
    while (len > 0) {
        ssize_t n = send(jq->fd, at, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0) {
            at += n;
            len -= (size_t)n;
        } else if (n < 0 && errno == EAGAIN) {
            enum hk_code rc = wait_for(jq, POLLOUT, deadline_ms, err);
            if (rc != HK_OK)
                return rc;
        } else if (!(n < 0 && errno == EINTR)) {
            return died(jq, err);
        }
    }
    return HK_OK;
}

static enum hk_code get(struct hk_jq *jq, void *out, size_t len, int64_t deadline_ms, struct hk_err *err)
{
    char *at = out;
    while (len > 0) {
        enum hk_code rc = wait_for(jq, POLLIN, deadline_ms, err);
        if (rc != HK_OK)
            return rc;
        ssize_t n = recv(jq->fd, at, len, MSG_DONTWAIT);
        if (n > 0) {
            at += n;
            len -= (size_t)n;
        } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
            return died(jq, err);
        }
    }
    return HK_OK;
}

static enum hk_code ask(struct hk_jq *jq, struct hk_str frame, int64_t deadline_ms, struct hk_err *err)
{
    uint32_t n = (uint32_t)frame.len;
    unsigned char head[HK_JQ_HEAD] = {(unsigned char)(n >> 24), (unsigned char)(n >> 16),
                                      (unsigned char)(n >> 8), (unsigned char)n};
    enum hk_code rc = put(jq, head, sizeof head, deadline_ms, err);
    return rc == HK_OK ? put(jq, frame.ptr, frame.len, deadline_ms, err) : rc;
}

/* What came behind the kind goes to `out`, or into `err`. */
static enum hk_code read_body(struct hk_jq *jq, char kind, size_t len, int64_t deadline_ms,
                              struct hk_buf *out, struct hk_err *err)
{
    char piece[4096];
    char said[HK_ERR_MESSAGE_MAX] = "";
    size_t n_said = 0;
    while (len > 0) {
        size_t n = len < sizeof piece ? len : sizeof piece;
        enum hk_code rc = get(jq, piece, n, deadline_ms, err);
        if (rc != HK_OK)
            return rc;
        len -= n;
        if (kind == HK_JQ_OK) {
            (void)hk_buf_add(out, piece, n);
        } else if (n_said < sizeof said - 1) {
            size_t fits = sizeof said - 1 - n_said < n ? sizeof said - 1 - n_said : n;
            memcpy(said + n_said, piece, fits);
            n_said += fits;
        }
    }
    if (kind != HK_JQ_OK) {
        for (size_t i = 0; i < n_said; i++)
            if ((unsigned char)said[i] < ' ' || said[i] == 0x7f)
                said[i] = ' ';
        return hk_err_set(err, HK_INVALID, "%s", said);
    }
    enum hk_code status = hk_buf_status(out);
    return status == HK_OK ? HK_OK : hk_err_set(err, status, "the result does not fit");
}

static enum hk_code hear(struct hk_jq *jq, int64_t deadline_ms, struct hk_buf *out, struct hk_err *err)
{
    unsigned char head[HK_JQ_HEAD + 1];
    enum hk_code rc = get(jq, head, sizeof head, deadline_ms, err);
    if (rc != HK_OK)
        return rc;
    uint32_t len = (uint32_t)head[0] << 24 | (uint32_t)head[1] << 16 | (uint32_t)head[2] << 8 | head[3];
    if (len == 0 || len > HK_JQ_FRAME_MAX || (head[4] != HK_JQ_OK && head[4] != HK_JQ_ERROR))
        return died(jq, err);
    return read_body(jq, (char)head[4], len - 1, deadline_ms, out, err);
}

/* ---- */

static enum hk_code start(struct hk_jq *jq, struct hk_err *err)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return hk_err_set(err, HK_UNAVAILABLE, "no socket for the jq helper: %s", strerror(errno));
    jq->fd = pair[0];
    enum hk_code rc = spawn(jq, pair[1], err);
    (void)close(pair[1]);
    struct hk_buf nothing;
    hk_buf_init(&nothing, 1);
    int64_t deadline_ms = hk_jq_now_ms() + (int64_t)jq->timeout_ms;
    if (rc == HK_OK)
        rc = ask(jq, hk_str_of(jq->program), deadline_ms, err);
    if (rc == HK_OK)
        rc = hear(jq, deadline_ms, &nothing, err);
    hk_buf_fini(&nothing);
    if (rc != HK_OK)
        stop(jq);
    return rc;
}

enum hk_code hk_jq_open(const char *helper, const struct hk_jq_starter *starter, const char *program,
                        uint64_t timeout_ms, struct hk_jq **out, struct hk_err *err)
{
    if (strlen(program) > HK_JQ_FRAME_MAX)
        return hk_err_set(err, HK_TOOBIG, "the program is too long");
    struct hk_jq *jq = hk_mem_alloc(sizeof *jq);
    if (!jq)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    *jq = (struct hk_jq){.helper = hk_mem_strdup(helper),
                         .program = hk_mem_strdup(program),
                         .starter = starter,
                         .timeout_ms = timeout_ms ? timeout_ms : HK_JQ_TIMEOUT_MS,
                         .fd = -1,
                         .lease = -1};
    enum hk_code rc = jq->helper && jq->program ? start(jq, err) : hk_err_set(err, HK_NOMEM, "out of memory");
    if (rc != HK_OK) {
        hk_jq_close(jq);
        return rc;
    }
    *out = jq;
    return HK_OK;
}

void hk_jq_close(struct hk_jq *jq)
{
    if (!jq)
        return;
    stop(jq);
    hk_mem_free(jq->helper);
    hk_mem_free(jq->program);
    hk_mem_free(jq);
}

enum hk_code hk_jq_apply(struct hk_jq *jq, struct hk_str document, struct hk_buf *out, struct hk_err *err)
{
    if (document.len > HK_JQ_FRAME_MAX)
        return hk_err_set(err, HK_TOOBIG, "the document is too large for jq");
    if (jq->fd < 0) {
        enum hk_code rc = start(jq, err);
        if (rc != HK_OK)
            return rc == HK_INVALID ? hk_err_set(err, HK_UNAVAILABLE, "the jq helper does not start again")
                                    : rc;
    }
    int64_t deadline_ms = hk_jq_now_ms() + (int64_t)jq->timeout_ms;
    enum hk_code rc = ask(jq, document, deadline_ms, err);
    if (rc == HK_OK)
        rc = hear(jq, deadline_ms, out, err);
    if (rc == HK_TOOBIG || rc == HK_NOMEM)
        stop(jq);
    return rc;
}

/* ---- where it is ---- */

static bool runs(const char *path)
{
    return access(path, X_OK) == 0;
}

bool hk_jq_find(char out[HK_JQ_PATH_MAX])
{
    static const char *const beside[] = {"hikyaku-jq", "../jq/hikyaku-jq", "../libexec/hikyaku/hikyaku-jq"};
    const char *given = getenv("HIKYAKU_JQ");
    if (given && *given) {
        int n = snprintf(out, HK_JQ_PATH_MAX, "%s", given);
        return n > 0 && n < HK_JQ_PATH_MAX && runs(out);
    }
    char self[HK_JQ_PATH_MAX / 2];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    if (len > 0) {
        self[len] = '\0';
        char *slash = strrchr(self, '/');
        for (size_t i = 0; slash && i < sizeof beside / sizeof beside[0]; i++) {
            (void)snprintf(out, HK_JQ_PATH_MAX, "%.*s%s", (int)(slash + 1 - self), self, beside[i]);
            if (runs(out))
                return true;
        }
    }
    (void)snprintf(out, HK_JQ_PATH_MAX, "%s", HK_LIBEXEC "/hikyaku-jq");
    return runs(out);
}
