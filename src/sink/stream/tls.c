/* SPDX-License-Identifier: Apache-2.0 */
/* TLS 1.2 or newer by OpenSSL on a socket that does not block. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/mem.h"
#include "base/show.h"
#include "base/str.h"
#include "sink/stream/tls.h"

#define PIN_KIND "sha256//"
#define PIN_MAX  (sizeof PIN_KIND + 4 * ((EVP_MAX_MD_SIZE + 2) / 3))

struct hk_stream_tls {
    SSL_CTX *ctx;
    const char *pins, *alpn; /* NULL: none */
};

struct hk_tls_session {
    SSL *ssl;
    int last_errno;
    unsigned long last_error; /* the first of OpenSSL's queue; 0 = none */
    bool open;                /* the handshake is done, and nothing has failed since */
    const char *pins, *alpn;
    const char *refused; /* why we did not go on after a handshake that was fine to OpenSSL */
};

/* ---- the files ---- */

static enum hk_code bad_file(const char *what, const char *path, struct hk_err *err)
{
    char shown[HK_SHOW_MAX], why[160];
    unsigned long code = ERR_peek_error();
    ERR_error_string_n(code, why, sizeof why);
    const char *reason = ERR_reason_error_string(code);
    ERR_clear_error();
    return hk_err_set(err, HK_INVALID, "%s %s cannot be used: %s", what, hk_show(hk_str_of(path), shown),
                      reason ? reason : why);
}

static enum hk_code load(SSL_CTX *ctx, const struct hk_stream_tls_files *files, struct hk_err *err)
{
    if (files->ca_file && SSL_CTX_load_verify_locations(ctx, files->ca_file, NULL) != 1)
        return bad_file("ca_file", files->ca_file, err);
    if (!files->ca_file && SSL_CTX_set_default_verify_paths(ctx) != 1)
        return hk_err_set(err, HK_INVALID, "the system's certificates cannot be read");
    if (!files->cert_file)
        return HK_OK;
    const char *key = files->key_file ? files->key_file : files->cert_file;
    if (SSL_CTX_use_certificate_chain_file(ctx, files->cert_file) != 1)
        return bad_file("cert_file", files->cert_file, err);
    if (SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1 || SSL_CTX_check_private_key(ctx) != 1)
        return bad_file("key_file", key, err);
    return HK_OK;
}

/* As it goes over the wire: its length, then itself. */
static bool ask_for(SSL_CTX *ctx, const char *protocol)
{
    unsigned char wire[32];
    size_t n = protocol ? strlen(protocol) : 0;
    if (!n)
        return true;
    if (n >= sizeof wire)
        return false;
    wire[0] = (unsigned char)n;
    memcpy(wire + 1, protocol, n);
    return SSL_CTX_set_alpn_protos(ctx, wire, (unsigned)n + 1) == 0; /* 0 is success, here alone */
}

enum hk_code hk_stream_tls_new(const struct hk_stream_tls_files *files, struct hk_stream_tls **out,
                               struct hk_err *err)
{
    struct hk_stream_tls *tls = hk_mem_zalloc(1, sizeof *tls);
    if (tls)
        tls->ctx = SSL_CTX_new(TLS_client_method());
    if (!tls || !tls->ctx) {
        hk_mem_free(tls);
        return hk_err_set(err, HK_NOMEM, "out of memory");
    }
    (void)SSL_CTX_set_min_proto_version(tls->ctx, TLS1_2_VERSION);
    SSL_CTX_set_verify(tls->ctx, SSL_VERIFY_PEER, NULL);
    (void)SSL_CTX_set_mode(tls->ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                         SSL_MODE_RELEASE_BUFFERS);
    tls->pins = files->pins;
    tls->alpn = files->alpn;
    enum hk_code rc = load(tls->ctx, files, err);
    if (rc == HK_OK && !ask_for(tls->ctx, files->alpn))
        rc = hk_err_set(err, HK_NOMEM, "out of memory");
    if (rc == HK_OK)
        *out = tls;
    else
        hk_stream_tls_free(tls);
    return rc;
}

void hk_stream_tls_free(struct hk_stream_tls *tls)
{
    if (!tls)
        return;
    SSL_CTX_free(tls->ctx); /* sessions hold it */
    hk_mem_free(tls);
}

/* ---- a session ---- */

static bool expect(SSL *ssl, const char *host)
{
    struct hk_ip ip;
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    if (hk_ip_parse(hk_str_of(host), &ip))
        return X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1;
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    char name[256]; /* its copy: the macro takes const away */
    if (!hk_str_copy(name, sizeof name, hk_str_of(host)))
        return false;
    return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1;
}

struct hk_tls_session *hk_tls_session_new(struct hk_stream_tls *tls, int fd, const char *host)
{
    struct hk_tls_session *s = hk_mem_zalloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->pins = tls->pins;
    s->alpn = tls->alpn;
    s->ssl = SSL_new(tls->ctx);
    if (s->ssl && SSL_set_fd(s->ssl, fd) == 1 && expect(s->ssl, host))
        return s;
    ERR_clear_error();
    hk_tls_session_free(s);
    return NULL;
}

