/* SPDX-License-Identifier: Apache-2.0 */
/* Exhaustive mode. Every decision of the little world (which of two relays moves first, whether a fault strikes here and
 * which, when a stopped process wakes) is read from a tape; when a run is over, the last decision that has another value
 * left takes it, and the world starts anew. So every path is walked once, depth first, and what is printed is not "none
 * found" but "none exists", within these bounds:
 *
 *   1 message, at most 3 attempts; 2 relays, one live lane; at most N faults, each any of: crash before a move, stop before
 *   a move (any of the other's moves, and the lease's end, may come before it wakes), the store refuses, the destination
 *   refuses, the destination acts but its answer is lost. A move is: the store call takes effect, its reply arrives, the
 *   request arrives, its answer arrives.
 *
 * Calls that only read (poll, scan, held keys, asking for a lane while another lives) are one move, effect and reply, and no fault strikes there by itself: the
 * same process is met by the same fault at its next call, with the same in hand or more. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "checker.h"
#include "core/engine.h"
#include "exhaust.h"
#include "model_store.h"
#include "observe/eventlog.h"

enum {
    RELAYS = 2,
    TAPE_MAX = 512,
    MOVES_MAX = 2000,
    LEASE_MS = 1000,
    TIMEOUT_MS = 100,
    LOG_MAX = 1 << 20
};

/* ---- the tape ---- */

struct tape {
    uint8_t value[TAPE_MAX], options[TAPE_MAX];
    size_t len, at;
};

/* One of `n`; 0 is what happens when nothing is wrong. */
static unsigned choose(struct tape *tape, unsigned n)
{
    if (n < 2)
        return 0;
    if (tape->at == TAPE_MAX)
        abort();
    if (tape->at == tape->len) {
        tape->value[tape->len] = 0;
        tape->options[tape->len++] = (uint8_t)n;
    }
    return tape->value[tape->at++];
}

/* The next path; false: that was the last one. */
static bool rewind_tape(struct tape *tape)
{
    tape->len = tape->at;
    tape->at = 0;
    while (tape->len && tape->value[tape->len - 1] + 1 == tape->options[tape->len - 1])
        tape->len--;
    if (!tape->len)
        return false;
    tape->value[tape->len - 1]++;
    return true;
}

/* ---- the little world ---- */

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

struct mini_relay {
    char name[8];
    struct hk_engine *engine;
    bool stopped;
    int64_t wake_ms, lane;
    struct hk_model_handle handle;
    enum stage store, wire; /* IDLE, ASKED, DONE; IDLE, SENT, RECEIVED */
    struct hk_action call, request;
    struct hk_model_reply reply;
    struct hk_event_line line;
    enum end end;
    bool aborted;
};

struct mini {
    struct tape *tape;
    struct mini_relay relays[RELAYS];
    struct hk_model *model;
    struct hk_buf *log;
    struct hk_engine_options options;
    struct hk_model_msg msg;
    int64_t now_ms;
    unsigned faults;
    size_t moves;
    bool wrong; /* came to no end */
};

static int64_t store_now(void *arg)
{
    return ((struct mini *)arg)->now_ms;
}

static void log_line(struct mini *w, struct hk_event_line line)
{
    line.t = w->now_ms;
    hk_eventlog_add(w->log, &line);
}

static void log_process(struct mini *w, const struct mini_relay *r, enum hk_logged ev)
{
    log_line(w, (struct hk_event_line){.ev = ev, .relay = hk_str_of(r->name)});
}

static void start(struct mini *w, struct mini_relay *r)
{
    struct hk_err err;
    if (hk_engine_new(&w->options, w->now_ms, &r->engine, &err) != HK_OK)
        abort();
    r->handle = (struct hk_model_handle){.polled = false};
    r->wake_ms = w->now_ms;
    r->store = r->wire = IDLE;
    log_process(w, r, HK_LOG_START);
}

static void crash(struct mini *w, struct mini_relay *r)
{
    log_process(w, r, HK_LOG_CRASH);
    hk_engine_free(r->engine);
    hk_model_reply_free(&r->reply);
    start(w, r);
}

