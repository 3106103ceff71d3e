/* SPDX-License-Identifier: Apache-2.0 */
/* The model of sim/ as one side of the comparison: it decides. */
#include <inttypes.h>
#include <stdlib.h>

#include "../unit/check.h"
#include "base/str.h"
#include "differential.h"
#include "model_impl.h"

struct side {
    struct hk_model *model;
    struct hk_model_handle handles[2];
    struct hk_model_msg *msgs;
    size_t n_msgs;
    struct hk_buf log;
    int64_t lanes[2];
    size_t open[DIFF_OPEN]; /* rows that are not committed yet */
    struct diff_book book;
};

static int64_t model_clock(void *arg)
{
    (void)arg;
    return diff_clock_ms;
}

static size_t insert_row(struct side *s, const struct diff_message *m)
{
    struct hk_model_msg *msg = &s->msgs[s->n_msgs++];
    *msg = (struct hk_model_msg){.not_before_ms = m->not_before_ms, .expires_ms = m->expires_ms};
    hk_model_text(msg->message_id, hk_str_of(m->id));
    hk_model_text(msg->event_type, hk_str_of(m->id));
    hk_model_text(msg->destination, hk_str_of(m->destination));
    hk_model_text(msg->key, hk_str_of(m->key));
    (void)snprintf(msg->payload, sizeof msg->payload, "p-%s", m->id);
    msg->payload_bytes = strlen(msg->payload);
    return hk_model_insert(s->model, msg);
}

static void end_row(struct side *s, size_t row, bool commit)
{
    if (commit)
        hk_model_commit(s->model, row);
    else
        hk_model_rollback(s->model, row);
    hk_buf_reset(&s->log);
}

static void insert(void *arg, const struct diff_message *m, bool commit)
{
    end_row(arg, insert_row(arg, m), commit);
}

static void hold(void *arg, unsigned slot, const struct diff_message *m)
{
    struct side *s = arg;
    s->open[slot] = insert_row(s, m);
}

static void let(void *arg, unsigned slot, bool commit)
{
    struct side *s = arg;
    end_row(s, s->open[slot], commit);
}

static void acquire(void *arg, unsigned relay, struct hk_buf *out)
{
    struct side *s = arg;
    struct hk_model_reply reply = {.rc = HK_OK};
    hk_model_acquire(s->model, relay ? "two" : "one", DIFF_LEASE_MS, &reply);
    (void)hk_buf_addf(out, "acquire %s\n", diff_code(reply.rc));
    if (reply.rc == HK_OK) {
        s->lanes[relay] = reply.lane;
        s->handles[relay] = (struct hk_model_handle){.polled = false};
    }
    hk_model_reply_free(&reply);
    hk_buf_reset(&s->log);
}

static void release(void *arg, unsigned relay, struct hk_buf *out)
{
    struct side *s = arg;
    struct hk_model_reply reply = {.rc = HK_OK};
    hk_model_release(s->model, s->lanes[relay], &reply);
    (void)hk_buf_addf(out, "release %s\n", diff_code(reply.rc));
    hk_model_reply_free(&reply);
    hk_buf_reset(&s->log);
}

static struct model_row *find_row(struct side *s, const struct diff_name *name)
{
    struct model_rows *rows = name->source == HK_FROM_RETRY ? &s->model->retry : &s->model->outbox;
    for (size_t i = rows->n; i-- > 0;) {
        struct model_row *row = &rows->items[i];
        if (!row->gone && row->visible && strcmp(row->msg->message_id, name->message) == 0 &&
            (name->source == HK_FROM_OUTBOX || strcmp(row->destination, name->destination) == 0))
            return row;
    }
    return NULL;
}

/* What became visible since the last poll below what scans had passed, exactly: the others must tell of that, and may of
 * more. */
static void find_late(struct side *s, struct hk_model_handle *handle, bool told, struct diff_view *view)
{
    struct hk_scan scan = {
        .source = HK_FROM_OUTBOX, .late = true, .after_id = HK_FIRST_ID, .limit = DIFF_SEEN};
    struct hk_model_reply reply = {.rc = HK_OK};
    view->n_late = 0;
    if (told)
        hk_model_scan(s->model, handle, &scan, &reply);
    for (size_t i = 0; i < reply.heads.n; i++)
        view->late[view->n_late++] = diff_name_of_head(&reply.heads.items[i]);
    view->all_late += view->n_late;
    handle->late_from = handle->version;
    hk_model_reply_free(&reply);
}

