/* SPDX-License-Identifier: Apache-2.0 */
/* The event log's lines: which event carries which fields is one table. */
#include <inttypes.h>

#include "base/json.h"
#include "observe/eventlog.h"

enum {
    M = 1 << 0,
    DEST = 1 << 1,
    KEY = 1 << 2,
    RELAY = 1 << 3,
    KIND = 1 << 4,
    REASON = 1 << 5,
    ACTOR = 1 << 6,
    ROW = 1 << 7,
    LANE = 1 << 8,
    CLAIM = 1 << 9,
    UNTIL = 1 << 10,
    DUE = 1 << 11,
    BEGAN = 1 << 12,
    WAIT = 1 << 13,
    HASH = 1 << 14,
    LIFE = 1 << 15,
    ATTEMPT = 1 << 16,
    CHARGED = 1 << 17,
    MAX = 1 << 18,
    CAP = 1 << 19,
    STATUS = 1 << 20,
    MAYBE = 1 << 21,
    ACTED = 1 << 22,
    ROWS = 1 << 23,
    AS = 1 << 24,
    JOB = 1 << 25,
    RATE = 1 << 26,
    OPEN = 1 << 27,
    TURN = 1 << 28,
    EXPIRES = 1 << 29,
    ALL = 1 << 30,
    IN_HAND = M | DEST | RELAY | ROW | LANE | CLAIM | LIFE
};

static const struct {
    const char *name;
    uint32_t fields;
} events[HK_NLOGGED] = {
    [HK_LOG_DEST] = {"dest", DEST | KIND | CAP | WAIT | OPEN | TURN | UNTIL | ALL},
    [HK_LOG_COMMIT] = {"commit", M | DEST | KEY | DUE | EXPIRES | BEGAN | HASH | MAX},
    [HK_LOG_ROLLBACK] = {"rollback", M},
    [HK_LOG_ACQUIRE] = {"acquire", RELAY | LANE | UNTIL},
    [HK_LOG_RENEW] = {"renew", LANE | UNTIL},
    [HK_LOG_RELEASE] = {"release", LANE},
    [HK_LOG_EXPIRE] = {"expire", LANE},
    [HK_LOG_CLAIM] = {"claim", M | DEST | ROW | LANE | CLAIM | LIFE},
    [HK_LOG_SEND] = {"send", IN_HAND | ATTEMPT},
    [HK_LOG_RECV] = {"recv", M | DEST | HASH | STATUS | ACTED | WAIT},
    [HK_LOG_CONFIRM] = {"confirm", IN_HAND},
    [HK_LOG_FAIL] = {"fail", IN_HAND | KIND | STATUS | MAYBE | WAIT},
    [HK_LOG_BUSY] = {"busy", IN_HAND},
    [HK_LOG_ROOM] = {"room", DEST | RELAY},
    [HK_LOG_KEYLESS] = {"keyless", IN_HAND},
    [HK_LOG_SETTLE] = {"settle",
                       M | DEST | ROW | LANE | CLAIM | LIFE | KIND | ROWS | DUE | ATTEMPT | CHARGED | REASON},
    [HK_LOG_STUCK] = {"stuck", M | DEST | ROW | LANE | CLAIM | LIFE | KIND | ATTEMPT | CHARGED},
    [HK_LOG_ORPHAN] = {"orphan", M | DEST | ROW | LANE | CLAIM},
    [HK_LOG_CANCEL] = {"cancel", M | DEST | ACTOR},
    [HK_LOG_DISCARD] = {"discard", M | DEST | ACTOR},
    [HK_LOG_REQUEUE] = {"requeue", M | DEST | ACTOR | LIFE | AS | JOB},
    [HK_LOG_RESTORE] = {"restore", M | DEST | ACTOR},
    [HK_LOG_EDIT] = {"edit", M | DEST | ACTOR | HASH},
    [HK_LOG_REDRIVE] = {"redrive", KIND | ACTOR | JOB | CAP | RATE},
    [HK_LOG_FORCE] = {"force", M | DEST | ACTOR | ROW},
    [HK_LOG_PAUSE] = {"pause", DEST | ACTOR},
    [HK_LOG_RESUME] = {"resume", DEST | ACTOR},
    [HK_LOG_TOLD] = {"told", DEST | RELAY | KIND | UNTIL},
    [HK_LOG_CLOSED] = {"closed", DEST | RELAY | KIND},
    [HK_LOG_BREAKER] = {"breaker", DEST | LANE | UNTIL},
    [HK_LOG_START] = {"start", RELAY},
    [HK_LOG_CRASH] = {"crash", RELAY},
    [HK_LOG_STOP] = {"stop", RELAY},
    [HK_LOG_CONT] = {"cont", RELAY},
    [HK_LOG_DRAIN] = {"drain", RELAY},
    [HK_LOG_EXIT] = {"exit", RELAY},
    [HK_LOG_CLOCK] = {"clock", WAIT},
    [HK_LOG_RESET] = {"reset", WAIT | ACTOR},
    [HK_LOG_WAITS] = {"waits", M | DEST | ROW | DUE},
    [HK_LOG_DEFINE] = {"define", DEST | KIND | ACTOR},
    [HK_LOG_LEARN] = {"learn", DEST | RELAY | KIND},
    [HK_LOG_KEEP] = {"keep", 0},
    [HK_LOG_FORGET] = {"forget", 0},
    [HK_LOG_HEAL] = {"heal", WAIT},
    [HK_LOG_END] = {"end", 0},
};

