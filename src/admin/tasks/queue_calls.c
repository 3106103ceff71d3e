/* SPDX-License-Identifier: Apache-2.0 */
/* Queues as Cloud Tasks has them: what clients send, and what they get. */
#include <math.h>
#include <string.h>

#include "admin/tasks/tasks.h"
#include "base/str.h"

#define LIST_MAX 1000

/* ---- what clients send ---- */

struct rate_limits {
    uint32_t given;
    double max_dispatches_per_second;
    int64_t max_burst_size, max_concurrent_dispatches;
};

struct retry_config {
    uint32_t given;
    int64_t max_attempts, max_retry_duration, min_backoff, max_backoff, max_doublings;
};

struct queue {
    uint32_t given;
    struct hk_str name;
    struct rate_limits rate_limits;
    struct retry_config retry_config;
};

static const struct hk_proto_field rate_fields[] = {
    {"max_dispatches_per_second", HK_PROTO_DOUBLE, offsetof(struct rate_limits, max_dispatches_per_second),
     NULL, NULL},
    {"max_burst_size", HK_PROTO_INT32, offsetof(struct rate_limits, max_burst_size), NULL, NULL},
    {"max_concurrent_dispatches", HK_PROTO_INT32, offsetof(struct rate_limits, max_concurrent_dispatches),
     NULL, NULL},
};
static const struct hk_proto_type rate_type = {rate_fields, 3, offsetof(struct rate_limits, given)};

static const struct hk_proto_field retry_fields[] = {
    {"max_attempts", HK_PROTO_INT32, offsetof(struct retry_config, max_attempts), NULL, NULL},
    {"max_retry_duration", HK_PROTO_DURATION, offsetof(struct retry_config, max_retry_duration), NULL, NULL},
    {"min_backoff", HK_PROTO_DURATION, offsetof(struct retry_config, min_backoff), NULL, NULL},
    {"max_backoff", HK_PROTO_DURATION, offsetof(struct retry_config, max_backoff), NULL, NULL},
    {"max_doublings", HK_PROTO_INT32, offsetof(struct retry_config, max_doublings), NULL, NULL},
};
static const struct hk_proto_type retry_type = {retry_fields, 5, offsetof(struct retry_config, given)};

/* state, purge_time and stats are the server's to say; logging to Google has no meaning here. */
static const struct hk_proto_field queue_fields[] = {
    {"name", HK_PROTO_TEXT, offsetof(struct queue, name), NULL, NULL},
    {"rate_limits", HK_PROTO_MESSAGE, offsetof(struct queue, rate_limits), &rate_type, NULL},
    {"retry_config", HK_PROTO_MESSAGE, offsetof(struct queue, retry_config), &retry_type, NULL},
    {"state", HK_PROTO_SKIP, 0, NULL, NULL},
    {"purge_time", HK_PROTO_SKIP, 0, NULL, NULL},
    {"stackdriver_logging_config", HK_PROTO_SKIP, 0, NULL, NULL},
    {"app_engine_routing_override", HK_PROTO_SKIP, 0, NULL, NULL},
};
static const struct hk_proto_type queue_type = {queue_fields, 7, offsetof(struct queue, given)};

struct nothing {
    uint32_t given;
};

static const struct hk_proto_field nothing_fields[] = {{"name", HK_PROTO_SKIP, 0, NULL, NULL}};
static const struct hk_proto_type nothing_type = {nothing_fields, 1, offsetof(struct nothing, given)};

/* Bit i of a message's fields is this bit of the settings. */
static const unsigned rate_bits[] = {HK_QUEUE_RATE, HK_QUEUE_BURST, HK_QUEUE_CONCURRENCY};
static const unsigned retry_bits[] = {HK_QUEUE_MAX_ATTEMPTS, HK_QUEUE_MAX_RETRY, HK_QUEUE_MIN_BACKOFF,
                                      HK_QUEUE_MAX_BACKOFF, HK_QUEUE_MAX_DOUBLINGS};

