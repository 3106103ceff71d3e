/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "base/str.h"
#include "sink/aws/answer.h"
#include "sink/aws/xml.h"

static struct hk_str text_of(const json_t *root, const char *key)
{
    const json_t *value = json_object_get(root, key);
    return json_is_string(value) ? (struct hk_str){json_string_value(value), json_string_length(value)}
                                 : (struct hk_str){"", 0};
}

static void copy(char *out, size_t room, struct hk_str text)
{
    (void)snprintf(out, room, "%.*s", (int)(text.len < room ? text.len : room - 1), text.ptr);
}

static json_t *read_object(struct hk_str body)
{
    json_t *root = body.len ? json_loadb(body.ptr, body.len, 0, NULL) : NULL;
    if (json_is_object(root))
        return root;
    json_decref(root);
    return NULL;
}

/* ---- errors ---- */

/* "com.amazonaws.sqs#QueueDoesNotExist", "QueueDoesNotExist:http://…" */
static struct hk_str bare_code(struct hk_str type)
{
    struct hk_str rest = type;
    (void)hk_str_cut(&rest, '#');
    if (!rest.ptr)
        rest = type;
    return hk_str_cut(&rest, ':');
}

/* What stands in front of a service may answer in XML although the question was in JSON. */
void hk_aws_error_read(struct hk_str body, struct hk_aws_error *out)
{
    json_t *root = read_object(body);
    *out = (struct hk_aws_error){.code = ""};
    if (!root) {
        (void)hk_aws_xml_text(body, "Code", out->code, sizeof out->code);
        (void)hk_aws_xml_text(body, "Message", out->words, sizeof out->words);
        return;
    }
    struct hk_str type = text_of(root, "__type"), words = text_of(root, "message");
    copy(out->code, sizeof out->code, bare_code(type.len ? type : text_of(root, "code")));
    copy(out->words, sizeof out->words, words.len ? words : text_of(root, "Message"));
    json_decref(root);
}

/* '*' stands for any text. Services write the same thing in several ways. */
static const struct {
    const char *code;
    enum hk_fault fault;
} codes[] = {
    {"*Throttl*", HK_FAULT_BROKER_THROTTLED},
    {"ProvisionedThroughputExceeded*", HK_FAULT_BROKER_THROTTLED},
    {"TooManyRequests*", HK_FAULT_BROKER_THROTTLED},
    {"RequestLimitExceeded*", HK_FAULT_BROKER_THROTTLED},
    {"BandwidthLimitExceeded*", HK_FAULT_BROKER_THROTTLED},
    {"SlowDown", HK_FAULT_BROKER_THROTTLED},
    {"OverLimit", HK_FAULT_BROKER_THROTTLED},
    {"Internal*", HK_FAULT_BROKER_TRANSIENT},
    {"ServiceUnavailable*", HK_FAULT_BROKER_TRANSIENT},
    {"RequestTimeout*", HK_FAULT_BROKER_TRANSIENT},
    {"*AccessDenied*", HK_FAULT_BROKER_AUTH},
    {"AuthorizationError*", HK_FAULT_BROKER_AUTH},
    {"Expired*", HK_FAULT_BROKER_AUTH},
    {"IncompleteSignature*", HK_FAULT_BROKER_AUTH},
    {"InvalidAccessKeyId", HK_FAULT_BROKER_AUTH},
    {"InvalidClientTokenId*", HK_FAULT_BROKER_AUTH},
    {"InvalidSecurity*", HK_FAULT_BROKER_AUTH},
    {"InvalidSignature*", HK_FAULT_BROKER_AUTH},
    {"MissingAuthenticationToken*", HK_FAULT_BROKER_AUTH},
    {"NotAuthorized*", HK_FAULT_BROKER_AUTH},
    {"OptInRequired", HK_FAULT_BROKER_AUTH},
    {"RequestExpired", HK_FAULT_BROKER_AUTH},
    {"RequestTimeTooSkewed", HK_FAULT_BROKER_AUTH},
    {"SignatureDoesNotMatch*", HK_FAULT_BROKER_AUTH},
    {"UnrecognizedClient*", HK_FAULT_BROKER_AUTH},
};

