/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks as Cloud Tasks has them: what clients send, and what they get. */
#include <string.h>

#include "admin/tasks/tasks.h"
#include "base/str.h"

#define LIST_MAX     1000
#define FULL_MAX     100                      /* tasks of a page with their bodies */
#define YEAR_9999_MS INT64_C(253402300799999) /* its last */

/* ---- what clients send ---- */

struct http_request {
    uint32_t given;
    struct hk_str url;
    int64_t http_method;
    struct hk_proto_map headers;
    struct hk_str body;
};

enum {
    HTTP_BODY = 1 << 3,
    HTTP_TOKENS = 3 << 4
};

struct task {
    uint32_t given;
    struct hk_str name;
    struct http_request http_request;
    int64_t schedule_time, dispatch_deadline;
};

enum {
    TASK_NAME = 1 << 0,
    TASK_HTTP = 1 << 1,
    TASK_SCHEDULE = 1 << 2,
    TASK_DEADLINE = 1 << 3,
    TASK_APP_ENGINE = 1 << 4
};

struct create {
    uint32_t given;
    struct task task;
    int64_t response_view;
};

static const struct hk_proto_word methods[] = {{"HTTP_METHOD_UNSPECIFIED", 0},
                                               {"POST", 1},
                                               {"GET", 2},
                                               {"HEAD", 3},
                                               {"PUT", 4},
                                               {"DELETE", 5},
                                               {"PATCH", 6},
                                               {"OPTIONS", 7},
                                               {NULL, 0}};
const struct hk_proto_word hk_tasks_views[] = {{"VIEW_UNSPECIFIED", 0}, {"BASIC", 1}, {"FULL", 2}, {NULL, 0}};

static const struct hk_proto_field http_fields[] = {
    {"url", HK_PROTO_TEXT, offsetof(struct http_request, url), NULL, NULL},
    {"http_method", HK_PROTO_ENUM, offsetof(struct http_request, http_method), NULL, methods},
    {"headers", HK_PROTO_MAP, offsetof(struct http_request, headers), NULL, NULL},
    {"body", HK_PROTO_BYTES, offsetof(struct http_request, body), NULL, NULL},
    {"oauth_token", HK_PROTO_SKIP, 0, NULL, NULL},
    {"oidc_token", HK_PROTO_SKIP, 0, NULL, NULL},
};
static const struct hk_proto_type http_type = {http_fields, 6, offsetof(struct http_request, given)};

static const struct hk_proto_field task_fields[] = {
    {"name", HK_PROTO_TEXT, offsetof(struct task, name), NULL, NULL},
    {"http_request", HK_PROTO_MESSAGE, offsetof(struct task, http_request), &http_type, NULL},
    {"schedule_time", HK_PROTO_TIME, offsetof(struct task, schedule_time), NULL, NULL},
    {"dispatch_deadline", HK_PROTO_DURATION, offsetof(struct task, dispatch_deadline), NULL, NULL},
    {"app_engine_http_request", HK_PROTO_SKIP, 0, NULL, NULL},
    {"create_time", HK_PROTO_SKIP, 0, NULL, NULL},
    {"dispatch_count", HK_PROTO_SKIP, 0, NULL, NULL},
    {"response_count", HK_PROTO_SKIP, 0, NULL, NULL},
    {"first_attempt", HK_PROTO_SKIP, 0, NULL, NULL},
    {"last_attempt", HK_PROTO_SKIP, 0, NULL, NULL},
    {"view", HK_PROTO_SKIP, 0, NULL, NULL},
};
static const struct hk_proto_type task_type = {task_fields, 11, offsetof(struct task, given)};

static const struct hk_proto_field create_fields[] = {
    {"task", HK_PROTO_MESSAGE, offsetof(struct create, task), &task_type, NULL},
    {"response_view", HK_PROTO_ENUM, offsetof(struct create, response_view), NULL, hk_tasks_views},
    {"parent", HK_PROTO_SKIP, 0, NULL, NULL},
};
static const struct hk_proto_type create_type = {create_fields, 3, offsetof(struct create, given)};

struct run {
    uint32_t given;
    int64_t response_view;
};

static const struct hk_proto_field run_fields[] = {
    {"response_view", HK_PROTO_ENUM, offsetof(struct run, response_view), NULL, hk_tasks_views},
    {"name", HK_PROTO_SKIP, 0, NULL, NULL},
};
static const struct hk_proto_type run_type = {run_fields, 2, offsetof(struct run, given)};

