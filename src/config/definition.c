/* SPDX-License-Identifier: Apache-2.0 */
/* One destination of the store, along the tables of the configuration and within its bounds. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "config/build.h"
#include "config/definition.h"
#include "config/interp.h"
#include "config/tables.h"
#include "config/walk.h"
#include "payload/scan.h"

enum {
    TEXT_MAX = 64 * 1024, /* of one; the store keeps no more */
    FILE_MAX = 4 * 1024 * 1024,
    POINTER_MAX = 512
};

/* ---- files ---- */

static bool has_dots(const char *path)
{
    struct hk_str rest = hk_str_of(path);
    while (rest.len > 0)
        if (hk_str_eq(hk_str_cut(&rest, '/'), hk_str_of("..")))
            return true;
    return false;
}

static bool is_below(const char *folder, const char *path)
{
    size_t len = strlen(folder);
    while (len > 0 && folder[len - 1] == '/')
        len--;
    return strncmp(path, folder, len) == 0 && path[len] == '/' && path[len + 1] != '\0';
}

static enum hk_code outside(const char *folder, struct hk_err *err)
{
    if (!folder)
        return hk_err_set(
            err, HK_DENIED,
            "a definition names no file: \"definitions.secrets\" of the relay's configuration is not set");
    return hk_err_set(err, HK_DENIED, "the file is not below the folder \"definitions.secrets\"");
}

/* With its links followed. */
static enum hk_code resolve(const char *path, char out[PATH_MAX], struct hk_err *err)
{
    char text[128] = "";
    if (realpath(path, out))
        return HK_OK;
    int error = errno;
    (void)!strerror_r(error, text, sizeof text);
    return hk_err_set(err, error == ENOENT ? HK_NOTFOUND : HK_IO, "%s", text);
}

enum hk_code hk_folder_check(const char *folder, const char *path, bool may_miss, struct hk_err *err)
{
    char real_folder[PATH_MAX], real_path[PATH_MAX];
    if (!folder || has_dots(path) || !is_below(folder, path))
        return outside(folder, err);
    enum hk_code rc = resolve(folder, real_folder, err);
    if (rc == HK_OK)
        rc = resolve(path, real_path, err);
    if (rc == HK_OK && !is_below(real_folder, real_path))
        rc = outside(folder, err);
    return rc == HK_NOTFOUND && may_miss ? HK_OK : rc;
}

/* ---- what a definition may take from outside ---- */

/* The surroundings of the configuration, and the folder that is left of them. */
struct bounds {
    const struct hk_config_env *env;
    const char *folder;
};

static const char *get_variable(void *arg, const char *name)
{
    const struct bounds *b = arg;
    bool ours = strncmp(name, HK_DEFINITION_VARIABLE, strlen(HK_DEFINITION_VARIABLE)) == 0;
    return ours && b->env->get ? b->env->get(b->env->arg, name) : NULL;
}

static enum hk_code read_file(void *arg, const char *path, struct hk_buf *out, struct hk_err *err)
{
    const struct bounds *b = arg;
    enum hk_code rc = hk_folder_check(b->folder, path, false, err);
    if (rc == HK_OK && !b->env->read_file)
        rc = hk_err_set(err, HK_UNSUPPORTED, "there are no files here");
    return rc == HK_OK ? b->env->read_file(b->env->arg, path, out, err) : rc;
}

static const char *refuse_file(struct hk_walk *walk, struct hk_str path)
{
    char text[HK_SHOW_MAX + 1];
    if (!walk->folder)
        return "names no file: \"definitions.secrets\" of the relay's configuration is not set";
    if (path.len && path.ptr[0] == '/' && !hk_str_starts(path, hk_str_of(walk->folder)))
        return "names only files below the folder \"definitions.secrets\"";
    if (path.len < sizeof text && hk_str_copy(text, sizeof text, path) && !has_dots(text))
        return NULL;
    return "names only files below the folder \"definitions.secrets\", without \"..\"";
}

/* NULL: it may stand there. `body` is what stands between ${ and }. */
static const char *refuse_reference(struct hk_walk *walk, struct hk_str body)
{
    static const char file[] = "file:";
    if (hk_str_starts(body, hk_str_of(file)))
        return refuse_file(walk, (struct hk_str){body.ptr + strlen(file), body.len - strlen(file)});
    if (!hk_str_starts(body, hk_str_of(HK_DEFINITION_VARIABLE)))
        return "names only variables that begin with " HK_DEFINITION_VARIABLE;
    return memchr(body.ptr, ':', body.len) ? "gives no default with a variable" : NULL;
}

