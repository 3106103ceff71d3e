/* SPDX-License-Identifier: Apache-2.0 */
/* Dead letters on PostgreSQL beyond the contract: many at once, roles, names, rows that hold anything, large tables, and
 * letters that are older than the schema. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/str.h"
#include "letters_suite.h"
#include "pg_kind.h"
#include "store/migration.h"
#include "store/pg/letters_stmt.h"

#define NEWEST hk_migrations_newest(hk_migrations_postgres)

#define OPS hk_store_letters_postgres

static struct hk_admin *open_as(const char *user, const char *more, uint64_t busy_ms)
{
    struct hk_admin *admin = NULL;
    struct hk_err err = {0};
    const struct hk_store_options options = {.busy_ms = busy_ms};
    enum hk_code rc = hk_store_admin_postgres.open(pg_url(user, more), &options, &admin, &err);
    NOTE_IF(rc != HK_OK, "open: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    return admin;
}

/* Letters 1 to n, as they lie in the table. */
static void fill(int n)
{
    char sql[700];
    snprintf(
        sql, sizeof sql,
        "INSERT INTO dead_letters (message_id, event_type, destination, reason_code, error_message, attempts, "
        "first_failed_at, last_failed_at, created_at, failure_class, fault, fingerprint, payload) "
        "SELECT 'm' || g, CASE WHEN g %% 20000 = 7 THEN 'Rare' ELSE 'Made' END, 'd' || g %% 5, 'HTTP_500', 'no', 1, "
        "now(), now(), now(), 'transient', 'destination', lpad(to_hex(g %% 9), 16, '0'), 'p' || g "
        "FROM generate_series(1, %d) g",
        n);
    store_kind->sql(sql);
}

static const struct hk_letter_query any = {.statuses = 0}, failed = {.statuses = 1u << HK_LETTER_FAILED};

/* ---- many at once ---- */

enum {
    MANY = 6,
    ROUNDS = 15
};

struct worker {
    pthread_t thread;
    struct hk_admin *admin;
    int number;
    size_t changed;
    enum hk_code rc;
};

/* All of them want all letters, each in another order. */
static void *requeue_all(void *arg)
{
    struct worker *w = arg;
    const struct hk_letters_done *done = NULL;
    struct hk_err err = {0};
    int64_t ids[ROUNDS * 4];
    for (int i = 0; i < ROUNDS * 4; i++)
        ids[i] = (i * 7 + w->number * 11) % (ROUNDS * 4) + 1;
    for (int i = 0; i < ROUNDS && w->rc == HK_OK; i++) {
        const struct hk_letter_act act = {
            .ids = ids + (size_t)4 * (size_t)i, .n = 4, .actor = "ann", .reason = "because"};
        w->rc = OPS.requeue(w->admin, &act, HK_REQUEUE_AUTO, &done, &err);
        w->changed += w->rc == HK_OK ? done->changed : 0;
        if (w->rc == HK_OK)
            w->rc = OPS.remark(w->admin, &act, "note", &done, &err);
    }
    return NULL;
}

static size_t run_all(struct worker *workers, void *(*work)(void *))
{
    size_t changed = 0;
    for (int i = 0; i < MANY; i++) {
        workers[i] = (struct worker){.admin = open_as(NULL, "", 30000), .number = i};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < MANY; i++) {
        pthread_join(workers[i].thread, NULL);
        hk_store_admin_postgres.close(workers[i].admin);
        changed += workers[i].changed;
    }
    return changed;
}

static void what_many_do_at_once_is_one_chain_and_each_letter_goes_once(void **state)
{
    (void)state;
    static struct worker workers[MANY]; /* threads may outlive a failed test */
    fill(ROUNDS * 4);
    assert_int_equal(run_all(workers, requeue_all), ROUNDS * 4);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(workers[i].rc, HK_OK);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_retry"), ROUNDS * 4);
    assert_int_equal(suite_number("SELECT count(DISTINCT letter_id) FROM outbox_retry"), ROUNDS * 4);
    struct hk_admin *admin = admin_open();
    assert_true(letters_verify_audit(admin) > 0);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_audit_of_letters"),
                     ROUNDS * 4 + MANY * ROUNDS * 4);
    admin_ops->close(admin);
}

static int64_t job;

static void *step_often(void *arg)
{
    struct worker *w = arg;
    const struct hk_redrive_jobs *jobs = NULL;
    const struct timespec pause = {.tv_nsec = 1000000};
    struct hk_err err = {0};
    int64_t wake_ms = 1;
    for (int i = 0; i < 20000 && w->rc == HK_OK && (!jobs || jobs->items[0].facts.requeued < 500); i++) {
        w->rc = OPS.redrive_step(w->admin, job, &failed, &wake_ms, &(bool){false}, &err);
        if (w->rc == HK_BUSY) {
            w->changed++;
            w->rc = HK_OK;
        }
        nanosleep(&pause, NULL); /* letters are let go by the time */
        if (w->rc == HK_OK)
            w->rc = OPS.redrive_list(w->admin, job, false, &jobs, &err);
    }
    return NULL;
}

static int64_t start_job(struct hk_admin *admin, double rate_per_s)
{
    const struct hk_redrive_job what = {.filter = hk_str_of("status:failed"),
                                        .pace = {.rate_per_s = rate_per_s},
                                        .actor = hk_str_of("ann"),
                                        .reason = hk_str_of("fixed")};
    struct hk_err err = {0};
    int64_t id = 0;
    assert_int_equal(OPS.redrive_start(admin, &failed, &what, &id, &err), HK_OK);
    return id;
}

/* By how much the requeues that were written down were ever ahead of 400/s and the half second that may come at once. */
#define AHEAD                                                                                                \
    "SELECT ceil(max(a.n - 400 * ((a.at_ms - j.started_ms) / 1000.0 + 0.5))) FROM outbox_redrive j, "        \
    "(SELECT at_ms, row_number() OVER (ORDER BY id) AS n FROM outbox_audit_of_letters WHERE act = 'requeue') a"

