/* SPDX-License-Identifier: Apache-2.0 */
/* A metric is a dense array of atomic cells, one for each combination of its labels' values (a histogram: one for each
 * bucket and one for the sum). Nothing is allocated after the start, so adding never fails and never waits.
 *
 * Destinations come and go, with the configuration and while the relay runs. Each has a slot; a slot that was given up is taken again as late as
 * possible, so that who still counts for the old one does not count for a new one. Only names need a lock: it is held
 * while they change and while a reader copies them, never while text is made. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <hikyaku/policy.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"
#include "observe/metrics.h"

enum {
    DEST_VALUES = HK_METRIC_DESTS + 1,
    HASH_SIZE = 1024, /* a power of two, four times the slots: few probes */
    INFORM_MAX = 1024
};

typedef _Atomic int64_t cell;

struct metric {
    size_t dims[HK_METRIC_LABELS]; /* how many values each label has; 1 without one */
    size_t width;                  /* cells of a series */
    cell *cells;
    struct hk_buf informed; /* labels that all of its series have */
};

struct names {
    char name[HK_METRIC_DESTS][HK_NAME_MAX]; /* "" = free */
    int64_t since_ms[HK_METRIC_DESTS];       /* when it got its place */
};

struct hk_metrics {
    const struct hk_metric_def *defs;
    size_t n;
    pthread_mutex_t lock; /* held to change names and hash, and by others than who changes them to read */
    struct names names;
    uint16_t hash[HASH_SIZE]; /* slot + 1; 0 = nobody */
    size_t next_slot;
    int64_t since_ms;
    void (*look)(void *arg);
    void *look_arg;
    struct metric metrics[];
};

static const char other[] = "other";

/* ---- making ---- */

static size_t values_of(const struct hk_metric_label *label)
{
    size_t n = 0;
    if (!label->values)
        return label->name ? DEST_VALUES : 1;
    while (label->values[n])
        n++;
    return n;
}

static bool of_dests(const struct hk_metric_label *label)
{
    return label->name && !label->values;
}

static size_t n_cells(const struct metric *m)
{
    return m->dims[0] * m->dims[1] * m->width;
}

static bool make(const struct hk_metric_def *def, struct metric *m)
{
    for (size_t i = 0; i < HK_METRIC_LABELS; i++)
        m->dims[i] = values_of(&def->labels[i]);
    m->width = def->type == HK_METRIC_HISTOGRAM ? def->n_bounds + 2 : 1;
    hk_buf_init(&m->informed, INFORM_MAX);
    m->cells = hk_mem_zalloc(n_cells(m), sizeof *m->cells);
    for (size_t i = 0; m->cells && def->type == HK_METRIC_GAUGE && i < n_cells(m); i++)
        atomic_init(&m->cells[i], HK_METRIC_UNKNOWN);
    return m->cells != NULL;
}