/* Proto3 knows no "not given" of plain numbers: 0 means it. Of durations 0 is a value. */
static void take_settings(const struct queue *q, struct hk_queue_settings *to)
{
    const struct rate_limits *rate = &q->rate_limits;
    const struct retry_config *retry = &q->retry_config;
    *to = (struct hk_queue_settings){.rate_per_s = rate->max_dispatches_per_second,
                                     .burst = rate->max_burst_size,
                                     .concurrency = rate->max_concurrent_dispatches,
                                     .max_attempts = retry->max_attempts,
                                     .max_retry_ms = retry->max_retry_duration,
                                     .min_backoff_ms = retry->min_backoff,
                                     .max_backoff_ms = retry->max_backoff,
                                     .max_doublings = retry->max_doublings};
    for (size_t i = 0; i < 3; i++)
        if (rate->given >> i & 1u)
            to->given |= rate_bits[i];
    for (size_t i = 0; i < 5; i++)
        if (retry->given >> i & 1u)
            to->given |= retry_bits[i];
    if (fpclassify(to->rate_per_s) == FP_ZERO)
        to->given &= ~(unsigned)HK_QUEUE_RATE;
    if (!to->burst)
        to->given &= ~(unsigned)HK_QUEUE_BURST;
    if (!to->concurrency)
        to->given &= ~(unsigned)HK_QUEUE_CONCURRENCY;
    if (!to->max_attempts)
        to->given &= ~(unsigned)HK_QUEUE_MAX_ATTEMPTS;
}

/* ---- what they get ---- */

static void put_name(struct hk_json *json, const char *key, const char *value)
{
    hk_json_key(json, key);
    hk_json_cstr(json, value);
}

static void put_number(struct hk_json *json, const char *key, int64_t value)
{
    hk_json_key(json, key);
    hk_json_i64(json, value);
}

/* `purged_ms` 0: it is not said. */
static void put_queue(const struct hk_tasks_call *c, struct hk_json *json, const struct hk_queue *q,
                      int64_t purged_ms)
{
    hk_json_object(json);
    put_name(json, "name", q->name);
    hk_json_key(json, "rateLimits");
    hk_json_object(json);
    hk_json_key(json, "maxDispatchesPerSecond");
    hk_json_double(json, q->is.rate_per_s);
    put_number(json, "maxBurstSize", q->is.burst);
    put_number(json, "maxConcurrentDispatches", q->is.concurrency);
    hk_json_end(json);
    hk_json_key(json, "retryConfig");
    hk_json_object(json);
    put_number(json, "maxAttempts", q->is.max_attempts);
    hk_proto_put_duration(json, "maxRetryDuration", q->is.max_retry_ms);
    hk_proto_put_duration(json, "minBackoff", q->is.min_backoff_ms);
    hk_proto_put_duration(json, "maxBackoff", q->is.max_backoff_ms);
    put_number(json, "maxDoublings", q->is.max_doublings);
    hk_json_end(json);
    hk_json_key(json, "state");
    if (c->numbers)
        hk_json_i64(json, q->paused ? 2 : 1);
    else
        hk_json_cstr(json, q->paused ? "PAUSED" : "RUNNING");
    if (purged_ms)
        hk_proto_put_time(json, "purgeTime", purged_ms);
    hk_json_end(json);
}

static void give_queue(struct hk_tasks_call *c, const struct hk_queue *q)
{
    struct hk_json json;
    hk_json_init(&json, &c->out->body, false);
    put_queue(c, &json, q, 0);
}

static void give_nothing(struct hk_tasks_call *c)
{
    (void)hk_buf_adds(&c->out->body, "{}");
}

/* ---- calls ---- */

void hk_tasks_queue_create(struct hk_tasks_call *c)
{
    struct queue q = {.given = 0};
    struct hk_queue made;
    if (!hk_tasks_read(c, &queue_type, &q))
        return;
    size_t n = strlen(c->parent);
    if (q.name.len <= n || strncmp(q.name.ptr, c->parent, n) != 0 || q.name.ptr[n] != '/') {
        hk_tasks_wrong(c, "Queue.name must be the parent with /queues/QUEUE_ID behind it.");
        return;
    }
    struct hk_queue_put_ask ask = {.name = q.name.ptr, .create = true};
    take_settings(&q, &ask.to);
    if (hk_tasks_ask(c, &hk_op_queues_put, &ask, &made))
        give_queue(c, &made);
}

/* What a path of an update mask covers: bits of the settings. 0: it is no path of a queue, UINT_MAX: it has no meaning here. */
static bool mask_bits(struct hk_str path, unsigned *out)
{
    static const struct {
        const char *section;
        const struct hk_proto_field *fields;
        const unsigned *bits;
        size_t n;
    } sections[] = {{"rate_limits", rate_fields, rate_bits, 3},
                    {"retry_config", retry_fields, retry_bits, 5}};
    struct hk_str rest = path, head = hk_str_cut(&rest, '.');
    *out = 0;
    for (size_t s = 0; s < 2; s++) {
        if (!hk_proto_is_name(head, sections[s].section))
            continue;
        bool any = false;
        for (size_t i = 0; i < sections[s].n; i++)
            if (!rest.ptr || hk_proto_is_name(rest, sections[s].fields[i].name)) {
                *out |= sections[s].bits[i];
                any = true;
            }
        return any;
    }
    for (size_t i = 0; i < queue_type.n; i++)
        if (hk_proto_is_name(head, queue_fields[i].name))
            return true;
    return false;
}

