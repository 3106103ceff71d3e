/* SPDX-License-Identifier: Apache-2.0 */
/* Notes by row, from claim to settle, and the line that is made of a settle and its note. Most messages carry neither ids nor a policy of
 * their own and go well: for those nothing is noted. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "config/payload.h"
#include "observe/trace.h"
#include "relay/attempt_log.h"

enum {
    BUCKETS = 4096, /* a power of two; notes are as many as messages in hand */
    CORRELATION_MAX = 256,
    ERROR_MAX = 1024,
    MASK_MAX = 1 << 16,
    STUCK_WHY_MAX = 400,
    STUCK_EVERY_MS = 60000
};

struct note {
    struct note *next;
    enum hk_source source;
    int64_t id;
    const struct hk_policy *policy; /* the configuration's; NULL = not known */
    bool hinted;                    /* the answer asked for a wait */
    bool has_error;
    struct hk_str error; /* without what masks hide */
    struct hk_str correlation_id;
    char trace_id[HK_TRACE_ID_TEXT], span_id[HK_SPAN_ID_TEXT]; /* "" = none */
    char text[];
};

struct hk_attempt_log {
    struct hk_log *log;
    const struct hk_config *config;
    struct hk_masks *masks;
    /* of rows that are stuck: why the last one was that is in the log, when, and how many of the same kind came since */
    char stuck_why[STUCK_WHY_MAX];
    int64_t stuck_logged_ms;
    uint64_t stuck_unsaid;
    struct note *buckets[BUCKETS];
};

/* ---- notes ---- */

static struct note **place_of(struct hk_attempt_log *al, enum hk_source source, int64_t id)
{
    uint64_t h = ((uint64_t)id * 2 + (source == HK_FROM_RETRY)) * UINT64_C(0x9e3779b97f4a7c15);
    struct note **at = &al->buckets[h >> 52];
    while (*at && ((*at)->id != id || (*at)->source != source))
        at = &(*at)->next;
    return at;
}

static void drop(struct note **at)
{
    struct note *note = *at;
    if (!note)
        return;
    *at = note->next;
    hk_mem_free(note);
}

static struct hk_str keep(char **at, struct hk_str s, size_t most)
{
    struct hk_str kept = {*at, s.len < most ? s.len : most};
    if (kept.len)
        memcpy(*at, s.ptr, kept.len);
    *at += kept.len;
    return kept;
}

static void put_trace(struct note *note, struct hk_str traceparent, bool is_span)
{
    struct hk_trace trace;
    if (!hk_trace_parse(traceparent, &trace))
        return;
    hk_trace_id_text(&trace, note->trace_id);
    if (is_span)
        hk_span_id_text(trace.span_id, note->span_id);
}

/* Takes the place of an earlier note of the same row. */
static struct note *make_note(struct hk_attempt_log *al, const struct hk_message *m, const char *traceparent,
                              const struct hk_str *error)
{
    struct note **at = place_of(al, m->source, m->id);
    drop(at);
    struct note *note = hk_mem_alloc(sizeof *note + CORRELATION_MAX + (error ? ERROR_MAX : 0));
    if (!note)
        return NULL;
    *note = (struct note){.next = *at, .source = m->source, .id = m->id, .has_error = error != NULL};
    char *text = note->text;
    note->correlation_id = keep(&text, m->correlation_id, CORRELATION_MAX);
    if (error)
        note->error = keep(&text, *error, ERROR_MAX);
    put_trace(note, traceparent[0] ? hk_str_of(traceparent) : m->traceparent, traceparent[0] != '\0');
    char policy[HK_NAME_MAX];
    if (m->policy.len && hk_str_copy(policy, sizeof policy, m->policy))
        note->policy = hk_policies_get(al->config->policies, policy);
    *at = note;
    return note;
}

static void note_claimed(struct hk_attempt_log *al, const struct hk_exchanged *done)
{
    for (size_t i = 0; i < done->n_messages; i++) {
        const struct hk_message *m = &done->messages[i];
        if (m->correlation_id.len || m->traceparent.len || m->policy.len)
            (void)make_note(al, m, "", NULL);
    }
}

