/* SPDX-License-Identifier: Apache-2.0 */
/* begins: ids are chosen, the destination will see them. ended: the span is made; one that failed waits until the store has what was
 * decided about it, which becomes an event of it. Nothing of a payload goes into a span. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "config/payload.h"
#include "daemon/spans.h"
#include "observe/redact.h"
#include "relay/attempt_log.h"

/* The messaging conventions of OpenTelemetry are still "in development": their names stand here and nowhere else. */
#define A_SYSTEM       "messaging.system"
#define A_OPERATION    "messaging.operation.name"
#define A_TYPE         "messaging.operation.type"
#define A_DESTINATION  "messaging.destination.name"
#define A_MESSAGE_ID   "messaging.message.id"
#define A_CONVERSATION "messaging.message.conversation_id"
#define A_BODY_SIZE    "messaging.message.body.size"
#define A_ADDRESS      "server.address"
#define A_PORT         "server.port"
#define A_METHOD       "http.request.method"
#define A_STATUS       "http.response.status_code"
#define A_ERROR        "error.type"
#define A_PARTITION    "messaging.destination.partition.id"
#define A_BROKER_CODE  "hikyaku.broker.code"
#define A_SEQUENCE     "hikyaku.broker.sequence"
#define A_EVENT_TYPE   "hikyaku.event_type"
#define A_ATTEMPT      "hikyaku.attempt"
#define A_LIFE         "hikyaku.life"
#define E_EXCEPTION    "exception"
#define E_TYPE         "exception.type"
#define E_MESSAGE      "exception.message"
#define E_RETRY        "hikyaku.retry"
#define E_DEAD         "hikyaku.dead_letter"
#define E_CLASS        "hikyaku.class"
#define E_CAUSE        "hikyaku.cause"
#define E_REASON       "hikyaku.reason"
#define E_WAIT         "hikyaku.wait_ms"

#define SEND "send"

enum {
    LINKS = 8192,   /* powers of two */
    WAITING = 1024, /* buckets */
    ID_MAX = 256,
    NAME_MAX_BYTES = 255,
    ERROR_MAX = 512,
    CAUSE_MAX = HK_REASON_MAX,
    BROKER_CODE_MAX = 64,
    STREAM = 7 /* of our random numbers */
};

struct flight { /* by slot: an attempt under way */
    bool used, has_parent, has_link;
    uint8_t parent_id[8];
    struct hk_trace trace, link;
    int64_t start_ns;
};

struct waiting { /* a failed attempt whose fate is not known yet */
    struct waiting *next;
    enum hk_source source;
    int64_t id;
    struct hk_span *span;
};

struct target { /* by place in the configuration */
    char *name, *host;
    const char *method;
    int64_t port;
};

struct hk_spans {
    struct hk_spans_options options;
    struct hk_rng rng;
    struct hk_masks *masks;
    struct target *targets;
    size_t n_targets;
    struct flight *flights;
    size_t n_flights;

    struct {
        uint64_t key;
        struct hk_trace trace;
    } links[LINKS]; /* a newer one may take the place of an older one */
    struct waiting *waiting[WAITING];
};

/* ---- hashes ---- */

static uint64_t mix(uint64_t h)
{
    h ^= h >> 32;
    h *= UINT64_C(0xd6e8feb86659fd93);
    return h ^ h >> 32;
}

static uint64_t hash(uint64_t h, struct hk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        h = (h ^ (unsigned char)s.ptr[i]) * UINT64_C(0x100000001b3);
    return mix(h ^ s.len << 56);
}

static uint64_t link_key(const struct hk_try *t)
{
    uint64_t key =
        hash(hash(UINT64_C(0xcbf29ce484222325), t->message->message_id), hk_str_of(t->destination));
    return key ? key : 1; /* 0 = nobody is there */
}

/* The same for every attempt of a message. */
static void derive_trace_id(const struct hk_message *m, uint8_t trace_id[16])
{
    struct hk_rng rng;
    uint64_t seed = hash(UINT64_C(0x9ae16a3b2f90404f), m->message_id) ^ mix((uint64_t)m->created_ms);
    hk_rng_seed(&rng, seed, hash(UINT64_C(0xc3a5c85c97cb3127), m->message_id));
    hk_trace_new_id(trace_id, &rng);
}

