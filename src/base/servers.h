/* SPDX-License-Identifier: Apache-2.0 */
/* The servers of one broker as a URL: "amqps://user@r1:5671,r2/vhost". A scheme says the port and whether it is by TLS; there is
 * a user or none, never a password; what stands behind the slash means what the kind of broker says. */
#ifndef HK_BASE_SERVERS_H
#define HK_BASE_SERVERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hikyaku/facts.h>

#define HK_SERVERS_MAX      16
#define HK_SERVER_HOST_MAX  254
#define HK_SERVERS_TEXT_MAX 256

/* Two names for one kind: plain and by TLS. */
struct hk_server_scheme {
    const char *plain, *tls;
    uint16_t plain_port, tls_port;
    const char *wrong; /* what to say of another one */
};

extern const struct hk_server_scheme hk_scheme_amqp, hk_scheme_nats, hk_scheme_redis, hk_scheme_mqtt;

struct hk_server {
    char host[HK_SERVER_HOST_MAX]; /* a name, or an address without brackets */
    uint16_t port;
};

struct hk_servers {
    bool tls;
    char user[HK_SERVERS_TEXT_MAX]; /* "" = none; %XX decoded, as `path` */
    struct hk_server at[HK_SERVERS_MAX];
    size_t n;
    char path[HK_SERVERS_TEXT_MAX]; /* behind the slash */
};

/* One of them: host, host:port, [v6] or [v6]:port, as brokers name others to go to. False: it is none. */
bool hk_server_parse(struct hk_str text, uint16_t port, struct hk_server *out);
/* NULL: it is good, and `out` is filled. Otherwise what is wrong, as the end of a sentence ("must …"), and `out` is undefined. */
const char *hk_servers_parse(struct hk_str url, const struct hk_server_scheme *scheme,
                             struct hk_servers *out);

#endif
