/* SPDX-License-Identifier: Apache-2.0 */
/* The modelled tables: making them, what applications and operators do, lanes, and what a dump shows. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "model_impl.h"

/* ---- memory ---- */

void *hk_model_grow(void *items, size_t n, size_t *room, size_t bytes)
{
    if (n < *room)
        return items;
    *room = *room ? *room * 2 : 16;
    void *bigger = realloc(items, *room * bytes);
    if (!bigger)
        abort();
    return bigger;
}

void *hk_model_reply_alloc(struct hk_model_reply *reply, size_t bytes)
{
    reply->blocks = hk_model_grow(reply->blocks, reply->n_blocks, &reply->room_blocks, sizeof *reply->blocks);
    void *block = calloc(1, bytes ? bytes : 1);
    if (!block)
        abort();
    reply->blocks[reply->n_blocks++] = block;
    return block;
}

struct hk_str hk_model_reply_text(struct hk_model_reply *reply, const char *text)
{
    size_t len = strlen(text);
    char *copy = hk_model_reply_alloc(reply, len + 1);
    memcpy(copy, text, len);
    return (struct hk_str){copy, len};
}

void hk_model_reply_free(struct hk_model_reply *reply)
{
    for (size_t i = 0; i < reply->n_blocks; i++)
        free(reply->blocks[i]);
    free(reply->blocks);
    *reply = (struct hk_model_reply){.rc = HK_OK};
}

/* ---- making ---- */

struct hk_model *hk_model_new(const struct hk_model_options *options)
{
    struct hk_model *model = calloc(1, sizeof *model);
    if (!model)
        abort();
    model->options = *options;
    model->next_outbox = options->first_id ? options->first_id : 1;
    model->next_retry = model->next_lane = model->next_claim = 1;
    return model;
}

void hk_model_free(struct hk_model *model)
{
    if (!model)
        return;
    hk_model_drop_kept(model);
    void *blocks[] = {model->outbox.items,   model->retry.items, model->letters.items, model->ends.items,
                      model->attempts.items, model->lanes.items, model->paused.items,  model->buckets.items,
                      model->audit.items,    model->jobs.items,  model->seats.items};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        free(blocks[i]);
    for (size_t i = 0; i < model->versions.n; i++)
        free(model->versions.items[i]);
    free(model->versions.items);
    free(model);
}

int64_t hk_model_now(const struct hk_model *model)
{
    return model->options.now_ms(model->options.now_arg);
}

int64_t hk_model_clock(const struct hk_model *model)
{
    int64_t now_ms = hk_model_now(model);
    int64_t clock_ms = model->options.clock_ms ? model->options.clock_ms(model->options.now_arg) : now_ms;
    return clock_ms < now_ms ? clock_ms : now_ms;
}

int64_t hk_model_due_now(const struct hk_model *model)
{
    return model->options.many ? hk_model_clock(model) : hk_model_now(model);
}

void hk_model_text(char out[HK_MODEL_TEXT], struct hk_str text)
{
    if (!hk_str_copy(out, HK_MODEL_TEXT, text))
        abort();
}

const char *hk_model_complaint(const struct hk_model *model)
{
    return model->complaint[0] ? model->complaint : NULL;
}

/* ---- the log ---- */

void hk_model_log(struct hk_model *model, struct hk_event_line line)
{
    line.t = hk_model_now(model);
    line.behind = line.t - hk_model_clock(model);
    hk_eventlog_add(model->options.log, &line);
}

const char *hk_model_dest_of(enum hk_source source, const struct model_row *row)
{
    return source == HK_FROM_RETRY ? row->destination : row->msg->destination;
}

void hk_model_log_row(struct hk_model *model, enum hk_source source, const struct model_row *row,
                      struct hk_event_line line)
{
    line.m = hk_str_of(row->msg->message_id);
    if (!line.dest.ptr)
        line.dest = hk_str_of(hk_model_dest_of(source, row));
    line.source = source == HK_FROM_RETRY ? 'r' : 'o';
    line.id = row->id;
    line.life = row->life;
    hk_model_log(model, line);
}

/* ---- rows ---- */

struct model_row *hk_model_find(struct model_rows *rows, int64_t id)
{
    for (size_t i = 0; i < rows->n; i++)
        if (rows->items[i].id == id && rows->items[i].numbered && !rows->items[i].gone)
            return &rows->items[i];
    return NULL;
}