static void relays_share_a_job_and_its_rate_without_doing_a_step_twice(void **state)
{
    (void)state;
    static struct worker workers[MANY];
    struct hk_admin *admin = open_as(NULL, "", 0);
    fill(3000);
    job = start_job(admin, 400);
    size_t busy = run_all(workers, step_often);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(workers[i].rc, HK_OK);
    print_message("# busy %zu times\n", busy);
    int64_t requeued = suite_number("SELECT requeued FROM outbox_redrive");
    assert_true(requeued >= 500);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_retry"), requeued);
    assert_int_equal(suite_number("SELECT count(DISTINCT letter_id) FROM outbox_retry"), requeued);
    assert_int_equal(suite_number("SELECT count(*) FROM dead_letters WHERE redrive_id IS NOT NULL"),
                     requeued);
    assert_true(letters_verify_audit(admin) > 1);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_audit_of_letters WHERE act = 'requeue'"),
                     requeued);
    assert_true(suite_number(AHEAD) <= 1);
    admin_ops->close(admin);
}

static bool odd_payload(const void *arg, const struct hk_letter *letter)
{
    (void)arg;
    return (letter->payload.ptr[letter->payload.len - 1] - '0') % 2 == 1;
}

/* A portion holds more letters than a step may take: the rest is the next one's. */
static void what_a_step_leaves_is_for_the_next_one(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    struct hk_err err = {0};
    const struct hk_letter_query odd = {.match = odd_payload};
    int64_t wake_ms = 0;
    fill(9);
    job = start_job(admin, 1);
    for (int i = 1; i <= 5; i++) {
        for (int k = 0; k < 10 && suite_number("SELECT requeued FROM outbox_redrive") < i; k++) {
            assert_int_equal(OPS.redrive_step(admin, job, &odd, &wake_ms, &(bool){false}, &err), HK_OK);
            assert_true(wake_ms > 0);
            suite_clock_ms = wake_ms;
        }
        assert_int_equal(suite_number("SELECT count(*) FROM outbox_retry"), i);
        assert_int_equal(suite_number("SELECT max(letter_id) FROM outbox_retry"), 2 * i - 1);
    }
    admin_ops->close(admin);
}

static void a_job_that_somebody_has_in_hand_is_busy(void **state)
{
    (void)state;
    struct hk_admin *admin = open_as(NULL, "", 0);
    struct hk_err err = {0};
    int64_t wake_ms = 0;
    fill(10);
    job = start_job(admin, 1); /* the first goes at once */
    PGconn *other = pg_connect(NULL);
    pg_exec(other, "BEGIN; SELECT 1 FROM outbox_redrive FOR UPDATE");
    assert_int_equal(OPS.redrive_step(admin, job, &failed, &wake_ms, &(bool){false}, &err), HK_BUSY);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_retry"), 0);
    pg_exec(other, "COMMIT");
    assert_int_equal(OPS.redrive_step(admin, job, &failed, &wake_ms, &(bool){false}, &err), HK_OK);
    assert_true(suite_number("SELECT count(*) FROM outbox_retry") > 0);
    PQfinish(other);
    admin_ops->close(admin);
}

/* Two jobs that take each other's letters: neither waits for the other's row while it has its own. */
static void a_step_waits_for_no_job_that_it_takes_letters_from(void **state)
{
    (void)state;
    struct hk_admin *admin = open_as(NULL, "", 20000);
    struct hk_err err = {0};
    int64_t wake_ms = 0;
    fill(10);
    job = start_job(admin, 1);
    store_kind->sql(
        "INSERT INTO outbox_redrive (id, filter, rate_per_s, ramp_ms, canary, abort_ratio, ids, total, last_id, "
        "started_ms, created_ms, actor, reason) OVERRIDING SYSTEM VALUE "
        "VALUES (1000, 'x', 1, 0, 0, 0, 'auto', 1, 10, 1, 1, 'bob', 'y')");
    store_kind->sql("UPDATE dead_letters SET redrive_id = 1000");
    PGconn *other = pg_connect(NULL);
    pg_exec(other, "BEGIN; SELECT 1 FROM outbox_redrive WHERE id = 1000 FOR UPDATE");
    assert_int_equal(OPS.redrive_step(admin, job, &failed, &wake_ms, &(bool){false}, &err), HK_BUSY);
    assert_non_null(strstr(err.message, "in hand")); /* not that it had waited too long */
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_retry"), 0);
    pg_exec(other, "COMMIT");
    assert_int_equal(OPS.redrive_step(admin, job, &failed, &wake_ms, &(bool){false}, &err), HK_OK);
    int64_t taken = suite_number("SELECT count(*) FROM outbox_retry");
    assert_true(taken > 0);
    assert_int_equal(suite_number("SELECT lost FROM outbox_redrive WHERE id = 1000"), taken);
    /* what retention has taken is nobody's */
    store_kind->sql("DELETE FROM outbox_redrive WHERE id = 1000");
    store_kind->value("SELECT pg_sleep(1.1)");
    assert_int_equal(OPS.redrive_step(admin, job, &failed, &wake_ms, &(bool){false}, &err), HK_OK);
    assert_true(suite_number("SELECT count(*) FROM outbox_retry") > taken);
    PQfinish(other);
    admin_ops->close(admin);
}

static void *step_once(void *arg)
{
    struct worker *w = arg;
    int64_t wake_ms = 0;
    w->rc = OPS.redrive_step(w->admin, job, &failed, &wake_ms, &(bool){false}, NULL);
    return NULL;
}

static void until_somebody_waits_for(PGconn *conn)
{
    char sql[200];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM pg_stat_activity WHERE %d = ANY (pg_blocking_pids(pid))",
             PQbackendPID(conn));
    for (int i = 0; i < 2000 && suite_number(sql) == 0; i++)
        store_kind->value("SELECT pg_sleep(0.005)");
    assert_int_equal(suite_number(sql), 1);
}

