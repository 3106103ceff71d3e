/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku dead send: one letter, once, now, from here. That it will be sent is on disk before it is; how it went is recorded behind it. Who
 * dies in between leaves a letter whose outcome nobody knows, and only a person can decide about that. */
#include <inttypes.h>
#include <stdio.h>

#include <hikyaku/policy.h>

#include "base/show.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/dead/dead.h"
#include "cli/out.h"
#include "cli/settings.h"
#include "cli/table.h"
#include "config/payload.h"
#include "exec/clock.h"
#include "observe/crash.h"
#include "payload/answer.h"
#include "relay/wiring.h"

#define LONGEST_MS UINT64_C(300000)

struct sending {
    const struct hk_cli *cli;
    struct hk_dead dead;
    struct hk_config *config; /* with the secrets */
    const struct hk_conf_destination *conf;
    const struct hk_policy *policy;
    struct hk_loop *loop;
    const struct hk_letter *letter;
    struct hk_buf payload, out;
    struct hk_message message;
    char actor[HK_ACTOR_MAX];
    int64_t begun_ms, started_ms;
    bool ok, recorded;
    struct hk_err record_err;
};

/* ---- what came of it ---- */

static void record(struct sending *s, const struct hk_attempt_record *attempt)
{
    s->recorded = s->dead.letters->send_end(s->dead.op.admin, s->letter->id, s->begun_ms, s->actor, attempt,
                                            s->ok, &s->record_err) == HK_OK;
}

/* What the answer says may hold what the payload's masks hide. */
static void fact_masked(struct sending *s, const char *name, struct hk_str value, bool headers)
{
    struct hk_buf shown;
    hk_buf_init(&shown, HK_OPERATE_OUTPUT_MAX);
    if (headers)
        hk_dead_show_headers(&s->dead, s->letter, value, &shown);
    else
        hk_dead_show_text(&s->dead, s->letter, value, &shown);
    if (hk_buf_status(&shown) == HK_OK)
        hk_operate_fact(&s->out, name, hk_buf_str(&shown));
    hk_buf_fini(&shown);
}

static void put_masked(struct sending *s, struct hk_json *json, const char *name, struct hk_str value,
                       bool headers)
{
    struct hk_buf shown;
    hk_buf_init(&shown, HK_OPERATE_OUTPUT_MAX);
    if (headers)
        hk_dead_show_headers(&s->dead, s->letter, value, &shown);
    else if (value.len > 0)
        hk_dead_show_text(&s->dead, s->letter, value, &shown);
    hk_put_bytes(json, name,
                 hk_buf_status(&shown) == HK_OK ? hk_buf_str(&shown) : hk_str_of("(out of memory)"));
    hk_buf_fini(&shown);
}

static void write_text(struct sending *s, const struct hk_attempt_record *a)
{
    char line[160], took[HK_OUT_TEXT], url[HK_URL_SHOWN_MAX];
    (void)snprintf(line, sizeof line, "%" PRId64, s->letter->id);
    hk_operate_fact(&s->out, "letter", hk_str_of(line));
    hk_operate_fact(&s->out, "message", s->message.message_id);
    hk_operate_fact(&s->out, "destination", s->letter->destination);
    hk_operate_fact(&s->out, "url", hk_str_of(hk_conf_target(s->conf, url)));
    (void)snprintf(line, sizeof line, "%s%s%.*s", hk_class_name(a->failure_class),
                   a->cause.len > 0 ? ", " : "", (int)a->cause.len, a->cause.ptr);
    hk_operate_fact(&s->out, "verdict", hk_str_of(line));
    (void)snprintf(line, sizeof line, "%d", a->status);
    hk_operate_fact(&s->out, "status", hk_str_of(a->status > 0 ? line : "none"));
    hk_operate_fact(&s->out, "took", hk_str_of(hk_out_duration(a->duration_ms, took)));
    hk_operate_fact(&s->out, "address", a->address);
    fact_masked(s, "error", a->error, false);
    fact_masked(s, "request headers", a->request_headers, true);
    fact_masked(s, "response headers", a->response_headers, true);
    fact_masked(s, "response body", a->response_body, false);
    if (!s->ok && a->possibly_delivered)
        (void)hk_buf_adds(&s->out,
                          "it may have arrived all the same: ask the receiver before you send it again\n");
}