struct model_row *hk_model_add_retry(struct hk_model *model, const struct hk_model_msg *msg,
                                     struct hk_str destination)
{
    struct model_row *row = MODEL_PUSH(model->retry);
    *row = (struct model_row){
        .id = model->next_retry++, .numbered = true, .msg = msg, .visible = true, .life = 1};
    hk_model_text(row->destination, destination);
    return row;
}

/* ---- applications ---- */

static void number(struct hk_model *model, struct model_row *row)
{
    row->id = model->next_outbox++;
    row->numbered = true;
}

size_t hk_model_insert(struct hk_model *model, const struct hk_model_msg *msg)
{
    struct model_row *row = MODEL_PUSH(model->outbox);
    *row = (struct model_row){.msg = msg, .life = 1, .began_ms = hk_model_now(model)};
    if (model->options.ids_at_insert)
        number(model, row);
    return model->outbox.n - 1;
}

void hk_model_commit(struct hk_model *model, size_t handle)
{
    struct model_row *row = &model->outbox.items[handle];
    const struct hk_model_msg *msg = row->msg;
    if (!row->numbered) {
        number(model, row);
        row->began_ms = hk_model_now(model); /* one writer at a time: it could not begin before */
    }
    row->visible = true;
    row->version = ++model->version;
    hk_model_log(model, (struct hk_event_line){.ev = HK_LOG_COMMIT,
                                               .m = hk_str_of(msg->message_id),
                                               .dest = hk_str_of(msg->expected),
                                               .key = hk_str_of(msg->key),
                                               .due = msg->not_before_ms,
                                               .expires = msg->expires_ms,
                                               .began = row->began_ms,
                                               .hash = msg->hash,
                                               .timeout = msg->timeout_logged,
                                               .max = msg->max_logged});
}

void hk_model_rollback(struct hk_model *model, size_t handle)
{
    struct model_row *row = &model->outbox.items[handle];
    row->gone = true;
    hk_model_log(model, (struct hk_event_line){.ev = HK_LOG_ROLLBACK, .m = hk_str_of(row->msg->message_id)});
}

/* ---- lanes ---- */

struct model_lane *hk_model_find_lane(struct hk_model *model, int64_t lane)
{
    for (size_t i = 0; i < model->lanes.n; i++)
        if (model->lanes.items[i].lane == lane)
            return &model->lanes.items[i];
    return NULL;
}

/* A claim tells in its lower bits whose it is. */
int64_t hk_model_lane_of(int64_t claim)
{
    return claim & ((1 << HK_MODEL_LANE_BITS) - 1);
}

bool hk_model_claim_of_lane(int64_t claim, int64_t lane)
{
    return claim && hk_model_lane_of(claim) == lane;
}

/* Its relay died with it: a line in the history, which counts as no attempt. */
static void add_trace(struct hk_model *model, enum hk_source source, const struct model_row *row)
{
    struct model_attempt *attempt = MODEL_PUSH(model->attempts);
    *attempt = (struct model_attempt){.msg = row->msg, .life = row->life};
    hk_model_text(attempt->destination, hk_str_of(hk_model_dest_of(source, row)));
}

static void orphan_outbox(struct hk_model *model, size_t i)
{
    struct model_row old = model->outbox.items[i];
    if (old.msg->stuck) { /* nor can it go to retry */
        hk_model_stick(
            model, hk_model_lane_of(old.claim), &model->outbox.items[i], "orphan",
            &(struct hk_settle){.kind = HK_SETTLE_RETRY, .destination = hk_str_of(old.msg->destination)});
        return;
    }
    add_trace(model, HK_FROM_OUTBOX, &old);
    hk_model_log_row(
        model, HK_FROM_OUTBOX, &old,
        (struct hk_event_line){.ev = HK_LOG_ORPHAN, .lane = hk_model_lane_of(old.claim), .claim = old.claim});
    model->outbox.items[i].gone = true;
    struct model_row *row = hk_model_add_retry(model, old.msg, hk_str_of(old.msg->destination));
    row->deferred = old.msg->not_before_ms > hk_model_clock(model);
    row->due_ms = row->deferred ? old.msg->not_before_ms : hk_model_due_now(model);
    row->maybe = true;
    row->crashes = 1;
}

