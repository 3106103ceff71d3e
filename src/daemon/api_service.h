/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP API in the daemon: a small pool of threads, each with a desk and a handle of the store, answers what the admin server hands
 * over. A slow query delays no probe and no delivery. */
#ifndef HK_DAEMON_API_SERVICE_H
#define HK_DAEMON_API_SERVICE_H

#include "admin/server.h"
#include "daemon/part.h"

struct hk_api_service;

/* `site`: what probes and metrics show; what it points to outlives the service. */
enum hk_code hk_api_service_new(const struct hk_part_env *env, const struct hk_admin_site *site,
                                struct hk_api_service **out, struct hk_err *err) HK_MUSTCHECK;
/* What listeners are given. */
struct hk_admin_service hk_api_service_ops(struct hk_api_service *service);
/* On the loop's thread: there is another configuration. Calls that are being answered go on with theirs. */
void hk_api_service_reloaded(struct hk_api_service *service, const struct hk_config *config);
/* The relay is about to end: whoever listens to events is told, and let go. */
void hk_api_service_drain(struct hk_api_service *service);
/* Asks calls to end, and waits a little until listeners have their last event: before the server stops. Accepts NULL. */
void hk_api_service_stop(struct hk_api_service *service);
/* After the server has stopped. Accepts NULL. */
void hk_api_service_free(struct hk_api_service *service);

#endif
