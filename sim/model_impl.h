/* SPDX-License-Identifier: Apache-2.0 */
/* The modelled tables, shared by the files that read, exchange and dump them. */
#ifndef HK_SIM_MODEL_IMPL_H
#define HK_SIM_MODEL_IMPL_H

#include "model_store.h"
#include "observe/eventlog.h"

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
    /* outbox_retry only */
    char destination[HK_MODEL_TEXT];
    int64_t due_ms;
    bool deferred;
    uint32_t crashes, life;
    size_t letter; /* index + 1; 0 = none */
    struct hk_history history;
    int64_t paused_mark_ms; /* for how long its destination had been paused, at the first failure */
    int64_t first_failed_ms;
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

struct model_letter {
    const struct hk_model_msg *msg;
    char destination[HK_MODEL_TEXT], reason[HK_REASON_MAX];
    enum letter_status status;
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
    bool dead; /* its process is known to be gone */
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
    int64_t next_outbox, next_retry, next_lane, next_claim;
    uint64_t version; /* one more with every commit that others can see */
    int64_t acts;     /* of operators */
    char complaint[128];
};

/* Makes room for one more; the simulator does not survive without memory. */
void *hk_model_grow(void *items, size_t n, size_t *room, size_t bytes);
#define MODEL_PUSH(vec)                                                                                      \
    ((vec).items = hk_model_grow((vec).items, (vec).n, &(vec).room, sizeof *(vec).items),                    \
     &(vec).items[(vec).n++])

int64_t hk_model_now(const struct hk_model *model);
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