static void write_json(struct sending *s, const struct hk_attempt_record *a)
{
    struct hk_json json;
    hk_json_init(&json, &s->out, true);
    hk_json_object(&json);
    hk_put_id(&json, "id", s->letter->id);
    hk_put_str(&json, "message_id", s->message.message_id);
    hk_put_str(&json, "destination", s->letter->destination);
    hk_put_bool(&json, "ok", s->ok);
    hk_put_cstr(&json, "class", hk_class_name(a->failure_class));
    hk_put_str(&json, "cause", a->cause);
    hk_put_i64(&json, "status", a->status);
    hk_put_u64(&json, "duration_ms", a->duration_ms);
    hk_put_bool(&json, "possibly_delivered", a->possibly_delivered);
    hk_put_str(&json, "address", a->address);
    put_masked(s, &json, "error", a->error, false);
    put_masked(s, &json, "request_headers", a->request_headers, true);
    put_masked(s, &json, "response_headers", a->response_headers, true);
    put_masked(s, &json, "response_body", a->response_body, false);
    hk_json_end(&json);
    (void)hk_buf_addc(&s->out, '\n');
}

/* As the relay says it, so that the letter stays in its group: masked, whatever --reveal shows here. */
static struct hk_str error_of(const struct sending *s, const struct hk_facts *facts,
                              char out[HK_ANSWER_ERROR_MAX])
{
    const struct hk_mask_about about = {.event_type = s->message.event_type,
                                        .headers = s->message.headers,
                                        .payloads = &s->message.payload,
                                        .n_payloads = 1};
    struct hk_masks *masks = NULL;
    struct hk_err err = {.message = ""};
    struct hk_str body = facts->body;
    if (hk_config_make_masks(s->dead.op.config, &masks, &err) != HK_OK)
        body.len = 0; /* what it may say is not known */
    struct hk_str error = hk_answer_error(masks, &about, facts->status, body, out);
    hk_masks_free(masks);
    return error;
}

/* Shown first: recording ends what the letter's texts live on. */
static void on_done(void *arg, const struct hk_sink_result *result)
{
    struct sending *s = arg;
    char cause[HK_REASON_MAX] = "", answer[HK_ANSWER_ERROR_MAX];
    bool pause = false;
    struct hk_sink_shown shown = result->show(result);
    struct hk_attempt_record attempt = {
        .made = true,
        .started_ms = s->started_ms,
        .duration_ms = result->facts.duration_ms,
        .status = result->facts.status,
        .failure_class = hk_policy_classify(s->policy, &result->facts, cause, &pause),
        .cause = hk_str_of(cause),
        .error = result->facts.error,
        .request_headers = shown.request_headers,
        .response_headers = shown.response_headers,
        .response_body = {result->facts.body.ptr,
                          result->facts.body.len < 4096 ? result->facts.body.len : 4096},
        .address = result->address,
        .possibly_delivered = result->facts.possibly_delivered};
    hk_crash_point("send-answered");
    s->ok = attempt.failure_class == HK_CLASS_SUCCESS;
    if (!s->ok && attempt.error.len == 0 && attempt.status > 0)
        attempt.error = error_of(s, &result->facts, answer);
    if (hk_args_flag(s->cli, "json"))
        write_json(s, &attempt);
    else
        write_text(s, &attempt);
    record(s, &attempt);
    hk_loop_stop(s->loop);
}

/* ---- sending ---- */

