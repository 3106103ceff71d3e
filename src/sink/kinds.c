/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of the kinds of sink. */
#include "sink/kinds.h"

static const struct hk_sink_kind *const kinds[HK_NKINDS] = {
    [HK_KIND_HTTP] = &hk_sink_kind_http,
    [HK_KIND_NULL] = &hk_sink_kind_null,
    [HK_KIND_KAFKA] = &hk_sink_kind_kafka,
};

const struct hk_sink_kind *hk_sink_kind_of(const struct hk_conf_destination *conf)
{
    return kinds[conf->kind];
}
