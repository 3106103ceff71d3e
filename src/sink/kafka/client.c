/* SPDX-License-Identifier: Apache-2.0 */
/* A cluster: settings, the producers that stand on them, and the destinations that share them. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "sink/kafka/impl.h"

enum {
    SETTINGS_MAX = 256 * 1024
};

static const char kind; /* its address says that what a loop shares is one of these */

/* ---- settings ---- */

/* The same for all. */
static const char *const fixed[][2] = {
    {"client.id", "hikyaku"},
    {"enable.idempotence", "true"}, /* with it acks=all, and the order of a partition is kept over retries */
    {"message.max.bytes", "1000000000"},          /* the broker says what is too large */
    {"queue.buffering.max.messages", "10000000"}, /* each destination has its own window */
    {"queue.buffering.max.kbytes", "2097151"},
    {"reconnect.backoff.max.ms", "1000"},
    {"socket.connection.setup.timeout.ms", "10000"},
    {"socket.keepalive.enable", "true"},
    {"socket.nagle.disable", "true"},
    {"topic.metadata.propagation.max.ms",
     "5000"}, /* then a topic that nobody knows is one that is not there */
    {"topic.metadata.refresh.interval.ms", "10000"}, /* and it is noticed once it is */
    {"enable.ssl.certificate.verification", "true"},
    {"ssl.endpoint.identification.algorithm", "https"},
};

static void add_setting(struct hk_buf *out, const char *name, const char *value)
{
    if (!value)
        return;
    hk_buf_add(out, name, strlen(name) + 1);
    hk_buf_add(out, value, strlen(value) + 1);
}

static void add_number(struct hk_buf *out, const char *name, uint64_t value)
{
    hk_buf_add(out, name, strlen(name) + 1);
    hk_buf_addf(out, "%llu", (unsigned long long)value);
    hk_buf_addc(out, '\0');
}

static const char *protocol_of(const struct hk_kafka_options *o)
{
    if (o->mechanism)
        return o->tls ? "sasl_ssl" : "sasl_plaintext";
    return o->tls ? "ssl" : "plaintext";
}

void hk_kafka_settings(struct hk_buf *out, const struct hk_kafka_options *o)
{
    bool bearer = o->mechanism && strcmp(o->mechanism, "OAUTHBEARER") == 0;
    add_setting(out, "bootstrap.servers", o->brokers);
    add_setting(out, "security.protocol", protocol_of(o));
    add_setting(out, "ssl.ca.location", o->ca_file);
    add_setting(out, "ssl.certificate.location", o->cert_file);
    add_setting(out, "ssl.key.location", o->key_file);
    add_setting(out, "sasl.mechanisms", o->mechanism);
    add_setting(out, "sasl.username", bearer ? NULL : o->user);
    add_setting(out, "sasl.password", bearer ? NULL : o->password);
    add_setting(out, "partitioner", o->partitioner ? o->partitioner : "murmur2_random");
    add_setting(out, "compression.codec", o->compression);
    add_number(out, "linger.ms", o->linger_ms);
    if (o->batch)
        add_number(out, "batch.num.messages", o->batch);
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
        add_setting(out, fixed[i][0], fixed[i][1]);
    hk_buf_addc(out, '\0'); /* what follows is not librdkafka's */
    if (bearer) {
        add_setting(out, "user", o->user);
        add_setting(out, "token", o->token);
        add_setting(out, "token_file", o->token_file);
        add_setting(out, "token_url", o->oauth.token_url);
        add_setting(out, "client_id", o->oauth.client_id);
        add_setting(out, "client_secret", o->oauth.client_secret);
        add_setting(out, "scope", o->oauth.scope);
        add_setting(out, "audience", o->oauth.audience);
        add_number(out, "in_body", o->oauth.in_body);
    }
    for (size_t i = 0; i < o->n_allow; i++)
        hk_buf_add(out, &o->allow[i], sizeof o->allow[i]);
}

