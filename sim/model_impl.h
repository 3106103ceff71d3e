/* SPDX-License-Identifier: Apache-2.0 */
/* The modelled tables, shared by the files that read, exchange and dump them. */
#ifndef HK_SIM_MODEL_IMPL_H
#define HK_SIM_MODEL_IMPL_H

#include "core/redrive.h"
#include "model_store.h"
#include "observe/eventlog.h"

enum {
    HK_MODEL_LANE_BITS = 16
};

/* A row of outbox or of outbox_retry. */
struct model_row {
    int64_t id;
    bool numbered; /* it has its id */
    const struct hk_model_msg *msg;
    bool visible;     /* outbox: committed … */
    uint64_t version; /* … as of this version */
    bool gone;        /* rolled back or moved on; the place is not used again */
    int64_t began_ms;
    int64_t claim; /* the manifest that names it; 0 = none */
    bool
        stuck; /* it was to go, and could not: nobody is shown it. `destination`: where it was to go, resolved */
    bool stuck_sent;
    /* outbox_retry only */
    char destination[HK_MODEL_TEXT];
    int64_t due_ms;
    bool deferred;
    bool lasting;    /* it had expired when it was requeued: now it does not */
    bool maybe;      /* some attempt may have arrived */
    bool forced;     /* by a person */
    bool given_back; /* by a relay that stopped while it sent it: it is due at once */
    uint32_t crashes, life;
    size_t letter; /* index + 1; 0 = none */
    struct hk_history history;
    int64_t paused_mark_ms; /* for how long its destination had been paused, at the first failure */
    int64_t first_failed_ms, last_attempt_ms;
};

struct model_rows {
    struct model_row *items;
    size_t n, room;
};

enum letter_status {
    LETTER_FAILED,
    LETTER_RETRYING,
    LETTER_RESOLVED,
    LETTER_DISCARDED
};

struct model_audit {
    const char *act;
    char m[HK_MODEL_TEXT], destination[HK_MODEL_TEXT], actor[HK_MODEL_TEXT];
};

struct model_job {
    int64_t id;
    enum hk_redrive_status status;
    struct hk_redrive_pace pace;
    struct hk_redrive_facts facts;
    size_t cursor, last; /* of letters: the next to look at, and how many there were when it began */
    uint64_t lost;       /* letters that another job has requeued since */
    int64_t wake_ms;
};

struct model_letter {
    int64_t job;     /* the last one that requeued it; 0 = none did */
    bool taken_back; /* discarded since its message was cancelled after a requeue */
    const struct hk_model_msg *msg;
    char destination[HK_MODEL_TEXT], reason[HK_REASON_MAX];
    enum letter_status status;
    bool maybe;  /* some attempt of some life may have arrived */
    bool edited; /* since it last went out */
    uint32_t attempts, life;
};

struct model_end { /* sent or cancelled */
    const struct hk_model_msg *msg;
    char destination[HK_MODEL_TEXT];
    uint32_t attempts, life;
    bool cancelled;
};

struct model_attempt {
    const struct hk_model_msg *msg;
    char destination[HK_MODEL_TEXT];
    uint32_t life, n;
};

struct model_pause {
    char name[HK_MODEL_TEXT];
    bool paused;
    int64_t since_ms, total_ms; /* the total up to then */
    int64_t open_until_ms;      /* its breaker; 0 = closed */
};

struct model_lane {
    int64_t lane, until_ms;
    char relay[HK_MODEL_TEXT];
    bool dead;               /* its process is known to be gone */
    bool ended;              /* the store's time was set back since */
    uint64_t lease_ms, sign; /* sign: another with everything that its relay does */
    uint64_t boot, mark;
};

struct model_bucket { /* of a rate, or of the leave to probe */
    char name[HK_MODEL_TEXT];
    bool probe;
    double tokens;
    int64_t at_ms;
};

struct model_seat { /* of a lane, at a destination that shares its concurrency */
    char name[HK_MODEL_TEXT];
    int64_t lane;
    uint32_t held, want;
    int64_t since_ms; /* it has waited since, or was given some then */
    int64_t at_ms;    /* it asked last */
};

#define MODEL_VEC(type, name)                                                                                \
    struct {                                                                                                 \
        type *items;                                                                                         \
        size_t n, room;                                                                                      \
    } name

