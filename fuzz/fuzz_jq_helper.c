/* SPDX-License-Identifier: Apache-2.0 */
/* The other end: what the jq helper reads, cut and long as it may be, in pieces of any size. Every whole frame is answered by one, in
 * order, and nothing else is said; a document that we would give to it comes back as JSON. The cage is not built, the system calls of frames
 * are ours. Programs are ours, too: what libjq makes of others is its own affair, and the reason for the cage.
 *
 * The first byte says how large the pieces are; the rest is what comes in. */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>
#include <jq.h>

#include "base/buf.h"
#include "base/str.h"
#include "fuzz.h"
#include "payload/scan.h"

enum {
    SAID_MAX = 1 << 20,
    INPUT_MAX = 4096,
    DEPTH_MAX = 200 /* libjq has a bound of its own, somewhat above */
};

static struct {
    struct hk_str comes;
    struct hk_buf said;
    unsigned piece, calls;
} world;

static ssize_t fake_read(void *out, size_t len)
{
    MUST(len <= (64u << 20)); /* no frame is longer, nor is there more memory than for that */
    if (world.calls++ % 3 == 0) {
        errno = EINTR;
        return -1;
    }
    struct hk_str piece = fuzz_take(&world.comes, len < world.piece ? len : world.piece);
    if (piece.len > 0)
        memcpy(out, piece.ptr, piece.len);
    return (ssize_t)piece.len;
}

static ssize_t fake_write(const void *bytes, size_t len)
{
    if (world.calls++ % 3 == 0) {
        errno = EINTR;
        return -1;
    }
    size_t n = len < world.piece ? len : world.piece;
    MUST(hk_buf_add(&world.said, bytes, n) == HK_OK);
    return (ssize_t)n;
}

static const char *const programs[] = {".",           ".a",   ".[]",   "error", "empty",
                                       "error(null)", "halt", "{a:.}", "[.,.]"};

/* libjq 1.6 does not free all that it needed for a document that it refuses: it is the cage's to bound that. */
const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void)
{
    return "leak:libjq";
}

const char *__lsan_default_options(void);

const char *__lsan_default_options(void)
{
    return "print_suppressions=0";
}

/* Compiling takes libjq 20 ms: each is done once. `*jq` becomes the one that is kept; the one that was begun is begun with again. */
static jq_state *begun, *kept[sizeof programs / sizeof programs[0]];

static jq_state *fake_init(void)
{
    if (begun == NULL)
        begun = jq_init();
    return begun;
}

static int fake_compile(jq_state **jq, const char *program)
{
    size_t i = 0;
    while (i < sizeof programs / sizeof programs[0] && strcmp(program, programs[i]) != 0)
        i++;
    if (i == sizeof programs / sizeof programs[0])
        return jq_compile(*jq, "syntax error |");
    if (kept[i] == NULL) {
        MUST(jq_compile(*jq, program) == 1);
        kept[i] = *jq;
        begun = NULL;
    }
    *jq = kept[i];
    return 1;
}

static void fake_teardown(jq_state **jq)
{
    *jq = NULL;
}

#define main                    helper_main
#define read(fd, out, len)      fake_read(out, len)
#define write(fd, bytes, len)   fake_write(bytes, len)
#define jq_init()               fake_init()
#define jq_compile(jq, program) fake_compile(&(jq), program)
#define jq_teardown(jq)         fake_teardown(jq)
int helper_main(void);
#include "jq/helper.c"

/* ---- a second reading ---- */

/* False: it ends here, or is cut off, or is longer than any may be. */
static bool next_frame(struct hk_str *rest, struct hk_str *out)
{
    struct hk_str head = fuzz_take(rest, HK_JQ_HEAD);
    uint32_t len = 0;
    for (size_t i = 0; i < head.len; i++)
        len = len * 256 + (unsigned char)head.ptr[i];
    if (head.len < HK_JQ_HEAD || len > HK_JQ_FRAME_MAX)
        return false;
    *out = fuzz_take(rest, len);
    return out->len == len;
}

static struct hk_str next_answer(struct hk_str *said)
{
    struct hk_str answer = {"", 0};
    MUST(next_frame(said, &answer) && answer.len > 0 && (answer.ptr[0] == 'O' || answer.ptr[0] == 'E'));
    return answer;
}

static bool is_flat(struct hk_str json)
{
    size_t depth = 0, most = 0;
    for (size_t i = 0; i < json.len; i++) {
        depth += json.ptr[i] == '[' || json.ptr[i] == '{';
        depth -= depth > 0 && (json.ptr[i] == ']' || json.ptr[i] == '}');
        most = depth > most ? depth : most;
    }
    return most < DEPTH_MAX;
}

/* As `dead fix` relies on: what the program does not touch stays as it was. */
static void check_same(struct hk_str document, struct hk_str result)
{
    const size_t flags = JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL;
    json_t *was = json_loadb(document.ptr, document.len, flags, NULL);
    json_t *is = json_loadb(result.ptr, result.len, flags, NULL);
    if (was != NULL && !hk_scan_has_big_integer(document, NULL))
        MUST(is != NULL && json_equal(was, is));
    json_decref(was);
    json_decref(is);
}

static void check_answer(struct hk_str program, struct hk_str document, struct hk_str answer)
{
    struct hk_str text = {answer.ptr + 1, answer.len - 1};
    bool ok = answer.ptr[0] == 'O';
    MUST(ok || (text.len > 0 && text.len < MESSAGE_MAX));
    MUST(!ok || hk_scan_check(text, NULL) == HK_OK);
    MUST(!ok || memchr(text.ptr, '\n', text.len) == NULL);
    bool given =
        hk_scan_check(document, NULL) == HK_OK && is_flat(document) && !hk_scan_has_half_pair(document);
    if (given && (hk_str_eq(program, hk_str_of(".")) || hk_str_eq(program, hk_str_of("{a:.}"))))
        MUST(ok);
    if (given && hk_str_eq(program, hk_str_of(".")))
        check_same(document, text);
    if (hk_str_eq(program, hk_str_of("empty")) || hk_str_eq(program, hk_str_of("halt")))
        MUST(!ok);
}

static void check_talk(struct hk_str comes, int code)
{
    struct hk_str said = hk_buf_str(&world.said), program = {"", 0}, document = {"", 0};
    if (!next_frame(&comes, &program)) {
        MUST(said.len == 0 && code == 1);
        return;
    }
    struct hk_str answer = next_answer(&said);
    MUST(code == 1 || memchr(program.ptr, '\0', program.len) == NULL);
    MUST((answer.ptr[0] == 'O') == (code == 0) && (code != 0 || answer.len == 1));
    while (code == 0 && next_frame(&comes, &document))
        check_answer(program, document, next_answer(&said));
    MUST(said.len == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > INPUT_MAX)
        return 0;
    world.comes = (struct hk_str){(const char *)data + 1, size - 1};
    world.piece = data[0] + 1u;
    world.calls = 0;
    if (world.said.max == 0)
        hk_buf_init(&world.said, SAID_MAX);
    hk_buf_reset(&world.said);
    check_talk((struct hk_str){(const char *)data + 1, size - 1}, serve());
    return 0;
}
