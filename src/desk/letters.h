/* SPDX-License-Identifier: Apache-2.0 */
/* Dead letters: which are meant, and what people may see of them. Everything that anybody sees of a letter goes through the
 * functions here, so that no operation can forget a mask. */
#ifndef HK_DESK_LETTERS_H
#define HK_DESK_LETTERS_H

#include "desk/desk.h"
#include "payload/filter.h"

#define HK_LETTER_BYTES ((size_t)64 << 20) /* of a payload that is read whole */

/* ---- which letters ---- */

/* Of a request: a filter, and words that stand for its terms. NULL = not given. */
struct hk_letter_words {
    const char *filter;
    const char *destination, *event_type, *reason_code, *failure_class, *status, *group, *older, *newer,
        *text;
};

/* Their rows in the table of arguments of `struct type`, whose member `words` is such a struct. */
#define HK_LETTER_WORD(type, words, of, field, word, says)                                                   \
    {                                                                                                        \
        .name = (of), .kind = HK_ARG_TEXT,                                                                   \
        .offset = offsetof(struct type, words) + offsetof(struct hk_letter_words, field), .value = (word),   \
        .help = (says)                                                                                       \
    }
#define HK_LETTER_WORD_OF(type, words, of, field, word, all, says)                                           \
    {                                                                                                        \
        .name = (of), .kind = HK_ARG_CHOICE,                                                                 \
        .offset = offsetof(struct type, words) + offsetof(struct hk_letter_words, field), .value = (word),   \
        .choices = (all), .help = (says)                                                                     \
    }
#define HK_LETTER_WORDS(type, words) HK_LETTER_WORDS_BY(type, words, "failed, which is open")
#define HK_LETTER_WORDS_BY(type, words, default_status)                                                      \
    HK_LETTER_WORD(type, words, "filter", filter, "TERMS",                                                   \
                   "which: 'reason:HTTP_422 payload.customer.id:42' (docs/filters.md)"),                     \
        HK_LETTER_WORD(type, words, "destination", destination, "NAME", "only for this one"),                \
        HK_LETTER_WORD(type, words, "event_type", event_type, "PATTERN",                                     \
                       "only of this type; * stands for any text"),                                          \
        HK_LETTER_WORD(type, words, "reason_code", reason_code, "CODE", "only that died of this"),           \
        HK_LETTER_WORD_OF(type, words, "class", failure_class, "CLASS",                                      \
                          "transient rate_limit auth permanent unknown", "only of this failure class"),      \
        HK_LETTER_WORD_OF(type, words, "status", status, "STATUS", "failed retrying resolved discarded any", \
                          "(default: " default_status ")"),                                                  \
        HK_LETTER_WORD(type, words, "group", group, "GROUP", "only of this group (dead groups)"),            \
        HK_LETTER_WORD(type, words, "older", older, "AGE", "last failed longer ago: 2h"),                    \
        HK_LETTER_WORD(type, words, "newer", newer, "AGE", "last failed since: 7d"),                         \
        HK_LETTER_WORD(type, words, "text", text, "TEXT", "found in error, ids or payload")

/* The same rows for letters that are named: which one is meant, when a message went to several destinations. */
#define HK_LETTER_SUBJECT(type, field)                                                                       \
    {                                                                                                        \
        .name = "id", .kind = HK_ARG_TEXT, .subject = true, .required = true,                                \
        .offset = offsetof(struct type, field), .value = "ID", .help = "the letter's id, or a message's"     \
    }
#define HK_LETTER_DESTINATION(type, field)                                                                   \
    {                                                                                                        \
        .name = "destination", .kind = HK_ARG_TEXT, .offset = offsetof(struct type, field), .value = "NAME", \
        .help = "which, when it went to several"                                                             \
    }

/* Was anything given that says which letters are meant? A filter of blanks only says nothing: a script's variable was empty, and
 * all letters would be meant. */
