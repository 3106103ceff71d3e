/* SPDX-License-Identifier: Apache-2.0 */
/* Decides when people get notices. Rules, present facts and earlier alerts come in; the new state of each alert and the due
 * notices come out. PURE: the store keeps alerts, channels carry notices.
 *
 *   watching --holds--> pending --wait-for--> firing --gone for resolve_after--> resolved
 *                          |                    | one notice, then one every update_every
 *                          +--gone: forgotten   +--holds again before the notice of its end was sent: keeps firing
 *
 * - There is one alert for each rule and subject (destination, or destination and reason). Many messages that die of one cause
 *   only raise its count. A rule has at most `separate` such alerts; one more alert covers all further subjects. While that
 *   one exists, no new separate alerts begin. So a thousand destinations that fail, and recover one after the other, make
 *   `separate` + 1 notices, and as many of their ends.
 * - An alert never fires twice without being resolved in between. It is never silent for ever while it fires and may be sent.
 * - One cause makes one story: alerts about one destination follow the most severe one that was sent first (alert_story.c). A
 *   follower is a line in its leader's notices, and gets its own notices when the leader has ended.
 * - While its rule is muted, and in quiet hours, an alert sends no notices. Afterwards an alert that is still firing sends one.
 *   The end of an alert is sent only if its beginning was sent. */
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
    HK_NOTICE_UPDATE, /* still firing, with the present count */
    HK_NOTICE_RESOLVED,
    HK_NOTICE_TEST /* `hikyaku alerts test` */
};

enum hk_alert_language {
    HK_ALERT_ENGLISH = 0,
    HK_ALERT_JAPANESE
};

