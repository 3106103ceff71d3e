/* SPDX-License-Identifier: Apache-2.0 */
/* What a receiver of alerts answers: an HTTP answer, or the lines of a mail server, with the very code that hands them to libcurl; only the transfer
 * itself is ours. Whatever it says, the notice is taken, given up or tried again, the words about it are one harmless line, and no
 * secret of the channel is in them, although the answer repeats it. And what an address of a mail may be.
 *
 * The first byte: the channel's kind, and how the transfer ends; the second: how large the pieces are. In the rest \x01 and \x02 stand for
 * the channel's secret and its password. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include "alert/channel.h"
#include "base/str.h"
#include "base/utf8.h"
#include "fuzz.h"

#define SECRET   "R0utingK3yOfTheChannel"
#define PASSWORD "correct horse battery"
#define PATH     "T0000/B0000/XXXXtokenXXXX"

struct transfer;

static struct {
    struct hk_buf says;
    size_t piece;
    unsigned ends;
} world;

static CURLcode fake_perform(struct transfer *t);
#define curl_easy_perform(easy) fake_perform(&t) /* both callers keep their transfer in `t` */
#include "alert/send_curl.c"

/* ---- the transfer ---- */

/* Lines up to an empty one, then the body; as libcurl calls back: 0 taken ends it. */
static CURLcode answer(struct transfer *t, struct hk_str says)
{
    while (says.len > 0 && !t->response.final) {
        const char *lf = memchr(says.ptr, '\n', says.len);
        struct hk_str line = fuzz_take(&says, lf ? (size_t)(lf - says.ptr) + 1 : says.len);
        char copy[4096];
        memcpy(copy, line.ptr, line.len);
        if (on_http_header(copy, 1, line.len, t) != line.len)
            return CURLE_WRITE_ERROR;
    }
    while (says.len > 0) {
        struct hk_str piece = fuzz_take(&says, world.piece);
        char copy[4096];
        memcpy(copy, piece.ptr, piece.len);
        if (on_http_body(copy, 1, piece.len, t) != piece.len)
            return CURLE_WRITE_ERROR;
    }
    return CURLE_OK;
}

static CURLcode talk(struct transfer *t, struct hk_str says)
{
    while (says.len > 0) {
        const char *lf = memchr(says.ptr, '\n', says.len);
        struct hk_str line = fuzz_take(&says, lf ? (size_t)(lf - says.ptr) + 1 : says.len);
        char copy[4096];
        memcpy(copy, line.ptr, line.len);
        if (on_smtp_line(copy, 1, line.len, t) != line.len)
            return CURLE_WRITE_ERROR;
        char mail[256];
        size_t n = on_upload(mail, 1, world.piece < sizeof mail ? world.piece : sizeof mail, t);
        MUST(n <= sizeof mail);
    }
    return CURLE_OK;
}

static CURLcode fake_perform(struct transfer *t)
{
    static const CURLcode ends[] = {CURLE_OK,           CURLE_RECV_ERROR,     CURLE_OPERATION_TIMEDOUT,
                                    CURLE_LOGIN_DENIED, CURLE_USE_SSL_FAILED, CURLE_COULDNT_CONNECT,
                                    CURLE_OK,           CURLE_PARTIAL_FILE};
    struct hk_str says = hk_buf_str(&world.says);
    CURLcode code = t->guarded ? answer(t, says) : talk(t, says);
    return code == CURLE_OK ? ends[world.ends] : code;
}

/* ---- what comes of it ---- */

static void check_words(const struct hk_channel *channel, const struct hk_err *err)
{
    struct hk_str s = hk_str_of(err->message);
    MUST(s.len > 0 && s.len < HK_ERR_MESSAGE_MAX);
    MUST(channel->secret == NULL || strstr(err->message, SECRET) == NULL);
    MUST(channel->password == NULL || strstr(err->message, PASSWORD) == NULL);
    MUST(channel->kind == HK_CHANNEL_EMAIL || strstr(err->message, "XXXXtokenXXXX") == NULL);
    while (s.len > 0) {
        uint32_t c;
        fuzz_take(&s, hk_utf8_next(s, &c));
        MUST(c != HK_UTF8_BAD && c >= 0x20 && !(c >= 0x7f && c <= 0x9f) && !(c >= 0x202a && c <= 0x202e));
    }
}

static void check_channel(enum hk_channel_kind kind)
{
    static const char *const to[] = {"ops@example.com", "飛脚 <oncall@example.com>"};
    const struct hk_notice notice = {
        .kind = HK_NOTICE_FIRING, .rule = "r", .fingerprint = "f", .relay = "relay"};
    struct hk_channel channel = {.name = "c",
                                 .kind = kind,
                                 .timeout_ms = 1000,
                                 .url = "https://hooks.example.com/" PATH,
                                 .to = to,
                                 .n_to = 2,
                                 .from = "a@example.com"};
    struct hk_err err = {.message = ""};
    uint64_t retry_ms = 0;
    if (kind == HK_CHANNEL_PAGERDUTY)
        channel.secret = SECRET;
    if (kind == HK_CHANNEL_EMAIL) {
        channel.url = "smtps://mail.example.com";
        channel.user = "u";
        channel.password = PASSWORD;
    }
    enum hk_code rc = hk_channel_send(&channel, &notice, "id", &retry_ms, &err);
    MUST(rc == HK_OK || rc == HK_INVALID || rc == HK_BUSY || rc == HK_UNAVAILABLE || rc == HK_TIMEOUT);
    if (rc == HK_OK)
        MUST(retry_ms == 0);
    else
        check_words(&channel, &err);
}

/* What is taken is one address, and nothing that SMTP would take for more. */
static void check_address(struct hk_str text)
{
    char copy[600], out[HK_SEND_ADDRESS] = "";
    struct hk_err err = {.message = ""};
    if (!hk_str_copy(copy, sizeof copy, text))
        return;
    if (hk_mail_address(copy, out, sizeof out, &err) != HK_OK) {
        MUST(err.message[0] != '\0');
        return;
    }
    const char *at = strchr(out, '@');
    MUST(at != NULL && at > out && at[1] != '\0' && strchr(at + 1, '@') == NULL && strlen(out) <= 254);
    for (const char *c = out; *c != '\0'; c++)
        MUST(*c > ' ' && *c < 0x7f && !strchr("<>()[]\\,;:\"", *c));
}

/* The text with the channel's secrets in it. */
static void fill(struct hk_str text)
{
    if (world.says.max == 0)
        hk_buf_init(&world.says, 4000);
    hk_buf_reset(&world.says);
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == 1)
            (void)hk_buf_adds(&world.says, SECRET);
        else if (text.ptr[i] == 2)
            (void)hk_buf_adds(&world.says, PASSWORD);
        else if (text.ptr[i] == 3)
            (void)hk_buf_adds(&world.says, PATH);
        else
            (void)hk_buf_addc(&world.says, text.ptr[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > 4000)
        return 0;
    struct hk_str text = {(const char *)data + 2, size - 2};
    fill(text);
    world.piece = data[1] + 1u;
    world.ends = data[0] / 4 % 8;
    check_channel((enum hk_channel_kind)(data[0] % 4));
    check_address(text);
    return 0;
}
