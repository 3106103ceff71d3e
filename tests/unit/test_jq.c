/* SPDX-License-Identifier: Apache-2.0 */
/* jq programs in their cage: what they compute, and all that they cannot do. Against the real helper. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/str.h"
#include "jq/frame.h"
#include "jq/jq.h"

#define ROOM       ((size_t)1 << 20)
#define PATIENT_MS 60000 /* the machine may be busy: time is what only those tests are about that say so */

static const char *helper(void)
{
    const char *path = getenv("HIKYAKU_JQ");
    if (!path || access(path, X_OK) != 0)
        skip();
    return path;
}

static enum hk_code run(const char *program, const char *document, uint64_t timeout_ms, struct hk_buf *out,
                        struct hk_err *err)
{
    struct hk_jq *jq = NULL;
    enum hk_code rc = hk_jq_open(helper(), NULL, program, timeout_ms, &jq, err);
    if (rc == HK_OK)
        rc = hk_jq_apply(jq, hk_str_of(document), out, err);
    hk_jq_close(jq);
    return rc;
}

static void gives(const char *program, const char *document, const char *wanted)
{
    struct hk_buf out;
    struct hk_err err = {.message = ""};
    hk_buf_init(&out, ROOM);
    enum hk_code rc = run(program, document, PATIENT_MS, &out, &err);
    if (rc != HK_OK)
        print_message("%s on %s: %s\n", program, document, err.message);
    assert_int_equal(rc, HK_OK);
    assert_string_equal(hk_buf_cstr(&out), wanted);
    hk_buf_fini(&out);
}

static void fails(const char *program, const char *document, const char *words)
{
    struct hk_buf out;
    struct hk_err err = {.message = ""};
    hk_buf_init(&out, ROOM);
    enum hk_code rc = run(program, document, PATIENT_MS, &out, &err);
    if (rc != HK_INVALID || !strstr(err.message, words))
        print_message("%s on %s: %s, %s; gave %s\n", program, document, hk_code_name(rc), err.message,
                      hk_buf_cstr(&out));
    assert_int_equal(rc, HK_INVALID);
    assert_non_null(strstr(err.message, words));
    assert_int_equal(out.len, 0);
    hk_buf_fini(&out);
}

static void one_result_on_one_line(void **state)
{
    (void)state;
    gives(".a", "{\"a\":[1,2]}", "[1,2]");
    gives(".customer.id = 42 | del(.x)", "{\"customer\":{\"id\":\"42\"},\"x\":1}",
          "{\"customer\":{\"id\":42}}");
    gives(".name |= ascii_upcase", "{\"name\":\"\xe9\xa3\x9b\xe8\x84\x9a x\"}",
          "{\"name\":\"\xe9\xa3\x9b\xe8\x84\x9a X\"}");
    gives("null", "1", "null");
}

static void mistakes_are_said_in_jqs_words(void **state)
{
    (void)state;
    fails(".a |", "{}", "syntax error");
    fails("nosuchfunction", "{}", "nosuchfunction");
    fails("error(\"no good\")", "{}", "no good");
    fails(".a.b", "{\"a\":1}", "Cannot index number");
    fails(".[]", "[1,2]", "more than one");
    fails("empty", "{}", "no result");
    fails(".", "{\"a\":", "Unfinished");
    fails(".", "nonsense", "");
    fails("halt_error", "\"x\"", "halted");
    fails("error(\"two\\nlines\\u001b[1m\")", "{}", "two lines [1m");
}

static void nothing_outside_can_be_reached(void **state)
{
    (void)state;
    assert_int_equal(setenv("JQ_TEST_SECRET", "hunter2", 1), 0);
    gives("$ENV | length", "{}", "0");
    gives("env | length", "{}", "0");
    fails("include \"a\"; .", "{}", "");
    fails("import \"/etc/passwd\" as $x; $x", "{}", "");
    fails("import \"./x\" as x; .", "{}", "");
    fails("input", "{}", "");
    gives("input_filename", "{}", "null");
    gives("debug", "{}", "{}");
    gives("stderr", "{}", "{}");
    gives("[.[] | gsub(\"a\";\"b\")]", "[\"aaa\"]", "[\"bbb\"]");
}

