/* SPDX-License-Identifier: Apache-2.0 */
/* Letters of an older version while a relay runs, on a store that a test plays: what they get to say, when it looks, and when it
 * lets go. */
#include <stdlib.h>
#include <unistd.h>

#include "base/str.h"
#include "check.h"
#include "config/diag.h"
#include "relay/regroup.h"

#define S(text) hk_str_of(text)

/* ---- a store ---- */

static struct {
    bool open;
    unsigned opens;
    enum hk_code fail;
    uint32_t left; /* letters that are to be grouped */
    uint32_t limit;
    size_t payload_max;
    struct hk_letter letter; /* each is this one */
    char said[1024];
} store;

static enum hk_code fake_open(const char *url, const struct hk_store_options *options, struct hk_admin **out,
                              struct hk_err *err)
{
    (void)err;
    assert_string_equal(url, "fake:");
    assert_true(options->busy_ms && options->busy_ms <= 1000);
    assert_false(store.open);
    store.opens++;
    store.open = true;
    *out = (struct hk_admin *)&store;
    return HK_OK;
}

static void fake_close(struct hk_admin *admin)
{
    if (admin)
        store.open = false;
}

static enum hk_code fake_regroup(struct hk_admin *admin, const struct hk_regrouping *how, uint32_t *out_n,
                                 struct hk_err *err)
{
    struct hk_buf error;
    assert_ptr_equal(admin, &store);
    store.limit = how->limit;
    store.payload_max = how->payload_max;
    if (store.fail != HK_OK)
        return hk_err_set(err, store.fail, "on purpose");
    hk_buf_init(&error, 1000);
    how->say(how->arg, &store.letter, &error);
    (void)snprintf(store.said, sizeof store.said, "%s", hk_buf_cstr(&error));
    hk_buf_fini(&error);
    *out_n = store.left < how->limit ? store.left : how->limit;
    store.left -= *out_n;
    return HK_OK;
}

static const struct hk_store_admin_ops fake_admin = {.name = "fake", .open = fake_open, .close = fake_close};
static const struct hk_store_letters_ops fake_letters = {.regroup = fake_regroup};

/* ---- a relay ---- */

static struct hk_regrouper *rg;
static struct hk_config *config;
static struct hk_log logger;
static int log_pipe[2];

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
    assert_int_equal(pipe(log_pipe), 0);
    hk_log_init(&logger, log_pipe[1], HK_LOG_INFO);
    const struct hk_regrouper_options options = {
        .url = "fake:", .admin = &fake_admin, .letters = &fake_letters, .log = &logger};
    assert_int_equal(hk_regrouper_new(&options, &rg, NULL), HK_OK);
    config = NULL;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    hk_regrouper_free(rg);
    assert_false(store.open);
    hk_config_free(config);
    hk_log_fini(&logger);
    close(log_pipe[0]);
    close(log_pipe[1]);
    return 0;
}

static const char *logged(void)
{
    static char said[4096];
    assert_int_equal(write(log_pipe[1], "\n", 1), 1); /* so that there is something to read */
    ssize_t n = read(log_pipe[0], said, sizeof said - 1);
    assert_true(n > 0);
    said[n] = '\0';
    return said;
}

static void step(int64_t now_ms)
{
    hk_regrouper_work(rg);
    hk_regrouper_done(rg, now_ms);
}

/* ---- when ---- */

static void steps_follow_each_other_until_none_is_left(void **state)
{
    (void)state;
    store.letter.error = S("connection refused");
    store.left = 700;
    assert_true(hk_regrouper_at_ms(rg) <= 0); /* at once */
    step(5000);
    assert_true(store.open);
    assert_int_equal(store.limit, 500);
    assert_int_equal(store.payload_max, 0);
    assert_int_equal(hk_regrouper_at_ms(rg), 5100);
    step(5100);
    assert_int_equal(hk_regrouper_at_ms(rg), 5200);
    assert_null(strstr(logged(), "msg"));
    step(5200);
    assert_false(store.open);
    assert_int_equal(store.opens, 1);
    assert_int_equal(hk_regrouper_at_ms(rg), 65200); /* an older relay may add some */
    const char *said = logged();
    assert_non_null(strstr(said, "dead letters of an older version are grouped"));
    assert_non_null(strstr(said, "letters=700"));
    step(65200);
    assert_null(strstr(logged(), "msg"));
}

