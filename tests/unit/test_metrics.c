/* SPDX-License-Identifier: Apache-2.0 */
/* The registry: what is counted is what is shown, whatever labels hold, and never more series than the table allows. */
#include <pthread.h>
#include <stdatomic.h>

#include "base/str.h"
#include "failing.h"
#include "observe/metrics.h"

enum {
    PLAIN,
    BY_DEST,
    PAIRS,
    LEVEL,
    DEST_LEVEL,
    TIMES,
    DEST_TIMES,
    INFO,
    N_DEFS
};

static const char *const colours[] = {"red", "green", NULL};
static const char *const pairs[] = {"a=\"1\",b=\"2\"", "a=\"3\",b=\"4\"", NULL};
static const uint64_t bounds[] = {5, 1000, 2500};

static const struct hk_metric_def defs[N_DEFS] = {
    [PLAIN] = {"t_plain_total", "Plain.", HK_METRIC_COUNTER, 0, {{0}}, NULL, 0},
    [BY_DEST] = {"t_dest_total",
                 "By destination.",
                 HK_METRIC_COUNTER,
                 0,
                 {{.name = "destination"}, {.name = "colour", .values = colours}},
                 NULL,
                 0},
    [PAIRS] = {"t_pairs_total", "Pairs.", HK_METRIC_COUNTER, 0, {{.values = pairs}}, NULL, 0},
    [LEVEL] = {"t_level", "Level.", HK_METRIC_GAUGE, 3, {{.name = "colour", .values = colours}}, NULL, 0},
    [DEST_LEVEL] = {"t_dest_level", "Level.", HK_METRIC_GAUGE, 0, {{.name = "destination"}}, NULL, 0},
    [TIMES] = {"t_seconds", "Times.", HK_METRIC_HISTOGRAM, 3, {{0}}, bounds, COUNT(bounds)},
    [DEST_TIMES] = {"t_dest_seconds",
                    "Times.",
                    HK_METRIC_HISTOGRAM,
                    6,
                    {{.name = "destination"}},
                    bounds,
                    COUNT(bounds)},
    [INFO] = {"t_info", "Info.", HK_METRIC_GAUGE, 0, {{0}}, NULL, 0},
};

static struct hk_metrics *make(void)
{
    struct hk_metrics *m = NULL;
    assert_int_equal(hk_metrics_new(defs, N_DEFS, &m, NULL), HK_OK);
    return m;
}

static struct hk_buf page;

static const char *show(struct hk_metrics *m)
{
    hk_buf_fini(&page);
    hk_buf_init(&page, (size_t)64 << 20);
    hk_metrics_write(m, &page);
    assert_int_equal(hk_buf_status(&page), HK_OK);
    return hk_buf_cstr(&page);
}

static void has(struct hk_metrics *m, const char *line)
{
    char whole[512];
    (void)snprintf(whole, sizeof whole, "\n%s\n", line);
    const char *text = show(m);
    bool found = strstr(text, whole) || strncmp(text, whole + 1, strlen(whole + 1)) == 0;
    NOTE_IF(!found, "no line %s in\n%s\n", line, text);
    assert_true(found);
}

static void lacks(struct hk_metrics *m, const char *part)
{
    assert_null(strstr(show(m), part));
}

static int finish(void **state)
{
    (void)state;
    hk_buf_fini(&page);
    return 0;
}

static void test_what_is_counted_is_shown(void **state)
{
    (void)state;
    struct hk_metrics *m = make();
    has(m, "t_plain_total 0"); /* a counter is there from the start, so that its first step is a step */
    hk_metrics_add(m, PLAIN, 0, 0, 3);
    hk_metrics_add(m, PLAIN, 0, 0, 4);
    has(m, "t_plain_total 7");
    has(m, "# HELP t_plain_total Plain.");
    has(m, "# TYPE t_plain_total counter");
    hk_metrics_add(m, PAIRS, 1, 0, 1);
    has(m, "t_pairs_total{a=\"3\",b=\"4\"} 1");
    has(m, "t_pairs_total{a=\"1\",b=\"2\"} 0");
    hk_metrics_set(m, PLAIN, 0, 0, 12);
    assert_int_equal(hk_metrics_get(m, PLAIN, 0, 0), 12);
    hk_metrics_free(m);
}

static void test_a_gauge_is_shown_once_it_is_known(void **state)
{
    (void)state;
    struct hk_metrics *m = make();
    lacks(m, "\nt_level{");
    has(m, "# TYPE t_level gauge"); /* its name is known at any time */
    hk_metrics_set(m, LEVEL, 0, 0, 1500);
    has(m, "t_level{colour=\"red\"} 1.5");
    lacks(m, "green");
    hk_metrics_set(m, LEVEL, 1, 0, -7);
    has(m, "t_level{colour=\"green\"} -0.007");
    hk_metrics_set(m, LEVEL, 0, 0, HK_METRIC_UNKNOWN);
    lacks(m, "t_level{colour=\"red\"}");
    hk_metrics_free(m);
}

