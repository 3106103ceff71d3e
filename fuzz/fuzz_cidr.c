/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses and ranges: the verdict on an address is the same as inet_pton's, what is written reads back, and a range
 * holds its first address. No spelling of a mapped address changes what it is. */
#include <arpa/inet.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cidr.h"
#include "base/str.h"
#include "fuzz.h"

static void check_ip(struct hk_str s)
{
    char text[128], out[HK_IP_TEXT_MAX];
    uint8_t libc[16] = {0};
    struct hk_ip ip, back;
    bool read = hk_ip_parse(s, &ip);
    if (!hk_str_copy(text, sizeof text, s)) {
        MUST(!read);
        return;
    }
    bool v6 = inet_pton(AF_INET6, text, libc) == 1;
    bool v4 = !v6 && inet_pton(AF_INET, text, libc) == 1;
    MUST(read == (v4 || v6));
    if (!read)
        return;
    MUST(ip.v6 == v6 && memcmp(ip.addr, libc, 16) == 0);
    MUST(hk_ip_format(&ip, out) == strlen(out) && hk_ip_parse(hk_str_of(out), &back));
    MUST(back.v6 == ip.v6 && memcmp(back.addr, ip.addr, 16) == 0);
    struct hk_ip plain = hk_ip_unmap(&ip);
    const char *a = hk_ip_special(&ip), *b = hk_ip_special(&plain);
    MUST(a == b);
}

static void check_cidr(struct hk_str s)
{
    struct hk_cidr cidr = {.bits = 211};
    struct hk_err err = {0};
    enum hk_code rc = hk_cidr_parse(s, &cidr, &err);
    MUST(rc == HK_OK || rc == HK_INVALID);
    if (rc != HK_OK) {
        MUST(cidr.bits == 211 && err.message[0] == '"');
        return;
    }
    MUST(cidr.bits <= (cidr.v6 ? 128 : 32));
    struct hk_ip ip = {.v6 = cidr.v6};
    memcpy(ip.addr, cidr.addr, 16);
    MUST(hk_cidr_has(&cidr, &ip));
    if (cidr.bits > 0) { /* and not its neighbour */
        unsigned last = cidr.bits - 1u;
        ip.addr[last / 8] ^= (uint8_t)(0x80u >> last % 8);
        struct hk_ip plain = hk_ip_unmap(&ip);
        MUST(plain.v6 != ip.v6 || !hk_cidr_has(&cidr, &ip));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hk_str s = {(const char *)data, size};
    check_ip(s);
    check_cidr(s);
    return 0;
}