static void scan(void *arg, const struct hk_scan *scan, const struct diff_name *after, struct diff_view *view,
                 struct hk_buf *out)
{
    struct side *s = arg;
    struct hk_model_handle *handle = &s->handles[view->relay];
    struct hk_model_reply reply = {.rc = HK_OK};
    struct hk_scan page = *scan;
    const struct model_row *row = after ? find_row(s, after) : NULL;
    handle->polled = false; /* all of it again: what is there now is compared, not what is new */
    hk_model_poll(s->model, handle, &reply);
    diff_put_poll(&reply.poll, out);
    find_late(s, handle, reply.poll.late, view);
    hk_model_reply_free(&reply);
    page.after_id = row ? row->id : page.after_id;
    size_t from = out->len;
    bool more = true;
    while (more) {
        hk_model_scan(s->model, handle, &page, &reply);
        diff_put_heads(&reply.heads, view, true, out);
        more = reply.heads.more;
        page.after_id = reply.heads.last_id;
        page.after_due_ms = reply.heads.last_due_ms;
        hk_model_reply_free(&reply);
    }
    if (scan->source == HK_FROM_RETRY)
        diff_sort_lines(out, from);
}

static void held_keys(void *arg, unsigned relay, struct hk_buf *out)
{
    struct side *s = arg;
    struct hk_model_reply reply = {.rc = HK_OK};
    hk_model_held_keys(s->model, &s->handles[relay], &reply);
    diff_put_keys(reply.keys, reply.n_keys, out);
    hk_model_reply_free(&reply);
}

static void exchange(void *arg, const struct diff_exchange *x, struct diff_view *view, struct hk_buf *out)
{
    struct side *s = arg;
    struct hk_settle settles[DIFF_HAND];
    struct hk_want wants[DIFF_HAND];
    struct hk_model_reply reply = {.rc = HK_OK};
    struct hk_exchange e = {.lane = s->lanes[x->relay],
                            .lease_ms = DIFF_LEASE_MS,
                            .settles = settles,
                            .wants = wants,
                            .circuits = x->circuit,
                            .n_circuits = x->circuit != NULL};
    e.n_settles = diff_book_settles(&s->book, x, settles);
    for (size_t i = 0; i < x->n_wants; i++) {
        const struct model_row *row = find_row(s, &x->wants[i]);
        if (row && !row->claim)
            wants[e.n_wants++] = (struct hk_want){x->wants[i].source, row->id, true};
    }
    hk_model_exchange(s->model, &s->handles[x->relay], &e, &reply);
    diff_put_exchanged(&e, reply.rc, &reply.exchanged, out);
    for (size_t i = 0; reply.rc == HK_OK && i < reply.exchanged.n_messages; i++) {
        diff_take(view, x->relay, &reply.exchanged.messages[i]);
        diff_book_put(&s->book, x->relay, &reply.exchanged.messages[i], reply.exchanged.claim);
    }
    hk_model_reply_free(&reply);
    hk_buf_reset(&s->log);
}

static void set_paused(void *arg, const char *destination, bool paused)
{
    struct side *s = arg;
    struct hk_model_reply reply = {.rc = HK_OK};
    hk_model_pause(s->model, destination, paused, "tester", &reply);
    hk_model_reply_free(&reply);
    hk_buf_reset(&s->log);
}

/* The value of a field in the last line of the log. */
static void logged(const struct side *s, const char *key, char out[DIFF_TEXT])
{
    char mark[DIFF_TEXT];
    (void)snprintf(mark, sizeof mark, "\"%s\":\"", key);
    const char *found = strstr(hk_buf_cstr(&s->log), mark);
    assert_non_null(found);
    found += strlen(mark);
    assert_true(hk_str_copy(out, DIFF_TEXT, (struct hk_str){found, strcspn(found, "\"")}));
}

static bool do_act(struct hk_model *model, enum diff_kind kind, uint32_t pick)
{
    switch (kind) {
    case DIFF_CANCEL:
        return hk_model_cancel(model, pick);
    case DIFF_DISCARD:
        return hk_model_discard(model, pick);
    case DIFF_EDIT:
        return hk_model_edit(model, pick);
    default:
        return hk_model_requeue(model, pick);
    }
}

static void act(void *arg, enum diff_kind kind, uint32_t pick, struct diff_name *what, struct hk_buf *out)
{
    struct side *s = arg;
    char as[DIFF_TEXT] = "";
    hk_buf_reset(&s->log);
    what->message[0] = '\0';
    if (!do_act(s->model, kind, pick))
        return;
    logged(s, "m", what->message);
    logged(s, "dest", what->destination);
    if (kind == DIFF_REQUEUE)
        logged(s, "as", as);
    struct hk_model_msg *newest =
        s->model->versions.n ? s->model->versions.items[s->model->versions.n - 1] : NULL;
    if (as[0])
        hk_model_text(newest->message_id, hk_str_of(what->message));
    if (kind == DIFF_EDIT) {
        (void)snprintf(newest->payload, sizeof newest->payload, DIFF_EDITED);
        newest->payload_bytes = strlen(newest->payload);
    }
    (void)hk_buf_adds(out, as[0] ? "done, under a new id\n" : "done\n");
    hk_buf_reset(&s->log);
}