static void check_scalar(struct hk_walk *walk, struct hk_yaml_node *node)
{
    struct hk_str rest = node->text;
    while (rest.len > 0) {
        const char *at = memchr(rest.ptr, '$', rest.len);
        size_t from = at ? (size_t)(at - rest.ptr) : rest.len;
        rest = (struct hk_str){rest.ptr + from, rest.len - from};
        bool literal = hk_str_starts(rest, hk_str_of("$${"));
        const char *end =
            !literal && hk_str_starts(rest, hk_str_of("${")) ? memchr(rest.ptr, '}', rest.len) : NULL;
        size_t used = literal ? 3 : end ? (size_t)(end - rest.ptr) + 1 : rest.len > 0;
        const char *why = end ? refuse_reference(walk, (struct hk_str){rest.ptr + 2, used - 3}) : NULL;
        if (why) {
            hk_walk_error(walk, node->at, "a definition %s", why);
            node->kind = HK_YAML_BAD;
            return;
        }
        rest = (struct hk_str){rest.ptr + used, rest.len - used};
    }
}

/* Recursion is bounded: no tree is deeper than HK_YAML_DEPTH_MAX. */
static void check_references(struct hk_walk *walk, struct hk_yaml_node *node)
{
    if (node->kind == HK_YAML_SCALAR)
        check_scalar(walk, node);
    for (struct hk_yaml_node *entry = node->first; entry; entry = entry->next)
        check_references(walk, entry);
}

/* ---- what it may reach ---- */

static bool is_within(const struct hk_conf_definitions *bounds, const struct hk_cidr *range)
{
    const struct hk_cidr *allowed = NULL;
    for (size_t i = 0; (allowed = hk_conf_definitions_allow(bounds, i)) != NULL; i++)
        if (hk_cidr_within(range, allowed))
            return true;
    return false;
}

static void check_allow(struct hk_walk *walk, const struct hk_yaml_node *root, const struct hk_config *config,
                        const struct hk_conf_destination *dest)
{
    const struct hk_yaml_node *list = hk_yaml_get(root, "allow");
    const struct hk_yaml_node *item = list && list->kind == HK_YAML_SEQUENCE ? list->first : list;
    const struct hk_cidr *range = NULL;
    if (!HK_GIVEN(dest, HK_DEST_ALLOW_OPT))
        return;
    for (size_t i = 0; item && (range = hk_conf_allow(dest, i)) != NULL; i++, item = item->next)
        if (!is_within(&config->definitions, range))
            hk_walk_error(walk, item->at,
                          "\"allow\" must lie within \"definitions.allow\" of the relay's configuration%s",
                          config->definitions.allow.n ? "" : ", which holds nothing");
}

/* ---- what is wrong, as pointers ---- */

static void add_step(struct hk_buf *out, struct hk_str step)
{
    (void)hk_buf_addc(out, '/');
    for (size_t i = 0; i < step.len; i++) {
        if (step.ptr[i] == '~' || step.ptr[i] == '/')
            (void)hk_buf_adds(out, step.ptr[i] == '~' ? "~0" : "~1");
        else
            (void)hk_buf_addc(out, step.ptr[i]);
    }
}

static bool same_pos(struct hk_pos a, struct hk_pos b)
{
    return a.line == b.line && a.col == b.col;
}

/* The way to the node that stands there: its value, or its key. Bounded as the tree's depth. */
static bool find_pointer(const struct hk_yaml_node *node, struct hk_pos at, struct hk_buf *out)
{
    size_t index = 0;
    for (const struct hk_yaml_node *entry = node->first; entry; entry = entry->next, index++) {
        size_t len = out->len;
        if (node->kind == HK_YAML_MAPPING)
            add_step(out, entry->key);
        else
            (void)hk_buf_addf(out, "/%zu", index);
        if (same_pos(entry->at, at) || (node->kind == HK_YAML_MAPPING && same_pos(entry->key_at, at)) ||
            find_pointer(entry, at, out))
            return true;
        out->len = len;
    }
    return false;
}

