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
    struct hk_delivered got;
};

/* What a sink shows is the sink's. It was sent, whatever memory there is: how that ended must be told. */
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

static enum hk_code send_and_wait(struct delivery *d, struct hk_sink *sink, const struct hk_message *message,
                                  struct hk_err *err)
{
    struct hk_history history = {.attempts = 0};
    const struct hk_overrides asked = {.timeout_ms = message->timeout_ms};
    uint64_t timeout_ms = hk_policy_attempt_ms(d->policy, &asked, &history, 0);
    timeout_ms = timeout_ms == 0 || timeout_ms > LONGEST_MS ? LONGEST_MS : timeout_ms;
    d->got.started_ms = hk_clock_wall_ms();
    enum hk_code rc = sink->ops->send(sink, message, 1, d->got.started_ms, timeout_ms, on_done, d, err);
    if (rc == HK_OK)
        hk_loop_run(d->loop);
    return rc;
}

enum hk_code hk_deliver(const struct hk_conf_destination *conf, const struct hk_policy *policy,
                        const struct hk_message *message, struct hk_pool *mem, struct hk_delivered *out,
                        struct hk_err *err)
{
    struct delivery d = {.policy = policy, .mem = mem, .got = {.failure_class = HK_CLASS_UNKNOWN}};
    struct hk_sink *sink = NULL;
    enum hk_code rc = hk_loop_new(&d.loop, err);
    if (rc == HK_OK)
        rc = hk_wiring_sink(conf, d.loop, &sink, err);
    if (rc == HK_INVALID) { /* the configuration, not the request, is wrong */
        struct hk_err why = *err;
        rc = hk_err_set(err, HK_UNSUPPORTED, "%s", why.message);
    }
    if (sink) {
        rc = send_and_wait(&d, sink, message, err);
        sink->ops->close(sink);
    }
    if (d.loop)
        hk_loop_free(d.loop);
    if (rc == HK_OK)
        *out = d.got;
    return rc;
}