/* ---- masks ---- */

/* The store has decoded its payload. */
static struct hk_mask_about about_message(const struct hk_message *m)
{
    return (struct hk_mask_about){
        .event_type = m->event_type, .headers = m->headers, .payloads = &m->payload, .n_payloads = 1};
}

enum hk_code hk_attempt_mask_error(const struct hk_masks *masks, const struct hk_message *m,
                                   struct hk_str error, struct hk_buf *out)
{
    const struct hk_mask_about about = about_message(m);
    return hk_mask_about(masks, &about, error, out);
}

struct hk_str hk_attempt_log_error(const struct hk_attempt_log *al, const struct hk_message *m,
                                   const struct hk_facts *facts, char out[HK_ANSWER_ERROR_MAX])
{
    const struct hk_mask_about about = about_message(m);
    if (facts->error.len || facts->status <= 0)
        return facts->error;
    return hk_answer_error(al->masks, &about, facts->status, facts->body, out);
}

static void note_masked(struct hk_attempt_log *al, const struct hk_message *m, const char *traceparent,
                        struct hk_str error, struct note **out)
{
    struct hk_buf masked;
    hk_buf_init(&masked, MASK_MAX);
    bool ok = hk_attempt_mask_error(al->masks, m, error, &masked) == HK_OK;
    struct hk_str shown = ok ? hk_buf_str(&masked) : hk_str_of(HK_MASKED);
    *out = make_note(al, m, traceparent, &shown);
    hk_buf_fini(&masked);
}

void hk_attempt_log_ended(struct hk_attempt_log *al, const struct hk_message *m,
                          const struct hk_policy *policy, const char *traceparent,
                          const struct hk_facts *facts, int64_t wall_ms)
{
    struct note *note = NULL;
    uint64_t hint_ms;
    if (facts->fault == HK_FAULT_NONE && facts->status < 300)
        return;
    if (facts->error.len && hk_masks_fit(al->masks, m->event_type))
        note_masked(al, m, traceparent, facts->error, &note);
    else
        note = make_note(al, m, traceparent, NULL);
    if (!note)
        return;
    if (!note->policy)
        note->policy = policy;
    note->hinted = hk_hint_ms(facts->headers, facts->n_headers, wall_ms, &hint_ms);
}

/* ---- lines ---- */

static const struct hk_policy *policy_of(const struct hk_attempt_log *al, const struct note *note,
                                         struct hk_str destination)
{
    const struct hk_conf_destination *dest = hk_config_destination_named(al->config, destination);
    if (note && note->policy)
        return note->policy;
    return dest ? hk_conf_policy(al->config, dest) : NULL;
}

/* As hk_execute names it in its retry events: how the wait came about. */
static const char *policy_type(const struct hk_policy *policy, const struct hk_settle *s, bool hinted)
{
    enum hk_class cls = s->attempt.failure_class;
    const struct hk_class_rule *rule = hk_policy_class(policy, cls);
    enum hk_hint_mode mode = hk_policy_limits(policy)->hints;
    void *arg = NULL;
    if (hk_policy_ops(policy, &arg))
        return "custom";
    if (hinted && s->kind == HK_SETTLE_RETRY &&
        (mode == HK_HINTS_ALL ||
         (mode == HK_HINTS_STANDARD && (cls == HK_CLASS_RATE_LIMIT || s->attempt.status == 503))))
        return "adaptive";
    return hk_backoff_kind_name(rule && rule->has_backoff ? rule->backoff.kind
                                                          : hk_policy_backoff(policy)->kind);
}

