/* SPDX-License-Identifier: Apache-2.0 */
/* When people are told: rules, the facts of now and what was told before come in; what each alert is by then, and which
 * notices are due, comes out. PURE: the store keeps alerts, a channel carries notices.
 *
 *   watching --holds--> pending --wait-for--> firing --gone for resolve_after--> resolved
 *                          |                    | told once, then every update_every
 *                          +--gone: forgotten   +--holds again before anybody was told that it was over: goes on
 *
 * - One alert for each rule and what it is about (destination, destination and reason): however many messages die of one cause,
 *   their number is a count. A rule has `separate` such alerts at the most; what comes beyond is one alert for all others,
 *   and as long as there is that one, no new ones begin beside it: a thousand destinations that fail, and come back one
 *   after the other, are so many notices and one, and as many ends.
 * - Never two firings without a resolved in between; never silence for ever while one fires and may be told.
 * - One cause is one story: alerts about one destination follow the most severe one that was told first (alert_story.c). A
 *   follower is a line of its leader's notices, and speaks for itself when the leader is over.
 * - While its rule is muted, or in quiet hours, nothing is told. Afterwards what still is, is told once; what ended meanwhile
 *   is told only to those who had been told that it began. */
#ifndef HK_CORE_ALERT_H
#define HK_CORE_ALERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hikyaku/error.h>
#include <hikyaku/facts.h>

enum hk_severity_level {
    HK_ALERT_INFO = 0,
    HK_ALERT_WARNING,
    HK_ALERT_CRITICAL
};

enum hk_notice_kind {
    HK_NOTICE_FIRING = 0,
    HK_NOTICE_UPDATE, /* it still is, so many by now */
    HK_NOTICE_RESOLVED,
    HK_NOTICE_TEST /* `hikyaku alerts test` */
};

enum hk_alert_language {
    HK_ALERT_ENGLISH = 0,
    HK_ALERT_JAPANESE
};

/* What is wrong: the rule's kind. Told in words by alert/words.c. */
enum hk_alert_kind {
    HK_ALERT_DEAD_LETTER = 0,    /* one entered; groups by destination and reason */
    HK_ALERT_DEAD_LETTERS_ABOVE, /* open letters >= threshold */
    HK_ALERT_DEAD_LETTERS_RISING,
    HK_ALERT_OLDEST_AGE, /* the oldest undelivered message is older than threshold_ms */
    HK_ALERT_BREAKER_OPEN,
    HK_ALERT_PAUSED,
    HK_ALERT_STORE_UNREACHABLE, /* told by the relay itself: there is no store to decide in */
    HK_ALERT_NO_PROGRESS,       /* something is due, and nothing was sent for so long */
    HK_ALERT_LAG_GROWING,
    HK_ALERT_REQUEUE_FAILED, /* requeued letters died again */
    HK_NALERT_KINDS
};

#define HK_ALERT_SEPARATE 10

/* A field of the payload that a rule names, for the notice. */
enum hk_alert_field_state {
    HK_ALERT_FIELD_SHOWN = 0,
    HK_ALERT_FIELD_MASKED,    /* `masks` hide it */
    HK_ALERT_FIELD_ABSENT,    /* the payload has no such field */
    HK_ALERT_FIELD_UNREADABLE /* the payload is not JSON, sealed, or too large */
};

#define HK_NALERT_FIELD_STATES 4
#define HK_ALERT_FIELDS        8   /* of one rule */
#define HK_ALERT_FIELD_MAX     120 /* bytes of a value; longer ones are cut */

struct hk_alert_field {
    struct hk_str path; /* as the rule has it */
    struct hk_str value;
    enum hk_alert_field_state state;
};

/* Texts outlive the evaluation. */
struct hk_alert_rule {
    const char *name;
    enum hk_alert_kind kind;
    enum hk_severity_level severity;
    const char *destination, *event_type, *reason; /* '*' stands for any text; NULL = any */
    uint64_t above;                                /* dead_letters_above, dead_letters_rising */
    uint64_t age_ms; /* oldest_age, no_progress; the window of dead_letters_rising and lag_growing */
    uint64_t for_ms; /* must hold so long before it is told */
    const char *const *fields; /* paths into the payload, for the notice */
    size_t n_fields;
    uint32_t channels; /* that are told, as bits: no leader speaks for channels that do not hear it */
};

struct hk_quiet_hours {
    bool on;
    uint32_t from_min, to_min; /* minutes of the day there; may pass midnight; the same: never */
    int32_t zone_min;          /* east of UTC */
    unsigned let_through;      /* enum hk_severity_level and above; HK_ALERT_CRITICAL + 1: none */
};

struct hk_alert_mute {
    struct hk_str rule;
    int64_t until_ms;
};

