/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku clock show and reset: find the traces of a clock that was ahead in the store, and repair them once the clock is right. */
#include <time.h>

#include "base/parse.h"
#include "base/str.h"
#include "cli/ask.h"
#include "cli/out.h"
#include "desk/clock.h"
#include "exec/clock.h"

enum {
    ASK_EVERY_MS = 500,
    WAIT_MORE_MS = 2000 /* than a lease */
};

/* ---- in words ---- */

static void list_parts(struct hk_buf *out, const struct hk_clock_state *state)
{
    char words[96];
    for (unsigned i = 0; i < HK_NCLOCK_PARTS; i++)
        if (state->rows[i])
            (void)hk_buf_addf(out, "  %s\n", hk_clock_part_words(i, state->rows[i], words));
}

static bool has_rows(const struct hk_clock_state *state)
{
    uint64_t n = 0;
    for (int i = 0; i < HK_NCLOCK_PARTS; i++)
        n += state->rows[i];
    return n > 0;
}

/* ---- show ---- */

static void print_state(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_clock_state *state = result;
    char now[HK_TIME_TEXT_MAX], mark[HK_TIME_TEXT_MAX], ahead[HK_SHOW_NUMBER];
    const char *whose = state->of_server ? "the database server's" : "this host's";
    (void)ask;
    (void)hk_format_rfc3339(state->clock_ms, now);
    (void)hk_format_rfc3339(state->mark_ms, mark);
    (void)hk_buf_addf(out, "clock            %s (%s)\n", now, whose);
    if (hk_clock_in_step(state)) {
        (void)hk_buf_adds(out, "The clock is in step: the store has not seen a later time.\n");
        return;
    }
    (void)hk_buf_addf(out, "store's time     %s, %s ahead of the clock\n", mark,
                      hk_show_duration(hk_clock_ahead_ms(state), ahead));
    if (has_rows(state))
        (void)hk_buf_adds(out, "written with that time:\n");
    list_parts(out, state);
    (void)hk_buf_addf(
        out,
        "If the clock is right now: stop %s and run 'hikyaku clock reset'. If it is wrong: set it "
        "first (NTP).\n",
        state->of_server ? "every relay" : "the relay");
}

int hk_cmd_clock_show(struct hk_cli *cli)
{
    return hk_ask_once(cli, print_state);
}

/* ---- reset ---- */

static void print_reset(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_clock_state *state = result;
    char ahead[HK_SHOW_NUMBER];
    (void)ask;
    if (hk_clock_in_step(state)) {
        (void)hk_buf_adds(out, "The clock is in step: there is nothing to reset.\n");
        return;
    }
    (void)hk_buf_addf(out, "The store's time %s %s ahead of the clock%s.\n", state->mended ? "was" : "is",
                      hk_show_duration(hk_clock_ahead_ms(state), ahead),
                      state->mended ? ", and goes by it again" : "; it would go by it again");
    if (has_rows(state))
        (void)hk_buf_addf(out, "%s:\n", state->mended ? "mended" : "would be mended");
    list_parts(out, state);
    if (state->mended)
        (void)hk_buf_adds(out, "Start the relay again.\n");
}

/* A relay that left without a word is known to be dead only after a lease: asked until then. */
static int ask_patiently(struct hk_ask *ask)
{
    const struct hk_clock_state *state = ask->result;
    int64_t began_ms = hk_clock_us() / 1000;
    const struct timespec wait = {.tv_nsec = ASK_EVERY_MS * 1000000L};
    bool told = false;
    for (;;) {
        enum hk_code rc = hk_ask_quietly(ask);
        if (rc == HK_OK)
            return HK_EXIT_OK;
        int64_t waited_ms = hk_clock_us() / 1000 - began_ms;
        if (rc != HK_BUSY || !hk_desk_is_open(&ask->desk) ||
            waited_ms >= (int64_t)state->lease_ms + WAIT_MORE_MS)
            return hk_ask_failed(ask);
        if (!told) {
            char lease[HK_SHOW_NUMBER];
            (void)hk_out_error(HK_EXIT_TEMPORARY, "%s; waiting for up to %s", ask->err.message,
                               hk_show_duration(state->lease_ms, lease));
        }
        told = true;
        nanosleep(&wait, NULL);
    }
}

int hk_cmd_clock_reset(struct hk_cli *cli)
{
    struct hk_ask ask;
    int code = hk_ask_begin(cli, &ask);
    if (code == HK_EXIT_OK)
        code = ask_patiently(&ask);
    if (code == HK_EXIT_OK)
        code = hk_ask_print(&ask, print_reset);
    hk_ask_end(&ask);
    return code;
}