/* ---- what they get ---- */

static void put_str(struct hk_json *json, const char *key, struct hk_str value)
{
    hk_json_key(json, key);
    hk_json_str(json, value);
}

static void put_enum(const struct hk_tasks_call *c, struct hk_json *json, const char *key,
                     const struct hk_proto_word *words, struct hk_str value)
{
    int64_t number = 0;
    hk_json_key(json, key);
    if (c->numbers && hk_proto_enum(value, words, &number))
        hk_json_i64(json, number);
    else
        hk_json_str(json, value);
}

static void put_request(const struct hk_tasks_call *c, struct hk_json *json, const struct hk_task *t)
{
    hk_json_key(json, "httpRequest");
    hk_json_object(json);
    put_str(json, "url", hk_str_of(t->url));
    put_enum(c, json, "httpMethod", methods, hk_str_of(t->method));
    hk_json_key(json, "headers");
    hk_json_object(json);
    for (size_t i = 0; i < t->n_headers; i++) {
        char name[256];
        if (hk_str_copy(name, sizeof name, t->headers[i].name)) {
            hk_json_key(json, name);
            hk_json_str(json, t->headers[i].value);
        }
    }
    hk_json_end(json);
    if (t->body.ptr && t->body.len)
        hk_proto_put_bytes(json, "body", t->body);
    hk_json_end(json);
}

static void put_attempt(struct hk_json *json, const char *key, int64_t dispatch_ms, const struct hk_task *t)
{
    hk_json_key(json, key);
    hk_json_object(json);
    hk_proto_put_time(json, "dispatchTime", dispatch_ms);
    if (t && (t->last_status || t->last_error.len)) {
        hk_json_key(json, "responseStatus");
        hk_json_object(json);
        hk_json_key(json, "code");
        hk_json_i64(json, t->last_status ? 2 : 14); /* UNKNOWN, UNAVAILABLE */
        put_str(json, "message", t->last_error);
        hk_json_end(json);
    }
    hk_json_end(json);
}

static void put_task(const struct hk_tasks_call *c, struct hk_json *json, const struct hk_task *t)
{
    struct hk_buf name;
    hk_buf_init(&name, HK_QUEUE_NAME_MAX + HK_TASK_ID_MAX + 256);
    (void)hk_buf_addf(&name, "%s/tasks/%.*s", c->queue, (int)t->id.len, t->id.ptr);
    hk_json_object(json);
    put_str(json, "name", hk_buf_str(&name));
    hk_buf_fini(&name);
    put_request(c, json, t);
    hk_proto_put_time(json, "scheduleTime", t->schedule_ms);
    hk_proto_put_time(json, "createTime", t->created_ms);
    hk_proto_put_duration(json, "dispatchDeadline", t->deadline_ms);
    hk_json_key(json, "dispatchCount");
    hk_json_u64(json, t->dispatches);
    hk_json_key(json, "responseCount");
    hk_json_u64(json, t->responses);
    if (t->first_ms)
        put_attempt(json, "firstAttempt", t->first_ms, NULL);
    if (t->last_ms)
        put_attempt(json, "lastAttempt", t->last_ms, t);
    put_enum(c, json, "view", hk_tasks_views, hk_str_of(c->full ? "FULL" : "BASIC"));
    hk_json_end(json);
}

static void give_task(struct hk_tasks_call *c, const struct hk_task *t)
{
    struct hk_json json;
    hk_json_init(&json, &c->out->body, false);
    put_task(c, &json, t);
}

/* ---- calls ---- */

/* The id of a name that is given: it must be below the queue. "": none is given; NULL: it is wrong. */
static const char *id_of(const struct hk_tasks_call *c, struct hk_str name)
{
    size_t n = strlen(c->queue);
    if (!name.len)
        return "";
    if (name.len <= n + 7 || strncmp(name.ptr, c->queue, n) != 0 || strncmp(name.ptr + n, "/tasks/", 7) != 0)
        return NULL;
    return name.ptr + n + 7;
}

