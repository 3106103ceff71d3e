/* SPDX-License-Identifier: Apache-2.0 */
/* What the store says about alerts, whoever wrote it there: rows of outbox_alert with columns of any type, as they are read; the evaluation
 * of every kind of rule on them at two moments; what is told, as the text that waits for its channel, and any text in its place. The
 * machine keeps its word whatever it finds: no firing is told twice, and no end that nobody waits for. A value is a byte (its type, and how
 * long), then its bytes. */
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/pool.h"
#include "base/str.h"
#include "daemon/alerts.h"
#include "fuzz.h"
#include "sqlite_values.h"
#include "store/sqlite/alerts.h"

enum {
    COLUMNS = 24,
    ROWS = 3,
    TEXT_MAX = 64 << 10
};

static const struct hk_alert_rule rules[HK_NALERT_KINDS] = {
    {.name = "r0", .kind = HK_ALERT_DEAD_LETTER, .severity = HK_ALERT_INFO},
    {.name = "r1", .kind = HK_ALERT_DEAD_LETTERS_ABOVE, .above = 3},
    {.name = "r2", .kind = HK_ALERT_DEAD_LETTERS_RISING, .above = 4, .age_ms = 60000},
    {.name = "r3", .kind = HK_ALERT_OLDEST_AGE, .age_ms = 1000, .for_ms = 50},
    {.name = "r4", .kind = HK_ALERT_BREAKER_OPEN, .severity = HK_ALERT_CRITICAL},
    {.name = "r5", .kind = HK_ALERT_PAUSED, .destination = "a*"},
    {.name = "r6", .kind = HK_ALERT_STORE_UNREACHABLE},
    {.name = "r7", .kind = HK_ALERT_NO_PROGRESS, .age_ms = 1000},
    {.name = "r8", .kind = HK_ALERT_LAG_GROWING, .age_ms = UINT64_C(100) * 365 * 86400000},
    {.name = "r9", .kind = HK_ALERT_REQUEUE_FAILED, .for_ms = UINT64_MAX},
    {.name = "r10", .kind = HK_ALERT_KEY_MISSING},
};

static unsigned byte_of(struct hk_str *rest)
{
    return rest->len > 0 ? (unsigned char)fuzz_take(rest, 1).ptr[0] : 0;
}

static int64_t number_of(struct hk_str *rest)
{
    struct hk_str s = fuzz_take(rest, 8);
    int64_t number = 0;
    if (s.len > 0)
        memcpy(&number, s.ptr, s.len);
    return number;
}

/* ---- rows ---- */

/* Half of them are of a rule that is there. */
static void read_row(struct hk_store *store, sqlite3_stmt *q, struct hk_str *rest,
                     struct hk_alert_board *board)
{
    struct hk_alert a;
    unsigned whose = byte_of(rest);
    sqlite3_reset(q);
    for (int i = 1; i <= COLUMNS; i++)
        values_bind(q, i, rest);
    MUST(sqlite3_step(q) == SQLITE_ROW);
    hk_sn_alert(store, q, &a);
    MUST(hk_sq_ok(store));
    MUST(a.kind <= HK_NALERT_KINDS && a.status < HK_NALERT_STATUSES && a.severity <= HK_ALERT_CRITICAL);
    MUST(a.detail.len <= HK_ALERT_TEXT_MAX && a.rule.len <= HK_ALERT_TEXT_MAX);
    if (whose % 2) {
        a.kind = (enum hk_alert_kind)(whose / 2 % HK_NALERT_KINDS);
        a.rule = hk_str_of(rules[a.kind].name);
        a.status = (enum hk_alert_status)(whose / 20 % HK_NALERT_STATUSES);
    }
    if (a.kind < HK_NALERT_KINDS) /* others are not looked at */
        MUST(hk_alert_board_add(board, &a) == HK_OK);
}

/* ---- the evaluation ---- */

static int64_t since_1970(int64_t number) /* up to the year 9999, as a store's clock */
{
    return number & INT64_C(0xe677d21fdbff);
}

static void evaluate(struct hk_alert_board *board, int64_t now_ms, struct hk_str *rest)
{
    const struct hk_alert_settings settings = {.update_ms = 60000, .resolve_after_ms = 1000, .separate = 2};
    struct hk_alert_deaths deaths[2];
    struct hk_alert_dest dests[2];
    for (size_t i = 0; i < 2; i++) {
        unsigned flags = byte_of(rest);
        struct hk_str name = fuzz_take(rest, flags / 64);
        uint64_t n = (uint64_t)number_of(rest) >> 20;
        deaths[i] = (struct hk_alert_deaths){.destination = name,
                                             .reason = name,
                                             .n = n,
                                             .again = n / 2,
                                             .second = n / 4,
                                             .letter_id = (int64_t)n,
                                             .message_id = name};
        dests[i] = (struct hk_alert_dest){.name = name,
                                          .paused = flags & 1,
                                          .broken = flags & 2,
                                          .detail = name,
                                          .dead = flags & 8 ? n : 0};
    }
    const struct hk_alert_facts facts = {.now_ms = now_ms,
                                         .deaths = deaths,
                                         .n_deaths = byte_of(rest) % 3,
                                         .dests = dests,
                                         .n_dests = 2,
                                         .figures = byte_of(rest) & 1,
                                         .dead = byte_of(rest),
                                         .oldest_ms = since_1970(number_of(rest)),
                                         .oldest_dest = dests[0].name,
                                         .oldest_due_ms = since_1970(number_of(rest)),
                                         .due_dest = dests[1].name,
                                         .oldest_free_ms = since_1970(number_of(rest)),
                                         .progress = number_of(rest)};
    board->n_tells = 0;
    MUST(hk_alert_evaluate(board, rules, HK_NALERT_KINDS, &settings, &facts) == HK_OK);
}