static const char *pointer_to(const struct hk_yaml *yaml, struct hk_pos at, struct hk_pool *mem)
{
    struct hk_buf out;
    hk_buf_init(&out, POINTER_MAX);
    bool found = yaml->root && find_pointer(yaml->root, at, &out) && hk_buf_status(&out) == HK_OK;
    const char *copy = hk_pool_copy_str(mem, found ? hk_buf_str(&out) : hk_str_of(""));
    hk_buf_fini(&out);
    return copy;
}

static enum hk_code report(const struct hk_diags *diags, const struct hk_yaml *yaml, struct hk_pool *mem,
                           struct hk_definition_wrongs *out, struct hk_err *err)
{
    struct hk_definition_wrongs unasked = {.n = 0}, *w = out ? out : &unasked;
    char text[HK_ERR_MESSAGE_MAX];
    struct hk_buf line;
    *w = (struct hk_definition_wrongs){.n = 0};
    hk_buf_init(&line, sizeof text - 1);
    for (size_t i = 0; i < diags->n; i++) {
        const struct hk_diag *d = &diags->items[i];
        if (d->severity != HK_SEVERITY_ERROR)
            continue;
        struct hk_definition_wrong wrong = {pointer_to(yaml, d->at, mem),
                                            hk_pool_copy_str(mem, hk_str_of(d->message))};
        if (!wrong.pointer || !wrong.message) {
            hk_buf_fini(&line);
            return hk_err_set(err, HK_NOMEM, "out of memory");
        }
        if (w->n < HK_DEFINITION_WRONGS_MAX)
            w->items[w->n++] = wrong;
        else
            w->more++;
        (void)hk_buf_addf(&line, "%s%s%s%s", line.len ? "; " : "", wrong.pointer,
                          wrong.pointer[0] ? ": " : "", wrong.message); /* what does not fit is left out */
    }
    (void)hk_err_set(err, HK_INVALID, "%s", line.len ? hk_buf_cstr(&line) : "it cannot be read");
    hk_buf_fini(&line);
    return HK_INVALID;
}

/* ---- reading ---- */

static enum hk_code no_mapping(struct hk_err *err)
{
    return hk_err_set(
        err, HK_INVALID,
        "a definition must be a mapping such as { http: { url: https://billing.example/hooks } }");
}

static enum hk_code walk_definition(const struct hk_definition_ask *ask, struct hk_yaml *yaml,
                                    struct hk_walk *walk, struct hk_conf_destination *out)
{
    struct hk_yaml_node *root = yaml->root;
    root->key = hk_str_of(ask->name);
    root->key_at = root->at;
    check_references(walk, root);
    enum hk_code rc = hk_interp_tree(yaml, walk->file, walk->env, walk->diags);
    if (rc != HK_OK)
        return rc;
    hk_walk_defaults(&hk_destination_table, out);
    hk_walk_item(walk, &hk_destination_table, root, out);
    check_allow(walk, root, ask->config, out);
    return hk_config_settle_definition(walk, ask->config);
}

/* Relative paths belong to the folder of secrets, as those of a file belong to its own folder. */
static char *base_of(const char *folder, struct hk_pool *mem)
{
    struct hk_buf path;
    hk_buf_init(&path, 4200);
    (void)hk_buf_addf(&path, "%s%sdefinition", folder ? folder : "", folder ? "/" : "");
    char *copy = hk_buf_status(&path) == HK_OK ? hk_pool_copy_str(mem, hk_buf_str(&path)) : NULL;
    hk_buf_fini(&path);
    return copy;
}

static enum hk_code define(const struct hk_definition_ask *ask, struct hk_yaml *yaml, struct hk_pool *mem,
                           struct hk_diags *diags, struct hk_conf_destination *out)
{
    const struct hk_config_env *env = ask->env ? ask->env : hk_config_env_system();
    struct bounds bounds = {.env = env, .folder = ask->config->definitions.secrets};
    struct hk_config_env own = {.get = get_variable,
                                .read_file = read_file,
                                .arg = &bounds,
                                .foreign_custom = true,
                                .without_secrets = !ask->secrets};
    struct hk_pool scratch = {NULL};
    struct hk_walk *walk = hk_pool_alloc(&scratch, 1, sizeof *walk);
    char *file = walk ? base_of(bounds.folder, &scratch) : NULL;
    enum hk_code rc = file ? HK_OK : HK_NOMEM;
    if (rc == HK_OK) {
        *walk = (struct hk_walk){.file = file,
                                 .env = &own,
                                 .diags = diags,
                                 .arena = mem,
                                 .scratch = &scratch,
                                 .errors_at_start = diags->errors,
                                 .is_definition = true,
                                 .folder = bounds.folder};
        walk->pending_tail = &walk->pending;
        rc = walk_definition(ask, yaml, walk, out);
    }
    hk_pool_wipe(&scratch);
    return rc;
}

