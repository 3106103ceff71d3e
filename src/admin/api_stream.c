/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that come in (one as JSON, many as NDJSON, both with the names of outbox's columns), and dead letters that go out as
 * NDJSON. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "admin/api_impl.h"
#include "base/json.h"
#include "base/str.h"
#include "desk/dead_look.h"
#include "desk/enqueue.h"
#include "desk/events.h"
#include "desk/forms.h"
#include "desk/ndjson.h"

bool hk_api_is_stream(const struct hk_op *op)
{
    return op == &hk_op_enqueue || op == &hk_op_enqueue_lines || op == &hk_op_dead_export ||
           op == &hk_op_events;
}

static bool check_type(struct hk_api *api, const char *wanted)
{
    char detail[96];
    struct hk_str rest = hk_str_of(api->request->content_type);
    if (hk_str_eqi(hk_str_trim(hk_str_cut(&rest, ';')), hk_str_of(wanted)))
        return true;
    (void)snprintf(detail, sizeof detail, "the body must be %s", wanted);
    hk_api_refuse(api->out,
                  &(struct hk_problem){.status = 415, .code = "UNSUPPORTED_MEDIA_TYPE", .detail = detail});
    return false;
}

static bool refuse_query(struct hk_api *api)
{
    if (!api->request->query || !api->request->query[0])
        return true;
    hk_api_refuse(api->out,
                  &(struct hk_problem){.status = 400, .code = "INVALID", .detail = "this takes no query"});
    return false;
}

/* ---- one message ---- */

static struct hk_enqueue_ask one_message(const struct hk_ndjson *read)
{
    const struct hk_outbox_message *m = &read->item.message;
    return (struct hk_enqueue_ask){.destination = m->destination,
                                   .event_type = m->event_type,
                                   .payload = {m->payload, m->payload_len},
                                   .key = m->message_key,
                                   .headers = m->headers,
                                   .content_type = m->content_type,
                                   .encoding = read->item.encoding,
                                   .not_before = m->not_before,
                                   .expires = m->expires_at,
                                   .message_id = m->message_id,
                                   .idempotency_key = m->idempotency_key,
                                   .correlation_id = m->correlation_id,
                                   .traceparent = m->traceparent,
                                   .policy = m->policy,
                                   .max_attempts = m->max_attempts};
}

static void enqueue_one(struct hk_api *api)
{
    struct hk_ndjson read;
    struct hk_err err = {.code = HK_OK};
    if (!check_type(api, "application/json") || !refuse_query(api))
        return;
    enum hk_code rc = hk_ndjson_read(api->request->body, &read, &err);
    if (rc != HK_OK) {
        hk_api_fail(api, NULL, &err);
        return;
    }
    struct hk_enqueue_ask ask = one_message(&read);
    struct hk_caller caller = hk_api_caller(api);
    rc = hk_desk_ask(api->desk, api->op, &caller, &ask, &api->mem, api->result, &err);
    if (rc == HK_OK)
        hk_api_write_result(api);
    else
        hk_api_fail(api, api->desk->wrong_field, &err);
    hk_ndjson_free(&read);
}

/* ---- many ---- */

struct lines {
    struct hk_str rest;
    struct hk_json json;
};

static enum hk_code next_line(void *arg, struct hk_str *out, struct hk_err *err)
{
    struct lines *l = arg;
    (void)err;
    *out = l->rest.ptr ? hk_str_cut(&l->rest, '\n') : (struct hk_str){NULL, 0};
    return HK_OK;
}

static enum hk_code took_lines(void *arg, const struct hk_str *ids, size_t n, struct hk_err *err)
{
    struct lines *l = arg;
    (void)err;
    for (size_t i = 0; i < n; i++)
        hk_form_write(&l->json, hk_form_taken, &ids[i]);
    return HK_OK;
}

/* All lines are read before the first is written: a wrong one is told while nothing has happened. */
static bool check_lines(struct hk_api *api)
{
    struct hk_str rest = api->request->body, line;
    struct hk_err why = {.code = HK_OK}, err;
    for (uint64_t n = 1; rest.ptr; n++) {
        struct hk_ndjson read;
        line = hk_str_trim(hk_str_cut(&rest, '\n'));
        if (line.len > 0 && line.ptr[line.len - 1] == '\r')
            line.len--;
        if (line.len == 0)
            continue;
        enum hk_code rc = hk_ndjson_read(line, &read, &why);
        if (rc != HK_OK) {
            (void)hk_err_set(&err, rc, "line %" PRIu64 ": %s", n, why.message);
            hk_api_fail(api, NULL, &err);
            return false;
        }
        hk_ndjson_free(&read);
    }
    return true;
}

/* As `enqueue --ndjson --json` prints it. After an error of the store: what is committed stays, and is told. */
static void enqueue_many(struct hk_api *api)
{
    struct lines l = {.rest = api->request->body};
    struct hk_enqueue_lines_ask ask = {.next = next_line, .took = took_lines, .arg = &l};
    struct hk_enqueued_lines *done = api->result;
    struct hk_err err = {.code = HK_OK}, more;
    if (!check_type(api, "application/x-ndjson") || !refuse_query(api) || !check_lines(api))
        return;
    struct hk_caller caller = hk_api_caller(api);
    hk_json_init(&l.json, &api->out->body, false);
    hk_json_object(&l.json);
    hk_json_key(&l.json, "items");
    hk_json_array(&l.json);
    enum hk_code rc = hk_desk_ask(api->desk, api->op, &caller, &ask, &api->mem, done, &err);
    if (rc != HK_OK) {
        (void)hk_err_set(&more, rc, "%s (%" PRIu64 " messages, up to line %" PRIu64 ", are committed)",
                         err.message, done->messages, done->lines);
        api->partly = done->messages > 0;
        hk_api_fail(api, NULL, api->partly ? &more : &err);
        return;
    }
    hk_json_end(&l.json);
    hk_put_cstr(&l.json, "next", NULL);
    hk_json_end(&l.json);
    (void)hk_buf_addc(&api->out->body, '\n');
    api->out->content_type = "application/json";
}

/* ---- letters ---- */

/* An export is kept while it is short, so that it has a length and is compressed. From HK_API_WHOLE_MAX on it is written as it is made. */
struct export
{
    struct hk_api *api;
    enum hk_code rc; /* of writing */
};

/* What is kept so far goes out, the head before it. */
static enum hk_code hand_on(struct hk_api *api)
{
    const struct hk_api_request *r = api->request;
    struct hk_api_reply *out = api->out;
    enum hk_code rc = out->written ? HK_OK : r->begin(r->arg, out);
    if (rc != HK_OK)
        return rc;
    out->written = true;
    rc = r->write(r->arg, hk_buf_str(&out->body));
    hk_buf_reset(&out->body);
    return rc;
}

static bool take_letter(void *arg, const struct hk_letter *letter, bool cut)
{
    struct export *e = arg;
    struct hk_buf *body = &e->api->out->body;
    struct hk_json json;
    hk_json_init(&json, body, false);
    hk_form_write(&json, hk_form_dead_line, &(struct hk_dead_line){*letter, cut});
    (void)hk_buf_addc(body, '\n');
    e->rc = hk_buf_status(body);
    if (e->rc == HK_OK && e->api->request->write && body->len > HK_API_WHOLE_MAX)
        e->rc = hand_on(e->api);
    return e->rc == HK_OK;
}

/* Ends what was begun. A client who has the head already can only be told by an end that is missing. */
static void end_export(struct hk_api *api, enum hk_code rc, const struct hk_err *err)
{
    const struct hk_api_request *r = api->request;
    struct hk_api_reply *out = api->out;
    if (!out->written && rc != HK_OK)
        hk_api_fail(api, api->desk->wrong_field, err);
    if (!out->written)
        return;
    if (rc == HK_OK)
        rc = r->write(r->arg, hk_buf_str(&out->body));
    out->failed = rc != HK_OK;
    hk_buf_reset(&out->body);
}

static void refuse_now(struct hk_api *api)
{
    hk_api_refuse(api->out, &(struct hk_problem){.status = 503,
                                                 .code = "BUSY",
                                                 .detail = "other exports are running: try again when they "
                                                           "have ended"});
    api->out->retry_after_s = 5;
}

static void export_letters(struct hk_api *api)
{
    struct hk_err err = {.code = HK_OK};
    struct hk_dead_export_ask *ask = api->asked;
    struct hk_caller caller = hk_api_caller(api);
    struct export e = {.api = api, .rc = HK_OK};
    ask->take = take_letter;
    ask->arg = &e;
    api->out->content_type = "application/x-ndjson";
    if (api->request->write)
        api->out->body.max = HK_API_LINE_MAX;
    enum hk_code rc = hk_desk_ask(api->desk, api->op, &caller, ask, &api->mem, api->result, &err);
    if (rc == HK_OK && e.rc == HK_BUSY && !api->out->written) {
        refuse_now(api);
        return;
    }
    if (rc == HK_OK && e.rc != HK_OK)
        rc = hk_err_set(&err, e.rc, "the answer could not be written");
    end_export(api, rc, &err);
}

/* ---- events ---- */

static bool copy_text(struct hk_pool *mem, const char **text)
{
    if (*text)
        *text = hk_pool_copy_str(mem, hk_str_of(*text));
    return *text != NULL;
}

/* The server makes the stream: here it is only read what is wanted. */
static void open_events(struct hk_api *api)
{
    struct hk_err err = {.code = HK_OK};
    struct hk_api_reply *out = api->out;
    const struct hk_events_ask *ask = api->asked;
    enum hk_code rc = api->op->check(api->desk, ask, &err);
    if (rc != HK_OK) {
        hk_api_fail(api, api->desk->wrong_field, &err);
        return;
    }
    out->events = *ask;
    out->is_events = (!ask->types || copy_text(&out->events_mem, &out->events.types)) &&
                     (!ask->destination || copy_text(&out->events_mem, &out->events.destination));
    out->content_type = "text/event-stream";
    if (!out->is_events) {
        (void)hk_err_set(&err, HK_NOMEM, "out of memory");
        hk_api_fail(api, NULL, &err);
    }
}

void hk_api_stream(struct hk_api *api)
{
    if (api->op == &hk_op_enqueue)
        enqueue_one(api);
    else if (api->op == &hk_op_enqueue_lines)
        enqueue_many(api);
    else if (!hk_api_read(api))
        return;
    else if (api->op == &hk_op_events)
        open_events(api);
    else
        export_letters(api);
}
