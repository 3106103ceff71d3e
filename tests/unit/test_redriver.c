/* SPDX-License-Identifier: Apache-2.0 */
/* Redrives while a relay runs, on a store that a test plays: when it looks, steps, starts, logs and lets go. */
#include <stdlib.h>
#include <unistd.h>

#include <hikyaku/alloc.h>

#include "base/str.h"
#include "check.h"
#include "config/diag.h"
#include "relay/redrive.h"

/* ---- a store ---- */

enum {
    ROWS = 32
};

static struct {
    bool open;
    unsigned opens, lists, steps, counts;
    unsigned lists_before; /* so many lists work before they fail */
    bool others_end;       /* a step finds the end of a job that it did not make */
    enum hk_code fail_open, fail_list, fail_step, fail_start, fail_count, fail_cancel;
    struct hk_redrive_job rows[ROWS]; /* ids from 1 */
    char filters[ROWS][128];
    size_t n;
    int64_t wake_ms; /* what a step answers */
    int64_t stepped; /* the last one */
    uint64_t letters;
    size_t race; /* so many jobs by others begin just before ours */
    struct hk_redrive_job answer[ROWS];
    struct hk_redrive_jobs jobs;
    char last_filter[128];
} store;

static int64_t add_row(const char *filter, const char *actor)
{
    size_t i = store.n++;
    assert_true(i < ROWS);
    (void)snprintf(store.filters[i], sizeof store.filters[i], "%s", filter);
    store.rows[i] = (struct hk_redrive_job){.id = (int64_t)i + 1,
                                            .filter = hk_str_of(store.filters[i]),
                                            .actor = hk_str_of(actor),
                                            .created_ms = 1000,
                                            .facts = {.total = 7}};
    return (int64_t)i + 1;
}

static struct hk_redrive_job *row(int64_t id)
{
    assert_in_range(id, 1, store.n);
    return &store.rows[id - 1];
}

static enum hk_code answer_with(enum hk_code rc, struct hk_err *err)
{
    return rc == HK_OK ? HK_OK : hk_err_set(err, rc, "on purpose");
}

static enum hk_code fake_open(const char *url, const struct hk_store_options *options, struct hk_admin **out,
                              struct hk_err *err)
{
    assert_string_equal(url, "fake:");
    assert_true(options->busy_ms && options->busy_ms <= 1000);
    assert_false(store.open);
    store.opens++;
    if (store.fail_open != HK_OK)
        return answer_with(store.fail_open, err);
    store.open = true;
    *out = (struct hk_admin *)&store;
    return HK_OK;
}

static void fake_close(struct hk_admin *admin)
{
    if (admin)
        store.open = false;
}

static enum hk_code fake_list(struct hk_admin *admin, int64_t id, bool running_only,
                              const struct hk_redrive_jobs **out, struct hk_err *err)
{
    assert_ptr_equal(admin, &store);
    assert_true(store.open);
    store.lists++;
    if (store.fail_list != HK_OK && store.lists > store.lists_before)
        return answer_with(store.fail_list, err);
    store.jobs = (struct hk_redrive_jobs){.items = store.answer};
    for (size_t i = store.n; i-- > 0;)
        if ((!id || store.rows[i].id == id) && (!running_only || store.rows[i].status == HK_REDRIVE_RUNNING))
            store.answer[store.jobs.n++] = store.rows[i];
    *out = &store.jobs;
    return HK_OK;
}

static enum hk_code fake_step(struct hk_admin *admin, int64_t id, const struct hk_letter_query *query,
                              int64_t *out_wake_ms, bool *out_ended, struct hk_err *err)
{
    assert_ptr_equal(admin, &store);
    assert_non_null(query);
    store.steps++;
    store.stepped = id;
    if (store.fail_step != HK_OK)
        return answer_with(store.fail_step, err);
    *out_wake_ms = row(id)->status == HK_REDRIVE_RUNNING ? store.wake_ms : 0;
    *out_ended = *out_wake_ms == 0 && !store.others_end;
    return HK_OK;
}

static enum hk_code fake_count(struct hk_admin *admin, const struct hk_letter_query *query,
                               struct hk_count *out, struct hk_err *err)
{
    assert_ptr_equal(admin, &store);
    assert_int_equal(query->statuses, 1u << HK_LETTER_FAILED);
    store.counts++;
    out->n = store.letters;
    return answer_with(store.fail_count, err);
}

