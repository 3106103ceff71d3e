/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "sink/kafka/verdict.h"

#define E(name) RD_KAFKA_RESP_ERR_##name

/* What is not listed is BROKER_UNKNOWN, and may have arrived. */
static const struct {
    rd_kafka_resp_err_t code;
    enum hk_fault fault;
    bool may_be_there; /* whatever the status says */
} table[] = {
    {E(NO_ERROR), HK_FAULT_NONE, false},
    /* never, as it is */
    {E(UNKNOWN_TOPIC_OR_PART), HK_FAULT_BROKER_REFUSED, false},
    {E(_UNKNOWN_TOPIC), HK_FAULT_BROKER_REFUSED, false},
    {E(_UNKNOWN_PARTITION), HK_FAULT_BROKER_REFUSED, false},
    {E(TOPIC_EXCEPTION), HK_FAULT_BROKER_REFUSED, false},
    {E(MSG_SIZE_TOO_LARGE), HK_FAULT_BROKER_REFUSED, false},
    {E(RECORD_LIST_TOO_LARGE), HK_FAULT_BROKER_REFUSED, false},
    {E(INVALID_RECORD), HK_FAULT_BROKER_REFUSED, false},
    {E(INVALID_TIMESTAMP), HK_FAULT_BROKER_REFUSED, false},
    {E(POLICY_VIOLATION), HK_FAULT_BROKER_REFUSED, false},
    {E(UNSUPPORTED_FOR_MESSAGE_FORMAT), HK_FAULT_BROKER_REFUSED, false},
    {E(UNSUPPORTED_COMPRESSION_TYPE), HK_FAULT_BROKER_REFUSED, false},
    /* not by us */
    {E(TOPIC_AUTHORIZATION_FAILED), HK_FAULT_BROKER_AUTH, false},
    {E(CLUSTER_AUTHORIZATION_FAILED), HK_FAULT_BROKER_AUTH, false},
    {E(TRANSACTIONAL_ID_AUTHORIZATION_FAILED), HK_FAULT_BROKER_AUTH, false},
    {E(SASL_AUTHENTICATION_FAILED), HK_FAULT_BROKER_AUTH, false},
    {E(UNSUPPORTED_SASL_MECHANISM), HK_FAULT_BROKER_AUTH, false},
    {E(SECURITY_DISABLED), HK_FAULT_BROKER_AUTH, false},
    {E(_AUTHENTICATION), HK_FAULT_BROKER_AUTH, false},
    /* not now */
    {E(NOT_ENOUGH_REPLICAS), HK_FAULT_BROKER_TRANSIENT, false},
    {E(NOT_ENOUGH_REPLICAS_AFTER_APPEND), HK_FAULT_BROKER_TRANSIENT, true},
    {E(LEADER_NOT_AVAILABLE), HK_FAULT_BROKER_TRANSIENT, false},
    {E(NOT_LEADER_FOR_PARTITION), HK_FAULT_BROKER_TRANSIENT, false},
    {E(BROKER_NOT_AVAILABLE), HK_FAULT_BROKER_TRANSIENT, false},
    {E(REPLICA_NOT_AVAILABLE), HK_FAULT_BROKER_TRANSIENT, false},
    {E(COORDINATOR_NOT_AVAILABLE), HK_FAULT_BROKER_TRANSIENT, false},
    {E(COORDINATOR_LOAD_IN_PROGRESS), HK_FAULT_BROKER_TRANSIENT, false},
    {E(NOT_COORDINATOR), HK_FAULT_BROKER_TRANSIENT, false},
    {E(KAFKA_STORAGE_ERROR), HK_FAULT_BROKER_TRANSIENT, false},
    {E(NETWORK_EXCEPTION), HK_FAULT_BROKER_TRANSIENT, false},
    {E(REQUEST_TIMED_OUT), HK_FAULT_BROKER_TRANSIENT, true},
    {E(_MSG_TIMED_OUT), HK_FAULT_BROKER_TRANSIENT, false},
    {E(_TRANSPORT), HK_FAULT_BROKER_TRANSIENT, false},
    {E(_ALL_BROKERS_DOWN), HK_FAULT_BROKER_TRANSIENT, false},
    {E(_PURGE_QUEUE), HK_FAULT_BROKER_TRANSIENT, false},
    {E(_PURGE_INFLIGHT), HK_FAULT_BROKER_TRANSIENT, true},
    {E(_DESTROY), HK_FAULT_BROKER_TRANSIENT, false},
    /* the idempotent producer has lost its way; another one takes its place */
    {E(_FATAL), HK_FAULT_BROKER_TRANSIENT, true},
    {E(OUT_OF_ORDER_SEQUENCE_NUMBER), HK_FAULT_BROKER_TRANSIENT, true},
    {E(DUPLICATE_SEQUENCE_NUMBER), HK_FAULT_BROKER_TRANSIENT, true},
    {E(UNKNOWN_PRODUCER_ID), HK_FAULT_BROKER_TRANSIENT, true},
    {E(INVALID_PRODUCER_EPOCH), HK_FAULT_BROKER_TRANSIENT, true},
    /* less */
    {E(THROTTLING_QUOTA_EXCEEDED), HK_FAULT_BROKER_THROTTLED, false},
    {E(_QUEUE_FULL), HK_FAULT_BROKER_THROTTLED, false},
};

struct hk_kafka_verdict hk_kafka_judge(rd_kafka_resp_err_t code, rd_kafka_msg_status_t status)
{
    struct hk_kafka_verdict v = {.fault = HK_FAULT_BROKER_UNKNOWN, .possibly_delivered = true};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].code == code)
            v = (struct hk_kafka_verdict){table[i].fault, table[i].may_be_there};
    if (v.fault == HK_FAULT_NONE)
        return v;
    if (status == RD_KAFKA_MSG_STATUS_POSSIBLY_PERSISTED)
        v.possibly_delivered = true;
    if (code == E(_MSG_TIMED_OUT) && v.possibly_delivered)
        v.fault = HK_FAULT_TIMEOUT;
    return v;
}

enum hk_fault hk_kafka_trouble(rd_kafka_resp_err_t code, const char *text)
{
    if (code == E(_SSL))
        return strstr(text, "certificate verify failed") ? HK_FAULT_TLS_VERIFY : HK_FAULT_TLS;
    if (code == E(_RESOLVE))
        return HK_FAULT_DNS;
    if (code == E(_TRANSPORT))
        return strstr(text, "refused") || strstr(text, "unreachable") ? HK_FAULT_CONNECT : HK_FAULT_NETWORK;
    if (code == E(_TIMED_OUT) || code == E(_ALL_BROKERS_DOWN))
        return HK_FAULT_NONE; /* what was said before tells more */
    struct hk_kafka_verdict v = hk_kafka_judge(code, RD_KAFKA_MSG_STATUS_NOT_PERSISTED);
    return v.fault == HK_FAULT_BROKER_AUTH ? v.fault : HK_FAULT_NONE;
}

/* Up to 2.6.0 librdkafka sends its nonce twice, and brokers from 4.0 on look at it. */
const char *hk_kafka_login_hint(const char *mechanism)
{
    bool scram = mechanism && strncmp(mechanism, "SCRAM", 5) == 0;
    return scram && rd_kafka_version() < 0x020601ff
               ? "; if the password is right: this librdkafka is older than 2.6.1, and cannot log in by SCRAM to Kafka 4.0 or later"
               : "";
}
