/* SPDX-License-Identifier: Apache-2.0 */
/* Dead letters: whose fault each reason is, and which texts fall into one group. */
#include "base/str.h"
#include "check.h"
#include "core/letter.h"

static void statuses_have_names_and_are_found_by_them(void **state)
{
    (void)state;
    static const char *const names[] = {"failed", "retrying", "resolved", "discarded"};
    enum hk_letter_status status;
    for (unsigned i = 0; i < HK_NLETTER_STATUSES; i++) {
        assert_string_equal(hk_letter_status_name((enum hk_letter_status)i), names[i]);
        assert_true(hk_letter_status_by_name(hk_str_of(names[i]), &status));
        assert_int_equal(status, i);
    }
    status = HK_LETTER_DISCARDED;
    assert_false(hk_letter_status_by_name(hk_str_of("Failed"), &status));
    assert_false(hk_letter_status_by_name(hk_str_of(""), &status));
    assert_int_equal(status, HK_LETTER_DISCARDED); /* untouched */
    assert_string_equal(hk_letter_status_name(HK_NLETTER_STATUSES), "unknown");
}

static void blames_have_names_and_are_found_by_them(void **state)
{
    (void)state;
    static const char *const names[] = {"destination", "pipeline"};
    enum hk_blame blame;
    for (unsigned i = 0; i < HK_NBLAMES; i++) {
        assert_string_equal(hk_blame_name((enum hk_blame)i), names[i]);
        assert_true(hk_blame_by_name(hk_str_of(names[i]), &blame));
        assert_int_equal(blame, i);
    }
    blame = HK_BLAME_PIPELINE;
    assert_false(hk_blame_by_name(hk_str_of("dest"), &blame));
    assert_int_equal(blame, HK_BLAME_PIPELINE);
    assert_string_equal(hk_blame_name(HK_NBLAMES), "unknown");
}

/* ---- whose fault ---- */

#define D HK_BLAME_DESTINATION
#define P HK_BLAME_PIPELINE

/* One row for each code of core/reason.c, in its order: without an answer, with one. */
static const struct {
    const char *reason;
    enum hk_blame silent, answered;
} blames[] = {
    {"VALIDATION_ERROR", P, D}, {"SCHEMA_MISMATCH", P, D},   {"PAYLOAD_TOO_LARGE", P, D},
    {"HTTP_nnn", D, D},         {"TRANSIENT_NETWORK", D, D}, {"TIMEOUT", D, D},
    {"TLS_FAILED", D, D},       {"PROTOCOL_ERROR", D, D},    {"RATE_LIMITED", D, D},
    {"AUTH_FAILED", D, D},      {"TOKEN_UNAVAILABLE", D, D}, {"BROKER_UNAVAILABLE", D, D},
    {"BROKER_REFUSED", D, D},   {"PROXY_UNAVAILABLE", P, D}, {"PROXY_AUTH_FAILED", P, D},
    {"PROXY_REFUSED", P, D},    {"BLOCKED_BY_POLICY", P, D}, {"UNKNOWN_DESTINATION", P, D},
    {"LOCAL_ERROR", P, D},      {"EXPIRED", P, P},           {"RELAY_CRASHED", P, P},
    {"RETRY_EXHAUSTED", D, D},  {"DEADLINE_EXCEEDED", D, D}, {"RETRY_BUDGET_SPENT", D, D},
    {"BREAKER_OPEN", D, D},     {"LIMITED", P, P},           {"UNKNOWN", D, D},
};

static enum hk_blame blame_of(const char *reason, const char *cause, int status)
{
    return hk_blame_of(hk_str_of(reason), hk_str_of(cause), status);
}

static void every_reason_code_has_somebody_to_repair_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(blames); i++) {
        assert_non_null(hk_reason_name(i));
        assert_string_equal(blames[i].reason, hk_reason_name(i));
        enum hk_blame silent = blame_of(blames[i].reason, NULL, 0);
        enum hk_blame answered = blame_of(blames[i].reason, NULL, 500);
        NOTE_IF(silent != blames[i].silent || answered != blames[i].answered, "%s\n", blames[i].reason);
        assert_int_equal(silent, blames[i].silent);
        assert_int_equal(answered, blames[i].answered);
    }
    assert_null(hk_reason_name(COUNT(blames)));
}

