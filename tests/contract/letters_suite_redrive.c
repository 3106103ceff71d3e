/* SPDX-License-Identifier: Apache-2.0 */
/* Redrive as a job: started, stepped, cancelled, and what it counts. What a step decides is core/redrive.c's. */
#include <stdlib.h>

#include <hikyaku/alloc.h>

#include "base/str.h"
#include "letters_suite_impl.h"

static const struct hk_letter_query open_letters = {.statuses = 1u << HK_LETTER_FAILED};

static int64_t start_as(struct hk_admin *admin, const char *filter, const struct hk_letter_query *query,
                        struct hk_redrive_pace pace)
{
    const struct hk_redrive_job job = {.filter = hk_str_of(filter),
                                       .pace = pace,
                                       .ids = HK_REQUEUE_AUTO,
                                       .actor = hk_str_of("ann"),
                                       .reason = hk_str_of("fixed")};
    struct hk_err err = {0};
    int64_t id = 0;
    enum hk_code rc = letters_ops->redrive_start(admin, query, &job, &id, &err);
    NOTE_IF(rc != HK_OK, "start: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    assert_true(id > 0);
    return id;
}

static int64_t start(struct hk_admin *admin, const struct hk_letter_query *query, struct hk_redrive_pace pace)
{
    return start_as(admin, "destination:a", query, pace);
}

static int64_t step(struct hk_admin *admin, int64_t id, const struct hk_letter_query *query)
{
    struct hk_err err = {0};
    int64_t wake_ms = -1;
    enum hk_code rc = letters_ops->redrive_step(admin, id, query, &wake_ms, &(bool){false}, &err);
    NOTE_IF(rc != HK_OK, "step: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    assert_true(wake_ms == 0 || wake_ms >= suite_clock_ms);
    return wake_ms;
}

/* Steps until `n` letters were requeued in all, as time allows. */
static void step_to(struct hk_admin *admin, int64_t id, const struct hk_letter_query *query, int n)
{
    for (int i = 0; i < 200 && suite_number("SELECT requeued FROM outbox_redrive") < n; i++) {
        int64_t wake_ms = step(admin, id, query);
        assert_true(wake_ms > 0);
        suite_clock_ms = wake_ms;
    }
    assert_number("requeued FROM outbox_redrive", n);
}

static struct hk_redrive_job job_of(struct hk_admin *admin, int64_t id)
{
    const struct hk_redrive_jobs *jobs = NULL;
    struct hk_err err = {0};
    assert_int_equal(letters_ops->redrive_list(admin, id, false, &jobs, &err), HK_OK);
    assert_int_equal(jobs->n, 1);
    return jobs->items[0];
}

/* Waits until the job says that it has ended. */
static void run_out(struct hk_admin *admin, int64_t id, const struct hk_letter_query *query)
{
    int64_t wake_ms = 1;
    for (int i = 0; i < 200 && wake_ms; i++) {
        wake_ms = step(admin, id, query);
        if (wake_ms)
            suite_clock_ms = wake_ms;
    }
    assert_int_equal(wake_ms, 0);
}

static void a_job_is_what_was_asked_for(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    const struct hk_redrive_jobs *jobs = NULL;
    struct hk_err err = {0};
    letters_fill(store, suite_acquire(store), 3, NULL);
    letters_act(letters_ops->discard, admin, 1);
    int64_t id = start(
        admin, &open_letters,
        (struct hk_redrive_pace){.rate_per_s = 12.5, .ramp_ms = 60000, .canary = 1, .abort_ratio = 0.2});
    struct hk_redrive_job job = job_of(admin, id);
    assert_int_equal(job.id, id);
    assert_int_equal(job.status, HK_REDRIVE_RUNNING);
    assert_text(job.filter, "destination:a");
    assert_true(job.pace.rate_per_s == 12.5 && job.pace.ramp_ms == 60000 && job.pace.canary == 1 &&
                job.pace.abort_ratio == 0.2);
    assert_int_equal(job.ids, HK_REQUEUE_AUTO);
    assert_int_equal(job.last_id, 3);
    assert_int_equal(job.cursor_id, 0);
    assert_int_equal(job.facts.total, 2);
    assert_int_equal(job.facts.requeued, 0);
    assert_text(job.actor, "ann");
    assert_text(job.reason, "fixed");
    assert_true(job.created_ms == suite_clock_ms && job.ended_ms == 0);
    assert_text(job.ending, "");
    assert_value("act FROM outbox_audit ORDER BY id DESC LIMIT 1", "redrive-start");
    assert_number("redrive_id FROM outbox_audit ORDER BY id DESC LIMIT 1", id);
    int64_t other =
        start_as(admin, "status:any", &(struct hk_letter_query){.statuses = 0}, (struct hk_redrive_pace){0});
    assert_true(other > id);
    assert_int_equal(job_of(admin, other).facts.total, 2); /* whatever it asks for: what is open */
    assert_int_equal(letters_ops->redrive_cancel(admin, id, "bob", "wrong one", &err), HK_OK);
    assert_int_equal(letters_ops->redrive_cancel(admin, id, "bob", "wrong one", &err), HK_CONFLICT);
    assert_int_equal(letters_ops->redrive_cancel(admin, 99, "bob", "x", &err), HK_NOTFOUND);
    assert_int_equal(letters_ops->redrive_list(admin, 0, false, &jobs, &err), HK_OK);
    assert_int_equal(jobs->n, 2);
    assert_true(jobs->items[0].id == other && jobs->items[1].id == id); /* newest first */
    assert_int_equal(jobs->items[1].status, HK_REDRIVE_CANCELLED);
    assert_text(jobs->items[1].ending, "bob: wrong one");
    assert_int_equal(jobs->items[1].ended_ms, suite_clock_ms);
    assert_int_equal(jobs->now_ms, suite_clock_ms);
    assert_int_equal(letters_ops->redrive_list(admin, 0, true, &jobs, &err), HK_OK);
    assert_true(jobs->n == 1 && jobs->items[0].id == other);
    assert_value("act || actor FROM outbox_audit ORDER BY id DESC LIMIT 1", "redrive-cancelbob");
    assert_int_equal(step(admin, id, &open_letters), 0); /* it has ended */
    assert_rows("outbox_retry", 0);
    int64_t wake_ms = 0;
    assert_int_equal(letters_ops->redrive_step(admin, 99, &open_letters, &wake_ms, &(bool){false}, &err),
                     HK_NOTFOUND);
    assert_int_equal(letters_verify_audit(admin), 4);
    suite_close(store);
    admin_ops->close(admin);
}

/* A double click, or a command that was typed again. */
static void a_second_job_of_the_same_filter_is_refused_while_the_first_runs(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    struct hk_err err = {0};
    letters_fill(store, suite_acquire(store), 2, NULL);
    int64_t first = start(admin, &open_letters, (struct hk_redrive_pace){.rate_per_s = 1}), id = -1;
    const struct hk_redrive_job job = {.filter = hk_str_of("destination:a"),
                                       .facts = {.total = 77},
                                       .actor = hk_str_of("bob"),
                                       .reason = hk_str_of("me too")};
    char said[64];
    snprintf(said, sizeof said, "redrive %lld ", (long long)first);
    assert_int_equal(letters_ops->redrive_start(admin, &open_letters, &job, &id, &err), HK_CONFLICT);
    assert_non_null(strstr(err.message, said));
    assert_int_equal(id, -1);
    assert_rows("outbox_redrive", 1);
    assert_rows("outbox_audit", 1);
    assert_int_equal(letters_ops->redrive_cancel(admin, first, "bob", "mine", &err), HK_OK);
    assert_int_equal(letters_ops->redrive_start(admin, &open_letters, &job, &id, &err), HK_OK);
    assert_int_equal(job_of(admin, id).facts.total, 77); /* the caller has counted */
    letters_verify_audit(admin);
    suite_close(store);
    admin_ops->close(admin);
}

/* Only open letters are requeued; a filter that means others means none. */
static void a_job_for_letters_that_are_not_open_requeues_nothing(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    letters_fill(store, suite_acquire(store), 3, NULL);
    letters_act(letters_ops->discard, admin, 1);
    const struct hk_letter_query discarded = {.statuses = 1u << HK_LETTER_DISCARDED};
    int64_t id = start(admin, &discarded, (struct hk_redrive_pace){.rate_per_s = 1000});
    assert_int_equal(job_of(admin, id).facts.total, 0);
    run_out(admin, id, &discarded);
    assert_rows("outbox_retry", 0);
    assert_int_equal(job_of(admin, id).status, HK_REDRIVE_DONE);
    suite_close(store);
    admin_ops->close(admin);
}

struct blind {
    struct hk_err unsure;
    int64_t at; /* the letter that it cannot look into; 0: none */
};

static bool looks(const void *arg, const struct hk_letter *letter)
{
    struct blind *const *b = arg;
    if (letter->id != (*b)->at)
        return true;
    (void)hk_err_set(&(*b)->unsure, HK_UNAVAILABLE, "no key");
    return false;
}

/* Going on would leave out a letter that another relay can look into. */
static void a_job_does_not_go_past_a_letter_that_nobody_looked_into(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    struct blind blind = {.at = 3}, *arg = &blind;
    const struct hk_letter_query query = {
        .statuses = 1u << HK_LETTER_FAILED, .match = looks, .match_arg = &arg, .unsure = &blind.unsure};
    letters_fill(store, suite_acquire(store), 4, NULL);
    int64_t id = start(admin, &query, (struct hk_redrive_pace){.rate_per_s = 1000});
    blind.unsure.code = HK_OK;
    for (int i = 0; i < 3; i++) {
        int64_t wake_ms = step(admin, id, &query);
        for (int k = 0; k < 100 && blind.unsure.code == HK_OK; k++) { /* first the rate lets it */
            suite_clock_ms = wake_ms;
            wake_ms = step(admin, id, &query);
        }
        assert_int_equal(blind.unsure.code, HK_UNAVAILABLE);
        assert_true(wake_ms >= suite_clock_ms + HK_REDRIVE_UNSURE_MS);
        assert_number("requeued + cursor_id FROM outbox_redrive", 0);
        assert_rows("outbox_retry", 0);
        suite_clock_ms = wake_ms;
        blind.unsure.code = HK_OK;
    }
    blind.at = 0;
    step_to(admin, id, &query, 4);
    assert_int_equal(job_of(admin, id).status, HK_REDRIVE_RUNNING);
    assert_rows("outbox_retry", 4);
    letters_verify_audit(admin);
    suite_close(store);
    admin_ops->close(admin);
}

static void a_job_requeues_what_fits_and_nothing_that_came_later(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    int64_t lane = suite_acquire(store);
    letters_fill(store, lane, 6, "k");
    store_kind->sql("UPDATE dead_letters SET reason_code = 'EXPIRED' WHERE id = 4");
    letters_act(letters_ops->send_begin, admin, 2);
    const struct hk_letter_query query = {.statuses = 1u << HK_LETTER_FAILED, .reason = "HTTP_500"};
    int64_t id = start(admin, &query, (struct hk_redrive_pace){.rate_per_s = 1000});
    letters_fill(store, lane, 1, "k"); /* letter 7 */
    step_to(admin, id, &query, 4);     /* 1, 3, 5, 6 */
    assert_rows("outbox_retry", 4);
    assert_true(letters_retry_of(1) < letters_retry_of(3) && letters_retry_of(3) < letters_retry_of(5) &&
                letters_retry_of(5) < letters_retry_of(6));
    assert_rows("dead_letters WHERE redrive_id IS NOT NULL AND status = 'retrying' AND requeues = 1", 4);
    struct hk_redrive_job job = job_of(admin, id);
    assert_int_equal(job.facts.requeued, 4);
    assert_int_equal(job.facts.resolved + job.facts.failed + job.facts.struggling, 0);
    int64_t row = letters_retry_of(1);
    letters_try_again(store, lane, row, HK_SETTLE_RETRY);
    assert_int_equal(job_of(admin, id).facts.struggling, 1);
    suite_clock_ms += 5000;
    letters_try_again(store, lane, row, HK_SETTLE_SENT);
    letters_try_again(store, lane, letters_retry_of(3), HK_SETTLE_DEAD);
    job = job_of(admin, id);
    assert_true(job.facts.resolved == 1 && job.facts.failed == 1 && job.facts.struggling == 0);
    assert_int_equal(job.status, HK_REDRIVE_RUNNING);
    letters_try_again(store, lane, letters_retry_of(5), HK_SETTLE_SENT);
    letters_try_again(store, lane, letters_retry_of(6), HK_SETTLE_SENT);
    run_out(admin, id, &query);
    job = job_of(admin, id);
    assert_int_equal(job.status, HK_REDRIVE_DONE);
    assert_true(job.facts.exhausted && job.ended_ms > 0 && job.cursor_id >= 6);
    assert_value("status FROM dead_letters WHERE id = 3", "failed"); /* once only */
    assert_value("status FROM dead_letters WHERE id = 7", "failed");
    assert_int_equal(letters_list(admin, &(struct hk_letter_query){.redrive = id})->n, 4);
    assert_value("act || actor FROM outbox_audit ORDER BY id DESC LIMIT 1", "redrive-doneann");
    assert_rows("outbox_audit_of_letters WHERE act = 'requeue' AND actor = 'ann' AND reason = 'fixed' "
                "AND redrive_id IS NOT NULL AND act_id = "
                "(SELECT id FROM outbox_audit WHERE act = 'redrive-start')",
                4);
    assert_value("substr(detail, 1, 7) FROM outbox_audit WHERE act = 'requeue' LIMIT 1", "{\"act\":");
    assert_rows("outbox_audit WHERE act = 'redrive-start' AND detail LIKE '%\"filter\":%'", 1);
    assert_true(letters_verify_audit(admin) <= 7); /* one for each step at the most */
    suite_close(store);
    admin_ops->close(admin);
}

static void a_canary_that_fails_again_ends_the_job(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    int64_t lane = suite_acquire(store);
    letters_fill(store, lane, 5, NULL);
    int64_t id = start(admin, &open_letters,
                       (struct hk_redrive_pace){.rate_per_s = 1000, .canary = 1, .abort_ratio = 0.2});
    step_to(admin, id, &open_letters, 1);
    for (int i = 0; i < 5; i++)
        suite_clock_ms = step(admin, id, &open_letters);
    assert_rows("outbox_retry", 1); /* the rest waits */
    letters_try_again(store, lane, letters_retry_of(1), HK_SETTLE_DEAD);
    assert_int_equal(step(admin, id, &open_letters), 0);
    struct hk_redrive_job job = job_of(admin, id);
    assert_int_equal(job.status, HK_REDRIVE_ABORTED);
    assert_true(job.ending.len > 5 && job.ended_ms == suite_clock_ms);
    assert_value("act FROM outbox_audit ORDER BY id DESC LIMIT 1", "redrive-aborted");
    assert_rows("dead_letters WHERE status = 'failed'", 5);
    assert_int_equal(letters_verify_audit(admin), 3);
    suite_close(store);
    admin_ops->close(admin);
}

/* What died again and was requeued by a second job has not arrived by the first. */
static void a_letter_that_another_job_takes_has_failed_in_the_first(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    int64_t lane = suite_acquire(store);
    letters_fill(store, lane, 2, NULL);
    int64_t first = start(admin, &open_letters, (struct hk_redrive_pace){.rate_per_s = 1000});
    step_to(admin, first, &open_letters, 2);
    letters_try_again(store, lane, letters_retry_of(1), HK_SETTLE_DEAD);
    letters_try_again(store, lane, letters_retry_of(2), HK_SETTLE_SENT);
    int64_t second =
        start_as(admin, "type:Made", &open_letters, (struct hk_redrive_pace){.rate_per_s = 1000});
    for (int i = 0; i < 20 && job_of(admin, second).facts.requeued == 0; i++)
        suite_clock_ms = step(admin, second, &open_letters);
    assert_int_equal(job_of(admin, second).facts.requeued, 1);
    struct hk_redrive_job job = job_of(admin, first);
    assert_true(job.facts.failed == 1 && job.facts.resolved == 1);
    letters_try_again(store, lane, letters_retry_of(1), HK_SETTLE_SENT);
    job = job_of(admin, first);
    assert_true(job.facts.failed == 1 && job.facts.resolved == 1);
    job = job_of(admin, second);
    assert_true(job.facts.failed == 0 && job.facts.resolved == 1);
    suite_close(store);
    admin_ops->close(admin);
}

/* What became of it in the job is not undone by a person who tries it once more. */
static void a_letter_that_a_person_requeues_stays_with_its_job(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    int64_t lane = suite_acquire(store), id = 1;
    letters_fill(store, lane, 2, NULL);
    int64_t job = start(admin, &open_letters, (struct hk_redrive_pace){.rate_per_s = 1000});
    step_to(admin, job, &open_letters, 2);
    letters_try_again(store, lane, letters_retry_of(1), HK_SETTLE_DEAD);
    const struct hk_letter_act act = {.ids = &id, .n = 1, .actor = "ann", .reason = "once more"};
    const struct hk_letters_done *done = NULL;
    assert_int_equal(letters_ops->requeue(admin, &act, HK_REQUEUE_AUTO, &done, NULL), HK_OK);
    letters_try_again(store, lane, letters_retry_of(1), HK_SETTLE_DEAD);
    assert_int_equal(job_of(admin, job).facts.failed, 1);
    assert_int_equal(job_of(admin, job).facts.resolved, 0);
    suite_close(store);
    admin_ops->close(admin);
}

static void a_letter_that_is_discarded_has_not_arrived(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    int64_t lane = suite_acquire(store);
    letters_fill(store, lane, 2, NULL);
    int64_t job = start(admin, &open_letters, (struct hk_redrive_pace){.rate_per_s = 1000});
    step_to(admin, job, &open_letters, 2);
    letters_try_again(store, lane, letters_retry_of(1), HK_SETTLE_DEAD);
    assert_int_equal(letters_act(letters_ops->discard, admin, 1).did, HK_DID_IT);
    assert_int_equal(job_of(admin, job).facts.failed, 1);
    assert_int_equal(job_of(admin, job).facts.resolved, 0);
    suite_close(store);
    admin_ops->close(admin);
}

static bool even_payload(const void *arg, const struct hk_letter *letter)
{
    (void)arg;
    return (letter->payload.ptr[letter->payload.len - 1] - '0') % 2 == 0;
}

static void what_only_the_payload_tells_is_redriven_too(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    letters_fill(store, suite_acquire(store), 6, NULL);
    const struct hk_letter_query query = {.statuses = 1u << HK_LETTER_FAILED, .match = even_payload};
    int64_t id = start(admin, &query, (struct hk_redrive_pace){.rate_per_s = 1000});
    assert_int_equal(job_of(admin, id).facts.total, 3);
    step_to(admin, id, &query, 3);
    assert_rows("dead_letters WHERE status = 'retrying' AND id IN (2, 4, 6)", 3);
    suite_close(store);
    admin_ops->close(admin);
}

/* The row is all that is known of it. */
static void another_process_goes_on_where_the_first_one_stopped(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    letters_fill(store, suite_acquire(store), 30, NULL);
    int64_t id = start(admin, &open_letters, (struct hk_redrive_pace){.rate_per_s = 10});
    int64_t began_ms = suite_clock_ms;
    for (int n = 1; n <= 30; n++) {
        step_to(admin, id, &open_letters, (int)suite_number("SELECT requeued FROM outbox_redrive"));
        admin_ops->close(admin);
        admin = admin_open();
        int64_t wake_ms = step(admin, id, &open_letters);
        int64_t requeued = suite_number("SELECT requeued FROM outbox_redrive");
        assert_true((double)requeued <= 10.0 * ((double)(suite_clock_ms - began_ms) / 1000 + 0.5) + 1);
        suite_clock_ms = wake_ms;
    }
    assert_number("count(*) FROM outbox_retry", suite_number("SELECT requeued FROM outbox_redrive"));
    assert_number("count(DISTINCT letter_id) FROM outbox_retry",
                  suite_number("SELECT requeued FROM outbox_redrive"));
    suite_close(store);
    admin_ops->close(admin);
}

/* What is requeued into a pause goes out all at once when that ends. */
static void a_job_waits_at_a_letter_whose_destination_is_paused(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    struct hk_err err = {0};
    bool changed = false;
    letters_fill(store, suite_acquire(store), 30, NULL);
    store_kind->sql("UPDATE dead_letters SET destination = 'b' WHERE id > 2");
    assert_int_equal(admin_ops->pause(admin, "b", true, "ann", "works", &changed, &err), HK_OK);
    int64_t id = start(admin, &open_letters, (struct hk_redrive_pace){.rate_per_s = 10});
    step_to(admin, id, &open_letters, 2);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(step(admin, id, &open_letters), suite_clock_ms + HK_REDRIVE_HELD_MS);
        suite_clock_ms += 60000;
    }
    struct hk_redrive_job job = job_of(admin, id);
    assert_text(job.held, "b");
    assert_int_equal(job.status, HK_REDRIVE_RUNNING);
    assert_number("count(*) FROM outbox_retry", 2);
    assert_int_equal(admin_ops->pause(admin, "b", false, "ann", "done", &changed, &err), HK_OK);
    int64_t resumed_ms = suite_clock_ms;
    while (suite_clock_ms < resumed_ms + 1000) {
        int64_t wake_ms = step(admin, id, &open_letters);
        suite_clock_ms = wake_ms > suite_clock_ms ? wake_ms : suite_clock_ms + 10;
    }
    assert_text(job_of(admin, id).held, "");
    assert_in_range(suite_number("SELECT count(*) FROM outbox_retry"), 2 + 5,
                    2 + 15); /* rate * (1 s + 0.5 s) */
    suite_close(store);
    admin_ops->close(admin);
}

static void an_empty_job_is_done_at_once(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    int64_t id = start(admin, &open_letters, (struct hk_redrive_pace){.canary = 1});
    run_out(admin, id, &open_letters);
    assert_int_equal(job_of(admin, id).status, HK_REDRIVE_DONE);
    admin_ops->close(admin);
}

static void ended_jobs_go_with_what_they_resolved(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    struct hk_err err = {0};
    uint32_t deleted = 0;
    struct hk_retention keep = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
                                UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    letters_fill(store, suite_acquire(store), 1, NULL);
    int64_t id = start(admin, &open_letters, (struct hk_redrive_pace){0});
    start_as(admin, "type:Made", &open_letters, (struct hk_redrive_pace){0});
    assert_int_equal(letters_ops->redrive_cancel(admin, id, "ann", "x", &err), HK_OK);
    suite_clock_ms += 10000;
    keep.resolved_ms = 20000;
    assert_int_equal(store_kind->ops->purge(store, &keep, 100, &deleted, NULL, &err), HK_OK);
    assert_rows("outbox_redrive", 2);
    keep.resolved_ms = 5000;
    assert_int_equal(store_kind->ops->purge(store, &keep, 100, &deleted, NULL, &err), HK_OK);
    assert_rows("outbox_redrive", 1);
    assert_value("status FROM outbox_redrive", "running");
    suite_close(store);
    admin_ops->close(admin);
}

/* ---- no memory ---- */

static long allowed; /* allocations before the failing one; -1 = no limit */
static bool for_ever;

static bool refuse(void)
{
    if (allowed < 0)
        return false;
    if (allowed > 0) {
        allowed--;
        return false;
    }
    if (!for_ever)
        allowed = -1;
    return true;
}

static void *choosy_resize(void *arg, void *ptr, size_t bytes)
{
    (void)arg;
    return refuse() ? NULL : realloc(ptr, bytes);
}

static void choosy_release(void *arg, void *ptr)
{
    (void)arg;
    free(ptr);
}

static bool matches_all(const void *arg, const struct hk_letter *letter)
{
    (void)arg;
    return letter->id > 0;
}

struct results {
    const struct hk_letters *letters;
    const struct hk_letter_groups *groups;
    const struct hk_letter_stats *stats;
    const struct hk_letter_shown *shown;
    const struct hk_letters_done *done;
    const struct hk_redrive_jobs *jobs;
    const struct hk_audit_rows *rows;
    struct hk_count count;
    int64_t id, wake_ms;
    uint32_t version;
    struct hk_err err;
};

static enum hk_code look(struct hk_admin *admin, struct results *r)
{
    const struct hk_letter_query query = {.match = matches_all};
    const struct hk_letter_page page = {.limit = 30, .details = true, .payload_max = 10};
    enum hk_code rc = letters_ops->list(admin, &query, &page, &r->letters, &r->err);
    if (rc == HK_OK)
        rc = letters_ops->count(admin, &query, &r->count, &r->err);
    if (rc == HK_OK)
        rc = letters_ops->groups(admin, &query, 10, &r->groups, &r->err);
    if (rc == HK_OK)
        rc = letters_ops->groups(admin, &open_letters, 10, &r->groups, &r->err);
    if (rc == HK_OK)
        rc = letters_ops->stats(admin, &r->stats, &r->err);
    if (rc == HK_OK)
        rc = letters_ops->show(admin, 1, 10, &r->shown, &r->err);
    if (rc == HK_OK)
        rc = letters_ops->audit(admin, &(struct hk_audit_page){.limit = 50}, &r->rows, &r->err);
    return rc;
}

/* Leaves every letter as it was. */
static enum hk_code work(struct hk_admin *admin, struct results *r)
{
    const int64_t ids[] = {2, 1};
    const struct hk_letter_act act = {.ids = ids, .n = 2, .actor = "ann", .reason = "because"};
    static int times;
    char filter[32];
    snprintf(filter, sizeof filter, "id:%d", times++); /* an earlier one may run still */
    const struct hk_redrive_job job = {.filter = hk_str_of(filter), .actor = hk_str_of("ann")};
    enum hk_code rc = letters_ops->discard(admin, &act, &r->done, &r->err);
    if (rc == HK_OK)
        rc = letters_ops->restore(admin, &act, &r->done, &r->err);
    if (rc == HK_OK)
        rc = letters_ops->redrive_start(admin, &open_letters, &job, &r->id, &r->err);
    if (rc == HK_OK)
        rc = letters_ops->redrive_step(admin, r->id, &open_letters, &r->wake_ms, &(bool){false}, &r->err);
    if (rc == HK_OK)
        rc = letters_ops->redrive_list(admin, 0, false, &r->jobs, &r->err);
    return rc;
}

static enum hk_code do_all(void)
{
    struct hk_admin *admin = NULL;
    struct results r = {0};
    enum hk_code rc = admin_ops->open(store_kind->url(), &(struct hk_store_options){0}, &admin, &r.err);
    if (rc == HK_OK)
        rc = look(admin, &r);
    if (rc == HK_OK)
        rc = work(admin, &r);
    admin_ops->close(admin);
    return rc;
}

static void every_failing_allocation_is_survived(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    letters_fill(store, suite_acquire(store), 20, NULL);
    suite_close(store);
    for (int mode = 0; mode < 2; mode++) {
        bool done = false;
        for (long k = 0; !done; k++) {
            struct hk_allocator allocator = {.resize = choosy_resize, .release = choosy_release};
            allowed = k;
            for_ever = mode == 1;
            hk_allocator_set(&allocator);
            enum hk_code rc = do_all();
            done = allowed > 0;
            allowed = -1;
            hk_allocator_set(NULL);
            assert_true(rc == HK_OK || rc == HK_NOMEM);
            assert_true(k < 3000);
        }
    }
    struct hk_admin *admin = admin_open();
    letters_verify_audit(admin);
    admin_ops->close(admin);
}

/* ---- groups of older versions ---- */

#define OLD_GROUP "00000000000000aa"

/* What a relay of this version finds in the letter's history. */
static void say_words(void *arg, const struct hk_letter *letter, struct hk_buf *out)
{
    ++*(int *)arg;
    assert_text(letter->error, "the answer was HTTP 422");
    if (letter->id % 2)
        (void)hk_buf_adds(out, "HTTP 422: field 'currency' is missing");
    else if (letter->id < 6)
        (void)hk_buf_adds(out, "HTTP 422: field 'price' is missing");
}

static uint32_t regroup(struct hk_admin *admin, uint32_t limit, int *said)
{
    const struct hk_regrouping how = {.limit = limit, .payload_max = 100, .say = say_words, .arg = said};
    struct hk_err err = {0};
    uint32_t n = 99;
    enum hk_code rc = letters_ops->regroup(admin, &how, &n, &err);
    NOTE_IF(rc != HK_OK, "regroup: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    return n;
}

static uint64_t in_group(struct hk_admin *admin, const char *fingerprint, unsigned statuses)
{
    const struct hk_letter_query query = {.fingerprint = fingerprint, .statuses = statuses};
    const struct hk_letter_groups *groups = NULL;
    struct hk_count count = {.n = 0};
    struct hk_err err = {0};
    size_t listed = letters_list(admin, &query)->n;
    assert_int_equal(letters_ops->count(admin, &query, &count, &err), HK_OK);
    assert_int_equal(count.n, listed);
    assert_int_equal(letters_ops->groups(admin, &query, 10, &groups, &err), HK_OK);
    assert_int_equal(groups->letters, listed);
    return listed;
}

/* As relays before schema version 5 left them. */
static void age_letters(const char *where)
{
    char sql[300];
    (void)snprintf(sql, sizeof sql,
                   "UPDATE dead_letters SET fingerprint = '" OLD_GROUP
                   "', fingerprint_made = NULL, fingerprint_old = NULL, "
                   "error_message = 'the answer was HTTP 422' WHERE %s",
                   where);
    store_kind->sql(sql);
}

static void groups_of_an_older_version_are_made_anew(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open(), *other = admin_open();
    const struct hk_letter_groups *groups = NULL;
    struct hk_err err = {0};
    char currency[HK_FINGERPRINT_MAX], print[HK_FINGERPRINT_MAX];
    int said = 0;
    letters_fill(store, suite_acquire(store), 8, NULL);
    assert_int_equal(regroup(admin, 10, &said), 0); /* this version wrote them */
    age_letters("true");
    letters_act(letters_ops->resolve, admin, 8);
    letters_act(letters_ops->discard, admin, 7);
    assert_int_equal(in_group(admin, OLD_GROUP, 0), 8);

    /* some at a time, by whichever relay, and it is known which are done */
    assert_int_equal(regroup(admin, 2, &said), 2);
    assert_int_equal(in_group(admin, OLD_GROUP, 0), 8);
    assert_int_equal(in_group(admin, OLD_GROUP, 1u << HK_LETTER_FAILED), 6);
    assert_int_equal(regroup(other, 3, &said), 3);
    assert_int_equal(regroup(admin, 3, &said), 1);
    assert_int_equal(regroup(other, 3, &said), 0);
    assert_int_equal(said, 6);
    assert_number("count(*) FROM dead_letters WHERE fingerprint = '" OLD_GROUP "'",
                  2); /* what is closed stays */
    assert_number("count(*) FROM dead_letters WHERE fingerprint_old = '" OLD_GROUP "'", 6);
    assert_value("error_message FROM dead_letters WHERE id = 3", "HTTP 422: field 'currency' is missing");
    assert_value("error_message FROM dead_letters WHERE id = 6", "the answer was HTTP 422");

    /* as if this version had written them */
    hk_fingerprint(HK_CLASS_TRANSIENT, hk_str_of("HTTP_500"), hk_str_of("a"),
                   hk_str_of("HTTP 422: field 'currency' is missing"), currency);
    assert_int_equal(in_group(admin, currency, 0), 3);
    assert_int_equal(letters_ops->groups(admin, &open_letters, 10, &groups, &err), HK_OK);
    assert_true(groups->n == 3 && groups->letters == 6 && groups->items[0].n == 3);
    assert_text(groups->items[0].fingerprint, currency);
    assert_text(groups->items[0].example_error, "HTTP 422: field 'currency' is missing");

    /* what was closed and is opened again, and what an older relay writes beside this one */
    letters_act(letters_ops->restore, admin, 7);
    store_kind->sql(
        "UPDATE dead_letters SET fingerprint = '00000000000000bb', error_message = 'the answer was HTTP 422' "
        "WHERE id = 2");
    assert_int_equal(regroup(admin, 10, &said), 2);
    assert_int_equal(regroup(admin, 10, &said), 0);
    assert_int_equal(in_group(admin, currency, 0), 4);
    assert_int_equal(in_group(admin, "00000000000000bb", 0), 1);
    assert_int_equal(in_group(admin, OLD_GROUP, 0), 7);

    /* whatever somebody wrote there */
    store_kind->sql(
        "UPDATE dead_letters SET fingerprint = 'longer than any fingerprint', error_message = 'the answer was HTTP 422' "
        "WHERE id = 4");
    assert_int_equal(regroup(admin, 10, &said), 1);
    assert_int_equal(in_group(admin, "longer than any fingerprint", 0), 1);

    /* where the group stays the same nothing is kept */
    (void)snprintf(print, sizeof print, "%s",
                   store_kind->value("SELECT fingerprint FROM dead_letters WHERE id = 6"));
    store_kind->sql("UPDATE dead_letters SET fingerprint_made = NULL WHERE id = 6");
    assert_int_equal(regroup(admin, 10, &said), 1);
    assert_value("fingerprint FROM dead_letters WHERE id = 6", print);
    assert_number("count(*) FROM dead_letters WHERE id = 6 AND fingerprint_old IS NULL", 1);
    suite_close(store);
    admin_ops->close(admin);
    admin_ops->close(other);
}

/* It was started before the upgrade, and goes on behind it. */
static void a_job_keeps_its_group_when_groups_are_made_anew(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    const struct hk_letter_query query = {.fingerprint = OLD_GROUP, .statuses = 1u << HK_LETTER_FAILED};
    const struct hk_letter_query wide = {.fingerprint = OLD_GROUP, .destination = "a"};
    int said = 0;
    int64_t lane = suite_acquire(store);
    letters_fill(store, lane, 9, NULL);
    age_letters("id < 8");
    int64_t id = start_as(admin, "group:" OLD_GROUP, &query,
                          (struct hk_redrive_pace){.rate_per_s = 1, .canary = 1, .abort_ratio = 1});
    assert_int_equal(job_of(admin, id).facts.total, 7);
    step_to(admin, id, &query, 1);
    assert_int_equal(regroup(admin, 3, &said), 3);
    letters_try_again(store, lane, letters_retry_of(1), HK_SETTLE_SENT);
    step_to(admin, id, &query, 4);
    assert_int_equal(regroup(admin, 100, &said), 4);
    step_to(admin, id, &query, 7);
    assert_number("count(*) FROM dead_letters WHERE redrive_id IS NOT NULL AND id < 8", 7);
    assert_number("count(*) FROM dead_letters WHERE redrive_id IS NOT NULL", 7);
    assert_int_equal(letters_list(admin, &wide)->n, 7);

    /* a letter that dies again is in the group of that failure alone */
    letters_try_again(store, lane, letters_retry_of(3), HK_SETTLE_DEAD);
    assert_number("count(*) FROM dead_letters WHERE id = 3 AND fingerprint_old IS NULL", 1);
    assert_int_equal(regroup(admin, 100, &said), 0);
    suite_close(store);
    admin_ops->close(admin);
}

const struct CMUnitTest letters_redrive_tests[] = {
    TEST(a_job_is_what_was_asked_for),
    TEST(a_second_job_of_the_same_filter_is_refused_while_the_first_runs),
    TEST(a_job_for_letters_that_are_not_open_requeues_nothing),
    TEST(a_job_does_not_go_past_a_letter_that_nobody_looked_into),
    TEST(a_job_requeues_what_fits_and_nothing_that_came_later),
    TEST(a_letter_that_another_job_takes_has_failed_in_the_first),
    TEST(a_letter_that_a_person_requeues_stays_with_its_job),
    TEST(a_letter_that_is_discarded_has_not_arrived),
    TEST(a_canary_that_fails_again_ends_the_job),
    TEST(what_only_the_payload_tells_is_redriven_too),
    TEST(another_process_goes_on_where_the_first_one_stopped),
    TEST(a_job_waits_at_a_letter_whose_destination_is_paused),
    TEST(an_empty_job_is_done_at_once),
    TEST(ended_jobs_go_with_what_they_resolved),
    TEST(every_failing_allocation_is_survived),
    TEST(groups_of_an_older_version_are_made_anew),
    TEST(a_job_keeps_its_group_when_groups_are_made_anew),
};
const size_t letters_redrive_count = COUNT(letters_redrive_tests);