static int64_t wall_ms(void)
{
    struct timespec ts = {0};
    (void)clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

enum hk_code hk_metrics_new(const struct hk_metric_def *defs, size_t n_defs, struct hk_metrics **out_metrics,
                            struct hk_err *err)
{
    struct hk_metrics *all = hk_mem_zalloc(1, sizeof *all + n_defs * sizeof all->metrics[0]);
    if (!all)
        return hk_err_set(err, HK_NOMEM, "out of memory for metrics");
    (void)pthread_mutex_init(&all->lock, NULL);
    all->defs = defs;
    all->since_ms = wall_ms();
    for (size_t i = 0; i < n_defs; i++)
        assert(defs[i].n_bounds <= HK_METRIC_BOUNDS);
    for (bool made = true; made && all->n < n_defs; all->n++)
        made = make(&defs[all->n], &all->metrics[all->n]);
    if (n_defs > 0 && !all->metrics[n_defs - 1].cells) {
        hk_metrics_free(all);
        return hk_err_set(err, HK_NOMEM, "out of memory for metrics");
    }
    *out_metrics = all;
    return HK_OK;
}

void hk_metrics_free(struct hk_metrics *all)
{
    if (!all)
        return;
    for (size_t i = 0; i < all->n; i++) {
        hk_mem_free(all->metrics[i].cells);
        hk_buf_fini(&all->metrics[i].informed);
    }
    (void)pthread_mutex_destroy(&all->lock);
    hk_mem_free(all);
}

/* ---- counting ---- */

static cell *cells_at(struct hk_metrics *all, size_t metric, size_t i, size_t j)
{
    struct metric *m = &all->metrics[metric];
    i = i < m->dims[0] ? i : m->dims[0] - 1;
    j = j < m->dims[1] ? j : m->dims[1] - 1;
    return &m->cells[(i * m->dims[1] + j) * m->width];
}

void hk_metrics_add(struct hk_metrics *all, size_t metric, size_t i, size_t j, uint64_t n)
{
    atomic_fetch_add_explicit(cells_at(all, metric, i, j), (int64_t)n, memory_order_relaxed);
}

void hk_metrics_set(struct hk_metrics *all, size_t metric, size_t i, size_t j, int64_t value)
{
    atomic_store_explicit(cells_at(all, metric, i, j), value, memory_order_relaxed);
}

int64_t hk_metrics_get(struct hk_metrics *all, size_t metric, size_t i, size_t j)
{
    return atomic_load_explicit(cells_at(all, metric, i, j), memory_order_relaxed);
}

void hk_metrics_observe(struct hk_metrics *all, size_t metric, size_t i, uint64_t value)
{
    const struct hk_metric_def *def = &all->defs[metric];
    cell *cells = cells_at(all, metric, i, 0);
    size_t bucket = 0;
    while (bucket < def->n_bounds && value > def->bounds[bucket])
        bucket++;
    atomic_fetch_add_explicit(&cells[bucket], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&cells[def->n_bounds + 1], (int64_t)value, memory_order_relaxed);
}

/* ---- destinations ---- */

static size_t hash_of(struct hk_str name)
{
    uint32_t h = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < name.len; i++)
        h = (h ^ (unsigned char)name.ptr[i]) * 16777619u;
    return h & (HASH_SIZE - 1);
}

/* Where it stands, or would stand. */
static size_t find_in_hash(const struct hk_metrics *all, struct hk_str name)
{
    size_t at = hash_of(name);
    while (all->hash[at] && !hk_str_eq(hk_str_of(all->names.name[all->hash[at] - 1]), name))
        at = (at + 1) & (HASH_SIZE - 1);
    return at;
}

size_t hk_metrics_dest(const struct hk_metrics *all, struct hk_str name)
{
    uint16_t slot = name.len < HK_NAME_MAX ? all->hash[find_in_hash(all, name)] : 0;
    return slot ? slot - 1u : HK_METRIC_OTHER;
}

size_t hk_metrics_find_dest(struct hk_metrics *all, struct hk_str name)
{
    (void)pthread_mutex_lock(&all->lock);
    size_t found = hk_metrics_dest(all, name);
    (void)pthread_mutex_unlock(&all->lock);
    return found;
}

static void clear_row(struct hk_metrics *all, size_t metric, size_t dest)
{
    struct metric *m = &all->metrics[metric];
    size_t row = m->dims[1] * m->width;
    if (!of_dests(&all->defs[metric].labels[0]))
        return;
    int64_t none = all->defs[metric].type == HK_METRIC_GAUGE ? HK_METRIC_UNKNOWN : 0;
    for (size_t i = 0; i < row; i++)
        atomic_store_explicit(&m->cells[dest * row + i], none, memory_order_relaxed);
}

static void clear_slot(struct hk_metrics *all, size_t slot)
{
    all->names.name[slot][0] = '\0';
    for (size_t i = 0; i < all->n; i++)
        clear_row(all, i, slot);
}

static void rehash(struct hk_metrics *all)
{
    memset(all->hash, 0, sizeof all->hash);
    for (size_t i = 0; i < HK_METRIC_DESTS; i++)
        if (all->names.name[i][0])
            all->hash[find_in_hash(all, hk_str_of(all->names.name[i]))] = (uint16_t)(i + 1);
}

