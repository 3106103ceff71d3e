/* SPDX-License-Identifier: Apache-2.0 */
/* What a destination may ask of its requests: options that cannot go together, requests that are made of one message in each way,
 * and memory that ends anywhere in between. Nothing is sent. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "check.h"
#include "failing.h"
#include "sink/http/body.h"

static const char *const direct[] = {".internal"};
static const struct hk_proxy egress = {.name = "egress",
                                       .url = "http://127.0.0.1:1",
                                       .user = "u",
                                       .password = "p",
                                       .direct = direct,
                                       .n_direct = 1};
static const struct hk_http_oauth oauth = {
    .token_url = "http://127.0.0.1:1/token", .client_id = "relay", .client_secret = "s3cret", .scope = "a b"};
static const char *const pins[] = {"sha256//47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="};
static const char *const secrets[] = {"whsk_nWGxne/9WmC6hErSEMMu4R8QqUaZvYlTMu/s8wi6H2A="};

static struct hk_http_options everything(void)
{
    return (struct hk_http_options){.name = "shop",
                                    .url = "https://a.example/{event_type}?k={message_key}&d={destination}",
                                    .secrets = secrets,
                                    .n_secrets = 1,
                                    .oauth = &oauth,
                                    .cloudevents = true,
                                    .structured = true,
                                    .gzip = true,
                                    .pins = pins,
                                    .n_pins = 1,
                                    .proxy = &egress};
}

static enum hk_code open_with_everything(void)
{
    const struct hk_http_options options = everything();
    struct hk_loop *loop = NULL;
    struct hk_sink *sink = NULL;
    enum hk_code rc = hk_loop_new(&loop, NULL);
    if (rc != HK_OK)
        return rc;
    rc = hk_http_open(loop, &options, &sink, NULL);
    if (rc == HK_OK)
        sink->ops->close(sink);
    hk_loop_free(loop);
    return rc;
}

/* libcurl and the loop can do without some of what they ask for: then all is well, too. */
static void opening_with_everything_survives_any_lack_of_memory(void **state)
{
    (void)state;
    size_t refused = 0;
    for (int for_ever = 0; for_ever < 2; for_ever++) {
        struct failing f = {.failed = true};
        for (size_t k = 0; f.failed; k++) {
            f = (struct failing){.fail_at = k, .for_ever = for_ever};
            struct hk_allocator allocator = {failing_resize, failing_release, &f};
            hk_allocator_set(&allocator);
            enum hk_code rc = open_with_everything();
            hk_allocator_set(NULL);
            assert_int_equal(f.live, 0);
            assert_true(rc == HK_OK || (rc == HK_NOMEM && f.failed));
            refused += rc == HK_NOMEM;
        }
    }
    assert_true(refused > 40);
}

static void what_cannot_go_together_is_refused(void **state)
{
    (void)state;
    const struct hk_http_oauth bad_url = {.token_url = "ftp://x", .client_id = "a", .client_secret = "b"};

    const struct {
        struct hk_http_options options;
        const char *says;
    } cases[] = {
        {{.url = "http://a.example", .bearer = "x", .oauth = &oauth},
         "give a user and a password, a bearer token, or oauth2"},
        {{.url = "http://a.example", .oauth = &bad_url}, "the url must be http:// or https://"},
        {{.url = "http://b\xc3\xbc"
                 "cher.example",
          .proxy = &egress},
         "behind a proxy the url's host must be"},
        {{.url = "http://a.example", .secrets = (const char *const[]){"whsk_AAAA"}, .n_secrets = 1},
         "whsk_ and base64"},
    };
    struct hk_loop *loop = NULL;
    assert_int_equal(hk_loop_new(&loop, NULL), HK_OK);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_sink *sink = NULL;
        struct hk_err err = {.code = HK_OK};
        assert_int_equal(hk_http_open(loop, &cases[i].options, &sink, &err), HK_INVALID);
        NOTE_IF(!strstr(err.message, cases[i].says), "%s\n", err.message);
        assert_non_null(strstr(err.message, cases[i].says));
        assert_null(sink);
    }
    hk_loop_free(loop);
}

/* ---- requests ---- */