/* ---- doing what the engine says ---- */

static void send_line(struct mini *w, struct mini_relay *r, const struct hk_action *a)
{
    r->line = (struct hk_event_line){.ev = HK_LOG_SEND,
                                     .m = hk_str_of(w->msg.message_id),
                                     .dest = hk_str_of("d"),
                                     .relay = hk_str_of(r->name),
                                     .source = a->message->source == HK_FROM_RETRY ? 'r' : 'o',
                                     .id = a->message->id,
                                     .lane = a->lane,
                                     .claim = a->claim,
                                     .life = a->message->life,
                                     .attempt = a->attempt};
    log_line(w, r->line);
}

/* Asks the engine until it waits; store calls and requests start here and go on as moves. */
static void run_engine(struct mini *w, struct mini_relay *r)
{
    struct hk_action a;
    r->wake_ms = INT64_MAX;
    for (;;) {
        hk_engine_next(r->engine, w->now_ms, &a);
        switch (a.kind) {
        case HK_ACT_WAIT:
            r->wake_ms = a.wake_ms;
            return;
        case HK_ACT_SEND:
            r->wire = SENT;
            r->request = a;
            r->aborted = false;
            send_line(w, r, &a);
            break;
        case HK_ACT_ABORT:
            r->aborted = true;
            break;
        case HK_ACT_ACQUIRE:
        case HK_ACT_POLL:
        case HK_ACT_HELD_KEYS:
        case HK_ACT_SCAN:
        case HK_ACT_EXCHANGE:
        case HK_ACT_PAUSE:
        case HK_ACT_RELEASE:
            r->store = ASKED;
            r->call = a;
            break;
        case HK_ACT_STOPPED:
            abort();
        }
    }
}

static void apply(struct mini *w, struct mini_relay *r)
{
    r->store = DONE;
    switch (r->call.kind) {
    case HK_ACT_ACQUIRE:
        hk_model_acquire(w->model, r->name, LEASE_MS, &r->reply);
        break;
    case HK_ACT_POLL:
        hk_model_poll(w->model, &r->handle, &r->reply);
        break;
    case HK_ACT_HELD_KEYS:
        hk_model_held_keys(w->model, &r->handle, &r->reply);
        break;
    case HK_ACT_SCAN:
        hk_model_scan(w->model, &r->handle, &r->call.scan, &r->reply);
        break;
    case HK_ACT_EXCHANGE:
        hk_model_exchange(w->model, &r->handle, &r->call.exchange, &r->reply);
        break;
    default:
        abort();
    }
}

static void reply(struct mini *w, struct mini_relay *r)
{
    struct hk_model_reply got = r->reply;
    r->reply = (struct hk_model_reply){.rc = HK_OK};
    r->store = IDLE;
    switch (r->call.kind) {
    case HK_ACT_ACQUIRE:
        hk_engine_on_acquired(r->engine, w->now_ms, got.rc, got.lane, got.now_ms);
        break;
    case HK_ACT_POLL:
        hk_engine_on_poll(r->engine, w->now_ms, got.rc, &got.poll);
        break;
    case HK_ACT_HELD_KEYS:
        hk_engine_on_held_keys(r->engine, w->now_ms, got.rc, got.keys, got.n_keys);
        break;
    case HK_ACT_SCAN:
        hk_engine_on_scan(r->engine, w->now_ms, got.rc, &got.heads);
        break;
    case HK_ACT_EXCHANGE:
        hk_engine_on_exchange(r->engine, w->now_ms, got.rc, &got.exchanged);
        break;
    default:
        abort();
    }
    hk_model_reply_free(&got);
    run_engine(w, r);
}

static void receive(struct mini *w, struct mini_relay *r)
{
    r->wire = RECEIVED;
    log_line(w, (struct hk_event_line){.ev = HK_LOG_RECV,
                                       .m = r->line.m,
                                       .dest = r->line.dest,
                                       .hash = w->msg.hash,
                                       .status = r->end == END_REFUSED ? 503 : 200,
                                       .acted = r->end != END_REFUSED});
}

