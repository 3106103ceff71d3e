/* SPDX-License-Identifier: Apache-2.0 */
/* What the desk tells of dead letters: masked throughout, recorded before it is revealed, and whole when the store is closed. And of the
 * store itself: its schema, its health, its time. */
#include <string.h>

#include "base/str.h"
#include "desk/alerts.h"
#include "desk/audit.h"
#include "desk/clock.h"
#include "desk/dead.h"
#include "desk/dead_look.h"
#include "desk/destinations.h"
#include "desk/doctor.h"
#include "desk/forms.h"
#include "desk/messages.h"
#include "desk/redrive.h"
#include "desk/setup.h"
#include "desk/token.h"
#include "letters_suite_impl.h"
#include "sqlite_kind.h"

static const char masks[] = "masks:\n  - { paths: [mail], headers: [x-key] }\n";

static struct hk_desk desk;
static struct hk_config *config;
static struct hk_pool mem;
static struct hk_buf text;

/* Two letters: the first was edited once, and both errors repeat the mail of an older payload. */
static int set_up(void **state)
{
    struct hk_diags diags;
    uint32_t version = 0;
    if (suite_setup(state) != 0)
        return -1;
    hk_diags_init(&diags);
    assert_int_equal(hk_config_parse(masks, strlen(masks), "test", NULL, &diags, &config), HK_OK);
    hk_diags_fini(&diags);
    struct hk_store *store = suite_open(NULL);
    letters_fill(store, suite_acquire(store), 2, NULL);
    suite_close(store);
    sqlite_kind.sql("UPDATE dead_letters SET payload = '{\"mail\":\"old@x.jp\",\"n\":1}', "
                    "headers = '{\"x-key\":\"K-1234\"}', error_message = 'no old@x.jp, no K-1234'");
    sqlite_kind.sql("UPDATE outbox_attempts SET error = 'no old@x.jp', response_body = 'old@x.jp'");
    struct hk_admin *admin = admin_open();
    const struct hk_letter_edit e = {1, 1, hk_str_of("{\"mail\":\"new@x.jp\"}"), "ann", "why", "edit"};
    assert_int_equal(letters_ops->edit(admin, &e, &version, NULL), HK_OK);
    admin_ops->close(admin);
    hk_desk_init(&desk, config, sqlite_kind.url());
    hk_buf_init(&text, 1 << 20);
    return 0;
}

static int tear_down(void **state)
{
    hk_desk_fini(&desk);
    hk_config_free(config);
    hk_pool_fini(&mem);
    hk_buf_fini(&text);
    return suite_teardown(state);
}

static const struct hk_caller viewer = {.role = HK_ROLE_VIEWER, .actor = "ann"};
static const struct hk_caller revealing = {
    .role = HK_ROLE_OPERATOR, .actor = "ann", .reason = "asked", .reveal = true, .may_reveal = true};

/* What was written reads back, and is written again as it was. */
static void check_reads_back(const struct hk_op *op)
{
    struct hk_buf again;
    struct hk_json json;
    struct hk_err err = {.message = ""};
    if (!op->form)
        return;
    void *read = hk_pool_alloc(&mem, 1, op->result_size);
    assert_non_null(read);
    enum hk_code rc = hk_form_read(hk_buf_str(&text), op->form, &mem, read, &err);
    NOTE_IF(rc != HK_OK, "%s\n%s\n", err.message, hk_buf_cstr(&text));
    assert_int_equal(rc, HK_OK);
    hk_buf_init(&again, HK_FORM_TEXT_MAX);
    hk_json_init(&json, &again, false);
    hk_op_write(op, &json, read);
    assert_string_equal(hk_buf_cstr(&again), hk_buf_cstr(&text));
    hk_buf_fini(&again);
}

/* The result as JSON, once the store is closed: nothing of it may lie there. */
static const char *ask(const struct hk_op *op, const struct hk_caller *caller, const void *request,
                       void *result)
{
    struct hk_err err = {.message = ""};
    struct hk_json json;
    enum hk_code rc = hk_desk_ask(&desk, op, caller, request, &mem, result, &err);
    NOTE_IF(rc != HK_OK, "%s\n", err.message);
    assert_int_equal(rc, HK_OK);
    hk_desk_fini(&desk);
    hk_desk_init(&desk, config, sqlite_kind.url());
    hk_buf_reset(&text);
    hk_json_init(&json, &text, false);
    hk_op_write(op, &json, result);
    assert_int_equal(hk_buf_status(&text), HK_OK);
    check_reads_back(op);
    return hk_buf_cstr(&text);
}

