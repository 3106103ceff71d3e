/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku enqueue: one message, or many from NDJSON, in batches that are each committed whole. */
#include <inttypes.h>
#include <stdio.h>

#include "base/parse.h"
#include "base/show.h"
#include "base/str.h"
#include "base/utf8.h"
#include "desk/enqueue.h"
#include "desk/explain.h"
#include "desk/forms.h"
#include "desk/ndjson.h"
#include "desk/put.h"
#include "desk/sealing.h"
#include "exec/clock.h"
#include "payload/target.h"

#define BATCH_BYTES ((size_t)4 << 20)

enum {
    BATCH = 500,
    HEADERS_MAX = 1 << 20
};

/* ---- one ---- */

/* "2026-11-15T08:30:00Z", or from now on: "90s". NULL stays NULL. */
static enum hk_code read_time(struct hk_desk *desk, const char *field, const char *text, struct hk_pool *mem,
                              const char **out, struct hk_err *err)
{
    char when[HK_TIME_TEXT_MAX];
    uint64_t wait_ms = 0;
    int64_t ms = 0;
    if (!text)
        return HK_OK;
    if (hk_parse_duration(hk_str_of(text), &wait_ms, NULL) == HK_OK)
        ms = hk_clock_wall_ms() + (int64_t)wait_ms;
    else if (hk_parse_rfc3339(hk_str_of(text), &ms, NULL) != HK_OK)
        return hk_desk_wrong(desk, field, err,
                             "takes a time (2026-11-15T08:30:00Z) or a wait (90s, 1h30m), not '%s'", text);
    (void)hk_format_rfc3339(ms, when);
    *out = hk_pool_copy_str(mem, hk_str_of(when));
    return *out ? HK_OK : hk_err_set(err, HK_NOMEM, "out of memory");
}

static enum hk_code check_target(struct hk_desk *desk, const struct hk_enqueue_ask *ask, struct hk_err *err)
{
    const char *wrong = ask->target_url ? hk_target_url_wrong(hk_str_of(ask->target_url)) : NULL;
    if (wrong)
        return hk_desk_wrong(desk, "target_url", err, "%s", wrong);
    if (ask->headers && (ask->target_url || ask->target_method || ask->timeout))
        return hk_desk_wrong(desk, "headers", err, "hold the target and the timeout already");
    return HK_OK;
}

static void add_target(struct hk_json *json, const struct hk_enqueue_ask *ask)
{
    char timeout[HK_DURATION_TEXT_MAX];
    if (ask->target_url)
        hk_put_cstr(json, HK_TARGET_URL, ask->target_url);
    if (ask->target_method)
        hk_put_cstr(json, HK_TARGET_METHOD, ask->target_method);
    if (ask->timeout) {
        (void)hk_format_duration(ask->timeout, timeout);
        hk_put_cstr(json, HK_TARGET_TIMEOUT, timeout);
    }
}

static enum hk_code add_headers(struct hk_desk *desk, const struct hk_enqueue_ask *ask, struct hk_buf *out,
                                struct hk_err *err)
{
    const struct hk_texts *given = &ask->header;
    struct hk_json json;
    hk_json_init(&json, out, false);
    hk_json_object(&json);
    add_target(&json, ask);
    for (size_t i = 0; i < given->n; i++) {
        struct hk_str value = hk_str_of(given->items[i]);
        struct hk_str name = hk_str_cut(&value, '=');
        char key[256];
        if (!value.ptr || !name.len || !hk_str_copy(key, sizeof key, name))
            return hk_desk_wrong(desk, "header", err, "takes NAME=VALUE, not '%s'", given->items[i]);
        hk_json_key(&json, key);
        hk_json_str(&json, value);
    }
    hk_json_end(&json);
    return HK_OK;
}

/* Every NAME=VALUE as a JSON object, with what is said of the request. */
static enum hk_code read_headers(struct hk_desk *desk, const struct hk_enqueue_ask *ask, struct hk_pool *mem,
                                 const char **out, struct hk_err *err)
{
    struct hk_buf text;
    if (ask->header.n == 0 && !ask->target_url && !ask->target_method && !ask->timeout)
        return HK_OK;
    hk_buf_init(&text, HEADERS_MAX);
    enum hk_code rc = add_headers(desk, ask, &text, err);
    if (rc == HK_OK && hk_buf_status(&text) == HK_OK) /* else it would go without some of them */
        *out = hk_pool_copy_str(mem, hk_buf_str(&text));
    if (rc == HK_OK && !*out)
        rc = hk_err_set(err, HK_NOMEM, "out of memory");
    hk_buf_fini(&text);
    return rc;
}