/* ---- an attempt begins ---- */

static struct flight *flight_of(struct hk_spans *s, uint32_t slot)
{
    if (slot < s->n_flights)
        return &s->flights[slot];
    size_t n = (size_t)slot + slot / 2 + 64;
    struct flight *more = hk_mem_resize(s->flights, n * sizeof *more);
    if (!more)
        return NULL;
    memset(more + s->n_flights, 0, (n - s->n_flights) * sizeof *more);
    s->flights = more;
    s->n_flights = n;
    return &more[slot];
}

static void find_link(const struct hk_spans *s, const struct hk_try *t, struct flight *f)
{
    uint64_t key = link_key(t);
    if (t->n < 2 && t->message->life < 2)
        return;
    f->has_link = s->links[key % LINKS].key == key;
    if (f->has_link)
        f->link = s->links[key % LINKS].trace;
}

static void begins(void *arg, const struct hk_try *t)
{
    struct hk_spans *s = arg;
    struct hk_trace parent;
    struct flight *f = flight_of(s, t->slot);
    if (!f)
        return;
    *f = (struct flight){.used = true, .start_ns = s->options.now_ns()};
    f->has_parent = hk_trace_parse(t->message->traceparent, &parent);
    if (f->has_parent) {
        memcpy(f->trace.trace_id, parent.trace_id, sizeof parent.trace_id);
        memcpy(f->parent_id, parent.span_id, sizeof parent.span_id);
    } else {
        derive_trace_id(t->message, f->trace.trace_id);
    }
    hk_trace_new_span(f->trace.span_id, &s->rng);
    f->trace.sampled =
        hk_trace_sample(&s->options.sampler, f->has_parent ? &parent : NULL, f->trace.trace_id);
    find_link(s, t, f);
    hk_trace_format(&f->trace, t->traceparent);
}

/* ---- it ended ---- */

/* Masked, then without what looks like a secret. */
static struct hk_str keep_error(struct hk_spans *s, struct hk_span *span, const struct hk_message *m,
                                const struct hk_facts *facts)
{
    char shown[ERROR_MAX], answered[32];
    struct hk_buf masked;
    struct hk_str error = facts->error;
    size_t read;
    hk_buf_init(&masked, 1 << 16);
    if (!error.len && facts->status > 0) {
        (void)snprintf(answered, sizeof answered, "the answer was HTTP %d", facts->status);
        error = hk_str_of(answered);
    } else if (hk_masks_fit(s->masks, m->event_type)) {
        error = hk_attempt_mask_error(s->masks, m, error, &masked) == HK_OK ? hk_buf_str(&masked)
                                                                            : hk_str_of(HK_MASKED);
    }
    size_t len = hk_redact(error, shown, sizeof shown, &read);
    struct hk_str kept = hk_span_keep(span, (struct hk_str){shown, len}, ERROR_MAX);
    hk_buf_fini(&masked);
    return kept;
}

static const struct target *target_of(const struct hk_spans *s, const struct hk_try *t)
{
    const struct target *target = t->dest < s->n_targets ? &s->targets[t->dest] : NULL;
    return target && strcmp(target->name, t->destination) == 0 ? target : NULL;
}

static void put_target(const struct hk_spans *s, struct hk_span *span, const struct hk_try *t)
{
    const struct target *target = target_of(s, t);
    if (!target || !target->host)
        return;
    hk_span_text(span, A_ADDRESS, hk_span_keep(span, hk_str_of(target->host), NAME_MAX_BYTES));
    if (target->port)
        hk_span_number(span, A_PORT, target->port);
    if (target->method) /* of a broker there is none */
        hk_span_text(span, A_METHOD, hk_str_of(target->method));
}

