/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures against the specification's example, known vectors and OpenSSL's one-shot function; secrets that are
 * taken and refused. */
#include <stdlib.h>

#include <hikyaku/alloc.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/str.h"
#include "check.h"
#include "sink/http/sign.h"

static void secrets_are_read_strictly(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        size_t len; /* 0 = refused */
    } cases[] = {
        {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", 24},
        {"whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", 32},
        {"whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", 32}, /* padding left off */
        {"whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==", 25},
        {"whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB==", 0}, /* bits behind the end */
        {"whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", 0},      /* 23 bytes */
        {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw=", 0},
        {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS!", 0},
        {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS-", 0},
        {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n", 0},
        {"whsec_ MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS", 0},
        {"whsec_====", 0},
        {"whsec_", 0},
        {"", 0},
        {"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", 0},
        {"WHSEC_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", 0},
        {"whsk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", 0},
        {"whsec_QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQQ==",
         64},
        {"whsec_QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE=", 0},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_secret secret = {.len = 7};
        struct hk_err err = {.code = HK_OK};
        enum hk_code rc = hk_secret_parse(hk_str_of(cases[i].text), &secret, &err);
        NOTE_IF((rc == HK_OK) != (cases[i].len > 0), "case %zu: %s\n", i, err.message);
        assert_int_equal(rc, cases[i].len ? HK_OK : HK_INVALID);
        assert_int_equal(secret.len, cases[i].len ? cases[i].len : 7);
        if (rc != HK_OK && strlen(cases[i].text) > 12)
            assert_null(strstr(err.message, cases[i].text + 6));
    }
}

/* The example of the specification's reference implementations. */
static void the_published_example_comes_out(void **state)
{
    (void)state;
    const char *secrets[] = {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"};
    struct hk_signer *signer;
    struct hk_buf out;
    hk_buf_init(&out, 1024);
    assert_int_equal(hk_signer_new(secrets, 1, &signer, NULL), HK_OK);
    for (int i = 0; i < 2; i++) { /* the key serves again */
        hk_buf_reset(&out);
        assert_int_equal(hk_signer_sign(signer, hk_str_of("msg_p5jXN8AQM9LWM0D4loKWxJek"), 1614265330,
                                        hk_str_of("{\"test\": 2432232314}"), &out),
                         HK_OK);
        assert_string_equal(hk_buf_cstr(&out), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }
    hk_buf_fini(&out);
    hk_signer_free(signer);
}

static void any_body_agrees_with_the_one_shot_function(void **state)
{
    (void)state;
    const char *secrets[] = {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
                             "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"};
    struct hk_signer *signer;
    assert_int_equal(hk_signer_new(secrets, 2, &signer, NULL), HK_OK);
    for (size_t n = 0; n < 3000; n = n * 2 + 1) {
        char text[4096];
        size_t head = (size_t)snprintf(text, sizeof text, "id_%zu.%d.", n, 1700000000);
        for (size_t i = 0; i < n; i++)
            text[head + i] = (char)(i * 31 + n);
        struct hk_buf want, got;
        hk_buf_init(&want, 1024);
        hk_buf_init(&got, 1024);
        for (size_t k = 0; k < 2; k++) {
            struct hk_secret secret;
            unsigned char mac[EVP_MAX_MD_SIZE];
            unsigned len = 0;
            assert_int_equal(hk_secret_parse(hk_str_of(secrets[k]), &secret, NULL), HK_OK);
            assert_non_null(
                HMAC(EVP_sha256(), secret.key, (int)secret.len, (unsigned char *)text, head + n, mac, &len));
            hk_buf_adds(&want, k ? " v1," : "v1,");
            char base64[64];
            EVP_EncodeBlock((unsigned char *)base64, mac, (int)len);
            hk_buf_adds(&want, base64);
        }
        char id[32];
        (void)snprintf(id, sizeof id, "id_%zu", n);
        assert_int_equal(hk_signer_sign(signer, hk_str_of(id), 1700000000,
                                        (struct hk_str){n ? text + head : NULL, n}, &got),
                         HK_OK);
        assert_string_equal(hk_buf_cstr(&got), hk_buf_cstr(&want));
        hk_buf_fini(&want);
        hk_buf_fini(&got);
    }
    hk_signer_free(signer);
}

/* The first key of RFC 8032, 7.1, as a seed and with its public key; the signature is by Python's cryptography. */
static void ed25519_signs_as_others_do(void **state)
{
    (void)state;
    const char *secrets[] = {
        "whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=",
        "whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2DXWpgBgrEKt9VL/tPJZAc6DuFy89qmIyWvAhpo9wdRGg=="};
    const char *broken[] = {
        "whsk_", "whsk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2CdYbGd7/1aYLqESvSS7CzEREnFaXsyaRlwO6wDHK5/YA=="};
    struct hk_signer *signer = NULL;
    struct hk_buf out;
    hk_buf_init(&out, 1024);
    assert_int_equal(hk_signer_new(secrets, COUNT(secrets), &signer, NULL), HK_OK);
    assert_int_equal(hk_signer_sign(signer, hk_str_of("msg_p5jXN8AQM9LWM0D4loKWxJek"), 1614265330,
                                    hk_str_of("{\"test\": 2432232314}"), &out),
                     HK_OK);
    assert_string_equal(
        hk_buf_cstr(&out),
        "v1a,fldxM4gAKugP6nnt1hdz3sgGfZ6d99nzrMFnZOELIxbzEHoVmAb2ADpkJK7zgPePmPsle0zV9jSeGlHFG2NVAw== "
        "v1a,fldxM4gAKugP6nnt1hdz3sgGfZ6d99nzrMFnZOELIxbzEHoVmAb2ADpkJK7zgPePmPsle0zV9jSeGlHFG2NVAw==");
    hk_signer_free(signer);
    hk_buf_fini(&out);
    for (size_t i = 0; i < COUNT(broken); i++) {
        struct hk_err err = {.code = HK_OK};
        signer = NULL;
        assert_int_equal(hk_signer_new(&broken[i], 1, &signer, &err), HK_INVALID);
        assert_null(signer);
        assert_int_equal(hk_secret_check(hk_str_of(broken[i]), NULL), HK_INVALID);
    }
    assert_int_equal(hk_secret_check(hk_str_of(secrets[1]), NULL), HK_OK);
}

static void the_number_of_secrets_is_bounded(void **state)
{
    (void)state;
    const char *secrets[HK_SECRETS_MAX + 1];
    struct hk_signer *signer = NULL;
    for (size_t i = 0; i < COUNT(secrets); i++)
        secrets[i] = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    assert_int_equal(hk_signer_new(secrets, COUNT(secrets), &signer, NULL), HK_TOOBIG);
    assert_null(signer);
    assert_int_equal(hk_signer_new(secrets, HK_SECRETS_MAX, &signer, NULL), HK_OK);
    hk_signer_free(signer);
    hk_signer_free(NULL);
}

struct failing {
    long left; /* allocations that still succeed */
    bool for_ever;
};

static void *fail_resize(void *arg, void *ptr, size_t bytes)
{
    struct failing *f = arg;
    if (f->left-- == 0 || (f->for_ever && f->left < 0))
        return NULL;
    return realloc(ptr, bytes);
}

static void fail_release(void *arg, void *ptr)
{
    (void)arg;
    free(ptr);
}

static void out_of_memory_is_told_and_leaks_nothing(void **state)
{
    (void)state;
    const char *secrets[] = {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"};
    for (int for_ever = 0; for_ever < 2; for_ever++) {
        enum hk_code rc = HK_NOMEM;
        for (long k = 0; rc != HK_OK && k < 100; k++) {
            struct failing f = {k, for_ever};
            struct hk_allocator allocator = {fail_resize, fail_release, &f};
            hk_allocator_set(&allocator);
            struct hk_signer *signer = NULL;
            struct hk_buf out;
            hk_buf_init(&out, 1024);
            rc = hk_signer_new(secrets, 1, &signer, NULL);
            if (rc == HK_OK)
                rc = hk_signer_sign(signer, hk_str_of("id"), 1, hk_str_of("body"), &out);
            assert_true(rc == HK_OK || rc == HK_NOMEM);
            hk_signer_free(signer);
            hk_buf_fini(&out);
            hk_allocator_set(NULL);
        }
        assert_int_equal(rc, HK_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(secrets_are_read_strictly),
        cmocka_unit_test(the_published_example_comes_out),
        cmocka_unit_test(any_body_agrees_with_the_one_shot_function),
        cmocka_unit_test(ed25519_signs_as_others_do),
        cmocka_unit_test(the_number_of_secrets_is_bounded),
        cmocka_unit_test(out_of_memory_is_told_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
