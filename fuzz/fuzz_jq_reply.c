/* SPDX-License-Identifier: Apache-2.0 */
/* What the jq helper says, right or wrong: it has a jq program of an operator and documents of anybody in it, and may have been taken
 * over by either. Its bytes come in pieces of any size, it falls silent or closes at any place. A second reading of the same bytes says what
 * must come of it; what we say to it are whole frames; and each helper that was started is ended. The system calls of jq.c are ours here.
 *
 * The first byte says how large the pieces are, the second how much room there is for a result, the third whether it falls
 * silent at its end (else it closes); the rest is what it says. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "fuzz.h"
#include "jq/impl.h"

enum {
    OURS = 100, /* descriptors that never were */
    THEIRS,
    PID = 4711,
    ROOM_MAX = 300,
    LIMIT_MS = 50
};

static struct {
    struct hk_str says; /* what is left of it */
    unsigned piece, calls;
    bool silent;
    int64_t now_ms;
    int running, sockets;
    char heard[4096]; /* what we said to it since it was last looked at */
    size_t n_heard;
} world;

/* ---- the system ---- */

static int fake_socketpair(int pair[2])
{
    pair[0] = OURS;
    pair[1] = THEIRS;
    world.sockets += 2;
    return 0;
}

static int fake_spawn(pid_t *pid)
{
    *pid = PID;
    world.running++;
    return 0;
}

static int fake_close(int fd)
{
    MUST(fd == OURS || fd == THEIRS);
    world.sockets--;
    return 0;
}

static int fake_kill(pid_t pid)
{
    MUST(pid == PID);
    return 0;
}

static pid_t fake_wait(pid_t pid)
{
    MUST(pid == PID);
    if (world.calls++ % 3 == 0) {
        errno = EINTR;
        return -1;
    }
    world.running--;
    return pid;
}

/* Interrupted now and then; nothing comes from one that is silent. */
static int fake_poll(const struct pollfd *p, int timeout_ms)
{
    MUST(p->fd == OURS && timeout_ms > 0);
    if (world.calls++ % 5 == 0) {
        errno = EINTR;
        return -1;
    }
    if (p->events == POLLIN && world.says.len == 0 && world.silent) {
        world.now_ms += timeout_ms;
        return 0;
    }
    return 1;
}

static ssize_t fake_recv(int fd, void *out, size_t len)
{
    MUST(fd == OURS && len > 0);
    if (world.calls++ % 7 == 0) {
        errno = world.calls % 2 ? EINTR : EAGAIN;
        return -1;
    }
    struct hk_str piece = fuzz_take(&world.says, len < world.piece ? len : world.piece);
    if (piece.len > 0)
        memcpy(out, piece.ptr, piece.len);
    return (ssize_t)piece.len;
}

static ssize_t fake_send(int fd, const void *bytes, size_t len)
{
    MUST(fd == OURS && len > 0);
    if (world.calls++ % 4 == 0) {
        errno = world.calls % 2 ? EINTR : EAGAIN;
        return -1;
    }
    size_t n = len < world.piece ? len : world.piece;
    MUST(world.n_heard + n <= sizeof world.heard);
    memcpy(world.heard + world.n_heard, bytes, n);
    world.n_heard += n;
    return (ssize_t)n;
}

#define socketpair(domain, type, protocol, pair) fake_socketpair(pair)
#define hk_jq_spawn(helper, socket, pid)         fake_spawn(pid)
#define close(fd)                                fake_close(fd)
#define kill(pid, signal)                        fake_kill(pid)
#define waitpid(pid, status, flags)              fake_wait(pid)
#define hk_jq_now_ms()                           world.now_ms
#define poll(fds, n, timeout_ms)                 fake_poll(fds, timeout_ms)
#define recv(fd, out, len, flags)                fake_recv(fd, out, len)
#define send(fd, bytes, len, flags)              fake_send(fd, bytes, len)
#define HK_LIBEXEC                               "/nonexistent"
#include "jq/jq.c"

/* ---- a second reading ---- */

struct reply {
    enum hk_code code;
    struct hk_str text;
    bool ends; /* the helper is of no use any more */
};

