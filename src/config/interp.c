/* SPDX-License-Identifier: Apache-2.0 */
/* After parsing, so that a value from outside can never change the file's structure; keys are left alone. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "config/interp.h"

#define VALUE_MAX      (HK_YAML_BYTES_MAX + HK_INTERP_TOTAL_MAX)
#define PATH_MAX_BYTES 4096u
#define NAME_MAX_BYTES 256u
#define MISSING_MAX    (HK_SHOW_MAX + HK_ERR_MESSAGE_MAX + 64u)

struct interp {
    struct hk_yaml *yaml;
    const char *file;
    const struct hk_config_env *env;
    struct hk_diags *diags;
    struct hk_buf value; /* of the scalar at hand */
    size_t total;        /* bytes taken from outside so far */
    enum hk_code status;
};

enum hk_code hk_interp_join(const char *file, struct hk_str path, struct hk_buf *out)
{
    const char *slash = strrchr(file, '/');
    if (slash && !(path.len && path.ptr[0] == '/'))
        hk_buf_add(out, file, (size_t)(slash - file) + 1);
    return hk_buf_add(out, path.ptr, path.len);
}

/* Reports, and takes the scalar out of the walker's sight. */
static bool refuse(struct interp *in, struct hk_yaml_node *node, const char *before, struct hk_str what,
                   const char *after)
{
    char shown[HK_SHOW_MAX];
    hk_diags_add(in->diags, HK_SEVERITY_ERROR, in->file, node->at, "%s %s%s", before, hk_show(what, shown),
                 after);
    node->kind = HK_YAML_BAD;
    return false;
}

/* The same without showing anything: what stands there may be a secret. */
static bool refuse_unseen(struct interp *in, struct hk_yaml_node *node, const char *message)
{
    hk_diags_add(in->diags, HK_SEVERITY_ERROR, in->file, node->at, "%s", message);
    node->kind = HK_YAML_BAD;
    return false;
}

/* What is referred to cannot be had. Whether that matters is for the option to say when secrets may be missing. */
static bool lack(struct interp *in, struct hk_yaml_node *node, const char *before, struct hk_str what,
                 const char *after)
{
    char shown[HK_SHOW_MAX];
    struct hk_buf text;
    if (!in->env->without_secrets)
        return refuse(in, node, before, what, after);
    hk_buf_init(&text, MISSING_MAX);
    if (hk_buf_addf(&text, "%s %s%s", before, hk_show(what, shown), after) == HK_OK)
        node->missing = hk_pool_copy_str(&in->yaml->arena, hk_buf_str(&text));
    if (!node->missing)
        in->status = HK_NOMEM;
    hk_buf_fini(&text);
    return false;
}

static bool add(struct interp *in, struct hk_str s)
{
    enum hk_code rc = hk_buf_add(&in->value, s.ptr, s.len);
    if (rc != HK_OK) /* the maximum cannot be passed: both sources are bounded */
        in->status = HK_NOMEM;
    return rc == HK_OK;
}

static bool add_foreign(struct interp *in, struct hk_yaml_node *node, struct hk_str name, struct hk_str value)
{
    size_t bad = 0;
    if (value.len > HK_INTERP_TOTAL_MAX - in->total)
        return refuse(in, node, "too much text from outside: with", name, " it is over 4 MiB");
    if (!hk_yaml_text_ok(value, &bad))
        return refuse(in, node, "the value of", name, " is not UTF-8 text");
    in->total += value.len;
    return add(in, value);
}

static bool add_variable(struct interp *in, struct hk_yaml_node *node, struct hk_str name, bool has_default,
                         struct hk_str fallback)
{
    char cname[NAME_MAX_BYTES];
    if (!hk_str_copy(cname, sizeof cname, name))
        return refuse(in, node, "the variable's name", name, " is too long");
    const char *value = in->env->get ? in->env->get(in->env->arg, cname) : NULL;
    if (value && (*value || !has_default))
        return add_foreign(in, node, name, hk_str_of(value));
    if (has_default)
        return add(in, fallback);
    return lack(in, node, "environment variable", name, " is not set, and there is no ${…:-default}");
}

static struct hk_str without_newline(struct hk_str s)
{
    if (s.len && s.ptr[s.len - 1] == '\n')
        s.len--;
    if (s.len && s.ptr[s.len - 1] == '\r')
        s.len--;
    return s;
}

