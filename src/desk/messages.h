/* SPDX-License-Identifier: Apache-2.0 */
/* Messages: look at them, cancel them, bring them back, hurry them. */
#ifndef HK_DESK_MESSAGES_H
#define HK_DESK_MESSAGES_H

#include "desk/desk.h"
#include "payload/filter.h"

/* ---- which messages ---- */

/* Parts of a request: a filter, and options that each are one term of it. NULL = not given. */
struct hk_message_words {
    const char *filter;
    const char *status, *destination, *event_type, *key, *correlation_id, *older, *newer, *text;
};

#define HK_MESSAGE_WORD(type, words, field, word, says)                                                      \
    {                                                                                                        \
        .name = #field, .kind = HK_ARG_TEXT,                                                                 \
        .offset = offsetof(struct type, words) + offsetof(struct hk_message_words, field), .value = (word),  \
        .help = (says)                                                                                       \
    }
/* Their rows in the table of arguments of `struct type`, whose member `words` is such a struct. */
#define HK_MESSAGE_WORDS(type, words, states)                                                                \
    HK_MESSAGE_WORD(type, words, filter, "TERMS",                                                            \
                    "filter: 'type:Order* payload.customer.id:42' (docs/filters.md)"),                       \
        {.name = "status",                                                                                   \
         .kind = HK_ARG_CHOICE,                                                                              \
         .offset = offsetof(struct type, words) + offsetof(struct hk_message_words, status),                 \
         .value = "STATUS",                                                                                  \
         .choices = (states),                                                                                \
         .help = "only these"},                                                                              \
        HK_MESSAGE_WORD(type, words, destination, "NAME", "only messages of this destination"),              \
        HK_MESSAGE_WORD(type, words, event_type, "PATTERN", "only of this type; * stands for any text"),     \
        HK_MESSAGE_WORD(type, words, key, "KEY", "only with this message key"),                              \
        HK_MESSAGE_WORD(type, words, correlation_id, "ID", "only with this correlation id"),                 \
        HK_MESSAGE_WORD(type, words, older, "AGE",                                                           \
                        "only messages written longer ago than this, such as 2h"),                           \
        HK_MESSAGE_WORD(type, words, newer, "AGE", "only messages written within this time, such as 7d"),    \
        HK_MESSAGE_WORD(type, words, text, "TEXT", "only those with this text in error, ids or payload")

struct hk_message_filter {
    struct hk_filter *parsed;
    struct hk_list list; /* the selection; limit and cursor are the caller's */
    const char *text;    /* the same as text with absolute times, for the audit or a job */
};

/* The words together. HK_INVALID about the field "filter". HK_DENIED: as hk_letter_filter. */
enum hk_code hk_message_filter(struct hk_desk *desk, const struct hk_caller *caller,
                               const struct hk_message_words *words, struct hk_pool *mem,
                               struct hk_message_filter *out, struct hk_err *err);
void hk_message_filter_free(struct hk_message_filter *filter);
/* Does the request select messages at all? A filter of blanks does not. */
bool hk_message_words_given(const struct hk_message_words *words);
/* The same without the destination, which may be given together with ids. */
bool hk_message_words_beside_ids(const struct hk_message_words *words);

/* ---- list ---- */

struct hk_messages_ask {
    struct hk_message_words words;
    uint64_t limit;
    uint64_t scan;     /* rows to look through where no index serves the filter; 0: as hk_list_scan */
    const char *after; /* `next` of an earlier answer; NULL: from the newest on */
};

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

/* ---- attempts ---- */

struct hk_attempts_ask {
    const char *message_id;
    uint64_t limit;
    uint64_t after; /* `next` of an earlier answer; 0: from the first on */
};

/* Oldest first, masked as `show` masks them. Also of a message that is gone, as long as its attempts are kept. */
struct hk_attempts {
    struct hk_tried *items;
    size_t n;
    int64_t next; /* 0 = there are no others */
};

extern const struct hk_op hk_op_messages_attempts;

/* ---- cancel, retry ---- */

struct hk_message_act_ask {
    const char *message_id;
    const char *destination; /* NULL: the only one. HK_INVALID about it: the message goes to several. */
    bool force;              /* retry */
};

struct hk_message_acted {
    const char *verb;   /* "cancel" */
    struct hk_act act;  /* as it was asked for */
    struct hk_acted is; /* what came of it */
};

extern const struct hk_op hk_op_messages_cancel_one; /* no command: `messages cancel` does the same */
extern const struct hk_op hk_op_messages_retry;

/* ---- cancel and restore many ---- */

enum hk_messages_kind {
    HK_MESSAGES_CANCEL,
    HK_MESSAGES_RESTORE,
    HK_MESSAGES_ERASE
};

const char *hk_messages_verb(enum hk_messages_kind kind); /* "cancel" */

struct hk_messages_act_ask {
    struct hk_texts ids; /* none: those of `words`, or of `act` */
    struct hk_message_words
        words;    /* with ids, only the destination may be given: it selects one of a message's rows */
    uint64_t act; /* restore: what this cancel of many took; 0 = none */
    bool dry_run;
};

#define HK_MESSAGES_ITEMS    1000
#define HK_MESSAGES_EXAMPLES 5

struct hk_messages_item {
    struct hk_str message_id, destination;
    enum hk_letter_did did;
    const char *why; /* it was not done, or was so already; NULL = it was done */
};

struct hk_messages_acted {
    enum hk_messages_kind kind;
    bool dry_run;
    const char *message_id; /* the one that was named; NULL = several, or by filter */
    const char *actor, *reason;
    int64_t undone; /* restore: the act; 0 = none */
    int64_t at_ms;
    struct hk_err stopped; /* code HK_OK, or why it ended before all were looked at */

    /* of a dry run */
    uint64_t fit;            /* messages that it would change */
    uint64_t others;         /* selected, but in a state that does not allow the act */
    struct hk_row *examples; /* of `fit`: message_id, destination, event_type, state and created_ms */
    size_t n_examples;

    /* of what was done */
    uint64_t done, nothing, missing, refused;
    uint64_t overtaken; /* of an act that is undone: they are not cancelled any more */
    int64_t act_id;     /* in the audit; 0 = none, or one message was named */
    struct hk_messages_item
        *items; /* the first HK_MESSAGES_ITEMS of `n_all`; of a dry run those that cannot be done */
    size_t n;
    uint64_t n_all;
};

/* Any number, in steps that each act on the next page of a list: a step can be repeated, and ends with a cursor. */
extern const struct hk_op hk_op_messages_cancel, hk_op_messages_restore, hk_op_messages_erase;

#endif
