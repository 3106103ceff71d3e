/* SPDX-License-Identifier: Apache-2.0 */
/* The modelled dead letters: what operators do with them, the audit of that, and redrives, whose decisions are
 * src/core/redrive.c. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "model_impl.h"

void hk_model_audit(struct hk_model *model, const char *act, const char *m, const char *destination,
                    const char *actor)
{
    struct model_audit *row = MODEL_PUSH(model->audit);
    *row = (struct model_audit){.act = act};
    hk_model_text(row->m, hk_str_of(m));
    hk_model_text(row->destination, hk_str_of(destination));
    hk_model_text(row->actor, hk_str_of(actor));
}

void hk_model_dump_totals(const struct hk_model *model, struct hk_buf *out)
{
    size_t sent = 0, cancelled = 0, discarded = 0;
    for (size_t i = 0; i < model->ends.n; i++)
        *(model->ends.items[i].cancelled ? &cancelled : &sent) += 1;
    for (size_t i = 0; i < model->letters.n; i++)
        discarded +=
            model->letters.items[i].status == LETTER_DISCARDED && !model->letters.items[i].taken_back;
    (void)hk_buf_addf(out,
                      "{\"table\":\"totals\",\"sent\":%zu,\"dead\":%zu,\"over\":%zu,\"audited\":\"yes\","
                      "\"traced\":\"yes\"}\n",
                      sent, hk_model_open_letters(model), cancelled + discarded);
}

static void acted(struct hk_model *model)
{
    model->version++;
    model->acts++;
}

/* The pick-th letter of this status. */
static struct model_letter *pick_letter(struct hk_model *model, enum letter_status status, uint64_t pick)
{
    uint64_t n = 0;
    for (size_t i = 0; i < model->letters.n; i++)
        n += model->letters.items[i].status == status;
    if (n == 0)
        return NULL;
    pick %= n;
    for (size_t i = 0; i < model->letters.n; i++)
        if (model->letters.items[i].status == status && pick-- == 0)
            return &model->letters.items[i];
    return NULL;
}

static void log_letter(struct hk_model *model, const struct model_letter *letter, struct hk_event_line line)
{
    line.m = hk_str_of(letter->msg->message_id);
    line.dest = hk_str_of(letter->destination);
    if (!line.actor.ptr)
        line.actor = hk_str_of("operator");
    hk_model_log(model, line);
}

/* ---- versions of messages ---- */

const struct hk_model_msg *hk_model_version_of(const struct hk_model *model, struct hk_str message_id,
                                               struct hk_str payload)
{
    for (size_t i = model->versions.n; i-- > 0;)
        if (hk_str_eq(hk_str_of(model->versions.items[i]->message_id), message_id) &&
            hk_str_eq(hk_str_of(model->versions.items[i]->payload), payload))
            return model->versions.items[i];
    return NULL;
}

static struct hk_model_msg *new_version(struct hk_model *model, const struct hk_model_msg *from)
{
    struct hk_model_msg *msg = malloc(sizeof *msg);
    if (!msg)
        abort();
    *msg = *from;
    *MODEL_PUSH(model->versions) = msg;
    return msg;
}

bool hk_model_edit(struct hk_model *model, uint64_t pick)
{
    struct model_letter *letter = pick_letter(model, LETTER_FAILED, pick);
    if (!letter)
        return false;
    struct hk_model_msg *msg = new_version(model, letter->msg);
    (void)snprintf(msg->payload, sizeof msg->payload, "CANARY-%zu", model->versions.n);
    msg->payload_bytes = strlen(msg->payload);
    msg->malformed = msg->undecodable = false; /* that is what people edit for */
    msg->hash = 0xcbf29ce484222325u;
    for (const char *p = msg->payload; *p; p++)
        msg->hash = (msg->hash ^ (unsigned char)*p) * 0x100000001b3u;
    letter->msg = msg;
    letter->edited = true;
    acted(model);
    hk_model_audit(model, "edit", msg->message_id, letter->destination, "operator");
    log_letter(model, letter, (struct hk_event_line){.ev = HK_LOG_EDIT, .hash = msg->hash});
    return true;
}

/* ---- discard and restore ---- */

bool hk_model_discard(struct hk_model *model, uint64_t pick)
{
    struct model_letter *letter = pick_letter(model, LETTER_FAILED, pick);
    if (!letter)
        return false;
    letter->status = LETTER_DISCARDED;
    acted(model);
    hk_model_audit(model, "discard", letter->msg->message_id, letter->destination, "operator");
    log_letter(model, letter, (struct hk_event_line){.ev = HK_LOG_DISCARD});
    return true;
}