void hk_model_take_over(struct hk_model *model, int64_t lane)
{
    for (size_t i = 0; i < model->retry.n; i++) {
        struct model_row *row = &model->retry.items[i];
        if (row->gone || !hk_model_claim_of_lane(row->claim, lane))
            continue;
        hk_model_log_row(model, HK_FROM_RETRY, row,
                         (struct hk_event_line){.ev = HK_LOG_ORPHAN, .lane = lane, .claim = row->claim});
        add_trace(model, HK_FROM_RETRY, row);
        row->claim = 0;
        row->maybe = true;
        row->crashes++;
        row->deferred = row->life == 1 && row->msg->not_before_ms > hk_model_clock(model);
        row->due_ms = row->deferred ? row->msg->not_before_ms : hk_model_due_now(model);
    }
    for (size_t i = 0; i < model->outbox.n; i++)
        if (!model->outbox.items[i].gone && hk_model_claim_of_lane(model->outbox.items[i].claim, lane))
            orphan_outbox(model, i);
}

bool hk_model_lane_lives(const struct hk_model *model)
{
    for (size_t i = 0; i < model->lanes.n; i++)
        if (!model->lanes.items[i].dead && model->lanes.items[i].until_ms > hk_model_now(model))
            return true;
    return false;
}

void hk_model_died(struct hk_model *model, const char *relay)
{
    for (size_t i = 0; i < model->lanes.n; i++)
        model->lanes.items[i].dead |= strcmp(model->lanes.items[i].relay, relay) == 0;
}

struct model_lane *hk_model_add_lane(struct hk_model *model, const char *relay, uint64_t lease_ms,
                                     struct hk_model_reply *out)
{
    int64_t now_ms = hk_model_now(model);
    struct model_lane *lane = MODEL_PUSH(model->lanes);
    *lane = (struct model_lane){
        .lane = model->next_lane++, .until_ms = now_ms + (int64_t)lease_ms, .lease_ms = lease_ms};
    hk_model_text(lane->relay, hk_str_of(relay));
    model->version++;
    out->rc = HK_OK;
    out->lane = lane->lane;
    out->now_ms = now_ms;
    hk_model_log(model, (struct hk_event_line){.ev = HK_LOG_ACQUIRE,
                                               .relay = hk_str_of(relay),
                                               .lane = lane->lane,
                                               .until = lane->until_ms});
    return lane;
}

void hk_model_acquire(struct hk_model *model, const char *relay, uint64_t lease_ms,
                      struct hk_model_reply *out)
{
    if (hk_model_lane_lives(model)) {
        out->rc = HK_BUSY;
        return;
    }
    for (size_t i = 0; i < model->lanes.n; i++)
        hk_model_take_over(model, model->lanes.items[i].lane);
    model->lanes.n = 0;
    (void)hk_model_add_lane(model, relay, lease_ms, out);
}

static void unclaim(struct hk_model *model, struct model_rows *rows, enum hk_source source, int64_t lane)
{
    for (size_t i = 0; i < rows->n; i++) {
        struct model_row *row = &rows->items[i];
        if (row->gone || !hk_model_claim_of_lane(row->claim, lane))
            continue;
        hk_model_log_row(model, source, row,
                         (struct hk_event_line){.ev = HK_LOG_SETTLE,
                                                .lane = lane,
                                                .claim = row->claim,
                                                .kind = hk_str_of("release"),
                                                .rows = true,
                                                .attempt = row->history.attempts,
                                                .charged = row->history.charged});
        row->claim = 0;
    }
}

void hk_model_release(struct hk_model *model, int64_t lane, struct hk_model_reply *out)
{
    struct model_lane *found = hk_model_find_lane(model, lane);
    out->now_ms = hk_model_now(model);
    if (!found) {
        out->rc = HK_CONFLICT;
        return;
    }
    unclaim(model, &model->outbox, HK_FROM_OUTBOX, lane);
    unclaim(model, &model->retry, HK_FROM_RETRY, lane);
    hk_model_free_shards(model, lane, HK_MODEL_ALL_SHARDS);
    *found = model->lanes.items[--model->lanes.n];
    model->version++;
    out->rc = HK_OK;
    hk_model_log(model, (struct hk_event_line){.ev = HK_LOG_RELEASE, .lane = lane});
}

