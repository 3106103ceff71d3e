/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses whose requests failed: how long each has to wait, and which failures the audit does not have yet. Pure and bounded; the
 * caller passes the time, and lets one thread in at a time.
 *
 * - The first HK_OFFENDERS_FREE failures of an address cost nothing. Each further one makes it wait twice as long as the one before, up to
 *   HK_OFFENDERS_WAIT_MAX_MS. Requests during the wait do not extend it: an address that stops trying is free soon.
 * - An IPv6 address stands for its /64, which is what one customer has. Other addresses never wait for it.
 * - The audit gets a row for an address at once, then one a minute with the number of failures since; for at most
 *   HK_OFFENDERS_TOLD_MAX addresses a minute. One row, "others", covers the rest: nobody can fill the audit by changing addresses. */
#ifndef HK_ADMIN_OFFENDERS_H
#define HK_ADMIN_OFFENDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HK_OFFENDERS_MAX         1024
#define HK_OFFENDERS_FREE        4
#define HK_OFFENDERS_WAIT_MS     1000
#define HK_OFFENDERS_WAIT_MAX_MS (64 * 1000)
#define HK_OFFENDERS_FORGET_MS   (15 * 60 * 1000) /* since the last failure */
#define HK_OFFENDERS_TELL_MS     (60 * 1000)
#define HK_OFFENDERS_TOLD_MAX    30
#define HK_OFFENDERS_KEY_MAX     56

struct hk_offenders;

/* What is to stand in the audit. */
struct hk_offence {
    char address[HK_OFFENDERS_KEY_MAX];
    const char *code; /* of the last one; static */
    uint64_t n;
};

struct hk_offenders *hk_offenders_new(void); /* NULL: no memory */
void hk_offenders_free(struct hk_offenders *o);

/* How long it still has to wait; 0 = not at all. */
uint64_t hk_offenders_wait_ms(const struct hk_offenders *o, const char *address, int64_t now_ms);
/* It failed, by the static word `code`; `waiting`: it asked though it had to wait. */
void hk_offenders_failed(struct hk_offenders *o, const char *address, const char *code, bool waiting,
                         int64_t now_ms);
/* It is who it says: what it did wrong before is forgotten, and still told. */
void hk_offenders_clear(struct hk_offenders *o, const char *address);
/* Is there something to tell now? Then it counts as told. */
bool hk_offenders_tell(struct hk_offenders *o, int64_t now_ms, struct hk_offence *out);
/* It could not be told after all: it is among the others. */
void hk_offenders_untell(struct hk_offenders *o, const struct hk_offence *offence);
bool hk_offenders_has_news(const struct hk_offenders *o, int64_t now_ms);
size_t hk_offenders_count(const struct hk_offenders *o);

#endif
