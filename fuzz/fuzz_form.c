/* SPDX-License-Identifier: Apache-2.0 */
/* An operation ("relays list"), a line end, and any bytes as its result: a server's answer may be anything. What is taken is written
 * as JSON that jansson reads, that is taken again, and that says the same then. What is refused names a member, or the place. */
#include <string.h>

#include <jansson.h>

#include "desk/desk.h"
#include "fuzz.h"

static const struct hk_op *find_op(struct hk_str words)
{
    struct hk_str verb = words;
    struct hk_str noun = hk_str_cut(&verb, ' ');
    for (size_t i = 0; i < hk_n_ops; i++)
        if (hk_ops[i]->form && hk_str_eq(noun, hk_str_of(hk_ops[i]->noun)) &&
            hk_str_eq(verb.ptr ? verb : hk_str_of(""), hk_str_of(hk_ops[i]->verb ? hk_ops[i]->verb : "")))
            return hk_ops[i];
    return NULL;
}

static bool take(const struct hk_op *op, struct hk_str text, struct hk_buf *out)
{
    struct hk_pool mem = {NULL};
    struct hk_err err = {.message = ""};
    struct hk_json json;
    void *result = hk_pool_alloc(&mem, 1, op->result_size);
    MUST(result);
    enum hk_code rc = hk_form_read(text, op->form, &mem, result, &err);
    MUST(rc == HK_OK || (rc == HK_INVALID && err.message[0]));
    if (rc == HK_OK) {
        hk_json_init(&json, out, false);
        hk_form_write(&json, op->form, result);
        MUST(hk_buf_status(out) == HK_OK);
    }
    hk_pool_fini(&mem);
    return rc == HK_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hk_str rest = {(const char *)data, size};
    struct hk_buf once, twice;
    const struct hk_op *op = find_op(hk_str_cut(&rest, '\n'));
    if (size > 65536 || !op || !rest.ptr)
        return 0;
    hk_buf_init(&once, (size_t)1 << 24);
    hk_buf_init(&twice, (size_t)1 << 24);
    if (take(op, rest, &once)) {
        json_t *root = json_loadb(once.data, once.len, JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, NULL);
        MUST(root);
        json_decref(root);
        MUST(take(op, hk_buf_str(&once), &twice));
        MUST(hk_str_eq(hk_buf_str(&once), hk_buf_str(&twice)));
    }
    hk_buf_fini(&once);
    hk_buf_fini(&twice);
    return 0;
}