/* ---- operators ---- */

static struct model_pause *find_paused(const struct hk_model *model, const char *destination)
{
    for (size_t i = 0; i < model->paused.n; i++)
        if (strcmp(model->paused.items[i].name, destination) == 0)
            return &model->paused.items[i];
    return NULL;
}

int64_t hk_model_paused_ms(const struct hk_model *model, const char *destination)
{
    const struct model_pause *p = find_paused(model, destination);
    return !p ? 0 : p->total_ms + (p->paused ? hk_model_now(model) - p->since_ms : 0);
}

bool hk_model_is_paused(const struct hk_model *model, const char *destination)
{
    const struct model_pause *p = find_paused(model, destination);
    return p && p->paused;
}

int64_t hk_model_open_until(const struct hk_model *model, const char *destination)
{
    const struct model_pause *p = find_paused(model, destination);
    return p ? p->open_until_ms : 0;
}

static struct model_pause *get_paused(struct hk_model *model, const char *destination)
{
    struct model_pause *found = find_paused(model, destination);
    if (!found) {
        found = MODEL_PUSH(model->paused);
        *found = (struct model_pause){.paused = false};
        hk_model_text(found->name, hk_str_of(destination));
    }
    return found;
}

void hk_model_circuit(struct hk_model *model, const char *destination, int64_t open_until_ms)
{
    get_paused(model, destination)->open_until_ms = open_until_ms;
}

void hk_model_define(struct hk_model *model, const char *destination, const char *kind)
{
    model->definitions++;
    model->version++;
    hk_model_log(model, (struct hk_event_line){.ev = HK_LOG_DEFINE,
                                               .dest = hk_str_of(destination),
                                               .kind = hk_str_of(kind),
                                               .actor = hk_str_of("operator")});
    hk_model_audit(model, "define", "", destination, "operator");
}

int64_t hk_model_definitions(const struct hk_model *model)
{
    return model->definitions;
}

void hk_model_pause(struct hk_model *model, const char *destination, bool paused, const char *actor,
                    struct hk_model_reply *out)
{
    struct model_pause *found = get_paused(model, destination);
    out->rc = HK_OK;
    out->now_ms = hk_model_now(model);
    bool closes = !paused && found->open_until_ms; /* who resumes says that it is well, paused or not */
    if (found->paused == paused && !closes)
        return;
    found->open_until_ms = closes ? 0 : found->open_until_ms;
    found->total_ms = hk_model_paused_ms(model, destination);
    found->since_ms = out->now_ms;
    found->paused = paused;
    model->version++;
    hk_model_audit(model, paused ? "pause" : "resume", "", destination, actor);
    hk_model_log(model, (struct hk_event_line){.ev = paused ? HK_LOG_PAUSE : HK_LOG_RESUME,
                                               .dest = hk_str_of(destination),
                                               .actor = hk_str_of(actor)});
}

/* The pick-th row that nobody has in hand; NULL: there is none. */
static struct model_row *pick_idle(struct hk_model *model, uint64_t pick, enum hk_source *out_source)
{
    struct model_rows *tables[] = {&model->outbox, &model->retry};
    for (int round = 0; round < 2; round++) {
        uint64_t n = 0;
        for (int t = 0; t < 2; t++)
            for (size_t i = 0; i < tables[t]->n; i++) {
                struct model_row *row = &tables[t]->items[i];
                if (row->gone || !row->visible || row->claim || row->stuck)
                    continue;
                *out_source = t == 0 ? HK_FROM_OUTBOX : HK_FROM_RETRY;
                if (round == 1 && n == pick)
                    return row;
                n++;
            }
        if (n == 0)
            return NULL;
        pick %= n;
    }
    return NULL;
}