static void take_slot(struct hk_metrics *all, const char *name)
{
    size_t len = strlen(name);
    if (len == 0 || len >= HK_NAME_MAX || strcmp(name, other) == 0)
        return;
    for (size_t i = 0; i < HK_METRIC_DESTS; i++) {
        size_t slot = all->next_slot++ % HK_METRIC_DESTS;
        if (all->names.name[slot][0])
            continue;
        memcpy(all->names.name[slot], name, len + 1);
        all->names.since_ms[slot] = wall_ms();
        all->hash[find_in_hash(all, hk_str_of(name))] = (uint16_t)(slot + 1);
        return;
    }
}

void hk_metrics_destinations(struct hk_metrics *all, const char *const *names, size_t n)
{
    bool kept[HK_METRIC_DESTS] = {false};
    (void)pthread_mutex_lock(&all->lock);
    for (size_t i = 0; i < n; i++) {
        size_t slot = hk_metrics_dest(all, hk_str_of(names[i]));
        if (slot != HK_METRIC_OTHER)
            kept[slot] = true;
    }
    for (size_t i = 0; i < HK_METRIC_DESTS; i++)
        if (all->names.name[i][0] && !kept[i])
            clear_slot(all, i);
    rehash(all);
    for (size_t i = 0; i < n; i++)
        if (hk_metrics_dest(all, hk_str_of(names[i])) == HK_METRIC_OTHER)
            take_slot(all, names[i]);
    (void)pthread_mutex_unlock(&all->lock);
}

size_t hk_metrics_add_dest(struct hk_metrics *all, struct hk_str name)
{
    char text[HK_NAME_MAX];
    size_t found = hk_metrics_dest(all, name);
    if (found != HK_METRIC_OTHER || !hk_str_copy(text, sizeof text, name))
        return found;
    (void)pthread_mutex_lock(&all->lock);
    take_slot(all, text);
    (void)pthread_mutex_unlock(&all->lock);
    return hk_metrics_dest(all, name);
}

void hk_metrics_drop_dest(struct hk_metrics *all, size_t dest)
{
    if (dest >= HK_METRIC_DESTS)
        return;
    (void)pthread_mutex_lock(&all->lock);
    clear_slot(all, dest);
    rehash(all);
    (void)pthread_mutex_unlock(&all->lock);
}

/* ---- showing ---- */

/* Ill-formed UTF-8 would make Prometheus refuse the whole page. */
static void add_escaped(struct hk_buf *out, struct hk_str s)
{
    while (s.len) {
        uint32_t c;
        size_t n = hk_utf8_next(s, &c);
        if (c == HK_UTF8_BAD)
            hk_buf_adds(out, "\xef\xbf\xbd");
        else if (c == '\n')
            hk_buf_adds(out, "\\n");
        else if (c == '\\' || c == '"')
            hk_buf_addf(out, "\\%c", (char)c);
        else
            hk_buf_add(out, s.ptr, n);
        s = (struct hk_str){s.ptr + n, s.len - n};
    }
}

static void add_label(struct hk_buf *out, const char *name, const char *value)
{
    if (out->len)
        hk_buf_addc(out, ',');
    hk_buf_addf(out, "%s=\"", name);
    add_escaped(out, hk_str_of(value));
    hk_buf_addc(out, '"');
}

enum hk_code hk_metrics_inform(struct hk_metrics *all, size_t metric, const char *label, const char *value)
{
    struct hk_buf *informed = &all->metrics[metric].informed;
    add_label(informed, label, value);
    return hk_buf_status(informed);
}

#define NUMBER_MAX 32

/* Whole numbers of 10^-decimals, without the zeros at the end. */
static const char *format(uint64_t v, unsigned decimals, char out[NUMBER_MAX])
{
    char digits[NUMBER_MAX];
    int n = snprintf(digits, sizeof digits, "%0*llu", (int)decimals + 1, (unsigned long long)v);
    size_t whole = (size_t)n - decimals, end = (size_t)n;
    while (end > whole && digits[end - 1] == '0')
        end--;
    memcpy(out, digits, whole);
    out[whole] = end > whole ? '.' : '\0';
    memcpy(out + whole + 1, digits + whole, end - whole);
    out[end + (end > whole)] = '\0';
    return out;
}

