/* SPDX-License-Identifier: Apache-2.0 */
/* Messages: look at them, cancel them, hurry them. */
#ifndef HK_DESK_MESSAGES_H
#define HK_DESK_MESSAGES_H

#include "desk/desk.h"
#include "payload/filter.h"

/* ---- which messages ---- */

/* Of a request: a filter, and words that stand for its terms. NULL = not given. */
struct hk_message_words {
    const char *filter;
    const char *status, *destination, *event_type, *key, *correlation_id, *older, *newer, *text;
};

#define HK_MESSAGE_WORD(type, words, field, word, says)                                                      \
    {                                                                                                        \
        .name = #field, .kind = HK_ARG_TEXT, .offset = offsetof(struct type, words.field), .value = word,    \
        .help = says                                                                                         \
    }
/* Their rows in the table of arguments of `struct type`, whose member `words` is such a struct. */
#define HK_MESSAGE_WORDS(type, words, states)                                                                \
    HK_MESSAGE_WORD(type, words, filter, "TERMS",                                                            \
                    "which: 'type:Order* payload.customer.id:42' (docs/filters.md)"),                        \
        {.name = "status",                                                                                   \
         .kind = HK_ARG_CHOICE,                                                                              \
         .offset = offsetof(struct type, words.status),                                                      \
         .value = "STATUS",                                                                                  \
         .choices = states,                                                                                  \
         .help = "only these"},                                                                              \
        HK_MESSAGE_WORD(type, words, destination, "NAME", "only for this one"),                              \
        HK_MESSAGE_WORD(type, words, event_type, "PATTERN", "only of this type; * stands for any text"),     \
        HK_MESSAGE_WORD(type, words, key, "KEY", "only with this message key"),                              \
        HK_MESSAGE_WORD(type, words, correlation_id, "ID", "only with this correlation id"),                 \
        HK_MESSAGE_WORD(type, words, older, "AGE", "written longer ago: 2h"),                                \
        HK_MESSAGE_WORD(type, words, newer, "AGE", "written since: 7d"),                                     \
        HK_MESSAGE_WORD(type, words, text, "TEXT", "found in error, ids or payload")

struct hk_message_filter {
    struct hk_filter *parsed;
    struct hk_list list; /* what is meant; limit and cursor are the caller's */
    const char *text;    /* the same as text that means the same at any time: what the audit or a job keeps */
};

/* The words together. HK_INVALID about the field "filter". */
enum hk_code hk_message_filter(struct hk_desk *desk, const struct hk_message_words *words,
                               struct hk_pool *mem, struct hk_message_filter *out, struct hk_err *err);
void hk_message_filter_free(struct hk_message_filter *filter);
/* Was anything given that says which messages are meant? A filter of blanks only says nothing. */
bool hk_message_words_given(const struct hk_message_words *words);
/* All but the destination, which may stand beside ids. */
bool hk_message_words_beside_ids(const struct hk_message_words *words);

/* ---- list ---- */

struct hk_messages_ask {
    struct hk_message_words words;
    uint64_t limit;
    uint64_t scan;     /* rows to look through where no index serves the filter; 0: HK_LIST_SCAN */
    const char *after; /* `next` of an earlier answer; NULL: from the newest on */
};

#define HK_LIST_SCAN       100000
#define HK_LIST_SCAN_MATCH 10000 /* where payloads are read */

struct hk_messages {
    struct hk_row *items;
    size_t n;
    char next[48]; /* "" = there are no others */
    uint64_t
        looked; /* rows that it looked through before it stopped at its bound; 0 = it did not stop there */
};

/* Newest first within each place. An error is not shown where a mask applies: only the payload could tell what to hide in it. */
extern const struct hk_op hk_op_messages_list;

/* ---- show ---- */

struct hk_message_show_ask {
    const char *message_id;
    bool payload; /* with it */
};

struct hk_message_shown {
    /* Masked; without masks a payload is as it is stored, else plain. Payloads that were not asked for have no pointer. */
    struct hk_shown is;
};

extern const struct hk_op hk_op_messages_show;

/* ---- cancel, retry ---- */

struct hk_message_act_ask {
    const char *message_id;
    const char *destination; /* NULL: the only one. HK_INVALID about it: the message goes to several. */
};

struct hk_message_acted {
    const char *verb;   /* "cancel" */
    struct hk_act act;  /* as it was asked for */
    struct hk_acted is; /* what came of it */
};

extern const struct hk_op hk_op_messages_cancel, hk_op_messages_retry;

#endif
