/* SPDX-License-Identifier: Apache-2.0 */
/* Up to the first zero byte, a filter; behind it, a payload. A filter that is accepted is written in a form that reads the same at another
 * time and gives the same answer; one that is refused names a column. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "fuzz.h"
#include "payload/filter.h"

#define NOW INT64_C(1794700800000)

static bool matches(const struct hk_filter *filter, struct hk_str payload)
{
    const struct hk_letter_query *query = hk_filter_query(filter);
    struct hk_letter letter = {.error = {"Connection reset", 16}, .payload = payload};
    if (payload.len % 2)
        letter.encoding = hk_str_of("base64");
    return !query->match || query->match(query->match_arg, &letter);
}

static void check(const struct hk_filter *filter, struct hk_str payload)
{
    struct hk_filter *again = NULL;
    struct hk_buf once, twice;
    struct hk_err err;
    hk_buf_init(&once, HK_FILTER_TEXT_MAX);
    hk_buf_init(&twice, HK_FILTER_TEXT_MAX);
    hk_filter_text(filter, hk_filter_query(filter), &once);
    MUST(hk_buf_status(&once) == HK_OK);
    MUST(hk_filter_parse(hk_buf_cstr(&once), 5 * NOW, &again, &err) == HK_OK);
    hk_filter_text(again, hk_filter_query(again), &twice);
    MUST(hk_str_eq(hk_buf_str(&once), hk_buf_str(&twice)));
    MUST(hk_filter_query(filter)->statuses == hk_filter_query(again)->statuses);
    MUST(matches(filter, payload) == matches(again, payload));
    hk_filter_free(again);
    hk_buf_fini(&once);
    hk_buf_fini(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hk_filter *filter = NULL;
    struct hk_err err;
    if (size > 65536)
        return 0;
    struct hk_str payload = {(const char *)data, size};
    struct hk_str text = hk_str_cut(&payload, '\0');
    char *copy = malloc(text.len + 1);
    MUST(copy != NULL);
    if (text.len)
        memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    enum hk_code rc = hk_filter_parse(copy, NOW, &filter, &err);
    free(copy); /* nothing of it is needed any more */
    MUST(rc == HK_OK || (rc == HK_INVALID && (strncmp(err.message, "column ", 7) == 0 ||
                                              strncmp(err.message, "the filter is ", 14) == 0)));
    MUST((rc == HK_OK) == (filter != NULL));
    if (filter)
        check(filter, payload);
    hk_filter_free(filter);
    return 0;
}
