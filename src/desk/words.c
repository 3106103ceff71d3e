/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/str.h"
#include "desk/words.h"
#include "exec/clock.h"

static const char *text_at(const void *given, size_t offset)
{
    return *(const char *const *)((const char *)given + offset);
}

static const char *filter_of(const void *given)
{
    return text_at(given, 0);
}

bool hk_words_given(const struct hk_words *kind, const void *given)
{
    const char *filter = filter_of(given);
    bool any = filter && hk_str_trim(hk_str_of(filter)).len > 0;
    for (size_t i = 0; i < kind->n; i++)
        any = any || text_at(given, kind->words[i].offset);
    return any;
}

bool hk_words_beside_ids(const struct hk_words *kind, const void *given)
{
    bool any = filter_of(given) != NULL;
    for (size_t i = 0; i < kind->n; i++)
        any =
            any || (strcmp(kind->words[i].term, "destination") != 0 && text_at(given, kind->words[i].offset));
    return any;
}

enum hk_code hk_words_parse(struct hk_desk *desk, const struct hk_words *kind, const void *given,
                            struct hk_filter **out, struct hk_err *err)
{
    struct hk_err why = {.message = "the filter is too long"};
    struct hk_buf text;
    hk_buf_init(&text, (size_t)2 * HK_FILTER_TEXT_MAX);
    (void)hk_buf_adds(&text, filter_of(given) ? filter_of(given) : "");
    for (size_t i = 0; i < kind->n; i++)
        if (text_at(given, kind->words[i].offset))
            hk_filter_term(kind->words[i].term, text_at(given, kind->words[i].offset), &text);
    enum hk_code rc = hk_buf_status(&text);
    if (rc == HK_OK)
        rc = kind->parse(hk_buf_cstr(&text), hk_clock_wall_ms(), out, &why);
    hk_buf_fini(&text);
    if (rc == HK_NOMEM)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    return rc == HK_OK ? HK_OK : hk_desk_wrong(desk, "filter", err, ": %s", why.message);
}

enum hk_code hk_words_filter(struct hk_desk *desk, const struct hk_caller *caller,
                             const struct hk_words *kind, const void *given, struct hk_filter **out,
                             struct hk_err *err)
{
    struct hk_filter *filter = NULL;
    struct hk_masks *hidden = NULL;
    enum hk_code rc = hk_words_parse(desk, kind, given, &filter, err);
    if (rc == HK_OK)
        rc = hk_desk_hidden(desk, caller, &hidden, err);
    if (rc == HK_OK)
        rc = hk_filter_veil(filter, hidden, err);
    if (rc == HK_OK && hk_filter_opens(filter) && !caller->may_reveal)
        rc = hk_err_set(err, HK_DENIED, "opens:sealed needs the right to reveal");
    if (rc != HK_OK) {
        hk_filter_free(filter);
        return rc;
    }
    if (caller->may_reveal && desk->config) /* a mere check has none */
        hk_filter_open_sealed(filter, desk->config->keys);
    *out = filter;
    return HK_OK;
}

const char *hk_words_text(const struct hk_filter *filter, const struct hk_letter_query *query,
                          struct hk_pool *mem)
{
    struct hk_buf text;
    hk_buf_init(&text, (size_t)4 * HK_FILTER_TEXT_MAX);
    hk_filter_text(filter, query, &text);
    const char *copy = hk_buf_status(&text) == HK_OK ? hk_pool_copy_str(mem, hk_buf_str(&text)) : NULL;
    hk_buf_fini(&text);
    return copy;
}
