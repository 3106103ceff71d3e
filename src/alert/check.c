/* SPDX-License-Identifier: Apache-2.0 */
/* Is a channel one that can be used? What can be known without asking anybody. */
#include <string.h>
#include <unistd.h>

#include "alert/channel.h"
#include "base/show.h"
#include "base/str.h"
#include "sink/http/sign.h"

static enum hk_code check_ca(const struct hk_channel *c, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    if (!c->ca_file || access(c->ca_file, R_OK) == 0)
        return HK_OK;
    return hk_err_set(err, HK_NOTFOUND, "ca_file %s cannot be read", hk_show(hk_str_of(c->ca_file), shown));
}

static enum hk_code check_http(const struct hk_channel *c, struct hk_err *err)
{
    bool usual = c->kind == HK_CHANNEL_PAGERDUTY && !c->url;
    enum hk_code rc = usual ? HK_OK : hk_send_check_url(c->url, false, err);
    if (rc == HK_OK)
        rc = check_ca(c, err);
    return rc;
}

static enum hk_code check_webhook(const struct hk_channel *c, struct hk_err *err)
{
    enum hk_code rc = check_http(c, err);
    if (rc == HK_OK && c->secret && c->secret[0])
        rc = hk_secret_check(hk_str_of(c->secret), err);
    return rc;
}

/* Visible ASCII: it travels in JSON, but no key has anything else, and a blank at its end is a typical mistake. */
static enum hk_code check_pagerduty(const struct hk_channel *c, struct hk_err *err)
{
    struct hk_str key = hk_str_of(c->secret);
    if (key.len == 0)
        return hk_err_set(err, HK_INVALID, "there is no routing_key");
    for (size_t i = 0; i < key.len; i++) {
        if (key.ptr[i] <= ' ' || key.ptr[i] > '~')
            return hk_err_set(err, HK_INVALID,
                              "the routing_key (not shown) holds a blank or what is not ASCII");
    }
    return check_http(c, err);
}

static enum hk_code check_email(const struct hk_channel *c, struct hk_err *err)
{
    char address[HK_SEND_ADDRESS];
    enum hk_code rc = hk_send_check_url(c->url, true, err);
    if (rc == HK_OK && c->n_to == 0)
        rc = hk_err_set(err, HK_INVALID, "\"to\" names no recipient");
    if (rc == HK_OK)
        rc = hk_mail_address(c->from, address, sizeof address, err);
    for (size_t i = 0; i < c->n_to && rc == HK_OK; i++)
        rc = hk_mail_address(c->to[i], address, sizeof address, err);
    if (rc == HK_OK && c->password && (!c->user || !c->user[0]))
        rc = hk_err_set(err, HK_INVALID, "a password needs its user");
    if (rc == HK_OK)
        rc = check_ca(c, err);
    return rc;
}

static enum hk_code check_exec(const struct hk_channel *c, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    if (c->n_argv == 0 || !c->argv[0][0])
        return hk_err_set(err, HK_INVALID, "there is no command");
    if (strchr(c->argv[0], '/') && access(c->argv[0], X_OK) != 0)
        return hk_err_set(err, HK_NOTFOUND, "the program %s cannot be run",
                          hk_show(hk_str_of(c->argv[0]), shown));
    return HK_OK;
}

enum hk_code hk_channel_check(const struct hk_channel *channel, struct hk_err *err)
{
    switch (channel->kind) {
    case HK_CHANNEL_SLACK:
        return check_http(channel, err);
    case HK_CHANNEL_EMAIL:
        return check_email(channel, err);
    case HK_CHANNEL_WEBHOOK:
        return check_webhook(channel, err);
    case HK_CHANNEL_PAGERDUTY:
        return check_pagerduty(channel, err);
    case HK_CHANNEL_EXEC:
        return check_exec(channel, err);
    }
    return hk_err_set(err, HK_INVALID, "no such kind of channel");
}
