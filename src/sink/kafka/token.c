/* SPDX-License-Identifier: Apache-2.0 */
/* OAUTHBEARER: the token of the configuration, or of a file that somebody keeps fresh (a projected service account token, say). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "sink/kafka/impl.h"

enum {
    TOKEN_MAX = 16 * 1024,
    UNKNOWN_LIFE_MS = 10 * 60 * 1000 /* of a token that does not say when it ends */
};

/* "exp" of a JWT's claims, in seconds; 0: it is none, or has none. */
static int64_t expiry_s(struct hk_str token)
{
    char base64[TOKEN_MAX];
    unsigned char claims[TOKEN_MAX];
    size_t len = 0;
    struct hk_str rest = token;
    (void)hk_str_cut(&rest, '.');
    struct hk_str part = hk_str_cut(&rest, '.');
    if (!part.len || part.len >= sizeof base64)
        return 0;
    for (size_t i = 0; i < part.len; i++)
        base64[i] = part.ptr[i] == '-' ? '+' : part.ptr[i] == '_' ? '/' : part.ptr[i];
    if (!hk_base64_decode((struct hk_str){base64, part.len}, HK_BASE64_BARE, claims, sizeof claims - 1, &len))
        return 0;
    claims[len] = '\0';
    const char *at = strstr((const char *)claims, "\"exp\"");
    at = at ? at + strspn(at + 5, " :\t") + 5 : "";
    uint64_t s = 0;
    bool ok = hk_parse_u64((struct hk_str){at, strspn(at, "0123456789")}, &s, NULL) == HK_OK;
    return ok && s < INT64_MAX / 1000 ? (int64_t)s : 0;
}

static bool read_token(const char *file, char out[TOKEN_MAX], char why[HK_KAFKA_TEXT_MAX])
{
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, out, TOKEN_MAX - 1);
    int error = errno;
    if (fd >= 0)
        (void)close(fd);
    if (n <= 0 || n == TOKEN_MAX - 1) {
        (void)snprintf(why, HK_KAFKA_TEXT_MAX, "token_file: %s",
                       n < 0    ? strerror(error)
                       : n == 0 ? "it is empty"
                                : "it is too large for a token");
        return false;
    }
    out[n] = '\0';
    out[strcspn(out, " \r\n\t")] = '\0';
    return true;
}

void hk_kafka_token_set(rd_kafka_t *rk, const char *token, const char *file, const char *principal)
{
    char text[TOKEN_MAX] = "", why[HK_KAFKA_TEXT_MAX] = "no token";
    struct timespec now;
    bool ok = token ? hk_str_copy(text, sizeof text, hk_str_of(token)) : file && read_token(file, text, why);
    (void)clock_gettime(CLOCK_REALTIME, &now);
    int64_t now_ms = (int64_t)now.tv_sec * 1000, until_s = ok ? expiry_s(hk_str_of(text)) : 0;
    int64_t until_ms = until_s ? until_s * 1000 : now_ms + UNKNOWN_LIFE_MS;
    char refused[HK_KAFKA_TEXT_MAX] = "";
    if (!ok || rd_kafka_oauthbearer_set_token(rk, text, until_ms, principal ? principal : "hikyaku", NULL, 0,
                                              refused, sizeof refused) != RD_KAFKA_RESP_ERR_NO_ERROR)
        (void)rd_kafka_oauthbearer_set_token_failure(rk, ok ? refused : why);
    hk_mem_wipe(text, sizeof text);
}
