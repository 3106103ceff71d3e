/* SPDX-License-Identifier: Apache-2.0 */
/* Sends one dead letter, once, now, from this process. The intention is on disk before the send, the outcome after it. A process that
 * dies in between leaves a letter with an unknown outcome, and only a person can decide about that. */
#include <inttypes.h>
#include <stdio.h>

#include "base/show.h"
#include "base/str.h"
#include "base/url.h"
#include "config/payload.h"
#include "core/encoding.h"
#include "desk/dead.h"
#include "desk/definitions.h"
#include "desk/forms.h"
#include "desk/sealing.h"
#include "exec/clock.h"
#include "observe/crash.h"
#include "payload/answer.h"
#include "payload/target.h"

enum {
    BODY_KEPT = 4096
};

struct sending {
    struct hk_desk *desk;
    const struct hk_caller *caller;
    const struct hk_dead_send_ask *ask;
    struct hk_pool *mem;
    int64_t id;
    struct hk_letter_shown shown; /* in `mem` */
    const struct hk_conf_destination *conf;
    const struct hk_policy *policy;
    struct hk_message message;
    int64_t begun_ms;
};

static enum hk_code load_letter(struct sending *s, struct hk_err *err)
{
    const struct hk_letter_shown *found = NULL;
    enum hk_code rc = s->desk->letters->show(s->desk->admin, s->id, HK_LETTER_BYTES, &found, err);
    if (rc != HK_OK)
        return rc;
    s->shown = *found;
    hk_desk_keep(s->desk, s->mem);
    return HK_OK;
}

/* ---- may it be sent? ---- */

static enum hk_code check_state(const struct sending *s, struct hk_err *err)
{
    const struct hk_letter *l = &s->shown.letter;
    char ago[HK_SHOW_NUMBER];
    if (l->sending_ms != 0)
        return hk_err_set(err, HK_CONFLICT,
                          "letter %" PRId64
                          " was sent by hand %s, with an unknown outcome: if nobody is sending it right now, "
                          "look whether it arrived, then 'dead resolve %" PRId64
                          "', or 'dead restore %" PRId64 "' to try again",
                          l->id, hk_show_ago(l->sending_ms, hk_clock_wall_ms(), ago), l->id, l->id);
    if (l->status != HK_LETTER_FAILED)
        return hk_err_set(err, HK_CONFLICT, "letter %" PRId64 " is %s: only an open one can be sent", l->id,
                          hk_letter_status_name(l->status));
    if (!l->has_payload)
        return hk_err_set(err, HK_CONFLICT, "letter %" PRId64 " has no payload that could be sent", l->id);
    if (l->payload.len < l->payload_bytes)
        return hk_letter_too_large(l, "sent by hand", err);
    if (l->version > 1 && l->possibly_delivered && !s->ask->yes)
        return hk_err_set(
            err, HK_CONFLICT,
            "it was edited, and an earlier attempt may have arrived: under the same id the receiver would "
            "drop it as a repeat; 'dead requeue --new-id %" PRId64 "', or --yes if you know better",
            l->id);
    return HK_OK;
}

/* A pause holds for people at a terminal, too. */
static enum hk_code check_paused(const struct sending *s, struct hk_err *err)
{
    const struct hk_names *paused = NULL;
    char shown[HK_SHOW_MAX];
    enum hk_code rc = s->desk->letters->paused(s->desk->admin, &paused, err);
    if (rc != HK_OK || s->ask->force || !hk_names_have(paused, s->shown.letter.destination))
        return rc;
    return hk_err_set(err, HK_CONFLICT,
                      "%s is paused: 'hikyaku destinations resume' it, or give --force to send anyway",
                      hk_show(s->shown.letter.destination, shown));
}

/* The message names its own: the relay judges by that one, and lets a message die whose policy does not exist. */
static enum hk_code find_own_policy(struct sending *s, struct hk_err *err)
{
    char name[HK_NAME_MAX], shown[HK_SHOW_MAX];
    const struct hk_letter *l = &s->shown.letter;
    s->policy =
        hk_str_copy(name, sizeof name, l->policy) ? hk_policies_get(s->desk->config->policies, name) : NULL;
    if (s->policy)
        return HK_OK;
    return hk_err_set(err, HK_NOTFOUND,
                      "letter %" PRId64 " names the policy %s, which is not configured: add it to policies",
                      l->id, hk_show(l->policy, shown));
}