static void answer(struct mini *w, struct mini_relay *r)
{
    struct hk_sent sent = {.facts = {.fault = HK_FAULT_NONE}};
    if (r->aborted) {
        sent.facts = (struct hk_facts){.fault = HK_FAULT_LOCAL, .possibly_delivered = true};
    } else if (r->end == END_LOST) {
        sent.facts = (struct hk_facts){.fault = HK_FAULT_RESET, .possibly_delivered = true};
    } else {
        sent.facts.status = r->end == END_OK ? 200 : 503;
    }
    r->wire = IDLE;
    struct hk_event_line line = r->line;
    line.ev = sent.facts.status == 200 ? HK_LOG_CONFIRM : HK_LOG_FAIL;
    line.status = sent.facts.status;
    line.maybe = sent.facts.possibly_delivered;
    log_line(w, line);
    hk_engine_on_sent(r->engine, w->now_ms, r->request.slot, &sent);
    run_engine(w, r);
}

/* ---- moves ---- */

enum move {
    NO_MOVE,
    WAKE,
    KNOCK, /* asks for a lane while another one lives */
    LOOK,  /* a call that only reads */
    EFFECT,
    REPLY,
    RECEIVE,
    ANSWER
};

static bool only_reads(enum hk_action_kind kind)
{
    return kind == HK_ACT_POLL || kind == HK_ACT_SCAN || kind == HK_ACT_HELD_KEYS;
}

/* What a relay that runs would do next; requests before store calls is as good as any order, for one message. */
static enum move next_move(const struct mini *w, const struct mini_relay *r)
{
    if (r->stopped)
        return NO_MOVE;
    if (r->wire == SENT)
        return RECEIVE;
    if (r->wire == RECEIVED)
        return ANSWER;
    if (r->store == ASKED && r->call.kind == HK_ACT_ACQUIRE && hk_model_lane_lives(w->model))
        return KNOCK;
    if (r->store == ASKED)
        return only_reads(r->call.kind) ? LOOK : EFFECT;
    if (r->store == DONE)
        return REPLY;
    return r->wake_ms <= w->now_ms ? WAKE : NO_MOVE;
}

/* True: a fault struck, and the move does not take place. */
static bool struck(struct mini *w, struct mini_relay *r, enum move move)
{
    if (w->faults == 0 || move == WAKE || move == KNOCK || move == LOOK)
        return false;
    unsigned fault = choose(w->tape, move == EFFECT || move == RECEIVE ? (move == RECEIVE ? 5 : 4) : 3);
    if (fault == 0)
        return false;
    w->faults--;
    if (fault == 1) {
        crash(w, r);
        return true;
    }
    if (fault == 2) {
        r->stopped = true;
        log_process(w, r, HK_LOG_STOP);
        return true;
    }
    if (move == EFFECT) {
        r->store = DONE;
        r->reply.rc = HK_UNAVAILABLE;
        return true;
    }
    r->end = fault == 3 ? END_REFUSED : END_LOST;
    return false;
}

static void make_move(struct mini *w, struct mini_relay *r, enum move move)
{
    if (move == RECEIVE)
        r->end = END_OK;
    if (struck(w, r, move))
        return;
    switch (move) {
    case NO_MOVE:
        break;
    case WAKE:
        run_engine(w, r);
        break;
    case KNOCK:
    case LOOK:
        apply(w, r);
        reply(w, r);
        break;
    case EFFECT:
        apply(w, r);
        break;
    case REPLY:
        reply(w, r);
        break;
    case RECEIVE:
        receive(w, r);
        break;
    case ANSWER:
        answer(w, r);
        break;
    }
}

static void wake_up(struct mini *w, struct mini_relay *r)
{
    r->stopped = false;
    log_process(w, r, HK_LOG_CONT);
    if (r->wake_ms <= w->now_ms)
        r->wake_ms = w->now_ms;
    if (r->wire == IDLE && r->store == IDLE)
        run_engine(w, r);
}

