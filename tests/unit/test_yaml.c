/* SPDX-License-Identifier: Apache-2.0 */
/* The YAML tree, its diagnostics and the interpolation; above all with input that means harm. */
#include "config/interp.h"
#include "config/yaml.h"
#include "config_env.h"

static char text_of[65536];

/* Parses and interpolates; returns what was reported. */
static const char *parse(const char *text, size_t len, enum hk_code expected, struct hk_yaml *out)
{
    static struct hk_diags diags;
    struct hk_buf buf;
    hk_diags_init(&diags);
    hk_buf_init(&buf, sizeof text_of - 1);
    enum hk_code rc = hk_yaml_parse(text, len, "f", &diags, out);
    assert_int_equal(rc, expected);
    if (rc == HK_OK)
        assert_int_equal(hk_interp_tree(out, "f", &fake_env, &diags), HK_OK);
    hk_diags_format(&diags, &buf);
    memcpy(text_of, hk_buf_cstr(&buf), buf.len + 1);
    hk_buf_fini(&buf);
    hk_diags_fini(&diags);
    return text_of;
}

static void check_report(const char *text, size_t len, enum hk_code expected, const char *report)
{
    struct hk_yaml yaml;
    assert_string_equal(parse(text, len, expected, &yaml), report);
    hk_yaml_fini(&yaml);
}

static void test_tree_has_kinds_values_and_positions(void **state)
{
    (void)state;
    struct hk_yaml yaml;
    const char *text = "a: 1\nbé: [x, 'y z']\nc:\n  d: \"q\\tr\"\n";
    assert_string_equal(parse(text, strlen(text), HK_OK, &yaml), "");
    const struct hk_yaml_node *b = hk_yaml_get(yaml.root, "bé");
    assert_int_equal(yaml.root->kind, HK_YAML_MAPPING);
    assert_int_equal(yaml.root->n, 3);
    assert_int_equal(b->kind, HK_YAML_SEQUENCE);
    assert_int_equal(b->key_at.line, 2);
    assert_int_equal(b->key_at.col, 1);
    assert_int_equal(b->at.col, 5); /* characters, not bytes */
    assert_int_equal(b->n, 2);
    assert_true(b->first->plain);
    assert_false(b->first->next->plain);
    assert_string_equal(b->first->next->text.ptr, "y z");
    const struct hk_yaml_node *d = hk_yaml_get(hk_yaml_get(yaml.root, "c"), "d");
    assert_string_equal(d->text.ptr, "q\tr");
    assert_int_equal(d->at.line, 4);
    assert_int_equal(d->at.col, 6);
    assert_null(hk_yaml_get(yaml.root, "e"));
    assert_null(hk_yaml_get(d, "e"));
    hk_yaml_fini(&yaml);
}

static void test_null_is_only_what_is_written_plainly(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        bool null;
    } rows[] = {{"a:", true},       {"a: ~", true},       {"a: null", true}, {"a: ''", false},
                {"a: \"\"", false}, {"a: 'null'", false}, {"a: no", false},  {"a: ${EMPTY}", false}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct hk_yaml yaml;
        assert_string_equal(parse(rows[i].text, strlen(rows[i].text), HK_OK, &yaml), "");
        NOTE_IF(hk_yaml_is_null(hk_yaml_get(yaml.root, "a")) != rows[i].null, "%s\n", rows[i].text);
        assert_int_equal(hk_yaml_is_null(hk_yaml_get(yaml.root, "a")), rows[i].null);
        hk_yaml_fini(&yaml);
    }
}

static void test_empty_documents_have_no_root(void **state)
{
    (void)state;
    static const char *const rows[] = {"", "\n", "# only a comment\n", "\xef\xbb\xbf", "\xef\xbb\xbf# x\n"};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct hk_yaml yaml;
        assert_string_equal(parse(rows[i], strlen(rows[i]), HK_OK, &yaml), "");
        assert_null(yaml.root);
        hk_yaml_fini(&yaml);
    }
}

