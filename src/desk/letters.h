/* SPDX-License-Identifier: Apache-2.0 */
/* Dead letters at the desk: how a request selects them, and what a caller may see of them. Every operation shows letters through
 * these functions, so that none can forget a mask. */
#ifndef HK_DESK_LETTERS_H
#define HK_DESK_LETTERS_H

#include "desk/desk.h"
#include "payload/filter.h"

#define HK_LETTER_BYTES ((size_t)64 << 20) /* of a payload that is read whole */

/* ---- which letters ---- */

/* Parts of a request: a filter, and options that each are one term of it. NULL = not given. */
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
                   "filter: 'reason:HTTP_422 payload.customer.id:42' (docs/filters.md)"),                    \
        HK_LETTER_WORD(type, words, "destination", destination, "NAME", "only letters of this destination"), \
        HK_LETTER_WORD(type, words, "event_type", event_type, "PATTERN",                                     \
                       "only letters of this type; * stands for any text"),                                  \
        HK_LETTER_WORD(type, words, "reason_code", reason_code, "CODE",                                      \
                       "only letters with this reason code"),                                                \
        HK_LETTER_WORD_OF(type, words, "class", failure_class, "CLASS",                                      \
                          "transient rate_limit auth permanent unknown",                                     \
                          "only letters of this failure class"),                                             \
        HK_LETTER_WORD_OF(type, words, "status", status, "STATUS", "failed retrying resolved discarded any", \
                          "(default: " default_status ")"),                                                  \
        HK_LETTER_WORD(type, words, "group", group, "GROUP",                                                 \
                       "only letters of this group (see dead groups)"),                                      \
        HK_LETTER_WORD(type, words, "older", older, "AGE",                                                   \
                       "only letters that last failed longer ago than this, such as 2h"),                    \
        HK_LETTER_WORD(type, words, "newer", newer, "AGE",                                                   \
                       "only letters that last failed within this time, such as 7d"),                        \
        HK_LETTER_WORD(type, words, "text", text, "TEXT",                                                    \
                       "only letters with this text in error, ids or payload")

/* The rows for a letter by its id, or by a message's id and the destination if the message went to several. */
#define HK_LETTER_SUBJECT(type, field)                                                                       \
    {                                                                                                        \
        .name = "id", .kind = HK_ARG_TEXT, .subject = true, .required = true,                                \
        .offset = offsetof(struct type, field), .value = "ID", .help = "the letter's id, or a message's"     \
    }
#define HK_LETTER_DESTINATION(type, field)                                                                   \
    {                                                                                                        \
        .name = "destination", .kind = HK_ARG_TEXT, .offset = offsetof(struct type, field), .value = "NAME", \
        .help = "the destination, if the message went to several"                                            \
    }

/* Does the request select letters at all? A filter of blanks only does not: a script's variable was empty, and the operation would
 * hit all letters. */
bool hk_letter_words_given(const struct hk_letter_words *words);
/* Is there a filter beside ids, where it has no meaning? (Except for the destination, which hk_letter_find uses.) */
bool hk_letter_words_beside_ids(const struct hk_letter_words *words);

/* For checks: do they parse? HK_INVALID about the field "filter". */
enum hk_code hk_letter_words_check(struct hk_desk *desk, const struct hk_letter_words *words,
                                   struct hk_err *err);

struct hk_letter_filter {
    struct hk_filter *parsed;
    struct hk_letter_query query; /* with the default status; add to it */
    const char *text;             /* the same as text with absolute times, for a job or the audit */
};

/* Combines the words into one filter. Without a status it selects letters of any status if `any_status`, else open ones. HK_INVALID
 * about the field "filter". HK_DENIED: it asks for masked values, and the caller may not reveal them. */
enum hk_code hk_letter_filter(struct hk_desk *desk, const struct hk_caller *caller,
                              const struct hk_letter_words *words, bool any_status, struct hk_pool *mem,
                              struct hk_letter_filter *out, struct hk_err *err);
void hk_letter_filter_free(struct hk_letter_filter *filter);
/* For jobs: the words become one filter that means the same at any time, in `mem`. */
enum hk_code hk_letter_words_freeze(struct hk_desk *desk, const struct hk_caller *caller,
                                    struct hk_letter_words *words, bool any_status, struct hk_pool *mem,
                                    struct hk_err *err);

/* From now on a search through many letters reports to the caller which letter it has reached (hk_progress.done). `caller` is a
 * variable that lives as long as the query. */
void hk_letter_query_tells(struct hk_letter_query *query, const struct hk_caller **caller);

/* Finds the letter by its id, or by a message_id (with `destination`, or NULL, if the message went to several), also by one that it
 * was requeued under. HK_NOTFOUND; HK_INVALID: there are several. A message_id of digits only must be written id:… */
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
        .name = "dry_run", .offset = offsetof(struct type, dry_run), .help = "count them and change nothing" \
    }
#define HK_MANY_ACT_ARG(type, says)                                                                          \
    {                                                                                                        \
        .name = "act", .kind = HK_ARG_NUMBER, .offset = offsetof(struct type, act), .lo = 1,                 \
        .hi = 9007199254740992, .value = "ID", .help = (says)                                                \
    }

/* The first audit row of an act, also when `id` is a later row of it; in `mem`. HK_NOTFOUND. */
enum hk_code hk_act_find(struct hk_desk *desk, int64_t id, struct hk_pool *mem, struct hk_audit_row *out,
                         struct hk_err *err);
/* The same for an act on many letters that a caller wants to undo: it must be a `did` ("discard"). `out_filter` selects all letters
 * that it changed. HK_CONFLICT: it is another kind of act. */
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

/* The payload as the application wrote it: `*out` is in `mem`, or is the letter's. HK_INVALID: it is not in its encoding; HK_NOMEM. */
enum hk_code hk_letter_plain(const struct hk_letter *letter, struct hk_pool *mem, struct hk_str *out);
/* The same, also for a sealed payload: to show it to a caller with that right, and to send it. HK_CONFLICT: the caller did not ask to
 * reveal it, or the key is not available; `err` says why. */
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

/* Writes an audit row for each letter whose masked fields will be shown; does nothing unless the caller asks for that. Call it before
 * the operation reads or shows these fields. */
enum hk_code hk_letters_reveal(struct hk_desk *desk, const struct hk_caller *caller, const int64_t *ids,
                               size_t n, struct hk_err *err);

/* All payloads of a letter, for its masks: the one that it has, and those of `history` (NULL = there is only that). HK_NOMEM. */
enum hk_code hk_letter_about(const struct hk_letter *letter, const struct hk_letter_shown *history,
                             struct hk_pool *mem, struct hk_mask_about *out);

/* How letters are shown to a caller. To hide masked values in errors, the desk needs all payloads and headers of the letter, earlier
 * ones included. If `letter` and `history` do not have all of them, it reads them by the letter's id (so keep the store's results
 * first); it hides an error about a payload over 1 MiB as a whole. */
struct hk_letter_view {
    struct hk_desk *desk;         /* NULL = nothing more is read */
    const struct hk_masks *masks; /* hk_desk_masks; NULL = nothing is hidden */
    const struct hk_letter_shown
        *history; /* of the letter that is shown: all of its payloads; NULL = only the one it has */
    bool opens;   /* the caller sees sealed payloads, and the audit records that */
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
