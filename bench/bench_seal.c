/* SPDX-License-Identifier: Apache-2.0 */
/* What sealing a payload costs, and opening it, and sealing it anew with another key: microseconds of CPU a message, by size. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/str.h"
#include "payload/codec.h"

enum {
    ROUNDS = 20000,
    LARGEST = 1 << 20
};

static int64_t now_us(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static enum hk_code fetch(void *arg, size_t i, unsigned char out[HK_KEY_BYTES], struct hk_err *err)
{
    (void)err;
    memset(out, (int)(*(const size_t *)arg - i), HK_KEY_BYTES); /* the oldest is the same in every ring */
    return HK_OK;
}

static struct hk_keyring *ring(const char *const *ids, size_t *n)
{
    const struct hk_keyring_options options = {
        .store = "bench", .ids = ids, .n = *n, .fetch = fetch, .arg = n};
    struct hk_keyring *keys = NULL;
    if (hk_keyring_new(&options, &keys, NULL) != HK_OK)
        exit(1);
    return keys;
}

typedef enum hk_code step_fn(const struct hk_codec_of *of, struct hk_str text, struct hk_pool *mem,
                             struct hk_str *out, struct hk_err *err);

static double each_us(step_fn *step, struct hk_keyring *keys, struct hk_str text, int rounds)
{
    const struct hk_codec_of of = {
        .keys = keys, .encoding = hk_str_of("sealed"), .message_id = hk_str_of("order-42")};
    struct hk_pool mem = {.blocks = NULL};
    struct hk_err err;
    struct hk_str out;
    int64_t began = now_us();
    for (int i = 0; i < rounds; i++) {
        if (step(&of, text, &mem, &out, &err) != HK_OK)
            exit(1);
        hk_pool_reset(&mem);
    }
    double took = (double)(now_us() - began) / rounds;
    hk_pool_fini(&mem);
    return took;
}

int main(void)
{
    static const char *const older[] = {"k1"}, *const both[] = {"k2", "k1"};
    size_t one = 1, two = 2;
    static const size_t sizes[] = {100, 1000, 10000, 100000, LARGEST};
    struct hk_keyring *keys = ring(older, &one), *next = ring(both, &two);
    char *payload = malloc(LARGEST);
    if (!payload)
        return 1;
    memset(payload, 'x', LARGEST);
    printf("%10s %12s %12s %12s\n", "bytes", "seal us", "open us", "rewrap us");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct hk_str plain = {payload, sizes[i]}, sealed;
        struct hk_pool mem = {.blocks = NULL};
        struct hk_err err;
        const struct hk_codec_of of = {
            .keys = keys, .encoding = hk_str_of("sealed"), .message_id = hk_str_of("order-42")};
        int rounds = (int)(ROUNDS / (1 + sizes[i] / 1000));
        if (hk_codec_seal(&of, plain, &mem, &sealed, &err) != HK_OK)
            return 1;
        printf("%10zu %12.1f %12.1f %12.1f\n", sizes[i], each_us(hk_codec_seal, keys, plain, rounds),
               each_us(hk_codec_open, keys, sealed, rounds), each_us(hk_codec_rewrap, next, sealed, rounds));
        hk_pool_fini(&mem);
    }
    hk_keyring_free(keys);
    hk_keyring_free(next);
    free(payload);
    return 0;
}
