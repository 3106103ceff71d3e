/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets that find their way into texts for people (error messages repeat URLs, header fields, connection strings) become
 * ***, by what they look like. In doubt more is hidden, never less. Nothing is allocated. */
#ifndef HK_OBSERVE_REDACT_H
#define HK_OBSERVE_REDACT_H

#include <stdbool.h>
#include <stddef.h>

#include <hikyaku/facts.h>

#define HK_REDACTED "***"

/* Does a field of this name hold a secret, whatever its value looks like? (authorization, cookie, x-api-key …) */
bool hk_redact_name(struct hk_str name);

/* Copies `text` to `out` without what is secret in it: user and password of URLs, values that a secret's name stands before
 * (password=…, "token": "…", ?key=…), bearer and basic credentials, signing secrets, JSON web tokens. Returns how many bytes were
 * written, at most `room`; `*out_read` how many of `text` they stand for: less than text.len when there was no more room. A secret
 * is never cut into a part that is seen. */
size_t hk_redact(struct hk_str text, char *out, size_t room, size_t *out_read);

#endif
