/* SPDX-License-Identifier: Apache-2.0 */
/* Channels as the configuration names them. */
#ifndef HK_ALERT_CONF_H
#define HK_ALERT_CONF_H

#include "alert/notice.h"
#include "base/pool.h"
#include "config/config.h"

/* Copies, because a reload may free the configuration while a channel hangs. Check `failed` at the end. */
struct hk_copier {
    struct hk_pool *arena;
    bool failed;
};

const char *hk_copier_text(struct hk_copier *copier, const char *text); /* NULL for NULL */
const char *const *hk_copier_list(struct hk_copier *copier, const struct hk_conf_list *list);

/* All that the channel points to lies in the arena: wipe that, it holds secrets. */
enum hk_code hk_channel_of_conf(const struct hk_config *config, const struct hk_conf_channel *conf,
                                struct hk_pool *arena, struct hk_channel *out,
                                struct hk_err *err) HK_MUSTCHECK;
/* hk_channel_check of what a configuration says. */
enum hk_code hk_channel_check_conf(const struct hk_config *config, const struct hk_conf_channel *conf,
                                   struct hk_err *err) HK_MUSTCHECK;

#endif
