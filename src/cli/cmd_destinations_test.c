/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku destinations test: one message, now, through the very sink that the relay uses. The store is not touched. */
#include <inttypes.h>
#include <stdio.h>

#include <hikyaku/policy.h>

#include "base/parse.h"
#include "base/show.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/operate.h"
#include "cli/out.h"
#include "cli/settings.h"
#include "cli/table.h"
#include "exec/clock.h"
#include "relay/wiring.h"

#define LONGEST_MS UINT64_C(300000)

struct probe {
    const struct hk_cli *cli;
    const struct hk_conf_destination *conf;
    const struct hk_policy *policy;
    struct hk_loop *loop;
    char message_id[64];
    struct hk_buf payload;
    struct hk_message message;
    enum hk_class failure_class;
    struct hk_buf out;
};

static void write_text(struct probe *p, const struct hk_sink_result *r, const char *cause)
{
    char line[160], took[HK_OUT_TEXT], url[HK_URL_SHOWN_MAX];
    struct hk_buf *out = &p->out;
    hk_operate_fact(out, "destination", hk_str_of(p->conf->name));
    hk_operate_fact(out, "url", hk_str_of(hk_conf_target(p->conf, url)));
    (void)snprintf(line, sizeof line, "%s%s%s", hk_class_name(p->failure_class), cause[0] != '\0' ? ", " : "",
                   cause);
    hk_operate_fact(out, "verdict", hk_str_of(line));
    if (r->facts.status > 0)
        (void)snprintf(line, sizeof line, "%d", r->facts.status);
    else
        (void)snprintf(line, sizeof line, "none (%s)", hk_fault_name(r->facts.fault));
    hk_operate_fact(out, "status", hk_str_of(line));
    hk_operate_fact(out, "took", hk_str_of(hk_out_duration(r->facts.duration_ms, took)));
    hk_operate_fact(out, "address", r->address);
    hk_operate_fact(out, "error", r->facts.error);
    hk_operate_fact(out, "message", hk_str_of(p->message_id));
    struct hk_sink_shown shown = r->show(r);
    hk_operate_fact(out, "request headers", shown.request_headers);
    hk_operate_fact(out, "response headers", shown.response_headers);
    if (r->facts.body.len > 0) {
        (void)hk_buf_adds(out, "response body:\n");
        hk_table_safe_lines(out, r->facts.body);
        (void)hk_buf_addc(out, '\n');
    }
}

static void write_json(struct probe *p, const struct hk_sink_result *r, const char *cause)
{
    char url[HK_URL_SHOWN_MAX];
    struct hk_json json;
    hk_json_init(&json, &p->out, true);
    hk_json_object(&json);
    hk_put_str(&json, "destination", hk_str_of(p->conf->name));
    hk_put_cstr(&json, "kind", hk_conf_kind_name(p->conf->kind));
    hk_put_cstr(&json, "url", hk_conf_url(p->conf, url));
    hk_put_bool(&json, "ok", p->failure_class == HK_CLASS_SUCCESS);
    hk_put_str(&json, "class", hk_str_of(hk_class_name(p->failure_class)));
    hk_put_str(&json, "cause", hk_str_of(cause));
    hk_json_key(&json, "status");
    if (r->facts.status > 0)
        hk_json_i64(&json, r->facts.status);
    else
        hk_json_null(&json);
    hk_put_str(&json, "fault", hk_str_of(hk_fault_name(r->facts.fault)));
    hk_put_u64(&json, "duration_ms", r->facts.duration_ms);
    hk_put_str(&json, "address", r->address);
    hk_put_str(&json, "error", r->facts.error);
    hk_put_str(&json, "message_id", hk_str_of(p->message_id));
    struct hk_sink_shown shown = r->show(r);
    hk_put_str(&json, "request_headers", shown.request_headers);
    hk_put_str(&json, "response_headers", shown.response_headers);
    hk_put_bytes(&json, "response_body", r->facts.body);
    hk_json_end(&json);
    (void)hk_buf_addc(&p->out, '\n');
}

