/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks: messages of a queue, written and looked at as Cloud Tasks has them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/parse.h"
#include "base/show.h"
#include "base/str.h"
#include "base/utf8.h"
#include "desk/messages.h"
#include "desk/put.h"
#include "desk/queues.h"
#include "desk/sealing.h"
#include "exec/clock.h"
#include "payload/codec.h"
#include "payload/scan.h"
#include "payload/target.h"
#include "sink/http/header.h"

#define EVENT_TYPE  "cloud-task"
#define HEADERS_MAX ((size_t)200 * 1024)
#define N_HEADERS   64

enum {
    BUSY_TRIES = 40,
    BUSY_MS = 25
};

static enum hk_code no_memory(struct hk_err *err)
{
    return hk_err_set(err, HK_NOMEM, "out of memory");
}

/* ---- checking ---- */

static bool is_task_id(const char *id)
{
    size_t n = strlen(id);
    return n > 0 && n <= HK_TASK_ID_MAX &&
           strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == n;
}

static enum hk_code check_id(const char *id, struct hk_err *err)
{
    if (is_task_id(id))
        return HK_OK;
    return hk_err_set(
        err, HK_INVALID,
        "Task name must be 1 to %d letters, digits, hyphens and underscores behind \"/tasks/\".",
        HK_TASK_ID_MAX);
}

/* Google leaves these out without a word, since it sets them itself. */
static bool is_dropped(struct hk_str name)
{
    static const char *const names[] = {"host", "content-length", "user-agent", "content-type"};
    static const char *const prefixes[] = {"x-google-", "x-appengine-", "x-cloudtasks-"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (hk_str_eqi(name, hk_str_of(names[i])))
            return true;
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        size_t n = strlen(prefixes[i]);
        if (name.len >= n && hk_str_eqi((struct hk_str){name.ptr, n}, hk_str_of(prefixes[i])))
            return true;
    }
    return false;
}

static enum hk_code check_header(const struct hk_task_header *h, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    if (!hk_header_name_ok(h->name))
        return hk_err_set(err, HK_INVALID, "HttpRequest.headers: %s is no name of a header.",
                          hk_show(h->name, shown));
    if (!hk_header_value_ok(h->value))
        return hk_err_set(err, HK_INVALID,
                          "HttpRequest.headers: the value of %s has a control character or is over %d bytes.",
                          hk_show(h->name, shown), HK_HEADER_VALUE_MAX);
    if (!is_dropped(h->name) && hk_header_not_for_tasks(h->name))
        return hk_err_set(err, HK_INVALID, "HttpRequest.headers: %s is not for a task to set.",
                          hk_show(h->name, shown));
    return HK_OK;
}

/* Names of headers know no case: a second one would make the request impossible. */
static enum hk_code check_once(const struct hk_task_header *headers, size_t i, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    for (size_t k = 0; k < i; k++)
        if (hk_str_eqi(headers[k].name, headers[i].name))
            return hk_err_set(err, HK_INVALID, "HttpRequest.headers: %s is given twice.",
                              hk_show(headers[i].name, shown));
    return HK_OK;
}

static enum hk_code check_new(const struct hk_task_new_ask *ask, struct hk_err *err)
{
    const char *wrong = hk_target_url_wrong(hk_str_of(ask->url));
    size_t bytes = strlen(ask->url) + ask->body.len;
    if (wrong)
        return hk_err_set(err, HK_INVALID, "HttpRequest.url %s", wrong);
    if (!hk_target_method_ok(hk_str_of(ask->method)))
        return hk_err_set(err, HK_INVALID, "HttpRequest.http_method is not one of Cloud Tasks.");
    if (ask->body.len && !hk_target_method_has_body(hk_str_of(ask->method)))
        return hk_err_set(err, HK_INVALID, "HttpRequest.body is only allowed with POST, PUT and PATCH.");
    if (ask->n_headers > N_HEADERS)
        return hk_err_set(err, HK_INVALID, "HttpRequest.headers: more than %d.", N_HEADERS);
    for (size_t i = 0; i < ask->n_headers; i++) {
        enum hk_code rc = check_header(&ask->headers[i], err);
        if (rc == HK_OK)
            rc = check_once(ask->headers, i, err);
        if (rc != HK_OK)
            return rc;
        bytes += ask->headers[i].name.len + ask->headers[i].value.len;
    }
    if (bytes > HK_TASK_BYTES_MAX)
        return hk_err_set(err, HK_INVALID, "Task size too large: %zu bytes, the limit is %zu.", bytes,
                          HK_TASK_BYTES_MAX);
    if (ask->deadline_ms && (ask->deadline_ms < 15000 || ask->deadline_ms > 1800000))
        return hk_err_set(err, HK_INVALID, "Task.dispatch_deadline must be between 15s and 1800s.");
    return ask->task ? check_id(ask->task, err) : HK_OK;
}

