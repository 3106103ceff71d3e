/* SPDX-License-Identifier: Apache-2.0 */
/* The health of a PostgreSQL store: what would slow it down or stop it, told without needing a schema. It looks through a
 * session that is set up as a relay's is, so that what it says of plans holds for relays. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/named.h"
#include "base/parse.h"
#include "base/show.h"
#include "base/str.h"
#include "store/pg/admin.h"
#include "store/pg/stmt.h"

enum {
    HOLDERS_SHOWN = 3
};

/* Columns of HK_PA_SERVER. */
enum {
    S_VERSION,
    S_RECOVERY,
    S_CLOCK_MS,
    S_FSYNC,
    S_FULL_PAGES,
    S_READ_ONLY,
    S_AUTOVACUUM,
    S_MAX,
    S_USED,
    S_ROLE_MAX, /* NULL: no limit */
    S_ROLE_USED,
    S_DB_MAX,
    S_DB_USED,
    S_HIDDEN, /* sessions of others that this role may not look at */
    S_USER,
    S_DATABASE
};

/* Columns of HK_PA_HORIZON. */
enum {
    H_KIND,
    H_NAME,
    H_WHAT,
    H_WHOSE,
    H_STATE,
    H_XIDS,
    H_S
};

/* Columns of HK_PA_WAKE. */
enum {
    W_OUTBOX,
    W_TRIGGER,
    W_FIRES,
    W_MAY,
    W_LISTEN,
    W_LIVE,
    W_TWO_PHASE,
    W_QUEUE
};

struct look {
    struct hk_pg pg;
    const struct hk_pa_limits *limits;
    struct hk_store_health *out;
};

static void note(struct look *l, enum hk_note_level level, const char *about, const char *code,
                 const struct hk_named *values, const char *fmt, ...) HK_PRINTF(6, 7);

static void note(struct look *l, enum hk_note_level level, const char *about, const char *code,
                 const struct hk_named *values, const char *fmt, ...)
{
    if (l->out->n_notes == HK_NOTES_MAX)
        return;
    struct hk_health_note *n = &l->out->notes[l->out->n_notes++];
    va_list ap;
    n->level = level;
    n->code = code;
    hk_named_text(values, n->values, sizeof n->values);
    hk_str_copy(n->about, sizeof n->about, hk_str_of(about));
    va_start(ap, fmt);
    (void)vsnprintf(n->text, sizeof n->text, fmt, ap);
    va_end(ap);
}

