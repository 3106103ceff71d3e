/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on the store's time. */
#include "desk/clock.h"
#include "desk/forms.h"

uint64_t hk_clock_ahead_ms(const struct hk_clock_state *state)
{
    return hk_clock_in_step(state) ? 0 : (uint64_t)(state->mark_ms - state->clock_ms);
}

static enum hk_code show(struct hk_desk *desk, const struct hk_caller *caller, const void *request,
                         struct hk_pool *mem, struct hk_clock_state *out, struct hk_err *err)
{
    (void)caller, (void)request, (void)mem;
    return desk->ops->clock(desk->admin, &(struct hk_clock_ask){.reason = NULL}, out, err);
}

static enum hk_code reset(struct hk_desk *desk, const struct hk_caller *caller,
                          const struct hk_clock_reset_ask *ask, struct hk_pool *mem,
                          struct hk_clock_state *out, struct hk_err *err)
{
    (void)mem;
    return desk->ops->clock(desk->admin,
                            &(struct hk_clock_ask){.actor = caller->actor,
                                                   .reason = ask->dry_run ? NULL : caller->reason,
                                                   .lease_ms = desk->config->relay.lease_ms},
                            out, err);
}

/* ---- the table ---- */

HK_OP_RUN(show)
HK_OP_RUN(reset)

static const struct hk_arg reset_args[] = {{.name = "dry_run",
                                            .offset = offsetof(struct hk_clock_reset_ask, dry_run),
                                            .help = "say what it would correct, and change nothing"},
                                           {.name = NULL}};

const struct hk_op hk_op_clock_show = {
    .noun = "clock",
    .verb = "show",
    .summary = "compare the clock with the store's time, and count rows that a wrong clock dated",
    .route = "GET /clock",
    .role = HK_ROLE_VIEWER,
    .store = true,
    .result_size = sizeof(struct hk_clock_state),
    .run = show_op,
    .form = hk_form_clock};

const struct hk_op hk_op_clock_reset = {
    .noun = "clock",
    .verb = "reset",
    .summary = "set the store's time back to the clock, and correct messages that wait for the wrong time",
    .details =
        "For a clock that was ahead and is right again. Refuses while a relay runs: stop every relay of the\n"
        "store first. Messages that were tried meanwhile wait their time from now on; not_before and\n"
        "expires_at stay as they are. Exit code 0 also where nothing is wrong.",
    .route = "POST /clock/reset",
    .role = HK_ROLE_ADMIN,
    .store = true,
    .changes = true,
    .needs_reason = true,
    .args = reset_args,
    .request_size = sizeof(struct hk_clock_reset_ask),
    .result_size = sizeof(struct hk_clock_state),
    .run = reset_op,
    .form = hk_form_clock};