bool hk_letter_words_given(const struct hk_letter_words *words);
/* Was anything given that says nothing where letters are named? (All but the destination: hk_letter_find takes that.) */
bool hk_letter_words_beside_ids(const struct hk_letter_words *words);

/* For checks: can they be read? HK_INVALID about the field "filter". */
enum hk_code hk_letter_words_check(struct hk_desk *desk, const struct hk_letter_words *words,
                                   struct hk_err *err);

struct hk_letter_filter {
    struct hk_filter *parsed;
    struct hk_letter_query query; /* with the default status; add to it */
    const char *text; /* the same as text that means the same at any time: what a job or the audit keeps */
};

/* The words together. `any_status`: without a status all are meant, else open ones. HK_INVALID about the field "filter". HK_DENIED: it
 * asks for what is masked, and the caller may not reveal that. */
enum hk_code hk_letter_filter(struct hk_desk *desk, const struct hk_caller *caller,
                              const struct hk_letter_words *words, bool any_status, struct hk_pool *mem,
                              struct hk_letter_filter *out, struct hk_err *err);
void hk_letter_filter_free(struct hk_letter_filter *filter);
/* For jobs: the words become one filter that means the same at any time, in `mem`. */
enum hk_code hk_letter_words_freeze(struct hk_desk *desk, const struct hk_caller *caller,
                                    struct hk_letter_words *words, bool any_status, struct hk_pool *mem,
                                    struct hk_err *err);

/* From now on a search that looks through many tells the caller which letter it has come to (hk_progress.done). `caller` is a variable
 * that lives as long as the query. */
void hk_letter_query_tells(struct hk_letter_query *query, const struct hk_caller **caller);

/* The letter that somebody means: by its id, or by a message_id (with `destination`, or NULL, when that went to several), also one
 * that it was requeued under. HK_NOTFOUND; HK_INVALID: there are several. A message_id of digits only must be written id:… */
enum hk_code hk_letter_find(struct hk_desk *desk, const char *operand, const char *destination,
                            int64_t *out_id, struct hk_err *err);

/* ---- acts ---- */

/* Arguments of every operation on some or on many, of the request `struct type` with members of these names. */
#define HK_MANY_IDS_ARG(type)                                                                                \
    {                                                                                                        \
        .name = "ids", .kind = HK_ARG_TEXTS, .subject = true, .offset = offsetof(struct type, ids),          \
        .value = "ID"                                                                                        \
    }
#define HK_MANY_DRY_RUN_ARG(type)                                                                            \
    {                                                                                                        \
        .name = "dry_run", .offset = offsetof(struct type, dry_run), .help = "say how many, change nothing"  \
    }
#define HK_MANY_ACT_ARG(type, says)                                                                          \
    {                                                                                                        \
        .name = "act", .kind = HK_ARG_NUMBER, .offset = offsetof(struct type, act), .lo = 1,                 \
        .hi = 9007199254740992, .value = "ID", .help = (says)                                                \
    }

/* The row of the audit that an act begins with, also when `id` is that of a later row of the act; in `mem`. HK_NOTFOUND. */
enum hk_code hk_act_find(struct hk_desk *desk, int64_t id, struct hk_pool *mem, struct hk_audit_row *out,
                         struct hk_err *err);
/* The same of an act on many that is to be undone: it must be a `did` ("discard"). `out_filter` is what means all that it changed.
 * HK_CONFLICT: it is another kind of act. */
#define HK_ACT_FILTER_MAX 40
enum hk_code hk_act_find_done(struct hk_desk *desk, int64_t id, const char *did, struct hk_pool *mem,
                              struct hk_audit_row *out, char out_filter[HK_ACT_FILTER_MAX],
                              struct hk_err *err);
/* A member of a row's detail: "filter", "jq", "list", "act", "letters". Of a text with its quotes. False: it has none. */
bool hk_act_detail(const struct hk_audit_row *row, const char *key, struct hk_str *out_raw);
/* A text of it, without quotes and escapes, in `mem`: "" when it has none. HK_NOMEM. */
enum hk_code hk_act_words(const struct hk_audit_row *row, const char *key, struct hk_pool *mem,
                          struct hk_str *out);

