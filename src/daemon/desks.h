/* SPDX-License-Identifier: Apache-2.0 */
/* Desks of threads: each has one of its own, with a handle of the store, and all of them follow the configuration as it is reloaded.
 *
 * A thread that hangs in the store may outlive the part that started it. So whatever these threads share belongs to all of them: it ends
 * when the last one has given its desk back, and the part has let go. */
#ifndef HK_DAEMON_DESKS_H
#define HK_DAEMON_DESKS_H

#include "daemon/part.h"
#include "desk/desk.h"

struct hk_desks;

/* `ended` is called once nobody owns it any more, on whatever thread that is. NULL: out of memory. */
struct hk_desks *hk_desks_new(const struct hk_part_env *env, void (*ended)(void *arg), void *arg);
void hk_desks_unref(struct hk_desks *desks); /* the part's own */
/* From now on threads use this configuration. On the loop's thread. */
void hk_desks_reloaded(struct hk_desks *desks, const struct hk_config *config);

/* One thread's. */
struct hk_desk_of {
    struct hk_desks *desks;
    struct hk_config *config;
    struct hk_desk desk;
};

void hk_desk_of_init(struct hk_desk_of *of, struct hk_desks *desks);
/* With the present configuration. */
struct hk_desk *hk_desk_of_now(struct hk_desk_of *of);
void hk_desk_of_rest(
    struct hk_desk_of *of); /* gives back what the desk holds; hk_desk_of_now takes it anew */
void hk_desk_of_fini(struct hk_desk_of *of);

#endif