static enum hk_code read_one(struct hk_desk *desk, const struct hk_enqueue_ask *ask, struct hk_pool *mem,
                             struct hk_enqueue *out, struct hk_err *err)
{
    struct hk_outbox_message *m = &out->message;
    *out = (struct hk_enqueue){.message = {.destination = ask->destination,
                                           .event_type = ask->event_type,
                                           .message_id = ask->message_id,
                                           .message_key = ask->key,
                                           .content_type = ask->content_type,
                                           .correlation_id = ask->correlation_id,
                                           .traceparent = ask->traceparent,
                                           .idempotency_key = ask->idempotency_key,
                                           .policy = ask->policy,
                                           .max_attempts = (uint32_t)ask->max_attempts,
                                           .payload = ask->payload.ptr,
                                           .payload_len = ask->payload.len},
                               .encoding = ask->encoding};
    if (!ask->event_type || !ask->event_type[0])
        return hk_desk_wrong(desk, "event_type", err, "is missing: what happened?");
    enum hk_code rc = check_target(desk, ask, err);
    if (rc == HK_OK)
        rc = read_time(desk, "not_before", ask->not_before, mem, &m->not_before, err);
    if (rc == HK_OK)
        rc = read_time(desk, "expires", ask->expires, mem, &m->expires_at, err);
    m->headers = ask->headers;
    if (rc == HK_OK && !ask->headers)
        rc = read_headers(desk, ask, mem, &m->headers, err);
    return rc;
}

static void put_payload(struct hk_json *json, const struct hk_enqueue *item)
{
    struct hk_str bytes = {item->message.payload, item->message.payload_len};
    struct hk_buf coded;
    if (!bytes.ptr)
        return;
    hk_json_key(json, "payload");
    if (item->encoding || hk_utf8_is_text(bytes)) {
        hk_json_str(json, bytes);
        return;
    }
    hk_buf_init(&coded, 2 * bytes.len + 16);
    (void)hk_buf_add_base64(&coded, bytes.ptr, bytes.len);
    hk_buf_inherit(json->out, &coded);
    hk_json_str(json, hk_buf_str(&coded));
    hk_buf_fini(&coded);
    hk_put_cstr(json, "encoding", "base64");
}

static void put_given(struct hk_json *json, const char *key, const char *value)
{
    if (value)
        hk_put_cstr(json, key, value);
}

enum hk_code hk_enqueue_write(struct hk_desk *desk, const struct hk_enqueue_ask *ask, struct hk_pool *mem,
                              struct hk_buf *out, struct hk_err *err)
{
    struct hk_enqueue item;
    struct hk_json json;
    enum hk_code rc = read_one(desk, ask, mem, &item, err);
    const struct hk_outbox_message *m = &item.message;
    if (rc != HK_OK)
        return rc;
    hk_json_init(&json, out, false);
    hk_json_object(&json);
    put_given(&json, "destination", m->destination);
    put_given(&json, "event_type", m->event_type);
    put_payload(&json, &item);
    put_given(&json, "message_id", m->message_id);
    put_given(&json, "message_key", m->message_key);
    if (m->headers) {
        hk_json_key(&json, "headers");
        hk_json_raw(&json, hk_str_of(m->headers));
    }
    put_given(&json, "content_type", m->content_type);
    put_given(&json, "encoding", item.encoding);
    put_given(&json, "not_before", m->not_before);
    put_given(&json, "expires_at", m->expires_at);
    put_given(&json, "idempotency_key", m->idempotency_key);
    put_given(&json, "correlation_id", m->correlation_id);
    put_given(&json, "traceparent", m->traceparent);
    put_given(&json, "policy", m->policy);
    if (m->max_attempts > 0)
        hk_put_u64(&json, "max_attempts", m->max_attempts);
    hk_json_end(&json);
    return HK_OK;
}

/* Unknown ones become dead letters: better said now. */
static enum hk_code warn(struct hk_desk *desk, const struct hk_enqueue_ask *ask, struct hk_pool *mem,
                         const char **out)
{
    struct hk_where where =
        hk_where(desk, hk_str_of(ask->destination ? ask->destination : ""), hk_str_of(ask->event_type), mem);
    char shown[HK_SHOW_MAX], text[HK_SHOW_MAX + 80];
    if (where.kind == HK_WHERE_NO_ROUTE && !hk_config_route(desk->config, 0))
        *out = "no destination is named, and there are no routes: a relay makes it a dead letter";
    if (where.kind != HK_WHERE_UNKNOWN || !ask->destination)
        return HK_OK;
    (void)snprintf(text, sizeof text, "no destination %s is configured: a relay makes it a dead letter",
                   hk_show(hk_str_of(ask->destination), shown));
    *out = hk_pool_copy_str(mem, hk_str_of(text));
    return *out ? HK_OK : HK_NOMEM;
}

