/* SPDX-License-Identifier: Apache-2.0 */
/* Messages to the server (one, or lines in batches), and dead letters from it, a line each. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "cli/remote/remote.h"
#include "desk/dead_look.h"
#include "desk/enqueue.h"
#include "desk/forms.h"
#include "desk/wire.h"

enum {
    BATCH = 500 /* as the desk commits them */
};

#define BATCH_BYTES    ((size_t)4 << 20)
#define BODY_MAX       ((size_t)40 << 20)
#define LINE_MAX_BYTES ((size_t)256 << 20)

struct stream {
    struct hk_remote *remote;
    struct hk_desk *desk;
    const struct hk_caller *caller;
    struct hk_pool *mem;
    struct hk_err *err;
};

bool hk_remote_is_stream(const struct hk_op *op)
{
    return op == &hk_op_enqueue || op == &hk_op_enqueue_lines || op == &hk_op_dead_export ||
           op == &hk_op_events;
}

static enum hk_code post(struct stream *s, const char *path, const char *type, const struct hk_buf *body,
                         struct hk_remote_answer *answer)
{
    const struct hk_remote_call call = {.method = "POST",
                                        .path = path,
                                        .content_type = type,
                                        .body = hk_buf_str(body),
                                        .stop = s->caller->stop,
                                        .arg = s->caller->arg};
    if (hk_buf_status(body) != HK_OK)
        return hk_err_set(s->err, hk_buf_status(body), "the message is too large to be sent");
    return hk_remote_call(s->remote, s->desk, &call, s->mem, answer, s->err);
}

/* ---- one message ---- */

static enum hk_code enqueue_one(struct stream *s, const struct hk_enqueue_ask *ask, struct hk_enqueued *out)
{
    struct hk_remote_answer answer = {.status = 0};
    struct hk_buf body;
    hk_buf_init(&body, BODY_MAX);
    enum hk_code rc = hk_enqueue_write(s->desk, ask, s->mem, &body, s->err);
    if (rc == HK_OK)
        rc = post(s, "/api/v1/messages", "application/json", &body, &answer);
    if (rc == HK_OK)
        rc = hk_form_read(hk_buf_str(&answer.body), hk_op_enqueue.form, s->mem, out, s->err);
    hk_buf_fini(&answer.body);
    hk_buf_fini(&body);
    return rc;
}

/* ---- many ---- */

struct batch {
    struct hk_buf lines;
    uint64_t messages; /* in it: lines that are not blank */
    uint64_t before;   /* lines before its first */
    uint64_t lines_read;
};

/* "line 3: …" counts from the batch's first line. */
static enum hk_code count_lines(struct hk_err *err, uint64_t before)
{
    char text[HK_ERR_MESSAGE_MAX];
    uint64_t line = 0;
    struct hk_str rest = hk_str_of(err->message);
    if (!hk_str_starts(rest, hk_str_of("line ")))
        return err->code;
    rest = (struct hk_str){rest.ptr + 5, rest.len - 5};
    struct hk_str number = hk_str_cut(&rest, ':');
    if (!rest.ptr || hk_parse_u64(number, &line, NULL) != HK_OK)
        return err->code;
    (void)snprintf(text, sizeof text, "%s", rest.ptr);
    return hk_err_set(err, err->code, "line %" PRIu64 ":%s", before + line, text);
}

static enum hk_code take_ids(struct stream *s, const struct hk_enqueue_lines_ask *ask,
                             const struct hk_remote_answer *answer)
{
    json_t *root = json_loadb(answer->body.data, answer->body.len, 0, NULL);
    const json_t *items = json_object_get(root, "items");
    size_t n = json_array_size(items);
    struct hk_str *ids = hk_pool_alloc(s->mem, n + 1, sizeof *ids);
    for (size_t i = 0; ids && i < n; i++)
        ids[i] = hk_str_of(json_string_value(json_object_get(json_array_get(items, i), "message_id")));
    enum hk_code rc =
        ids ? ask->took(ask->arg, ids, n, s->err) : hk_err_set(s->err, HK_NOMEM, "out of memory");
    json_decref(root);
    return rc;
}

static enum hk_code send_batch(struct stream *s, const struct hk_enqueue_lines_ask *ask, struct batch *b,
                               struct hk_enqueued_lines *out)
{
    struct hk_remote_answer answer = {.status = 0};
    enum hk_code rc = HK_OK;
    if (b->messages > 0) {
        rc = post(s, "/api/v1/messages/batch", "application/x-ndjson", &b->lines, &answer);
        if (rc == HK_OK) {
            out->messages += b->messages;
            out->lines = b->lines_read;
            rc = take_ids(s, ask, &answer);
        } else {
            (void)count_lines(s->err, b->before);
        }
        hk_buf_fini(&answer.body);
    }
    hk_caller_progress(s->caller, out->messages, 0);
    if (rc == HK_OK && hk_caller_stops(s->caller))
        rc = hk_err_set(s->err, HK_CANCELLED, "stopped");
    hk_buf_reset(&b->lines);
    b->before = b->lines_read;
    b->messages = 0;
    return rc;
}

static bool is_blank(struct hk_str line)
{
    line = hk_str_trim(line);
    return line.len == 0 || (line.len == 1 && line.ptr[0] == '\r');
}

