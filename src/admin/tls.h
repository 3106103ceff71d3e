/* SPDX-License-Identifier: Apache-2.0 */
/* Certificate and key of a listener, read again when their files change. GnuTLS, since that is what libmicrohttpd is built with; its
 * headers stay in tls.c. */
#ifndef HK_ADMIN_TLS_H
#define HK_ADMIN_TLS_H

#include <stdbool.h>
#include <stdint.h>

#include <hikyaku/error.h>

struct hk_admin_tls;
struct hk_tls_credentials; /* one version of the files; lives as long as a connection has it */

struct hk_admin_tls_files {
    const char *cert, *key; /* PEM; the certificate's chain behind it */
    const char *client_ca;  /* PEM; clients must have a certificate of one of these; NULL: they need none */
    /* The files have changed: they were taken (`error` NULL), or cannot be, and the older ones stay. On the server's thread. May be
     * NULL. */
    void (*changed)(void *arg, const char *error);
    void *arg;
};

/* Texts are copied. HK_INVALID: the files cannot be read, or what is in them will not do. */
enum hk_code hk_admin_tls_open(const struct hk_admin_tls_files *files, struct hk_admin_tls **out_tls,
                               struct hk_err *err) HK_MUSTCHECK;
void hk_admin_tls_close(struct hk_admin_tls *tls); /* accepts NULL; after the last connection */
/* From any thread: look at the files at the next connection, however soon that is. */
void hk_admin_tls_look(struct hk_admin_tls *tls);

/* For the server, on its thread. */

extern const char hk_admin_tls_priorities[]; /* TLS 1.2 and later */
/* As they were read at first: the library wants some. */
const char *hk_admin_tls_cert(const struct hk_admin_tls *tls);
const char *hk_admin_tls_key(const struct hk_admin_tls *tls);
/* Before the handshake of a new connection: `session` is GnuTLS's. Files are looked at, at most once a second. NULL: it failed. */
struct hk_tls_credentials *hk_admin_tls_greet(struct hk_admin_tls *tls, void *session, int64_t now_ms);
void hk_tls_credentials_unref(
    struct hk_tls_credentials *credentials); /* accepts NULL; when the session is over */

#endif
