/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines in logfmt, one event one line whatever the values hold, by one write to a descriptor. A full pipe drops the
 * line and counts it: the relay never waits for its log. */
#ifndef HK_OBSERVE_LOG_H
#define HK_OBSERVE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include <hikyaku/facts.h>

enum hk_log_level {
    HK_LOG_ERROR = 0,
    HK_LOG_WARN,
    HK_LOG_INFO,
    HK_LOG_DEBUG
};

struct hk_log {
    int fd;
    enum hk_log_level level; /* and what is more important */
    bool journal;            /* under systemd: <N> in front, no time */
    uint64_t dropped;
};

#define HK_LOG_LINE_MAX 4096

/* One line in the making, in the caller's storage. What does not fit is cut. */
struct hk_log_line {
    struct hk_log *log;
    size_t len;
    bool off; /* below the log's level */
    char text[HK_LOG_LINE_MAX];
};

void hk_log_init(struct hk_log *log, int fd, enum hk_log_level level);
/* `event` is a short constant text: `msg="relay started"`. */
void hk_log_begin(struct hk_log_line *line, struct hk_log *log, enum hk_log_level level, const char *event);
void hk_log_str(struct hk_log_line *line, const char *key, struct hk_str value);
void hk_log_cstr(struct hk_log_line *line, const char *key, const char *value);
void hk_log_i64(struct hk_log_line *line, const char *key, int64_t value);
void hk_log_ms(struct hk_log_line *line, const char *key, uint64_t ms); /* as a duration: 1m30s */
void hk_log_end(struct hk_log_line *line);

const char *hk_log_level_name(enum hk_log_level level);
bool hk_log_level_by_name(const char *name, enum hk_log_level *out_level);

#endif
