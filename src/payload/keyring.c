/* SPDX-License-Identifier: Apache-2.0 */
/* Keys in a page of their own. Whoever uses one gets a copy for the time of one message, on the stack. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "base/mem.h"
#include "base/str.h"
#include "payload/keyring.h"

enum {
    AGAIN_MS = 5000, /* after a key could not be fetched */
    PAGE_BYTES = HK_KEYS_MAX * HK_KEY_BYTES,
    WHY_MAX = 200
};

struct slot {
    char id[HK_KEY_ID_MAX], check[HK_KEY_CHECK_MAX];
    bool here;
    uint64_t again_ms; /* not fetched again before */
    char why[WHY_MAX];
};

struct hk_keyring {
    pthread_mutex_t lock;
    char store[HK_SEAL_STORE_MAX];
    struct slot slots[HK_KEYS_MAX];
    size_t n;
    unsigned char *page; /* the bytes, in the order of the slots */
    hk_key_fetch_fn *fetch;
    void *arg;
    uint64_t (*clock_ms)(void *arg);
};

/* ---- the page ---- */

/* That it cannot be locked (a container without the right to) is no reason not to start. */
static unsigned char *page_new(void)
{
    unsigned char *page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return NULL;
    (void)mlock(page, PAGE_BYTES);
#ifdef MADV_DONTDUMP
    (void)madvise(page, PAGE_BYTES, MADV_DONTDUMP);
#endif
    return page;
}

static void page_free(unsigned char *page)
{
    if (!page)
        return;
    OPENSSL_cleanse(page, PAGE_BYTES);
    (void)munlock(page, PAGE_BYTES);
    (void)munmap(page, PAGE_BYTES);
}

/* ---- one key ---- */

bool hk_key_id_is_good(struct hk_str id)
{
    for (size_t i = 0; i < id.len; i++)
        if (!hk_ascii_isalpha(id.ptr[i]) && !hk_ascii_isdigit(id.ptr[i]) && id.ptr[i] != '-' &&
            id.ptr[i] != '_')
            return false;
    return id.len > 0 && id.len < HK_KEY_ID_MAX;
}

void hk_key_wipe(struct hk_key *key)
{
    OPENSSL_cleanse(key->bytes, sizeof key->bytes);
}

/* Tells two keys of one id apart, and one key in two stores, before anything is opened: what does not open because the operator mixed
 * up two files must wait, and not die. */
