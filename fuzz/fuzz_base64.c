/* SPDX-License-Identifier: Apache-2.0 */
/* base64 of payloads and secrets: what is taken is canonical, so that encoding it again gives the same characters (but for blanks and
 * padding), it fits the room that was promised for it, and with less room it is refused. And whatever is encoded is read again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/buf.h"
#include "fuzz.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Without blanks and padding. */
static void add_core(struct hk_buf *out, struct hk_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!is_blank(text.ptr[i]) && text.ptr[i] != '=')
            MUST(hk_buf_addc(out, text.ptr[i]) == HK_OK);
}

static void check_taken(struct hk_str text, const unsigned char *bytes, size_t len)
{
    struct hk_buf again, was, is;
    hk_buf_init(&again, 65536);
    hk_buf_init(&was, 65536);
    hk_buf_init(&is, 65536);
    hk_buf_add_base64(&again, (const char *)bytes, len);
    add_core(&was, text);
    add_core(&is, hk_buf_str(&again));
    MUST(hk_str_eq(hk_buf_str(&was), hk_buf_str(&is)));
    hk_buf_fini(&again);
    hk_buf_fini(&was);
    hk_buf_fini(&is);
}

static void decode(struct hk_str text, enum hk_base64_form form)
{
    size_t room = hk_base64_room(text.len), len = SIZE_MAX;
    unsigned char *out = malloc(room ? room : 1);
    MUST(out != NULL);
    bool good = hk_base64_decode(text, form, out, room, &len);
    MUST(good || len == SIZE_MAX);
    if (good) {
        MUST(len <= room);
        check_taken(text, out, len);
        for (size_t less = 0; less < len; less += 1 + len / 8) {
            unsigned char *small =
                malloc(less ? less : 1); /* as large as is said: nothing is written behind it */
            size_t n = 0;
            MUST(small != NULL && !hk_base64_decode(text, form, small, less, &n));
            free(small);
        }
    }
    free(out);
}

static void there_and_back(struct hk_str bytes)
{
    struct hk_buf text;
    unsigned char back[8192];
    size_t len = 0;
    hk_buf_init(&text, 65536);
    hk_buf_add_base64(&text, bytes.ptr, bytes.len);
    MUST(hk_base64_decode(hk_buf_str(&text), HK_BASE64_LINES, back, sizeof back, &len));
    MUST(len == bytes.len && (len == 0 || memcmp(back, bytes.ptr, len) == 0));
    hk_buf_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hk_str text = {(const char *)data, size};
    if (size > 4096)
        return 0;
    decode(text, HK_BASE64_LINES);
    decode(text, HK_BASE64_BARE);
    there_and_back(text);
    return 0;
}
