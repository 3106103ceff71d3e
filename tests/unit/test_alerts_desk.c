/* SPDX-License-Identifier: Apache-2.0 */
/* What an alert says of its example when memory is short: nothing that a mask hides. On a store that a test plays. */
#include <stdlib.h>

#include "base/str.h"
#include "check.h"
#include "daemon/alerts.h"
#include "failing.h"

#define S(text) hk_str_of(text)

static const char *const paths[] = {"email"};
static const struct hk_mask_rule rules[] = {{.event_type = "Order", .paths = paths, .n_paths = 1}};
static struct hk_masks *masks;
static char told[8192];

/* ---- a store ---- */

/* {"email":"jiro@example.jp"}, as the application wrote it, and {"email":"old@example.jp"}, which was edited away */
static struct hk_letter_version older = {.payload = {"eyJlbWFpbCI6Im9sZEBleGFtcGxlLmpwIn0=", 36},
                                         .payload_bytes = 36};
static struct hk_letter_shown letter = {
    .letter = {.id = 7,
               .event_type = {"Order", 5},
               .encoding = {"base64", 6},
               .payload = {"eyJlbWFpbCI6Imppcm9AZXhhbXBsZS5qcCJ9", 36},
               .payload_bytes = 36,
               .version = 2,
               .error = {"HTTP 422: no jiro@example.jp, nor old@example.jp", 48}},
    .versions = &older,
    .n_versions = 1};

static enum hk_code fake_look(struct hk_admin *admin, uint64_t interval_ms,
                              const struct hk_alerts_looked **out, struct hk_err *err)
{
    static struct hk_alert_deaths death = {.destination = {"shop", 4},
                                           .reason = {"HTTP_422", 8},
                                           .event_type = {"Order", 5},
                                           .n = 3,
                                           .letter_id = 7,
                                           .message_id = {"m-7", 3}};
    static struct hk_alerts_looked looked = {
        .due = true, .now_ms = INT64_C(1800000000000), .deaths = &death, .n_deaths = 1};
    (void)admin;
    (void)interval_ms;
    (void)err;
    *out = &looked;
    return HK_OK;
}

static enum hk_code fake_show(struct hk_admin *admin, int64_t id, size_t payload_max,
                              const struct hk_letter_shown **out, struct hk_err *err)
{
    (void)admin;
    (void)err;
    assert_int_equal(id, 7);
    assert_true(payload_max > 1000);
    *out = &letter;
    return HK_OK;
}

static enum hk_code fake_decide(struct hk_admin *admin, const struct hk_alerts_decided *decided,
                                struct hk_err *err)
{
    size_t len = 0;
    (void)admin;
    (void)err;
    for (size_t i = 0; i < decided->n_alerts; i++)
        len += (size_t)snprintf(told + len, sizeof told - len, "%.*s\n", (int)decided->alerts[i].detail.len,
                                decided->alerts[i].detail.ptr);
    for (size_t i = 0; i < decided->n_notices; i++)
        len += (size_t)snprintf(told + len, sizeof told - len, "%.*s\n", (int)decided->notices[i].facts.len,
                                decided->notices[i].facts.ptr);
    return HK_OK;
}

static const struct hk_store_admin_ops fake_admin = {.name = "fake"};
static const struct hk_store_letters_ops fake_letters = {.show = fake_show};
static const struct hk_store_alerts_ops fake_alerts = {.look = fake_look, .decide = fake_decide};

static enum hk_code evaluate(void)
{
    struct hk_alert_rule rule = {
        .name = "dead", .kind = HK_ALERT_DEAD_LETTER, .severity = HK_ALERT_CRITICAL, .channels = 1};
    struct hk_channel channel = {.name = "mail"};
    struct hk_alerts_plan plan = {.rules = &rule,
                                  .n_rules = 1,
                                  .channels = &channel,
                                  .n_channels = 1,
                                  .settings = {.update_ms = 1000, .resolve_after_ms = 1000},
                                  .interval_ms = 1000,
                                  .relay = "r",
                                  .masks = masks};
    int opened = 0;
    struct hk_alerts_rounds desk = {.url = "fake:",
                                    .relay = "r",
                                    .admin = (struct hk_admin *)&opened,
                                    .ops = &fake_admin,
                                    .letters = &fake_letters,
                                    .alerts = &fake_alerts};
    struct hk_alerts_evaluated out;
    struct hk_err err = {.message = ""};
    told[0] = '\0';
    enum hk_code rc = hk_alerts_evaluate(&desk, &plan, &out, &err);
    assert_null(strstr(told, "jiro"));
    assert_null(strstr(told, "old@"));
    return rc;
}

static void an_alert_says_what_the_masks_leave(void **state)
{
    (void)state;
    struct hk_err err;
    assert_int_equal(hk_masks_new(rules, COUNT(rules), &masks, &err), HK_OK);
    assert_int_equal(evaluate(), HK_OK);
    assert_non_null(strstr(told, "HTTP 422: no ***, nor ***"));
    hk_masks_free(masks);
}

/* A payload that there is no memory to decode was looked through as it was, and hid nothing. */
static void without_memory_an_alert_shows_nothing_that_is_masked(void **state)
{
    (void)state;
    struct hk_err err;
    assert_int_equal(hk_masks_new(rules, COUNT(rules), &masks, &err), HK_OK);
    assert_true(fail_each_allocation(evaluate, HK_OK) > 15);
    hk_masks_free(masks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_alert_says_what_the_masks_leave),
        cmocka_unit_test(without_memory_an_alert_shows_nothing_that_is_masked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
