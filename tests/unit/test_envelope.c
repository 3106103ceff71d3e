/* SPDX-License-Identifier: Apache-2.0 */
/* Sealed payloads and their keys: what opens, what does not and why, and what is left of a key. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "check.h"
#include "core/encoding.h"
#include "failing.h"
#include "payload/codec.h"
#include "payload/envelope.h"
#include "payload/words.h"

/* ---- keys of a test ---- */

struct vault {
    const char *store;
    const char *ids[HK_KEYS_MAX];
    unsigned char fill[HK_KEYS_MAX]; /* every byte of the key; 0: it cannot be had */
    size_t n;
    unsigned fetched;
    uint64_t now_ms;
};

static enum hk_code fetch(void *arg, size_t i, unsigned char out[HK_KEY_BYTES], struct hk_err *err)
{
    struct vault *v = arg;
    v->fetched++;
    if (!v->fill[i])
        return hk_err_set(err, HK_NOTFOUND, "No such file or directory");
    memset(out, v->fill[i], HK_KEY_BYTES);
    return HK_OK;
}

static uint64_t clock_of(void *arg)
{
    return ((struct vault *)arg)->now_ms;
}

static struct hk_keyring *ring_of(struct vault *v)
{
    struct hk_keyring *keys = NULL;
    const struct hk_keyring_options options = {
        .store = v->store, .ids = v->ids, .n = v->n, .fetch = fetch, .arg = v, .clock_ms = clock_of};
    assert_int_equal(hk_keyring_new(&options, &keys, NULL), HK_OK);
    return keys;
}

static struct vault shop(void)
{
    return (struct vault){.store = "shop", .ids = {"2026-11"}, .fill = {7}, .n = 1, .now_ms = 1};
}

static const struct hk_sealed_place place = {HK_SEALED_PAYLOAD, {"order-42", 8}};

static void seal(struct hk_keyring *keys, const char *plain, struct hk_buf *out)
{
    hk_buf_init(out, (size_t)1 << 24);
    assert_int_equal(hk_envelope_seal(keys, &place, hk_str_of(plain), out, NULL), HK_OK);
}

static enum hk_code try_open(struct hk_keyring *keys, const struct hk_sealed_place *where,
                             struct hk_str sealed, struct hk_err *err)
{
    struct hk_pool mem = {.blocks = NULL};
    struct hk_str out = {"untouched", 9};
    enum hk_code rc = hk_envelope_open(keys, where, sealed, &mem, &out, err);
    if (rc != HK_OK)
        assert_true(hk_str_eq(out, hk_str_of("untouched")));
    hk_pool_fini(&mem);
    return rc;
}

/* ---- opening ---- */

static void what_is_sealed_opens_as_what_it_was(void **state)
{
    (void)state;
    static const char *const plains[] = {"", "x", "{\"name\":\"Grace\"}", "\xc3\xa9\xe6\x97\xa5"};
    struct vault v = shop();
    struct hk_keyring *keys = ring_of(&v);
    for (size_t i = 0; i < sizeof plains / sizeof plains[0]; i++) {
        struct hk_pool mem = {.blocks = NULL};
        struct hk_str out = {"", 0};
        struct hk_buf text;
        seal(keys, plains[i], &text);
        assert_int_equal(hk_envelope_open(keys, &place, hk_buf_str(&text), &mem, &out, NULL), HK_OK);
        assert_true(hk_str_eq(out, hk_str_of(plains[i])));
        assert_true(strncmp(hk_buf_cstr(&text), "hk1.2026-11.", 12) == 0);
        if (plains[i][0] && plains[i][1])
            assert_null(strstr(hk_buf_cstr(&text), plains[i]));
        hk_pool_fini(&mem);
        hk_buf_fini(&text);
    }
    assert_int_equal(v.fetched, 1); /* once for all of them */
    hk_keyring_free(keys);
}