static void a_step_that_comes_too_late_changes_nothing(void **state)
{
    (void)state;
    static struct worker w; /* its thread may outlive a failed test */
    struct hk_admin *admin = open_as(NULL, "", 30000);
    fill(10);
    job = start_job(admin, 1);
    PGconn *other = pg_connect(NULL);
    pg_exec(other, "BEGIN; SELECT 1 FROM dead_letters WHERE id = 1 FOR UPDATE");
    w = (struct worker){.admin = admin};
    assert_int_equal(pthread_create(&w.thread, NULL, step_once, &w), 0);
    until_somebody_waits_for(other); /* it has decided, and waits for its letter */
    store_kind->sql("UPDATE outbox_redrive SET steps = steps + 1, cursor_id = 5, requeued = 5");
    pg_exec(other, "COMMIT");
    pthread_join(w.thread, NULL);
    assert_int_equal(w.rc, HK_BUSY);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_retry"), 0);
    assert_int_equal(suite_number("SELECT cursor_id * 10 + requeued FROM outbox_redrive"), 55);
    PQfinish(other);
    admin_ops->close(admin);
}

/* It decided by what it had read, and another one has taken a step since: there may be more to do. */
static void an_end_that_comes_too_late_changes_nothing(void **state)
{
    (void)state;
    static const struct hk_pg_url plain;
    struct hk_admin *admin = open_as(NULL, "", 30000);
    struct hk_buf text;
    char id[24];
    fill(1);
    snprintf(id, sizeof id, "%lld", (long long)start_job(admin, 1));
    store_kind->sql("UPDATE outbox_redrive SET steps = 5");
    hk_buf_init(&text, (size_t)64 * 1024);
    hk_pg_url_names(&plain, hk_pa_sql(HK_PL_JOB_END), &text);
    PGconn *other = pg_connect(NULL);
    for (int now = 0; now <= 1; now++) {
        const char *const args[] = {"1", id, now ? "5" : "4", "done", NULL, "redrive-done"};
        PGresult *res = PQexecParams(other, hk_buf_cstr(&text), 6, NULL, args, NULL, NULL, 0);
        assert_int_equal(PQresultStatus(res), PGRES_TUPLES_OK);
        assert_int_equal(PQntuples(res), now);
        PQclear(res);
        assert_int_equal(suite_number("SELECT count(*) FROM outbox_redrive WHERE status = 'done'"), now);
    }
    PQfinish(other);
    hk_buf_fini(&text);
    admin_ops->close(admin);
}

static void a_letter_that_is_locked_is_waited_for_only_so_long(void **state)
{
    (void)state;
    struct hk_admin *admin = open_as(NULL, "", 50);
    const struct hk_letters_done *done = NULL;
    struct hk_err err = {0};
    const int64_t ids[] = {2, 1};
    const struct hk_letter_act act = {.ids = ids, .n = 2, .actor = "ann", .reason = "because"};
    fill(2);
    PGconn *other = pg_connect(NULL);
    pg_exec(other, "BEGIN; UPDATE dead_letters SET crashes = 1 WHERE id = 1");
    assert_int_equal(OPS.discard(admin, &act, &done, &err), HK_BUSY);
    pg_exec(other, "ROLLBACK");
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_audit"), 0);
    assert_int_equal(OPS.discard(admin, &act, &done, &err), HK_OK);
    assert_int_equal(done->changed, 2);
    PQfinish(other);
    admin_ops->close(admin);
}

/* ---- the trail ---- */

static void the_audit_loses_only_its_oldest_rows(void **state)
{
    (void)state;
    struct hk_admin *admin = open_as(NULL, "", 0);
    PGconn *owner = pg_connect(NULL);
    /* one statement, two INSERTs */
    pg_exec(
        owner,
        "WITH a AS (INSERT INTO outbox_audit (at_ms, actor, act, reason) SELECT g, 'a', 'b', 'ü' "
        "FROM generate_series(1, 3) g), b AS (INSERT INTO outbox_audit (at_ms, actor, act, message_id, destination, "
        "reason, letter_id, redrive_id, before_hash, after_hash, detail) VALUES (7, '', '1:', ',', 'd', 'e', 1, 2, 'f', "
        "'g', '{}')) SELECT 1");
    pg_exec(
        owner,
        "BEGIN; SAVEPOINT s; INSERT INTO outbox_audit (at_ms, actor, act, reason) VALUES (8, 'x', 'x', 'x'); "
        "ROLLBACK TO s; INSERT INTO outbox_audit (at_ms, actor, act, reason) VALUES (9, 'y', 'y', 'y'); COMMIT");
    assert_int_equal(letters_verify_audit(admin), 5);
    static const char *const refused[] = {
        "UPDATE outbox_audit SET reason = 'z'", "UPDATE outbox_audit SET id = DEFAULT WHERE id = 1",
        "DELETE FROM outbox_audit WHERE actor = 'y'", "DELETE FROM outbox_audit WHERE id = 2"};
    for (size_t i = 0; i < COUNT(refused); i++)
        assert_string_equal(pg_refusal(owner, refused[i]), "23001");
    pg_exec(owner, "DELETE FROM outbox_audit WHERE id < 3; DELETE FROM outbox_audit WHERE id < 3");
    assert_int_equal(letters_verify_audit(admin), 4); /* and the row that the first DELETE left */
    PQfinish(owner);
    admin_ops->close(admin);
}

static void retention_cuts_the_audit_at_the_first_row_that_stays(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    struct hk_err err = {0};
    uint32_t deleted = 0;
    struct hk_retention keep = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
                                UINT64_MAX, UINT64_MAX, UINT64_MAX, 1000};
    char sql[300];
    snprintf(sql, sizeof sql,
             "INSERT INTO outbox_audit (at_ms, actor, act, reason) SELECT %lld + x, 'a', 'b', 'c' "
             "FROM unnest(ARRAY[-9000, -8000, 0, -7000]) x",
             (long long)suite_clock_ms);
    store_kind->sql(sql); /* the clock was set back */
    assert_int_equal(store_kind->ops->purge(store, &keep, 100, &deleted, NULL, &err), HK_OK);
    assert_int_equal(deleted, 2);
    assert_int_equal(letters_verify_audit(admin), 3); /* those, and what it says of itself */
    suite_close(store);
    admin_ops->close(admin);
}