static bool read_into(struct interp *in, struct hk_yaml_node *node, struct hk_str path, struct hk_buf *where,
                      struct hk_buf *bytes)
{
    struct hk_err err = {.code = HK_OK};
    enum hk_code rc = hk_interp_join(in->file, path, where);
    if (rc == HK_TOOBIG || !path.len)
        return refuse(in, node, "the path", path, path.len ? " is too long" : " is empty");
    if (rc == HK_OK && !in->env->read_file)
        return refuse(in, node, "cannot read file", path, ": there are no files here");
    if (rc == HK_OK)
        rc = in->env->read_file(in->env->arg, hk_buf_cstr(where), bytes, &err);
    if (rc == HK_NOMEM) {
        in->status = HK_NOMEM;
        return false;
    }
    if (rc != HK_OK) {
        char why[sizeof err.message + 2];
        (void)snprintf(why, sizeof why, ": %s", err.message);
        return lack(in, node, "cannot read file", path, why);
    }
    return add_foreign(in, node, path, without_newline(hk_buf_str(bytes)));
}

static bool add_file(struct interp *in, struct hk_yaml_node *node, struct hk_str path)
{
    struct hk_buf where;
    struct hk_buf bytes;
    hk_buf_init(&where, PATH_MAX_BYTES);
    hk_buf_init(&bytes, HK_INTERP_FILE_MAX);
    bool ok = read_into(in, node, path, &where, &bytes);
    hk_buf_fini(&where);
    hk_buf_fini(&bytes);
    return ok;
}

static size_t name_len(struct hk_str s)
{
    size_t n = 0;
    while (n < s.len && (hk_ascii_isalpha(s.ptr[n]) || s.ptr[n] == '_' || (n && hk_ascii_isdigit(s.ptr[n]))))
        n++;
    return n;
}

/* `body` is what stands between ${ and }. */
static bool add_reference(struct interp *in, struct hk_yaml_node *node, struct hk_str body)
{
    size_t n = name_len(body);
    struct hk_str name = {body.ptr, n};
    struct hk_str rest = {body.ptr + n, body.len - n};
    node->secret = true;
    node->plain = false;
    if (n && !rest.len)
        return add_variable(in, node, name, false, rest);
    if (n && hk_str_starts(rest, hk_str_of(":-")) && !memchr(rest.ptr, '{', rest.len))
        return add_variable(in, node, name, true, (struct hk_str){rest.ptr + 2, rest.len - 2});
    if (hk_str_eq(name, hk_str_of("file")) && rest.ptr[0] == ':')
        return add_file(in, node, (struct hk_str){rest.ptr + 1, rest.len - 1});
    return refuse_unseen(
        in, node,
        "cannot understand this ${…}: write ${NAME}, ${NAME:-default}, ${file:PATH}, or $${ for a literal ${");
}

static bool expand(struct interp *in, struct hk_yaml_node *node)
{
    struct hk_str rest = node->text;
    while (rest.len) {
        size_t used = 1;
        bool ok = true;
        if (hk_str_starts(rest, hk_str_of("$${"))) {
            ok = add(in, hk_str_of("${"));
            used = 3;
        } else if (hk_str_starts(rest, hk_str_of("${"))) {
            const char *end = memchr(rest.ptr, '}', rest.len);
            if (!end)
                return refuse_unseen(in, node, "${ without its }: write $${ for a literal ${");
            used = (size_t)(end - rest.ptr) + 1;
            ok = add_reference(in, node, (struct hk_str){rest.ptr + 2, used - 3});
        } else {
            const char *next = memchr(rest.ptr + 1, '$', rest.len - 1);
            used = next ? (size_t)(next - rest.ptr) : rest.len;
            ok = add(in, (struct hk_str){rest.ptr, used});
        }
        if (!ok)
            return false;
        rest = (struct hk_str){rest.ptr + used, rest.len - used};
    }
    return true;
}

static void expand_scalar(struct interp *in, struct hk_yaml_node *node)
{
    if (!memchr(node->text.ptr, '$', node->text.len))
        return;
    hk_buf_reset(&in->value);
    if (!expand(in, node))
        return;
    char *copy = hk_pool_copy_str(&in->yaml->arena, hk_buf_str(&in->value));
    if (!copy)
        in->status = HK_NOMEM;
    else
        node->text = (struct hk_str){copy, in->value.len};
}

/* Recursion is bounded: no tree is deeper than HK_YAML_DEPTH_MAX. */
static void expand_tree(struct interp *in, struct hk_yaml_node *node)
{
    if (node->kind == HK_YAML_SCALAR)
        expand_scalar(in, node);
    for (struct hk_yaml_node *entry = node->first; entry && in->status == HK_OK; entry = entry->next) {
        if (!entry->skip)
            expand_tree(in, entry);
    }
}

enum hk_code hk_interp_tree(struct hk_yaml *yaml, const char *file, const struct hk_config_env *env,
                            struct hk_diags *diags)
{
    struct interp in = {.yaml = yaml, .file = file, .env = env, .diags = diags};
    hk_buf_init(&in.value, VALUE_MAX);
    if (yaml->root)
        expand_tree(&in, yaml->root);
    hk_buf_fini(&in.value);
    return diags->nomem ? HK_NOMEM : in.status;
}