static enum hk_code enqueue(struct hk_desk *desk, const struct hk_caller *caller,
                            const struct hk_enqueue_ask *ask, struct hk_pool *mem, struct hk_enqueued *out,
                            struct hk_err *err)
{
    struct hk_enqueue item;
    const struct hk_str *ids = NULL;
    (void)caller;
    *out = (struct hk_enqueued){.warning = NULL};
    enum hk_code rc = read_one(desk, ask, mem, &item, err);
    if (rc == HK_OK && warn(desk, ask, mem, &out->warning) != HK_OK)
        rc = hk_err_set(err, HK_NOMEM, "out of memory");
    if (rc == HK_OK)
        rc = hk_desk_seal(desk, &item, 1, mem, err);
    if (rc == HK_OK)
        rc = desk->ops->enqueue(desk->admin, &item, 1, &ids, err);
    if (rc != HK_OK)
        return rc;
    out->message_id = ids[0];
    hk_desk_keep(desk, mem);
    return HK_OK;
}

/* ---- many ---- */

struct lines {
    struct hk_desk *desk;
    const struct hk_caller *caller;
    const struct hk_enqueue_lines_ask *ask;
    struct hk_enqueued_lines *out;
    struct hk_ndjson *read; /* BATCH of each */
    struct hk_enqueue *items;
    size_t n, bytes;
    uint64_t line; /* the last one that was read */
};

static void clear_batch(struct lines *l)
{
    for (size_t i = 0; i < l->n; i++)
        hk_ndjson_free(&l->read[i]);
    l->n = l->bytes = 0;
}

static enum hk_code commit(struct lines *l, struct hk_err *err)
{
    const struct hk_str *ids = NULL;
    struct hk_pool sealed = {.blocks = NULL};
    size_t n = l->n;
    for (size_t i = 0; i < n; i++)
        l->items[i] = l->read[i].item;
    enum hk_code rc = hk_desk_seal(l->desk, l->items, n, &sealed, err);
    if (rc == HK_OK && n > 0)
        rc = l->desk->ops->enqueue(l->desk->admin, l->items, n, &ids, err);
    hk_pool_fini(&sealed);
    if (rc != HK_OK)
        return rc;
    l->out->messages += n;
    l->out->lines = l->line;
    clear_batch(l);
    rc = n > 0 ? l->ask->took(l->ask->arg, ids, n, err) : HK_OK;
    hk_caller_progress(l->caller, l->out->messages, 0);
    if (rc == HK_OK && hk_caller_stops(l->caller))
        rc = hk_err_set(err, HK_CANCELLED, "stopped");
    return rc;
}

static enum hk_code take_line(struct lines *l, struct hk_str line, struct hk_err *err)
{
    struct hk_err why = {.message = ""};
    struct hk_str text = hk_str_trim(line);
    l->line++;
    if (text.len > 0 && text.ptr[text.len - 1] == '\r')
        text.len--;
    if (!text.len)
        return HK_OK;
    enum hk_code rc = hk_ndjson_read(text, &l->read[l->n], &why);
    if (rc != HK_OK)
        return hk_err_set(err, rc, "line %" PRIu64 ": %s", l->line, why.message);
    l->n++;
    l->bytes += line.len;
    return l->n == BATCH || l->bytes >= BATCH_BYTES ? commit(l, err) : HK_OK;
}

static enum hk_code take_lines(struct lines *l, struct hk_err *err)
{
    struct hk_str line = {"", 0};
    enum hk_code rc = HK_OK;
    while (rc == HK_OK && line.ptr) {
        rc = l->ask->next(l->ask->arg, &line, err);
        if (rc == HK_TOOBIG)
            return hk_err_set(err, HK_TOOBIG, "line %" PRIu64 " is longer than 16 MiB", l->line + 1);
        if (rc == HK_OK && line.ptr)
            rc = take_line(l, line, err);
    }
    return rc == HK_OK ? commit(l, err) : rc;
}

static enum hk_code enqueue_lines(struct hk_desk *desk, const struct hk_caller *caller,
                                  const struct hk_enqueue_lines_ask *ask, struct hk_pool *mem,
                                  struct hk_enqueued_lines *out, struct hk_err *err)
{
    struct lines l = {.desk = desk,
                      .caller = caller,
                      .ask = ask,
                      .out = out,
                      .read = hk_pool_alloc(mem, BATCH, sizeof *l.read),
                      .items = hk_pool_alloc(mem, BATCH, sizeof *l.items)};
    *out = (struct hk_enqueued_lines){.messages = 0};
    enum hk_code rc = l.read && l.items ? take_lines(&l, err) : hk_err_set(err, HK_NOMEM, "out of memory");
    clear_batch(&l);
    return rc;
}

