/* SPDX-License-Identifier: Apache-2.0 */
/* Destinations of the store, from the operators' side. */
#include <stdio.h>
#include <string.h>

#include "base/show.h"
#include "base/str.h"
#include "config/definition.h"
#include "desk/definitions.h"
#include "desk/destinations.h"
#include "desk/forms.h"

enum {
    DEFINITION_ROOM = 2 * HK_DEFINITION_BYTES
};

static enum hk_code no_memory(struct hk_err *err)
{
    return hk_err_set(err, HK_NOMEM, "out of memory");
}

/* ---- which there are ---- */

enum hk_code hk_desk_definition(struct hk_desk *desk, const char *name, struct hk_pool *mem,
                                struct hk_definition *out, bool *out_found, struct hk_err *err)
{
    const struct hk_definitions *found = NULL;
    hk_desk_keep(desk, mem); /* callers ask in the midst of what the call before gave them */
    enum hk_code rc = desk->ops->definitions(desk->admin, name, &found, err);
    *out_found = rc == HK_OK && found->n > 0;
    if (rc != HK_OK || !*out_found)
        return rc;
    *out = found->items[0];
    hk_desk_keep(desk, mem);
    return HK_OK;
}

static bool is_of_file(const struct hk_desk *desk, const char *name)
{
    return hk_config_destination_named(desk->config, hk_str_of(name)) != NULL;
}

static enum hk_code read_stored(struct hk_desk *desk, const struct hk_definition *stored, bool secrets,
                                struct hk_pool *mem, struct hk_conf_destination *out, struct hk_err *err)
{
    const char *name = hk_pool_copy_str(mem, stored->name);
    const struct hk_definition_ask ask = {
        .config = desk->config, .name = name, .text = stored->text, .secrets = secrets};
    return name ? hk_config_define(&ask, mem, out, NULL, err) : no_memory(err);
}

enum hk_code hk_desk_destination(struct hk_desk *desk, struct hk_str name, bool secrets, struct hk_pool *mem,
                                 const struct hk_conf_destination **out, struct hk_err *err)
{
    struct hk_definition stored;
    bool found = false;
    *out = hk_config_destination_named(desk->config, name);
    if (*out || !desk->ops)
        return HK_OK;
    const char *cname = hk_pool_copy_str(mem, name);
    enum hk_code rc = cname ? hk_desk_definition(desk, cname, mem, &stored, &found, err) : no_memory(err);
    if (rc != HK_OK || !found)
        return rc;
    struct hk_conf_destination *conf = hk_pool_alloc(mem, 1, sizeof *conf);
    rc = conf ? read_stored(desk, &stored, secrets, mem, conf, err) : no_memory(err);
    if (rc == HK_OK)
        *out = conf;
    return rc;
}

enum hk_code hk_desk_ordered(struct hk_desk *desk, const struct hk_str *names, size_t n, struct hk_pool *mem,
                             struct hk_blocking **out, size_t *out_n, struct hk_err *err)
{
    const struct hk_definitions *kept = NULL;
    size_t n_items = 0;
    enum hk_code rc = names ? desk->ops->definitions_of(desk->admin, names, n, &kept, err)
                            : desk->ops->definitions(desk->admin, NULL, &kept, err);
    if (rc != HK_OK)
        return rc;
    struct hk_blocking *items = hk_pool_alloc(mem, kept->n + 1, sizeof *items);
    if (!items)
        return no_memory(err);
    for (size_t i = 0; i < kept->n; i++) {
        struct hk_definition_order order = hk_config_definition_order(kept->items[i].text);
        if (!order.by_key)
            continue;
        const char *name = hk_pool_copy_str(mem, kept->items[i].name);
        if (!name)
            return no_memory(err);
        items[n_items++] = (struct hk_blocking){.destination = name, .skip_dead = order.skip_dead};
    }
    *out = items;
    *out_n = n_items;
    return HK_OK;
}

/* ---- define ---- */

static enum hk_code refuse_files(const char *name, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    return hk_err_set(err, HK_CONFLICT,
                      "destination %s is defined in the configuration file: change it there",
                      hk_show(hk_str_of(name), shown));
}