/* ---- roles ---- */

static void run_grants(const char *more)
{
    const struct hk_store_roles roles = {.relay = "pl_relay", .viewer = "pl_viewer"};
    struct hk_buf sql;
    struct hk_err err = {0};
    store_kind->sql("DO $$BEGIN CREATE ROLE pl_relay LOGIN; CREATE ROLE pl_viewer LOGIN; "
                    "EXCEPTION WHEN duplicate_object THEN NULL; END$$");
    hk_buf_init(&sql, 1 << 16);
    assert_int_equal(hk_store_postgres.grants(pg_url(NULL, more), &roles, &sql, &err), HK_OK);
    store_kind->sql(hk_buf_cstr(&sql));
    hk_buf_fini(&sql);
}

/* Everything that there is to do, once. What the first refusal is. */
static enum hk_code do_all(struct hk_admin *admin, struct hk_err *err)
{
    const struct hk_letters_done *done = NULL;
    const struct hk_attempt_record attempt = {
        .made = true, .failure_class = HK_CLASS_PERMANENT, .cause = hk_str_of("HTTP_410")};
    uint32_t version = 0;
    int64_t ids[] = {1}, id = 0, wake_ms = 0;
    const struct hk_letter_act act = {.ids = ids, .n = 1, .actor = "ann", .reason = "because"};
    const struct hk_letter_edit edit = {1, 1, hk_str_of("fixed"), "ann", "typo", "edit"};
    const struct hk_redrive_job what = {.filter = hk_str_of("x"), .actor = hk_str_of("ann")};
    enum hk_code rc = OPS.edit(admin, &edit, &version, err);
    if (rc == HK_OK)
        rc = OPS.discard(admin, &act, &done, err);
    if (rc == HK_OK)
        rc = OPS.restore(admin, &act, &done, err);
    if (rc == HK_OK)
        rc = OPS.send_begin(admin, &act, &done, err);
    if (rc == HK_OK)
        rc = OPS.send_end(admin, 1, done->items[0].begun_ms, "ann", &attempt, false, err);
    if (rc == HK_OK)
        rc = OPS.redrive_start(admin, &failed, &what, &id, err);
    if (rc == HK_OK)
        rc = OPS.redrive_step(admin, id, &failed, &wake_ms, err);
    if (rc == HK_OK)
        rc = OPS.redrive_cancel(admin, id, "ann", "enough", err);
    ids[0] = 2;
    if (rc == HK_OK)
        rc = OPS.requeue(admin, &act, HK_REQUEUE_NEW, &done, err);
    ids[0] = 3;
    if (rc == HK_OK)
        rc = OPS.resolve(admin, &act, &done, err);
    if (rc == HK_OK)
        rc = OPS.remark(admin, &act, "note", &done, err);
    return rc;
}

static enum hk_code look_at_all(struct hk_admin *admin)
{
    const struct hk_letters *letters = NULL;
    const struct hk_letter_groups *groups = NULL;
    const struct hk_letter_stats *stats = NULL;
    const struct hk_letter_shown *shown = NULL;
    const struct hk_redrive_jobs *jobs = NULL;
    const struct hk_audit_rows *rows = NULL;
    const struct hk_letter_page page = {.limit = 10, .details = true, .payload_max = 100};
    struct hk_count count;
    struct hk_err err = {0};
    enum hk_code rc = OPS.list(admin, &any, &page, &letters, &err);
    if (rc == HK_OK)
        rc = OPS.count(admin, &failed, &count, &err);
    if (rc == HK_OK)
        rc = OPS.groups(admin, &failed, 10, &groups, &err);
    if (rc == HK_OK)
        rc = OPS.stats(admin, &stats, &err);
    if (rc == HK_OK)
        rc = OPS.show(admin, 1, 100, &shown, &err);
    if (rc == HK_OK)
        rc = OPS.redrive_list(admin, 0, false, &jobs, &err);
    if (rc == HK_OK)
        rc = OPS.audit(admin, &(struct hk_audit_page){.limit = 10, .actor = "ann"}, &rows, &err);
    NOTE_IF(rc != HK_OK, "look: %s\n", err.message);
    return rc;
}

static void printed_grants_are_enough_and_no_more(void **state)
{
    (void)state;
    struct hk_err err = {0};
    fill(5);
    run_grants("");
    struct hk_admin *relay = open_as("pl_relay", "", 0), *viewer = open_as("pl_viewer", "", 0);
    assert_int_equal(do_all(viewer, &err), HK_UNAVAILABLE);
    assert_non_null(strstr(err.message, "--print-grants"));
    enum hk_code rc = do_all(relay, &err);
    NOTE_IF(rc != HK_OK, "%s\n", err.message);
    assert_int_equal(rc, HK_OK);
    assert_int_equal(look_at_all(relay), HK_OK);
    assert_int_equal(look_at_all(viewer), HK_OK);
    letters_verify_audit(viewer);

    PGconn *conn = pg_connect("pl_relay");
    static const char *const refused[] = {
        "UPDATE outbox_meta SET value = 'x' WHERE key = 'audit_head'",
        "UPDATE outbox_audit SET actor = 'bob'",
        "TRUNCATE outbox_audit",
        "ALTER TABLE outbox_audit DISABLE TRIGGER ALL",
        /* the chain's function does not work for tables of others, where its owner's rights would do what they say */
        "CREATE TEMP TABLE mine (id bigint); CREATE TRIGGER t BEFORE INSERT ON mine EXECUTE FUNCTION outbox_audit_chain()",
        "UPDATE dead_letter_versions SET payload = 'forged'",
    };
    for (size_t i = 0; i < COUNT(refused); i++) {
        const char *sqlstate = pg_refusal(conn, refused[i]);
        NOTE_IF(strcmp(sqlstate, "42501") != 0, "%s: %s\n", refused[i], sqlstate);
        assert_string_equal(sqlstate, "42501");
    }
    PQfinish(conn);
    hk_store_admin_postgres.close(relay);
    hk_store_admin_postgres.close(viewer);
    store_kind->sql("DROP OWNED BY pl_relay, pl_viewer; DROP ROLE pl_relay, pl_viewer");
}