static enum hk_code fake_start(struct hk_admin *admin, const struct hk_letter_query *query,
                               const struct hk_redrive_job *job, int64_t *out_id, struct hk_err *err)
{
    assert_ptr_equal(admin, &store);
    assert_int_equal(query->statuses, 1u << HK_LETTER_FAILED);
    assert_true(job->pace.canary == 1 && job->pace.abort_ratio == 0.2 && job->pace.rate_per_s == 0);
    assert_int_equal(job->ids, HK_REQUEUE_AUTO);
    assert_true(hk_str_eq(job->actor, hk_str_of("hikyaku")));
    assert_true(hk_str_eq(job->reason, hk_str_of("auto_redrive: the breaker has closed")));
    if (store.fail_start != HK_OK)
        return answer_with(store.fail_start, err);
    assert_true(hk_str_copy(store.last_filter, sizeof store.last_filter, job->filter));
    for (; store.race; store.race--)
        (void)add_row(store.last_filter, "hikyaku");
    *out_id = add_row(store.last_filter, "hikyaku");
    return HK_OK;
}

static enum hk_code fake_cancel(struct hk_admin *admin, int64_t id, const char *actor, const char *reason,
                                struct hk_err *err)
{
    assert_ptr_equal(admin, &store);
    assert_string_equal(actor, "hikyaku");
    assert_string_equal(reason, "another relay has started one");
    row(id)->status = HK_REDRIVE_CANCELLED;
    return answer_with(store.fail_cancel, err);
}

static const struct hk_store_admin_ops fake_admin = {.name = "fake", .open = fake_open, .close = fake_close};
static const struct hk_store_letters_ops fake_letters = {.redrive_list = fake_list,
                                                         .redrive_step = fake_step,
                                                         .redrive_start = fake_start,
                                                         .redrive_cancel = fake_cancel,
                                                         .count = fake_count};

/* ---- a relay ---- */

static struct hk_redriver *rd;
static struct hk_config *config;
static struct hk_log logger;
static int log_pipe[2];
static char said[8192];
static int64_t now_ms;   /* the loop's clock */
static int64_t ahead_ms; /* of the store's */
static int64_t acts;

static struct hk_config *parse(const char *text)
{
    struct hk_config *out = NULL;
    struct hk_diags diags;
    hk_diags_init(&diags);
    enum hk_code rc = hk_config_parse(text, strlen(text), "test", NULL, &diags, &out);
    NOTE_IF(rc != HK_OK, "%s\n", diags.n ? diags.items[0].message : "");
    assert_int_equal(rc, HK_OK);
    hk_diags_fini(&diags);
    return out;
}

static int setup(void **state)
{
    (void)state;
    memset(&store, 0, sizeof store);
    now_ms = 5000;
    ahead_ms = 1000000;
    acts = 3;
    assert_int_equal(pipe(log_pipe), 0);
    hk_log_init(&logger, log_pipe[1], HK_LOG_INFO);
    config = parse("destinations:\n"
                   "  a: { \"null\": {}, auto_redrive: true, breaker: { open: 20s } }\n"
                   "  b: { \"null\": {}, breaker: { open: 20s } }\n"
                   "  c: { \"null\": {}, auto_redrive: true, breaker: off }\n");
    const struct hk_redriver_options options = {
        .url = "fake:", .admin = &fake_admin, .letters = &fake_letters, .log = &logger};
    assert_int_equal(hk_redriver_new(&options, &rd, NULL), HK_OK);
    assert_int_equal(hk_redriver_configure(rd, config, NULL), HK_OK);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    hk_redriver_free(rd);
    assert_false(store.open);
    hk_config_free(config);
    hk_log_fini(&logger);
    close(log_pipe[0]);
    close(log_pipe[1]);
    return 0;
}

static void poll_dests(struct hk_poll_dest *dests, size_t n)
{
    const struct hk_poll poll = {
        .changed = true, .now_ms = now_ms + ahead_ms, .acts = acts, .dests = dests, .n_dests = n};
    hk_redriver_polled(rd, &poll, now_ms);
}

static void poll(void)
{
    poll_dests(NULL, 0);
}

static void tell(const char *destination, int64_t open_until_ms)
{
    const struct hk_circuit circuit = {.destination = destination, .open_until_ms = open_until_ms};
    hk_redriver_told(rd, &circuit, 1, now_ms + ahead_ms, now_ms);
}