struct page { /* one reader's work */
    struct hk_metrics *all;
    struct names names; /* as they were when it began */
    struct hk_buf *out;
    struct hk_buf labels; /* of the series at hand */
    enum hk_code status;  /* a series without its labels would be another one: then there is no page */
};

static void add_sample(struct page *p, const struct hk_metric_def *def, const char *suffix, const char *le,
                       int64_t v, unsigned decimals)
{
    hk_buf_addf(p->out, "%s%s", def->name, suffix);
    if (p->labels.len || le) {
        hk_buf_addf(p->out, "{%s", hk_buf_cstr(&p->labels));
        if (le)
            hk_buf_addf(p->out, "%sle=\"%s\"", p->labels.len ? "," : "", le);
        hk_buf_addc(p->out, '}');
    }
    char number[NUMBER_MAX];
    uint64_t size = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    hk_buf_addf(p->out, " %s%s\n", v < 0 ? "-" : "", format(size, decimals, number));
}

static void add_histogram(struct page *p, const struct hk_metric_def *def, cell *cells)
{
    int64_t count = 0;
    char le[NUMBER_MAX];
    for (size_t i = 0; i <= def->n_bounds; i++) {
        count += atomic_load_explicit(&cells[i], memory_order_relaxed);
        add_sample(p, def, "_bucket", i < def->n_bounds ? format(def->bounds[i], def->decimals, le) : "+Inf",
                   count, 0);
    }
    int64_t sum = atomic_load_explicit(&cells[def->n_bounds + 1], memory_order_relaxed);
    add_sample(p, def, "_sum", NULL, sum, def->decimals);
    add_sample(p, def, "_count", NULL, count, 0);
}

/* What was not configured, or does not fit any more, is shown when it happened. */
static bool all_zero(const struct metric *m, cell *cells)
{
    for (size_t i = 0; i < m->width; i++)
        if (atomic_load_explicit(&cells[i], memory_order_relaxed))
            return false;
    return true;
}

void hk_metrics_on_look(struct hk_metrics *all, void (*fn)(void *arg), void *arg)
{
    all->look = fn;
    all->look_arg = arg;
}

void hk_metrics_look(struct hk_metrics *all)
{
    if (all->look)
        all->look(all->look_arg);
}

/* False: there is no such series now. */
static bool label_series(struct page *p, const struct hk_metric_def *def, const size_t at[HK_METRIC_LABELS])
{
    for (size_t i = 0; i < HK_METRIC_LABELS; i++) {
        const struct hk_metric_label *label = &def->labels[i];
        if (of_dests(label)) {
            const char *name = at[i] == HK_METRIC_OTHER ? other : p->names.name[at[i]];
            if (!name[0])
                return false;
            add_label(&p->labels, label->name, name);
        } else if (label->values && label->name) {
            add_label(&p->labels, label->name, label->values[at[i]]);
        } else if (label->values) {
            hk_buf_addf(&p->labels, "%s%s", p->labels.len ? "," : "", label->values[at[i]]);
        }
    }
    return true;
}

/* The series at hand is shown: its labels stand in `labels`. */
static bool is_shown(struct page *p, size_t metric, size_t i, size_t j)
{
    const struct hk_metric_def *def = &p->all->defs[metric];
    const struct metric *m = &p->all->metrics[metric];
    cell *cells = cells_at(p->all, metric, i, j);
    hk_buf_reset(&p->labels);
    hk_buf_adds(&p->labels, hk_buf_cstr(&m->informed));
    if (!label_series(p, def, (size_t[]){i, j}))
        return false;
    if (hk_buf_status(&p->labels) != HK_OK) {
        p->status = hk_buf_status(&p->labels);
        return false;
    }
    if (of_dests(&def->labels[0]) && i == HK_METRIC_OTHER && all_zero(m, cells))
        return false;
    return def->type != HK_METRIC_GAUGE ||
           atomic_load_explicit(cells, memory_order_relaxed) != HK_METRIC_UNKNOWN;
}