/* As JSON in one line, checked. */
static enum hk_code check_definition(struct hk_desk *desk, const char *name, struct hk_str text,
                                     struct hk_pool *mem, struct hk_str *out_json, struct hk_err *err)
{
    struct hk_conf_destination conf;
    struct hk_definition_wrongs *wrongs = hk_pool_alloc(mem, 1, sizeof *wrongs);
    struct hk_err why = {.message = ""};
    struct hk_buf json;
    hk_buf_init(&json, DEFINITION_ROOM);
    enum hk_code rc = hk_config_definition_json(text, &json, &why);
    if (rc == HK_OK && !wrongs)
        rc = HK_NOMEM;
    if (rc == HK_OK)
        rc = hk_config_define(&(struct hk_definition_ask){.config = desk->config, .name = name, .text = text},
                              mem, &conf, wrongs, &why);
    const char *copy = rc == HK_OK ? hk_pool_copy_str(mem, hk_buf_str(&json)) : NULL;
    *out_json = (struct hk_str){copy, json.len};
    hk_buf_fini(&json);
    if (rc == HK_INVALID && wrongs)
        return hk_desk_wrong_below(desk, "definition", wrongs, why.message, err);
    return rc == HK_OK && copy ? HK_OK : no_memory(err);
}

enum hk_code hk_desk_define(struct hk_desk *desk, const struct hk_caller *caller,
                            const struct hk_desk_define *ask, struct hk_pool *mem, struct hk_defined *out,
                            struct hk_err *err)
{
    struct hk_str json;
    if (is_of_file(desk, ask->name))
        return refuse_files(ask->name, err);
    enum hk_code rc = check_definition(desk, ask->name, ask->text, mem, &json, err);
    if (rc != HK_OK)
        return rc;
    const struct hk_define define = {.name = ask->name,
                                     .text = json,
                                     .version = ask->version,
                                     .max = desk->config->definitions.max,
                                     .actor = caller->actor,
                                     .reason = caller->reason ? caller->reason : ""};
    if (define.max == 0)
        return hk_err_set(err, HK_DENIED,
                          "\"definitions.max\" of the configuration is 0: the store keeps no destinations");
    return desk->ops->define(desk->admin, &define, out, err);
}

static enum hk_code define_as(struct hk_desk *desk, const struct hk_caller *caller,
                              const struct hk_dest_define_ask *ask, int64_t version, struct hk_pool *mem,
                              struct hk_dest_defined *out, struct hk_err *err)
{
    struct hk_defined done;
    const struct hk_desk_define define = {
        .name = ask->destination, .text = ask->definition, .version = version};
    enum hk_code rc = hk_desk_define(desk, caller, &define, mem, &done, err);
    if (rc == HK_OK)
        *out = (struct hk_dest_defined){.destination = ask->destination,
                                        .version = (uint64_t)done.version,
                                        .did = done.made ? "created" : "updated",
                                        .now_ms = done.now_ms};
    return rc;
}

static enum hk_code create_destination(struct hk_desk *desk, const struct hk_caller *caller,
                                       const struct hk_dest_define_ask *ask, struct hk_pool *mem,
                                       struct hk_dest_defined *out, struct hk_err *err)
{
    return define_as(desk, caller, ask, HK_DEFINITION_MISSING, mem, out, err);
}

/* One that is not there is not made: a name that is misspelt would be another destination. */
static enum hk_code update_destination(struct hk_desk *desk, const struct hk_caller *caller,
                                       const struct hk_dest_define_ask *ask, struct hk_pool *mem,
                                       struct hk_dest_defined *out, struct hk_err *err)
{
    struct hk_definition stored = {.version = 0};
    bool found = false;
    if (is_of_file(desk, ask->destination))
        return refuse_files(ask->destination, err);
    enum hk_code rc = HK_OK;
    if (!ask->if_version)
        rc = hk_desk_definition(desk, ask->destination, mem, &stored, &found, err);
    if (rc == HK_OK && !ask->if_version && !found)
        rc = hk_definition_refused(HK_DEFINITION_ANY, 0, err);
    int64_t version = ask->if_version ? (int64_t)ask->if_version : stored.version;
    return rc == HK_OK ? define_as(desk, caller, ask, version, mem, out, err) : rc;
}

/* ---- delete ---- */

/* How many wait; false: nobody can say, or none do. */
static bool count_waiting(const struct hk_desk *desk, const char *name, uint64_t *out)
{
    const struct hk_store_status *s = NULL;
    struct hk_err err;
    *out = 0;
    if (desk->ops->status(desk->admin, &s, &err) != HK_OK)
        return false;
    for (size_t i = 0; i < s->n_dests; i++)
        if (hk_str_eq(s->dests[i].name, hk_str_of(name)))
            *out = s->dests[i].pending.n + s->dests[i].retrying.n + s->dests[i].processing;
    return *out > 0;
}

