/* SPDX-License-Identifier: Apache-2.0 */
/* AES-256-GCM by OpenSSL, twice. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include "base/base64.h"
#include "base/str.h"
#include "payload/envelope.h"

enum {
    NONCE = 12,
    TAG = 16,
    WRAPPED = NONCE + HK_KEY_BYTES + TAG,
    OVERHEAD = WRAPPED + NONCE + TAG,
    SIGHT_MAX = 4096 /* what is authenticated beside the bytes; a message id is no longer than that */
};

/* What one layer says of itself: authenticated, not stored. */
struct sight {
    char text[SIGHT_MAX];
    size_t len;
};

struct layer {
    const unsigned char *key;
    const struct sight *sight;
    unsigned char *nonce, *tag;
};

/* ---- one layer ---- */

static bool begin(EVP_CIPHER_CTX *ctx, const struct layer *l, bool seal)
{
    int n = 0;
    return EVP_CipherInit_ex(ctx, EVP_aes_256_gcm(), NULL, l->key, l->nonce, seal) == 1 &&
           EVP_CipherUpdate(ctx, NULL, &n, (const unsigned char *)l->sight->text, (int)l->sight->len) == 1;
}

static bool seal_layer(EVP_CIPHER_CTX *ctx, const struct layer *l, const unsigned char *in, size_t len,
                       unsigned char *out)
{
    int n = 0, last = 0;
    return RAND_bytes(l->nonce, NONCE) == 1 && begin(ctx, l, true) &&
           (!len || EVP_CipherUpdate(ctx, out, &n, in, (int)len) == 1) &&
           EVP_CipherFinal_ex(ctx, out + n, &last) == 1 && (size_t)n + (size_t)last == len &&
           EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, TAG, l->tag) == 1;
}

/* What `out` holds when it is false was not authenticated: nobody may look at it. */
static bool open_layer(EVP_CIPHER_CTX *ctx, const struct layer *l, const unsigned char *in, size_t len,
                       unsigned char *out)
{
    int n = 0, last = 0;
    bool good = begin(ctx, l, false) && (!len || EVP_CipherUpdate(ctx, out, &n, in, (int)len) == 1) &&
                EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, TAG, l->tag) == 1 &&
                EVP_CipherFinal_ex(ctx, out + n, &last) == 1 && (size_t)n + (size_t)last == len;
    if (!good)
        OPENSSL_cleanse(out, len);
    return good;
}

/* ---- what is authenticated ---- */

/* "hikyaku-key/1\nKEY-ID\nSTORE\nFIELD\nMESSAGE-ID"; of the payload without the key's id, which changes with the key. Only the last
 * part may hold a line end. */
static bool sight_of(struct sight *out, const char *what, const char *key_id, const struct hk_keyring *keys,
                     const struct hk_sealed_place *place)
{
    int n = snprintf(out->text, sizeof out->text, "%s\n%s%s%s\n%s\n", what, key_id, key_id[0] ? "\n" : "",
                     hk_keyring_store(keys), place->field);
    if (n < 0 || (size_t)n >= sizeof out->text || place->message_id.len > sizeof out->text - (size_t)n ||
        !place->message_id.len)
        return false;
    memcpy(out->text + n, place->message_id.ptr, place->message_id.len);
    out->len = (size_t)n + place->message_id.len;
    return true;
}

static bool key_sight(struct sight *out, const char *key_id, const struct hk_keyring *keys,
                      const struct hk_sealed_place *place)
{
    return sight_of(out, "hikyaku-key/1", key_id, keys, place);
}

static bool data_sight(struct sight *out, const struct hk_keyring *keys, const struct hk_sealed_place *place)
{
    return sight_of(out, "hikyaku-data/1", "", keys, place);
}

/* ---- the data key ---- */

static bool wrap(EVP_CIPHER_CTX *ctx, const struct hk_key *key, const struct sight *sight,
                 const unsigned char *data_key, unsigned char out[WRAPPED])
{
    const struct layer l = {key->bytes, sight, out, out + NONCE + HK_KEY_BYTES};
    return seal_layer(ctx, &l, data_key, HK_KEY_BYTES, out + NONCE);
}