static enum hk_code find_destination(struct sending *s, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    struct hk_str name = s->shown.letter.destination;
    enum hk_code rc = hk_desk_destination(s->desk, name, true, s->mem, &s->conf, err);
    if (rc != HK_OK)
        return rc;
    if (!s->conf)
        return hk_err_set(err, HK_NOTFOUND, "destination %s is not configured", hk_show(name, shown));
    s->policy = hk_conf_policy(s->desk->config, s->conf);
    return s->shown.letter.policy.len > 0 ? find_own_policy(s, err) : HK_OK;
}

static enum hk_code check_payload(const struct sending *s, struct hk_str *out, struct hk_err *err)
{
    struct hk_validate *rules = NULL;
    struct hk_finding finding;
    struct hk_err why = {.message = ""};
    enum hk_code rc = hk_letter_open(s->desk, &s->shown.letter, true, s->mem, out, &why);
    if (rc != HK_OK)
        return hk_err_set(err, rc, "the payload cannot be sent: %s", why.message);
    rc = hk_config_make_validate(s->desk->config, &rules, err);
    if (rc != HK_OK)
        return rc;
    bool valid = hk_validate_payload(rules, s->shown.letter.event_type, *out, &finding);
    hk_validate_free(rules);
    if (valid)
        return HK_OK;
    return hk_err_set(err, HK_CONFLICT, "our own rules refuse it (%s): %s; edit it first", finding.reason,
                      finding.text);
}

static enum hk_code make_message(struct sending *s, struct hk_err *err)
{
    const struct hk_letter *l = &s->shown.letter;
    struct hk_str payload = {"", 0};
    enum hk_code rc = check_payload(s, &payload, err);
    if (rc != HK_OK)
        return rc;
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
                                     .timeout_ms = hk_target_timeout_ms(l->headers),
                                     .created_ms = l->message_created_ms,
                                     .life = l->life};
    return HK_OK;
}

/* ---- sending ---- */

static enum hk_code begin(struct sending *s, struct hk_err *err)
{
    const struct hk_letters_done *done = NULL;
    const struct hk_letter_act act = {
        .ids = &s->id, .n = 1, .actor = s->caller->actor, .reason = s->caller->reason};
    enum hk_code rc = s->desk->letters->send_begin(s->desk->admin, &act, &done, err);
    if (rc != HK_OK)
        return rc;
    if (done->items[0].did != HK_DID_IT)
        return hk_err_set(err, HK_CONFLICT, "somebody else changed it first: letter %" PRId64 " is %s now",
                          s->id, hk_letter_status_name(done->items[0].status));
    s->begun_ms = done->items[0].begun_ms;
    hk_crash_point("send-begun");
    return HK_OK;
}

/* Nobody can edit the letter from now on, but somebody may have edited it since we read it: we send the payload that is stored now. */
static enum hk_code look_again(struct sending *s, struct hk_err *err)
{
    const struct hk_letters_done *done = NULL;
    const struct hk_letter_act act = {
        .ids = &s->id, .n = 1, .actor = s->caller->actor, .reason = s->caller->reason};
    struct hk_err ignored;
    enum hk_code rc = load_letter(s, err);
    if (rc == HK_OK)
        rc = make_message(s, err);
    if (rc != HK_OK) /* if that fails, too, it stays as it is, and a person can restore it */
        (void)s->desk->letters->restore(s->desk->admin, &act, &done, &ignored);
    return rc;
}