static int say_outcome(const struct sending *s)
{
    if (!s->recorded)
        return hk_out_error(
            HK_EXIT_TEMPORARY,
            "it was sent (%s), but that could not be recorded: %s. The letter stays retrying; resolve or "
            "restore it by hand",
            s->ok ? "and arrived" : "and did not arrive", s->record_err.message);
    return s->ok ? HK_EXIT_OK : HK_EXIT_FAILURE;
}

static int deliver(struct sending *s)
{
    struct hk_sink *sink = NULL;
    struct hk_err err = {.message = ""};
    struct hk_history history = {.attempts = 0};
    uint64_t timeout_ms = hk_policy_attempt_ms(s->policy, NULL, &history, 0);
    timeout_ms = timeout_ms == 0 || timeout_ms > LONGEST_MS ? LONGEST_MS : timeout_ms;
    enum hk_code rc = hk_loop_new(&s->loop, &err);
    if (rc == HK_OK)
        rc = hk_wiring_sink(s->conf, s->loop, &sink, &err);
    s->started_ms = hk_clock_wall_ms();
    if (rc == HK_OK) {
        rc = sink->ops->send(sink, &s->message, 1, s->started_ms, timeout_ms, on_done, s, &err);
        if (rc == HK_OK)
            hk_loop_run(s->loop);
        sink->ops->close(sink);
    }
    if (s->loop != NULL)
        hk_loop_free(s->loop);
    if (rc == HK_OK) {
        int printed = hk_out_buffer(&s->out);
        int code = say_outcome(s);
        return code != HK_EXIT_OK ? code : printed;
    }
    /* nothing left this machine */
    record(s, &(struct hk_attempt_record){.made = false, .error = hk_str_of(err.message)});
    return hk_out_error(HK_EXIT_FAILURE, "not sent: %s", err.message);
}

static int begin(struct sending *s, const char *reason)
{
    const struct hk_letters_done *done = NULL;
    struct hk_err err = {.message = ""};
    struct hk_letter_act act = {.ids = &s->letter->id, .n = 1, .actor = s->actor, .reason = reason};
    if (s->dead.letters->send_begin(s->dead.op.admin, &act, &done, &err) != HK_OK)
        return hk_operate_failed(&err);
    if (done->items[0].did == HK_DID_IT) {
        s->begun_ms = done->items[0].begun_ms;
        hk_crash_point("send-begun");
        return HK_EXIT_OK;
    }
    return hk_out_error(HK_EXIT_FAILURE, "somebody else was faster: letter %" PRId64 " is %s now",
                        s->letter->id, hk_letter_status_name(done->items[0].status));
}

/* ---- may it be sent? ---- */

static int check_state(const struct sending *s)
{
    const struct hk_letter *l = s->letter;
    char ago[64];
    if (l->sending_ms != 0)
        return hk_out_error(
            HK_EXIT_FAILURE,
            "letter %" PRId64
            " was sent by hand %s, and nobody knows how that ended: if nobody is at it right now, "
            "look whether it arrived, then 'dead resolve %" PRId64 "', or 'dead restore %" PRId64
            "' to try again",
            l->id, hk_operate_ago(l->sending_ms, hk_clock_wall_ms(), ago), l->id, l->id);
    if (l->status != HK_LETTER_FAILED)
        return hk_out_error(HK_EXIT_FAILURE, "letter %" PRId64 " is %s: only an open one can be sent", l->id,
                            hk_letter_status_name(l->status));
    if (!l->has_payload)
        return hk_out_error(HK_EXIT_FAILURE, "letter %" PRId64 " has no payload that could be sent", l->id);
    if (l->payload.len < l->payload_bytes)
        return hk_dead_too_large(l, "sent by hand");
    if (l->version > 1 && l->possibly_delivered && !hk_args_flag(s->cli, "yes"))
        return hk_out_error(
            HK_EXIT_FAILURE,
            "it was edited, and an earlier attempt may have arrived: under the same id the receiver would "
            "drop it as a repeat; 'dead requeue --new-id %" PRId64 "', or --yes if you know better",
            l->id);
    return HK_EXIT_OK;
}

