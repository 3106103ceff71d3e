/* SPDX-License-Identifier: Apache-2.0 */
/* The table of metrics: names, labels, units, and what each means in one line. */
#include <string.h>

#include "base/str.h"
#include "core/engine.h"
#include "daemon/meters.h"
#include "relay/watch.h"

#define DESTINATION                                                                                          \
    {                                                                                                        \
        .name = "destination"                                                                                \
    }
#define WORDS(n, words)                                                                                      \
    {                                                                                                        \
        .name = (n), .values = (words)                                                                       \
    }
#define BOUNDS(list) .bounds = (list), .n_bounds = sizeof(list) / sizeof(list)[0]

static const char *const results[] = {"outcome=\"success\",class=\"none\"",
                                      "outcome=\"failure\",class=\"transient\"",
                                      "outcome=\"failure\",class=\"rate_limit\"",
                                      "outcome=\"failure\",class=\"auth\"",
                                      "outcome=\"failure\",class=\"permanent\"",
                                      "outcome=\"failure\",class=\"unknown\"",
                                      NULL};
_Static_assert(sizeof results / sizeof results[0] == HK_NCLASSES + 1, "one for each class");

/* The first three stand for HTTP_nnn. Codes that only hk_execute gives are not among them. */
static const char *const reasons[] = {"HTTP_3xx",
                                      "HTTP_4xx",
                                      "HTTP_5xx",
                                      "VALIDATION_ERROR",
                                      "SCHEMA_MISMATCH",
                                      "PAYLOAD_TOO_LARGE",
                                      "TRANSIENT_NETWORK",
                                      "TIMEOUT",
                                      "TLS_FAILED",
                                      "PROTOCOL_ERROR",
                                      "RATE_LIMITED",
                                      "AUTH_FAILED",
                                      "TOKEN_UNAVAILABLE",
                                      "BROKER_UNAVAILABLE",
                                      "BROKER_REFUSED",
                                      "PROXY_UNAVAILABLE",
                                      "PROXY_AUTH_FAILED",
                                      "PROXY_REFUSED",
                                      "BLOCKED_BY_POLICY",
                                      "UNKNOWN_DESTINATION",
                                      "LOCAL_ERROR",
                                      "EXPIRED",
                                      "RELAY_CRASHED",
                                      "RETRY_EXHAUSTED",
                                      "DEADLINE_EXCEEDED",
                                      "UNKNOWN",
                                      "other",
                                      NULL};

enum {
    N_REASONS = sizeof reasons / sizeof reasons[0] - 1
};

static const char *const settle_kinds[] = {
    [HK_SETTLE_SENT] = "sent",       [HK_SETTLE_RETRY] = "retry", [HK_SETTLE_DEAD] = "dead",
    [HK_SETTLE_RELEASE] = "release", [HK_SETTLE_DEFER] = "defer", [HK_SETTLE_FAN_OUT] = "fan_out",
    [HK_SETTLE_FAN_OUT + 1] = NULL};
static const char *const lane_events[] = {[HK_LANE_ACQUIRED] = "acquired",
                                          [HK_LANE_RELEASED] = "released",
                                          [HK_LANE_LOST] = "lost",
                                          [HK_LANE_LOST + 1] = NULL};
static const char *const poll_results[] = {"unchanged", "changed", NULL};
/* In the order of enum hk_action_kind, from HK_ACT_ACQUIRE to HK_ACT_RELEASE. */
static const char *const calls[] = {"acquire",  "poll",  "held_keys", "scan",
                                    "exchange", "pause", "release",   NULL};
_Static_assert(HK_ACT_RELEASE - HK_ACT_ACQUIRE + 2 == sizeof calls / sizeof calls[0], "one for each call");
static const char *const codes[] = {"busy", "conflict", "unavailable", "nomem", "io", "other", NULL};
static const char *const breaker_states[] = {[HK_BREAKER_CLOSED] = "closed",
                                             [HK_BREAKER_OPEN] = "open",
                                             [HK_BREAKER_HALF_OPEN] = "half_open",
                                             [HK_BREAKER_ISOLATED] = "isolated",
                                             [HK_BREAKER_ISOLATED + 1] = NULL};