static void work(void)
{
    hk_redriver_work(rd, now_ms);
    hk_redriver_done(rd, now_ms + ahead_ms, now_ms);
}

/* Works as long as something is due now. */
static void work_off(void)
{
    for (int i = 0; hk_redriver_at_ms(rd) <= now_ms; i++) {
        assert_true(i < 50);
        work();
    }
}

/* What was logged since it was asked last: the lines' `msg`s and what follows. */
static const char *logged(void)
{
    assert_int_equal(write(log_pipe[1], "\n", 1), 1); /* so that there is something to read */
    ssize_t n = read(log_pipe[0], said, sizeof said - 1);
    assert_true(n > 0);
    said[n] = '\0';
    return said;
}

static unsigned count_of(const char *text, const char *word)
{
    unsigned n = 0;
    for (const char *at = text; (at = strstr(at, word)); at++)
        n++;
    return n;
}

/* ---- jobs ---- */

static void without_jobs_it_looks_once_and_lets_go(void **state)
{
    (void)state;
    assert_true(hk_redriver_at_ms(rd) == INT64_MAX); /* nothing before the first poll */
    hk_redriver_polled(rd, &(struct hk_poll){.changed = false, .acts = 9}, now_ms);
    assert_true(hk_redriver_at_ms(rd) == INT64_MAX);
    poll();
    assert_int_equal(hk_redriver_at_ms(rd), now_ms);
    work_off();
    assert_int_equal(store.opens, 1);
    assert_int_equal(store.lists, 1);
    assert_false(store.open);
    assert_true(hk_redriver_at_ms(rd) == INT64_MAX);
    for (int i = 0; i < 100; i++) {
        now_ms += 1000;
        poll();
    }
    assert_true(hk_redriver_at_ms(rd) == INT64_MAX);
    assert_string_equal(logged(), "\n");
}

static void an_act_brings_a_look_but_not_more_than_one_a_second(void **state)
{
    (void)state;
    poll();
    work_off();
    for (int i = 0; i < 50; i++) {
        now_ms += 100;
        acts++;
        poll();
        work_off();
    }
    assert_in_range(store.opens, 5, 7);
    assert_false(store.open);
}

static void a_job_is_stepped_when_it_is_due(void **state)
{
    (void)state;
    int64_t id = add_row("destination:a", "ann");
    store.wake_ms = now_ms + ahead_ms + 250;
    poll();
    work_off();
    assert_int_equal(store.steps, 1);
    assert_int_equal(store.stepped, id);
    assert_true(store.open);
    assert_int_equal(hk_redriver_at_ms(rd), now_ms + 250); /* on the loop's own clock */
    for (int i = 0; i < 8; i++) {
        now_ms = hk_redriver_at_ms(rd);
        acts++; /* every requeue is an act */
        poll();
        store.wake_ms = now_ms + ahead_ms + 250;
        work_off();
    }
    assert_in_range(store.steps, 8, 9);
    assert_in_range(store.lists, 2, 4); /* a look a second, not a step */
    row(id)->facts = (struct hk_redrive_facts){.total = 7, .requeued = 7, .resolved = 6, .failed = 1};
    row(id)->status = HK_REDRIVE_DONE;
    now_ms = hk_redriver_at_ms(rd);
    work_off();
    assert_false(store.open);
    assert_true(hk_redriver_at_ms(rd) == INT64_MAX);
    const char *log = logged();
    assert_int_equal(count_of(log, "msg=\"redrive started\" redrive=1"), 1);
    assert_int_equal(
        count_of(log,
                 "level=info msg=\"redrive finished\" redrive=1 letters=7 requeued=7 arrived=6 failed=1"),
        1);
    assert_int_equal(count_of(log, "msg="), 2);
}

static void a_job_that_aborted_is_a_warning_with_its_reason(void **state)
{
    (void)state;
    int64_t id = add_row("", "ann");
    row(id)->facts.requeued = 3; /* by the relay before */
    store.wake_ms = now_ms + ahead_ms + 1;
    poll();
    work_off();
    assert_int_equal(count_of(logged(), "msg=\"redrive continued\" redrive=1"), 1);
    row(id)->status = HK_REDRIVE_ABORTED;
    row(id)->ending = hk_str_of("a canary failed again");
    now_ms += 1;
    work_off();
    assert_int_equal(count_of(logged(), "level=warn msg=\"redrive aborted\""), 1);
    assert_int_equal(count_of(said, "why=\"a canary failed again\""), 1);
    assert_false(store.open);
}