static void schema_and_prefix_hold_everywhere(void **state)
{
    (void)state;
    struct hk_store_inited done;
    struct hk_err err = {0};
    const char *more = "&schema=Mixed&prefix=Shop_";
    store_kind->sql("CREATE SCHEMA \"Mixed\"");
    assert_int_equal(hk_store_postgres.init(pg_url(NULL, more), &(struct hk_store_init){0}, &done, &err),
                     HK_OK);
    fill(5);
    store_kind->sql(
        "INSERT INTO \"Mixed\".\"Shop_dead_letters\" OVERRIDING SYSTEM VALUE SELECT * FROM dead_letters; "
        "DELETE FROM dead_letters");
    struct hk_admin *admin = open_as(NULL, more, 0);
    assert_int_equal(do_all(admin, &err), HK_OK);
    assert_int_equal(look_at_all(admin), HK_OK);
    assert_true(letters_verify_audit(admin) > 8);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_audit"), 0);
    assert_string_equal(store_kind->value("SELECT value FROM outbox_meta WHERE key = 'audit_head'"), "");
    hk_store_admin_postgres.close(admin);
}

/* ---- rows ---- */

static bool counts(const void *arg, const struct hk_letter *letter)
{
    size_t *const *seen = arg;
    **seen += letter->payload.len <= letter->payload_bytes;
    return false;
}

static void rows_that_hold_anything_are_shown(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    const struct hk_letter_groups *groups = NULL;
    struct hk_err err = {0};
    size_t seen = 0, *counter = &seen;
    store_kind->sql(
        "INSERT INTO dead_letters (message_id, event_type, destination, reason_code, error_message, attempts, first_failed_at, "
        "last_failed_at, created_at, last_attempt_at, expires_at, requeued_at, status, life, requeues, payload_version, headers, redrive_id) "
        "SELECT repeat('é', 20000), repeat('x', 20000), string_agg(md5(g::text), ''), 'X', repeat(E'\\x1b[2J', 30000), -5, "
        "'-infinity', 'infinity', 'infinity', '-infinity', 'infinity', '4713-01-01 BC', 'odd', -7, -1, 2147483647, 'no json', "
        "-9223372036854775808 FROM generate_series(1, 200) g");
    store_kind->sql(
        "INSERT INTO dead_letters (message_id, event_type, destination, reason_code, attempts, first_failed_at, "
        "last_failed_at, created_at, payload) VALUES ('big', 'T', 'a', 'X', 1, now(), now(), now(), "
        "repeat('é', 5000000))");
    const struct hk_letters *all = letters_list(admin, &any);
    assert_int_equal(all->n, 2);
    assert_true(all->items[0].first_failed_ms == 0 && all->items[0].attempts == 0 &&
                !all->items[0].has_payload);
    assert_true(hk_str_eq(all->items[0].expires_at, hk_str_of("infinity")));
    assert_int_equal(all->items[1].payload_bytes, 10000000);
    assert_int_equal(all->items[1].payload.len, 1000);
    const struct hk_letter_query query = {.match = counts, .match_arg = &counter};
    assert_int_equal(letters_list(admin, &query)->n, 0);
    assert_int_equal(seen, 2);
    assert_int_equal(OPS.groups(admin, &any, 9, &groups, &err), HK_OK);
    assert_true(groups->n == 2 && groups->letters == 2);
    assert_int_equal(look_at_all(admin), HK_OK);
    assert_int_equal(letters_requeue(admin, 1, HK_REQUEUE_AUTO).did,
                     HK_DID_REFUSE); /* of no state that is known */
    assert_int_equal(letters_requeue(admin, 2, HK_REQUEUE_AUTO).did, HK_DID_IT);
    const struct hk_letter_query far = {
        .since_ms = INT64_MIN, .before_ms = INT64_MAX, .first_id = INT64_MIN, .last_id = INT64_MAX};
    assert_int_equal(letters_list(admin, &far)->n, 1);
    admin_ops->close(admin);
}

static void what_is_not_text_is_refused_as_a_payload(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    struct hk_err err = {0};
    uint32_t version = 0;
    fill(1);
    const struct hk_letter_edit bad[] = {{1, 1, {"a\0b", 3}, "ann", "why", "edit"},
                                         {1, 1, {"\xff", 1}, "ann", "why", "edit"}};
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_int_equal(OPS.edit(admin, &bad[i], &version, &err), HK_INVALID);
    assert_int_equal(suite_number("SELECT payload_version FROM dead_letters"), 1);
    admin_ops->close(admin);
}

/* ---- large tables ---- */

static void large_payloads_come_in_portions(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    struct hk_letter_page page = {.limit = 100, .payload_max = (size_t)1 << 20, .oldest_first = true};
    const struct hk_letters *letters = NULL;
    struct hk_err err = {0};
    size_t n = 0, most = 0;
    fill(30);
    store_kind->sql("UPDATE dead_letters SET payload = repeat(md5(id::text), 40000) WHERE id > 5");
    do {
        assert_int_equal(OPS.list(admin, &any, &page, &letters, &err), HK_OK);
        n += letters->n;
        most = letters->n > most ? letters->n : most;
        page.after_id = letters->last_id;
    } while (letters->more);
    assert_int_equal(n, 30);
    assert_in_range(most, 2, 20);
    admin_ops->close(admin);
}