struct hk_model {
    struct hk_model_options options;
    struct model_rows outbox, retry;
    MODEL_VEC(struct model_letter, letters);
    MODEL_VEC(struct model_end, ends);
    MODEL_VEC(struct model_attempt, attempts);
    MODEL_VEC(struct model_lane, lanes);
    MODEL_VEC(struct model_pause, paused);
    MODEL_VEC(struct model_bucket, buckets);
    MODEL_VEC(struct model_seat, seats);
    MODEL_VEC(struct model_audit, audit);
    MODEL_VEC(struct model_job, jobs);
    MODEL_VEC(struct hk_model_msg *,
              versions);             /* of messages that people changed; no standby forgets those */
    int64_t shards[HK_MODEL_SHARDS]; /* whose each one is; 0 = nobody's */
    int64_t next_outbox, next_retry, next_lane, next_claim;
    uint64_t version;      /* one more with every commit that others can see */
    int64_t acts;          /* of operators */
    int64_t definitions;   /* of destinations: their version */
    uint64_t books;        /* of seats that were looked at */
    uint64_t boots;        /* of lanes; no standby forgets those */
    struct hk_model *kept; /* what a standby has */
    char complaint[128];
};

/* Makes room for one more; the simulator does not survive without memory. */
void *hk_model_grow(void *items, size_t n, size_t *room, size_t bytes);
#define MODEL_PUSH(vec)                                                                                      \
    ((vec).items = hk_model_grow((vec).items, (vec).n, &(vec).room, sizeof *(vec).items),                    \
     &(vec).items[(vec).n++])

int64_t hk_model_now(const struct hk_model *model);
/* As a row's due_ms: at once. */
int64_t hk_model_due_now(const struct hk_model *model);
struct model_lane *hk_model_find_lane(struct hk_model *model, int64_t lane);
struct model_lane *hk_model_add_lane(struct hk_model *model, const char *relay, uint64_t lease_ms,
                                     struct hk_model_reply *out);
/* A row of outbox that cannot go. */
void hk_model_stick(struct hk_model *model, int64_t lane, struct model_row *row, const char *kind,
                    const struct hk_settle *s);
/* What the lane has in hand goes to retry. */
void hk_model_take_over(struct hk_model *model, int64_t lane);
bool hk_model_claim_of_lane(int64_t claim, int64_t lane);
int64_t hk_model_lane_of(int64_t claim);
unsigned hk_model_shard_of(const struct hk_model_msg *msg);
void hk_model_free_shards(struct hk_model *model, int64_t lane, uint32_t set);
/* What is in the tables, as a status would count it: behind them in the dump. */
void hk_model_dump_totals(const struct hk_model *model, struct hk_buf *out);
/* One row for each act of a person, or of a job or a relay in his place. */
void hk_model_audit(struct hk_model *model, const char *act, const char *m, const char *destination,
                    const char *actor);
void hk_model_drop_kept(struct hk_model *model);
/* Seats, as the exchange asks for them (model_seats.c). */
void hk_model_seat(struct hk_model *model, const struct hk_exchange *x, struct hk_model_reply *out);
/* Tokens for the exchange's quotas. */
void hk_model_grant(struct hk_model *model, const struct hk_exchange *x, struct hk_model_reply *out);
void hk_model_text(char out[HK_MODEL_TEXT], struct hk_str text);
struct model_row *hk_model_find(struct model_rows *rows, int64_t id);
void hk_model_circuit(struct hk_model *model, const char *destination, int64_t open_until_ms);
/* For how long the destination has been paused, in all. */
int64_t hk_model_paused_ms(const struct hk_model *model, const char *destination);
/* A row's destination as it stands there. */
const char *hk_model_dest_of(enum hk_source source, const struct model_row *row);
struct model_row *hk_model_add_retry(struct hk_model *model, const struct hk_model_msg *msg,
                                     struct hk_str destination);
void hk_model_log(struct hk_model *model, struct hk_event_line line);
void hk_model_log_row(struct hk_model *model, enum hk_source source, const struct model_row *row,
                      struct hk_event_line line);
/* Memory that goes with the reply. */
void *hk_model_reply_alloc(struct hk_model_reply *reply, size_t bytes);
struct hk_str hk_model_reply_text(struct hk_model_reply *reply, const char *text);

#endif