static void add_series(struct page *p, size_t metric, size_t i, size_t j)
{
    const struct hk_metric_def *def = &p->all->defs[metric];
    cell *cells = cells_at(p->all, metric, i, j);
    if (!is_shown(p, metric, i, j))
        return;
    if (def->type == HK_METRIC_HISTOGRAM)
        add_histogram(p, def, cells);
    else
        add_sample(p, def, "", NULL, atomic_load_explicit(cells, memory_order_relaxed), def->decimals);
}

static void add_metric(struct page *p, size_t metric)
{
    static const char *const types[] = {
        [HK_METRIC_COUNTER] = "counter", [HK_METRIC_GAUGE] = "gauge", [HK_METRIC_HISTOGRAM] = "histogram"};
    const struct hk_metric_def *def = &p->all->defs[metric];
    const struct metric *m = &p->all->metrics[metric];
    hk_buf_addf(p->out, "# HELP %s %s\n# TYPE %s %s\n", def->name, def->help, def->name, types[def->type]);
    for (size_t i = 0; i < m->dims[0]; i++)
        for (size_t j = 0; j < m->dims[1]; j++)
            add_series(p, metric, i, j);
}

static void read_names(struct hk_metrics *all, struct page *p)
{
    (void)pthread_mutex_lock(&all->lock);
    p->names = all->names;
    (void)pthread_mutex_unlock(&all->lock);
}

void hk_metrics_write(struct hk_metrics *all, struct hk_buf *out)
{
    struct page p = {.all = all, .out = out};
    hk_buf_init(&p.labels, 4096);
    read_names(all, &p);
    for (size_t i = 0; i < all->n; i++)
        add_metric(&p, i);
    hk_buf_fini(&p.labels);
    if (p.status != HK_OK && hk_buf_status(out) == HK_OK)
        out->status = p.status;
}

/* ---- showing to programs ---- */

static void read_sample(struct page *p, size_t metric, size_t i, size_t j, uint64_t *counts,
                        struct hk_metric_sample *out)
{
    const struct hk_metric_def *def = &p->all->defs[metric];
    bool dest = of_dests(&def->labels[0]) && i < HK_METRIC_DESTS;
    cell *cells = cells_at(p->all, metric, i, j);
    *out = (struct hk_metric_sample){.def = def,
                                     .labels = hk_buf_cstr(&p->labels),
                                     .since_ms = dest ? p->names.since_ms[i] : p->all->since_ms};
    if (def->type != HK_METRIC_HISTOGRAM) {
        out->value = atomic_load_explicit(cells, memory_order_relaxed);
        return;
    }
    for (size_t k = 0; k <= def->n_bounds && k <= HK_METRIC_BOUNDS; k++) {
        counts[k] = (uint64_t)atomic_load_explicit(&cells[k], memory_order_relaxed);
        out->count += counts[k];
    }
    out->counts = counts;
    out->sum = atomic_load_explicit(&cells[def->n_bounds + 1], memory_order_relaxed);
}

bool hk_metrics_each(struct hk_metrics *all,
                     void (*fn)(void *arg, const struct hk_metric_def *def, const struct hk_metric_sample *sample),
                     void *arg)
{
    uint64_t counts[HK_METRIC_BOUNDS + 1];
    struct hk_metric_sample sample;
    struct page p = {.all = all};
    hk_buf_init(&p.labels, 4096);
    read_names(all, &p);
    for (size_t m = 0; m < all->n; m++) {
        const struct metric *metric = &all->metrics[m];
        fn(arg, &all->defs[m], NULL);
        for (size_t i = 0; i < metric->dims[0]; i++)
            for (size_t j = 0; j < metric->dims[1]; j++)
                if (is_shown(&p, m, i, j)) {
                    read_sample(&p, m, i, j, counts, &sample);
                    fn(arg, &all->defs[m], &sample);
                }
    }
    hk_buf_fini(&p.labels);
    return p.status == HK_OK;
}