static void assert_hides(const char *json)
{
    assert_null(strstr(json, "old@"));
    assert_null(strstr(json, "new@"));
    assert_null(strstr(json, "K-1234"));
}

static void one_letter_is_masked_throughout(void **state)
{
    struct hk_dead_shown shown = {.cut = true};
    (void)state;
    const char *json = ask(&hk_op_dead_show, &viewer, &(struct hk_dead_show_ask){.id = "m1"}, &shown);
    assert_hides(json);
    assert_non_null(strstr(json, "\"error_message\":\"no ***, no ***\""));
    assert_non_null(strstr(json, "\"payload\":\"{\\\"mail\\\":\\\"***\\\"}\""));
    assert_true(shown.masked && !shown.cut);
    /* beside what is shown, no payload is there that somebody could show */
    assert_int_equal(shown.all.n_versions, 1);
    assert_int_equal(shown.all.versions[0].payload.len + shown.all.letter.payload.len, 0);
    json =
        ask(&hk_op_dead_show, &viewer, &(struct hk_dead_show_ask){.id = "1", .payload_version = 1}, &shown);
    assert_hides(json);
    assert_non_null(strstr(json, "\\\"n\\\":1"));
    assert_rows("outbox_audit WHERE act = 'reveal'", 0);
}

/* A list that no index serves stops at its bound, says so, and goes on from there to the same end. */
static void a_list_stops_at_its_bound_and_goes_on(void **state)
{
    struct hk_messages found = {.looked = 0};
    struct hk_messages_ask request = {.words = {.filter = "payload.n:needle"}, .limit = 10, .scan = 5000};
    char after[48] = "";
    size_t n = 0, asked = 0;
    (void)state;
    sqlite_kind.sql(
        "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 12000) INSERT INTO outbox "
        "(message_id, destination, event_type, payload) SELECT 'm' || x, 'a', 'T', CASE WHEN x IN (1, 6000, 12000) "
        "THEN '{\"n\":\"needle\"}' ELSE '{}' END FROM c");
    do {
        const char *json = ask(&hk_op_messages_list, &viewer, &request, &found);
        assert_true((strstr(json, "\"looked\":null") != NULL) == (found.looked == 0));
        n += found.n;
        memcpy(after, found.next, sizeof after);
        request.after = after;
    } while (found.looked > 0 && ++asked < 20);
    assert_string_equal(found.next, "");
    assert_int_equal(n, 3);
    assert_int_equal(asked, 2);
    request = (struct hk_messages_ask){.words = {.filter = "payload.n:needle"}, .limit = 2, .scan = 100000};
    (void)ask(&hk_op_messages_list, &viewer, &request, &found);
    assert_int_equal(found.looked, 0); /* full before it came to its bound */
    memcpy(after, found.next, sizeof after);
    request.after = after;
    (void)ask(&hk_op_messages_list, &viewer, &request, &found);
    assert_int_equal(found.n, 1);
    assert_string_equal(found.next, "");
}

static void lists_and_groups_are_masked(void **state)
{
    struct hk_dead_list list = {.next = 0};
    struct hk_letter_groups groups = {.n = 0};
    (void)state;
    const char *json =
        ask(&hk_op_dead_list, &viewer, &(struct hk_dead_list_ask){.limit = 1, .oldest = true}, &list);
    assert_hides(json);
    assert_non_null(strstr(json, "\"error_message\":\"no ***, no ***\""));
    assert_int_equal(list.n, 1);
    assert_int_equal(list.next, 1);
    list = (struct hk_dead_list){.next = 0};
    json = ask(&hk_op_dead_list, &viewer, &(struct hk_dead_list_ask){.limit = 9, .after = 1, .oldest = true},
               &list);
    assert_hides(json);
    assert_non_null(strstr(json, "\"id\":\"2\""));
    assert_int_equal(list.next, 0);
    json = ask(&hk_op_dead_groups, &viewer, &(struct hk_dead_groups_ask){.limit = 9}, &groups);
    assert_hides(json);
    assert_non_null(strstr(json, "\"example_error\":\"no ***, no ***\""));
}

