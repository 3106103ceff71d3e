/* SPDX-License-Identifier: Apache-2.0 */
/* What stands in a destination's headers for a field of the message: known to the requests, which fill it in, and to the
 * configuration, which refuses any other. */
#ifndef HK_SINK_HTTP_FIELDS_H
#define HK_SINK_HTTP_FIELDS_H

#define HK_STANDS_FOR_EVENT_TYPE      "{event_type}"
#define HK_STANDS_FOR_CORRELATION_ID  "{correlation_id}"
#define HK_STANDS_FOR_ATTEMPT         "{attempt}"
#define HK_STANDS_FOR_IDEMPOTENCY_KEY "{idempotency_key}"
#define HK_STANDS_FOR_TRACEPARENT     "{traceparent}"

#endif
