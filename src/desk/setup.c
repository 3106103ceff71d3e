/* SPDX-License-Identifier: Apache-2.0 */
/* The schema of the database, the configuration file, and which program this is. */
#include <string.h>

#include <hikyaku/hikyaku.h>

#include "alert/conf.h"
#include "base/buf.h"
#include "config/tables.h"
#include "desk/forms.h"
#include "desk/setup.h"
#include "store/store.h"

#define SQL_MAX ((size_t)4 << 20)

/* Copies the written text into `mem`, and frees the buffer. */
static enum hk_code keep_text(struct hk_buf *text, struct hk_pool *mem, struct hk_str *out,
                              struct hk_err *err)
{
    char *copy = hk_buf_status(text) == HK_OK ? hk_pool_copy(mem, hk_buf_cstr(text), text->len) : NULL;
    *out = (struct hk_str){copy, text->len};
    hk_buf_fini(text);
    return copy ? HK_OK : hk_err_set(err, HK_NOMEM, "out of memory");
}

/* ---- init ---- */

static enum hk_code check_init(struct hk_desk *desk, const void *request, struct hk_err *err)
{
    const struct hk_init_ask *ask = request;
    (void)desk;
    if (ask->notify && ask->no_notify)
        return hk_err_set(err, HK_INVALID, "--notify and --no-notify: one of them");
    return HK_OK;
}

/* Does this kind of store have what is asked for? */
static enum hk_code check_kind(struct hk_desk *desk, const struct hk_store_ops *ops,
                               const struct hk_init_ask *ask, struct hk_err *err)
{
    if ((ask->notify || ask->no_notify) && !ops->listen)
        return hk_desk_wrong(desk, ask->notify ? "notify" : "no_notify", err, ": relays on %s only poll",
                             ops->name);
    if (ask->partition_sent && !ops->partitions)
        return hk_desk_wrong(desk, "partition_sent", err, ": a %s database has no partitions", ops->name);
    if (ask->print_grants && !ops->grants)
        return hk_desk_wrong(desk, "print_grants", err, ": a %s database has no roles", ops->name);
    return HK_OK;
}

static enum hk_code write_grants(const struct hk_store_ops *ops, const char *url,
                                 const struct hk_init_ask *ask, struct hk_buf *sql, struct hk_err *err)
{
    const struct hk_store_roles roles = {.notify = ask->notify,
                                         .partitions = ask->partition_sent,
                                         .app = ask->app_role ? ask->app_role : "hikyaku_app",
                                         .relay = ask->relay_role ? ask->relay_role : "hikyaku_relay",
                                         .viewer = ask->viewer_role ? ask->viewer_role : "hikyaku_viewer"};
    return ops->grants(url, &roles, sql, err);
}

static enum hk_code init_schema(const struct hk_store_ops *ops, const char *url,
                                const struct hk_init_ask *ask, struct hk_buf *sql,
                                struct hk_store_inited *out, struct hk_err *err)
{
    const struct hk_store_init how = {.allow_wal = ask->wal,
                                      .partition_sent = ask->partition_sent,
                                      .notify = ask->notify      ? HK_NOTIFY_ON
                                                : ask->no_notify ? HK_NOTIFY_OFF
                                                                 : HK_NOTIFY_AS_IT_IS,
                                      .print = ask->print ? sql : NULL};
    return ops->init(url, &how, out, err);
}

static enum hk_code init(struct hk_desk *desk, const struct hk_caller *caller, const struct hk_init_ask *ask,
                         struct hk_pool *mem, struct hk_inited *out, struct hk_err *err)
{
    struct hk_buf sql;
    (void)caller;
    *out = (struct hk_inited){.sql = {NULL, 0}};
    const struct hk_store_ops *ops = hk_store_by_url(desk->url, err);
    if (!ops)
        return err->code;
    enum hk_code rc = check_kind(desk, ops, ask, err);
    if (rc != HK_OK)
        return rc;
    (void)hk_store_place(desk->url, out->place);
    hk_buf_init(&sql, SQL_MAX);
    rc = ask->print_grants ? write_grants(ops, desk->url, ask, &sql, err)
                           : init_schema(ops, desk->url, ask, &sql, &out->is, err);
    if (rc == HK_OK && (ask->print || ask->print_grants))
        return keep_text(&sql, mem, &out->sql, err);
    hk_buf_fini(&sql);
    return rc;
}

/* ---- config check ---- */

static enum hk_code load(const struct hk_config_check_ask *ask, struct hk_diags *diags,
                         struct hk_config **out)
{
    if (!ask->is_text)
        return hk_config_load(ask->file, NULL, diags, out);
    if (ask->read == HK_OK)
        return hk_config_parse(ask->text.ptr, ask->text.len, ask->file, NULL, diags, out);
    hk_diags_add(diags, HK_SEVERITY_ERROR, ask->file, (struct hk_pos){0, 0},
                 ask->read == HK_TOOBIG ? "larger than 4 MiB" : "cannot be read");
    return ask->read;
}