enum hk_code hk_config_define(const struct hk_definition_ask *ask, struct hk_pool *mem,
                              struct hk_conf_destination *out, struct hk_definition_wrongs *wrongs,
                              struct hk_err *err)
{
    struct hk_conf_destination dest = {.given = 0};
    struct hk_yaml yaml = {.root = NULL};
    struct hk_diags diags;
    if (wrongs)
        *wrongs = (struct hk_definition_wrongs){.n = 0};
    if (ask->text.len > TEXT_MAX)
        return hk_err_set(err, HK_INVALID, "a definition must not be larger than %d KiB", TEXT_MAX / 1024);
    hk_diags_init(&diags);
    enum hk_code rc = hk_yaml_parse(ask->text.ptr ? ask->text.ptr : "", ask->text.len, "", &diags, &yaml);
    bool whole = rc == HK_OK && yaml.root && yaml.root->kind == HK_YAML_MAPPING;
    if (rc == HK_OK && whole)
        rc = define(ask, &yaml, mem, &diags, &dest);
    if (rc == HK_OK && diags.errors > 0)
        rc = HK_INVALID;
    if (rc == HK_OK && !whole)
        rc = no_mapping(err);
    else if (rc == HK_INVALID)
        rc = report(&diags, &yaml, mem, wrongs, err);
    else if (rc != HK_OK)
        rc = hk_err_set(err, HK_NOMEM, "out of memory");
    if (rc == HK_OK)
        *out = dest;
    hk_yaml_fini(&yaml);
    hk_diags_fini(&diags);
    return rc;
}

/* ---- a policy ---- */

static const char *no_variable(void *arg, const char *name)
{
    (void)arg, (void)name;
    return NULL;
}

static enum hk_code walk_policy(struct hk_yaml *yaml, struct hk_pool *mem, struct hk_diags *diags,
                                struct hk_policy **out)
{
    struct hk_config_env none = {.get = no_variable};
    struct hk_conf_policy conf = {.given = 0};
    struct hk_pool scratch = {NULL};
    struct hk_walk *walk = hk_pool_alloc(&scratch, 1, sizeof *walk);
    enum hk_code rc = walk ? HK_OK : HK_NOMEM;
    if (walk) {
        *walk = (struct hk_walk){.file = "",
                                 .env = &none,
                                 .diags = diags,
                                 .arena = mem,
                                 .scratch = &scratch,
                                 .is_definition = true};
        walk->pending_tail = &walk->pending;
        yaml->root->key = hk_str_of("draft");
        yaml->root->key_at = yaml->root->at;
        check_references(walk, yaml->root);
        rc = hk_interp_tree(yaml, walk->file, walk->env, diags);
    }
    if (rc == HK_OK) {
        hk_walk_defaults(&hk_policy_table, &conf);
        hk_walk_item(walk, &hk_policy_table, yaml->root, &conf);
        rc = diags->errors > 0 ? HK_INVALID : conf.built ? HK_OK : HK_NOMEM;
    }
    hk_pool_fini(&scratch);
    if (rc == HK_OK)
        *out = conf.built;
    else
        hk_policy_free(conf.built);
    return rc;
}