bool hk_model_cancel(struct hk_model *model, uint64_t pick)
{
    enum hk_source source;
    struct model_row *row = pick_idle(model, pick, &source);
    if (!row)
        return false;
    struct model_end *end = MODEL_PUSH(model->ends);
    *end = (struct model_end){
        .msg = row->msg, .attempts = row->history.attempts, .life = row->life, .cancelled = true};
    hk_model_text(end->destination, hk_str_of(hk_model_dest_of(source, row)));
    hk_model_log_row(model, source, row,
                     (struct hk_event_line){.ev = HK_LOG_CANCEL, .actor = hk_str_of("operator")});
    hk_model_audit(model, "cancel", row->msg->message_id, hk_model_dest_of(source, row), "operator");
    if (row->letter && model->letters.items[row->letter - 1].status == LETTER_RETRYING) {
        model->letters.items[row->letter - 1].status = LETTER_DISCARDED;
        model->letters.items[row->letter - 1].taken_back = true;
    }
    row->gone = true;
    model->version++;
    model->acts++;
    return true;
}

/* Row of outbox go to outbox_retry, as a scheduled one does; those that keep an order stay behind what was not tried before them. */
bool hk_model_force(struct hk_model *model, uint64_t pick, bool (*ordered)(void *arg, const char *dest), void *arg)
{
    enum hk_source source;
    struct model_row *row = pick_idle(model, pick, &source);
    bool fresh = row && source == HK_FROM_OUTBOX;
    if (!row || row->msg->not_before_ms || row->msg->stuck || row->life > 1 || strchr(row->msg->expected, ',') ||
        (fresh && (!row->msg->destination[0] || (row->msg->key[0] && ordered(arg, row->msg->destination)))))
        return false;
    if (fresh) {
        row->gone = true;
        row = hk_model_add_retry(model, row->msg, hk_str_of(row->msg->destination));
        row->deferred = true;
    }
    int64_t clock_ms = hk_model_clock(model); /* and not before its last attempt, where that was ahead */
    row->due_ms = row->last_attempt_ms && row->last_attempt_ms < clock_ms ? row->last_attempt_ms : clock_ms;
    row->forced = true;
    hk_model_log_row(model, HK_FROM_RETRY, row,
                     (struct hk_event_line){.ev = HK_LOG_FORCE, .actor = hk_str_of("operator")});
    hk_model_audit(model, "force", row->msg->message_id, row->destination, "operator");
    model->version++;
    model->acts++;
    return true;
}

/* ---- the world's questions ---- */

static size_t live_in(const struct model_rows *rows)
{
    size_t n = 0;
    for (size_t i = 0; i < rows->n; i++)
        n += rows->items[i].visible && !rows->items[i].gone && !rows->items[i].stuck;
    return n;
}

size_t hk_model_live(const struct hk_model *model)
{
    return live_in(&model->outbox) + live_in(&model->retry);
}

size_t hk_model_letters(const struct hk_model *model)
{
    return model->letters.n;
}

size_t hk_model_open_letters(const struct hk_model *model)
{
    size_t n = 0;
    for (size_t i = 0; i < model->letters.n; i++)
        n += model->letters.items[i].status == LETTER_FAILED;
    return n;
}

/* Is it one of those that the message must reach? */
static bool is_expected(const struct hk_model_msg *msg, const char *destination)
{
    struct hk_str rest = hk_str_of(msg->expected);
    while (rest.len)
        if (hk_str_eq(hk_str_cut(&rest, ','), hk_str_of(destination)))
            return true;
    return false;
}

/* A fan-out of the key waits at all of its destinations when one of them holds it up, and others wait behind it there. */
static bool fan_out_waits(const struct hk_model *model, const char *key)
{
    for (size_t i = 0; i < model->outbox.n; i++) {
        const struct model_row *row = &model->outbox.items[i];
        if (row->visible && !row->gone && !row->stuck && strcmp(row->msg->key, key) == 0 &&
            strchr(row->msg->expected, ','))
            return true;
    }
    return false;
}

/* One that cannot go and was not delivered is in the way as a dead head is. */
static bool held_by_stuck(const struct hk_model *model, const struct model_row *row,
                          bool (*blocks)(void *arg, const char *dest), void *arg)
{
    for (size_t i = 0; i < model->outbox.n; i++) {
        const struct model_row *s = &model->outbox.items[i];
        if (s->stuck && !s->stuck_sent && row->msg->key[0] && strcmp(s->msg->key, row->msg->key) == 0 &&
            (is_expected(row->msg, s->destination) || fan_out_waits(model, row->msg->key)) &&
            blocks(arg, s->destination))
            return true;
    }
    return false;
}

