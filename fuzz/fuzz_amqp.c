/* SPDX-License-Identifier: Apache-2.0 */
/* What RabbitMQ sends: frames stay within their bytes, mean the same in whatever pieces they come in, and methods within their frame. */
#include <string.h>

#include "fuzz.h"
#include "sink/amqp/wire.h"

static void inside(struct hk_str part, struct hk_str whole)
{
    MUST(!part.len || (part.ptr >= whole.ptr && part.ptr + part.len <= whole.ptr + whole.len));
}

static void look(const struct hk_amqp_frame *f, struct hk_str in)
{
    struct hk_amqp_method m;
    struct hk_str id;
    inside(f->payload, in);
    if (hk_amqp_read_method(f->payload, &m)) {
        inside(m.text, f->payload);
        inside(m.mechanisms, f->payload);
        MUST(m.text.len <= HK_AMQP_SHORT_MAX);
    }
    if (hk_amqp_read_header(f->payload, &id)) {
        inside(id, f->payload);
        MUST(id.len <= HK_AMQP_SHORT_MAX);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size ? size : 1); /* so that reading past the end is seen */
    MUST(copy);
    if (size)
        memcpy(copy, data, size);
    struct hk_str rest = {copy, size};
    struct hk_amqp_frame f;
    const char *why = NULL;
    size_t used = 0;
    enum hk_amqp_next next;
    while (rest.len && (next = hk_amqp_read_frame(rest, &f, &used, &why)) == HK_AMQP_WHOLE) {
        MUST(used >= 8 && used <= rest.len && used <= HK_AMQP_FRAME_MAX + 8);
        look(&f, rest);
        struct hk_amqp_frame cut;
        size_t cut_used = 0;
        MUST(hk_amqp_read_frame((struct hk_str){rest.ptr, used - 1}, &cut, &cut_used, &why) == HK_AMQP_MORE);
        (void)fuzz_take(&rest, used);
    }
    if (rest.len && next == HK_AMQP_WRONG)
        MUST(why && why[0]);
    free(copy);
    return 0;
}
