/* SPDX-License-Identifier: Apache-2.0 */
/* Lines in logfmt and JSON, bounded, and how they leave without ever waiting.
 *
 * A value is put in whole or cut, and room for its end, for the line's end and for the mark that something was cut is kept
 * free from the beginning, so that a line is always well formed. Whatever is not plain text is escaped: controls, invalid
 * UTF-8, line separators of Unicode, characters that change the direction of what stands around them. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/parse.h"
#include "base/str.h"
#include "base/utf8.h"
#include "observe/log.h"
#include "observe/redact.h"

enum {
    VALUE_MAX = 1024,  /* bytes of a value, as they are given */
    KEY_MAX = 64,      /* and of a key: a longer one is a mistake of ours */
    LINE_RESERVE = 64, /* for "…[+N bytes]", a quote, cut=true and the line's end */
    ESCAPE_MAX = 8
};

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

bool hk_log_format_by_name(const char *name, enum hk_log_format *out_format)
{
    bool json = strcmp(name, "json") == 0;
    if (!json && strcmp(name, "logfmt") != 0)
        return false;
    *out_format = json ? HK_LOG_JSON : HK_LOG_LOGFMT;
    return true;
}

/* ---- where lines go ---- */

/* systemd says which file its journal is: a program whose standard error was led elsewhere inherits the variable, too. */
static bool is_journal(const struct stat *st)
{
    char mine[64];
    const char *stream = getenv("JOURNAL_STREAM");
    (void)snprintf(mine, sizeof mine, "%llu:%llu", (unsigned long long)st->st_dev,
                   (unsigned long long)st->st_ino);
    return stream && strcmp(stream, mine) == 0;
}

/* O_NONBLOCK on a descriptor that was inherited would change it for all who share it (a terminal for the shell as well). A pipe
 * or terminal that is opened anew is ours alone. */
static int open_again(int fd)
{
    char path[32];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

void hk_log_init(struct hk_log *log, int fd, enum hk_log_level level)
{
    struct stat st = {0};
    bool known = fstat(fd, &st) == 0;
    log->fd = fd;
    log->own = false;
    log->way = HK_LOG_WAY_WRITE;
    log->journal = known && is_journal(&st);
    if (known && S_ISSOCK(st.st_mode))
        log->way = HK_LOG_WAY_SEND;
    if (known && (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode))) {
        int again = open_again(fd);
        log->own = again >= 0;
        log->fd = log->own ? again : fd;
        log->way = log->own ? HK_LOG_WAY_WRITE : HK_LOG_WAY_POLL;
    }
    atomic_init(&log->level, (int)level);
    atomic_init(&log->format, (int)HK_LOG_LOGFMT);
    atomic_init(&log->dropped, 0);
    atomic_init(&log->untold, 0);
    atomic_init(&log->torn, false);
}

void hk_log_fini(struct hk_log *log)
{
    if (log->own)
        (void)close(log->fd);
    log->own = false;
}

void hk_log_configure(struct hk_log *log, enum hk_log_level level, enum hk_log_format format)
{
    atomic_store(&log->level, (int)level);
    atomic_store(&log->format, (int)format);
}

uint64_t hk_log_dropped(const struct hk_log *log)
{
    return atomic_load(&log->dropped);
}

/* What was written; -1: nothing, and it would have to wait or cannot be. */
static ssize_t write_some(const struct hk_log *log, const char *text, size_t len)
{
    struct pollfd room = {.fd = log->fd, .events = POLLOUT};
    ssize_t n = -1;
    do {
        if (log->way == HK_LOG_WAY_SEND)
            n = send(log->fd, text, len, MSG_DONTWAIT | MSG_NOSIGNAL);
        else if (log->way == HK_LOG_WAY_WRITE || (poll(&room, 1, 0) == 1 && (room.revents & POLLOUT)))
            n = write(log->fd, text, len);
    } while (n < 0 && errno == EINTR && log->way != HK_LOG_WAY_POLL);
    return n;
}

/* A terminal may take a part of a line: what comes next must not look as if it belonged to it. */
static bool write_line(struct hk_log *log, const char *text, size_t len)
{
    if (atomic_load(&log->torn) && write_some(log, "\n", 1) != 1)
        return false;
    atomic_store(&log->torn, false);
    ssize_t n = write_some(log, text, len);
    if (n > 0 && (size_t)n < len)
        atomic_store(&log->torn, true);
    return n == (ssize_t)len;
}

/* ---- one line in the making ---- */

/* Only where there is room: callers have asked. */
static void put(struct hk_log_line *line, const char *bytes, size_t n)
{
    memcpy(line->text + line->len, bytes, n);
    line->len += n;
}

static void puts_(struct hk_log_line *line, const char *s)
{
    put(line, s, strlen(s));
}

