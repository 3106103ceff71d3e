/* SPDX-License-Identifier: Apache-2.0 */
/* hk_channel_send: one notice by one channel. Whatever goes wrong, no secret of the channel is in what is said about it. */
#include <signal.h>
#include <string.h>
#include <time.h>

#include "alert/channel.h"
#include "base/show.h"
#include "base/str.h"
#include "base/utf8.h"
#include "hk_version.h"

#define SEGMENT_MIN 8 /* of a part of a URL's path */

/* ---- secrets ---- */

/* Everything behind the host, as a whole and by its parts: tokens stand there. */
static void hide_url(char *text, size_t len, const char *url)
{
    const char *host = url ? strstr(url, "://") : NULL;
    const char *path = host ? strpbrk(host + 3, "/?") : NULL;
    if (!path)
        return;
    hk_send_hide(text, len, hk_str_of(path));
    while (*path) {
        size_t n = strcspn(path, "/?&=");
        if (n >= SEGMENT_MIN)
            hk_send_hide(text, len, (struct hk_str){path, n});
        path += n + (path[n] != '\0');
    }
}

void hk_channel_hide(const struct hk_channel *channel, char *text, size_t len)
{
    if (!text)
        return;
    hk_send_hide(text, len, hk_str_of(channel->secret));
    hk_send_hide(text, len, hk_str_of(channel->password));
    if (channel->kind != HK_CHANNEL_EMAIL)
        hide_url(text, len, channel->url);
}

/* ---- posting ---- */

enum hk_code hk_channel_too_big(enum hk_code status, struct hk_err *err)
{
    return status == HK_NOMEM ? hk_err_set(err, HK_NOMEM, "out of memory")
                              : hk_err_set(err, HK_INVALID, "the notice is too large");
}

/* 4xx will be the same again, except those that say "not now". */
static enum hk_code code_of(int status)
{
    if (status >= 200 && status < 300)
        return HK_OK;
    if (status == 429)
        return HK_BUSY;
    if (status == 408 || status == 409 || status == 423 || status == 425 || status >= 500)
        return HK_UNAVAILABLE;
    return HK_INVALID;
}

static enum hk_code judge(const struct hk_send_answer *answer, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    enum hk_code rc = code_of(answer->status);
    if (rc == HK_OK)
        return rc;
    const char *why = answer->status / 100 == 3 ? " (redirects are not followed)" : "";
    if (answer->text.len == 0)
        return hk_err_set(err, rc, "answered %d%s", answer->status, why);
    return hk_err_set(err, rc, "answered %d%s: %s", answer->status, why,
                      hk_show(hk_buf_str(&answer->text), shown));
}

/* What it said is to be judged: a part of it proves nothing. */
static enum hk_code take_text(const struct hk_send_answer *answer, struct hk_buf *text, struct hk_err *err)
{
    if (answer->cut || hk_buf_add(text, hk_buf_cstr(&answer->text), answer->text.len) != HK_OK)
        return hk_err_set(err, HK_UNAVAILABLE, "answered %d, but the text of it did not come whole",
                          answer->status);
    return HK_OK;
}

static enum hk_code post(struct hk_channel_call *call, const struct hk_send_http *request,
                         struct hk_buf *text, struct hk_err *err)
{
    struct hk_send_answer answer = {.status = 0};
    hk_buf_init(&answer.text, HK_SEND_TEXT_MAX);
    enum hk_code rc = hk_send_http(request, &answer, err);
    if (rc == HK_OK) {
        hk_channel_hide(call->channel, answer.text.data, answer.text.len);
        call->retry_ms = answer.retry_ms;
        rc = judge(&answer, err);
        if (rc == HK_OK && text)
            rc = take_text(&answer, text, err);
    }
    hk_buf_fini(&answer.text);
    return rc;
}

