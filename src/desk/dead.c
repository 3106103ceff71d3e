/* SPDX-License-Identifier: Apache-2.0 */
/* What several acts on dead letters share. */
#include <inttypes.h>

#include "base/show.h"
#include "base/str.h"
#include "desk/dead.h"

enum hk_requeue_id hk_requeue_ids(bool same_id, bool new_id)
{
    return same_id ? HK_REQUEUE_SAME : new_id ? HK_REQUEUE_NEW : HK_REQUEUE_AUTO;
}

enum hk_code hk_requeue_ids_check(bool same_id, bool new_id, struct hk_err *err)
{
    if (!same_id || !new_id)
        return HK_OK;
    return hk_err_set(err, HK_INVALID, "--same-id and --new-id exclude each other");
}

bool hk_names_have(const struct hk_names *names, struct hk_str name)
{
    for (size_t i = 0; i < names->n; i++)
        if (hk_str_eq(names->items[i], name))
            return true;
    return false;
}

enum hk_code hk_letter_too_large(const struct hk_letter *letter, const char *done, struct hk_err *err)
{
    char has[HK_SHOW_NUMBER], most[HK_SHOW_NUMBER];
    return hk_err_set(
        err, HK_CONFLICT, "letter %" PRId64 " cannot be %s: its payload has %s bytes, and at most %s can",
        letter->id, done, hk_show_count(letter->payload_bytes, has), hk_show_count(HK_LETTER_BYTES, most));
}

const char *hk_letter_state(const struct hk_letter *letter)
{
    return letter->status == HK_LETTER_RETRYING && letter->sending_ms != 0
               ? "retrying (sent by hand, outcome unknown)"
               : hk_letter_status_name(letter->status);
}