static void a_brief_list_has_no_errors(void **state)
{
    struct hk_dead_list list = {.next = 0};
    (void)state;
    const char *json =
        ask(&hk_op_dead_list, &viewer, &(struct hk_dead_list_ask){.limit = 9, .briefly = true}, &list);
    assert_hides(json);
    assert_int_equal(list.n, 2);
    assert_int_equal(list.items[0].error.len, 0);
    assert_true(list.items[0].reason.len > 0 && list.items[0].destination.len > 0);
}

struct taken {
    size_t n;
    bool hides, shows;
};

static bool take(void *arg, const struct hk_letter *letter, bool cut)
{
    struct taken *taken = arg;
    char payload[100];
    assert_false(cut);
    assert_true(hk_str_copy(payload, sizeof payload, letter->payload));
    taken->hides = strstr(payload, "***") != NULL;
    taken->shows = strstr(payload, "@x.jp") != NULL;
    return ++taken->n < 2; /* whoever has enough says so */
}

static void what_is_revealed_is_recorded_first(void **state)
{
    struct hk_dead_shown shown = {.cut = false};
    struct hk_dead_exported exported = {.letters = 0};
    struct taken taken = {.n = 0};
    struct hk_dead_export_ask request = {.take = take, .arg = &taken};
    struct hk_err err = {.message = ""};
    (void)state;
    const char *json = ask(&hk_op_dead_show, &revealing, &(struct hk_dead_show_ask){.id = "1"}, &shown);
    assert_non_null(strstr(json, "new@x.jp"));
    assert_non_null(strstr(json, "no old@x.jp, no K-1234"));
    assert_rows("outbox_audit WHERE act = 'reveal' AND reason = 'asked'", 1);
    assert_int_equal(hk_desk_ask(&desk, &hk_op_dead_export, &viewer, &request, &mem, &exported, &err), HK_OK);
    assert_true(taken.n == 2 && taken.hides && !taken.shows);
    taken.n = 0;
    assert_int_equal(hk_desk_ask(&desk, &hk_op_dead_export, &revealing, &request, &mem, &exported, &err),
                     HK_OK);
    assert_true(taken.n == 2 && !taken.hides && taken.shows);
    /* when it cannot be recorded, nothing is shown */
    sqlite_kind.sql("CREATE TRIGGER t BEFORE INSERT ON outbox_audit BEGIN SELECT raise(ABORT, 'no'); END");
    taken.n = 0;
    assert_true(hk_desk_ask(&desk, &hk_op_dead_export, &revealing, &request, &mem, &exported, &err) != HK_OK);
    assert_int_equal(taken.n, 0);
}

static void wrong_words_are_told_before_the_store_is_asked(void **state)
{
    struct hk_dead_list list = {.next = 0};
    struct hk_err err = {.message = ""};
    const struct hk_dead_list_ask request = {.words.filter = "nonsense:1", .limit = 1};
    (void)state;
    desk.url = "nothing:";
    assert_int_equal(hk_desk_ask(&desk, &hk_op_dead_list, &viewer, &request, &mem, &list, &err), HK_INVALID);
    assert_string_equal(desk.wrong_field, "filter");
    assert_int_equal(err.message[0], ':');
}

static void the_audit_is_told_and_verified(void **state)
{
    struct hk_audit_rows rows = {.n = 0};
    struct hk_audit_act act = {.row = {.id = 0}};
    struct hk_audit_verified verified = {.rows = 0};
    (void)state;
    const char *json = ask(&hk_op_audit_list, &viewer, &(struct hk_audit_list_ask){.limit = 9}, &rows);
    assert_non_null(strstr(json, "\"act\":\"edit\""));
    json = ask(&hk_op_audit_show, &viewer, &(struct hk_audit_show_ask){.id = "1", .limit = 9}, &act);
    assert_non_null(strstr(json, "\"reason\":\"why\""));
    json = ask(&hk_op_audit_verify, &viewer, NULL, &verified);
    assert_non_null(strstr(json, "\"ok\":true,\"rows\":1"));
    sqlite_kind.sql("DROP TRIGGER outbox_audit_stays");
    sqlite_kind.sql("UPDATE outbox_audit SET actor = 'bob'");
    verified = (struct hk_audit_verified){.rows = 0};
    json = ask(&hk_op_audit_verify, &viewer, NULL, &verified);
    assert_non_null(strstr(json, "\"ok\":false"));
    assert_int_equal(verified.bad_id, 1);
}

