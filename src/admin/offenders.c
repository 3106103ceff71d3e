/* SPDX-License-Identifier: Apache-2.0 */
/* A table of addresses, small enough to be looked through. */
#include <stdio.h>
#include <string.h>

#include "admin/offenders.h"
#include "base/cidr.h"
#include "base/mem.h"
#include "base/str.h"

struct entry {
    char key[HK_OFFENDERS_KEY_MAX];
    uint32_t failures; /* 0: none that counts */
    int64_t wait_until_ms, last_ms;
    int64_t tell_ms; /* not before */
    uint64_t untold;
    const char *code;
};

struct hk_offenders {
    struct entry entries[HK_OFFENDERS_MAX];
    size_t n;
    int64_t minute_ms; /* when the current minute of the audit began */
    unsigned told;     /* in it */
    uint64_t others;
    const char *others_code;
    int64_t others_tell_ms;
};

struct hk_offenders *hk_offenders_new(void)
{
    return hk_mem_zalloc(1, sizeof(struct hk_offenders));
}

void hk_offenders_free(struct hk_offenders *o)
{
    hk_mem_free(o);
}

size_t hk_offenders_count(const struct hk_offenders *o)
{
    return o->n;
}

/* Any text that is no address (a Unix socket's peer) stands for itself. */
static void key_of(const char *address, char out[HK_OFFENDERS_KEY_MAX])
{
    struct hk_ip ip;
    char text[HK_IP_TEXT_MAX];
    if (!hk_ip_parse(hk_str_of(address), &ip)) {
        (void)snprintf(out, HK_OFFENDERS_KEY_MAX, "%s", address && address[0] ? address : "unix");
        return;
    }
    ip = hk_ip_unmap(&ip);
    if (ip.v6)
        memset(ip.addr + 8, 0, 8);
    (void)hk_ip_format(&ip, text);
    (void)snprintf(out, HK_OFFENDERS_KEY_MAX, "%s%s", text, ip.v6 ? "/64" : "");
}

/* Its place; `n` = it is not there. */
static size_t place_of(const struct hk_offenders *o, const char *key)
{
    size_t i = 0;
    while (i < o->n && strcmp(o->entries[i].key, key) != 0)
        i++;
    return i;
}

static struct entry *find(struct hk_offenders *o, const char *key)
{
    size_t i = place_of(o, key);
    return i < o->n ? &o->entries[i] : NULL;
}

static void add_other(struct hk_offenders *o, uint64_t n, const char *code)
{
    o->others += n;
    if (n)
        o->others_code = code;
}

/* One that has to wait goes last: else an attacker with many addresses would free those that he has used up. */
static struct entry *make_room(struct hk_offenders *o, int64_t now_ms)
{
    struct entry *oldest = NULL;
    if (o->n < HK_OFFENDERS_MAX)
        return &o->entries[o->n++];
    for (size_t i = 0; i < o->n; i++) {
        struct entry *e = &o->entries[i];
        bool waits = e->wait_until_ms > now_ms, than = oldest && oldest->wait_until_ms > now_ms;
        if (!oldest || (waits == than ? e->last_ms < oldest->last_ms : !waits))
            oldest = e;
    }
    add_other(o, oldest->untold, oldest->code);
    return oldest;
}

uint64_t hk_offenders_wait_ms(const struct hk_offenders *o, const char *address, int64_t now_ms)
{
    char key[HK_OFFENDERS_KEY_MAX];
    key_of(address, key);
    size_t i = place_of(o, key);
    int64_t until_ms = i < o->n ? o->entries[i].wait_until_ms : 0;
    return until_ms > now_ms ? (uint64_t)(until_ms - now_ms) : 0;
}

static int64_t wait_after(uint32_t failures)
{
    int64_t ms = HK_OFFENDERS_WAIT_MS;
    if (failures <= HK_OFFENDERS_FREE)
        return 0;
    for (uint32_t i = HK_OFFENDERS_FREE + 1; i < failures && ms < HK_OFFENDERS_WAIT_MAX_MS; i++)
        ms *= 2;
    return ms < HK_OFFENDERS_WAIT_MAX_MS ? ms : HK_OFFENDERS_WAIT_MAX_MS;
}

void hk_offenders_failed(struct hk_offenders *o, const char *address, const char *code, bool waiting,
                         int64_t now_ms)
{
    char key[HK_OFFENDERS_KEY_MAX];
    key_of(address, key);
    struct entry *e = find(o, key);
    if (!e) {
        e = make_room(o, now_ms);
        *e = (struct entry){.tell_ms = now_ms};
        memcpy(e->key, key, sizeof key);
    }
    if (now_ms - e->last_ms > HK_OFFENDERS_FORGET_MS)
        e->failures = 0;
    e->untold++;
    e->code = code;
    e->last_ms = now_ms;
    if (waiting)
        return;
    if (e->failures < UINT32_MAX)
        e->failures++;
    e->wait_until_ms = now_ms + wait_after(e->failures);
}

void hk_offenders_clear(struct hk_offenders *o, const char *address)
{
    char key[HK_OFFENDERS_KEY_MAX];
    if (o->n == 0)
        return;
    key_of(address, key);
    struct entry *e = find(o, key);
    if (e) {
        e->failures = 0;
        e->wait_until_ms = 0;
    }
}

/* ---- what the audit is told ---- */

static bool may_tell(const struct hk_offenders *o, int64_t now_ms)
{
    return o->told < HK_OFFENDERS_TOLD_MAX || now_ms - o->minute_ms >= HK_OFFENDERS_TELL_MS;
}

bool hk_offenders_has_news(const struct hk_offenders *o, int64_t now_ms)
{
    if (o->others && o->others_tell_ms <= now_ms)
        return true;
    for (size_t i = 0; i < o->n; i++)
        if (o->entries[i].untold && o->entries[i].tell_ms <= now_ms)
            return true;
    return false;
}

static bool tell_others(struct hk_offenders *o, int64_t now_ms, struct hk_offence *out)
{
    if (!o->others || o->others_tell_ms > now_ms)
        return false;
    *out = (struct hk_offence){.address = "others", .code = o->others_code, .n = o->others};
    o->others = 0;
    o->others_tell_ms = now_ms + HK_OFFENDERS_TELL_MS;
    return true;
}

bool hk_offenders_tell(struct hk_offenders *o, int64_t now_ms, struct hk_offence *out)
{
    for (size_t i = 0; i < o->n; i++) {
        struct entry *e = &o->entries[i];
        if (!e->untold || e->tell_ms > now_ms)
            continue;
        uint64_t n = e->untold;
        e->untold = 0;
        e->tell_ms = now_ms + HK_OFFENDERS_TELL_MS;
        if (!may_tell(o, now_ms)) {
            add_other(o, n, e->code);
            continue;
        }
        if (now_ms - o->minute_ms >= HK_OFFENDERS_TELL_MS) {
            o->minute_ms = now_ms;
            o->told = 0;
        }
        o->told++;
        *out = (struct hk_offence){.code = e->code, .n = n};
        memcpy(out->address, e->key, sizeof e->key);
        return true;
    }
    return tell_others(o, now_ms, out);
}

void hk_offenders_untell(struct hk_offenders *o, const struct hk_offence *offence)
{
    add_other(o, offence->n, offence->code);
}
