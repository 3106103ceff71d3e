/* SPDX-License-Identifier: Apache-2.0 */
/* What the checker remembers of a log, shared by the files that read it and judge it. */
#ifndef HK_SIM_CHECKER_IMPL_H
#define HK_SIM_CHECKER_IMPL_H

#include "checker.h"
#include "flat.h"

#define NOBODY SIZE_MAX

/* Names to numbers, in the order of their first use. */
struct names {
    char **texts;
    size_t *lens;
    size_t n, room;
    size_t *table; /* number + 1; 0 = free */
    size_t table_room;
};

size_t hk_names_find(const struct names *names, struct hk_str name); /* NOBODY: not there */
size_t hk_names_get(struct names *names, struct hk_str name);
void hk_names_fini(struct names *names);

enum order {
    ORDER_NONE,
    ORDER_BLOCK,
    ORDER_SKIP
};

struct cdest {
    enum order order;
    int64_t cap;
    bool all;          /* the cap is that of all relays together */
    int64_t hint_cap;  /* a Retry-After counts up to this */
    int64_t open_ms;   /* its breaker opens for so long at least; 0 = not known */
    int64_t open_most; /* … and at most; 0 = not known */
    int64_t resumed_at;
    int64_t open_until; /* of its breaker, as relays wrote it since it was resumed; 0 = closed */
    int64_t turn_ms;    /* with work and nothing on its way it waits no longer for a place; 0 = not known */
    int64_t idle_at;    /* when the last of its sends was answered */
    int64_t room_at;    /* when a sink that had no room last said that it has some */
    size_t on_way;      /* sends */
    bool paused;
    int64_t paused_at;
    size_t paused_line; /* when it was paused: number of the line */
    bool kept, there;   /* kept in the store, and defined there now … */
    size_t made_line;   /* … since */
};

struct cmsg {
    bool committed, rolled_back;
    size_t alias;       /* 0, or the number + 1 of the message whose new name this is */
    bool forgotten;     /* by a standby that took over: it was committed once, and never was */
    struct hk_str hash; /* as committed: a text of `texts` */
    int64_t began, committed_at, due, max;
    int64_t expires;          /* 0 = never, or not known */
    int64_t timeout;          /* of an attempt, as it may have it; 0 = not known */
    size_t key;               /* number of the key; NOBODY = none */
    size_t first_leg, n_legs; /* its legs, one after the other */
};

enum leg_state {
    LEG_LIVE,
    LEG_SENT,
    LEG_DEAD,
    LEG_CANCELLED,
    LEG_DISCARDED,
    LEG_FORGOTTEN
};

/* One message on its way to one destination. */
struct cleg {
    size_t msg, dest;
    enum leg_state state;
    int64_t life, attempts, charged;
    int64_t due;          /* the next attempt is not before … */
    int64_t due_by_clock; /* … or by the clock, which was behind then */
    int64_t hint_due;     /* the destination asked so */
    int64_t sent_at,
        took_ms;     /* its last attempt, up to its settle, and how far the clock jumped about then */
    int64_t wait_ms; /* it waits for so long since its last attempt; 0 = it does not */
    int64_t died_at, requeued_at, restored_at; /* 0 = never */
    int64_t parted_at;                         /* fanned out: it has a row of its own since; 0 = never */
    int64_t job;                               /* the last one that requeued it; 0 = none */
    bool job_sent;                             /* and it arrived since its last requeue */
    struct hk_str hash;                        /* since it was edited; ptr NULL = never */
    size_t name;                               /* its newest one: number of a message */
    int64_t crashes;                           /* orphaned since the last attempt that was settled */
    size_t acted;                              /* receipts that the receiver took, over all lives */
    size_t sent;                               /* settled so, over all lives */
    size_t next;                               /* of the same destination and key; NOBODY = none */
    size_t open_sends;
    size_t orphans; /* in its own name, not before it was routed */
    bool ever_sent; /* in this life */
    bool put_off;   /* in this life, for want of its key */
    bool edited;    /* since it was last requeued */
    bool maybe;     /* a request under its newest name may have arrived, or arrive yet */
    bool died_unrouted;
    bool shared_letter; /* with the others of its fan-out, once */
    bool orphaned;      /* ever */
    bool stuck;         /* the database does not let its row go */
    bool drowsy;        /* its relay had just woken, and took the time for later by as long as it slept */
    bool unsure;        /* how long it waits: its relay wrote a time that was past */
    bool unaimed;       /* whoever has it in hand knew no such destination when it was claimed … */
    bool strayed;       /* … and died with it: it has no place in the order any more */
    bool deferred;      /* its attempt was made before its own time: the row went back to wait for that */
    bool forced;        /* by a person, since its last attempt was settled … */
    int64_t forced_at;  /* … then */
    bool had_come;      /* its time, by the clock of one of its claims */
    /* the dump */
    size_t rows, letters, open_letters, sents, cancels, records, traces;
    int64_t row_due, told; /* told: attempts that the row or letter speaks of */
    size_t letter;         /* status of the letter, by its place in the table of checker_end.c */
    int64_t letter_life;
};