/* ---- the table ---- */

HK_OP_RUN(enqueue)
HK_OP_RUN(enqueue_lines)

static const struct hk_arg enqueue_args[] = {
    {HK_ARG(hk_enqueue_ask, destination, HK_ARG_TEXT, "NAME", "destination (default: the routes decide)")},
    {HK_ARG(hk_enqueue_ask, event_type, HK_ARG_TEXT, "NAME", "what happened")},
    {HK_ARG(hk_enqueue_ask, payload, HK_ARG_BYTES, "TEXT|-|@FILE", "the payload, byte for byte")},
    {HK_ARG(hk_enqueue_ask, key, HK_ARG_TEXT, "KEY",
            "messages of one key keep their order, at destinations with order: key")},
    {HK_ARG(hk_enqueue_ask, target_url, HK_ARG_TEXT, "URL",
            "the message's URL, for destinations with url: message")},
    {HK_ARG(hk_enqueue_ask, target_method, HK_ARG_CHOICE, "METHOD",
            "the request's method (default: the destination's)"),
     .choices = "GET HEAD POST PUT PATCH DELETE OPTIONS"},
    {HK_ARG(hk_enqueue_ask, timeout, HK_ARG_DURATION, "TIME",
            "how long an attempt may take, up to relay.timeout_ceiling (default: as the policy says)"),
     .lo = 1, .hi = 86400000},
    {HK_ARG(hk_enqueue_ask, header, HK_ARG_TEXTS, "NAME=VALUE", "one more header; may be repeated")},
    {HK_ARG(hk_enqueue_ask, content_type, HK_ARG_TEXT, "TYPE", "the payload's content type")},
    {HK_ARG(hk_enqueue_ask, encoding, HK_ARG_CHOICE, "ENCODING",
            "base64: the payload is decoded when it is sent; sealed: it was sealed before"),
     .choices = "utf8 base64 sealed"},
    {HK_ARG(hk_enqueue_ask, not_before, HK_ARG_TEXT, "TIME", "2026-11-15T08:30:00Z, or from now: 90s")},
    {HK_ARG(hk_enqueue_ask, expires, HK_ARG_TEXT, "TIME",
            "make the message a dead letter after this time; as --not-before")},
    {HK_ARG(hk_enqueue_ask, message_id, HK_ARG_TEXT, "ID",
            "the id that the receiver sees (default: generated)")},
    {HK_ARG(hk_enqueue_ask, idempotency_key, HK_ARG_TEXT, "KEY", "(default: the message id)")},
    {HK_ARG(hk_enqueue_ask, correlation_id, HK_ARG_TEXT, "ID",
            "id that connects this message with other systems' logs")},
    {HK_ARG(hk_enqueue_ask, traceparent, HK_ARG_TEXT, "TEXT", "W3C trace context, sent along")},
    {HK_ARG(hk_enqueue_ask, policy, HK_ARG_POLICY, "NAME", "retry policy (default: the destination's)")},
    {HK_ARG(hk_enqueue_ask, max_attempts, HK_ARG_NUMBER, "N",
            "maximum number of attempts (default: the policy's)"),
     .lo = 1, .hi = 1000000},
    {.name = NULL}};

const struct hk_op hk_op_enqueue = {
    .noun = "enqueue",
    .summary = "write one message into the outbox, or many",
    .details =
        "Prints the message id; with --ndjson one a line, as batches of up to 500 are committed. An error\n"
        "names its line, and nothing of that line's batch is written.",
    .route = "POST /messages",
    .role = HK_ROLE_OPERATOR,
    .store = true,
    .changes = true,
    .args = enqueue_args,
    .request_size = sizeof(struct hk_enqueue_ask),
    .result_size = sizeof(struct hk_enqueued),
    .run = enqueue_op,
    .form = hk_form_enqueued};

const struct hk_op hk_op_enqueue_lines = {.noun = "enqueue",
                                          .verb = "lines",
                                          .summary =
                                              "write many messages into the outbox, one JSON object a line",
                                          .route = "POST /messages/batch",
                                          .role = HK_ROLE_OPERATOR,
                                          .store = true,
                                          .changes = true,
                                          .is_long = true,
                                          .request_size = sizeof(struct hk_enqueue_lines_ask),
                                          .result_size = sizeof(struct hk_enqueued_lines),
                                          .run = enqueue_lines_op};