enum hk_code hk_desk_undefine(struct hk_desk *desk, const struct hk_caller *caller, const char *name,
                              int64_t version, bool force, struct hk_defined *out, struct hk_err *err)
{
    const struct hk_undefine ask = {.name = name,
                                    .version = version,
                                    .force = force || is_of_file(desk, name), /* the file's takes them */
                                    .actor = caller->actor,
                                    .reason = caller->reason ? caller->reason : ""};
    uint64_t waiting = 0;
    enum hk_code rc = desk->ops->undefine(desk->admin, &ask, out, err);
    if (rc == HK_NOTFOUND && is_of_file(desk, name))
        return refuse_files(name, err);
    if (rc == HK_CONFLICT && !ask.force &&
        count_waiting(desk, name, &waiting)) /* that comes before a version */
        return hk_err_set(
            err, HK_CONFLICT,
            "%llu message%s wait%s for it. --force deletes it anyway: each waiting message becomes a dead "
            "letter (UNKNOWN_DESTINATION) as soon as it is due, and 'dead requeue --to' can send it elsewhere",
            (unsigned long long)waiting, waiting == 1 ? "" : "s", waiting == 1 ? "s" : "");
    return rc;
}

static enum hk_code delete_destination(struct hk_desk *desk, const struct hk_caller *caller,
                                       const struct hk_dest_undefine_ask *ask, struct hk_pool *mem,
                                       struct hk_dest_defined *out, struct hk_err *err)
{
    struct hk_defined done;
    (void)mem;
    int64_t version = ask->if_version ? (int64_t)ask->if_version : HK_DEFINITION_ANY;
    enum hk_code rc = hk_desk_undefine(desk, caller, ask->destination, version, ask->force, &done, err);
    if (rc == HK_OK)
        *out = (struct hk_dest_defined){.destination = ask->destination,
                                        .version = (uint64_t)done.version,
                                        .did = "deleted",
                                        .now_ms = done.now_ms};
    return rc;
}

/* ---- show ---- */

static void show_conf(const struct hk_conf_destination *conf, struct hk_pool *mem, struct hk_dest_shown *out)
{
    char room[HK_URL_SHOWN_MAX];
    const char *url = hk_conf_url(conf, room);
    out->kind = hk_conf_kind_name(conf->kind);
    out->url = url ? hk_pool_copy_str(mem, hk_str_of(url)) : NULL;
    out->policy = conf->policy;
    out->order = conf->order == HK_ORDER_KEY ? "key" : "none";
    out->rate_per_s = conf->limits.rate_per_s > 0 ? conf->limits.rate_per_s : -1;
    out->concurrency = conf->limits.concurrency;
}

static void show_stored(const struct hk_definition *stored, const struct hk_caller *caller,
                        struct hk_dest_shown *out)
{
    out->version = (uint64_t)stored->version;
    if (caller->role >= HK_ROLE_ADMIN)
        out->definition = stored->text;
    out->created_ms = stored->created_ms;
    out->changed_ms = stored->changed_ms;
    out->created_by = stored->created_by;
    out->changed_by = stored->changed_by;
    out->reason = stored->reason;
}

/* Where figures cannot be read nobody says so: the rest is worth showing. */
static struct hk_unusable unusable_of(struct hk_desk *desk, struct hk_str name, struct hk_pool *mem)
{
    struct hk_unusable unusable = {.why = {"", 0}};
    const struct hk_figures *figures = NULL;
    struct hk_err err = {.message = ""};
    if (desk->ops->figures(desk->admin, &figures, &err) != HK_OK)
        return unusable;
    hk_figures_unusable(figures, name, &unusable);
    hk_desk_keep(desk, mem);
    return unusable;
}

