/* SPDX-License-Identifier: Apache-2.0 */
/* From rules and facts to alerts, and from alerts to notices. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "core/alert.h"

#define ROOM_MAX ((size_t)1 << 20)
/* A rule that one relay does not know may be another one's, while a configuration is rolled out or for good: each evaluates in
 * its turn, and what one ends the other would begin and tell anew, turn by turn. */
#define RETIRE_MS UINT64_C(600000)
/* After a notice, news of its alert wait for this long and go out together. */
#define NEWS_MS UINT64_C(60000)

/* ---- the board ---- */

void hk_alert_board_init(struct hk_alert_board *board)
{
    *board = (struct hk_alert_board){.n = 0};
}

void hk_alert_board_fini(struct hk_alert_board *board)
{
    hk_mem_free(board->alerts);
    hk_mem_free(board->tells);
    hk_mem_free(board->slots);
    hk_alert_board_init(board);
}

/* Room for one more of `*items`; false: none. */
static bool grow(void **items, size_t n, size_t *room, size_t bytes)
{
    if (n < *room)
        return true;
    size_t more = *room ? *room * 2 : 16;
    void *bigger = more <= ROOM_MAX ? hk_mem_resize(*items, more * bytes) : NULL;
    if (!bigger)
        return false;
    *items = bigger;
    *room = more;
    return true;
}

enum hk_code hk_alert_board_add(struct hk_alert_board *board, const struct hk_alert *alert)
{
    void *items = board->alerts;
    if (!grow(&items, board->n, &board->room, sizeof *alert))
        return HK_NOMEM;
    board->alerts = items;
    board->alerts[board->n++] = *alert;
    return HK_OK;
}

static bool add_tell(struct hk_alert_board *board, struct hk_alert_tell tell)
{
    void *items = board->tells;
    if (!grow(&items, board->n_tells, &board->room_tells, sizeof tell))
        return false;
    board->tells = items;
    board->tells[board->n_tells++] = tell;
    return true;
}

