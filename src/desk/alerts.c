/* SPDX-License-Identifier: Apache-2.0 */
/* Alerts. A mute is one row in the store, which every relay reads, and one in the audit. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "alert/conf.h"
#include "base/parse.h"
#include "base/show.h"
#include "base/str.h"
#include "desk/alerts.h"
#include "desk/forms.h"
#include "exec/clock.h"

/* ---- list ---- */

/* Adds the payload fields that the last notices showed. False: no memory. */
static bool name_fields(struct hk_alerts_list *list, struct hk_pool *mem)
{
    struct hk_alert *alerts = hk_pool_alloc(mem, list->n_alerts + 1, sizeof *alerts);
    for (size_t i = 0; alerts && i < list->n_alerts; i++) {
        struct hk_alert_field *named = NULL;
        alerts[i] = list->alerts[i];
        if (!alerts[i].fields.len)
            continue;
        named = hk_pool_alloc(mem, HK_ALERT_FIELDS, sizeof *named);
        if (!named || hk_alerts_fields_of(alerts[i].fields, mem, named, &alerts[i].n_named) != HK_OK)
            return false;
        alerts[i].named = named;
    }
    list->alerts = alerts;
    return alerts != NULL;
}

static enum hk_code list_alerts(struct hk_desk *desk, const struct hk_caller *caller, const void *request,
                                struct hk_pool *mem, struct hk_alerts_list *out, struct hk_err *err)
{
    const struct hk_alerts_list *found = NULL;
    (void)caller, (void)request;
    enum hk_code rc = desk->alerts->list(desk->admin, &found, err);
    if (rc != HK_OK)
        return rc;
    *out = *found;
    out->channels = desk->config->channels.n;
    hk_desk_keep(desk, mem);
    return name_fields(out, mem) ? HK_OK : hk_err_set(err, HK_NOMEM, "out of memory");
}

/* ---- mute, unmute ---- */

/* A misspelt name would mute nothing, and say that it did. Without a configuration nobody knows the names. */
static bool is_known_rule(const struct hk_config *config, const char *name)
{
    return config->given == 0 || hk_config_knows_rule(config, name);
}

static enum hk_code read_end(struct hk_desk *desk, const struct hk_alert_mute_ask *ask, int64_t *until_ms,
                             struct hk_err *err)
{
    if ((ask->until != NULL) == (ask->for_ms > 0))
        return hk_err_set(err, HK_INVALID, "until when? Give --until TIME or --for DURATION, one of them");
    if (!ask->until)
        return HK_OK;
    if (hk_parse_rfc3339(hk_str_of(ask->until), until_ms, NULL) != HK_OK)
        return hk_desk_wrong(desk, "until", err, "is no time such as 2026-11-15T08:30:00Z");
    if (*until_ms <= hk_clock_wall_ms())
        return hk_desk_wrong(desk, "until", err, "is in the past");
    return HK_OK;
}

static enum hk_code mute_rule(struct hk_desk *desk, const struct hk_caller *caller,
                              const struct hk_alert_mute_ask *ask, struct hk_pool *mem,
                              struct hk_alert_muted *out, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    int64_t until_ms = 0;
    (void)mem;
    enum hk_code rc = read_end(desk, ask, &until_ms, err);
    if (rc == HK_OK && !is_known_rule(desk->config, ask->rule))
        rc = hk_err_set(err, HK_NOTFOUND, "there is no alert rule %s in the configuration",
                        hk_show(hk_str_of(ask->rule), shown));
    if (rc == HK_OK)
        rc = desk->alerts->mute(desk->admin, ask->rule, until_ms, ask->for_ms, caller->actor, caller->reason,
                                &until_ms, err);
    if (rc == HK_OK)
        *out = (struct hk_alert_muted){.rule = ask->rule, .until_ms = until_ms, .changed = true};
    return rc;
}

static enum hk_code unmute_rule(struct hk_desk *desk, const struct hk_caller *caller,
                                const struct hk_alert_unmute_ask *ask, struct hk_pool *mem,
                                struct hk_alert_muted *out, struct hk_err *err)
{
    bool changed = true;
    (void)mem;
    enum hk_code rc =
        desk->alerts->unmute(desk->admin, ask->rule, caller->actor, caller->reason, &changed, err);
    if (rc == HK_OK)
        *out = (struct hk_alert_muted){.rule = ask->rule, .changed = changed};
    return rc;
}

/* ---- test ---- */

static const struct hk_conf_channel *find_channel(const struct hk_config *config, const char *name)
{
    const struct hk_conf_channel *channel = NULL;
    for (size_t i = 0; (channel = hk_config_channel(config, i)) != NULL; i++)
        if (strcmp(channel->name, name) == 0)
            return channel;
    return NULL;
}

static void send_notice(const struct hk_config *config, const struct hk_channel *channel,
                        struct hk_alert_tested *out)
{
    char id[48], host[64] = "here";
    uint64_t asked_ms = 0;
    int64_t now_ms = hk_clock_wall_ms(), began_us = hk_clock_us();
    (void)gethostname(host, sizeof host - 1);
    (void)snprintf(id, sizeof id, "test-%016" PRIx64, hk_clock_seed());
    const struct hk_notice notice = {.kind = HK_NOTICE_TEST,
                                     .severity = HK_ALERT_INFO,
                                     .about = HK_ALERT_DEAD_LETTER,
                                     .rule = "test",
                                     .fingerprint = id,
                                     .since_ms = now_ms,
                                     .at_ms = now_ms,
                                     .destination = hk_str_of(""),
                                     .reason = hk_str_of(""),
                                     .event_type = hk_str_of(""),
                                     .example_id = hk_str_of(""),
                                     .detail = hk_str_of(""),
                                     .relay = host,
                                     .link = config->alerts.link};
    out->failed.code = hk_channel_send(channel, &notice, id, &asked_ms, &out->failed);
    out->took_ms = (uint64_t)(hk_clock_us() - began_us) / 1000;
}

