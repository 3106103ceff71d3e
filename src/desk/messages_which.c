/* SPDX-License-Identifier: Apache-2.0 */
/* Which messages are meant: words become what the store is asked for. */
#include "base/str.h"
#include "desk/messages.h"
#include "exec/clock.h"

static const struct {
    const char *term;
    size_t offset;
} terms[] = {
    {"status", offsetof(struct hk_message_words, status)},
    {"destination", offsetof(struct hk_message_words, destination)},
    {"type", offsetof(struct hk_message_words, event_type)},
    {"key", offsetof(struct hk_message_words, key)},
    {"correlation", offsetof(struct hk_message_words, correlation_id)},
    {"older", offsetof(struct hk_message_words, older)},
    {"newer", offsetof(struct hk_message_words, newer)},
    {"text", offsetof(struct hk_message_words, text)},
};

enum {
    N_TERMS = sizeof terms / sizeof terms[0]
};

static const char *word_of(const struct hk_message_words *words, size_t i)
{
    return *(const char *const *)((const char *)words + terms[i].offset);
}

bool hk_message_words_given(const struct hk_message_words *words)
{
    return words->destination || (words->filter && hk_str_trim(hk_str_of(words->filter)).len > 0) ||
           (hk_message_words_beside_ids(words) && !words->filter);
}

bool hk_message_words_beside_ids(const struct hk_message_words *words)
{
    bool given = words->filter != NULL;
    for (size_t i = 0; i < N_TERMS; i++)
        given = given || (terms[i].offset != offsetof(struct hk_message_words, destination) &&
                          word_of(words, i) != NULL);
    return given;
}

static enum hk_code parse(struct hk_desk *desk, const struct hk_message_words *words, struct hk_filter **out,
                          struct hk_err *err)
{
    struct hk_err why = {.message = "the filter is too long"};
    struct hk_buf text;
    hk_buf_init(&text, (size_t)2 * HK_FILTER_TEXT_MAX);
    (void)hk_buf_adds(&text, words->filter ? words->filter : "");
    for (size_t i = 0; i < N_TERMS; i++)
        if (word_of(words, i))
            hk_filter_term(terms[i].term, word_of(words, i), &text);
    enum hk_code rc = hk_buf_status(&text);
    if (rc == HK_OK)
        rc = hk_filter_parse_messages(hk_buf_cstr(&text), hk_clock_wall_ms(), out, &why);
    hk_buf_fini(&text);
    if (rc == HK_NOMEM)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    return rc == HK_OK ? HK_OK : hk_desk_wrong(desk, "filter", err, ": %s", why.message);
}

/* The one that is asked for; all, or none that is named: any. */
static enum hk_state state_of(unsigned states)
{
    for (int s = HK_PENDING; s < HK_NSTATES; s++)
        if (states == 1u << s)
            return (enum hk_state)s;
    return HK_STATE_NONE;
}

enum hk_code hk_message_filter(struct hk_desk *desk, const struct hk_caller *caller,
                               const struct hk_message_words *words, struct hk_pool *mem,
                               struct hk_message_filter *out, struct hk_err *err)
{
    struct hk_message_filter filter = {.parsed = NULL};
    struct hk_masks *hidden = NULL;
    struct hk_buf text;
    enum hk_code rc = parse(desk, words, &filter.parsed, err);
    if (rc == HK_OK)
        rc = hk_desk_hidden(desk, caller, &hidden, err);
    if (rc == HK_OK)
        rc = hk_filter_veil(filter.parsed, hidden, err);
    if (rc != HK_OK) {
        hk_message_filter_free(&filter);
        return rc;
    }
    const struct hk_letter_query *query = hk_filter_query(filter.parsed);
    filter.list = (struct hk_list){.state = state_of(query->statuses),
                                   .destination = query->destination,
                                   .correlation_id = query->correlation_id,
                                   .key = query->key,
                                   .event_type = query->event_type,
                                   .since_ms = query->since_ms,
                                   .before_ms = query->before_ms,
                                   .match = query->match,
                                   .match_arg = query->match_arg,
                                   .sieve = query->sieve};
    hk_buf_init(&text, (size_t)4 * HK_FILTER_TEXT_MAX);
    hk_filter_text(filter.parsed, query, &text);
    if (hk_buf_status(&text) == HK_OK)
        filter.text = hk_pool_copy_str(mem, hk_buf_str(&text));
    hk_buf_fini(&text);
    *out = filter;
    if (filter.text)
        return HK_OK;
    hk_message_filter_free(out);
    return hk_err_set(err, HK_NOMEM, "out of memory");
}

void hk_message_filter_free(struct hk_message_filter *filter)
{
    hk_filter_free(filter->parsed);
    filter->parsed = NULL;
}
