/* SPDX-License-Identifier: Apache-2.0 */
/* Up to the first line feed, a path or a required field; behind it, a payload that it is asked of. A path that is accepted
 * is written in a form that reads the same; what it finds lies in the payload; a rule says nothing of the payload's own. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "fuzz.h"
#include "payload/validate.h"

static void check_written(const struct hk_path *path)
{
    struct hk_path *again = NULL;
    struct hk_buf once, twice;
    struct hk_err err;
    hk_buf_init(&once, 4096);
    hk_buf_init(&twice, 4096);
    hk_path_text(path, &once);
    MUST(hk_buf_status(&once) == HK_OK && hk_path_parse(hk_buf_str(&once), &again, &err) == HK_OK);
    hk_path_text(again, &twice);
    MUST(hk_str_eq(hk_buf_str(&once), hk_buf_str(&twice)));
    hk_path_free(again);
    hk_buf_fini(&once);
    hk_buf_fini(&twice);
}

static void follow(const struct hk_path *path, struct hk_str payload)
{
    struct hk_path_state states[1];
    struct hk_path_walk walk;
    struct hk_scan_token token;
    char where[64];
    size_t end = 0;
    hk_path_walk_init(&walk, payload, &path, states, 1);
    for (;;) {
        enum hk_scan_kind kind = hk_path_walk_next(&walk, &token);
        if (kind == HK_SCAN_END || kind == HK_SCAN_ERROR)
            break;
        MUST(states[0].flags != 0 && token.at >= end && token.at + token.raw.len <= payload.len);
        hk_path_walk_where(&walk, 0, where, sizeof where);
        MUST(where[0] == '$' && strlen(where) < sizeof where);
        end = token.at + token.raw.len;
        bool container = kind == HK_SCAN_OBJECT || kind == HK_SCAN_ARRAY;
        if (container && hk_path_walk_hit(&walk) && payload.len % 2 && !hk_path_walk_leave(&walk, &end))
            break;
    }
    MUST((walk.scan.why == NULL) == (hk_scan_check(payload, NULL) == HK_OK));
}

static void ask(struct hk_str field, struct hk_str payload)
{
    char text[HK_PATH_TEXT_MAX + 64];
    const char *fields[] = {text};
    struct hk_validate_rule rule = {.required = fields, .n_required = 1};
    struct hk_validate *validate = NULL;
    struct hk_finding finding = {.reason = NULL};
    struct hk_err err;
    if (!hk_str_copy(text, sizeof text, field))
        return;
    enum hk_code rc = hk_validate_new(&rule, 1, &validate, &err);
    MUST(rc == HK_OK || rc == HK_INVALID);
    if (rc != HK_OK)
        return;
    if (!hk_validate_payload(validate, hk_str_of("E"), payload, &finding))
        MUST(finding.reason && strlen(finding.text) > 0);
    else
        MUST(!finding.reason && hk_scan_check(payload, NULL) == HK_OK);
    hk_validate_free(validate);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hk_str payload = {(const char *)data, size};
    struct hk_path *path = NULL;
    struct hk_err err;
    if (size > 65536)
        return 0;
    struct hk_str text = hk_str_cut(&payload, '\n');
    enum hk_code rc = hk_path_parse(text, &path, &err);
    MUST(rc == HK_OK || (rc == HK_INVALID && strncmp(err.message, "column ", 7) == 0));
    MUST(rc == hk_path_parse(text, NULL, &err));
    if (path) {
        check_written(path);
        follow(path, payload);
    }
    hk_path_free(path);
    ask(text, payload);
    return 0;
}
