/* SPDX-License-Identifier: Apache-2.0 */
/* Internet addresses and ranges of them, without a system call, and the table of private ranges: a relay sends there only if the
 * configuration allows it, whatever a public name resolves to (SSRF). */
#ifndef HK_BASE_CIDR_H
#define HK_BASE_CIDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hikyaku/error.h>
#include <hikyaku/facts.h>

struct hk_ip {
    uint8_t addr[16]; /* network order; IPv4 uses the first four */
    bool v6;
};

struct hk_cidr {
    uint8_t addr[16]; /* network order; IPv4 uses the first four */
    uint8_t bits;     /* of the prefix */
    bool v6;
};

/* The strict forms only: four decimal numbers without leading zeros, or RFC 4291 without zone; as inet_pton. */
bool hk_ip_parse(struct hk_str s, struct hk_ip *out);
/* RFC 5952, "::ffff:192.0.2.1" for mapped ones. Returns the length. */
#define HK_IP_TEXT_MAX 48
size_t hk_ip_format(const struct hk_ip *ip, char out[HK_IP_TEXT_MAX]);
/* The IPv4 address inside ::ffff:0:0/96, else `ip` itself. */
struct hk_ip hk_ip_unmap(const struct hk_ip *ip);

/* "10.0.0.0/8", "fd00::/8", or one address. Refused: bits behind the prefix, IPv4 written as IPv6. HK_INVALID. */
enum hk_code hk_cidr_parse(struct hk_str s, struct hk_cidr *out, struct hk_err *err) HK_MUSTCHECK;
/* IPv4 ranges hold mapped addresses, too. */
bool hk_cidr_has(const struct hk_cidr *cidr, const struct hk_ip *ip);
/* Is all of it in the other range, too? */
bool hk_cidr_within(const struct hk_cidr *cidr, const struct hk_cidr *range);

/* May it be connected to? One of the public internet, or one in a range that is listed. */
bool hk_ip_allowed(const struct hk_ip *ip, const struct hk_cidr *allow, size_t n_allow);

/* Why an address is not one of the public internet, e.g. "loopback"; NULL when it is. Static storage. */
const char *hk_ip_special(const struct hk_ip *ip);

#endif