static void a_filter_that_fits_little_ends_in_bounded_time(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    struct hk_err err = {0};
    fill(110000);
    const struct hk_letter_query rare = {.event_type = "Rare*", .statuses = 1u << HK_LETTER_FAILED};
    const struct hk_letter_query by_index = {.event_type = "Rare", .statuses = 1u << HK_LETTER_FAILED};
    for (int way = 0; way < 2; way++) {
        struct hk_letter_page page = {.limit = 10, .oldest_first = way == 1};
        const struct hk_letters *letters = NULL;
        size_t found = 0;
        int calls = 0;
        do {
            assert_int_equal(OPS.list(admin, &rare, &page, &letters, &err), HK_OK);
            found += letters->n;
            page.after_id = letters->last_id;
            calls++;
        } while (letters->more);
        assert_int_equal(found, 6);
        assert_int_equal(calls, 3);
        page.after_id = 0;
        assert_int_equal(OPS.list(admin, &by_index, &page, &letters, &err), HK_OK);
        assert_true(letters->n == 6 && letters->looked < 20 && !letters->more);
    }
    struct hk_count count = {0};
    const struct hk_letter_query typed = {.event_type = "M*", .statuses = 1u << HK_LETTER_FAILED};
    assert_int_equal(OPS.count(admin, &typed, &count, &err), HK_OK);
    assert_true(count.about && count.n > 100000 && count.n < 115000);
    assert_int_equal(OPS.count(admin, &failed, &count, &err), HK_OK);
    assert_true(!count.about && count.n == 110000); /* an index alone is quickly counted */
    admin_ops->close(admin);
}

static long buffers_of(PGconn *conn, const char *sql)
{
    PGresult *res = PQexec(conn, sql);
    NOTE_IF(PQresultStatus(res) != PGRES_TUPLES_OK, "%s\n", PQerrorMessage(conn));
    assert_int_equal(PQresultStatus(res), PGRES_TUPLES_OK);
    long n = -1;
    for (int i = 0; i < PQntuples(res) && n < 0; i++) {
        const char *at = strstr(PQgetvalue(res, i, 0), "shared hit=");
        if (at)
            n = (long)strtod(at + strlen("shared hit="), NULL);
    }
    PQclear(res);
    return n;
}

/* A page costs the same however many letters there are, also with statistics from when there were none. */
static void a_page_reads_no_more_than_it_shows(void **state)
{
    (void)state;

    static const struct {
        enum hk_pl_path path;
        const char *params; /* $4 to $8, $16 */
        const char *redrive;
        const char *correlation, *type; /* $9, $11; NULL = none */
    } cases[] = {
        {HK_PL_BY_ID, "NULL, NULL, NULL, NULL, NULL", "NULL", NULL, NULL},
        {HK_PL_BY_STATUS, "'{failed}', NULL, NULL, NULL, NULL", "NULL", NULL, NULL},
        {HK_PL_BY_STATUS, "'{failed,retrying,resolved}', NULL, NULL, NULL, NULL", "NULL", NULL, NULL},
        {HK_PL_BY_DESTINATION, "'{failed}', 'd3', NULL, NULL, NULL", "NULL", NULL, NULL},
        {HK_PL_BY_REASON, "'{failed}', NULL, 'HTTP_500', NULL, NULL", "NULL", NULL, NULL},
        {HK_PL_BY_GROUP, "NULL, NULL, NULL, '0000000000000004', NULL", "NULL", NULL, NULL},
        {HK_PL_BY_REDRIVE, "NULL, NULL, NULL, NULL, NULL", "7", NULL, NULL},
        {HK_PL_BY_MESSAGE, "NULL, NULL, NULL, NULL, 'm77'", "NULL", NULL, NULL},
        {HK_PL_BY_TYPE, "'{failed}', NULL, NULL, NULL, NULL", "NULL", NULL, "'Order\\_Paid'"},
        {HK_PL_BY_CORRELATION, "'{failed}', NULL, NULL, NULL, NULL", "NULL", "'c-7'", NULL},
    };
    static const struct hk_pg_url plain;
    PGconn *conn = pg_connect(NULL);
    store_kind->sql("ANALYZE dead_letters");
    fill(20000);
    store_kind->sql("UPDATE dead_letters SET redrive_id = 7, status = 'resolved' WHERE id % 3 = 0");
    store_kind->sql(
        "UPDATE dead_letters SET event_type = 'Order_Paid', correlation_id = 'c-7' WHERE id % 1000 = 1");
    for (const char *const *s = hk_pg_admin_table.settings; *s; s += 2) {
        char sql[200];
        snprintf(sql, sizeof sql, "SELECT set_config('%s', '%s', false)", s[0], s[1]);
        pg_exec(conn, sql);
    }
    for (size_t i = 0; i < COUNT(cases); i++)
        for (int way = 0; way < 2; way++) {
            struct hk_buf text;
            char sql[400];
            hk_buf_init(&text, (size_t)64 * 1024);
            (void)hk_buf_adds(&text, "PREPARE p AS ");
            hk_pg_url_names(
                &plain, hk_pa_sql((unsigned)(way ? HK_PL_OLDEST_BY_ID : HK_PL_NEWEST_BY_ID) + cases[i].path),
                &text);
            pg_exec(conn, hk_buf_cstr(&text));
            hk_buf_fini(&text);
            snprintf(
                sql, sizeof sql,
                "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF) EXECUTE p (NULL, 0, 1000000, %s, %s, NULL, %s, NULL, NULL, "
                "NULL, NULL, %s, 11, 11, 0, 1000000, false, NULL, NULL, NULL, NULL, NULL)",
                cases[i].params, cases[i].correlation ? cases[i].correlation : "NULL",
                cases[i].type ? cases[i].type : "NULL", cases[i].redrive);
            long n = buffers_of(conn, sql);
            NOTE_IF(n < 0 || n > 250, "case %zu, way %d: %ld buffers\n", i, way, n);
            assert_in_range(n, 1, 250);
            pg_exec(conn, "DEALLOCATE p");
        }
    PQfinish(conn);
}

/* A letter is found by the id that it was requeued under without a look at all others. */
static void a_requeued_id_is_found_by_its_index(void **state)
{
    (void)state;
    static const struct hk_pg_url plain;
    struct hk_buf text;
    PGconn *conn = pg_connect(NULL);
    fill(20000);
    store_kind->sql("UPDATE dead_letters SET requeued_as = 'r' || id");
    store_kind->sql("VACUUM ANALYZE dead_letters");
    hk_buf_init(&text, (size_t)64 * 1024);
    (void)hk_buf_adds(&text, "PREPARE p AS ");
    hk_pg_url_names(&plain, hk_pa_sql(HK_PL_REQUEUED_AS), &text);
    pg_exec(conn, hk_buf_cstr(&text));
    hk_buf_fini(&text);
    long n = buffers_of(conn, "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF) EXECUTE p ('r77')");
    NOTE_IF(n < 0 || n > 20, "%ld buffers\n", n);
    assert_in_range(n, 1, 20);
    PQfinish(conn);
}