/* As the relay says it, so that the letter stays in its group: masked, whatever the caller may see. */
static struct hk_str error_of(const struct sending *s, const struct hk_delivered *got,
                              char out[HK_ANSWER_ERROR_MAX])
{
    const struct hk_mask_about about = {.event_type = s->message.event_type,
                                        .headers = s->message.headers,
                                        .payloads = &s->message.payload,
                                        .n_payloads = 1};
    struct hk_caller anybody = *s->caller;
    struct hk_masks *masks = NULL;
    struct hk_err err = {.message = ""};
    struct hk_str body = got->body;
    anybody.reveal = false;
    if (hk_desk_masks(s->desk, &anybody, &masks, &err) != HK_OK)
        body.len = 0; /* what it may say is not known */
    return hk_answer_error(masks, &about, got->status, body, out);
}

static struct hk_attempt_record record_of(const struct hk_delivered *got)
{
    return (struct hk_attempt_record){.made = true,
                                      .started_ms = got->started_ms,
                                      .duration_ms = got->duration_ms,
                                      .status = got->status,
                                      .failure_class = got->failure_class,
                                      .cause = got->cause,
                                      .error = got->error,
                                      .request_headers = got->request_headers,
                                      .response_headers = got->response_headers,
                                      .response_body = got->body,
                                      .address = got->address,
                                      .possibly_delivered = got->possibly_delivered};
}

/* The receiver's answer may repeat a sealed payload, so it is stored sealed, as in the relay. */
static void hush(const struct sending *s, struct hk_attempt_record *attempt, char room[32])
{
    struct hk_keyring *keys = s->desk->config->keys;
    struct hk_str id = s->shown.letter.message_id;
    attempt->response_headers = hk_words_seal(keys, id, attempt->response_headers, s->mem);
    attempt->response_body = hk_words_seal(keys, id, attempt->response_body, s->mem);
    if (attempt->status > 0) {
        (void)snprintf(room, 32, "the answer was HTTP %d", attempt->status);
        attempt->error = hk_str_of(room);
    }
}

static bool hides_answer(const struct sending *s)
{
    return hk_encoding_is_sealed(s->shown.letter.encoding) || s->desk->config->seal.mode == HK_SEAL_REST;
}

/* The answer may contain values that the payload's masks hide. */
static enum hk_code veil_answer(const struct sending *s, struct hk_delivered *got, struct hk_err *err)
{
    struct hk_masks *masks = NULL;
    struct hk_tried tried = {.error = got->error,
                             .request_headers = got->request_headers,
                             .response_headers = got->response_headers,
                             .response_body = got->body};
    if (hides_answer(s)) {
        if (!s->caller->reveal)
            got->error = got->response_headers = got->body = hk_str_of(HK_SEALED_TEXT);
        return HK_OK;
    }
    enum hk_code rc = hk_desk_masks(s->desk, s->caller, &masks, err);
    if (rc != HK_OK)
        return rc;
    const struct hk_letter_view view = {.desk = s->desk, .masks = masks, .history = &s->shown};
    hk_letter_veil_attempt(&view, &s->shown.letter, s->mem, &tried);
    got->error = tried.error;
    got->request_headers = tried.request_headers;
    got->response_headers = tried.response_headers;
    got->body = tried.response_body;
    return HK_OK;
}

static enum hk_code deliver(struct sending *s, struct hk_dead_sent *out, struct hk_err *err)
{
    char answer[HK_ANSWER_ERROR_MAX], hushed[32];
    struct hk_err why = {.message = ""};
    const struct hk_store_letters_ops *ops = s->desk->letters;
    if (hk_deliver(s->conf, s->policy, &s->message, s->mem, &out->got, &why) != HK_OK) {
        struct hk_attempt_record none = {.made = false, .error = hk_str_of(why.message)};
        (void)ops->send_end(s->desk->admin, s->id, s->begun_ms, s->caller->actor, &none, false, err);
        return hk_err_set(err, HK_GAVE_UP, "not sent: %s", why.message); /* nothing left this machine */
    }
    hk_crash_point("send-answered");
    out->ok = out->got.failure_class == HK_CLASS_SUCCESS;
    if (!out->ok && out->got.error.len == 0 && out->got.status > 0) {
        struct hk_str error = error_of(s, &out->got, answer);
        const char *copy = hk_pool_copy_str(s->mem, error);
        out->got.error = copy ? (struct hk_str){copy, error.len} : hk_str_of("(out of memory)");
    }
    if (out->got.body.len > BODY_KEPT)
        out->got.body.len = BODY_KEPT;
    struct hk_attempt_record attempt = record_of(&out->got);
    if (hides_answer(s))
        hush(s, &attempt, hushed);
    if (ops->send_end(s->desk->admin, s->id, s->begun_ms, s->caller->actor, &attempt, out->ok,
                      &out->unrecorded) == HK_OK)
        out->unrecorded.code = HK_OK;
    return veil_answer(s, &out->got, err);
}

