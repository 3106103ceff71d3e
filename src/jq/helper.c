/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku-jq: runs a jq program over documents that come on standard input, in a process that can do nothing else. A jq
 * program of an operator can loop for ever, eat all memory, read files (import) and the environment, and libjq 1.6 aborts
 * on some; the documents are anybody's. So: no environment, no files, no sockets, no new processes, bounded memory; time is
 * bounded by the caller, who kills us. */
#include <errno.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <jq.h>

#include "base/sanitized.h"
#include "jq/frame.h"

#define MEMORY_BYTES ((rlim_t)768 << 20)

/* ---- the cage ---- */

static bool limit(unsigned what, rlim_t bytes)
{
    struct rlimit r = {.rlim_cur = bytes, .rlim_max = bytes};
    return setrlimit(what, &r) == 0;
}

/* All that computing and talking on open descriptors needs. Anything else fails with EPERM, which libjq reports as an
 * error; nothing can be opened. */
static bool forbid_the_rest(void)
{
    static const int allowed[] = {SCMP_SYS(read),          SCMP_SYS(write),
                                  SCMP_SYS(writev),        SCMP_SYS(exit),
                                  SCMP_SYS(exit_group),    SCMP_SYS(brk),
                                  SCMP_SYS(mmap),          SCMP_SYS(munmap),
                                  SCMP_SYS(mremap),        SCMP_SYS(mprotect),
                                  SCMP_SYS(madvise),       SCMP_SYS(futex),
                                  SCMP_SYS(rt_sigreturn),  SCMP_SYS(rt_sigprocmask),
                                  SCMP_SYS(rt_sigaction),  SCMP_SYS(sigaltstack),
                                  SCMP_SYS(getpid),        SCMP_SYS(gettid),
                                  SCMP_SYS(clock_gettime), SCMP_SYS(gettimeofday),
                                  SCMP_SYS(fstat),         SCMP_SYS(restart_syscall),
                                  SCMP_SYS(getrandom)};
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    if (!filter)
        return false;
    bool ok = true;
    for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; i++)
        ok = ok && seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0) == 0;
    /* abort() */
    ok = ok && seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
                                SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid(), 0)) == 0;
    ok = ok && seccomp_load(filter) == 0;
    seccomp_release(filter);
    return ok;
}

static bool lock_up(void)
{
    static char *nothing[] = {NULL};
    environ = nothing; /* clearenv() would leave NULL, which `env` of libjq 1.6 looks into */
    bool ok = chdir("/") == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 &&
              prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 &&
              limit(RLIMIT_CORE, 0) && limit(RLIMIT_FSIZE, 0) && limit(RLIMIT_NOFILE, 3);
    if (!HK_SANITIZED) /* their shadow memory is larger than any bound */
        ok = ok && limit(RLIMIT_AS, MEMORY_BYTES);
    return ok && forbid_the_rest();
}

/* ---- frames ---- */

static bool read_all(void *out, size_t len)
{
    unsigned char *at = out;
    while (len > 0) {
        ssize_t n = read(STDIN_FILENO, at, len);
        if (n <= 0 && !(n < 0 && errno == EINTR))
            return false;
        if (n > 0) {
            at += n;
            len -= (size_t)n;
        }
    }
    return true;
}

static void write_all(const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    while (len > 0) {
        ssize_t n = write(STDOUT_FILENO, at, len);
        if (n < 0 && errno != EINTR)
            _exit(1);
        if (n > 0) {
            at += n;
            len -= (size_t)n;
        }
    }
}

/* NULL: the other side has closed. The caller frees. */
static char *read_frame(size_t *out_len)
{
    unsigned char head[HK_JQ_HEAD];
    if (!read_all(head, sizeof head))
        return NULL;
    uint32_t len = (uint32_t)head[0] << 24 | (uint32_t)head[1] << 16 | (uint32_t)head[2] << 8 | head[3];
    if (len > HK_JQ_FRAME_MAX)
        return NULL;
    char *bytes = malloc((size_t)len + 1);
    if (!bytes || !read_all(bytes, len)) {
        free(bytes);
        return NULL;
    }
    bytes[len] = '\0';
    *out_len = len;
    return bytes;
}

