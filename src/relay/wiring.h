/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration made ready for an engine: destinations with their sinks, routes with indexes for names. */
#ifndef HK_RELAY_WIRING_H
#define HK_RELAY_WIRING_H

#include "config/config.h"
#include "core/engine.h"
#include "loop/loop.h"
#include "payload/validate.h"
#include "relay/clock.h"
#include "sink/sink.h"

struct hk_wiring {
    const struct hk_config *config;
    struct hk_engine_dest *dests;
    struct hk_sink **sinks; /* parallel to dests */
    size_t n_dests;
    struct hk_engine_route *routes;
    size_t **route_dests; /* parallel to routes */
    size_t n_routes;
    struct hk_validate *validate; /* what payloads must be like; NULL = anything goes */
};

/* Opens every sink. On an error nothing stays open. */
enum hk_code hk_wiring_open(const struct hk_config *config, struct hk_loop *loop, struct hk_wiring *out,
                            struct hk_err *err) HK_MUSTCHECK;
/* One destination's sink alone; close it with its own operation. */
enum hk_code hk_wiring_sink(const struct hk_conf_destination *conf, struct hk_loop *loop,
                            struct hk_sink **out_sink, struct hk_err *err) HK_MUSTCHECK;
/* A destination as the engine takes it; its breaker is the configuration's. */
struct hk_engine_dest hk_wiring_dest(const struct hk_config *config, const struct hk_conf_destination *conf);
/* Only when nothing is in flight. */
void hk_wiring_close(struct hk_wiring *wiring);
/* The engine's options that come from the configuration. */
struct hk_engine_options hk_wiring_engine(const struct hk_wiring *wiring, uint64_t seed);

#endif