static const char *wrong_with(const struct hk_tasks_call *c, const struct task *t)
{
    bool ignored = c->desk->config->queues.tokens == HK_QUEUE_TOKENS_IGNORE;
    if (t->given & TASK_APP_ENGINE)
        return "Task.app_engine_http_request is not supported: use http_request.";
    if (!(t->given & TASK_HTTP) || !t->http_request.url.len)
        return "Task.http_request.url is required.";
    if (t->http_request.given & HTTP_TOKENS && !ignored)
        return "Task.http_request has an oidc_token or oauth_token: only Google can make those. Leave it out, or configure "
               "\"queues: { tokens: ignore }\".";
    if (t->given & TASK_SCHEDULE && t->schedule_time > YEAR_9999_MS)
        return "Task.schedule_time is out of range.";
    return NULL;
}

void hk_tasks_task_create(struct hk_tasks_call *c)
{
    struct create q = {.given = 0};
    struct hk_task made;
    if (!hk_tasks_read(c, &create_type, &q))
        return;
    const char *id = id_of(c, q.task.name), *wrong = wrong_with(c, &q.task);
    if (!id)
        wrong = "Task.name must be the queue's name with /tasks/TASK_ID behind it.";
    if (wrong) {
        hk_tasks_wrong(c, wrong);
        return;
    }
    const struct http_request *http = &q.task.http_request;
    struct hk_task_header *headers = hk_pool_alloc(&c->mem, http->headers.n + 1, sizeof *headers);
    const char *method = "POST";
    for (const struct hk_proto_word *w = methods; w->name; w++)
        if (w->number == http->http_method && w->number)
            method = w->name;
    for (size_t i = 0; headers && i < http->headers.n; i++)
        headers[i] = (struct hk_task_header){http->headers.items[i].key, http->headers.items[i].value};
    const struct hk_task_new_ask ask = {
        .queue = c->queue,
        .task = id[0] ? id : NULL,
        .url = http->url.ptr,
        .method = method,
        .headers = headers,
        .n_headers = headers ? http->headers.n : 0,
        .body = http->given & HTTP_BODY ? http->body : (struct hk_str){NULL, 0},
        .schedule_ms = q.task.given & TASK_SCHEDULE && q.task.schedule_time > 0 ? q.task.schedule_time : 0,
        .deadline_ms = q.task.dispatch_deadline};
    c->full = q.response_view == 2;
    if (!headers)
        hk_tasks_fail(c->out, HK_NOMEM, "out of memory");
    else if (hk_tasks_ask(c, &hk_op_tasks_create, &ask, &made)) {
        if (!c->full)
            made.body = (struct hk_str){NULL, 0};
        give_task(c, &made);
    }
}

void hk_tasks_task_get(struct hk_tasks_call *c)
{
    struct hk_task t;
    const struct hk_task_ask ask = {.queue = c->queue, .task = c->task, .body = c->full};
    if (hk_tasks_ask(c, &hk_op_tasks_show, &ask, &t))
        give_task(c, &t);
}

void hk_tasks_task_list(struct hk_tasks_call *c)
{
    struct hk_tasks found;
    struct hk_json json;
    int64_t most = c->full ? FULL_MAX : LIST_MAX;
    const struct hk_tasks_ask ask = {.queue = c->queue,
                                     .body = c->full,
                                     .after = c->page_token,
                                     .limit = (uint64_t)(c->limit > 0 && c->limit < most ? c->limit : most)};
    if (!hk_tasks_ask(c, &hk_op_tasks_list, &ask, &found))
        return;
    hk_json_init(&json, &c->out->body, false);
    hk_json_object(&json);
    hk_json_key(&json, "tasks");
    hk_json_array(&json);
    for (size_t i = 0; i < found.n; i++)
        put_task(c, &json, &found.items[i]);
    hk_json_end(&json);
    if (found.next[0]) {
        hk_json_key(&json, "nextPageToken");
        hk_json_cstr(&json, found.next);
    }
    hk_json_end(&json);
}

void hk_tasks_task_delete(struct hk_tasks_call *c)
{
    struct hk_task t;
    const struct hk_task_ask ask = {.queue = c->queue, .task = c->task};
    if (hk_tasks_ask(c, &hk_op_tasks_delete, &ask, &t))
        (void)hk_buf_adds(&c->out->body, "{}");
}

void hk_tasks_task_run(struct hk_tasks_call *c)
{
    struct run q = {.given = 0};
    struct hk_task t;
    if (!hk_tasks_read(c, &run_type, &q))
        return;
    c->full = q.response_view == 2;
    const struct hk_task_ask ask = {.queue = c->queue, .task = c->task, .body = c->full};
    if (hk_tasks_ask(c, &hk_op_tasks_run, &ask, &t))
        give_task(c, &t);
}