static bool unwrap(EVP_CIPHER_CTX *ctx, const struct hk_key *key, const struct sight *sight,
                   unsigned char in[WRAPPED], unsigned char *data_key)
{
    const struct layer l = {key->bytes, sight, in, in + NONCE + HK_KEY_BYTES};
    return open_layer(ctx, &l, in + NONCE, HK_KEY_BYTES, data_key);
}

/* ---- the text ---- */

static bool is_check(struct hk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!hk_ascii_isdigit(s.ptr[i]) && !(s.ptr[i] >= 'a' && s.ptr[i] <= 'f'))
            return false;
    return s.len == HK_KEY_CHECK_MAX - 1;
}

bool hk_envelope_read(struct hk_str sealed, struct hk_envelope *out)
{
    struct hk_str rest = sealed;
    struct hk_str version = hk_str_cut(&rest, '.');
    struct hk_envelope e = {.key_id = hk_str_cut(&rest, '.')};
    e.check = hk_str_cut(&rest, '.');
    e.body = rest;
    if (!hk_str_eq(version, hk_str_of("hk1")) || !hk_key_id_is_good(e.key_id) || !is_check(e.check) ||
        e.body.len < OVERHEAD / 3 * 4 || e.body.len % 4)
        return false;
    *out = e;
    return true;
}

static enum hk_code write_text(const struct hk_key *key, const unsigned char *bytes, size_t len,
                               struct hk_buf *out)
{
    (void)hk_buf_addf(out, "hk1.%s.%s.", key->id, key->check);
    (void)hk_buf_add_base64(out, bytes, len);
    return hk_buf_status(out);
}

/* ---- sealing ---- */

static bool seal_bytes(struct hk_keyring *keys, const struct hk_key *key, const struct hk_sealed_place *place,
                       struct hk_str plain, unsigned char *bytes)
{
    unsigned char data_key[HK_KEY_BYTES], *nonce = bytes + WRAPPED;
    struct sight sight, data;
    const struct layer l = {data_key, &data, nonce, nonce + NONCE + plain.len};
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    bool good = ctx && key_sight(&sight, key->id, keys, place) && data_sight(&data, keys, place) &&
                RAND_priv_bytes(data_key, sizeof data_key) == 1 && wrap(ctx, key, &sight, data_key, bytes) &&
                seal_layer(ctx, &l, (const unsigned char *)plain.ptr, plain.len, nonce + NONCE);
    OPENSSL_cleanse(data_key, sizeof data_key);
    EVP_CIPHER_CTX_free(ctx);
    return good;
}

enum hk_code hk_envelope_seal(struct hk_keyring *keys, const struct hk_sealed_place *place,
                              struct hk_str plain, struct hk_buf *out, struct hk_err *err)
{
    struct hk_key key;
    struct hk_pool mem = {.blocks = NULL};
    if (!place->message_id.len || place->message_id.len > SIGHT_MAX / 2)
        return hk_err_set(err, HK_INVALID, "a sealed message needs an id of at most %d bytes", SIGHT_MAX / 2);
    if (plain.len > INT_MAX / 2)
        return hk_err_set(err, HK_TOOBIG, "the payload is too large to be sealed");
    enum hk_code rc = hk_keyring_newest(keys, &key, err);
    if (rc != HK_OK)
        return rc;
    unsigned char *bytes = hk_pool_alloc(&mem, plain.len + OVERHEAD, 1);
    rc = !bytes                                         ? HK_NOMEM
         : !seal_bytes(keys, &key, place, plain, bytes) ? HK_IO
                                                        : write_text(&key, bytes, plain.len + OVERHEAD, out);
    hk_key_wipe(&key);
    hk_pool_fini(&mem);
    return rc == HK_OK ? HK_OK : hk_err_set(err, rc, "the payload cannot be sealed: %s", hk_code_name(rc));
}

/* ---- opening ---- */

static enum hk_code damaged(struct hk_err *err)
{
    return hk_err_set(err, HK_INVALID, "the sealed payload is damaged, or was sealed for another message");
}