/* ---- payloads ---- */

/* As the application wrote it: `*out` lies in `mem`, or is the letter's. HK_INVALID: it is not what its encoding says; HK_NOMEM. */
enum hk_code hk_letter_plain(const struct hk_letter *letter, struct hk_pool *mem, struct hk_str *out);
/* The same, also of what is sealed: for who may see it, and to send it. HK_CONFLICT: the caller did not ask to reveal it, or
 * the key cannot be had; `err` says why. */
enum hk_code hk_letter_open(struct hk_desk *desk, const struct hk_letter *letter, bool reveal,
                            struct hk_pool *mem, struct hk_str *out, struct hk_err *err);
/* Mode `rest`, and the letter is from before: nothing may be written into it that would not be sealed. */
bool hk_letter_lies_open(const struct hk_desk *desk, const struct hk_letter *letter);
#define HK_LIES_OPEN "its payload is not sealed yet: run hikyaku keys rotate"
/* The way back: `payload` takes the place of the letter's, encoded as the letter says. `by`: who, why and which act ("edit", "fix"). As
 * `edit` of store/letters.h. */
enum hk_code hk_letter_replace(struct hk_desk *desk, const struct hk_letter *letter, struct hk_str payload,
                               const struct hk_letter_edit *by, uint32_t *out_version, struct hk_err *err);

/* ---- showing ---- */

/* An audit row for each letter whose masked fields will be shown; does nothing unless the caller asks for that. Before anything is
 * shown, and before anything is read that is. */
enum hk_code hk_letters_reveal(struct hk_desk *desk, const struct hk_caller *caller, const int64_t *ids,
                               size_t n, struct hk_err *err);

/* All payloads of a letter, for its masks: the one that it has, and those of `history` (NULL = there is only that). HK_NOMEM. */
enum hk_code hk_letter_about(const struct hk_letter *letter, const struct hk_letter_shown *history,
                             struct hk_pool *mem, struct hk_mask_about *out);

/* How letters are shown to a caller. What hides in errors is found by the letter's payloads and headers, earlier payloads included:
 * where `letter` and `history` do not have all of them, they are read by its id from `desk` (so keep first what the store gave); an
 * error about a payload over 1 MiB is hidden then. */
struct hk_letter_view {
    struct hk_desk *desk;         /* NULL = nothing more is read */
    const struct hk_masks *masks; /* hk_desk_masks; NULL = nothing is hidden */
    const struct hk_letter_shown
        *history; /* of the letter that is shown: all of its payloads; NULL = only the one it has */
    bool opens;   /* the caller sees what is sealed: it is recorded that he does */
};

/* Masked, each added to `out`. */
void hk_letter_show_payload(const struct hk_letter_view *view, const struct hk_letter *letter,
                            struct hk_buf *out);
void hk_letter_show_headers(const struct hk_letter_view *view, const struct hk_letter *letter,
                            struct hk_str headers, struct hk_buf *out);
void hk_letter_show_text(const struct hk_letter_view *view, const struct hk_letter *letter,
                         struct hk_str text, struct hk_buf *out);

/* The letter for a result: its error, detail and headers masked, its payload plain and masked; all of that in `mem`. */
void hk_letter_veil(const struct hk_letter_view *view, struct hk_pool *mem, struct hk_letter *letter);
/* One text about it, in the same way. */
void hk_letter_veil_text(const struct hk_letter_view *view, const struct hk_letter *letter,
                         struct hk_pool *mem, struct hk_str *text);
/* An attempt to send it, in the same way. `letter` as the store gave it. */
void hk_letter_veil_attempt(const struct hk_letter_view *view, const struct hk_letter *letter,
                            struct hk_pool *mem, struct hk_tried *attempt);

#endif
