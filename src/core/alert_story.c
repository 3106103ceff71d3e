/* SPDX-License-Identifier: Apache-2.0 */
/* One cause, one story. When a destination goes down, its breaker opens, its messages die, their number rises, and waiting messages
 * grow old: four rules hold, and each is right. People need one notice that says all of it.
 *
 * Of the alerts that fire about one destination one leads: the most severe, and of those the one that was told first. The others
 * follow it, if it is told to every channel that would hear them:
 *
 * - A follower sends nothing. It is a line of whatever its leader sends.
 * - A follower that is a fact of its own (letters, a breaker, a pause), and letters whose number grew to another order, make the
 *   leader send an update, a minute after its last notice at the earliest. Symptoms (counts, rises, ages) wait for one.
 * - When the leader is over, its last notice names all that belonged to the story. What still fires then leads itself.
 *
 * An alert about letters lasts until people have settled them, perhaps for weeks. So it leads only what began about when it did.
 * Letters of different reasons have different causes: none of a rule's alerts follows another. A muted alert neither leads nor
 * follows. */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "core/alert.h"

/* Letters lead alerts that begin no later than this after them. */
#define INCIDENT_MS UINT64_C(1800000)

/* Rules about everything; their alerts name the destination that they are mostly about in `detail`. */
static bool is_symptom(enum hk_alert_kind kind)
{
    return kind == HK_ALERT_DEAD_LETTERS_ABOVE || kind == HK_ALERT_DEAD_LETTERS_RISING ||
           kind == HK_ALERT_OLDEST_AGE || kind == HK_ALERT_LAG_GROWING;
}

struct hk_str hk_alert_about(const struct hk_alert *a)
{
    return is_symptom(a->kind) && a->detail.len ? a->detail : a->destination;
}

struct hk_str hk_alert_detail(const struct hk_alert *a)
{
    return is_symptom(a->kind) ? (struct hk_str){"", 0} : a->detail;
}

static bool is_heard(const struct hk_alert *a)
{
    return a->status == HK_ALERT_FIRING && (a->told || a->active) && !a->silent;
}

/* ---- who leads ---- */

/* Below zero: `a` comes before `b`. A total order, so that relays agree. */
static int compare_rank(const struct hk_alert *a, const struct hk_alert *b)
{
    if (a->severity != b->severity)
        return a->severity > b->severity ? -1 : 1;
    if (a->told != b->told)
        return a->told ? -1 : 1;
    if (a->fired_ms != b->fired_ms)
        return a->fired_ms < b->fired_ms ? -1 : 1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    return strcmp(a->fingerprint, b->fingerprint);
}

/* In its place among those before it: few fire at a time. */
static void insert_by_rank(struct hk_alert **heard, size_t n, struct hk_alert *a)
{
    for (; n > 0 && compare_rank(a, heard[n - 1]) < 0; n--)
        heard[n] = heard[n - 1];
    heard[n] = a;
}

/* `a` comes before `b`. */
static bool may_lead(const struct hk_alert *a, const struct hk_alert *b, const struct hk_alert_rule *rules)
{
    struct hk_str about = hk_alert_about(a);
    if (a->leader_at || a->rule_at == b->rule_at || !about.len || !hk_str_eq(about, hk_alert_about(b)))
        return false;
    if (rules[b->rule_at - 1].channels & ~rules[a->rule_at - 1].channels)
        return false;
    return !hk_alert_kind_has_letters(a->kind) || b->since_ms <= a->since_ms ||
           (uint64_t)b->since_ms - (uint64_t)a->since_ms <= INCIDENT_MS;
}

enum hk_code hk_alert_find_leaders(struct hk_alert_board *board, const struct hk_alert_rule *rules,
                                   const struct hk_alert_settings *settings, int64_t now_ms)
{
    struct hk_alert **heard = hk_mem_zalloc(board->n + 1, sizeof(struct hk_alert *));
    size_t n = 0;
    if (!heard)
        return HK_NOMEM;
    for (size_t i = 0; i < board->n; i++) {
        struct hk_alert *a = &board->alerts[i];
        a->leader_at = 0;
        a->silent = hk_alert_is_silent(settings, a->rule, a->severity, now_ms);
        if (a->rule_at && is_heard(a))
            insert_by_rank(heard, n++, a);
    }
    for (size_t b = 1; b < n; b++)
        for (size_t a = 0; a < b && !heard[b]->leader_at; a++)
            if (may_lead(heard[a], heard[b], rules))
                heard[b]->leader_at = (size_t)(heard[a] - board->alerts) + 1;
    hk_mem_free((void *)heard);
    return HK_OK;
}

/* ---- what it tells ---- */

/* The number that people act upon, of dead letters or messages. 0: this kind of alert has none. */
static uint64_t figure(const struct hk_alert *a)
{
    if (hk_alert_kind_has_letters(a->kind))
        return a->count;
    bool counts = a->kind == HK_ALERT_DEAD_LETTERS_ABOVE || a->kind == HK_ALERT_DEAD_LETTERS_RISING;
    return counts && a->value >= 1 && a->value < 1e18 ? (uint64_t)a->value : 0;
}

/* Has the number one digit more than in the last notice, and at least doubled? 3,217 then and 10,000 now has grown; 95 and 105 are about
 * the same. */
static bool has_grown(const struct hk_alert *a)
{
    uint64_t now = figure(a), next = 10;
    if (!a->told_figure || now / 2 < a->told_figure)
        return false;
    while (next <= a->told_figure && next <= UINT64_MAX / 10)
        next *= 10;
    return now >= next;
}

/* Of a follower: did a notice speak of it since it began to fire? */
static bool is_news(const struct hk_alert *a)
{
    if (is_symptom(a->kind))
        return false;
    return (!a->told && a->told_ms < a->fired_ms) || has_grown(a);
}

bool hk_alert_has_news(const struct hk_alert_board *board, size_t place)
{
    bool news = has_grown(&board->alerts[place]);
    for (size_t i = 0; i < board->n && !news; i++)
        news = board->alerts[i].leader_at == place + 1 && is_news(&board->alerts[i]);
    return news;
}

static void note_told(struct hk_alert *a, int64_t now_ms)
{
    a->told_ms = now_ms;
    a->told_figure = figure(a);
    a->changed = true;
}

void hk_alert_carry(struct hk_alert_board *board, size_t place, int64_t now_ms)
{
    note_told(&board->alerts[place], now_ms);
    for (size_t i = 0; i < board->n; i++)
        if (board->alerts[i].leader_at == place + 1)
            note_told(&board->alerts[i], now_ms);
}

bool hk_alert_is_line(const struct hk_alert_board *board, const struct hk_alert_tell *tell, size_t other)
{
    const struct hk_alert *a = &board->alerts[tell->alert], *b = &board->alerts[other];
    if (b->leader_at == tell->alert + 1)
        return true;
    struct hk_str about = hk_alert_about(a);
    if (tell->kind != HK_NOTICE_RESOLVED || other == tell->alert || b->silent || !about.len ||
        !hk_str_eq(about, hk_alert_about(b)) || a->rule_at == b->rule_at)
        return false;
    return b->status == HK_ALERT_FIRING || (b->status == HK_ALERT_RESOLVED && b->resolved_ms >= a->since_ms);
}
