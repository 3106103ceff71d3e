/* SPDX-License-Identifier: Apache-2.0 */
/* Queues as people make and change them: words become settings, and from there on it is as for a client of Cloud Tasks. */
#include <string.h>

#include "base/parse.h"
#include "base/str.h"
#include "desk/forms.h"
#include "desk/queues.h"

/* ---- words ---- */

static const struct {
    const char *name;
    unsigned bit;
} fields[] = {
    {"rate", HK_QUEUE_RATE},
    {"burst", HK_QUEUE_BURST},
    {"concurrency", HK_QUEUE_CONCURRENCY},
    {"max_attempts", HK_QUEUE_MAX_ATTEMPTS},
    {"max_retry_duration", HK_QUEUE_MAX_RETRY},
    {"min_backoff", HK_QUEUE_MIN_BACKOFF},
    {"max_backoff", HK_QUEUE_MAX_BACKOFF},
    {"max_doublings", HK_QUEUE_MAX_DOUBLINGS},
    {"policy", HK_QUEUE_POLICY},
};

static bool is_unlimited(const char *text)
{
    return strcmp(text, "unlimited") == 0;
}

static bool read_count(const char *text, int64_t most, int64_t *out)
{
    return hk_parse_i64(hk_str_of(text), out, NULL) == HK_OK && *out >= 0 && *out <= most;
}

static enum hk_code read_words(struct hk_desk *desk, const struct hk_queue_set_ask *ask,
                               struct hk_queue_settings *to, struct hk_err *err)
{
    uint64_t ms = 0;
    if (ask->max_attempts && is_unlimited(ask->max_attempts))
        to->max_attempts = -1;
    else if (ask->max_attempts &&
             (!read_count(ask->max_attempts, 1000000, &to->max_attempts) || !to->max_attempts))
        return hk_desk_wrong(desk, "max_attempts", err, "takes 1 to 1000000, or unlimited; not '%s'",
                             ask->max_attempts);
    if (ask->max_doublings && !read_count(ask->max_doublings, 16, &to->max_doublings))
        return hk_desk_wrong(desk, "max_doublings", err, "takes 0 to 16, not '%s'", ask->max_doublings);
    if (ask->max_retry_duration && !is_unlimited(ask->max_retry_duration)) {
        if (hk_parse_duration(hk_str_of(ask->max_retry_duration), &ms, NULL) != HK_OK || !ms ||
            ms > UINT64_C(31536000000))
            return hk_desk_wrong(desk, "max_retry_duration", err,
                                 "takes a duration up to 365d, or unlimited; not '%s'",
                                 ask->max_retry_duration);
        to->max_retry_ms = (int64_t)ms;
    }
    return HK_OK;
}

static void note_given(const struct hk_queue_set_ask *ask, struct hk_queue_settings *to)
{
    const bool given[] = {ask->rate > 0,
                          ask->burst > 0,
                          ask->concurrency > 0,
                          ask->max_attempts != NULL,
                          ask->max_retry_duration != NULL,
                          ask->min_backoff > 0,
                          ask->max_backoff > 0,
                          ask->max_doublings != NULL,
                          ask->policy != NULL};
    _Static_assert(sizeof given / sizeof given[0] == sizeof fields / sizeof fields[0], "one of each");
    for (size_t i = 0; i < sizeof given / sizeof given[0]; i++)
        if (given[i])
            to->given |= fields[i].bit;
}

static enum hk_code read_settings(struct hk_desk *desk, const struct hk_queue_set_ask *ask,
                                  struct hk_queue_settings *out, struct hk_err *err)
{
    struct hk_queue_settings to = {.rate_per_s = ask->rate,
                                   .burst = (int64_t)ask->burst,
                                   .concurrency = (int64_t)ask->concurrency,
                                   .min_backoff_ms = (int64_t)ask->min_backoff,
                                   .max_backoff_ms = (int64_t)ask->max_backoff,
                                   .policy = ask->policy};
    note_given(ask, &to);
    enum hk_code rc = read_words(desk, ask, &to, err);
    if (rc == HK_OK)
        *out = to;
    return rc;
}

static enum hk_code read_reset(struct hk_desk *desk, const struct hk_queue_set_ask *ask, unsigned given,
                               struct hk_queue_put_ask *out, struct hk_err *err)
{
    for (size_t i = 0; i < ask->reset.n; i++) {
        const char *name = ask->reset.items[i];
        size_t f = 0;
        while (f < sizeof fields / sizeof fields[0] && strcmp(fields[f].name, name) != 0)
            f++;
        if (f == sizeof fields / sizeof fields[0])
            return hk_desk_wrong(
                desk, "reset", err,
                "takes rate, burst, concurrency, max_attempts, max_retry_duration, min_backoff, "
                "max_backoff, max_doublings or policy; not '%.100s'",
                name);
        if (given & fields[f].bit)
            return hk_desk_wrong(desk, "reset", err, "and a new value for %s contradict each other", name);
        out->absent[f] = true;
    }
    return HK_OK;
}

/* ---- the operations ---- */

static enum hk_code check_set(struct hk_desk *desk, const void *request, struct hk_err *err)
{
    struct hk_queue_put_ask put = {.name = NULL};
    enum hk_code rc = read_settings(desk, request, &put.to, err);
    return rc == HK_OK ? read_reset(desk, request, put.to.given, &put, err) : rc;
}

static enum hk_code check_update(struct hk_desk *desk, const void *request, struct hk_err *err)
{
    const struct hk_queue_set_ask *ask = request;
    struct hk_queue_settings to = {.given = 0};
    note_given(ask, &to);
    if (!to.given && !ask->reset.n)
        return hk_err_set(err, HK_INVALID, "say what is to change: rate, max_attempts, reset …");
    return check_set(desk, request, err);
}