bool hk_model_restore(struct hk_model *model, uint64_t pick)
{
    struct model_letter *letter = pick_letter(model, LETTER_DISCARDED, pick);
    if (!letter || letter->taken_back)
        return false;
    letter->status = LETTER_FAILED;
    acted(model);
    hk_model_audit(model, "restore", letter->msg->message_id, letter->destination, "operator");
    log_letter(model, letter, (struct hk_event_line){.ev = HK_LOG_RESTORE});
    return true;
}

/* ---- requeue ---- */

/* False: it is not open. `anew`: under a new message id; job: 0 = by hand. */
/* A person who requeues it leaves it to the job that had it. The one that had it before another must not take it for arrived. */
static void belongs_to(struct hk_model *model, struct model_letter *letter, int64_t job)
{
    if (!job || letter->job == job)
        return;
    for (size_t i = 0; i < model->jobs.n; i++)
        model->jobs.items[i].lost += model->jobs.items[i].id == letter->job;
    letter->job = job;
}

static bool requeue(struct hk_model *model, struct model_letter *letter, bool anew, int64_t job)
{
    char was[HK_MODEL_TEXT], actor[HK_MODEL_TEXT] = "operator";
    if (letter->status != LETTER_FAILED || strcmp(letter->reason, "UNKNOWN_DESTINATION") == 0)
        return false;
    hk_model_text(was, hk_str_of(letter->msg->message_id));
    if (job)
        (void)snprintf(actor, sizeof actor, "redrive %" PRId64, job);
    anew |= letter->edited && letter->maybe; /* a late request brings the old bytes: they have that id */
    letter->edited = false;
    if (anew) {
        struct hk_model_msg *msg = new_version(model, letter->msg);
        (void)snprintf(msg->message_id, sizeof msg->message_id, "n%zu", model->versions.n);
        letter->msg = msg;
    }
    letter->status = LETTER_RETRYING;
    belongs_to(model, letter, job);
    struct model_row *row = hk_model_add_retry(model, letter->msg, hk_str_of(letter->destination));
    row->due_ms = hk_model_due_now(model);
    row->life = letter->life + 1;
    row->maybe = letter->maybe;
    row->lasting = letter->msg->expires_ms && letter->msg->expires_ms <= hk_model_clock(model);
    row->letter = (size_t)(letter - model->letters.items) + 1;
    acted(model);
    hk_model_audit(model, "requeue", was, letter->destination, actor);
    hk_model_log(model, (struct hk_event_line){.ev = HK_LOG_REQUEUE,
                                               .m = hk_str_of(was),
                                               .as = hk_str_of(anew ? letter->msg->message_id : ""),
                                               .dest = hk_str_of(letter->destination),
                                               .actor = hk_str_of(actor),
                                               .life = row->life,
                                               .job = job});
    return true;
}

bool hk_model_requeue(struct hk_model *model, uint64_t pick)
{
    struct model_letter *letter = pick_letter(model, LETTER_FAILED, pick);
    return letter && requeue(model, letter, false, 0);
}

bool hk_model_requeue_twice(struct hk_model *model, uint64_t pick)
{
    struct model_letter *letter = pick_letter(model, LETTER_FAILED, pick);
    if (!letter || !requeue(model, letter, false, 0))
        return false;
    (void)requeue(model, letter, false, 0);
    return true;
}

bool hk_model_requeue_anew(struct hk_model *model, uint64_t pick)
{
    struct model_letter *letter = pick_letter(model, LETTER_FAILED, pick);
    return letter && requeue(model, letter, true, 0);
}

size_t hk_model_requeue_all(struct hk_model *model)
{
    size_t n = 0;
    for (size_t i = 0; i < model->letters.n; i++)
        n += requeue(model, &model->letters.items[i], false, 0);
    return n;
}

/* ---- redrives ---- */

/* `act`: "redrive-start" … */
static void log_job(struct hk_model *model, const struct model_job *job, const char *act, const char *actor)
{
    hk_model_audit(model, act, "", "", actor);
    hk_model_log(model, (struct hk_event_line){.ev = HK_LOG_REDRIVE,
                                               .kind = hk_str_of(act + strlen("redrive-")),
                                               .actor = hk_str_of(actor),
                                               .job = job->id,
                                               .cap = job->pace.canary,
                                               .rate = (uint32_t)(job->pace.rate_per_s * 1000)});
}