/* A text that another program wrote (docs/sealed-format.md): the format does not change unseen. */
static void a_text_of_another_program_opens(void **state)
{
    (void)state;
    static const char text[] =
        "hk1.2026-11.99fb1714.p9YVrfZHEU9KC9J+IXDrcPNKc9DD2UUlMhBzEw2iBJLocCAKIEKi2eqBTPL"
        "QsCbdf/yKukuzQzVMkknDyiDp/V0Z+Gd1zFtdKRdpLXa45cnkl4frwSkzSg7IytirGSJ7TCCrmPPcZUM"
        "=";
    struct vault v = shop();
    struct hk_keyring *keys = ring_of(&v);
    struct hk_pool mem = {.blocks = NULL};
    struct hk_str out = {"", 0};
    assert_int_equal(hk_envelope_open(keys, &place, hk_str_of(text), &mem, &out, NULL), HK_OK);
    assert_true(hk_str_eq(out, hk_str_of("{\"name\":\"Grace\"}")));
    hk_pool_fini(&mem);
    hk_keyring_free(keys);
}

static void the_same_payload_is_never_sealed_alike(void **state)
{
    (void)state;
    struct vault v = shop();
    struct hk_keyring *keys = ring_of(&v);
    struct hk_buf a, b;
    seal(keys, "again", &a);
    seal(keys, "again", &b);
    assert_false(hk_str_eq(hk_buf_str(&a), hk_buf_str(&b)));
    hk_buf_fini(&a);
    hk_buf_fini(&b);
    hk_keyring_free(keys);
}

static void every_bit_counts(void **state)
{
    (void)state;
    struct vault v = shop();
    struct hk_keyring *keys = ring_of(&v);
    struct hk_buf text;
    seal(keys, "{\"card\":\"4111\"}", &text);
    for (size_t i = 0; i < text.len; i++)
        for (int bit = 0; bit < 8; bit++) {
            text.data[i] = (char)(text.data[i] ^ (1 << bit));
            enum hk_code rc = try_open(keys, &place, hk_buf_str(&text), NULL);
            NOTE_IF(rc == HK_OK, "bit %d of byte %zu\n", bit, i);
            assert_true(rc == HK_INVALID || rc == HK_UNAVAILABLE);
            text.data[i] = (char)(text.data[i] ^ (1 << bit));
        }
    assert_int_equal(try_open(keys, &place, hk_buf_str(&text), NULL), HK_OK);
    hk_buf_fini(&text);
    hk_keyring_free(keys);
}

static void no_part_of_it_is_enough(void **state)
{
    (void)state;
    struct vault v = shop();
    struct hk_keyring *keys = ring_of(&v);
    struct hk_buf text, longer;
    seal(keys, "{\"card\":\"4111\"}", &text);
    for (size_t len = 0; len < text.len; len++)
        assert_int_equal(try_open(keys, &place, (struct hk_str){text.data, len}, NULL), HK_INVALID);
    static const char *const tails[] = {"A", "AAAA", "=", "====", "\n", " ", "."};
    for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++) {
        hk_buf_init(&longer, 4096);
        (void)hk_buf_add(&longer, text.data, text.len);
        (void)hk_buf_adds(&longer, tails[i]);
        assert_int_equal(try_open(keys, &place, hk_buf_str(&longer), NULL), HK_INVALID);
        hk_buf_fini(&longer);
    }
    hk_buf_fini(&text);
    hk_keyring_free(keys);
}

static void it_opens_nowhere_else(void **state)
{
    (void)state;
    static const struct hk_sealed_place elsewhere[] = {
        {HK_SEALED_PAYLOAD, {"order-43", 8}},   {HK_SEALED_PAYLOAD, {"order-4", 7}},
        {HK_SEALED_PAYLOAD, {"order-42\n", 9}}, {HK_SEALED_PAYLOAD, {"", 0}},
        {"outbox.headers", {"order-42", 8}},    {"dead_letters.payload", {"order-42", 8}},
    };
    struct vault v = shop(), other = shop();
    struct hk_keyring *keys = ring_of(&v), *foreign = NULL;
    struct hk_err err;
    struct hk_buf text;
    seal(keys, "moved", &text);
    for (size_t i = 0; i < sizeof elsewhere / sizeof elsewhere[0]; i++)
        assert_int_equal(try_open(keys, &elsewhere[i], hk_buf_str(&text), &err), HK_INVALID);
    assert_non_null(strstr(err.message, "another message"));
    other.store = "staging"; /* the same key in another store: it waits rather than dies */
    foreign = ring_of(&other);
    assert_int_equal(try_open(foreign, &place, hk_buf_str(&text), &err), HK_UNAVAILABLE);
    assert_non_null(strstr(err.message, "seal.store"));
    hk_keyring_free(foreign);
    hk_buf_fini(&text);
    hk_keyring_free(keys);
}

