/* SPDX-License-Identifier: Apache-2.0 */
/* logfmt. Values with blanks, quotes, controls or nothing in them are quoted; controls and quotes are escaped. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/parse.h"
#include "base/str.h"
#include "observe/log.h"

static const struct {
    const char *name;
    char journal;
} levels[] = {
    [HK_LOG_ERROR] = {"error", '3'},
    [HK_LOG_WARN] = {"warn", '4'},
    [HK_LOG_INFO] = {"info", '6'},
    [HK_LOG_DEBUG] = {"debug", '7'},
};

const char *hk_log_level_name(enum hk_log_level level)
{
    return levels[level].name;
}

bool hk_log_level_by_name(const char *name, enum hk_log_level *out_level)
{
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        if (strcmp(levels[i].name, name) != 0)
            continue;
        *out_level = (enum hk_log_level)i;
        return true;
    }
    return false;
}

void hk_log_init(struct hk_log *log, int fd, enum hk_log_level level)
{
    *log = (struct hk_log){.fd = fd, .level = level, .journal = getenv("JOURNAL_STREAM") != NULL};
}

/* One byte is kept for the newline. */
static void put(struct hk_log_line *line, const char *bytes, size_t n)
{
    size_t room = sizeof line->text - 1 - line->len;
    n = n < room ? n : room;
    memcpy(line->text + line->len, bytes, n);
    line->len += n;
}

static void puts_(struct hk_log_line *line, const char *s)
{
    put(line, s, strlen(s));
}

static bool is_plain(struct hk_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c <= ' ' || c == '"' || c == '=' || c == '\\' || c == 0x7f)
            return false;
    }
    return s.len > 0;
}

static void put_escaped(struct hk_log_line *line, char c)
{
    static const char hex[] = "0123456789abcdef";
    unsigned char u = (unsigned char)c;
    if (c == '"' || c == '\\') {
        put(line, (char[]){'\\', c}, 2);
    } else if (c == '\n') {
        put(line, "\\n", 2);
    } else if (u < ' ' || u == 0x7f) {
        put(line, (char[]){'\\', 'x', hex[u >> 4], hex[u & 15]}, 4);
    } else {
        put(line, &c, 1);
    }
}

void hk_log_str(struct hk_log_line *line, const char *key, struct hk_str value)
{
    enum {
        VALUE_MAX = 1024
    };

    if (line->off)
        return;
    if (value.len > VALUE_MAX)
        value.len = VALUE_MAX;
    if (line->len)
        put(line, " ", 1);
    puts_(line, key);
    put(line, "=", 1);
    if (is_plain(value)) {
        put(line, value.ptr, value.len);
        return;
    }
    put(line, "\"", 1);
    for (size_t i = 0; i < value.len; i++)
        put_escaped(line, value.ptr[i]);
    put(line, "\"", 1);
}

void hk_log_cstr(struct hk_log_line *line, const char *key, const char *value)
{
    hk_log_str(line, key, hk_str_of(value));
}

void hk_log_i64(struct hk_log_line *line, const char *key, int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)value);
    hk_log_cstr(line, key, text);
}

void hk_log_ms(struct hk_log_line *line, const char *key, uint64_t ms)
{
    char text[HK_DURATION_TEXT_MAX];
    hk_format_duration(ms, text);
    hk_log_cstr(line, key, text);
}

void hk_log_begin(struct hk_log_line *line, struct hk_log *log, enum hk_log_level level, const char *event)
{
    line->log = log;
    line->len = 0;
    line->off = level > log->level;
    if (line->off)
        return;
    if (log->journal) {
        put(line, (char[]){'<', levels[level].journal, '>'}, 3);
        puts_(line, "level=");
        puts_(line, levels[level].name);
    } else {
        struct timespec ts = {0};
        char time[HK_TIME_TEXT_MAX];
        clock_gettime(CLOCK_REALTIME, &ts);
        hk_format_rfc3339((int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000, time);
        hk_log_cstr(line, "time", time);
        hk_log_cstr(line, "level", levels[level].name);
    }
    hk_log_cstr(line, "msg", event);
}

void hk_log_end(struct hk_log_line *line)
{
    if (line->off)
        return;
    line->text[line->len++] = '\n';
    ssize_t n;
    do
        n = write(line->log->fd, line->text, line->len);
    while (n < 0 && errno == EINTR);
    if (n != (ssize_t)line->len)
        line->log->dropped++;
}
