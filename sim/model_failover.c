/* SPDX-License-Identifier: Apache-2.0 */
/* A standby that lags behind takes over: everything that was committed after the moment up to which it has come never was,
 * and in the worst case its sequences give out the same numbers again. */
#include <stdlib.h>
#include <string.h>

#include "model_impl.h"

static void *copy(const void *items, size_t n, size_t *room, size_t bytes)
{
    *room = n;
    if (!n)
        return NULL;
    void *to = malloc(n * bytes);
    if (!to)
        abort();
    memcpy(to, items, n * bytes);
    return to;
}

/* Every table, so that none is forgotten in the copy or at the end. */
#define EACH_TABLE(X, m)                                                                                     \
    X((m)->outbox)                                                                                           \
    X((m)->retry)                                                                                            \
    X((m)->letters)                                                                                          \
    X((m)->ends) X((m)->attempts) X((m)->lanes) X((m)->paused) X((m)->buckets) X((m)->seats) X((m)->audit) X((m)->jobs)
#define COPY_TABLE(t) (t).items = copy((t).items, (t).n, &(t).room, sizeof *(t).items);
#define FREE_TABLE(t) free((t).items);

void hk_model_drop_kept(struct hk_model *model)
{
    if (!model->kept)
        return;
    EACH_TABLE(FREE_TABLE, model->kept)
    free(model->kept);
    model->kept = NULL;
}

void hk_model_keep(struct hk_model *model)
{
    hk_model_drop_kept(model);
    struct hk_model *kept = malloc(sizeof *kept);
    if (!kept)
        abort();
    *kept = *model;
    EACH_TABLE(COPY_TABLE, kept)
    model->kept = kept;
}

void hk_model_failover(struct hk_model *model, bool reuse)
{
    struct hk_model *kept = model->kept;
    if (!kept)
        return;
    struct hk_model then = *model;
    EACH_TABLE(FREE_TABLE, model)
    *model = *kept;
    free(kept);
    model->kept = NULL;
    model->boots = then.boots;
    model->versions.items = then.versions.items;
    model->versions.n = then.versions.n;
    model->versions.room = then.versions.room;
    model->version = then.version + 1; /* the standby counts on its own: to those who come to it all is new */
    model->acts = then.acts + 1;
    for (size_t i = 0; i < model->outbox.n; i++) /* of transactions that were open then: nobody ends them */
        model->outbox.items[i].gone |= !model->outbox.items[i].visible;
    if (reuse)
        return;
    model->next_outbox = then.next_outbox;
    model->next_retry = then.next_retry;
    model->next_lane = then.next_lane;
    model->next_claim = then.next_claim;
}

void hk_model_handle_moved(struct hk_model_handle *handle)
{
    handle->unproven = true;
    handle->upkeep_at_ms = INT64_MIN;
    handle->lost_at_poll |= handle->polled ? HK_MODEL_ALL_SHARDS : 0;
    handle->polled = false;
    handle->version = handle->late_from = handle->late_to = 0;
    handle->passed = 0;
}
