/* SPDX-License-Identifier: Apache-2.0 */
/* A filter that selects dead letters or messages, as people write it (docs/filters.md): terms separated by blanks, all must match.
 *
 *     destination:billing type:Order* older:2h payload.customer.id:42 "connection reset"
 */
#ifndef HK_PAYLOAD_FILTER_H
#define HK_PAYLOAD_FILTER_H

#include "core/letter.h"
#include "payload/keyring.h"
#include "payload/mask.h"
#include "payload/path.h"

#define HK_FILTER_TEXT_MAX  4096 /* bytes */
#define HK_FILTER_TERMS_MAX 64

struct hk_filter;

/* Ages (older:, newer:) are reckoned from `now_ms`. An empty text means every letter: `statuses` of the query is 0 unless the text names
 * some (status:any: all bits), so that a caller can tell and set its own default. HK_INVALID: `column 13: "older": …`;
 * HK_NOMEM. */
enum hk_code hk_filter_parse(const char *text, int64_t now_ms, struct hk_filter **out,
                             struct hk_err *err) HK_MUSTCHECK;
/* The same about messages in any state: terms that only dead letters have are refused, and times are those of a message's creation.
 * `statuses` of the query has bits of enum hk_state: one, all (status:any), or 0. */
enum hk_code hk_filter_parse_messages(const char *text, int64_t now_ms, struct hk_filter **out,
                                      struct hk_err *err) HK_MUSTCHECK;
/* Lives as long as the filter, as do the strings in it; copy the struct to change or add something. `match` is set only when text or
 * payload terms are there; it reads `encoding` of the letter, and may be called from any thread. */
const struct hk_letter_query *hk_filter_query(const struct hk_filter *filter);
void hk_filter_free(struct hk_filter *filter);

/* For somebody who may not see what `masks` hide: from now on the filter finds only what they leave to be seen, and nothing that is asked
 * of the store before tells more (no sieve). In messages that masks apply to, text is not looked for in errors either. HK_DENIED: it asks
 * for a value that is masked. Before hk_filter_query; `masks` must live as long as the filter. */
enum hk_code hk_filter_veil(struct hk_filter *filter, const struct hk_masks *masks,
                            struct hk_err *err) HK_MUSTCHECK;
/* For somebody who may see sealed payloads: from now on the filter opens them, and does not find those that cannot be opened. What is asked
 * of the store before cannot look into them (no sieve). NULL: it finds nothing in them, as at first. Before hk_filter_query; `keys` must
 * live as long as the filter. */
void hk_filter_open_sealed(struct hk_filter *filter, struct hk_keyring *keys);
/* A job goes on in nobody's name: its filter's text says `opens:sealed` where the person who started it may see sealed payloads. Whoever
 * reads such a text calls hk_filter_open_sealed, or refuses it. The filter's query is unsure (core/letter.h) of a letter whose key
 * cannot be had. */
bool hk_filter_opens(const struct hk_filter *filter);
void hk_filter_set_opens(
    struct hk_filter *filter); /* no effect on a filter that does not look into payloads */
bool hk_filter_has_text(const struct hk_filter *filter);

/* The same filter as text that means the same at any time (ages as points in time): what a job keeps. `query` is written, not what was
 * parsed, so that a default that the caller has set (a status) is in it: pass hk_filter_query(filter), or a changed copy.
 * Its first_id and last_id are not part of the text. Errors are the buffer's. */
void hk_filter_text(const struct hk_filter *filter, const struct hk_letter_query *query, struct hk_buf *out);

/* Adds one term, quoted where it must be; a blank in front unless it is the first. */
void hk_filter_term(const char *name, const char *value, struct hk_buf *out);

#endif