static bool check_of(const char *store, const unsigned char *bytes, char out[HK_KEY_CHECK_MAX])
{
    unsigned char text[HK_SEAL_STORE_MAX + HK_KEY_BYTES + 32], hash[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    int len = snprintf((char *)text, sizeof text, "hikyaku-check/1\n%s\n", store);
    if (len < 0 || (size_t)len + HK_KEY_BYTES > sizeof text)
        return false;
    memcpy(text + len, bytes, HK_KEY_BYTES);
    bool done = EVP_Digest(text, (size_t)len + HK_KEY_BYTES, hash, &n, EVP_sha256(), NULL) == 1;
    OPENSSL_cleanse(text, sizeof text);
    if (done)
        (void)snprintf(out, HK_KEY_CHECK_MAX, "%02x%02x%02x%02x", hash[0], hash[1], hash[2], hash[3]);
    return done;
}

static uint64_t system_ms(void *arg)
{
    struct timespec now = {.tv_sec = 0};
    (void)arg;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* With the lock held. */
static bool fetch_slot(struct hk_keyring *keys, size_t i)
{
    struct slot *slot = &keys->slots[i];
    unsigned char *bytes = keys->page + i * HK_KEY_BYTES;
    struct hk_err err = {.message = ""};
    uint64_t now = keys->clock_ms(keys->arg);
    if (slot->here)
        return true;
    if (slot->again_ms > now)
        return false;
    enum hk_code rc = keys->fetch(keys->arg, i, bytes, &err);
    slot->here = rc == HK_OK && check_of(keys->store, bytes, slot->check);
    if (slot->here)
        return true;
    OPENSSL_cleanse(bytes, HK_KEY_BYTES);
    slot->again_ms = now + AGAIN_MS;
    (void)snprintf(slot->why, sizeof slot->why, "%.*s", WHY_MAX - 1,
                   rc == HK_OK ? "out of memory" : err.message);
    return false;
}

static enum hk_code take(struct hk_keyring *keys, size_t i, struct hk_key *out, struct hk_err *err)
{
    const struct slot *slot = &keys->slots[i];
    if (!fetch_slot(keys, i))
        return hk_err_set(err, HK_UNAVAILABLE, "the key %s cannot be read: %s", slot->id, slot->why);
    memcpy(out->bytes, keys->page + i * HK_KEY_BYTES, HK_KEY_BYTES);
    memcpy(out->id, slot->id, sizeof out->id);
    memcpy(out->check, slot->check, sizeof out->check);
    return HK_OK;
}

/* ---- the ring ---- */

static enum hk_code check_options(const struct hk_keyring_options *o, struct hk_err *err)
{
    if (!o->n || o->n > HK_KEYS_MAX)
        return hk_err_set(err, HK_INVALID, "a keyring has 1 to %d keys", (int)HK_KEYS_MAX);
    if (!*o->store || strlen(o->store) >= HK_SEAL_STORE_MAX || strchr(o->store, '\n'))
        return hk_err_set(err, HK_INVALID, "the store's name has 1 to %d characters, and no line ends",
                          HK_SEAL_STORE_MAX - 1);
    for (size_t i = 0; i < o->n; i++) {
        if (!hk_key_id_is_good(hk_str_of(o->ids[i])))
            return hk_err_set(err, HK_INVALID,
                              "a key's id has letters, digits, '-' and '_', at most %d of them",
                              HK_KEY_ID_MAX - 1);
        for (size_t k = 0; k < i; k++)
            if (strcmp(o->ids[i], o->ids[k]) == 0)
                return hk_err_set(err, HK_INVALID, "two keys have the id %s", o->ids[i]);
    }
    return HK_OK;
}

enum hk_code hk_keyring_new(const struct hk_keyring_options *options, struct hk_keyring **out,
                            struct hk_err *err)
{
    enum hk_code rc = check_options(options, err);
    if (rc != HK_OK)
        return rc;
    struct hk_keyring *keys = hk_mem_zalloc(1, sizeof *keys);
    if (keys)
        keys->page = page_new();
    if (!keys || !keys->page || pthread_mutex_init(&keys->lock, NULL) != 0) {
        if (keys)
            page_free(keys->page);
        hk_mem_free(keys);
        return hk_err_set(err, HK_NOMEM, "out of memory for the keys");
    }
    (void)hk_str_copy(keys->store, sizeof keys->store, hk_str_of(options->store));
    keys->n = options->n;
    keys->fetch = options->fetch;
    keys->arg = options->arg;
    keys->clock_ms = options->clock_ms ? options->clock_ms : system_ms;
    for (size_t i = 0; i < keys->n; i++)
        (void)hk_str_copy(keys->slots[i].id, HK_KEY_ID_MAX, hk_str_of(options->ids[i]));
    *out = keys;
    return HK_OK;
}

void hk_keyring_free(struct hk_keyring *keys)
{
    if (!keys)
        return;
    page_free(keys->page);
    (void)pthread_mutex_destroy(&keys->lock);
    hk_mem_free(keys);
}

enum hk_code hk_keyring_get(struct hk_keyring *keys, struct hk_str id, struct hk_key *out, struct hk_err *err)
{
    enum hk_code rc = HK_NOTFOUND;
    (void)pthread_mutex_lock(&keys->lock);
    for (size_t i = 0; i < keys->n && rc == HK_NOTFOUND; i++)
        if (hk_str_eq(hk_str_of(keys->slots[i].id), id))
            rc = take(keys, i, out, err);
    (void)pthread_mutex_unlock(&keys->lock);
    if (rc == HK_NOTFOUND)
        rc = hk_err_set(err, HK_UNAVAILABLE, "no key %.*s is configured (seal.keys)",
                        (int)(id.len < HK_KEY_ID_MAX ? id.len : HK_KEY_ID_MAX), id.ptr);
    return rc;
}

enum hk_code hk_keyring_newest(struct hk_keyring *keys, struct hk_key *out, struct hk_err *err)
{
    (void)pthread_mutex_lock(&keys->lock);
    enum hk_code rc = take(keys, 0, out, err);
    (void)pthread_mutex_unlock(&keys->lock);
    return rc;
}

enum hk_code hk_keyring_fetch(struct hk_keyring *keys, struct hk_err *err)
{
    struct hk_err other;
    enum hk_code rc = HK_OK;
    for (size_t i = 0; i < keys->n; i++) {
        struct hk_key key;
        struct hk_str id = hk_str_of(keys->slots[i].id);
        enum hk_code got = hk_keyring_get(keys, id, &key, rc == HK_OK ? err : &other);
        hk_key_wipe(&key);
        if (rc == HK_OK)
            rc = got;
    }
    return rc;
}

void hk_keyring_inherit(struct hk_keyring *keys, struct hk_keyring *older)
{
    bool same = strcmp(keys->store, older->store) == 0;
    for (size_t i = 0; same && i < keys->n; i++) {
        struct slot *slot = &keys->slots[i];
        struct hk_key key;
        if (!slot->here && hk_keyring_get(older, hk_str_of(slot->id), &key, NULL) == HK_OK) {
            (void)pthread_mutex_lock(&keys->lock);
            memcpy(keys->page + i * HK_KEY_BYTES, key.bytes, HK_KEY_BYTES);
            memcpy(slot->check, key.check, sizeof slot->check);
            slot->here = true;
            (void)pthread_mutex_unlock(&keys->lock);
        }
        hk_key_wipe(&key);
    }
}

const char *hk_keyring_store(const struct hk_keyring *keys)
{
    return keys->store;
}

size_t hk_keyring_count(const struct hk_keyring *keys)
{
    return keys->n;
}

const char *hk_keyring_id(const struct hk_keyring *keys, size_t i)
{
    return keys->slots[i].id;
}
