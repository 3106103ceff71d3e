/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines in logfmt or JSON: one event one line, whatever the values hold, by one write to a descriptor. Secrets in them
 * are hidden (redact.h). A pipe that nobody empties drops lines and counts them: the relay never waits for its log.
 *
 * Lines may be written from any thread; the log's level and format may be changed meanwhile. */
#ifndef HK_OBSERVE_LOG_H
#define HK_OBSERVE_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <hikyaku/facts.h>

enum hk_log_level {
    HK_LOG_ERROR = 0,
    HK_LOG_WARN,
    HK_LOG_INFO,
    HK_LOG_DEBUG
};

enum hk_log_format {
    HK_LOG_LOGFMT = 0,
    HK_LOG_JSON
};

enum hk_log_way {         /* how to write without waiting */
    HK_LOG_WAY_WRITE = 0, /* a file, or a descriptor of our own that does not block */
    HK_LOG_WAY_SEND,      /* a socket */
    HK_LOG_WAY_POLL       /* ask first: it could not be opened again */
};

struct hk_log {
    int fd;
    enum hk_log_way way;
    bool own;          /* `fd` was opened here */
    bool journal;      /* under systemd: <N> in front; logfmt without the time, which journald knows */
    atomic_int level;  /* and what is more important */
    atomic_int format; /* enum hk_log_format */
    atomic_uint_fast64_t dropped; /* lines that could not be written; only grows */
    atomic_uint_fast64_t untold;  /* of those, what no line has told of yet */
    atomic_bool torn;             /* the last write ended in the middle of its line */
};

#define HK_LOG_LINE_MAX 4096 /* as much as a pipe takes whole, or not at all */

/* One line in the making, in the caller's storage. What does not fit is cut, marked, and the line says cut=true. */
struct hk_log_line {
    struct hk_log *log;
    enum hk_log_format format;
    size_t start; /* of the first field */
    size_t len;
    bool off; /* below the log's level */
    bool cut;
    char text[HK_LOG_LINE_MAX];
};

/* `fd` stays the caller's, and is not changed for those who share it. */
void hk_log_init(struct hk_log *log, int fd, enum hk_log_level level);
void hk_log_fini(struct hk_log *log);
void hk_log_configure(struct hk_log *log, enum hk_log_level level, enum hk_log_format format);
uint64_t hk_log_dropped(const struct hk_log *log); /* from any thread */

/* `event` is a short constant text: `msg="relay started"`. Keys are constants, too: letters and '_'. */
void hk_log_begin(struct hk_log_line *line, struct hk_log *log, enum hk_log_level level, const char *event);
void hk_log_str(struct hk_log_line *line, const char *key, struct hk_str value);
void hk_log_cstr(struct hk_log_line *line, const char *key, const char *value);
void hk_log_i64(struct hk_log_line *line, const char *key, int64_t value);
/* logfmt: a duration, wait=1m30s; JSON: a number with its unit in the key, "wait_ms":90000. */
void hk_log_ms(struct hk_log_line *line, const char *key, uint64_t ms);
void hk_log_time(struct hk_log_line *line, const char *key, int64_t unix_ms); /* RFC 3339 */
void hk_log_end(struct hk_log_line *line);

const char *hk_log_level_name(enum hk_log_level level);
bool hk_log_level_by_name(const char *name, enum hk_log_level *out_level);
bool hk_log_format_by_name(const char *name, enum hk_log_format *out_format);

#endif
