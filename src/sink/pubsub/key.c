/* SPDX-License-Identifier: Apache-2.0 */
/* The key of a service account, as the JSON that Google gives out, and the JWT that it signs (RS256). Google's services take such a JWT for
 * an access token: nobody has to be asked for one. */
#include <string.h>

#include <jansson.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "base/mem.h"
#include "base/show.h"
#include "base/str.h"
#include "sink/pubsub/impl.h"

enum {
    PART_MAX = 4096,
    SIGNATURE_MAX = 1024 /* a key of 8,192 bits */
};

/* base64url without padding. */
static void add_part(struct hk_buf *out, const void *bytes, size_t len)
{
    struct hk_buf plain;
    hk_buf_init(&plain, 2 * PART_MAX);
    (void)hk_buf_add_base64(&plain, bytes, len);
    hk_buf_inherit(out, &plain);
    for (size_t i = 0; i < plain.len && plain.data[i] != '='; i++)
        (void)hk_buf_addc(out, (char)(plain.data[i] == '+'   ? '-'
                                      : plain.data[i] == '/' ? '_'
                                                             : plain.data[i]));
    hk_buf_fini(&plain);
}

static void add_head(struct hk_buf *out, const char *key_id)
{
    struct hk_buf text;
    struct hk_json json;
    hk_buf_init(&text, PART_MAX);
    hk_json_init(&json, &text, false);
    hk_json_object(&json);
    hk_json_key(&json, "alg");
    hk_json_cstr(&json, "RS256");
    hk_json_key(&json, "typ");
    hk_json_cstr(&json, "JWT");
    if (key_id) {
        hk_json_key(&json, "kid");
        hk_json_cstr(&json, key_id);
    }
    hk_json_end(&json);
    hk_buf_inherit(out, &text);
    add_part(out, text.data, text.len);
    hk_buf_fini(&text);
}

static void add_claims(struct hk_buf *out, const char *email, int64_t now_s)
{
    struct hk_buf text;
    struct hk_json json;
    hk_buf_init(&text, PART_MAX);
    hk_json_init(&json, &text, false);
    hk_json_object(&json);
    hk_json_key(&json, "iss");
    hk_json_cstr(&json, email);
    hk_json_key(&json, "sub");
    hk_json_cstr(&json, email);
    hk_json_key(&json, "aud");
    hk_json_cstr(&json, HK_PUBSUB_AUDIENCE);
    hk_json_key(&json, "iat");
    hk_json_i64(&json, now_s);
    hk_json_key(&json, "exp");
    hk_json_i64(&json, now_s + HK_PUBSUB_TOKEN_S);
    hk_json_end(&json);
    hk_buf_inherit(out, &text);
    add_part(out, text.data, text.len);
    hk_buf_fini(&text);
}

/* ---- RS256 ---- */

/* Else OpenSSL asks at the terminal. */
static int no_password(char *text, int room, int rw, void *arg)
{
    (void)text, (void)room, (void)rw, (void)arg;
    return 0;
}

static EVP_PKEY *read_pem(const char *pem)
{
    BIO *bio = BIO_new_mem_buf(pem, -1);
    EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL) : NULL;
    BIO_free(bio);
    if (key && EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA)
        return key;
    EVP_PKEY_free(key);
    return NULL;
}

/* How long the signature is; 0: OpenSSL cannot. */
static size_t sign_text(EVP_PKEY *key, struct hk_str text, unsigned char out[SIGNATURE_MAX])
{
    size_t len = SIGNATURE_MAX;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool ok = context && EVP_PKEY_get_size(key) <= SIGNATURE_MAX &&
              EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key) == 1 &&
              EVP_DigestSign(context, out, &len, (const unsigned char *)text.ptr, text.len) == 1;
    EVP_MD_CTX_free(context);
    return ok ? len : 0;
}

static enum hk_code add_signature(struct hk_buf *out, const char *pem, struct hk_err *err)
{
    unsigned char signature[SIGNATURE_MAX];
    EVP_PKEY *key = read_pem(pem);
    size_t len = key ? sign_text(key, hk_buf_str(out), signature) : 0;
    ERR_clear_error();
    EVP_PKEY_free(key);
    if (!key)
        return hk_err_set(err, HK_DENIED, "its \"private_key\" is not an RSA key in PEM without a password");
    if (!len)
        return hk_err_set(err, HK_DENIED, "its \"private_key\" cannot sign");
    (void)hk_buf_addc(out, '.');
    add_part(out, signature, len);
    return HK_OK;
}

/* ---- the key ---- */

static enum hk_code make_jwt(const json_t *root, int64_t now_s, struct hk_buf *out, struct hk_err *err)
{
    const char *type = json_string_value(json_object_get(root, "type")),
               *email = json_string_value(json_object_get(root, "client_email")),
               *pem = json_string_value(json_object_get(root, "private_key"));
    char shown[HK_SHOW_MAX];
    if (!type || strcmp(type, "service_account") != 0)
        return hk_err_set(err, HK_DENIED, "its \"type\" is %s: only the key of a service_account can be used",
                          type ? hk_show(hk_str_of(type), shown) : "not there");
    if (!email || !email[0] || strlen(email) > 256 || !pem)
        return hk_err_set(err, HK_DENIED, "it lacks \"client_email\" or \"private_key\"");
    add_head(out, json_string_value(json_object_get(root, "private_key_id")));
    (void)hk_buf_addc(out, '.');
    add_claims(out, email, now_s);
    enum hk_code rc = hk_buf_status(out);
    if (rc == HK_OK)
        rc = add_signature(out, pem, err);
    else
        return hk_err_set(err, rc == HK_NOMEM ? rc : HK_DENIED, "a token of this key would be too long");
    if (rc == HK_OK && hk_buf_status(out) != HK_OK)
        rc = hk_err_set(err, HK_NOMEM, "out of memory");
    return rc;
}

enum hk_code hk_pubsub_jwt_make(struct hk_str key, int64_t now_s, struct hk_buf *out, struct hk_err *err)
{
    json_error_t error;
    json_t *root = key.len ? json_loadb(key.ptr, key.len, 0, &error) : NULL;
    enum hk_code rc = HK_OK;
    if (!root && key.len && json_error_code(&error) == json_error_out_of_memory)
        rc = hk_err_set(err, HK_NOMEM, "out of memory");
    else if (!json_is_object(root))
        rc = hk_err_set(err, HK_DENIED, "it is not a JSON object");
    else
        rc = make_jwt(root, now_s, out, err);
    json_t *pem = json_object_get(root, "private_key");
    if (json_is_string(pem)) { /* jansson does not wipe what it frees */

        union {
            const char *text;
            char *bytes;
        } secret = {.text = json_string_value(pem)};

        hk_mem_wipe(secret.bytes, json_string_length(pem));
    }
    json_decref(root);
    return rc;
}