static enum hk_code show_destination(struct hk_desk *desk, const struct hk_caller *caller,
                                     const struct hk_dest_show_ask *ask, struct hk_pool *mem,
                                     struct hk_dest_shown *out, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    struct hk_definition stored;
    struct hk_conf_destination parsed;
    struct hk_err why = {.message = ""};
    bool found = false;
    const struct hk_conf_destination *conf =
        hk_config_destination_named(desk->config, hk_str_of(ask->destination));
    enum hk_code rc = hk_desk_definition(desk, ask->destination, mem, &stored, &found, err);
    if (rc != HK_OK)
        return rc;
    if (!conf && !found)
        return hk_err_set(err, HK_NOTFOUND,
                          "there is no destination %s; 'hikyaku destinations list' shows them",
                          hk_show(hk_str_of(ask->destination), shown));
    struct hk_dest_shown o = {.destination = ask->destination,
                              .from = conf ? "file" : "store",
                              .also_stored = conf && found,
                              .rate_per_s = -1};
    rc = conf ? HK_OK : read_stored(desk, &stored, false, mem, &parsed, &why);
    if (rc == HK_OK)
        show_conf(conf ? conf : &parsed, mem, &o);
    else
        o.problem = hk_pool_copy_str(mem, hk_str_of(why.message));
    if (!conf)
        show_stored(&stored, caller, &o);
    o.unusable =
        conf ? (struct hk_unusable){.why = {"", 0}} : unusable_of(desk, hk_str_of(ask->destination), mem);
    *out = o;
    return HK_OK;
}

/* ---- apply ---- */

struct apply {
    struct hk_desk *desk;
    const struct hk_caller *caller;
    const struct hk_dest_apply_ask *ask;
    struct hk_pool *mem;
    struct hk_definition_item *items;
    size_t n;
    struct hk_definitions stored;
    bool *stays; /* one per stored: it is among the items */
    struct hk_dest_applied out;
};

static int compare_names(struct hk_str a, struct hk_str b)
{
    int cmp = memcmp(a.ptr, b.ptr, a.len < b.len ? a.len : b.len);
    return cmp ? cmp : (a.len > b.len) - (a.len < b.len);
}

