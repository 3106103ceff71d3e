/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of our own HTTP/2. A connection carries many requests at the same time, so one that hangs would hold up many: it is asked
 * whether it lives (PING) while it owes answers and says nothing, and is closed when it is old, idle or dead.
 *
 *   CONNECTING -> READY (the server's SETTINGS came) -> DRAINING (no new requests) -> DEAD
 *
 * No request goes out before the server's SETTINGS came: a server that does not speak HTTP/2 then has not seen any. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "sink/http/h2.h"

void hk_h2_conn_drain(struct hk_h2_conn *conn)
{
    if (conn->phase == HK_H2_READY)
        conn->phase = HK_H2_DRAINING;
}

/* What came in while it was idle is read first: the server may have ended it. */
bool hk_h2_conn_takes(struct hk_h2_conn *conn)
{
    const struct hk_http_sink *sink = &conn->sink->base;
    if (hk_loop_round_ms(sink->loop) >= conn->made_ms + sink->max_age_ms)
        hk_h2_conn_drain(conn);
    return conn->phase == HK_H2_READY && conn->n_streams < hk_h2_session_room(conn) &&
           (conn->n_streams || hk_stream_is_quiet(conn->stream));
}

/* ---- writing ---- */

/* Where the request ends that was made just now: it is out when the system has taken as much. */
static void note_written(struct hk_h2_conn *conn, size_t n)
{
    if (conn->begun)
        conn->begun->begin_at = conn->written;
    conn->written += n;
    if (conn->ended)
        conn->ended->end_at = conn->written;
    conn->begun = conn->ended = NULL;
}

static void write_frames(struct hk_h2_conn *conn)
{
    struct hk_str bytes;
    while (conn->opened && conn->phase != HK_H2_DEAD && hk_stream_pending(conn->stream) < HK_H2_OUT_MAX) {
        if (!hk_h2_session_next(conn, &bytes)) {
            hk_h2_lost(conn, HK_FAULT_LOCAL, conn->why);
            return;
        }
        if (!bytes.len)
            break;
        note_written(conn, bytes.len);
        if (hk_stream_write(conn->stream, bytes.ptr, bytes.len) != HK_OK) {
            hk_h2_lost(conn, HK_FAULT_LOCAL, "out of memory for a request");
            return;
        }
    }
    if (conn->opened && conn->phase != HK_H2_DEAD)
        hk_stream_flush(conn->stream);
}

/* It has said all, and all is out; or nobody needs it any more. */
static void end_if_over(struct hk_h2_conn *conn)
{
    if (conn->phase == HK_H2_DRAINING && !conn->owners) {
        hk_h2_session_goodbye(conn);
        write_frames(conn);
        conn->phase = HK_H2_DEAD;
    } else if (conn->phase != HK_H2_DEAD && conn->opened && hk_h2_session_over(conn)) {
        hk_h2_lost(conn, conn->going ? HK_FAULT_RESET : HK_FAULT_PROTOCOL,
                   conn->why[0] ? conn->why : "the server ended the connection");
    }
}

void hk_h2_conn_flush(struct hk_h2_conn *conn)
{
    write_frames(conn);
    hk_h2_judge(conn); /* requests that are out now */
    if (conn->phase != HK_H2_DEAD)
        end_if_over(conn);
    if (conn->phase != HK_H2_DEAD)
        return;
    if (conn->settled && !conn->took) /* such a server could have us connect for ever */
        conn->sink->again_ms = hk_loop_round_ms(conn->sink->base.loop) + HK_H2_AGAIN_MS;
    hk_h2_conn_free(conn);
}

/* ---- from the stream ---- */

static void on_opened(void *arg)
{
    struct hk_h2_conn *conn = arg;
    struct hk_http_sink *sink = &conn->sink->base;
    hk_http_enter(sink);
    conn->opened = true;
    hk_http_leave(sink);
}

static void on_came(void *arg, struct hk_str bytes)
{
    struct hk_h2_conn *conn = arg;
    struct hk_http_sink *sink = &conn->sink->base;
    hk_http_enter(sink);
    conn->came_ms = hk_loop_round_ms(sink->loop);
    conn->asked = false;
    if (conn->phase != HK_H2_DEAD && !hk_h2_session_take(conn, bytes)) {
        hk_h2_judge(conn);
        hk_h2_lost(conn, conn->no_memory ? HK_FAULT_LOCAL : HK_FAULT_PROTOCOL, conn->why);
    } else {
        if (conn->phase == HK_H2_CONNECTING && conn->settled)
            conn->phase = conn->going ? HK_H2_DRAINING : HK_H2_READY;
        hk_h2_judge(conn);
    }
    hk_http_leave(sink);
}

static void on_drained(void *arg)
{
    struct hk_h2_conn *conn = arg;
    struct hk_http_sink *sink = &conn->sink->base;
    hk_http_enter(sink);
    conn->news = true;
    hk_http_leave(sink);
}

static void on_ended(void *arg, const struct hk_stream_end *end)
{
    struct hk_h2_conn *conn = arg;
    struct hk_http_sink *sink = &conn->sink->base;
    hk_http_enter(sink);
    if (conn->phase != HK_H2_DEAD)
        hk_h2_lost(conn, end->fault, conn->why[0] ? conn->why : end->text);
    hk_http_leave(sink);
}

/* ---- the clock ---- */

static void look(struct hk_h2_conn *conn, uint64_t now_ms)
{
    if (conn->phase == HK_H2_CONNECTING) {
        hk_h2_lost(conn, HK_FAULT_TIMEOUT, "timeout waiting for the server's HTTP/2 SETTINGS");
        return;
    }
    if (!conn->n_streams) {
        if (now_ms >= conn->idle_ms + HK_H2_IDLE_MS)
            hk_h2_conn_drain(conn);
    } else if (conn->asked && now_ms >= conn->ping_ms + HK_H2_PONG_MS) {
        hk_h2_lost(conn, HK_FAULT_TIMEOUT, "timeout: the server does not answer a PING");
        return;
    } else if (!conn->asked && now_ms >= conn->came_ms + HK_H2_PING_MS) {
        conn->asked = true;
        conn->ping_ms = now_ms;
        hk_h2_session_ping(conn);
    }
    hk_timer_start(conn->clock, HK_H2_TICK_MS);
}

static void on_clock(void *arg)
{
    struct hk_h2_conn *conn = arg;
    struct hk_http_sink *sink = &conn->sink->base;
    hk_http_enter(sink);
    if (conn->phase != HK_H2_DEAD)
        look(conn, hk_loop_now_ms(sink->loop));
    hk_http_leave(sink);
}

/* ---- making and ending ---- */

static const struct hk_stream_calls calls = {
    .opened = on_opened,
    .came = on_came,
    .drained = on_drained,
    .ended = on_ended,
};

static void add(struct hk_h2_sink *sink, struct hk_h2_conn *conn)
{
    conn->next = sink->conns;
    if (sink->conns)
        sink->conns->prev = conn;
    sink->conns = conn;
    sink->n_conns++;
}

static void take_away(struct hk_h2_conn *conn)
{
    if (conn->prev)
        conn->prev->next = conn->next;
    else
        conn->sink->conns = conn->next;
    if (conn->next)
        conn->next->prev = conn->prev;
    conn->sink->n_conns--;
}

enum hk_code hk_h2_conn_new(struct hk_h2_sink *sink, struct hk_err *err)
{
    const struct hk_http_sink *base = &sink->base;
    struct hk_h2_conn *conn = hk_mem_zalloc(1, sizeof *conn);
    if (!conn)
        return hk_err_set(err, HK_NOMEM, "out of memory for a connection");
    conn->sink = sink;
    conn->made_ms = conn->came_ms = conn->idle_ms = hk_loop_now_ms(base->loop);
    add(sink, conn);
    hk_h2_renew_tls(sink);

    const struct hk_stream_options options = {.host = sink->host,
                                              .port = sink->port,
                                              .tls = sink->tls_files,
                                              .allow = base->allow,
                                              .n_allow = base->n_allow,
                                              .connect_timeout_ms = base->connect_timeout_ms,
                                              .drained_late = true,
                                              .calls = &calls,
                                              .arg = conn};
    enum hk_code rc = hk_h2_session_new(conn);
    if (rc == HK_OK)
        rc = hk_timer_new(base->loop, on_clock, conn, &conn->clock);
    if (rc == HK_OK)
        rc = hk_stream_open(base->loop, &options, &conn->stream, err);
    if (rc == HK_OK) {
        /* the stream has the same deadline, and knows better what it waits for */
        hk_timer_start(conn->clock, base->connect_timeout_ms + HK_H2_AGAIN_MS);
        return HK_OK;
    }
    hk_h2_conn_free(conn);
    return hk_err_set(err, rc, "out of memory for a connection");
}

void hk_h2_conn_free(struct hk_h2_conn *conn)
{
    take_away(conn);
    hk_stream_close(conn->stream);
    hk_timer_free(conn->clock);
    hk_h2_session_free(conn);
    hk_mem_free(conn);
}
