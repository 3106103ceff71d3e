/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs: taken with a lease, carried out in batches that are one transaction each, and never by two relays at once. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/str.h"
#include "jobs_suite.h"
#include "letters_suite_impl.h"

const struct hk_store_jobs_ops *jobs_ops;

#define LEASE UINT64_C(10000)

/* ---- what the suite is made of ---- */

static enum hk_code try_create(struct hk_admin *admin, struct hk_str request, int64_t *out)
{
    struct hk_err err = {0};
    const struct hk_job_new ask = {.operation = hk_str_of("dead discard"),
                                   .request = request,
                                   .actor = "ann",
                                   .reason = "too old",
                                   .role = "operator"};
    enum hk_code rc = jobs_ops->create(admin, &ask, out, &err);
    assert_true(rc == HK_OK || (err.code == rc && err.message[0]));
    return rc;
}

static int64_t create(struct hk_admin *admin)
{
    int64_t id = 0;
    assert_int_equal(try_create(admin, hk_str_of("{\"destination\":\"a\"}"), &id), HK_OK);
    assert_true(id > 0);
    return id;
}

static const struct hk_job *take(struct hk_admin *admin, const char *owner)
{
    const struct hk_job *job = NULL;
    struct hk_err err = {0};
    enum hk_code rc = jobs_ops->take(admin, &(struct hk_job_lease){owner, LEASE}, &job, &err);
    NOTE_IF(rc != HK_OK, "take: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    return job;
}

static struct hk_job_grip grip_of(const struct hk_job *job)
{
    assert_non_null(job);
    return (struct hk_job_grip){job->id, job->token, LEASE};
}

static bool waits(struct hk_admin *admin)
{
    struct hk_err err = {0};
    bool out = false;
    assert_int_equal(jobs_ops->waiting(admin, &out, &err), HK_OK);
    return out;
}

static const struct hk_job *find(struct hk_admin *admin, int64_t id)
{
    const struct hk_job *job = NULL;
    struct hk_err err = {0};
    enum hk_code rc = jobs_ops->find(admin, id, &job, NULL, &err);
    NOTE_IF(rc != HK_OK, "find: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    return job;
}

static enum hk_code hold(struct hk_admin *admin, struct hk_job_grip grip, bool *out_cancel)
{
    struct hk_err err = {0};
    bool cancel = false;
    enum hk_code rc = jobs_ops->hold(admin, &grip, &cancel, &err);
    NOTE_IF(rc != HK_OK && rc != HK_CONFLICT, "hold: %s\n", err.message);
    if (out_cancel)
        *out_cancel = cancel;
    return rc;
}

static enum hk_code renew(struct hk_admin *admin, struct hk_job_grip grip)
{
    struct hk_err err = {0};
    bool cancel = false;
    return jobs_ops->renew(admin, &grip, &cancel, &err);
}

static enum hk_code save(struct hk_admin *admin, struct hk_job_grip grip, enum hk_job_status status,
                         const char *cursor, uint64_t done)
{
    struct hk_err err = {0};
    const struct hk_job_save s = {.grip = grip,
                                  .status = status,
                                  .progress = {.done = done, .total = 10, .changed = done},
                                  .cursor = hk_str_of(cursor),
                                  .result = hk_str_of("{\"changed\":1}"),
                                  .moved = done > 0};
    enum hk_code rc = jobs_ops->save(admin, &s, &err);
    NOTE_IF(rc != HK_OK && rc != HK_CONFLICT, "save: %s\n", err.message);
    return rc;
}

static enum hk_code discard(struct hk_admin *admin, int64_t first, size_t n, const char *reason,
                            int64_t *act_id)
{
    int64_t ids[100];
    for (size_t i = 0; i < n; i++)
        ids[i] = first + (int64_t)i;
    const struct hk_letter_act act = {
        .ids = ids, .n = n, .actor = "ann", .reason = reason, .filter = "dest:a", .act_id = *act_id};
    const struct hk_letters_done *done = NULL;
    struct hk_err err = {0};
    enum hk_code rc = letters_ops->discard(admin, &act, &done, &err);
    if (rc == HK_OK) {
        assert_int_equal(done->changed, n);
        *act_id = done->act_id;
    }
    return rc;
}

static enum hk_code cancel(struct hk_admin *admin, int64_t id)
{
    struct hk_err err = {0};
    return jobs_ops->cancel(admin, id, "bob", "not that many", &err);
}

/* ---- a job's life ---- */

static void a_job_is_kept_as_it_was_asked_for(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    assert_false(waits(admin));
    assert_null(take(admin, "r1"));
    int64_t id = create(admin);
    assert_true(waits(admin));
    const struct hk_job *job = find(admin, id);
    assert_int_equal(job->status, HK_JOB_QUEUED);
    assert_text(job->operation, "dead discard");
    assert_text(job->request, "{\"destination\":\"a\"}");
    assert_text(job->actor, "ann");
    assert_text(job->reason, "too old");
    assert_text(job->role, "operator");
    assert_false(job->reveal);
    assert_int_equal(job->created_ms, suite_clock_ms);
    assert_int_equal(job->started_ms + job->ended_ms, 0);
    assert_int_equal(job->result.len + job->cursor.len + job->owner.len, 0);
    assert_rows("outbox_audit WHERE act = 'job-start' AND actor = 'ann' AND reason = 'too old' AND "
                "detail LIKE '{\"job\":%,\"operation\":\"dead discard\"}'",
                1);
    struct hk_err err = {0};
    assert_int_equal(jobs_ops->find(admin, id + 1, &job, NULL, &err), HK_NOTFOUND);
    assert_int_equal(letters_verify_audit(admin), 1);
    admin_ops->close(admin);
}

static void a_list_has_the_newest_first_and_an_end(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    const struct hk_jobs *jobs = NULL;
    struct hk_err err = {0};
    int64_t ids[5];
    for (size_t i = 0; i < COUNT(ids); i++)
        ids[i] = create(admin);
    assert_int_equal(cancel(admin, ids[3]), HK_OK);
    assert_int_equal(jobs_ops->list(admin, &(struct hk_job_page){.limit = 2}, &jobs, &err), HK_OK);
    assert_int_equal(jobs->n, 2);
    assert_true(jobs->more);
    assert_int_equal(jobs->items[0].id, ids[4]);
    assert_int_equal(jobs->items[1].status, HK_JOB_CANCELLED);
    int64_t before = jobs->items[1].id;
    assert_int_equal(
        jobs_ops->list(admin, &(struct hk_job_page){.limit = 3, .before_id = before}, &jobs, &err), HK_OK);
    assert_int_equal(jobs->n, 3);
    assert_false(jobs->more);
    assert_int_equal(jobs->items[2].id, ids[0]);
    assert_int_equal(jobs->now_ms, suite_clock_ms);
    assert_int_equal(jobs_ops->list(admin, &(struct hk_job_page){.limit = 9, .open_only = true}, &jobs, &err),
                     HK_OK);
    assert_int_equal(jobs->n, 4);
    admin_ops->close(admin);
}

static void the_oldest_is_taken_first_and_by_one(void **state)
{
    (void)state;
    struct hk_admin *one = admin_open(), *two = admin_open();
    int64_t first = create(one), second = create(one);
    const struct hk_job *job = take(one, "r1");
    assert_int_equal(job->id, first);
    assert_int_equal(job->status, HK_JOB_RUNNING);
    assert_int_equal(job->token, 1);
    assert_int_equal(job->started_ms, suite_clock_ms);
    assert_text(job->owner, "r1");
    assert_text(job->request, "{\"destination\":\"a\"}");
    assert_int_equal(take(two, "r2")->id, second);
    assert_false(waits(one));
    assert_null(take(two, "r2"));
    admin_ops->close(one);
    admin_ops->close(two);
}

static void a_job_ends_with_its_result(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    int64_t id = create(admin);
    struct hk_job_grip grip = grip_of(take(admin, "r1"));
    suite_clock_ms += 1000;
    assert_int_equal(save(admin, grip, HK_JOB_RUNNING, "7", 7), HK_OK);
    const struct hk_job *job = find(admin, id);
    assert_int_equal(job->status, HK_JOB_RUNNING);
    assert_text(job->cursor, "7");
    assert_int_equal(job->progress.done, 7);
    assert_int_equal(job->progress.total, 10);
    assert_int_equal(job->tries, 0);
    struct hk_err err = {0};
    const struct hk_job_save end = {.grip = grip,
                                    .status = HK_JOB_FAILED,
                                    .cursor = hk_str_of("9"),
                                    .result = hk_str_of("{\"changed\":9}"),
                                    .act_id = 33,
                                    .error_code = "INVALID",
                                    .error = "the filter is wrong"};
    assert_int_equal(jobs_ops->save(admin, &end, &err), HK_OK);
    job = find(admin, id);
    assert_int_equal(job->status, HK_JOB_FAILED);
    assert_int_equal(job->ended_ms, suite_clock_ms);
    assert_int_equal(job->act_id, 33);
    assert_text(job->result, "{\"changed\":9}");
    assert_text(job->error_code, "INVALID");
    assert_text(job->error, "the filter is wrong");
    suite_clock_ms += (int64_t)LEASE * 2;
    assert_false(waits(admin));
    assert_int_equal(save(admin, grip, HK_JOB_RUNNING, "1", 1), HK_CONFLICT);
    assert_int_equal(hold(admin, grip, NULL), HK_CONFLICT);
    admin_ops->close(admin);
}

/* ---- leases ---- */

static void who_slept_past_the_lease_changes_nothing(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *slow = admin_open(), *quick = admin_open();
    letters_fill(store, suite_acquire(store), 4, NULL);
    int64_t id = create(slow), act_id = 0;
    struct hk_job_grip old = grip_of(take(slow, "r1"));
    suite_clock_ms += (int64_t)LEASE - 1;
    assert_false(waits(quick));
    suite_clock_ms += 1;
    assert_true(waits(quick));
    const struct hk_job *job = take(quick, "r2");
    struct hk_job_grip new = grip_of(job);
    assert_int_equal(job->id, id);
    assert_true(new.token > old.token);
    assert_int_equal(renew(slow, old), HK_CONFLICT);
    assert_int_equal(hold(slow, old, NULL), HK_CONFLICT);
    assert_int_equal(save(slow, old, HK_JOB_DONE, "4", 4), HK_CONFLICT);
    assert_int_equal(hold(quick, new, NULL), HK_OK);
    assert_int_equal(discard(quick, 1, 2, "too old", &act_id), HK_OK);
    assert_int_equal(save(quick, new, HK_JOB_RUNNING, "2", 2), HK_OK);
    assert_int_equal(save(slow, old, HK_JOB_CANCELLED, "0", 0), HK_CONFLICT);
    assert_text(find(slow, id)->cursor, "2");
    assert_text(find(slow, id)->owner, "r2");
    assert_rows("dead_letters WHERE status = 'discarded'", 2);
    suite_close(store);
    admin_ops->close(slow);
    admin_ops->close(quick);
}

static void a_lease_is_renewed_by_every_batch(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    (void)create(admin);
    struct hk_job_grip grip = grip_of(take(admin, "r1"));
    for (int i = 0; i < 4; i++) {
        suite_clock_ms += (int64_t)LEASE - 1;
        assert_false(waits(admin));
        if (i % 2)
            assert_int_equal(renew(admin, grip), HK_OK);
        else
            assert_int_equal(save(admin, grip, HK_JOB_RUNNING, "1", 1), HK_OK);
    }
    assert_false(waits(admin));
    suite_clock_ms += (int64_t)LEASE;
    assert_true(waits(admin));
    assert_int_equal(renew(admin, grip), HK_OK); /* nobody has taken it meanwhile */
    assert_false(waits(admin));
    admin_ops->close(admin);
}

static void what_is_given_back_is_free_at_once(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    int64_t id = create(admin);
    struct hk_job_grip grip = grip_of(take(admin, "r1"));
    assert_int_equal(save(admin, grip, HK_JOB_QUEUED, "3", 3), HK_OK);
    assert_true(waits(admin));
    assert_int_equal(save(admin, grip, HK_JOB_RUNNING, "4", 4), HK_CONFLICT);
    const struct hk_job *job = take(admin, "r2");
    assert_int_equal(job->id, id);
    assert_text(job->cursor, "3");
    assert_text(job->result, "{\"changed\":1}");
    assert_int_equal(job->progress.done, 3);
    admin_ops->close(admin);
}

static void a_job_that_comes_no_further_fails(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    int64_t id = create(admin), other = create(admin);
    struct hk_job_grip grip = {0};
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < HK_JOB_TRIES_MAX; i++) {
            const struct hk_job *job = take(admin, "dies");
            assert_int_equal(job->id, id);
            assert_int_equal(job->tries, i + 1);
            grip = grip_of(job);
            if (round == 0 && i + 1 == HK_JOB_TRIES_MAX) /* the last moment */
                assert_int_equal(save(admin, grip, HK_JOB_RUNNING, "5", 5), HK_OK);
            suite_clock_ms += (int64_t)LEASE;
        }
    }
    assert_int_equal(take(admin, "lives")->id, other);
    const struct hk_job *job = find(admin, id);
    assert_int_equal(job->status, HK_JOB_FAILED);
    assert_int_equal(job->ended_ms, suite_clock_ms);
    assert_text(job->error, HK_JOB_GIVEN_UP);
    assert_text(job->cursor, "5");
    assert_int_equal(save(admin, grip, HK_JOB_RUNNING, "6", 6), HK_CONFLICT);
    admin_ops->close(admin);
}

