/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/check.h"
#include "fake_lines.h"

enum {
    LINE_MAX_BYTES = 4096,
    BODY_MAX = 1 << 20
};

struct session {
    struct lines_script *script;
    int fd;
    unsigned sequence;
    char line[LINE_MAX_BYTES];
    char *body;
};

/* Without its end. False: the other side is gone. */
static bool read_line(struct session *s)
{
    size_t n = 0;
    while (n + 1 < sizeof s->line && fake_read(s->fd, s->line + n, 1)) {
        if (s->line[n] == '\n') {
            s->line[n > 0 ? n - 1 : 0] = '\0';
            return true;
        }
        n++;
    }
    return false;
}

static bool say(const struct session *s, const char *text)
{
    return fake_write(s->fd, text, strlen(text));
}

static bool is_refused(const struct lines_script *script, unsigned n)
{
    return script->refuse_every && n % script->refuse_every == 0;
}

/* ---- NATS ---- */

static bool nats_answer(struct session *s, const char *reply)
{
    char text[2 * LINE_MAX_BYTES], payload[64];
    struct lines_script *script = s->script;
    unsigned n = ++script->published;
    if (n == script->cut_at)
        return false;
    if (script->silent_from && n >= script->silent_from)
        return true;
    s->sequence++;
    if (is_refused(script, n) && script->refusal[0] == '-')
        return say(s, script->refusal);
    if (is_refused(script, n) && strcmp(script->refusal, "503") == 0) {
        (void)snprintf(text, sizeof text, "HMSG %s 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n", reply);
        return say(s, text);
    }
    (void)snprintf(payload, sizeof payload, "{\"stream\":\"E\",\"seq\":%u}", s->sequence);
    const char *body = is_refused(script, n) ? script->refusal : payload;
    (void)snprintf(text, sizeof text, "MSG %s 1 %zu\r\n%s\r\n", reply, strlen(body), body);
    return say(s, text);
}

static bool nats_question(const struct session *s, const char *reply)
{
    char text[2 * LINE_MAX_BYTES];
    const char *body = s->script->streams;
    if (!body)
        return say(s, "-ERR 'Permissions Violation for Publish to \"$JS.API.STREAM.NAMES\"'\r\n");
    (void)snprintf(text, sizeof text, "MSG %s 1 %zu\r\n%s\r\n", reply, strlen(body), body);
    return say(s, text);
}

static bool nats_line(struct session *s)
{
    char subject[1100], reply[400];
    unsigned head = 0, len = 0;
    if (strncmp(s->line, "PING", 4) == 0)
        return say(s, "PONG\r\n");
    bool ask = sscanf(s->line, "PUB %1099s %399s %u", subject, reply, &len) == 3;
    if (!ask && sscanf(s->line, "HPUB %1099s %399s %u %u", subject, reply, &head, &len) != 4)
        return true;
    assert_true(head <= len && len < BODY_MAX);
    if (!fake_read(s->fd, s->body, len + 2))
        return false;
    assert_memory_equal(s->body + len, "\r\n", 2);
    if (ask)
        return nats_question(s, reply);
    assert_memory_equal(s->body, "NATS/1.0\r\nNats-Msg-Id: ", 23);
    assert_memory_equal(s->body + head - 4, "\r\n\r\n", 4);
    return nats_answer(s, reply);
}

void fake_nats_serve(int fd, void *arg)
{
    struct session s = {.script = arg, .fd = fd, .body = malloc(BODY_MAX + 2)};
    const char *greeting = s.script->greeting
                               ? s.script->greeting
                               : "INFO {\"server_id\":\"x\",\"headers\":true,\"max_payload\":1048576}\r\n";
    assert_non_null(s.body);
    if (s.script->mute)
        greeting = "";
    if (say(&s, greeting))
        while (read_line(&s) && (s.script->mute || nats_line(&s)))
            ;
    free(s.body);
}

/* ---- Redis ---- */

static bool redis_word(struct session *s, char *first)
{
    unsigned len = 0;
    if (!read_line(s) || sscanf(s->line, "$%u", &len) != 1 || len >= BODY_MAX ||
        !fake_read(s->fd, s->body, len + 2))
        return false;
    if (!first[0])
        (void)snprintf(first, 32, "%.*s", (int)(len < 31 ? len : 31), s->body);
    return true;
}

static bool redis_answer(struct session *s)
{
    struct lines_script *script = s->script;
    char text[128], id[64];
    unsigned n = ++script->published;
    if (n == script->cut_at)
        return false;
    if (script->silent_from && n >= script->silent_from)
        return true;
    if (is_refused(script, n))
        return say(s, script->refusal);
    int len = snprintf(id, sizeof id, "%u-0", 1000 + ++s->sequence);
    (void)snprintf(text, sizeof text, "$%d\r\n%s\r\n", len, id);
    return say(s, text);
}

static bool redis_command(struct session *s)
{
    unsigned words = 0;
    char first[32] = "";
    if (sscanf(s->line, "*%u", &words) != 1)
        return false;
    for (unsigned i = 0; i < words; i++)
        if (!redis_word(s, first))
            return false;
    if (s->script->mute)
        return true;
    if (strcmp(first, "XADD") == 0 || strcmp(first, "EVAL") == 0)
        return redis_answer(s);
    if (s->script->greeting)
        return say(s, s->script->greeting);
    return say(s, strcmp(first, "PING") == 0 ? "+PONG\r\n" : "+OK\r\n");
}

void fake_redis_serve(int fd, void *arg)
{
    struct session s = {.script = arg, .fd = fd, .body = malloc(BODY_MAX + 2)};
    assert_non_null(s.body);
    while (read_line(&s) && redis_command(&s))
        ;
    free(s.body);
}