enum hk_code hk_channel_post(struct hk_channel_call *call, const char *url, struct hk_str body,
                             const char *const *headers, size_t n_headers, struct hk_buf *text,
                             struct hk_err *err)
{
    const char *lines[HK_CHANNEL_HEADERS + 2] = {"Content-Type: application/json; charset=utf-8",
                                                 "User-Agent: hikyaku/" HK_VERSION};
    enum hk_code rc = hk_send_check_url(url, false, err);
    if (rc != HK_OK)
        return rc;
    for (size_t i = 0; i < n_headers && i < HK_CHANNEL_HEADERS; i++)
        lines[i + 2] = headers[i];
    const struct hk_send_http request = {.url = url,
                                         .headers = lines,
                                         .n_headers = n_headers + 2,
                                         .body = body,
                                         .timeout_ms = call->channel->timeout_ms,
                                         .ca_file = call->channel->ca_file,
                                         .allow = call->channel->allow,
                                         .n_allow = call->channel->n_allow,
                                         .proxy = call->channel->proxy,
                                         .abandoned = call->channel->abandoned};
    return post(call, &request, text, err);
}

/* ---- the call ---- */

static enum hk_code dispatch(struct hk_channel_call *call, struct hk_err *err)
{
    switch (call->channel->kind) {
    case HK_CHANNEL_SLACK:
        return hk_channel_slack(call, err);
    case HK_CHANNEL_EMAIL:
        return hk_channel_email(call, err);
    case HK_CHANNEL_WEBHOOK:
        return hk_channel_webhook(call, err);
    case HK_CHANNEL_PAGERDUTY:
        return hk_channel_pagerduty(call, err);
    case HK_CHANNEL_EXEC:
        return hk_channel_exec(call, err);
    }
    return hk_err_set(err, HK_INVALID, "no such kind of channel");
}

/* A receiver that goes away must not end the process: SIGPIPE is held back in this thread, and forgotten when it came. */
struct held {
    sigset_t pipe, before;
    bool was_pending;
};

static void hold_sigpipe(struct held *held)
{
    sigset_t pending;
    (void)sigemptyset(&held->pipe);
    (void)sigaddset(&held->pipe, SIGPIPE);
    (void)sigpending(&pending);
    held->was_pending = sigismember(&pending, SIGPIPE) == 1;
    (void)pthread_sigmask(SIG_BLOCK, &held->pipe, &held->before);
}

static void release_sigpipe(const struct held *held)
{
    const struct timespec now = {0, 0};
    if (!held->was_pending)
        (void)sigtimedwait(&held->pipe, NULL, &now);
    (void)pthread_sigmask(SIG_SETMASK, &held->before, NULL);
}

/* A message that was cut within a character ends before it. */
static void end_well(char *message)
{
    struct hk_str rest = hk_str_of(message);
    while (rest.len > 0) {
        uint32_t c;
        size_t taken = hk_utf8_next(rest, &c);
        if (c == HK_UTF8_BAD && taken == rest.len && (unsigned char)rest.ptr[0] >= 0xc0)
            message[rest.ptr - message] = '\0';
        rest.ptr += taken;
        rest.len -= taken;
    }
}

static void say_whose(const struct hk_channel *channel, const struct hk_err *why, enum hk_code rc,
                      struct hk_err *err)
{
    char shown[HK_SHOW_MAX], text[sizeof why->message];
    memcpy(text, why->message, sizeof text);
    hk_channel_hide(channel, text, strlen(text));
    (void)hk_err_set(err, rc, "channel %s (%s): %s", hk_show(hk_str_of(channel->name), shown),
                     hk_channel_kind_name(channel->kind), text);
    if (err)
        end_well(err->message);
}

enum hk_code hk_channel_send(const struct hk_channel *channel, const struct hk_notice *notice, const char *id,
                             uint64_t *out_retry_ms, struct hk_err *err)
{
    struct hk_channel_call call = {.channel = channel, .notice = notice, .id = id};
    struct hk_err why = {.code = HK_OK};
    struct held held;
    hold_sigpipe(&held);
    enum hk_code rc = dispatch(&call, &why);
    release_sigpipe(&held);
    if (rc != HK_OK)
        say_whose(channel, &why, rc, err);
    if (out_retry_ms)
        *out_retry_ms = rc == HK_OK ? 0 : call.retry_ms;
    return rc;
}