static bool read_mask(struct hk_tasks_call *c, unsigned *out)
{
    struct hk_str rest = hk_str_of(c->update_mask);
    *out = 0;
    while (rest.ptr) {
        struct hk_str path = hk_str_trim(hk_str_cut(&rest, ','));
        unsigned bits = 0;
        if (path.len && !mask_bits(path, &bits)) {
            hk_tasks_wrong(c, "updateMask names a field that a queue does not have.");
            return false;
        }
        *out |= bits;
    }
    return true;
}

/* Only what the mask names changes; without one, what the body gives. What the mask names and the body does not give is the default again. */
void hk_tasks_queue_patch(struct hk_tasks_call *c)
{
    struct queue q = {.given = 0};
    struct hk_queue made;
    unsigned mask = 0;
    if (!hk_tasks_read(c, &queue_type, &q) || (c->update_mask && !read_mask(c, &mask)))
        return;
    struct hk_queue_put_ask ask = {.name = c->queue};
    if (q.name.len && !hk_str_eq(q.name, hk_str_of(c->queue))) {
        hk_tasks_wrong(c, "Queue.name and the path name different queues.");
        return;
    }
    take_settings(&q, &ask.to);
    for (unsigned bit = 0; c->update_mask && bit < 9; bit++)
        ask.absent[bit] = (mask >> bit & 1u) && !(ask.to.given >> bit & 1u);
    if (c->update_mask)
        ask.to.given &= mask;
    if (hk_tasks_ask(c, &hk_op_queues_put, &ask, &made))
        give_queue(c, &made);
}

static void act(struct hk_tasks_call *c, const struct hk_op *op)
{
    struct nothing none;
    struct hk_queue q;
    const struct hk_queue_ask ask = {.name = c->queue};
    if (hk_tasks_read(c, &nothing_type, &none) && hk_tasks_ask(c, op, &ask, &q))
        give_queue(c, &q);
}

void hk_tasks_queue_get(struct hk_tasks_call *c)
{
    act(c, &hk_op_queues_show);
}

void hk_tasks_queue_pause(struct hk_tasks_call *c)
{
    act(c, &hk_op_queues_pause);
}

void hk_tasks_queue_resume(struct hk_tasks_call *c)
{
    act(c, &hk_op_queues_resume);
}

void hk_tasks_queue_purge(struct hk_tasks_call *c)
{
    struct nothing none;
    struct hk_queue q;
    struct hk_queue_gone gone;
    struct hk_json json;
    const struct hk_queue_ask ask = {.name = c->queue};
    if (!hk_tasks_read(c, &nothing_type, &none) || !hk_tasks_ask(c, &hk_op_queues_purge, &ask, &gone) ||
        !hk_tasks_ask(c, &hk_op_queues_show, &ask, &q))
        return;
    hk_json_init(&json, &c->out->body, false);
    put_queue(c, &json, &q, gone.before_ms);
}

void hk_tasks_queue_delete(struct hk_tasks_call *c)
{
    struct hk_queue_gone gone;
    const struct hk_queue_ask ask = {.name = c->queue};
    if (hk_tasks_ask(c, &hk_op_queues_delete, &ask, &gone))
        give_nothing(c);
}

void hk_tasks_queue_list(struct hk_tasks_call *c)
{
    struct hk_queues found;
    struct hk_json json;
    const struct hk_queues_ask ask = {.parent = c->parent,
                                      .after = c->page_token,
                                      .limit = c->limit > 0 && c->limit < LIST_MAX ? (uint64_t)c->limit
                                                                                   : LIST_MAX};
    if (!hk_tasks_ask(c, &hk_op_queues_list, &ask, &found))
        return;
    hk_json_init(&json, &c->out->body, false);
    hk_json_object(&json);
    hk_json_key(&json, "queues");
    hk_json_array(&json);
    for (size_t i = 0; i < found.n; i++)
        put_queue(c, &json, &found.items[i], 0);
    hk_json_end(&json);
    if (found.next)
        put_name(&json, "nextPageToken", found.next);
    hk_json_end(&json);
}