/* Adds what a relay would report when it starts. A file that is missing here may exist where the relay runs. */
static enum hk_code check_channels(const char *file, const struct hk_config *config, struct hk_diags *diags)
{
    const struct hk_conf_channel *conf = NULL;

    for (size_t i = 0; (conf = hk_config_channel(config, i)) != NULL; i++) {
        struct hk_err err = {.message = ""};
        enum hk_code rc = hk_channel_check_conf(config, conf, &err);
        if (rc == HK_NOMEM)
            return rc;
        if (rc != HK_OK)
            hk_diags_add(diags, rc == HK_NOTFOUND ? HK_SEVERITY_WARNING : HK_SEVERITY_ERROR, file,
                         (struct hk_pos){0, 0}, "channel \"%s\": %s%s", conf->name, err.message,
                         rc == HK_NOTFOUND ? " here; no relay starts like this" : "");
    }
    return HK_OK;
}

/* A relay says so when it starts. Here rather than where the file is read: --db may name another store. */
static void check_store(const char *file, const struct hk_config *config, struct hk_diags *diags)
{
    struct hk_err err = {.message = ""};
    if (!hk_store_by_url(config->store.url, &err))
        hk_diags_add(diags, HK_SEVERITY_ERROR, file, (struct hk_pos){0, 0}, "store: %s", err.message);
}

/* Does it hold policies and nothing else? Then it is for programs that retry by themselves. */
static bool is_of_policies(const struct hk_config *config)
{
    bool others = false;
    for (size_t i = 0; i < hk_root_table.n_opts; i++)
        others |= HK_GIVEN(config, i) && strcmp(hk_root_table.opts[i].key, "policies") != 0 &&
                  strcmp(hk_root_table.opts[i].key, "default_policy") != 0;
    return config->policy_conf.n > 0 && !others;
}

/* It is allowed, as `run` works without any file. */
static void check_destinations(const char *file, const struct hk_config *config, struct hk_diags *diags)
{
    if (config->destinations.n == 0 && !is_of_policies(config) && !config->queues.on)
        hk_diags_add(
            diags, HK_SEVERITY_WARNING, file, (struct hk_pos){0, 0},
            "no destinations: a relay with this file delivers nothing; it makes every message a dead "
            "letter (UNKNOWN_DESTINATION)");
}

/* Copies what was found to `mem`, and frees it. */
static enum hk_code keep_found(struct hk_diags *diags, struct hk_pool *mem, struct hk_config_checked *out)
{
    enum hk_code rc = HK_OK;
    out->found = *diags;
    out->errors = hk_pool_alloc(mem, diags->n + 1, sizeof *out->errors);
    out->warnings = hk_pool_alloc(mem, diags->n + 1, sizeof *out->warnings);
    for (size_t i = 0; i < diags->n; i++) {
        struct hk_diag *d = &out->found.items[i];
        d->file = hk_pool_copy(mem, d->file, strlen(d->file));
        d->message = hk_pool_copy(mem, d->message, strlen(d->message));
        if (!d->file || !d->message || !out->errors || !out->warnings) {
            rc = HK_NOMEM;
            continue;
        }
        struct hk_config_note *note = d->severity == HK_SEVERITY_ERROR ? &out->errors[out->n_errors++]
                                                                       : &out->warnings[out->n_warnings++];
        *note = (struct hk_config_note){
            .file = d->file, .message = d->message, .line = d->at.line, .col = d->at.col};
    }
    hk_diags_fini(diags);
    return rc;
}

static void count(const struct hk_config *config, struct hk_config_checked *out)
{
    out->policies = config->policy_conf.n;
    out->destinations = config->destinations.n;
    out->routes = config->routes.n;
    out->rules = config->validate.n;
    out->channels = config->channels.n;
}

static enum hk_code config_check(struct hk_desk *desk, const struct hk_caller *caller,
                                 const struct hk_config_check_ask *ask, struct hk_pool *mem,
                                 struct hk_config_checked *out, struct hk_err *err)
{
    struct hk_config *config = NULL;
    struct hk_diags diags;
    (void)desk, (void)caller;
    *out = (struct hk_config_checked){.file = ask->file};
    hk_diags_init(&diags);
    enum hk_code rc = load(ask, &diags, &config);
    if (rc == HK_OK)
        rc = check_channels(ask->file, config, &diags);
    if (rc == HK_OK) {
        check_store(ask->file, config, &diags);
        check_destinations(ask->file, config, &diags);
        count(config, out);
    }
    out->ok = rc == HK_OK && diags.errors == 0;
    hk_config_free(config);
    if (keep_found(&diags, mem, out) != HK_OK || rc == HK_NOMEM)
        return hk_err_set(err, HK_NOMEM, "not enough memory to read '%s'", ask->file);
    return HK_OK;
}

