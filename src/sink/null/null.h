/* SPDX-License-Identifier: Apache-2.0 */
/* The sink that confirms everything, at once or after a while. It shows the cost of a relay without a network. */
#ifndef HK_SINK_NULL_NULL_H
#define HK_SINK_NULL_NULL_H

#include "loop/loop.h"
#include "sink/sink.h"

/* `latency_ms` 0: in the loop's next round. A delivery whose time-out is shorter than that ends with
 * HK_FAULT_TIMEOUT. */
enum hk_code hk_null_open(struct hk_loop *loop, uint64_t latency_ms, struct hk_sink **out_sink,
                          struct hk_err *err) HK_MUSTCHECK;

#endif
