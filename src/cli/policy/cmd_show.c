/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku policy show */
#include "cli/policy/policies.h"

/* What becomes of a message whose attempt was answered so. */
static const char *outcome(const struct hk_policy_answer *answer)
{
    if (answer->cls == HK_CLASS_SUCCESS)
        return "delivered";
    return answer->retry ? "retry" : "dead letter";
}

static void print_policy(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_policy_shown *shown = result;
    (void)ask;
    (void)hk_buf_add(out, shown->yaml.ptr, shown->yaml.len);
    (void)hk_buf_addf(out, "\n# how it classes common answers\n# %-16s %-11s %-20s %s\n", "answer", "class",
                      "reason", "then");
    for (size_t i = 0; i < shown->n_answers; i++) {
        const struct hk_policy_answer *a = &shown->answers[i];
        (void)hk_buf_addf(out, "# %-16s %-11s %-20s %s%s\n", a->name, hk_class_name(a->cls),
                          a->cause[0] != '\0' ? a->cause : "-", outcome(a),
                          a->pause ? ", and the destination is paused" : "");
    }
    hk_policy_make_safe(out);
}

int hk_cmd_policy_show(struct hk_cli *cli)
{
    return hk_policy_ask(cli, NULL, print_policy);
}
