/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku whoami */
#include "base/str.h"
#include "desk/form.h"
#include "desk/whoami.h"

const char *hk_role_name(enum hk_role role)
{
    static const char *const names[] = {"none", "metrics", "viewer", "operator", "admin"};
    return names[role];
}

static enum hk_code whoami(struct hk_desk *desk, const struct hk_caller *caller, const void *ask,
                           struct hk_pool *mem, struct hk_whoami *out, struct hk_err *err)
{
    (void)desk;
    (void)ask;
    const char *name = hk_pool_copy_str(mem, hk_str_of(caller->actor));
    if (!name)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    *out = (struct hk_whoami){.name = hk_str_of(name), .role = caller->role, .reveal = caller->may_reveal};
    return HK_OK;
}

static const char *role_word(unsigned role)
{
    return hk_role_name((enum hk_role)role);
}

static void form_whoami(struct hk_form *form, void *result)
{
    struct hk_whoami *who = result;
    hk_form_str(form, "name", &who->name);
    hk_form_choice(form, "role", &who->role, role_word, HK_ROLE_ADMIN + 1);
    hk_form_bool(form, "reveal", &who->reveal);
}

HK_OP_RUN(whoami)

const struct hk_op hk_op_whoami = {.noun = "whoami",
                                   .summary = "show your name at the relay, and your role",
                                   .route = "GET /me",
                                   .role = HK_ROLE_METRICS,
                                   .result_size = sizeof(struct hk_whoami),
                                   .run = whoami_op,
                                   .form = form_whoami};
