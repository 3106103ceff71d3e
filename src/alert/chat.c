/* SPDX-License-Identifier: Apache-2.0 */
/* Channels that are one POST: Slack, the signed webhook, PagerDuty. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "alert/channel.h"
#include "base/show.h"
#include "base/str.h"
#include "sink/http/sign.h"

#define ID_MAX        128
#define PAGERDUTY_URL "https://events.pagerduty.com/v2/enqueue"

/* ---- Slack ---- */

/* A login page or a proxy may answer 200 as well: Slack says "ok", and whatever does not is not Slack. */
static enum hk_code is_ok(struct hk_str text, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    struct hk_str said = text;
    while (said.len > 0 && (said.ptr[said.len - 1] == '\n' || said.ptr[said.len - 1] == '\r'))
        said.len--;
    if (hk_str_eq(said, hk_str_of("ok")))
        return HK_OK;
    return hk_err_set(err, HK_INVALID, "it did not answer \"ok\", as Slack does, but %s",
                      hk_show(text, shown));
}

enum hk_code hk_channel_slack(struct hk_channel_call *call, struct hk_err *err)
{
    struct hk_buf body, text;
    hk_buf_init(&body, HK_BODY_MAX);
    hk_buf_init(&text, HK_SEND_TEXT_MAX);
    hk_body_slack(call->notice, call->channel->language, &body);
    enum hk_code rc = hk_buf_status(&body) == HK_OK ? HK_OK : hk_channel_too_big(hk_buf_status(&body), err);
    if (rc == HK_OK)
        rc = hk_channel_post(call, call->channel->url, hk_buf_str(&body), NULL, 0, &text, err);
    if (rc == HK_OK)
        rc = is_ok(hk_buf_str(&text), err);
    hk_buf_fini(&text);
    hk_buf_fini(&body);
    return rc;
}

/* ---- webhook ---- */

static enum hk_code sign(const struct hk_channel *channel, const char *id, int64_t unix_s, struct hk_str body,
                         struct hk_buf *line, struct hk_err *err)
{
    struct hk_signer *signer = NULL;
    hk_buf_adds(line, "webhook-signature: ");
    enum hk_code rc = hk_signer_new(&channel->secret, 1, &signer, err);
    if (rc == HK_OK && hk_signer_sign(signer, hk_str_of(id), unix_s, body, line) != HK_OK)
        rc = hk_err_set(err, HK_NOMEM, "it cannot be signed");
    hk_signer_free(signer);
    return rc;
}

static enum hk_code post_signed(struct hk_channel_call *call, struct hk_str body, struct hk_err *err)
{
    const struct hk_channel *channel = call->channel;
    char id[ID_MAX + 1], id_line[ID_MAX + 32], time_line[64];
    struct hk_buf signature;
    const int64_t unix_s = (int64_t)time(NULL);
    const bool secret = channel->secret && channel->secret[0];
    enum hk_code rc = HK_OK;
    hk_body_token(call->id, ID_MAX, id);
    (void)snprintf(id_line, sizeof id_line, "webhook-id: %s", id);
    (void)snprintf(time_line, sizeof time_line, "webhook-timestamp: %" PRId64, unix_s);
    hk_buf_init(&signature, 1024);
    if (secret)
        rc = sign(channel, id, unix_s, body, &signature, err);
    const char *lines[] = {id_line, time_line, hk_buf_cstr(&signature)};
    if (rc == HK_OK)
        rc = hk_channel_post(call, channel->url, body, lines, secret ? 3 : 2, NULL, err);
    hk_buf_fini(&signature);
    return rc;
}

enum hk_code hk_channel_webhook(struct hk_channel_call *call, struct hk_err *err)
{
    struct hk_buf body;
    hk_buf_init(&body, HK_BODY_MAX);
    hk_body_json(call->notice, call->channel->language, call->id, &body);
    enum hk_code rc = hk_buf_status(&body) == HK_OK ? post_signed(call, hk_buf_str(&body), err)
                                                    : hk_channel_too_big(hk_buf_status(&body), err);
    hk_buf_fini(&body);
    return rc;
}

/* ---- PagerDuty ---- */

static enum hk_code post_event(struct hk_channel_call *call, bool resolve, struct hk_err *err)
{
    const struct hk_channel *channel = call->channel;
    struct hk_buf body;
    hk_buf_init(&body, HK_BODY_MAX);
    hk_body_pagerduty(call->notice, channel->language, channel->secret, resolve, &body);
    enum hk_code rc = hk_buf_status(&body) == HK_OK ? HK_OK : hk_channel_too_big(hk_buf_status(&body), err);
    if (rc == HK_OK)
        rc = hk_channel_post(call, channel->url ? channel->url : PAGERDUTY_URL, hk_buf_str(&body), NULL, 0,
                             NULL, err);
    hk_secret_wipe(body.data, body.len); /* the key is in it */
    hk_buf_fini(&body);
    return rc;
}

/* A test is triggered and resolved at once: nobody is to clean up after it. */
enum hk_code hk_channel_pagerduty(struct hk_channel_call *call, struct hk_err *err)
{
    if (!call->channel->secret || !call->channel->secret[0])
        return hk_err_set(err, HK_INVALID, "there is no routing key");
    enum hk_code rc = post_event(call, call->notice->kind == HK_NOTICE_RESOLVED, err);
    if (rc == HK_OK && call->notice->kind == HK_NOTICE_TEST)
        rc = post_event(call, true, err);
    return rc;
}
