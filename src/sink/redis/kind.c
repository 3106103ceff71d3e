/* SPDX-License-Identifier: Apache-2.0 */
/* Redis as a kind of sink: a destination of the configuration -> the sink's options. */
#include "base/mem.h"
#include "sink/kinds.h"
#include "sink/redis/redis.h"

static enum hk_code open_redis(const struct hk_conf_destination *conf, struct hk_loop *loop,
                               struct hk_sink **out, struct hk_err *err)
{
    const struct hk_conf_redis *redis = &conf->redis;
    struct hk_redis_options o = {.name = conf->name,
                                 .url = redis->servers.url,
                                 .password = redis->servers.password,
                                 .stream = redis->stream,
                                 .create = redis->create,
                                 .max_len = redis->max_len,
                                 .dedup_ms = redis->dedup_ms,
                                 .heartbeat_s = (uint32_t)(redis->heartbeat_ms / 1000),
                                 .cloudevents = redis->servers.cloudevents == HK_CLOUDEVENTS_BINARY,
                                 .ca_file = redis->servers.ca_file,
                                 .cert_file = redis->servers.cert_file,
                                 .key_file = redis->servers.key_file};
    struct hk_cidr *allow = NULL;
    enum hk_code rc = hk_sink_allow(conf, &allow, &o.n_allow, err);
    o.allow = allow;
    if (rc == HK_OK)
        rc = hk_redis_open(loop, &o, out, err);
    hk_mem_free(allow);
    return rc;
}

const struct hk_sink_kind hk_sink_kind_redis = {.name = "redis", .open = open_redis};
