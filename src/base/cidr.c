/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses, ranges, and the table of special ones (IANA's special-purpose registries, and what clouds put where). */
#include <string.h>

#include "base/cidr.h"
#include "base/parse.h"
#include "base/show.h"
#include "base/str.h"

static const uint8_t mapped_prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

/* The first match names it. */
static const struct {
    struct hk_cidr range;
    const char *name;
} special[] = {
    {{{0}, 8, false}, "this network"},
    {{{10}, 8, false}, "private"},
    {{{100, 64}, 10, false}, "carrier-grade NAT"},
    {{{127}, 8, false}, "loopback"},
    {{{168, 63, 129, 16}, 32, false}, "cloud metadata"}, /* Azure's, inside a public range */
    {{{169, 254}, 16, false}, "link-local"},             /* and most clouds' metadata */
    {{{172, 16}, 12, false}, "private"},
    {{{192, 0, 0}, 24, false}, "reserved"},
    {{{192, 0, 2}, 24, false}, "documentation"},
    {{{192, 88, 99}, 24, false}, "6to4 relay"},
    {{{192, 168}, 16, false}, "private"},
    {{{198, 18}, 15, false}, "benchmark"},
    {{{198, 51, 100}, 24, false}, "documentation"},
    {{{203, 0, 113}, 24, false}, "documentation"},
    {{{224}, 4, false}, "multicast"},
    {{{255, 255, 255, 255}, 32, false}, "broadcast"},
    {{{240}, 4, false}, "reserved"},

    {{{0}, 128, true}, "unspecified"},
    {{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 128, true}, "loopback"},
    {{{0}, 96, true}, "IPv4-compatible"},
    {{{0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96, true}, "IPv4-translated"},
    {{{0x00, 0x64, 0xff, 0x9b}, 96, true}, "NAT64"},
    {{{0x00, 0x64, 0xff, 0x9b, 0x00, 0x01}, 48, true}, "NAT64"},
    {{{0x01, 0x00}, 64, true}, "discard"},
    {{{0x20, 0x01}, 32, true}, "Teredo"},
    {{{0x20, 0x01, 0x00, 0x02}, 48, true}, "benchmark"},
    {{{0x20, 0x01, 0x00, 0x10}, 28, true}, "ORCHID"},
    {{{0x20, 0x01, 0x00, 0x20}, 28, true}, "ORCHID"},
    {{{0x20, 0x01}, 23, true}, "reserved"},
    {{{0x20, 0x01, 0x0d, 0xb8}, 32, true}, "documentation"},
    {{{0x20, 0x02}, 16, true}, "6to4"},
    {{{0x3f, 0xff}, 20, true}, "documentation"},
    {{{0xfc}, 7, true}, "private"},
    {{{0xfe, 0x80}, 10, true}, "link-local"},
    {{{0xfe, 0xc0}, 10, true}, "site-local"},
    {{{0xff}, 8, true}, "multicast"},
};
static const struct hk_cidr global_unicast = {{0x20}, 3, true};

/* ---- reading and writing addresses ---- */

static bool parse_octet(struct hk_str s, uint8_t *out)
{
    if (s.len < 1 || s.len > 3 || (s.len > 1 && s.ptr[0] == '0'))
        return false;
    unsigned value = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (!hk_ascii_isdigit(s.ptr[i]))
            return false;
        value = value * 10 + (unsigned)(s.ptr[i] - '0');
    }
    *out = (uint8_t)value;
    return value <= 255;
}

static bool parse_v4(struct hk_str s, uint8_t out[4])
{
    for (size_t i = 0; i < 4; i++) {
        struct hk_str octet = hk_str_cut(&s, '.');
        if (!parse_octet(octet, &out[i]) || (s.ptr == NULL) != (i == 3))
            return false;
    }
    return true;
}

static int hex_value(char c)
{
    if (hk_ascii_isdigit(c))
        return c - '0';
    char l = hk_ascii_lower(c);
    return l >= 'a' && l <= 'f' ? l - 'a' + 10 : -1;
}

static bool parse_group(struct hk_str s, uint8_t out[2])
{
    if (s.len < 1 || s.len > 4)
        return false;
    unsigned value = 0;
    for (size_t i = 0; i < s.len; i++) {
        int digit = hex_value(s.ptr[i]);
        if (digit < 0)
            return false;
        value = value << 4 | (unsigned)digit;
    }
    out[0] = (uint8_t)(value >> 8);
    out[1] = (uint8_t)value;
    return true;
}

/* Groups between colons, the last one perhaps dotted: at most `room` bytes. Returns how many, -1 when malformed. */
static int parse_groups(struct hk_str s, uint8_t *out, size_t room)
{
    size_t n = 0;
    while (s.ptr) {
        struct hk_str group = hk_str_cut(&s, ':');
        bool dotted = !s.ptr && group.len && memchr(group.ptr, '.', group.len);
        size_t size = dotted ? 4 : 2;
        if (n + size > room || !(dotted ? parse_v4(group, out + n) : parse_group(group, out + n)))
            return -1;
        n += size;
    }
    return (int)n;
}

static bool parse_v6(struct hk_str s, uint8_t out[16])
{
    const char *gap = NULL;
    for (size_t i = 0; i + 1 < s.len && !gap; i++) {
        if (s.ptr[i] == ':' && s.ptr[i + 1] == ':')
            gap = s.ptr + i;
    }
    if (!gap)
        return parse_groups(s, out, 16) == 16;
    struct hk_str head = {s.ptr, (size_t)(gap - s.ptr)};
    struct hk_str tail = {gap + 2, s.len - head.len - 2};
    if (head.len && memchr(head.ptr, '.', head.len))
        return false; /* dotted only at the very end */
    uint8_t back[16];
    int before = head.len ? parse_groups(head, out, 14) : 0;
    int after = tail.len ? parse_groups(tail, back, 14) : 0;
    if (before < 0 || after < 0 || before + after > 14)
        return false;
    memset(out + before, 0, (size_t)(16 - before));
    memcpy(out + 16 - after, back, (size_t)after);
    return true;
}

bool hk_ip_parse(struct hk_str s, struct hk_ip *out)
{
    struct hk_ip ip = {.v6 = s.len && memchr(s.ptr, ':', s.len) != NULL};
    if (!s.len || !(ip.v6 ? parse_v6(s, ip.addr) : parse_v4(s, ip.addr)))
        return false;
    *out = ip;
    return true;
}

static size_t put_v4(const uint8_t a[4], char *out)
{
    size_t n = 0;
    for (size_t i = 0; i < 4; i++) {
        if (i)
            out[n++] = '.';
        if (a[i] >= 100)
            out[n++] = (char)('0' + a[i] / 100);
        if (a[i] >= 10)
            out[n++] = (char)('0' + a[i] / 10 % 10);
        out[n++] = (char)('0' + a[i] % 10);
    }
    return n;
}

static size_t put_group(unsigned group, char *out)
{
    static const char digits[] = "0123456789abcdef";
    size_t n = 0;
    for (int shift = 12; shift >= 0; shift -= 4) {
        if (group >> shift || shift == 0)
            out[n++] = digits[group >> shift & 15];
    }
    return n;
}

/* The longest run of two or more zero groups, the first of equals. */
static void find_gap(const unsigned group[8], size_t *out_at, size_t *out_len)
{
    *out_at = 8;
    *out_len = 1;
    for (size_t i = 0; i < 8; i++) {
        size_t n = 0;
        while (i + n < 8 && group[i + n] == 0)
            n++;
        if (n > *out_len) {
            *out_at = i;
            *out_len = n;
        }
        i += n;
    }
}

static size_t put_v6(const uint8_t a[16], char *out)
{
    unsigned group[8];
    size_t gap, gap_len, n = 0;
    for (size_t i = 0; i < 8; i++)
        group[i] = (unsigned)a[2 * i] << 8 | a[2 * i + 1];
    find_gap(group, &gap, &gap_len);
    for (size_t i = 0; i < 8; i++) {
        if (i == gap) {
            out[n++] = ':';
            out[n++] = ':';
            i += gap_len - 1;
            continue;
        }
        if (i && out[n - 1] != ':')
            out[n++] = ':';
        n += put_group(group[i], out + n);
    }
    return n;
}

size_t hk_ip_format(const struct hk_ip *ip, char out[HK_IP_TEXT_MAX])
{
    size_t n = 0;
    if (!ip->v6) {
        n = put_v4(ip->addr, out);
    } else if (memcmp(ip->addr, mapped_prefix, sizeof mapped_prefix) == 0) {
        memcpy(out, "::ffff:", 7);
        n = 7 + put_v4(ip->addr + 12, out + 7);
    } else {
        n = put_v6(ip->addr, out);
    }
    out[n] = '\0';
    return n;
}

struct hk_ip hk_ip_unmap(const struct hk_ip *ip)
{
    if (!ip->v6 || memcmp(ip->addr, mapped_prefix, sizeof mapped_prefix) != 0)
        return *ip;
    struct hk_ip v4 = {.v6 = false};
    memcpy(v4.addr, ip->addr + 12, 4);
    return v4;
}

/* ---- ranges ---- */

static bool has_bits_behind(const struct hk_cidr *cidr)
{
    for (unsigned i = cidr->bits; i < (cidr->v6 ? 128u : 32u); i++) {
        if (cidr->addr[i / 8] & (0x80u >> (i % 8)))
            return true;
    }
    return false;
}

static bool parse_bits(struct hk_str s, uint64_t most, uint8_t *out)
{
    uint64_t bits = 0;
    if (s.len > 3 || (s.len > 1 && s.ptr[0] == '0') || hk_parse_u64(s, &bits, NULL) != HK_OK || bits > most)
        return false;
    *out = (uint8_t)bits;
    return true;
}

enum hk_code hk_cidr_parse(struct hk_str s, struct hk_cidr *out, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    struct hk_str prefix = s;
    struct hk_str addr = hk_str_cut(&prefix, '/');
    struct hk_ip ip;
    if (!hk_ip_parse(addr, &ip))
        return hk_err_set(err, HK_INVALID, "%s must be an address range such as 10.0.0.0/8 or fd00::/8",
                          hk_show(s, shown));
    struct hk_cidr cidr = {.bits = ip.v6 ? 128 : 32, .v6 = ip.v6};
    memcpy(cidr.addr, ip.addr, sizeof cidr.addr);
    if (prefix.ptr && !parse_bits(prefix, cidr.bits, &cidr.bits))
        return hk_err_set(err, HK_INVALID, "%s must have a prefix from /0 to /%d", hk_show(s, shown),
                          ip.v6 ? 128 : 32);
    if (cidr.v6 && cidr.bits >= 96 && memcmp(cidr.addr, mapped_prefix, sizeof mapped_prefix) == 0)
        return hk_err_set(err, HK_INVALID, "%s must be written as IPv4, without ::ffff:", hk_show(s, shown));
    if (has_bits_behind(&cidr))
        return hk_err_set(err, HK_INVALID,
                          "%s has bits set behind its prefix: write the range's first address",
                          hk_show(s, shown));
    *out = cidr;
    return HK_OK;
}

static bool in_range(const struct hk_cidr *cidr, const struct hk_ip *ip)
{
    size_t bytes = cidr->bits / 8;
    unsigned mask = 0xff00u >> (cidr->bits % 8) & 0xffu;
    if (cidr->v6 != ip->v6 || memcmp(cidr->addr, ip->addr, bytes) != 0)
        return false;
    return mask == 0 || ((cidr->addr[bytes] ^ ip->addr[bytes]) & mask) == 0;
}

bool hk_cidr_within(const struct hk_cidr *cidr, const struct hk_cidr *range)
{
    struct hk_ip first = {.v6 = cidr->v6};
    memcpy(first.addr, cidr->addr, sizeof first.addr);
    return range->bits <= cidr->bits && in_range(range, &first);
}

bool hk_cidr_has(const struct hk_cidr *cidr, const struct hk_ip *ip)
{
    struct hk_ip plain = hk_ip_unmap(ip);
    return in_range(cidr, &plain) || in_range(cidr, ip);
}

const char *hk_ip_special(const struct hk_ip *ip)
{
    struct hk_ip plain = hk_ip_unmap(ip);
    for (size_t i = 0; i < sizeof special / sizeof special[0]; i++) {
        if (in_range(&special[i].range, &plain))
            return special[i].name;
    }
    return plain.v6 && !in_range(&global_unicast, &plain) ? "reserved" : NULL;
}

bool hk_ip_allowed(const struct hk_ip *ip, const struct hk_cidr *allow, size_t n_allow)
{
    for (size_t i = 0; i < n_allow; i++) {
        if (hk_cidr_has(&allow[i], ip))
            return true;
    }
    return !hk_ip_special(ip);
}