static void of_a_job_that_another_relay_has_ended_nothing_is_said(void **state)
{
    (void)state;
    int64_t id = add_row("", "ann");
    store.wake_ms = now_ms + ahead_ms + 1;
    poll();
    work_off();
    (void)logged();
    row(id)->status = HK_REDRIVE_DONE; /* between two steps of ours: the next one finds it so */
    store.others_end = true;
    now_ms += 1;
    work_off();
    assert_int_equal(count_of(logged(), "msg="), 0);
    assert_false(store.open);
}

static void a_cancelled_job_is_let_go_at_the_next_look(void **state)
{
    (void)state;
    int64_t id = add_row("", "ann");
    int64_t by_other = add_row("", "ann");
    store.wake_ms = now_ms + ahead_ms + 60000;
    poll();
    work_off();
    assert_int_equal(store.steps, 2);
    (void)logged();
    row(id)->status = HK_REDRIVE_CANCELLED;
    row(id)->ending = hk_str_of("bob: wrong one");
    row(by_other)->status = HK_REDRIVE_DONE; /* another relay made the last step, and said so */
    acts++;
    now_ms += 2000;
    poll();
    work_off();
    assert_int_equal(store.steps, 2);
    assert_false(store.open);
    assert_int_equal(count_of(logged(), "msg="), 1);
    assert_int_equal(count_of(said, "msg=\"redrive cancelled\" redrive=1"), 1);
}

static void a_job_that_nobody_knows_any_more_is_let_go(void **state)
{
    (void)state;
    (void)add_row("", "ann");
    store.wake_ms = now_ms + ahead_ms + 1;
    poll();
    work_off();
    now_ms += 1;
    store.fail_step = HK_NOTFOUND;
    store.n = 0;
    work_off();
    assert_false(store.open);
    assert_true(hk_redriver_at_ms(rd) == INT64_MAX);
    assert_int_equal(count_of(logged(), "msg="), 1); /* its start */
}

static void of_several_jobs_the_one_that_is_due_first_is_stepped(void **state)
{
    (void)state;
    (void)add_row("", "ann");
    (void)add_row("reason:TIMEOUT", "bob");
    store.wake_ms = now_ms + ahead_ms + 300;
    poll();
    work(); /* the look */
    work();
    int64_t first = store.stepped;
    now_ms += 100;
    store.wake_ms = now_ms + ahead_ms + 300;
    work();
    assert_int_not_equal(store.stepped, first);
    assert_int_equal(hk_redriver_at_ms(rd), now_ms + 200);
    now_ms += 200;
    store.wake_ms = now_ms + ahead_ms + 300;
    work();
    assert_int_equal(store.stepped, first);
}

static void more_jobs_than_it_keeps_wait_for_others_to_end(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++)
        (void)add_row("", "ann");
    store.wake_ms = now_ms + ahead_ms + 60000;
    poll();
    work_off();
    assert_int_equal(store.steps, 16);
    for (size_t i = 0; i < 20; i++)
        if (store.rows[i].id > 4)
            store.rows[i].status = HK_REDRIVE_CANCELLED;
    acts++;
    now_ms += 2000;
    poll();
    work_off();
    acts++;
    now_ms += 2000;
    poll();
    work_off();
    assert_int_equal(store.steps, 20);
    assert_int_equal(count_of(logged(), "redrive started"), 20);
    assert_int_equal(count_of(said, "redrive cancelled"), 16);
}

static void a_filter_of_another_version_is_left_to_others(void **state)
{
    (void)state;
    (void)add_row("no.such.term:1 destination:", "ann");
    static char huge[5000];
    memset(huge, 'x', sizeof huge);
    row(add_row("", "ann"))->filter = (struct hk_str){huge, sizeof huge};
    poll();
    work_off();
    acts++;
    now_ms += 2000;
    poll();
    work_off();
    assert_int_equal(store.steps, 0);
    assert_true(store.open);
    assert_int_equal(count_of(logged(), "level=warn msg=\"redrive cannot be understood\""), 2);
    assert_int_equal(count_of(said, "msg="), 2);
    hk_redriver_close(rd);
    assert_false(store.open);
}