static void test_a_histogram_adds_up(void **state)
{
    (void)state;
    struct hk_metrics *m = make();
    static const uint64_t values[] = {0, 5, 6, 1000, 2501, 1000000};
    for (size_t i = 0; i < COUNT(values); i++)
        hk_metrics_observe(m, TIMES, 0, values[i]);
    has(m, "t_seconds_bucket{le=\"0.005\"} 2"); /* bounds are inclusive */
    has(m, "t_seconds_bucket{le=\"1\"} 4");
    has(m, "t_seconds_bucket{le=\"2.5\"} 4");
    has(m, "t_seconds_bucket{le=\"+Inf\"} 6");
    has(m, "t_seconds_sum 1003.512");
    has(m, "t_seconds_count 6");
    hk_metrics_free(m);
}

static void test_labels_cannot_break_a_line(void **state)
{
    (void)state;
    struct hk_metrics *m = make();
    const char *const names[] = {"a\"} 1\nevil 2\n", "back\\slash", "\xff\xfe", "\xe9\xa3\x9b\xe8\x84\x9a",
                                 "\x01"};
    hk_metrics_destinations(m, names, COUNT(names));
    for (size_t i = 0; i < COUNT(names); i++)
        hk_metrics_set(m, DEST_LEVEL, hk_metrics_dest(m, hk_str_of(names[i])), 0, (int64_t)i);
    has(m, "t_dest_level{destination=\"a\\\"} 1\\nevil 2\\n\"} 0");
    has(m, "t_dest_level{destination=\"back\\\\slash\"} 1");
    has(m, "t_dest_level{destination=\"\xef\xbf\xbd\xef\xbf\xbd\"} 2");
    has(m, "t_dest_level{destination=\"\xe9\xa3\x9b\xe8\x84\x9a\"} 3");
    has(m, "t_dest_level{destination=\"\x01\"} 4");
    lacks(m, "\nevil");
    assert_int_equal(hk_metrics_inform(m, INFO, "name", "x\"\n\\"), HK_OK);
    hk_metrics_set(m, INFO, 0, 0, 1);
    has(m, "t_info{name=\"x\\\"\\n\\\\\"} 1");
    hk_metrics_free(m);
}

static void test_what_nobody_configured_is_other(void **state)
{
    (void)state;
    struct hk_metrics *m = make();
    const char *const names[] = {"shop", "other"};
    char long_name[100];
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    hk_metrics_destinations(m, names, COUNT(names));
    lacks(m, "\"other\""); /* before there is any */
    static const char *const strange[] = {"nobody", "", "other", "shop2", "sho"};
    for (size_t i = 0; i < COUNT(strange); i++) {
        assert_int_equal(hk_metrics_dest(m, hk_str_of(strange[i])), HK_METRIC_OTHER);
        assert_int_equal(hk_metrics_find_dest(m, hk_str_of(strange[i])), HK_METRIC_OTHER);
        hk_metrics_add(m, BY_DEST, hk_metrics_dest(m, hk_str_of(strange[i])), 0, 1);
    }
    assert_int_equal(hk_metrics_dest(m, hk_str_of(long_name)), HK_METRIC_OTHER);
    has(m, "t_dest_total{destination=\"other\",colour=\"red\"} 5");
    has(m, "t_dest_total{destination=\"shop\",colour=\"red\"} 0");
    hk_metrics_add(m, BY_DEST, 100000, 77, 1); /* an index that is none counts for the last */
    has(m, "t_dest_total{destination=\"other\",colour=\"green\"} 1");
    hk_metrics_free(m);
}

static size_t count(const char *text, const char *what)
{
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, what)) != NULL; at++)
        n++;
    return n;
}

static void test_the_number_of_series_is_bounded(void **state)
{
    (void)state;
    struct hk_metrics *m = make();
    static char names[1000][16];
    const char *list[1000];
    for (size_t i = 0; i < COUNT(list); i++) {
        (void)snprintf(names[i], sizeof names[i], "d-%zu", i);
        list[i] = names[i];
    }
    hk_metrics_destinations(m, list, COUNT(list));
    for (size_t i = 0; i < COUNT(list); i++)
        hk_metrics_add(m, BY_DEST, hk_metrics_dest(m, hk_str_of(list[i])), 1, 1);
    const char *text = show(m);
    assert_int_equal(count(text, "\nt_dest_total{"), HK_METRIC_DESTS * 2 + 1);
    assert_non_null(strstr(text, "t_dest_total{destination=\"other\",colour=\"green\"} 744\n"));
    assert_int_equal(hk_metrics_dest(m, hk_str_of("d-255")), 255);
    assert_int_equal(hk_metrics_dest(m, hk_str_of("d-256")), HK_METRIC_OTHER);
    hk_metrics_free(m);
}