static enum hk_code create_queue(struct hk_desk *desk, const struct hk_caller *caller,
                                 const struct hk_queue_set_ask *ask, struct hk_pool *mem,
                                 struct hk_queue *out, struct hk_err *err)
{
    struct hk_queue_put_ask put = {.name = ask->name, .create = true};
    enum hk_code rc = read_settings(desk, ask, &put.to, err);
    return rc == HK_OK ? hk_queue_put(desk, caller, &put, mem, out, err) : rc;
}

/* One that is not there is not made: a name that is misspelt would be another queue. */
static enum hk_code update_queue(struct hk_desk *desk, const struct hk_caller *caller,
                                 const struct hk_queue_set_ask *ask, struct hk_pool *mem,
                                 struct hk_queue *out, struct hk_err *err)
{
    struct hk_queue_put_ask put = {.create = false};
    enum hk_code rc = hk_queue_resolve(desk, ask->name, mem, &put.name, err);
    if (rc == HK_OK)
        rc = hk_queue_find(desk, put.name, mem, out, NULL, err);
    if (rc == HK_OK)
        rc = read_settings(desk, ask, &put.to, err);
    if (rc == HK_OK)
        rc = read_reset(desk, ask, put.to.given, &put, err);
    return rc == HK_OK ? hk_queue_put(desk, caller, &put, mem, out, err) : rc;
}

/* ---- the table ---- */

HK_OP_RUN(create_queue)
HK_OP_RUN(update_queue)

#define SETTINGS_ARGS                                                                                                     \
    {HK_ARG(hk_queue_set_ask, rate, HK_ARG_RATE, "RATE",                                                                  \
            "dispatch at most this many tasks (default: as queues.limits says, else 500/s)"),                             \
     .lo = 0.0001, .hi = 500},                                                                                            \
        {HK_ARG(                                                                                                          \
             hk_queue_set_ask, burst, HK_ARG_NUMBER, "N",                                                                 \
             "let this many go at once when the queue has been idle (default: as queues.limits says, else by the rate)"), \
         .lo = 1, .hi = 500},                                                                                             \
        {HK_ARG(hk_queue_set_ask, concurrency, HK_ARG_NUMBER, "N",                                                        \
                "have at most this many in flight (default: as queues.limits says, else 1000)"),                          \
         .lo = 1, .hi = 5000},                                                                                            \
        {HK_ARG(                                                                                                          \
            hk_queue_set_ask, max_attempts, HK_ARG_TEXT, "N",                                                             \
            "attempts before a task becomes a dead letter; or unlimited (default: as the policy says)")},                 \
        {HK_ARG(hk_queue_set_ask, max_retry_duration, HK_ARG_TEXT, "TIME",                                                \
                "retry for this long; or unlimited. With attempts: until both are spent")},                               \
        {HK_ARG(hk_queue_set_ask, min_backoff, HK_ARG_DURATION, "TIME",                                                   \
                "wait this long before the first retry (default: as the policy says)"),                                   \
         .lo = 1, .hi = 86400000},                                                                                        \
        {HK_ARG(hk_queue_set_ask, max_backoff, HK_ARG_DURATION, "TIME",                                                   \
                "never wait longer than this before a retry (default: as the policy says)"),                              \
         .lo = 1, .hi = 86400000},                                                                                        \
        {HK_ARG(hk_queue_set_ask, max_doublings, HK_ARG_TEXT, "N",                                                        \
                "double the wait this often, 0 to 16 (default: as the policy says)")},                                    \
    {                                                                                                                     \
        HK_ARG(hk_queue_set_ask, policy, HK_ARG_POLICY, "NAME",                                                           \
               "the retry policy (default: queues.policy of the configuration)")                                          \
    }

static const struct hk_arg create_args[] = {
    {HK_SUBJECT(hk_queue_set_ask, name, "NAME", NULL)}, SETTINGS_ARGS, {.name = NULL}};

static const struct hk_arg update_args[] = {
    {HK_SUBJECT(hk_queue_set_ask, name, "NAME", NULL)},
    SETTINGS_ARGS,
    {HK_ARG(hk_queue_set_ask, reset, HK_ARG_TEXTS, "FIELD",
            "reset this setting to its default: rate, max_attempts …; may be repeated")},
    {.name = NULL}};

const struct hk_op hk_op_queues_create = {
    .noun = "queues",
    .verb = "create",
    .summary = "create a queue for clients of Cloud Tasks",
    .details = "NAME is projects/P/locations/L/queues/Q. Clients can make queues, too (docs/cloud-tasks.md).",
    .route = "POST /queues",
    .role = HK_ROLE_ADMIN,
    .store = true,
    .changes = true,
    .needs_reason = true,
    .args = create_args,
    .request_size = sizeof(struct hk_queue_set_ask),
    .result_size = sizeof(struct hk_queue),
    .check = check_set,
    .run = create_queue_op,
    .form = hk_form_queue};

const struct hk_op hk_op_queues_update = {
    .noun = "queues",
    .verb = "update",
    .summary = "change limits and retries of a queue",
    .details = "Other settings stay as they are. Relays use the change within a second.",
    .route = "PATCH /queues/{name}",
    .role = HK_ROLE_ADMIN,
    .store = true,
    .changes = true,
    .needs_reason = true,
    .args = update_args,
    .request_size = sizeof(struct hk_queue_set_ask),
    .result_size = sizeof(struct hk_queue),
    .check = check_update,
    .run = update_queue_op,
    .form = hk_form_queue};