static void trouble_is_told_once_and_tried_again(void **state)
{
    (void)state;
    store.fail = HK_UNAVAILABLE;
    step(1000);
    assert_int_equal(hk_regrouper_at_ms(rg), 61000);
    assert_false(store.open);
    assert_non_null(strstr(logged(), "on purpose"));
    step(61000);
    assert_null(strstr(logged(), "on purpose"));
    store.fail = HK_BUSY;
    step(121000);
    assert_null(strstr(logged(), "on purpose"));
    store.fail = HK_OK;
    store.left = 1;
    store.letter.error = S("");
    step(181000);
    assert_int_equal(hk_regrouper_at_ms(rg), 181100);
}

/* ---- what they say ---- */

static const char *said_of(const char *error, const char *detail)
{
    store.letter.error = S(error);
    store.letter.error_detail = S(detail);
    store.left = 1;
    step(0);
    return store.said;
}

#define DETAIL(body)                                                                                         \
    "{\"cause\":\"HTTP_422\",\"response_headers\":{\"response_body\":\"no\"},\"response_body\":" body "}"

static void letters_get_the_words_of_their_last_attempt(void **state)
{
    (void)state;
    assert_string_equal(
        said_of("the answer was HTTP 422", DETAIL("\"{\\\"message\\\":\\\"field 'x' is missing\\\"}\"")),
        "HTTP 422: field 'x' is missing");
    assert_string_equal(said_of("the answer was HTTP 503", DETAIL("\"try later\"")), "HTTP 503: try later");
    /* nothing to say */
    assert_string_equal(said_of("the answer was HTTP 422", DETAIL("\"\"")), "");
    assert_string_equal(said_of("the answer was HTTP 422", DETAIL("null")), "");
    assert_string_equal(said_of("the answer was HTTP 422", ""), "");
    assert_string_equal(said_of("the answer was HTTP 422", "{\"response_body\":\"cut"), "");
    assert_string_equal(said_of("the answer was HTTP many", DETAIL("\"a\"")), "");
    assert_string_equal(said_of("connection refused", DETAIL("\"a\"")), "");
}

static void masks_hold_for_them_too(void **state)
{
    (void)state;
    struct hk_err err = {.message = ""};
    config = parse("destinations:\n  a: { \"null\": {} }\n"
                   "masks:\n  - event_type: Order\n    paths: [name]\n");
    assert_int_equal(hk_regrouper_configure(rg, config, &err), HK_OK);
    store.letter = (struct hk_letter){.event_type = S("Order"),
                                      .encoding = S("base64"),
                                      .payload = S("eyJuYW1lIjoiVGFuYWthIn0="), /* {"name":"Tanaka"} */
                                      .payload_bytes = 24,
                                      .version = 1};
    assert_string_equal(said_of("the answer was HTTP 422", DETAIL("\"no Tanaka here\"")),
                        "HTTP 422: no *** here");
    assert_int_equal(store.limit, 16);
    assert_int_equal(store.payload_max, 1 << 20);
    /* which payload was sent is not known, or not all of it */
    store.letter.version = 2;
    assert_string_equal(said_of("the answer was HTTP 422", DETAIL("\"no Tanaka here\"")), "");
    store.letter.version = 1;
    store.letter.payload_bytes = 25;
    assert_string_equal(said_of("the answer was HTTP 422", DETAIL("\"no Tanaka here\"")), "");
    store.letter.event_type = S("Other");
    assert_string_equal(said_of("the answer was HTTP 422", DETAIL("\"no Tanaka here\"")),
                        "HTTP 422: no Tanaka here");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(steps_follow_each_other_until_none_is_left),
        TEST(trouble_is_told_once_and_tried_again),
        TEST(letters_get_the_words_of_their_last_attempt),
        TEST(masks_hold_for_them_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