static void test_destinations_come_and_go(void **state)
{
    (void)state;
    struct hk_metrics *m = make();
    const char *const first[] = {"a", "b"}, *const second[] = {"b", "c"};
    hk_metrics_destinations(m, first, 2);
    hk_metrics_add(m, BY_DEST, hk_metrics_dest(m, hk_str_of("a")), 0, 5);
    hk_metrics_add(m, BY_DEST, hk_metrics_dest(m, hk_str_of("b")), 0, 6);
    hk_metrics_observe(m, DEST_TIMES, hk_metrics_dest(m, hk_str_of("a")), 1);
    hk_metrics_set(m, DEST_LEVEL, hk_metrics_dest(m, hk_str_of("a")), 0, 9);
    size_t slot = hk_metrics_dest(m, hk_str_of("a"));
    hk_metrics_destinations(m, second, 2);
    has(m, "t_dest_total{destination=\"b\",colour=\"red\"} 6"); /* who stays goes on counting */
    has(m, "t_dest_total{destination=\"c\",colour=\"red\"} 0");
    lacks(m, "\"a\"");
    assert_int_not_equal(hk_metrics_dest(m, hk_str_of("c")), slot); /* late writers of a do not count for c */
    hk_metrics_destinations(m, first, 2);
    has(m, "t_dest_total{destination=\"a\",colour=\"red\"} 0");
    has(m, "t_dest_seconds_count{destination=\"a\"} 0");
    lacks(m, "t_dest_level{");
    hk_metrics_free(m);
}

/* A thousand reloads: slots are used again, and none is lost. */
static void test_slots_do_not_run_out(void **state)
{
    (void)state;
    struct hk_metrics *m = make();
    char name[16];
    const char *list[] = {"stays", name};
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(name, sizeof name, "n%d", i);
        hk_metrics_destinations(m, list, 2);
        size_t slot = hk_metrics_dest(m, hk_str_of(name));
        assert_true(slot < HK_METRIC_DESTS);
        assert_int_equal(hk_metrics_get(m, BY_DEST, slot, 0), 0);
        hk_metrics_add(m, BY_DEST, slot, 0, 1);
        hk_metrics_add(m, BY_DEST, hk_metrics_dest(m, hk_str_of("stays")), 0, 1);
    }
    has(m, "t_dest_total{destination=\"stays\",colour=\"red\"} 1000");
    hk_metrics_free(m);
}

struct crowd {
    struct hk_metrics *m;
    atomic_bool stop;
};

static void *add_many(void *arg)
{
    struct crowd *c = arg;
    for (int i = 0; i < 20000; i++) {
        hk_metrics_add(c->m, PLAIN, 0, 0, 1);
        hk_metrics_observe(c->m, TIMES, 0, (uint64_t)i);
    }
    return NULL;
}

static void *look(void *arg)
{
    struct crowd *c = arg;
    struct hk_buf out;
    hk_buf_init(&out, (size_t)1 << 20);
    while (!atomic_load(&c->stop)) {
        hk_buf_reset(&out);
        hk_metrics_write(c->m, &out);
        (void)hk_metrics_find_dest(c->m, hk_str_of("b"));
    }
    hk_buf_fini(&out);
    return NULL;
}

static void test_several_threads_lose_nothing(void **state)
{
    (void)state;
    struct crowd c = {.m = make()};
    pthread_t adders[2], reader;
    const char *const first[] = {"a", "b"}, *const second[] = {"b", "c"};
    assert_int_equal(pthread_create(&reader, NULL, look, &c), 0);
    for (size_t i = 0; i < COUNT(adders); i++)
        assert_int_equal(pthread_create(&adders[i], NULL, add_many, &c), 0);
    for (int i = 0; i < 200; i++)
        hk_metrics_destinations(c.m, i % 2 ? first : second, 2);
    for (size_t i = 0; i < COUNT(adders); i++)
        assert_int_equal(pthread_join(adders[i], NULL), 0);
    atomic_store(&c.stop, true);
    assert_int_equal(pthread_join(reader, NULL), 0);
    has(c.m, "t_plain_total 40000");
    has(c.m, "t_seconds_count 40000");
    hk_metrics_free(c.m);
}

static enum hk_code make_and_write(void)
{
    struct hk_metrics *m = NULL;
    struct hk_buf out;
    enum hk_code rc = hk_metrics_new(defs, N_DEFS, &m, NULL);
    if (rc != HK_OK)
        return rc;
    hk_buf_init(&out, (size_t)1 << 20);
    rc = hk_metrics_inform(m, INFO, "a", "b");
    hk_metrics_set(m, INFO, 0, 0, 1);
    hk_metrics_write(m, &out);
    if (rc == HK_OK)
        rc = hk_buf_status(&out);
    hk_buf_fini(&out);
    hk_metrics_free(m);
    return rc;
}

static void test_out_of_memory_is_reported_and_leaks_nothing(void **state)
{
    (void)state;
    (void)fail_each_allocation(make_and_write, HK_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_counted_is_shown),
        cmocka_unit_test(test_a_gauge_is_shown_once_it_is_known),
        cmocka_unit_test(test_a_histogram_adds_up),
        cmocka_unit_test(test_labels_cannot_break_a_line),
        cmocka_unit_test(test_what_nobody_configured_is_other),
        cmocka_unit_test(test_the_number_of_series_is_bounded),
        cmocka_unit_test(test_destinations_come_and_go),
        cmocka_unit_test(test_slots_do_not_run_out),
        cmocka_unit_test(test_several_threads_lose_nothing),
        cmocka_unit_test(test_out_of_memory_is_reported_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, finish);
}