/* ---- trouble ---- */

static void a_job_that_another_relay_has_in_hand_is_tried_later(void **state)
{
    (void)state;
    (void)add_row("", "ann");
    store.fail_step = HK_BUSY;
    poll();
    work_off();
    assert_int_equal(store.steps, 1);
    assert_int_equal(hk_redriver_at_ms(rd), now_ms + 1000);
    assert_true(store.open);
    assert_int_equal(count_of(logged(), "msg="), 1);
    store.fail_step = HK_OK;
    store.wake_ms = now_ms + ahead_ms + 5000;
    now_ms += 1000;
    work_off();
    assert_int_equal(store.steps, 2);
}

static void a_store_that_does_not_answer_is_said_once_and_tried_again(void **state)
{
    (void)state;
    (void)add_row("", "ann");
    store.wake_ms = now_ms + ahead_ms + 1000;
    poll();
    work_off();
    (void)logged();
    store.fail_step = HK_UNAVAILABLE;
    now_ms += 1000;
    work_off();
    assert_false(store.open); /* the connection may be what is broken */
    assert_int_equal(hk_redriver_at_ms(rd), now_ms + 5000);
    store.fail_open = HK_UNAVAILABLE;
    for (int i = 0; i < 3; i++) {
        now_ms += 5000;
        work_off();
    }
    assert_int_equal(count_of(logged(), "msg="), 1);
    assert_int_equal(
        count_of(said, "level=warn msg=\"redrives cannot continue, trying again\" code=UNAVAILABLE"), 1);
    store.fail_open = store.fail_step = HK_OK;
    now_ms += 5000;
    store.wake_ms = now_ms + ahead_ms + 1000;
    unsigned steps = store.steps;
    work_off();
    assert_int_equal(store.steps, steps + 1);
    assert_string_equal(logged(), "\n"); /* the job has been announced */
    store.fail_list = HK_UNAVAILABLE;
    acts++;
    now_ms += 2000;
    poll();
    work_off();
    assert_int_equal(count_of(logged(), "msg="), 1); /* trouble again */
    store.fail_list = HK_OK;
    row(1)->status = HK_REDRIVE_DONE;
    now_ms += 5000;
    work_off();
    assert_false(store.open);
}

static void an_end_that_cannot_be_read_is_looked_for_again(void **state)
{
    (void)state;
    (void)add_row("", "ann");
    store.wake_ms = now_ms + ahead_ms + 60000;
    poll();
    work_off();
    (void)logged();
    row(1)->status = HK_REDRIVE_CANCELLED;
    store.fail_list = HK_BUSY;
    acts++;
    now_ms += 2000;
    poll();
    work_off();
    assert_int_equal(hk_redriver_at_ms(rd), now_ms + 1000);
    store.fail_list = HK_OK;
    now_ms += 1000;
    work_off();
    assert_int_equal(count_of(logged(), "redrive cancelled"), 1);
    assert_false(store.open);
}

static void an_end_is_said_though_it_could_not_be_read_at_first(void **state)
{
    (void)state;
    static char why[500];
    memset(why, 'w', sizeof why);
    (void)add_row("", "ann");
    store.wake_ms = now_ms + ahead_ms + 1;
    poll();
    work_off();
    (void)logged();
    row(1)->status = HK_REDRIVE_ABORTED;
    row(1)->ending = (struct hk_str){why, sizeof why};
    store.fail_list = HK_BUSY;
    now_ms += 1;
    work_off();
    store.fail_list = HK_OK;
    now_ms += 1000;
    work_off();
    assert_int_equal(count_of(logged(), "redrive aborted"), 1);
    assert_int_equal(count_of(said, "w"), 199 + 2); /* cut; and "warn", "why" */
    assert_false(store.open);
}

static void one_of_two_ends_that_cannot_be_read_waits_for_the_next_look(void **state)
{
    (void)state;
    (void)add_row("", "ann");
    (void)add_row("", "ann");
    store.wake_ms = now_ms + ahead_ms + 60000;
    poll();
    work_off();
    (void)logged();
    row(1)->status = row(2)->status = HK_REDRIVE_CANCELLED;
    store.fail_list = HK_BUSY;
    store.lists_before = store.lists + 2; /* the look, and the first of the two */
    acts++;
    now_ms += 2000;
    poll();
    work_off();
    assert_int_equal(count_of(logged(), "redrive cancelled"), 1);
    store.fail_list = HK_OK;
    now_ms += 1000;
    work_off();
    assert_int_equal(count_of(logged(), "redrive cancelled"), 1);
    assert_false(store.open);
}

