/* SPDX-License-Identifier: Apache-2.0 */
/* Policies by name: the presets, those of a YAML file, those built in code, and the default one. */
#ifndef HIKYAKU_POLICIES_H
#define HIKYAKU_POLICIES_H

#include <stddef.h>

#include <hikyaku/error.h>
#include <hikyaku/policy.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hk_policies;

/* Holds every preset; the default is `standard`. */
HK_API enum hk_code hk_policies_new(struct hk_policies **out_policies, struct hk_err *err) HK_MUSTCHECK;
HK_API void hk_policies_free(struct hk_policies *policies);

/* Takes a copy under its name; HK_EXISTS for a name that was added before (a preset may be replaced). */
HK_API enum hk_code hk_policies_add(struct hk_policies *policies, const struct hk_policy *policy,
                                    struct hk_err *err) HK_MUSTCHECK;
/* Makes `ops` known as `name`, so that a file can say `custom: name`. Both must outlive the set. */
HK_API enum hk_code hk_policies_register(struct hk_policies *policies, const char *name,
                                         const struct hk_policy_ops *ops, void *arg,
                                         struct hk_err *err) HK_MUSTCHECK;
/* Adds what `policies:` and `default_policy:` of a hikyaku configuration file say; nothing when the file
 * has any error. `err` then holds the first one; `report` (may be NULL) is called for each, as
 * "file:line:col: message". */
HK_API enum hk_code hk_policies_load(struct hk_policies *policies, const char *path,
                                     void (*report)(void *arg, const char *line), void *arg,
                                     struct hk_err *err) HK_MUSTCHECK;

HK_API enum hk_code hk_policies_set_default(struct hk_policies *policies, const char *name,
                                            struct hk_err *err) HK_MUSTCHECK;
/* `name` NULL or "": the default. NULL when there is none of that name. Valid until the set changes. */
HK_API const struct hk_policy *hk_policies_get(const struct hk_policies *policies, const char *name);
/* In the order they were added, presets first; NULL past the last. */
HK_API const struct hk_policy *hk_policies_at(const struct hk_policies *policies, size_t i);

#ifdef __cplusplus
}
#endif
#endif
