/* SPDX-License-Identifier: Apache-2.0 */
/* SNS, by its query protocol: a form, and an answer in XML. It takes text alone, as SQS does. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "sink/aws/entry.h"
#include "sink/aws/form.h"
#include "sink/aws/xml.h"
#include "sink/sns/sns.h"

#define ACTION(name) "Action=" name "&Version=2010-03-31&TopicArn="
#define ENTRY        "&PublishBatchRequestEntries.member.%zu."
#define ATTRIBUTE    "MessageAttributes.entry.%zu."

/* ---- messages ---- */

static enum hk_code check_entry(const struct hk_aws_sink *sink, const struct hk_aws_entry *entry,
                                size_t *out_bytes, struct hk_err *err)
{
    return hk_aws_attributes_check(entry, sink->service->title, HK_SNS_MESSAGE_BYTES, out_bytes, err);
}

static void begin_batch(const struct hk_aws_sink *sink, struct hk_json *json, struct hk_buf *out)
{
    (void)json;
    (void)hk_buf_adds(out, ACTION("PublishBatch"));
    hk_aws_form_add(out, hk_str_of(sink->to));
}

struct attributes {
    struct hk_buf *out;
    size_t entry, n;
};

static void add_attribute(void *arg, struct hk_str name, struct hk_str value)
{
    struct attributes *a = arg;
    a->n++;
    (void)hk_buf_addf(a->out, ENTRY ATTRIBUTE "Name=", a->entry, a->n);
    hk_aws_form_add(a->out, name);
    (void)hk_buf_addf(a->out,
                      ENTRY ATTRIBUTE "Value.DataType=String" ENTRY ATTRIBUTE "Value.StringValue=", a->entry,
                      a->n, a->entry, a->n);
    hk_aws_form_add(a->out, value);
}

static void add_field(struct hk_buf *out, size_t number, const char *name, struct hk_str value)
{
    (void)hk_buf_addf(out, ENTRY "%s=", number, name);
    hk_aws_form_add(out, value);
}

static void add_entry(const struct hk_aws_sink *sink, const struct hk_aws_entry *entry, size_t at,
                      struct hk_json *json, struct hk_buf *out)
{
    const char id[2] = {(char)('0' + at), '\0'};
    char group[HK_AWS_GROUP_MAX];
    struct attributes attributes = {.out = out, .entry = at + 1};
    (void)json;
    add_field(out, at + 1, "Id", hk_str_of(id));
    add_field(out, at + 1, "Message", entry->body);
    if (sink->fifo) {
        hk_aws_group(hk_aws_key_of(entry->msg), group);
        add_field(out, at + 1, "MessageGroupId", hk_str_of(group));
        hk_aws_group(entry->msg->message_id, group);
        add_field(out, at + 1, "MessageDeduplicationId", hk_str_of(group));
    }
    hk_aws_attributes_put(entry->fields, add_attribute, &attributes, out);
}

static const char *const gone[] = {"NotFound*", NULL};

const struct hk_aws_service hk_sns_service = {.kind = "sns",
                                              .title = "SNS",
                                              .signs = "sns",
                                              .content_type = HK_AWS_FORM,
                                              .to = "topic_arn",
                                              .fields = &hk_aws_rule,
                                              .max_entries = HK_AWS_BATCH_MAX,
                                              .max_bytes = HK_SNS_MESSAGE_BYTES,
                                              .gone = gone,
                                              .check = check_entry,
                                              .begin = begin_batch,
                                              .add = add_entry,
                                              .read = hk_aws_publish_read,
                                              .show = hk_aws_show_group};

/* ---- the probe ---- */

static void ask(const char *to, struct hk_buf *out)
{
    (void)hk_buf_adds(out, ACTION("GetTopicAttributes"));
    hk_aws_form_add(out, hk_str_of(to));
}

/* <entry><key>SubscriptionsConfirmed</key><value>2</value></entry> */
static bool judge(struct hk_str body, char out[HK_AWS_PROBE_MAX])
{
    struct hk_str entry;
    char key[64], value[24] = "";
    bool is_answer = false;
    while (hk_aws_xml_next(&body, "entry", &entry)) {
        is_answer = is_answer || hk_aws_xml_text(entry, "key", key, sizeof key);
        if (hk_aws_xml_text(entry, "key", key, sizeof key) && !strcmp(key, "SubscriptionsConfirmed"))
            (void)hk_aws_xml_text(entry, "value", value, sizeof value);
    }
    (void)snprintf(out, HK_AWS_PROBE_MAX, "the topic is there, with %s confirmed subscriptions",
                   value[0] ? value : "no");
    return is_answer;
}

const struct hk_aws_probe hk_sns_probe = {.service = &hk_sns_service, .ask = ask, .judge = judge};