static bool held_by_letter(const struct hk_model *model, const struct model_row *row,
                           bool (*blocks)(void *arg, const char *dest), void *arg)
{
    for (size_t i = 0; i < model->letters.n; i++) {
        const struct model_letter *letter = &model->letters.items[i];
        if (letter->status == LETTER_FAILED && row->msg->key[0] &&
            strcmp(letter->msg->key, row->msg->key) == 0 &&
            (is_expected(row->msg, letter->destination) || fan_out_waits(model, row->msg->key)) &&
            blocks(arg, letter->destination))
            return true;
    }
    return held_by_stuck(model, row, blocks, arg);
}

size_t hk_model_excused(const struct hk_model *model, int64_t by_ms,
                        bool (*blocks)(void *arg, const char *dest), void *arg)
{
    size_t n = 0;
    for (size_t i = 0; i < model->outbox.n; i++) {
        const struct model_row *row = &model->outbox.items[i];
        if (row->visible && !row->gone && !row->stuck && !row->claim)
            n += row->msg->not_before_ms > by_ms || held_by_letter(model, row, blocks, arg);
    }
    for (size_t i = 0; i < model->retry.n; i++) {
        const struct model_row *row = &model->retry.items[i];
        if (!row->gone && !row->claim)
            n += row->due_ms > by_ms || held_by_letter(model, row, blocks, arg);
    }
    return n;
}

static void dump_row(struct hk_buf *out, const char *table, char letter, const struct model_row *row,
                     const char *dest)
{
    (void)hk_buf_addf(
        out,
        "{\"table\":\"%s\",\"row\":\"%c%" PRId64 "\",\"m\":\"%s\",\"dest\":\"%s\",\"key\":\"%s\","
        "\"claim\":%" PRId64 ",\"due\":%" PRId64 ",\"n\":%u,\"life\":%u}\n",
        table, letter, row->id, row->msg->message_id, dest, row->msg->key, row->claim,
        letter == 'r' ? row->due_ms : row->msg->not_before_ms, row->history.attempts, row->life);
}

void hk_model_dump(const struct hk_model *model, struct hk_buf *out)
{
    static const char *const statuses[] = {"failed", "retrying", "resolved", "discarded"};
    for (size_t i = 0; i < model->outbox.n; i++)
        if (model->outbox.items[i].visible && !model->outbox.items[i].gone)
            dump_row(out, "outbox", 'o', &model->outbox.items[i], model->outbox.items[i].msg->destination);
    for (size_t i = 0; i < model->retry.n; i++)
        if (!model->retry.items[i].gone)
            dump_row(out, "retry", 'r', &model->retry.items[i], model->retry.items[i].destination);
    for (size_t i = 0; i < model->letters.n; i++) {
        const struct model_letter *l = &model->letters.items[i];
        (void)hk_buf_addf(out,
                          "{\"table\":\"dead\",\"m\":\"%s\",\"dest\":\"%s\",\"key\":\"%s\",\"reason\":\"%s\","
                          "\"status\":\"%s\",\"n\":%u,\"life\":%u}\n",
                          l->msg->message_id, l->destination, l->msg->key, l->reason, statuses[l->status],
                          l->attempts, l->life);
    }
    for (size_t i = 0; i < model->ends.n; i++) {
        const struct model_end *e = &model->ends.items[i];
        (void)hk_buf_addf(out, "{\"table\":\"%s\",\"m\":\"%s\",\"dest\":\"%s\",\"n\":%u,\"life\":%u}\n",
                          e->cancelled ? "cancelled" : "sent", e->msg->message_id, e->destination,
                          e->attempts, e->life);
    }
    hk_model_dump_totals(model, out);
    for (size_t i = 0; i < model->audit.n; i++) {
        const struct model_audit *a = &model->audit.items[i];
        (void)hk_buf_addf(
            out, "{\"table\":\"audit\",\"act\":\"%s\",\"m\":\"%s\",\"dest\":\"%s\",\"actor\":\"%s\"}\n",
            a->act, a->m, a->destination, a->actor);
    }
    for (size_t i = 0; i < model->attempts.n; i++) {
        const struct model_attempt *a = &model->attempts.items[i];
        (void)hk_buf_addf(out, "{\"table\":\"attempts\",\"m\":\"%s\",\"dest\":\"%s\",\"n\":%u,\"life\":%u}\n",
                          a->msg->message_id, a->destination, a->n, a->life);
    }
}