/* FNV-1a. Nobody gains by two alerts that look alike. */
static uint64_t mix(uint64_t hash, struct hk_str s)
{
    for (size_t i = 0; i <= s.len; i++)
        hash = (hash ^ (i < s.len ? (unsigned char)s.ptr[i] : 0xffu)) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t hash_of(struct hk_str rule, struct hk_str destination, struct hk_str reason)
{
    return mix(mix(mix(UINT64_C(0xcbf29ce484222325), rule), destination), reason);
}

void hk_alert_fingerprint(struct hk_str rule, struct hk_str destination, struct hk_str reason,
                          char out[HK_ALERT_FINGERPRINT_MAX])
{
    uint64_t hash = hash_of(rule, destination, reason);
    (void)snprintf(out, HK_ALERT_FINGERPRINT_MAX, "%016llx", (unsigned long long)hash);
}

/* Where alerts are by what they are about. In a storm thousands of causes are looked up in thousands of alerts. */
static void index_one(struct hk_alert_board *board, size_t place)
{
    const struct hk_alert *a = &board->alerts[place];
    size_t mask = board->n_slots - 1;
    size_t slot = (size_t)hash_of(a->rule, a->destination, a->reason) & mask;
    while (board->slots[slot])
        slot = (slot + 1) & mask;
    board->slots[slot] = (uint32_t)place + 1;
}

static enum hk_code index_all(struct hk_alert_board *board)
{
    size_t n = 64;
    while (n < board->n * 2 + 2)
        n *= 2;
    uint32_t *slots = hk_mem_zalloc(n, sizeof *slots);
    if (!slots)
        return HK_NOMEM;
    hk_mem_free(board->slots);
    board->slots = slots;
    board->n_slots = n;
    for (size_t i = 0; i < board->n; i++)
        index_one(board, i);
    return HK_OK;
}

/* One that was just added. */
static enum hk_code index_last(struct hk_alert_board *board)
{
    if (board->n * 2 > board->n_slots)
        return index_all(board);
    index_one(board, board->n - 1);
    return HK_OK;
}

/* ---- names ---- */

static const char *const status_words[HK_NALERT_STATUSES] = {[HK_ALERT_WATCHING] = "watching",
                                                             [HK_ALERT_PENDING] = "pending",
                                                             [HK_ALERT_FIRING] = "firing",
                                                             [HK_ALERT_RESOLVED] = "resolved"};

static const char *const kind_words[HK_NALERT_KINDS] = {
    [HK_ALERT_DEAD_LETTER] = "dead_letter",
    [HK_ALERT_DEAD_LETTERS_ABOVE] = "dead_letters_above",
    [HK_ALERT_DEAD_LETTERS_RISING] = "dead_letters_rising",
    [HK_ALERT_OLDEST_AGE] = "oldest_age",
    [HK_ALERT_BREAKER_OPEN] = "breaker_open",
    [HK_ALERT_PAUSED] = "paused",
    [HK_ALERT_STORE_UNREACHABLE] = "store_unreachable",
    [HK_ALERT_NO_PROGRESS] = "no_progress",
    [HK_ALERT_LAG_GROWING] = "lag_growing",
    [HK_ALERT_REQUEUE_FAILED] = "requeue_failed",
    [HK_ALERT_KEY_MISSING] = "key_missing",
};

static const char *const severity_words[] = {
    [HK_ALERT_INFO] = "info", [HK_ALERT_WARNING] = "warning", [HK_ALERT_CRITICAL] = "critical"};

static const char *const notice_words[] = {[HK_NOTICE_FIRING] = "firing",
                                           [HK_NOTICE_UPDATE] = "update",
                                           [HK_NOTICE_RESOLVED] = "resolved",
                                           [HK_NOTICE_TEST] = "test"};

static const char *const field_words[HK_NALERT_FIELD_STATES] = {
    [HK_ALERT_FIELD_SHOWN] = "shown",
    [HK_ALERT_FIELD_MASKED] = "masked",
    [HK_ALERT_FIELD_ABSENT] = "absent",
    [HK_ALERT_FIELD_UNREADABLE] = "unreadable",
};

#define N_WORDS(words) (sizeof(words) / sizeof(words)[0])

/* The place of `word`; `n` when it is not there. */
static size_t place_of(const char *const *words, size_t n, struct hk_str word)
{
    size_t i = 0;
    while (i < n && !hk_str_eq(word, hk_str_of(words[i])))
        i++;
    return i;
}

const char *hk_alert_status_word(enum hk_alert_status status)
{
    return status_words[status];
}

bool hk_alert_status_of(struct hk_str word, enum hk_alert_status *out)
{
    size_t i = place_of(status_words, N_WORDS(status_words), word);
    if (i < N_WORDS(status_words))
        *out = (enum hk_alert_status)i;
    return i < N_WORDS(status_words);
}

const char *hk_alert_kind_word(enum hk_alert_kind kind)
{
    return kind_words[kind];
}

bool hk_alert_kind_of(struct hk_str word, enum hk_alert_kind *out)
{
    size_t i = place_of(kind_words, N_WORDS(kind_words), word);
    if (i < N_WORDS(kind_words))
        *out = (enum hk_alert_kind)i;
    return i < N_WORDS(kind_words);
}

const char *hk_alert_field_word(enum hk_alert_field_state state)
{
    return field_words[state];
}

bool hk_alert_field_of(struct hk_str word, enum hk_alert_field_state *out)
{
    size_t i = place_of(field_words, N_WORDS(field_words), word);
    if (i < N_WORDS(field_words))
        *out = (enum hk_alert_field_state)i;
    return i < N_WORDS(field_words);
}

const char *hk_severity_word(enum hk_severity_level level)
{
    return severity_words[level];
}

bool hk_severity_of(struct hk_str word, enum hk_severity_level *out)
{
    size_t i = place_of(severity_words, N_WORDS(severity_words), word);
    if (i < N_WORDS(severity_words))
        *out = (enum hk_severity_level)i;
    return i < N_WORDS(severity_words);
}

const char *hk_notice_word(enum hk_notice_kind kind)
{
    return notice_words[kind];
}

bool hk_notice_of(struct hk_str word, enum hk_notice_kind *out)
{
    size_t i = place_of(notice_words, N_WORDS(notice_words), word);
    if (i < N_WORDS(notice_words))
        *out = (enum hk_notice_kind)i;
    return i < N_WORDS(notice_words);
}

bool hk_alert_kind_has_letters(enum hk_alert_kind kind)
{
    return kind == HK_ALERT_DEAD_LETTER || kind == HK_ALERT_REQUEUE_FAILED;
}

bool hk_alert_kind_is_own(enum hk_alert_kind kind)
{
    return kind == HK_ALERT_STORE_UNREACHABLE || kind == HK_ALERT_KEY_MISSING;
}

bool hk_alert_kind_has_figures(enum hk_alert_kind kind)
{
    return kind == HK_ALERT_DEAD_LETTERS_ABOVE || kind == HK_ALERT_OLDEST_AGE ||
           kind == HK_ALERT_NO_PROGRESS || kind == HK_ALERT_LAG_GROWING;
}

bool hk_alert_is_of_others(enum hk_alert_kind kind, struct hk_str destination, struct hk_str reason)
{
    bool each = hk_alert_kind_has_letters(kind) || kind == HK_ALERT_BREAKER_OPEN || kind == HK_ALERT_PAUSED;
    return each && !destination.len && !reason.len;
}

/* Those look back, and so are kept while they do not hold, too. */
static bool looks_back(enum hk_alert_kind kind)
{
    return kind == HK_ALERT_DEAD_LETTERS_RISING || kind == HK_ALERT_NO_PROGRESS ||
           kind == HK_ALERT_LAG_GROWING;
}

/* ---- silence ---- */

static bool is_quiet(const struct hk_quiet_hours *quiet, enum hk_severity_level severity, int64_t now_ms)
{
    if (!quiet->on || quiet->from_min == quiet->to_min || (unsigned)severity >= quiet->let_through)
        return false;
    int64_t minute = (now_ms / 60000 + quiet->zone_min) % 1440;
    if (minute < 0)
        minute += 1440;
    bool after = minute >= quiet->from_min, before = minute < quiet->to_min;
    return quiet->from_min < quiet->to_min ? after && before : after || before;
}

bool hk_alert_is_silent(const struct hk_alert_settings *settings, struct hk_str rule,
                        enum hk_severity_level severity, int64_t now_ms)
{
    for (size_t i = 0; i < settings->n_mutes; i++)
        if (settings->mutes[i].until_ms > now_ms && hk_str_eq(settings->mutes[i].rule, rule))
            return true;
    return is_quiet(&settings->quiet, severity, now_ms);
}

/* ---- one alert's next state ---- */

/* `since_ms` never lies ahead: not_ahead sees to it. */
static bool has_passed(int64_t since_ms, uint64_t ms, int64_t now_ms)
{
    return (uint64_t)now_ms - (uint64_t)since_ms >= ms;
}

static void become(struct hk_alert *a, enum hk_alert_status status)
{
    a->status = status;
    a->changed = true;
}

static void begin(struct hk_alert *a, int64_t now_ms)
{
    become(a, HK_ALERT_PENDING);
    a->episode++;
    a->since_ms = now_ms;
    a->fired_ms = a->resolved_ms = 0;
    a->told = a->owed = false;
    a->count = a->fresh;
}

static void resolve(struct hk_alert *a, int64_t now_ms)
{
    become(a, HK_ALERT_RESOLVED);
    a->resolved_ms = now_ms;
    a->owed = a->told;
    a->told = false;
}

bool hk_alert_tells(struct hk_alert *a, uint64_t update_ms, bool news, int64_t now_ms,
                    enum hk_notice_kind *out_kind)
{
    uint64_t wait_ms = news && update_ms > NEWS_MS ? NEWS_MS : update_ms;
    bool resolved = a->status == HK_ALERT_RESOLVED && a->owed;
    bool firing = a->status == HK_ALERT_FIRING && a->active;
    if (resolved) {
        a->owed = false;
        *out_kind = HK_NOTICE_RESOLVED;
    } else if (firing && !a->told) {
        a->told = true;
        *out_kind = HK_NOTICE_FIRING;
    } else if (firing && has_passed(a->told_ms, wait_ms, now_ms)) {
        *out_kind = HK_NOTICE_UPDATE;
    } else {
        return false;
    }
    a->told_ms = now_ms;
    a->changed = true;
    return true;
}

/* The clock went back: a time in the future becomes now. Otherwise the alert would wait until the clock reaches it again. */
static void not_ahead(struct hk_alert *a, int64_t *ms, int64_t now_ms)
{
    if (*ms <= now_ms)
        return;
    *ms = now_ms;
    a->changed = true;
}

static void notice_time(struct hk_alert *a, int64_t now_ms)
{
    not_ahead(a, &a->since_ms, now_ms);
    not_ahead(a, &a->gone_ms, now_ms);
    not_ahead(a, &a->told_ms, now_ms);
    int64_t gone_ms = a->active ? 0 : a->gone_ms ? a->gone_ms : now_ms;
    a->changed |= gone_ms != a->gone_ms;
    a->gone_ms = gone_ms;
}

static void move_on(struct hk_alert *a, const struct hk_alert_rule *rule,
                    const struct hk_alert_settings *settings, int64_t now_ms)
{
    switch (a->status) {
    case HK_ALERT_WATCHING:
        if (!a->active)
            return;
        begin(a, now_ms);
        break;
    case HK_ALERT_PENDING:
        a->count += a->fresh;
        if (!a->active)
            become(a, HK_ALERT_WATCHING);
        break;
    case HK_ALERT_FIRING:
        a->count += a->fresh;
        if (!a->active && has_passed(a->gone_ms, settings->resolve_after_ms, now_ms))
            resolve(a, now_ms);
        break;
    case HK_ALERT_RESOLVED:
        if (a->active && a->owed) { /* nobody knows that it was over */
            a->count += a->fresh;
            a->told = true;
            a->owed = false;
            a->resolved_ms = 0;
            become(a, HK_ALERT_FIRING);
        } else if (a->active) {
            begin(a, now_ms);
        }
        break;
    }
    if (a->status == HK_ALERT_PENDING && has_passed(a->since_ms, rule->for_ms, now_ms)) {
        become(a, HK_ALERT_FIRING);
        a->fired_ms = now_ms;
    }
}

void hk_alert_advance(struct hk_alert *a, const struct hk_alert_rule *rule,
                      const struct hk_alert_settings *settings, int64_t now_ms)
{
    a->changed |= a->fresh > 0;
    if (a->severity != rule->severity) {
        a->severity = rule->severity;
        a->changed = true;
    }
    notice_time(a, now_ms);
    move_on(a, rule, settings, now_ms);
    a->fresh = 0;
    a->gone = a->status == HK_ALERT_WATCHING && !looks_back(a->kind);
}

bool hk_alert_step(struct hk_alert *a, const struct hk_alert_rule *rule,
                   const struct hk_alert_settings *settings, int64_t now_ms, enum hk_notice_kind *out_kind)
{
    hk_alert_advance(a, rule, settings, now_ms);
    if (hk_alert_is_silent(settings, a->rule, a->severity, now_ms))
        return false;
    return hk_alert_tells(a, settings->update_ms, false, now_ms, out_kind);
}

/* ---- what rules find ---- */

struct finder {
    struct hk_alert_board *board;
    const struct hk_alert_rule *rule;
    const struct hk_alert_facts *facts;
    size_t separate; /* alerts of a rule beside the one for all others */
    size_t held;     /* of the rule, by now */
    enum hk_code rc;
};

static const struct hk_str none = {"", 0};

static bool fits(const char *pattern, struct hk_str s)
{
    return !pattern || hk_str_glob(pattern, s);
}

static bool is_of(const struct hk_alert *a, const struct hk_alert_rule *rule)
{
    return hk_str_eq(a->rule, hk_str_of(rule->name)) && a->kind == rule->kind;
}

static struct hk_alert *look_up(const struct finder *f, struct hk_str destination, struct hk_str reason)
{
    const struct hk_alert_board *board = f->board;
    size_t mask = board->n_slots - 1;
    size_t slot = (size_t)hash_of(hk_str_of(f->rule->name), destination, reason) & mask;
    for (; board->slots[slot]; slot = (slot + 1) & mask) {
        struct hk_alert *a = &board->alerts[board->slots[slot] - 1];
        if (is_of(a, f->rule) && hk_str_eq(a->destination, destination) && hk_str_eq(a->reason, reason))
            return a;
    }
    return NULL;
}

/* Has a notice said that it began, or will one? Then a notice says that it ended, too. */
static bool is_held(const struct hk_alert *a)
{
    return a->taken || a->owed || a->status != HK_ALERT_RESOLVED;
}

static struct hk_alert *take(struct finder *f, struct hk_alert *a)
{
    f->held += !is_held(a);
    a->taken = true;
    return a;
}

static struct hk_alert *make(struct finder *f, struct hk_str destination, struct hk_str reason)
{
    struct hk_alert fresh = {.rule = hk_str_of(f->rule->name),
                             .kind = f->rule->kind,
                             .severity = f->rule->severity,
                             .destination = destination,
                             .reason = reason,
                             .taken = true,
                             .changed = true};
    hk_alert_fingerprint(fresh.rule, destination, reason, fresh.fingerprint);
    if (hk_alert_board_add(f->board, &fresh) != HK_OK || index_last(f->board) != HK_OK) {
        f->rc = HK_NOMEM;
        return NULL;
    }
    f->held++;
    return &f->board->alerts[f->board->n - 1];
}

/* NULL: out of memory. As long as the shared alert for all others is held, new causes belong to it. Otherwise each cause would get a
 * notice of its own as soon as a place becomes free. */
static struct hk_alert *find(struct finder *f, struct hk_str destination, struct hk_str reason)
{
    struct hk_alert *a = look_up(f, destination, reason);
    if (a && is_held(a))
        return take(f, a);
    struct hk_alert *others = look_up(f, none, none);
    if (f->held >= f->separate || (others && is_held(others))) {
        destination = reason = none;
        a = others;
    }
    return a ? take(f, a) : make(f, destination, reason);
}

/* Dead letters that an alert has not counted yet. While the alert lasts, it has already counted letters that die once more, because
 * nobody settled them in between. (If a letter died of another cause before, that cause's alert has counted it.) A new letter that has
 * died again since is in both numbers, and counts as new. */
static uint64_t new_letters(const struct hk_alert *a, const struct hk_alert_deaths *d)
{
    bool again = a->kind == HK_ALERT_REQUEUE_FAILED;
    bool lasts = a->status == HK_ALERT_PENDING || a->status == HK_ALERT_FIRING || a->owed;
    if (!lasts)
        return again ? d->again : d->n - d->known;
    return again ? d->second : d->n - d->again;
}

static void find_letters(struct finder *f)
{
    bool again = f->rule->kind == HK_ALERT_REQUEUE_FAILED;
    for (size_t i = 0; i < f->facts->n_deaths; i++) {
        const struct hk_alert_deaths *d = &f->facts->deaths[i];
        if (!(again ? d->again : d->n - d->known) || !fits(f->rule->destination, d->destination) ||
            !fits(f->rule->reason, d->reason) || !fits(f->rule->event_type, d->event_type))
            continue;
        struct hk_alert *a = find(f, d->destination, d->reason);
        if (!a)
            return;
        bool first = a->status != HK_ALERT_PENDING && a->status != HK_ALERT_FIRING && !a->fresh;
        if (first)
            a->event_type = d->event_type;
        else if (!hk_str_eq(a->event_type, d->event_type))
            a->event_type = hk_str_of(""); /* several */
        a->active = true;
        a->fresh += new_letters(a, d);
        a->letter_id = d->letter_id;
        memset(a->series, 0,
               sizeof a->series); /* where the store looks for open ones: from the beginning again */
        a->example_id = d->message_id;
    }
}

/* How many more there are is what the one for all others measures. */
static void count_others(struct finder *f, double n)
{
    struct hk_alert *a = n > 0 ? look_up(f, none, none) : NULL;
    if (!a)
        return;
    a->changed = a->changed || a->value < n || a->value > n;
    a->value = n;
}

static void find_dests(struct finder *f)
{
    double others = 0;
    for (size_t i = 0; i < f->facts->n_dests; i++) {
        const struct hk_alert_dest *d = &f->facts->dests[i];
        bool paused = f->rule->kind == HK_ALERT_PAUSED;
        if (!(paused ? d->paused : d->broken) || !fits(f->rule->destination, d->name))
            continue;
        struct hk_alert *a = find(f, d->name, none);
        if (!a)
            return;
        a->active = true;
        if (hk_alert_is_of_others(a->kind, a->destination, a->reason))
            others++;
        else if (paused)
            a->detail = d->detail;
    }
    count_others(f, others);
}

/* Of a rule for all: the destination that it is about by now. What is over keeps the one that it was about. */
static void blame(struct hk_alert *a, struct hk_str destination)
{
    if (!a || !a->active || hk_str_eq(a->detail, destination))
        return;
    a->detail = destination;
    a->changed = true;
}

static void compare(struct hk_alert *a, double value, double threshold)
{
    if (!a)
        return;
    a->active = value >= threshold;
    a->value = value;
    a->threshold = threshold;
}

/* The destination that has more than half of the open letters; empty: none has. */
static struct hk_str most_dead(const struct hk_alert_facts *facts)
{
    for (size_t i = 0; i < facts->n_dests; i++)
        if (facts->dests[i].dead > facts->dead / 2)
            return facts->dests[i].name;
    return none;
}

/* Without a destination: all together. */
static void find_above(struct finder *f)
{
    double threshold = (double)f->rule->above;
    if (!f->rule->destination) {
        if ((double)f->facts->dead >= threshold || look_up(f, none, none)) {
            struct hk_alert *a = find(f, none, none);
            compare(a, (double)f->facts->dead, threshold);
            blame(a, most_dead(f->facts));
        }
        return;
    }
    double others = 0;
    for (size_t i = 0; i < f->facts->n_dests && f->rc == HK_OK; i++) {
        const struct hk_alert_dest *d = &f->facts->dests[i];
        if (!fits(f->rule->destination, d->name) || d->dead < f->rule->above)
            continue;
        struct hk_alert *a = find(f, d->name, none);
        bool of_others = a && !a->destination.len;
        others += of_others ? (double)d->dead : 0;
        compare(a, of_others ? others : (double)d->dead, threshold);
    }
}

static struct hk_str subject(const struct hk_alert_rule *rule)
{
    return hk_str_of(rule->destination ? rule->destination : "");
}

/* Adds times that come from the store and may be anything: below zero counts as zero, and the sum never overflows. */
static int64_t plus(int64_t a, int64_t b)
{
    a = a > 0 ? a : 0;
    b = b > 0 ? b : 0;
    return a < INT64_MAX - b ? a + b : INT64_MAX;
}

/* The destination where more than half of these deaths were, by majority vote; empty: nowhere. */
static struct hk_str most_deaths(const struct finder *f, uint64_t all)
{
    const struct hk_alert_facts *facts = f->facts;
    struct hk_str found = none;
    uint64_t votes = 0, n = 0;
    for (size_t i = 0; i < facts->n_deaths; i++) {
        const struct hk_alert_deaths *d = &facts->deaths[i];
        if (!fits(f->rule->destination, d->destination))
            continue;
        if (!votes)
            found = d->destination;
        bool same = hk_str_eq(found, d->destination);
        votes = same ? votes + d->n : votes > d->n ? votes - d->n : 0;
    }
    for (size_t i = 0; i < facts->n_deaths; i++)
        n += hk_str_eq(facts->deaths[i].destination, found) ? facts->deaths[i].n : 0;
    return n > all / 2 ? found : none;
}

/* Deaths by parts of the window, the newest first; one part more than the window has. */
static void find_rising(struct finder *f)
{
    const int64_t part_ms = (int64_t)(f->rule->age_ms / (HK_ALERT_SERIES - 1)) + 1;
    int64_t now = f->facts->now_ms, n = 0, sum = 0;
    struct hk_alert *a = find(f, subject(f->rule), hk_str_of(""));
    if (!a)
        return;
    if (a->series_ms <= 0 || now < a->series_ms || now - a->series_ms > part_ms * HK_ALERT_SERIES) {
        memset(a->series, 0, sizeof a->series);
        a->series_ms = now;
        a->changed = true;
    }
    for (; now - a->series_ms >= part_ms; a->series_ms += part_ms) {
        memmove(&a->series[1], &a->series[0], (HK_ALERT_SERIES - 1) * sizeof a->series[0]);
        a->series[0] = 0;
        a->changed = true;
    }
    for (size_t i = 0; i < f->facts->n_deaths; i++)
        if (fits(f->rule->destination, f->facts->deaths[i].destination))
            n += (int64_t)f->facts->deaths[i].n;
    a->series[0] = plus(a->series[0], n);
    a->changed |= n > 0;
    for (size_t i = 0; i < HK_ALERT_SERIES; i++)
        sum = plus(sum, a->series[i]);
    compare(a, (double)sum, (double)f->rule->above);
    if (n > 0)
        blame(a, most_deaths(f, (uint64_t)n));
    a->fresh = (uint64_t)n;
}

static void find_age(struct finder *f)
{
    int64_t age_ms = f->facts->oldest_ms ? f->facts->now_ms - f->facts->oldest_ms : 0;
    bool too_old = age_ms > 0 && (uint64_t)age_ms >= f->rule->age_ms;
    if (!too_old && !look_up(f, none, none))
        return;
    struct hk_alert *a = find(f, none, none);
    compare(a, (double)age_ms / 1000, (double)f->rule->age_ms / 1000);
    blame(a, f->facts->oldest_dest);
}

/* Messages that could have been sent make a standstill. While everything due is held back (by a pause, a breaker, a rate, a key) time
 * does not count, and the alert records that: otherwise, at the end of a long pause, the standstill would seem as long as the pause. */
static void find_standstill(struct finder *f)
{
    struct hk_alert *a = find(f, none, none);
    int64_t now = f->facts->now_ms, free_ms = f->facts->oldest_free_ms;
    if (!a)
        return;
    bool moved = !a->series_ms || now < a->series_ms || a->series[0] != f->facts->progress;
    if (moved || !free_ms) {
        a->changed |= moved || f->facts->held;
        a->series[0] = f->facts->progress;
        a->series_ms = now;
    }
    int64_t from = a->series_ms > free_ms ? a->series_ms : free_ms;
    compare(a, free_ms && now > from ? (double)(now - from) / 1000 : 0, (double)f->rule->age_ms / 1000);
}

/* Every sample of the window is above the one before, and by a fifth of the window in all. */
static void find_lag(struct finder *f)
{
    const int64_t part_ms = (int64_t)(f->rule->age_ms / (HK_ALERT_SERIES - 1)) + 1;
    struct hk_alert *a = find(f, none, none);
    int64_t now = f->facts->now_ms;
    if (!a)
        return;
    int64_t lag =
        f->facts->oldest_due_ms && now > f->facts->oldest_due_ms ? now - f->facts->oldest_due_ms : 0;
    if (a->series_ms <= 0 || now < a->series_ms || now - a->series_ms >= part_ms) {
        memmove(&a->series[1], &a->series[0], (HK_ALERT_SERIES - 1) * sizeof a->series[0]);
        a->series[0] = lag;
        a->series_ms = now;
        a->changed = true;
    }
    bool grows = lag >= a->series[0];
    for (size_t i = 0; i + 1 < HK_ALERT_SERIES; i++)
        grows = grows && a->series[i] > a->series[i + 1] && a->series[i + 1] > 0;
    grows = grows && lag - a->series[HK_ALERT_SERIES - 1] >= part_ms;
    a->active = grows;
    a->value = (double)lag / 1000;
    a->threshold = (double)f->rule->age_ms / 1000;
    blame(a, f->facts->due_dest);
}

static void find_all(struct finder *f)
{
    switch (f->rule->kind) {
    case HK_ALERT_DEAD_LETTER:
    case HK_ALERT_REQUEUE_FAILED:
        find_letters(f);
        return;
    case HK_ALERT_DEAD_LETTERS_ABOVE:
        find_above(f);
        return;
    case HK_ALERT_DEAD_LETTERS_RISING:
        find_rising(f);
        return;
    case HK_ALERT_OLDEST_AGE:
        find_age(f);
        return;
    case HK_ALERT_BREAKER_OPEN:
    case HK_ALERT_PAUSED:
        find_dests(f);
        return;
    case HK_ALERT_NO_PROGRESS:
        find_standstill(f);
        return;
    case HK_ALERT_LAG_GROWING:
        find_lag(f);
        return;
    case HK_ALERT_STORE_UNREACHABLE: /* the relay's own, in memory */
    case HK_ALERT_KEY_MISSING:
    case HK_NALERT_KINDS:
        return;
    }
}

/* ---- all of them ---- */

/* Computes every alert's next state. Notices come later. */
static void advance_rule(struct finder *f, size_t rule, const struct hk_alert_settings *settings)
{
    f->held = 0;
    for (size_t i = 0; i < f->board->n; i++) {
        struct hk_alert *a = &f->board->alerts[i];
        if (!is_of(a, f->rule))
            continue;
        a->active = hk_alert_kind_has_letters(a->kind) && a->open;
        a->taken = false;
        f->held += is_held(a);
    }
    find_all(f);
    for (size_t i = 0; i < f->board->n && f->rc == HK_OK; i++) {
        struct hk_alert *a = &f->board->alerts[i];
        if (!is_of(a, f->rule))
            continue;
        a->rule_at = rule + 1; /* some are new */
        hk_alert_advance(a, f->rule, settings, f->facts->now_ms);
    }
}

/* Those of one rule that nobody speaks for. */
static void tell_rule(struct finder *f, size_t rule, const struct hk_alert_settings *settings)
{
    struct hk_alert_board *board = f->board;
    for (size_t i = 0; i < board->n && f->rc == HK_OK; i++) {
        struct hk_alert *a = &board->alerts[i];
        enum hk_notice_kind kind = HK_NOTICE_FIRING;
        if (a->rule_at != rule + 1 || a->silent || a->leader_at ||
            !hk_alert_tells(a, settings->update_ms, hk_alert_has_news(board, i), f->facts->now_ms, &kind))
            continue;
        if (!add_tell(board, (struct hk_alert_tell){i, rule, kind}))
            f->rc = HK_NOMEM;
        hk_alert_carry(board, i, f->facts->now_ms);
    }
}

/* Ends an alert whose rule is gone, when no other relay has seen it hold for a while either. It sends no notice, and only the resolved
 * alert stays. */
static void retire(struct hk_alert *a, int64_t now_ms)
{
    if (a->status == HK_ALERT_RESOLVED && !a->owed)
        return;
    not_ahead(a, &a->gone_ms, now_ms);
    if (!a->gone_ms) {
        a->gone_ms = now_ms;
        a->changed = true;
    }
    if (!has_passed(a->gone_ms, RETIRE_MS, now_ms))
        return;
    a->gone = a->status == HK_ALERT_WATCHING || a->status == HK_ALERT_PENDING;
    resolve(a, a->resolved_ms ? a->resolved_ms : now_ms);
    a->owed = false;
}

static size_t place_of_rule(const struct hk_alert *a, const struct hk_alert_rule *rules, size_t n_rules)
{
    for (size_t i = 0; i < n_rules; i++)
        if (is_of(a, &rules[i]))
            return i + 1;
    return 0;
}

enum hk_code hk_alert_evaluate(struct hk_alert_board *board, const struct hk_alert_rule *rules,
                               size_t n_rules, const struct hk_alert_settings *settings,
                               const struct hk_alert_facts *facts)
{
    for (size_t i = 0; i < board->n; i++)
        board->alerts[i].rule_at = place_of_rule(&board->alerts[i], rules, n_rules);
    struct finder f = {.board = board,
                       .facts = facts,
                       .separate = settings->separate ? settings->separate : HK_ALERT_SEPARATE,
                       .rc = index_all(board)};
    for (size_t i = 0; i < n_rules && f.rc == HK_OK; i++) {
        f.rule = &rules[i];
        if (facts->figures || !hk_alert_kind_has_figures(rules[i].kind))
            advance_rule(&f, i, settings);
    }
    if (f.rc == HK_OK)
        f.rc = hk_alert_find_leaders(board, rules, settings, facts->now_ms);
    for (size_t i = 0; i < n_rules && f.rc == HK_OK; i++)
        if (facts->figures || !hk_alert_kind_has_figures(rules[i].kind))
            tell_rule(&f, i, settings);
    for (size_t i = 0; i < board->n; i++)
        if (!board->alerts[i].rule_at)
            retire(&board->alerts[i], facts->now_ms);
    return f.rc;
}

/* ---- notices that did not arrive ---- */

const struct hk_notice_retry hk_notice_retry_default = {
    .first_ms = 2000, .cap_ms = UINT64_C(30) * 60 * 1000, .max_attempts = 60};

uint64_t hk_notice_wait_ms(const struct hk_notice_retry *retry, uint32_t attempts, uint64_t asked_ms)
{
    uint64_t wait_ms = retry->first_ms;
    if (attempts >= retry->max_attempts)
        return UINT64_MAX;
    for (uint32_t i = 1; i < attempts && wait_ms < retry->cap_ms; i++)
        wait_ms *= 2;
    if (wait_ms < asked_ms)
        wait_ms = asked_ms;
    return wait_ms < retry->cap_ms ? wait_ms : retry->cap_ms;
}
