/* SPDX-License-Identifier: Apache-2.0 */
/* Selects messages: turns the words of a request into a query of the store. */
#include <assert.h>

#include "desk/messages.h"
#include "desk/words.h"

static const struct hk_word words_of_messages[] = {
    {"status", offsetof(struct hk_message_words, status)},
    {"destination", offsetof(struct hk_message_words, destination)},
    {"type", offsetof(struct hk_message_words, event_type)},
    {"key", offsetof(struct hk_message_words, key)},
    {"correlation", offsetof(struct hk_message_words, correlation_id)},
    {"older", offsetof(struct hk_message_words, older)},
    {"newer", offsetof(struct hk_message_words, newer)},
    {"text", offsetof(struct hk_message_words, text)},
};

static const struct hk_words message_words = {
    words_of_messages, sizeof words_of_messages / sizeof words_of_messages[0], hk_filter_parse_messages};

static_assert(offsetof(struct hk_message_words, filter) == 0, "words begin with the filter");

bool hk_message_words_given(const struct hk_message_words *words)
{
    return hk_words_given(&message_words, words);
}

bool hk_message_words_beside_ids(const struct hk_message_words *words)
{
    return hk_words_beside_ids(&message_words, words);
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
    enum hk_code rc = hk_words_filter(desk, caller, &message_words, words, &filter.parsed, err);
    if (rc != HK_OK)
        return rc;
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
    filter.text = hk_words_text(filter.parsed, query, mem);
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