rd_kafka_conf_t *hk_kafka_conf(const struct hk_buf *settings, struct hk_err *err)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char why[HK_KAFKA_TEXT_MAX];
    for (const char *name = hk_buf_cstr(settings); *name;) {
        const char *value = name + strlen(name) + 1;
        if (rd_kafka_conf_set(conf, name, value, why, sizeof why) != RD_KAFKA_CONF_OK) {
            rd_kafka_conf_destroy(conf);
            (void)hk_err_set(err, HK_INVALID, "kafka: librdkafka refuses %s",
                             name); /* the value may be a secret */
            return NULL;
        }
        name = value + strlen(value) + 1;
    }
    return conf;
}

/* ---- one for all with the same settings ---- */

static char *copy_text(const char *text, bool *ok)
{
    char *copy = text ? hk_mem_strdup(text) : NULL;
    *ok = *ok && (copy || !text);
    return copy;
}

static void wipe_text(char *text)
{
    if (text)
        hk_mem_wipe(text, strlen(text));
    hk_mem_free(text);
}

static void free_client(struct hk_kafka_client *c)
{
    while (c->producers) {
        struct hk_kafka_producer *p = c->producers;
        c->producers = p->next;
        hk_kafka_producer_free(p);
    }
    hk_mem_wipe(c->settings.data, c->settings.len);
    hk_buf_fini(&c->settings);
    hk_kafka_record_fini(&c->record);
    hk_buf_fini(&c->shown_request);
    hk_buf_fini(&c->shown_response);
    hk_access_free(c->access);
    wipe_text(c->token);
    hk_mem_free(c->token_file);
    hk_mem_free(c->user);
    hk_mem_free(c->allow);
    hk_mem_free(c);
}

static struct hk_kafka_client *find_client(struct hk_loop *loop, const struct hk_buf *settings)
{
    for (struct hk_loop_shared *g = *hk_loop_shared(loop); g; g = g->next) {
        struct hk_kafka_client *c = (struct hk_kafka_client *)g; /* if it is one */
        if (g->kind == &kind && hk_str_eq(hk_buf_str(&c->settings), hk_buf_str(settings)))
            return c;
    }
    return NULL;
}

/* Takes the settings over, also on an error. */
static enum hk_code new_client(struct hk_loop *loop, const struct hk_kafka_options *o,
                               struct hk_buf *settings, struct hk_kafka_client **out, struct hk_err *err)
{
    struct hk_kafka_client *c = hk_mem_zalloc(1, sizeof *c);
    if (!c) {
        hk_mem_wipe(settings->data, settings->len);
        hk_buf_fini(settings);
        return hk_err_set(err, HK_NOMEM, "out of memory");
    }
    bool ok = true;
    c->loop = loop;
    c->settings = *settings;
    hk_kafka_record_init(&c->record);
    hk_buf_init(&c->shown_request, 256 * 1024);
    hk_buf_init(&c->shown_response, 8 * 1024);
    c->login_hint = hk_kafka_login_hint(o->mechanism);
    c->token = copy_text(o->token, &ok);
    c->token_file = copy_text(o->token_file, &ok);
    c->user = copy_text(o->user, &ok);
    c->allow = hk_mem_zalloc(o->n_allow + 1, sizeof *c->allow);
    c->n_allow = o->n_allow;
    rd_kafka_conf_t *conf = NULL;
    enum hk_code rc = HK_OK;
    if (!ok || !c->allow)
        rc = hk_err_set(err, HK_NOMEM, "out of memory");
    else if ((conf = hk_kafka_conf(&c->settings, err)) == NULL)
        rc = HK_INVALID;
    if (conf)
        rd_kafka_conf_destroy(conf); /* it was a trial */
    if (rc == HK_OK && o->oauth.token_url)
        rc = hk_kafka_token_open(c, o, err);
    if (rc != HK_OK) {
        free_client(c);
        return rc;
    }
    if (o->n_allow)
        memcpy(c->allow, o->allow, o->n_allow * sizeof *o->allow);
    struct hk_loop_shared **head = hk_loop_shared(loop);
    c->shared = (struct hk_loop_shared){.next = *head, .kind = &kind};
    *head = &c->shared;
    *out = c;
    return HK_OK;
}