static void giving_up_is_blamed_on_the_last_cause(void **state)
{
    (void)state;
    static const char *const gave_up[] = {"RETRY_EXHAUSTED", "DEADLINE_EXCEEDED", "RETRY_BUDGET_SPENT",
                                          "BREAKER_OPEN", "LIMITED"};
    for (size_t i = 0; i < COUNT(gave_up); i++) {
        assert_int_equal(blame_of(gave_up[i], "LOCAL_ERROR", 0), P);
        assert_int_equal(blame_of(gave_up[i], "BLOCKED_BY_POLICY", 0), P);
        assert_int_equal(blame_of(gave_up[i], "TIMEOUT", 0), D);
        assert_int_equal(blame_of(gave_up[i], "HTTP_503", 503), D);
    }
    /* a reason that says it itself is not overruled */
    assert_int_equal(blame_of("EXPIRED", "HTTP_503", 503), P);
    assert_int_equal(blame_of("HTTP_422", "LOCAL_ERROR", 422), D);
}

static void a_policys_own_reason_is_the_destinations(void **state)
{
    (void)state;
    assert_int_equal(blame_of("NO_SUCH_CUSTOMER", "NO_SUCH_CUSTOMER", 404), D);
    assert_int_equal(blame_of("NO_SUCH_CUSTOMER", NULL, 0), D);
    assert_int_equal(blame_of("", NULL, 0), D);
}

#undef D
#undef P

/* ---- fingerprints ---- */

static const char *fingerprint(enum hk_class cls, const char *reason, const char *destination,
                               struct hk_str error)
{
    static char out[2][HK_FINGERPRINT_MAX];
    static unsigned turn;
    char *at = out[turn++ % 2];
    hk_fingerprint(cls, hk_str_of(reason), hk_str_of(destination), error, at);
    return at;
}

static const char *of_error(struct hk_str error)
{
    return fingerprint(HK_CLASS_PERMANENT, "HTTP_422", "billing", error);
}