/* ---- writing ---- */

static const char *write_headers(const struct hk_task_new_ask *ask, struct hk_pool *mem,
                                 const char **out_type)
{
    struct hk_buf text;
    struct hk_json json;
    char deadline[HK_DURATION_TEXT_MAX];
    hk_buf_init(&text, HEADERS_MAX);
    hk_json_init(&json, &text, false);
    hk_json_object(&json);
    hk_put_cstr(&json, HK_TARGET_URL, ask->url);
    hk_put_cstr(&json, HK_TARGET_METHOD, ask->method);
    if (ask->deadline_ms) {
        (void)hk_format_duration((uint64_t)ask->deadline_ms, deadline);
        hk_put_cstr(&json, HK_TARGET_TIMEOUT, deadline);
    }
    for (size_t i = 0; i < ask->n_headers; i++) {
        const struct hk_task_header *h = &ask->headers[i];
        if (hk_str_eqi(h->name, hk_str_of("content-type")))
            *out_type = hk_pool_copy_str(mem, h->value);
        if (is_dropped(h->name))
            continue;
        char name[HK_HEADER_NAME_MAX + 1];
        (void)hk_str_copy(name, sizeof name, h->name);
        hk_json_key(&json, name);
        hk_json_str(&json, h->value);
    }
    hk_json_end(&json);
    const char *copy = hk_buf_status(&text) == HK_OK ? hk_pool_copy_str(mem, hk_buf_str(&text)) : NULL;
    hk_buf_fini(&text);
    return copy;
}

static enum hk_code create_task(struct hk_desk *desk, const struct hk_caller *caller,
                                const struct hk_task_new_ask *ask, struct hk_pool *mem, struct hk_task *out,
                                struct hk_err *err)
{
    struct hk_queue queue;
    char id[24], when[HK_TIME_TEXT_MAX];
    const struct hk_str *ids = NULL;
    const char *type = NULL;
    (void)caller;
    enum hk_code rc = hk_queue_find(desk, ask->queue, mem, &queue, NULL, err);
    if (rc == HK_OK)
        rc = check_new(ask, err);
    if (rc != HK_OK)
        return rc;
    (void)snprintf(id, sizeof id, "t%016" PRIx64,
                   hk_clock_seed()); /* no number: commands take those for ids of letters */
    (void)hk_format_rfc3339(ask->schedule_ms, when);
    const char *headers = write_headers(ask, mem, &type);
    struct hk_enqueue item = {.message = {.destination = queue.destination,
                                          .event_type = EVENT_TYPE,
                                          .message_id = ask->task ? ask->task : id,
                                          .headers = headers,
                                          .content_type = type,
                                          .not_before = ask->schedule_ms ? when : NULL,
                                          .payload = ask->body.ptr,
                                          .payload_len = ask->body.len},
                              .is_task = ask->task != NULL};
    int64_t now_ms = hk_clock_wall_ms();
    rc = headers ? hk_desk_seal(desk, &item, 1, mem, err) : no_memory(err);
    if (rc == HK_OK)
        rc = desk->ops->enqueue(desk->admin, &item, 1, &ids, err);
    if (rc != HK_OK)
        return rc;
    *out = (struct hk_task){.id = ids[0],
                            .url = ask->url,
                            .method = ask->method,
                            .body = ask->body,
                            .created_ms = now_ms,
                            .schedule_ms = ask->schedule_ms ? ask->schedule_ms : now_ms,
                            .deadline_ms = ask->deadline_ms ? ask->deadline_ms : 600000};
    hk_desk_keep(desk, mem);
    out->headers = hk_pool_alloc(mem, ask->n_headers + 1, sizeof *out->headers);
    for (size_t i = 0; out->headers && i < ask->n_headers; i++)
        out->headers[out->n_headers++] = ask->headers[i];
    return HK_OK;
}