struct hk_alert_settings {
    uint64_t update_ms, resolve_after_ms;
    size_t separate; /* 0 = HK_ALERT_SEPARATE */
    struct hk_quiet_hours quiet;
    const struct hk_alert_mute *mutes;
    size_t n_mutes;
};

/* ---- facts ---- */

/* Messages that died since the last look, by what they have in common. */
struct hk_alert_deaths {
    struct hk_str destination, reason, event_type;
    uint64_t n, again;        /* `again`: of those, how many had been requeued */
    uint64_t second;          /* of those again, how many for the first time: it was their second death */
    uint64_t known;           /* of those again, how many this look or the next gives as new letters, too */
    int64_t letter_id;        /* of one of them */
    struct hk_str message_id; /* its */
};

struct hk_alert_dest {
    struct hk_str name;
    bool paused, broken;  /* its breaker is not closed */
    struct hk_str detail; /* who paused it, and why */
    uint64_t dead;        /* open letters */
};

struct hk_alert_facts {
    int64_t now_ms;
    const struct hk_alert_deaths *deaths;
    size_t n_deaths;
    const struct hk_alert_dest *dests;
    size_t n_dests;
    bool figures;      /* are the next ones, and hk_alert_dest.dead, known? Else rules that need them wait */
    uint64_t dead;     /* open letters, everywhere */
    int64_t oldest_ms; /* when the oldest undelivered message was written; 0 = there is none */
    struct hk_str oldest_dest; /* its destination; empty = not known */
    /* Since when the oldest message is due that neither a pause, nor a breaker, nor its key holds back; 0 = there is none. */
    int64_t oldest_due_ms;
    struct hk_str due_dest; /* its destination */
    /* The same without those that a rate holds back: they could have gone. */
    int64_t oldest_free_ms;
    bool held;        /* something is due and may not go */
    int64_t progress; /* another number whenever something was delivered or buried */
};

/* ---- alerts ---- */

enum hk_alert_status {
    HK_ALERT_WATCHING = 0, /* only figures are kept */
    HK_ALERT_PENDING,
    HK_ALERT_FIRING,
    HK_ALERT_RESOLVED
};

#define HK_NALERT_STATUSES 4

#define HK_ALERT_FINGERPRINT_MAX 17
#define HK_ALERT_SERIES          6

struct hk_alert {
    char fingerprint[HK_ALERT_FINGERPRINT_MAX]; /* of rule, destination and reason */
    struct hk_str rule;
    enum hk_alert_kind kind;
    enum hk_severity_level severity;
    struct hk_str destination, reason, event_type, example_id, detail;
    enum hk_alert_status status;
    uint32_t episode; /* how often it began */
    int64_t since_ms, fired_ms, resolved_ms;
    int64_t gone_ms; /* since when it does not hold; 0 = it does */
    int64_t told_ms; /* the last notice */
    bool told;       /* that it fires */
    bool owed;       /* that it is over */
    uint64_t count;
    double value, threshold;
    int64_t letter_id; /* one of its letters that is not settled, as far as is known; 0 = none */
    /* What rules that look back remember: deaths by part of the window, lags, a progress. */
    int64_t series_ms, series[HK_ALERT_SERIES];
    struct hk_str fields; /* of the letter that the last notice named: text of store/alerts.h; empty = none */
    struct hk_alert_field *named; /* the same for people, where it was asked for */
    size_t n_named;
    /* How many the last notice spoke of, by itself or as a line of its leader's; 0 = not known. */
    uint64_t told_figure;
    /* of one evaluation */
    bool open;    /* in, for rules about letters: some letter of it is not settled */
    bool active;  /* it holds now */
    bool taken;   /* some fact is about it */
    bool changed; /* out: to be written; in: the same */
    bool gone;    /* out: to be deleted */
    uint64_t fresh;
    size_t rule_at;   /* the place of its rule, and one; 0 = no rule looked at it */
    bool silent;      /* muted, or in quiet hours */
    size_t leader_at; /* out: the place of the alert that speaks for it, and one; 0 = none */
};

/* Tell all that the rule says. */
struct hk_alert_tell {
    size_t alert, rule; /* places */
    enum hk_notice_kind kind;
};

struct hk_alert_board {
    struct hk_alert *alerts; /* those that were there, then new ones */
    size_t n, room;
    struct hk_alert_tell *tells;
    size_t n_tells, room_tells;
    uint32_t *slots; /* of one evaluation: places of alerts, and one, by hash; a power of two of them */
    size_t n_slots;
};

void hk_alert_board_init(struct hk_alert_board *board);
void hk_alert_board_fini(struct hk_alert_board *board);
/* Takes over a copy; its texts must outlive the board. */
enum hk_code hk_alert_board_add(struct hk_alert_board *board, const struct hk_alert *alert) HK_MUSTCHECK;