/* They are stored: with these values HK_FINGERPRINT_VERSION changes. Computed by other means, from the folded text. */
static void fingerprints_are_the_same_on_every_machine(void **state)
{
    (void)state;

    static const struct {
        enum hk_class cls;
        const char *reason, *destination, *error, *expected;
    } rows[] = {
        {HK_CLASS_PERMANENT, "HTTP_422", "billing", "the destination answered 422", "7b37b17ea794460e"},
        {HK_CLASS_TRANSIENT, "RETRY_EXHAUSTED", "billing", "Connection refused by 10.0.0.7:8443",
         "8a37b4a52862b8c9"},
        {HK_CLASS_SUCCESS, "VALIDATION_ERROR", "crm", "$.customer.id: required field is missing",
         "1dd0b80f41874f3d"},
        {HK_CLASS_PERMANENT, "HTTP_422", "billing", "HTTP 422: field 'currency' is missing",
         "096c42d35fa84b25"},
        {HK_CLASS_UNKNOWN, "UNKNOWN", "", "", "11788da9473c6fb1"},
        {HK_CLASS_UNKNOWN, "UNKNOWN", "\u5728\u5eab",
         "\u6ce8\u6587\uff11\uff12\uff13\u300cA-1\u300d\u304c\u898b\u3064\u304b\u308a\u307e\u305b\u3093",
         "aa4b6e5337844341"},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        assert_string_equal(
            fingerprint(rows[i].cls, rows[i].reason, rows[i].destination, hk_str_of(rows[i].error)),
            rows[i].expected);
}

static void class_reason_and_destination_tell_letters_apart(void **state)
{
    (void)state;
    struct hk_str error = hk_str_of("no");
    char one[HK_FINGERPRINT_MAX];
    hk_fingerprint(HK_CLASS_PERMANENT, hk_str_of("A"), hk_str_of("b"), error, one);
    assert_string_equal(fingerprint(HK_CLASS_PERMANENT, "A", "b", error), one);
    assert_string_not_equal(fingerprint(HK_CLASS_TRANSIENT, "A", "b", error), one);
    assert_string_not_equal(fingerprint(HK_CLASS_PERMANENT, "B", "b", error), one);
    assert_string_not_equal(fingerprint(HK_CLASS_PERMANENT, "A", "c", error), one);
    /* nor does one field run into the next */
    assert_string_not_equal(fingerprint(HK_CLASS_PERMANENT, "Ab", "", error), one);
    assert_string_not_equal(fingerprint(HK_CLASS_PERMANENT, "A", "bn", hk_str_of("o")), one);
}

/* What `error` folds to: a text in which nothing is left to fold stands for itself. */
static const struct {
    const char *error, *folded;
} folds[] = {
    /* numbers and ids */
    {"order 4711 not found", "order # not found"},
    {"order A-4711 not found", "order # not found"},
    {"order ord_8f3Zq not found", "order # not found"},
    {"550e8400-e29b-41d4-a716-446655440000 is gone", "# is gone"},
    {"DEADBEEF is gone", "# is gone"},
    {"deadbee is gone", "deadbee is gone"},   /* too short for a number */
    {"deadbeeg is gone", "deadbeeg is gone"}, /* not hexadecimal */
    {"deadbeef. Gone", "#. gone"},
    {"connect to 10.0.0.7:8443 failed after 1.5 s", "connect to # failed after # s"},
    {"mail to a.b+c@example.com bounced", "mail to # bounced"},
    {"price -12.50 is negative", "price # is negative"},
    {"seen at 2026-11-15T08:30:00.250Z", "seen at #"},
    /* what joins words inside does not belong to them at their ends */
    {"end. Next", "end. next"},
    {"a--b", "a--b"},
    {"5--6", "#"},
    {"_5_ -5- .5.", "# .#."},
    {"$.items[3].sku", "$.items[#].sku"},
    {"snake_case and kebab-case stay", "snake_case and kebab-case stay"},
    /* quotes */
    {"no field \"e-mail address\"", "no field #"},
    {"no field 'name'", "no field \"name\""},
    {"no field `name`", "no field \"name\""},
    {"no field \u201cname\u201d", "no field \"name\""},
    {"no field \u300cname\u300d", "no field \"name\""},
    {"no field \u300ename\u300f", "no field \"name\""},
    {"\"\" is no name", "# is no name"},
    {"'it's here' is no name", "# is no name"},
    {"we can't and won't", "we can't and won't"},
    {"one \" alone", "one \" alone"},
    {"one \"a\"b", "one \"a\"b"}, /* no end: a letter follows */
    {"one \"", "one \""},
    {"no field '\u901a\u8ca8'", "no field \"\u901a\u8ca8\""},
    {"no field '\u901a\u3000\u8ca8'", "no field #"},
    {"no field '\uff11\uff12'", "no field #"},
    {"'items[3].sku' of '/orders/4711'", "\"items[#].sku\" of \"/orders/#\""},
    {"'cus_12', '0.5', '***'", "#"},
    {"no field 'an_identifier_that_is_longer_than_any_name'", "no field #"},
    {"'it's' is one", "\"it's\" is one"},
    /* dates, signs, what is counted, what masks left, base64 */
    {"on Mon, 16 Nov 2026 at 8:30 PM", "on # at #"},
    {"on November 3", "on #"},
    {"in May, perhaps", "in may, perhaps"},
    {"+81-90-1234-5678 rings", "# rings"},
    {"a -b- +c", "a -b- +c"},
    {"5 Items", "# item"},
    {"5, items", "#, items"},
    {"5 was it", "# was it"},
    {"no *** here", "no # here"},
    {"no ** here", "no ** here"},
    {"sum QUJDREVGR/hJSktMTUx+UA== differs", "sum # differs"},
    {"sum abcdefghijkl= differs", "sum # differs"},
    {"sum abcdefghijk= differs", "sum abcdefghijk= differs"},
    {"parameters=value", "parameters=value"},
    /* lists */
    {"ids 1, 2, 3 are unknown", "ids # are unknown"},
    {"ids 1,2 3 are unknown", "ids # are unknown"},
    {"ids [1,2] are unknown", "ids [#] are unknown"},
    {"ids 1,,2", "ids #,,#"},
    {"id 1, unknown", "id #, unknown"},
    {"id 1 , unknown", "id #, unknown"},
    {"first, second", "first, second"},
    {"issue #5", "issue #"},
    /* blanks and case */
    {"  Connection\t\nREFUSED \x7f", "connection refused"},
    {"", ""},
    {" \n ", ""},
    {"id 1 ", "id #"},
    {"id 1,", "id #"},
    /* Japanese */
    {"\u6ce8\u6587123\u304c\u306a\u3044", "\u6ce8\u6587#\u304c\u306a\u3044"},
    {"\u6ce8\u6587\uff10\uff19\u304c\u306a\u3044", "\u6ce8\u6587#\u304c\u306a\u3044"},
    {"\uff0f\uff1a", "\uff0f\uff1a"}, /* the neighbours of the wide digits */
    {"\xef\xbc", "\xef\xbc"},         /* cut */
    {"\xef\xbd\x95", "\xef\xbd\x95"},
};

static void texts_are_folded_as_the_table_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(folds); i++) {
        const char *folded = of_error(hk_str_of(folds[i].folded));
        const char *error = of_error(hk_str_of(folds[i].error));
        NOTE_IF(strcmp(folded, error) != 0, "%s\n", folds[i].error);
        assert_string_equal(folded, error);
    }
}