static const char *const states[] = {[HK_METER_DUE] = "due",
                                     [HK_METER_RETRYING] = "retrying",
                                     [HK_METER_SCHEDULED] = "scheduled",
                                     [HK_METER_PROCESSING] = "processing",
                                     [HK_METER_DEAD_OPEN] = "dead",
                                     [HK_METER_SENT_KEPT] = "sent",
                                     [HK_METER_CANCELLED] = "cancelled",
                                     [HK_METER_NSTATES] = NULL};
static const char *const dest_states[] = {[HK_METER_DEST_PENDING] = "pending",
                                          [HK_METER_DEST_RETRYING] = "retrying",
                                          [HK_METER_DEST_PROCESSING] = "processing",
                                          [HK_METER_DEST_DEAD] = "dead",
                                          [HK_METER_NDEST_STATES] = NULL};
static const char *const looks[] = {"ok", "failed", NULL};
static const char *const notices[] = {[HK_METER_NOTICE_SENT] = "sent",
                                      [HK_METER_NOTICE_FAILED] = "failed",
                                      [HK_METER_NOTICE_GIVEN_UP] = "given_up",
                                      NULL};
static const char *const spans[] = {[HK_METER_SPAN_SENT] = "sent",
                                    [HK_METER_SPAN_FAILED] = "failed",
                                    [HK_METER_SPAN_DROPPED] = "dropped",
                                    NULL};
static const char *const pushes[] = {"sent", "failed", NULL};
static const char *const attempts[] = {"0", "1", "2", "3", "4", "5-9", "10-19", "20+", NULL};

/* 5 ms to 12 h: what is retried arrives late. */
static const uint64_t ack_ms[] = {5,    10,    25,    50,    100,    250,     500,     1000,    2500,
                                  5000, 10000, 30000, 60000, 300000, 1800000, 7200000, 43200000};
static const uint64_t attempt_us[] = {1000,   2500,    5000,    10000,   25000,    50000,    100000,  250000,
                                      500000, 1000000, 2500000, 5000000, 10000000, 30000000, 60000000};
static const uint64_t store_us[] = {100,   250,    500,    1000,   2500,    5000,    10000,   25000,
                                    50000, 100000, 250000, 500000, 1000000, 2500000, 5000000, 10000000};