static const struct hk_caller admin_caller = {.role = HK_ROLE_ADMIN, .actor = "ann", .reason = "asked"};

static void the_schema_is_made_once(void **state)
{
    struct hk_inited done = {.sql = {NULL, 0}};
    struct hk_err err = {.message = ""};
    (void)state;
    assert_int_equal(
        hk_desk_ask(&desk, &hk_op_init, &revealing, &(struct hk_init_ask){.print = true}, &mem, &done, &err),
        HK_DENIED);
    const char *json = ask(&hk_op_init, &admin_caller, &(struct hk_init_ask){.wal = true}, &done);
    assert_non_null(strstr(json, "\"created\":false"));
    assert_true(done.is.from == done.is.to && done.is.to > 0 && done.sql.ptr == NULL);
    /* only said, not done: there is no such folder */
    desk.url = "sqlite:/nonexistent/desk.db";
    json = ask(&hk_op_init, &admin_caller, &(struct hk_init_ask){.print = true}, &done);
    assert_non_null(strstr(json, "\"sql\":"));
    assert_non_null(strstr(json, "CREATE TABLE outbox"));
    assert_non_null(strstr(json, "desk.db"));
}

static void what_a_kind_of_store_lacks_is_told_of_the_field(void **state)
{
    static const struct {
        struct hk_init_ask ask;
        const char *field; /* NULL: no field of it alone */
    } wrong[] = {{{.notify = true}, "notify"},
                 {{.no_notify = true}, "no_notify"},
                 {{.partition_sent = true}, "partition_sent"},
                 {{.print_grants = true}, "print_grants"},
                 {{.notify = true, .no_notify = true}, NULL}};

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct hk_inited done;
        struct hk_err err = {.message = ""};
        assert_int_equal(hk_desk_ask(&desk, &hk_op_init, &admin_caller, &wrong[i].ask, &mem, &done, &err),
                         HK_INVALID);
        assert_true(wrong[i].field ? strcmp(desk.wrong_field, wrong[i].field) == 0 : !desk.wrong_field);
    }
}

static void doctor_says_what_it_finds_with_what_to_do(void **state)
{
    struct hk_diagnosis found = {.n = 0};
    (void)state;
    const struct hk_doctor_ask sound = {.known = true, .file = "x.yaml", .complete = true, .can_lock = true};
    const char *json = ask(&hk_op_doctor, &viewer, &sound, &found);
    assert_non_null(strstr(json, "x.yaml names no destinations"));
    assert_non_null(strstr(json, "{\"check\":\"dead letters\",\"level\":\"warn\",\"message\":\"2 open: "));
    assert_null(strstr(json, "\"check\":\"secrets\""));
    assert_null(strstr(json, "\"check\":\"schema\",\"level\":\"fail\""));
    size_t *by = found.found;
    assert_int_equal(by[HK_NOTE_OK] + by[HK_NOTE_WARN] + by[HK_NOTE_FAIL], found.n);
    assert_true((strstr(json, "\"ok\":true") != NULL) == (by[HK_NOTE_FAIL] == 0));
    const struct hk_doctor_ask bad = {.known = true, .file = "x.yaml", .broken = true, .is_root = true};
    desk.url = "sqlite:/nonexistent/desk.db";
    json = ask(&hk_op_doctor, &viewer, &bad, &found);
    assert_non_null(strstr(json, "x.yaml has errors"));
    assert_non_null(strstr(json, "{\"check\":\"database\",\"level\":\"fail\""));
    assert_non_null(strstr(json, "a relay keeps all system calls"));
    assert_non_null(strstr(json, "\"ok\":false"));
}

