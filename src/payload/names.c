/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/str.h"
#include "payload/names.h"

enum {
    EVENT_TYPE = 0,
    MESSAGE_KEY,
    DESTINATION,
    N_FIELDS
};

static const char *const fields[N_FIELDS] = {
    [EVENT_TYPE] = "{event_type}", [MESSAGE_KEY] = "{message_key}", [DESTINATION] = "{destination}"};

/* Which field begins here; N_FIELDS: none. */
static unsigned field_at(struct hk_str s)
{
    unsigned i = 0;
    while (i < N_FIELDS && !hk_str_starts(s, hk_str_of(fields[i])))
        i++;
    return i;
}

static struct hk_str skip(struct hk_str s, size_t n)
{
    return (struct hk_str){s.ptr + n, s.len - n};
}

const char *hk_name_wrong(struct hk_str pattern)
{
    for (struct hk_str rest = pattern; rest.len;) {
        unsigned field = field_at(rest);
        unsigned char c = (unsigned char)rest.ptr[0];
        if (c < ' ' || c == 0x7f)
            return "must not hold control characters";
        if (field == N_FIELDS && (c == '{' || c == '}'))
            return "may hold {event_type}, {message_key} and {destination}, and no other braces";
        rest = skip(rest, field < N_FIELDS ? strlen(fields[field]) : 1);
    }
    return NULL;
}

bool hk_name_is_fixed(struct hk_str pattern)
{
    for (struct hk_str rest = pattern; rest.len; rest = skip(rest, 1)) {
        unsigned field = field_at(rest);
        if (field < N_FIELDS && field != DESTINATION)
            return false;
    }
    return true;
}

void hk_name_expand(struct hk_str pattern, const struct hk_name_values *values, struct hk_buf *out)
{
    const struct hk_str texts[N_FIELDS] = {[EVENT_TYPE] = values->event_type,
                                           [MESSAGE_KEY] = values->message_key,
                                           [DESTINATION] = values->destination};
    for (struct hk_str rest = pattern; rest.len;) {
        unsigned field = field_at(rest);
        struct hk_str part = field < N_FIELDS ? texts[field] : (struct hk_str){rest.ptr, 1};
        (void)hk_buf_add(out, part.ptr, part.len);
        rest = skip(rest, field < N_FIELDS ? strlen(fields[field]) : 1);
    }
}
