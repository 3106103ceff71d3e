/* SPDX-License-Identifier: Apache-2.0 */
/* messages as JSON. */
#include "desk/encode.h"
#include "desk/messages.h"

void hk_encode_messages(struct hk_json *json, const void *result)
{
    const struct hk_messages *found = result;
    hk_json_object(json);
    hk_json_key(json, "items");
    hk_json_array(json);
    for (const struct hk_messages_page *page = found->pages; page; page = page->more)
        for (size_t i = 0; i < page->n; i++) {
            hk_json_object(json);
            hk_put_row(json, &page->items[i]);
            hk_json_end(json);
        }
    hk_json_end(json);
    hk_put_cstr(json, "next", found->next[0] ? found->next : NULL);
    hk_json_end(json);
}

void hk_encode_message_acted(struct hk_json *json, const void *result)
{
    const struct hk_message_acted *acted = result;
    hk_json_object(json);
    hk_put_cstr(json, "message_id", acted->act.message_id);
    hk_put_cstr(json, "act", acted->verb);
    hk_put_u64(json, "changed", acted->is.changed);
    hk_put_cstr(json, "actor", acted->act.actor);
    hk_put_cstr(json, "reason", acted->act.reason);
    hk_put_time(json, "at", acted->is.now_ms);
    hk_json_end(json);
}