static void the_stores_time_is_told_and_set_back(void **state)
{
    struct hk_clock_state is = {.mended = true};
    struct hk_err err = {.message = ""};
    const struct hk_clock_reset_ask dry = {.dry_run = true}, now = {.dry_run = false};
    (void)state;
    sqlite_kind.sql("DELETE FROM outbox_relay"); /* its relay is dead */
    sqlite_kind.sql(
        "UPDATE outbox_meta SET value = strftime('%s') * 1000 + 3600000 WHERE key = 'high_water_ms'");
    const char *json = ask(&hk_op_clock_show, &viewer, NULL, &is);
    assert_non_null(strstr(json, "\"in_step\":false"));
    json = ask(&hk_op_clock_reset, &admin_caller, &dry, &is);
    assert_non_null(strstr(json, "\"in_step\":false"));
    assert_non_null(strstr(json, "\"reset\":false"));
    assert_true(hk_clock_ahead_ms(&is) > 3000000);
    assert_rows("outbox_audit WHERE act = 'clock-reset'", 0);
    assert_int_equal(hk_desk_ask(&desk, &hk_op_clock_reset, &revealing, &now, &mem, &is, &err), HK_DENIED);
    json = ask(&hk_op_clock_reset, &admin_caller, &now, &is);
    assert_non_null(strstr(json, "\"reset\":true"));
    assert_rows("outbox_audit WHERE act = 'clock-reset' AND actor = 'ann' AND reason = 'asked'", 1);
    json = ask(&hk_op_clock_show, &viewer, NULL, &is);
    assert_non_null(strstr(json, "\"in_step\":true"));
}

static const struct hk_caller by_hand = {.role = HK_ROLE_OPERATOR, .actor = "ann", .reason = "why"};

static void an_edit_shows_its_difference_masked(void **state)
{
    struct hk_dead_edited edited = {.id = 0};
    struct hk_dead_opened opened = {.id = 0};
    struct hk_dead_edit_ask request = {.id = "1", .payload = hk_str_of("{\"mail\":\"z@x.jp\",\"n\":2}")};
    struct hk_err err = {.message = ""};
    (void)state;
    assert_int_equal(hk_desk_ask(&desk, &hk_op_dead_open, &by_hand, &request, &mem, &opened, &err),
                     HK_CONFLICT);
    assert_non_null(strstr(err.message, "masked fields"));
    request.dry_run = true;
    const char *json = ask(&hk_op_dead_edit, &by_hand, &request, &edited);
    assert_hides(json);
    assert_null(strstr(json, "z@x.jp"));
    assert_non_null(strstr(json, "\"changed\":false,\"dry_run\":true,\"payload_version\":2"));
    request.dry_run = false;
    request.version = 1; /* somebody has edited it since */
    assert_int_equal(hk_desk_ask(&desk, &hk_op_dead_edit, &by_hand, &request, &mem, &edited, &err),
                     HK_CONFLICT);
    request.version = 2;
    json = ask(&hk_op_dead_edit, &by_hand, &request, &edited);
    assert_non_null(strstr(json, "\"changed\":true,\"dry_run\":false,\"payload_version\":3"));
    assert_rows("outbox_audit WHERE act = 'reveal'", 0);
}

static void an_act_tells_of_each_letter(void **state)
{
    static const char *const names[] = {"1", "9"};
    struct hk_dead_acted acted = {.n = 0};
    struct hk_dead_ask request = {.ids = {names, 2}, .dry_run = true};
    struct hk_err err = {.message = ""};
    (void)state;
    const char *json = ask(&hk_op_dead_discard, &by_hand, &request, &acted);
    assert_non_null(strstr(json, "\"letters\":{\"n\":1,"));
    assert_int_equal(acted.missing, 1);
    request.dry_run = false;
    json = ask(&hk_op_dead_discard, &by_hand, &request, &acted);
    assert_non_null(strstr(json, "\"changed\":1,\"unchanged\":0,\"missing\":1"));
    assert_non_null(strstr(json, "{\"id\":\"9\",\"did\":\"missing\",\"error\":\"there is no such letter\"}"));
    static const char *const unknown[] = {"no-such-message", "1", "9"};
    const struct hk_op *const ops[] = {&hk_op_dead_restore, &hk_op_dead_discard, &hk_op_dead_restore,
                                       &hk_op_dead_requeue, &hk_op_dead_resolve};
    request.ids =
        (struct hk_texts){unknown, 3}; /* whatever the act: the unknown are named, the known is done */
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        json = ask(ops[i], &by_hand, &request, &acted);
        assert_int_equal(acted.missing, 2);
        assert_int_equal(acted.done + acted.nothing + acted.refused, 1);
        assert_non_null(strstr(json, "{\"id\":null,\"name\":\"no-such-message\",\"did\":\"missing\","));
        assert_non_null(strstr(json, "\"error\":\"there is no dead letter of this message\""));
    }
    assert_rows("outbox_retry", 1);
    sqlite_kind.sql("DELETE FROM outbox_retry");
    request = (struct hk_dead_ask){.words.status = "failed"};
    json = ask(&hk_op_dead_requeue, &by_hand, &request, &acted);
    assert_non_null(strstr(json, "\"did\":\"done\",\"message_id\":\"m2\""));
    assert_rows("outbox_retry", 1);
    request.ids = (struct hk_texts){names, 1};
    assert_int_equal(hk_desk_ask(&desk, &hk_op_dead_requeue, &by_hand, &request, &mem, &acted, &err),
                     HK_INVALID);
    assert_int_equal(hk_desk_ask(&desk, &hk_op_dead_requeue, &viewer, &request, &mem, &acted, &err),
                     HK_DENIED);
}