/* ---- auto_redrive ---- */

static void what_died_while_the_breaker_was_open_is_redriven(void **state)
{
    (void)state;
    poll();
    work_off();
    store.letters = 5;
    ahead_ms = INT64_C(1763200000000) - now_ms; /* the store's clock: 2025-11-15T09:46:40Z */
    tell("a", now_ms + ahead_ms + 20000);
    assert_true(hk_redriver_at_ms(rd) == INT64_MAX);
    now_ms += 20000;
    tell("a", now_ms + ahead_ms + 20000); /* a probe failed: the outage began at the first */
    now_ms += 20000;
    store.wake_ms = now_ms + ahead_ms + 60000;
    tell("a", 0);
    assert_int_equal(hk_redriver_at_ms(rd), now_ms);
    work_off();
    assert_int_equal(store.n, 1);
    /* and of the minute before, in which it failed until the breaker opened */
    assert_string_equal(store.last_filter,
                        "destination:a reason:RETRY_EXHAUSTED since:2025-11-15T09:45:40.000Z");
    assert_true(store.open);
    now_ms += 1000;
    work_off();
    assert_int_equal(store.steps, 1);
    /* then those that ran out of time, once the first job is done */
    row(1)->status = HK_REDRIVE_DONE;
    acts++;
    now_ms += 1000;
    poll();
    work_off();
    assert_int_equal(store.n, 2);
    assert_string_equal(store.last_filter,
                        "destination:a reason:DEADLINE_EXCEEDED since:2025-11-15T09:45:40.000Z");
    row(2)->status = HK_REDRIVE_DONE;
    acts++;
    now_ms += 2000;
    poll();
    work_off();
    assert_int_equal(store.n, 2);
    assert_false(store.open);
    assert_true(hk_redriver_at_ms(rd) == INT64_MAX);
    /* closed once is redriven once */
    tell("a", 0);
    assert_true(hk_redriver_at_ms(rd) == INT64_MAX);
}

static void nothing_is_started_where_nothing_died(void **state)
{
    (void)state;
    poll();
    work_off();
    tell("a", now_ms + ahead_ms + 20000);
    tell("a", 0);
    work_off();
    assert_int_equal(store.counts, 2);
    assert_int_equal(store.n, 0);
    assert_false(store.open);
}

static void only_destinations_that_ask_for_it_are_redriven(void **state)
{
    (void)state;
    poll();
    work_off();
    store.letters = 5;
    static const char *const others[] = {"b", "c", "nobody"};
    for (size_t i = 0; i < COUNT(others); i++) {
        tell(others[i], now_ms + ahead_ms + 20000);
        tell(others[i], 0);
    }
    tell("a", 0); /* was not open, as far as we know */
    assert_true(hk_redriver_at_ms(rd) == INT64_MAX);
}

static void a_job_that_aborted_is_not_followed_by_another(void **state)
{
    (void)state;
    poll();
    work_off();
    store.letters = 5;
    store.wake_ms = now_ms + ahead_ms + 60000;
    tell("a", now_ms + ahead_ms + 20000);
    tell("a", 0);
    work_off();
    row(1)->status = HK_REDRIVE_ABORTED;
    acts++;
    now_ms += 2000;
    poll();
    work_off();
    assert_int_equal(store.n, 1);
    assert_false(store.open);
}

static void never_two_such_jobs_run_for_one_destination(void **state)
{
    (void)state;
    poll();
    work_off();
    store.letters = 5;
    store.wake_ms = now_ms + ahead_ms + 600000;
    (void)add_row("destination:a reason:RETRY_EXHAUSTED since:2025-11-15T09:45:40.000Z", "hikyaku");
    tell("a", now_ms + ahead_ms + 20000);
    tell("a", 0);
    work_off();
    assert_int_equal(store.n, 1);
    /* a person's job does not count, and that of another destination neither */
    row(1)->status = HK_REDRIVE_DONE;
    (void)add_row("destination:a reason:RETRY_EXHAUSTED", "ann");
    (void)add_row("destination:aa reason:RETRY_EXHAUSTED", "hikyaku");
    now_ms += 2000;
    tell("a", now_ms + ahead_ms + 20000);
    tell("a", 0);
    work_off();
    assert_int_equal(store.n, 4);
}

