/* SPDX-License-Identifier: Apache-2.0 */
/* The columns that relays need, the same in all stores. Owners of tables rename and drop some: what is missing is told by its name
 * when a relay starts, and by `doctor`. */
#ifndef HK_STORE_COLUMNS_H
#define HK_STORE_COLUMNS_H

#define HK_MESSAGE_COLUMNS                                                                                   \
    "id,message_id,destination,event_type,message_key,headers,content_type,encoding,correlation_id,"         \
    "traceparent,idempotency_key,expires_at,policy,max_attempts,created_at,payload"
#define HK_OUTBOX_COLUMNS HK_MESSAGE_COLUMNS ",not_before"
#define HK_RETRY_COLUMNS                                                                                     \
    HK_MESSAGE_COLUMNS ",not_before,original_outbox_id,due_ms,claim,deferred,attempts,charged,"              \
                       "failed_transient,failed_rate_limit,failed_auth,failed_permanent,failed_unknown,"     \
                       "prev_wait_ms,first_attempt_ms,paused_mark_ms,first_failed_ms,last_attempt_ms,"       \
                       "last_cause,last_error,crashes,life,letter_id,possibly_delivered"
#define HK_LETTER_COLUMNS                                                                                    \
    HK_MESSAGE_COLUMNS ",original_outbox_id,status,life,attempts,crashes,requeues,payload_version,"          \
                       "possibly_delivered,redrive_id,reason_code,failure_class,fault,fingerprint,"          \
                       "first_failed_at,last_failed_at,last_attempt_at,requeued_at,requeued_as,edited_at,"   \
                       "sending_at,resolved_at,resolution,message_created_at,error_message,error_detail,"    \
                       "fingerprint_made,fingerprint_old"

#endif
