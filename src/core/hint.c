/* SPDX-License-Identifier: Apache-2.0 */
/* The wait that a destination asks for, read from its answer's headers.
 *
 * The first field that is there and well-formed decides: Retry-After (RFC 9110), retry-after-ms and
 * x-ms-retry-after-ms, then RateLimit with RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers). A malformed one is
 * as good as absent. A well-formed one that asks for no wait (0, a date in the past) decides as well, for "none": the
 * policy's own schedule then applies, so that no destination, and nobody in between, can make us hammer it.
 * Numbers too large to mean anything are cut to HK_DURATION_MAX_MS; how long we really wait is the policy's business. */
#include <hikyaku/policy.h>

#include "base/parse.h"
#include "base/str.h"
#include "core/sfield.h"

enum {
    QUOTAS_MAX = 64 /* items of one field, over all its lines; more make it malformed */
};

/* ---- Retry-After and its kin ---- */

static bool is_named(const struct hk_header *header, const char *name)
{
    return hk_str_eqi(header->name, hk_str_of(name));
}

/* n units of `unit_ms`, cut to what makes sense. */
static uint64_t scaled_ms(uint64_t n, uint64_t unit_ms)
{
    return n > HK_DURATION_MAX_MS / unit_ms ? HK_DURATION_MAX_MS : n * unit_ms;
}

/* 1*DIGIT of any length */
static bool read_digits(struct hk_str value, uint64_t unit_ms, uint64_t *out_ms)
{
    uint64_t n = 0;
    enum hk_code rc = hk_parse_u64(value, &n, NULL);
    if (rc != HK_OK && rc != HK_RANGE)
        return false;
    *out_ms = rc == HK_RANGE ? HK_DURATION_MAX_MS : scaled_ms(n, unit_ms);
    return true;
}

static bool read_millis(struct hk_str value, int64_t wall_ms, uint64_t *out_ms)
{
    (void)wall_ms;
    return read_digits(value, 1, out_ms);
}

static bool read_retry_after(struct hk_str value, int64_t wall_ms, uint64_t *out_ms)
{
    if (read_digits(value, 1000, out_ms))
        return true;
    int64_t at_ms;
    if (hk_parse_http_date(value, wall_ms, &at_ms, NULL) != HK_OK)
        return false;
    /* in unsigned arithmetic no pair of times overflows */
    *out_ms = at_ms <= wall_ms ? 0 : scaled_ms((uint64_t)at_ms - (uint64_t)wall_ms, 1);
    return true;
}

/* The largest of all well-formed lines called `name`; false when there is none. */
static bool largest(const struct hk_header *headers, size_t n_headers, const char *name,
                    bool (*read)(struct hk_str value, int64_t wall_ms, uint64_t *out_ms), int64_t wall_ms,
                    uint64_t *out_ms)
{
    bool found = false;
    uint64_t most = 0;
    for (size_t i = 0; i < n_headers; i++) {
        uint64_t ms;
        if (!is_named(&headers[i], name) || !read(hk_str_trim(headers[i].value), wall_ms, &ms))
            continue;
        most = ms > most ? ms : most;
        found = true;
    }
    *out_ms = most;
    return found;
}

/* ---- RateLimit and RateLimit-Policy ---- */

/* One item: of RateLimit ("default";r=50;t=30) or of RateLimit-Policy ("default";q=100;w=10). */
struct quota {
    struct hk_sf_value name;
    int64_t amount;  /* r or q; -1: missing */
    int64_t seconds; /* t or w; -1: missing */
};

/* A field's quotas, from all its lines. */
struct quotas {
    const char *amount_key, *seconds_key;
    size_t n;
    struct quota at[QUOTAS_MAX];
};