static void texts_that_are_none(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "hk1",
                                        "hk1...",
                                        "hk1.a.00000000.",
                                        "{\"plain\":true}",
                                        "hk2.2026-11.00000000.AAAA",
                                        "hk1.2026 11.00000000.AAAA",
                                        "hk1.2026-11.0000000G.AAAA",
                                        "hk1.2026-11.0000000.AAAA"};
    struct vault v = shop();
    struct hk_keyring *keys = ring_of(&v);
    struct hk_envelope e;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_false(hk_envelope_read(hk_str_of(texts[i]), &e));
        assert_int_equal(try_open(keys, &place, hk_str_of(texts[i]), NULL), HK_INVALID);
    }
    assert_int_equal(v.fetched, 0);
    hk_keyring_free(keys);
}

/* ---- keys ---- */

static void a_key_that_is_missing_is_tried_again_later(void **state)
{
    (void)state;
    struct vault v = shop(), sealer = shop();
    struct hk_keyring *with = ring_of(&sealer), *keys = NULL;
    struct hk_err err;
    struct hk_buf text;
    seal(with, "wait for me", &text);
    v.fill[0] = 0;
    keys = ring_of(&v);
    for (int i = 0; i < 3; i++)
        assert_int_equal(try_open(keys, &place, hk_buf_str(&text), &err), HK_UNAVAILABLE);
    assert_string_equal(err.message, "the key 2026-11 cannot be read: No such file or directory");
    assert_int_equal(v.fetched, 1);
    v.fill[0] = 7; /* somebody has mounted it */
    assert_int_equal(try_open(keys, &place, hk_buf_str(&text), &err), HK_UNAVAILABLE);
    v.now_ms += 5000;
    assert_int_equal(try_open(keys, &place, hk_buf_str(&text), &err), HK_OK);
    hk_buf_fini(&text);
    hk_keyring_free(keys);
    hk_keyring_free(with);
}

static void another_key_of_the_same_id_is_not_taken_for_damage(void **state)
{
    (void)state;
    struct vault v = shop(), wrong = shop(), none = shop();
    struct hk_keyring *keys = ring_of(&v), *others = NULL;
    struct hk_err err;
    struct hk_buf text;
    seal(keys, "mixed up", &text);
    wrong.fill[0] = 8;
    others = ring_of(&wrong);
    assert_int_equal(try_open(others, &place, hk_buf_str(&text), &err), HK_UNAVAILABLE);
    assert_non_null(strstr(err.message, "the key 2026-11 here is not the one that sealed it"));
    hk_keyring_free(others);
    none.ids[0] = "2027-01";
    others = ring_of(&none);
    assert_int_equal(try_open(others, &place, hk_buf_str(&text), &err), HK_UNAVAILABLE);
    assert_string_equal(err.message, "no key 2026-11 is configured (seal.keys)");
    hk_keyring_free(others);
    hk_buf_fini(&text);
    hk_keyring_free(keys);
}

static void a_key_is_changed_without_opening(void **state)
{
    (void)state;
    struct vault old = shop(), both = shop(), new = shop();
    struct hk_keyring *before = ring_of(&old), *keys = NULL, *after = NULL;
    struct hk_envelope e;
    struct hk_buf text, again;
    seal(before, "rotated", &text);
    both.ids[0] = new.ids[0] = "2027-01";
    both.fill[0] = new.fill[0] = 9;
    both.ids[1] = "2026-11";
    both.fill[1] = 7;
    both.n = 2;
    keys = ring_of(&both);
    after = ring_of(&new);
    hk_buf_init(&again, 4096);
    assert_int_equal(hk_envelope_rewrap(keys, &place, hk_buf_str(&text), &again, NULL), HK_OK);
    assert_true(hk_envelope_read(hk_buf_str(&again), &e) && hk_str_eq(e.key_id, hk_str_of("2027-01")));
    assert_int_equal(try_open(after, &place, hk_buf_str(&again), NULL), HK_OK);
    assert_int_equal(try_open(before, &place, hk_buf_str(&again), NULL), HK_UNAVAILABLE);
    const struct hk_sealed_place moved = {HK_SEALED_PAYLOAD, {"order-43", 8}};
    hk_buf_reset(&again);
    assert_int_equal(hk_envelope_rewrap(keys, &moved, hk_buf_str(&text), &again, NULL), HK_INVALID);
    assert_int_equal(again.len, 0);
    hk_buf_fini(&text);
    hk_buf_fini(&again);
    hk_keyring_free(before);
    hk_keyring_free(keys);
    hk_keyring_free(after);
}