static void a_lease_of_a_clock_that_was_set_back_holds_nobody(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    (void)create(admin);
    (void)take(admin, "r1");
    char sql[120];
    snprintf(sql, sizeof sql, "UPDATE outbox_job SET lease_ms = %lld",
             (long long)(suite_clock_ms + HK_JOB_LEASE_FAR + 1));
    store_kind->sql(sql);
    assert_true(waits(admin));
    assert_non_null(take(admin, "r2"));
    admin_ops->close(admin);
}

/* ---- a batch ---- */

static void a_batch_is_one_transaction(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    letters_fill(store, suite_acquire(store), 6, NULL);
    int64_t id = create(admin), act_id = 0;
    struct hk_job_grip grip = grip_of(take(admin, "r1"));
    assert_int_equal(hold(admin, grip, NULL), HK_OK);
    assert_int_equal(discard(admin, 1, 3, "too old", &act_id), HK_OK);
    assert_rows("dead_letters WHERE status = 'discarded'", 0); /* others see nothing of it */
    jobs_ops->drop(admin);
    assert_rows("dead_letters WHERE status = 'discarded'", 0);
    assert_rows("outbox_audit WHERE act = 'discard'", 0);
    act_id = 0;
    assert_int_equal(hold(admin, grip, NULL), HK_OK);
    assert_int_equal(discard(admin, 1, 3, "too old", &act_id), HK_OK);
    assert_int_equal(letters_list(admin, &(struct hk_letter_query){.statuses = 1u << HK_LETTER_DISCARDED})->n,
                     3); /* but it does itself */
    assert_int_equal(save(admin, grip, HK_JOB_RUNNING, "3", 3), HK_OK);
    assert_rows("dead_letters WHERE status = 'discarded'", 3);
    assert_int_equal(hold(admin, grip, NULL), HK_OK);
    assert_int_equal(discard(admin, 4, 3, "too old", &act_id), HK_OK);
    assert_int_equal(save(admin, grip, HK_JOB_DONE, "6", 6), HK_OK);
    assert_rows("dead_letters WHERE status = 'discarded'", 6);
    assert_rows("outbox_audit_letters", 6);
    assert_text(find(admin, id)->cursor, "6");
    (void)letters_verify_audit(admin);
    suite_close(store);
    admin_ops->close(admin);
}