static enum hk_code send_letter(struct hk_desk *desk, const struct hk_caller *caller,
                                const struct hk_dead_send_ask *ask, struct hk_pool *mem,
                                struct hk_dead_sent *out, struct hk_err *err)
{
    struct sending s = {.desk = desk, .caller = caller, .ask = ask, .mem = mem};
    struct hk_dead_sent o = {.dry_run = ask->dry_run};
    char url[HK_URL_SHOWN_MAX], own[HK_TARGET_URL_MAX + 1];
    enum hk_code rc = hk_letter_find(desk, ask->id, ask->destination, &s.id, err);
    if (rc == HK_OK)
        rc = load_letter(&s, err);
    if (rc == HK_OK)
        rc = check_state(&s, err);
    if (rc == HK_OK)
        rc = check_paused(&s, err);
    if (rc == HK_OK)
        rc = find_destination(&s, err);
    if (rc == HK_OK)
        rc = make_message(&s, err);
    if (rc == HK_OK && !ask->dry_run)
        rc = hk_letters_reveal(desk, caller, &s.id, 1, err);
    if (rc == HK_OK && !ask->dry_run)
        rc = begin(&s, err);
    if (rc == HK_OK && !ask->dry_run)
        rc = look_again(&s, err);
    if (rc == HK_OK && !ask->dry_run)
        rc = deliver(&s, &o, err);
    if (rc != HK_OK)
        return rc;
    o.id = s.id;
    o.message_id = s.message.message_id;
    o.destination = s.message.destination;
    if (hk_conf_is_targeted(s.conf) && hk_target_read(s.message.headers, HK_TARGET_URL, own, sizeof own))
        o.url = hk_pool_copy_str(mem, hk_str_of(hk_url_show(hk_str_of(own), url)));
    else
        o.url = hk_pool_copy_str(mem, hk_str_of(hk_conf_target(s.conf, url)));
    o.payload_bytes = s.message.payload.len;
    if (!o.url)
        o.url = "(out of memory)"; /* it was sent all the same */
    *out = o;
    return HK_OK;
}

/* ---- the table ---- */

HK_OP_RUN(send_letter)

static const struct hk_arg send_args[] = {
    HK_LETTER_SUBJECT(hk_dead_send_ask, id),
    HK_LETTER_DESTINATION(hk_dead_send_ask, destination),
    {.name = "dry_run",
     .offset = offsetof(struct hk_dead_send_ask, dry_run),
     .help = "check that it could be sent, send nothing"},
    {.name = "yes",
     .offset = offsetof(struct hk_dead_send_ask, yes),
     .help = "send it also when it was edited and may have arrived before"},
    {.name = "force",
     .offset = offsetof(struct hk_dead_send_ask, force),
     .help = "send it also while the destination is paused"},
    {.name = NULL}};

const struct hk_op hk_op_dead_send = {
    .noun = "dead",
    .verb = "send",
    .summary = "send one dead letter once, now, from this machine, and show the response",
    .details =
        "The letter is resolved when the message arrives. Otherwise it stays open, without retries. Exit code 0 when\n"
        "it arrived.",
    .route = "POST /dead-letters/{id}/send",
    .role = HK_ROLE_OPERATOR,
    .store = true,
    .changes = true,
    .needs_reason = true,
    .reveals = true,
    .sends = true,
    .args = send_args,
    .request_size = sizeof(struct hk_dead_send_ask),
    .result_size = sizeof(struct hk_dead_sent),
    .run = send_letter_op,
    .form = hk_form_dead_sent};
