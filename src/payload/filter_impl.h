/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the parser of filters and their matcher. */
#ifndef HK_PAYLOAD_FILTER_IMPL_H
#define HK_PAYLOAD_FILTER_IMPL_H

#include "core/message.h"
#include "payload/filter.h"

#define HK_ALL_STATUSES ((1u << HK_NLETTER_STATUSES) - 1)
#define HK_ALL_STATES   (((1u << HK_NSTATES) - 1) & ~(1u << HK_STATE_NONE))

struct hk_filter {
    struct hk_letter_query query;
    const struct hk_masks *masks; /* what it must not see; NULL: it sees all */
    struct hk_keyring *keys;      /* open sealed payloads; NULL: they stay closed */
    bool opens;                   /* its text says `opens:sealed` */
    struct hk_err lacks,
        *lack;     /* why a sealed payload stayed closed; `lack` is its address, for the matcher */
    bool messages; /* it is about messages: `statuses` of the query are bits of enum hk_state */
    const char *texts[HK_FILTER_TERMS_MAX];
    size_t n_texts;
    struct hk_path *paths[HK_FILTER_TERMS_MAX];
    const char *values[HK_FILTER_TERMS_MAX]; /* of the same number */
    size_t n_paths;
    char *lower, *quoted; /* of the sieve; storage, too */
    size_t used;
    char storage[]; /* all values, terminated */
};

/* filter_match.c: the terms of text and payload; `arg` is the filter. */
bool hk_filter_match(const void *arg, const struct hk_letter *letter);
/* What such a letter must hold, of the longest of the terms. Its texts are written to the filter's storage. */
void hk_filter_sieve(struct hk_filter *filter, struct hk_letter_sieve *out);

#endif