static size_t room_of(const struct hk_log_line *line)
{
    size_t most = sizeof line->text - LINE_RESERVE; /* a cut value's mark may have passed it */
    return line->len < most ? most - line->len : 0;
}

static void put_key(struct hk_log_line *line, const char *key)
{
    bool json = line->format == HK_LOG_JSON;
    if (line->len > line->start)
        put(line, json ? "," : " ", 1);
    if (json)
        put(line, "\"", 1);
    put(line, key, strnlen(key, KEY_MAX));
    puts_(line, json ? "\":" : "=");
}

/* Is there room for the field's frame? Its value may be cut. */
static bool begin_field(struct hk_log_line *line, const char *key)
{
    if (line->off)
        return false;
    if (room_of(line) < strnlen(key, KEY_MAX) + 32) {
        line->cut = true;
        return false;
    }
    put_key(line, key);
    return true;
}

static size_t escape(enum hk_log_format format, uint32_t c, const char *bytes, size_t n,
                     char out[ESCAPE_MAX * 4])
{
    static const char hex[] = "0123456789abcdef";
    size_t len = 0;
    if (c == '"' || c == '\\') {
        out[0] = '\\';
        out[1] = (char)c;
        return 2;
    }
    if (c == '\n' || c == '\t' || c == '\r') {
        out[0] = '\\';
        out[1] = c == '\n' ? 'n' : c == '\t' ? 't' : 'r';
        return 2;
    }
    if (c == HK_UTF8_BAD && format == HK_LOG_JSON)
        c = 0xfffd;
    if (c != HK_UTF8_BAD && c > 0xffff)
        return (size_t)(format == HK_LOG_JSON ? snprintf(out, ESCAPE_MAX * 4, "\\u%04x\\u%04x",
                                                         0xd800 + (unsigned)((c - 0x10000) >> 10),
                                                         0xdc00 + (unsigned)(c & 0x3ff))
                                              : snprintf(out, ESCAPE_MAX * 4, "\\U%08x", (unsigned)c));
    if (c != HK_UTF8_BAD && (c > 0x7f || format == HK_LOG_JSON))
        return (size_t)snprintf(out, ESCAPE_MAX, "\\u%04x", (unsigned)c);
    for (size_t i = 0; i < n; i++) { /* logfmt: the bytes themselves */
        unsigned char u = (unsigned char)bytes[i];
        memcpy(out + len, (char[]){'\\', 'x', hex[u >> 4], hex[u & 15]}, 4);
        len += 4;
    }
    return len;
}

/* Bytes from `at` on that stand for themselves in both formats. */
static size_t plain_run(struct hk_str s, size_t at)
{
    size_t n = 0;
    for (; at + n < s.len; n++) {
        unsigned char c = (unsigned char)s.ptr[at + n];
        if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\')
            break;
    }
    return n;
}

/* How many bytes of `value` found room. */
static size_t put_text(struct hk_log_line *line, struct hk_str value)
{
    size_t at = 0;
    while (at < value.len) {
        size_t run = plain_run(value, at);
        if (run > room_of(line))
            run = room_of(line);
        put(line, value.ptr + at, run);
        at += run;
        if (at == value.len)
            break;
        char escaped[ESCAPE_MAX * 4];
        uint32_t c;
        size_t n = hk_utf8_next((struct hk_str){value.ptr + at, value.len - at}, &c), len = n;
        const char *bytes = value.ptr + at;
        if (c == HK_UTF8_BAD || c == '"' || c == '\\' || hk_utf8_is_unruly(c)) {
            len = escape(line->format, c, bytes, n, escaped);
            bytes = escaped;
        }
        if (room_of(line) < len)
            break;
        put(line, bytes, len);
        at += n;
    }
    return at;
}

/* Without quotes, in logfmt. */
static bool is_plain(struct hk_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c <= ' ' || c == '"' || c == '=' || c == '\\' || c >= 0x7f)
            return false;
    }
    return s.len > 0;
}

/* Of a text that was cut: never in the middle of a character, which would then seem to be invalid. */
static size_t whole_chars(const char *text, size_t len)
{
    size_t lead = len;
    uint32_t c;
    while (lead > 0 && len - lead < 3 && ((unsigned char)text[lead - 1] & 0xc0) == 0x80)
        lead--;
    if (lead == 0 || (unsigned char)text[lead - 1] < 0xc0)
        return len;
    (void)hk_utf8_next((struct hk_str){text + lead - 1, len - lead + 1}, &c);
    return c == HK_UTF8_BAD ? lead - 1 : len;
}