/* NONE: the code tells nothing. */
static enum hk_fault fault_of_code(const char *code)
{
    for (size_t i = 0; code[0] && i < sizeof codes / sizeof codes[0]; i++)
        if (hk_str_glob(codes[i].code, hk_str_of(code)))
            return codes[i].fault;
    return HK_FAULT_NONE;
}

enum hk_fault hk_aws_fault(int status, const char *code, bool *out_maybe)
{
    enum hk_fault fault = fault_of_code(code);
    if (fault == HK_FAULT_NONE)
        fault = status == 429                    ? HK_FAULT_BROKER_THROTTLED
                : status == 401 || status == 403 ? HK_FAULT_BROKER_AUTH
                : status >= 500                  ? HK_FAULT_BROKER_TRANSIENT
                : status >= 400                  ? HK_FAULT_BROKER_REFUSED
                                                 : HK_FAULT_BROKER_UNKNOWN;
    *out_maybe = fault == HK_FAULT_BROKER_TRANSIENT || fault == HK_FAULT_BROKER_UNKNOWN;
    return fault;
}

enum hk_fault hk_aws_entry_fault(const struct hk_aws_result *result, bool *out_maybe)
{
    return hk_aws_fault(result->sender_fault ? 400 : 500, result->error.code, out_maybe);
}

/* ---- batches ---- */

static struct hk_aws_result *result_of(const json_t *entry, struct hk_aws_result *out, size_t n)
{
    struct hk_str id = text_of(entry, "Id");
    size_t at = id.len == 1 && hk_ascii_isdigit(id.ptr[0]) ? (size_t)(id.ptr[0] - '0') : n;
    return at < n ? &out[at] : NULL;
}

/* "MessageId a, SequenceNumber b"; without b if that is empty. */
static void note_place(struct hk_aws_result *out, const char *name, struct hk_str id, const char *other,
                       struct hk_str more)
{
    out->outcome = HK_AWS_TAKEN;
    (void)snprintf(out->place, sizeof out->place, "%s %.*s%s%s%s%.*s", name,
                   (int)(id.len < 100 ? id.len : 100), id.ptr, more.len ? ", " : "", more.len ? other : "",
                   more.len ? " " : "", (int)(more.len < 60 ? more.len : 60), more.ptr);
}

static void take_success(const json_t *entry, struct hk_aws_result *out)
{
    note_place(out, "MessageId", text_of(entry, "MessageId"), "SequenceNumber",
               text_of(entry, "SequenceNumber"));
}

static void note_failure(struct hk_aws_result *out, struct hk_str code, struct hk_str words)
{
    out->outcome = HK_AWS_FAILED;
    copy(out->error.code, sizeof out->error.code, bare_code(code));
    copy(out->error.words, sizeof out->error.words, words);
}

static void take_failure(const json_t *entry, struct hk_aws_result *out)
{
    note_failure(out, text_of(entry, "Code"), text_of(entry, "Message"));
    out->sender_fault = json_is_true(json_object_get(entry, "SenderFault"));
}

bool hk_aws_batch_read(struct hk_str body, struct hk_aws_result *out, size_t n)
{
    json_t *root = read_object(body);
    const json_t *taken = json_object_get(root, "Successful"), *failed = json_object_get(root, "Failed");
    for (size_t i = 0; i < n; i++)
        out[i] = (struct hk_aws_result){.outcome = HK_AWS_SILENT};
    for (size_t i = 0; i < json_array_size(taken); i++) {
        struct hk_aws_result *result = result_of(json_array_get(taken, i), out, n);
        if (result)
            take_success(json_array_get(taken, i), result);
    }
    for (size_t i = 0; i < json_array_size(failed); i++) { /* both is a failure: in doubt it is sent again */
        struct hk_aws_result *result = result_of(json_array_get(failed, i), out, n);
        if (result)
            take_failure(json_array_get(failed, i), result);
    }
    bool is_answer = json_is_array(taken) || json_is_array(failed);
    json_decref(root);
    return is_answer;
}

/* ---- lists: one result for each entry, by its place ---- */

