/* SPDX-License-Identifier: Apache-2.0 */
/* What a reload says about two configurations; and that destinations know the kinds of sink that there are. */
#include <stdlib.h>

#include "check.h"
#include "config/diff.h"
#include "config/tables.h"
#include "config_env.h"
#include "sink/kinds.h"

static char told[8192];

static void tell(void *arg, enum hk_diff_kind kind, const char *path, bool needs_restart)
{
    static const char marks[] = {[HK_DIFF_CHANGED] = '~', [HK_DIFF_ADDED] = '+', [HK_DIFF_REMOVED] = '-'};
    (void)arg;
    size_t len = strlen(told);
    (void)snprintf(told + len, sizeof told - len, "%c%s%s\n", marks[kind], path, needs_restart ? " !" : "");
}

static struct hk_config *parse(const char *text)
{
    struct hk_config *config = NULL;
    struct hk_diags diags;
    hk_diags_init(&diags);
    enum hk_code rc = hk_config_parse(text, strlen(text), "f", &fake_env, &diags, &config);
    NOTE_IF(rc != HK_OK, "%s\n%s\n", text, diags.n ? diags.items[0].message : "");
    assert_int_equal(rc, HK_OK);
    hk_diags_fini(&diags);
    return config;
}

static const char *diff(const char *before, const char *after)
{
    struct hk_config *a = parse(before);
    struct hk_config *b = parse(after);
    told[0] = '\0';
    hk_config_diff(a, b, tell, NULL);
    hk_config_free(a);
    hk_config_free(b);
    return told;
}

#define D(name, rest) "destinations: { " name ": { http: { url: https://a.example" rest " } } }\n"

static const struct {
    const char *name, *before, *after, *told;
} cases[] = {
    {"nothing", "", "", ""},
    {"what was the default is given now", "", "relay: { batch: 500, lease: 30s }\ndefault_policy: standard\n",
     ""},
    {"every type of scalar",
     "relay: { batch: 1, lease: 2s, max_payload: 3B, history: all }\nretention: { sent_rows: 4 }\n",
     "relay: { batch: 2, lease: 3s, max_payload: 4B, history: none }\nretention: { sent_rows: unlimited }\n",
     "~relay.max_payload\n~relay.lease\n~relay.batch\n~relay.history\n~retention.sent_rows\n"},
    {"what needs a restart", "store: sqlite:a\nrelay: { name: a }\n",
     "store: { url: postgres://h/b, prefix: p }\nrelay: { name: b, batch: 3 }\n",
     "~store.url !\n~store.prefix !\n~relay.name !\n~relay.batch\n"},
    {"destinations come and go", D("a", ""), D("b", ""), "-destinations.a\n+destinations.b\n"},
    {"their order says nothing",
     "destinations: { a: { \"null\": {} }, b: { \"null\": {} }, c: { \"null\": {} } }\n",
     "destinations: { c: { \"null\": {} }, a: { \"null\": {} }, d: { \"null\": {} }, b: { \"null\": {} } }\n",
     "+destinations.d\n"},
    {"a secret from outside that changed", D("a", ", sign: { secret: \"${OTHER_SECRET}\" }"),
     D("a", ", sign: { secret: \"${BILLING_SECRET}\" }"), "~destinations.a.http.sign.secret\n"},
    {"one form instead of the other", D("a", ", sign: { secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLjSw }"),
     D("a", ", sign: { secrets: [whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLjSw] }"),
     "~destinations.a.http.sign.secret\n~destinations.a.http.sign.secrets\n"},
    {"headers", D("a", ", headers: { A: 1, B: 2, C: 3 }"), D("a", ", headers: { B: 3, D: 4, C: 3 }"),
     "-destinations.a.http.headers.A\n~destinations.a.http.headers.B\n+destinations.a.http.headers.D\n"},
    {"null instead of http", D("a", ""), "destinations: { a: { \"null\": { latency: 1ms } } }\n",
     "~destinations.a.http.url\n~destinations.a.null.latency\n"},
    {"addresses", "destinations: { a: { http: { url: https://a }, allow: [10.0.0.0/8] } }\n",
     "destinations: { a: { http: { url: https://a }, allow: [10.0.0.0/9] } }\n", "~destinations.a.allow\n"},
    {"a list is one value", D("a", "") "routes: [{ event_type: x, destination: a }]\n",
     D("a", "") "routes: [{ event_type: x, destination: a }, { event_type: y, destination: a }]\n",
     "~routes\n"},
    {"an item of a list", D("a", "") "routes: [{ event_type: x, destination: a }]\n",
     D("a", "") "routes: [{ event_type: y, destination: [a] }]\n", "~routes\n"},
    {"policies take only what is given", "policies: { p: {} }\n", "policies: { p: { max_attempts: 30 } }\n",
     "~policies.p.max_attempts\n"},
    {"inside policies",
     "policies: { p: { jitter: full, backoff: { factor: 2 }, classes: { auth: { pause_after: 1 } } } }\n",
     "policies: { p: { jitter: equal, backoff: { factor: 3 }, classes: { auth: { pause_after: 2 } }, "
     "classify: [{ match: 409, class: auth }], breaker: off } }\n",
     "~policies.p.backoff.factor\n~policies.p.jitter\n~policies.p.classes.auth.pause_after\n"
     "~policies.p.classify\n~policies.p.breaker\n"},
};

