/* SPDX-License-Identifier: Apache-2.0 */
/* One handle of librdkafka: what goes in, what comes back, and its end.
 *
 * On its threads run hk_kafka_guard_connect, and on_news below, which only wakes the loop. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/str.h"
#include "sink/kafka/impl.h"

enum {
    TOPICS_MAX = 256,    /* kept by name, of one producer */
    EVENTS_A_ROUND = 64, /* each may bring thousands of reports */
    END_MS = 1000,       /* that the loop waits for a producer's end */
    SHORTER_MS = 1500,   /* librdkafka looks at its own time-outs once a second */
    SHORTEST_MS = 1100
};

/* ---- its end ---- */

struct ending {
    pthread_mutex_t lock;
    pthread_cond_t news;
    rd_kafka_t *rk;
    struct hk_kafka_guard *guard;
    bool over, left; /* by the thread; by the loop */
};

static void ending_free(struct ending *e)
{
    (void)pthread_mutex_destroy(&e->lock);
    (void)pthread_cond_destroy(&e->news);
    hk_mem_free(e);
}

static void *end_main(void *arg)
{
    struct ending *e = arg;
    rd_kafka_destroy_flags(e->rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    hk_kafka_guard_free(e->guard);
    (void)pthread_mutex_lock(&e->lock);
    e->over = true;
    bool mine = e->left;
    (void)pthread_cond_signal(&e->news);
    (void)pthread_mutex_unlock(&e->lock);
    if (mine)
        ending_free(e);
    return NULL;
}

/* Takes no signals: they are the loop's. */
static bool start_thread(struct ending *e)
{
    sigset_t all, before;
    pthread_t thread;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    bool ok = pthread_create(&thread, NULL, end_main, e) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (ok)
        (void)pthread_detach(thread);
    return ok;
}

static void wait_for(struct ending *e)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += END_MS / 1000;
    (void)pthread_mutex_lock(&e->lock);
    while (!e->over && pthread_cond_timedwait(&e->news, &e->lock, &until) == 0)
        ;
    bool mine = e->over;
    e->left = true;
    (void)pthread_mutex_unlock(&e->lock);
    if (mine)
        ending_free(e);
}

/* A thread of librdkafka may hang in a look-up of names: nobody waits for that. */
static void end_handle(rd_kafka_t *rk, struct hk_kafka_guard *guard)
{
    struct ending *e = hk_mem_zalloc(1, sizeof *e);
    if (!e)
        return; /* a leak is better than a loop that hangs */
    e->rk = rk;
    e->guard = guard;
    (void)pthread_mutex_init(&e->lock, NULL);
    (void)pthread_cond_init(&e->news, NULL);
    if (start_thread(e))
        wait_for(e);
    else
        ending_free(e);
}

/* ---- what comes back ---- */

static void unlink_entry(struct hk_kafka_producer *p, struct hk_kafka_entry *e)
{
    if (e->above)
        e->above->below = e->below;
    else
        p->entries = e->below;
    if (e->below)
        e->below->above = e->above;
    e->producer = NULL;
    e->below = e->above = NULL;
}

static void on_reports(struct hk_kafka_producer *p, rd_kafka_event_t *event)
{
    const rd_kafka_message_t *m = NULL;
    while ((m = rd_kafka_event_message_next(event)) != NULL) {
        struct hk_kafka_entry *e = m->_private;
        unlink_entry(p, e);
        if (m->err == RD_KAFKA_RESP_ERR_NO_ERROR)
            p->client->said.fault = HK_FAULT_NONE;
        hk_kafka_entry_back(e, p, m);
    }
}

static void on_error(struct hk_kafka_producer *p, rd_kafka_event_t *event)
{
    char text[HK_KAFKA_TEXT_MAX];
    rd_kafka_resp_err_t code = rd_kafka_event_error(event);
    if (!rd_kafka_event_error_is_fatal(event)) {
        hk_kafka_client_said(p->client, code, rd_kafka_event_error_string(event));
        return;
    }
    code = rd_kafka_fatal_error(p->rk, text, sizeof text);
    hk_kafka_producer_retire(p, code, text);
}

static void on_event(struct hk_kafka_producer *p, rd_kafka_event_t *event)
{
    switch (rd_kafka_event_type(event)) {
    case RD_KAFKA_EVENT_DR:
        on_reports(p, event);
        break;
    case RD_KAFKA_EVENT_ERROR:
        on_error(p, event);
        break;
    case RD_KAFKA_EVENT_OAUTHBEARER_TOKEN_REFRESH:
        hk_kafka_token_refresh(p);
        break;
    default: /* we asked for no others */
        break;
    }
    rd_kafka_event_destroy(event);
}

static void on_wake(void *arg)
{
    struct hk_kafka_producer *p = arg;
    struct hk_kafka_client *c = p->client;
    rd_kafka_event_t *event = NULL;
    unsigned n = 0;
    hk_kafka_enter(c);
    for (; n < EVENTS_A_ROUND && (event = rd_kafka_queue_poll(p->queue, 0)) != NULL; n++)
        on_event(p, event);
    if (n == EVENTS_A_ROUND)
        hk_wake_send(p->wake);
    hk_kafka_rooms(c);
    hk_kafka_leave(c);
}

