/* SPDX-License-Identifier: Apache-2.0 */
/* A sorted array of manifests, each a sorted array of members. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store/manifests.h"

static int by_source_and_id(const void *a, const void *b)
{
    const struct hk_member *x = a, *y = b;
    if (x->source != y->source)
        return x->source < y->source ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static bool make_room(struct hk_manifests *claims)
{
    if (claims->n < claims->room)
        return true;
    size_t room = claims->room ? claims->room * 2 : 16;
    struct hk_manifest *items = hk_mem_resize(claims->items, room * sizeof *items);
    if (!items)
        return false;
    claims->items = items;
    claims->room = room;
    return true;
}

bool hk_manifests_reserve(struct hk_manifests *claims, size_t n)
{
    if (!make_room(claims))
        return false;
    if (claims->spare && claims->spare_room >= n)
        return true;
    struct hk_member *spare = hk_mem_zalloc(n, sizeof *spare);
    if (!spare)
        return false;
    hk_mem_free(claims->spare);
    claims->spare = spare;
    claims->spare_room = n;
    return true;
}

static void measure(struct hk_manifest *claim)
{
    claim->min_id = INT64_MAX;
    claim->max_id = INT64_MIN;
    for (size_t i = 0; i < claim->n_members && claim->members[i].source == HK_FROM_OUTBOX; i++) {
        if (i == 0)
            claim->min_id = claim->members[i].id;
        claim->max_id = claim->members[i].id;
    }
}

bool hk_manifests_add(struct hk_manifests *claims, int64_t claim, const struct hk_member *members, size_t n)
{
    if (!hk_manifests_reserve(claims, n))
        return false;
    struct hk_member *copy = claims->spare;
    claims->spare = NULL;
    claims->spare_room = 0;
    memcpy(copy, members, n * sizeof *copy);
    qsort(copy, n, sizeof *copy, by_source_and_id);
    size_t at = claims->n; /* all but always the newest */
    while (at > 0 && claims->items[at - 1].claim > claim)
        at--;
    memmove(claims->items + at + 1, claims->items + at, (claims->n - at) * sizeof *claims->items);
    claims->items[at] =
        (struct hk_manifest){.claim = claim, .members = copy, .n_members = n, .n_open = n, .added = true};
    measure(&claims->items[at]);
    claims->n++;
    return true;
}

static int by_claim(const void *key, const void *item)
{
    int64_t x = *(const int64_t *)key, y = ((const struct hk_manifest *)item)->claim;
    return (x > y) - (x < y);
}

struct hk_manifest *hk_manifests_find(struct hk_manifests *claims, int64_t claim)
{
    return claims->n ? bsearch(&claim, claims->items, claims->n, sizeof *claims->items, by_claim) : NULL;
}

struct hk_member *hk_manifest_open_member(struct hk_manifest *claim, enum hk_source source, int64_t id)
{
    struct hk_member key = {.id = id, .source = source};
    struct hk_member *member =
        claim->n_members ? bsearch(&key, claim->members, claim->n_members, sizeof key, by_source_and_id)
                         : NULL;
    return member && member->state == HK_MEMBER_OPEN ? member : NULL;
}

bool hk_manifests_hold(struct hk_manifests *claims, int64_t id)
{
    for (size_t i = 0; i < claims->n; i++) {
        struct hk_manifest *claim = &claims->items[i];
        if (id >= claim->min_id && id <= claim->max_id && hk_manifest_open_member(claim, HK_FROM_OUTBOX, id))
            return true;
    }
    return false;
}

/* Settles what was tentative, or opens it again; forgets the claims that `gone` finds over. */
static void end(struct hk_manifests *claims, enum hk_member_state becomes)
{
    size_t kept = 0;
    for (size_t i = 0; i < claims->n; i++) {
        struct hk_manifest claim = claims->items[i];
        bool gone = becomes == HK_MEMBER_OPEN ? claim.added : claim.n_open == 0;
        for (size_t m = 0; !gone && m < claim.n_members; m++)
            if (claim.members[m].state == HK_MEMBER_SETTLING) {
                claim.members[m].state = becomes;
                claim.n_open += becomes == HK_MEMBER_OPEN;
            }
        claim.added = claim.checked = claim.stands = claim.rewrite = false;
        if (gone)
            hk_mem_free(claim.members);
        else
            claims->items[kept++] = claim;
    }
    claims->n = kept;
}

void hk_manifests_commit(struct hk_manifests *claims)
{
    end(claims, HK_MEMBER_SETTLED);
}

void hk_manifests_rollback(struct hk_manifests *claims)
{
    end(claims, HK_MEMBER_OPEN);
}

void hk_manifests_clear(struct hk_manifests *claims)
{
    for (size_t i = 0; i < claims->n; i++)
        hk_mem_free(claims->items[i].members);
    hk_mem_free(claims->items);
    hk_mem_free(claims->spare);
    *claims = (struct hk_manifests){0};
}