static void on_done(void *arg, const struct hk_sink_result *result)
{
    struct probe *p = arg;
    char cause[HK_REASON_MAX] = "";
    bool pause = false;
    p->failure_class = hk_policy_classify(p->policy, &result->facts, cause, &pause);
    if (hk_args_flag(p->cli, "json"))
        write_json(p, result, cause);
    else
        write_text(p, result, cause);
    hk_loop_stop(p->loop);
}

static bool make_message(struct probe *p)
{
    char now[HK_TIME_TEXT_MAX];
    const char *given = hk_args_value(p->cli, "payload");
    (void)hk_format_rfc3339(hk_clock_wall_ms(), now);
    (void)snprintf(p->message_id, sizeof p->message_id, "test-%016" PRIx64, hk_clock_seed());
    if (given == NULL)
        (void)hk_buf_addf(&p->payload, "{\"test\":true,\"from\":\"hikyaku\",\"at\":\"%s\"}", now);
    else if (!hk_operate_payload(given, &p->payload))
        return false;
    const struct hk_str none = {"", 0};
    p->message = (struct hk_message){.message_id = hk_str_of(p->message_id),
                                     .destination = hk_str_of(p->conf->name),
                                     .event_type = hk_str_of("hikyaku.test"),
                                     .key = none,
                                     .headers = none,
                                     .content_type = hk_str_of("application/json"),
                                     .encoding = none,
                                     .correlation_id = none,
                                     .traceparent = none,
                                     .idempotency_key = none,
                                     .policy = none,
                                     .payload = hk_buf_str(&p->payload),
                                     .created_ms = hk_clock_wall_ms(),
                                     .life = 1};
    return true;
}

static enum hk_code send_it(struct probe *p, struct hk_sink *sink, struct hk_err *err)
{
    struct hk_history history = {.attempts = 0};
    uint64_t timeout_ms = hk_policy_attempt_ms(p->policy, NULL, &history, 0);
    timeout_ms = timeout_ms == 0 || timeout_ms > LONGEST_MS ? LONGEST_MS : timeout_ms;
    enum hk_code rc = sink->ops->send(sink, &p->message, 1, hk_clock_wall_ms(), timeout_ms, on_done, p, err);
    if (rc == HK_OK)
        hk_loop_run(p->loop);
    return rc;
}

static int send_and_print(struct probe *p, const struct hk_config *config)
{
    struct hk_sink *sink = NULL;
    struct hk_err err = {.message = ""};
    p->policy = hk_policies_get(config->policies, p->conf->policy);
    p->failure_class = HK_CLASS_UNKNOWN;
    enum hk_code rc = hk_loop_new(&p->loop, &err);
    if (rc == HK_OK)
        rc = hk_wiring_sink(p->conf, p->loop, &sink, &err);
    if (rc == HK_OK) {
        rc = send_it(p, sink, &err);
        sink->ops->close(sink);
    }
    hk_loop_free(p->loop);
    int printed = hk_out_buffer(&p->out);
    if (rc != HK_OK)
        return hk_out_error(rc == HK_INVALID ? HK_EXIT_CONFIG : HK_EXIT_FAILURE, "%s", err.message);
    return p->failure_class == HK_CLASS_SUCCESS ? printed : HK_EXIT_FAILURE;
}

static int probe(struct probe *p, const struct hk_config *config)
{
    hk_buf_init(&p->out, HK_OPERATE_OUTPUT_MAX);
    hk_buf_init(&p->payload, HK_PAYLOAD_MAX);
    int code = make_message(p) ? send_and_print(p, config) : HK_EXIT_FAILURE;
    hk_buf_fini(&p->payload);
    return code;
}

int hk_cmd_destinations_test(struct hk_cli *cli)
{
    struct hk_config *config = NULL;
    char shown[HK_SHOW_MAX];
    int code = hk_settings_config(cli, HK_FOR_SENDING, &config);
    if (code != HK_EXIT_OK)
        return code;
    struct probe p = {.cli = cli, .conf = hk_operate_destination(config, hk_str_of(cli->operands[0]))};
    if (p.conf != NULL)
        code = probe(&p, config);
    else
        code = hk_out_error(HK_EXIT_FAILURE,
                            "no destination %s is configured; 'hikyaku destinations list' shows them",
                            hk_show(hk_str_of(cli->operands[0]), shown));
    hk_config_free(config);
    return code;
}
