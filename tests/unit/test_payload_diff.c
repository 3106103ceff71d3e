/* SPDX-License-Identifier: Apache-2.0 */
/* Diffs: what they look like, and that they can be applied. */
#include <stdlib.h>

#include "base/mem.h"
#include "check.h"
#include "failing.h"
#include "payload/diff.h"
#include "payload_json.h"

static struct hk_str S(const char *s) {
    return hk_str_of(s);

}

static void
changes_are_shown_with_their_surroundings(void **state)

{
    (void)state;

    static const struct {
        const char *before, *after;
        unsigned context;
        const char *diff;
    } rows[] = {
        {"a\nb\nc\n", "a\nb\nc\n", 3, ""},
        {"", "", 3, ""},
        {"a\nb\nc\n", "a\nB\nc\n", 3, "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"},
        {"a\nb\nc\n", "a\nB\nc\n", 0, "@@ -2,1 +2,1 @@\n-b\n+B\n"},
        {"", "a\n", 3, "@@ -0,0 +1,1 @@\n+a\n"},
        {"a\n", "", 3, "@@ -1,1 +0,0 @@\n-a\n"},
        {"a\nc\n", "a\nb\nc\n", 1, "@@ -1,2 +1,3 @@\n a\n+b\n c\n"},
        {"a\nb\nc\n", "a\nc\n", 0, "@@ -2,1 +1,0 @@\n-b\n"},
        {"a\n", "a", 3, "@@ -1,1 +1,1 @@\n-a\n+a\n\\ no line feed at the end\n"},
        {"a", "b", 3, "@@ -1,1 +1,1 @@\n-a\n+b\n"},
        /* two changes: apart when more than twice the context lies between them */
        {"1\n2\n3\n4\n5\n6\n", "x\n2\n3\n4\n5\ny\n", 1,
         "@@ -1,2 +1,2 @@\n-1\n+x\n 2\n@@ -5,2 +5,2 @@\n 5\n-6\n+y\n"},
        {"1\n2\n3\n4\n", "x\n2\n3\ny\n", 1, "@@ -1,4 +1,4 @@\n-1\n+x\n 2\n 3\n-4\n+y\n"},
        {"1\n2\n3\n4\n5\n", "x\n2\n3\n4\ny\n", 1,
         "@@ -1,2 +1,2 @@\n-1\n+x\n 2\n@@ -4,2 +4,2 @@\n 4\n-5\n+y\n"},
        /* JSON on a line is laid out; numbers and escapes stay as they are */
        {"{\"a\":1.50,\"b\":\"\\u0041\"}", "{\"a\":1.50,\"b\":\"A\"}", 1,
         "@@ -2,3 +2,3 @@\n   \"a\": 1.50,\n-  \"b\": \"\\u0041\"\n+  \"b\": \"A\"\n }\n"},
        {"{\"a\":1}", "{\n    \"a\": 2\n}\n", 0, "@@ -2,1 +2,1 @@\n-  \"a\": 1\n+  \"a\": 2\n"},
        {"{\"a\":1}", "{ \"a\": 1 }", 3, "(only white space differs)\n"},
        {"{\n\"a\":1}\n", "{\n\"a\": 1}\n", 0, "@@ -2,1 +2,1 @@\n-\"a\":1}\n+\"a\": 1}\n"},
        {"{\"a\":1}", "{\"a\":", 0, "@@ -1,1 +1,1 @@\n-{\"a\":1}\n+{\"a\":\n"},
        {"x\x1b[2Jy\tz\x9b\x7f", "\xe2\x80\xaeq", 0, "@@ -1,1 +1,1 @@\n-x?[2Jy\tz??\n+?q\n"},
    };
    struct hk_buf out;
    hk_buf_init(&out, 10000);
    for (size_t i = 0; i < COUNT(rows); i++) {
        hk_buf_reset(&out);
        assert_int_equal(hk_diff_write(&out, S(rows[i].before), S(rows[i].after), rows[i].context), HK_OK);
        NOTE_IF(strcmp(hk_buf_cstr(&out), rows[i].diff) != 0, "row %zu\n", i);
        assert_string_equal(hk_buf_cstr(&out), rows[i].diff);
    }
    hk_buf_fini(&out);
}

/* ---- applying ---- */

static size_t read_number(const char **p)
{
    size_t n = 0;
    while (hk_ascii_isdigit(**p))
        n = n * 10 + (size_t)(*(*p)++ - '0');
    return n;
}

static const char *next_line(const char *p)
{
    const char *lf = strchr(p, '\n');
    return lf ? lf + 1 : p + strlen(p);
}

/* Makes `after` of `before` as the diff says; checks every line that it names. All texts end with a line feed. */
static void apply(const char *before, const char *diff, struct hk_buf *after)
{
    size_t line = 1;
    hk_buf_reset(after);
    while (*diff) {
        assert_memory_equal(diff, "@@ -", 4);
        diff += 4;
        size_t start = read_number(&diff);
        diff++;
        size_t n = read_number(&diff);
        start += n == 0;
        for (; line < start; line++) {
            hk_buf_add(after, before, (size_t)(next_line(before) - before));
            before = next_line(before);
        }
        for (diff = next_line(diff); *diff && *diff != '@'; diff = next_line(diff)) {
            size_t len = (size_t)(next_line(diff) - diff) - 1;
            if (*diff != '+') {
                assert_memory_equal(diff + 1, before, len);
                before = next_line(before);
                line++;
            }
            if (*diff != '-')
                hk_buf_add(after, diff + 1, len);
        }
    }
    hk_buf_adds(after, before);
}

