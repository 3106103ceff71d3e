/* SPDX-License-Identifier: Apache-2.0 */
/* Masks: what they hide is hidden in every form, and nothing else is touched. */
#include <stdlib.h>

#include "base/mem.h"
#include "check.h"
#include "failing.h"
#include "payload/codec.h"
#include "payload/mask.h"
#include "payload_json.h"

static struct hk_str S(const char *s) {
    return hk_str_of(s);
}

static const char *const order_paths[] = {"customer.email", "items[*].card", "customer.pin"};

static const char *const order_headers[] = {"x-api-key", "Authorization"};
static const char *const all_paths[] = {"ssn", "contacts"};
static const struct hk_mask_rule order_rules[] = {
    {.event_type = "Order*", .paths = order_paths, .n_paths = 3, .headers = order_headers, .n_headers = 2},
    {.paths = all_paths, .n_paths = 2},
    {.event_type = "Nothing"},
};

static struct hk_masks *masks_of(const struct hk_mask_rule *rules, size_t n)
{
    struct hk_masks *masks = NULL;
    struct hk_err err = {.code = HK_OK};
    enum hk_code rc = hk_masks_new(rules, n, &masks, &err);
    NOTE_IF(rc != HK_OK, "%s\n", err.message);
    assert_int_equal(rc, HK_OK);
    return masks;
}

static struct hk_buf out;

typedef enum hk_code mask_fn(const struct hk_masks *masks, struct hk_str event_type, struct hk_str text,
                             struct hk_buf *out);

static const char *masked(mask_fn *fn, const struct hk_masks *masks, const char *type, const char *text)
{
    hk_buf_fini(&out);
    hk_buf_init(&out, (size_t)1 << 24);
    assert_int_equal(fn(masks, S(type), S(text), &out), HK_OK);
    return hk_buf_cstr(&out);
}

static const char *masked_text(const struct hk_masks *masks, const char *type, const char *payload,
                               const char *text)
{
    hk_buf_fini(&out);
    hk_buf_init(&out, (size_t)1 << 24);
    assert_int_equal(hk_mask_text(masks, S(type), S(payload), S(text), &out), HK_OK);
    return hk_buf_cstr(&out);
}

static int set_up(void **state)
{
    *state = masks_of(order_rules, COUNT(order_rules));
    return 0;
}

static int tear_down(void **state)
{
    hk_masks_free(*state);
    hk_buf_fini(&out);
    return 0;
}

/* ---- payloads ---- */

