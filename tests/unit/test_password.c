/* SPDX-License-Identifier: Apache-2.0 */
/* Passwords that a program prints, by the process that keeps it: real programs, good and bad ones. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/str.h"
#include "check.h"
#include "failing.h"
#include "run/fds.h"
#include "run/password.h"

#define PATIENT_MS 60000

static int keep(const char *script, const char *folder)
{
    const char *const argv[] = {"/bin/sh", "-c", script, "sh", folder, NULL};
    struct hk_err err = {.message = ""};
    int fd = -1;
    assert_int_equal(hk_password_keep(argv, &fd, &err), HK_OK);
    return fd;
}

static void gives(int keeper, const char *wanted)
{
    struct hk_buf out;
    struct hk_err err = {.message = ""};
    hk_buf_init(&out, HK_PASSWORD_MAX);
    enum hk_code rc = hk_password_ask(keeper, &out, &err);
    NOTE_IF(rc != HK_OK, "%s\n", err.message);
    assert_int_equal(rc, HK_OK);
    assert_string_equal(hk_buf_cstr(&out), wanted);
    hk_buf_fini(&out);
}

static void fails(int keeper, const char *because)
{
    struct hk_buf out;
    struct hk_err err = {.message = ""};
    hk_buf_init(&out, HK_PASSWORD_MAX);
    assert_int_equal(hk_buf_adds(&out, "as it was"), HK_OK);
    assert_int_equal(hk_password_ask(keeper, &out, &err), HK_UNAVAILABLE);
    NOTE_IF(!strstr(err.message, because), "%s: %s\n", because, err.message);
    assert_non_null(strstr(err.message, because));
    assert_null(strstr(err.message, "s3cret"));
    assert_string_equal(hk_buf_cstr(&out), "as it was");
    hk_buf_fini(&out);
}

static void each_request_runs_it_anew(void **state)
{
    char folder[] = "/tmp/hikyaku-password-XXXXXX";
    (void)state;
    assert_non_null(mkdtemp(folder));
    int keeper = keep("echo x >>$1/runs; echo \"number $(wc -l <$1/runs)\"", folder);
    gives(keeper, "number 1");
    gives(keeper, "number 2");
    assert_int_equal(close(keeper), 0);
    char path[64];
    (void)snprintf(path, sizeof path, "%s/runs", folder);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void only_the_end_of_the_line_is_not_part_of_it(void **state)
{
    static const char *const cases[][2] = {{"printf ' a b\\t\\n'", " a b\t"},
                                           {"printf 'plain'", "plain"},
                                           {"printf 'dos\\r\\n'", "dos"},
                                           {"head -c 16383 /dev/zero | tr '\\0' x | cut -c 1-3; :", "xxx"}};
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        int keeper = keep(cases[i][0], "");
        gives(keeper, cases[i][1]);
        (void)close(keeper);
    }
}

/* The error says why, and never what was printed. */
static void what_goes_wrong_is_said_without_the_password(void **state)
{
    static const char *const cases[][2] = {
        {"echo s3cret; exit 3", "password_command gave no password, because its command ended with code 3"},
        {"echo s3cret; kill -9 $$", "was ended by a signal"},
        {"exit 0", "printed nothing"},
        {"echo", "printed nothing"},
        {"printf 's3cret\\ns3cret\\n'", "more than one line"},
        {"printf 's3cret\\0'", "more than one line"},
        {"while :; do echo s3cret; done", "printed too much"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        int keeper = keep(cases[i][0], "");
        fails(keeper, cases[i][1]);
        fails(keeper, cases[i][1]); /* and the keeper still runs */
        (void)close(keeper);
    }
}

static void a_program_that_is_not_there(void **state)
{
    const char *const argv[] = {"/nonexistent/token", NULL};
    struct hk_err err = {.message = ""};
    int keeper = -1;
    (void)state;
    assert_int_equal(hk_password_keep(argv, &keeper, &err), HK_OK);
    fails(keeper, "there is no such program");
    (void)close(keeper);
}

/* One that has closed its output goes on for ever, and one that holds it open in a child. */
static void a_program_that_hangs_is_killed_with_its_children(void **state)
{
    (void)state;
    int closed = keep("exec >&-; sleep 1000", ""), child = keep("echo s3cret; sleep 1000 & exit 0", "");
    int answers[2];
    struct hk_err err = {.message = ""};
    assert_int_equal(hk_password_begin(closed, &answers[0], &err), HK_OK); /* both at once: 10 s, not 20 */
    assert_int_equal(hk_password_begin(child, &answers[1], &err), HK_OK);
    for (size_t i = 0; i < COUNT(answers); i++) {
        struct pollfd ready = {.fd = answers[i], .events = POLLIN};
        struct hk_buf out;
        assert_int_equal(poll(&ready, 1, PATIENT_MS), 1);
        hk_buf_init(&out, HK_PASSWORD_MAX);
        assert_int_equal(hk_password_end(answers[i], &out, &err), HK_UNAVAILABLE);
        assert_non_null(strstr(err.message, "longer than 10 s"));
        hk_buf_fini(&out);
    }
    (void)close(closed);
    (void)close(child);
}

/* Ten connections at once are two runs: one that was under way, and one for all who asked meanwhile. */
static void those_who_ask_during_a_run_share_the_next_one(void **state)
{
    char folder[] = "/tmp/hikyaku-password-XXXXXX", runs[64], gate[64];
    int answers[10];
    struct hk_err err = {.message = ""};
    (void)state;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(runs, sizeof runs, "%s/runs", folder);
    (void)snprintf(gate, sizeof gate, "%s/gate", folder);
    int keeper = keep("echo x >>$1/runs; until [ -e $1/gate ]; do sleep 0.02; done; wc -l <$1/runs", folder);
    assert_int_equal(hk_password_begin(keeper, &answers[0], &err), HK_OK);
    while (access(runs, F_OK) != 0)
        (void)poll(NULL, 0, 10);
    for (size_t i = 1; i < COUNT(answers); i++)
        assert_int_equal(hk_password_begin(keeper, &answers[i], &err), HK_OK);
    FILE *open_gate = fopen(gate, "we");
    assert_non_null(open_gate);
    (void)fclose(open_gate);
    for (size_t i = 0; i < COUNT(answers); i++) {
        struct pollfd ready = {.fd = answers[i], .events = POLLIN};
        struct hk_buf out;
        assert_int_equal(poll(&ready, 1, PATIENT_MS), 1);
        hk_buf_init(&out, HK_PASSWORD_MAX);
        assert_int_equal(hk_password_end(answers[i], &out, &err), HK_OK);
        assert_string_equal(hk_buf_cstr(&out), i == 0 ? "1" : "2");
        hk_buf_fini(&out);
    }
    (void)close(keeper);
    assert_int_equal(unlink(runs), 0);
    assert_int_equal(unlink(gate), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* A relay that was taken over gains nothing by what it writes to the keeper. */
static void strange_requests_are_dropped(void **state)
{
    (void)state;
    int keeper = keep("echo good", ""), pair[2];
    char end = 0;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    assert_int_equal(hk_fds_send(keeper, 'S', &pair[1], 1), 0); /* another kind */
    assert_int_equal(hk_fds_send(keeper, HK_PASSWORD_REQUEST, (int[]){pair[1], pair[1]}, 2), 0);
    assert_int_equal(send(keeper, "PP", 2, MSG_NOSIGNAL), 2); /* no descriptor, and too long */
    assert_int_equal(close(pair[1]), 0);
    assert_int_equal(recv(pair[0], &end, 1, 0), 0); /* it holds none of them */
    assert_int_equal(close(pair[0]), 0);
    gives(keeper, "good");
    (void)close(keeper);
}

/* As if the keeper had died. */
static void a_keeper_that_is_gone_is_said(void **state)
{
    int pair[2], answer = -1;
    struct hk_err err = {.message = ""};
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    assert_int_equal(hk_password_begin(pair[0], &answer, &err), HK_OK);
    assert_int_equal(close(pair[1]), 0);
    struct hk_buf out;
    hk_buf_init(&out, HK_PASSWORD_MAX);
    assert_int_equal(hk_password_end(answer, &out, &err), HK_UNAVAILABLE);
    assert_non_null(strstr(err.message, "its process has ended"));
    fails(pair[0], "its process has ended");
    hk_buf_fini(&out);
    assert_int_equal(close(pair[0]), 0);
}

/* What was asked for is lost, and nothing else. */
static void memory_that_runs_out_is_said(void **state)
{
    struct failing f = {.fail_at = 0};
    struct hk_allocator allocator = {failing_resize, failing_release, &f};
    struct hk_buf out;
    struct hk_err err = {.message = ""};
    int keeper = keep("echo good", ""), answer = -1;
    (void)state;
    assert_int_equal(hk_password_begin(keeper, &answer, &err), HK_OK);
    struct pollfd ready = {.fd = answer, .events = POLLIN};
    assert_int_equal(poll(&ready, 1, PATIENT_MS), 1);
    hk_buf_init(&out, HK_PASSWORD_MAX);
    hk_allocator_set(&allocator);
    enum hk_code rc = hk_password_end(answer, &out, &err);
    hk_allocator_set(NULL);
    assert_true(f.failed);
    assert_int_equal(rc, HK_NOMEM);
    hk_buf_fini(&out);
    gives(keeper, "good");
    (void)close(keeper);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_request_runs_it_anew),
        cmocka_unit_test(only_the_end_of_the_line_is_not_part_of_it),
        cmocka_unit_test(what_goes_wrong_is_said_without_the_password),
        cmocka_unit_test(a_program_that_is_not_there),
        cmocka_unit_test(a_program_that_hangs_is_killed_with_its_children),
        cmocka_unit_test(those_who_ask_during_a_run_share_the_next_one),
        cmocka_unit_test(strange_requests_are_dropped),
        cmocka_unit_test(a_keeper_that_is_gone_is_said),
        cmocka_unit_test(memory_that_runs_out_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