static void a_reload_keeps_what_it_cannot_fetch(void **state)
{
    (void)state;
    struct vault v = shop(), gone = shop();
    struct hk_keyring *older = ring_of(&v), *keys = NULL;
    struct hk_buf text;
    seal(older, "reloaded", &text);
    gone.fill[0] = 0;
    keys = ring_of(&gone);
    assert_int_equal(hk_keyring_fetch(keys, NULL), HK_UNAVAILABLE);
    hk_keyring_inherit(keys, older);
    assert_int_equal(hk_keyring_fetch(keys, NULL), HK_OK);
    assert_int_equal(try_open(keys, &place, hk_buf_str(&text), NULL), HK_OK);
    hk_keyring_free(keys);
    gone.store = "staging";
    keys = ring_of(&gone);
    hk_keyring_inherit(keys, older); /* of another store: not ours */
    assert_int_equal(try_open(keys, &place, hk_buf_str(&text), NULL), HK_UNAVAILABLE);
    hk_keyring_free(keys);
    hk_buf_fini(&text);
    hk_keyring_free(older);
}

static void keyrings_that_cannot_be(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "a.b", "a b", "123456789012345678901234567890123", "k\xc3\xa9y"};
    struct hk_keyring *keys = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const struct hk_keyring_options options = {.store = "shop", .ids = &bad[i], .n = 1, .fetch = fetch};
        assert_int_equal(hk_keyring_new(&options, &keys, NULL), HK_INVALID);
    }
    static const char *const twice[] = {"a", "b", "a"};
    struct hk_keyring_options options = {.store = "shop", .ids = twice, .n = 3, .fetch = fetch};
    assert_int_equal(hk_keyring_new(&options, &keys, NULL), HK_INVALID);
    options.n = 0;
    assert_int_equal(hk_keyring_new(&options, &keys, NULL), HK_INVALID);
    options.n = 2;
    options.store = "two\nlines";
    assert_int_equal(hk_keyring_new(&options, &keys, NULL), HK_INVALID);
    assert_null(keys);
    hk_keyring_free(NULL);
}

static void a_message_without_an_id_is_not_sealed(void **state)
{
    (void)state;
    struct vault v = shop();
    struct hk_keyring *keys = ring_of(&v);
    const struct hk_sealed_place nowhere = {HK_SEALED_PAYLOAD, {"", 0}};
    struct hk_buf text;
    hk_buf_init(&text, 4096);
    assert_int_equal(hk_envelope_seal(keys, &nowhere, hk_str_of("x"), &text, NULL), HK_INVALID);
    assert_int_equal(text.len, 0);
    hk_buf_fini(&text);
    hk_keyring_free(keys);
}

/* ---- the codec ---- */