static bool list_read(struct hk_str body, const char *key, struct hk_aws_result *out, size_t n,
                      void (*take)(const json_t *entry, struct hk_aws_result *out))
{
    json_t *root = read_object(body);
    const json_t *list = json_object_get(root, key);
    bool is_answer = json_is_array(list) && json_array_size(list) == n;
    for (size_t i = 0; is_answer && i < n; i++) {
        const json_t *entry = json_array_get(list, i);
        struct hk_str code = text_of(entry, "ErrorCode");
        out[i] = (struct hk_aws_result){.outcome = HK_AWS_SILENT};
        if (code.len)
            note_failure(&out[i], code, text_of(entry, "ErrorMessage"));
        else
            take(entry, &out[i]);
    }
    json_decref(root);
    return is_answer;
}

static void take_event(const json_t *entry, struct hk_aws_result *out)
{
    struct hk_str id = text_of(entry, "EventId");
    if (id.len)
        note_place(out, "EventId", id, "", (struct hk_str){"", 0});
}

static void take_record(const json_t *entry, struct hk_aws_result *out)
{
    struct hk_str number = text_of(entry, "SequenceNumber");
    if (number.len)
        note_place(out, "ShardId", text_of(entry, "ShardId"), "SequenceNumber", number);
}

bool hk_aws_events_read(struct hk_str body, struct hk_aws_result *out, size_t n)
{
    bool is_answer = list_read(body, "Entries", out, n, take_event);
    for (size_t i = 0; is_answer && i < n; i++)
        out[i].sender_fault = true; /* what has no class of its own is about the event */
    return is_answer;
}

bool hk_aws_records_read(struct hk_str body, struct hk_aws_result *out, size_t n)
{
    return list_read(body, "Records", out, n, take_record);
}

/* ---- XML ---- */

static struct hk_aws_result *member_of(struct hk_str member, struct hk_aws_result *out, size_t n)
{
    char id[8];
    if (!hk_aws_xml_text(member, "Id", id, sizeof id) || !hk_ascii_isdigit(id[0]) || id[1])
        return NULL;
    return (size_t)(id[0] - '0') < n ? &out[id[0] - '0'] : NULL;
}

static void take_published(struct hk_str member, struct hk_aws_result *out)
{
    char id[128], number[64];
    (void)hk_aws_xml_text(member, "MessageId", id, sizeof id);
    (void)hk_aws_xml_text(member, "SequenceNumber", number, sizeof number);
    note_place(out, "MessageId", hk_str_of(id), "SequenceNumber", hk_str_of(number));
}

static void take_unpublished(struct hk_str member, struct hk_aws_result *out)
{
    char fault[8];
    out->outcome = HK_AWS_FAILED;
    (void)hk_aws_xml_text(member, "Code", out->error.code, sizeof out->error.code);
    (void)hk_aws_xml_text(member, "Message", out->error.words, sizeof out->error.words);
    (void)hk_aws_xml_text(member, "SenderFault", fault, sizeof fault);
    out->sender_fault = strcmp(fault, "true") == 0;
}

bool hk_aws_publish_read(struct hk_str body, struct hk_aws_result *out, size_t n)
{
    struct hk_str answer = {"", 0}, taken = {"", 0}, failed = {"", 0}, member;
    for (size_t i = 0; i < n; i++)
        out[i] = (struct hk_aws_result){.outcome = HK_AWS_SILENT};
    if (!hk_aws_xml_next(&body, "PublishBatchResult", &answer))
        return false;
    struct hk_str rest = answer;
    (void)hk_aws_xml_next(&rest, "Successful", &taken);
    (void)hk_aws_xml_next(&answer, "Failed", &failed);
    while (hk_aws_xml_next(&taken, "member", &member)) {
        struct hk_aws_result *result = member_of(member, out, n);
        if (result)
            take_published(member, result);
    }
    while (hk_aws_xml_next(&failed, "member", &member)) { /* both is a failure, as above */
        struct hk_aws_result *result = member_of(member, out, n);
        if (result)
            take_unpublished(member, result);
    }
    return true;
}

/* ---- for probes ---- */

bool hk_aws_text_read(struct hk_str body, const char *object, const char *name, char *out, size_t room)
{
    json_t *root = read_object(body);
    struct hk_str value = text_of(object ? json_object_get(root, object) : root, name);
    bool there = value.len > 0 && hk_str_copy(out, room, value);
    json_decref(root);
    return there;
}
