/* SPDX-License-Identifier: Apache-2.0 */
/* Combines the figures of several relays about a destination. */
#include "base/str.h"
#include "store/figures.h"

bool hk_figure_is_held(const struct hk_figure *figure)
{
    return hk_str_eq(figure->breaker, hk_str_of(HK_FIGURES_HELD));
}

void hk_unusable_add(struct hk_unusable *out, const struct hk_figure *f)
{
    out->relays++;
    if (out->relays == 1 || f->last_error_ms < out->since_ms) {
        out->why = f->last_error;
        out->since_ms = f->last_error_ms;
    }
}

void hk_figures_unusable(const struct hk_figures *figures, struct hk_str destination, struct hk_unusable *out)
{
    *out = (struct hk_unusable){.why = {"", 0}};
    for (size_t i = 0; i < figures->n; i++)
        if (hk_figure_is_held(&figures->items[i]) && hk_str_eq(figures->items[i].destination, destination))
            hk_unusable_add(out, &figures->items[i]);
}

/* What a relay tells again, so that it stays told, is no sign that anything happened. */
static bool is_idle(const struct hk_figure *f)
{
    return !f->seen && !f->sent && !f->failed && !f->dead && !f->in_flight;
}

static void add_fresh(struct hk_figures_sum *out, const struct hk_figure *f)
{
    double seconds = (double)f->window_ms / 1000;
    out->known = true;
    if (f->window_ms > 0) {
        out->in_per_s += (double)f->seen / seconds;
        out->out_per_s += (double)f->sent / seconds;
    }
    out->sent += f->sent;
    out->failed += f->failed;
    out->dead += f->dead;
    out->in_flight += f->in_flight;
    out->half_open |= hk_str_eq(f->breaker, hk_str_of("half_open"));
    /* of a breaker that is open the store tells, and more exactly */
    if (f->ready_at_ms > f->at_ms && hk_str_eq(f->breaker, hk_str_of("closed"))) {
        out->limited = true;
        if (f->ready_at_ms > out->ready_at_ms)
            out->ready_at_ms = f->ready_at_ms;
    }
    hk_histogram_merge(&out->latency, &f->latency);
}

void hk_figures_sum(const struct hk_figures *figures, struct hk_str destination, struct hk_figures_sum *out)
{
    *out = (struct hk_figures_sum){.last_error = {"", 0}, .unusable = {.why = {"", 0}}};
    for (size_t i = 0; i < figures->n; i++) {
        const struct hk_figure *f = &figures->items[i];
        if (!hk_str_eq(f->destination, destination))
            continue;
        bool held = hk_figure_is_held(f);
        if (f->fresh && !(held && is_idle(f)))
            add_fresh(out, f);
        if (held)
            hk_unusable_add(&out->unusable, f);
        else if (f->last_error.len > 0 && f->last_error_ms >= out->last_error_ms) {
            out->last_error = f->last_error;
            out->last_error_ms = f->last_error_ms;
        }
    }
}
