/* SPDX-License-Identifier: Apache-2.0 */
/* Server-sent events: whatever stands in one, it stays one; a listener goes on where it was cut off, or learns that it cannot. */
#include <stdio.h>
#include <string.h>

#include "admin/events.h"
#include "base/str.h"
#include "check.h"

static void nothing_in_an_event_ends_it(void **state)
{
    (void)state;
    struct hk_buf out;
    hk_buf_init(&out, 1000);
    hk_event_write(&out, "1-2", HK_EVENT_STATE, hk_str_of("{\"a\":\"x\n\nevent: evil\r\rdata: y\"}"));
    assert_string_equal(hk_buf_cstr(&out),
                        "id: 1-2\nevent: state\ndata: {\"a\":\"x\ndata: \ndata: event: evil\n"
                        "data: \ndata: data: y\"}\n\n");
    hk_buf_reset(&out);
    hk_event_write(&out, NULL, HK_EVENT_END, hk_str_of("{}"));
    assert_string_equal(hk_buf_cstr(&out), "event: end\ndata: {}\n\n");
    hk_buf_fini(&out);
}

struct heard {
    size_t n;
    char last[64];
};

static void hear(void *arg, const struct hk_event_frame *event)
{
    struct heard *h = arg;
    h->n++;
    (void)snprintf(h->last, sizeof h->last, "%.*s", (int)(event->frame.len < 60 ? event->frame.len : 60),
                   event->frame.ptr);
}

static void id_of(const struct hk_event_frame *event, char out[64])
{
    (void)snprintf(out, 64, "%.*s", (int)(strcspn(event->frame.ptr, "\n") - 4), event->frame.ptr + 4);
}

static void a_listener_goes_on_where_it_was(void **state)
{
    (void)state;
    struct hk_event_ring *ring = hk_event_ring_new(7);
    char ids[3][64];
    struct heard heard = {.n = 0};
    for (int i = 0; i < 3; i++)
        id_of(hk_event_ring_add(ring, HK_EVENT_STATE, hk_str_of("shop"), hk_str_of("{}")), ids[i]);
    assert_string_equal(ids[0], "0000000000000007-1");
    assert_true(hk_event_ring_replay(ring, ids[0], hear, &heard));
    assert_int_equal(heard.n, 2);
    assert_memory_equal(heard.last + 4, ids[2], strlen(ids[2]));
    assert_true(hk_event_ring_replay(ring, ids[2], hear, &heard)); /* nothing has happened since */
    assert_int_equal(heard.n, 2);
    static const char *const strange[] = {"",
                                          "7-1",
                                          "0000000000000008-1",
                                          "0000000000000007-4",
                                          "x",
                                          "0000000000000007-",
                                          "0000000000000007-99999999999999999999"};
    for (size_t i = 0; i < sizeof strange / sizeof strange[0]; i++)
        assert_false(hk_event_ring_replay(ring, strange[i], hear, &heard));
    assert_int_equal(heard.n, 2);
    hk_event_ring_free(ring);
}

static void the_ring_is_bounded_in_events_and_bytes(void **state)
{
    (void)state;
    static char big[60001];
    struct hk_event_ring *ring = hk_event_ring_new(1);
    struct heard heard = {.n = 0};
    char first[64], id[64];
    id_of(hk_event_ring_add(ring, HK_EVENT_STATE, hk_str_of(""), hk_str_of("{}")), first);
    for (int i = 0; i < HK_EVENTS_RING + 5; i++)
        id_of(hk_event_ring_add(ring, HK_EVENT_STATE, hk_str_of(""), hk_str_of("{}")), id);
    assert_false(hk_event_ring_replay(ring, first, hear, &heard));
    (void)snprintf(id, sizeof id, "0000000000000001-%d", 6);
    assert_true(hk_event_ring_replay(ring, id, hear, &heard));
    assert_int_equal(heard.n, HK_EVENTS_RING);
    memset(big, 'x', sizeof big - 1);
    for (int i = 0; i < 100; i++)
        assert_non_null(hk_event_ring_add(ring, HK_EVENT_STATE, hk_str_of("shop"), hk_str_of(big)));
    heard.n = 0;
    (void)snprintf(id, sizeof id, "0000000000000001-%d", HK_EVENTS_RING + 6 + 90);
    assert_true(hk_event_ring_replay(ring, id, hear, &heard));
    assert_int_equal(heard.n, 10);
    (void)snprintf(id, sizeof id, "0000000000000001-%d", HK_EVENTS_RING + 6 + 50);
    assert_false(hk_event_ring_replay(ring, id, hear, &heard)); /* 50 of them are more than a megabyte */
    hk_event_ring_free(ring);
}

static void filters_choose_by_type_and_destination(void **state)
{
    (void)state;
    unsigned types = 0;
    const struct hk_event_frame shop = {HK_EVENT_STATE, hk_str_of("shop"), hk_str_of("")},
                                none = {HK_EVENT_REDRIVE, hk_str_of(""), hk_str_of("")},
                                end = {HK_EVENT_END, hk_str_of(""), hk_str_of("")};
    assert_true(hk_event_types(NULL, &types));
    assert_true(hk_event_fits(&shop, types, NULL) && hk_event_fits(&shop, types, "shop"));
    assert_false(hk_event_fits(&shop, types, "other"));
    assert_true(hk_event_fits(&none, types, "other"));
    assert_true(hk_event_types("redrive, heartbeat", &types));
    assert_false(hk_event_fits(&shop, types, NULL));
    assert_true(hk_event_fits(&none, types, NULL) && hk_event_fits(&end, types, NULL));
    static const char *const wrong[] = {"", "open", "state,", "State", "state alert", ",state"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(hk_event_types(wrong[i], &types));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_in_an_event_ends_it),
        cmocka_unit_test(a_listener_goes_on_where_it_was),
        cmocka_unit_test(the_ring_is_bounded_in_events_and_bytes),
        cmocka_unit_test(filters_choose_by_type_and_destination),
    };
    return cmocka_run_group_tests_name("events", tests, NULL, NULL);
}
