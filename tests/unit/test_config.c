/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration as a whole: what is refused and how, what is read and how, and that the documentation says the
 * same as the tables. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "config/schema.h"
#include "config_cases.h"
#include "config_env.h"

/* The example that the project started from, word for word. */
static const char design_example[] =
    "store: postgres://app@db/shop            # or sqlite:outbox.db, or { url: …, schema: …, prefix: … }\n"
    "relay: { name: relay-1, batch: 500, batch_bytes: 4MiB, max_payload: 1MiB, concurrency: 256, lease: 30s, history: "
    "failures }\n"
    "retention: { sent: 24h, sent_rows: 1000000, discarded: 90d, resolved: 90d, cancelled: 90d, attempts: 30d, dead: "
    "never, audit: never }\n"
    "default_policy: standard\n"
    "admin: { listen: 127.0.0.1:8189 }\n"
    "policies:\n"
    "  orders:\n"
    "    preset: standard                     # start from a preset, change what differs\n"
    "    backoff: { kind: exponential, base: 1s, factor: 2, cap: 5m }\n"
    "    jitter: full                         # none, full, equal, decorrelated, { ratio: 0.2 }, { add: 2s }\n"
    "    max_attempts: 10\n"
    "    max_elapsed: 24h\n"
    "    timeout: 30s\n"
    "    classes:\n"
    "      rate_limit: { max_attempts: 4, backoff: { kind: fixed, base: 10s } }\n"
    "      auth: { action: dead, pause_after: 5 }\n"
    "    classify:\n"
    "      - { match: 409, class: permanent } # status, 5xx, timeout, dns, tls, a reason code …\n"
    "destinations:\n"
    "  billing:\n"
    "    http: { url: \"https://billing.example/hooks\", sign: { secret: \"${BILLING_SECRET}\" } }\n"
    "    policy: orders\n"
    "    limits: { rate: 100/s, burst: 200, concurrency: 64 }\n"
    "    breaker: { failures: 5, window: 30s, open: 10s }\n"
    "    order: key                           # none (default) or key\n"
    "    on_dead: block                       # block or skip\n"
    "    allow: [127.0.0.0/8]                 # addresses that the SSRF guard lets through\n"
    "routes:\n"
    "  - { event_type: \"Order*\", destination: billing }   # for rows that name no destination\n"
    "validate:\n"
    "  - { event_type: OrderCreated, required: [orderId] }\n";

static char report_text[65536];

static enum hk_code load(const char *text, const char *file, struct hk_config **out)
{
    struct hk_diags diags;
    struct hk_buf buf;
    hk_diags_init(&diags);
    hk_buf_init(&buf, sizeof report_text - 1);
    enum hk_code rc = hk_config_parse(text, strlen(text), file, &fake_env, &diags, out);
    hk_diags_format(&diags, &buf);
    memcpy(report_text, hk_buf_cstr(&buf), buf.len + 1);
    hk_buf_fini(&buf);
    hk_diags_fini(&diags);
    return rc;
}

static struct hk_config *load_good(const char *text)
{
    struct hk_config *config = NULL;
    enum hk_code rc = load(text, "f", &config);
    NOTE_IF(rc != HK_OK, "%s\n%s", text, report_text);
    assert_int_equal(rc, HK_OK);
    assert_string_equal(report_text, "");
    return config;
}

/* ---- what is refused ---- */

/* Puts "f:" in front of each line. */
static void add_file_names(const char *lines, struct hk_buf *out)
{
    for (const char *end = NULL; *lines; lines = end + 1) {
        end = strchr(lines, '\n');
        assert_non_null(end);
        hk_buf_adds(out, "f:");
        hk_buf_add(out, lines, (size_t)(end - lines) + 1);
    }
}

static void test_bad_configurations_are_reported_word_for_word(void **state)
{
    (void)state;
    assert_true(COUNT(bad_configs) >= 60);
    for (size_t i = 0; i < COUNT(bad_configs); i++) {
        struct hk_config *config = NULL;
        struct hk_buf expected;
        hk_buf_init(&expected, 65535);
        add_file_names(bad_configs[i].report, &expected);
        enum hk_code rc = load(bad_configs[i].text, "f", &config);
        NOTE_IF(strcmp(report_text, hk_buf_cstr(&expected)) != 0, "%s\n", bad_configs[i].name);
        assert_string_equal(report_text, hk_buf_cstr(&expected));
        assert_int_equal(rc, HK_INVALID);
        assert_null(config); /* all or nothing */
        hk_buf_fini(&expected);
    }
}

static void test_more_than_a_hundred_errors_are_counted(void **state)
{
    (void)state;
    struct hk_config *config = NULL;
    struct hk_buf text;
    hk_buf_init(&text, 1 << 16);
    for (int i = 0; i < 150; i++)
        hk_buf_addf(&text, "zz%d: 1\n", i);
    assert_int_equal(load(hk_buf_cstr(&text), "f", &config), HK_INVALID);
    assert_non_null(strstr(report_text, "f:100:1: unknown key \"zz99\"\n… and 50 more\n"));
    hk_buf_fini(&text);
}

static void test_a_file_that_cannot_be_read_says_why(void **state)
{
    (void)state;

    static const struct {
        const char *path, *message;
        enum hk_code rc;
    } rows[] = {{"nowhere", "cannot be read: No such file or directory", HK_NOTFOUND},
                {"binary", "invalid UTF-8", HK_INVALID}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct hk_config *config = NULL;
        struct hk_diags diags;
        hk_diags_init(&diags);
        assert_int_equal(hk_config_load(rows[i].path, &fake_env, &diags, &config), rows[i].rc);
        assert_string_equal(diags.items[0].message, rows[i].message);
        assert_string_equal(diags.items[0].file, rows[i].path);
        assert_null(config);
        hk_diags_fini(&diags);
    }
    struct hk_config *config = NULL;
    struct hk_diags diags;
    hk_diags_init(&diags);
    assert_int_equal(hk_config_load("/", NULL, &diags, &config), HK_IO); /* the real file system: a folder */
    assert_string_equal(diags.items[0].message, "cannot be read: Is a directory");
    hk_diags_fini(&diags);
}

