/* SPDX-License-Identifier: Apache-2.0 */
/* Policies by name. A set is small (tens), is built at start and then read, so it is a plain array. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/show.h"
#include "base/str.h"
#include "config/config.h"
#include "config/policies_impl.h"

struct entry {
    struct hk_policy *policy;
    bool own; /* added by somebody; false: the preset as it ships */
};

struct ops_entry {
    const char *name;
    const struct hk_policy_ops *ops;
    void *arg;
};

struct hk_policies {
    struct entry *entries;
    size_t n, room;
    struct ops_entry *ops;
    size_t n_ops, ops_room;
    size_t by_default; /* index of the default */
};

static enum hk_code no_memory(struct hk_err *err)
{
    return hk_err_set(err, HK_NOMEM, "out of memory for policies");
}

/* Room for `extra` more of `size` bytes each in the array at `*items`. */
static bool reserve(void *items_ptr, size_t n, size_t extra, size_t *room, size_t size)
{
    if (extra <= *room - n)
        return true;
    if (extra > (SIZE_MAX / size - n) / 2)
        return false;
    size_t wanted = n + extra > 2 * *room ? n + extra : 2 * *room;
    void *items = NULL;
    memcpy(&items, items_ptr, sizeof items);
    items = hk_mem_resize(items, wanted * size);
    if (!items)
        return false;
    memcpy(items_ptr, &items, sizeof items);
    *room = wanted;
    return true;
}

static struct entry *find(const struct hk_policies *policies, const char *name)
{
    for (size_t i = 0; i < policies->n; i++) {
        if (strcmp(hk_policy_name(policies->entries[i].policy), name) == 0)
            return &policies->entries[i];
    }
    return NULL;
}

/* There is room, and no own policy of that name. */
static void put(struct hk_policies *policies, struct hk_policy *policy, bool own)
{
    struct entry *entry = find(policies, hk_policy_name(policy));
    if (entry)
        hk_policy_free(entry->policy);
    else
        entry = &policies->entries[policies->n++];
    *entry = (struct entry){.policy = policy, .own = own};
}

static enum hk_code add_presets(struct hk_policies *policies, struct hk_err *err)
{
    for (size_t i = 0; hk_preset_name(i); i++) {
        struct hk_policy *preset = NULL;
        enum hk_code rc = hk_policy_new(hk_preset_name(i), &preset, err);
        if (rc != HK_OK)
            return rc;
        if (!reserve(&policies->entries, policies->n, 1, &policies->room, sizeof *policies->entries)) {
            hk_policy_free(preset);
            return no_memory(err);
        }
        put(policies, preset, false);
    }
    return HK_OK;
}

enum hk_code hk_policies_new(struct hk_policies **out_policies, struct hk_err *err)
{
    struct hk_policies *policies = hk_mem_zalloc(1, sizeof *policies);
    if (!policies)
        return no_memory(err);
    enum hk_code rc = add_presets(policies, err);
    if (rc == HK_OK)
        rc = hk_policies_set_default(policies, "standard", err);
    if (rc != HK_OK) {
        hk_policies_free(policies);
        return rc;
    }
    *out_policies = policies;
    return HK_OK;
}

void hk_policies_free(struct hk_policies *policies)
{
    if (!policies)
        return;
    for (size_t i = 0; i < policies->n; i++)
        hk_policy_free(policies->entries[i].policy);
    hk_mem_free(policies->entries);
    hk_mem_free(policies->ops);
    hk_mem_free(policies);
}

bool hk_policies_is_own(const struct hk_policies *policies, const char *name)
{
    const struct entry *entry = find(policies, name);
    return entry && entry->own;
}

enum hk_code hk_policies_take(struct hk_policies *policies, struct hk_policy *policy, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    if (hk_policies_is_own(policies, hk_policy_name(policy)))
        return hk_err_set(err, HK_EXISTS, "there is a policy %s already",
                          hk_show(hk_str_of(hk_policy_name(policy)), shown));
    if (!reserve(&policies->entries, policies->n, 1, &policies->room, sizeof *policies->entries))
        return no_memory(err);
    put(policies, policy, true);
    return HK_OK;
}

enum hk_code hk_policies_add(struct hk_policies *policies, const struct hk_policy *policy, struct hk_err *err)
{
    struct hk_policy *copy = NULL;
    enum hk_code rc = hk_policy_check(policy, err);
    if (rc == HK_OK)
        rc = hk_policy_copy(policy, &copy, err);
    if (rc == HK_OK)
        rc = hk_policies_take(policies, copy, err);
    if (rc != HK_OK)
        hk_policy_free(copy);
    return rc;
}

enum hk_code hk_policies_register(struct hk_policies *policies, const char *name,
                                  const struct hk_policy_ops *ops, void *arg, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    if (!name || !*name || !ops || !ops->should_retry)
        return hk_err_set(err, HK_INVALID, "a custom policy needs a name and should_retry");
    if (hk_policies_ops(policies, name, NULL))
        return hk_err_set(err, HK_EXISTS, "a custom policy %s is registered already",
                          hk_show(hk_str_of(name), shown));
    if (!reserve(&policies->ops, policies->n_ops, 1, &policies->ops_room, sizeof *policies->ops))
        return no_memory(err);
    policies->ops[policies->n_ops++] = (struct ops_entry){.name = name, .ops = ops, .arg = arg};
    return HK_OK;
}

