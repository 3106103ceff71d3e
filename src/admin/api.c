/* SPDX-License-Identifier: Apache-2.0 */
/* From a request to a row of the desk's table, and from its result to JSON. */
#include <stdio.h>
#include <string.h>

#include "admin/api.h"
#include "admin/api_impl.h"
#include "admin/auth.h"
#include "admin/problem.h"
#include "admin/route.h"
#include "admin/tasks/tasks.h"
#include "base/json.h"
#include "base/parse.h"
#include "base/str.h"
#include "desk/dead.h"
#include "desk/definitions.h"
#include "desk/enqueue.h"
#include "desk/forms.h"
#include "desk/job.h"
#include "desk/whoami.h"

/* ---- which row ---- */

static bool has_holes(const struct hk_op *op)
{
    return strchr(op->route, '{') != NULL;
}

static void add_method(char allow[64], struct hk_str method)
{
    size_t used = strlen(allow);
    bool get = hk_str_eq(method, hk_str_of("GET"));
    (void)snprintf(allow + used, 64 - used, "%s%.*s%s", used ? ", " : "", (int)method.len, method.ptr,
                   get ? ", HEAD" : "");
}

static bool takes_method(const struct hk_op *op, const char *method)
{
    struct hk_str ours = hk_route_method(op->route);
    return hk_str_eq(ours, hk_str_of(method)) ||
           (strcmp(method, "HEAD") == 0 && hk_str_eq(ours, hk_str_of("GET")));
}

/* A path that is written out ("/dead-letters/groups") goes before one with a hole ("/dead-letters/{id}"). */
const struct hk_op *hk_api_find(const char *method, struct hk_str path, char out_allow[64])
{
    const struct hk_op *found = NULL;
    bool written_out = false;
    out_allow[0] = '\0';
    for (int holes = 0; holes < 2 && !found; holes++) {
        for (size_t i = 0; i < hk_n_ops; i++) {
            const struct hk_op *op = hk_ops[i];
            if (!op->route || has_holes(op) != (holes == 1) || !hk_route_fits(op->route, path))
                continue;
            written_out = written_out || holes == 0;
            if (takes_method(op, method))
                found = op;
            else
                add_method(out_allow, hk_route_method(op->route));
        }
        if (written_out)
            break; /* GET /dead-letters/requeue is no letter called "requeue" */
    }
    return found;
}

static struct hk_str below_prefix(const char *path)
{
    size_t len = strlen(HK_API_PREFIX);
    bool ours = strncmp(path, HK_API_PREFIX, len) == 0 && path[len] == '/';
    return ours ? hk_str_of(path + len) : (struct hk_str){NULL, 0};
}

bool hk_api_owns(const char *path)
{
    return below_prefix(path).ptr || strcmp(path, HK_API_PREFIX) == 0 || strcmp(path, "/openapi.json") == 0 ||
           hk_tasks_owns(path);
}

static bool carries_payloads(const struct hk_op *op)
{
    if (op == &hk_op_enqueue || op == &hk_op_enqueue_lines)
        return true;
    for (const struct hk_arg *a = op->args; a && a->name; a++)
        if (a->kind == HK_ARG_BYTES)
            return true;
    return false;
}

size_t hk_api_body_max(const char *method, const char *path)
{
    char allow[64];
    struct hk_str below = below_prefix(path);
    if (hk_tasks_owns(path))
        return strcmp(method, "POST") == 0 || strcmp(method, "PATCH") == 0 ? HK_TASKS_BODY_MAX : 0;
    const struct hk_op *op = below.ptr ? hk_api_find(method, below, allow) : NULL;
    if (!op) /* the answer is that there is nothing here, not that it came with a body */
        return HK_API_BODY_MAX;
    if (hk_str_eq(hk_route_method(op->route), hk_str_of("GET")))
        return 0;
    return carries_payloads(op) ? HK_API_LOAD_MAX : HK_API_BODY_MAX;
}

/* ---- problems ---- */

void hk_api_refuse(struct hk_api_reply *out, const struct hk_problem *problem)
{
    out->status = problem->status;
    out->content_type = "application/problem+json";
    out->etag[0] = '\0';
    if (problem->status == 429 || problem->status == 503 || problem->status == 409)
        out->retry_after_s = problem->status == 409 ? 0 : 1;
    hk_buf_reset(&out->body);
    hk_problem_write(problem, &out->body);
}

