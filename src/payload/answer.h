/* SPDX-License-Identifier: Apache-2.0 */
/* The receiver's own words: the one line of an answer that tells a person what is wrong, out of JSON, XML, HTML or plain text.
 * It stands in error_message, and so in lists, alerts and logs, and it decides which dead letters belong to one group. */
#ifndef HK_PAYLOAD_ANSWER_H
#define HK_PAYLOAD_ANSWER_H

#include "payload/mask.h"

/* Bytes of a body that are read: as many as the history of attempts keeps, so that the same words can be found there. */
#define HK_ANSWER_READ 4096
/* Bytes of words, and of the whole error with its end. */
#define HK_ANSWER_WORDS     512
#define HK_ANSWER_ERROR_MAX (HK_ANSWER_WORDS + 40)
/* How an error begins that has no words; letters of relays before schema version 5 all have such a one. */
#define HK_ANSWER_SILENT "the answer was HTTP "

/* The words as the receiver wrote them, with escapes and entities undone, added to `out`; nothing when there are none. They may
 * be any bytes: masks look for values in them, then hk_answer_line makes them fit to be shown.
 *   JSON: message, or title, or error; then detail; then the first of `errors` with its field; then the code.
 *   XML, HTML: the first of <message>, <faultstring>, <pre>, <title>, <h1> … that has text.
 *   else: the first line that is not blank; nothing where it holds a NUL. */
enum hk_code hk_answer_find(struct hk_str body, struct hk_buf *out);

/* One printable line of at most HK_ANSWER_WORDS bytes: UTF-8, blanks and controls as one blank, invisible characters left out, the
 * end of a longer one as "…". Bytes of another encoding become U+FFFD; nothing is added where they are too many to be text. */
enum hk_code hk_answer_line(struct hk_str words, struct hk_buf *out);

/* The error of an answer: "HTTP 422: field 'currency' is missing", or "the answer was HTTP 422" where the receiver said nothing, or
 * where what the masks hide could not be found. Without what is masked in the message. `masks` may be NULL. */
struct hk_str hk_answer_error(const struct hk_masks *masks, const struct hk_mask_about *about, int status,
                              struct hk_str body, char out[HK_ANSWER_ERROR_MAX]);

/* The way back, from what is kept of an attempt: its reason code ("HTTP_503"), and how its error begins. 0: there was no answer, or it
 * cannot be told. */
int hk_answer_status(struct hk_str cause, struct hk_str error);

#endif
