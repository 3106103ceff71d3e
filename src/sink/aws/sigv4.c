/* SPDX-License-Identifier: Apache-2.0 */
/* The canonical request, its hash, and the chain of HMACs that makes the key of a day, a region and a service. */
#include <string.h>

#include <openssl/evp.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "sink/aws/sigv4.h"

enum {
    DIGEST_BYTES = 32,
    CANONICAL_MAX = 256 * 1024, /* without the body, of which only the hash is in it */
    SECRET_MAX = 1024
};

void hk_sigv4_time(int64_t unix_ms, char out[HK_SIGV4_TIME_MAX])
{
    char text[HK_TIME_TEXT_MAX];
    size_t n = 0;
    (void)hk_format_rfc3339(unix_ms, text);
    for (const char *at = text; *at && *at != '.' && n < HK_SIGV4_TIME_MAX - 2; at++)
        if (hk_ascii_isdigit(*at) || *at == 'T')
            out[n++] = *at;
    out[n] = 'Z';
    out[n + 1] = '\0';
}

static void to_hex(const unsigned char digest[DIGEST_BYTES], char out[HK_SHA256_HEX_MAX])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < DIGEST_BYTES; i++) {
        out[2 * i] = digits[digest[i] >> 4];
        out[2 * i + 1] = digits[digest[i] & 15];
    }
    out[2 * DIGEST_BYTES] = '\0';
}

bool hk_sha256_hex(struct hk_str bytes, char out[HK_SHA256_HEX_MAX])
{
    unsigned char digest[DIGEST_BYTES];
    unsigned len = 0;
    if (EVP_Digest(bytes.len ? bytes.ptr : "", bytes.len, digest, &len, EVP_sha256(), NULL) != 1)
        return false;
    to_hex(digest, out);
    return true;
}

static bool add_mac(unsigned char key[DIGEST_BYTES], size_t key_len, const void *with, struct hk_str text)
{
    unsigned char mac[DIGEST_BYTES];
    size_t len = 0;
    bool ok = EVP_Q_mac(NULL, "HMAC", NULL, "SHA256", NULL, with, key_len, (const unsigned char *)text.ptr,
                        text.len, mac, sizeof mac, &len) != NULL;
    memcpy(key, mac, sizeof mac);
    hk_mem_wipe(mac, sizeof mac);
    return ok;
}

/* ---- the canonical request ---- */

/* A path is encoded once more than it is on the wire (but for S3, which is not ours). */
static void add_path(struct hk_buf *out, struct hk_str path)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < path.len; i++) {
        unsigned char c = (unsigned char)path.ptr[i];
        const char escape[3] = {'%', digits[c >> 4], digits[c & 15]};
        if (hk_ascii_isalpha((char)c) || hk_ascii_isdigit((char)c) || (c && strchr("-_.~/", c)))
            (void)hk_buf_addc(out, (char)c);
        else
            (void)hk_buf_add(out, escape, sizeof escape);
    }
    if (!path.len)
        (void)hk_buf_addc(out, '/');
}

struct part {
    struct hk_str name, value;
};

static int compare(struct hk_str a, struct hk_str b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int order = n ? memcmp(a.ptr, b.ptr, n) : 0;
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

static int compare_parts(const struct part *a, const struct part *b)
{
    int order = compare(a->name, b->name);
    return order ? order : compare(a->value, b->value);
}

/* They are few. */
static void sort_parts(struct part *parts, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        struct part part = parts[i];
        size_t at = i;
        for (; at > 0 && compare_parts(&parts[at - 1], &part) > 0; at--)
            parts[at] = parts[at - 1];
        parts[at] = part;
    }
}

static bool add_query(struct hk_buf *out, struct hk_str query)
{
    struct part parts[HK_SIGV4_QUERY_MAX];
    size_t n = 0;
    while (query.len) {
        struct hk_str value = hk_str_cut(&query, '&');
        struct hk_str name = hk_str_cut(&value, '=');
        if (n == HK_SIGV4_QUERY_MAX)
            return false;
        parts[n++] = (struct part){name, value};
    }
    sort_parts(parts, n);
    for (size_t i = 0; i < n; i++) {
        (void)hk_buf_adds(out, i ? "&" : "");
        (void)hk_buf_add(out, parts[i].name.ptr, parts[i].name.len);
        (void)hk_buf_addc(out, '=');
        (void)hk_buf_add(out, parts[i].value.ptr, parts[i].value.len);
    }
    return true;
}

/* Without blanks at its ends, and one blank for several. */
static void add_value(struct hk_buf *out, struct hk_str value)
{
    value = hk_str_trim(value);
    for (size_t i = 0; i < value.len; i++)
        if (value.ptr[i] != ' ' || value.ptr[i - 1] != ' ')
            (void)hk_buf_addc(out, value.ptr[i]);
}