struct crow {
    size_t msg;
    size_t leg;          /* NOBODY: not routed yet */
    int64_t claim, lane; /* open; 0 = none */
    int64_t last_claim;
    int64_t keyless, keyless_at; /* under this claim its relay could not open it; 0 = never */
    size_t claim_line;
    size_t taken_line, back_line; /* where it was claimed, and given back for want of room */
    size_t backs;                 /* … so often */
    size_t last_send;             /* and further back by csend.before; NOBODY = none */
};

struct csend {
    size_t leg, row, relay;
    size_t before; /* of the same row; NOBODY = none */
    int64_t claim;
    bool confirmed, failed, maybe, orphaned, settled;
    bool busy;                 /* its sink had no room: it never was */
    bool local;                /* its relay ended it itself */
    bool forgotten;            /* its claim, by a standby: the number may come again */
    bool gone;                 /* so is the process that sent it: it has none on its way */
    bool forced;               /* past what guards its destination */
    int64_t lane, at, timeout; /* timeout: 0 = not known */
    bool suspect;              /* it has killed relays, and was to go alone */
    int64_t status;            /* of the answer that failed it; 0 = none came */
};

struct clane {
    int64_t lane, until;
    int64_t heard_at;            /* the store heard of it last */
    int64_t lost_at, touched_at; /* … before it did not for a while; and again since. INT64_MIN = never */
    size_t relay;
    bool live;
    bool ended;   /* the store's time was set back since */
    bool dead;    /* its process is gone: a lease protects the living */
    bool doubted; /* a standby took over since: its relay may have to begin anew */
};

/* The bytes that a leg was last requeued with under one of its names. The legs of a fan-out share a name, and may be edited apart. */
struct cout {
    size_t leg, name;
    struct hk_str hash;
};

/* A relay that knows a destination to be paused, or broken: so many were sent there since. */
struct cguard {
    size_t relay, dest;
    int64_t until; /* of a breaker; INT64_MAX = a pause */
    int64_t sent;
};

/* What a relay knows of a destination's breaker. */
struct cfailing {
    size_t relay, dest;
    int64_t first; /* that it saw fail since it last wrote down what its breaker is; 0 = none */
    int64_t said;  /* until when that is open, as it wrote */
};

/* A destination of the store, as a relay goes by it. */
struct clearnt {
    size_t relay, dest;
    bool there, held;
    size_t line; /* since when it is there */
    int64_t at;
};

/* A sink without room. */
struct cfull {
    size_t relay, dest;
    size_t line;   /* where that was told first … */
    int64_t t;     /* … and when */
    int64_t asked; /* sends since then */
};

/* A redrive. */
struct cjob {
    int64_t number, canary, rate; /* rate: in thousandths a second; 0 = not known */
    int64_t requeued, last;       /* last: when the tokens were counted */
    double tokens;
    bool over;
};

/* An act and where it was done: how often the log tells of it, and the audit. */
struct cact {
    int64_t told, audited;
};

/* A lease that a relay goes by although the store has forgotten it. */
struct cbelief {
    int64_t lane, until;
};

struct crecord { /* of the attempts' table */
    size_t leg;
    int64_t life, n;
};

#define VEC(type, name)                                                                                      \
    struct {                                                                                                 \
        type *items;                                                                                         \
        size_t n, room;                                                                                      \
    } name

