/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/check.h"
#include "base/buf.h"
#include "base/parse.h"
#include "base/str.h"
#include "fake_aws.h"

enum {
    HEAD_MAX = 16 * 1024,
    BODY_MAX = 16 * 1024 * 1024
};

/* A head up to its empty line; false: the connection has ended. */
static bool read_head(int fd, char head[HEAD_MAX])
{
    size_t n = 0;
    while (n + 1 < HEAD_MAX && fake_read(fd, head + n, 1)) {
        head[++n] = '\0';
        if (n >= 4 && memcmp(head + n - 4, "\r\n\r\n", 4) == 0)
            return true;
    }
    return false;
}

static char *read_request(int fd)
{
    char head[HEAD_MAX];
    if (!read_head(fd, head))
        return NULL;
    const char *line = strstr(head, "Content-Length: ");
    struct hk_str rest = hk_str_of(line ? line + 16 : "0\r");
    uint64_t len = 0;
    assert_int_equal(hk_parse_u64(hk_str_cut(&rest, '\r'), &len, NULL), HK_OK);
    char *body = len < BODY_MAX ? malloc(len + 1) : NULL;
    assert_non_null(body);
    body[len] = '\0';
    if (fake_read(fd, body, len))
        return body;
    free(body);
    return NULL;
}

static size_t count(const char *text, const char *word)
{
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, word)); at += strlen(word))
        n++;
    return n;
}

static void add_one(struct hk_buf *out, const char *one, size_t number)
{
    const char *at = strstr(one, "%zu");
    if (at)
        (void)hk_buf_addf(out, "%.*s%zu%s", (int)(at - one), one, number, at + 3);
    else
        (void)hk_buf_adds(out, one);
}

static bool answer(int fd, const struct fake_aws *aws, size_t n)
{
    struct hk_buf out;
    char head[128];
    hk_buf_init(&out, BODY_MAX);
    (void)hk_buf_adds(&out, aws->before);
    for (size_t i = 0; i < n; i++) {
        (void)hk_buf_adds(&out, i ? aws->between : "");
        add_one(&out, aws->one, i);
    }
    (void)hk_buf_adds(&out, aws->after);
    int len = snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", out.len);
    bool ok = fake_write(fd, head, (size_t)len) && fake_write(fd, hk_buf_cstr(&out), out.len);
    hk_buf_fini(&out);
    return ok;
}

void fake_aws_serve(int fd, void *arg)
{
    const struct fake_aws *aws = arg;
    bool ok = true;
    while (ok) {
        char *body = read_request(fd);
        ok = body && (aws->mute || answer(fd, aws, count(body, aws->entry)));
        free(body);
    }
}