/* ---- the tables ---- */

static const char *const statuses[] = {"failed", "retrying", "resolved", "discarded"};

static void dump_retry(const struct model_row *r, struct hk_buf *out)
{
    const struct hk_history *h = &r->history;
    (void)hk_buf_addf(out,
                      "retry|%s|%s|%" PRId64 "|%d|%d|%u|%u|%u|%" PRIu64 "|%" PRId64 "|%" PRId64
                      "|%u|%u|%d|%" PRId64 "|%d\n",
                      r->msg->message_id, r->destination, r->due_ms, r->claim != 0, r->deferred, h->attempts,
                      h->charged, h->failures[HK_CLASS_TRANSIENT], h->prev_wait_ms, h->first_attempt_ms,
                      r->first_failed_ms, r->crashes, r->life, r->letter != 0,
                      h->first_attempt_ms ? r->paused_mark_ms : 0, r->maybe);
}

static void dump_past(const struct hk_model *m, struct hk_buf *out)
{
    for (size_t i = 0; i < m->ends.n; i++) {
        const struct model_end *e = &m->ends.items[i];
        if (e->cancelled)
            (void)hk_buf_addf(out, "cancelled|%s|%s|%u\n", e->msg->message_id, e->destination, e->attempts);
        else
            (void)hk_buf_addf(out, "sent|%s|%s|%u|%u\n", e->msg->message_id, e->destination, e->attempts,
                              e->life);
    }
    for (size_t i = 0; i < m->attempts.n; i++) {
        const struct model_attempt *a = &m->attempts.items[i];
        (void)hk_buf_addf(out, "attempt|%s|%s|%u|%u\n", a->msg->message_id, a->destination, a->life, a->n);
    }
}

static void dump(void *arg, bool whole, struct hk_buf *out)
{
    const struct hk_model *m = ((struct side *)arg)->model;
    size_t cancelled = 0;
    for (size_t i = 0; i < m->outbox.n; i++)
        if (m->outbox.items[i].visible && !m->outbox.items[i].gone)
            (void)hk_buf_addf(out, "outbox|%s|%s|%s\n", m->outbox.items[i].msg->message_id,
                              m->outbox.items[i].msg->destination, m->outbox.items[i].msg->key);
    for (size_t i = 0; i < m->retry.n; i++)
        if (!m->retry.items[i].gone)
            dump_retry(&m->retry.items[i], out);
    for (size_t i = 0; i < m->letters.n; i++) {
        const struct model_letter *l = &m->letters.items[i];
        if (whole || l->status == LETTER_FAILED || l->status == LETTER_RETRYING)
            (void)hk_buf_addf(out, "dead|%s|%s|%s|%s|%u|%u|%d\n", l->msg->message_id, l->destination,
                              l->reason, statuses[l->status], l->attempts, l->life, l->maybe);
    }
    for (size_t i = 0; i < m->paused.n; i++)
        if (m->paused.items[i].paused)
            (void)hk_buf_addf(out, "paused|%s\n", m->paused.items[i].name);
    for (size_t i = 0; i < m->ends.n; i++)
        cancelled += m->ends.items[i].cancelled;
    (void)hk_buf_addf(out, "counts|%zu|%zu|%zu|%zu\n", m->ends.n - cancelled, cancelled, m->attempts.n,
                      m->letters.n);
    if (whole)
        dump_past(m, out);
}

static void close_model(void *arg)
{
    struct side *s = arg;
    hk_model_free(s->model);
    hk_buf_fini(&s->log);
    free(s->msgs);
    free(s);
}

void diff_model_open(struct diff_side *side, size_t messages)
{
    struct side *s = calloc(1, sizeof *s);
    assert_non_null(s);
    s->msgs = calloc(messages + 1, sizeof *s->msgs);
    assert_non_null(s->msgs);
    hk_buf_init(&s->log, 1 << 20);
    struct hk_model_options options = {.ids_at_insert = true, .log = &s->log, .now_ms = model_clock};
    s->model = hk_model_new(&options);
    *side = (struct diff_side){.name = "model",
                               .one_lane = true,
                               .arg = s,
                               .insert = insert,
                               .hold = hold,
                               .let = let,
                               .acquire = acquire,
                               .release = release,
                               .scan = scan,
                               .held_keys = held_keys,
                               .exchange = exchange,
                               .pause = set_paused,
                               .act = act,
                               .dump = dump,
                               .close = close_model};
}
