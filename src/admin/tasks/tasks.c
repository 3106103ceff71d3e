/* SPDX-License-Identifier: Apache-2.0 */
/* From a path of Cloud Tasks to the call that answers it, and errors in Google's form. */
#include <stdio.h>
#include <string.h>

#include "admin/tasks/tasks.h"
#include "base/parse.h"
#include "base/str.h"
#include "base/url.h"

/* ---- errors ---- */

static const struct {
    enum hk_code code;
    unsigned status;
    const char *name;
} statuses[] = {
    {HK_INVALID, 400, "INVALID_ARGUMENT"}, {HK_RANGE, 429, "RESOURCE_EXHAUSTED"},
    {HK_TOOBIG, 400, "INVALID_ARGUMENT"},  {HK_NOTFOUND, 404, "NOT_FOUND"},
    {HK_EXISTS, 409, "ALREADY_EXISTS"},    {HK_CONFLICT, 409, "ABORTED"},
    {HK_DENIED, 403, "PERMISSION_DENIED"}, {HK_BUSY, 503, "UNAVAILABLE"},
    {HK_NOMEM, 503, "UNAVAILABLE"},        {HK_IO, 503, "UNAVAILABLE"},
    {HK_UNAVAILABLE, 503, "UNAVAILABLE"},  {HK_UNSUPPORTED, 501, "UNIMPLEMENTED"},
    {HK_CANCELLED, 499, "CANCELLED"},
};

static void write_error(struct hk_api_reply *out, unsigned status, const char *name, const char *message)
{
    struct hk_json json;
    hk_buf_reset(&out->body);
    hk_json_init(&json, &out->body, true);
    hk_json_object(&json);
    hk_json_key(&json, "error");
    hk_json_object(&json);
    hk_json_key(&json, "code");
    hk_json_u64(&json, status);
    hk_json_key(&json, "message");
    hk_json_cstr(&json, message);
    hk_json_key(&json, "status");
    hk_json_cstr(&json, name);
    hk_json_key(&json, "details");
    hk_json_array(&json);
    hk_json_end(&json);
    hk_json_end(&json);
    hk_json_end(&json);
    (void)hk_buf_addc(&out->body, '\n');
    out->status = status;
    out->content_type = "application/json";
    out->retry_after_s = status == 503 ? 1 : 0;
}

void hk_tasks_fail(struct hk_api_reply *out, enum hk_code code, const char *message)
{
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++)
        if (statuses[i].code == code) {
            write_error(out, statuses[i].status, statuses[i].name, message);
            return;
        }
    write_error(out, 500, "INTERNAL", message);
}

void hk_tasks_refuse(struct hk_api_reply *out, unsigned status, const char *message)
{
    static const struct {
        unsigned from, status;
        const char *name;
    } refusals[] = {
        {400, 400, "INVALID_ARGUMENT"},  {401, 401, "UNAUTHENTICATED"},
        {403, 403, "PERMISSION_DENIED"}, {413, 400, "INVALID_ARGUMENT"}, /* as Google's */
        {421, 400, "INVALID_ARGUMENT"},  {429, 429, "RESOURCE_EXHAUSTED"},
    };

    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++)
        if (refusals[i].from == status) {
            write_error(out, refusals[i].status, refusals[i].name, message);
            return;
        }
    write_error(out, status, "UNAVAILABLE", message);
}

void hk_tasks_wrong(struct hk_tasks_call *c, const char *message)
{
    hk_tasks_fail(c->out, HK_INVALID, message);
}

bool hk_tasks_ask(struct hk_tasks_call *c, const struct hk_op *op, const void *ask, void *result)
{
    struct hk_err err = {.message = ""};
    enum hk_code rc = hk_desk_ask(c->desk, op, &c->caller, ask, &c->mem, result, &err);
    if (rc != HK_OK)
        hk_tasks_fail(c->out, rc, err.message);
    return rc == HK_OK;
}

bool hk_tasks_read(struct hk_tasks_call *c, const struct hk_proto_type *type, void *out)
{
    struct hk_err err = {.message = ""};
    enum hk_code rc = hk_proto_read(c->request->body, type, &c->mem, out, &err);
    if (rc != HK_OK)
        hk_tasks_fail(c->out, rc, err.message);
    return rc == HK_OK;
}

/* ---- paths ---- */

