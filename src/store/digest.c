/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 of payloads, and the links of the audit's chain. */
#include <inttypes.h>
#include <stdio.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "store/letters.h"

_Static_assert(HK_AUDIT_HASH_MAX == 2 * 32 + 1, "SHA-256 in hex");

static EVP_MD_CTX *begin(void)
{
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    if (md && EVP_DigestInit_ex(md, EVP_sha256(), NULL) == 1)
        return md;
    EVP_MD_CTX_free(md);
    return NULL;
}

static void add(EVP_MD_CTX *md, bool *ok, const void *bytes, size_t len)
{
    *ok = *ok && EVP_DigestUpdate(md, bytes, len) == 1;
}

static void end(EVP_MD_CTX *md, bool ok, char out[HK_AUDIT_HASH_MAX])
{
    unsigned char hash[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    out[0] = '\0';
    if (ok && EVP_DigestFinal_ex(md, hash, &n) == 1 && n == 32)
        for (unsigned i = 0; i < n; i++)
            (void)snprintf(out + (size_t)2 * i, 3, "%02x", hash[i]);
    EVP_MD_CTX_free(md);
}

void hk_digest_hex(struct hk_str bytes, char out[HK_AUDIT_HASH_MAX])
{
    EVP_MD_CTX *md = begin();
    bool ok = md != NULL;
    if (bytes.len)
        add(md, &ok, bytes.ptr, bytes.len);
    end(md, ok, out);
}

bool hk_digest_eq(const char a[HK_AUDIT_HASH_MAX], const char b[HK_AUDIT_HASH_MAX])
{
    return CRYPTO_memcmp(a, b, HK_AUDIT_HASH_MAX - 1) == 0;
}

static void add_text(EVP_MD_CTX *md, bool *ok, struct hk_str s)
{
    char len[24];
    int n = snprintf(len, sizeof len, "%zu:", s.len);
    add(md, ok, len, (size_t)n);
    if (s.len)
        add(md, ok, s.ptr, s.len);
    add(md, ok, ",", 1);
}

static void add_number(EVP_MD_CTX *md, bool *ok, int64_t value)
{
    char text[24];
    int n = snprintf(text, sizeof text, "%" PRId64, value);
    add_text(md, ok, (struct hk_str){text, (size_t)n});
}

/* An id that does not apply is NULL in the table, and '' here. */
static void add_id(EVP_MD_CTX *md, bool *ok, int64_t id)
{
    if (id)
        add_number(md, ok, id);
    else
        add_text(md, ok, (struct hk_str){"", 0});
}

void hk_audit_hash(const struct hk_audit_row *row, char out[HK_AUDIT_HASH_MAX])
{
    EVP_MD_CTX *md = begin();
    bool ok = md != NULL;
    add_text(md, &ok, row->prev);
    add_number(md, &ok, row->at_ms);
    add_text(md, &ok, row->actor);
    add_text(md, &ok, row->act);
    add_text(md, &ok, row->message_id);
    add_text(md, &ok, row->destination);
    add_text(md, &ok, row->reason);
    add_id(md, &ok, row->letter_id);
    add_id(md, &ok, row->redrive);
    add_text(md, &ok, row->before);
    add_text(md, &ok, row->after);
    add_text(md, &ok, row->detail);
    end(md, ok, out);
}

void hk_audit_list_hash(const struct hk_audit_letter *items, size_t n, char out[HK_AUDIT_HASH_MAX])
{
    EVP_MD_CTX *md = begin();
    bool ok = md != NULL;
    for (size_t i = 0; i < n; i++) {
        add_number(md, &ok, items[i].letter_id);
        add_text(md, &ok, items[i].message_id);
        add_text(md, &ok, items[i].destination);
        add_text(md, &ok, items[i].before);
        add_text(md, &ok, items[i].after);
        add_text(md, &ok, items[i].detail);
    }
    end(md, ok, out);
}