/* Takes one parameter of an item. Other parameters are skipped; of two with the same name the last counts (RFC 9651). */
static bool take_param(const struct quotas *field, struct quota *quota, struct hk_str key,
                       const struct hk_sf_value *value)
{
    bool is_amount = hk_str_eq(key, hk_str_of(field->amount_key));
    if (!is_amount && !hk_str_eq(key, hk_str_of(field->seconds_key)))
        return true;
    if (value->type != HK_SF_INTEGER || value->integer < 0)
        return false;
    *(is_amount ? &quota->amount : &quota->seconds) = value->integer;
    return true;
}

static bool read_quota(struct hk_str *rest, const struct quotas *field, struct quota *out)
{
    *out = (struct quota){.amount = -1, .seconds = -1};
    if (!hk_sf_read_value(rest, &out->name))
        return false;
    if (out->name.type != HK_SF_STRING && out->name.type != HK_SF_TOKEN)
        return false;
    for (;;) {
        bool found;
        struct hk_str key;
        struct hk_sf_value value;
        if (!hk_sf_read_param(rest, &found, &key, &value))
            return false;
        if (!found)
            return out->amount >= 0; /* r and q are required, t and w are not */
        if (!take_param(field, out, key, &value))
            return false;
    }
}

/* Adds one line's items. */
static bool read_quota_line(struct hk_str line, struct quotas *field)
{
    struct hk_str rest = hk_str_trim(line);
    bool more = rest.len > 0;
    while (more) {
        if (field->n == QUOTAS_MAX || !read_quota(&rest, field, &field->at[field->n]))
            return false;
        field->n++;
        if (!hk_sf_read_comma(&rest, &more))
            return false;
    }
    return true;
}

/* Lines of one name are one list; one malformed line makes the whole malformed, and that counts as empty. */
static void read_quotas(const struct hk_header *headers, size_t n_headers, const char *name,
                        struct quotas *field)
{
    field->n = 0;
    for (size_t i = 0; i < n_headers; i++) {
        if (is_named(&headers[i], name) && !read_quota_line(headers[i].value, field)) {
            field->n = 0;
            return;
        }
    }
}

/* The window that RateLimit-Policy gives a quota; -1 when it does not say, the longest when it says it twice. */
static int64_t window_of(const struct quotas *policy, const struct hk_sf_value *name)
{
    int64_t seconds = -1;
    for (size_t i = 0; i < policy->n; i++)
        if (policy->at[i].seconds > seconds && hk_sf_same(&policy->at[i].name, name))
            seconds = policy->at[i].seconds;
    return seconds;
}

/* Quotas that are used up ask to wait for the latest of their resets. */
static uint64_t rate_limit_ms(const struct hk_header *headers, size_t n_headers)
{
    struct quotas limit = {.amount_key = "r", .seconds_key = "t"};
    struct quotas policy = {.amount_key = "q", .seconds_key = "w"};
    read_quotas(headers, n_headers, "RateLimit", &limit);
    if (limit.n == 0)
        return 0;
    read_quotas(headers, n_headers, "RateLimit-Policy", &policy);
    int64_t most = 0;
    for (size_t i = 0; i < limit.n; i++) {
        const struct quota *quota = &limit.at[i];
        if (quota->amount > 0)
            continue;
        int64_t seconds = quota->seconds >= 0 ? quota->seconds : window_of(&policy, &quota->name);
        most = seconds > most ? seconds : most;
    }
    return scaled_ms((uint64_t)most, 1000);
}

bool hk_hint_ms(const struct hk_header *headers, size_t n_headers, int64_t wall_ms, uint64_t *out_wait_ms)
{
    uint64_t ms;
    if (!largest(headers, n_headers, "Retry-After", read_retry_after, wall_ms, &ms) &&
        !largest(headers, n_headers, "retry-after-ms", read_millis, wall_ms, &ms) &&
        !largest(headers, n_headers, "x-ms-retry-after-ms", read_millis, wall_ms, &ms))
        ms = rate_limit_ms(headers, n_headers);
    if (ms == 0)
        return false;
    *out_wait_ms = ms;
    return true;
}
