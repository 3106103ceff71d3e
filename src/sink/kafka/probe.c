/* SPDX-License-Identifier: Apache-2.0 */
/* Is the cluster there, does it let us in, and does it know the topic? Blocks, for people who ask. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/str.h"
#include "sink/kafka/impl.h"

struct probe {
    rd_kafka_t *rk;
    struct hk_kafka_guard *guard;
    const struct hk_kafka_options *options;
    struct hk_kafka_said said; /* what it met last */
    int64_t until_ms;
    enum hk_fault token; /* why the endpoint gave no token; NONE: it did, or nobody asked */
};

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void ignore_log(const rd_kafka_t *rk, int level, const char *facility, const char *text)
{
    (void)rk, (void)level, (void)facility, (void)text;
}

static void bring_token(struct probe *p)
{
    char why[HK_KAFKA_TEXT_MAX];
    int64_t left_ms = p->until_ms - now_ms();
    enum hk_fault fault = hk_kafka_token_fetch(p->rk, p->options, left_ms > 0 ? (uint64_t)left_ms : 1, why);
    if (fault == HK_FAULT_NONE)
        return;
    p->token = fault;
    p->said.fault = fault;
    p->said.code = RD_KAFKA_RESP_ERR__AUTHENTICATION;
    (void)snprintf(p->said.text, sizeof p->said.text, "%s", why);
}

static void hear(struct probe *p)
{
    rd_kafka_queue_t *queue = rd_kafka_queue_get_main(p->rk);
    rd_kafka_event_t *event = NULL;
    while ((event = rd_kafka_queue_poll(queue, 0)) != NULL) {
        rd_kafka_resp_err_t code = rd_kafka_event_error(event);
        const char *text = rd_kafka_event_error_string(event);
        bool error = rd_kafka_event_type(event) == RD_KAFKA_EVENT_ERROR;
        enum hk_fault fault = error ? hk_kafka_trouble(code, text) : HK_FAULT_NONE;
        if (fault != HK_FAULT_NONE && p->token == HK_FAULT_NONE) {
            p->said.fault = fault;
            p->said.code = code;
            (void)snprintf(p->said.text, sizeof p->said.text, "%s", text);
        }
        if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_OAUTHBEARER_TOKEN_REFRESH)
            bring_token(p);
        rd_kafka_event_destroy(event);
    }
    rd_kafka_queue_destroy(queue);
}

static enum hk_code open_probe(struct probe *p, struct hk_err *err)
{
    char why[HK_KAFKA_TEXT_MAX] = "";
    struct hk_buf settings;
    hk_buf_init(&settings, 256 * 1024);
    hk_kafka_settings(&settings, p->options);
    rd_kafka_conf_t *conf = hk_buf_status(&settings) == HK_OK ? hk_kafka_conf(&settings, err) : NULL;
    bool whole = hk_buf_status(&settings) == HK_OK;
    hk_mem_wipe(settings.data, settings.len);
    hk_buf_fini(&settings);
    p->guard = hk_kafka_guard_new(p->options->allow, p->options->n_allow);
    if (!conf || !p->guard) {
        if (conf)
            rd_kafka_conf_destroy(conf);
        return whole && p->guard ? HK_INVALID : hk_err_set(err, HK_NOMEM, "out of memory");
    }
    rd_kafka_conf_set_opaque(conf, p->guard);
    rd_kafka_conf_set_connect_cb(conf, hk_kafka_guard_connect);
    rd_kafka_conf_set_log_cb(conf, ignore_log);
    rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_ERROR | RD_KAFKA_EVENT_OAUTHBEARER_TOKEN_REFRESH);
    p->rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    if (p->rk)
        return HK_OK;
    rd_kafka_conf_destroy(conf);
    return hk_err_set(err, HK_INVALID, "kafka: %s", why);
}

static enum hk_code judge_topic(const struct rd_kafka_metadata *all, const char *topic,
                                char out[HK_KAFKA_PROBE_MAX], struct hk_err *err)
{
    const char *brokers = all->broker_cnt == 1 ? "broker" : "brokers";
    if (strchr(topic, '{')) {
        (void)snprintf(out, HK_KAFKA_PROBE_MAX, "%d %s; the topic depends on the message", all->broker_cnt,
                       brokers);
        return HK_OK;
    }
    int i = 0;
    while (i < all->topic_cnt && strcmp(all->topics[i].topic, topic) != 0)
        i++;
    const struct rd_kafka_metadata_topic *t = i < all->topic_cnt ? &all->topics[i] : NULL;
    if (!t)
        return hk_err_set(err, HK_NOTFOUND,
                          "topic %s: the cluster has none of that name, or the user has no right to see it",
                          topic);
    if (t->err != RD_KAFKA_RESP_ERR_NO_ERROR)
        return hk_err_set(err, HK_UNAVAILABLE, "topic %s: %s: %s", topic, rd_kafka_err2name(t->err),
                          rd_kafka_err2str(t->err));
    (void)snprintf(out, HK_KAFKA_PROBE_MAX, "%d %s; topic %.250s has %d partition%s", all->broker_cnt,
                   brokers, topic, t->partition_cnt, t->partition_cnt == 1 ? "" : "s");
    return HK_OK;
}

static enum hk_code nobody_answers(struct probe *p, struct hk_err *err)
{
    char blocked[HK_KAFKA_TEXT_MAX];
    if (hk_kafka_guard_blocked(p->guard, blocked))
        return hk_err_set(err, HK_UNAVAILABLE, "%s", blocked);
    if (p->said.fault == HK_FAULT_NONE)
        return hk_err_set(err, HK_UNAVAILABLE, "no broker answers");
    bool denied = p->said.fault == HK_FAULT_BROKER_AUTH || p->said.fault == HK_FAULT_TOKEN_REFUSED;
    return hk_err_set(err, denied ? HK_DENIED : HK_UNAVAILABLE, "%s: %.200s%s",
                      rd_kafka_err2name(p->said.code), p->said.text,
                      denied ? hk_kafka_login_hint(p->options->mechanism) : "");
}

static enum hk_code ask(struct probe *p, uint64_t timeout_ms, char out[HK_KAFKA_PROBE_MAX],
                        struct hk_err *err)
{
    const struct rd_kafka_metadata *all = NULL;
    p->until_ms = now_ms() + (int64_t)timeout_ms;
    rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR__TIMED_OUT;
    /* in slices, since a token has to be brought meanwhile, and a wrong password needs no patience */
    while (code != RD_KAFKA_RESP_ERR_NO_ERROR && now_ms() < p->until_ms &&
           p->said.fault != HK_FAULT_BROKER_AUTH && p->token == HK_FAULT_NONE) {
        hear(p);
        code = rd_kafka_metadata(p->rk, 1, NULL, &all, 250); /* of all: to ask for one may make it */
    }
    hear(p);
    enum hk_code rc = code == RD_KAFKA_RESP_ERR_NO_ERROR ? judge_topic(all, p->options->topic, out, err)
                                                         : nobody_answers(p, err);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
        rd_kafka_metadata_destroy(all);
    return rc;
}

enum hk_code hk_kafka_probe(const struct hk_kafka_options *options, uint64_t timeout_ms,
                            char out[HK_KAFKA_PROBE_MAX], struct hk_err *err)
{
    struct probe p = {.options = options};
    enum hk_code rc = open_probe(&p, err);
    if (rc == HK_OK) {
        rc = ask(&p, timeout_ms, out, err);
        rd_kafka_destroy(p.rk);
    }
    hk_kafka_guard_free(p.guard);
    return rc;
}