/* On librdkafka's threads, while it holds the queue's lock: so it never runs again once it is taken away. */
static void on_news(rd_kafka_t *rk, void *wake)
{
    (void)rk;
    hk_wake_send(wake);
}

/* ---- making one ---- */

static void ignore_log(const rd_kafka_t *rk, int level, const char *facility, const char *text)
{
    (void)rk, (void)level, (void)facility, (void)text; /* what matters comes as an event */
}

static bool set_alone(rd_kafka_conf_t *conf)
{
    char why[HK_KAFKA_TEXT_MAX];
    return rd_kafka_conf_set(conf, "batch.num.messages", "1", why, sizeof why) == RD_KAFKA_CONF_OK;
}

static enum hk_code make_handle(struct hk_kafka_producer *p, bool alone, struct hk_err *err)
{
    char why[HK_KAFKA_TEXT_MAX] = "";
    rd_kafka_conf_t *conf = hk_kafka_conf(&p->client->settings, err);
    if (!conf)
        return HK_INVALID;
    rd_kafka_conf_set_opaque(conf, p->guard);
    rd_kafka_conf_set_connect_cb(conf, hk_kafka_guard_connect);
    rd_kafka_conf_set_log_cb(conf, ignore_log);
    rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_ERROR |
                                       RD_KAFKA_EVENT_OAUTHBEARER_TOKEN_REFRESH);
    if (!alone || set_alone(conf))
        p->rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    if (p->rk)
        return HK_OK;
    rd_kafka_conf_destroy(conf);
    return hk_err_set(err, HK_INVALID, "kafka: %s", why);
}

static void unmake(struct hk_kafka_producer *p)
{
    hk_wake_free(p->wake);
    hk_kafka_guard_free(p->guard);
    hk_mem_free(p);
}

enum hk_code hk_kafka_producer_new(struct hk_kafka_client *client, bool alone, struct hk_kafka_producer **out,
                                   struct hk_err *err)
{
    struct hk_kafka_producer *p = hk_mem_zalloc(1, sizeof *p);
    if (!p)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    p->client = client;
    p->guard = hk_kafka_guard_new(client->allow, client->n_allow);
    enum hk_code rc = p->guard ? hk_wake_new(client->loop, on_wake, p, &p->wake, err)
                               : hk_err_set(err, HK_NOMEM, "out of memory");
    if (rc == HK_OK)
        rc = make_handle(p, alone, err);
    if (rc != HK_OK) {
        unmake(p);
        return rc;
    }
    p->queue = rd_kafka_queue_get_main(p->rk);
    rd_kafka_queue_cb_event_enable(p->queue, on_news, p->wake);
    hk_wake_send(p->wake); /* for what came before that */
    *out = p;
    return HK_OK;
}

static void drop_topics(struct hk_kafka_producer *p)
{
    while (p->topics) {
        struct hk_kafka_topic *t = p->topics;
        p->topics = t->next;
        rd_kafka_topic_destroy(t->topic);
        hk_mem_free(t);
    }
}

void hk_kafka_producer_free(struct hk_kafka_producer *p)
{
    while (p->entries) {
        struct hk_kafka_entry *e = p->entries;
        unlink_entry(p, e);
        hk_kafka_entry_free(e);
    }
    rd_kafka_queue_cb_event_enable(p->queue, NULL, NULL);
    rd_kafka_queue_destroy(p->queue);
    drop_topics(p);
    hk_kafka_producer_purge(p);
    end_handle(p->rk, p->guard);
    p->guard = NULL;
    unmake(p);
}

/* ---- what goes in ---- */

/* A bit less than ours, so that its verdict, which knows whether a broker may have the record, comes first. */
static uint64_t own_timeout_ms(uint64_t timeout_ms, uint64_t linger_ms)
{
    uint64_t ms = timeout_ms > SHORTEST_MS + SHORTER_MS ? timeout_ms - SHORTER_MS : SHORTEST_MS;
    ms = ms > INT32_MAX ? INT32_MAX : ms;
    return ms > linger_ms ? ms : linger_ms + 1;
}

/* The first message to a topic says how long librdkafka tries with all of them; their own deadlines are the sink's. */
static rd_kafka_topic_t *new_topic(struct hk_kafka_producer *p, const char *name, uint64_t timeout_ms)
{
    char text[24], why[HK_KAFKA_TEXT_MAX];
    rd_kafka_topic_conf_t *conf = rd_kafka_default_topic_conf_dup(p->rk);
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)own_timeout_ms(timeout_ms, 1000));
    if (rd_kafka_topic_conf_set(conf, "message.timeout.ms", text, why, sizeof why) != RD_KAFKA_CONF_OK) {
        rd_kafka_topic_conf_destroy(conf);
        return NULL;
    }
    return rd_kafka_topic_new(p->rk, name, conf);
}