static int check_payload(struct sending *s)
{
    struct hk_validate *rules = NULL;
    struct hk_finding finding;
    struct hk_err err = {.message = ""};
    bool decoded = true;
    struct hk_str payload = hk_dead_payload(s->letter, &s->payload, &decoded);
    if (!decoded)
        return hk_out_error(HK_EXIT_FAILURE,
                            "the payload is not base64, as its encoding says: edit it first");
    if (hk_config_make_validate(s->config, &rules, &err) != HK_OK)
        return hk_out_failure(&err);
    bool valid = hk_validate_payload(rules, s->letter->event_type, payload, &finding);
    hk_validate_free(rules);
    if (!valid)
        return hk_out_error(HK_EXIT_FAILURE, "our own rules refuse it (%s): %s; edit it first",
                            finding.reason, finding.text);
    const struct hk_letter *l = s->letter;
    s->message = (struct hk_message){.id = l->id,
                                     .message_id = l->requeued_as.len > 0 ? l->requeued_as : l->message_id,
                                     .destination = l->destination,
                                     .event_type = l->event_type,
                                     .key = l->key,
                                     .headers = l->headers,
                                     .content_type = l->content_type,
                                     .encoding = l->encoding,
                                     .correlation_id = l->correlation_id,
                                     .traceparent = l->traceparent,
                                     .idempotency_key = l->idempotency_key,
                                     .policy = l->policy,
                                     .payload = payload,
                                     .created_ms = l->message_created_ms,
                                     .life = l->life};
    return HK_EXIT_OK;
}

/* Whoever paused it did not mean people with a terminal to go on. */
static int check_paused(const struct sending *s, const struct hk_names *paused)
{
    char shown[HK_SHOW_MAX];
    if (!hk_dead_is_paused(paused, s->letter->destination) || hk_args_flag(s->cli, "force"))
        return HK_EXIT_OK;
    return hk_out_error(HK_EXIT_FAILURE,
                        "%s is paused: 'hikyaku destinations resume' it, or --force to send all the same",
                        hk_show(s->letter->destination, shown));
}

/* Nobody can edit it from now on, but somebody may have done so since it was looked at: what is sent is what is there. */
static int look_again(struct sending *s, const char *reason)
{
    const struct hk_letter_shown *shown = NULL;
    const struct hk_letters_done *done = NULL;
    struct hk_err err = {.message = ""};
    int64_t id = s->letter->id;
    int code = HK_EXIT_OK;
    if (s->dead.letters->show(s->dead.op.admin, id, HK_PAYLOAD_MAX, &shown, &err) != HK_OK) {
        code = hk_operate_failed(&err);
    } else {
        s->letter = &shown->letter;
        s->dead.history = shown;
        hk_buf_reset(&s->payload);
        code = check_payload(s);
    }
    if (code == HK_EXIT_OK)
        return code;
    struct hk_letter_act act = {.ids = &id, .n = 1, .actor = s->actor, .reason = reason};
    if (s->dead.letters->restore(s->dead.op.admin, &act, &done, &err) != HK_OK)
        (void)hk_operate_failed(&err);
    return code;
}

/* The message names its own: the relay judges by that one, and lets a message die whose policy does not exist. */
static int find_own_policy(struct sending *s)
{
    char name[HK_NAME_MAX], shown[HK_SHOW_MAX];
    s->policy =
        hk_str_copy(name, sizeof name, s->letter->policy) ? hk_policies_get(s->config->policies, name) : NULL;
    if (s->policy != NULL)
        return HK_EXIT_OK;
    return hk_out_error(HK_EXIT_FAILURE,
                        "letter %" PRId64 " names the policy %s, which is not configured: add it to policies",
                        s->letter->id, hk_show(s->letter->policy, shown));
}