enum level {
    AT_QUEUES, /* …/queues */
    AT_QUEUE,
    AT_TASKS,
    AT_TASK
};

static const struct route {
    const char *method;
    enum level level;
    const char *verb; /* behind a colon; "" = none */
    void (*call)(struct hk_tasks_call *c);
    const char *reason; /* for the audit */
} routes[] = {
    {"GET", AT_QUEUES, "", hk_tasks_queue_list, NULL},
    {"POST", AT_QUEUES, "", hk_tasks_queue_create, "Cloud Tasks: queues.create"},
    {"GET", AT_QUEUE, "", hk_tasks_queue_get, NULL},
    {"PATCH", AT_QUEUE, "", hk_tasks_queue_patch, "Cloud Tasks: queues.patch"},
    {"DELETE", AT_QUEUE, "", hk_tasks_queue_delete, "Cloud Tasks: queues.delete"},
    {"POST", AT_QUEUE, "purge", hk_tasks_queue_purge, "Cloud Tasks: queues.purge"},
    {"POST", AT_QUEUE, "pause", hk_tasks_queue_pause, "Cloud Tasks: queues.pause"},
    {"POST", AT_QUEUE, "resume", hk_tasks_queue_resume, "Cloud Tasks: queues.resume"},
    {"GET", AT_TASKS, "", hk_tasks_task_list, NULL},
    {"POST", AT_TASKS, "", hk_tasks_task_create, NULL},
    {"GET", AT_TASK, "", hk_tasks_task_get, NULL},
    {"DELETE", AT_TASK, "", hk_tasks_task_delete, "Cloud Tasks: tasks.delete"},
    {"POST", AT_TASK, "run", hk_tasks_task_run, "Cloud Tasks: tasks.run"},
};

bool hk_tasks_owns(const char *path)
{
    return strncmp(path, HK_TASKS_PREFIX, strlen(HK_TASKS_PREFIX)) == 0;
}

/* %XX are undone; what is no text, or holds what parts a path, stays as it was and fits nothing. */
static const char *decode(struct hk_tasks_call *c, struct hk_str raw)
{
    char *out = hk_pool_alloc(&c->mem, 1, raw.len + 1);
    if (!out)
        return NULL;
    size_t n = hk_url_decode(raw, out, raw.len);
    out[n] = '\0';
    return strlen(out) == n ? out : NULL;
}

static const char *join(struct hk_tasks_call *c, const char *parent, const char *word, const char *part)
{
    size_t room = strlen(parent) + strlen(word) + strlen(part) + 3;
    char *out = hk_pool_alloc(&c->mem, 1, room);
    if (out)
        (void)snprintf(out, room, "%s%s%s/%s", parent, parent[0] ? "/" : "", word, part);
    return out;
}

/* The next part of the path must be this word, and one behind it is taken: "projects/P". */
static bool take_pair(struct hk_tasks_call *c, struct hk_str *path, const char *word, const char **out)
{
    if (!path->ptr || !hk_str_eq(hk_str_cut(path, '/'), hk_str_of(word)) || !path->ptr)
        return false;
    *out = decode(c, hk_str_cut(path, '/'));
    return *out && **out;
}

/* What the path names, and the verb behind its last part. False: nothing of Cloud Tasks. */
static bool read_path(struct hk_tasks_call *c, enum level *out, struct hk_str *out_verb)
{
    struct hk_str path = hk_str_of(c->request->path + strlen("/v2/"));
    const char *project = NULL, *location = NULL, *queue = NULL;
    const char *colon = strrchr(c->request->path, ':'), *slash = strrchr(c->request->path, '/');
    *out_verb = (struct hk_str){"", 0};
    if (colon && slash && colon > slash) {
        *out_verb = hk_str_of(colon + 1);
        path.len -= out_verb->len + 1;
    }
    if (!take_pair(c, &path, "projects", &project) || !take_pair(c, &path, "locations", &location) ||
        !path.ptr)
        return false;
    c->parent = join(c, "", "projects", project);
    c->parent = c->parent ? join(c, c->parent, "locations", location) : NULL;
    if (!c->parent || !hk_str_eq(hk_str_cut(&path, '/'), hk_str_of("queues")))
        return false;
    *out = AT_QUEUES;
    if (!path.ptr)
        return true;
    queue = decode(c, hk_str_cut(&path, '/'));
    c->queue = queue ? join(c, c->parent, "queues", queue) : NULL;
    *out = AT_QUEUE;
    if (!c->queue || !path.ptr)
        return c->queue != NULL;
    if (!hk_str_eq(hk_str_cut(&path, '/'), hk_str_of("tasks")))
        return false;
    *out = AT_TASKS;
    if (!path.ptr)
        return true;
    c->task = decode(c, hk_str_cut(&path, '/'));
    *out = AT_TASK;
    return c->task && !path.ptr;
}

