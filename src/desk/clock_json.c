/* SPDX-License-Identifier: Apache-2.0 */
/* The store's time as JSON. */
#include "desk/clock.h"
#include "desk/forms.h"

void hk_encode_clock(struct hk_json *json, const void *result)
{
    const struct hk_clock_state *state = result;
    hk_json_object(json);
    hk_put_bool(json, "in_step", hk_clock_in_step(state));
    hk_put_cstr(json, "clock_of", state->of_server ? "server" : "host");
    hk_put_time(json, "clock", state->clock_ms);
    hk_put_time(json, "store_time", state->mark_ms);
    hk_put_u64(json, "ahead_ms", hk_clock_ahead_ms(state));
    hk_put_bool(json, "reset", state->mended);
    hk_json_key(json, "rows");
    hk_json_object(json);
    for (int i = 0; i < HK_NCLOCK_PARTS; i++)
        hk_put_u64(json, hk_clock_part_name(i), state->rows[i]);
    hk_json_end(json);
    hk_json_end(json);
}
