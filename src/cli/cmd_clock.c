/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku clock show and reset: what a clock that was ahead has left behind in the store, and mending it once the clock is right. */
#include <time.h>

#include "base/parse.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/operate.h"
#include "cli/out.h"
#include "cli/settings.h"
#include "exec/clock.h"

enum {
    ASK_EVERY_MS = 500,
    WAIT_MORE_MS = 2000 /* than a lease */
};

/* ---- in words ---- */

static uint64_t ahead_ms(const struct hk_clock_state *state)
{
    return hk_clock_in_step(state) ? 0 : (uint64_t)(state->mark_ms - state->clock_ms);
}

static void list_parts(struct hk_buf *out, const struct hk_clock_state *state)
{
    char words[96];
    for (int i = 0; i < HK_NCLOCK_PARTS; i++)
        if (state->rows[i])
            (void)hk_buf_addf(out, "  %s\n", hk_clock_part_words(i, state->rows[i], words));
}

static void put_state(struct hk_buf *out, const struct hk_clock_state *state)
{
    struct hk_json json;
    hk_json_init(&json, out, true);
    hk_json_object(&json);
    hk_put_bool(&json, "in_step", hk_clock_in_step(state));
    hk_put_cstr(&json, "clock_of", state->of_server ? "server" : "host");
    hk_put_time(&json, "clock", state->clock_ms);
    hk_put_time(&json, "store_time", state->mark_ms);
    hk_put_u64(&json, "ahead_ms", ahead_ms(state));
    hk_put_bool(&json, "reset", state->mended);
    hk_json_key(&json, "rows");
    hk_json_object(&json);
    for (int i = 0; i < HK_NCLOCK_PARTS; i++)
        hk_put_u64(&json, hk_clock_part_name(i), state->rows[i]);
    hk_json_end(&json);
    hk_json_end(&json);
    (void)hk_buf_addc(out, '\n');
}

static bool has_rows(const struct hk_clock_state *state)
{
    uint64_t n = 0;
    for (int i = 0; i < HK_NCLOCK_PARTS; i++)
        n += state->rows[i];
    return n > 0;
}

static void say_state(struct hk_buf *out, const struct hk_clock_state *state)
{
    char now[HK_TIME_TEXT_MAX], mark[HK_TIME_TEXT_MAX], ahead[HK_SHOW_NUMBER];
    const char *whose = state->of_server ? "the database server's" : "this host's";
    (void)hk_format_rfc3339(state->clock_ms, now);
    (void)hk_format_rfc3339(state->mark_ms, mark);
    (void)hk_buf_addf(out, "clock            %s (%s)\n", now, whose);
    if (hk_clock_in_step(state)) {
        (void)hk_buf_adds(out, "The clock is in step: the store has not seen a later time.\n");
        return;
    }
    (void)hk_buf_addf(out, "store's time     %s, %s ahead of the clock\n", mark,
                      hk_show_duration(ahead_ms(state), ahead));
    if (has_rows(state))
        (void)hk_buf_adds(out, "written with that time:\n");
    list_parts(out, state);
    (void)hk_buf_addf(
        out,
        "If the clock is right now: stop %s and run 'hikyaku clock reset'. If it is wrong: set it "
        "first (NTP).\n",
        state->of_server ? "every relay" : "the relay");
}

/* ---- show ---- */

static enum hk_code show(const struct hk_cli *cli, const struct hk_operate *op, struct hk_buf *out,
                         struct hk_err *err)
{
    struct hk_clock_state state;
    enum hk_code rc = op->ops->clock(op->admin, &(struct hk_clock_ask){.reason = NULL}, &state, err);
    if (rc == HK_OK)
        (hk_args_flag(cli, "json") ? put_state : say_state)(out, &state);
    return rc;
}

int hk_cmd_clock_show(struct hk_cli *cli)
{
    return hk_operate_show(cli, show);
}

/* ---- reset ---- */

static void say_reset(struct hk_buf *out, const struct hk_clock_state *state)
{
    char ahead[HK_SHOW_NUMBER];
    if (hk_clock_in_step(state)) {
        (void)hk_buf_adds(out, "The clock is in step: there is nothing to reset.\n");
        return;
    }
    (void)hk_buf_addf(out, "The store's time %s %s ahead of the clock%s.\n", state->mended ? "was" : "is",
                      hk_show_duration(ahead_ms(state), ahead),
                      state->mended ? ", and goes by it again" : "; it would go by it again");
    if (has_rows(state))
        (void)hk_buf_addf(out, "%s:\n", state->mended ? "mended" : "would be mended");
    list_parts(out, state);
    if (state->mended)
        (void)hk_buf_adds(out, "Start the relay again.\n");
}

/* A relay that left without a word is known to be dead only after a lease: asked until then. */
static enum hk_code ask_patiently(const struct hk_operate *op, const struct hk_clock_ask *ask,
                                  struct hk_clock_state *out, struct hk_err *err)
{
    int64_t until_ms = hk_clock_us() / 1000 + (int64_t)ask->lease_ms + WAIT_MORE_MS;
    const struct timespec wait = {.tv_nsec = ASK_EVERY_MS * 1000000L};
    bool told = false;
    for (;;) {
        enum hk_code rc = op->ops->clock(op->admin, ask, out, err);
        if (rc != HK_BUSY || hk_clock_us() / 1000 >= until_ms)
            return rc;
        if (!told) {
            char lease[HK_SHOW_NUMBER];
            (void)hk_out_error(HK_EXIT_TEMPORARY, "%s; waiting for up to %s", err->message,
                               hk_show_duration(ask->lease_ms, lease));
        }
        told = true;
        nanosleep(&wait, NULL);
    }
}

int hk_cmd_clock_reset(struct hk_cli *cli)
{
    char actor[HK_ACTOR_MAX], reason[HK_REASON_TEXT_MAX];
    struct hk_operate op;
    struct hk_clock_ask ask = {.reason = NULL};
    struct hk_clock_state state;
    struct hk_err err = {.message = ""};
    bool dry = hk_args_flag(cli, "dry-run");
    if (!dry && (ask.reason = hk_operate_reason(cli, reason)) == NULL)
        return HK_EXIT_USAGE;
    int code = hk_operate_open(cli, &op);
    if (code != HK_EXIT_OK)
        return code;
    ask.actor = hk_settings_actor(cli, actor);
    ask.lease_ms = op.config->relay.lease_ms;
    if (ask_patiently(&op, &ask, &state, &err) != HK_OK) {
        code = hk_operate_failed(&err);
    } else {
        struct hk_buf out;
        hk_buf_init(&out, HK_OPERATE_OUTPUT_MAX);
        (hk_args_flag(cli, "json") ? put_state : say_reset)(&out, &state);
        code = hk_out_buffer(&out);
    }
    hk_operate_close(&op);
    return code;
}
