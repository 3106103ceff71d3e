/* SPDX-License-Identifier: Apache-2.0 */
/* Personal data that people do not see unless they ask for it: values by path and header name, per event type, become "***"
 * wherever something is shown, logged or exported. In doubt more is hidden, never less. `masks` may be NULL: nothing is hidden. Payloads
 * are given decoded (not as base64) and whole: one that was cut is not JSON any more and is hidden. Thread-safe.
 *
 * All add to `out`, whose status is also what they return: HK_OK, HK_NOMEM, HK_TOOBIG; after a failure nothing in `out` is to be
 * shown. */
#ifndef HK_PAYLOAD_MASK_H
#define HK_PAYLOAD_MASK_H

#include "payload/path.h"

#define HK_MASKED "***"

/* As it is written; texts are copied. */
struct hk_mask_rule {
    const char *event_type; /* '*' stands for any text; NULL = "*" */
    const char *const *paths;
    size_t n_paths;
    const char *const *headers; /* names; case does not matter */
    size_t n_headers;
};

struct hk_masks;

/* HK_INVALID (with the rule's number and the path), HK_NOMEM. */
enum hk_code hk_masks_new(const struct hk_mask_rule *rules, size_t n, struct hk_masks **out,
                          struct hk_err *err) HK_MUSTCHECK;
void hk_masks_free(struct hk_masks *masks);

/* Is there anything to hide for this event type? (Whether `--reveal` has something to reveal.) */
bool hk_masks_fit(const struct hk_masks *masks, struct hk_str event_type);

/* Is what `path` leads to hidden, or may it be, in messages of this event type ('*' stands for any text; NULL: of any type)? */
bool hk_masks_cover(const struct hk_masks *masks, const char *event_type, const struct hk_path *path);

/* The payload, every masked value (string, number, whole object …) as "***", with quotes, and all other bytes unchanged. One that
 * is not JSON while paths apply becomes `(hidden: 17 bytes, not JSON, and masks apply)`. An empty one stays empty. */
enum hk_code hk_mask_payload(const struct hk_masks *masks, struct hk_str event_type, struct hk_str payload,
                             struct hk_buf *out);

/* Header fields as a JSON object of names and values (a message's own, as sent, as answered). */
enum hk_code hk_mask_headers(const struct hk_masks *masks, struct hk_str event_type, struct hk_str headers,
                             struct hk_buf *out);
bool hk_mask_has_header(const struct hk_masks *masks, struct hk_str event_type, struct hk_str name);

/* Any other text about a message: error, response body, error detail, an audit row's detail. Each occurrence of a value
 * that is masked in `payload` (strings from 3 bytes, numbers from 4 digits; also written with JSON's escapes or percent-encoded)
 * becomes ***; if the text is JSON itself, the masked paths in it as well. Of a payload that is not JSON every word from 4 bytes is taken for
 * such a value. */
enum hk_code hk_mask_text(const struct hk_masks *masks, struct hk_str event_type, struct hk_str payload,
                          struct hk_str text, struct hk_buf *out);

/* The same for the values of masked headers in `headers` (a JSON object): an answer may repeat the key it was sent. */
enum hk_code hk_mask_header_values(const struct hk_masks *masks, struct hk_str event_type,
                                   struct hk_str headers, struct hk_str text, struct hk_buf *out);

/* What a text is about: a message, and all that a receiver may have been sent of it. */
struct hk_mask_about {
    struct hk_str event_type;
    struct hk_str encoding;        /* of the payloads, as stored; "" = they are plain */
    struct hk_str headers;         /* the message's own, a JSON object */
    const struct hk_str *payloads; /* every version of it, as stored, whole */
    size_t n_payloads;
    bool partial; /* some of its payloads are cut or not there: texts are hidden where masks apply */
};

/* The one way to show a text about a message: the values of masked header names in it, then hk_mask_text by each payload, then
 * hk_mask_header_values. Not HK_OK: some value that must be hidden could not be read or looked for (HK_TOOBIG: `partial`), and nothing
 * of the text may be shown. */
enum hk_code hk_mask_about(const struct hk_masks *masks, const struct hk_mask_about *about,
                           struct hk_str text, struct hk_buf *out) HK_MUSTCHECK;
/* The same for people: where nothing may be shown, words that say why. */
void hk_mask_show(const struct hk_masks *masks, const struct hk_mask_about *about, struct hk_str text,
                  struct hk_buf *out);
/* Header fields of the message, of a request or of an answer, for people. */
void hk_mask_show_headers(const struct hk_masks *masks, const struct hk_mask_about *about,
                          struct hk_str headers, struct hk_buf *out);
/* A payload for people, given as it is stored. */
void hk_mask_show_payload(const struct hk_masks *masks, struct hk_str event_type, struct hk_str encoding,
                          struct hk_str stored, struct hk_buf *out);

/* A receiver's answer, which may have been cut: if it is JSON as far as it goes, with the masked paths in it hidden. Values of the
 * payload are not looked for. */
enum hk_code hk_mask_answer(const struct hk_masks *masks, struct hk_str event_type, struct hk_str body,
                            struct hk_buf *out) HK_MUSTCHECK;

/* What `payload` was changed to: as hk_mask_payload, and every name or value in it that holds what is masked in `payload` as well, so
 * that nobody sees a field by moving it elsewhere. Stays JSON. `out` must be empty. */
enum hk_code hk_mask_changed(const struct hk_masks *masks, struct hk_str event_type, struct hk_str payload,
                             struct hk_str changed, struct hk_buf *out);

#endif