enum hk_code hk_config_define_policy(struct hk_str text, struct hk_pool *mem, struct hk_policy **out,
                                     struct hk_definition_wrongs *wrongs, struct hk_err *err)
{
    struct hk_yaml yaml = {.root = NULL};
    struct hk_diags diags;
    *wrongs = (struct hk_definition_wrongs){.n = 0};
    if (text.len > TEXT_MAX)
        return hk_err_set(err, HK_INVALID, "a policy must not be larger than %d KiB", TEXT_MAX / 1024);
    hk_diags_init(&diags);
    enum hk_code rc = hk_yaml_parse(text.ptr ? text.ptr : "", text.len, "", &diags, &yaml);
    bool whole = rc == HK_OK && yaml.root && yaml.root->kind == HK_YAML_MAPPING;
    if (rc == HK_OK && !whole)
        rc = hk_err_set(err, HK_INVALID,
                        "a policy must be a mapping such as { preset: standard, max_attempts: 10 }");
    else if (rc == HK_OK)
        rc = walk_policy(&yaml, mem, &diags, out);
    if (whole ? rc == HK_INVALID : rc == HK_INVALID && diags.errors > 0)
        rc = report(&diags, &yaml, mem, wrongs, err);
    else if (rc == HK_NOMEM)
        rc = hk_err_set(err, HK_NOMEM, "out of memory");
    hk_yaml_fini(&yaml);
    hk_diags_fini(&diags);
    return rc;
}

/* ---- as JSON ---- */

/* Written without quotes, as JSON writes numbers and truths: then it may stay as it is. */
static bool is_json_word(const struct hk_yaml_node *node)
{
    double number = 0;
    struct hk_str s = node->text;
    if (!node->plain)
        return false;
    if (hk_str_eq(s, hk_str_of("true")) || hk_str_eq(s, hk_str_of("false")))
        return true;
    bool begins =
        s.len > 0 && (hk_ascii_isdigit(s.ptr[0]) && (s.ptr[0] != '0' || s.len == 1 || s.ptr[1] == '.'));
    return begins && s.ptr[s.len - 1] != '.' && hk_parse_decimal(s, &number, NULL) == HK_OK;
}

static void write_node(struct hk_json *json, const struct hk_yaml_node *node)
{
    switch (node->kind) {
    case HK_YAML_MAPPING:
        hk_json_object(json);
        for (const struct hk_yaml_node *entry = node->first; entry; entry = entry->next) {
            hk_json_key(json, entry->key.ptr);
            write_node(json, entry);
        }
        hk_json_end(json);
        break;
    case HK_YAML_SEQUENCE:
        hk_json_array(json);
        for (const struct hk_yaml_node *entry = node->first; entry; entry = entry->next)
            write_node(json, entry);
        hk_json_end(json);
        break;
    case HK_YAML_SCALAR:
        if (hk_yaml_is_null(node))
            hk_json_null(json);
        else if (is_json_word(node))
            hk_json_raw(json, node->text);
        else
            hk_json_str(json, node->text);
        break;
    case HK_YAML_BAD:
        hk_json_null(json);
        break;
    }
}

static enum hk_code to_json(const struct hk_yaml_node *node, struct hk_buf *out, struct hk_err *err)
{
    struct hk_json json;
    size_t before = out->len;
    hk_json_init(&json, out, false);
    write_node(&json, node);
    if (hk_buf_status(out) == HK_NOMEM)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    if (hk_buf_status(out) != HK_OK || out->len - before > TEXT_MAX)
        return hk_err_set(err, HK_INVALID, "a definition must not be larger than %d KiB", TEXT_MAX / 1024);
    return HK_OK;
}

static enum hk_code parse(struct hk_str text, size_t max, struct hk_yaml *out, struct hk_err *err)
{
    struct hk_diags diags;
    struct hk_pool mem = {NULL};
    if (text.len > max)
        return hk_err_set(err, HK_INVALID, "it must not be larger than %zu KiB", max / 1024);
    hk_diags_init(&diags);
    enum hk_code rc = hk_yaml_parse(text.ptr ? text.ptr : "", text.len, "", &diags, out);
    if (rc == HK_OK && diags.errors > 0)
        rc = HK_INVALID;
    if (rc == HK_INVALID)
        rc = report(&diags, out, &mem, NULL, err);
    else if (rc != HK_OK)
        rc = hk_err_set(err, HK_NOMEM, "out of memory");
    hk_pool_fini(&mem);
    hk_diags_fini(&diags);
    return rc;
}

enum hk_code hk_config_definition_json(struct hk_str text, struct hk_buf *out, struct hk_err *err)
{
    struct hk_yaml yaml = {.root = NULL};
    enum hk_code rc = parse(text, TEXT_MAX, &yaml, err);
    if (rc == HK_OK && (!yaml.root || yaml.root->kind != HK_YAML_MAPPING))
        rc = no_mapping(err);
    if (rc == HK_OK)
        rc = to_json(yaml.root, out, err);
    hk_yaml_fini(&yaml);
    return rc;
}

