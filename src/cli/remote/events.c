/* SPDX-License-Identifier: Apache-2.0 */
/* Live events from a relay: a stream of server-sent events, taken one at a time as they come.
 *
 * Heartbeats are asked for in any case: without them a quiet relay and one that is gone look the same. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/remote/remote.h"
#include "desk/wire.h"
#include "exec/clock.h"

#define LINE_MAX_BYTES ((size_t)256 << 10)

struct listening {
    const struct hk_events_ask *ask;
    struct hk_events_told *out;
    unsigned types;     /* that the caller wants */
    struct hk_buf line; /* as far as it is there */
    struct hk_buf data; /* of the event that is coming */
    bool is_event;      /* its type is known, */
    enum hk_event_type type;
    bool ended;   /* by the event 'end', */
    bool enough;  /* or because no more is wanted */
    bool too_big; /* or because it is no such stream */
};

static void take_event(struct listening *l)
{
    if (l->is_event && (l->types >> l->type & 1u) != 0) {
        l->out->events++;
        l->enough = !l->ask->take(l->ask->take_arg, l->type, hk_buf_str(&l->data));
    }
    l->ended = l->is_event && l->type == HK_EVENT_END;
    l->is_event = false;
    hk_buf_reset(&l->data);
}

/* "event: state", "data: {…}"; an empty line ends the event. Ids, comments and fields of later versions are passed over. */
static void take_line(struct listening *l, struct hk_str line)
{
    struct hk_str value = line;
    struct hk_str name = hk_str_cut(&value, ':');
    if (line.len == 0) {
        take_event(l);
        return;
    }
    if (value.ptr && value.len > 0 && value.ptr[0] == ' ')
        value = (struct hk_str){value.ptr + 1, value.len - 1};
    if (hk_str_eq(name, hk_str_of("event")))
        l->is_event = hk_event_by_word(value, &l->type);
    else if (hk_str_eq(name, hk_str_of("data")) && value.ptr)
        (void)hk_buf_add(&l->data, value.ptr, value.len);
}

static bool take_bytes(void *arg, struct hk_str bytes)
{
    struct listening *l = arg;
    const char *end = NULL;
    while (!l->ended && !l->enough && bytes.len > 0 && (end = memchr(bytes.ptr, '\n', bytes.len)) != NULL) {
        size_t len = (size_t)(end - bytes.ptr);
        (void)hk_buf_add(&l->line, bytes.ptr, len);
        take_line(l, hk_buf_str(&l->line));
        l->too_big = l->too_big || hk_buf_status(&l->line) != HK_OK || hk_buf_status(&l->data) != HK_OK;
        hk_buf_reset(&l->line);
        bytes = (struct hk_str){end + 1, bytes.len - len - 1};
    }
    (void)hk_buf_add(&l->line, bytes.ptr, bytes.len);
    l->too_big = l->too_big || hk_buf_status(&l->line) != HK_OK;
    return !l->ended && !l->enough && !l->too_big;
}

/* Why it is over. A stream that ends by itself before its time is the relay's doing. */
static enum hk_code judge(const struct listening *l, const struct hk_caller *caller, int64_t began_us,
                          enum hk_code rc, struct hk_err *err)
{
    bool in_time = l->ask->for_ms > 0 && (uint64_t)(hk_clock_us() - began_us) / 1000 >= l->ask->for_ms;
    if (l->too_big)
        return hk_err_set(err, HK_TOOBIG, "an event of the relay is too large");
    if (l->enough || hk_caller_stops(caller) || (l->ended && in_time))
        return HK_OK;
    if (rc == HK_OK || l->ended)
        return hk_err_set(
            err, HK_UNAVAILABLE,
            "the relay has ended the stream of events: it is shutting down, or the token does not "
            "hold any more");
    return rc;
}

/* The types that are asked for, and heartbeats. */
static const char *wanted_types(const struct hk_events_ask *ask, struct hk_pool *mem)
{
    struct hk_buf text;
    if (!ask->types)
        return NULL;
    hk_buf_init(&text, LINE_MAX_BYTES);
    (void)hk_buf_addf(&text, "%s,%s", ask->types, hk_event_word(HK_EVENT_HEARTBEAT));
    const char *types = hk_buf_status(&text) == HK_OK ? hk_pool_copy_str(mem, hk_buf_str(&text)) : NULL;
    hk_buf_fini(&text);
    return types ? types : ask->types;
}

static enum hk_code listen_to(struct hk_remote *remote, struct hk_desk *desk, const struct hk_caller *caller,
                              struct listening *l, struct hk_pool *mem, struct hk_err *err)
{
    struct hk_events_ask ask = *l->ask;
    struct hk_remote_answer answer = {.status = 0};
    struct hk_wire_out wire;
    struct hk_buf path;
    const struct hk_wire_caller said = {.reason = NULL};
    int64_t began_us = hk_clock_us();
    ask.types = wanted_types(&ask, mem);
    hk_wire_out_init(&wire);
    hk_buf_init(&path, (size_t)1 << 20);
    (void)hk_buf_adds(&path, "/api/v1");
    enum hk_code rc = hk_wire_write(&hk_op_events, &ask, &said, &wire, err);
    (void)hk_buf_adds(&path, hk_buf_cstr(&wire.path));
    const struct hk_remote_call call = {.method = "GET",
                                        .path = hk_buf_cstr(&path),
                                        .stop = caller->stop,
                                        .arg = caller->arg,
                                        .take = take_bytes,
                                        .take_arg = l};
    if (rc == HK_OK)
        rc = judge(l, caller, began_us, hk_remote_call(remote, desk, &call, mem, &answer, err), err);
    hk_buf_fini(&answer.body);
    hk_buf_fini(&path);
    hk_wire_out_fini(&wire);
    return rc;
}

enum hk_code hk_remote_events(struct hk_remote *remote, struct hk_desk *desk, const struct hk_caller *caller,
                              const struct hk_events_ask *ask, struct hk_pool *mem,
                              struct hk_events_told *out, struct hk_err *err)
{
    struct listening l = {.ask = ask, .out = out};
    *out = (struct hk_events_told){.events = 0};
    if (!hk_event_types(ask->types, &l.types))
        return hk_err_set(err, HK_INVALID, "no such types of events");
    hk_buf_init(&l.line, LINE_MAX_BYTES);
    hk_buf_init(&l.data, LINE_MAX_BYTES);
    enum hk_code rc = listen_to(remote, desk, caller, &l, mem, err);
    hk_buf_fini(&l.line);
    hk_buf_fini(&l.data);
    return rc;
}