static void values_become_stars_and_all_else_stays(void **state)
{
    static const struct {
        const char *type, *payload, *shown; /* NULL: as it is */
    } rows[] = {
        {"OrderCreated", "{ \"customer\" : { \"email\" : \"taro@example.com\" , \"id\":42.0 } }",
         "{ \"customer\" : { \"email\" : \"***\" , \"id\":42.0 } }"},
        {"Other", "{\"customer\":{\"email\":\"taro@example.com\"}}", NULL},
        {"Order", "{\"items\":[{\"card\":\"4111\"},{\"x\":1},{\"card\":{\"n\":[1,2]} }]}",
         "{\"items\":[{\"card\":\"***\"},{\"x\":1},{\"card\":\"***\" }]}"},
        {"Other", "{\"ssn\":123,\"a\":1e5}", "{\"ssn\":\"***\",\"a\":1e5}"},
        {"Other", "{\"ssn\":null,\"ssn\":true,\"s\\u0073n\":[]}",
         "{\"ssn\":\"***\",\"ssn\":\"***\",\"s\\u0073n\":\"***\"}"},
        {"Other", "{\"contacts\":{\"ssn\":1},\"x\":{\"ssn\":2}}", "{\"contacts\":\"***\",\"x\":{\"ssn\":2}}"},
        {"Other", "[1,2]", NULL},
        {"Other", "\"ssn\"", NULL},
        {"Other", "", NULL},
        {"Other", "ssn=123", "(hidden: 7 bytes, not JSON, and masks apply)"},
        {"Other", "{\"a\":1,\"ssn\":\"secret\"", "(hidden: 21 bytes, not JSON, and masks apply)"},
        {"Other", "{\"a\":1}x", "(hidden: 8 bytes, not JSON, and masks apply)"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *shown = masked(hk_mask_payload, *state, rows[i].type, rows[i].payload);
        assert_string_equal(shown, rows[i].shown ? rows[i].shown : rows[i].payload);
    }
}

static void without_rules_nothing_is_hidden(void **state)
{
    (void)state;
    struct hk_masks *none = masks_of(NULL, 0);
    const struct hk_masks *both[] = {NULL, none};
    for (size_t i = 0; i < 2; i++) {
        assert_false(hk_masks_fit(both[i], S("Order")));
        assert_string_equal(masked(hk_mask_payload, both[i], "Order", "not JSON"), "not JSON");
        assert_string_equal(masked(hk_mask_headers, both[i], "Order", "not JSON"), "not JSON");
        assert_string_equal(masked_text(both[i], "Order", "{\"ssn\":1234}", "1234"), "1234");
        assert_false(hk_mask_has_header(both[i], S("Order"), S("x-api-key")));
    }
    hk_masks_free(none);
    hk_masks_free(NULL);
}

static void rules_fit_by_event_type(void **state)
{
    static const char *const paths[] = {"a"};
    const struct hk_mask_rule rules[] = {{.event_type = "A*", .paths = paths, .n_paths = 1},
                                         {.event_type = "B"}};
    struct hk_masks *masks = masks_of(rules, 2);
    assert_true(hk_masks_fit(masks, S("Ab")));
    assert_false(hk_masks_fit(masks, S("B"))); /* hides nothing */
    assert_false(hk_masks_fit(masks, S("")));
    assert_true(hk_masks_fit(*state, S("")));
    hk_masks_free(masks);
}

static void the_whole_payload_may_be_masked(void **state)
{
    (void)state;
    static const char *const paths[] = {"$"};
    const struct hk_mask_rule rule = {.paths = paths, .n_paths = 1};
    struct hk_masks *masks = masks_of(&rule, 1);
    assert_string_equal(masked(hk_mask_payload, masks, "E", " {\"a\":[1]} "), " \"***\" ");
    assert_string_equal(masked_text(masks, "E", "{\"a\":[\"secret\"]}", "the secret is out"),
                        "the *** is out");
    hk_masks_free(masks);
}

static void bad_paths_are_refused(void **state)
{
    (void)state;
    static const char *const paths[] = {"a", "b..c"};
    const struct hk_mask_rule rule = {.paths = paths, .n_paths = 2};
    struct hk_masks *masks = NULL;
    struct hk_err err;
    assert_int_equal(hk_masks_new(&rule, 1, &masks, &err), HK_INVALID);
    assert_string_equal(err.message, "mask 1: path 2: column 3: the name of a field is expected here");
    assert_null(masks);
}

static void a_small_buffer_is_an_error_that_stays(void **state)
{
    struct hk_buf small;
    hk_buf_init(&small, 10);
    assert_int_equal(hk_mask_payload(*state, S("E"), S("{\"ssn\":\"123456789\"}"), &small), HK_TOOBIG);
    assert_int_equal(hk_buf_status(&small), HK_TOOBIG);
    hk_buf_fini(&small);
}

/* ---- headers ---- */

static void headers_are_masked_by_name(void **state)
{
    static const struct {
        const char *type, *headers, *shown;
    } rows[] = {
        {"Order", "{\"X-API-Key\":\"k1\", \"x-tenant\":\"acme\"}",
         "{\"X-API-Key\":\"***\", \"x-tenant\":\"acme\"}"},
        {"Order", "{\"authorization\":[\"a\",{\"b\":1}],\"z\":1}", "{\"authorization\":\"***\",\"z\":1}"},
        {"Order", "{\"x-api\\u002dkey\":null}", "{\"x-api\\u002dkey\":\"***\"}"},
        {"Order", "{\"x-api-key\":\"1\",\"x-api-key\":\"2\"}",
         "{\"x-api-key\":\"***\",\"x-api-key\":\"***\"}"},
        {"Order", "{\"z\":[{\"x-api-key\":1},5]}", "{\"z\":[{\"x-api-key\":\"***\"},5]}"},
        {"Other", "{\"x-api-key\":\"1\"}", NULL},
        {"Order", "{}", NULL},
        {"Order", "", NULL},
        {"Order", "x-api-key: 1", "(hidden: 12 bytes, not JSON, and masks apply)"},
        {"Order", "[\"x-api-key\",\"1\"]", "(hidden: 17 bytes, not JSON, and masks apply)"},
        {"Order", "{\"x-api-key\":\"1\"", "(hidden: 16 bytes, not JSON, and masks apply)"},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        assert_string_equal(masked(hk_mask_headers, *state, rows[i].type, rows[i].headers),
                            rows[i].shown ? rows[i].shown : rows[i].headers);
    assert_true(hk_mask_has_header(*state, S("Order"), S("X-Api-KEY")));
    assert_false(hk_mask_has_header(*state, S("Order"), S("x-api")));
    assert_false(hk_mask_has_header(*state, S("Other"), S("x-api-key")));
}

/* ---- other texts ---- */

#define PAYLOAD                                                                                              \
    "{\"customer\":{\"email\":\"taro \\\"T\\\" <t@ex.jp>\\n\\u6771\",\"pin\":\"12\",\"id\":77777},"          \
    "\"items\":[{\"card\":\"4111-1111\"},{\"card\":98765}],\"contacts\":{\"jiro@ex.jp\":{\"note\":\"call\\\\me\"}}}"

static void hidden_values_are_found_in_every_form(void **state)
{
    static const struct {
        const char *text, *shown;
    } rows[] = {
        {"", ""},
        {"nothing in it", "nothing in it"},
        {"card 4111-1111 refused", "card *** refused"},
        {"4111-1111", "***"},
        {"4111-11114111-1111", "***"},
        {"[4111-1111][4111-1111]", "[***][***]"},
        {"card 98765 refused", "card *** refused"},
        {"card=4111%2d1111&x", "card=***&x"},
        {"card=%34%31%31%31-1111&x", "card=***&x"},
        {"customer 77777 is not masked", "customer 77777 is not masked"},
        {"pin 12 is too short to hide", "pin 12 is too short to hide"},
        {"mail taro \"T\" <t@ex.jp>\n東!", "mail ***!"},
        {"mail taro \\\"T\\\" <t@ex.jp>\\n\\u6771!", "mail ***!"},
        {"mail taro \\\\\\\"T\\\\\\\" <t@ex.jp>\\\\n\\\\u6771!", "mail ***!"},
        {"mail taro%20%22T%22%20%3Ct%40ex.jp%3e%0A%E6%9D%B1!", "mail ***!"},
        {"mail taro+%22T%22+%3Ct%40ex.jp%3e%0A%E6%9D%B1!", "mail ***!"},
        {"mail taro \\u0022T\\u0022 \\u003ct@ex.jp\\u003E\\n東!", "mail ***!"},
        {"mail taro \"U\" <t@ex.jp>", "mail taro \"U\" <t@ex.jp>"},
        {"what was cut ends in 4111-1", "what was cut ends in ***"},
        {"a name inside: jiro@ex.jp, note", "a name inside: ***, note"},
        {"call\\me, call\\\\me, or callme", "***, ***, or ***"},
        {"call%5cme, call%5Cme, call\\u005cme, call\\\\u005Cme", "***, ***, ***, ***"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *shown = masked_text(*state, "Order", PAYLOAD, rows[i].text);
        NOTE_IF(strcmp(shown, rows[i].shown) != 0, "%s\n", rows[i].text);
        assert_string_equal(shown, rows[i].shown);
    }
}

static void texts_that_are_json_are_masked_by_path_as_well(void **state)
{
    assert_string_equal(masked_text(*state, "Order", PAYLOAD,
                                    "{\"customer\":{\"email\":\"another\"},\"error\":\"4111-1111 is bad\"}"),
                        "{\"customer\":{\"email\":\"***\"},\"error\":\"*** is bad\"}");
    assert_string_equal(masked_text(*state, "Order", "", "{\"ssn\":1}"), "{\"ssn\":\"***\"}");
}

static void overlapping_values_leave_no_end_over(void **state)
{
    (void)state;
    static const char *const paths[] = {"a", "b"};
    const struct hk_mask_rule rule = {.paths = paths, .n_paths = 2};
    struct hk_masks *masks = masks_of(&rule, 1);
    assert_string_equal(masked_text(masks, "E", "{\"a\":\"abcd\",\"b\":\"cdef\"}", "x abcdef y"), "x *** y");
    assert_string_equal(masked_text(masks, "E", "{\"a\":\"abc\",\"b\":\"abcdef\"}", "x abcdef y"), "x *** y");
    hk_masks_free(masks);
}

static void values_of_little_but_backslashes_are_found(void **state)
{
    (void)state;
    static const char *const paths[] = {"a"};
    const struct hk_mask_rule rule = {.paths = paths, .n_paths = 1};
    struct hk_masks *masks = masks_of(&rule, 1);
    assert_string_equal(masked_text(masks, "E", "{\"a\":\"t\\\\t\"}", "t\\t t\\\\t t%5ct tt"),
                        "*** *** *** tt");
    assert_string_equal(masked_text(masks, "E", "{\"a\":\"\\\\\\\\\\\\\"}", "<\\\\\\> <\\\\\\\\\\\\> <\\>"),
                        "<***> <***> <\\>");
    assert_string_equal(masked_text(masks, "E", "{\"a\":\"ab\\\\\"}", "<ab\\> <ab\\\\> <ab>"),
                        "<***> <***\\> <ab>");
    hk_masks_free(masks);
}

static void astral_characters_are_found_as_pairs(void **state)
{
    (void)state;
    static const char *const paths[] = {"a"};
    const struct hk_mask_rule rule = {.paths = paths, .n_paths = 1};
    struct hk_masks *masks = masks_of(&rule, 1);
    const char *payload = "{\"a\":\"x😀yz\"}";
    assert_string_equal(masked_text(masks, "E", payload, "<x\\ud83d\\ude00yz>"), "<***>");
    assert_string_equal(masked_text(masks, "E", payload, "<x\\\\uD83D\\\\uDE00yz>"), "<***>");
    assert_string_equal(masked_text(masks, "E", payload, "<x%F0%9F%98%80yz>"), "<***>");
    assert_string_equal(masked_text(masks, "E", payload, "<x\\ud83dyz>"), "<x\\ud83dyz>");
    hk_masks_free(masks);
}

static void of_a_payload_that_is_not_json_every_word_is_hidden(void **state)
{
    assert_string_equal(masked_text(*state, "E", "{\"ssn\": \"123-45\", \"x", "ssn 123-45 is bad"),
                        "ssn *** is bad");
    assert_string_equal(masked_text(*state, "E", "user=taro&card=4111", "no taro, card 4111"),
                        "no ***, *** ***");
}

static void too_many_values_hide_the_text(void **state)
{
    struct hk_buf payload;
    hk_buf_init(&payload, (size_t)1 << 20);
    hk_buf_adds(&payload, "{\"contacts\":[0");
    for (int i = 0; i < 5000; i++)
        hk_buf_addf(&payload, ",\"value-%d\"", i);
    hk_buf_adds(&payload, "]}");
    assert_string_equal(masked_text(*state, "E", hk_buf_cstr(&payload), "some text"),
                        "(hidden: 9 bytes, too many masked values to look for)");
    hk_buf_fini(&payload);
}

static void hostile_repetition_ends(void **state)
{
    enum {
        N = 200000
    };

    struct hk_buf payload;
    char *text = malloc(N + 1);
    assert_non_null(text);
    memset(text, 'a', N);
    text[N] = '\0';
    hk_buf_init(&payload, (size_t)1 << 24);
    hk_buf_addf(&payload, "{\"contacts\":[\"%sb\",\"%sc\"]}", text, text + 1);
    const char *shown = masked_text(*state, "E", hk_buf_cstr(&payload), text);
    assert_null(strstr(shown, "aaa"));
    hk_buf_fini(&payload);
    free(text);
}

/* ---- properties ---- */

static bool contains(struct hk_str s, struct hk_str needle)
{
    for (size_t i = 0; i + needle.len <= s.len; i++) {
        if (memcmp(s.ptr + i, needle.ptr, needle.len) == 0)
            return true;
    }
    return false;
}

static const char *const random_paths[] = {"a", "b.c", "c[*]", "[0]", "[*].a", "a[1].b", "\"a.b\".a", "$"};

/* The payload and what is shown of it are the same but for whole values that became "***". */
static void check_rest(struct hk_str payload, struct hk_str shown)
{
    struct hk_json_scan a, b;
    struct hk_scan_token x, y;
    size_t ax = 0, bx = 0; /* all before is compared */
    hk_scan_init(&a, payload);
    hk_scan_init(&b, shown);
    for (;;) {
        enum hk_scan_kind kind = hk_scan_next(&a, &x);
        assert_int_not_equal(hk_scan_next(&b, &y), HK_SCAN_ERROR);
        if (kind == HK_SCAN_END)
            break;
        assert_true(x.at - ax == y.at - bx && memcmp(payload.ptr + ax, shown.ptr + bx, x.at - ax) == 0);
        bool stars = y.kind == HK_SCAN_STRING && hk_str_eq(y.raw, S("\"***\""));
        assert_true(stars || hk_str_eq(x.raw, y.raw));
        if (stars && (kind == HK_SCAN_OBJECT || kind == HK_SCAN_ARRAY))
            assert_true(hk_scan_leave(&a));
        ax = a.pos;
        bx = b.pos;
    }
    assert_true(hk_str_eq((struct hk_str){payload.ptr + ax, payload.len - ax},
                          (struct hk_str){shown.ptr + bx, shown.len - bx}));
}

static void masking_touches_masked_values_only(void **state)
{
    (void)state;
    struct hk_rng rng;
    struct hk_buf json, shown, again;
    size_t changed = 0;
    hk_rng_seed(&rng, 8, 8);
    hk_buf_init(&json, (size_t)1 << 20);
    hk_buf_init(&shown, (size_t)1 << 20);
    hk_buf_init(&again, (size_t)1 << 20);
    for (int i = 0; i < 3000; i++) {
        const char *paths[2] = {PICK(&rng, random_paths), PICK(&rng, random_paths)};
        const struct hk_mask_rule rule = {.paths = paths, .n_paths = 2};
        struct hk_masks *masks = masks_of(&rule, 1);
        random_json(&rng, &json);
        hk_buf_reset(&shown);
        hk_buf_reset(&again);
        assert_int_equal(hk_mask_payload(masks, S("E"), hk_buf_str(&json), &shown), HK_OK);
        check_rest(hk_buf_str(&json), hk_buf_str(&shown));
        assert_int_equal(hk_mask_payload(masks, S("E"), hk_buf_str(&shown), &again), HK_OK);
        assert_true(hk_str_eq(hk_buf_str(&shown), hk_buf_str(&again))); /* nothing was left over */
        changed += !hk_str_eq(hk_buf_str(&json), hk_buf_str(&shown));
        hk_masks_free(masks);
    }
    assert_true(changed > 1000);
    hk_buf_fini(&json);
    hk_buf_fini(&shown);
    hk_buf_fini(&again);
}

/* A random text, and the same as others write it. */
static void random_secret(struct hk_rng *rng, char *secret, size_t n)
{
    static const char *const chars[] = {"a", "b",  "7",  "@", ".", "-", "\"", "/",
                                        " ", "\n", "東", "é", "😀", "%", "\\"};
    secret[0] = '\0';
    while (strlen(secret) < n) {
        const char *c = PICK(rng, chars);
        memcpy(secret + strlen(secret), c, strlen(c) + 1);
    }
}

static void write_as_json(const char *s, bool ascii, struct hk_buf *to)
{
    static const char *const e_acute = "é", *const east = "東", *const smile = "😀";
    for (; *s; s++) {
        if (*s == '"')
            hk_buf_adds(to, "\\\"");
        else if (*s == '\\')
            hk_buf_adds(to, ascii ? "\\u005C" : "\\\\");
        else if (*s == '\n')
            hk_buf_adds(to, ascii ? "\\u000a" : "\\n");
        else if (*s == '/')
            hk_buf_adds(to, ascii ? "\\/" : "/");
        else if (ascii && strncmp(s, e_acute, 2) == 0)
            hk_buf_adds(to, "\\u00E9"), s += 1;
        else if (ascii && strncmp(s, east, 3) == 0)
            hk_buf_adds(to, "\\u6771"), s += 2;
        else if (ascii && strncmp(s, smile, 4) == 0)
            hk_buf_adds(to, "\\ud83d\\uDE00"), s += 3;
        else
            hk_buf_addc(to, *s);
    }
}

static void write_as_percent(const char *s, bool all, struct hk_buf *to)
{
    for (; *s; s++) {
        bool plain = hk_ascii_isalpha(*s) || hk_ascii_isdigit(*s) || *s == '.' || *s == '-';
        if (plain && !all)
            hk_buf_addc(to, *s);
        else
            hk_buf_addf(to, all ? "%%%02x" : "%%%02X", (unsigned)(unsigned char)*s);
    }
}

static void a_masked_value_never_appears(void **state)
{
    (void)state;
    static const char *const paths[] = {"a", "b[*]"};
    const struct hk_mask_rule rule = {.paths = paths, .n_paths = 2};
    struct hk_masks *masks = masks_of(&rule, 1);
    struct hk_rng rng;
    struct hk_buf payload, text, form, shown;
    hk_rng_seed(&rng, 9, 9);
    hk_buf_init(&payload, 10000);
    hk_buf_init(&text, 10000);
    hk_buf_init(&form, 10000);
    hk_buf_init(&shown, 20000);
    for (int i = 0; i < 3000; i++) {
        char secrets[2][80];
        random_secret(&rng, secrets[0], 3 + (size_t)hk_rng_upto(&rng, 20));
        random_secret(&rng, secrets[1], 3 + (size_t)hk_rng_upto(&rng, 20));
        hk_buf_reset(&payload);
        hk_buf_adds(&payload, "{\"a\":\"");
        write_as_json(secrets[0], i % 2, &payload);
        hk_buf_adds(&payload, "\",\"b\":[1,\"");
        write_as_json(secrets[1], i % 3, &payload);
        hk_buf_adds(&payload, "\"]}");
        hk_buf_reset(&form);
        const char *secret = secrets[hk_rng_upto(&rng, 1)];
        unsigned how = (unsigned)hk_rng_upto(&rng, 4);
        if (how == 0)
            hk_buf_adds(&form, secret);
        else if (how < 3)
            write_as_json(secret, how == 1, &form);
        else
            write_as_percent(secret, how == 3, &form);
        hk_buf_reset(&text);
        hk_buf_addf(&text, "Q|%s|Q|%s|Q", hk_buf_cstr(&form), secret);
        hk_buf_reset(&shown);
        assert_int_equal(hk_mask_text(masks, S("E"), hk_buf_str(&payload), hk_buf_str(&text), &shown), HK_OK);
        NOTE_IF(contains(hk_buf_str(&shown), S(secret)) || contains(hk_buf_str(&shown), hk_buf_str(&form)),
                "%s\nin %s\nfrom %s\n", secret, hk_buf_cstr(&shown), hk_buf_cstr(&text));
        assert_false(contains(hk_buf_str(&shown), S(secret)));
        assert_false(contains(hk_buf_str(&shown), hk_buf_str(&form)));
        assert_int_equal(shown.data[0], 'Q'); /* and the rest is there */
        assert_int_equal(shown.data[shown.len - 1], 'Q');
        hk_buf_reset(&shown);
        assert_int_equal(hk_mask_payload(masks, S("E"), hk_buf_str(&payload), &shown), HK_OK);
        assert_string_equal(hk_buf_cstr(&shown), "{\"a\":\"***\",\"b\":[\"***\",\"***\"]}");
    }
    hk_buf_fini(&payload);
    hk_buf_fini(&text);
    hk_buf_fini(&form);
    hk_buf_fini(&shown);
    hk_masks_free(masks);
}

/* ---- other sources, other texts ---- */

static void values_of_masked_headers_are_hidden_in_texts(void **state)
{
    static const char headers[] = "{\"X-Api-Key\":\"canary\\/1\",\"x-other\":\"plain\",\"n\":1}";

    static const struct {
        const char *type, *text, *shown;
    } rows[] = {
        {"Order", "key canary/1, plain", "key ***, plain"},
        {"Order", "{\"echo\":\"canary%2f1\"}", "{\"echo\":\"***\"}"},
        {"Other", "key canary/1", "key canary/1"},
        {"Order", "", ""},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        hk_buf_fini(&out);
        hk_buf_init(&out, 10000);
        assert_int_equal(hk_mask_header_values(*state, S(rows[i].type), S(headers), S(rows[i].text), &out),
                         HK_OK);
        assert_string_equal(hk_buf_cstr(&out), rows[i].shown);
    }
    hk_buf_reset(&out);
    assert_int_equal(hk_mask_header_values(NULL, S("Order"), S(headers), S("canary/1"), &out), HK_OK);
    assert_string_equal(hk_buf_cstr(&out), "canary/1");
}

static void a_value_that_was_moved_elsewhere_stays_hidden(void **state)
{
    static const char before[] = "{\"customer\":{\"email\":\"a@ex.jp\",\"pin\":12345.50},\"note\":\"n\"}";

    static const struct {
        const char *after, *shown;
    } rows[] = {
        {"{\"leak\":\"a@ex.jp\",\"note\":\"n\"}", "{\"leak\":\"***\",\"note\":\"n\"}"},
        {"{\"leak\":\"see {\\\"m\\\":\\\"a@ex.jp\\\"}\"}", "{\"leak\":\"***\"}"},
        {"{\"leak\":12345.5,\"x\":12345}", "{\"leak\":\"***\",\"x\":12345}"},
        {"{\"a@ex.jp\":1}", "{\"***\":1}"},
        {"[12345.50]", "[\"***\"]"},
        {"{\"customer\":{\"email\":\"new\"},\"note\":\"m\"}",
         "{\"customer\":{\"email\":\"***\"},\"note\":\"m\"}"},
        {"no json a@ex.jp", "(hidden: 15 bytes, not JSON, and masks apply)"},
        {"", ""},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        hk_buf_fini(&out);
        hk_buf_init(&out, 10000);
        assert_int_equal(hk_mask_changed(*state, S("Order"), S(before), S(rows[i].after), &out), HK_OK);
        assert_string_equal(hk_buf_cstr(&out), rows[i].shown);
    }
    hk_buf_reset(&out);
    assert_int_equal(hk_mask_changed(NULL, S("Order"), S(before), S(before), &out), HK_OK);
    assert_string_equal(hk_buf_cstr(&out), before);
}

/* ---- memory ---- */

static enum hk_code mask_everything(void)
{
    struct hk_masks *masks = NULL;
    struct hk_err err;
    struct hk_buf a, b, c, d, e;
    hk_buf_init(&a, 10000);
    hk_buf_init(&b, 10000);
    hk_buf_init(&c, 10000);
    hk_buf_init(&d, 10000);
    hk_buf_init(&e, 10000);
    enum hk_code rc = hk_masks_new(order_rules, COUNT(order_rules), &masks, &err);
    if (rc == HK_OK)
        rc = hk_mask_payload(masks, S("Order"), S(PAYLOAD), &a);
    if (rc == HK_OK)
        rc = hk_mask_headers(masks, S("Order"), S("{\"x-api-key\":\"k\"}"), &b);
    if (rc == HK_OK)
        rc = hk_mask_text(masks, S("Order"), S(PAYLOAD), S("{\"ssn\":\"4111-1111 jiro@ex.jp\"}"), &c);
    if (rc == HK_OK)
        rc = hk_mask_header_values(masks, S("Order"), S("{\"x-api-key\":\"kkkk\"}"), S("kkkk"), &d);
    if (rc == HK_OK)
        rc = hk_mask_changed(masks, S("Order"), S(PAYLOAD), S("{\"x\":\"4111-1111\"}"), &e);
    if (rc == HK_OK)
        assert_int_equal(hk_buf_status(&c), HK_OK);
    else if (masks) /* whoever looks at the buffers alone sees it, too */
        assert_true(a.status != HK_OK || b.status != HK_OK || c.status != HK_OK || d.status != HK_OK ||
                    e.status != HK_OK);
    hk_masks_free(masks);
    hk_buf_fini(&a);
    hk_buf_fini(&b);
    hk_buf_fini(&c);
    hk_buf_fini(&d);
    hk_buf_fini(&e);
    return rc;
}

static void memory_may_run_out(void **state)
{
    (void)state;
    assert_true(fail_each_allocation(mask_everything, HK_OK) > 15);
}

/* 4 KiB of an answer are kept, and stand in a detail as a string: its end may lie inside of a secret. */
static void what_was_cut_inside_of_a_detail_is_hidden_as_well(void **state)
{
    static char text[3000];
    for (int quoted = 0; quoted < 2; quoted++) {
        int n = snprintf(text, sizeof text, quoted ? "{\"body\":\"%02000d jiro@ex" : "%02000d jiro@ex", 0);
        snprintf(text + n, sizeof text - (size_t)n, quoted ? "\",\"status\":422}" : "");
        const char *shown =
            masked_text(*state, "Order", "{\"customer\":{\"email\":\"jiro@example.jp\"}}", text);
        assert_null(strstr(shown, "jiro"));
        assert_non_null(strstr(shown, quoted ? " ***\",\"status\":422}" : " ***"));
    }
    /* what is short was not cut */
    const char *shown = masked_text(*state, "Order", "{\"customer\":{\"email\":\"jiro@example.jp\"}}",
                                    "{\"body\":\"jiro@ex\",\"a\":1}");
    assert_non_null(strstr(shown, "jiro@ex"));
}

/* ---- texts about a message ---- */

typedef void show_fn(const struct hk_masks *masks, const struct hk_mask_about *about, struct hk_str text,
                     struct hk_buf *out);

static const char *shown(show_fn *show, const struct hk_masks *masks, const struct hk_mask_about *about,
                         const char *text)
{
    hk_buf_fini(&out);
    hk_buf_init(&out, 100000);
    show(masks, about, S(text), &out);
    assert_int_equal(hk_buf_status(&out), HK_OK);
    return hk_buf_cstr(&out);
}

static void texts_about_a_message_hide_all_that_it_was_sent_with(void **state)
{
    const struct hk_str payloads[] = {S("eyJjdXN0b21lciI6eyJlbWFpbCI6Imppcm9AZXhhbXBsZS5qcCJ9fQ=="),
                                      S("{\"not\":\"base64\",\"customer\":{\"email\":\"old@example.jp\"}}")};
    struct hk_mask_about about = {.event_type = S("Order"),
                                  .encoding = S("base64"),
                                  .headers = S("{\"X-Api-Key\":\"K-1234\"}"),
                                  .payloads = payloads,
                                  .n_payloads = 2};
    assert_string_equal(shown(hk_mask_show, *state, &about, "jiro@example.jp, old@example.jp, K-1234"),
                        "***, ***, ***");
    /* another key than the message's own: the name alone says that it is hidden */
    assert_string_equal(
        shown(hk_mask_show, *state, &about, "{\"sent\":{\"x-api-key\":\"K-5678\",\"a\":\"b\"}}"),
        "{\"sent\":{\"x-api-key\":\"***\",\"a\":\"b\"}}");
    assert_string_equal(
        shown(hk_mask_show_headers, *state, &about, "{\"authorization\":\"x\",\"echo\":\"jiro@example.jp\"}"),
        "{\"authorization\":\"***\",\"echo\":\"***\"}");
    assert_string_equal(shown(hk_mask_show_headers, *state, &about, ""), "");
}

static void a_text_is_hidden_where_a_payload_is_missing(void **state)
{
    struct hk_mask_about about = {.event_type = S("Order"), .partial = true};
    struct hk_buf none;
    assert_non_null(strstr(shown(hk_mask_show, *state, &about, "jiro"), "(hidden: masks apply"));
    assert_non_null(strstr(shown(hk_mask_show_headers, *state, &about, "{\"a\":\"jiro\"}"), "(hidden:"));
    hk_buf_init(&none, 100);
    assert_int_equal(hk_mask_about(*state, &about, S("jiro"), &none), HK_TOOBIG);
    assert_int_equal(none.len, 0);
    hk_buf_fini(&none);
    assert_string_equal(shown(hk_mask_show, NULL, &about, "jiro"), "jiro");
}

static void payloads_are_shown_plain(void **state)
{
    static const char coded[] = "eyJzc24iOjF9"; /* {"ssn":1} */
    hk_buf_fini(&out);
    hk_buf_init(&out, 1000);
    hk_mask_show_payload(*state, S("Order"), S("base64"), S(coded), &out);
    hk_mask_show_payload(NULL, S("Order"), S("base64"), S(coded), &out);
    hk_mask_show_payload(*state, S("Order"), S("base64"), S("?"), &out);
    assert_string_equal(hk_buf_cstr(&out), "{\"ssn\":\"***\"}{\"ssn\":1}(1 bytes that are not base64)");
}

/* ---- between what is stored and what was written ---- */

static void what_is_stored_becomes_plain_and_back(void **state)
{
    static const struct {
        const char *encoding, *stored, *plain, *beginning; /* NULL = it is not what its encoding says */
    } rows[] = {
        {"", "e30=", "e30=", "e30="}, {"utf8", "{}", "{}", "{}"},         {"Base64", "e30=", "{}", "{}"},
        {"base64", "", "", ""},       {"base64", "e30", NULL, ""},        {"base64", "YWJjZA", NULL, "abc"},
        {"base64", "?", NULL, ""},    {"base64", "????????", NULL, NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct hk_pool mem = {NULL};
        struct hk_str encoding = S(rows[i].encoding), plain, back;
        enum hk_code rc = hk_codec_plain(encoding, S(rows[i].stored), &mem, &plain);
        assert_int_equal(rc, rows[i].plain ? HK_OK : HK_INVALID);
        assert_true(hk_str_eq(plain, S(rows[i].plain ? rows[i].plain : "")));
        if (rc == HK_OK) {
            assert_int_equal(hk_codec_stored(encoding, plain, &mem, &back), HK_OK);
            assert_true(hk_str_eq(back, S(rows[i].stored)));
        }
        rc = hk_codec_beginning(encoding, S(rows[i].stored), &mem, &plain);
        assert_int_equal(rc, rows[i].beginning ? HK_OK : HK_INVALID);
        assert_true(hk_str_eq(plain, S(rows[i].beginning ? rows[i].beginning : "")));
        hk_pool_fini(&mem);
    }
}

#define WITH_MASKS(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_MASKS(values_become_stars_and_all_else_stays),
        WITH_MASKS(without_rules_nothing_is_hidden),
        WITH_MASKS(rules_fit_by_event_type),
        WITH_MASKS(the_whole_payload_may_be_masked),
        WITH_MASKS(bad_paths_are_refused),
        WITH_MASKS(a_small_buffer_is_an_error_that_stays),
        WITH_MASKS(headers_are_masked_by_name),
        WITH_MASKS(hidden_values_are_found_in_every_form),
        WITH_MASKS(texts_that_are_json_are_masked_by_path_as_well),
        WITH_MASKS(what_was_cut_inside_of_a_detail_is_hidden_as_well),
        WITH_MASKS(overlapping_values_leave_no_end_over),
        WITH_MASKS(values_of_little_but_backslashes_are_found),
        WITH_MASKS(astral_characters_are_found_as_pairs),
        WITH_MASKS(of_a_payload_that_is_not_json_every_word_is_hidden),
        WITH_MASKS(too_many_values_hide_the_text),
        WITH_MASKS(hostile_repetition_ends),
        WITH_MASKS(values_of_masked_headers_are_hidden_in_texts),
        WITH_MASKS(a_value_that_was_moved_elsewhere_stays_hidden),
        WITH_MASKS(texts_about_a_message_hide_all_that_it_was_sent_with),
        WITH_MASKS(a_text_is_hidden_where_a_payload_is_missing),
        WITH_MASKS(payloads_are_shown_plain),
        cmocka_unit_test(what_is_stored_becomes_plain_and_back),
        cmocka_unit_test(masking_touches_masked_values_only),
        cmocka_unit_test(a_masked_value_never_appears),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