/* ---- many ---- */

static enum hk_code copy_items(const struct hk_yaml_node *map, struct hk_pool *mem,
                               struct hk_definition_item *items, size_t *out_n, struct hk_err *err)
{
    enum hk_code rc = HK_OK;
    size_t n = 0;
    for (const struct hk_yaml_node *entry = map->first; rc == HK_OK && entry; entry = entry->next) {
        struct hk_buf json;
        char shown[HK_SHOW_MAX];
        if (entry->kind != HK_YAML_MAPPING)
            return hk_err_set(
                err, HK_INVALID,
                "destination %s must be a mapping such as { http: { url: https://billing.example/hooks } }",
                hk_show(entry->key, shown));
        hk_buf_init(&json, (size_t)2 * TEXT_MAX);
        rc = to_json(entry, &json, err);
        const char *text = rc == HK_OK ? hk_pool_copy_str(mem, hk_buf_str(&json)) : NULL;
        const char *name = text ? hk_pool_copy_str(mem, entry->key) : NULL;
        if (rc == HK_OK && !name)
            rc = hk_err_set(err, HK_NOMEM, "out of memory");
        if (rc == HK_OK)
            items[n++] = (struct hk_definition_item){.name = name, .text = {text, json.len}};
        hk_buf_fini(&json);
    }
    *out_n = n;
    return rc;
}

enum hk_code hk_config_definitions(struct hk_str text, struct hk_pool *mem, struct hk_definition_item **out,
                                   size_t *out_n, struct hk_err *err)
{
    struct hk_yaml yaml = {.root = NULL};
    enum hk_code rc = parse(text, FILE_MAX, &yaml, err);
    const struct hk_yaml_node *map = rc == HK_OK ? hk_yaml_get(yaml.root, "destinations") : NULL;
    map = map ? map : yaml.root;
    if (rc == HK_OK && (!map || map->kind != HK_YAML_MAPPING))
        rc = hk_err_set(
            err, HK_INVALID,
            "it must hold destinations by name, such as { billing: { http: { url: https://billing.example/hooks } } }");
    struct hk_definition_item *items = rc == HK_OK ? hk_pool_alloc(mem, map->n + 1, sizeof *items) : NULL;
    if (rc == HK_OK && !items)
        rc = hk_err_set(err, HK_NOMEM, "out of memory");
    if (rc == HK_OK)
        rc = copy_items(map, mem, items, out_n, err);
    if (rc == HK_OK)
        *out = items;
    hk_yaml_fini(&yaml);
    return rc;
}

struct hk_definition_order hk_config_definition_order(struct hk_str json)
{
    struct hk_definition_order order = {.by_key = false};
    struct hk_json_scan scan;
    struct hk_scan_token token;
    struct hk_str key = {"", 0};
    enum hk_scan_kind kind = HK_SCAN_END;
    hk_scan_init(&scan, json);
    while ((kind = hk_scan_next(&scan, &token)) != HK_SCAN_END && kind != HK_SCAN_ERROR) {
        if (kind == HK_SCAN_KEY)
            key = scan.depth == 1 ? token.raw : (struct hk_str){"", 0};
        if (kind != HK_SCAN_STRING || scan.depth != 1)
            continue;
        if (hk_scan_text_eq(key, hk_str_of("order")))
            order.by_key = hk_scan_text_eq(token.raw, hk_str_of("key"));
        if (hk_scan_text_eq(key, hk_str_of("on_dead")))
            order.skip_dead = hk_scan_text_eq(token.raw, hk_str_of("skip"));
    }
    return order;
}

bool hk_config_definition_is_queue(struct hk_str json)
{
    struct hk_json_scan scan;
    struct hk_scan_token token;
    enum hk_scan_kind kind = HK_SCAN_END;
    hk_scan_init(&scan, json);
    while ((kind = hk_scan_next(&scan, &token)) != HK_SCAN_END && kind != HK_SCAN_ERROR)
        if (kind == HK_SCAN_KEY && scan.depth == 1 && hk_scan_text_eq(token.raw, hk_str_of("queue")))
            return true;
    return false;
}