static enum hk_code test_channel(struct hk_desk *desk, const struct hk_caller *caller,
                                 const struct hk_alert_test_ask *ask, struct hk_pool *mem,
                                 struct hk_alert_tested *out, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    struct hk_pool arena = {NULL};
    struct hk_channel channel;
    (void)caller, (void)mem;
    const struct hk_conf_channel *conf = find_channel(desk->config, ask->channel);
    if (!conf)
        return hk_err_set(err, HK_NOTFOUND, "no channel %s is configured",
                          hk_show(hk_str_of(ask->channel), shown));
    enum hk_code rc = hk_channel_of_conf(desk->config, conf, &arena, &channel, err);
    *out = (struct hk_alert_tested){.channel = conf->name, .kind = hk_conf_channel_kind_name(conf->kind)};
    if (rc == HK_OK)
        send_notice(desk->config, &channel, out);
    hk_pool_wipe(&arena);
    return rc;
}

/* ---- the table ---- */

HK_OP_RUN(list_alerts)
HK_OP_RUN(mute_rule)
HK_OP_RUN(unmute_rule)
HK_OP_RUN(test_channel)

#define FOR_MAX_MS 3153600000000.0 /* a hundred years */

static const struct hk_arg mute_args[] = {{.name = "rule",
                                           .kind = HK_ARG_TEXT,
                                           .subject = true,
                                           .required = true,
                                           .offset = offsetof(struct hk_alert_mute_ask, rule),
                                           .value = "RULE"},
                                          {.name = "until",
                                           .kind = HK_ARG_TEXT,
                                           .offset = offsetof(struct hk_alert_mute_ask, until),
                                           .value = "TIME",
                                           .help = "mute until this time, such as 2026-11-15T08:30:00Z"},
                                          {.name = "for",
                                           .kind = HK_ARG_DURATION,
                                           .offset = offsetof(struct hk_alert_mute_ask, for_ms),
                                           .lo = 1,
                                           .hi = FOR_MAX_MS,
                                           .value = "TIME",
                                           .help = "mute for this long, such as 2h"},
                                          {.name = NULL}};

static const struct hk_arg unmute_args[] = {{.name = "rule",
                                             .kind = HK_ARG_TEXT,
                                             .subject = true,
                                             .required = true,
                                             .offset = offsetof(struct hk_alert_unmute_ask, rule),
                                             .value = "RULE"},
                                            {.name = NULL}};

static const struct hk_arg test_args[] = {{.name = "channel",
                                           .kind = HK_ARG_TEXT,
                                           .subject = true,
                                           .required = true,
                                           .offset = offsetof(struct hk_alert_test_ask, channel),
                                           .value = "CHANNEL"},
                                          {.name = NULL}};

const struct hk_op hk_op_alerts_list = {.noun = "alerts",
                                        .verb = "list",
                                        .summary =
                                            "list alerts, notices that could not be sent, and muted rules",
                                        .route = "GET /alerts",
                                        .role = HK_ROLE_VIEWER,
                                        .store = true,
                                        .result_size = sizeof(struct hk_alerts_list),
                                        .run = list_alerts_op,
                                        .form = hk_form_alerts};

const struct hk_op hk_op_alerts_test = {
    .noun = "alerts",
    .verb = "test",
    .summary = "send one test notice now, and say whether the channel accepted it",
    .route = "POST /alerts/test",
    .role = HK_ROLE_OPERATOR,
    .changes = true,
    .sends = true,
    .args = test_args,
    .request_size = sizeof(struct hk_alert_test_ask),
    .result_size = sizeof(struct hk_alert_tested),
    .run = test_channel_op,
    .form = hk_form_alert_tested};

const struct hk_op hk_op_alerts_mute = {.noun = "alerts",
                                        .verb = "mute",
                                        .summary = "mute a rule for a time: it sends no notices",
                                        .details = "Alerts still firing when the mute ends are sent then.",
                                        .route = "POST /alerts/mute",
                                        .role = HK_ROLE_OPERATOR,
                                        .store = true,
                                        .changes = true,
                                        .needs_reason = true,
                                        .args = mute_args,
                                        .request_size = sizeof(struct hk_alert_mute_ask),
                                        .result_size = sizeof(struct hk_alert_muted),
                                        .run = mute_rule_op,
                                        .form = hk_form_alert_muted};

const struct hk_op hk_op_alerts_unmute = {.noun = "alerts",
                                          .verb = "unmute",
                                          .summary = "end the mute of a rule: it sends notices again",
                                          .route = "POST /alerts/unmute",
                                          .role = HK_ROLE_OPERATOR,
                                          .store = true,
                                          .changes = true,
                                          .needs_reason = true,
                                          .args = unmute_args,
                                          .request_size = sizeof(struct hk_alert_unmute_ask),
                                          .result_size = sizeof(struct hk_alert_muted),
                                          .run = unmute_rule_op,
                                          .form = hk_form_alert_muted};
