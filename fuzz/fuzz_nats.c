/* SPDX-License-Identifier: Apache-2.0 */
/* What a NATS server sends, and credentials: what is read stays within its bytes. */
#include <string.h>

#include "fuzz.h"
#include "sink/nats/nkey.h"
#include "sink/nats/wire.h"

static void inside(struct hk_str part, struct hk_str whole)
{
    MUST(!part.len || (part.ptr >= whole.ptr && part.ptr + part.len <= whole.ptr + whole.len));
}

static void on_url(void *arg, struct hk_str url)
{
    (void)arg;
    MUST(url.len && url.len < HK_NATS_WORD_MAX);
}

static void look(const struct hk_nats_op *op, struct hk_str in)
{
    struct hk_nats_info info;
    struct hk_nats_ack ack;
    inside(op->text, in);
    inside(op->subject, in);
    inside(op->payload, in);
    MUST(op->status <= 999);
    if (hk_nats_read_info(op->text, &info, on_url, NULL))
        MUST(strlen(info.nonce) < HK_NATS_WORD_MAX);
    if (hk_nats_read_ack(op->payload, &ack))
        MUST(strlen(ack.description) < HK_NATS_WORD_MAX && !(ack.stored && (ack.code || !ack.sequence)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size ? size : 1); /* so that reading past the end is seen */
    MUST(copy);
    if (size)
        memcpy(copy, data, size);
    struct hk_str rest = {copy, size}, jwt;
    struct hk_nats_op op;
    struct hk_nkey key;
    const char *why = NULL;
    size_t used = 0;
    enum hk_nats_next next = HK_NATS_MORE;
    if (hk_nkey_read_creds(rest, &jwt, &key))
        MUST(strlen(key.public_key) == HK_NKEY_PUBLIC);
    inside(jwt, rest);
    (void)hk_nats_subject_ok(rest);
    while (rest.len && (next = hk_nats_read(rest, &op, &used, &why)) == HK_NATS_WHOLE) {
        MUST(used && used <= rest.len);
        look(&op, rest);
        struct hk_nats_op cut;
        size_t cut_used = 0;
        MUST(hk_nats_read((struct hk_str){rest.ptr, used - 1}, &cut, &cut_used, &why) == HK_NATS_MORE);
        (void)fuzz_take(&rest, used);
    }
    if (rest.len && next == HK_NATS_WRONG)
        MUST(why && why[0]);
    free(copy);
    return 0;
}