static void put_ids(struct hk_log_line *line, const struct hk_settle *s, const struct note *note)
{
    char request_id[320];
    int shown = s->message_id.len < 256 ? (int)s->message_id.len : 256;
    (void)snprintf(request_id, sizeof request_id, "%.*s/%u", shown,
                   s->message_id.len ? s->message_id.ptr : "", (unsigned)s->history.attempts);
    hk_log_str(line, "message_id", s->message_id);
    hk_log_cstr(line, "request_id", request_id);
    if (note && note->correlation_id.len)
        hk_log_str(line, "correlation_id", note->correlation_id);
    if (note && note->trace_id[0])
        hk_log_cstr(line, "trace_id", note->trace_id);
    if (note && note->span_id[0])
        hk_log_cstr(line, "span_id", note->span_id);
    hk_log_str(line, "destination", s->destination);
}

static void put_policy(struct hk_log_line *line, const struct hk_attempt_log *al, const struct hk_settle *s,
                       const struct note *note)
{
    const struct hk_policy *policy = policy_of(al, note, s->destination);
    if (!policy)
        return;
    hk_log_cstr(line, "policy", hk_policy_name(policy));
    hk_log_cstr(line, "policy_type", policy_type(policy, s, note && note->hinted));
}

static void put_error(struct hk_log_line *line, const struct hk_attempt_log *al, const struct hk_settle *s,
                      const struct note *note)
{
    struct hk_str error = note && note->has_error ? note->error : s->attempt.error;
    if (al->masks && !note && s->attempt.made) /* there was no memory to look what must be hidden */
        error = hk_str_of(HK_MASKED);
    hk_log_str(line, "error", error);
}

static void write_line(const struct hk_attempt_log *al, const struct hk_settle *s, const struct note *note)
{
    struct hk_log_line line;
    const struct hk_attempt_record *a = &s->attempt;
    int64_t ended_ms = a->started_ms + (int64_t)a->duration_ms;
    bool dead = s->kind == HK_SETTLE_DEAD;
    hk_log_begin(&line, al->log, dead ? HK_LOG_WARN : HK_LOG_INFO, dead ? "dead letter" : "retry");
    if (line.off)
        return;
    put_ids(&line, s, note);
    put_policy(&line, al, s, note);
    hk_log_i64(&line, "attempt", s->history.attempts);
    if (a->made) {
        hk_log_time(&line, "started", a->started_ms);
        hk_log_time(&line, "ended", ended_ms);
    }
    if (!dead)
        hk_log_ms(&line, "wait", s->due_ms > ended_ms ? (uint64_t)(s->due_ms - ended_ms) : 0);
    hk_log_cstr(&line, "class", hk_class_name(a->failure_class));
    if (dead)
        hk_log_str(&line, "reason", s->reason);
    hk_log_str(&line, "cause", a->cause);
    if (a->status)
        hk_log_i64(&line, "status", a->status);
    put_error(&line, al, s, note);
    hk_log_end(&line);
}

/* Thousands may be stuck for one reason: that is said once a minute. */
static void write_stuck(struct hk_attempt_log *al, const struct hk_settle *s, const char *why, int64_t now_ms)
{
    struct hk_log_line line;
    al->stuck_unsaid++;
    if (strcmp(al->stuck_why, why) == 0 && now_ms - al->stuck_logged_ms < STUCK_EVERY_MS)
        return;
    hk_log_begin(&line, al->log, HK_LOG_ERROR,
                 "the database does not let a message go: its row is held, and not sent again");
    hk_log_str(&line, "message_id", s->message_id);
    hk_log_str(&line, "destination", s->destination);
    hk_log_cstr(&line, "table", s->source == HK_FROM_OUTBOX ? "outbox" : "outbox_retry");
    hk_log_i64(&line, "row", s->id);
    hk_log_cstr(&line, "delivered", s->kind == HK_SETTLE_SENT ? "yes" : "no");
    hk_log_cstr(&line, "error", why);
    hk_log_i64(&line, "rows", (int64_t)al->stuck_unsaid);
    hk_log_end(&line);
    (void)snprintf(al->stuck_why, sizeof al->stuck_why, "%s", why);
    al->stuck_logged_ms = now_ms;
    al->stuck_unsaid = 0;
}

