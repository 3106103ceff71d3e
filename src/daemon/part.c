/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the process beside the relay, one line each. */
#include "daemon/part.h"

const struct hk_part_ops *const hk_parts[] = {
    &hk_part_admin, /* first: the others count in its metrics */
    &hk_part_service, &hk_part_telemetry, &hk_part_figures, &hk_part_alerts, &hk_part_jobs, NULL,
};

_Static_assert(sizeof hk_parts / sizeof hk_parts[0] <= HK_PARTS_MAX + 1, "there is room for each");

enum hk_code hk_parts_start(struct hk_parts *p, struct hk_part_env *env, struct hk_err *err)
{
    *p = (struct hk_parts){.env = env};
    for (; hk_parts[p->n]; p->n++) {
        enum hk_code rc = hk_parts[p->n]->start(env, &p->parts[p->n], &p->watches[p->n], err);
        if (rc != HK_OK) {
            hk_parts_stop(p);
            return rc;
        }
        if (p->parts[p->n] && hk_parts[p->n]->metrics)
            env->metrics = hk_parts[p->n]->metrics(p->parts[p->n]);
    }
    return HK_OK;
}

void hk_parts_kept(struct hk_parts *p)
{
    for (size_t i = 0; i < p->n && hk_parts[i]; i++)
        if (p->parts[i] && hk_parts[i]->kept)
            hk_parts[i]->kept(p->parts[i]);
}

void hk_parts_draining(struct hk_parts *p)
{
    for (size_t i = 0; i < p->n && hk_parts[i]; i++)
        if (p->parts[i] && hk_parts[i]->draining)
            hk_parts[i]->draining(p->parts[i]);
}

void hk_parts_reloading(struct hk_parts *p)
{
    for (size_t i = 0; i < p->n && hk_parts[i]; i++)
        if (p->parts[i] && hk_parts[i]->reloading)
            hk_parts[i]->reloading(p->parts[i]);
}

void hk_parts_reloaded(struct hk_parts *p)
{
    for (size_t i = 0; i < p->n && hk_parts[i]; i++)
        if (p->parts[i] && hk_parts[i]->reloaded)
            hk_parts[i]->reloaded(p->parts[i]);
}

void hk_parts_stop(struct hk_parts *p)
{
    while (p->n > 0) {
        p->n--;
        if (p->parts[p->n])
            hk_parts[p->n]->stop(p->parts[p->n]);
    }
}