/* Does it all. HK_NOMEM: nothing of the board is to be used. */
enum hk_code hk_alert_evaluate(struct hk_alert_board *board, const struct hk_alert_rule *rules,
                               size_t n_rules, const struct hk_alert_settings *settings,
                               const struct hk_alert_facts *facts) HK_MUSTCHECK;

/* One alert whose `active` (and `fresh`) somebody has decided: its next state, and true when `*out_kind` is to be told. What
 * hk_alert_evaluate does for each. */
bool hk_alert_step(struct hk_alert *alert, const struct hk_alert_rule *rule,
                   const struct hk_alert_settings *settings, int64_t now_ms, enum hk_notice_kind *out_kind);

/* Its next state alone. */
void hk_alert_advance(struct hk_alert *alert, const struct hk_alert_rule *rule,
                      const struct hk_alert_settings *settings, int64_t now_ms);
/* Is something to be told of one that nobody speaks for? `news`: an update may come before its time. */
bool hk_alert_tells(struct hk_alert *alert, uint64_t update_ms, bool news, int64_t now_ms,
                    enum hk_notice_kind *out_kind);

/* ---- stories (alert_story.c) ---- */

/* Whose leader each alert is: sets `silent` and `leader_at`. Uses `rule_at`. */
enum hk_code hk_alert_find_leaders(struct hk_alert_board *board, const struct hk_alert_rule *rules,
                                   const struct hk_alert_settings *settings, int64_t now_ms) HK_MUSTCHECK;
/* Does the story of the alert at `place` have news: a follower that nobody heard of, or numbers that grew? */
bool hk_alert_has_news(const struct hk_alert_board *board, size_t place);
/* The alert at `place` is told now: so are its followers. */
void hk_alert_carry(struct hk_alert_board *board, size_t place, int64_t now_ms);
/* Is the alert at `other` a line of this notice? Of an end also what was over before. */
bool hk_alert_is_line(const struct hk_alert_board *board, const struct hk_alert_tell *tell, size_t other);
/* The destination that an alert is about, be it the one that has most of what a rule for all found; empty = none. */
struct hk_str hk_alert_about(const struct hk_alert *alert);
/* The last error, or who paused it, and why; empty = none. */
struct hk_str hk_alert_detail(const struct hk_alert *alert);

void hk_alert_fingerprint(struct hk_str rule, struct hk_str destination, struct hk_str reason,
                          char out[HK_ALERT_FINGERPRINT_MAX]);
bool hk_alert_is_silent(const struct hk_alert_settings *settings, struct hk_str rule,
                        enum hk_severity_level severity, int64_t now_ms);
/* Is it about letters, and so open while one of them is? */
bool hk_alert_kind_has_letters(enum hk_alert_kind kind);
/* Does it look at counts and ages (hk_alert_facts from `dead` on, hk_alert_dest.dead)? */
bool hk_alert_kind_has_figures(enum hk_alert_kind kind);

/* Is it the one for all that came beyond `separate`? Of destinations, `value` is their number. */
bool hk_alert_is_of_others(enum hk_alert_kind kind, struct hk_str destination, struct hk_str reason);

/* As they are called in the configuration and in tables. False: no such word. */
const char *hk_alert_status_word(enum hk_alert_status status); /* "watching" … */
bool hk_alert_status_of(struct hk_str word, enum hk_alert_status *out);
const char *hk_alert_kind_word(enum hk_alert_kind kind); /* "dead_letter" … */
bool hk_alert_kind_of(struct hk_str word, enum hk_alert_kind *out);
const char *hk_alert_field_word(enum hk_alert_field_state state); /* "shown", "masked" … */
bool hk_alert_field_of(struct hk_str word, enum hk_alert_field_state *out);
const char *hk_severity_word(enum hk_severity_level level); /* "info" … */
bool hk_severity_of(struct hk_str word, enum hk_severity_level *out);
const char *hk_notice_word(enum hk_notice_kind kind); /* "firing" … */
bool hk_notice_of(struct hk_str word, enum hk_notice_kind *out);

/* How long to wait before a notice is tried again, and whether it is given up. */
struct hk_notice_retry {
    uint64_t first_ms, cap_ms;
    uint32_t max_attempts;
};

extern const struct hk_notice_retry hk_notice_retry_default; /* about a day */
/* After `attempts` (from 1) that failed; `asked_ms`: what the channel asked for, 0 = nothing. UINT64_MAX: give up. */
uint64_t hk_notice_wait_ms(const struct hk_notice_retry *retry, uint32_t attempts, uint64_t asked_ms);

#endif