/* ---- reading ---- */

static struct hk_str text_of(struct hk_str raw, struct hk_pool *mem)
{
    struct hk_buf text;
    hk_buf_init(&text, HEADERS_MAX);
    const char *copy = hk_scan_text(raw, &text) == HK_OK ? hk_pool_copy_str(mem, hk_buf_str(&text)) : NULL;
    size_t len = text.len;
    hk_buf_fini(&text);
    return copy ? (struct hk_str){copy, len} : (struct hk_str){"", 0};
}

static void take_header(struct hk_task *out, struct hk_str name, struct hk_str value)
{
    uint64_t ms = 0;
    if (hk_str_eq(name, hk_str_of(HK_TARGET_URL)))
        out->url = value.ptr;
    else if (hk_str_eq(name, hk_str_of(HK_TARGET_METHOD)))
        out->method = value.ptr;
    else if (hk_str_eq(name, hk_str_of(HK_TARGET_TIMEOUT)))
        out->deadline_ms = hk_parse_duration(value, &ms, NULL) == HK_OK ? (int64_t)ms : 0;
    else if (out->n_headers < N_HEADERS)
        out->headers[out->n_headers++] = (struct hk_task_header){name, value};
}

/* As they are stored: an object of texts, made by us. */
static void read_headers(struct hk_str object, struct hk_pool *mem, struct hk_task *out)
{
    struct hk_json_scan scan;
    struct hk_scan_token token;
    struct hk_str name = {"", 0};
    hk_scan_init(&scan, object);
    for (enum hk_scan_kind kind = hk_scan_next(&scan, &token); kind != HK_SCAN_END && kind != HK_SCAN_ERROR;
         kind = hk_scan_next(&scan, &token)) {
        if (kind == HK_SCAN_KEY)
            name = text_of(token.raw, mem);
        else if (kind == HK_SCAN_STRING)
            take_header(out, name, text_of(token.raw, mem));
    }
}

static void read_body(const struct hk_row *row, struct hk_pool *mem, struct hk_task *out)
{
    struct hk_str plain = {"", 0};
    if (row->has_payload && row->payload.len == row->payload_bytes &&
        hk_codec_plain(row->encoding, row->payload, mem, &plain) == HK_OK)
        out->body = plain;
}

static bool read_task(const struct hk_row *row, bool body, struct hk_pool *mem, struct hk_task *out)
{
    int64_t not_before_ms = 0;
    if (row->not_before.len && hk_parse_rfc3339(row->not_before, &not_before_ms, NULL) != HK_OK)
        not_before_ms = 0;
    int64_t next_ms = row->next_ms ? row->next_ms : not_before_ms;
    *out = (struct hk_task){.id = row->message_id,
                            .url = "",
                            .method = "POST",
                            .headers = hk_pool_alloc(mem, N_HEADERS, sizeof *out->headers),
                            .created_ms = row->created_ms,
                            .schedule_ms = next_ms ? next_ms : row->created_ms,
                            .deadline_ms = 600000,
                            .dispatches = row->attempts,
                            .last_ms = row->last_attempt_ms,
                            .first_ms = row->first_failed_ms,
                            .last_error = row->last_error};
    if (!out->headers)
        return false;
    if (row->content_type.len)
        out->headers[out->n_headers++] =
            (struct hk_task_header){hk_str_of("Content-Type"), row->content_type};
    read_headers(row->headers, mem, out);
    if (body)
        read_body(row, mem, out);
    return true;
}

/* Without the right to reveal, a caller does not see a body that masks cover: it is left out. */
static enum hk_code may_see_body(struct hk_desk *desk, const struct hk_caller *caller, bool asked, bool *out,
                                 struct hk_err *err)
{
    struct hk_masks *masks = NULL;
    enum hk_code rc = asked ? hk_desk_hidden(desk, caller, &masks, err) : HK_OK;
    *out = asked && !(masks && hk_masks_fit(masks, hk_str_of(EVENT_TYPE)));
    return rc;
}