/* ---- config schema ---- */

static enum hk_code config_schema(struct hk_desk *desk, const struct hk_caller *caller, const void *request,
                                  struct hk_pool *mem, struct hk_config_schema *out, struct hk_err *err)
{
    struct hk_buf text, json;
    (void)desk, (void)caller, (void)request;
    hk_buf_init(&text, HK_CONFIG_TEXT_MAX);
    hk_buf_init(&json, HK_CONFIG_TEXT_MAX);
    hk_config_schema_text(&text);
    hk_config_schema_json(&json);
    if (json.len > 0 && json.data[json.len - 1] == '\n')
        json.len--; /* a value, not a file */
    enum hk_code rc = keep_text(&text, mem, &out->text, err);
    enum hk_code rc2 = keep_text(&json, mem, &out->json, err);
    return rc == HK_OK ? rc2 : rc;
}

/* ---- version ---- */

static enum hk_code version(struct hk_desk *desk, const struct hk_caller *caller, const void *request,
                            struct hk_pool *mem, struct hk_version_told *out, struct hk_err *err)
{
    (void)desk, (void)caller, (void)request, (void)mem, (void)err;
    out->version = hk_version();
    return HK_OK;
}

/* ---- the table ---- */

HK_OP_RUN(init)
HK_OP_RUN(config_check)
HK_OP_RUN(config_schema)
HK_OP_RUN(version)

#define INIT_FLAG(name_, help_)                                                                              \
    {                                                                                                        \
        .name = #name_, .offset = offsetof(struct hk_init_ask, name_), .help = (help_)                       \
    }
#define INIT_ROLE(name_, help_)                                                                              \
    {                                                                                                        \
        .name = #name_, .kind = HK_ARG_TEXT, .offset = offsetof(struct hk_init_ask, name_), .value = "ROLE", \
        .help = (help_)                                                                                      \
    }

static const struct hk_arg init_args[] = {
    INIT_FLAG(print, "print the SQL that would run, change nothing"),
    INIT_FLAG(wal, "switch an application's existing SQLite file to WAL without asking"),
    INIT_FLAG(notify, "writing a message wakes relays (PostgreSQL)"),
    INIT_FLAG(no_notify, "relays only poll (default)"),
    INIT_FLAG(partition_sent, "keep sent rows in daily partitions, which are dropped whole (PostgreSQL)"),
    INIT_FLAG(print_grants,
              "print the SQL that gives application, relay and viewer their rights (PostgreSQL)"),
    INIT_ROLE(app_role, "the application's role, for --print-grants (default: hikyaku_app)"),
    INIT_ROLE(relay_role, "the relay's role (default: hikyaku_relay)"),
    INIT_ROLE(viewer_role, "the viewer's role (default: hikyaku_viewer)"),
    {.name = NULL}};

static const struct hk_arg check_args[] = {{.name = "file",
                                            .kind = HK_ARG_FILE,
                                            .subject = true,
                                            .offset = offsetof(struct hk_config_check_ask, file),
                                            .value = "FILE"},
                                           {.name = NULL}};

const struct hk_op hk_op_init = {.noun = "init",
                                 .summary = "create the schema, or bring it up to date",
                                 .role = HK_ROLE_ADMIN,
                                 .changes = true,
                                 .args = init_args,
                                 .request_size = sizeof(struct hk_init_ask),
                                 .result_size = sizeof(struct hk_inited),
                                 .check = check_init,
                                 .run = init_op,
                                 .form = hk_form_inited};

/* Only for admins: it reads the named file, and shows the content of wrong lines. */
const struct hk_op hk_op_config_check = {
    .noun = "config",
    .verb = "check",
    .summary = "find every error in a configuration file",
    .details = "Each error is one line, file:line:col: message. Exit code 78 when there is one. '-' reads\n"
               "standard input.",
    .role = HK_ROLE_ADMIN,
    .args = check_args,
    .request_size = sizeof(struct hk_config_check_ask),
    .result_size = sizeof(struct hk_config_checked),
    .run = config_check_op,
    .form = hk_form_config_checked};

const struct hk_op hk_op_config_schema = {
    .noun = "config",
    .verb = "schema",
    .summary = "list every setting with its type and default; --json: the JSON Schema",
    .route = "GET /config/schema",
    .role = HK_ROLE_VIEWER,
    .result_size = sizeof(struct hk_config_schema),
    .run = config_schema_op,
    .form = hk_form_config_schema};

const struct hk_op hk_op_version = {.noun = "version",
                                    .summary = "print the version",
                                    .route = "GET /version",
                                    .role = HK_ROLE_VIEWER,
                                    .result_size = sizeof(struct hk_version_told),
                                    .run = version_op,
                                    .form = hk_form_version};