static void test_errors_of_an_earlier_file_do_not_spoil_the_next(void **state)
{
    (void)state;
    struct hk_config *config = NULL;
    struct hk_diags diags;
    hk_diags_init(&diags);
    assert_int_equal(hk_config_parse("x: 1", 4, "f", &fake_env, &diags, &config), HK_INVALID);
    assert_int_equal(hk_config_parse("relay: {}", 9, "g", &fake_env, &diags, &config), HK_OK);
    assert_int_equal(diags.errors, 1);
    hk_config_free(config);
    hk_diags_fini(&diags);
}

/* ---- what is read ---- */

static void test_nothing_given_gives_the_documented_defaults(void **state)
{
    (void)state;
    struct hk_config *c = NULL;
    assert_int_equal(hk_config_defaults(&c), HK_OK);
    assert_string_equal(c->store.url, "sqlite:hikyaku.db");
    assert_string_equal(c->store.schema, "");
    assert_string_equal(c->relay.name, "");
    assert_int_equal(c->relay.batch, 500);
    assert_int_equal(c->relay.batch_bytes, 4 * 1024 * 1024);
    assert_int_equal(c->relay.max_payload_bytes, 1024 * 1024);
    assert_int_equal(c->relay.concurrency, 256);
    assert_int_equal(c->relay.lease_ms, 30000);
    assert_int_equal(c->relay.history, HK_HISTORY_FAILURES);
    assert_int_equal(c->retention.sent_ms, 86400000);
    assert_int_equal(c->retention.sent_rows, 1000000);
    assert_int_equal(c->retention.discarded_ms, UINT64_C(90) * 86400000);
    assert_int_equal(c->retention.attempts_ms, UINT64_C(30) * 86400000);
    assert_true(c->retention.dead_ms == HK_CONFIG_NEVER);
    assert_false(c->retention.purge_open);
    assert_string_equal(c->admin.listen, "127.0.0.1:8189");
    assert_string_equal(hk_policy_name(hk_policies_get(c->policies, NULL)), "standard");
    assert_null(hk_config_destination(c, 0));
    assert_null(hk_config_route(c, 0));
    assert_null(hk_config_validate(c, 0));
    hk_config_free(c);
}

static void check_orders_policy(const struct hk_policy *p)
{
    assert_non_null(p);
    assert_int_equal(hk_policy_backoff(p)->kind, HK_BACKOFF_EXPONENTIAL);
    assert_int_equal(hk_policy_backoff(p)->cap_ms, 300000);
    assert_int_equal(hk_policy_jitter(p)->kind, HK_JITTER_FULL);
    assert_int_equal(hk_policy_limits(p)->max_attempts, 10);
    assert_int_equal(hk_policy_limits(p)->max_elapsed_ms, 86400000);
    const struct hk_class_rule *rate = hk_policy_class(p, HK_CLASS_RATE_LIMIT);
    assert_int_equal(rate->max_attempts, 4);
    assert_true(rate->has_backoff);
    assert_int_equal(rate->backoff.kind, HK_BACKOFF_FIXED);
    assert_int_equal(rate->backoff.base_ms, 10000);
    assert_int_equal(hk_policy_class(p, HK_CLASS_AUTH)->pause_after, 5);
    assert_int_equal(hk_policy_rule(p, 0)->status_lo, 409);
    assert_int_equal(hk_policy_rule(p, 0)->to_class, HK_CLASS_PERMANENT);
}