static int find_destination(struct sending *s)
{
    char shown[HK_SHOW_MAX];
    s->conf = hk_operate_destination(s->config, s->letter->destination);
    if (s->conf == NULL)
        return hk_out_error(HK_EXIT_FAILURE, "destination %s is not configured",
                            hk_show(s->letter->destination, shown));
    s->policy = hk_policies_get(s->config->policies, s->conf->policy);
    return s->letter->policy.len > 0 ? find_own_policy(s) : HK_EXIT_OK;
}

static int say_dry_run(struct sending *s)
{
    char url[HK_URL_SHOWN_MAX];
    struct hk_json json;
    if (hk_args_flag(s->cli, "json")) {
        hk_json_init(&json, &s->out, true);
        hk_json_object(&json);
        hk_put_id(&json, "id", s->letter->id);
        hk_put_str(&json, "message_id", s->message.message_id);
        hk_put_str(&json, "destination", s->letter->destination);
        hk_put_bool(&json, "dry_run", true);
        hk_put_cstr(&json, "url", hk_conf_target(s->conf, url));
        hk_put_u64(&json, "payload_bytes", s->message.payload.len);
        hk_json_end(&json);
        (void)hk_buf_addc(&s->out, '\n');
    } else {
        (void)hk_buf_addf(&s->out, "letter %" PRId64 " would be sent to %s, %zu bytes\n", s->letter->id,
                          hk_conf_target(s->conf, url), s->message.payload.len);
    }
    return hk_out_buffer(&s->out);
}

static int send_one(struct sending *s, const char *reason)
{
    const struct hk_letter_shown *shown = NULL;
    const struct hk_names *paused = NULL; /* asked for before: what is shown must outlive send_begin */
    struct hk_err err = {.message = ""};
    int64_t id = 0;
    int code = hk_dead_find(s->cli, &s->dead, s->cli->operands[0], &id);
    if (code != HK_EXIT_OK)
        return code;
    if (s->dead.letters->paused(s->dead.op.admin, &paused, &err) != HK_OK ||
        s->dead.letters->show(s->dead.op.admin, id, HK_PAYLOAD_MAX, &shown, &err) != HK_OK)
        return hk_operate_failed(&err);
    s->letter = &shown->letter;
    s->dead.history = shown;
    code = check_state(s);
    if (code == HK_EXIT_OK)
        code = check_paused(s, paused);
    if (code == HK_EXIT_OK)
        code = find_destination(s);
    if (code == HK_EXIT_OK)
        code = check_payload(s);
    if (code == HK_EXIT_OK && hk_args_flag(s->cli, "dry-run"))
        return say_dry_run(s);
    if (code == HK_EXIT_OK)
        code = begin(s, reason);
    if (code == HK_EXIT_OK)
        code = look_again(s, reason);
    return code == HK_EXIT_OK ? deliver(s) : code;
}

int hk_cmd_dead_send(struct hk_cli *cli)
{
    char why[HK_REASON_TEXT_MAX];
    struct sending s = {.cli = cli};
    const char *reason = hk_args_flag(cli, "dry-run") ? "" : hk_operate_reason(cli, why);
    if (reason == NULL)
        return HK_EXIT_USAGE;
    (void)hk_settings_actor(cli, s.actor);
    int code = hk_settings_config(cli, HK_FOR_SENDING, &s.config);
    if (code != HK_EXIT_OK)
        return code;
    code = hk_dead_open(cli, &s.dead);
    if (code == HK_EXIT_OK) {
        hk_buf_init(&s.payload, HK_PAYLOAD_MAX);
        hk_buf_init(&s.out, HK_OPERATE_OUTPUT_MAX);
        code = send_one(&s, reason);
        hk_buf_fini(&s.payload);
        hk_buf_fini(&s.out);
        hk_dead_close(&s.dead);
    }
    hk_config_free(s.config);
    return code;
}