/* ---- migration ---- */

/* The schema as version 1 had it, from its own text. */
static void make_version_1(void)
{
    struct hk_buf sql;
    struct hk_store_inited done;
    struct hk_err err = {0};
    hk_buf_init(&sql, 1 << 20);
    const struct hk_store_init print = {.print = &sql};
    assert_int_equal(hk_store_postgres.init(pg_url(NULL, ""), &print, &done, &err), HK_OK);
    const char *end = strstr(hk_buf_cstr(&sql), "COMMIT;");
    assert_non_null(end);
    assert_non_null(strstr(end, "-- hikyaku, schema version 2"));
    PGconn *owner = pg_connect(NULL);
    char *first = strndup(hk_buf_cstr(&sql), (size_t)(end - hk_buf_cstr(&sql)) + strlen("COMMIT;"));
    assert_non_null(first);
    pg_exec(owner, first);
    free(first);
    PQfinish(owner);
    hk_buf_fini(&sql);
}

static const char old_letters[] =
    "INSERT INTO dead_letters (message_id, event_type, destination, message_key, reason_code, error_message, error_detail, "
    "attempts, first_failed_at, last_failed_at, status, resolution, life, created_at, payload) VALUES "
    "('m1', 'T', 'a', 'k', 'HTTP_422', 'no 1', '{\"cause\":\"HTTP_422\",\"class\":\"permanent\",\"status\":422,\"address\":\"\","
    "\"possibly_delivered\":true}', 3, '2027-01-01', '2027-01-02', 'failed', NULL, 2, '2027-01-02', 'p'), "
    "('m2', 'T', 'a', NULL, 'EXPIRED', NULL, 'no json', 0, '2027-01-01', '2027-01-02', 'resolved', 'sent', 1, '2027-01-02', 'p'); "
    "INSERT INTO dead_letters (message_id, event_type, destination, reason_code, attempts, first_failed_at, last_failed_at, "
    "created_at) SELECT 'o' || g, 'T', 'b', 'X', 1, now(), now(), now() FROM generate_series(1, 2500) g; "
    "INSERT INTO outbox_audit (at_ms, actor, act, reason) VALUES (1, 'ann', 'pause', 'before')";

static void assert_old_letters(struct hk_admin *admin)
{
    char print[HK_FINGERPRINT_MAX];
    const struct hk_letter *l = &letters_show(admin, 1)->letter;
    hk_fingerprint(HK_CLASS_PERMANENT, hk_str_of("HTTP_422"), hk_str_of("a"), hk_str_of("no 1"), print);
    assert_true(hk_str_eq(l->fingerprint, hk_str_of(print)));
    assert_true(hk_str_eq(l->failure_class, hk_str_of("permanent")));
    assert_true(hk_str_eq(l->blame, hk_str_of("destination")));
    assert_true(l->possibly_delivered && l->requeues == 1 && l->life == 2 && l->version == 1);
    l = &letters_show(admin, 2)->letter;
    assert_true(hk_str_eq(l->resolution, hk_str_of("delivered")));
    assert_true(hk_str_eq(l->blame, hk_str_of("pipeline")));
    assert_true(l->fingerprint.len == 16 && l->failure_class.len == 0);
    assert_int_equal(suite_number("SELECT count(*) FROM dead_letters WHERE fingerprint IS NULL"), 0);
}

static void letters_of_version_1_are_taken_along(void **state)
{
    (void)state;
    struct hk_store_inited done = {0};
    struct hk_store *store = NULL;
    struct hk_err err = {0};
    make_version_1();
    store_kind->sql(old_letters);
    assert_int_equal(hk_store_postgres.open(pg_url(NULL, ""), &(struct hk_store_options){0}, &store, &err),
                     HK_NOTFOUND);
    assert_non_null(strstr(err.message, "hikyaku init"));
    for (int i = 0; i < 2; i++)
        assert_int_equal(hk_store_postgres.init(pg_url(NULL, ""), &(struct hk_store_init){0}, &done, &err),
                         HK_OK);
    assert_true(done.from == NEWEST && done.to == NEWEST);
    struct hk_admin *admin = admin_open();
    assert_old_letters(admin);

    /* what was done before the chain began is still there, and the chain begins behind it */
    const struct hk_audit_rows *rows = NULL;
    const struct hk_audit_page page = {.oldest_first = true, .limit = 9};
    assert_int_equal(letters_requeue(admin, 1, HK_REQUEUE_AUTO).did, HK_DID_IT);
    assert_int_equal(OPS.audit(admin, &page, &rows, &err), HK_OK);
    assert_int_equal(rows->n, 2);
    assert_true(rows->items[0].hash.len == 0 && rows->items[1].hash.len == 64);
    assert_true(rows->first_id == rows->items[1].id && rows->first_prev.len == 0);
    admin_ops->close(admin);
}

static int setup_empty(void **state)
{
    (void)state;
    suite_clock_ms = INT64_C(1800000000000);
    return pg_make_database() ? 0 : -1;
}