static void put_message(struct hk_span *span, const struct hk_try *t)
{
    const struct hk_message *m = t->message;
    struct hk_str destination = {span->name.ptr + strlen(SEND) + 1, span->name.len - strlen(SEND) - 1};
    hk_span_text(span, A_SYSTEM, hk_str_of("hikyaku"));
    hk_span_text(span, A_OPERATION, hk_str_of(SEND));
    hk_span_text(span, A_TYPE, hk_str_of(SEND));
    hk_span_text(span, A_DESTINATION, destination);
    hk_span_text(span, A_MESSAGE_ID, hk_span_keep(span, m->message_id, ID_MAX));
    hk_span_text(span, A_CONVERSATION, hk_span_keep(span, m->correlation_id, ID_MAX));
    hk_span_text(span, A_EVENT_TYPE, hk_span_keep(span, m->event_type, ID_MAX));
    hk_span_number(span, A_BODY_SIZE, (int64_t)m->payload.len);
    hk_span_number(span, A_ATTEMPT, t->n);
    if (m->life > 1)
        hk_span_number(span, A_LIFE, m->life);
}

static void put_failure(struct hk_spans *s, struct hk_span *span, const struct hk_message *m,
                        const struct hk_facts *facts)
{
    char code[16];
    (void)snprintf(code, sizeof code, "%d", facts->status);
    struct hk_str type = facts->status > 0 ? hk_span_keep(span, hk_str_of(code), sizeof code)
                                           : hk_str_of(hk_fault_name(facts->fault));
    struct hk_span_event *event = hk_span_event(span, E_EXCEPTION, span->end_ns);
    span->failed = true;
    span->failure = keep_error(s, span, m, facts);
    hk_span_text(span, A_ERROR, type);
    hk_event_text(event, E_TYPE, type);
    hk_event_text(event, E_MESSAGE, span->failure);
}

/* What a broker said, and where it put the message. */
static void put_broker(struct hk_span *span, const struct hk_facts *facts)
{
    if (facts->broker_code.len)
        hk_span_text(span, A_BROKER_CODE, hk_span_keep(span, facts->broker_code, BROKER_CODE_MAX));
    if (!facts->placed)
        return;
    if (facts->partition >= 0)
        hk_span_number(span, A_PARTITION, facts->partition);
    hk_span_number(span, A_SEQUENCE, facts->sequence);
}

/* PRODUCER: the span itself is where the message's trace begins; with a traceparent of the application's it is only the sending. */
static struct hk_span *make_span(struct hk_spans *s, const struct flight *f, const struct hk_try *t,
                                 const struct hk_facts *facts, bool failed)
{
    struct hk_span *span = hk_span_new(3 * ID_MAX + 2 * NAME_MAX_BYTES + BROKER_CODE_MAX + 64 +
                                       (failed ? ERROR_MAX + 2 * CAUSE_MAX : 0));
    if (!span)
        return NULL;
    span->trace = f->trace;
    span->has_parent = f->has_parent;
    memcpy(span->parent_id, f->parent_id, sizeof span->parent_id);
    span->has_link = f->has_link && f->link.sampled;
    span->link = f->link;
    span->kind = f->has_parent ? HK_SPAN_CLIENT : HK_SPAN_PRODUCER;
    span->start_ns = f->start_ns;
    span->end_ns = s->options.now_ns();
    if (span->end_ns < span->start_ns)
        span->end_ns = span->start_ns;
    span->name = hk_span_keep(span, hk_str_of(SEND " "), 8);
    span->name.len += hk_span_keep(span, hk_str_of(t->destination), NAME_MAX_BYTES).len;
    put_message(span, t);
    put_target(s, span, t);
    if (facts->status > 0)
        hk_span_number(span, A_STATUS, facts->status);
    put_broker(span, facts);
    if (failed)
        put_failure(s, span, t->message, facts);
    return span;
}

static struct waiting **waiting_at(struct hk_spans *s, enum hk_source source, int64_t id)
{
    struct waiting **at = &s->waiting[mix((uint64_t)id * 2 + (source == HK_FROM_RETRY)) % WAITING];
    while (*at && ((*at)->id != id || (*at)->source != source))
        at = &(*at)->next;
    return at;
}

static void let_go(struct hk_spans *s, struct waiting **at)
{
    struct waiting *w = *at;
    *at = w->next;
    s->options.add(s->options.arg, w->span);
    hk_mem_free(w);
}

