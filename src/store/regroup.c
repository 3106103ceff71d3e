/* SPDX-License-Identifier: Apache-2.0 */
/* From a letter as it is stored to its group in this version of the rule. */
#include "base/str.h"
#include "store/regroup.h"

enum {
    ERROR_MAX = 4096
};

void hk_regrouped_init(struct hk_regrouped *out)
{
    *out = (struct hk_regrouped){.id = 0};
    hk_buf_init(&out->error, ERROR_MAX);
}

void hk_regrouped_fini(struct hk_regrouped *letter)
{
    hk_buf_fini(&letter->error);
}

bool hk_regroup_judge(const struct hk_regrouping *how, const struct hk_letter *letter,
                      struct hk_regrouped *out)
{
    char name[32];
    (void)hk_str_copy(out->was, sizeof out->was, letter->fingerprint);
    bool sent = letter->failure_class.len && hk_str_copy(name, sizeof name, letter->failure_class) &&
                hk_class_by_name(name) < HK_NCLASSES;
    if (how->say)
        how->say(how->arg, letter, &out->error);
    if (hk_buf_status(&out->error) != HK_OK)
        return false;
    hk_fingerprint(sent ? hk_class_by_name(name) : HK_CLASS_SUCCESS, letter->reason, letter->destination,
                   out->error.len ? hk_buf_str(&out->error) : letter->error, out->print);
    out->id = letter->id;
    return true;
}