static void an_endless_program_ends_and_the_next_document_is_served(void **state)
{
    (void)state;
    struct hk_jq *jq = NULL;
    struct hk_buf out;
    struct hk_err err = {.message = ""};
    hk_buf_init(&out, ROOM);
    assert_int_equal(hk_jq_open(helper(), NULL, "if .loop then def f: f; f else . end", 2000, &jq, &err),
                     HK_OK);
    assert_int_equal(hk_jq_apply(jq, hk_str_of("{\"loop\":true}"), &out, &err), HK_TIMEOUT);
    assert_int_equal(hk_jq_apply(jq, hk_str_of("{\"loop\":false}"), &out, &err), HK_OK);
    assert_string_equal(hk_buf_cstr(&out), "{\"loop\":false}");
    hk_buf_reset(&out);
    assert_int_equal(hk_jq_apply(jq, hk_str_of("[1"), &out, &err), HK_INVALID);
    assert_int_equal(hk_jq_apply(jq, hk_str_of("{\"n\":7}"), &out, &err), HK_OK);
    assert_string_equal(hk_buf_cstr(&out), "{\"n\":7}");
    hk_jq_close(jq);
    hk_buf_fini(&out);
}

static void a_result_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    struct hk_jq *jq = NULL;
    struct hk_buf out;
    struct hk_err err = {.message = ""};
    hk_buf_init(&out, 100);
    assert_int_equal(hk_jq_open(helper(), NULL, "[range(.)]", PATIENT_MS, &jq, &err), HK_OK);
    assert_int_equal(hk_jq_apply(jq, hk_str_of("1000"), &out, &err), HK_TOOBIG);
    hk_buf_reset(&out);
    assert_int_equal(hk_jq_apply(jq, hk_str_of("3"), &out, &err), HK_OK);
    assert_string_equal(hk_buf_cstr(&out), "[0,1,2]");
    hk_jq_close(jq);
    hk_buf_fini(&out);
}

/* With a sanitizer memory has no bound, and time ends it instead. */
static void a_program_that_eats_memory_dies_alone(void **state)
{
    (void)state;
    struct hk_jq *jq = NULL;
    struct hk_buf out;
    struct hk_err err = {.message = ""};
    hk_buf_init(&out, ROOM);
    assert_int_equal(
        hk_jq_open(helper(), NULL, "if . then [range(1e9)] | length else 1 end", 1500, &jq, &err), HK_OK);
    enum hk_code rc = hk_jq_apply(jq, hk_str_of("true"), &out, &err);
    assert_true(rc == HK_INVALID || rc == HK_TIMEOUT);
    assert_int_equal(hk_jq_apply(jq, hk_str_of("false"), &out, &err), HK_OK);
    assert_string_equal(hk_buf_cstr(&out), "1");
    hk_jq_close(jq);
    hk_buf_fini(&out);
}

static void a_missing_helper_is_said(void **state)
{
    (void)state;
    struct hk_jq *jq = NULL;
    struct hk_err err = {.message = ""};
    enum hk_code rc = hk_jq_open("/nonexistent/hikyaku-jq", NULL, ".", 0, &jq, &err);
    if (!getenv("HIKYAKU_VALGRIND")) { /* which makes a fork of posix_spawn's vfork: the parent is not told */
        assert_int_equal(rc, HK_UNAVAILABLE);
        assert_non_null(strstr(err.message, "/nonexistent/hikyaku-jq"));
    }
    assert_int_not_equal(rc, HK_OK);
    assert_null(jq);
    assert_int_equal(hk_jq_open("/bin/false", NULL, ".", 0, &jq, &err), HK_INVALID);
    assert_int_equal(hk_jq_open("/bin/cat", NULL, ".", 0, &jq, &err),
                     HK_INVALID); /* answers, but not in frames of ours */
    assert_null(jq);
}

static void the_helper_is_found_by_the_environment_first(void **state)
{
    (void)state;
    char path[HK_JQ_PATH_MAX];
    const char *given = helper();
    assert_true(hk_jq_find(path));
    assert_string_equal(path, given);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_result_on_one_line),
        cmocka_unit_test(mistakes_are_said_in_jqs_words),
        cmocka_unit_test(nothing_outside_can_be_reached),
        cmocka_unit_test(an_endless_program_ends_and_the_next_document_is_served),
        cmocka_unit_test(a_result_that_does_not_fit_is_refused),
        cmocka_unit_test(a_program_that_eats_memory_dies_alone),
        cmocka_unit_test(a_missing_helper_is_said),
        cmocka_unit_test(the_helper_is_found_by_the_environment_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