static void put_value(struct hk_log_line *line, struct hk_str shown, size_t missing)
{
    if (line->format == HK_LOG_LOGFMT && !missing && is_plain(shown) && shown.len <= room_of(line)) {
        put(line, shown.ptr, shown.len);
        return;
    }
    put(line, "\"", 1);
    size_t done = put_text(line, shown);
    missing += shown.len - done;
    if (missing) {
        char mark[40];
        size_t n = (size_t)snprintf(mark, sizeof mark, "…[+%zu bytes]", missing);
        put(line, mark, n);
        line->cut = true;
    }
    put(line, "\"", 1);
}

void hk_log_str(struct hk_log_line *line, const char *key, struct hk_str value)
{
    char shown[VALUE_MAX];
    size_t read = 0;
    if (!begin_field(line, key))
        return;
    if (value.len > 0 && hk_redact_name(hk_str_of(key))) {
        put_value(line, hk_str_of(HK_REDACTED), 0);
        return;
    }
    size_t len = value.len ? hk_redact(value, shown, sizeof shown, &read) : 0;
    if (read < value.len) {
        size_t whole = whole_chars(shown, len);
        read -= len - whole;
        len = whole;
    }
    put_value(line, (struct hk_str){shown, len}, value.len - read);
}

/* Numbers, times, names of levels: our own words, in which there is nothing to hide. */
static void put_own(struct hk_log_line *line, const char *key, const char *value)
{
    if (begin_field(line, key))
        put_value(line, hk_str_of(value), 0);
}

void hk_log_cstr(struct hk_log_line *line, const char *key, const char *value)
{
    hk_log_str(line, key, hk_str_of(value));
}

void hk_log_i64(struct hk_log_line *line, const char *key, int64_t value)
{
    char text[24];
    size_t n = (size_t)snprintf(text, sizeof text, "%lld", (long long)value);
    if (begin_field(line, key))
        put(line, text, n);
}

void hk_log_ms(struct hk_log_line *line, const char *key, uint64_t ms)
{
    char text[HK_DURATION_TEXT_MAX], with_unit[KEY_MAX];
    if (line->format == HK_LOG_JSON) {
        (void)snprintf(with_unit, sizeof with_unit, "%s_ms", key);
        hk_log_i64(line, with_unit, ms > INT64_MAX ? INT64_MAX : (int64_t)ms);
        return;
    }
    hk_format_duration(ms, text);
    put_own(line, key, text);
}

void hk_log_time(struct hk_log_line *line, const char *key, int64_t unix_ms)
{
    char text[HK_TIME_TEXT_MAX];
    (void)hk_format_rfc3339(unix_ms, text);
    put_own(line, key, text);
}

static void put_time(struct hk_log_line *line)
{
    struct timespec ts = {0};
    (void)clock_gettime(CLOCK_REALTIME, &ts);
    hk_log_time(line, "time", (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000);
}

void hk_log_begin(struct hk_log_line *line, struct hk_log *log, enum hk_log_level level, const char *event)
{
    line->log = log;
    line->format = (enum hk_log_format)atomic_load_explicit(&log->format, memory_order_relaxed);
    line->len = 0;
    line->cut = false;
    line->off = (int)level > atomic_load_explicit(&log->level, memory_order_relaxed);
    if (line->off)
        return;
    if (log->journal)
        put(line, (char[]){'<', levels[level].journal, '>'}, 3);
    if (line->format == HK_LOG_JSON)
        put(line, "{", 1);
    line->start = line->len;
    if (!log->journal || line->format == HK_LOG_JSON)
        put_time(line);
    put_own(line, "level", levels[level].name);
    put_own(line, "msg", event);
}

static void close_line(struct hk_log_line *line)
{
    bool json = line->format == HK_LOG_JSON;
    if (line->cut)
        puts_(line, json ? ",\"cut\":true" : " cut=true");
    if (json)
        put(line, "}", 1);
    put(line, "\n", 1);
}

/* Lines were lost, and it flows again: that must be known to who reads them. */
static bool tell_lost(struct hk_log *log)
{
    struct hk_log_line line;
    uint64_t n = atomic_exchange(&log->untold, 0);
    if (n == 0)
        return true;
    hk_log_begin(&line, log, HK_LOG_ERROR, "log lines dropped");
    hk_log_i64(&line, "n", n > INT64_MAX ? INT64_MAX : (int64_t)n);
    close_line(&line);
    if (write_line(log, line.text, line.len))
        return true;
    atomic_fetch_add(&log->untold, n);
    return false;
}

void hk_log_end(struct hk_log_line *line)
{
    struct hk_log *log = line->log;
    if (line->off)
        return;
    close_line(line);
    if (tell_lost(log) && write_line(log, line->text, line->len))
        return;
    atomic_fetch_add(&log->dropped, 1);
    atomic_fetch_add(&log->untold, 1);
}