/* The rule's kind: the condition that it watches. alert/words.c puts it into words. */
enum hk_alert_kind {
    HK_ALERT_DEAD_LETTER = 0,    /* one entered; groups by destination and reason */
    HK_ALERT_DEAD_LETTERS_ABOVE, /* open letters >= threshold */
    HK_ALERT_DEAD_LETTERS_RISING,
    HK_ALERT_OLDEST_AGE, /* the oldest undelivered message is older than threshold_ms */
    HK_ALERT_BREAKER_OPEN,
    HK_ALERT_PAUSED,
    HK_ALERT_STORE_UNREACHABLE, /* the relay itself decides this one, without the store */
    HK_ALERT_NO_PROGRESS,       /* messages are due, and none was sent for this long */
    HK_ALERT_LAG_GROWING,
    HK_ALERT_REQUEUE_FAILED, /* requeued letters died again */
    HK_ALERT_KEY_MISSING,    /* a relay lacks a key that messages need; it decides this one itself, too */
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
    uint64_t for_ms; /* must hold this long before it fires */
    const char *const *fields; /* paths into the payload, for the notice */
    size_t n_fields;
    uint32_t
        channels; /* that get its notices, as bits: a leader does not speak for channels that it does not reach */
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

/* Messages that died since the last look, in groups. */
struct hk_alert_deaths {
    struct hk_str destination, reason, event_type;
    uint64_t n, again; /* `again`: those of `n` that had been requeued */
    uint64_t second;   /* those of `again` that had been requeued once: this was their second death */
    uint64_t known;    /* those of `again` that this look or the next one also returns as new letters */
    int64_t letter_id; /* of one of them */
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
    bool figures; /* are the next members, and hk_alert_dest.dead, known? If not, rules that need them wait */
    uint64_t dead;             /* open letters, everywhere */
    int64_t oldest_ms;         /* when the oldest undelivered message was written; 0 = there is none */
    struct hk_str oldest_dest; /* its destination; empty = not known */
    /* The due time of the oldest due message that no pause, breaker or key holds back; 0 = there is none. */
    int64_t oldest_due_ms;
    struct hk_str due_dest; /* its destination */
    /* The same without messages that a rate limit holds back: a relay could have sent these. */
    int64_t oldest_free_ms;
    bool held;        /* a message is due and something holds it back */
    int64_t progress; /* changes whenever a message was delivered or dead-lettered */
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
    int64_t told_ms; /* the time of the last notice */
    bool told;       /* its beginning was sent */
    bool owed;       /* its end is still to be sent */
    uint64_t count;
    double value, threshold;
    int64_t letter_id; /* one of its letters that is not settled, as far as is known; 0 = none */
    /* Memory of rules that look back: deaths by part of the window, lags, a progress. */
    int64_t series_ms, series[HK_ALERT_SERIES];
    struct hk_str fields; /* of the letter that the last notice named: text of store/alerts.h; empty = none */
    struct hk_alert_field *named; /* the same for people, where it was asked for */
    size_t n_named;
    /* The count in the last notice, its own or its leader's; 0 = not known. */
    uint64_t told_figure;
    /* of one evaluation */
    bool open;    /* in, for rules about letters: some letter of it is not settled */
    bool active;  /* it holds now */
    bool taken;   /* some fact is about it */
    bool changed; /* out: to be written; in: the same */
    bool gone;    /* out: to be deleted */
    uint64_t fresh;
    size_t rule_at;   /* the place of its rule, plus one; 0 = no rule looked at it */
    bool silent;      /* muted, or in quiet hours */
    size_t leader_at; /* out: the place of its leader, plus one; 0 = none */
};

/* A due notice, to all channels of the rule. */
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

/* Evaluates all rules. HK_NOMEM: do not use the board. */
enum hk_code hk_alert_evaluate(struct hk_alert_board *board, const struct hk_alert_rule *rules,
                               size_t n_rules, const struct hk_alert_settings *settings,
                               const struct hk_alert_facts *facts) HK_MUSTCHECK;

/* Moves one alert, whose `active` and `fresh` the caller has set, to its next state. True: the notice `*out_kind` is due.
 * hk_alert_evaluate does this for each alert. */
bool hk_alert_step(struct hk_alert *alert, const struct hk_alert_rule *rule,
                   const struct hk_alert_settings *settings, int64_t now_ms, enum hk_notice_kind *out_kind);

/* Its next state alone. */
void hk_alert_advance(struct hk_alert *alert, const struct hk_alert_rule *rule,
                      const struct hk_alert_settings *settings, int64_t now_ms);
/* Is a notice due for an alert without a leader? `news`: an update may come before its time. */
bool hk_alert_tells(struct hk_alert *alert, uint64_t update_ms, bool news, int64_t now_ms,
                    enum hk_notice_kind *out_kind);

/* ---- stories (alert_story.c) ---- */

/* Finds the leader of each alert: sets `silent` and `leader_at`. Uses `rule_at`. */
enum hk_code hk_alert_find_leaders(struct hk_alert_board *board, const struct hk_alert_rule *rules,
                                   const struct hk_alert_settings *settings, int64_t now_ms) HK_MUSTCHECK;
/* Does the story of the alert at `place` have news: a follower that no notice named yet, or numbers that grew? */
bool hk_alert_has_news(const struct hk_alert_board *board, size_t place);
/* Records that the alert at `place`, with its followers, is sent now. */
void hk_alert_carry(struct hk_alert_board *board, size_t place, int64_t now_ms);
/* Is the alert at `other` a line of this notice? A notice of an end also lists followers that ended before. */
bool hk_alert_is_line(const struct hk_alert_board *board, const struct hk_alert_tell *tell, size_t other);
/* The destination of an alert; for a rule about all destinations the one with the largest part; empty = none. */
struct hk_str hk_alert_about(const struct hk_alert *alert);
/* The last error, or who paused it, and why; empty = none. */
struct hk_str hk_alert_detail(const struct hk_alert *alert);

void hk_alert_fingerprint(struct hk_str rule, struct hk_str destination, struct hk_str reason,
                          char out[HK_ALERT_FINGERPRINT_MAX]);
bool hk_alert_is_silent(const struct hk_alert_settings *settings, struct hk_str rule,
                        enum hk_severity_level severity, int64_t now_ms);
/* Is the alert about letters, and so open while one of its letters is open? */
bool hk_alert_kind_has_letters(enum hk_alert_kind kind);
/* Does each relay decide it by itself, in memory? hk_alert_evaluate leaves it alone. */
bool hk_alert_kind_is_own(enum hk_alert_kind kind);
/* Does it look at counts and ages (hk_alert_facts from `dead` on, hk_alert_dest.dead)? */
bool hk_alert_kind_has_figures(enum hk_alert_kind kind);

/* Is it the alert for all subjects beyond `separate`? If these are destinations, `value` is their number. */
bool hk_alert_is_of_others(enum hk_alert_kind kind, struct hk_str destination, struct hk_str reason);

/* The words of the configuration and of tables. False: no such word. */
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

/* When to retry a notice, and when to give it up. */
struct hk_notice_retry {
    uint64_t first_ms, cap_ms;
    uint32_t max_attempts;
};

extern const struct hk_notice_retry hk_notice_retry_default; /* about a day */
/* The wait after `attempts` failed attempts (from 1). `asked_ms`: the wait that the channel asked for, 0 = none. UINT64_MAX: give up. */
uint64_t hk_notice_wait_ms(const struct hk_notice_retry *retry, uint32_t attempts, uint64_t asked_ms);

#endif