static int64_t wall_ms(void)
{
    struct timespec ts = {0};
    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* ---- the server ---- */

static void look_at_clock(struct look *l, int64_t server_ms, int64_t before_ms, int64_t after_ms)
{
    char text[HK_DURATION_TEXT_MAX];
    int64_t off_ms = server_ms < before_ms  ? before_ms - server_ms
                     : server_ms > after_ms ? server_ms - after_ms
                                            : 0;
    hk_format_duration((uint64_t)off_ms, text);
    l->out->clock_ms = after_ms;
    if (off_ms > l->limits->clock_ms)
        note(
            l, HK_NOTE_WARN, "clock", server_ms < before_ms ? "server_clock_behind" : "server_clock_ahead",
            HK_NAMED(hk_named_int("off_ms", off_ms)),
            "the server's clock is %s %s this host's: leases and due times go by the server's, so that nothing is lost, "
            "but signatures carry this host's time; check both clocks (NTP)",
            text, server_ms < before_ms ? "behind" : "ahead of");
    else
        note(l, HK_NOTE_OK, "clock", "server_clock_ok", HK_NAMED_NONE, "agrees with the server's");
}

static void look_at_modes(struct look *l, const PGresult *res)
{
    if (hk_pg_bool(res, 0, S_RECOVERY))
        note(l, HK_NOTE_FAIL, "server", "standby", HK_NAMED_NONE,
             "it is a standby: nothing can be relayed from it; name the primary, or all hosts, in the URL");
    else if (hk_pg_bool(res, 0, S_READ_ONLY))
        note(l, HK_NOTE_FAIL, "server", "read_only", HK_NAMED_NONE,
             "default_transaction_read_only is on: nothing can be relayed until it is off again");
    if (!hk_pg_bool(res, 0, S_FSYNC) || !hk_pg_bool(res, 0, S_FULL_PAGES))
        note(l, HK_NOTE_WARN, "durability", "durability_off",
             HK_NAMED(hk_named_cstr("setting", hk_pg_bool(res, 0, S_FSYNC) ? "full_page_writes" : "fsync")),
             "%s is off: a power cut may lose or damage what was committed; turn it on",
             hk_pg_bool(res, 0, S_FSYNC) ? "full_page_writes" : "fsync");
    if (!hk_pg_bool(res, 0, S_AUTOVACUUM))
        note(
            l, HK_NOTE_WARN, "autovacuum", "autovacuum_off", HK_NAMED_NONE,
            "autovacuum is off: dead rows of the outbox are never removed, and reading gets slower and slower; turn "
            "it on");
}

static void look_at_connections(struct look *l, const PGresult *res)
{
    static const struct {
        int max, used;
        const char *of, *code;
    } limits[] = {{S_MAX, S_USED, "max_connections", "connections_few"},
                  {S_ROLE_MAX, S_ROLE_USED, "the role's CONNECTION LIMIT", "connections_few_of_role"},
                  {S_DB_MAX, S_DB_USED, "the database's CONNECTION LIMIT", "connections_few_of_database"}};

    int64_t least = INT64_MAX;
    const char *of = "", *code = "connections_few";
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        int64_t left = hk_pg_i64(res, 0, limits[i].max) - hk_pg_i64(res, 0, limits[i].used);
        if (hk_pg_null(res, 0, limits[i].max) || left >= least)
            continue;
        least = left < 0 ? 0 : left;
        of = limits[i].of;
        code = limits[i].code;
    }
    if (least < l->limits->connections)
        note(l, HK_NOTE_WARN, "connections", code, HK_NAMED(hk_named_int("n", least)),
             "%" PRId64
             " free (%s): a relay needs one, each command another; raise the limit, or use a pooler",
             least, of);
    else
        note(l, HK_NOTE_OK, "connections", "connections_ok", HK_NAMED(hk_named_int("n", least)),
             "%" PRId64 " free", least);
}

static void look_at_pooler(struct look *l)
{
    if (l->pg.pooled)
        note(
            l, HK_NOTE_WARN, "pooler", "pooler", HK_NAMED_NONE,
            "a pooler stands between: it works, but statements are planned anew each time and settings go with every "
            "transaction, which costs the server time; give relays a direct connection if there is one to spare");
    else
        note(l, HK_NOTE_OK, "pooler", "pooler_none", HK_NAMED_NONE,
             "no pooler noticed: the connection is direct");
}

static void look_at_server(struct look *l)
{
    int64_t before_ms = wall_ms();
    PGresult *res = hk_pg_query(&l->pg, false, HK_PA_SERVER, NULL);
    if (res && PQntuples(res) == 1) {
        snprintf(l->out->engine, sizeof l->out->engine, "PostgreSQL %.36s", PQgetvalue(res, 0, S_VERSION));
        look_at_modes(l, res);
        look_at_pooler(l);
        look_at_connections(l, res);
        look_at_clock(l, hk_pg_i64(res, 0, S_CLOCK_MS), before_ms, wall_ms());
        if (hk_pg_i64(res, 0, S_HIDDEN) > 0)
            note(l, HK_NOTE_WARN, "vacuum", "vacuum_unseen",
                 HK_NAMED(hk_named_int("n", hk_pg_i64(res, 0, S_HIDDEN)),
                          hk_named_cstr("role", PQgetvalue(res, 0, S_USER))),
                 "%" PRId64
                 " sessions of other roles cannot be looked at: GRANT pg_read_all_stats TO %.63s, and this "
                 "tells whether one of them keeps dead rows from being removed",
                 hk_pg_i64(res, 0, S_HIDDEN), PQgetvalue(res, 0, S_USER));
    }
    PQclear(res);
}

/* ---- who holds the vacuum back ---- */

static bool holds_long(const struct look *l, const PGresult *res, int i)
{
    return hk_pg_i64(res, i, H_S) > l->limits->held_s || hk_pg_i64(res, i, H_XIDS) > l->limits->held_xids;
}

static struct hk_str value_of(const PGresult *res, int row, int column)
{
    return hk_str_of(PQgetvalue(res, row, column));
}