static void of_two_relays_with_the_same_thought_the_first_has_its_way(void **state)
{
    (void)state;
    poll();
    work_off();
    store.letters = 5;
    store.race = 1;
    store.wake_ms = now_ms + ahead_ms + 600000;
    tell("a", now_ms + ahead_ms + 20000);
    tell("a", 0);
    work_off();
    assert_int_equal(store.n, 2);
    assert_int_equal(row(1)->status, HK_REDRIVE_RUNNING);
    assert_int_equal(row(2)->status, HK_REDRIVE_CANCELLED);
}

static void a_breaker_that_others_opened_counts_and_one_that_they_closed_does_not(void **state)
{
    (void)state;
    ahead_ms = INT64_C(1763200000000) - now_ms;
    struct hk_poll_dest dests[] = {{.name = {"z", 1}},
                                   {.name = {"a", 1}, .open_until_ms = now_ms + ahead_ms + 5000}};
    poll_dests(dests, 2);
    work_off();
    store.letters = 5;
    store.wake_ms = now_ms + ahead_ms + 60000;
    tell("a", 0); /* our probe went well */
    work_off();
    /* it had opened 15 s ago: until in 5 s, for 20 s */
    assert_string_equal(store.last_filter,
                        "destination:a reason:RETRY_EXHAUSTED since:2025-11-15T09:45:25.000Z");
    row(1)->status = HK_REDRIVE_CANCELLED;
    acts++;
    now_ms += 2000;
    poll();
    work_off();
    assert_int_equal(store.n, 1);

    dests[1].open_until_ms = INT64_MAX; /* a strange clock: since now, then */
    poll_dests(dests, 2);
    poll(); /* closed by somebody else */
    tell("a", 0);
    work_off();
    assert_int_equal(store.n, 1);
}

static void a_start_that_fails_is_tried_again(void **state)
{
    (void)state;

    static enum hk_code *const places[] = {&store.fail_start, &store.fail_count, &store.fail_open,
                                           &store.fail_list};

    poll();
    work_off();
    store.letters = 5;
    for (size_t i = 0; i < COUNT(places); i++) {
        *places[i] = HK_UNAVAILABLE;
        tell("a", now_ms + ahead_ms + 20000);
        tell("a", 0);
        work_off();
        assert_int_equal(store.n, i);
        *places[i] = HK_OK;
        now_ms += 5000;
        store.wake_ms = now_ms + ahead_ms + 60000;
        work_off();
        assert_int_equal(store.n, i + 1);
        row((int64_t)i + 1)->status = HK_REDRIVE_CANCELLED;
        acts++;
        now_ms += 2000;
        poll();
        work_off();
        assert_false(store.open);
    }
}

/* What comes after the first job is found out later, too. */
static void a_job_whose_end_cannot_be_read_is_asked_for_again(void **state)
{
    (void)state;
    poll();
    work_off();
    store.letters = 5;
    store.wake_ms = now_ms + ahead_ms + 600000;
    store.fail_list = HK_BUSY;
    store.lists_before = store.lists + 1; /* after it was started nobody can see whether it is alone */
    tell("a", now_ms + ahead_ms + 20000);
    tell("a", 0);
    work();
    assert_int_equal(store.n, 1);
    store.fail_list = HK_OK;
    now_ms += 1000;
    work_off();
    row(1)->status = HK_REDRIVE_DONE;
    acts++;
    now_ms += 2000;
    poll();
    store.fail_list = HK_BUSY;
    store.lists_before = store.lists + 3; /* the look with the end of the job, and whether another runs */
    work_off();
    assert_int_equal(store.n, 1);
    store.fail_list = HK_OK;
    now_ms += 1000;
    work_off();
    assert_int_equal(store.n, 2);
}