void hk_attempt_log_guards(struct hk_attempt_log *al, const char *found)
{
    struct hk_log_line line;
    if (!found[0])
        return;
    hk_log_begin(&line, al->log, HK_LOG_WARN,
                 "others have put something on hikyaku's tables: a row that it does not let go is held");
    hk_log_cstr(&line, "found", found);
    hk_log_end(&line);
}

void hk_attempt_log_exchanged(struct hk_attempt_log *al, const struct hk_exchange *asked,
                              const struct hk_exchanged *done)
{
    for (size_t i = 0; i < asked->n_settles; i++) {
        const struct hk_settle *s = &asked->settles[i];
        struct note **at = place_of(al, s->source, s->id);
        if (hk_settle_is_stuck(done, i))
            write_stuck(al, s, done->stuck[i], done->now_ms);
        else if (!done->stale[i] && (s->kind == HK_SETTLE_RETRY || s->kind == HK_SETTLE_DEAD))
            write_line(al, s, *at);
        drop(at);
    }
    note_claimed(al, done);
}

/* ---- the whole ---- */

void hk_attempt_log_forget(struct hk_attempt_log *al)
{
    for (size_t i = 0; i < BUCKETS; i++)
        while (al->buckets[i])
            drop(&al->buckets[i]);
}

enum hk_code hk_attempt_log_configure(struct hk_attempt_log *al, const struct hk_config *config,
                                      struct hk_err *err)
{
    struct hk_masks *masks = NULL;
    enum hk_code rc = hk_config_make_masks(config, &masks, err);
    if (rc != HK_OK)
        return rc;
    hk_attempt_log_forget(al);
    hk_masks_free(al->masks);
    al->masks = masks;
    al->config = config;
    return HK_OK;
}

enum hk_code hk_attempt_log_new(struct hk_log *log, struct hk_attempt_log **out, struct hk_err *err)
{
    struct hk_attempt_log *al = hk_mem_zalloc(1, sizeof *al);
    if (!al)
        return hk_err_set(err, HK_NOMEM, "out of memory for the log of attempts");
    al->log = log;
    *out = al;
    return HK_OK;
}

void hk_attempt_log_free(struct hk_attempt_log *al)
{
    if (!al)
        return;
    hk_attempt_log_forget(al);
    hk_masks_free(al->masks);
    hk_mem_free(al);
}

void hk_attempt_log_paused(struct hk_attempt_log *al, const char *destination, const char *reason)
{
    struct hk_log_line line;
    hk_log_begin(&line, al->log, HK_LOG_WARN, "destination paused");
    hk_log_cstr(&line, "destination", destination);
    hk_log_cstr(&line, "reason", reason);
    hk_log_cstr(&line, "next", "mend the cause, then: hikyaku destinations resume");
    hk_log_end(&line);
}

void hk_attempt_log_taken(struct hk_attempt_log *al, const struct hk_takings *takings)
{
    for (size_t i = 0; i < takings->n; i++) {
        const struct hk_taken_over *t = &takings->items[i];
        struct hk_log_line line;
        hk_log_begin(&line, al->log, t->messages ? HK_LOG_WARN : HK_LOG_INFO,
                     t->messages ? "took over from a relay that is gone; its messages may be repeated"
                                 : "took over from a relay that is gone; it had nothing in hand");
        hk_log_i64(&line, "lane", t->lane);
        hk_log_cstr(&line, "of_relay", t->relay);
        if (t->messages) {
            hk_log_cstr(&line, "destination", t->destination);
            hk_log_time(&line, "since", t->since_ms);
        }
        hk_log_i64(&line, "messages", (int64_t)t->messages);
        hk_log_end(&line);
    }
}

void hk_attempt_log_purged(struct hk_attempt_log *al, uint32_t open)
{
    struct hk_log_line line;
    if (open == 0)
        return;
    hk_log_begin(&line, al->log, HK_LOG_WARN, "open dead letters deleted");
    hk_log_i64(&line, "letters", open);
    hk_log_cstr(&line, "why", "they are older than retention.dead");
    hk_log_end(&line);
}
