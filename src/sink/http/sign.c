/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures by OpenSSL; the only file of the sinks that knows it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include "base/base64.h"
#include "base/mem.h"
#include "base/str.h"
#include "sink/http/sign.h"

#define MAC_BYTES 32

struct hk_signer {
    EVP_MAC *mac;
    size_t n;
    EVP_MAC_CTX *keyed[HK_SECRETS_MAX]; /* each holds its key; started anew for each message */
};

void hk_secret_wipe(void *bytes, size_t len)
{
    if (bytes)
        OPENSSL_cleanse(bytes, len);
}

/* ---- secrets ---- */

enum hk_code hk_secret_parse(struct hk_str s, struct hk_secret *out, struct hk_err *err)
{
    static const char prefix[] = "whsec_";
    const size_t n_prefix = sizeof prefix - 1;
    if (!hk_str_starts(s, hk_str_of(prefix)))
        return hk_err_set(err, HK_INVALID, "a signing secret must begin with whsec_ (not shown here)");
    struct hk_secret secret = {.len = 0};
    enum hk_code rc = HK_OK;
    struct hk_str text = {s.ptr + n_prefix, s.len - n_prefix};
    if (!hk_base64_decode(text, HK_BASE64_BARE, secret.key, sizeof secret.key, &secret.len))
        rc = hk_err_set(err, HK_INVALID, "a signing secret must be whsec_ and base64 of %d to %d bytes",
                        HK_SECRET_MIN, HK_SECRET_MAX);
    else if (secret.len < HK_SECRET_MIN)
        rc = hk_err_set(err, HK_INVALID, "a signing secret must have %d to %d bytes; this one has %zu",
                        HK_SECRET_MIN, HK_SECRET_MAX, secret.len);
    else
        *out = secret;
    hk_secret_wipe(&secret, sizeof secret);
    return rc;
}

/* ---- signing ---- */

static enum hk_code add_key(struct hk_signer *signer, const char *text, struct hk_err *err)
{
    struct hk_secret secret = {.len = 0};
    enum hk_code rc = hk_secret_parse(hk_str_of(text), &secret, err);
    if (rc != HK_OK)
        return rc;
    char digest[] = "SHA256";
    OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
                           OSSL_PARAM_construct_end()};
    EVP_MAC_CTX *ctx = EVP_MAC_CTX_new(signer->mac);
    if (!ctx || !EVP_MAC_init(ctx, secret.key, secret.len, params)) {
        EVP_MAC_CTX_free(ctx);
        rc = hk_err_set(err, HK_NOMEM, "OpenSSL cannot make an HMAC-SHA256");
    } else {
        signer->keyed[signer->n++] = ctx;
    }
    hk_secret_wipe(&secret, sizeof secret);
    return rc;
}

enum hk_code hk_signer_new(const char *const *secrets, size_t n, struct hk_signer **out_signer,
                           struct hk_err *err)
{
    if (n > HK_SECRETS_MAX)
        return hk_err_set(err, HK_TOOBIG, "at most %d signing secrets at the same time", HK_SECRETS_MAX);
    struct hk_signer *signer = hk_mem_zalloc(1, sizeof *signer);
    if (!signer)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    enum hk_code rc = HK_OK;
    signer->mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    if (!signer->mac)
        rc = hk_err_set(err, HK_UNSUPPORTED, "OpenSSL has no HMAC");
    for (size_t i = 0; i < n && rc == HK_OK; i++)
        rc = add_key(signer, secrets[i], err);
    if (rc == HK_OK)
        *out_signer = signer;
    else
        hk_signer_free(signer);
    return rc;
}

/* OpenSSL wipes the keys itself. */
void hk_signer_free(struct hk_signer *signer)
{
    if (!signer)
        return;
    for (size_t i = 0; i < signer->n; i++)
        EVP_MAC_CTX_free(signer->keyed[i]);
    EVP_MAC_free(signer->mac);
    hk_mem_free(signer);
}

static bool update(EVP_MAC_CTX *ctx, struct hk_str s)
{
    return !s.len || EVP_MAC_update(ctx, (const unsigned char *)s.ptr, s.len);
}

static bool mac_of(EVP_MAC_CTX *ctx, struct hk_str id, struct hk_str when, struct hk_str body,
                   uint8_t out[MAC_BYTES])
{
    size_t len = 0;
    return EVP_MAC_init(ctx, NULL, 0, NULL) && /* the same key again */
           update(ctx, id) && update(ctx, when) && update(ctx, body) &&
           EVP_MAC_final(ctx, out, &len, MAC_BYTES) && len == MAC_BYTES;
}

enum hk_code hk_signer_sign(struct hk_signer *signer, struct hk_str id, int64_t unix_s, struct hk_str body,
                            struct hk_buf *out)
{
    char when[32];
    int len = snprintf(when, sizeof when, ".%" PRId64 ".", unix_s);
    enum hk_code rc = HK_OK;
    for (size_t i = 0; i < signer->n && rc == HK_OK; i++) {
        uint8_t mac[MAC_BYTES];
        if (!mac_of(signer->keyed[i], id, (struct hk_str){when, (size_t)len}, body, mac))
            return HK_NOMEM;
        hk_buf_adds(out, i ? " v1," : "v1,");
        rc = hk_buf_add_base64(out, mac, sizeof mac);
    }
    return rc;
}