static bool at_once(void *arg)
{
    (void)arg;
    return true;
}

/* A page holds 500 letters: what was changed before somebody stopped it is told. */
static void an_act_that_is_stopped_tells_how_far_it_came(void **state)
{
    struct hk_caller caller = by_hand;
    struct hk_dead_acted acted = {.n = 0};
    (void)state;
    struct hk_store *store = suite_open(NULL);
    letters_fill(store, suite_acquire(store), 600, NULL);
    suite_close(store);
    caller.stop = at_once;
    const char *json =
        ask(&hk_op_dead_resolve, &caller, &(struct hk_dead_ask){.words.status = "failed"}, &acted);
    assert_int_equal(acted.stopped.code, HK_CANCELLED);
    assert_int_equal(acted.done, 500);
    assert_non_null(strstr(json, "\"stopped\":\"interrupted"));
}

static void a_redrive_is_planned_started_and_cancelled(void **state)
{
    struct hk_redrive_plan plan = {.id = 0};
    struct hk_redrive_jobs jobs = {.n = 0};
    struct hk_redrive_shown shown = {.now_ms = 0};
    struct hk_redrive_ask request = {.words.status = "failed", .rate = 5};
    struct hk_err err = {.message = ""};
    (void)state;
    const char *json = ask(&hk_op_redrive_plan, &viewer, &request, &plan);
    assert_non_null(strstr(json, "\"letters\":{\"n\":2,\"estimate\":false}"));
    assert_non_null(strstr(json, "\"unknown_destination\":"));
    json = ask(&hk_op_redrive_start, &by_hand, &request, &plan);
    assert_non_null(strstr(json, "{\"redrive\":\"1\""));
    assert_int_equal(hk_desk_ask(&desk, &hk_op_redrive_start, &by_hand, &request, &mem, &plan, &err),
                     HK_BUSY);
    request.dry_run = true;
    json = ask(&hk_op_redrive_start, &by_hand, &request, &plan);
    assert_int_equal(plan.twin, 1);
    json = ask(&hk_op_redrive_list, &viewer, &(struct hk_redrive_list_ask){.running = true}, &jobs);
    assert_non_null(strstr(json, "\"actor\":\"ann\",\"reason\":\"why\""));
    json = ask(&hk_op_redrive_cancel, &by_hand, &(struct hk_redrive_job_ask){.id = "1"}, &shown);
    assert_non_null(strstr(json, "\"status\":\"cancelled\""));
    assert_int_equal(hk_desk_ask(&desk, &hk_op_redrive_show, &viewer, &(struct hk_redrive_job_ask){.id = "x"},
                                 &mem, &shown, &err),
                     HK_INVALID);
    assert_int_equal(hk_desk_ask(&desk, &hk_op_redrive_show, &viewer, &(struct hk_redrive_job_ask){.id = "7"},
                                 &mem, &shown, &err),
                     HK_NOTFOUND);
}

/* Letters that died again or were restored while it ran may match by the time it comes to them: not "8 of 5". */
static void a_redrive_is_never_more_than_all_of_it(void **state)
{
    struct hk_redrive_plan plan = {.id = 0};
    struct hk_redrive_jobs jobs = {.n = 0};
    struct hk_redrive_shown shown = {.now_ms = 0};
    (void)state;
    (void)ask(&hk_op_redrive_start, &by_hand, &(struct hk_redrive_ask){.words.status = "failed", .rate = 5},
              &plan);
    sqlite_kind.sql("UPDATE outbox_redrive SET total = 5, requeued = 8");
    const char *json = ask(&hk_op_redrive_show, &viewer, &(struct hk_redrive_job_ask){.id = "1"}, &shown);
    assert_non_null(strstr(json, "\"total\":8,\"matched_later\":3,\"requeued\":8"));
    json = ask(&hk_op_redrive_list, &viewer, &(struct hk_redrive_list_ask){.running = false}, &jobs);
    assert_non_null(strstr(json, "\"total\":8,\"matched_later\":3,\"requeued\":8"));
    sqlite_kind.sql("UPDATE outbox_redrive SET total = 9");
    json = ask(&hk_op_redrive_show, &viewer, &(struct hk_redrive_job_ask){.id = "1"}, &shown);
    assert_non_null(strstr(json, "\"total\":9,\"matched_later\":0,\"requeued\":8"));
}