bool hk_model_redrive_start(struct hk_model *model, const struct hk_redrive_pace *pace)
{
    for (size_t i = 0; i < model->jobs.n; i++)
        if (model->jobs.items[i].status == HK_REDRIVE_RUNNING)
            return false; /* of the same letters */
    int64_t now_ms = hk_model_now(model);
    struct model_job *job = MODEL_PUSH(model->jobs);
    *job = (struct model_job){.id = (int64_t)model->jobs.n,
                              .pace = *pace,
                              .facts = {.started_ms = now_ms, .total = hk_model_open_letters(model)},
                              .last = model->letters.n,
                              .wake_ms = now_ms};
    acted(model);
    log_job(model, job, "redrive-start", "operator");
    return true;
}

static void end_job(struct hk_model *model, struct model_job *job, enum hk_redrive_status status,
                    const char *act, const char *actor)
{
    job->status = status;
    acted(model);
    log_job(model, job, act, actor);
}

bool hk_model_redrive_cancel(struct hk_model *model, uint64_t pick)
{
    struct model_job *job = model->jobs.n ? &model->jobs.items[pick % model->jobs.n] : NULL;
    if (!job || job->status != HK_REDRIVE_RUNNING)
        return false;
    end_job(model, job, HK_REDRIVE_CANCELLED, "redrive-cancel", "operator");
    return true;
}

static bool struggles(const struct hk_model *model, size_t letter)
{
    for (size_t i = 0; i < model->retry.n; i++)
        if (!model->retry.items[i].gone && model->retry.items[i].letter == letter + 1)
            return model->retry.items[i].history.attempts > 0;
    return false;
}

/* Not on its way, and not dead again: it has arrived. */
static void count_fates(const struct hk_model *model, struct model_job *job)
{
    struct hk_redrive_facts *f = &job->facts;
    uint64_t waiting = 0;
    f->struggling = 0;
    f->failed = job->lost;
    for (size_t i = 0; i < model->letters.n; i++) {
        const struct model_letter *letter = &model->letters.items[i];
        if (letter->job != job->id)
            continue;
        switch (letter->status) {
        case LETTER_RETRYING:
            waiting++;
            f->struggling += struggles(model, i);
            break;
        case LETTER_RESOLVED:
            break;
        case LETTER_FAILED:
        case LETTER_DISCARDED:
            f->failed++;
            break;
        }
    }
    f->resolved = f->requeued > waiting + f->failed ? f->requeued - waiting - f->failed : 0;
}

/* Nothing is requeued into a pause: all of it would go out in the moment of its end. */
static bool is_held(const struct hk_model *model, const struct model_job *job)
{
    const struct model_letter *letter = &model->letters.items[job->cursor];
    return letter->status == LETTER_FAILED && hk_model_is_paused(model, letter->destination);
}

static void requeue_some(struct hk_model *model, struct model_job *job, const struct hk_redrive_next *next,
                         int64_t now_ms)
{
    uint32_t done = 0;
    while (done < next->n && job->cursor < job->last && !is_held(model, job))
        done += requeue(model, &model->letters.items[job->cursor++], false, job->id);
    job->facts.exhausted = job->cursor >= job->last;
    job->facts.requeued += done;
    job->facts.tokens = next->tokens + (double)(next->n - done);
    job->facts.tokens_ms = now_ms;
    job->wake_ms = done < next->n || next->wake_ms < now_ms ? now_ms + 1 : next->wake_ms;
    if (done < next->n && job->cursor < job->last)
        job->wake_ms = now_ms + HK_REDRIVE_HELD_MS;
}

static void step(struct hk_model *model, struct model_job *job, int64_t now_ms)
{
    struct hk_redrive_next next;
    count_fates(model, job);
    hk_redrive_decide(&job->pace, &job->facts, now_ms, &next);
    switch (next.step) {
    case HK_REDRIVE_WAIT:
        job->wake_ms = next.wake_ms > now_ms ? next.wake_ms : now_ms + 1;
        break;
    case HK_REDRIVE_REQUEUE:
        requeue_some(model, job, &next, now_ms);
        break;
    case HK_REDRIVE_ABORT:
        end_job(model, job, HK_REDRIVE_ABORTED, "redrive-abort", "redrive");
        break;
    case HK_REDRIVE_FINISH:
        end_job(model, job, HK_REDRIVE_DONE, "redrive-finish", "redrive");
        break;
    }
}

int64_t hk_model_redrive_step(struct hk_model *model)
{
    int64_t now_ms = hk_model_now(model), wake_ms = INT64_MAX;
    for (size_t i = 0; i < model->jobs.n; i++) {
        struct model_job *job = &model->jobs.items[i];
        if (job->status == HK_REDRIVE_RUNNING && job->wake_ms <= now_ms)
            step(model, job, now_ms);
        if (job->status == HK_REDRIVE_RUNNING && job->wake_ms < wake_ms)
            wake_ms = job->wake_ms;
    }
    return wake_ms;
}
