/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "fake_pubsub.h"

enum {
    HEAD_MAX = 8192,
    BODY_MAX = 4 << 20,
    IDS_MAX = 1000 * 16
};

#define METADATA "GET /computeMetadata/v1/instance/service-accounts/default/token "
#define REFUSED  "{\"error\":{\"code\":400,\"message\":\"bad message\",\"status\":\"INVALID_ARGUMENT\"}}"

static uint64_t number_at(const char *text)
{
    uint64_t n = 0;
    return hk_parse_u64((struct hk_str){text, strspn(text, "0123456789")}, &n, NULL) == HK_OK ? n : 0;
}

/* The next request; both end with a zero. False: the other side is gone, or has sent too much. */
static bool read_request(int fd, char head[HEAD_MAX], char *body)
{
    size_t n = 0;
    while (n + 1 < HEAD_MAX && fake_read(fd, head + n, 1)) {
        head[++n] = '\0';
        if (n < 4 || strcmp(head + n - 4, "\r\n\r\n") != 0)
            continue;
        const char *at = strstr(head, "Content-Length: ");
        uint64_t len = at ? number_at(at + 16) : 0;
        if (len >= BODY_MAX || (len && !fake_read(fd, body, len)))
            return false;
        body[len] = '\0';
        return true;
    }
    return false;
}

static bool answer(int fd, const char *status, const char *body)
{
    char head[256];
    int n = snprintf(head, sizeof head,
                     "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n", status,
                     strlen(body));
    return fake_write(fd, head, (size_t)n) && fake_write(fd, body, strlen(body));
}

static bool give_token(int fd, struct pubsub_script *script, const char *head)
{
    char body[128];
    if (!strstr(head, "Metadata-Flavor: Google\r\n"))
        return answer(fd, "403 Forbidden", "{}");
    unsigned n = ++script->tokens;
    if (script->no_account)
        return answer(fd, "404 Not Found", "no service account");
    (void)snprintf(body, sizeof body,
                   "{\"access_token\":\"token-%u\",\"expires_in\":%u,\"token_type\":\"Bearer\"}", n,
                   script->life_s ? script->life_s : 3600);
    return answer(fd, "200 OK", body);
}

static bool is_let_in(const struct pubsub_script *script, const char *head)
{
    const char *at = strstr(head, "Authorization: Bearer token-");
    return !script->token_from || (at && number_at(at + 28) >= script->token_from);
}

static unsigned count_messages(const char *body)
{
    unsigned n = 0;
    for (const char *at = body; (at = strstr(at, "{\"data\":")) != NULL; at++)
        n++;
    return n;
}

static bool take_messages(int fd, struct pubsub_script *script, const char *text)
{
    char room[IDS_MAX];
    unsigned n = count_messages(text), first = script->messages;
    size_t len = (size_t)snprintf(room, sizeof room, "{\"messageIds\":[");
    script->messages += n;
    for (unsigned i = 0; i < n; i++)
        len += (size_t)snprintf(room + len, sizeof room - len, "%s\"%u\"", i ? "," : "", first + i + 1);
    (void)snprintf(room + len, sizeof room - len, "]}");
    return answer(fd, "200 OK", room);
}

static bool publish(int fd, struct pubsub_script *script, const char *head, const char *body)
{
    script->requests++;
    (void)snprintf(script->last, sizeof script->last, "%s%s", head, body);
    if (script->cut)
        return false;
    if (!is_let_in(script, head)) {
        script->denied++;
        return answer(
            fd, "401 Unauthorized",
            "{\"error\":{\"code\":401,\"message\":\"invalid credentials\",\"status\":\"UNAUTHENTICATED\"}}");
    }
    if (script->status)
        return answer(fd, script->status, script->body ? script->body : "{}");
    if (script->poison && strstr(body, script->poison))
        return answer(fd, "400 Bad Request", REFUSED);
    return take_messages(fd, script, body);
}

void fake_pubsub_serve(int fd, void *arg)
{
    struct pubsub_script *script = arg;
    char *head = malloc(HEAD_MAX), *body = malloc(BODY_MAX);
    bool more = head && body;
    while (more && read_request(fd, head, body)) {
        bool token = strncmp(head, METADATA, sizeof METADATA - 1) == 0;
        if (!script->mute)
            more = token ? give_token(fd, script, head) : publish(fd, script, head, body);
    }
    free(head);
    free(body);
}
