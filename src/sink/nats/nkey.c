/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include <openssl/evp.h>

#include "base/mem.h"
#include "base/show.h"
#include "base/str.h"
#include "sink/nats/nkey.h"

enum {
    FILE_MAX = 64 * 1024,
    SEED_BYTES = 2 + HK_NKEY_SEED + 2, /* two bytes of kind, and a checksum behind */
    PUBLIC_BYTES = 1 + 32 + 2,
    SIGNATURE = 64,
    KIND_SEED = 18 << 3,
    KIND_USER = 20 << 3
};

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/* CRC-16/XMODEM */
static unsigned checksum(const unsigned char *bytes, size_t len)
{
    unsigned crc = 0;
    for (size_t i = 0; i < len; i++) {
        crc ^= (unsigned)bytes[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc & 0x8000u ? crc << 1 ^ 0x1021u : crc << 1) & 0xffffu;
    }
    return crc;
}

/* Base32 without padding. The number of bytes; 0: it is none, or does not fit. */
static size_t decode32(struct hk_str text, unsigned char *out, size_t room)
{
    unsigned bits = 0, n_bits = 0;
    size_t n = 0;
    for (size_t i = 0; i < text.len; i++) {
        const char *at = text.ptr[i] ? strchr(alphabet, text.ptr[i]) : NULL;
        if (!at)
            return 0;
        bits = (bits << 5 | (unsigned)(at - alphabet)) & 0xfffu;
        n_bits += 5;
        if (n_bits < 8)
            continue;
        if (n == room)
            return 0;
        n_bits -= 8;
        out[n++] = (unsigned char)(bits >> n_bits & 0xff);
    }
    return n;
}

static void encode32(const unsigned char *bytes, size_t len, char *out)
{
    unsigned bits = 0, n_bits = 0;
    for (size_t i = 0; i < len; i++) {
        bits = (bits << 8 | bytes[i]) & 0xfffu;
        n_bits += 8;
        while (n_bits >= 5) {
            n_bits -= 5;
            *out++ = alphabet[bits >> n_bits & 31];
        }
    }
    if (n_bits)
        *out++ = alphabet[bits << (5 - n_bits) & 31];
    *out = '\0';
}

static EVP_PKEY *key_of(const struct hk_nkey *key)
{
    return EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, key->seed, HK_NKEY_SEED);
}

static bool name_public(struct hk_nkey *key)
{
    unsigned char bytes[PUBLIC_BYTES] = {KIND_USER};
    size_t len = 32;
    EVP_PKEY *pkey = key_of(key);
    bool ok = pkey && EVP_PKEY_get_raw_public_key(pkey, bytes + 1, &len) == 1 && len == 32;
    EVP_PKEY_free(pkey);
    unsigned crc = checksum(bytes, PUBLIC_BYTES - 2);
    bytes[PUBLIC_BYTES - 2] = (unsigned char)(crc & 0xff);
    bytes[PUBLIC_BYTES - 1] = (unsigned char)(crc >> 8);
    encode32(bytes, PUBLIC_BYTES, key->public_key);
    return ok;
}

bool hk_nkey_parse(struct hk_str text, struct hk_nkey *out)
{
    unsigned char bytes[SEED_BYTES];
    size_t n = decode32(text, bytes, sizeof bytes);
    bool ok = n == SEED_BYTES &&
              checksum(bytes, SEED_BYTES - 2) == ((unsigned)bytes[n - 2] | (unsigned)bytes[n - 1] << 8) &&
              (bytes[0] & 0xf8) == KIND_SEED && ((bytes[0] & 7) << 5 | bytes[1] >> 3) == KIND_USER;
    if (ok) {
        memcpy(out->seed, bytes + 2, HK_NKEY_SEED);
        ok = name_public(out);
    }
    hk_mem_wipe(bytes, sizeof bytes);
    return ok;
}

bool hk_nkey_sign(const struct hk_nkey *key, struct hk_str nonce, struct hk_buf *out)
{
    unsigned char signature[SIGNATURE];
    size_t len = sizeof signature, from = out->len;
    EVP_PKEY *pkey = key_of(key);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool ok = pkey && ctx && EVP_DigestSignInit(ctx, NULL, NULL, NULL, pkey) == 1 &&
              EVP_DigestSign(ctx, signature, &len, (const unsigned char *)nonce.ptr, nonce.len) == 1;
    EVP_MD_CTX_free(ctx);
    EVP_PKEY_free(pkey);
    if (!ok || hk_buf_add_base64(out, signature, len) != HK_OK)
        return false;
    for (size_t i = from; i < out->len; i++) /* to base64url */
        out->data[i] = (char)(out->data[i] == '+' ? '-' : out->data[i] == '/' ? '_' : out->data[i]);
    while (out->len > from && out->data[out->len - 1] == '=')
        out->data[--out->len] = '\0';
    return true;
}

/* ---- files ---- */

/* What stands between a line "-----BEGIN NAME-----" and the next such line. */
static struct hk_str section(struct hk_str text, const char *name)
{
    bool inside = false;
    while (text.ptr) {
        struct hk_str line = hk_str_trim(hk_str_cut(&text, '\n'));
        if (line.len && line.ptr[line.len - 1] == '\r')
            line.len--;
        bool fence = hk_str_starts(line, hk_str_of("-----"));
        if (inside && line.len && !fence)
            return line;
        inside = fence ? hk_str_containsi(line, hk_str_of(name)) && hk_str_containsi(line, hk_str_of("BEGIN"))
                       : inside;
    }
    return (struct hk_str){"", 0};
}

static struct hk_str lone_line(struct hk_str text)
{
    while (text.ptr) {
        struct hk_str line = hk_str_trim(hk_str_cut(&text, '\n'));
        if (line.len && line.ptr[line.len - 1] == '\r')
            line.len--;
        if (hk_str_starts(line, hk_str_of("SU")))
            return line;
    }
    return (struct hk_str){"", 0};
}

bool hk_nkey_read_creds(struct hk_str text, struct hk_str *out_jwt, struct hk_nkey *out_key)
{
    struct hk_str seed = section(text, "NKEY SEED");
    *out_jwt = section(text, "JWT");
    for (size_t i = 0; i < out_jwt->len; i++)
        if (out_jwt->ptr[i] <= ' ' || out_jwt->ptr[i] > '~' || out_jwt->ptr[i] == '"' ||
            out_jwt->ptr[i] == '\\')
            return false;
    return hk_nkey_parse(seed.len ? seed : lone_line(text), out_key);
}

enum hk_code hk_nkey_load(const char *path, struct hk_buf *jwt, struct hk_nkey *out_key, struct hk_err *err)
{
    char text[FILE_MAX], shown[HK_SHOW_MAX];
    struct hk_str found = {"", 0};
    FILE *file = fopen(path, "re");
    size_t n = file ? fread(text, 1, sizeof text, file) : 0;
    bool read = file && !ferror(file) && n < sizeof text;
    if (file)
        (void)fclose(file);
    bool good = read && hk_nkey_read_creds((struct hk_str){text, n}, &found, out_key);
    if (good)
        (void)hk_buf_add(jwt, found.ptr, found.len);
    hk_mem_wipe(text, sizeof text);
    if (good)
        return hk_buf_status(jwt) == HK_OK ? HK_OK : hk_err_set(err, HK_NOMEM, "out of memory");
    return hk_err_set(err, HK_INVALID, "creds_file %s %s", hk_show(hk_str_of(path), shown),
                      read ? "holds no seed of a user's nkey (SU…)" : "cannot be read");
}