static void an_act_that_fails_undoes_the_batch(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    letters_fill(store, suite_acquire(store), 4, NULL);
    int64_t id = create(admin), act_id = 0;
    struct hk_job_grip grip = grip_of(take(admin, "r1"));
    store_kind->sql(letters_dialect->refuse);
    assert_int_equal(hold(admin, grip, NULL), HK_OK);
    assert_int_equal(discard(admin, 1, 2, "fine", &act_id), HK_OK);
    int64_t none = 0;
    assert_int_not_equal(discard(admin, 3, 1, "refused", &none), HK_OK);
    assert_int_not_equal(discard(admin, 4, 1, "fine", &none), HK_OK); /* nor anything behind it */
    struct hk_err err = {0};
    const struct hk_job_save s = {.grip = grip, .status = HK_JOB_RUNNING, .cursor = hk_str_of("4")};
    assert_int_not_equal(jobs_ops->save(admin, &s, &err), HK_OK);
    assert_rows("dead_letters WHERE status = 'discarded'", 0);
    assert_text(find(admin, id)->cursor, "");
    store_kind->sql(letters_dialect->allow);
    act_id = 0;
    assert_int_equal(hold(admin, grip, NULL), HK_OK); /* and the next one is as any other */
    assert_int_equal(discard(admin, 1, 4, "fine", &act_id), HK_OK);
    assert_int_equal(save(admin, grip, HK_JOB_DONE, "4", 4), HK_OK);
    assert_rows("dead_letters WHERE status = 'discarded'", 4);
    (void)letters_verify_audit(admin);
    suite_close(store);
    admin_ops->close(admin);
}