/* ---- what is told ---- */

static bool nearly(double a, double b)
{
    return fabs(a - b) <= 0.001 + fabs(a) * 4 * DBL_EPSILON;
}

static void check_told(const struct hk_notice *n)
{
    struct hk_pool arena = {.blocks = NULL};
    struct hk_notice again = {.kind = n->kind};
    struct hk_buf text;
    hk_buf_init(&text, TEXT_MAX);
    hk_alerts_facts_write(n, &text);
    MUST(hk_buf_status(&text) == HK_OK);
    json_t *root = json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    MUST(json_is_object(root));
    json_decref(root);
    MUST(hk_alerts_facts_read(hk_buf_str(&text), &arena, &again) == HK_OK);
    MUST(again.about == n->about && again.severity == n->severity && again.since_ms == n->since_ms &&
         again.at_ms == n->at_ms && (again.count == n->count || n->count > INT64_MAX));
    MUST(again.n_lines == n->n_lines && (again.more_lines == n->more_lines || n->more_lines > INT64_MAX));
    for (size_t i = 0; i < n->n_lines; i++)
        MUST(again.lines[i].about == n->lines[i].about && again.lines[i].over == n->lines[i].over);
    MUST(again.detail.len <= HK_ALERT_TEXT_MAX && again.reason.len <= HK_ALERT_TEXT_MAX);
    if (fabs(n->value) < 1e12)
        MUST(nearly(again.value, n->value));
    hk_buf_fini(&text);
    hk_pool_wipe(&arena);
}

static void check_alert(const struct hk_alert *a)
{
    struct hk_str texts[HK_ALERTS_TEXTS];
    char series[HK_ALERTS_SERIES_MAX];
    struct hk_alert again = {.count = 0};
    MUST(a->status < HK_NALERT_STATUSES);
    hk_alerts_texts(a, texts);
    for (size_t i = 0; i < HK_ALERTS_TEXTS; i++)
        MUST(texts[i].len <= HK_ALERT_TEXT_MAX);
    hk_alerts_series_text(a, series);
    hk_alerts_series_of(hk_str_of(series), &again);
    MUST(memcmp(again.series, a->series, sizeof again.series) == 0);
    MUST(again.told_figure == a->told_figure || a->told_figure > INT64_MAX);
}

static void check_tells(const struct hk_alert_board *board, int64_t now_ms)
{
    const struct hk_alerts_plan plan = {.relay = "relay", .link = NULL};
    for (size_t i = 0; i < board->n_tells; i++) {
        const struct hk_alert_tell *tell = &board->tells[i];
        struct hk_notice n;
        MUST(tell->alert < board->n && tell->rule < HK_NALERT_KINDS && tell->kind != HK_NOTICE_TEST);
        const struct hk_alert *a = &board->alerts[tell->alert];
        MUST(a->told || tell->kind == HK_NOTICE_RESOLVED);
        MUST(!a->leader_at); /* what follows is a line of another notice */
        hk_alerts_notice_of(&plan, a, tell->kind, now_ms, &n);
        for (size_t other = 0; other < board->n; other++)
            if (hk_alert_is_line(board, tell, other))
                hk_alerts_notice_add_line(&n, &board->alerts[other]);
        check_told(&n);
    }
    for (size_t i = 0; i < board->n; i++)
        check_alert(&board->alerts[i]);
}

/* Any text where the facts of a notice stand. */
static void check_text(struct hk_str text)
{
    struct hk_pool arena = {.blocks = NULL};
    struct hk_alert series;
    struct hk_notice n = {.kind = HK_NOTICE_FIRING};
    MUST(hk_alerts_facts_read(text, &arena, &n) == HK_OK);
    MUST(n.about < HK_NALERT_KINDS && n.severity <= HK_ALERT_CRITICAL);
    check_told(&n);
    hk_alerts_series_of(text, &series);
    hk_pool_wipe(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct hk_store store;
    static sqlite3_stmt *q;
    struct hk_alert_board board;
    struct hk_str rest = {(const char *)data, size};
    bool firing[ROWS + 2 * HK_NALERT_KINDS * 3] = {false};
    if (size > 4096)
        return 0;
    if (q == NULL)
        q = values_prepare(&store, COLUMNS);
    check_text(rest);
    hk_sq_call(&store);
    hk_alert_board_init(&board);
    for (int i = 0; i < ROWS && rest.len > 0; i++)
        read_row(&store, q, &rest, &board);
    int64_t now_ms = since_1970(number_of(&rest));
    for (int i = 0; i < 2; i++) {
        evaluate(&board, now_ms, &rest);
        check_tells(&board, now_ms);
        for (size_t k = 0; k < board.n_tells; k++) {
            size_t at = board.tells[k].alert;
            MUST(at < sizeof firing && !(board.tells[k].kind == HK_NOTICE_FIRING && firing[at]));
            firing[at] = board.tells[k].kind == HK_NOTICE_FIRING;
        }
        now_ms += since_1970(number_of(&rest)) / 2;
    }
    hk_alert_board_fini(&board);
    return 0;
}
