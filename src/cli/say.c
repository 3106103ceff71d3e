/* SPDX-License-Identifier: Apache-2.0 */
/* Words that several commands have for the same thing. */
#include <inttypes.h>

#include "base/parse.h"
#include "base/str.h"
#include "cli/say.h"
#include "cli/table.h"
#include "desk/letters.h"
#include "desk/status.h"

void hk_say_cut(struct hk_buf *out, uint64_t bytes, const char *where, int64_t id)
{
    char all[HK_SHOW_NUMBER], some[HK_SHOW_NUMBER];
    (void)hk_buf_addf(out,
                      "cut: the payload has %s bytes, and this command reads the first %s; for all of it: "
                      "SELECT payload FROM %s = %" PRId64,
                      hk_show_count(bytes, all), hk_show_count(HK_LETTER_BYTES, some), where, id);
}

void hk_say_fact(struct hk_buf *out, const char *name, struct hk_str value)
{
    if (value.len == 0)
        return;
    (void)hk_buf_addf(out, "%-16s ", name);
    (void)hk_table_safe(out, value, 4000);
    (void)hk_buf_addc(out, '\n');
}

struct hk_str hk_say_to(struct hk_str destination)
{
    return destination.len > 0 ? destination : hk_str_of("(by route)");
}

const char *hk_say_count(struct hk_count count, char out[HK_SHOW_NUMBER])
{
    return hk_show_about(count.n, count.about, out);
}

void hk_say_unusable(struct hk_buf *out, const struct hk_unusable *u, int64_t now_ms)
{
    char text[HK_SHOW_NUMBER];
    if (!u->relays)
        return;
    (void)hk_buf_addf(out, "%" PRIu64 " %s cannot use it, for %s now: ", u->relays,
                      u->relays == 1 ? "relay" : "relays",
                      hk_show_duration(u->since_ms < now_ms ? (uint64_t)(now_ms - u->since_ms) : 0, text));
    (void)hk_buf_add(out, u->why.ptr, u->why.len);
}

void hk_say_held(struct hk_buf *out, const struct hk_dest_status *dest, int64_t now_ms)
{
    char when[HK_TIME_TEXT_MAX], ago[64];
    if (dest->paused) {
        (void)hk_buf_addf(out, "paused %s by ", hk_show_ago(dest->since_ms, now_ms, ago));
        (void)hk_buf_add(out, dest->actor.ptr, dest->actor.len);
        (void)hk_buf_adds(out, ": ");
        (void)hk_buf_add(out, dest->reason.ptr, dest->reason.len);
    }
    if (dest->open_until_ms == 0)
        return;
    (void)hk_format_rfc3339(dest->open_until_ms, when);
    (void)hk_buf_addf(out, "%sbreaker: open until %s (%s)", dest->paused ? "; " : "", when,
                      hk_show_ago(dest->open_until_ms, now_ms, ago));
}
