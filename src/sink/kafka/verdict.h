/* SPDX-License-Identifier: Apache-2.0 */
/* librdkafka's errors as faults. Pure. */
#ifndef HK_SINK_KAFKA_VERDICT_H
#define HK_SINK_KAFKA_VERDICT_H

#include <hikyaku/facts.h>
#include <librdkafka/rdkafka.h>

struct hk_kafka_verdict {
    enum hk_fault fault;
    bool possibly_delivered;
};

/* How a record ended. `status` is librdkafka's word on whether a broker may have it. */
struct hk_kafka_verdict hk_kafka_judge(rd_kafka_resp_err_t code, rd_kafka_msg_status_t status);

/* What the client itself met, apart from any record: no connection, no rights. HK_FAULT_NONE: it says nothing. */
enum hk_fault hk_kafka_trouble(rd_kafka_resp_err_t code, const char *text);

/* What to add to a refused login; "" = nothing. */
const char *hk_kafka_login_hint(const char *mechanism);

#endif