static void add_names(struct hk_buf *out, const struct part *headers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        (void)hk_buf_adds(out, i ? ";" : "");
        (void)hk_buf_add(out, headers[i].name.ptr, headers[i].name.len);
    }
}

static bool add_request(struct hk_buf *out, const struct hk_sigv4 *r, const struct part *headers)
{
    char hash[HK_SHA256_HEX_MAX];
    (void)hk_buf_add(out, r->method.ptr, r->method.len);
    (void)hk_buf_addc(out, '\n');
    add_path(out, r->path);
    (void)hk_buf_addc(out, '\n');
    if (!add_query(out, r->query) || !hk_sha256_hex(r->body, hash))
        return false;
    (void)hk_buf_addc(out, '\n');
    for (size_t i = 0; i < r->n_headers; i++) {
        (void)hk_buf_add(out, headers[i].name.ptr, headers[i].name.len);
        (void)hk_buf_addc(out, ':');
        add_value(out, headers[i].value);
        (void)hk_buf_addc(out, '\n');
    }
    (void)hk_buf_addc(out, '\n');
    add_names(out, headers, r->n_headers);
    (void)hk_buf_addf(out, "\n%s", hash);
    return hk_buf_status(out) == HK_OK;
}

/* ---- the signature ---- */

/* `text`: what is signed. */
static bool make_signature(const struct hk_sigv4 *r, struct hk_str text, char out[HK_SHA256_HEX_MAX])
{
    static const char prefix[] = "AWS4";
    char first[sizeof prefix + SECRET_MAX];
    unsigned char key[DIGEST_BYTES];
    size_t len = sizeof prefix - 1 + r->secret.len;
    if (r->secret.len > SECRET_MAX)
        return false;
    memcpy(first, prefix, sizeof prefix - 1);
    memcpy(first + sizeof prefix - 1, r->secret.ptr, r->secret.len);
    bool ok = add_mac(key, len, first, (struct hk_str){r->time, 8}) &&
              add_mac(key, sizeof key, key, r->region) && add_mac(key, sizeof key, key, r->service) &&
              add_mac(key, sizeof key, key, hk_str_of("aws4_request")) && add_mac(key, sizeof key, key, text);
    if (ok)
        to_hex(key, out);
    hk_mem_wipe(first, sizeof first);
    hk_mem_wipe(key, sizeof key);
    return ok;
}

static void add_scope(struct hk_buf *out, const struct hk_sigv4 *r)
{
    (void)hk_buf_addf(out, "%.8s/%.*s/%.*s/aws4_request", r->time, (int)r->region.len, r->region.ptr,
                      (int)r->service.len, r->service.ptr);
}

static void add_authorization(struct hk_buf *out, const struct hk_sigv4 *r, const struct part *headers,
                              const char *signature)
{
    (void)hk_buf_addf(out, "AWS4-HMAC-SHA256 Credential=%.*s/", (int)r->key_id.len, r->key_id.ptr);
    add_scope(out, r);
    (void)hk_buf_adds(out, ", SignedHeaders=");
    add_names(out, headers, r->n_headers);
    (void)hk_buf_addf(out, ", Signature=%s", signature);
}

enum hk_code hk_sigv4_sign(const struct hk_sigv4 *r, struct hk_buf *out)
{
    struct part headers[HK_SIGV4_HEADERS_MAX];
    char hash[HK_SHA256_HEX_MAX], signature[HK_SHA256_HEX_MAX];
    struct hk_buf request, text;
    if (r->n_headers > HK_SIGV4_HEADERS_MAX)
        return HK_TOOBIG;
    for (size_t i = 0; i < r->n_headers; i++)
        headers[i] = (struct part){r->headers[i].name, r->headers[i].value};
    sort_parts(headers, r->n_headers);
    hk_buf_init(&request, CANONICAL_MAX);
    hk_buf_init(&text, CANONICAL_MAX);
    bool ok = add_request(&request, r, headers) && hk_sha256_hex(hk_buf_str(&request), hash);
    if (ok) {
        (void)hk_buf_addf(&text, "AWS4-HMAC-SHA256\n%s\n", r->time);
        add_scope(&text, r);
        (void)hk_buf_addf(&text, "\n%s", hash);
        ok = hk_buf_status(&text) == HK_OK && make_signature(r, hk_buf_str(&text), signature);
    }
    if (ok)
        add_authorization(out, r, headers, signature);
    enum hk_code rc = ok ? hk_buf_status(out)
                      : hk_buf_status(&request) == HK_NOMEM || hk_buf_status(&text) == HK_NOMEM ? HK_NOMEM
                                                                                                : HK_TOOBIG;
    hk_mem_wipe(request.data, request.len); /* it holds the session's token */
    hk_buf_fini(&request);
    hk_buf_fini(&text);
    return rc;
}