void hk_tls_session_free(struct hk_tls_session *s)
{
    if (!s)
        return;
    SSL_free(s->ssl);
    hk_mem_free(s);
}

static enum hk_tls_step step_of(struct hk_tls_session *s, int rc, int saved_errno)
{
    switch (SSL_get_error(s->ssl, rc)) {
    case SSL_ERROR_WANT_READ:
        return HK_TLS_WANT_READ;
    case SSL_ERROR_WANT_WRITE:
        return HK_TLS_WANT_WRITE;
    case SSL_ERROR_ZERO_RETURN:
        return HK_TLS_END;
    }
    s->open = false;
    s->last_errno = saved_errno;
    s->last_error = ERR_peek_error();
    ERR_clear_error();
    if (SSL_get_verify_result(s->ssl) != X509_V_OK)
        return HK_TLS_UNTRUSTED;
    if (!s->last_error || ERR_GET_REASON(s->last_error) == SSL_R_UNEXPECTED_EOF_WHILE_READING)
        return HK_TLS_CUT;
    return HK_TLS_FAILED;
}

/* "sha256//" and the base64 of the digest of the public key, as libcurl has it; false: not to be had. */
static bool name_key(const SSL *ssl, char out[PIN_MAX])
{
    unsigned char digest[EVP_MAX_MD_SIZE], *der = NULL;
    unsigned n = 0;
    X509 *cert = SSL_get1_peer_certificate(ssl);
    int len = cert ? i2d_X509_PUBKEY(X509_get_X509_PUBKEY(cert), &der) : 0;
    bool ok = len > 0 && EVP_Digest(der, (size_t)len, digest, &n, EVP_sha256(), NULL) == 1;
    if (ok) {
        memcpy(out, PIN_KIND, sizeof PIN_KIND);
        (void)EVP_EncodeBlock((unsigned char *)out + sizeof PIN_KIND - 1, digest, (int)n);
    }
    OPENSSL_free(der);
    X509_free(cert);
    return ok;
}

static bool is_pinned(const struct hk_tls_session *s)
{
    char key[PIN_MAX];
    if (!s->pins)
        return true;
    if (!name_key(s->ssl, key))
        return false;
    for (struct hk_str rest = hk_str_of(s->pins); rest.ptr;) {
        if (hk_str_eq(hk_str_cut(&rest, ';'), hk_str_of(key)))
            return true;
    }
    return false;
}

static bool is_agreed(const struct hk_tls_session *s)
{
    const unsigned char *chosen = NULL;
    unsigned n = 0;
    if (!s->alpn)
        return true;
    SSL_get0_alpn_selected(s->ssl, &chosen, &n);
    return hk_str_eq((struct hk_str){(const char *)chosen, n}, hk_str_of(s->alpn));
}

static enum hk_tls_step refuse(struct hk_tls_session *s, enum hk_tls_step step, const char *why)
{
    s->open = false;
    s->refused = why;
    ERR_clear_error();
    return step;
}

enum hk_tls_step hk_tls_handshake(struct hk_tls_session *s)
{
    ERR_clear_error();
    int rc = SSL_connect(s->ssl), saved = errno;
    s->open = rc == 1;
    if (rc != 1)
        return step_of(s, rc, saved);
    if (!is_pinned(s))
        return refuse(s, HK_TLS_UNTRUSTED, "the server's public key is none of the pinned ones");
    if (!is_agreed(s))
        return refuse(s, HK_TLS_UNAGREED, "the server does not offer the protocol that was asked for (ALPN)");
    return HK_TLS_DONE;
}

enum hk_tls_step hk_tls_read(struct hk_tls_session *s, void *room, size_t len, size_t *out_len)
{
    ERR_clear_error();
    errno = 0;
    int rc = SSL_read_ex(s->ssl, room, len, out_len), saved = errno;
    return rc == 1 ? HK_TLS_DONE : step_of(s, rc, saved);
}

enum hk_tls_step hk_tls_write(struct hk_tls_session *s, const void *bytes, size_t len, size_t *out_len)
{
    ERR_clear_error();
    errno = 0;
    int rc = SSL_write_ex(s->ssl, bytes, len, out_len), saved = errno;
    return rc == 1 ? HK_TLS_DONE : step_of(s, rc, saved);
}

void hk_tls_goodbye(struct hk_tls_session *s)
{
    if (s->open)
        (void)SSL_shutdown(s->ssl);
    ERR_clear_error();
}

void hk_tls_why(const struct hk_tls_session *s, char out[HK_STREAM_ERROR_MAX])
{
    long verify = SSL_get_verify_result(s->ssl);
    const char *reason = s->refused      ? s->refused
                         : s->last_error ? ERR_reason_error_string(s->last_error)
                                         : NULL;
    if (verify != X509_V_OK)
        (void)snprintf(out, HK_STREAM_ERROR_MAX, "TLS: the certificate is not accepted: %s",
                       X509_verify_cert_error_string(verify));
    else if (reason)
        (void)snprintf(out, HK_STREAM_ERROR_MAX, "TLS: %s", reason);
    else
        (void)snprintf(out, HK_STREAM_ERROR_MAX, "TLS: %s",
                       s->last_errno ? strerror(s->last_errno) : "the connection was closed");
}