static int by_line(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The order is that of the tables, which is no concern of these cases. */
static void sort_lines(const char *text, char out[sizeof told])
{
    char copy[sizeof told];
    char *lines[64];
    size_t n = 0;
    (void)snprintf(copy, sizeof copy, "%s", text);
    for (char *p = copy; *p;) {
        assert_true(n < COUNT(lines));
        lines[n++] = p;
        p = strchr(p, '\n');
        assert_non_null(p);
        *p++ = '\0';
    }
    qsort(lines, n, sizeof lines[0], by_line);
    out[0] = '\0';
    for (size_t i = 0, len = 0; i < n; i++)
        len += (size_t)snprintf(out + len, sizeof told - len, "%s\n", lines[i]);
}

static void test_differences_are_told_by_their_path(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char expected[sizeof told];
        char found[sizeof told];
        sort_lines(cases[i].told, expected);
        sort_lines(diff(cases[i].before, cases[i].after), found);
        NOTE_IF(strcmp(found, expected) != 0, "%s\n", cases[i].name);
        assert_string_equal(found, expected);
        assert_string_equal(diff(cases[i].before, cases[i].before), "");
        assert_string_equal(diff(cases[i].after, cases[i].after), "");
    }
}

static void test_a_path_that_is_too_long_is_cut(void **state)
{
    (void)state;
    char name[1025];
    char text[2][2048];
    memset(name, 'h', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    for (size_t i = 0; i < 2; i++)
        (void)snprintf(text[i], sizeof text[i], D("a", ", headers: { %s: %zu }"), name, i);
    assert_int_equal(strlen(diff(text[0], text[1])), 1 + 511 + 1);
    assert_memory_equal(told, "~destinations.a.http.headers.hhh", 32);
}

/* The sections of a destination that exclude each other, enum hk_conf_kind and the registry of sinks are one list. */
static void test_every_kind_of_destination_has_its_sink(void **state)
{
    (void)state;
    size_t n = 0;
    for (size_t i = 0; i < hk_destination_table.n_opts; i++)
        n += (hk_destination_table.opts[i].flags & HK_OPT_CHOICE) != 0;
    assert_int_equal(n, HK_NKINDS);
    for (size_t i = 0; i < n; i++) {
        const struct hk_conf_destination conf = {.kind = (enum hk_conf_kind)i};
        const struct hk_opt *section = &hk_destination_table.opts[HK_DEST_KINDS_OPT + i];
        assert_true(section->flags & HK_OPT_CHOICE);
        assert_string_equal(hk_sink_kind_of(&conf)->name, section->key);
        assert_string_equal(hk_conf_kind_name(conf.kind), section->key);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_differences_are_told_by_their_path),
        cmocka_unit_test(test_a_path_that_is_too_long_is_cut),
        cmocka_unit_test(test_every_kind_of_destination_has_its_sink),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