/* Fills in the dispatches from the history. */
static void add_attempts(const struct hk_shown *shown, const char *destination, struct hk_task *out)
{
    for (size_t i = 0; i < shown->n_attempts; i++) {
        const struct hk_tried *t = &shown->attempts[i];
        if (!hk_str_eq(t->destination, hk_str_of(destination)))
            continue;
        if (!out->first_ms || t->started_ms < out->first_ms)
            out->first_ms = t->started_ms;
        out->last_ms = t->started_ms;
        out->last_status = t->status;
        out->responses += t->status > 0;
    }
}

static bool is_live(const struct hk_row *row, const char *destination)
{
    return (row->place == HK_IN_RETRY || row->place == HK_IN_OUTBOX) &&
           hk_str_eq(row->destination, hk_str_of(destination));
}

static enum hk_code no_task(struct hk_err *err)
{
    return hk_err_set(err, HK_NOTFOUND, "The task no longer exists.");
}

static enum hk_code find_task(struct hk_desk *desk, const struct hk_task_ask *ask, struct hk_pool *mem,
                              struct hk_queue *queue, struct hk_task *out, struct hk_err *err)
{
    const struct hk_shown *shown = NULL;
    enum hk_code rc = hk_queue_find(desk, ask->queue, mem, queue, NULL, err);
    if (rc == HK_OK)
        rc = check_id(ask->task, err);
    if (rc == HK_OK)
        rc = desk->ops->show(desk->admin, ask->task, ask->body ? HK_TASK_BYTES_MAX * 2 : 0, &shown, err);
    if (rc == HK_NOTFOUND && queue->destination)
        return no_task(err);
    if (rc != HK_OK)
        return rc;
    const struct hk_shown is = *shown;
    hk_desk_keep(desk, mem);
    for (size_t i = 0; i < is.n_rows; i++) {
        if (!is_live(&is.rows[i], queue->destination))
            continue;
        if (!read_task(&is.rows[i], ask->body, mem, out))
            return no_memory(err);
        add_attempts(&is, queue->destination, out);
        return HK_OK;
    }
    return no_task(err);
}

static enum hk_code show_task(struct hk_desk *desk, const struct hk_caller *caller,
                              const struct hk_task_ask *ask, struct hk_pool *mem, struct hk_task *out,
                              struct hk_err *err)
{
    struct hk_queue queue = {.destination = NULL};
    struct hk_task_ask seen = *ask;
    enum hk_code rc = may_see_body(desk, caller, ask->body, &seen.body, err);
    return rc == HK_OK ? find_task(desk, &seen, mem, &queue, out, err) : rc;
}

/* "retry:17": where the next page of a list begins. */
static bool read_cursor(const char *after, struct hk_list *list)
{
    struct hk_str id = hk_str_of(after), place = hk_str_cut(&id, ':');
    list->resume = true;
    return id.ptr && hk_place_by_name(place, &list->after_place) &&
           hk_parse_i64(id, &list->after_id, NULL) == HK_OK;
}

static enum hk_code list_tasks(struct hk_desk *desk, const struct hk_caller *caller,
                               const struct hk_tasks_ask *ask, struct hk_pool *mem, struct hk_tasks *out,
                               struct hk_err *err)
{
    struct hk_queue queue;
    const struct hk_rows *rows = NULL;
    const struct hk_shown *shown = NULL;
    bool body = false;
    enum hk_code rc = hk_queue_find(desk, ask->queue, mem, &queue, NULL, err);
    if (rc == HK_OK)
        rc = may_see_body(desk, caller, ask->body, &body, err);
    struct hk_list list = {.live = true, .destination = queue.destination, .limit = (uint32_t)ask->limit};
    if (rc == HK_OK && ask->after && !read_cursor(ask->after, &list))
        rc = hk_err_set(err, HK_INVALID, "The page token is not one of this list.");
    if (rc == HK_OK)
        rc = desk->ops->list(desk->admin, &list, &rows, err);
    if (rc != HK_OK)
        return rc;
    struct hk_ref *refs = hk_pool_alloc(mem, rows->n + 1, sizeof *refs);
    struct hk_tasks o = {.items = hk_pool_alloc(mem, rows->n + 1, sizeof *o.items)};
    if (!refs || !o.items)
        return no_memory(err);
    size_t n = rows->n;
    for (size_t i = 0; i < n; i++)
        refs[i] = (struct hk_ref){rows->items[i].place, rows->items[i].id};
    if (rows->more)
        (void)snprintf(o.next, sizeof o.next, "%s:%" PRId64, hk_place_name(rows->last_place), rows->last_id);
    rc = desk->ops->fetch(desk->admin, refs, n, body ? HK_TASK_BYTES_MAX * 2 : 0, &shown, err);
    if (rc != HK_OK)
        return rc;
    const struct hk_shown is = *shown;
    hk_desk_keep(desk, mem);
    for (size_t i = 0; i < is.n_rows; i++)
        if (!read_task(&is.rows[i], body, mem, &o.items[o.n++]))
            return no_memory(err);
    *out = o;
    return HK_OK;
}