/* Out of the list, and as many as there were before it. */
static struct hk_kafka_topic *take_topic(struct hk_kafka_producer *p, const char *name, size_t *out_n)
{
    struct hk_kafka_topic **at = &p->topics;
    for (*out_n = 0; *at && strcmp(rd_kafka_topic_name((*at)->topic), name) != 0; (*out_n)++)
        at = &(*at)->next;
    struct hk_kafka_topic *t = *at;
    if (t)
        *at = t->next;
    return t;
}

static void drop_last_topic(struct hk_kafka_producer *p)
{
    struct hk_kafka_topic **at = &p->topics;
    while (*at && (*at)->next)
        at = &(*at)->next;
    struct hk_kafka_topic *t = *at;
    if (!t)
        return;
    *at = NULL;
    rd_kafka_topic_destroy(t->topic);
    hk_mem_free(t);
}

static rd_kafka_topic_t *topic_of(struct hk_kafka_producer *p, const char *name, uint64_t timeout_ms)
{
    size_t n = 0;
    struct hk_kafka_topic *t = take_topic(p, name, &n);
    if (!t && n >= TOPICS_MAX)
        drop_last_topic(p);
    if (!t && (t = hk_mem_zalloc(1, sizeof *t)) != NULL)
        t->topic = new_topic(p, name, timeout_ms);
    if (!t || !t->topic) {
        hk_mem_free(t);
        return NULL;
    }
    t->next = p->topics;
    p->topics = t;
    return t->topic;
}

static rd_kafka_headers_t *headers_of(const struct hk_fields *fields)
{
    rd_kafka_headers_t *headers = rd_kafka_headers_new(fields->n);
    for (size_t i = 0; i < fields->n; i++) {
        const struct hk_field *f = &fields->at[i];
        (void)rd_kafka_header_add(headers, f->name.ptr, (ssize_t)f->name.len, f->value.ptr,
                                  (ssize_t)f->value.len);
    }
    return headers;
}

/* librdkafka copies what it is given, and only forgets to say so. */
static void *plain(const void *bytes)
{
    union {
        const void *in;
        void *out;
    } pointer = {.in = bytes};

    return pointer.out;
}

static rd_kafka_resp_err_t produce(struct hk_kafka_producer *p, struct hk_kafka_entry *e,
                                   rd_kafka_topic_t *topic, rd_kafka_headers_t *headers)
{
    const struct hk_message *m = e->msg;
    rd_kafka_vu_t what[] = {
        {.vtype = RD_KAFKA_VTYPE_RKT, .u.rkt = topic},
        {.vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u.i = RD_KAFKA_MSG_F_COPY},
        {.vtype = RD_KAFKA_VTYPE_VALUE,
         .u.mem = {.ptr = plain(m->payload.len ? m->payload.ptr : ""), .size = m->payload.len}},
        {.vtype = RD_KAFKA_VTYPE_OPAQUE, .u.ptr = e},
        {.vtype = RD_KAFKA_VTYPE_HEADERS, .u.headers = headers},
        {.vtype = RD_KAFKA_VTYPE_KEY, .u.mem = {.ptr = plain(m->key.ptr), .size = m->key.len}},
    };
    size_t n = sizeof what / sizeof what[0] - (m->key.len ? 0 : 1);
    rd_kafka_error_t *error = rd_kafka_produceva(p->rk, what, n);
    rd_kafka_resp_err_t code = error ? rd_kafka_error_code(error) : RD_KAFKA_RESP_ERR_NO_ERROR;
    if (error)
        rd_kafka_error_destroy(error);
    return code;
}

rd_kafka_resp_err_t hk_kafka_producer_take(struct hk_kafka_producer *p, struct hk_kafka_entry *e,
                                           const struct hk_kafka_record *record)
{
    rd_kafka_topic_t *topic = topic_of(p, record->topic, e->timeout_ms);
    if (!topic)
        return rd_kafka_last_error() == RD_KAFKA_RESP_ERR_NO_ERROR ? RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE
                                                                   : rd_kafka_last_error();
    rd_kafka_headers_t *headers = headers_of(&record->headers);
    rd_kafka_resp_err_t code = produce(p, e, topic, headers);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
        rd_kafka_headers_destroy(headers);
        return code;
    }
    e->producer = p;
    e->below = p->entries;
    if (p->entries)
        p->entries->above = e;
    p->entries = e;
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

void hk_kafka_producer_purge(struct hk_kafka_producer *p)
{
    (void)rd_kafka_purge(p->rk,
                         RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT | RD_KAFKA_PURGE_F_NON_BLOCKING);
}

void hk_kafka_producer_retire(struct hk_kafka_producer *p, rd_kafka_resp_err_t why, const char *text)
{
    if (p->retired)
        return;
    p->retired = true;
    p->fatal = why;
    (void)snprintf(p->fatal_text, sizeof p->fatal_text, "%s", text);
    p->client->usual = p->client->usual == p ? NULL : p->client->usual;
    p->client->alone = p->client->alone == p ? NULL : p->client->alone;
    p->client->not_before_ms = hk_loop_now_ms(p->client->loop) + 1000;
    hk_kafka_producer_purge(p);
}