static struct reply read_reply(struct hk_str *says, size_t room)
{
    const struct reply cut = {.code = world.silent ? HK_TIMEOUT : HK_INVALID, .ends = true};
    struct hk_str head = fuzz_take(says, HK_JQ_HEAD + 1);
    if (head.len < HK_JQ_HEAD + 1)
        return cut;
    uint32_t len = 0;
    for (size_t i = 0; i < HK_JQ_HEAD; i++)
        len = len * 256 + (unsigned char)head.ptr[i];
    char kind = head.ptr[HK_JQ_HEAD];
    if (len < 1 || len > HK_JQ_FRAME_MAX || (kind != 'O' && kind != 'E'))
        return (struct reply){.code = HK_INVALID, .ends = true};
    struct hk_str text = fuzz_take(says, len - 1);
    if (text.len < len - 1)
        return cut;
    if (kind == 'E')
        return (struct reply){.code = HK_INVALID, .text = text};
    return text.len > room ? (struct reply){.code = HK_TOOBIG, .ends = true}
                           : (struct reply){.code = HK_OK, .text = text};
}

/* ---- and the first ---- */

static void check_heard(const char *first, const char *second)
{
    const char *const texts[] = {first, second};
    struct hk_str heard = {world.heard, world.n_heard};
    for (size_t i = 0; i < 2; i++) {
        struct hk_str text = hk_str_of(texts[i]);
        if (texts[i] == NULL)
            continue;
        struct hk_str head = fuzz_take(&heard, HK_JQ_HEAD);
        MUST(head.len == HK_JQ_HEAD && memcmp(head.ptr, "\0\0\0", 3) == 0 && head.ptr[3] == (char)text.len);
        MUST(hk_str_eq(fuzz_take(&heard, text.len), text));
    }
    MUST(heard.len == 0);
    world.n_heard = 0;
}

static void check_words(const struct hk_err *err)
{
    size_t len = strlen(err->message);
    MUST(len < sizeof err->message);
    for (size_t i = 0; i < len; i++)
        MUST((unsigned char)err->message[i] >= ' ' && err->message[i] != 0x7f);
}

/* True: the helper lives on. */
static bool apply(struct hk_jq *jq, bool living, const char *document, size_t room)
{
    struct hk_str says = world.says;
    struct hk_buf out;
    struct hk_err err = {.message = ""};
    hk_buf_init(&out, room);
    struct reply begun = {.code = HK_OK}, reply = {.code = HK_OK};
    if (!living) {
        begun = read_reply(&says, 1);
        if (begun.code == HK_INVALID)
            begun.code = HK_UNAVAILABLE;
    }
    if (begun.code == HK_OK)
        reply = read_reply(&says, room);
    enum hk_code rc = hk_jq_apply(jq, hk_str_of(document), &out, &err);
    MUST(rc == (begun.code != HK_OK ? begun.code : reply.code) && rc == (rc == HK_OK ? HK_OK : err.code));
    MUST(world.says.ptr == says.ptr && world.says.len == says.len);
    check_heard(living ? NULL : ".", begun.code == HK_OK ? document : NULL);
    check_words(&err);
    if (rc == HK_OK)
        MUST(hk_str_eq(hk_buf_str(&out), reply.text));
    hk_buf_fini(&out);
    living = begun.code == HK_OK && !reply.ends;
    MUST(world.running == living && world.sockets == living);
    return living;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hk_jq *jq = NULL;
    struct hk_err err = {.message = ""};
    if (size < 3)
        return 0;
    memset(&world, 0, sizeof world);
    world.says = (struct hk_str){(const char *)data + 3, size - 3};
    world.piece = data[0] + 1u;
    world.silent = data[2] & 1;
    struct hk_str says = world.says;
    struct reply begun = read_reply(&says, 1);
    enum hk_code rc = hk_jq_open("/nonexistent/helper", NULL, ".", LIMIT_MS, &jq, &err);
    MUST(rc == begun.code && world.says.len == says.len && (rc == HK_OK) == (jq != NULL));
    check_heard(".", NULL);
    check_words(&err);
    bool living = true;
    for (int i = 0; jq != NULL && i < 6; i++)
        living = apply(jq, living, i % 2 ? "{\"a\":1}" : "", data[1] % ROOM_MAX);
    hk_jq_close(jq);
    MUST(world.running == 0 && world.sockets == 0);
    return 0;
}