enum hk_code hk_kafka_client_get(struct hk_loop *loop, const struct hk_kafka_options *options,
                                 struct hk_kafka_client **out, struct hk_err *err)
{
    struct hk_buf settings;
    hk_buf_init(&settings, SETTINGS_MAX);
    hk_kafka_settings(&settings, options);
    struct hk_kafka_client *c = hk_buf_status(&settings) == HK_OK ? find_client(loop, &settings) : NULL;
    if (c || hk_buf_status(&settings) != HK_OK) {
        hk_mem_wipe(settings.data, settings.len);
        hk_buf_fini(&settings);
        if (!c)
            return hk_err_set(err, HK_NOMEM, "out of memory");
        *out = c;
        return HK_OK;
    }
    return new_client(loop, options, &settings, out, err);
}

/* ---- at work ---- */

void hk_kafka_enter(struct hk_kafka_client *c)
{
    c->depth++;
}

static void free_closed(struct hk_kafka_client *c)
{
    for (struct hk_kafka_sink **at = &c->sinks; *at;) {
        struct hk_kafka_sink *s = *at;
        if (s->closed) {
            *at = s->next;
            hk_kafka_sink_free(s);
        } else {
            at = &s->next;
        }
    }
}

static void free_retired(struct hk_kafka_client *c)
{
    for (struct hk_kafka_producer **at = &c->producers; *at;) {
        struct hk_kafka_producer *p = *at;
        if (p->retired && !p->entries) {
            *at = p->next;
            hk_kafka_producer_free(p);
        } else {
            at = &p->next;
        }
    }
}

void hk_kafka_leave(struct hk_kafka_client *c)
{
    if (--c->depth)
        return;
    free_closed(c);
    free_retired(c);
    if (c->sinks)
        return;
    struct hk_loop_shared **at = hk_loop_shared(c->loop);
    while (*at != &c->shared)
        at = &(*at)->next;
    *at = c->shared.next;
    free_client(c);
}

enum hk_code hk_kafka_client_producer(struct hk_kafka_client *c, bool alone, struct hk_kafka_producer **out,
                                      struct hk_err *err)
{
    struct hk_kafka_producer **place = alone ? &c->alone : &c->usual;
    if (*place) {
        *out = *place;
        return HK_OK;
    }
    if (hk_loop_now_ms(c->loop) < c->not_before_ms)
        return hk_err_set(err, HK_BUSY, "the producer is made anew");
    enum hk_code rc = hk_kafka_producer_new(c, alone, place, err);
    if (rc != HK_OK)
        return rc;
    (*place)->next = c->producers;
    c->producers = *out = *place;
    return HK_OK;
}

void hk_kafka_client_said(struct hk_kafka_client *c, rd_kafka_resp_err_t code, const char *text)
{
    enum hk_fault fault = hk_kafka_trouble(code, text);
    const char *why = NULL;
    if (fault == HK_FAULT_NONE)
        return;
    /* librdkafka calls it a log-in that has failed; an endpoint that is out of reach is no refusal */
    enum hk_fault token = c->access ? hk_access_failure(c->access, &why) : HK_FAULT_NONE;
    if (token != HK_FAULT_NONE && strstr(text, why))
        fault = token;
    c->said.code = code;
    c->said.fault = fault;
    c->said.at_ms = hk_loop_now_ms(c->loop);
    (void)snprintf(c->said.text, sizeof c->said.text, "%.300s%s", text,
                   fault == HK_FAULT_BROKER_AUTH ? c->login_hint : "");
}
