/* SPDX-License-Identifier: Apache-2.0 */
/* null as a kind of sink. */
#include "sink/kinds.h"
#include "sink/null/null.h"

static enum hk_code open_null(const struct hk_conf_destination *conf, struct hk_loop *loop,
                              struct hk_sink **out, struct hk_err *err)
{
    return hk_null_open(loop, conf->null.latency_ms, out, err);
}

const struct hk_sink_kind hk_sink_kind_null = {.name = "null", .nowhere = true, .open = open_null};
