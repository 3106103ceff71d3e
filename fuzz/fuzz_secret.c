/* SPDX-License-Identifier: Apache-2.0 */
/* Signing secrets: what is taken is canonical base64 of the right length, an error never shows it, and a signature has
 * its form whatever the body. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "fuzz.h"
#include "sink/http/sign.h"

static void check_taken(struct hk_str s, const struct hk_secret *secret)
{
    struct hk_buf out;
    hk_buf_init(&out, 256);
    MUST(secret->len >= HK_SECRET_MIN && secret->len <= HK_SECRET_MAX);
    MUST(hk_buf_add_base64(&out, secret->key, secret->len) == HK_OK);
    MUST(s.len > 6 && out.len >= s.len - 6); /* ours has all its padding */
    MUST(memcmp(out.data, s.ptr + 6, s.len - 6) == 0);
    for (size_t i = s.len - 6; i < out.len; i++)
        MUST(out.data[i] == '=');
    hk_buf_fini(&out);
}

static void check_signature(const char *secret, struct hk_str body)
{
    const char *const secrets[] = {secret, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"};
    struct hk_signer *signer = NULL;
    struct hk_buf out;
    hk_buf_init(&out, 256);
    MUST(hk_signer_new(secrets, 2, &signer, NULL) == HK_OK);
    MUST(hk_signer_sign(signer, hk_str_of("id"), 1, body, &out) == HK_OK);
    MUST(out.len == 2 * 47 + 1 && memcmp(out.data, "v1,", 3) == 0 && memcmp(out.data + 47, " v1,", 4) == 0);
    hk_buf_fini(&out);
    hk_signer_free(signer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hk_str s = {(const char *)data, size};
    struct hk_secret secret = {.len = 1000};
    struct hk_err err = {0};
    enum hk_code rc = hk_secret_parse(s, &secret, &err);
    MUST(rc == HK_OK || rc == HK_INVALID);
    if (rc != HK_OK) {
        MUST(secret.len == 1000 && err.message[0]);
        char part[13];
        if (size >= 18 && hk_str_copy(part, sizeof part, (struct hk_str){s.ptr + 6, 12}))
            MUST(
                !strstr(err.message, part) ||
                strstr(
                    "a signing secret must be whsec_ and base64 of 24 to 64 bytes; this one has begin with (not shown here)",
                    part));
        return 0;
    }
    check_taken(s, &secret);
    char text[128];
    MUST(hk_str_copy(text, sizeof text, s));
    check_signature(text, s);
    return 0;
}