static void what_was_read_outlives_the_begin_of_a_batch(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    letters_fill(store, suite_acquire(store), 2, NULL);
    (void)create(admin);
    struct hk_job_grip grip = grip_of(take(admin, "r1"));
    const struct hk_letters *letters = letters_list(admin, &(struct hk_letter_query){0});
    assert_int_equal(renew(admin, grip), HK_OK);
    assert_int_equal(hold(admin, grip, NULL), HK_OK);
    int64_t act_id = 0;
    assert_int_equal(discard(admin, 1, 2, "fine", &act_id), HK_OK);
    assert_text(letters->items[1].payload, "p2");
    assert_int_equal(save(admin, grip, HK_JOB_DONE, "2", 2), HK_OK);
    suite_close(store);
    admin_ops->close(admin);
}

/* A handle that is closed in the midst of it is a process that died. */
static void a_batch_whose_process_died_was_never_there(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *dies = admin_open(), *lives = admin_open();
    letters_fill(store, suite_acquire(store), 2, NULL);
    (void)create(dies);
    struct hk_job_grip grip = grip_of(take(dies, "r1"));
    int64_t act_id = 0;
    assert_int_equal(hold(dies, grip, NULL), HK_OK);
    assert_int_equal(discard(dies, 1, 2, "fine", &act_id), HK_OK);
    admin_ops->close(dies);
    suite_clock_ms += (int64_t)LEASE;
    const struct hk_job *job = NULL;
    for (int i = 0; i < 1000 && !job; i++) { /* a server takes a moment to notice */
        job = take(lives, "r2");
        if (!job)
            (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    grip = grip_of(job);
    assert_int_equal(job->cursor.len, 0);
    act_id = 0;
    assert_int_equal(hold(lives, grip, NULL), HK_OK);
    assert_int_equal(discard(lives, 1, 2, "fine", &act_id), HK_OK);
    assert_int_equal(save(lives, grip, HK_JOB_DONE, "2", 2), HK_OK);
    assert_rows("outbox_audit WHERE act = 'discard'", 1);
    (void)letters_verify_audit(lives);
    suite_close(store);
    admin_ops->close(lives);
}

/* ---- cancel ---- */

static void a_job_that_waits_is_cancelled_at_once(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    int64_t id = create(admin);
    assert_int_equal(cancel(admin, id), HK_OK);
    const struct hk_job *job = find(admin, id);
    assert_int_equal(job->status, HK_JOB_CANCELLED);
    assert_int_equal(job->ended_ms, suite_clock_ms);
    assert_text(job->cancelled_by, "bob");
    assert_text(job->cancel_reason, "not that many");
    assert_null(take(admin, "r1"));
    assert_int_equal(cancel(admin, id), HK_CONFLICT);
    assert_int_equal(cancel(admin, id + 1), HK_NOTFOUND);
    assert_rows("outbox_audit WHERE act = 'job-cancel' AND actor = 'bob'", 1);
    assert_int_equal(letters_verify_audit(admin), 2);
    admin_ops->close(admin);
}

static void a_job_that_runs_is_told_before_its_next_batch(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open(), *other = admin_open();
    int64_t id = create(admin);
    struct hk_job_grip grip = grip_of(take(admin, "r1"));
    bool cancelled = true;
    assert_int_equal(hold(admin, grip, &cancelled), HK_OK);
    assert_false(cancelled);
    assert_int_equal(save(admin, grip, HK_JOB_RUNNING, "1", 1), HK_OK);
    assert_int_equal(cancel(other, id), HK_OK);
    assert_int_equal(cancel(other, id), HK_OK);
    assert_int_equal(find(other, id)->status, HK_JOB_RUNNING);
    assert_int_equal(hold(admin, grip, &cancelled), HK_OK);
    assert_true(cancelled);
    jobs_ops->drop(admin);
    assert_int_equal(save(admin, grip, HK_JOB_CANCELLED, "1", 1), HK_OK);
    assert_int_equal(find(other, id)->status, HK_JOB_CANCELLED);
    assert_rows("outbox_audit WHERE act = 'job-cancel'", 1);
    admin_ops->close(admin);
    admin_ops->close(other);
}

/* ---- bounds ---- */

static void there_is_an_end_to_what_is_kept(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    struct hk_err err = {0};
    int64_t id = 0;
    size_t room = HK_JOB_RESULT_MAX + 1;
    char *huge = malloc(room);
    assert_non_null(huge);
    memset(huge, ' ', room);
    assert_int_equal(try_create(admin, (struct hk_str){huge, HK_JOB_REQUEST_MAX + 1}, &id), HK_TOOBIG);
    assert_int_equal(try_create(admin, (struct hk_str){huge, HK_JOB_REQUEST_MAX}, &id), HK_OK);
    struct hk_job_grip grip = grip_of(take(admin, "r1"));
    struct hk_job_save s = {.grip = grip, .status = HK_JOB_RUNNING, .result = {huge, room}};
    assert_int_equal(jobs_ops->save(admin, &s, &err), HK_TOOBIG);
    s.result.len = HK_JOB_RESULT_MAX;
    assert_int_equal(jobs_ops->save(admin, &s, &err), HK_OK);
    assert_int_equal(find(admin, id)->result.len, HK_JOB_RESULT_MAX);
    assert_int_equal(find(admin, id)->request.len, HK_JOB_REQUEST_MAX);
    for (int i = 1; i < HK_JOBS_OPEN_MAX; i++)
        (void)create(admin);
    assert_int_equal(try_create(admin, hk_str_of("{}"), &id), HK_BUSY);
    assert_int_equal(save(admin, grip, HK_JOB_DONE, "1", 1), HK_OK);
    (void)create(admin);
    free(huge);
    admin_ops->close(admin);
}

static void retention_takes_jobs_that_ended(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    struct hk_store *store = suite_open(NULL);
    struct hk_err err = {0};
    uint32_t deleted = 0;
    struct hk_retention keep = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
                                UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    int64_t ended = create(admin);
    (void)create(admin);
    assert_int_equal(cancel(admin, ended), HK_OK);
    suite_clock_ms += 10000;
    keep.resolved_ms = 20000;
    assert_int_equal(store_kind->ops->purge(store, &keep, 100, &deleted, NULL, &err), HK_OK);
    assert_rows("outbox_job", 2);
    keep.resolved_ms = 5000;
    assert_int_equal(store_kind->ops->purge(store, &keep, 100, &deleted, NULL, &err), HK_OK);
    assert_int_equal(deleted, 1);
    assert_value("status FROM outbox_job", "queued");
    suite_close(store);
    admin_ops->close(admin);
}

/* ---- at once ---- */

#define THREADS 6

struct taker {
    pthread_barrier_t *start;
    struct hk_admin *admin;
    int64_t took;
};

static void *race(void *arg)
{
    struct taker *t = arg;
    const struct hk_job *job = NULL;
    struct hk_err err = {0};
    (void)pthread_barrier_wait(t->start);
    if (jobs_ops->take(t->admin, &(struct hk_job_lease){"r", LEASE}, &job, &err) == HK_OK && job)
        t->took = job->id;
    return NULL;
}

static void of_many_at_once_one_takes_it(void **state)
{
    (void)state;
    struct taker takers[THREADS];
    pthread_t threads[THREADS];
    pthread_barrier_t start;
    size_t took = 0;
    struct hk_admin *admin = admin_open();
    (void)create(admin);
    assert_int_equal(pthread_barrier_init(&start, NULL, THREADS), 0);
    for (int i = 0; i < THREADS; i++) {
        takers[i] = (struct taker){.start = &start, .admin = admin_open()};
        assert_int_equal(pthread_create(&threads[i], NULL, race, &takers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        took += takers[i].took != 0;
        admin_ops->close(takers[i].admin);
    }
    assert_int_equal(took, 1);
    assert_value("token FROM outbox_job", "1");
    (void)pthread_barrier_destroy(&start);
    admin_ops->close(admin);
}

/* ---- the suite ---- */

size_t jobs_suite_tests(struct CMUnitTest *out, size_t room)
{
    const struct CMUnitTest tests[] = {
        TEST(a_job_is_kept_as_it_was_asked_for),
        TEST(a_list_has_the_newest_first_and_an_end),
        TEST(the_oldest_is_taken_first_and_by_one),
        TEST(a_job_ends_with_its_result),
        TEST(who_slept_past_the_lease_changes_nothing),
        TEST(a_lease_is_renewed_by_every_batch),
        TEST(what_is_given_back_is_free_at_once),
        TEST(a_job_that_comes_no_further_fails),
        TEST(a_lease_of_a_clock_that_was_set_back_holds_nobody),
        TEST(a_batch_is_one_transaction),
        TEST(an_act_that_fails_undoes_the_batch),
        TEST(what_was_read_outlives_the_begin_of_a_batch),
        TEST(a_batch_whose_process_died_was_never_there),
        TEST(a_job_that_waits_is_cancelled_at_once),
        TEST(a_job_that_runs_is_told_before_its_next_batch),
        TEST(there_is_an_end_to_what_is_kept),
        TEST(retention_takes_jobs_that_ended),
        TEST(of_many_at_once_one_takes_it),
    };
    assert_true(COUNT(tests) <= room);
    memcpy(out, tests, sizeof tests);
    return COUNT(tests);
}