/* Only the timer of somebody who runs makes time pass. False: nobody has one. */
static bool pass_time(struct mini *w)
{
    int64_t next = INT64_MAX;
    for (int i = 0; i < RELAYS; i++)
        if (!w->relays[i].stopped && w->relays[i].wake_ms < next)
            next = w->relays[i].wake_ms;
    if (next == INT64_MAX)
        return false;
    w->now_ms = next > w->now_ms ? next : w->now_ms;
    return true;
}

/* May somebody who is stopped wake now? After each move of another that others can see, and when time has passed. */
static void maybe_wake_up(struct mini *w, bool forced)
{
    for (int i = 0; i < RELAYS; i++) {
        struct mini_relay *r = &w->relays[i];
        if (r->stopped && (forced || choose(w->tape, 2) == 1))
            wake_up(w, r);
    }
}

static bool anybody_stopped(const struct mini *w)
{
    return w->relays[0].stopped || w->relays[1].stopped;
}

static bool busy(const struct mini_relay *r)
{
    return r->wire != IDLE || r->store != IDLE;
}

/* The message has come to its end, and nobody has anything left that speaks of it. */
static bool is_over(const struct mini *w)
{
    return hk_model_live(w->model) == 0 && !busy(&w->relays[0]) && !busy(&w->relays[1]) &&
           !anybody_stopped(w);
}

/* Moves that touch nothing the other relay sees are made at once: their order makes no difference. Of two that do, the
 * tape says which comes first; of two that only look, none need. */
static size_t whose_turn(const struct mini *w, const enum move moves[RELAYS])
{
    static const bool shared[] = {[LOOK] = true, [EFFECT] = true, [ANSWER] = false};
    for (size_t i = 0; i < RELAYS; i++)
        if (moves[i] == NO_MOVE)
            return 1 - i;
    for (size_t i = 0; i < RELAYS; i++)
        if (!shared[moves[i]])
            return i;
    return moves[0] == LOOK && moves[1] == LOOK ? 0 : choose(w->tape, 2);
}

static void step(struct mini *w)
{
    enum move moves[RELAYS] = {next_move(w, &w->relays[0]), next_move(w, &w->relays[1])};

    size_t who = whose_turn(w, moves);
    if (moves[who] == NO_MOVE) {
        bool rest = hk_model_live(w->model) == 0;
        if (anybody_stopped(w) && (rest || !pass_time(w)))
            maybe_wake_up(w, true);
        else if (!anybody_stopped(w) && !pass_time(w))
            w->wrong = true;
        return;
    }
    enum move made = moves[who];
    bool seen = made == EFFECT || made == RECEIVE;
    make_move(w, &w->relays[who], made);
    if (seen && anybody_stopped(w) && !w->relays[who].stopped)
        maybe_wake_up(w, false);
}

static void run(struct mini *w)
{
    log_line(w, (struct hk_event_line){.ev = HK_LOG_DEST, .dest = hk_str_of("d"), .kind = hk_str_of("none")});
    for (int i = 0; i < RELAYS; i++)
        start(w, &w->relays[i]);
    w->relays[1].wake_ms++; /* they are alike: that "a" comes first leaves nothing out */
    hk_model_commit(w->model, hk_model_insert(w->model, &w->msg));
    while (!w->wrong && !is_over(w)) {
        step(w);
        w->wrong |= ++w->moves > MOVES_MAX || hk_model_complaint(w->model);
    }
    log_line(w, (struct hk_event_line){.ev = HK_LOG_HEAL});
    log_line(w, (struct hk_event_line){.ev = HK_LOG_END});
}

/* ---- all paths ---- */

struct bench {
    struct hk_policy *policy;
    struct hk_engine_dest dest;
    struct hk_buf log, dump, report;
    uint64_t paths, moves;
    size_t longest;
};

