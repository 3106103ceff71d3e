/* SPDX-License-Identifier: Apache-2.0 */
/* One message, once, now, from here. */
#include "base/str.h"
#include "desk/deliver.h"
#include "exec/clock.h"
#include "relay/wiring.h"

#define LONGEST_MS UINT64_C(300000)

struct delivery {
    const struct hk_policy *policy;
    struct hk_loop *loop;
    struct hk_pool *mem;
    struct hk_sink *sink;
    struct hk_delivery ask;
    struct hk_timer *patience; /* with a sink that has no room */
    enum hk_code rc;
    struct hk_err err;
    struct hk_delivered got;
};

/* Copies the sink's facts. The request was sent, so its outcome must be reported even if memory is short. */
static struct hk_str keep(struct delivery *d, struct hk_str text)
{
    const char *copy = hk_pool_copy_str(d->mem, text);
    return copy ? (struct hk_str){copy, text.len} : hk_str_of("(out of memory)");
}

static void on_done(void *arg, const struct hk_sink_result *result)
{
    struct delivery *d = arg;
    const struct hk_facts *facts = &result->facts;
    char cause[HK_REASON_MAX] = "";
    bool pause = false;
    struct hk_sink_shown shown = result->show(result);
    d->got.failure_class = hk_policy_classify(d->policy, facts, cause, &pause);
    d->got.cause = keep(d, hk_str_of(cause));
    d->got.status = facts->status;
    d->got.fault = facts->fault;
    d->got.duration_ms = facts->duration_ms;
    d->got.possibly_delivered = facts->possibly_delivered;
    d->got.error = keep(d, facts->error);
    d->got.address = keep(d, result->address);
    d->got.request_headers = keep(d, shown.request_headers);
    d->got.response_headers = keep(d, shown.response_headers);
    d->got.body = keep(d, facts->body);
    hk_loop_stop(d->loop);
}

static void try_send(struct delivery *d)
{
    d->rc = d->sink->ops->send(d->sink, &d->ask, &d->err);
    if (d->rc == HK_OK && d->sink->ops->flush)
        d->sink->ops->flush(d->sink);
}

static void on_room(void *arg)
{
    struct delivery *d = arg;
    if (d->rc == HK_BUSY)
        try_send(d);
    if (d->rc != HK_OK && d->rc != HK_BUSY)
        hk_loop_stop(d->loop);
}

static void on_patience(void *arg)
{
    struct delivery *d = arg;
    if (d->rc == HK_BUSY) /* else it is on its way, and ends in its own time */
        hk_loop_stop(d->loop);
}

static enum hk_code send_and_wait(struct delivery *d, const struct hk_message *message, struct hk_err *err)
{
    struct hk_history history = {.attempts = 0};
    const struct hk_overrides asked = {.timeout_ms = message->timeout_ms};
    uint64_t timeout_ms = hk_policy_attempt_ms(d->policy, &asked, &history, 0);
    timeout_ms = timeout_ms == 0 || timeout_ms > LONGEST_MS ? LONGEST_MS : timeout_ms;
    d->got.started_ms = hk_clock_wall_ms();
    d->ask = (struct hk_delivery){.msg = message,
                                  .attempt = 1,
                                  .wall_ms = d->got.started_ms,
                                  .timeout_ms = timeout_ms,
                                  .done = on_done,
                                  .arg = d};
    if (hk_timer_new(d->loop, on_patience, d, &d->patience) != HK_OK)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    hk_timer_start(d->patience, timeout_ms);
    d->sink->room = on_room;
    d->sink->room_arg = d;
    try_send(d);
    if (d->rc == HK_OK || d->rc == HK_BUSY)
        hk_loop_run(d->loop);
    hk_timer_free(d->patience);
    if (d->rc != HK_OK)
        *err = d->err;
    return d->rc;
}

enum hk_code hk_deliver(const struct hk_conf_destination *conf, const struct hk_policy *policy,
                        const struct hk_message *message, struct hk_pool *mem, struct hk_delivered *out,
                        struct hk_err *err)
{
    struct delivery d = {.policy = policy, .mem = mem, .got = {.failure_class = HK_CLASS_UNKNOWN}};
    enum hk_code rc = hk_loop_new(&d.loop, err);
    if (rc == HK_OK)
        rc = hk_wiring_sink(conf, d.loop, &d.sink, err);
    if (rc == HK_INVALID) { /* the configuration, not the request, is wrong */
        struct hk_err why = *err;
        rc = hk_err_set(err, HK_UNSUPPORTED, "%s", why.message);
    }
    if (d.sink) {
        rc = send_and_wait(&d, message, err);
        d.sink->ops->close(d.sink);
    }
    if (d.loop)
        hk_loop_free(d.loop);
    if (rc == HK_OK)
        *out = d.got;
    return rc;
}