/* ---- the query ---- */

static bool is_of_all(const char *key)
{
    static const char *const names[] = {"alt",    "key",       "prettyPrint", "fields", "access_token",
                                        "userIp", "quotaUser", "callback",    "filter", "uploadType"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(key, names[i]) == 0 || (key[0] == '$' && strcmp(key + 1, names[i]) == 0))
            return true;
    return strcmp(key, "$.xgafv") == 0 || strcmp(key, "$httpHeaders") == 0;
}

static bool set_param(struct hk_tasks_call *c, const char *key, const char *value)
{
    int64_t number = 0;
    struct hk_str k = hk_str_of(key);
    if (strcmp(key, "$alt") == 0 || strcmp(key, "alt") == 0)
        c->numbers = strstr(value, "enum-encoding=int") != NULL;
    else if (hk_proto_is_name(k, "page_size")) {
        if (hk_parse_i64(hk_str_of(value), &c->limit, NULL) != HK_OK || c->limit < 0)
            return false;
    } else if (hk_proto_is_name(k, "page_token"))
        c->page_token = value[0] ? value : NULL;
    else if (hk_proto_is_name(k, "update_mask") || strcmp(key, "updateMask.paths") == 0)
        c->update_mask = value;
    else if (hk_proto_is_name(k, "response_view")) {
        if (!hk_proto_enum(hk_str_of(value), hk_tasks_views, &number))
            return false;
        c->full = number == 2;
    } else
        return is_of_all(key);
    return true;
}

static bool read_query(struct hk_tasks_call *c)
{
    struct hk_str rest = hk_str_of(c->request->query ? c->request->query : "");
    char message[200];
    while (rest.ptr && rest.len) {
        struct hk_str value = hk_str_cut(&rest, '&'), key = hk_str_cut(&value, '=');
        const char *name = decode(c, key), *text = decode(c, value.ptr ? value : (struct hk_str){"", 0});
        if (name && text && (!key.len || set_param(c, name, text)))
            continue;
        (void)snprintf(message, sizeof message,
                       "Invalid JSON payload received. Unknown name or bad value \"%.100s\" in the query.",
                       name ? name : "?");
        hk_tasks_wrong(c, message);
        return false;
    }
    return true;
}

/* ---- the whole ---- */

static const struct route *find_route(const char *method, enum level level, struct hk_str verb)
{
    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++)
        if (routes[i].level == level && strcmp(routes[i].method, method) == 0 &&
            hk_str_eq(verb, hk_str_of(routes[i].verb)))
            return &routes[i];
    return NULL;
}

static bool is_json(const struct hk_api_request *r)
{
    struct hk_str rest = hk_str_of(r->content_type ? r->content_type : "");
    return r->body.len == 0 || hk_str_eqi(hk_str_trim(hk_str_cut(&rest, ';')), hk_str_of("application/json"));
}

void hk_tasks_answer(struct hk_desk *desk, const struct hk_api_request *request, struct hk_api_reply *out)
{
    struct hk_tasks_call c = {.desk = desk,
                              .request = request,
                              .out = out,
                              .caller = {.role = request->role,
                                         .actor = request->actor,
                                         .may_reveal = request->may_reveal,
                                         .stop = request->stop,
                                         .arg = request->arg}};
    enum level level = AT_QUEUES;
    struct hk_str verb;
    out->content_type = "application/json";
    bool known = read_path(&c, &level, &verb);
    const struct route *route = known ? find_route(request->method, level, verb) : NULL;
    if (!route)
        hk_tasks_fail(out, HK_NOTFOUND, "Method not found: see docs/cloud-tasks.md for what there is.");
    else if (!is_json(request))
        hk_tasks_wrong(&c, "The request's body must be application/json.");
    else if (read_query(&c)) {
        c.caller.reason = route->reason;
        route->call(&c);
    }
    hk_pool_fini(&c.mem);
}
