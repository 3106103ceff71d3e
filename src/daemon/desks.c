/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdatomic.h>

#include "base/mem.h"
#include "daemon/desks.h"
#include "store/turns.h"

struct hk_desks {
    char *url; /* its own: a call that does not end in time outlives the daemon's */
    const char *jq;
    const struct hk_jq_starter *jq_starter;
    struct hk_turns *turns;
    pthread_mutex_t lock; /* guards `config` */
    struct hk_config *config;
    atomic_uint owners; /* the part, and each thread */
    void (*ended)(void *arg);
    void *arg;
};

struct hk_desks *hk_desks_new(const struct hk_part_env *env, void (*ended)(void *arg), void *arg)
{
    struct hk_desks *d = hk_mem_zalloc(1, sizeof *d);
    if (!d || !(d->url = hk_mem_strdup(env->url))) {
        hk_mem_free(d);
        return NULL;
    }
    (void)pthread_mutex_init(&d->lock, NULL);
    d->config = hk_config_share(env->config);
    d->jq = env->jq;
    d->jq_starter = env->jq_starter;
    d->turns = hk_turns_ref(env->turns);
    d->owners = 1;
    d->ended = ended;
    d->arg = arg;
    return d;
}

void hk_desks_unref(struct hk_desks *d)
{
    if (atomic_fetch_sub(&d->owners, 1) > 1)
        return;
    d->ended(d->arg);
    hk_turns_unref(d->turns);
    hk_config_free(d->config);
    hk_mem_free(d->url);
    (void)pthread_mutex_destroy(&d->lock);
    hk_mem_free(d);
}

void hk_desks_reloaded(struct hk_desks *d, const struct hk_config *config)
{
    (void)pthread_mutex_lock(&d->lock);
    struct hk_config *before = d->config;
    d->config = hk_config_share(config);
    (void)pthread_mutex_unlock(&d->lock);
    hk_config_free(before);
}

/* ---- a thread's ---- */

void hk_desk_of_init(struct hk_desk_of *of, struct hk_desks *desks)
{
    *of = (struct hk_desk_of){.desks = desks};
    (void)atomic_fetch_add(&desks->owners, 1);
}

struct hk_desk *hk_desk_of_now(struct hk_desk_of *of)
{
    struct hk_desks *d = of->desks;
    (void)pthread_mutex_lock(&d->lock);
    bool same = of->config == d->config;
    struct hk_config *config = same ? NULL : hk_config_share(d->config);
    (void)pthread_mutex_unlock(&d->lock);
    if (same)
        return &of->desk;
    hk_desk_of_rest(of);
    of->config = config;
    hk_desk_init(&of->desk, config, d->url);
    of->desk.jq = d->jq;
    of->desk.jq_starter = d->jq_starter;
    of->desk.turns = d->turns;
    return &of->desk;
}

void hk_desk_of_rest(struct hk_desk_of *of)
{
    hk_desk_fini(&of->desk);
    hk_config_free(of->config);
    of->config = NULL;
}

void hk_desk_of_fini(struct hk_desk_of *of)
{
    hk_desk_of_rest(of);
    hk_desks_unref(of->desks);
}