static void test_byte_order_mark_moves_no_column(void **state)
{
    (void)state;
    check_report(
        "\xef\xbb\xbf&x a: b", 10, HK_OK,
        "f:1:1: anchors and aliases are not supported: write the value out, and put a text that begins with & or * in quotes\n");
}

#define BYTES(s) (s), sizeof(s) - 1

static void test_bytes_that_are_no_text_are_refused(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        size_t len;
        const char *report;
    } rows[] = {
        {BYTES("\xff\xfe"
               "a\0:\0"),
         "f:1:1: the file is UTF-16: save it as UTF-8\n"},
        {BYTES("\xfe\xff\0a\0:"), "f:1:1: the file is UTF-16: save it as UTF-8\n"},
        {BYTES("a\0:\0 \0b\0"), "f:1:2: NUL byte (is the file UTF-16? Save it as UTF-8)\n"},
        {BYTES("a: b\nc: d\0"), "f:2:5: NUL byte (is the file UTF-16? Save it as UTF-8)\n"},
        {BYTES("a: é\r\nb: x\xe9\n"), "f:2:5: invalid UTF-8\n"},
        {BYTES("a: \xc0\xaf"), "f:1:4: invalid UTF-8\n"},         /* overlong */
        {BYTES("a: \xed\xa0\x80"), "f:1:4: invalid UTF-8\n"},     /* surrogate */
        {BYTES("a: \xf4\x90\x80\x80"), "f:1:4: invalid UTF-8\n"}, /* past U+10FFFF */
        {BYTES("a: \xe2\x82"), "f:1:4: invalid UTF-8\n"},         /* cut short */
        {BYTES("a: b\nc: \x01\n"), "f:2:4: invalid YAML: control characters are not allowed\n"},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        check_report(rows[i].text, rows[i].len, HK_INVALID, rows[i].report);
}

static void test_what_makes_yaml_surprising_is_refused_where_it_stands(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        enum hk_code rc;
        const char *report;
    } rows[] = {
        {"a: 1\nb: 2\na: 3\na: 4", HK_OK,
         "f:3:1: duplicate key \"a\", first given at line 1\nf:4:1: duplicate key \"a\", first given at line 1\n"},
        {"a: 1\n'a': 3", HK_OK, "f:2:1: duplicate key \"a\", first given at line 1\n"},
        {"a: &self [*self]", HK_OK,
         "f:1:4: anchors and aliases are not supported: write the value out, and put a text that begins with & or * in quotes\n"
         "f:1:11: anchors and aliases are not supported: write the value out, and put a text that begins with & or * in quotes\n"},
        {"*a : 1", HK_INVALID,
         "f:1:1: anchors and aliases are not supported: write the value out, and put a text that begins with & or * in quotes\n"},
        {"a: { <<: {x: 1} }", HK_OK, "f:1:6: merge keys (<<) are not supported, write the values out\n"},
        {"'<<': 1", HK_OK, ""},
        {"a: !foo 1\nb: !!set {x}\nc: !!str 5\nd: !!map {}\ne: !!seq []\nf: ! x\ng: !!map 5", HK_OK,
         "f:1:4: tags are not supported: put a text that begins with ! in quotes\n"
         "f:2:4: tags are not supported: put a text that begins with ! in quotes\n"
         "f:7:4: tags are not supported: put a text that begins with ! in quotes\n"},
        {"{[a]: 1}", HK_INVALID, "f:1:2: a key must be a plain text, not a list or a mapping\n"},
        {"? {a: b}\n: 1", HK_INVALID, "f:1:3: a key must be a plain text, not a list or a mapping\n"},
        {"'': 1", HK_OK, "f:1:1: empty key\n"},
        {"a: \"x\\0y\"", HK_OK, "f:1:4: a value must not hold a NUL character\n"},
        {"\"x\\0y\": 1", HK_OK, "f:1:1: a key must not hold a NUL character\n"},
        {"--- a\n--- b", HK_INVALID, "f:2:1: a second document: only one is read\n"},
        {"--- a\n...\n", HK_OK, ""},
        {"\ta: b", HK_INVALID,
         "f:1:1: invalid YAML: found character that cannot start any token (a tab: indent with spaces)\n"},
        {"a: [b", HK_INVALID,
         "f:2:1: invalid YAML: did not find expected ',' or ']', while parsing a flow sequence that begins at 1:4\n"},
        {"a: 'b", HK_INVALID,
         "f:1:6: invalid YAML: found unexpected end of stream, while scanning a quoted scalar that begins at 1:4\n"},
        {"%YAML 3.0\n--- a", HK_INVALID, "f:1:1: invalid YAML: found incompatible YAML document\n"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        check_report(rows[i].text, strlen(rows[i].text), rows[i].rc, rows[i].report);
    }
}