static void test_the_designs_example_loads(void **state)
{
    (void)state;
    struct hk_config *c = load_good(design_example);
    assert_string_equal(c->store.url, "postgres://app@db/shop");
    assert_string_equal(c->relay.name, "relay-1");
    check_orders_policy(hk_policies_get(c->policies, "orders"));
    const struct hk_conf_destination *d = hk_config_destination(c, 0);
    assert_string_equal(d->name, "billing");
    assert_string_equal(d->http.url, "https://billing.example/hooks");
    assert_string_equal(d->http.sign.secret, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLjSw");
    assert_string_equal(d->policy, "orders");
    assert_true(d->limits.rate_per_s > 99.9 && d->limits.rate_per_s < 100.1);
    assert_int_equal(d->limits.burst, 200);
    assert_int_equal(d->order, HK_ORDER_KEY);
    assert_int_equal(d->on_dead, HK_ON_DEAD_BLOCK);
    assert_int_equal(hk_conf_allow(d, 0)->bits, 8);
    assert_int_equal(hk_conf_allow(d, 0)->addr[0], 127);
    assert_null(hk_conf_allow(d, 1));
    assert_string_equal(hk_config_route(c, 0)->event_type, "Order*");
    assert_string_equal(hk_conf_text(&hk_config_route(c, 0)->destinations, 0), "billing");
    assert_string_equal(hk_conf_text(&hk_config_validate(c, 0)->required, 0), "orderId");
    assert_true(hk_config_validate(c, 0)->json); /* because of required */
    hk_config_free(c);
}

static void test_scalars_are_what_the_option_asks_for(void **state)
{
    (void)state;
    struct hk_config *c = load_good("relay: { name: no, batch: \"7\", lease: '5s' }\n"
                                    "policies: { 123: {}, \"off\": {}, null: {} }\n"
                                    "default_policy: 123\n"
                                    "destinations:\n"
                                    "  yes:\n"
                                    "    http:\n"
                                    "      url: HTTPS://[fd00::1]:8443?a=b\n"
                                    "      headers: { A: no, B: 1.50, C: 'null', D: '' }\n"
                                    "    policy: off\n"
                                    "    allow: [10.1.2.3, 'fd00::/8', 0.0.0.0/0]\n");
    const struct hk_conf_destination *d = hk_config_destination(c, 0);
    assert_string_equal(c->relay.name, "no");
    assert_int_equal(c->relay.batch, 7);
    assert_int_equal(c->relay.lease_ms, 5000);
    assert_string_equal(c->default_policy, "123");
    assert_string_equal(d->name, "yes");
    assert_string_equal(d->policy, "off");
    assert_string_equal(hk_conf_header(&d->http, 0)->value, "no");
    assert_string_equal(hk_conf_header(&d->http, 1)->value, "1.50");
    assert_string_equal(hk_conf_header(&d->http, 2)->value, "null");
    assert_string_equal(hk_conf_header(&d->http, 3)->value, "");
    assert_null(hk_conf_header(&d->http, 4));
    assert_int_equal(hk_conf_allow(d, 0)->bits, 32);
    assert_true(hk_conf_allow(d, 1)->v6);
    assert_int_equal(hk_conf_allow(d, 1)->addr[0], 0xfd);
    assert_int_equal(hk_conf_allow(d, 2)->bits, 0);
    hk_config_free(c);
}

static void test_every_section_is_stored(void **state)
{
    char url[HK_URL_SHOWN_MAX];
    (void)state;
    struct hk_config *c = load_good(
        "store: { url: postgres://h/d, schema: s, prefix: p_ }\n"
        "retention: { sent_rows: unlimited, attempts: 0, audit: 1w, dead: 0s, purge_open: true }\n"
        "destinations:\n"
        "  a:\n"
        "    http:\n"
        "      url: http://127.0.0.1:9/x\n"
        "      method: PUT\n"
        "      sign: { secrets: [\"${BILLING_SECRET}\", whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD] }\n"
        "      auth: { basic: { user: u, password: '' } }\n"
        "      ca_file: ca.pem\n"
        "      cert_file: /etc/c.pem\n"
        "      key_file: k.pem\n"
        "      cloudevents: binary\n"
        "    allow: [127.0.0.1]\n"
        "    limits: { rate: 90/m }\n"
        "    order: key\n"
        "    on_dead: skip\n"
        "  b: { http: { url: https://h.example, auth: { bearer: t } } }\n"
        "  c: { \"null\": { latency: 5ms } }\n"
        "  d: { null: }\n"
        "routes: [{ event_type: '*', destination: [a, b] }]\n"
        "validate: [{ event_type: '*', json: true, max_size: 1KiB }, { event_type: a, max_size: 9 }]\n");
    const struct hk_conf_destination *d = hk_config_destination(c, 0);
    assert_string_equal(c->store.url, "postgres://h/d?schema=s&prefix=p_");
    assert_string_equal(c->store.schema, "s");
    assert_string_equal(c->store.prefix, "p_");
    assert_true(c->retention.sent_rows == HK_CONFIG_NEVER);
    assert_int_equal(c->retention.attempts_ms, 0);
    assert_int_equal(c->retention.audit_ms, 604800000);
    assert_int_equal(c->retention.dead_ms, 0);
    assert_int_equal(d->http.method, HK_METHOD_PUT);
    assert_string_equal(hk_conf_text(&d->http.sign.secrets, 0), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLjSw");
    assert_string_equal(hk_conf_text(&d->http.sign.secrets, 1), "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD");
    assert_null(hk_conf_text(&d->http.sign.secrets, 2));
    assert_string_equal(d->http.auth.basic.user, "u");
    assert_string_equal(d->http.auth.basic.password, "");
    assert_string_equal(d->http.cert_file, "/etc/c.pem");
    assert_int_equal(d->http.cloudevents, HK_CLOUDEVENTS_BINARY);
    assert_int_equal(d->limits.burst, 2); /* a second of 1.5/s, rounded up */
    assert_int_equal(d->on_dead, HK_ON_DEAD_SKIP);
    assert_string_equal(d->policy, "standard");
    assert_string_equal(hk_config_destination(c, 1)->http.auth.bearer, "t");
    assert_int_equal(d->kind, HK_KIND_HTTP);
    assert_string_equal(hk_conf_target(d, url), "http://127.0.0.1:9/x");
    assert_int_equal(hk_config_destination(c, 2)->kind, HK_KIND_NULL);
    assert_int_equal(hk_config_destination(c, 2)->null.latency_ms, 5);
    assert_string_equal(hk_conf_target(hk_config_destination(c, 2), url), "null");
    assert_int_equal(hk_config_destination(c, 3)->kind, HK_KIND_NULL); /* without quotes, without a value */
    assert_int_equal(hk_config_destination(c, 3)->null.latency_ms, 0);
    assert_int_equal(hk_config_route(c, 0)->destinations.n, 2);
    assert_int_equal(hk_config_validate(c, 0)->max_size_bytes, 1024);
    assert_false(hk_config_validate(c, 1)->json);
    hk_config_free(c);
}

/* What is plain to see in the file may be seen in the history; in doubt it may not. */
static void test_headers_are_secret_unless_plainly_not(void **state)
{
    (void)state;

    static const struct {
        const char *line;
        bool secret;
    } cases[] = {
        {"X-Tenant: acme", false},
        {"X-Tenant: ${SECRET}", true},
        {"X-Tenant: pre-${SECRET}", true},
        {"X-Tenant: ${file:secret}", true},
        {"X-Tenant: ${NOPE:-acme}", true},
        {"X-Tenant: $${SECRET}", false},
        {"x-api-KEY: acme", true},
        {"Authorization: x", true},
        {"My-Passphrase: x", true},
        {"Cookie: x", true},
        {"X-A: 1234567890123456789", false},
        {"X-A: 12345678901234567890", true},
        {"User-Agent: acme relay of the billing department", false},
        {"X-A: ''", false},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[256];
        (void)snprintf(text, sizeof text,
                       "destinations:\n"
                       "  d:\n"
                       "    http:\n"
                       "      url: https://h.example\n"
                       "      headers:\n"
                       "        %s\n",
                       cases[i].line);
        struct hk_config *c = load_good(text);
        NOTE_IF(hk_conf_header(&hk_config_destination(c, 0)->http, 0)->secret != cases[i].secret, "%s\n",
                cases[i].line);
        assert_int_equal(hk_conf_header(&hk_config_destination(c, 0)->http, 0)->secret, cases[i].secret);
        hk_config_free(c);
    }
}

static void test_paths_are_below_the_files_folder(void **state)
{
    (void)state;
    struct hk_config *c = NULL;
    const char *text = "destinations: { a: { http: { url: https://h.example, ca_file: x/ca.pem } } }";
    assert_int_equal(load(text, "conf.d/h.yaml", &c), HK_OK);
    assert_string_equal(hk_config_destination(c, 0)->http.ca_file, "conf.d/x/ca.pem");
    hk_config_free(c);
}

static void test_a_destinations_breaker_starts_from_its_policys(void **state)
{
    (void)state;
    struct hk_config *c =
        load_good("policies:\n"
                  "  p: { breaker: { failures: 9, open: 3s } }\n"
                  "  q: { breaker: off }\n"
                  "default_policy: q\n"
                  "destinations:\n"
                  "  a: { http: { url: https://h.example }, policy: p, breaker: { open: 4s } }\n"
                  "  b: { http: { url: https://h.example }, policy: p }\n"
                  "  c: { http: { url: https://h.example }, policy: p, breaker: off }\n"
                  "  d: { http: { url: https://h.example } }\n"
                  "  e: { http: { url: https://h.example }, breaker: { failures: 2 } }\n");

    static const struct {
        bool on;
        uint32_t failures;
        uint64_t open_ms;
    } rows[] = {{true, 9, 4000}, {true, 9, 3000}, {false, 0, 0}, {false, 0, 0}, {true, 2, 10000}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct hk_conf_destination *d = hk_config_destination(c, i);
        assert_int_equal(d->has_breaker, rows[i].on);
        if (!rows[i].on)
            continue;
        assert_int_equal(d->breaker.failures, rows[i].failures);
        assert_int_equal(d->breaker.open_ms, rows[i].open_ms);
    }
    hk_config_free(c);
}

static void test_what_is_doubtful_is_warned_about(void **state)
{
    (void)state;
    struct hk_config *c = NULL;
    const char *text = "destinations:\n"
                       "  a: { http: { url: http://h.example, auth: { bearer: t } } }\n"
                       "  b: { http: { url: http://localhost, auth: { bearer: t } }, on_dead: skip }\n"
                       "  c: { 'null': {}, allow: [10.0.0.0/8] }\n"
                       "  d: { http: { url: 'https://10.1.2.3:8443/x' }, allow: ['fd00::/8', 10.1.2.4] }\n"
                       "  e: { http: { url: 'https://[fd00::1]' } }\n"
                       "  f: { http: { url: 'https://10.1.2.3' }, allow: [10.0.0.0/8] }\n"
                       "  g: { http: { url: 'https://8.8.8.8' } }\n"
                       "routes:\n"
                       "  - { event_type: '*', destination: a }\n"
                       "  - { event_type: x, destination: a }\n";
    assert_int_equal(load(text, "f", &c), HK_OK);
    assert_string_equal(
        report_text,
        "f:2:39: warning: credentials go out unencrypted: the URL is http, not https\n"
        "f:3:21: warning: requests to this loopback address are blocked: list it in \"allow\" of the destination, "
        "for example allow: [127.0.0.0/8]\n"
        "f:3:62: warning: \"on_dead\" has no effect without order: key\n"
        "f:4:20: warning: \"allow\" has no effect with \"null\": it sends nothing\n"
        "f:5:21: warning: requests to this private address are blocked: list it in \"allow\" of the destination, "
        "for example allow: [127.0.0.0/8]\n"
        "f:6:21: warning: requests to this private address are blocked: list it in \"allow\" of the destination, "
        "for example allow: [127.0.0.0/8]\n"
        "f:11:5: warning: this route is never reached: one before it takes every event type\n");
    hk_config_free(c);
}

/* ---- policies ---- */

static const struct hk_policy *only_policy(const char *body, struct hk_config **out)
{
    struct hk_buf text;
    hk_buf_init(&text, 65536);
    hk_buf_addf(&text, "policies: { p: { %s } }\n", body);
    *out = load_good(hk_buf_cstr(&text));
    hk_buf_fini(&text);
    return hk_policies_get((*out)->policies, "p");
}

static void test_backoff_keeps_the_presets_kind_or_starts_anew(void **state)
{
    (void)state;

    static const struct {
        const char *body;
        struct hk_backoff b;
        enum hk_jitter_kind jitter;
    } rows[] = {
        {"backoff: { base: 3s }",
         {HK_BACKOFF_EXPONENTIAL, 3000, 0, 3600000, 2, 0, false, 0, {0}},
         HK_JITTER_FULL},
        {"backoff: { kind: exponential, factor: 1.5, fast_first: true }",
         {HK_BACKOFF_EXPONENTIAL, 1000, 0, 3600000, 1.5, 0, true, 0, {0}},
         HK_JITTER_FULL},
        {"backoff: { kind: fixed, base: 2h }",
         {HK_BACKOFF_FIXED, 7200000, 0, UINT64_C(3155760000000), 0, 0, false, 0, {0}},
         HK_JITTER_FULL},
        {"backoff: { kind: linear }",
         {HK_BACKOFF_LINEAR, 1000, 0, 3600000, 0, 0, false, 0, {0}},
         HK_JITTER_FULL},
        {"backoff: { kind: list, waits: [0, 90s] }",
         {HK_BACKOFF_LIST, 0, 0, UINT64_C(3155760000000), 0, 0, false, 2, {0, 90000}},
         HK_JITTER_FULL},
        {"preset: standard-webhooks, backoff: { waits: [1m] }, jitter: none",
         {HK_BACKOFF_LIST, 0, 0, 97200000, 0, 0, false, 1, {60000}},
         HK_JITTER_NONE},
        {"preset: azure-exponential, backoff: { kind: azure-exponential, cap: 9s }",
         {HK_BACKOFF_AZURE_EXPONENTIAL, 10000, 1000, 9000, 0, 0, false, 0, {0}},
         HK_JITTER_NONE},
        {"preset: standard-webhooks, backoff: { kind: list }, jitter: none", /* the same kind changes nothing */
         {HK_BACKOFF_LIST,
          0,
          0,
          97200000,
          0,
          0,
          false,
          9,
          {5000, 300000, 1800000, 7200000, 18000000, 36000000, 50400000, 72000000, 86400000}},
         HK_JITTER_NONE},
        {"backoff: { kind: cloud-tasks, max_doublings: 3 }",
         {HK_BACKOFF_CLOUD_TASKS, 100, 0, 3600000, 0, 3, false, 0, {0}},
         HK_JITTER_FULL},
        {"backoff: { kind: azure-exponential, delta: 2s, min: 0 }",
         {HK_BACKOFF_AZURE_EXPONENTIAL, 2000, 0, 30000, 0, 0, false, 0, {0}},
         HK_JITTER_NONE},
        {"preset: azure-linear, backoff: { base: 2s, cap: 9s }, jitter: none",
         {HK_BACKOFF_AZURE_LINEAR, 2000, 0, 9000, 0, 0, false, 0, {0}},
         HK_JITTER_NONE},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct hk_config *c = NULL;
        const struct hk_policy *p = only_policy(rows[i].body, &c);
        const struct hk_backoff *b = hk_policy_backoff(p);
        NOTE_IF(b->kind != rows[i].b.kind || b->cap_ms != rows[i].b.cap_ms, "%s\n", rows[i].body);
        assert_int_equal(b->kind, rows[i].b.kind);
        assert_int_equal(b->base_ms, rows[i].b.base_ms);
        assert_int_equal(b->min_ms, rows[i].b.min_ms);
        assert_int_equal(b->cap_ms, rows[i].b.cap_ms);
        assert_true(b->kind != HK_BACKOFF_EXPONENTIAL ||
                    (b->factor >= rows[i].b.factor && b->factor <= rows[i].b.factor));
        assert_int_equal(b->fast_first, rows[i].b.fast_first);
        assert_int_equal(b->n_waits, rows[i].b.n_waits);
        assert_memory_equal(b->waits_ms, rows[i].b.waits_ms, b->n_waits * sizeof b->waits_ms[0]);
        assert_int_equal(hk_policy_jitter(p)->kind, rows[i].jitter);
        hk_config_free(c);
    }
}

static void test_every_kind_and_jitter_of_the_core_has_its_word(void **state)
{
    (void)state;
    char body[128];
    for (int kind = 0; kind < HK_NBACKOFFS; kind++) {
        struct hk_config *c = NULL;
        (void)snprintf(body, sizeof body, "backoff: { kind: %s%s }",
                       hk_backoff_kind_name((enum hk_backoff_kind)kind),
                       kind == HK_BACKOFF_LIST ? ", waits: [1s]" : "");
        assert_int_equal(hk_policy_backoff(only_policy(body, &c))->kind, kind);
        hk_config_free(c);
    }
    for (int kind = 0; kind < HK_NJITTERS; kind++) {
        struct hk_config *c = NULL;
        (void)snprintf(body, sizeof body, "jitter: %s", hk_jitter_kind_name((enum hk_jitter_kind)kind));
        if (kind == HK_JITTER_RATIO || kind == HK_JITTER_ADD)
            (void)snprintf(body, sizeof body, "jitter: { %s }",
                           kind == HK_JITTER_RATIO ? "ratio: 0.5" : "add: 2s");
        assert_int_equal(hk_policy_jitter(only_policy(body, &c))->kind, kind);
        hk_config_free(c);
    }
}

static void test_limits_and_classes_change_only_what_is_given(void **state)
{
    (void)state;
    struct hk_config *c = NULL;
    const struct hk_policy *p = only_policy(
        "max_attempts: unlimited, timeout: never, limit_mode: all, hints: all, hint_cap: 5m, jitter: none, "
        "classes: { auth: { action: retry, charge: false }, permanent: { pause_after: 3 }, "
        "unknown: { max_attempts: unlimited, jitter: { add: 1s }, backoff: { base: 7s } }, "
        "transient: { backoff: { kind: azure-linear } } }",
        &c);
    const struct hk_limits *l = hk_policy_limits(p);
    assert_int_equal(l->max_attempts, 0);
    assert_int_equal(l->max_elapsed_ms, 86400000); /* the preset's */
    assert_int_equal(l->timeout_ms, 0);
    assert_int_equal(l->mode, HK_LIMIT_ALL);
    assert_int_equal(l->hints, HK_HINTS_ALL);
    assert_int_equal(l->hint_cap_ms, 300000);
    const struct hk_class_rule *auth = hk_policy_class(p, HK_CLASS_AUTH);
    assert_true(auth->retry);
    assert_false(auth->charge);
    assert_int_equal(auth->max_attempts, 0); /* not the preset's 1, which would undo the retry */
    assert_int_equal(auth->pause_after, 5);
    assert_int_equal(hk_policy_class(p, HK_CLASS_PERMANENT)->pause_after, 3);
    assert_false(hk_policy_class(p, HK_CLASS_PERMANENT)->retry);
    const struct hk_class_rule *unknown = hk_policy_class(p, HK_CLASS_UNKNOWN);
    assert_int_equal(unknown->max_attempts, 0);
    assert_true(unknown->has_backoff);
    assert_int_equal(unknown->backoff.kind, HK_BACKOFF_EXPONENTIAL);
    assert_int_equal(unknown->backoff.base_ms, 7000);
    assert_true(unknown->has_jitter);
    assert_int_equal(unknown->jitter.add_ms, 1000);
    const struct hk_class_rule *transient = hk_policy_class(p, HK_CLASS_TRANSIENT);
    assert_int_equal(transient->backoff.kind, HK_BACKOFF_AZURE_LINEAR);
    hk_config_free(c);
}

static void test_rules_are_read_in_order_and_before_the_presets(void **state)
{
    (void)state;
    struct hk_config *c = NULL;
    const struct hk_policy *p =
        only_policy("preset: cloud-tasks, classify: [{ match: 5xx, class: permanent, pause: true }, "
                    "{ match: \"500-599\", class: auth }, { match: timeout, class: unknown, reason: SLOW }, "
                    "{ match: HTTP_422, class: transient }, "
                    "{ match: \"*\", header: X-Err, contains: quota, body: full, class: rate_limit }]",
                    &c);
    const struct hk_rule *r = hk_policy_rule(p, 0);
    assert_int_equal(r->status_lo, 500);
    assert_int_equal(r->status_hi, 599);
    assert_true(r->pause);
    assert_int_equal(hk_policy_rule(p, 1)->to_class, HK_CLASS_AUTH);
    assert_int_equal(hk_policy_rule(p, 2)->fault, HK_FAULT_TIMEOUT);
    assert_string_equal(hk_policy_rule(p, 2)->to_reason, "SLOW");
    assert_string_equal(hk_policy_rule(p, 3)->match_reason, "HTTP_422");
    r = hk_policy_rule(p, 4);
    assert_int_equal(r->kind, HK_MATCH_ANY);
    assert_string_equal(r->header, "X-Err");
    assert_string_equal(r->header_contains, "quota");
    assert_string_equal(r->body_contains, "full");
    assert_int_equal(hk_policy_rule(p, 5)->status_lo, 429); /* the preset's first */
    hk_config_free(c);
}

/* ---- memory ---- */

static enum hk_code parse_only(const char *text)
{
    struct hk_config *c = NULL;
    struct hk_diags diags;
    hk_diags_init(&diags);
    enum hk_code rc = hk_config_parse(text, strlen(text), "f", &fake_env, &diags, &c);
    hk_config_free(c);
    hk_diags_fini(&diags);
    return rc;
}

static enum hk_code load_design(void)
{
    return parse_only(design_example);
}

static enum hk_code load_several_errors(void)
{
    return parse_only(
        "relay: { bath: 1, lease: 3 }\npolicies: { p: { jitter: fill }, q: { preset: x }, r: [] }\n"
        "routes: [{ destination: x }]\ndestinations: { d: { http: { url: x }, policy: standart } }\n"
        "default_policy: p\n");
}

static enum hk_code write_schemas(void)
{
    struct hk_buf text;
    hk_buf_init(&text, 1 << 20);
    hk_config_schema_text(&text);
    hk_config_schema_markdown(&text);
    hk_config_schema_json(&text);
    enum hk_code rc = hk_buf_status(&text);
    hk_buf_fini(&text);
    return rc;
}

static void test_out_of_memory_is_reported_and_leaks_nothing(void **state)
{
    (void)state;
    fail_each_allocation(write_schemas, HK_OK);
    fail_each_allocation(load_design, HK_OK);
    fail_each_allocation(load_several_errors, HK_INVALID);
}

/* ---- the reference ---- */

static bool is_source_root(void)
{
    return access("docs/configuration.md", R_OK) == 0 && access("examples/hikyaku.yaml", R_OK) == 0;
}

/* From where the compiler was started (and meson starts tests), else from anywhere inside the tree. */
static bool find_source_root(void)
{
    char path[4096];
    if (is_source_root())
        return true;
    (void)snprintf(path, sizeof path, "%.*s../..", (int)(strlen(__FILE__) - strlen("test_config.c")),
                   __FILE__);
    if (chdir(path) == 0 && is_source_root())
        return true;
    for (int i = 0; i < 8 && chdir("..") == 0; i++) {
        if (is_source_root())
            return true;
    }
    return false;
}

static char *read_text(const char *path)
{
    struct hk_buf text;
    struct hk_err err = {.code = HK_OK};
    hk_buf_init(&text, 1 << 20);
    assert_int_equal(hk_config_env_system()->read_file(NULL, path, &text, &err), HK_OK);
    char *bytes = hk_buf_detach(&text);
    assert_non_null(bytes);
    return bytes;
}

static void test_schema_and_prefix_travel_in_the_url(void **state)
{
    (void)state;

    static const struct {
        const char *store, *url;
    } cases[] = {
        {"{ url: postgres://u@h/d, schema: s, prefix: p_ }", "postgres://u@h/d?schema=s&prefix=p_"},
        {"{ url: \"postgresql://u@h/d?sslmode=require\", prefix: p_ }",
         "postgresql://u@h/d?sslmode=require&prefix=p_"},
        {"{ url: postgres://u@h/d, schema: s }", "postgres://u@h/d?schema=s"},
        {"{ url: postgres://u@h/d }", "postgres://u@h/d"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[200];
        (void)snprintf(text, sizeof text, "store: %s\n", cases[i].store);
        struct hk_config *c = load_good(text);
        assert_string_equal(c->store.url, cases[i].url);
        hk_config_free(c);
    }
}

static void test_the_documentation_is_generated_from_the_tables(void **state)
{
    (void)state;
    assert_true(find_source_root());
    char *docs = read_text("docs/configuration.md");
    struct hk_buf tables;
    hk_buf_init(&tables, 1 << 20);
    hk_config_schema_markdown(&tables);
    assert_int_equal(hk_buf_status(&tables), HK_OK);
    const char *begin = strstr(docs, "<!-- begin: generated by test_config -->\n");
    const char *end = strstr(docs, "<!-- end: generated -->");
    assert_non_null(begin);
    assert_non_null(end);
    begin = strchr(begin, '\n') + 1;
    bool same = (size_t)(end - begin) == tables.len && memcmp(begin, tables.data, tables.len) == 0;
    if (!same && getenv("HK_UPDATE_DOCS")) {
        FILE *file = fopen("docs/configuration.md", "w");
        assert_non_null(file);
        (void)fprintf(file, "%.*s%s%s", (int)(begin - docs), docs, hk_buf_cstr(&tables), end);
        (void)fclose(file);
        same = true;
    }
    NOTE_IF(!same,
            "docs/configuration.md is stale: run this test with HK_UPDATE_DOCS=1 in the environment\n");
    assert_true(same);
    hk_buf_fini(&tables);
    hk_mem_free(docs);
}

static void test_every_option_is_documented(void **state)
{
    (void)state;
    const struct hk_opt_table *table = NULL;
    for (size_t i = 0; (table = hk_schema_table(i)) != NULL; i++) {
        assert_true(table->n_opts <= 32); /* bits of `given` */
        for (size_t k = 0; k < table->n_opts; k++) {
            const struct hk_opt *opt = &table->opts[k];
            NOTE_IF(!opt->help, "%s in %s\n", opt->key, table->name);
            assert_non_null(opt->help);
            assert_non_null(hk_schema_example(opt));
            assert_true((opt->type == HK_OPT_ENUM) == (opt->words != NULL));
            assert_true(opt->type != HK_OPT_U32 || (opt->max > 0 && opt->max <= UINT32_MAX));
        }
    }
}

static void test_the_examples_load(void **state)
{
    (void)state;
    struct hk_config *c = NULL;
    struct hk_diags diags;
    hk_diags_init(&diags);
    assert_true(find_source_root());
    assert_int_equal(hk_config_load("examples/hikyaku.yaml",
                                    &(struct hk_config_env){.read_file = hk_config_env_system()->read_file},
                                    &diags, &c),
                     HK_OK);
    assert_int_equal(diags.warnings, 0);
    assert_int_equal(c->destinations.n, 2);
    hk_config_free(c);
    hk_diags_fini(&diags);
}

static void test_the_schema_as_yaml_is_the_defaults(void **state)
{
    (void)state;
    struct hk_buf text;
    struct hk_config *defaults = NULL;
    hk_buf_init(&text, 1 << 20);
    hk_config_schema_text(&text);
    assert_int_equal(hk_buf_status(&text), HK_OK);
    struct hk_config *c = load_good(hk_buf_cstr(&text));
    assert_int_equal(hk_config_defaults(&defaults), HK_OK);
    assert_string_equal(c->store.url, defaults->store.url);
    assert_string_equal(c->relay.name, defaults->relay.name);
    c->relay.given = c->retention.given = 0;
    c->relay.name = defaults->relay.name;
    assert_memory_equal(&c->retention, &defaults->retention, sizeof c->retention);
    assert_int_equal(c->relay.batch, defaults->relay.batch);
    assert_int_equal(c->relay.max_payload_bytes, defaults->relay.max_payload_bytes);
    assert_string_equal(c->admin.listen, defaults->admin.listen);
    assert_string_equal(c->default_policy, defaults->default_policy);
    assert_int_equal(c->destinations.n + c->routes.n + c->policy_conf.n, 0);
    hk_config_free(c);
    hk_config_free(defaults);
    hk_buf_fini(&text);
}

/* Exit code 77: a module is missing. The example must pass; each spoiled copy must not. */
static const char validate_py[] =
    "import sys, copy, json\n"
    "try:\n"
    "    import jsonschema, yaml\n"
    "    v = jsonschema.Draft202012Validator\n"
    "except (ImportError, AttributeError): sys.exit(77)\n"
    "schema = json.load(open(sys.argv[1]))\n"
    "v.check_schema(schema)\n"
    "good = yaml.safe_load(open(sys.argv[2]))\n"
    "for e in v(schema).iter_errors(good): sys.exit('%s: %s' % (list(e.path), e.message))\n"
    "assert v(schema).is_valid(yaml.safe_load(open(sys.argv[3])))\n"
    "def bad(f):\n"
    "    c = copy.deepcopy(good); f(c); assert not v(schema).is_valid(c), f.__code__.co_firstlineno\n"
    "bad(lambda c: c.update(bacth=1))\n"
    "bad(lambda c: c['relay'].update(batch=0))\n"
    "bad(lambda c: c['relay'].update(lease=30))\n"
    "bad(lambda c: c['relay'].update(history='some'))\n"
    "bad(lambda c: c['policies']['orders'].update(jitter='fill'))\n"
    "bad(lambda c: c['policies']['orders']['backoff'].update(bas='1s'))\n"
    "bad(lambda c: c['policies']['orders']['classify'].append({'match': 409}))\n"
    "bad(lambda c: c['destinations'].update({'a b': {'http': {'url': 'x'}}}))\n"
    "bad(lambda c: c['destinations']['billing'].pop('http'))\n"
    "bad(lambda c: c['destinations']['billing'].update({'null': {}}))\n"
    "bad(lambda c: c['destinations']['billing']['http'].update(auth={}))\n"
    "c = copy.deepcopy(good); c['destinations']['billing'] = {'null': {'latency': '5ms'}}\n"
    "for e in v(schema).iter_errors(c): sys.exit('%s: %s' % (list(e.path), e.message))\n"
    "bad(lambda c: c['routes'].append({'event_type': 'x'}))\n";

static void write_text(const char *path, void (*make)(struct hk_buf *out))
{
    struct hk_buf text;
    hk_buf_init(&text, 1 << 20);
    make(&text);
    assert_int_equal(hk_buf_status(&text), HK_OK);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text.data, 1, text.len, file), text.len);
    assert_int_equal(fclose(file), 0);
    hk_buf_fini(&text);
}

static int run_python(char *const argv[])
{
    int status = 0;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)execvp(argv[0], argv);
        _exit(77);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static void test_the_example_is_valid_under_the_json_schema(void **state)
{
    (void)state;
    char folder[] = "/tmp/hk-schema-XXXXXX";
    char schema[64];
    char text[64];
    char python[] = "python3";
    char dash_c[] = "-c";
    char script[sizeof validate_py];
    char example[] = "examples/hikyaku.yaml";
    memcpy(script, validate_py, sizeof script);
    assert_true(find_source_root());
    assert_non_null(mkdtemp(folder));
    (void)snprintf(schema, sizeof schema, "%s/schema.json", folder);
    (void)snprintf(text, sizeof text, "%s/schema.yaml", folder);
    write_text(schema, hk_config_schema_json);
    write_text(text, hk_config_schema_text);
    int rc = run_python((char *[]){python, dash_c, script, schema, example, text, NULL});
    (void)unlink(schema);
    (void)unlink(text);
    (void)rmdir(folder);
    if (rc == 77) {
        print_message("skipped: python3 with jsonschema (2020-12) and yaml is not here\n");
        skip();
    }
    assert_int_equal(rc, 0);
}

/* ---- warnings about policies ---- */

static void test_a_cap_below_what_it_cuts_is_warned_about(void **state)
{
    (void)state;
    struct hk_config *config = NULL;
    static const char text[] =
        "policies:\n"
        "  a: { backoff: { base: 2h, cap: 1h }, jitter: none }\n"
        "  b: { backoff: { base: 2h } }\n"
        "  c: { backoff: { cap: 500ms } }\n"
        "  d: { backoff: { kind: list, waits: [1s, 2h, 90m], cap: 1h } }\n"
        "  e: { backoff: { kind: azure-linear, delta: 2h, cap: 1h } }\n"
        "  f: { backoff: { kind: azure-linear, delta: 61m, cap: 1h } }\n" /* some draws are below */
        "  g: { preset: azure-exponential, backoff: { min: 1m } }\n"
        "  h: { backoff: { base: 1h, cap: 1h }, classes: { unknown: { backoff: { base: 2h } } } }\n"
        "  i: { preset: azure-exponential, backoff: { delta: 5m } }\n"; /* its first wait is min */
    assert_int_equal(load(text, "f", &config), HK_OK);
    assert_string_equal(report_text,
                        "f:2:25: warning: base 2h is above cap 1h: every wait is 1h\n"
                        "f:3:25: warning: base 2h is above cap 1h: every wait is 1h, before jitter\n"
                        "f:4:24: warning: base 1s is above cap 500ms: every wait is 500ms, before jitter\n"
                        "f:5:38: warning: wait 2h is above cap 1h: it is cut to 1h\n"
                        "f:6:46: warning: delta 2h is above cap 1h: every wait is 1h\n"
                        "f:8:51: warning: min 1m is above cap 30s: every wait is 30s\n"
                        "f:9:79: warning: base 2h is above cap 1h: every wait is 1h, before jitter\n");
    hk_config_free(config);
}

static enum hk_code load_as_the_command_line(const char *text, struct hk_config **out)
{
    struct hk_config_env env = fake_env;
    struct hk_diags diags;
    struct hk_buf buf;
    env.foreign_custom = true;
    hk_diags_init(&diags);
    hk_buf_init(&buf, sizeof report_text - 1);
    enum hk_code rc = hk_config_parse(text, strlen(text), "f", &env, &diags, out);
    hk_diags_format(&diags, &buf);
    memcpy(report_text, hk_buf_cstr(&buf), buf.len + 1);
    hk_buf_fini(&buf);
    hk_diags_fini(&diags);
    return rc;
}

static void test_a_programs_custom_policy_is_a_warning_unless_the_relay_needs_it(void **state)
{
    (void)state;
    struct hk_config *config = NULL;
    assert_int_equal(
        load_as_the_command_line("default_policy: a\n"
                                 "policies: { a: { custom: moon }, b: {} }\n"
                                 "destinations: { d: { http: { url: \"https://x.example\" }, policy: b } }\n",
                                 &config),
        HK_OK);
    assert_string_equal(report_text,
                        "f:2:26: warning: custom \"moon\" is registered by a program; the command line "
                        "cannot plan it\n");
    assert_non_null(hk_policy_ops(hk_policies_get(config->policies, "a"), NULL));
    assert_null(hk_policy_ops(hk_policies_get(config->policies, "b"), NULL));
    hk_config_free(config);
    config = NULL;
    assert_int_equal(load_as_the_command_line("default_policy: a\n"
                                              "policies: { a: { custom: moon } }\n"
                                              "destinations:\n"
                                              "  d: { http: { url: \"https://x.example\" } }\n"
                                              "  e: { http: { url: \"https://x.example\" }, policy: a }\n",
                                              &config),
                     HK_INVALID);
    assert_string_equal(
        report_text,
        "f:2:26: warning: custom \"moon\" is registered by a program; the command line cannot plan it\n"
        "f:4:3: policy \"a\" decides in code of some program, which the relay does not have\n"
        "f:5:52: policy \"a\" decides in code of some program, which the relay does not have\n");
    assert_null(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_configurations_are_reported_word_for_word),
        cmocka_unit_test(test_more_than_a_hundred_errors_are_counted),
        cmocka_unit_test(test_a_file_that_cannot_be_read_says_why),
        cmocka_unit_test(test_errors_of_an_earlier_file_do_not_spoil_the_next),
        cmocka_unit_test(test_nothing_given_gives_the_documented_defaults),
        cmocka_unit_test(test_the_designs_example_loads),
        cmocka_unit_test(test_scalars_are_what_the_option_asks_for),
        cmocka_unit_test(test_every_section_is_stored),
        cmocka_unit_test(test_headers_are_secret_unless_plainly_not),
        cmocka_unit_test(test_paths_are_below_the_files_folder),
        cmocka_unit_test(test_a_destinations_breaker_starts_from_its_policys),
        cmocka_unit_test(test_what_is_doubtful_is_warned_about),
        cmocka_unit_test(test_backoff_keeps_the_presets_kind_or_starts_anew),
        cmocka_unit_test(test_every_kind_and_jitter_of_the_core_has_its_word),
        cmocka_unit_test(test_limits_and_classes_change_only_what_is_given),
        cmocka_unit_test(test_rules_are_read_in_order_and_before_the_presets),
        cmocka_unit_test(test_out_of_memory_is_reported_and_leaks_nothing),
        cmocka_unit_test(test_schema_and_prefix_travel_in_the_url),
        cmocka_unit_test(test_the_documentation_is_generated_from_the_tables),
        cmocka_unit_test(test_every_option_is_documented),
        cmocka_unit_test(test_the_examples_load),
        cmocka_unit_test(test_the_schema_as_yaml_is_the_defaults),
        cmocka_unit_test(test_the_example_is_valid_under_the_json_schema),
        cmocka_unit_test(test_a_cap_below_what_it_cuts_is_warned_about),
        cmocka_unit_test(test_a_programs_custom_policy_is_a_warning_unless_the_relay_needs_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