static void texts_that_say_something_else_stay_apart(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(folds); i++)
        for (size_t k = 0; k < i; k++) {
            bool same = strcmp(folds[i].folded, folds[k].folded) == 0;
            bool grouped =
                strcmp(of_error(hk_str_of(folds[i].error)), of_error(hk_str_of(folds[k].error))) == 0;
            NOTE_IF(same != grouped, "%s | %s\n", folds[i].error, folds[k].error);
            assert_int_equal(same, grouped);
        }
}

static void only_the_beginning_of_a_long_text_counts(void **state)
{
    (void)state;
    char a[600], b[600];
    memset(a, 'x', sizeof a);
    memset(b, 'x', sizeof b);
    b[255] = 'y';
    assert_string_not_equal(of_error((struct hk_str){a, sizeof a}), of_error((struct hk_str){b, sizeof b}));
    b[255] = 'x';
    b[256] = 'y';
    assert_string_equal(of_error((struct hk_str){a, sizeof a}), of_error((struct hk_str){b, sizeof b}));
    assert_string_equal(of_error((struct hk_str){a, 300}), of_error((struct hk_str){b, 256}));
    memset(a, '!', sizeof a);
    assert_string_equal(of_error((struct hk_str){a, 256}), of_error((struct hk_str){a, sizeof a}));
    assert_string_not_equal(of_error((struct hk_str){a, 255}), of_error((struct hk_str){a, sizeof a}));
    /* 256 bytes after folding, not before */
    memset(a, '7', 500);
    memset(b, '8', 510);
    b[256] = '8';
    memcpy(a + 500, ": too big", 9);
    memcpy(b + 510, ": too old", 9);
    assert_string_not_equal(of_error((struct hk_str){a, 509}), of_error((struct hk_str){b, 519}));
}

static void bytes_of_any_kind_are_taken(void **state)
{
    (void)state;
    char all[256];
    for (unsigned i = 0; i < sizeof all; i++)
        all[i] = (char)i;
    for (size_t from = 0; from <= sizeof all; from++) {
        const char *one = of_error((struct hk_str){all + from, sizeof all - from});
        assert_int_equal(strlen(one), HK_FINGERPRINT_MAX - 1);
        assert_int_equal(strspn(one, "0123456789abcdef"), HK_FINGERPRINT_MAX - 1);
    }
    assert_string_equal(of_error((struct hk_str){NULL, 0}), of_error(hk_str_of("")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statuses_have_names_and_are_found_by_them),
        cmocka_unit_test(blames_have_names_and_are_found_by_them),
        cmocka_unit_test(every_reason_code_has_somebody_to_repair_it),
        cmocka_unit_test(giving_up_is_blamed_on_the_last_cause),
        cmocka_unit_test(a_policys_own_reason_is_the_destinations),
        cmocka_unit_test(fingerprints_are_the_same_on_every_machine),
        cmocka_unit_test(class_reason_and_destination_tell_letters_apart),
        cmocka_unit_test(texts_are_folded_as_the_table_says),
        cmocka_unit_test(texts_that_say_something_else_stay_apart),
        cmocka_unit_test(only_the_beginning_of_a_long_text_counts),
        cmocka_unit_test(bytes_of_any_kind_are_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
