/* SPDX-License-Identifier: Apache-2.0 */
/* What Pub/Sub says: ids of messages, and errors in the form of google.rpc.Status. */
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "base/str.h"
#include "sink/pubsub/impl.h"

static json_t *read_object(struct hk_str body)
{
    json_t *root = body.len ? json_loadb(body.ptr, body.len, 0, NULL) : NULL;
    if (json_is_object(root))
        return root;
    json_decref(root);
    return NULL;
}

static void copy_text(char *out, size_t room, const json_t *value)
{
    const char *text = json_is_string(value) ? json_string_value(value) : "";
    (void)snprintf(out, room, "%s", text);
}

void hk_pubsub_error_read(struct hk_str body, int status, struct hk_pubsub_error *out)
{
    json_t *root = read_object(body);
    const json_t *error = json_object_get(root, "error");
    *out = (struct hk_pubsub_error){.code = ""};
    copy_text(out->code, sizeof out->code, json_object_get(error, "status"));
    copy_text(out->words, sizeof out->words, json_object_get(error, "message"));
    json_decref(root);
    if (!out->code[0])
        (void)snprintf(out->code, sizeof out->code, "HTTP %d", status);
}

/* By the code; NULL: by the status. */
static const struct {
    const char *code;
    int status;
    enum hk_fault fault;
    bool maybe, some;
} answers[] = {
    {"INVALID_ARGUMENT", 400, HK_FAULT_BROKER_REFUSED, false, true},
    {"OUT_OF_RANGE", 0, HK_FAULT_BROKER_REFUSED, false, true},
    {NULL, 413, HK_FAULT_BROKER_REFUSED, false, true},
    {"NOT_FOUND", 404, HK_FAULT_BROKER_REFUSED, false, false},
    {"UNIMPLEMENTED", 501, HK_FAULT_BROKER_REFUSED, false, false},
    /* billing is off, the topic's encryption key is out of reach, the region is not allowed: of the topic, until people act */
    {"FAILED_PRECONDITION", 0, HK_FAULT_BROKER_TRANSIENT, false, false},
    {"UNAUTHENTICATED", 401, HK_FAULT_BROKER_AUTH, false, false},
    {"PERMISSION_DENIED", 403, HK_FAULT_BROKER_AUTH, false, false},
    {"RESOURCE_EXHAUSTED", 429, HK_FAULT_BROKER_THROTTLED, false, false},
    {"ABORTED", 409, HK_FAULT_BROKER_TRANSIENT, true, false},
    {"CANCELLED", 499, HK_FAULT_BROKER_TRANSIENT, true, false},
    {"DEADLINE_EXCEEDED", 504, HK_FAULT_BROKER_TRANSIENT, true, false},
    {"INTERNAL", 500, HK_FAULT_BROKER_TRANSIENT, true, false},
    {"UNAVAILABLE", 503, HK_FAULT_BROKER_TRANSIENT, true, false},
    {"UNKNOWN", 0, HK_FAULT_BROKER_TRANSIENT, true, false},
    {"DATA_LOSS", 0, HK_FAULT_BROKER_TRANSIENT, true, false},
};

static size_t row_of(const char *code, int status)
{
    size_t n = sizeof answers / sizeof answers[0];
    for (size_t i = 0; i < n; i++)
        if (answers[i].code && strcmp(answers[i].code, code) == 0)
            return i;
    for (size_t i = 0; i < n; i++)
        if (answers[i].status && answers[i].status == status)
            return i;
    return n;
}

enum hk_fault hk_pubsub_fault(const struct hk_pubsub_error *error, int status, bool *out_maybe,
                              bool *out_some)
{
    size_t row = row_of(error->code, status);
    bool listed = row < sizeof answers / sizeof answers[0], refused = status / 100 == 4;
    *out_maybe = listed ? answers[row].maybe : !refused;
    *out_some = listed ? answers[row].some : refused;
    if (listed)
        return answers[row].fault;
    return refused             ? HK_FAULT_BROKER_REFUSED
           : status / 100 == 5 ? HK_FAULT_BROKER_TRANSIENT
                               : HK_FAULT_BROKER_UNKNOWN;
}

bool hk_pubsub_ids_read(struct hk_str body, struct hk_pubsub_id *out, size_t n)
{
    json_t *root = read_object(body);
    const json_t *ids = json_object_get(root, "messageIds");
    bool whole = json_is_array(ids) && json_array_size(ids) == n;
    for (size_t i = 0; i < n && whole; i++) {
        const json_t *id = json_array_get(ids, i);
        whole = json_is_string(id) && json_string_length(id) > 0;
        copy_text(out[i].text, sizeof out[i].text, id);
    }
    json_decref(root);
    return whole;
}

int hk_pubsub_permission_read(struct hk_str body, const char *permission)
{
    json_t *root = read_object(body);
    const json_t *list = json_object_get(root, "permissions");
    int found = root && (!list || json_is_array(list)) ? 0 : -1; /* without any, Google leaves the list out */
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        if (json_is_string(one) && strcmp(json_string_value(one), permission) == 0)
            found = 1;
    }
    json_decref(root);
    return found;
}