static void tell_holder(struct look *l, const PGresult *res, int i)
{
    char age[HK_DURATION_TEXT_MAX], name[HK_SHOW_MAX], what[HK_SHOW_MAX], whose[HK_SHOW_MAX];
    const char *kind = PQgetvalue(res, i, H_KIND), *state = PQgetvalue(res, i, H_STATE);
    int64_t xids = hk_pg_i64(res, i, H_XIDS);
    hk_format_duration((hk_pa_u64(res, i, H_S) * 1000), age);
    hk_show(value_of(res, i, H_NAME), name);
    hk_show(value_of(res, i, H_WHAT), what);
    hk_show(value_of(res, i, H_WHOSE), whose);
    if (strcmp(kind, "session") == 0)
        note(
            l, HK_NOTE_WARN, "vacuum", "vacuum_session",
            HK_NAMED(hk_named_cstr("pid", PQgetvalue(res, i, H_NAME)), hk_named_cstr("application", what),
                     hk_named_cstr("role", whose), hk_named_cstr("state", state),
                     hk_named_int("open_ms", hk_pg_i64(res, i, H_S) * 1000)),
            "session %s (application %s, user %s, %.40s) has kept a transaction open for %s: rows that were deleted "
            "since cannot be removed; end it: SELECT pg_terminate_backend(%s)",
            PQgetvalue(res, i, H_NAME), what, whose, state, age, PQgetvalue(res, i, H_NAME));
    else if (strcmp(kind, "prepared") == 0)
        note(
            l, HK_NOTE_WARN, "vacuum", "vacuum_prepared",
            HK_NAMED(hk_named_cstr("name", name), hk_named_cstr("role", whose),
                     hk_named_int("open_ms", hk_pg_i64(res, i, H_S) * 1000)),
            "prepared transaction %s of %s has been open for %s: rows that were deleted since cannot be removed; "
            "COMMIT PREPARED or ROLLBACK PREPARED it",
            name, whose, age);
    else if (strcmp(kind, "slot") == 0)
        note(l, HK_NOTE_WARN, "vacuum", "vacuum_slot",
             HK_NAMED(hk_named_cstr("name", name), hk_named_cstr("state", state), hk_named_int("n", xids)),
             "replication slot %s (%.20s) holds %" PRId64
             " transactions back: rows that were deleted since cannot be "
             "removed; let its consumer catch up, or drop it: SELECT pg_drop_replication_slot(…)",
             name, state, xids);
    else
        note(l, HK_NOTE_WARN, "vacuum", "vacuum_standby",
             HK_NAMED(hk_named_cstr("name", what), hk_named_cstr("role", whose),
                      hk_named_cstr("pid", PQgetvalue(res, i, H_NAME)), hk_named_int("n", xids)),
             "standby %s (%s, walsender %s) holds %" PRId64
             " transactions back through hot_standby_feedback: end its "
             "long queries, or turn the feedback off",
             what, whose, PQgetvalue(res, i, H_NAME), xids);
}

static void look_at_horizon(struct look *l)
{
    int told = 0;
    PGresult *res = hk_pg_query(&l->pg, false, HK_PA_HORIZON, NULL);
    for (int i = 0; res && i < PQntuples(res) && told < HOLDERS_SHOWN; i++)
        if (holds_long(l, res, i)) {
            tell_holder(l, res, i);
            told++;
        }
    if (res && told == 0)
        note(l, HK_NOTE_OK, "vacuum", "vacuum_ok", HK_NAMED(hk_named_int("for_ms", l->limits->held_s * 1000)),
             "nothing has blocked it for more than %" PRId64 " minutes", l->limits->held_s / 60);
    PQclear(res);
}

/* ---- what a relay needs ---- */

static void look_at_plan(struct look *l)
{
    bool bad = false, index = false;
    PGresult *res = hk_pg_query(&l->pg, false, HK_PA_PLAN, NULL);
    for (int i = 0; res && i < PQntuples(res); i++) {
        const char *line = PQgetvalue(res, i, 0);
        bad |= strstr(line, "Seq Scan") || strstr(line, "Sort") || strstr(line, "Bitmap");
        index |= strstr(line, "Index") != NULL;
    }
    if (res && (bad || !index))
        note(
            l, HK_NOTE_WARN, "planner", "planner_no_index", HK_NAMED_NONE,
            "the planner does not keep to the index although a relay's session asks for it: reading gets slow when the "
            "outbox fills; does something undo enable_seqscan = off?");
    else if (res)
        note(l, HK_NOTE_OK, "planner", l->pg.pooled ? "planner_ok_pooled" : "planner_ok", HK_NAMED_NONE,
             "uses the index, whatever the statistics say%s",
             l->pg.pooled ? " (settings go with each transaction)" : "");
    PQclear(res);
}

