/* SPDX-License-Identifier: Apache-2.0 */
/* Words that several commands have for the same thing, so that people read the same everywhere. */
#ifndef HK_CLI_SAY_H
#define HK_CLI_SAY_H

#include "base/show.h"
#include "desk/desk.h"

struct hk_unusable;

/* One line, "name             value", made safe for a terminal; nothing when there is no value. */
void hk_say_fact(struct hk_buf *out, const char *name, struct hk_str value);
/* How long a payload is of which only the first HK_LETTER_BYTES bytes were read, and where the whole is: "dead_letters WHERE id"
 * and the id. No line end. */
void hk_say_cut(struct hk_buf *out, uint64_t bytes, const char *where, int64_t id);
/* "~" in front of estimates. */
const char *hk_say_count(struct hk_count count, char out[HK_SHOW_NUMBER]);
/* A destination as every table shows it: "(by route)" for a row that names none. */
struct hk_str hk_say_to(struct hk_str destination);
/* Which relays cannot use a destination of the store, and why; nothing if there are none. */
void hk_say_unusable(struct hk_buf *out, const struct hk_unusable *unusable, int64_t now_ms);
/* What keeps messages from a destination: a pause, an open breaker; nothing for neither. */
void hk_say_held(struct hk_buf *out, const struct hk_dest_status *dest, int64_t now_ms);

#endif