static void make_policy(struct bench *b)
{
    struct hk_err err;
    if (hk_policy_new("standard", &b->policy, &err) != HK_OK)
        abort();
    struct hk_limits limits = *hk_policy_limits(b->policy);
    limits.max_attempts = 3;
    limits.timeout_ms = TIMEOUT_MS;
    struct hk_backoff backoff = {.kind = HK_BACKOFF_FIXED, .base_ms = 200, .cap_ms = 200};
    struct hk_jitter jitter = {.kind = HK_JITTER_NONE};
    if (hk_policy_set_limits(b->policy, &limits, &err) != HK_OK ||
        hk_policy_set_backoff(b->policy, &backoff, &jitter, &err) != HK_OK)
        abort();
    b->dest = (struct hk_engine_dest){.name = "d", .policy = b->policy};
}

static bool run_path(struct bench *b, struct tape *tape, unsigned faults)
{
    struct hk_check_options check_options = {.slack_ms = 0};
    struct hk_check_result check;
    struct mini w = {.tape = tape,
                     .log = &b->log,
                     .faults = faults,
                     .now_ms = 1000,
                     .options = {.dests = &b->dest,
                                 .n_dests = 1,
                                 .concurrency = 1,
                                 .batch = 1,
                                 .batch_bytes = 1000,
                                 .max_payload_bytes = 1000,
                                 .lease_ms = LEASE_MS,
                                 .poll_min_ms = 200,
                                 .poll_max_ms = 200},
                     .relays = {{.name = "a"}, {.name = "b"}},
                     .msg = {.message_id = "m",
                             .destination = "d",
                             .expected = "d",
                             .event_type = "e",
                             .max_logged = 3,
                             .payload = "x",
                             .payload_bytes = 1}};
    struct hk_model_options options = {.log = &b->log, .now_ms = store_now, .now_arg = &w};
    hk_buf_reset(&b->log);
    hk_buf_reset(&b->dump);
    hk_buf_reset(&b->report);
    w.model = hk_model_new(&options);
    run(&w);
    hk_model_dump(w.model, &b->dump);
    for (int i = 0; i < RELAYS; i++) {
        hk_engine_free(w.relays[i].engine);
        hk_model_reply_free(&w.relays[i].reply);
    }
    hk_model_free(w.model);
    b->paths++;
    b->moves += w.moves;
    if (w.moves > b->longest)
        b->longest = w.moves;
    hk_check(hk_buf_str(&b->log), hk_buf_str(&b->dump), &check_options, &b->report, &check);
    return !w.wrong && check.violations == 0;
}

static void print_counterexample(const struct bench *b, const struct tape *tape)
{
    (void)printf("a counterexample, path %" PRIu64 ":\n%s%s%stape:", b->paths, hk_buf_cstr(&b->log),
                 hk_buf_cstr(&b->dump), hk_buf_cstr(&b->report));
    for (size_t i = 0; i < tape->at; i++)
        (void)printf(" %d", tape->value[i]);
    (void)printf("\n");
}

int hk_exhaust(unsigned faults, const char *prefix)
{
    struct bench b = {.paths = 0};
    struct tape tape = {.len = 0};
    bool ok = true;
    make_policy(&b);
    hk_buf_init(&b.log, LOG_MAX);
    hk_buf_init(&b.dump, LOG_MAX);
    hk_buf_init(&b.report, LOG_MAX);
    do
        ok = run_path(&b, &tape, faults);
    while (ok && rewind_tape(&tape));
    if (!ok)
        print_counterexample(&b, &tape);
    (void)printf("%sexhaustive: 1 message, 2 relays, 3 attempts, %u faults: %" PRIu64 " paths, %" PRIu64
                 " moves, the longest %zu; %s\n",
                 prefix, faults, b.paths, b.moves, b.longest, ok ? "no counterexample exists" : "FAILED");
    hk_buf_fini(&b.log);
    hk_buf_fini(&b.dump);
    hk_buf_fini(&b.report);
    hk_policy_free(b.policy);
    return ok ? 0 : 1;
}
