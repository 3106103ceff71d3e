/* SPDX-License-Identifier: Apache-2.0 */
/* The relay's events. A log that cannot be written ends the relay's part in it, not the relay. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "observe/eventlog.h"
#include "relay/events.h"

enum {
    LINE_MAX_BYTES = 8192
};

struct hk_events {
    int fd;
    char relay[128];
};

enum hk_code hk_events_open(const char *path, const char *relay, struct hk_events **out_events,
                            struct hk_err *err)
{
    *out_events = NULL;
    if (!path || !path[0])
        return HK_OK;
    struct hk_events *e = hk_mem_zalloc(1, sizeof *e);
    if (!e)
        return hk_err_set(err, HK_NOMEM, "out of memory for the event log");
    e->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (e->fd < 0) {
        hk_mem_free(e);
        return hk_err_set(err, HK_IO, "event log %s: %s", path, strerror(errno));
    }
    (void)hk_str_copy(e->relay, sizeof e->relay, hk_str_of(relay));
    *out_events = e;
    return HK_OK;
}

void hk_events_close(struct hk_events *e)
{
    if (!e)
        return;
    (void)close(e->fd);
    hk_mem_free(e);
}

static void put(struct hk_events *e, struct hk_event_line line)
{
    struct hk_buf out;
    line.relay = hk_str_of(e->relay);
    hk_buf_init(&out, LINE_MAX_BYTES);
    hk_eventlog_add(&out, &line);
    if (hk_buf_status(&out) == HK_OK)
        (void)!write(e->fd, out.data, out.len);
    hk_buf_fini(&out);
}

static char source_char(enum hk_source source)
{
    return source == HK_FROM_OUTBOX ? 'o' : 'r';
}

void hk_events_acquired(struct hk_events *e, int64_t store_now_ms, int64_t lane, uint64_t lease_ms)
{
    if (e)
        put(e, (struct hk_event_line){.ev = HK_LOG_ACQUIRE,
                                      .t = store_now_ms,
                                      .lane = lane,
                                      .until = store_now_ms + (int64_t)lease_ms});
}

void hk_events_released(struct hk_events *e, int64_t store_now_ms, int64_t lane)
{
    if (e)
        put(e, (struct hk_event_line){.ev = HK_LOG_RELEASE, .t = store_now_ms, .lane = lane});
}

static struct hk_str kind_of(enum hk_settle_kind kind)
{
    static const char *const names[] = {
        [HK_SETTLE_SENT] = "sent",       [HK_SETTLE_RETRY] = "retry", [HK_SETTLE_DEAD] = "dead",
        [HK_SETTLE_RELEASE] = "release", [HK_SETTLE_DEFER] = "defer", [HK_SETTLE_FAN_OUT] = "fan_out",
    };
    return hk_str_of(names[kind]);
}

static void put_settle(struct hk_events *e, int64_t t, int64_t lane, const struct hk_settle *s, bool stale,
                       bool stuck)
{
    put(e, (struct hk_event_line){.ev = stuck ? HK_LOG_STUCK : HK_LOG_SETTLE,
                                  .t = t,
                                  .m = s->message_id,
                                  .dest = s->destination,
                                  .source = source_char(s->source),
                                  .id = s->id,
                                  .lane = lane,
                                  .claim = s->claim,
                                  .life = s->life,
                                  .kind = kind_of(s->kind),
                                  .rows = !stale,
                                  .due = s->due_ms,
                                  .attempt = s->history.attempts,
                                  .charged = s->history.charged,
                                  .reason = s->reason});
}

void hk_events_exchanged(struct hk_events *e, const struct hk_exchange *asked,
                         const struct hk_exchanged *done)
{
    if (!e)
        return;
    put(e, (struct hk_event_line){.ev = HK_LOG_RENEW,
                                  .t = done->now_ms,
                                  .lane = asked->lane,
                                  .until = done->now_ms + (int64_t)asked->lease_ms});
    for (size_t i = 0; i < asked->n_settles; i++)
        put_settle(e, done->now_ms, asked->lane, &asked->settles[i], done->stale[i],
                   hk_settle_is_stuck(done, i));
    for (size_t i = 0; i < done->n_messages; i++) {
        const struct hk_message *m = &done->messages[i];
        put(e, (struct hk_event_line){.ev = HK_LOG_CLAIM,
                                      .t = done->now_ms,
                                      .m = m->message_id,
                                      .dest = m->destination,
                                      .source = source_char(m->source),
                                      .id = m->id,
                                      .lane = asked->lane,
                                      .claim = done->claim,
                                      .life = m->life});
    }
}

static struct hk_event_line in_hand(int64_t t, int64_t lane, int64_t claim, const struct hk_message *m,
                                    const char *destination)
{
    return (struct hk_event_line){.t = t,
                                  .m = m->message_id,
                                  .dest = hk_str_of(destination),
                                  .source = source_char(m->source),
                                  .id = m->id,
                                  .lane = lane,
                                  .claim = claim,
                                  .life = m->life};
}

void hk_events_send(struct hk_events *e, int64_t store_now_ms, int64_t lane, const struct hk_action *action,
                    const char *destination)
{
    if (!e)
        return;
    struct hk_event_line line = in_hand(store_now_ms, lane, action->claim, action->message, destination);
    line.ev = HK_LOG_SEND;
    line.attempt = action->attempt;
    put(e, line);
}

void hk_events_busy(struct hk_events *e, int64_t store_now_ms, int64_t lane, int64_t claim,
                    const struct hk_message *message, const char *destination)
{
    if (!e)
        return;
    struct hk_event_line line = in_hand(store_now_ms, lane, claim, message, destination);
    line.ev = HK_LOG_BUSY;
    put(e, line);
}

void hk_events_room(struct hk_events *e, int64_t store_now_ms, const char *destination)
{
    if (e)
        put(e, (struct hk_event_line){.ev = HK_LOG_ROOM, .t = store_now_ms, .dest = hk_str_of(destination)});
}

/* The wait that the answer asks for, in headers that policies obey by default; 0 = none. */
static int64_t asked_ms(const struct hk_facts *facts, int64_t wall_ms)
{
    uint64_t ms = 0;
    bool heard = facts->status == 429 || facts->status == 503;
    if (!heard || !hk_hint_ms(facts->headers, facts->n_headers, wall_ms, &ms))
        return 0;
    return ms < INT64_MAX ? (int64_t)ms : INT64_MAX;
}

void hk_events_sent(struct hk_events *e, int64_t store_now_ms, int64_t lane, int64_t claim,
                    const struct hk_message *message, const char *destination, const struct hk_facts *facts)
{
    if (!e)
        return;
    struct hk_event_line line = in_hand(store_now_ms, lane, claim, message, destination);
    bool success = facts->status >= 200 && facts->status <= 299;
    bool confirmed =
        facts->fault == HK_FAULT_NONE && (success || !facts->status); /* a broker has no status */
    line.ev = confirmed ? HK_LOG_CONFIRM : HK_LOG_FAIL;
    line.kind = hk_str_of(facts->fault == HK_FAULT_LOCAL ? "local" : "");
    line.status = facts->status;
    line.maybe = facts->possibly_delivered;
    line.wait = asked_ms(facts, store_now_ms);
    put(e, line);
}

void hk_events_keyless(struct hk_events *e, int64_t store_now_ms, int64_t lane, int64_t claim,
                       const struct hk_message *message, const char *destination)
{
    if (!e)
        return;
    struct hk_event_line line = in_hand(store_now_ms, lane, claim, message, destination);
    line.ev = HK_LOG_KEYLESS;
    put(e, line);
}