/* Relays that run on go on, without anybody having to grant anything. */
static void roles_keep_what_they_need(void **state)
{
    (void)state;
    struct hk_store_inited done = {0};
    struct hk_err err = {0};
    make_version_1();
    store_kind->sql(old_letters);
    store_kind->sql(
        "CREATE ROLE pl_relay LOGIN; CREATE ROLE pl_viewer LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO pl_viewer; "
        "GRANT SELECT, INSERT, UPDATE, DELETE ON outbox_relay, outbox_claim, outbox_retry, dead_letters TO pl_relay; "
        "GRANT SELECT, INSERT, DELETE ON outbox_sent, outbox_attempts, outbox_cancelled, outbox_audit TO pl_relay; "
        "GRANT SELECT ON outbox_meta, outbox TO pl_relay");
    assert_int_equal(hk_store_postgres.init(pg_url(NULL, ""), &(struct hk_store_init){0}, &done, &err),
                     HK_OK);
    struct hk_admin *relay = open_as("pl_relay", "", 0), *viewer = open_as("pl_viewer", "", 0);
    assert_int_equal(look_at_all(viewer), HK_OK);
    store_kind->sql("UPDATE dead_letters SET status = 'failed', payload_version = 1 WHERE id IN (1, 2, 3)");
    enum hk_code rc = do_all(relay, &err);
    NOTE_IF(rc != HK_OK, "%s\n", err.message);
    assert_int_equal(rc, HK_OK);
    hk_store_admin_postgres.close(relay);
    hk_store_admin_postgres.close(viewer);
    store_kind->sql("DROP OWNED BY pl_relay, pl_viewer; DROP ROLE pl_relay, pl_viewer");
}

static PGconn *meanwhile;

static bool discard_one(const void *arg, const struct hk_letter *letter)
{
    (void)arg;
    if (letter->id == 2)
        pg_exec(meanwhile, "UPDATE dead_letters SET status = 'discarded' WHERE id = 2");
    return true;
}

/* Somebody settles a letter between a step's look and its write. */
static void a_letter_that_is_not_requeued_after_all_costs_no_token(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    struct hk_err err = {0};
    int64_t wake_ms = 0;
    const struct hk_letter_query open = {.statuses = 1u << HK_LETTER_FAILED, .match = discard_one};
    meanwhile = pg_connect(NULL);
    fill(9);
    job = start_job(admin, 8);
    store_kind->sql("UPDATE outbox_redrive SET tokens = 4, tokens_ms = started_ms");
    assert_int_equal(OPS.redrive_step(admin, job, &open, &wake_ms, &(bool){false}, &err), HK_OK);
    assert_int_equal(suite_number("SELECT requeued FROM outbox_redrive"), 3);
    assert_int_equal(suite_number("SELECT tokens::bigint FROM outbox_redrive"), 1);
    PQfinish(meanwhile);
    admin_ops->close(admin);
}

/* As SQLite's: what lies behind max_payload is not matched, so that the server need not read it, either. */
static void of_a_large_payload_only_the_beginning_is_searched(void **state)
{
    (void)state;
    size_t seen = 0, *counter = &seen;
    fill(2);
    store_kind->sql("UPDATE dead_letters SET payload = CASE id WHEN 1 THEN repeat('x', 3000000) || 'needle' "
                    "ELSE 'Needle' || repeat('x', 3000000) END");
    struct hk_admin *admin = admin_open();
    const struct hk_letter_query queries[] = {
        {.match = counts, .match_arg = &counter, .sieve = {.text = "needle", .text_escapes = "needle"}},
        {.match = counts, .match_arg = &counter, .sieve = {.value = "Needle", .value_escapes = "Needle"}}};
    for (size_t i = 0; i < COUNT(queries); i++) {
        assert_int_equal(letters_list(admin, &queries[i])->n, 0);
        assert_int_equal(seen, i + 1); /* the second letter */
    }
    admin_ops->close(admin);
}

/* A gigabyte takes longer than any other statement may. */
static void a_large_payload_is_requeued_however_long_it_takes(void **state)
{
    (void)state;
    store_kind->sql(
        "CREATE FUNCTION hurried() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "IF current_setting('statement_timeout') <> '0' THEN RAISE 'hurried'; END IF; RETURN NEW; END $$; "
        "CREATE TRIGGER hurried BEFORE INSERT ON outbox_retry FOR EACH ROW EXECUTE FUNCTION hurried()");
    fill(1);
    struct hk_admin *admin = open_as("postgres", "", 1000);
    assert_int_equal(letters_requeue(admin, 1, HK_REQUEUE_AUTO).did, HK_DID_IT);
    hk_store_admin_postgres.close(admin);
}

int main(void)
{
#define TEST(f)  cmocka_unit_test_setup_teardown(f, suite_setup, suite_teardown)
#define EMPTY(f) cmocka_unit_test_setup_teardown(f, setup_empty, suite_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_letter_that_is_not_requeued_after_all_costs_no_token),
        TEST(what_many_do_at_once_is_one_chain_and_each_letter_goes_once),
        TEST(relays_share_a_job_and_its_rate_without_doing_a_step_twice),
        TEST(what_a_step_leaves_is_for_the_next_one),
        TEST(a_job_that_somebody_has_in_hand_is_busy),
        TEST(a_step_waits_for_no_job_that_it_takes_letters_from),
        TEST(a_step_that_comes_too_late_changes_nothing),
        TEST(an_end_that_comes_too_late_changes_nothing),
        TEST(a_letter_that_is_locked_is_waited_for_only_so_long),
        TEST(the_audit_loses_only_its_oldest_rows),
        TEST(retention_cuts_the_audit_at_the_first_row_that_stays),
        TEST(printed_grants_are_enough_and_no_more),
        TEST(schema_and_prefix_hold_everywhere),
        TEST(rows_that_hold_anything_are_shown),
        TEST(what_is_not_text_is_refused_as_a_payload),
        TEST(large_payloads_come_in_portions),
        TEST(of_a_large_payload_only_the_beginning_is_searched),
        TEST(a_large_payload_is_requeued_however_long_it_takes),
        TEST(a_filter_that_fits_little_ends_in_bounded_time),
        TEST(a_page_reads_no_more_than_it_shows),
        TEST(a_requeued_id_is_found_by_its_index),
        EMPTY(letters_of_version_1_are_taken_along),
        EMPTY(roles_keep_what_they_need),
    };
    const int *ended_early = pg_server_start();
    if (ended_early)
        return *ended_early;
    store_kind = &pg_kind;
    admin_ops = &hk_store_admin_postgres;
    letters_ops = &OPS;
    return cmocka_run_group_tests_name("dead letters on PostgreSQL", tests, NULL, NULL);
}
