/* SPDX-License-Identifier: Apache-2.0 */
/* The fields that frame an answer. */
#include "base/str.h"
#include "sink/http/h1_framing.h"

void hk_h1_framing_reset(struct hk_h1_framing *f)
{
    *f = (struct hk_h1_framing){.odd = false};
}

void hk_h1_framing_begin(struct hk_h1_framing *f, bool v10)
{
    *f = (struct hk_h1_framing){.odd = f->odd, .v10 = v10};
}

static bool is(struct hk_str s, const char *name)
{
    return hk_str_eqi(s, hk_str_of(name));
}

/* Whether a list with commas has this word. */
static bool lists(struct hk_str list, const char *word)
{
    while (list.ptr) {
        if (is(hk_str_trim(hk_str_cut(&list, ',')), word))
            return true;
    }
    return false;
}

/* False: no length at all, as "-5". */
static bool read_length(struct hk_h1_framing *f, struct hk_str value)
{
    if (!value.len || !hk_ascii_isdigit(value.ptr[0]))
        return false;
    uint64_t length = 0;
    for (size_t i = 0; i < value.len; i++) {
        if (!hk_ascii_isdigit(value.ptr[i]) || length > UINT64_MAX / 16) {
            f->doubtful = true;
            return true;
        }
        length = length * 10 + (uint64_t)(value.ptr[i] - '0');
    }
    if (f->has_length && f->length != length)
        f->doubtful = true;
    f->has_length = true;
    f->length = length;
    return true;
}

/* "chunked" must be the last coding, and only once; what other codings there are is not our business: nothing is
 * decoded. */
static void read_coding(struct hk_h1_framing *f, struct hk_str value)
{
    while (value.ptr) {
        struct hk_str word = hk_str_trim(hk_str_cut(&value, ','));
        if (f->chunked)
            f->doubtful = true;
        if (is(word, "chunked"))
            f->chunked = true;
        else
            f->other_coding = true;
    }
}

/* "timeout=5, max=100" */
static void read_keep_alive(struct hk_h1_framing *f, struct hk_str value)
{
    while (value.ptr) {
        struct hk_str number = hk_str_trim(hk_str_cut(&value, ','));
        struct hk_str name = hk_str_cut(&number, '=');
        uint32_t seconds = 0;
        for (size_t i = 0; i < number.len && hk_ascii_isdigit(number.ptr[i]) && seconds < 100000; i++)
            seconds = seconds * 10 + (uint32_t)(number.ptr[i] - '0');
        if (is(name, "timeout") && seconds)
            f->idle_s = seconds;
    }
}

bool hk_h1_framing_field(struct hk_h1_framing *f, struct hk_str name, struct hk_str value)
{
    switch (name.len) {
    case 10:
        if (is(name, "connection")) {
            f->close = f->close || lists(value, "close");
            f->keep_alive = f->keep_alive || lists(value, "keep-alive");
        } else if (is(name, "keep-alive")) {
            read_keep_alive(f, value);
        }
        return true;
    case 14:
        return !is(name, "content-length") || read_length(f, value);
    case 17:
        if (is(name, "transfer-encoding"))
            read_coding(f, value);
        return true;
    default:
        return true;
    }
}

/* A body that is announced where none may be: it may come yet, late, as if it were the answer to somebody else. */
bool hk_h1_framing_end(struct hk_h1_framing *f, int status)
{
    bool coded = f->chunked || f->other_coding;
    bool bodiless = status < 200 || status == 204 || status == 304;
    if (bodiless && (coded || f->doubtful || (f->has_length && f->length > 0)))
        f->odd = true;
    if (coded && (f->has_length || f->v10))
        f->odd = true;
    return bodiless;
}

bool hk_h1_framing_keeps(const struct hk_h1_framing *f)
{
    return !f->odd && !f->close && !f->doubtful && (!f->v10 || f->keep_alive);
}