/* The bytes behind the header, in `mem`, and the key that opens them. */
static enum hk_code read_bytes(struct hk_keyring *keys, struct hk_str sealed, struct hk_pool *mem,
                               struct hk_key *key, unsigned char **out, size_t *out_len, struct hk_err *err)
{
    struct hk_envelope e;
    if (!hk_envelope_read(sealed, &e))
        return hk_err_set(err, HK_INVALID, "the payload is not in the format of sealed payloads");
    enum hk_code rc = hk_keyring_get(keys, e.key_id, key, err);
    if (rc != HK_OK)
        return rc;
    if (!hk_str_eq(hk_str_of(key->check), e.check))
        return hk_err_set(err, HK_UNAVAILABLE,
                          "the key %s here is not the one that sealed it, or seal.store differs", key->id);
    size_t room = hk_base64_room(e.body.len);
    unsigned char *bytes = hk_pool_alloc(mem, room, 1);
    if (!bytes)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    if (!hk_base64_decode(e.body, HK_BASE64_BARE, bytes, room, out_len) || *out_len < OVERHEAD ||
        *out_len > INT_MAX)
        return damaged(err);
    *out = bytes;
    return HK_OK;
}

/* In place. */
static enum hk_code open_bytes(const struct hk_keyring *keys, const struct hk_key *key,
                               const struct hk_sealed_place *place, unsigned char *bytes, size_t len,
                               struct hk_err *err)
{
    unsigned char data_key[HK_KEY_BYTES], *nonce = bytes + WRAPPED, *text = nonce + NONCE;
    struct sight sight, data;
    const struct layer l = {data_key, &data, nonce, bytes + len - TAG};
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    if (!ctx)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    bool good = key_sight(&sight, key->id, keys, place) && data_sight(&data, keys, place) &&
                unwrap(ctx, key, &sight, bytes, data_key) && open_layer(ctx, &l, text, len - OVERHEAD, text);
    OPENSSL_cleanse(data_key, sizeof data_key);
    EVP_CIPHER_CTX_free(ctx);
    return good ? HK_OK : damaged(err);
}

enum hk_code hk_envelope_open(struct hk_keyring *keys, const struct hk_sealed_place *place,
                              struct hk_str sealed, struct hk_pool *mem, struct hk_str *out,
                              struct hk_err *err)
{
    struct hk_key key = {.id = ""};
    unsigned char *bytes = NULL;
    size_t len = 0;
    enum hk_code rc = read_bytes(keys, sealed, mem, &key, &bytes, &len, err);
    if (rc == HK_OK)
        rc = open_bytes(keys, &key, place, bytes, len, err);
    if (rc == HK_OK)
        *out = (struct hk_str){(const char *)bytes + WRAPPED + NONCE, len - OVERHEAD};
    hk_key_wipe(&key);
    return rc;
}

/* ---- another key ---- */

static enum hk_code rewrap_bytes(struct hk_keyring *keys, const struct hk_key *old, const struct hk_key *new,
                                 const struct hk_sealed_place *place, unsigned char *bytes,
                                 struct hk_err *err)
{
    unsigned char data_key[HK_KEY_BYTES];
    struct sight was, is;
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    enum hk_code rc = HK_OK;
    if (!ctx)
        rc = hk_err_set(err, HK_NOMEM, "out of memory");
    else if (!key_sight(&was, old->id, keys, place) || !unwrap(ctx, old, &was, bytes, data_key))
        rc = damaged(err);
    else if (!key_sight(&is, new->id, keys, place) || !wrap(ctx, new, &is, data_key, bytes))
        rc = hk_err_set(err, HK_IO, "the data key cannot be wrapped");
    OPENSSL_cleanse(data_key, sizeof data_key);
    EVP_CIPHER_CTX_free(ctx);
    return rc;
}

enum hk_code hk_envelope_rewrap(struct hk_keyring *keys, const struct hk_sealed_place *place,
                                struct hk_str sealed, struct hk_buf *out, struct hk_err *err)
{
    struct hk_pool mem = {.blocks = NULL};
    struct hk_key old = {.id = ""}, new = {.id = ""};
    unsigned char *bytes = NULL;
    size_t len = 0;
    enum hk_code rc = read_bytes(keys, sealed, &mem, &old, &bytes, &len, err);
    if (rc == HK_OK)
        rc = hk_keyring_newest(keys, &new, err);
    if (rc == HK_OK)
        rc = rewrap_bytes(keys, &old, &new, place, bytes, err);
    if (rc == HK_OK)
        rc = write_text(&new, bytes, len, out);
    hk_key_wipe(&old);
    hk_key_wipe(&new);
    hk_pool_fini(&mem);
    return rc;
}