static void let_all_go(struct hk_spans *s)
{
    for (size_t i = 0; i < WAITING; i++)
        while (s->waiting[i])
            let_go(s, &s->waiting[i]);
}

static void hold(struct hk_spans *s, const struct hk_message *m, struct hk_span *span)
{
    struct waiting **at = waiting_at(s, m->source, m->id);
    if (*at)
        let_go(s, at);
    struct waiting *w = span ? hk_mem_alloc(sizeof *w) : NULL;
    if (!w) {
        s->options.add(s->options.arg, span);
        return;
    }
    *w = (struct waiting){*at, m->source, m->id, span};
    *at = w;
}

static void remember(struct hk_spans *s, const struct hk_try *t, const struct flight *f, bool failed)
{
    uint64_t key = link_key(t);
    if (failed) {
        s->links[key % LINKS].key = key;
        s->links[key % LINKS].trace = f->trace;
    } else if (s->links[key % LINKS].key == key) {
        s->links[key % LINKS].key = 0;
    }
}

static void ended(void *arg, const struct hk_try *t, const struct hk_facts *facts)
{
    struct hk_spans *s = arg;
    struct flight *f = t->slot < s->n_flights ? &s->flights[t->slot] : NULL;
    bool failed = facts->fault != HK_FAULT_NONE || facts->status >= 300;
    if (!f || !f->used)
        return;
    f->used = false;
    remember(s, t, f, failed);
    if (!f->trace.sampled)
        return;
    struct hk_span *span = make_span(s, f, t, facts, failed);
    if (failed)
        hold(s, t->message, span);
    else
        s->options.add(s->options.arg, span);
}

/* ---- what became of it ---- */

static void put_decision(struct hk_span *span, const struct hk_settle *settle, int64_t now_ns)
{
    const struct hk_attempt_record *a = &settle->attempt;
    if (settle->kind == HK_SETTLE_SENT) { /* a rule of the policy's takes this answer for a success */
        span->failed = false;
        span->n_events = 0;
        span->n_attrs -= span->n_attrs && strcmp(span->attrs[span->n_attrs - 1].key, A_ERROR) == 0;
        return;
    }
    bool retry = settle->kind == HK_SETTLE_RETRY;
    if (!retry && settle->kind != HK_SETTLE_DEAD)
        return;
    struct hk_span_event *event = hk_span_event(span, retry ? E_RETRY : E_DEAD, now_ns);
    if (!event)
        return;
    hk_event_text(event, E_CLASS, hk_str_of(hk_class_name(a->failure_class)));
    hk_event_text(event, E_CAUSE, hk_span_keep(span, a->cause, CAUSE_MAX));
    if (!retry)
        hk_event_text(event, E_REASON, hk_span_keep(span, settle->reason, CAUSE_MAX));
    int64_t ended_ms = a->started_ms + (int64_t)a->duration_ms;
    if (retry)
        hk_event_number(event, E_WAIT, settle->due_ms > ended_ms ? settle->due_ms - ended_ms : 0);
}

static void exchanged(void *arg, const struct hk_exchange *asked, const struct hk_exchanged *done)
{
    struct hk_spans *s = arg;
    for (size_t i = 0; i < asked->n_settles; i++) {
        const struct hk_settle *settle = &asked->settles[i];
        struct waiting **at = waiting_at(s, settle->source, settle->id);
        if (!*at)
            continue;
        if (!done->stale[i] && !hk_settle_is_stuck(done, i))
            put_decision((*at)->span, settle, s->options.now_ns());
        let_go(s, at);
    }
}

static void lane(void *arg, enum hk_lane_event event, int64_t number)
{
    (void)event, (void)number;
    let_all_go(arg); /* nobody will say any more what became of them */
}

void hk_spans_watch(struct hk_spans *spans, struct hk_onlooker *watch)
{
    watch->arg = spans;
    watch->attempt_begins = begins;
    watch->attempt_ended = ended;
    watch->exchanged = exchanged;
    watch->lane = lane;
}

/* ---- targets ---- */

