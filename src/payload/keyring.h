/* SPDX-License-Identifier: Apache-2.0 */
/* The keys that seal payloads, newest first. A key is fetched when it is first needed. Its bytes lie in a page of their own that is
 * locked in memory, left out of core dumps and overwritten at the end. Thread-safe. */
#ifndef HK_PAYLOAD_KEYRING_H
#define HK_PAYLOAD_KEYRING_H

#include <stdbool.h>

#include <hikyaku/error.h>
#include <hikyaku/facts.h>

enum {
    HK_KEY_BYTES = 32,
    HK_KEY_ID_MAX = 33,   /* with its terminator */
    HK_KEY_CHECK_MAX = 9, /* 8 hexadecimal digits, and a terminator */
    HK_KEYS_MAX = 16,
    HK_SEAL_STORE_MAX = 65
};

struct hk_keyring;

/* Fetches the key that stands at `i` of the list. Messages never hold any of it. */
typedef enum hk_code hk_key_fetch_fn(void *arg, size_t i, unsigned char out[HK_KEY_BYTES],
                                     struct hk_err *err);

struct hk_keyring_options {
    const char *store;      /* the name that binds sealed payloads to their store */
    const char *const *ids; /* newest first */
    size_t n;
    hk_key_fetch_fn *fetch;
    void *arg;                       /* lives as long as the keyring */
    uint64_t (*clock_ms)(void *arg); /* monotonic; NULL: the system's */
};

/* The ids and the store's name are copied. HK_INVALID: one of them is not a key id (letters, digits, '-' and '_', at most 32), or there
 * are too many. */
enum hk_code hk_keyring_new(const struct hk_keyring_options *options, struct hk_keyring **out,
                            struct hk_err *err) HK_MUSTCHECK;
void hk_keyring_free(struct hk_keyring *keys); /* accepts NULL; wipes */

/* One key, while it is used: hk_key_wipe ends that. */
struct hk_key {
    unsigned char bytes[HK_KEY_BYTES];
    char id[HK_KEY_ID_MAX], check[HK_KEY_CHECK_MAX];
};

/* HK_UNAVAILABLE: there is no such key here, or it cannot be fetched, and `err` says why. What could not be fetched is tried again
 * after some seconds. */
enum hk_code hk_keyring_get(struct hk_keyring *keys, struct hk_str id, struct hk_key *out,
                            struct hk_err *err) HK_MUSTCHECK;
/* The one that seals. */
enum hk_code hk_keyring_newest(struct hk_keyring *keys, struct hk_key *out, struct hk_err *err) HK_MUSTCHECK;
void hk_key_wipe(struct hk_key *key);

/* Fetches them all now. The first error; the others are fetched all the same. */
enum hk_code hk_keyring_fetch(struct hk_keyring *keys, struct hk_err *err) HK_MUSTCHECK;
/* `keys` takes from `older` the keys that it could not fetch itself, where id and store are the same. */
void hk_keyring_inherit(struct hk_keyring *keys, struct hk_keyring *older);

const char *hk_keyring_store(const struct hk_keyring *keys);
size_t hk_keyring_count(const struct hk_keyring *keys);
const char *hk_keyring_id(const struct hk_keyring *keys, size_t i);

bool hk_key_id_is_good(struct hk_str id);

#endif