static void look_at_rights(struct look *l)
{
    PGresult *res = hk_pg_query(&l->pg, false, HK_PA_RIGHTS, NULL);
    if (res && PQntuples(res) == 1 && !hk_pg_null(res, 0, 0))
        note(
            l, HK_NOTE_WARN, "rights", "rights_missing",
            HK_NAMED(hk_named_cstr("rights", PQgetvalue(res, 0, 0))),
            "this role lacks %.300s: a relay needs them, 'hikyaku init --print-grants' shows how to grant them",
            PQgetvalue(res, 0, 0));
    PQclear(res);
    res = hk_pg_query(&l->pg, false, HK_PA_MAY_WRITE, NULL);
    if (res && PQntuples(res) == 1 && !hk_pg_bool(res, 0, 0))
        note(
            l, HK_NOTE_OK, HK_NOTE_WRITING, "writes_none", HK_NAMED_NONE,
            "this role moves messages and writes none; POST /messages and Cloud Tasks need INSERT on outbox, which "
            "'hikyaku init --print-grants' prints as a comment");
    PQclear(res);
}

/* What others put on our tables: what no relay works with, and what may keep it from taking a row away. */
static void look_at_guards(struct look *l)
{
    PGresult *shape = hk_pg_query(&l->pg, false, HK_PA_SHAPE, NULL);
    if (shape && PQntuples(shape) > 0)
        note(l, HK_NOTE_FAIL, "tables", "tables_altered",
             HK_NAMED(hk_named_cstr("error", PQgetvalue(shape, 0, 0))), "no relay starts: %.400s",
             PQgetvalue(shape, 0, 0));
    PQclear(shape);
    PGresult *res = hk_pg_query(&l->pg, false, HK_PA_GUARDS, NULL);
    char text[300] = "";
    size_t len = 0;
    for (int i = 0; res && i < PQntuples(res) && len < sizeof text; i++) {
        int n = snprintf(text + len, sizeof text - len, "%s%s %s on %s", i ? ", " : "", PQgetvalue(res, i, 0),
                         PQgetvalue(res, i, 1), PQgetvalue(res, i, 2));
        len += n > 0 ? (size_t)n : 0;
    }
    if (len)
        note(
            l, HK_NOTE_WARN, "tables", "tables_guarded", HK_NAMED(hk_named_cstr("objects", text)),
            "others have put something on hikyaku's tables: %s; a row that it does not let go is held, and not "
            "sent again",
            text);
    PQclear(res);
}

static void look_at_stuck(struct look *l)
{
    PGresult *res = hk_pg_query(&l->pg, false, HK_PA_STUCK_COUNT, NULL);
    if (res && PQntuples(res) == 1 && hk_pg_i64(res, 0, 0) > 0)
        note(l, HK_NOTE_FAIL, "stuck rows", "stuck_rows",
             HK_NAMED(hk_named_int("n", hk_pg_i64(res, 0, 0)),
                      hk_named_int("delivered", hk_pg_i64(res, 0, 3)),
                      hk_named_cstr("error", PQgetvalue(res, 0, 2))),
             "%" PRId64 " (%" PRId64
             " of them delivered): the database does not let them go: %.250s; remove the cause, "
             "and relays settle them within 30 s",
             hk_pg_i64(res, 0, 0), hk_pg_i64(res, 0, 3), PQgetvalue(res, 0, 2));
    PQclear(res);
}

#define POLLS "relays poll every 20 to 100 ms, which takes about 0.3 %% of a core when they are idle"