/* The error of an operation. A message about a field does not name it: "takes 1 to 5" or ": column 3: …". */
/* The length of an option's name at `text` ("--new-id …"), if that is a field of the request; else 0. */
static size_t option_at(const struct hk_op *op, const char *text)
{
    static const struct hk_arg of_all[] = {{.name = "reason"}, {.name = "reveal"}, {.name = NULL}};
    const struct hk_arg *const lists[] = {op ? op->args : NULL, of_all};
    size_t len = strncmp(text, "--", 2) == 0 ? strspn(text + 2, "abcdefghijklmnopqrstuvwxyz-") : 0;
    for (size_t i = 0; i < 2; i++)
        for (const struct hk_arg *a = lists[i]; len > 0 && a && a->name; a++) {
            bool same = strlen(a->name) == len;
            for (size_t k = 0; same && k < len; k++)
                same = text[2 + k] == (a->name[k] == '_' ? '-' : a->name[k]);
            if (same)
                return len;
        }
    return 0;
}

/* "use --new-id" is "use new_id" to somebody who sends JSON. */
static void name_fields(const struct hk_op *op, const char *text, char out[HK_ERR_MESSAGE_MAX])
{
    size_t used = 0;
    while (*text && used < HK_ERR_MESSAGE_MAX - 1) {
        size_t len = option_at(op, text);
        if (len == 0) {
            out[used++] = *text++;
            continue;
        }
        for (text += 2; len > 0 && used < HK_ERR_MESSAGE_MAX - 1; len--, text++)
            out[used++] = *text == '-' ? '_' : *text;
    }
    out[used] = '\0';
}

void hk_api_fail(struct hk_api *api, const char *field, const struct hk_err *err)
{
    char detail[HK_ERR_MESSAGE_MAX + 128], named[HK_ERR_MESSAGE_MAX];
    if (api->request->by_command)
        (void)snprintf(named, sizeof named, "%s", err->message);
    else
        name_fields(api->op, err->message, named);
    struct hk_problem p = {.status = hk_problem_status(err->code),
                           .code = hk_code_name(err->code),
                           .detail = named,
                           .field = field,
                           .about = named,
                           .below = field && field == api->desk->wrong_field ? api->desk->wrong_below : NULL,
                           .wrongs = field && field == api->desk->wrong_field ? api->desk->wrongs : NULL,
                           .in_body = !hk_route_in_query(api->op->route)};
    if (field) {
        (void)snprintf(detail, sizeof detail, named[0] == ':' ? "%s%s" : "%s %s", field, named);
        p.detail = detail;
    }
    if (err->code == HK_CONFLICT && api->request->if_match)
        p.status = 412;
    hk_api_refuse(api->out, &p);
    if (err->code == HK_BUSY)
        api->out->retry_after_s = 1;
}

static void fail_simply(struct hk_api *api, unsigned status, const char *code, const char *detail)
{
    hk_api_refuse(api->out, &(struct hk_problem){.status = status, .code = code, .detail = detail});
}

/* Whoever is not let in learns nothing of the store: errors name its address. */
void hk_api_refuse_caller(struct hk_api_reply *out, const char *path, const struct hk_auth_answer *who)
{
    const char *detail = who->status == 401 ? HK_AUTH_WORDS
                         : who->status == 429
                             ? "too many calls from this address had no valid token: wait, then try again"
                             : "the store cannot say who asks: try again";
    if (hk_tasks_owns(path))
        hk_tasks_refuse(out, who->status, detail);
    else
        hk_api_refuse(out, &(struct hk_problem){.status = who->status, .code = who->code, .detail = detail});
    if (who->status == 429)
        out->retry_after_s = (unsigned)((who->retry_after_ms + 999) / 1000);
}

void hk_api_refuse_at(struct hk_admin_reply *out, const char *path, unsigned status, const char *detail)
{
    struct hk_api_reply reply = {.status = status, .body = out->body};
    if (!hk_tasks_owns(path)) {
        hk_admin_problem(out, status, detail);
        return;
    }
    hk_tasks_refuse(&reply, status, detail);
    out->status = reply.status;
    out->content_type = reply.content_type;
    out->body = reply.body;
}

