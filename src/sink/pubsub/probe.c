/* SPDX-License-Identifier: Apache-2.0 */
/* May these credentials publish to the topic? testIamPermissions needs no right and says it. An emulator does not know that method, so it is
 * asked to publish nothing: a topic that is there refuses that, and another one is not found. Blocks, for people who ask. */
#include <stdio.h>

#include "base/str.h"
#include "sink/pubsub/impl.h"

enum {
    SHOWN_MAX = 200
};

#define PERMISSION "pubsub.topics.publish"

struct probe {
    struct hk_loop *loop;
    const struct hk_pubsub_options *options;
    char *out;
    struct hk_err *err;
    enum hk_code rc;
};

static enum hk_code say_refused(const struct hk_facts *facts, struct hk_err *err)
{
    bool maybe = false, some = false;
    struct hk_pubsub_error error;
    hk_pubsub_error_read(facts->body, facts->status, &error);
    bool denied = hk_pubsub_fault(&error, facts->status, &maybe, &some) == HK_FAULT_BROKER_AUTH;
    return hk_err_set(err,
                      denied                 ? HK_DENIED
                      : facts->status == 404 ? HK_NOTFOUND
                                             : HK_UNAVAILABLE,
                      "Pub/Sub says HTTP %d %s: %.*s", facts->status, error.code, SHOWN_MAX, error.words);
}

static enum hk_code judge_permission(struct probe *p, const struct hk_facts *facts)
{
    int may = hk_pubsub_permission_read(facts->body, PERMISSION);
    if (may < 0)
        return hk_err_set(p->err, HK_UNAVAILABLE, "the endpoint does not answer as Pub/Sub does");
    if (may == 0)
        return hk_err_set(p->err, HK_DENIED,
                          "topic projects/%.100s/topics/%.100s: these credentials may not publish to it "
                          "(" PERMISSION "), or there is no such topic",
                          p->options->project, p->options->topic);
    (void)snprintf(p->out, HK_PUBSUB_PROBE_MAX, "these credentials may publish to the topic");
    return HK_OK;
}

static bool is_there(const struct probe *p, const struct hk_facts *facts)
{
    struct hk_pubsub_error error;
    hk_pubsub_error_read(facts->body, facts->status, &error);
    return p->options->emulator &&
           (facts->status == 200 || hk_str_eq(hk_str_of(error.code), hk_str_of("INVALID_ARGUMENT")));
}

static void on_answer(void *arg, const struct hk_sink_result *result)
{
    struct probe *p = arg;
    const struct hk_facts *facts = &result->facts;
    if (!facts->status) {
        bool denied = facts->fault == HK_FAULT_TOKEN_REFUSED;
        p->rc = hk_err_set(p->err, denied ? HK_DENIED : HK_UNAVAILABLE, "%.*s", (int)facts->error.len,
                           facts->error.ptr);
    } else if (is_there(p, facts)) {
        (void)snprintf(p->out, HK_PUBSUB_PROBE_MAX, "the topic is there, in an emulator");
        p->rc = HK_OK;
    } else if (facts->status / 100 != 2) {
        p->rc = say_refused(facts, p->err);
    } else {
        p->rc = judge_permission(p, facts);
    }
    hk_loop_stop(p->loop);
}

static enum hk_code ask(struct probe *p, uint64_t timeout_ms, struct hk_err *err)
{
    struct hk_pubsub_client *client = NULL;
    bool emulator = p->options->emulator;
    const struct hk_message msg = {
        .payload = hk_str_of(emulator ? "{\"messages\":[]}" : "{\"permissions\":[\"" PERMISSION "\"]}")};
    enum hk_code rc =
        hk_pubsub_client_open(p->loop, p->options, emulator ? "publish" : "testIamPermissions", &client, err);
    if (rc == HK_OK)
        rc = hk_pubsub_client_call(client, &msg, timeout_ms, on_answer, p, err);
    if (rc == HK_OK) {
        hk_loop_run(p->loop);
        rc = p->rc;
    }
    hk_pubsub_client_free(client);
    return rc;
}

enum hk_code hk_pubsub_probe(const struct hk_pubsub_options *options, uint64_t timeout_ms,
                             char out[HK_PUBSUB_PROBE_MAX], struct hk_err *err)
{
    struct probe p = {.options = options, .out = out, .err = err, .rc = HK_UNAVAILABLE};
    enum hk_code rc = hk_loop_new(&p.loop, err);
    if (rc != HK_OK)
        return rc;
    rc = ask(&p, timeout_ms, err);
    hk_loop_free(p.loop);
    return rc;
}