static void only_who_has_keys_opens(void **state)
{
    (void)state;
    struct vault v = shop();
    struct hk_keyring *keys = ring_of(&v);
    struct hk_codec_of of = {.keys = keys, .encoding = hk_str_of("sealed"), .message_id = hk_str_of("m")};
    struct hk_pool mem = {.blocks = NULL};
    struct hk_str sealed, plain = {"?", 1};
    struct hk_err err;
    assert_int_equal(hk_codec_seal(&of, hk_str_of("secret"), &mem, &sealed, &err), HK_OK);
    assert_int_equal(hk_codec_plain(of.encoding, sealed, &mem, &plain), HK_DENIED);
    assert_int_equal(plain.len, 0);
    assert_int_equal(hk_codec_beginning(of.encoding, sealed, &mem, &plain), HK_DENIED);
    assert_int_equal(hk_codec_stored(of.encoding, hk_str_of("x"), &mem, &plain), HK_DENIED);
    assert_int_equal(hk_codec_open(&of, sealed, &mem, &plain, &err), HK_OK);
    assert_true(hk_str_eq(plain, hk_str_of("secret")));
    of.keys = NULL;
    assert_int_equal(hk_codec_open(&of, sealed, &mem, &plain, &err), HK_UNAVAILABLE);
    assert_int_equal(hk_codec_seal(&of, hk_str_of("x"), &mem, &plain, &err), HK_UNAVAILABLE);
    of.encoding = hk_str_of("base64");
    assert_int_equal(hk_codec_open(&of, hk_str_of("eA=="), &mem, &plain, &err), HK_OK);
    assert_true(hk_str_eq(plain, hk_str_of("x")));
    assert_int_equal(hk_codec_open(&of, hk_str_of("?"), &mem, &plain, &err), HK_INVALID);
    of.encoding = hk_str_of("");
    assert_int_equal(hk_codec_seal(&of, hk_str_of("as it is"), &mem, &plain, &err), HK_OK);
    assert_true(hk_str_eq(plain, hk_str_of("as it is")));
    hk_pool_fini(&mem);
    hk_keyring_free(keys);
}

static void a_relay_seals_the_text_that_is_stored(void **state)
{
    (void)state;
    struct vault v = shop();
    struct hk_keyring *keys = ring_of(&v);
    struct hk_codec_of of = {.keys = keys, .encoding = hk_str_of("sealed"), .message_id = hk_str_of("m")};
    struct hk_pool mem = {.blocks = NULL};
    struct hk_str sealed, plain;
    struct hk_err err;
    assert_true(hk_encoding_is_known(hk_str_of("sealed:base64")) &&
                hk_encoding_is_known(hk_str_of("Sealed")));
    assert_true(hk_encoding_is_sealed(hk_str_of("sealed:gzip")) &&
                !hk_encoding_is_known(hk_str_of("sealed:gzip")));
    assert_false(hk_encoding_is_sealed(hk_str_of("sealedly")) || hk_encoding_is_sealed(hk_str_of("seal")));
    assert_int_equal(hk_codec_seal(&of, hk_str_of("eA=="), &mem, &sealed, &err), HK_OK);
    of.encoding = hk_str_of("sealed:base64");
    assert_int_equal(hk_codec_open(&of, sealed, &mem, &plain, &err), HK_OK);
    assert_true(hk_str_eq(plain, hk_str_of("x")));
    assert_int_equal(hk_codec_seal(&of, hk_str_of("xy"), &mem, &sealed, &err), HK_OK);
    assert_int_equal(hk_codec_open(&of, sealed, &mem, &plain, &err), HK_OK);
    assert_true(hk_str_eq(plain, hk_str_of("xy")));
    of.encoding = hk_str_of("sealed"); /* the text itself */
    assert_int_equal(hk_codec_open(&of, sealed, &mem, &plain, &err), HK_OK);
    assert_true(hk_str_eq(plain, hk_str_of("eHk=")));
    hk_pool_fini(&mem);
    hk_keyring_free(keys);
}

#define NEW_ID "m~01a1f3e6-ba69-712b-9981-953189b34079"