static struct hk_message order(struct hk_str payload)
{
    return (struct hk_message){.message_id = hk_str_of("m1"),
                               .destination = hk_str_of("shop"),
                               .event_type = hk_str_of("Order/Created"),
                               .key = hk_str_of("k 1"),
                               .correlation_id = hk_str_of("c1"),
                               .payload = payload};
}

static struct hk_request request; /* too large for the stack */

static enum hk_code build_everything(void)
{
    char text[4000];
    struct hk_http_options options = everything();
    struct hk_request_base base;
    options.oauth = NULL;
    (void)snprintf(text, sizeof text, "{\"t\":\"%03900d\"}", 7);
    const struct hk_message msg = order(hk_str_of(text));
    enum hk_code rc = hk_request_base_init(&base, &options, hk_str_of(""), NULL);
    if (rc != HK_OK)
        return rc;
    hk_request_init(&request);
    rc = hk_request_build(&request, &base, &msg, 1, 1614265330000, NULL);
    if (rc == HK_OK) {
        assert_string_equal(hk_buf_cstr(&request.url), "https://a.example/Order%2FCreated?k=k%201&d=shop");
        assert_true(request.body.len < msg.payload.len);
        assert_true(hk_request_has(&request, hk_str_of("content-encoding")));
        const struct hk_request_mark mark = hk_request_mark(&request);
        rc = hk_request_authorize(&request, &mark, "first", NULL);
        if (rc == HK_OK)
            rc = hk_request_authorize(&request, &mark, "second", NULL);
    }
    if (rc == HK_OK) {
        assert_int_equal(request.n, hk_request_mark(&request).n);
        assert_true(hk_str_eq(hk_request_value(&request, request.n - 1), hk_str_of("Bearer second")));
        assert_true(request.lines[request.n - 1].secret);
        assert_null(strstr(hk_buf_cstr(&request.text), "first"));
    }
    hk_request_fini(&request);
    hk_request_base_fini(&base);
    return rc;
}

static void a_request_of_everything_survives_any_lack_of_memory(void **state)
{
    (void)state;
    assert_true(fail_each_allocation(build_everything, HK_OK) > 5);
}

static void an_event_holds_the_payload_as_it_is(void **state)
{
    (void)state;

    static const struct {
        const char *type, *payload, *end; /* end NULL: refused */
    } cases[] = {
        {"", "{\"n\":1e400, \"n\":2}",
         ",\"datacontenttype\":\"application/json\",\"data\":{\"n\":1e400, \"n\":2}}"},
        {"application/JSON ; charset=utf-8", "[1]", "\"data\":[1]}"},
        {"application/vnd.x+json", "null", "\"data\":null}"},
        {"text/plain", "hi", "\"datacontenttype\":\"text/plain\",\"data_base64\":\"aGk=\"}"},
        {"application/jsonlines", "{}", "\"data_base64\":\"e30=\"}"},
        {"", "", "\"datacontenttype\":\"application/json\"}"},
        {"", "{\"a\":1}}", NULL},
        {"", "{\"a\":\"\xff\"}", NULL},
        {"", "1,\"specversion\":\"9\"", NULL},
    };
    struct hk_buf out;
    hk_buf_init(&out, 4096);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_message msg = order(hk_str_of(cases[i].payload));
        msg.content_type = hk_str_of(cases[i].type);
        enum hk_code rc = hk_body_event("/shop", &msg, &out, NULL);
        assert_int_equal(rc, cases[i].end ? HK_OK : HK_INVALID);
        if (!cases[i].end)
            continue;
        const char *text = hk_buf_cstr(&out), *end = cases[i].end;
        NOTE_IF(strcmp(text + strlen(text) - strlen(end), end) != 0, "%s\n", text);
        assert_string_equal(text + strlen(text) - strlen(end), end);
        assert_int_equal(strncmp(text, "{\"specversion\":\"1.0\",\"id\":\"m1\",\"source\":\"/shop\",", 46),
                         0);
    }
    hk_buf_fini(&out);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(opening_with_everything_survives_any_lack_of_memory),
        cmocka_unit_test(what_cannot_go_together_is_refused),
        cmocka_unit_test(a_request_of_everything_survives_any_lack_of_memory),
        cmocka_unit_test(an_event_holds_the_payload_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
