/* SPDX-License-Identifier: Apache-2.0 */
/* What was found, as JSON. */
#include "base/str.h"
#include "desk/doctor.h"
#include "desk/forms.h"

void hk_encode_diagnosis(struct hk_json *json, const void *result)
{
    const struct hk_diagnosis *found = result;
    hk_json_object(json);
    hk_json_key(json, "items");
    hk_json_array(json);
    for (size_t i = 0; i < found->n; i++) {
        hk_json_object(json);
        hk_put_cstr(json, "check", found->items[i].check);
        hk_put_cstr(json, "level", hk_note_names[found->items[i].level]);
        hk_put_str(json, "message", hk_str_of(found->items[i].text));
        hk_json_end(json);
    }
    hk_json_end(json);
    hk_json_key(json, "next");
    hk_json_null(json);
    hk_put_bool(json, "ok", found->found[HK_NOTE_FAIL] == 0);
    hk_json_end(json);
}