/* host and port of a URL that the configuration has checked. */
static bool read_target(const struct hk_conf_destination *conf, struct target *out)
{
    static const char *const methods[] = {
        [HK_METHOD_POST] = "POST", [HK_METHOD_PUT] = "PUT", [HK_METHOD_PATCH] = "PATCH"};
    struct hk_servers servers;
    out->name = hk_mem_strdup(conf->name);
    if (hk_conf_servers_parse(conf, &servers)) {
        out->host = hk_mem_strdup(servers.at[0].host);
        out->port = servers.at[0].port;
        return out->name && out->host;
    }
    if (conf->kind != HK_KIND_HTTP || !conf->http.url || hk_conf_is_targeted(conf))
        return out->name != NULL;
    const char *from = strstr(conf->http.url, "://");
    from = from ? from + 3 : conf->http.url;
    const char *at = from + strcspn(from, "/?#");
    struct hk_str authority = {from, (size_t)(at - from)};
    const char *end = authority.len && from[0] == '[' ? memchr(from, ']', authority.len) : NULL;
    const char *host_end = end ? end : memchr(from, ':', authority.len);
    const char *host = end ? from + 1 : from;
    host_end = host_end ? host_end : at;
    const char *colon = memchr(host_end, ':', (size_t)(at - host_end));
    for (const char *p = colon ? colon + 1 : at; p < at && hk_ascii_isdigit(*p) && out->port < 65536; p++)
        out->port = out->port * 10 + (*p - '0');
    if (!colon)
        out->port = hk_str_starts(hk_str_of(conf->http.url), hk_str_of("https")) ? 443 : 80;
    out->host = hk_mem_strndup(host, (size_t)(host_end - host));
    out->method = methods[conf->http.method];
    return out->name && out->host;
}

static void free_targets(struct target *targets, size_t n)
{
    for (size_t i = 0; targets && i < n; i++) {
        hk_mem_free(targets[i].name);
        hk_mem_free(targets[i].host);
    }
    hk_mem_free(targets);
}

static bool read_targets(const struct hk_config *config, struct target **out, size_t *out_n)
{
    size_t n = config->destinations.n;
    struct target *targets = hk_mem_zalloc(n + 1, sizeof *targets);
    bool ok = targets != NULL;
    for (size_t i = 0; ok && i < n; i++)
        ok = read_target(hk_config_destination(config, i), &targets[i]);
    if (!ok) {
        free_targets(targets, n);
        return false;
    }
    *out = targets;
    *out_n = n;
    return true;
}

enum hk_code hk_spans_configure(struct hk_spans *s, const struct hk_config *config, struct hk_err *err)
{
    struct hk_masks *masks = NULL;
    struct target *targets = NULL;
    size_t n = 0;
    enum hk_code rc = hk_config_make_masks(config, &masks, err);
    if (rc != HK_OK)
        return rc;
    if (!read_targets(config, &targets, &n)) {
        hk_masks_free(masks);
        return hk_err_set(err, HK_NOMEM, "out of memory for telemetry");
    }
    hk_masks_free(s->masks);
    free_targets(s->targets, s->n_targets);
    s->masks = masks;
    s->targets = targets;
    s->n_targets = n;
    return HK_OK;
}

/* ---- life ---- */

enum hk_code hk_spans_new(const struct hk_spans_options *options, const struct hk_config *config,
                          struct hk_spans **out, struct hk_err *err)
{
    struct hk_spans *s = hk_mem_zalloc(1, sizeof *s);
    if (!s)
        return hk_err_set(err, HK_NOMEM, "out of memory for telemetry");
    s->options = *options;
    hk_rng_seed(&s->rng, options->seed, STREAM);
    enum hk_code rc = hk_spans_configure(s, config, err);
    if (rc != HK_OK) {
        hk_mem_free(s);
        return rc;
    }
    *out = s;
    return HK_OK;
}

void hk_spans_free(struct hk_spans *s)
{
    if (!s)
        return;
    let_all_go(s);
    hk_masks_free(s->masks);
    free_targets(s->targets, s->n_targets);
    hk_mem_free(s->flights);
    hk_mem_free(s);
}
