/* SPDX-License-Identifier: Apache-2.0 */
/* A set of policies by name: the presets, those of a YAML file, and those that a program builds; one of them is the default. */
#ifndef HIKYAKU_POLICIES_H
#define HIKYAKU_POLICIES_H

#include <stddef.h>

#include <hikyaku/error.h>
#include <hikyaku/policy.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hk_policies;

/* The new set has every preset; its default is `standard`. */
HK_API enum hk_code hk_policies_new(struct hk_policies **out_policies, struct hk_err *err) HK_MUSTCHECK;
HK_API void hk_policies_free(struct hk_policies *policies);

/* Adds a copy under the policy's name. HK_EXISTS: the name was added before (a preset may be replaced). */
HK_API enum hk_code hk_policies_add(struct hk_policies *policies, const struct hk_policy *policy,
                                    struct hk_err *err) HK_MUSTCHECK;
/* Registers `ops` as `name`, so that a file can say `custom: name`. Both must outlive the set. */
HK_API enum hk_code hk_policies_register(struct hk_policies *policies, const char *name,
                                         const struct hk_policy_ops *ops, void *arg,
                                         struct hk_err *err) HK_MUSTCHECK;
/* Adds the policies and the default policy of a hikyaku configuration file. If the file has an error, nothing is added:
 * `err` has the first error, and `report` (may be NULL) is called for each, with "file:line:col: message". */
HK_API enum hk_code hk_policies_load(struct hk_policies *policies, const char *path,
                                     void (*report)(void *arg, const char *line), void *arg,
                                     struct hk_err *err) HK_MUSTCHECK;

HK_API enum hk_code hk_policies_set_default(struct hk_policies *policies, const char *name,
                                            struct hk_err *err) HK_MUSTCHECK;
/* `name` NULL or "": the default policy. Returns NULL for an unknown name. The result is valid until the set changes. */
HK_API const struct hk_policy *hk_policies_get(const struct hk_policies *policies, const char *name);
/* In the order they were added, presets first; NULL past the last. */
HK_API const struct hk_policy *hk_policies_at(const struct hk_policies *policies, size_t i);

#ifdef __cplusplus
}
#endif
#endif