struct checker {
    struct hk_check_options options;
    struct hk_buf *report;
    struct hk_check_result *result;
    struct hk_flat flat;
    size_t line; /* number of the one at hand */
    bool in_dump, has_dump;
    int64_t t;
    int64_t clock;     /* what the store's clock says: it may be behind the store's time */
    int64_t clock_was; /* before it jumped; of jumps in quick succession the latest time */
    int64_t jumped_ms; /* so far forward; of jumps in quick succession together */
    struct names msg_names, leg_names, row_names, dest_names, relay_names, key_names, texts;
    VEC(struct cmsg, msgs);
    VEC(struct cleg, legs);
    VEC(struct crow, rows);
    VEC(struct cdest, dests);
    VEC(struct csend, sends);
    VEC(struct clane, lanes);
    VEC(struct crecord, records);
    VEC(size_t, heads); /* by key number: the first leg */
    VEC(struct cbelief, beliefs);
    VEC(struct cguard, guards);
    VEC(struct cout, outs);
    VEC(size_t, draining); /* relays */
    VEC(struct cfailing, failing);
    VEC(struct cjob, jobs);
    VEC(struct clearnt, learnt);
    VEC(struct cact, acts);
    VEC(struct cfull, fulls);
    struct names act_names;
    int64_t forgot_at, heal_t, bound_ms;
    size_t forgot_sends;             /* so many were made before a standby took over */
    size_t n_sents, n_open, n_overs; /* lines of the dump */
    bool audited, totals;
    bool traced;        /* the dump shows what relays died with */
    struct ckept *kept; /* what a standby has; NULL = there is none */
    int64_t last_claim, last_lane;
    int64_t jumped_at; /* when the store's clock last jumped; INT64_MIN = never */
    int64_t woke_at;   /* when a relay that was stopped last went on; INT64_MIN = never */
    bool healed, ended;
    bool stopped;   /* some process was, ever */
    bool was_reset; /* the store's time, ever */
};

void *hk_checker_grow(void *items, size_t n, size_t *room, size_t bytes);
#define PUSH(vec)                                                                                            \
    ((vec).items = hk_checker_grow((vec).items, (vec).n, &(vec).room, sizeof *(vec).items),                  \
     &(vec).items[(vec).n++])

/* A violation: `rule` is "I1" … */
void hk_checker_complain(struct checker *c, const char *rule, const char *fmt, ...) HK_PRINTF(3, 4);
const char *hk_checker_msg_name(const struct checker *c, size_t msg);
const char *hk_checker_dest_name(const struct checker *c, size_t dest);
/* The leg of a message to a destination; NOBODY: it was not to go there. */
size_t hk_checker_leg(const struct checker *c, size_t msg, struct hk_str dest);
struct hk_str hk_checker_text(const struct checker *c, const char *key);
int64_t hk_checker_number(const struct checker *c, const char *key);
/* Within a while of a jump of the store's clock, leases and due times say little. */
bool hk_checker_clock_is_odd(const struct checker *c);
/* Has the time come that an application named? Such times go by the clock, which what happens has been asked for a while ago. */
bool hk_checker_has_come(const struct checker *c, int64_t named);
/* A pair of names as one. */
struct hk_str hk_checker_pair(char *out, size_t room, struct hk_str a, struct hk_str b);

size_t hk_checker_msg(const struct checker *c, struct hk_str name); /* NOBODY: there is none */
size_t hk_checker_committed(struct checker *c);

/* checker_acts.c */
void hk_checker_note_act(struct checker *c, struct hk_str act); /* for the audit */
void hk_checker_act(struct checker *c);                         /* cancel, discard, requeue, restore, edit */
void hk_checker_redrive(struct checker *c);
void hk_checker_pause(struct checker *c); /* and resume */
void hk_checker_told(struct checker *c);
void hk_checker_closed(struct checker *c);
void hk_checker_breaker(struct checker *c);
void hk_checker_process(struct checker *c, size_t relay); /* began or ended: what it knew is gone */
void hk_checker_guard(struct checker *c, size_t relay, size_t dest, bool forced);
void hk_checker_drain(struct checker *c);
void hk_checker_failing(struct checker *c, size_t relay, size_t dest);
/* What was received under this name. */
void hk_checker_bytes(struct checker *c, const struct cleg *leg, struct hk_str name, struct hk_str hash);
void hk_checker_audit_line(struct checker *c);
void hk_checker_totals_line(struct checker *c);
void hk_checker_audit_end(struct checker *c);
void hk_checker_end_leg(struct checker *c, struct cleg *leg, enum leg_state state);