const struct hk_metric_def hk_meters[HK_NMETERS] = {
    [HK_METER_INSERT_TO_ACK] =
        {.name = "hikyaku_insert_to_ack_seconds",
         .help = "Time from a message's INSERT to its settling as sent, by the store's clock.",
         .type = HK_METRIC_HISTOGRAM,
         .decimals = 3,
         .labels = {DESTINATION},
         BOUNDS(ack_ms)},
    [HK_METER_ATTEMPTS] = {.name = "hikyaku_attempts_total",
                           .help = "Attempts whose outcome is settled, by outcome and failure class.",
                           .type = HK_METRIC_COUNTER,
                           .labels = {DESTINATION, WORDS(NULL, results)}},
    [HK_METER_ATTEMPT_DURATION] = {.name = "hikyaku_attempt_duration_seconds",
                                   .help = "Time from the start of an attempt to its answer or failure.",
                                   .type = HK_METRIC_HISTOGRAM,
                                   .decimals = 6,
                                   .labels = {DESTINATION},
                                   BOUNDS(attempt_us)},
    [HK_METER_MAYBE_DELIVERED] =
        {.name = "hikyaku_possibly_delivered_total",
         .help =
             "Failed attempts, and messages found in the hands of a dead relay, of which the destination may have acted on the message.",
         .type = HK_METRIC_COUNTER,
         .labels = {DESTINATION}},
    [HK_METER_SENT] = {.name = "hikyaku_messages_sent_total",
                       .help = "Messages settled as sent.",
                       .type = HK_METRIC_COUNTER,
                       .labels = {DESTINATION}},
    [HK_METER_RETRIES] = {.name = "hikyaku_retries_total",
                          .help = "Failed attempts after which the message waits for another one.",
                          .type = HK_METRIC_COUNTER,
                          .labels = {DESTINATION}},
    [HK_METER_DEAD] = {.name = "hikyaku_dead_letters_total",
                       .help = "Messages that became dead letters, by reason code.",
                       .type = HK_METRIC_COUNTER,
                       .labels = {DESTINATION, WORDS("reason", reasons)}},
    [HK_METER_SEEN] =
        {.name = "hikyaku_messages_seen_total",
         .help = "Fresh messages for the destination that the relay has read; starts anew with a reload.",
         .type = HK_METRIC_COUNTER,
         .labels = {DESTINATION}},
    [HK_METER_CLAIMED] = {.name = "hikyaku_messages_claimed_total",
                          .help = "Messages that were claimed.",
                          .type = HK_METRIC_COUNTER},
    [HK_METER_SETTLES] = {.name = "hikyaku_settles_total",
                          .help = "Settles that the store has committed, by kind.",
                          .type = HK_METRIC_COUNTER,
                          .labels = {WORDS("kind", settle_kinds)}},
    [HK_METER_STALE] = {.name = "hikyaku_settles_stale_total",
                        .help = "Settles that changed nothing: another relay had taken over.",
                        .type = HK_METRIC_COUNTER},
    [HK_METER_STUCK] = {.name = "hikyaku_settles_stuck_total",
                        .help = "Messages whose row the database did not let go: held, and not sent again.",
                        .type = HK_METRIC_COUNTER},
    [HK_METER_LANE_EVENTS] = {.name = "hikyaku_lane_events_total",
                              .help = "Lanes acquired, released and lost to another relay.",
                              .type = HK_METRIC_COUNTER,
                              .labels = {WORDS("event", lane_events)}},
    [HK_METER_POLLS] = {.name = "hikyaku_polls_total",
                        .help = "Polls that the store has answered.",
                        .type = HK_METRIC_COUNTER,
                        .labels = {WORDS("result", poll_results)}},
    [HK_METER_SCANS] = {.name = "hikyaku_scans_total",
                        .help = "Scans for messages to claim.",
                        .type = HK_METRIC_COUNTER},
    [HK_METER_EXCHANGES] = {.name = "hikyaku_exchanges_total",
                            .help = "Exchanges: transactions that settle and claim.",
                            .type = HK_METRIC_COUNTER},
    [HK_METER_SWEPT] = {.name = "hikyaku_swept_total",
                        .help = "Messages that only the sweep found.",
                        .type = HK_METRIC_COUNTER},
    [HK_METER_STORE_DURATION] = {.name = "hikyaku_store_call_duration_seconds",
                                 .help = "Time that calls at the store took.",
                                 .type = HK_METRIC_HISTOGRAM,
                                 .decimals = 6,
                                 .labels = {WORDS("call", calls)},
                                 BOUNDS(store_us)},
    [HK_METER_STORE_ERRORS] =
        {.name = "hikyaku_store_errors_total",
         .help = "Calls at the store that failed; busy: another one holds a lock, or the only lane.",
         .type = HK_METRIC_COUNTER,
         .labels = {WORDS("call", calls), WORDS("code", codes)}},
    [HK_METER_IN_FLIGHT] = {.name = "hikyaku_in_flight",
                            .help = "Attempts under way.",
                            .type = HK_METRIC_GAUGE},
    [HK_METER_CONCURRENCY] = {.name = "hikyaku_concurrency_limit",
                              .help = "Attempts that may be under way at once, all destinations together.",
                              .type = HK_METRIC_GAUGE},
    [HK_METER_DEST_IN_FLIGHT] = {.name = "hikyaku_destination_in_flight",
                                 .help = "Attempts under way at the destination.",
                                 .type = HK_METRIC_GAUGE,
                                 .labels = {DESTINATION}},
    [HK_METER_DEST_CONCURRENCY] = {.name = "hikyaku_destination_concurrency_limit",
                                   .help = "Attempts that may be under way at the destination at once.",
                                   .type = HK_METRIC_GAUGE,
                                   .labels = {DESTINATION}},
    [HK_METER_DEST_PAUSED] = {.name = "hikyaku_destination_paused",
                              .help = "1 while the destination is paused.",
                              .type = HK_METRIC_GAUGE,
                              .labels = {DESTINATION}},
    [HK_METER_BREAKER] = {.name = "hikyaku_breaker_state",
                          .help = "1 for the state that the destination's circuit breaker is in.",
                          .type = HK_METRIC_GAUGE,
                          .labels = {DESTINATION, WORDS("state", breaker_states)}},
    [HK_METER_LANE_HELD] = {.name = "hikyaku_lane_held",
                            .help = "1 while this relay holds a lane and so may claim.",
                            .type = HK_METRIC_GAUGE},
    [HK_METER_STORE_UP] = {.name = "hikyaku_store_up",
                           .help = "1 while the store's last answer was none of trouble.",
                           .type = HK_METRIC_GAUGE},
    [HK_METER_STORE_AGE] = {.name = "hikyaku_store_answer_age_seconds",
                            .help = "Time since the store's last good answer.",
                            .type = HK_METRIC_GAUGE,
                            .decimals = 3},
    [HK_METER_LOOP_AGE] = {.name = "hikyaku_loop_age_seconds",
                           .help = "Time since the loop's last sign of life.",
                           .type = HK_METRIC_GAUGE,
                           .decimals = 3},
    [HK_METER_READY] = {.name = "hikyaku_ready",
                        .help = "1 while /readyz says yes.",
                        .type = HK_METRIC_GAUGE},
    [HK_METER_DRAINING] = {.name = "hikyaku_draining",
                           .help = "1 while the relay drains before it ends.",
                           .type = HK_METRIC_GAUGE},
    [HK_METER_RELOADS] = {.name = "hikyaku_reloads_total",
                          .help = "Configurations that took effect after the first one.",
                          .type = HK_METRIC_COUNTER},
    [HK_METER_QUEUE] = {.name = "hikyaku_queue_depth",
                        .help = "Messages by state, as the whole store has them.",
                        .type = HK_METRIC_GAUGE,
                        .labels = {WORDS("state", states)}},
    [HK_METER_QUEUE_ESTIMATED] = {.name = "hikyaku_queue_depth_estimated",
                                  .help = "1 where hikyaku_queue_depth is an estimate: beyond 100,000.",
                                  .type = HK_METRIC_GAUGE,
                                  .labels = {WORDS("state", states)}},
    [HK_METER_DEST_QUEUE] = {.name = "hikyaku_destination_queue_depth",
                             .help = "Messages by destination and state, as the whole store has them.",
                             .type = HK_METRIC_GAUGE,
                             .labels = {DESTINATION, WORDS("state", dest_states)}},
    [HK_METER_QUEUE_ATTEMPTS] = {.name = "hikyaku_queue_attempts",
                                 .help = "Undelivered messages by attempts made so far.",
                                 .type = HK_METRIC_GAUGE,
                                 .labels = {WORDS("attempts", attempts)}},
    [HK_METER_OLDEST_DUE] =
        {.name = "hikyaku_oldest_due_age_seconds",
         .help = "For how long the oldest message that is due could have gone; 0 when none is.",
         .type = HK_METRIC_GAUGE,
         .decimals = 3},
    [HK_METER_OLDEST] = {.name = "hikyaku_oldest_undelivered_age_seconds",
                         .help = "Age of the oldest undelivered message; 0 when there is none.",
                         .type = HK_METRIC_GAUGE,
                         .decimals = 3},
    [HK_METER_RELAYS] = {.name = "hikyaku_relays_running",
                         .help = "Relays with a living lease on the store.",
                         .type = HK_METRIC_GAUGE},
    [HK_METER_FIGURES_AGE] =
        {.name = "hikyaku_queue_figures_age_seconds",
         .help = "Age of the figures that come from the store: queue depths, oldest ages, relays.",
         .type = HK_METRIC_GAUGE,
         .decimals = 3},
    [HK_METER_FIGURES_ERRORS] = {.name = "hikyaku_queue_figures_errors_total",
                                 .help = "Times that these figures could not be read from the store.",
                                 .type = HK_METRIC_COUNTER},
    [HK_METER_LOG_DROPPED] = {.name = "hikyaku_log_lines_dropped_total",
                              .help = "Log lines that were dropped because nobody read them fast enough.",
                              .type = HK_METRIC_COUNTER},
    [HK_METER_ALERTS_FIRING] = {.name = "hikyaku_alerts_firing",
                                .help = "Alerts that fire, as of this relay's last look at them.",
                                .type = HK_METRIC_GAUGE},
    [HK_METER_ALERT_LOOKS] = {.name = "hikyaku_alert_evaluations_total",
                              .help = "Times that this relay looked at the alert rules, by how it went.",
                              .type = HK_METRIC_COUNTER,
                              .labels = {{"result", looks}}},
    [HK_METER_NOTICES] =
        {.name = "hikyaku_alert_notices_total",
         .help = "Attempts of this relay to tell people of an alert, by outcome; given_up counts notices.",
         .type = HK_METRIC_COUNTER,
         .labels = {{"outcome", notices}}},
    [HK_METER_EVENT_LISTENERS] = {.name = "hikyaku_event_listeners",
                                  .help = "Clients that listen to the events of this relay.",
                                  .type = HK_METRIC_GAUGE},
    [HK_METER_EVENT_LOOKS] = {.name = "hikyaku_event_looks_total",
                              .help = "Looks at the store for events: one for all clients, none without any.",
                              .type = HK_METRIC_COUNTER},
    [HK_METER_EVENTS] = {.name = "hikyaku_events_total",
                         .help = "Events of changes, each counted once, however many listen.",
                         .type = HK_METRIC_COUNTER},
    [HK_METER_EVENT_CUT] = {.name = "hikyaku_event_clients_cut_total",
                            .help = "Clients that were cut because they did not read their events.",
                            .type = HK_METRIC_COUNTER},
    [HK_METER_SPANS] = {.name = "hikyaku_telemetry_spans_total",
                        .help = "Spans for the OpenTelemetry collector, by what became of them.",
                        .type = HK_METRIC_COUNTER,
                        .labels = {{"outcome", spans}}},
    [HK_METER_PUSHES] = {.name = "hikyaku_telemetry_pushes_total",
                         .help =
                             "Requests with metrics for the OpenTelemetry collector, by what became of them.",
                         .type = HK_METRIC_COUNTER,
                         .labels = {{"outcome", pushes}}},
    [HK_METER_BUILD] = {.name = "hikyaku_build_info",
                        .help = "Always 1; the labels say what was built.",
                        .type = HK_METRIC_GAUGE},
    [HK_METER_RELAY] = {.name = "hikyaku_relay_info",
                        .help = "Always 1; the labels say which relay this is, on what kind of store.",
                        .type = HK_METRIC_GAUGE},
    [HK_METER_START_TIME] = {.name = "hikyaku_process_start_time_seconds",
                             .help = "When the process started, Unix time.",
                             .type = HK_METRIC_GAUGE,
                             .decimals = 3},
    [HK_METER_UPTIME] = {.name = "hikyaku_uptime_seconds",
                         .help = "For how long the process has run.",
                         .type = HK_METRIC_GAUGE,
                         .decimals = 3},
};

size_t hk_meter_reason(struct hk_str code)
{
    if (code.len == 8 && hk_str_starts(code, hk_str_of("HTTP_")) && code.ptr[5] >= '3' && code.ptr[5] <= '5')
        return (size_t)(code.ptr[5] - '3');
    for (size_t i = 0; i < N_REASONS; i++)
        if (hk_str_eq(code, hk_str_of(reasons[i])))
            return i;
    return N_REASONS - 1;
}

size_t hk_meter_code(enum hk_code code)
{
    switch (code) {
    case HK_BUSY:
        return 0;
    case HK_CONFLICT:
        return 1;
    case HK_UNAVAILABLE:
        return 2;
    case HK_NOMEM:
        return 3;
    case HK_IO:
        return 4;
    case HK_OK:
    case HK_INVALID:
    case HK_RANGE:
    case HK_TOOBIG:
    case HK_NOTFOUND:
    case HK_EXISTS:
    case HK_TIMEOUT:
    case HK_UNSUPPORTED:
    case HK_GAVE_UP:
    case HK_CANCELLED:
    case HK_DENIED:
    case HK_NCODES:
        break;
    }
    return 5;
}