static void destinations_and_alerts_are_told_when_the_store_is_closed(void **state)
{
    struct hk_dests dests = {.n = 0};
    struct hk_dest_paused paused = {.changed = false};
    struct hk_alerts_list alerts = {.now_ms = 0};
    struct hk_alert_muted muted = {.changed = false};
    struct hk_alert_mute_ask mute = {.rule = "dead-letter", .for_ms = 60000};
    struct hk_err err = {.message = ""};
    (void)state;
    (void)ask(&hk_op_destinations_pause, &by_hand, &(struct hk_dest_ask){.destination = "a"}, &paused);
    assert_true(paused.paused && paused.changed);
    const char *json = ask(&hk_op_destinations_list, &viewer, NULL, &dests);
    assert_non_null(strstr(json, "\"paused\":true,\"paused_by\":\"ann\",\"paused_reason\":\"why\""));
    (void)ask(&hk_op_alerts_mute, &by_hand, &mute, &muted);
    json = ask(&hk_op_alerts_list, &viewer, NULL, &alerts);
    assert_non_null(strstr(json, "{\"rule\":\"dead-letter\","));
    mute.until = "2020-01-01T00:00:00Z";
    mute.for_ms = 0;
    assert_int_equal(hk_desk_ask(&desk, &hk_op_alerts_mute, &by_hand, &mute, &mem, &muted, &err), HK_INVALID);
    assert_string_equal(desk.wrong_field, "until");
}

static const struct hk_caller owner = {
    .role = HK_ROLE_ADMIN, .actor = "ann", .reason = "why", .may_reveal = true};

static void a_token_is_shown_once_and_never_kept(void **state)
{
    struct hk_token_created made = {.id = 0};
    struct hk_tokens tokens = {.n = 0};
    struct hk_token_revoked revoked = {.changed = false};
    char sql[300], hash[HK_API_HASH_LEN + 1] = "";
    (void)state;
    const char *json = ask(&hk_op_token_create, &owner,
                           &(struct hk_token_create_ask){.name = "ci", .role = "viewer"}, &made);
    assert_true(hk_token_hash(hk_str_of(made.token), hash));
    assert_non_null(strstr(json, made.token));
    assert_int_equal(made.expires_ms - made.created_ms, INT64_C(90) * 86400000);
    snprintf(sql, sizeof sql,
             "SELECT count(*) FROM outbox_tokens WHERE hash = '%s' AND role = 'viewer' AND reveal = 0", hash);
    assert_int_equal(suite_number(sql), 1);
    json = ask(&hk_op_token_list, &owner, NULL, &tokens);
    assert_null(strstr(json, made.token));
    assert_null(strstr(json, hash));
    assert_non_null(
        strstr(json, "\"name\":\"ci\",\"state\":\"active\",\"role\":\"viewer\",\"reveal\":false"));
    assert_non_null(strstr(json, "\"created_by\":\"ann\",\"reason\":\"why\""));
    struct hk_token_created other = {.id = 0};
    (void)ask(&hk_op_token_create, &owner,
              &(struct hk_token_create_ask){.name = "b", .role = "admin", .reveal = true, .expires = "never"},
              &other);
    assert_string_not_equal(other.token, made.token);
    assert_int_equal(other.expires_ms, 0);
    json = ask(&hk_op_token_revoke, &owner, &(struct hk_token_revoke_ask){.token = "ci"}, &revoked);
    assert_non_null(strstr(json, "\"state\":\"revoked\""));
    assert_non_null(strstr(json, "\"revoked_by\":\"ann\",\"changed\":true"));
    snprintf(sql, sizeof sql, "%lld", (long long)other.id);
    (void)ask(&hk_op_token_revoke, &owner, &(struct hk_token_revoke_ask){.token = sql}, &revoked);
    assert_true(revoked.changed && hk_str_eq(revoked.token.name, hk_str_of("b")));
    assert_rows("outbox_audit WHERE act LIKE 'token-%' AND actor = 'ann' AND reason = 'why'", 4);
}

