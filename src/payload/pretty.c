/* SPDX-License-Identifier: Apache-2.0 */
/* Laying JSON out. Indentation stops growing at some depth: nothing there is read by its indentation, and a text of nothing but brackets
 * would otherwise become hundreds of times as long. */
#include "payload/pretty.h"

#define INDENT_MAX 32

static void new_line(unsigned depth, struct hk_buf *out)
{
    static const char blanks[] = "                                                                ";
    unsigned levels = depth < INDENT_MAX ? depth : INDENT_MAX;
    hk_buf_addc(out, '\n');
    hk_buf_add(out, blanks, (size_t)levels * 2);
}

/* What stands before a token, given the one before it. */
static void separate(enum hk_scan_kind before, enum hk_scan_kind kind, unsigned depth, struct hk_buf *out)
{
    bool opened = before == HK_SCAN_OBJECT || before == HK_SCAN_ARRAY;
    bool closes = kind == HK_SCAN_OBJECT_END || kind == HK_SCAN_ARRAY_END;
    if (before == HK_SCAN_END || (opened && closes))
        return; /* the beginning; nothing inside */
    if (before == HK_SCAN_KEY) {
        hk_buf_add(out, ": ", 2);
        return;
    }
    if (!opened && !closes)
        hk_buf_addc(out, ',');
    new_line(depth, out);
}

enum hk_code hk_pretty_write(struct hk_str json, struct hk_buf *out)
{
    struct hk_json_scan scan;
    struct hk_scan_token token;
    enum hk_scan_kind before = HK_SCAN_END;
    enum hk_code rc = hk_scan_check(json, NULL);
    if (rc != HK_OK)
        return rc;
    hk_scan_init(&scan, json);
    for (;;) {
        enum hk_scan_kind kind = hk_scan_next(&scan, &token);
        if (kind == HK_SCAN_END || kind == HK_SCAN_ERROR)
            break;
        bool opens = kind == HK_SCAN_OBJECT || kind == HK_SCAN_ARRAY;
        separate(before, kind, scan.depth - opens, out);
        hk_buf_add(out, token.raw.ptr, token.raw.len);
        before = kind;
    }
    return hk_buf_addc(out, '\n');
}
