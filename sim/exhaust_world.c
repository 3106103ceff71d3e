/* SPDX-License-Identifier: Apache-2.0 */
/* The little world: two relays that run the very engine, one store, one destination, one or two messages of one key.
 * Nothing here is random: whatever could go one way or another is asked of the tape.
 *
 * A move is: the store call takes effect, its reply arrives, the request arrives, its answer arrives. Calls that only read
 * (poll, scan, held keys, asking for a lane while another lives) are one move, effect and reply, and no fault strikes there
 * by itself: the same process is met by the same fault at its next call, with the same in hand or more. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "exhaust_impl.h"

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
    r->store = IDLE;
    for (int i = 0; i < WIRES; i++)
        r->wires[i].stage = IDLE;
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

static void start_request(struct mini *w, struct mini_relay *r, const struct hk_action *a)
{
    struct wire *wire = &r->wires[a->slot];
    size_t m = 0;
    while (m < w->n_msgs && !hk_str_eq(hk_str_of(w->msgs[m].message_id), a->message->message_id))
        m++;
    if (m == w->n_msgs || a->slot >= WIRES || wire->stage != IDLE) {
        w->wrong = "a message is sent that nobody wrote, or from a slot that is sending";
        return;
    }
    *wire = (struct wire){.stage = SENT};
    wire->line = (struct hk_event_line){.ev = HK_LOG_SEND,
                                        .m = hk_str_of(w->msgs[m].message_id),
                                        .dest = hk_str_of("d"),
                                        .relay = hk_str_of(r->name),
                                        .source = a->message->source == HK_FROM_RETRY ? 'r' : 'o',
                                        .id = a->message->id,
                                        .lane = a->lane,
                                        .claim = a->claim,
                                        .life = a->message->life,
                                        .attempt = a->attempt};
    log_line(w, wire->line);
}

/* Asks the engine until it waits; store calls and requests start here and go on as moves. */
static void run_engine(struct mini *w, struct mini_relay *r)
{
    struct hk_action a;
    r->wake_ms = INT64_MAX;
    while (!w->wrong) {
        hk_engine_next(r->engine, w->now_ms, &a);
        switch (a.kind) {
        case HK_ACT_WAIT:
            r->wake_ms = a.wake_ms;
            return;
        case HK_ACT_SEND:
            start_request(w, r, &a);
            break;
        case HK_ACT_ABORT:
            for (int i = 0; i < WIRES; i++)
                r->wires[i].aborted = true;
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
        hk_engine_on_scan(r->engine, w->now_ms, got.rc, &r->call.purpose, &got.heads);
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

static void receive(struct mini *w, struct wire *wire)
{
    wire->stage = RECEIVED;
    log_line(w, (struct hk_event_line){.ev = HK_LOG_RECV,
                                       .m = wire->line.m,
                                       .dest = wire->line.dest,
                                       .hash = w->msgs[0].hash,
                                       .status = wire->end == END_REFUSED ? 503 : 200,
                                       .acted = wire->end != END_REFUSED});
}

static void answer(struct mini *w, struct mini_relay *r, uint32_t slot)
{
    struct wire *wire = &r->wires[slot];
    struct hk_outcome outcome = {.facts = {.fault = HK_FAULT_NONE}};
    if (wire->aborted) {
        outcome.facts = (struct hk_facts){.fault = HK_FAULT_LOCAL, .possibly_delivered = true};
    } else if (wire->end == END_LOST) {
        outcome.facts = (struct hk_facts){.fault = HK_FAULT_RESET, .possibly_delivered = true};
    } else {
        outcome.facts.status = wire->end == END_OK ? 200 : 503;
    }
    wire->stage = IDLE;
    struct hk_event_line line = wire->line;
    line.ev = outcome.facts.status == 200 ? HK_LOG_CONFIRM : HK_LOG_FAIL;
    line.kind = hk_str_of(outcome.facts.fault == HK_FAULT_LOCAL ? "local" : "");
    line.status = outcome.facts.status;
    line.maybe = outcome.facts.possibly_delivered;
    log_line(w, line);
    hk_engine_on_outcome(r->engine, w->now_ms, slot, &outcome);
    run_engine(w, r);
}

/* ---- moves ---- */

enum move_kind {
    NO_MOVE,
    WAKE,
    KNOCK, /* asks for a lane while another one lives */
    LOOK,  /* a call that only reads */
    EFFECT,
    REPLY,
    RECEIVE,
    ANSWER
};

struct move {
    enum move_kind kind;
    uint32_t slot; /* RECEIVE, ANSWER */
};

static bool only_reads(enum hk_action_kind kind)
{
    return kind == HK_ACT_POLL || kind == HK_ACT_SCAN || kind == HK_ACT_HELD_KEYS;
}

static enum move_kind store_move(const struct mini *w, const struct mini_relay *r)
{
    if (r->store == ASKED && r->call.kind == HK_ACT_ACQUIRE && hk_model_lane_lives(w->model))
        return KNOCK;
    if (r->store == ASKED)
        return only_reads(r->call.kind) ? LOOK : EFFECT;
    return r->store == DONE ? REPLY : NO_MOVE;
}

/* What a relay that runs does next. With a request under way and a store call, too, either may come first. */
static struct move next_move(struct mini *w, const struct mini_relay *r)
{
    if (r->stopped)
        return (struct move){NO_MOVE, 0};
    enum move_kind store = store_move(w, r);
    for (uint32_t i = 0; i < WIRES; i++)
        if (r->wires[i].stage != IDLE && !(store != NO_MOVE && w->n_msgs > 1 && hk_mini_choose(w, 2)))
            return (struct move){r->wires[i].stage == SENT ? RECEIVE : ANSWER, i};
    if (store != NO_MOVE)
        return (struct move){store, 0};
    return (struct move){r->wake_ms <= w->now_ms ? WAKE : NO_MOVE, 0};
}

/* True: a fault struck, and the move does not take place. */
static bool struck(struct mini *w, struct mini_relay *r, struct move move)
{
    static const unsigned ways[] = {[EFFECT] = 4, [REPLY] = 3, [RECEIVE] = 5, [ANSWER] = 3};
    if (w->faults == 0 || !ways[move.kind])
        return false;
    unsigned fault = hk_mini_choose(w, ways[move.kind]);
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
    if (move.kind == EFFECT) {
        r->store = DONE;
        r->reply.rc = HK_UNAVAILABLE;
        return true;
    }
    r->wires[move.slot].end = fault == 3 ? END_REFUSED : END_LOST;
    return false;
}

static void make_move(struct mini *w, struct mini_relay *r, struct move move)
{
    if (struck(w, r, move))
        return;
    switch (move.kind) {
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
        receive(w, &r->wires[move.slot]);
        break;
    case ANSWER:
        answer(w, r, move.slot);
        break;
    }
}

static bool busy(const struct mini_relay *r)
{
    bool any = r->store != IDLE;
    for (int i = 0; i < WIRES; i++)
        any |= r->wires[i].stage != IDLE;
    return any;
}

static void wake_up(struct mini *w, struct mini_relay *r)
{
    r->stopped = false;
    log_process(w, r, HK_LOG_CONT);
    if (r->wake_ms <= w->now_ms)
        r->wake_ms = w->now_ms;
    if (!busy(r))
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
        if (r->stopped && (forced || hk_mini_choose(w, 2) == 1))
            wake_up(w, r);
    }
}

static bool anybody_stopped(const struct mini *w)
{
    return w->relays[0].stopped || w->relays[1].stopped;
}

static bool blocks(void *arg, const char *dest)
{
    (void)arg;
    (void)dest;
    return true;
}

/* What is committed has come to its end, or waits behind a dead head for ever. */
static bool at_rest(const struct mini *w)
{
    size_t live = hk_model_live(w->model);
    return live == 0 || live == hk_model_excused(w->model, INT64_MAX, blocks, NULL);
}

bool hk_mini_is_over(const struct mini *w)
{
    return w->n_committed == w->n_msgs && at_rest(w) && !busy(&w->relays[0]) && !busy(&w->relays[1]) &&
           !anybody_stopped(w);
}

/* ---- the application ---- */

static void commit_next(struct mini *w)
{
    hk_model_commit(w->model, hk_model_insert(w->model, &w->msgs[w->n_committed++]));
}

/* The second message may be committed at any time. Only polls and scans can tell when it was: so it is asked before each
 * of those, and when all else is over. */
static void maybe_commit(struct mini *w, const struct mini_relay *r, struct move move)
{
    bool told = move.kind == LOOK && (r->call.kind == HK_ACT_POLL || r->call.kind == HK_ACT_SCAN);
    if (w->n_committed < w->n_msgs && told && hk_mini_choose(w, 2) == 1)
        commit_next(w);
}

/* ---- one after the other ---- */

/* Moves that touch nothing the other relay sees are made at once: their order makes no difference. Of two that do, the
 * tape says which comes first; of two that only look, none need. */
static size_t whose_turn(struct mini *w, const struct move moves[RELAYS])
{
    static const bool shared[] = {[LOOK] = true, [EFFECT] = true, [ANSWER] = false};
    for (size_t i = 0; i < RELAYS; i++)
        if (moves[i].kind == NO_MOVE)
            return 1 - i;
    for (size_t i = 0; i < RELAYS; i++)
        if (!shared[moves[i].kind])
            return i;
    return moves[0].kind == LOOK && moves[1].kind == LOOK ? 0 : hk_mini_choose(w, 2);
}

static void nobody_moves(struct mini *w)
{
    if (at_rest(w) && w->n_committed < w->n_msgs)
        commit_next(w);
    else if (anybody_stopped(w) && (at_rest(w) || !pass_time(w)))
        maybe_wake_up(w, true);
    else if (!anybody_stopped(w) && !pass_time(w))
        w->wrong = "nothing more happens";
}

void hk_mini_step(struct mini *w)
{
    struct move moves[RELAYS] = {next_move(w, &w->relays[0]), next_move(w, &w->relays[1])};

    size_t who = whose_turn(w, moves);
    struct move made = moves[who];
    if (made.kind == NO_MOVE) {
        nobody_moves(w);
    } else {
        maybe_commit(w, &w->relays[who], made);
        make_move(w, &w->relays[who], made);
        bool seen = made.kind == EFFECT || made.kind == RECEIVE;
        if (seen && anybody_stopped(w) && !w->relays[who].stopped)
            maybe_wake_up(w, false);
    }
    if (++w->moves > MOVES_MAX)
        w->wrong = "came to no end";
    if (hk_model_complaint(w->model))
        w->wrong = hk_model_complaint(w->model);
    for (int i = 0; i < RELAYS; i++)
        if (hk_engine_stats(w->relays[i].engine)->swept)
            w->wrong = "a row was left to the sweep";
    hk_mini_judge(w);
}

void hk_mini_judge(struct mini *w)
{
    hk_checker_log(w->checker, hk_buf_str(w->log));
    if (w->story)
        (void)hk_buf_addf(w->story, "%s", hk_buf_cstr(w->log));
    hk_buf_reset(w->log);
}

void hk_mini_begin(struct mini *w)
{
    log_line(w,
             (struct hk_event_line){.ev = HK_LOG_DEST, .dest = hk_str_of("d"), .kind = hk_str_of("block")});
    commit_next(w);
    w->now_ms++; /* whatever is committed later, is */
    for (int i = 0; i < RELAYS; i++)
        start(w, &w->relays[i]);
    w->relays[1].wake_ms++; /* they are alike: that "a" comes first leaves nothing out */
    hk_mini_judge(w);
}

void hk_mini_end(struct mini *w)
{
    log_line(w, (struct hk_event_line){.ev = HK_LOG_HEAL});
    log_line(w, (struct hk_event_line){.ev = HK_LOG_END});
    hk_mini_judge(w);
}

void hk_mini_fini(struct mini *w)
{
    for (int i = 0; i < RELAYS; i++) {
        hk_engine_free(w->relays[i].engine);
        hk_model_reply_free(&w->relays[i].reply);
    }
    hk_model_free(w->model);
    hk_checker_free(w->checker);
}