static void add_key(struct hk_buf *out, const char *key)
{
    (void)hk_buf_adds(out, ",\"");
    (void)hk_buf_adds(out, key);
    (void)hk_buf_adds(out, "\":");
}

/* By hand: simulators write millions of these. */
static void add_number(struct hk_buf *out, int64_t value)
{
    char digits[24];
    size_t at = sizeof digits;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do
        digits[--at] = (char)('0' + rest % 10);
    while (rest /= 10);
    if (value < 0)
        digits[--at] = '-';
    (void)hk_buf_add(out, digits + at, sizeof digits - at);
}

static void add_i64(struct hk_buf *out, const char *key, int64_t value)
{
    add_key(out, key);
    add_number(out, value);
}

static void add_str(struct hk_buf *out, const char *key, struct hk_str value)
{
    struct hk_json json;
    add_key(out, key);
    hk_json_init(&json, out, false);
    hk_json_str(&json, value);
}

static void add_texts(struct hk_buf *out, uint32_t fields, const struct hk_event_line *line)
{
    const struct {
        uint32_t field;
        const char *key;
        struct hk_str value;
    } texts[] = {
        {M, "m", line->m},
        {DEST, "dest", line->dest},
        {KEY, "key", line->key},
        {RELAY, "relay", line->relay},
        {KIND, "kind", line->kind},
        {REASON, "reason", line->reason},
        {ACTOR, "actor", line->actor},
        {AS, "as", line->as},
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (fields & texts[i].field)
            add_str(out, texts[i].key, texts[i].value);
}

static void add_numbers(struct hk_buf *out, uint32_t fields, const struct hk_event_line *line)
{
    const struct {
        uint32_t field;
        const char *key;
        int64_t value;
    } numbers[] = {
        {LANE, "lane", line->lane},
        {CLAIM, "claim", line->claim},
        {UNTIL, "until", line->until},
        {DUE, "due", line->due},
        {BEGAN, "began", line->began},
        {WAIT, "wait", line->wait},
        {LIFE, "life", line->life},
        {ATTEMPT, "n", line->attempt},
        {CHARGED, "charged", line->charged},
        {MAX, "max", line->max},
        {CAP, "cap", line->cap},
        {STATUS, "status", line->status},
        {MAYBE, "maybe", line->maybe},
        {ACTED, "acted", line->acted},
        {ROWS, "rows", line->rows},
        {JOB, "job", line->job},
        {RATE, "rate", line->rate},
        {OPEN, "open", line->open},
        {TURN, "turn", line->turn},
        {EXPIRES, "expires", line->expires},
        {ALL, "all", line->all},
    };

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (fields & numbers[i].field)
            add_i64(out, numbers[i].key, numbers[i].value);
}

void hk_eventlog_add(struct hk_buf *out, const struct hk_event_line *line)
{
    uint32_t fields = events[line->ev].fields;
    (void)hk_buf_adds(out, "{\"t\":");
    add_number(out, line->t);
    (void)hk_buf_adds(out, ",\"ev\":\"");
    (void)hk_buf_adds(out, events[line->ev].name);
    (void)hk_buf_addc(out, '"');
    add_texts(out, fields, line);
    if (fields & ROW) {
        add_key(out, "row");
        (void)hk_buf_addc(out, '"');
        (void)hk_buf_addc(out, line->source);
        add_number(out, line->id);
        (void)hk_buf_addc(out, '"');
    }
    add_numbers(out, fields, line);
    if (line->timeout)
        add_i64(out, "timeout", (int64_t)line->timeout);
    if (line->behind)
        add_i64(out, "behind", line->behind);
    if (fields & HASH)
        (void)hk_buf_addf(out, ",\"hash\":\"%016" PRIx64 "\"", line->hash);
    (void)hk_buf_adds(out, "}\n");
}
