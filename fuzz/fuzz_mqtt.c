/* SPDX-License-Identifier: Apache-2.0 */
/* What an MQTT broker sends: what is read stays within its bytes. */
#include <string.h>

#include "fuzz.h"
#include "sink/mqtt/wire.h"

static void look(const struct hk_mqtt_packet *p, struct hk_str in)
{
    MUST(!p->reason.len || (p->reason.ptr >= in.ptr && p->reason.ptr + p->reason.len <= in.ptr + in.len));
    MUST(p->type != HK_MQTT_CONNACK || p->receive_maximum);
    MUST(hk_mqtt_reason(p->code));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size ? size : 1); /* so that reading past the end is seen */
    MUST(copy);
    if (size)
        memcpy(copy, data, size);
    struct hk_str rest = {copy, size};
    struct hk_mqtt_packet p, cut;
    const char *why = NULL;
    size_t used = 0, cut_used = 0;
    enum hk_mqtt_next next = HK_MQTT_MORE;
    (void)hk_mqtt_topic_ok(rest);
    while (rest.len && (next = hk_mqtt_read(rest, &p, &used, &why)) == HK_MQTT_WHOLE) {
        MUST(used >= 2 && used <= rest.len);
        look(&p, rest);
        MUST(hk_mqtt_read((struct hk_str){rest.ptr, used - 1}, &cut, &cut_used, &why) == HK_MQTT_MORE);
        (void)fuzz_take(&rest, used);
    }
    if (rest.len && next == HK_MQTT_WRONG)
        MUST(why && why[0]);
    free(copy);
    return 0;
}
