/* SPDX-License-Identifier: Apache-2.0 */
/* The channel that is a mail. */
#include <string.h>

#include "alert/channel.h"
#include "base/mem.h"

#define TO_MAX 100

struct envelope {
    char from[HK_SEND_ADDRESS];
    char to[TO_MAX][HK_SEND_ADDRESS];
    const char *list[TO_MAX];
};

static enum hk_code address(const struct hk_channel *channel, struct envelope *e, struct hk_err *err)
{
    if (channel->n_to == 0 || channel->n_to > TO_MAX)
        return hk_err_set(err, HK_INVALID, "there must be 1 to %d recipients", TO_MAX);
    enum hk_code rc = hk_mail_address(channel->from, e->from, sizeof e->from, err);
    for (size_t i = 0; i < channel->n_to && rc == HK_OK; i++) {
        rc = hk_mail_address(channel->to[i], e->to[i], sizeof e->to[i], err);
        e->list[i] = e->to[i];
    }
    return rc;
}

static enum hk_code send(const struct hk_channel_call *call, const struct envelope *e, struct hk_str message,
                         struct hk_err *err)
{
    const struct hk_channel *c = call->channel;
    const struct hk_send_mail mail = {.url = c->url,
                                      .user = c->user && c->user[0] ? c->user : NULL,
                                      .password = c->password,
                                      .starttls_required = c->starttls_required,
                                      .from = e->from,
                                      .to = e->list,
                                      .n_to = c->n_to,
                                      .message = message,
                                      .timeout_ms = c->timeout_ms,
                                      .ca_file = c->ca_file,
                                      .proxy = c->proxy,
                                      .abandoned = c->abandoned};
    return hk_send_mail(&mail, err);
}

enum hk_code hk_channel_email(struct hk_channel_call *call, struct hk_err *err)
{
    const struct hk_channel *c = call->channel;
    const struct hk_mail_head head = {.from = c->from, .to = c->to, .n_to = c->n_to, .id = call->id};
    struct hk_buf message;
    struct envelope *e = hk_mem_zalloc(1, sizeof *e);
    if (!e)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    hk_buf_init(&message, HK_BODY_MAX);
    enum hk_code rc = hk_send_check_url(c->url, true, err);
    if (rc == HK_OK)
        rc = address(c, e, err);
    if (rc == HK_OK)
        rc = hk_body_mail(call->notice, c->language, &head, &message, err);
    if (rc == HK_OK)
        rc = send(call, e, hk_buf_str(&message), err);
    hk_buf_fini(&message);
    hk_mem_free(e);
    return rc;
}