const struct hk_policy_ops *hk_policies_ops(const struct hk_policies *policies, const char *name,
                                            void **out_arg)
{
    for (size_t i = 0; i < policies->n_ops; i++) {
        if (strcmp(policies->ops[i].name, name) != 0)
            continue;
        if (out_arg)
            *out_arg = policies->ops[i].arg;
        return policies->ops[i].ops;
    }
    return NULL;
}

static bool never_retry(void *instance, uint32_t count, int status, const struct hk_facts *facts,
                        uint64_t *wait_ms)
{
    (void)instance;
    (void)count;
    (void)status;
    (void)facts;
    (void)wait_ms;
    return false;
}

const struct hk_policy_ops hk_policies_foreign_ops = {.should_retry = never_retry};

enum hk_code hk_policies_move(struct hk_policies *into, struct hk_policies *from, struct hk_err *err)
{
    if (!reserve(&into->entries, into->n, from->n, &into->room, sizeof *into->entries))
        return no_memory(err);
    size_t kept = 0;
    for (size_t i = 0; i < from->n; i++) {
        if (from->entries[i].own)
            put(into, from->entries[i].policy, true);
        else
            from->entries[kept++] = from->entries[i];
    }
    from->n = kept;
    from->by_default = 0;
    return HK_OK;
}

enum hk_code hk_policies_set_default(struct hk_policies *policies, const char *name, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    const struct entry *entry = find(policies, name);
    if (!entry)
        return hk_err_set(err, HK_NOTFOUND, "there is no policy %s", hk_show(hk_str_of(name), shown));
    policies->by_default = (size_t)(entry - policies->entries);
    return HK_OK;
}

const struct hk_policy *hk_policies_get(const struct hk_policies *policies, const char *name)
{
    if (!name || !*name)
        return hk_policies_at(policies, policies->by_default);
    const struct entry *entry = find(policies, name);
    return entry ? entry->policy : NULL;
}

const struct hk_policy *hk_policies_at(const struct hk_policies *policies, size_t i)
{
    return i < policies->n ? policies->entries[i].policy : NULL;
}

/* ---- loading ---- */

typedef void report_fn(void *arg, const char *line);

/* Tells one line, which may be the one that `err` is to hold. False: out of memory. */
static bool report_one(const struct hk_diag *diag, report_fn *report, void *arg, enum hk_code code,
                       struct hk_err *err)
{
    struct hk_buf line;
    hk_buf_init(&line, 8192);
    hk_diag_format(diag, &line);
    bool ok = hk_buf_status(&line) != HK_NOMEM;
    if (ok && err)
        (void)hk_err_set(err, code, "%s", hk_buf_cstr(&line));
    if (ok && report)
        report(arg, hk_buf_cstr(&line));
    hk_buf_fini(&line);
    return ok;
}

/* Tells them all; returns `rc`, or HK_NOMEM. */
static enum hk_code report_all(const struct hk_diags *diags, report_fn *report, void *arg, struct hk_err *err,
                               enum hk_code rc)
{
    bool told = rc == HK_OK;
    for (size_t i = 0; i < diags->n && rc != HK_NOMEM; i++) {
        bool first = !told && diags->items[i].severity == HK_SEVERITY_ERROR;
        if (!report_one(&diags->items[i], report, arg, rc, first ? err : NULL))
            rc = HK_NOMEM;
        told = told || first;
    }
    size_t more = diags->errors + diags->warnings - diags->n;
    char line[64];
    (void)snprintf(line, sizeof line, "… and %zu more", more);
    if (report && more && rc != HK_NOMEM)
        report(arg, line);
    return rc == HK_NOMEM ? no_memory(err) : rc;
}

/* Both names are known to exist: the configuration was checked against this very set. */
static enum hk_code take_over(struct hk_policies *policies, struct hk_config *config, struct hk_err *err)
{
    enum hk_code rc = hk_policies_move(policies, config->policies, err);
    if (rc == HK_OK && config->default_given)
        rc = hk_policies_set_default(policies, config->default_policy, err);
    return rc;
}

enum hk_code hk_policies_read(struct hk_policies *policies, const char *path, bool foreign_custom,
                              report_fn *report, void *arg, struct hk_err *err)
{
    struct hk_config_env env = *hk_config_env_operator(); /* policies need no secrets */
    struct hk_config *config = NULL;
    struct hk_diags diags;
    hk_diags_init(&diags);
    env.known = policies;
    env.foreign_custom = foreign_custom;
    enum hk_code rc = hk_config_load(path, &env, &diags, &config);
    rc = report_all(&diags, report, arg, err, rc);
    if (rc == HK_OK)
        rc = take_over(policies, config, err);
    hk_config_free(config);
    hk_diags_fini(&diags);
    return rc;
}

enum hk_code hk_policies_load(struct hk_policies *policies, const char *path, report_fn *report, void *arg,
                              struct hk_err *err)
{
    return hk_policies_read(policies, path, false, report, arg, err);
}