static void test_billion_laughs_costs_nothing(void **state)
{
    (void)state;
    struct hk_yaml yaml;
    const char *text = "a: &a [lol, lol]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]\n";
    const char *report = parse(text, strlen(text), HK_OK, &yaml);
    assert_non_null(strstr(report, "f:4:5: anchors and aliases"));
    hk_yaml_fini(&yaml);
}

static char *repeat(const char *piece, size_t n, const char *tail)
{
    size_t len = strlen(piece);
    char *text = malloc(len * n + strlen(tail) + 1);
    assert_non_null(text);
    for (size_t i = 0; i < n; i++)
        memcpy(text + i * len, piece, len);
    memcpy(text + n * len, tail, strlen(tail) + 1);
    return text;
}

static void test_depth_is_bounded(void **state)
{
    (void)state;

    static const struct {
        const char *piece;
        size_t n;
        const char *tail, *report;
    } rows[] = {
        {"[", 10000, "", "f:1:33: nested deeper than 32 levels\n"},
        {"{a: ", 10000, "", "f:1:129: nested deeper than 32 levels\n"},
        {"- ", 10000, "x", "f:1:65: nested deeper than 32 levels\n"},
        {"[", 33, "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]", "f:1:33: nested deeper than 32 levels\n"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        char *text = repeat(rows[i].piece, rows[i].n, rows[i].tail);
        check_report(text, strlen(text), HK_INVALID, rows[i].report);
        free(text);
    }
    char *text = repeat("[", 32, "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]");
    check_report(text, strlen(text), HK_OK, "");
    free(text);
}

static void test_size_is_bounded(void **state)
{
    (void)state;
    char *nodes = repeat("- x\n", 100000, "");
    check_report(nodes, strlen(nodes), HK_INVALID, "f:100000:3: more than 100000 values and keys\n");
    check_report(nodes, strlen(nodes) - 4, HK_OK, "");
    free(nodes);
    char *big = repeat("#", HK_YAML_BYTES_MAX, "\n");
    check_report(big, HK_YAML_BYTES_MAX + 1, HK_INVALID, "f:1:1: the file is over 4 MiB\n");
    check_report(big, HK_YAML_BYTES_MAX, HK_OK, "");
    free(big);
    char *scalar = repeat("x", 1024 * 1024, "");
    struct hk_yaml yaml;
    assert_string_equal(parse(scalar, strlen(scalar), HK_OK, &yaml), "");
    assert_int_equal(yaml.root->text.len, 1024 * 1024);
    hk_yaml_fini(&yaml);
    free(scalar);
}

/* 49,999 keys: a comparison of each with each would take minutes under ASan. */
static void test_many_keys_are_compared_quickly(void **state)
{
    (void)state;
    size_t room = 49999 * 16 + 32;
    char *text = malloc(room);
    assert_non_null(text);
    size_t len = 0;
    for (unsigned i = 0; i < 49998; i++)
        len += (size_t)snprintf(text + len, room - len, "k%u: 1\n", (i * 7919u) % 49998u);
    len += (size_t)snprintf(text + len, room - len, "k7919: 1\n");
    check_report(text, len, HK_OK, "f:49999:1: duplicate key \"k7919\", first given at line 2\n");
    free(text);
}

/* ---- interpolation ---- */

static void test_interpolation_replaces_and_marks(void **state)
{
    (void)state;

    static const struct {
        const char *in, *out;
        bool secret;
    } rows[] = {
        {"plain", "plain", false},
        {"${SECRET}", "hunter2", true},
        {"'${SECRET}'", "hunter2", true},
        {"a${SECRET}b${SECRET}", "ahunter2bhunter2", true},
        {"${NOPE:-x y}", "x y", true},
        {"${NOPE:-}", "", true},
        {"${EMPTY}", "", true},
        {"${EMPTY:-x}", "x", true},
        {"${SECRET:-x}", "hunter2", true},
        {"$${SECRET}", "${SECRET}", false},
        {"$$${SECRET}", "$${SECRET}", false},
        {"$${${SECRET}", "${hunter2", true},
        {"a$b$$c", "a$b$$c", false},
        {"$", "$", false},
        {"$SECRET", "$SECRET", false},
        {"${file:secret}", "hunter2", true},
        {"${file:/abs}", "two\n", true}, /* one newline is cut, not two */
        {"'${INJECT}'", "a: [b, {c: d}] # e", true},
        {"${INJECT}", "a: [b, {c: d}] # e", true}, /* structure cannot come from outside */
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct hk_yaml yaml;
        const char *report = parse(rows[i].in, strlen(rows[i].in), HK_OK, &yaml);
        NOTE_IF(strcmp(report, "") != 0, "%s: %s\n", rows[i].in, report);
        assert_string_equal(report, "");
        assert_int_equal(yaml.root->kind, HK_YAML_SCALAR);
        assert_string_equal(yaml.root->text.ptr, rows[i].out);
        assert_int_equal(yaml.root->text.len, strlen(rows[i].out));
        assert_int_equal(yaml.root->secret, rows[i].secret);
        hk_yaml_fini(&yaml);
    }
}

static void test_keys_are_not_interpolated(void **state)
{
    (void)state;
    struct hk_yaml yaml;
    assert_string_equal(parse("'${SECRET}': 1", 14, HK_OK, &yaml), "");
    assert_non_null(hk_yaml_get(yaml.root, "${SECRET}"));
    hk_yaml_fini(&yaml);
}

static void test_a_file_stands_below_the_configuration(void **state)
{
    (void)state;
    struct hk_yaml yaml;
    struct hk_diags diags;
    const char *text = "${file:secret}";
    hk_diags_init(&diags);
    assert_int_equal(hk_yaml_parse(text, strlen(text), "conf.d/h.yaml", &diags, &yaml), HK_OK);
    assert_int_equal(hk_interp_tree(&yaml, "conf.d/h.yaml", &fake_env, &diags), HK_OK);
    assert_string_equal(yaml.root->text.ptr, "below");
    hk_yaml_fini(&yaml);
    hk_diags_fini(&diags);
}

static void test_what_comes_from_outside_is_bounded(void **state)
{
    (void)state;
    struct hk_yaml yaml;
    char *text = repeat("${file:full}", 65, "");
    assert_string_equal(parse(text, strlen(text), HK_OK, &yaml),
                        "f:1:1: too much text from outside: with \"full\" it is over 4 MiB\n");
    assert_int_equal(yaml.root->kind, HK_YAML_BAD);
    hk_yaml_fini(&yaml);
    free(text);
}

static void test_without_surroundings_nothing_is_read(void **state)
{
    (void)state;
    static const struct hk_config_env nothing = {.get = NULL};
    struct hk_yaml yaml;
    struct hk_diags diags;
    const char *text = "[\"${SECRET}\", \"${SECRET:-x}\", \"${file:secret}\"]";
    hk_diags_init(&diags);
    assert_int_equal(hk_yaml_parse(text, strlen(text), "f", &diags, &yaml), HK_OK);
    assert_int_equal(hk_interp_tree(&yaml, "f", &nothing, &diags), HK_OK);
    assert_int_equal(diags.errors, 2);
    assert_string_equal(diags.items[1].message, "cannot read file \"secret\": there are no files here");
    hk_yaml_fini(&yaml);
    hk_diags_fini(&diags);
}

/* ---- diagnostics ---- */

static void test_diagnostics_keep_the_first_hundred_of_the_file(void **state)
{
    (void)state;
    struct hk_diags diags;
    struct hk_buf buf;
    hk_diags_init(&diags);
    hk_buf_init(&buf, 1 << 16);
    for (unsigned i = 250; i > 0; i--) /* found from the end on */
        hk_diags_add(&diags, i % 2 ? HK_SEVERITY_ERROR : HK_SEVERITY_WARNING, "f", (struct hk_pos){i, 1},
                     "m%u", i);
    assert_int_equal(diags.n, HK_DIAGS_MAX);
    assert_int_equal(diags.errors, 125);
    assert_int_equal(diags.warnings, 125);
    hk_diags_format(&diags, &buf);
    assert_int_equal(strncmp(hk_buf_cstr(&buf), "f:1:1: m1\nf:2:1: warning: m2\n", 29), 0);
    assert_non_null(strstr(hk_buf_cstr(&buf), "f:100:1: warning: m100\n… and 150 more\n"));
    assert_null(strstr(hk_buf_cstr(&buf), "m101"));
    hk_buf_fini(&buf);
    hk_diags_fini(&diags);
}

static void test_diagnostics_of_one_place_stay_in_order(void **state)
{
    (void)state;
    struct hk_diags diags;
    struct hk_buf buf;
    hk_diags_init(&diags);
    hk_buf_init(&buf, 1 << 16);
    hk_diags_add(&diags, HK_SEVERITY_ERROR, "f", (struct hk_pos){2, 5}, "b");
    hk_diags_add(&diags, HK_SEVERITY_ERROR, "f", (struct hk_pos){2, 3}, "a");
    hk_diags_add(&diags, HK_SEVERITY_ERROR, "f", (struct hk_pos){2, 5}, "c");
    hk_diags_add(&diags, HK_SEVERITY_ERROR, "g", (struct hk_pos){0, 0}, "whole");
    hk_diags_format(&diags, &buf);
    assert_string_equal(hk_buf_cstr(&buf), "g: whole\nf:2:3: a\nf:2:5: b\nf:2:5: c\n");
    hk_buf_fini(&buf);
    hk_diags_fini(&diags);
}

static enum hk_code parse_all_of_it(void)
{
    static const char text[] =
        "a: &x [1, 2, '3']\nb: { c: \"${SECRET}\", c: \"${file:secret}\", d: *x }\ne: ${NOPE}\n";
    struct hk_yaml yaml;
    struct hk_diags diags;
    hk_diags_init(&diags);
    enum hk_code rc = hk_yaml_parse(text, sizeof text - 1, "f", &diags, &yaml);
    if (rc == HK_OK)
        rc = hk_interp_tree(&yaml, "f", &fake_env, &diags);
    hk_yaml_fini(&yaml);
    hk_diags_fini(&diags);
    return rc;
}

static void test_out_of_memory_is_reported_and_leaks_nothing(void **state)
{
    (void)state;
    fail_each_allocation(parse_all_of_it, HK_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tree_has_kinds_values_and_positions),
        cmocka_unit_test(test_null_is_only_what_is_written_plainly),
        cmocka_unit_test(test_empty_documents_have_no_root),
        cmocka_unit_test(test_byte_order_mark_moves_no_column),
        cmocka_unit_test(test_bytes_that_are_no_text_are_refused),
        cmocka_unit_test(test_what_makes_yaml_surprising_is_refused_where_it_stands),
        cmocka_unit_test(test_billion_laughs_costs_nothing),
        cmocka_unit_test(test_depth_is_bounded),
        cmocka_unit_test(test_size_is_bounded),
        cmocka_unit_test(test_many_keys_are_compared_quickly),
        cmocka_unit_test(test_interpolation_replaces_and_marks),
        cmocka_unit_test(test_keys_are_not_interpolated),
        cmocka_unit_test(test_a_file_stands_below_the_configuration),
        cmocka_unit_test(test_what_comes_from_outside_is_bounded),
        cmocka_unit_test(test_without_surroundings_nothing_is_read),
        cmocka_unit_test(test_diagnostics_keep_the_first_hundred_of_the_file),
        cmocka_unit_test(test_diagnostics_of_one_place_stay_in_order),
        cmocka_unit_test(test_out_of_memory_is_reported_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