/* ---- reading ---- */

static bool is_json(const char *content_type)
{
    struct hk_str rest = hk_str_of(content_type), type = hk_str_trim(hk_str_cut(&rest, ';'));
    return hk_str_eqi(type, hk_str_of("application/json"));
}

/* A page in a browser can send a form or plain text anywhere without being asked; JSON it cannot. */
static bool check_type(struct hk_api *api)
{
    if (api->request->body.len == 0 || is_json(api->request->content_type))
        return true;
    fail_simply(api, 415, "UNSUPPORTED_MEDIA_TYPE", "the body must be application/json");
    return false;
}

/* Where the request of an operation has the version that If-Match names; NULL: it takes none. */
static uint64_t *version_of(const struct hk_api *api)
{
    if (api->op == &hk_op_dead_edit)
        return &((struct hk_dead_edit_ask *)api->asked)->version;
    if (api->op == &hk_op_destinations_update)
        return &((struct hk_dest_define_ask *)api->asked)->if_version;
    if (api->op == &hk_op_destinations_delete)
        return &((struct hk_dest_undefine_ask *)api->asked)->if_version;
    return NULL;
}

/* "3" of an ETag as this server makes it: the version of a letter's payload, or of a destination. */
static enum hk_code take_if_match(struct hk_api *api, struct hk_err *err)
{
    struct hk_str tag = hk_str_trim(hk_str_of(api->request->if_match));
    uint64_t version = 0, *at = version_of(api);
    if (!api->request->if_match || !at)
        return HK_OK;
    if (tag.len < 3 || tag.ptr[0] != '"' || tag.ptr[tag.len - 1] != '"' ||
        hk_parse_u64((struct hk_str){tag.ptr + 1, tag.len - 2}, &version, NULL) != HK_OK || version == 0)
        return hk_err_set(err, HK_CONFLICT, "If-Match is not an ETag of this");
    *at = version;
    return HK_OK;
}

bool hk_api_read(struct hk_api *api)
{
    struct hk_wire wire;
    struct hk_err err = {.code = HK_OK};
    const struct hk_api_request *r = api->request;
    enum hk_code rc = hk_wire_init(&wire, &api->mem, &err);
    if (rc == HK_OK)
        rc = hk_route_take(api->op->route, api->path, &wire, &err);
    if (rc == HK_OK && r->query)
        rc = hk_wire_add_query(&wire, hk_str_of(r->query), &err);
    if (rc == HK_OK && r->body.len > 0)
        rc = hk_wire_add_body(&wire, api->op, r->body, &err);
    if (rc == HK_OK)
        rc = hk_wire_read(&wire, api->op, api->asked, &api->said, &err);
    if (rc == HK_OK)
        rc = take_if_match(api, &err);
    if (rc != HK_OK)
        hk_api_fail(api, wire.wrong, &err);
    return rc == HK_OK;
}

/* ---- asking ---- */

struct hk_caller hk_api_caller(const struct hk_api *api)
{
    const struct hk_api_request *r = api->request;
    return (struct hk_caller){.role = r->role,
                              .actor = r->actor,
                              .reason = api->said.reason,
                              .may_reveal = r->may_reveal,
                              .reveal = api->said.reveal,
                              .background = api->said.background,
                              .stop = r->stop,
                              .arg = r->arg};
}

static void add_etag(struct hk_api *api)
{
    uint64_t version = 0;
    if (api->op == &hk_op_dead_open)
        version = ((const struct hk_dead_opened *)api->result)->version;
    else if (api->op == &hk_op_dead_edit)
        version = ((const struct hk_dead_edited *)api->result)->version;
    else if (api->op == &hk_op_destinations_show)
        version = ((const struct hk_dest_shown *)api->result)->version;
    else if (api->op == &hk_op_destinations_create || api->op == &hk_op_destinations_update)
        version = ((const struct hk_dest_defined *)api->result)->version;
    if (version > 0)
        (void)snprintf(api->out->etag, sizeof api->out->etag, "\"%llu\"", (unsigned long long)version);
}

