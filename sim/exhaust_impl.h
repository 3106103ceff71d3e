/* SPDX-License-Identifier: Apache-2.0 */
/* The little world of exhaustive mode, shared by the files that run it, hash it and search it. */
#ifndef HK_SIM_EXHAUST_IMPL_H
#define HK_SIM_EXHAUST_IMPL_H

#include "canon.h"
#include "checker.h"
#include "core/engine.h"
#include "model_store.h"
#include "observe/eventlog.h"

enum {
    RELAYS = 2,
    MESSAGES_MAX = 2,
    CONCURRENCY = 2,
    WIRES = 3 * CONCURRENCY, /* one for each slot of an engine: twice what it sends at once, and a batch */
    TAPE_MAX = 4096,
    MOVES_MAX = 2000,
    LEASE_MS = 1000,
    TIMEOUT_MS = 100
};

/* What was decided, and among how many. */
struct tape {
    uint8_t value[TAPE_MAX], options[TAPE_MAX];
    size_t len, at;
};

enum stage {
    IDLE,    /* waits for its timer */
    ASKED,   /* a store call is on its way */
    DONE,    /* … had its effect */
    SENT,    /* a request is on its way */
    RECEIVED /* … has arrived */
};

enum end {
    END_OK,
    END_REFUSED,
    END_LOST
};

/* A request, by the number of its slot. */
struct wire {
    enum stage stage; /* IDLE, SENT, RECEIVED */
    struct hk_event_line line;
    enum end end;
    bool aborted;
};

struct mini_relay {
    char name[8];
    struct hk_engine *engine;
    bool stopped;
    int64_t wake_ms;
    struct hk_model_handle handle;
    enum stage store; /* IDLE, ASKED, DONE */
    struct hk_action call;
    struct hk_model_reply reply;
    struct wire wires[WIRES];
};

struct mini {
    struct tape *tape;
    struct mini_relay relays[RELAYS];
    struct hk_model *model;
    struct hk_buf *log;   /* what the checker was not told yet */
    struct hk_buf *story; /* all of it; NULL = nobody wants it */
    struct checker *checker;
    struct hk_engine_options options;
    struct hk_model_msg msgs[MESSAGES_MAX];
    size_t n_msgs, n_committed;
    int64_t now_ms;
    unsigned faults; /* that may still strike */
    size_t moves;
    const char *wrong; /* it came to no end, or did what no world should; NULL = all is well so far */
};

/* exhaust_world.c */
void hk_mini_begin(struct mini *w);
bool hk_mini_is_over(const struct mini *w);
void hk_mini_step(struct mini *w);
void hk_mini_end(struct mini *w);
/* Hands the checker what was logged since. */
void hk_mini_judge(struct mini *w);
void hk_mini_fini(struct mini *w);

/* exhaust_state.c: what the future of the world, and of the checker's opinion, depends on. */
struct hk_hash128 hk_mini_hash(const struct mini *w, struct hk_canon *canon);

/* exhaust.c: one of `n`; 0 is what happens when nothing is wrong. */
unsigned hk_mini_choose(struct mini *w, unsigned n);

#endif