/* ---- acts ---- */

/* A task in flight cannot be taken back: Google deletes it all the same, we say that it is busy. */
static enum hk_code delete_task(struct hk_desk *desk, const struct hk_caller *caller,
                                const struct hk_task_ask *ask, struct hk_pool *mem, struct hk_task *out,
                                struct hk_err *err)
{
    struct hk_queue queue = {.destination = NULL};
    struct hk_acted acted;
    enum hk_code rc = find_task(desk, ask, mem, &queue, out, err);
    if (rc != HK_OK)
        return rc;
    const struct hk_act act = {.message_id = ask->task,
                               .destination = queue.destination,
                               .actor = caller->actor,
                               .reason = caller->reason};
    rc = desk->ops->cancel(desk->admin, &act, &acted, err);
    return rc == HK_CONFLICT || rc == HK_NOTFOUND ? no_task(err) : rc;
}

static enum hk_code run_task(struct hk_desk *desk, const struct hk_caller *caller,
                             const struct hk_task_ask *ask, struct hk_pool *mem, struct hk_task *out,
                             struct hk_err *err)
{
    struct hk_queue queue = {.destination = NULL};
    struct hk_acted acted;
    enum hk_code rc = find_task(desk, ask, mem, &queue, out, err);
    if (rc != HK_OK)
        return rc;
    const struct hk_act act = {.message_id = ask->task,
                               .destination = queue.destination,
                               .actor = caller->actor,
                               .reason = caller->reason};
    rc = desk->ops->force(desk->admin, &act, &acted, err);
    for (int i = 0; rc == HK_BUSY && i < BUSY_TRIES && !hk_caller_stops(caller);
         i++) { /* a relay may only be putting it aside */
        const struct timespec pause = {.tv_nsec = BUSY_MS * 1000000L};
        (void)nanosleep(&pause, NULL);
        rc = desk->ops->force(desk->admin, &act, &acted, err);
    }
    if (rc == HK_OK)
        out->schedule_ms = acted.now_ms;
    if (rc == HK_BUSY)
        return HK_OK; /* it runs */
    return rc == HK_CONFLICT || rc == HK_NOTFOUND ? no_task(err) : rc;
}

/* ---- the table ---- */

HK_OP_RUN(create_task)
HK_OP_RUN(show_task)
HK_OP_RUN(list_tasks)
HK_OP_RUN(delete_task)
HK_OP_RUN(run_task)

#define TASK_OP(word, who, asks, gives, does)                                                                \
    {                                                                                                        \
        .noun = "tasks", .verb = (word), .summary = (word), .role = (who), .store = true,                    \
        .changes = (who) != HK_ROLE_VIEWER, .request_size = sizeof(struct asks),                             \
        .result_size = sizeof(struct gives), .run = (does)                                                   \
    }

const struct hk_op hk_op_tasks_create =
    TASK_OP("create", HK_ROLE_OPERATOR, hk_task_new_ask, hk_task, create_task_op);
const struct hk_op hk_op_tasks_show = TASK_OP("show", HK_ROLE_VIEWER, hk_task_ask, hk_task, show_task_op);
const struct hk_op hk_op_tasks_list = TASK_OP("list", HK_ROLE_VIEWER, hk_tasks_ask, hk_tasks, list_tasks_op);
const struct hk_op hk_op_tasks_delete =
    TASK_OP("delete", HK_ROLE_OPERATOR, hk_task_ask, hk_task, delete_task_op);
const struct hk_op hk_op_tasks_run = TASK_OP("run", HK_ROLE_OPERATOR, hk_task_ask, hk_task, run_task_op);
