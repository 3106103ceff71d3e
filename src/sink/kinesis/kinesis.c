/* SPDX-License-Identifier: Apache-2.0 */
/* Kinesis Data Streams, by its JSON protocol. Data is bytes, in base64. Records with the same partition key are in one shard, in the order in
 * which Kinesis took them. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/utf8.h"
#include "sink/aws/entry.h"
#include "sink/aws/sigv4.h"
#include "sink/kinesis/kinesis.h"

#define BATCH_BYTES       ((size_t)4 * 1024 * 1024) /* Kinesis takes 10 MiB, older ones 5 */
#define PARTITION_KEY_MAX 256                       /* characters */

/* ---- records ---- */

/* As it is, or its hash if it is too long. */
static struct hk_str partition_key(const struct hk_message *msg, char room[HK_SHA256_HEX_MAX])
{
    struct hk_str key = hk_aws_key_of(msg);
    if (key.len <= PARTITION_KEY_MAX && hk_utf8_is_text(key))
        return key;
    if (!hk_sha256_hex(key, room))
        room[0] = '\0'; /* Kinesis refuses it */
    return hk_str_of(room);
}

static enum hk_code check_entry(const struct hk_aws_sink *sink, const struct hk_aws_entry *entry,
                                size_t *out_bytes, struct hk_err *err)
{
    char room[HK_SHA256_HEX_MAX];
    size_t bytes = entry->body.len + partition_key(entry->msg, room).len;
    (void)sink;
    if (!entry->body.len)
        return hk_err_set(err, HK_INVALID, "Kinesis takes no empty record");
    if (bytes > HK_KINESIS_RECORD_BYTES)
        return hk_err_set(err, HK_TOOBIG,
                          "the record has %zu bytes, which is over the %zu that Kinesis takes", bytes,
                          HK_KINESIS_RECORD_BYTES);
    *out_bytes = bytes;
    return HK_OK;
}

static void put_stream(struct hk_json *json, const char *to)
{
    bool arn = hk_str_starts(hk_str_of(to), hk_str_of("arn:"));
    hk_json_key(json, arn ? "StreamARN" : "StreamName");
    hk_json_cstr(json, to);
}

static void begin_batch(const struct hk_aws_sink *sink, struct hk_json *json, struct hk_buf *out)
{
    (void)out;
    hk_json_object(json);
    put_stream(json, sink->to);
    hk_json_key(json, "Records");
    hk_json_array(json);
}

static void add_entry(const struct hk_aws_sink *sink, const struct hk_aws_entry *entry, size_t at,
                      struct hk_json *json, struct hk_buf *out)
{
    char room[HK_SHA256_HEX_MAX];
    (void)sink;
    (void)at;
    hk_json_object(json);
    hk_json_key(json, "PartitionKey");
    hk_json_str(json, partition_key(entry->msg, room));
    hk_json_key(json, "Data");
    hk_json_raw(json, hk_str_of("\"")); /* the string's end is added below */
    (void)hk_buf_add_base64(out, entry->body.ptr, entry->body.len);
    (void)hk_buf_addc(out, '"');
    hk_json_end(json);
}

static void show_key(const struct hk_aws_sink *sink, const struct hk_message *msg, struct hk_json *json)
{
    char room[HK_SHA256_HEX_MAX];
    (void)sink;
    hk_json_key(json, "PartitionKey");
    hk_json_str(json, partition_key(msg, room));
}

static const char *const gone[] = {"ResourceNotFound*", NULL};

const struct hk_aws_service hk_kinesis_service = {.kind = "kinesis",
                                                  .title = "Kinesis",
                                                  .signs = "kinesis",
                                                  .target = "Kinesis_20131202.PutRecords",
                                                  .content_type = HK_AWS_JSON_1_1,
                                                  .to = "stream",
                                                  .fields = &hk_aws_rule,
                                                  .max_entries = HK_KINESIS_RECORDS,
                                                  .max_bytes = BATCH_BYTES,
                                                  .gone = gone,
                                                  .check = check_entry,
                                                  .begin = begin_batch,
                                                  .add = add_entry,
                                                  .read = hk_aws_records_read,
                                                  .show = show_key};

/* ---- the probe ---- */

static void ask(const char *to, struct hk_buf *out)
{
    struct hk_json json;
    hk_json_init(&json, out, false);
    hk_json_object(&json);
    put_stream(&json, to);
    hk_json_end(&json);
}

static bool judge(struct hk_str body, char out[HK_AWS_PROBE_MAX])
{
    char status[32];
    if (!hk_aws_text_read(body, "StreamDescriptionSummary", "StreamStatus", status, sizeof status))
        return false;
    (void)snprintf(out, HK_AWS_PROBE_MAX, "the stream is there, and is %s", status);
    return true;
}

const struct hk_aws_probe hk_kinesis_probe = {.service = &hk_kinesis_service,
                                              .target = "Kinesis_20131202.DescribeStreamSummary",
                                              .ask = ask,
                                              .judge = judge};
