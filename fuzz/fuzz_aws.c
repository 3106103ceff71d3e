/* SPDX-License-Identifier: Apache-2.0 */
/* What AWS answers: results of batches of SQS, SNS, EventBridge and Kinesis, errors, temporary keys, a file of credentials. The first byte says
 * how many entries were asked about. */
#include <string.h>

#include "base/mem.h"
#include "fuzz.h"
#include "sink/aws/keys.h"
#include "sink/aws/xml.h"

enum {
    RESULTS_MAX = 10
};

typedef bool read_fn(struct hk_str body, struct hk_aws_result *out, size_t n);

static void look_at_error(const struct hk_aws_error *error)
{
    MUST(memchr(error->code, '\0', sizeof error->code) && memchr(error->words, '\0', sizeof error->words));
}

static void look_at_results(read_fn *read, struct hk_str body, size_t n)
{
    static struct hk_aws_result results[RESULTS_MAX + 1];
    bool maybe = false;
    memset(results, 0x55, sizeof results);
    if (!read(body, results, n))
        return;
    for (size_t i = 0; i < n; i++) {
        const struct hk_aws_result *r = &results[i];
        MUST(r->outcome == HK_AWS_SILENT || r->outcome == HK_AWS_TAKEN || r->outcome == HK_AWS_FAILED);
        MUST(r->outcome != HK_AWS_TAKEN || r->place[0]);
        MUST(memchr(r->place, '\0', sizeof r->place));
        look_at_error(&r->error);
        if (r->outcome == HK_AWS_FAILED)
            MUST(hk_aws_entry_fault(r, &maybe) != HK_FAULT_NONE);
    }
    MUST(*(const unsigned char *)&results[n] == 0x55); /* not one more than was asked for */
}

static void look_at_keys(bool (*read)(struct hk_str, struct hk_aws_keys *, struct hk_aws_error *),
                         struct hk_str body)
{
    struct hk_aws_keys keys;
    struct hk_aws_error error;
    memset(&keys, 0x55, sizeof keys);
    if (read(body, &keys, &error)) {
        MUST(keys.credentials.key_id[0] && keys.credentials.secret[0] && keys.end_ms >= 0);
        MUST(hk_aws_credentials_are_visible(&keys.credentials));
    } else {
        MUST(!keys.credentials.key_id[0] && !keys.credentials.secret[0]); /* not half a key */
    }
    look_at_error(&error);
}

static void look_at_xml(struct hk_str body)
{
    struct hk_str rest = body, inner;
    char cut[8], whole[4096];
    while (hk_aws_xml_next(&rest, "member", &inner)) {
        MUST(inner.ptr > body.ptr && inner.ptr + inner.len <= rest.ptr); /* it goes forward */
        MUST(rest.ptr + rest.len == body.ptr + body.len);
    }
    if (hk_aws_xml_text(body, "Message", whole, sizeof whole)) {
        MUST(hk_aws_xml_text(body, "Message", cut, sizeof cut));
        MUST(strncmp(whole, cut, strlen(cut)) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static read_fn *const readers[] = {hk_aws_batch_read, hk_aws_publish_read, hk_aws_events_read,
                                       hk_aws_records_read};
    size_t n = size ? data[0] % (RESULTS_MAX + 1) : 0;
    char *copy = malloc(size ? size : 1), text[64]; /* so that reading past the end is seen */
    MUST(copy);
    if (size > 1)
        memcpy(copy, data + 1, size - 1);
    struct hk_str body = {copy, size ? size - 1 : 0};
    struct hk_aws_error error;
    struct hk_aws_credentials c;
    for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++)
        look_at_results(readers[i], body, n);
    hk_aws_error_read(body, &error);
    look_at_error(&error);
    look_at_keys(hk_aws_keys_json, body);
    look_at_keys(hk_aws_keys_xml, body);
    look_at_xml(body);
    (void)hk_aws_text_read(body, "Attributes", "Name", text, sizeof text);
    if (hk_aws_credentials_read(body, hk_str_of("default"), &c))
        MUST(c.key_id[0] && c.secret[0] && hk_aws_credentials_are_visible(&c));
    free(copy);
    return 0;
}