static void every_diff_can_be_applied_and_small_changes_give_small_diffs(void **state)
{
    (void)state;
    struct hk_rng rng;
    struct hk_buf a, b, diff, applied;
    hk_rng_seed(&rng, 11, 11);
    hk_buf_init(&a, 100000);
    hk_buf_init(&b, 100000);
    hk_buf_init(&diff, 1000000);
    hk_buf_init(&applied, 100000);
    for (int round = 0; round < 2000; round++) {
        size_t n = (size_t)hk_rng_upto(&rng, 40), edits = 0;
        hk_buf_reset(&a);
        hk_buf_reset(&b);
        for (size_t i = 0; i <= n; i++) {
            char line[16];
            (void)snprintf(line, sizeof line, "%u\n", (unsigned)hk_rng_upto(&rng, 9));
            unsigned what = (unsigned)hk_rng_upto(&rng, 11);
            if (what != 0)
                hk_buf_adds(&a, line);
            if (what == 1)
                hk_buf_adds(&b, "new\n");
            if (what != 2)
                hk_buf_adds(&b, line);
            edits += what <= 2;
        }
        if (!a.len || !b.len)
            continue;
        hk_buf_reset(&diff);
        assert_int_equal(hk_diff_write(&diff, hk_buf_str(&a), hk_buf_str(&b), (unsigned)(round % 4)), HK_OK);
        apply(hk_buf_cstr(&a), hk_buf_cstr(&diff), &applied);
        NOTE_IF(strcmp(hk_buf_cstr(&applied), hk_buf_cstr(&b)) != 0, "%s", hk_buf_cstr(&diff));
        assert_string_equal(hk_buf_cstr(&applied), hk_buf_cstr(&b));
        size_t changes = 0;
        for (const char *p = hk_buf_cstr(&diff); *p; p = next_line(p))
            changes += *p == '+' || *p == '-';
        assert_true(changes <= edits); /* each edit above is one line; the shortest script is never longer */
    }
    hk_buf_fini(&a);
    hk_buf_fini(&b);
    hk_buf_fini(&diff);
    hk_buf_fini(&applied);
}

static void what_differs_too_much_is_replaced(void **state)
{
    (void)state;
    struct hk_buf a, b, diff, applied;
    hk_buf_init(&a, (size_t)1 << 24);
    hk_buf_init(&b, (size_t)1 << 24);
    hk_buf_init(&diff, (size_t)1 << 26);
    hk_buf_init(&applied, (size_t)1 << 24);
    hk_buf_adds(&a, "same\n");
    hk_buf_adds(&b, "same\n");
    for (int i = 0; i < 2000; i++) {
        hk_buf_addf(&a, "a%d\n", i);
        hk_buf_addf(&b, "b%d\n", i);
    }
    assert_int_equal(hk_diff_write(&diff, hk_buf_str(&a), hk_buf_str(&b), 1), HK_OK);
    assert_memory_equal(hk_buf_cstr(&diff), "@@ -1,2001 +1,2001 @@\n same\n-a0\n-a1\n", 36);
    apply(hk_buf_cstr(&a), hk_buf_cstr(&diff), &applied);
    assert_string_equal(hk_buf_cstr(&applied), hk_buf_cstr(&b));
    /* more lines than are looked at one by one */
    hk_buf_reset(&a);
    for (int i = 0; i < 200001; i++)
        hk_buf_addc(&a, '\n');
    hk_buf_reset(&diff);
    assert_int_equal(hk_diff_write(&diff, hk_buf_str(&a), S("x\n"), 3), HK_OK);
    assert_memory_equal(hk_buf_cstr(&diff), "@@ -1,200001 +1,1 @@\n-\n-\n", 25);
    apply(hk_buf_cstr(&a), hk_buf_cstr(&diff), &applied);
    assert_string_equal(hk_buf_cstr(&applied), "x\n");
    hk_buf_fini(&a);
    hk_buf_fini(&b);
    hk_buf_fini(&diff);
    hk_buf_fini(&applied);
}

static void a_full_buffer_is_an_error(void **state)
{
    (void)state;
    struct hk_buf out;
    hk_buf_init(&out, 20);
    assert_int_equal(hk_diff_write(&out, S("a\nb\nc\n"), S("a\nB\nc\n"), 3), HK_TOOBIG);
    assert_int_equal(hk_buf_status(&out), HK_TOOBIG);
    hk_buf_fini(&out);
}

static enum hk_code write_one(void)
{
    struct hk_buf out;
    hk_buf_init(&out, 1000);
    enum hk_code rc = hk_diff_write(&out, S("{\"a\":1,\"b\":2}"), S("{\"a\":3,\"b\":2}"), 3);
    assert_int_equal(rc, out.status);
    hk_buf_fini(&out);
    return rc;
}

static void memory_may_run_out(void **state)
{
    (void)state;
    assert_true(fail_each_allocation(write_one, HK_OK) > 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_are_shown_with_their_surroundings),
        cmocka_unit_test(every_diff_can_be_applied_and_small_changes_give_small_diffs),
        cmocka_unit_test(what_differs_too_much_is_replaced),
        cmocka_unit_test(a_full_buffer_is_an_error),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