static void a_wrong_token_is_refused_before_it_is_made(void **state)
{
    static const struct hk_token_create_ask wrong[] = {
        {.name = "", .role = "viewer"},
        {.name = "1", .role = "viewer"},
        {.name = "ann@host", .role = "viewer"},
        {.name = "hikyaku", .role = "viewer"},
        {.name = "a b", .role = "viewer"},
        {.name = "a\nb", .role = "viewer"},
        {.name = "a123456789012345678901234567890123456789012345678901234567890123X", .role = "viewer"},
        {.name = "a", .role = NULL},
        {.name = "a", .role = "root"},
        {.name = "a", .role = "viewer", .expires = ""},
        {.name = "a", .role = "viewer", .expires = "0"},
        {.name = "a", .role = "viewer", .expires = "999ms"},
        {.name = "a", .role = "viewer", .expires = "forever"},
        {.name = "a", .role = "viewer", .expires = "36501d"},
    };
    struct hk_token_created made = {.id = 0};
    struct hk_token_revoked revoked;
    struct hk_err err = {.message = ""};
    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        assert_int_equal(hk_desk_ask(&desk, &hk_op_token_create, &owner, &wrong[i], &mem, &made, &err),
                         HK_INVALID);
    }
    const struct hk_token_create_ask right = {
        .name = "a", .role = "metrics", .reveal = true, .expires = "1s"};
    struct hk_caller less = owner;
    less.role = HK_ROLE_OPERATOR;
    assert_int_equal(hk_desk_ask(&desk, &hk_op_token_create, &less, &right, &mem, &made, &err), HK_DENIED);
    less = owner;
    less.may_reveal = false; /* nobody gives away a right that is not his */
    assert_int_equal(hk_desk_ask(&desk, &hk_op_token_create, &less, &right, &mem, &made, &err), HK_DENIED);
    less = owner;
    less.reason = NULL;
    assert_int_equal(hk_desk_ask(&desk, &hk_op_token_create, &less, &right, &mem, &made, &err), HK_INVALID);
    assert_rows("outbox_tokens", 0);
    assert_int_equal(made.id, 0);
    assert_int_equal(hk_desk_ask(&desk, &hk_op_token_create, &owner, &right, &mem, &made, &err), HK_OK);
    assert_int_equal(hk_desk_ask(&desk, &hk_op_token_create, &owner, &right, &mem, &made, &err), HK_CONFLICT);
    const struct hk_token_revoke_ask nobody[] = {
        {.token = "nobody"}, {.token = "99"}, {.token = "-1"}, {.token = ""}};
    for (size_t i = 0; i < COUNT(nobody); i++)
        assert_int_equal(hk_desk_ask(&desk, &hk_op_token_revoke, &owner, &nobody[i], &mem, &revoked, &err),
                         HK_NOTFOUND);
}

#undef TEST
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(one_letter_is_masked_throughout),
        TEST(lists_and_groups_are_masked),
        TEST(a_list_stops_at_its_bound_and_goes_on),
        TEST(what_is_revealed_is_recorded_first),
        TEST(wrong_words_are_told_before_the_store_is_asked),
        TEST(the_audit_is_told_and_verified),
        TEST(an_edit_shows_its_difference_masked),
        TEST(an_act_tells_of_each_letter),
        TEST(an_act_that_is_stopped_tells_how_far_it_came),
        TEST(a_redrive_is_planned_started_and_cancelled),
        TEST(a_redrive_is_never_more_than_all_of_it),
        TEST(destinations_and_alerts_are_told_when_the_store_is_closed),
        TEST(a_brief_list_has_no_errors),
        TEST(a_token_is_shown_once_and_never_kept),
        TEST(a_wrong_token_is_refused_before_it_is_made),
        TEST(the_schema_is_made_once),
        TEST(what_a_kind_of_store_lacks_is_told_of_the_field),
        TEST(doctor_says_what_it_finds_with_what_to_do),
        TEST(the_stores_time_is_told_and_set_back),
    };
    store_kind = &sqlite_kind;
    admin_ops = &hk_store_admin_sqlite;
    letters_ops = &hk_store_letters_sqlite;
    return cmocka_run_group_tests_name("desk (sqlite)", tests, NULL, NULL);
}
