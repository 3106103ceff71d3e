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

#define MAC_BYTES       32
#define ED25519_BYTES   32
#define SIGNATURE_BYTES 64
#define PAIR_PREFIX     "whsk_"
#define SIGNED_MAX      ((size_t)2 << 30)

struct signing_key {
    EVP_MAC_CTX *mac; /* v1: holds its key; started anew for each message */
    EVP_PKEY *pair;   /* v1a */
};

struct hk_signer {
    EVP_MAC *mac;
    size_t n;
    struct signing_key keys[HK_SECRETS_MAX];
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

static bool is_pair(struct hk_str s)
{
    return hk_str_starts(s, hk_str_of(PAIR_PREFIX));
}

/* HK_INVALID never shows it. */
static enum hk_code read_pair(struct hk_str s, EVP_PKEY **out, struct hk_err *err)
{
    uint8_t bytes[2 * ED25519_BYTES], public[ED25519_BYTES];
    size_t len = 0, n = sizeof public;
    struct hk_str text = {s.ptr + strlen(PAIR_PREFIX), s.len - strlen(PAIR_PREFIX)};
    EVP_PKEY *pair = NULL;
    enum hk_code rc = HK_OK;
    if (!hk_base64_decode(text, HK_BASE64_BARE, bytes, sizeof bytes, &len) ||
        (len != ED25519_BYTES && len != 2 * (size_t)ED25519_BYTES))
        rc = hk_err_set(err, HK_INVALID, "an Ed25519 key must be whsk_ and base64 of 32 or 64 bytes");
    if (rc == HK_OK && !(pair = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, bytes, ED25519_BYTES)))
        rc = hk_err_set(err, HK_NOMEM, "OpenSSL cannot make an Ed25519 key");
    if (rc == HK_OK && len > ED25519_BYTES &&
        (!EVP_PKEY_get_raw_public_key(pair, public, &n) || memcmp(public, bytes + ED25519_BYTES, n) != 0))
        rc = hk_err_set(err, HK_INVALID, "the two halves of an Ed25519 key (whsk_) do not belong together");
    hk_secret_wipe(bytes, sizeof bytes);
    if (rc == HK_OK)
        *out = pair;
    else
        EVP_PKEY_free(pair);
    return rc;
}

enum hk_code hk_secret_check(struct hk_str s, struct hk_err *err)
{
    struct hk_secret secret = {.len = 0};
    EVP_PKEY *pair = NULL;
    enum hk_code rc = is_pair(s) ? read_pair(s, &pair, err) : hk_secret_parse(s, &secret, err);
    hk_secret_wipe(&secret, sizeof secret);
    EVP_PKEY_free(pair);
    return rc;
}

/* ---- signing ---- */

static enum hk_code add_secret(struct hk_signer *signer, const char *text, struct hk_err *err)
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
        signer->keys[signer->n++].mac = ctx;
    }
    hk_secret_wipe(&secret, sizeof secret);
    return rc;
}

static enum hk_code add_key(struct hk_signer *signer, const char *text, struct hk_err *err)
{
    if (!is_pair(hk_str_of(text)))
        return add_secret(signer, text, err);
    enum hk_code rc = read_pair(hk_str_of(text), &signer->keys[signer->n].pair, err);
    signer->n += rc == HK_OK;
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
    for (size_t i = 0; i < signer->n; i++) {
        EVP_MAC_CTX_free(signer->keys[i].mac);
        EVP_PKEY_free(signer->keys[i].pair);
    }
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

static enum hk_code add_mac(EVP_MAC_CTX *ctx, struct hk_str id, struct hk_str when, struct hk_str body,
                            struct hk_buf *out)
{
    uint8_t mac[MAC_BYTES];
    if (!mac_of(ctx, id, when, body, mac))
        return HK_NOMEM;
    hk_buf_adds(out, "v1,");
    return hk_buf_add_base64(out, mac, sizeof mac);
}

/* Ed25519 reads its text twice, so it must lie in one piece. */
static enum hk_code add_signature(EVP_PKEY *pair, struct hk_str text, struct hk_buf *out)
{
    uint8_t signature[SIGNATURE_BYTES];
    size_t len = sizeof signature;
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool ok = ctx && EVP_DigestSignInit(ctx, NULL, NULL, NULL, pair) == 1 &&
              EVP_DigestSign(ctx, signature, &len, (const unsigned char *)text.ptr, text.len) == 1;
    EVP_MD_CTX_free(ctx);
    if (!ok)
        return HK_NOMEM;
    hk_buf_adds(out, "v1a,");
    return hk_buf_add_base64(out, signature, len);
}

static enum hk_code sign_whole(EVP_PKEY *pair, struct hk_str id, struct hk_str when, struct hk_str body,
                               struct hk_buf *out)
{
    struct hk_buf text;
    hk_buf_init(&text, SIGNED_MAX);
    (void)hk_buf_add(&text, id.ptr, id.len);
    (void)hk_buf_add(&text, when.ptr, when.len);
    (void)hk_buf_add(&text, body.ptr, body.len);
    enum hk_code rc = hk_buf_status(&text);
    if (rc == HK_OK)
        rc = add_signature(pair, hk_buf_str(&text), out);
    hk_buf_fini(&text);
    return rc;
}

enum hk_code hk_signer_sign(struct hk_signer *signer, struct hk_str id, int64_t unix_s, struct hk_str body,
                            struct hk_buf *out)
{
    char text[32];
    int len = snprintf(text, sizeof text, ".%" PRId64 ".", unix_s);
    struct hk_str when = {text, (size_t)len};
    enum hk_code rc = HK_OK;
    for (size_t i = 0; i < signer->n && rc == HK_OK; i++) {
        const struct signing_key *key = &signer->keys[i];
        if (i)
            hk_buf_addc(out, ' ');
        rc = key->pair ? sign_whole(key->pair, id, when, body, out) : add_mac(key->mac, id, when, body, out);
    }
    return rc;
}