static enum hk_code enqueue_lines(struct stream *s, const struct hk_enqueue_lines_ask *ask,
                                  struct hk_enqueued_lines *out)
{
    struct batch b = {.messages = 0};
    struct hk_str line = {"", 0};
    enum hk_code rc = HK_OK;
    *out = (struct hk_enqueued_lines){.messages = 0};
    hk_buf_init(&b.lines, BODY_MAX);
    while (rc == HK_OK && line.ptr) {
        rc = ask->next(ask->arg, &line, s->err);
        if (rc == HK_TOOBIG)
            rc = hk_err_set(s->err, HK_TOOBIG, "line %" PRIu64 " is longer than 16 MiB", b.lines_read + 1);
        if (rc != HK_OK || !line.ptr)
            break;
        b.lines_read++;
        b.messages += !is_blank(line);
        (void)hk_buf_add(&b.lines, line.ptr, line.len);
        (void)hk_buf_addc(&b.lines, '\n');
        if (b.messages == BATCH || b.lines.len >= BATCH_BYTES)
            rc = send_batch(s, ask, &b, out);
    }
    if (rc == HK_OK)
        rc = send_batch(s, ask, &b, out);
    hk_buf_fini(&b.lines);
    return rc;
}

/* ---- letters ---- */

/* Lines are taken one at a time, as they come: an export may be larger than memory. */
struct taking {
    const struct hk_dead_export_ask *ask;
    struct hk_dead_exported *out;
    struct hk_buf line; /* as far as it is there */
    enum hk_code rc;    /* of reading one */
    bool ended;         /* no more is wanted */
    struct hk_err *err;
};

static bool take_letter(struct taking *t, struct hk_str line)
{
    struct hk_pool mem = {NULL};
    struct hk_dead_line letter = {.cut = false};
    struct hk_err why = {.message = ""};
    t->rc = hk_form_read(line, hk_form_dead_line, &mem, &letter, &why);
    if (t->rc == HK_OK) {
        t->ended = !t->ask->take(t->ask->arg, &letter.letter, letter.cut);
        t->out->letters++;
        t->out->cut += letter.cut;
    } else {
        (void)hk_err_set(t->err, t->rc, "the server's answer cannot be read: %s", why.message);
    }
    hk_pool_fini(&mem);
    return t->rc == HK_OK && !t->ended;
}

static bool take_bytes(void *arg, struct hk_str bytes)
{
    struct taking *t = arg;
    const char *end = NULL;
    while (bytes.len > 0 && (end = memchr(bytes.ptr, '\n', bytes.len)) != NULL) {
        size_t len = (size_t)(end - bytes.ptr);
        (void)hk_buf_add(&t->line, bytes.ptr, len);
        if (hk_buf_status(&t->line) != HK_OK || !take_letter(t, hk_buf_str(&t->line)))
            break;
        hk_buf_reset(&t->line);
        bytes = (struct hk_str){end + 1, bytes.len - len - 1};
    }
    if (t->rc != HK_OK || t->ended)
        return false;
    (void)hk_buf_add(&t->line, bytes.ptr, bytes.len);
    t->rc = hk_buf_status(&t->line);
    if (t->rc != HK_OK)
        (void)hk_err_set(t->err, t->rc, "a letter of the server's answer is too large");
    return t->rc == HK_OK;
}

static enum hk_code export_letters(struct stream *s, const struct hk_dead_export_ask *ask,
                                   struct hk_dead_exported *out)
{
    struct hk_remote_answer answer = {.status = 0};
    struct hk_err why = {.message = ""};
    struct taking t = {.ask = ask, .out = out, .err = &why};
    struct hk_wire_out wire;
    struct hk_buf path;
    const struct hk_wire_caller said = {.reason = s->caller->reason, .reveal = s->caller->reveal};
    hk_wire_out_init(&wire);
    hk_buf_init(&path, (size_t)1 << 20);
    (void)hk_buf_adds(&path, "/api/v1");
    enum hk_code rc = hk_wire_write(&hk_op_dead_export, ask, &said, &wire, s->err);
    (void)hk_buf_adds(&path, hk_buf_cstr(&wire.path));
    const struct hk_remote_call call = {.method = "GET",
                                        .path = hk_buf_cstr(&path),
                                        .stop = s->caller->stop,
                                        .arg = s->caller->arg,
                                        .take = take_bytes,
                                        .take_arg = &t};
    *out = (struct hk_dead_exported){.letters = 0};
    hk_buf_init(&t.line, LINE_MAX_BYTES);
    if (rc == HK_OK)
        rc = hk_remote_call(s->remote, s->desk, &call, s->mem, &answer, s->err);
    if (rc == HK_OK && t.line.len > 0) /* a proxy may hide that the end is missing */
        rc = hk_err_set(s->err, HK_IO, "the server's answer ends in the middle of a letter");
    if (t.rc != HK_OK)
        rc = hk_err_set(s->err, t.rc, "%s", why.message);
    else if (t.ended)
        rc = HK_OK;
    hk_buf_fini(&t.line);
    hk_buf_fini(&answer.body);
    hk_buf_fini(&path);
    hk_wire_out_fini(&wire);
    return rc;
}

enum hk_code hk_remote_stream(struct hk_remote *remote, struct hk_desk *desk, const struct hk_op *op,
                              const struct hk_caller *caller, const void *request, struct hk_pool *mem,
                              void *result, struct hk_err *err)
{
    struct stream s = {.remote = remote, .desk = desk, .caller = caller, .mem = mem, .err = err};
    if (op == &hk_op_enqueue)
        return enqueue_one(&s, request, result);
    if (op == &hk_op_enqueue_lines)
        return enqueue_lines(&s, request, result);
    if (op == &hk_op_events)
        return hk_remote_events(remote, desk, caller, request, mem, result, err);
    return export_letters(&s, request, result);
}