/* checker_live.c */
void hk_checker_healed(struct checker *c);
void hk_checker_in_time(struct checker *c, const struct cleg *leg);
void hk_checker_turn(struct checker *c, const struct cleg *leg);
void hk_checker_answered(struct checker *c, struct cdest *dest);
void hk_checker_reclaimed(struct checker *c, const struct clane *lane);
void hk_checker_crash(struct checker *c);
void hk_checker_exit(struct checker *c);

/* checker_room.c */
void hk_checker_busy(struct checker *c, struct csend *send); /* NULL: what is refused was never sent */
void hk_checker_room(struct checker *c);
void hk_checker_room_forget(struct checker *c, size_t relay);
void hk_checker_room_asked(struct checker *c, size_t relay, size_t dest);
void hk_checker_room_settled(struct checker *c, const struct cleg *leg, const struct csend *send,
                             struct crow *row, size_t relay, struct hk_str kind);

/* checker_forget.c */
void hk_checker_keep(struct checker *c);
void hk_checker_forget(struct checker *c);
/* Does the relay that has this lane still have reason to believe so? */
bool hk_checker_believes(const struct checker *c, int64_t lane);
struct csend *hk_checker_forgotten_send(struct checker *c); /* of the row and claim at hand; NULL: none */
void hk_checker_drop_kept(struct checker *c);

/* checker_reset.c */
void hk_checker_reset(struct checker *c);
void hk_checker_jump(struct checker *c);
int64_t hk_checker_jumped_ms(const struct checker *c);
void hk_checker_waits(struct checker *c);
void hk_checker_ended(struct checker *c, const struct clane *lane); /* it did something */
void hk_checker_told_rightly(struct checker *c, size_t dest, int64_t until);

/* checker_force.c */
void hk_checker_force(struct checker *c, size_t msg);
/* The last send is the one at hand. */
void hk_checker_seats(struct checker *c);
void hk_checker_alone(struct checker *c);
void hk_checker_forced_send(struct checker *c);
void hk_checker_forced_resume(struct checker *c, size_t dest); /* it was paused */
void hk_checker_timeout(struct checker *c, bool stands);
void hk_checker_took(struct checker *c, const struct csend *send);
struct clane *hk_checker_lane(struct checker *c, int64_t lane); /* NULL: there is none */

/* checker_order.c */
void hk_checker_order(struct checker *c, size_t leg);
void hk_checker_heard(struct checker *c, struct clane *lane); /* a renewal */

/* checker_end.c */
void hk_checker_dump_line(struct checker *c);
void hk_checker_end(struct checker *c);

/* checker_define.c */
void hk_checker_define(struct checker *c);
void hk_checker_learn(struct checker *c);
/* The row at hand is claimed: does its relay know the destination? */
void hk_checker_aimed(struct checker *c, struct crow *row, const struct clane *lane);
/* … and its relay died with it. */
void hk_checker_strays(struct cleg *leg);
void hk_checker_unlearn(struct checker *c, size_t relay);                           /* a new process */
void hk_checker_defined(struct checker *c, size_t relay, size_t dest, bool forced); /* at a send */
/* At a death for want of a destination; `claim_line`: since when the message is in hand. */
void hk_checker_unknown(struct checker *c, const struct cleg *leg, size_t claim_line);

/* The row at hand. */
size_t hk_checker_row(struct checker *c, size_t msg);
/* The send of the row and claim at hand; NULL: none. */
struct csend *hk_checker_send(struct checker *c);

/* checker_keyless.c */
void hk_checker_keyless(struct checker *c);
void hk_checker_unopened_send(struct checker *c, const struct crow *row, size_t msg);
/* It is settled as a retry. False: its relay could open it. */
bool hk_checker_waits_for_key(struct checker *c, const struct cleg *leg);
void hk_checker_keyless_settled(struct checker *c, const struct cleg *leg, struct hk_str kind);

#endif
