/* SPDX-License-Identifier: Apache-2.0 */
/* Sends a notice: as one HTTP request or one mail, blocking, by libcurl; or to a program's standard input. This file is transport
 * only: the channel interprets the answer. Errors may quote the other side: the caller hides secrets in them (hk_alert_hide). */
#ifndef HK_ALERT_SEND_H
#define HK_ALERT_SEND_H

#include "alert/notice.h"
#include "base/cidr.h"
#include "base/proxy.h"
#include "loop/loop.h"

/* Overwrites every occurrence of a secret with stars, also one that is cut off at the end. */
void hk_send_hide(char *text, size_t len, struct hk_str secret);

#define HK_SEND_TEXT_MAX 2048 /* kept of an answer's body */
#define HK_SEND_ADDRESS  256  /* an e-mail address at the most, terminator included */

struct hk_send_http {
    const char *url;
    const char *const *headers; /* "Name: value", without line ends */
    size_t n_headers;
    struct hk_str body;
    uint64_t timeout_ms;
    const char *ca_file;
    const struct hk_cidr *allow; /* addresses outside of the public internet that may be used */
    size_t n_allow;
    const struct hk_proxy *proxy; /* NULL: directly */
    const atomic_bool *abandoned; /* as in struct hk_channel; so below */
};

struct hk_send_answer {
    int status;
    uint64_t retry_ms;  /* what Retry-After and its kin ask for; 0 = nothing */
    struct hk_buf text; /* the body's start; the caller's, initialised */
    bool cut;           /* the connection was lost, or memory ran out, before the text was whole */
};

/* HK_OK: there was an answer. HK_INVALID: it cannot be (the URL, a forbidden address); HK_TIMEOUT, HK_UNAVAILABLE, HK_NOMEM.
 * Redirects are answers like any other. */
enum hk_code hk_send_http(const struct hk_send_http *request, struct hk_send_answer *out,
                          struct hk_err *err) HK_MUSTCHECK;

struct hk_resolve {
    const char *host;
    uint64_t timeout_ms;
    const atomic_bool *abandoned;
};

struct hk_resolved {
    struct hk_ip ips[HK_LOOKUP_MAX];
    size_t n;
};

/* The addresses of a name, or of an address. HK_UNAVAILABLE, HK_TIMEOUT, HK_CANCELLED, HK_NOMEM. */
enum hk_code hk_send_resolve(const struct hk_resolve *ask, struct hk_resolved *out,
                             struct hk_err *err) HK_MUSTCHECK;

struct hk_send_mail {
    const char *url;             /* smtp:// or smtps:// */
    const char *user, *password; /* NULL = none; they never travel in the clear, except over loopback */
    bool starttls_required;
    const char *from; /* addresses alone, of visible ASCII */
    const char *const *to;
    size_t n_to;
    struct hk_str message; /* with its header, lines end in CRLF */
    uint64_t timeout_ms;
    const char *ca_file;
    const struct hk_proxy *proxy; /* NULL: directly */
    const atomic_bool *abandoned;
};

/* HK_OK: the server took it for at least one recipient. HK_INVALID: it said 5xx; others as above. */
enum hk_code hk_send_mail(const struct hk_send_mail *mail, struct hk_err *err) HK_MUSTCHECK;

/* Is the URL one that can be used? Without asking anybody. `mail`: smtp and smtps, else http and https. */
enum hk_code hk_send_check_url(const char *url, bool mail, struct hk_err *err) HK_MUSTCHECK;

struct hk_send_exec {
    const char *const *argv;
    size_t n_argv;
    const char *const *env; /* "NAME=value"; nothing else is inherited */
    size_t n_env;
    struct hk_str input;
    uint64_t timeout_ms;
    const atomic_bool *abandoned;
};

/* HK_OK: it ended with 0. HK_UNAVAILABLE: with 75, or by a signal, or it could not be started for want of resources.
 * HK_TIMEOUT, HK_CANCELLED: it was killed, with all of its process group. HK_INVALID: anything else. */
enum hk_code hk_send_exec(const struct hk_send_exec *program, struct hk_err *err) HK_MUSTCHECK;

#endif