static void a_reload_keeps_outages_of_destinations_that_stay(void **state)
{
    (void)state;
    poll();
    work_off();
    store.letters = 5;
    store.wake_ms = now_ms + ahead_ms + 60000;
    tell("a", now_ms + ahead_ms + 20000);
    struct hk_config *next = parse("destinations:\n"
                                   "  b: { \"null\": {}, auto_redrive: true }\n"
                                   "  a: { \"null\": {}, auto_redrive: true }\n");
    assert_int_equal(hk_redriver_configure(rd, next, NULL), HK_OK);
    hk_config_free(config);
    config = next;
    tell("b", 0);
    tell("a", 0);
    work_off();
    assert_int_equal(store.n, 1);
    assert_non_null(strstr(store.last_filter, "destination:a "));
    next = parse("{}");
    assert_int_equal(hk_redriver_configure(rd, next, NULL), HK_OK);
    hk_config_free(config);
    config = next;
    tell("a", now_ms + ahead_ms + 20000);
    tell("a", 0);
    row(1)->status = HK_REDRIVE_DONE;
    acts++;
    now_ms += 2000;
    poll();
    work_off();
    assert_int_equal(store.n, 1);
}

/* ---- memory ---- */

static void *no_resize(void *arg, void *old, size_t bytes)
{
    (void)arg, (void)old, (void)bytes;
    return NULL;
}

static void plain_release(void *arg, void *old)
{
    (void)arg;
    free(old);
}

static void without_memory_it_says_so_and_goes_on_later(void **state)
{
    (void)state;
    struct hk_err err;
    struct hk_redriver *none = NULL;
    const struct hk_allocator none_left = {no_resize, plain_release, NULL};
    const struct hk_redriver_options options = {
        .url = "fake:", .admin = &fake_admin, .letters = &fake_letters, .log = &logger};
    (void)add_row("destination:a text:x", "ann");
    poll();
    hk_allocator_set(&none_left);
    enum hk_code made = hk_redriver_new(&options, &none, &err);
    enum hk_code configured = hk_redriver_configure(rd, config, &err);
    work();
    hk_allocator_set(NULL);
    assert_int_equal(made, HK_NOMEM);
    assert_int_equal(configured, HK_NOMEM);
    assert_int_equal(store.steps, 0);
    assert_int_equal(hk_redriver_at_ms(rd), now_ms + 5000);
    assert_int_equal(count_of(logged(), "code=NOMEM error=\"out of memory"), 1);
    now_ms += 5000;
    store.wake_ms = now_ms + ahead_ms + 60000;
    work_off();
    assert_int_equal(store.steps, 1);
    tell("a", now_ms + ahead_ms + 20000);
    tell("a", 0);
    store.letters = 5;
    hk_allocator_set(&none_left);
    work();
    hk_allocator_set(NULL);
    assert_int_equal(store.n, 1);
    now_ms += 5000;
    work_off();
    assert_int_equal(store.n, 2);
    hk_redriver_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        TEST(without_jobs_it_looks_once_and_lets_go),
        TEST(an_act_brings_a_look_but_not_more_than_one_a_second),
        TEST(a_job_is_stepped_when_it_is_due),
        TEST(a_job_that_aborted_is_a_warning_with_its_reason),
        TEST(of_a_job_that_another_relay_has_ended_nothing_is_said),
        TEST(a_cancelled_job_is_let_go_at_the_next_look),
        TEST(a_job_that_nobody_knows_any_more_is_let_go),
        TEST(of_several_jobs_the_one_that_is_due_first_is_stepped),
        TEST(more_jobs_than_it_keeps_wait_for_others_to_end),
        TEST(a_filter_of_another_version_is_left_to_others),
        TEST(a_job_that_another_relay_has_in_hand_is_tried_later),
        TEST(a_store_that_does_not_answer_is_said_once_and_tried_again),
        TEST(an_end_that_cannot_be_read_is_looked_for_again),
        TEST(an_end_is_said_though_it_could_not_be_read_at_first),
        TEST(one_of_two_ends_that_cannot_be_read_waits_for_the_next_look),
        TEST(what_died_while_the_breaker_was_open_is_redriven),
        TEST(nothing_is_started_where_nothing_died),
        TEST(only_destinations_that_ask_for_it_are_redriven),
        TEST(a_job_that_aborted_is_not_followed_by_another),
        TEST(never_two_such_jobs_run_for_one_destination),
        TEST(of_two_relays_with_the_same_thought_the_first_has_its_way),
        TEST(a_breaker_that_others_opened_counts_and_one_that_they_closed_does_not),
        TEST(a_start_that_fails_is_tried_again),
        TEST(a_job_whose_end_cannot_be_read_is_asked_for_again),
        TEST(a_reload_keeps_outages_of_destinations_that_stay),
        TEST(without_memory_it_says_so_and_goes_on_later),
#undef TEST
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
