/* SPDX-License-Identifier: Apache-2.0 */
/* What the relay says of clocks that jump: one line for each jump, with by how much, and none for what is no jump. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "observe/log.h"
#include "relay/clock.h"

#define DAY_MS   INT64_C(86400000)
#define NOON_MS  INT64_C(1794916800000) /* 2026-11-17T12:00:00Z */
#define START_MS INT64_C(5000)          /* by the steady clock */

static int ends[2];
static struct hk_log out;
static struct hk_clock_watch watch;
static char said[16384];

static int setup(void **state)
{
    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    hk_log_init(&out, ends[1], HK_LOG_INFO);
    watch = (struct hk_clock_watch){.known = false};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    hk_log_fini(&out);
    close(ends[0]);
    close(ends[1]);
    return 0;
}

/* The steady clock says `at_ms`, the watched one is off by `off_ms`: what is said. */
static const char *see(enum hk_clock_whose whose, int64_t at_ms, int64_t off_ms, uint32_t late_ms)
{
    hk_clock_watch(&watch, &out, whose, NOON_MS + at_ms + off_ms, START_MS + at_ms, late_ms);
    ssize_t n = read(ends[0], said, sizeof said - 1);
    said[n > 0 ? n : 0] = '\0';
    return said;
}

#define HOST HK_CLOCK_OF_STORE_HOST

static void a_jump_is_said_once_with_by_how_much(void **state)
{
    (void)state;
    assert_string_equal(see(HOST, 0, 0, 0), ""); /* nothing to compare it with yet */
    assert_string_equal(see(HOST, 1000, 0, 0), "");
    const char *line = see(HOST, 2000, DAY_MS, 0);
    assert_non_null(
        strstr(line, "level=warn msg=\"the host's clock jumped ahead\" by=1d now=2026-11-18T12:00:02"));
    assert_non_null(strstr(line, "'hikyaku clock reset'"));
    assert_string_equal(see(HOST, 3000, DAY_MS, 0), "");
    assert_non_null(
        strstr(see(HOST, 4000, 0, 0), "msg=\"the host's clock jumped back\" by=1d now=2026-11-17T12:00:04"));
    assert_string_equal(see(HOST, 5000, 0, 0), "");
}

static void small_steps_slow_corrections_and_long_stops_are_no_jumps(void **state)
{
    (void)state;
    int64_t off_ms = 0;
    (void)see(HOST, 0, 0, 0);
    assert_string_equal(see(HOST, 1000, 2000, 0), "");
    assert_string_equal(see(HOST, 2000, 0, 0), "");
    for (int64_t s = 3; s < 1000; s++) /* an hour is made good in a quarter of one */
        assert_string_equal(see(HOST, s * 1000, off_ms += 2000, 0), "");
    assert_string_equal(see(HOST, 10 * DAY_MS, off_ms, 0), ""); /* both clocks went on */
    assert_non_null(strstr(see(HOST, 10 * DAY_MS + 1, off_ms - 2001, 0), "jumped back"));
}

static void a_time_that_is_known_only_roughly_is_judged_so(void **state)
{
    (void)state;
    (void)see(HK_CLOCK_OF_SERVER, 0, 0, 0);
    assert_string_equal(see(HK_CLOCK_OF_SERVER, 5000, -7000, 5000), "");
    assert_string_equal(see(HK_CLOCK_OF_SERVER, 6000, 0, 0), "");
    const char *line = see(HK_CLOCK_OF_SERVER, 7000, -2001, 0);
    assert_non_null(strstr(line, "msg=\"the database server's clock jumped back\" by=2.001s"));
    assert_non_null(strstr(line, "stop the relays and run 'hikyaku clock reset'"));
}

static void whose_clock_it_is_decides_what_it_means(void **state)
{
    (void)state;
    (void)see(HK_CLOCK_OF_HOST, 0, 0, 0);
    const char *line = see(HK_CLOCK_OF_HOST, 1000, 3600000, 0);
    assert_non_null(strstr(line, "msg=\"the host's clock jumped ahead\" by=1h"));
    assert_non_null(strstr(line, "signatures carry this host's time"));
    assert_null(strstr(line, "clock reset"));
}

static void being_behind_the_stores_time_is_said_when_it_begins_and_ends(void **state)
{
    (void)state;
    assert_false(hk_clock_log(&out, false, 2000));
    assert_int_equal(read(ends[0], said, sizeof said), -1);
    assert_true(hk_clock_log(&out, false, 2001));
    ssize_t n = read(ends[0], said, sizeof said - 1);
    said[n > 0 ? n : 0] = '\0';
    assert_non_null(strstr(said, "behind_ms=2001"));
    assert_true(hk_clock_log(&out, true, 1));
    assert_int_equal(read(ends[0], said, sizeof said), -1);
    assert_false(hk_clock_log(&out, true, 0));
    assert_true(read(ends[0], said, sizeof said) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_jump_is_said_once_with_by_how_much, setup, teardown),
        cmocka_unit_test_setup_teardown(small_steps_slow_corrections_and_long_stops_are_no_jumps, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_time_that_is_known_only_roughly_is_judged_so, setup, teardown),
        cmocka_unit_test_setup_teardown(whose_clock_it_is_decides_what_it_means, setup, teardown),
        cmocka_unit_test_setup_teardown(being_behind_the_stores_time_is_said_when_it_begins_and_ends, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