static void words_are_shown_to_who_has_keys(void **state)
{
    (void)state;
    struct vault v = shop();
    struct hk_keyring *keys = ring_of(&v);
    struct hk_pool mem = {.blocks = NULL};
    char detail[2000];
    struct hk_str none = {"", 0},
                  body = hk_words_seal(keys, hk_str_of(NEW_ID), hk_str_of("no: \"card\""), &mem);
    struct hk_str headers = hk_words_seal(keys, hk_str_of("m"), hk_str_of("{\"X\":\"card\"}"), &mem);
    assert_true(body.len > 0 && headers.len > 0);
    assert_int_equal(hk_words_seal(keys, hk_str_of("m"), none, &mem).len, 0);
    assert_int_equal(hk_words_seal(NULL, hk_str_of("m"), body, &mem).len, 0); /* rather nothing than open */
    assert_true(hk_str_eq(hk_words_show(keys, hk_str_of("m"), body, &mem), hk_str_of("no: \"card\"")));
    assert_true(hk_str_eq(hk_words_show(NULL, hk_str_of("m"), body, &mem), hk_str_of("(sealed)")));
    struct hk_str elsewhere = hk_words_show(keys, hk_str_of("another"), body, &mem);
    assert_false(hk_str_eq(elsewhere, hk_str_of("no: \"card\"")));
    (void)snprintf(detail, sizeof detail,
                   "{\"status\":422,\"response_headers\":\"%.*s\",\"response_body\":\"%.*s\"}",
                   (int)headers.len, headers.ptr, (int)body.len, body.ptr);
    assert_true(hk_str_eq(
        hk_words_show(keys, hk_str_of("m"), hk_str_of(detail), &mem),
        hk_str_of(
            "{\"status\":422,\"response_headers\":{\"X\":\"card\"},\"response_body\":\"no: \\\"card\\\"\"}")));
    assert_true(hk_str_eq(
        hk_words_show(NULL, hk_str_of("m"), hk_str_of(detail), &mem),
        hk_str_of("{\"status\":422,\"response_headers\":\"(sealed)\",\"response_body\":\"(sealed)\"}")));
    static const char *const open[] = {"", "{\"a\":1}", "hk1.", "{\"a\":\"hk1.x", "plain"};
    for (size_t i = 0; i < sizeof open / sizeof open[0]; i++)
        assert_true(
            hk_str_eq(hk_words_show(keys, hk_str_of("m"), hk_str_of(open[i]), &mem), hk_str_of(open[i])));
    hk_pool_fini(&mem);
    hk_keyring_free(keys);
}

/* ---- memory ---- */

static enum hk_code seal_and_open(void)
{
    struct vault v = shop();
    struct hk_keyring *keys = NULL;
    const struct hk_keyring_options options = {
        .store = v.store, .ids = v.ids, .n = v.n, .fetch = fetch, .arg = &v, .clock_ms = clock_of};
    struct hk_pool mem = {.blocks = NULL};
    struct hk_str plain = {"", 0};
    struct hk_buf text;
    hk_buf_init(&text, 4096);
    enum hk_code rc = hk_keyring_new(&options, &keys, NULL);
    if (rc == HK_OK)
        rc = hk_envelope_seal(keys, &place, hk_str_of("short of memory"), &text, NULL);
    if (rc == HK_OK)
        rc = hk_envelope_open(keys, &place, hk_buf_str(&text), &mem, &plain, NULL);
    assert_true(rc != HK_OK || hk_str_eq(plain, hk_str_of("short of memory")));
    hk_buf_fini(&text);
    hk_pool_fini(&mem);
    hk_keyring_free(keys);
    return rc;
}

static void without_memory_it_says_so(void **state)
{
    (void)state;
    assert_true(fail_each_allocation(seal_and_open, HK_OK) >= 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_sealed_opens_as_what_it_was),
        cmocka_unit_test(a_text_of_another_program_opens),
        cmocka_unit_test(the_same_payload_is_never_sealed_alike),
        cmocka_unit_test(every_bit_counts),
        cmocka_unit_test(no_part_of_it_is_enough),
        cmocka_unit_test(it_opens_nowhere_else),
        cmocka_unit_test(texts_that_are_none),
        cmocka_unit_test(a_key_that_is_missing_is_tried_again_later),
        cmocka_unit_test(another_key_of_the_same_id_is_not_taken_for_damage),
        cmocka_unit_test(a_key_is_changed_without_opening),
        cmocka_unit_test(a_reload_keeps_what_it_cannot_fetch),
        cmocka_unit_test(keyrings_that_cannot_be),
        cmocka_unit_test(a_message_without_an_id_is_not_sealed),
        cmocka_unit_test(only_who_has_keys_opens),
        cmocka_unit_test(a_relay_seals_the_text_that_is_stored),
        cmocka_unit_test(words_are_shown_to_who_has_keys),
        cmocka_unit_test(without_memory_it_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