static void answer(char kind, const char *bytes, size_t len)
{
    if (len >= HK_JQ_FRAME_MAX) {
        kind = HK_JQ_ERROR;
        bytes = "the result is too large";
        len = strlen(bytes);
    }
    uint32_t n = (uint32_t)len + 1;
    unsigned char head[HK_JQ_HEAD + 1] = {(unsigned char)(n >> 24), (unsigned char)(n >> 16),
                                          (unsigned char)(n >> 8), (unsigned char)n, (unsigned char)kind};
    write_all(head, sizeof head);
    write_all(bytes, len);
}

static void complain(const char *text)
{
    answer(HK_JQ_ERROR, text, strlen(text));
}

/* ---- jq ---- */

#define MESSAGE_MAX 400

struct said {
    char text[MESSAGE_MAX];
};

/* The first complaint of the compiler says most. */
static void keep(void *arg, jv message)
{
    struct said *said = arg;
    jv text = jv_get_kind(message) == JV_KIND_STRING ? message : jv_dump_string(message, 0);
    if (!said->text[0]) {
        size_t len = strnlen(jv_string_value(text), sizeof said->text - 1);
        memcpy(said->text, jv_string_value(text), len);
        said->text[len] = '\0';
    }
    jv_free(text);
}

static void ignore(void *arg, jv message)
{
    (void)arg;
    jv_free(message);
}

static void complain_of(jv error)
{
    jv message = jv_invalid_get_msg(error);
    struct said said = {.text = ""};
    if (jv_get_kind(message) == JV_KIND_NULL)
        jv_free(message);
    else
        keep(&said, message);
    complain(said.text[0] ? said.text : "error without a message");
}

/* Exactly one result: a letter has one payload. */
static void answer_one(jq_state *jq, jv result)
{
    jv second = jq_next(jq);
    if (jv_is_valid(second)) {
        complain("the program gives more than one result; wrap it in [ ] or use first( )");
        jv_free(result);
        jv_free(second);
        return;
    }
    if (jv_invalid_has_msg(jv_copy(second))) {
        complain_of(second);
        jv_free(result);
        return;
    }
    jv_free(second);
    jv text = jv_dump_string(result, 0);
    answer(HK_JQ_OK, jv_string_value(text), (size_t)jv_string_length_bytes(jv_copy(text)));
    jv_free(text);
}

static void apply(jq_state *jq, const char *bytes, size_t len)
{
    jv input = jv_parse_sized(bytes, (int)len);
    if (!jv_is_valid(input)) {
        complain_of(input);
        return;
    }
    jq_start(jq, input, 0);
    jv result = jq_next(jq);
    if (jq_halted(jq)) {
        jv_free(result);
        complain("the program halted");
    } else if (jv_is_valid(result)) {
        answer_one(jq, result);
    } else if (jv_invalid_has_msg(jv_copy(result))) {
        complain_of(result);
    } else {
        jv_free(result);
        complain("the program gives no result");
    }
}

static jq_state *compile(const char *program)
{
    struct said said = {.text = ""};
    jq_state *jq = jq_init();
    if (!jq) {
        complain("jq could not be started");
        return NULL;
    }
    jq_set_error_cb(jq, keep, &said);
    jq_set_debug_cb(jq, ignore, NULL);
    /* without these, include and import abort libjq 1.6 instead of failing */
    jq_set_attr(jq, jv_string("JQ_LIBRARY_PATH"), jv_array());
    jq_set_attr(jq, jv_string("JQ_ORIGIN"), jv_string("/"));
    jq_set_attr(jq, jv_string("PROGRAM_ORIGIN"), jv_string("/"));
    if (!jq_compile(jq, program)) {
        complain(said.text[0] ? said.text : "the program does not compile");
        jq_teardown(&jq);
        return NULL;
    }
    jq_set_error_cb(jq, ignore, NULL);
    answer(HK_JQ_OK, "", 0);
    return jq;
}

/* The exit code, when the other side has closed. */
static int serve(void)
{
    size_t len = 0;
    char *program = read_frame(&len);
    jq_state *jq = NULL;
    if (program && strlen(program) != len)
        complain("the program holds a NUL");
    else if (program)
        jq = compile(program);
    free(program);
    if (!jq)
        return 1;
    for (char *document = read_frame(&len); document; document = read_frame(&len)) {
        apply(jq, document, len);
        free(document);
    }
    jq_teardown(&jq);
    return 0;
}

int main(void)
{
    if (!lock_up()) {
        complain("the sandbox could not be made (seccomp, rlimits)");
        _exit(1);
    }
    _exit(serve()); /* nothing to flush, and a leak checker could not run in here */
}
