/* SPDX-License-Identifier: Apache-2.0 */
/* What the configuration needs to know about a set of policies beyond its public functions. */
#ifndef HK_CONFIG_POLICIES_IMPL_H
#define HK_CONFIG_POLICIES_IMPL_H

#include <stdbool.h>

#include <hikyaku/policies.h>

/* Operations registered as `name`, or NULL. */
const struct hk_policy_ops *hk_policies_ops(const struct hk_policies *policies, const char *name,
                                            void **out_arg);
/* As hk_policies_load, and says what to do with `custom: NAME` that is not registered (config/env.h). */
enum hk_code hk_policies_read(struct hk_policies *policies, const char *path, bool foreign_custom,
                              void (*report)(void *arg, const char *line), void *arg,
                              struct hk_err *err) HK_MUSTCHECK;
/* What stands in for foreign operations: never retries. */
extern const struct hk_policy_ops hk_policies_foreign_ops;
/* Was a policy of this name added (a preset that nobody replaced was not)? */
bool hk_policies_is_own(const struct hk_policies *policies, const char *name);
/* As hk_policies_add, but takes the policy itself; on failure it stays the caller's. */
enum hk_code hk_policies_take(struct hk_policies *policies, struct hk_policy *policy,
                              struct hk_err *err) HK_MUSTCHECK;
/* Moves all that was added to `from` into `into`, which has none of these names; nothing moves unless all does. */
enum hk_code hk_policies_move(struct hk_policies *into, struct hk_policies *from,
                              struct hk_err *err) HK_MUSTCHECK;

#endif
