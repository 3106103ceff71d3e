/* SPDX-License-Identifier: Apache-2.0 */
#include "desk/encode.h"
#include "desk/messages.h"

/* ---- cancel, retry ---- */

typedef enum hk_code act_fn(struct hk_admin *admin, const struct hk_act *act, struct hk_acted *out,
                            struct hk_err *err);

static enum hk_code act(struct hk_desk *desk, const struct hk_caller *caller,
                        const struct hk_message_act_ask *ask, const char *verb, act_fn *do_it,
                        struct hk_message_acted *out, struct hk_err *err)
{
    *out = (struct hk_message_acted){.verb = verb,
                                     .act = {.message_id = ask->message_id,
                                             .destination = ask->destination,
                                             .actor = caller->actor,
                                             .reason = caller->reason}};
    enum hk_code rc = do_it(desk->admin, &out->act, &out->is, err);
    return rc == HK_INVALID ? hk_desk_wrong(desk, "destination", err, "%s", err->message) : rc;
}

static enum hk_code cancel(struct hk_desk *desk, const struct hk_caller *caller,
                           const struct hk_message_act_ask *ask, struct hk_pool *mem,
                           struct hk_message_acted *out, struct hk_err *err)
{
    (void)mem;
    return act(desk, caller, ask, "cancel", desk->ops->cancel, out, err);
}

static enum hk_code retry(struct hk_desk *desk, const struct hk_caller *caller,
                          const struct hk_message_act_ask *ask, struct hk_pool *mem,
                          struct hk_message_acted *out, struct hk_err *err)
{
    (void)mem;
    return act(desk, caller, ask, "retry", desk->ops->retry, out, err);
}

/* ---- the table ---- */

HK_OP_RUN(cancel)
HK_OP_RUN(retry)

static const struct hk_arg act_args[] = {{.name = "message_id",
                                          .kind = HK_ARG_TEXT,
                                          .subject = true,
                                          .required = true,
                                          .offset = offsetof(struct hk_message_act_ask, message_id),
                                          .value = "ID"},
                                         {.name = "destination",
                                          .kind = HK_ARG_TEXT,
                                          .offset = offsetof(struct hk_message_act_ask, destination),
                                          .value = "NAME",
                                          .help = "which, when it goes to several"},
                                         {.name = NULL}};

const struct hk_op hk_op_messages_cancel = {
    .noun = "messages",
    .verb = "cancel",
    .summary = "cancel a message that is not in flight, so that it is never sent",
    .details = "Exit code 75 while it is in flight.",
    .role = HK_ROLE_OPERATOR,
    .store = true,
    .changes = true,
    .needs_reason = true,
    .args = act_args,
    .request_size = sizeof(struct hk_message_act_ask),
    .result_size = sizeof(struct hk_message_acted),
    .run = cancel_op,
    .encode = hk_encode_message_acted};

const struct hk_op hk_op_messages_retry = {.noun = "messages",
                                           .verb = "retry",
                                           .summary = "make a message that waits due now",
                                           .details = "Exit code 75 while it is in flight.",
                                           .role = HK_ROLE_OPERATOR,
                                           .store = true,
                                           .changes = true,
                                           .needs_reason = true,
                                           .args = act_args,
                                           .request_size = sizeof(struct hk_message_act_ask),
                                           .result_size = sizeof(struct hk_message_acted),
                                           .run = retry_op,
                                           .encode = hk_encode_message_acted};
