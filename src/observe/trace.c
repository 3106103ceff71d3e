/* SPDX-License-Identifier: Apache-2.0 */
/* traceparent to bytes and back, and the sampling decision. */
#include <string.h>

#include "base/str.h"
#include "observe/trace.h"

enum {
    TRACE_AT = 3,
    SPAN_AT = 36,
    FLAGS_AT = 53,
    LEN = HK_TRACEPARENT_SIZE - 1
};

static int hex_digit(char c)
{
    if (hk_ascii_isdigit(c))
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_hex(const char *text, uint8_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static void write_hex(const uint8_t *bytes, size_t n, char *out)
{
    static const char hex[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = hex[bytes[i] >> 4];
        out[2 * i + 1] = hex[bytes[i] & 15];
    }
}

static bool is_zero(const uint8_t *bytes, size_t n)
{
    uint8_t any = 0;
    for (size_t i = 0; i < n; i++)
        any |= bytes[i];
    return any == 0;
}

bool hk_trace_parse(struct hk_str text, struct hk_trace *out)
{
    struct hk_trace trace;
    uint8_t version, flags;
    const char *s = text.ptr;
    if (text.len < LEN || s[2] != '-' || s[SPAN_AT - 1] != '-' || s[FLAGS_AT - 1] != '-')
        return false;
    if (!read_hex(s, &version, 1) || !read_hex(s + TRACE_AT, trace.trace_id, sizeof trace.trace_id) ||
        !read_hex(s + SPAN_AT, trace.span_id, sizeof trace.span_id) || !read_hex(s + FLAGS_AT, &flags, 1))
        return false;
    if (version == 0xff || (text.len > LEN && (version == 0 || s[LEN] != '-')))
        return false;
    if (is_zero(trace.trace_id, sizeof trace.trace_id) || is_zero(trace.span_id, sizeof trace.span_id))
        return false;
    trace.sampled = flags & 1;
    *out = trace;
    return true;
}

void hk_trace_format(const struct hk_trace *trace, char out[HK_TRACEPARENT_SIZE])
{
    memcpy(out, "00-", 3);
    write_hex(trace->trace_id, sizeof trace->trace_id, out + TRACE_AT);
    out[SPAN_AT - 1] = '-';
    write_hex(trace->span_id, sizeof trace->span_id, out + SPAN_AT);
    memcpy(out + FLAGS_AT - 1, trace->sampled ? "-01" : "-00", 4);
}

void hk_trace_id_text(const struct hk_trace *trace, char out[HK_TRACE_ID_TEXT])
{
    write_hex(trace->trace_id, sizeof trace->trace_id, out);
    out[HK_TRACE_ID_TEXT - 1] = '\0';
}

void hk_span_id_text(const uint8_t span_id[8], char out[HK_SPAN_ID_TEXT])
{
    write_hex(span_id, 8, out);
    out[HK_SPAN_ID_TEXT - 1] = '\0';
}

static void random_id(uint8_t *id, size_t n, struct hk_rng *rng)
{
    do {
        for (size_t i = 0; i < n; i += 8) {
            uint64_t word = hk_rng_next(rng);
            for (size_t k = 0; k < 8; k++)
                id[i + k] = (uint8_t)(word >> (8 * k));
        }
    } while (is_zero(id, n));
}

void hk_trace_new_id(uint8_t trace_id[16], struct hk_rng *rng)
{
    random_id(trace_id, 16, rng);
}

void hk_trace_new_span(uint8_t span_id[8], struct hk_rng *rng)
{
    random_id(span_id, 8, rng);
}

/* ---- sampling ---- */

/* The id's last 7 bytes are the random ones of every generator (W3C, level 2). */
static bool by_ratio(double ratio, const uint8_t trace_id[16])
{
    uint64_t value = 0;
    for (size_t i = 9; i < 16; i++)
        value = value << 8 | trace_id[i];
    return (double)value < ratio * 72057594037927936.0; /* 2^56 */
}

bool hk_trace_sample(const struct hk_sampler *sampler, const struct hk_trace *parent,
                     const uint8_t trace_id[16])
{
    if (sampler->parent_based && parent)
        return parent->sampled;
    switch (sampler->root) {
    case HK_SAMPLE_ALWAYS:
        return true;
    case HK_SAMPLE_NEVER:
        return false;
    case HK_SAMPLE_RATIO:
        return by_ratio(sampler->ratio, trace_id);
    }
    return false;
}

bool hk_sampler_by_name(struct hk_str name, struct hk_sampler *out)
{
    static const struct {
        const char *name;
        enum hk_sampler_kind kind;
    } kinds[] = {
        {"always_on", HK_SAMPLE_ALWAYS}, {"always_off", HK_SAMPLE_NEVER}, {"traceidratio", HK_SAMPLE_RATIO}};
    struct hk_str prefix = hk_str_of("parentbased_");
    bool parent_based = hk_str_starts(name, prefix);
    if (parent_based)
        name = (struct hk_str){name.ptr + prefix.len, name.len - prefix.len};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (!hk_str_eq(name, hk_str_of(kinds[i].name)))
            continue;
        *out = (struct hk_sampler){.root = kinds[i].kind, .parent_based = parent_based, .ratio = 1};
        return true;
    }
    return false;
}
