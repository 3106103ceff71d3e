/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON writer driven by random steps; every document must be read by jansson, and say the same in both forms.
 * The first byte is the number of bytes that the buffer may hold, times 16; 0 means enough. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/json.h"
#include "base/str.h"
#include "fuzz.h"

static struct hk_str take(struct hk_str *rest, size_t n)
{
    struct hk_str taken = {rest->ptr, n < rest->len ? n : rest->len};
    rest->ptr += taken.len;
    rest->len -= taken.len;
    return taken;
}

static void write_scalar(struct hk_json *json, unsigned op, struct hk_str *rest)
{
    uint64_t bits = 0;
    double real;
    struct hk_str bytes = take(rest, op < 4 ? 8 : op * 2);
    memcpy(&bits, bytes.ptr, bytes.len < 8 ? bytes.len : 8);
    memcpy(&real, &bits, sizeof real);
    if (op == 0)
        hk_json_i64(json, (int64_t)bits);
    else if (op == 1)
        hk_json_u64(json, bits >> 1); /* jansson's integers are signed */
    else if (op == 2)
        hk_json_double(json, real);
    else if (op == 3)
        hk_json_bool(json, bits & 1);
    else
        hk_json_str(json, bytes);
}

/* One step; a container that is full or too deep takes a scalar instead. */
static void step(struct hk_json *json, struct hk_str *rest, unsigned number)
{
    unsigned op = (unsigned char)take(rest, 1).ptr[0] % 12;
    if (op == 11 && json->depth > 1) {
        hk_json_end(json);
        return;
    }
    if (json->is_object[json->depth - 1]) {
        char key[16] = {0};
        struct hk_str text = take(rest, 3);
        for (size_t i = 0; i < text.len; i++)
            key[i] = text.ptr[i] ? text.ptr[i] : ' ';
        key[text.len] = (char)('A' + number % 26);
        hk_json_key(json, key);
    }
    if (op >= 9 && json->depth < HK_JSON_DEPTH) {
        if (op == 9)
            hk_json_object(json);
        else
            hk_json_array(json);
        return;
    }
    write_scalar(json, op % 9, rest);
}

static void write_document(struct hk_str input, struct hk_buf *buf, bool pretty)
{
    struct hk_json json;
    hk_json_init(&json, buf, pretty);
    hk_json_array(&json);
    for (unsigned i = 0; input.len > 0; i++)
        step(&json, &input, i);
    while (json.depth > 0)
        hk_json_end(&json);
}

static json_t *read_document(const struct hk_buf *buf)
{
    struct hk_str text = hk_buf_str(buf);
    json_t *root = json_loadb(text.ptr, text.len, JSON_ALLOW_NUL, NULL);
    MUST(root != NULL);
    return root;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size > 4096)
        return 0;
    struct hk_str input = {(const char *)data + 1, size - 1};
    struct hk_buf plain, pretty, small;
    hk_buf_init(&plain, (size_t)1 << 24);
    hk_buf_init(&pretty, (size_t)1 << 24);
    hk_buf_init(&small, data[0] ? (size_t)data[0] * 16 : (size_t)1 << 24);
    write_document(input, &plain, false);
    write_document(input, &pretty, true);
    write_document(input, &small, false);
    MUST(hk_buf_status(&plain) == HK_OK && hk_buf_status(&pretty) == HK_OK);
    MUST(!memchr(plain.data, '\n', plain.len));

    json_t *a = read_document(&plain), *b = read_document(&pretty);
    MUST(json_equal(a, b));
    json_decref(a);
    json_decref(b);

    /* too small a buffer: a prefix, and an error that stays */
    bool fits = plain.len <= small.max;
    MUST(hk_buf_status(&small) == (fits ? HK_OK : HK_TOOBIG));
    MUST(small.len <= plain.len && memcmp(hk_buf_cstr(&small), plain.data, small.len) == 0);
    MUST(!fits || small.len == plain.len);
    hk_buf_fini(&plain);
    hk_buf_fini(&pretty);
    hk_buf_fini(&small);
    return 0;
}