/* How relays learn of new messages, and what it takes for them to be told. */
static void tell_wake(struct look *l, const PGresult *res)
{
    if (!hk_pg_bool(res, 0, W_TRIGGER))
        note(l, HK_NOTE_OK, "wake-up", l->pg.pooled ? "wake_off_pooled" : "wake_off", HK_NAMED_NONE,
             "no NOTIFY: " POLLS "; 'hikyaku init --notify' lets new messages wake them%s",
             l->pg.pooled ? ", but not through a pooler" : "");
    else if (l->pg.pooled)
        note(l, HK_NOTE_WARN, "wake-up", "wake_pooled", HK_NAMED_NONE,
             "there is a trigger, but through a pooler nothing can be listened for: " POLLS
             "; give relays a direct connection, or take it away: 'hikyaku init --no-notify'");
    else if (!hk_pg_bool(res, 0, W_FIRES))
        note(l, HK_NOTE_WARN, "wake-up", "wake_disabled", HK_NAMED_NONE, "its trigger is disabled: " POLLS);
    else if (!hk_pg_bool(res, 0, W_MAY))
        note(
            l, HK_NOTE_WARN, "wake-up", "wake_rights", HK_NAMED_NONE,
            "this role lacks SELECT and UPDATE on the sequence outbox_wake, so that as a relay it would not listen: " POLLS
            "; 'hikyaku init --print-grants --notify' shows how to grant them");
    else
        note(l, HK_NOTE_OK, "wake-up", "wake_on",
             HK_NAMED(hk_named_int("listening", hk_pg_i64(res, 0, W_LISTEN)),
                      hk_named_int("relays", hk_pg_i64(res, 0, W_LIVE))),
             "new messages wake relays that have nothing to do: %" PRId64 " of %" PRId64
             " listen; applications notify at most every 5 ms, and never when all relays are busy",
             hk_pg_i64(res, 0, W_LISTEN), hk_pg_i64(res, 0, W_LIVE));
}

static void look_at_wake(struct look *l)
{
    PGresult *res = hk_pg_query(&l->pg, false, HK_PA_WAKE, NULL);
    if (res && PQntuples(res) == 1) {
        tell_wake(l, res);
        if (hk_pg_bool(res, 0, W_TRIGGER) && hk_pg_bool(res, 0, W_TWO_PHASE))
            note(
                l, HK_NOTE_WARN, "wake-up", "wake_two_phase", HK_NAMED_NONE,
                "max_prepared_transactions is not 0: an application's PREPARE TRANSACTION behind an INSERT is refused "
                "when it is to wake a relay; who prepares says SET hikyaku.notify = off");
        if (hk_pg_bool(res, 0, W_TRIGGER) && hk_pg_i64(res, 0, W_QUEUE) >= 50)
            note(l, HK_NOTE_WARN, "wake-up", "wake_queue",
                 HK_NAMED(hk_named_int("percent", hk_pg_i64(res, 0, W_QUEUE))),
                 "the server's queue of notifications is %" PRId64
                 " %% full, so that nobody is woken: some session listens and has not read for long",
                 hk_pg_i64(res, 0, W_QUEUE));
    }
    PQclear(res);
}

/* Nothing is said of a table without partitions, which is the rule. */
static void look_at_days(struct look *l)
{
    PGresult *res = hk_pg_query(&l->pg, false, HK_PA_SENT_DAYS, NULL);
    if (res && PQntuples(res) == 1 && !hk_pg_bool(res, 0, 2))
        note(
            l, HK_NOTE_WARN, "sent rows", "sent_days_missing",
            HK_NAMED(hk_named_cstr("table", PQgetvalue(res, 0, 4))),
            "outbox_sent has daily partitions, but none for tomorrow: relays make them, and none has done so for "
            "days; run one (%.63s takes what has no day)",
            PQgetvalue(res, 0, 4));
    else if (res && PQntuples(res) == 1 && hk_pg_i64(res, 0, 3) > 0)
        note(l, HK_NOTE_WARN, "sent rows", "sent_days_strays",
             HK_NAMED(hk_named_int("n", hk_pg_i64(res, 0, 1)), hk_named_cstr("table", PQgetvalue(res, 0, 4))),
             "outbox_sent has %" PRId64
             " daily partitions, but there are rows in %.63s, which are deleted one by one: was no relay "
             "running for days, or a clock wrong?",
             hk_pg_i64(res, 0, 1), PQgetvalue(res, 0, 4));
    else if (res && PQntuples(res) == 1)
        note(l, HK_NOTE_OK, "sent rows", "sent_days_ok", HK_NAMED(hk_named_int("n", hk_pg_i64(res, 0, 1))),
             "outbox_sent has %" PRId64 " daily partitions, which are dropped whole", hk_pg_i64(res, 0, 1));
    PQclear(res);
}