void hk_api_write_result(struct hk_api *api)
{
    struct hk_json json;
    hk_json_init(&json, &api->out->body, false);
    hk_form_write(&json, api->said.background ? hk_form_job : api->op->form, api->result);
    (void)hk_buf_addc(&api->out->body, '\n');
    api->out->content_type = "application/json";
    if (api->said.background)
        api->out->status = HK_API_ACCEPTED;
    else
        add_etag(api);
}

/* From the body, since an answer that is given again has nothing else. */
static void add_location(struct hk_api *api)
{
    struct hk_job_shown shown = {.now_ms = 0};
    struct hk_err err = {.message = ""};
    if (api->out->status == HK_API_ACCEPTED &&
        hk_form_read(hk_buf_str(&api->out->body), hk_form_job, &api->mem, &shown, &err) == HK_OK)
        (void)snprintf(api->out->location, sizeof api->out->location, HK_API_PREFIX "/jobs/%lld",
                       (long long)shown.job.id);
}

static void ask_desk(struct hk_api *api)
{
    struct hk_err err = {.code = HK_OK};
    struct hk_caller caller = hk_api_caller(api);
    enum hk_code rc = hk_desk_ask(api->desk, api->op, &caller, api->asked, &api->mem, api->result, &err);
    if (rc != HK_OK)
        hk_api_fail(api, api->desk->wrong_field, &err);
    else
        hk_api_write_result(api);
}

static void answer_row(struct hk_api *api)
{
    api->asked = hk_pool_alloc(&api->mem, 1, api->op->request_size + 1);
    size_t room = api->op->result_size;
    if (room < sizeof(struct hk_job_shown))
        room = sizeof(struct hk_job_shown);
    api->result = hk_pool_alloc(&api->mem, 1, room + 1);
    if (!api->asked || !api->result) {
        fail_simply(api, 503, "NOMEM", "out of memory");
        return;
    }
    if (hk_api_is_stream(api->op))
        hk_api_stream(api);
    else if (check_type(api) && hk_api_read(api))
        ask_desk(api);
}

static void deny(struct hk_api *api)
{
    char detail[160];
    const char *verb = api->op->verb;
    (void)snprintf(detail, sizeof detail,
                   "'%s%s%s' needs the role %s, and you have the role %s: use another token", api->op->noun,
                   verb ? " " : "", verb ? verb : "", hk_role_name(api->op->role),
                   hk_role_name(api->request->role));
    fail_simply(api, 403, "DENIED", detail);
}

static void answer_api(struct hk_api *api)
{
    api->path = below_prefix(api->request->path);
    api->op = api->path.ptr ? hk_api_find(api->request->method, api->path, api->out->allow) : NULL;
    if (api->op && api->request->role < api->op->role)
        deny(api);
    else if (api->op)
        hk_api_answer_once(api, answer_row);
    else if (api->out->allow[0])
        fail_simply(api, 405, "METHOD_NOT_ALLOWED", NULL);
    else
        fail_simply(api, 404, "NO_SUCH_PATH", "there is nothing at this path: see /openapi.json");
}

void hk_api_answer(struct hk_desk *desk, const struct hk_api_request *request, struct hk_api_reply *out)
{
    struct hk_api api = {.desk = desk, .request = request, .out = out};
    *out = (struct hk_api_reply){.status = 200};
    hk_buf_init(&out->body, HK_API_REPLY_MAX);
    if (strcmp(request->path, "/openapi.json") == 0) {
        out->content_type = "application/json";
        hk_api_describe(&out->body);
    } else if (hk_tasks_owns(request->path)) {
        hk_tasks_answer(desk, request, out);
    } else {
        answer_api(&api);
        add_location(&api);
    }
    if (out->written)
        hk_buf_reset(&out->body);
    else if (hk_buf_status(&out->body) == HK_TOOBIG)
        fail_simply(&api, 413, "TOOBIG",
                    "the answer is larger than 64 MiB: ask for less, with a filter or a limit");
    else if (hk_buf_status(&out->body) != HK_OK)
        fail_simply(&api, 503, "NOMEM", "out of memory for the answer");
    if (out->status != 405)
        out->allow[0] = '\0';
    hk_pool_fini(&api.mem);
}
