/* SPDX-License-Identifier: Apache-2.0 */
/* Identifiers that may stand anywhere. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "alert/body.h"
#include "base/str.h"

#define HASH_CHARS 17 /* "-" and 16 digits */

/* FNV-1a: not against enemies, but so that two texts that differ in what was replaced stay two. */
static uint64_t hash_of(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash;
}

void hk_body_token(const char *text, size_t max, char *out)
{
    const char *from = text ? text : "";
    size_t len = 0;
    bool same = *from != '\0' && strlen(from) <= max;
    for (const char *c = from; *c && len < max; c++) {
        bool plain = hk_ascii_isalpha(*c) || hk_ascii_isdigit(*c) || strchr("._-", *c);
        same = same && plain;
        out[len++] = plain ? *c : '-';
    }
    if (!same) {
        if (len > max - HASH_CHARS)
            len = max - HASH_CHARS;
        len += (size_t)snprintf(out + len, HASH_CHARS + 1, "-%016" PRIx64, hash_of(from));
    }
    out[len] = '\0';
}
