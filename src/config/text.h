/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of texts: URLs, names, headers, addresses. Pure functions over slices. */
#ifndef HK_CONFIG_TEXT_H
#define HK_CONFIG_TEXT_H

#include <stdbool.h>

#include <hikyaku/facts.h>

#include "config/config.h"
#include "config/schema.h"

/* [A-Za-z0-9_][A-Za-z0-9_.-]{0,62} */
bool hk_text_is_name(struct hk_str s);
/* RFC 9110's token */
bool hk_text_is_token(struct hk_str s);
/* An address or a range, IPv4 or IPv6; bits behind the prefix must be 0. */
bool hk_text_parse_cidr(struct hk_str s, struct hk_cidr *out, char why[HK_WHY_MAX]);
/* The address that host:port names by its numbers, or as localhost; false: it is a name. */
bool hk_text_authority_ip(struct hk_str authority, struct hk_ip *out_ip);
/* The address that a valid URL names by its numbers, or as localhost; false: it is a name. */
bool hk_text_url_ip(const char *url, struct hk_ip *out_ip);
/* Does a URL go to this machine itself, as far as its text tells? */
bool hk_text_url_is_local(const char *url);

hk_opt_check_fn hk_text_check_store_url;
hk_opt_check_fn hk_text_check_http_url;
hk_opt_check_fn hk_text_check_amqp_url; /* this and the next ones are in check_brokers.c */
hk_opt_check_fn hk_text_check_nats_url;
hk_opt_check_fn hk_text_check_redis_url;
hk_opt_check_fn hk_text_check_mqtt_url;
hk_opt_check_fn hk_text_check_broker_name;
hk_opt_check_fn hk_text_check_queue;  /* projects/P/locations/L/queues/Q */
hk_opt_check_fn hk_text_check_target; /* such a URL, or the word that leaves it to each message */
hk_opt_check_fn hk_text_check_pin;    /* sha256//… */
hk_opt_check_fn hk_text_check_sql_name;
hk_opt_check_fn hk_text_check_listen;
hk_opt_check_fn hk_text_check_host;   /* a name or an address, without port */
hk_opt_check_fn hk_text_check_origin; /* https://host, http://host:port */
hk_opt_check_fn hk_text_check_header_name;
hk_opt_check_fn hk_text_check_key_id; /* of a key, or of the store that it seals for */
hk_opt_check_fn hk_text_check_header_value;
hk_opt_check_fn hk_text_check_printable;
hk_opt_check_fn hk_text_check_user;
hk_opt_check_fn hk_text_check_reason;
hk_opt_check_fn hk_text_check_secret; /* of Standard Webhooks */
hk_opt_check_fn hk_text_check_path;   /* into a payload: order.id, items[*].card */
hk_opt_check_fn hk_text_check_field;  /* the same, or with a type: order.id:integer */
hk_opt_check_fn hk_text_check_clock;  /* 22:00; this and the next ones are in alerts.c */
hk_opt_check_fn hk_text_check_zone;   /* +09:00 */
hk_opt_check_fn hk_text_check_email;
hk_opt_check_fn hk_text_check_smtp_url;
hk_opt_check_fn hk_text_check_proxy_url; /* this and the next one are in proxies.c */
hk_opt_check_fn hk_text_check_direct;    /* a host that is reached without a proxy */

/* Puts the text into `why`; false. */
bool hk_text_refuse(char why[HK_WHY_MAX], const char *text);
/* Is a valid "listen" reached from this machine alone? "none" is. */
bool hk_text_listen_is_local(struct hk_str s);
bool hk_text_is_authority(struct hk_str s); /* host, host:port, [v6] or [v6]:port */
bool hk_text_is_authority_with_port(struct hk_str s);

#endif
