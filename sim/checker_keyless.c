/* SPDX-License-Identifier: Apache-2.0 */
/* I27: sealed messages whose key is missing. A relay that cannot open a message does not send it under that claim, and settles it as a
 * retry that comes later: no attempt is counted or charged, and it never dies of it. */
#include "base/str.h"
#include "checker_impl.h"

void hk_checker_keyless(struct checker *c)
{
    size_t m = hk_checker_committed(c);
    size_t r = hk_checker_row(c, NOBODY);
    if (m == NOBODY)
        return;
    if (hk_checker_send(c))
        hk_checker_complain(c, "I27", "%s cannot be opened, and was sent", hk_checker_msg_name(c, m));
    c->rows.items[r].keyless = hk_checker_number(c, "claim");
    c->rows.items[r].keyless_at = c->t;
}

bool hk_checker_is_keyless(struct checker *c)
{
    size_t r = hk_names_find(&c->row_names, hk_checker_text(c, "row"));
    return r != NOBODY && c->rows.items[r].keyless &&
           c->rows.items[r].keyless == hk_checker_number(c, "claim");
}

void hk_checker_unopened_send(struct checker *c, const struct crow *row, size_t msg)
{
    if (row->keyless && row->keyless == hk_checker_number(c, "claim"))
        hk_checker_complain(c, "I27", "%s is sent, and cannot be opened", hk_checker_msg_name(c, msg));
}

void hk_checker_waits_for_key(struct checker *c, const struct cleg *leg)
{
    const struct crow *row = &c->rows.items[hk_checker_row(c, NOBODY)];
    if (hk_checker_number(c, "due") <= row->keyless_at && !hk_checker_clock_is_odd(c))
        hk_checker_complain(c, "I27", "%s cannot be opened, and does not wait",
                            hk_checker_msg_name(c, leg->msg));
}
