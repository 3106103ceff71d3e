/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/str.h"
#include "daemon/meter_names.h"

enum {
    FULL_MS = 1000 /* when nobody can give way, it is not looked for again at once */
};

void hk_meter_names_init(struct hk_meter_names *n, struct hk_metrics *metrics)
{
    *n = (struct hk_meter_names){.m = metrics};
}

static void set_name(struct hk_meter_names *n, size_t at, struct hk_meter_name name)
{
    if (at < HK_METRIC_DESTS)
        n->names[at] = name;
}

static struct hk_meter_name name_of(struct hk_str text, size_t place, bool of_file)
{
    struct hk_meter_name name = {.place = place, .of_file = of_file};
    (void)hk_str_copy(name.name, sizeof name.name, text);
    return name;
}

/* The configuration's first, then those of the store that have a value already, as long as there is room. */
void hk_meter_names_configure(struct hk_meter_names *n, const struct hk_config *config)
{
    struct hk_meter_name before[HK_METRIC_DESTS];
    const char *list[HK_METRIC_DESTS];
    const struct hk_conf_destination *conf = NULL;
    size_t n_file = 0, count = 0;
    memcpy(before, n->names, sizeof before);
    for (; n_file < HK_METRIC_DESTS && (conf = hk_config_destination(config, n_file)) != NULL; n_file++)
        list[n_file] = conf->name;
    count = n_file;
    for (size_t i = 0; i < HK_METRIC_DESTS && count < HK_METRIC_DESTS; i++)
        if (before[i].name[0] && !before[i].of_file)
            list[count++] = before[i].name;
    hk_metrics_destinations(n->m, list, count);
    memset(n->names, 0, sizeof n->names);
    for (size_t i = 0; i < count; i++) {
        struct hk_str text = hk_str_of(list[i]);
        set_name(n, hk_metrics_dest(n->m, text), name_of(text, i < n_file ? i : SIZE_MAX, i < n_file));
    }
    n->looked = false;
    n->full_until_ms = 0;
}

/* ---- those of the store ---- */

static void drop_gone(struct hk_meter_names *n, const struct hk_kept *kept)
{
    bool there[HK_METRIC_DESTS] = {false};
    struct hk_kept_view view;
    for (size_t i = 0; hk_kept_view(kept, i, &view); i++) {
        size_t at = hk_metrics_dest(n->m, hk_str_of(view.name));
        if (at == HK_METRIC_OTHER || view.of_file)
            continue;
        there[at] = true;
        n->names[at].place = view.place;
    }
    for (size_t i = 0; i < HK_METRIC_DESTS; i++) {
        if (!n->names[i].name[0] || n->names[i].of_file || there[i])
            continue;
        hk_metrics_drop_dest(n->m, i);
        n->names[i] = (struct hk_meter_name){.place = 0};
    }
}

static void add_new(struct hk_meter_names *n, const struct hk_kept *kept)
{
    struct hk_kept_view view;
    size_t left = 0;
    for (size_t i = 0; i < HK_METRIC_DESTS; i++)
        left += n->names[i].name[0] == '\0';
    for (size_t i = 0; left > 0 && hk_kept_view(kept, i, &view); i++) {
        struct hk_str text = hk_str_of(view.name);
        if (view.of_file || hk_metrics_dest(n->m, text) != HK_METRIC_OTHER)
            continue;
        size_t at = hk_metrics_add_dest(n->m, text);
        set_name(n, at, name_of(text, view.place, false));
        left -= at != HK_METRIC_OTHER;
    }
}

void hk_meter_names_look(struct hk_meter_names *n, const struct hk_kept *kept)
{
    uint64_t changes = hk_kept_changes(kept);
    if (n->looked && n->changes == changes)
        return;
    drop_gone(n, kept);
    add_new(n, kept);
    n->changes = changes;
    n->looked = true;
    n->full_until_ms = 0;
}

/* ---- attempts ---- */

/* The one that gives way; HK_METRIC_OTHER: nobody does. */
static size_t longest_idle(const struct hk_meter_names *n, int64_t now_ms)
{
    size_t found = HK_METRIC_OTHER;
    for (size_t i = 0; i < HK_METRIC_DESTS; i++) {
        const struct hk_meter_name *name = &n->names[i];
        bool idle = !name->used_ms || now_ms - name->used_ms >= HK_METER_IDLE_MS;
        if (!name->name[0] || name->of_file || !idle)
            continue;
        if (found == HK_METRIC_OTHER || name->used_ms < n->names[found].used_ms)
            found = i;
    }
    return found;
}

static size_t make_room(struct hk_meter_names *n, struct hk_str text, size_t place, int64_t now_ms)
{
    size_t at = hk_metrics_add_dest(n->m, text);
    size_t idle = at == HK_METRIC_OTHER ? longest_idle(n, now_ms) : HK_METRIC_OTHER;
    if (idle != HK_METRIC_OTHER) {
        hk_metrics_drop_dest(n->m, idle);
        n->names[idle] = (struct hk_meter_name){.place = 0};
        at = hk_metrics_add_dest(n->m, text);
    }
    set_name(n, at, name_of(text, place, false));
    n->full_until_ms = at == HK_METRIC_OTHER ? now_ms + FULL_MS : 0;
    return at;
}

size_t hk_meter_names_use(struct hk_meter_names *n, struct hk_str text, size_t place, int64_t now_ms)
{
    size_t at = hk_metrics_dest(n->m, text);
    if (at == HK_METRIC_OTHER && now_ms >= n->full_until_ms)
        at = make_room(n, text, place, now_ms);
    if (at == HK_METRIC_OTHER)
        return at;
    n->names[at].used_ms = now_ms;
    n->names[at].place = place;
    return at;
}