/* Schema versions 3 and 4 let everybody act with the owner's rights (SECURITY.md); an owner could do so again. Asked of any
 * version, since the old ones are what is looked for. */
static void look_at_functions(struct look *l)
{
    PGresult *res = hk_pg_query(&l->pg, false, HK_PA_OPEN_FUNCTIONS, NULL);
    if (res && PQntuples(res) == 1 && !hk_pg_null(res, 0, 0))
        note(
            l, HK_NOTE_FAIL, "rights", "rights_open_function",
            HK_NAMED(hk_named_cstr("functions", PQgetvalue(res, 0, 0))),
            "every role can run %.200s with its owner's rights, and so become the owner of these tables: run "
            "'hikyaku init' as the owner, or REVOKE ALL ON FUNCTION … FROM PUBLIC; then read SECURITY.md",
            PQgetvalue(res, 0, 0));
    PQclear(res);
    res = hk_pg_query(&l->pg, false, HK_PA_STRANGE_TRIGGERS, NULL);
    for (int i = 0; res && i < PQntuples(res); i++)
        note(
            l, HK_NOTE_FAIL, "rights", "rights_strange_trigger",
            HK_NAMED(hk_named_cstr("trigger", PQgetvalue(res, i, 0)),
                     hk_named_cstr("table", PQgetvalue(res, i, 1)),
                     hk_named_cstr("owner", PQgetvalue(res, i, 2))),
            "trigger %.63s on %.130s, a table of %.63s, runs a function of hikyaku's: somebody may have used it to act as "
            "the owner; keep it as evidence, drop it, and read SECURITY.md",
            PQgetvalue(res, i, 0), PQgetvalue(res, i, 1), PQgetvalue(res, i, 2));
    PQclear(res);
}

static enum hk_code look_at_schema(struct look *l, struct hk_err *err)
{
    l->out->schema_wanted = hk_pg_schema_wanted();
    l->out->schema = hk_pg_check_schema(&l->pg, &l->out->schema_version, &l->out->schema_error);
    hk_pg_call(&l->pg);
    if (l->out->schema_version > 0)
        look_at_functions(l);
    if (l->out->schema != HK_OK)
        return hk_pg_end(&l->pg, "look at its functions", err); /* that is what there is to tell */
    look_at_plan(l);
    look_at_rights(l);
    look_at_guards(l);
    look_at_stuck(l);
    look_at_days(l);
    look_at_wake(l);
    return hk_pg_end(&l->pg, "look at its tables", err);
}

enum hk_code hk_pa_inspect_with(const char *url, const struct hk_pa_limits *limits,
                                struct hk_store_health *out, struct hk_err *err)
{
    const struct hk_pg_table table = {
        .sql = hk_pa_sql, .count = HK_PA_NSTMTS, .settings = hk_pg_relay_table.settings};
    struct hk_store_health health = {
        .file_bytes = UINT64_MAX, .wal_bytes = UINT64_MAX, .free_bytes = UINT64_MAX};
    struct look l = {.out = &health, .limits = limits};
    enum hk_code rc = hk_pg_open(&l.pg, url, &table, 0, err);
    if (rc != HK_OK)
        return rc;
    hk_str_copy(health.place, sizeof health.place, hk_str_of(l.pg.url.place));
    hk_pg_call(&l.pg);
    look_at_server(&l);
    look_at_horizon(&l);
    rc = hk_pg_end(&l.pg, "look at the server", err);
    if (rc == HK_OK)
        rc = look_at_schema(&l, err);
    hk_pg_close(&l.pg);
    if (rc == HK_OK)
        *out = health;
    return rc;
}

/* Pages are the server's own business: `integrity_ms` is for stores that have none. */
enum hk_code hk_pa_inspect(const char *url, uint64_t integrity_ms, struct hk_store_health *out,
                           struct hk_err *err)
{
    static const struct hk_pa_limits limits = {
        .held_s = 300, .held_xids = 1000000, .connections = 5, .clock_ms = 2000};
    (void)integrity_ms;
    return hk_pa_inspect_with(url, &limits, out, err);
}