/* They are in the order of their names. */
static const struct hk_definition *stored_as(struct apply *a, struct hk_str name)
{
    size_t lo = 0, hi = a->stored.n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int cmp = compare_names(a->stored.items[mid].name, name);
        if (cmp == 0) {
            a->stays[mid] = true;
            return &a->stored.items[mid];
        }
        if (cmp < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

/* All are looked at before anything is written. */
static enum hk_code check_all(struct apply *a, struct hk_err *err)
{
    struct hk_str json;
    enum hk_code rc = HK_OK;
    for (size_t i = 0; rc == HK_OK && i < a->n; i++) {
        struct hk_err why = {.message = ""};
        if (is_of_file(a->desk, a->items[i].name))
            return refuse_files(a->items[i].name, err);
        rc = check_definition(a->desk, a->items[i].name, a->items[i].text, a->mem, &json, &why);
        if (rc == HK_INVALID)
            rc = hk_desk_wrong(a->desk, "definitions", err, ": %s%s", a->items[i].name, why.message);
        else if (rc != HK_OK)
            *err = why;
    }
    return rc;
}

static void add_row(struct apply *a, struct hk_str name, const char *did, int64_t version)
{
    a->out.items[a->out.n++] =
        (struct hk_dest_applied_row){.destination = name, .did = did, .version = (uint64_t)version};
}

static enum hk_code apply_one(struct apply *a, const struct hk_definition_item *item, struct hk_err *err)
{
    const struct hk_definition *was = stored_as(a, hk_str_of(item->name));
    struct hk_defined done = {.version = was ? was->version + 1 : 1};
    enum hk_code rc = HK_OK;
    if (was && hk_str_eq(was->text, item->text)) {
        a->out.unchanged++;
        add_row(a, hk_str_of(item->name), "unchanged", was->version);
        return HK_OK;
    }
    if (!a->ask->dry_run)
        rc = hk_desk_define(a->desk, a->caller,
                            &(struct hk_desk_define){.name = item->name,
                                                     .text = item->text,
                                                     .version = was ? was->version : HK_DEFINITION_MISSING},
                            a->mem, &done, err);
    if (rc != HK_OK)
        return rc;
    a->out.created += !was;
    a->out.updated += was != NULL;
    add_row(a, hk_str_of(item->name), was ? "updated" : "created", done.version);
    return HK_OK;
}

/* Queues are made by clients and by 'queues create': no file of destinations has them, and they would take their tasks along. */
static bool is_pruned(const struct apply *a, size_t i)
{
    return !a->stays[i] && !hk_config_definition_is_queue(a->stored.items[i].text);
}

static enum hk_code prune_one(struct apply *a, const struct hk_definition *was, struct hk_err *err)
{
    struct hk_defined done;
    const char *name = hk_pool_copy_str(a->mem, was->name);
    enum hk_code rc = name ? HK_OK : no_memory(err);
    if (rc == HK_OK && !a->ask->dry_run)
        rc = hk_desk_undefine(a->desk, a->caller, name, was->version, false, &done, err);
    if (rc != HK_OK)
        return rc;
    a->out.deleted++;
    add_row(a, was->name, "deleted", was->version);
    return HK_OK;
}

static void apply_all(struct apply *a)
{
    struct hk_err err = {.message = ""};
    enum hk_code rc = HK_OK;
    size_t done = 0, total = a->n + (a->ask->prune ? a->stored.n : 0);
    for (size_t i = 0; rc == HK_OK && i < a->n; i++) {
        rc = hk_caller_stops(a->caller) ? hk_err_set(&err, HK_CANCELLED, "interrupted")
                                        : apply_one(a, &a->items[i], &err);
        hk_caller_progress(a->caller, ++done, total);
    }
    for (size_t i = 0; rc == HK_OK && a->ask->prune && i < a->stored.n; i++) {
        if (is_pruned(a, i))
            rc = hk_caller_stops(a->caller) ? hk_err_set(&err, HK_CANCELLED, "interrupted")
                                            : prune_one(a, &a->stored.items[i], &err);
        hk_caller_progress(a->caller, ++done, total);
    }
    if (rc != HK_OK)
        a->out.stopped = err;
}

static enum hk_code apply_destinations(struct hk_desk *desk, const struct hk_caller *caller,
                                       const struct hk_dest_apply_ask *ask, struct hk_pool *mem,
                                       struct hk_dest_applied *out, struct hk_err *err)
{
    struct apply a = {
        .desk = desk, .caller = caller, .ask = ask, .mem = mem, .out = {.dry_run = ask->dry_run}};
    const struct hk_definitions *stored = NULL;
    struct hk_err why = {.message = ""};
    if (!ask->definitions.ptr)
        return hk_desk_wrong(desk, "definitions", err, "is needed: destinations by name");
    enum hk_code rc = hk_config_definitions(ask->definitions, mem, &a.items, &a.n, &why);
    if (rc == HK_INVALID)
        return hk_desk_wrong(desk, "definitions", err, ": %s", why.message);
    if (rc != HK_OK)
        return no_memory(err);
    rc = check_all(&a, err);
    if (rc == HK_OK)
        rc = desk->ops->definitions(desk->admin, NULL, &stored, err);
    if (rc != HK_OK)
        return rc;
    a.stored = *stored;
    hk_desk_keep(desk, mem);
    a.out.items = hk_pool_alloc(mem, a.n + a.stored.n + 1, sizeof *a.out.items);
    a.stays = hk_pool_alloc(mem, a.stored.n + 1, sizeof *a.stays);
    if (!a.out.items || !a.stays)
        return no_memory(err);
    apply_all(&a);
    if (a.out.stopped.code != HK_OK && a.out.created + a.out.updated + a.out.deleted == 0) {
        *err = a.out.stopped;
        return err->code;
    }
    *out = a.out;
    return HK_OK;
}

/* ---- the table ---- */

static enum hk_code check_define(struct hk_desk *desk, const void *request, struct hk_err *err)
{
    const struct hk_dest_define_ask *ask = request;
    if (!ask->definition.ptr)
        return hk_desk_wrong(desk, "definition", err,
                             "is needed: what would stand under its name in the configuration");
    if (ask->definition.len > HK_DEFINITION_BYTES)
        return hk_desk_wrong(desk, "definition", err, "must not be larger than %d KiB",
                             HK_DEFINITION_BYTES / 1024);
    return HK_OK;
}

HK_OP_RUN(show_destination)
HK_OP_RUN(create_destination)
HK_OP_RUN(update_destination)
HK_OP_RUN(delete_destination)
HK_OP_RUN(apply_destinations)

#define VERSION_MAX 9007199254740991.0

static const struct hk_arg show_args[] = {{HK_SUBJECT(hk_dest_show_ask, destination, "NAME", NULL)},
                                          {.name = NULL}};

static const struct hk_arg create_args[] = {
    {HK_SUBJECT(hk_dest_define_ask, destination, "NAME", NULL)},
    {HK_ARG(hk_dest_define_ask, definition, HK_ARG_BYTES, "TEXT|-|@FILE",
            "the definition, as in the configuration, in YAML or JSON")},
    {.name = NULL}};

static const struct hk_arg update_args[] = {
    {HK_SUBJECT(hk_dest_define_ask, destination, "NAME", NULL)},
    {HK_ARG(hk_dest_define_ask, definition, HK_ARG_BYTES, "TEXT|-|@FILE",
            "the whole definition, in YAML or JSON; it replaces the old one")},
    {HK_ARG(hk_dest_define_ask, if_version, HK_ARG_NUMBER, "N",
            "only if it has this version (default: whatever version it has)"),
     .hi = VERSION_MAX},
    {.name = NULL}};

static const struct hk_arg delete_args[] = {
    {HK_SUBJECT(hk_dest_undefine_ask, destination, "NAME", NULL)},
    {HK_ARG(hk_dest_undefine_ask, if_version, HK_ARG_NUMBER, "N",
            "only if it has this version (default: whatever version it has)"),
     .hi = VERSION_MAX},
    {HK_ARG(hk_dest_undefine_ask, force, HK_ARG_FLAG, NULL,
            "even if messages wait for it: they become dead letters (UNKNOWN_DESTINATION)")},
    {.name = NULL}};

static const struct hk_arg apply_args[] = {
    {HK_ARG(hk_dest_apply_ask, definitions, HK_ARG_BYTES, "TEXT|-|@FILE",
            "destinations by name, as YAML or JSON, or a file that has them under \"destinations\"")},
    {HK_ARG(hk_dest_apply_ask, prune, HK_ARG_FLAG, NULL,
            "delete destinations of the store that are not among them; queues stay")},
    {HK_ARG(hk_dest_apply_ask, dry_run, HK_ARG_FLAG, NULL, "say what would change, and change nothing")},
    {.name = NULL}};

const struct hk_op hk_op_destinations_show = {
    .noun = "destinations",
    .verb = "show",
    .summary = "show one destination, where it is defined, and its version",
    .details = "The definition of a destination of the store is shown to admins.",
    .route = "GET /destinations/{destination}",
    .role = HK_ROLE_VIEWER,
    .store = true,
    .args = show_args,
    .request_size = sizeof(struct hk_dest_show_ask),
    .result_size = sizeof(struct hk_dest_shown),
    .run = show_destination_op,
    .form = hk_form_destination_shown};

const struct hk_op hk_op_destinations_create = {
    .noun = "destinations",
    .verb = "create",
    .summary = "create a destination that every relay uses within a second",
    .details =
        "The store keeps it. Its definition is what would stand under its name in the configuration. Secrets\n"
        "stand there by reference only: ${HIKYAKU_SECRET_NAME} for a variable of the relay, ${file:NAME} for a\n"
        "file of its definitions.secrets.",
    .route = "POST /destinations",
    .role = HK_ROLE_ADMIN,
    .store = true,
    .changes = true,
    .needs_reason = true,
    .args = create_args,
    .request_size = sizeof(struct hk_dest_define_ask),
    .result_size = sizeof(struct hk_dest_defined),
    .check = check_define,
    .run = create_destination_op,
    .form = hk_form_destination_defined};

const struct hk_op hk_op_destinations_update = {
    .noun = "destinations",
    .verb = "update",
    .summary = "replace the definition of a destination of the store",
    .details = "Requests on their way end as they began; the next request follows the new definition.",
    .route = "PUT /destinations/{destination}",
    .role = HK_ROLE_ADMIN,
    .store = true,
    .changes = true,
    .needs_reason = true,
    .args = update_args,
    .request_size = sizeof(struct hk_dest_define_ask),
    .result_size = sizeof(struct hk_dest_defined),
    .check = check_define,
    .run = update_destination_op,
    .form = hk_form_destination_defined};

const struct hk_op hk_op_destinations_delete = {
    .noun = "destinations",
    .verb = "delete",
    .summary = "delete a destination of the store",
    .details = "Refused while messages wait for it, unless it is forced.",
    .route = "DELETE /destinations/{destination}",
    .role = HK_ROLE_ADMIN,
    .store = true,
    .changes = true,
    .needs_reason = true,
    .args = delete_args,
    .request_size = sizeof(struct hk_dest_undefine_ask),
    .result_size = sizeof(struct hk_dest_defined),
    .run = delete_destination_op,
    .form = hk_form_destination_defined};

const struct hk_op hk_op_destinations_apply = {
    .noun = "destinations",
    .verb = "apply",
    .summary = "create and update many destinations of the store from one file",
    .details = "All definitions are checked before the first is written.",
    .route = "POST /destinations/apply",
    .role = HK_ROLE_ADMIN,
    .store = true,
    .changes = true,
    .needs_reason = true,
    .is_long = true,
    .args = apply_args,
    .request_size = sizeof(struct hk_dest_apply_ask),
    .result_size = sizeof(struct hk_dest_applied),
    .run = apply_destinations_op,
    .form = hk_form_destinations_applied};
