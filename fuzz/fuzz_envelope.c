/* SPDX-License-Identifier: Apache-2.0 */
/* Sealed payloads: a text that opens is one that we could have written, no text that was changed opens, and what is sealed opens as what
 * it was. The first byte says which: 0 to 127 takes the rest as a sealed text, the others seal it, and change one byte of that. */
#include <string.h>

#include "base/buf.h"
#include "fuzz.h"
#include "payload/envelope.h"

static enum hk_code fetch(void *arg, size_t i, unsigned char out[HK_KEY_BYTES], struct hk_err *err)
{
    (void)arg;
    (void)err;
    memset(out, (int)i + 1, HK_KEY_BYTES);
    return HK_OK;
}

static enum hk_code open_it(struct hk_keyring *keys, struct hk_str sealed, const char *id, struct hk_str *out,
                            struct hk_pool *mem)
{
    const struct hk_sealed_place place = {HK_SEALED_PAYLOAD, hk_str_of(id)};
    return hk_envelope_open(keys, &place, sealed, mem, out, NULL);
}

static void there_and_back(struct hk_keyring *keys, struct hk_str plain, uint8_t at)
{
    const struct hk_sealed_place place = {HK_SEALED_PAYLOAD, hk_str_of("m-1")};
    struct hk_buf text;
    struct hk_pool mem = {.blocks = NULL};
    struct hk_str back = {"", 0};
    hk_buf_init(&text, (size_t)1 << 20);
    MUST(hk_envelope_seal(keys, &place, plain, &text, NULL) == HK_OK);
    MUST(open_it(keys, hk_buf_str(&text), "m-1", &back, &mem) == HK_OK && hk_str_eq(back, plain));
    MUST(open_it(keys, hk_buf_str(&text), "m-2", &back, &mem) == HK_INVALID);
    text.data[(size_t)at * 31 % text.len] ^= 1;
    MUST(open_it(keys, hk_buf_str(&text), "m-1", &back, &mem) != HK_OK);
    hk_pool_fini(&mem);
    hk_buf_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const ids[] = {"2026-11", "old"};
    const struct hk_keyring_options options = {.store = "shop", .ids = ids, .n = 2, .fetch = fetch};
    struct hk_keyring *keys = NULL;
    struct hk_pool mem = {.blocks = NULL};
    struct hk_str out = {"", 0};
    if (size < 1 || size > 4096)
        return 0;
    struct hk_str rest = {(const char *)data + 1, size - 1};
    MUST(hk_keyring_new(&options, &keys, NULL) == HK_OK);
    if (data[0] < 128) {
        enum hk_code rc = open_it(keys, rest, "m-1", &out, &mem);
        MUST(rc == HK_OK || rc == HK_INVALID || rc == HK_UNAVAILABLE);
        MUST(rc == HK_OK || out.len == 0);
    } else {
        there_and_back(keys, rest, data[0]);
    }
    hk_pool_fini(&mem);
    hk_keyring_free(keys);
    return 0;
}
