/* SPDX-License-Identifier: Apache-2.0 */
/* Dead letters in figures: what failed alike, and how many of what. The server counts, from an index where it can; only what
 * SQL cannot say (query->match) is grouped here. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "store/pg/letters.h"

#define GROUPS_MAX UINT32_C(100000)
#define HOUR_MS    INT64_C(3600000)

/* ---- groups ---- */

/* Columns of HK_PL_GROUPS, and of a page's. */
enum {
    G_NOW,
    G_LETTERS,
    G_GROUPS,
    G_MAYBE_ALL,
    G_N,
    G_MAYBE,
    G_FIRST_MS,
    G_LAST_MS,
    G_EXAMPLE,
    G_FINGERPRINT,
    G_REASON,
    G_CLASS,
    G_FAULT,
    G_DESTINATION,
    G_ERROR,
    G_EVENT_TYPE,
    G_MESSAGE_ID,
    G_LOOKED,
    G_OLDEST,
    G_NEWEST
};

static void read_group(struct hk_pg *pg, const PGresult *res, int i, struct hk_letter_group *out)
{
    *out = (struct hk_letter_group){
        .n = hk_pa_u64(res, i, G_N),
        .maybe = hk_pa_u64(res, i, G_MAYBE),
        .first_ms = hk_pg_i64(res, i, G_FIRST_MS),
        .last_ms = hk_pg_i64(res, i, G_LAST_MS),
        .example_id = hk_pg_i64(res, i, G_EXAMPLE),
        .fingerprint = hk_pg_text(pg, res, i, G_FINGERPRINT),
        .reason = hk_pg_text(pg, res, i, G_REASON),
        .failure_class = hk_pg_text(pg, res, i, G_CLASS),
        .blame = hk_pg_text(pg, res, i, G_FAULT),
        .destination = hk_pg_text(pg, res, i, G_DESTINATION),
        .example_error = hk_pg_text(pg, res, i, G_ERROR),
        .example_event_type = hk_pg_text(pg, res, i, G_EVENT_TYPE),
        .example_message_id = hk_pg_text(pg, res, i, G_MESSAGE_ID),
    };
}

static void read_groups(struct hk_pg *pg, const PGresult *res, struct hk_letter_groups *out)
{
    int n = res && !hk_pg_null(res, 0, G_N) ? PQntuples(res) : 0;
    out->items = n ? hk_pg_alloc(pg, (size_t)n, sizeof *out->items) : NULL;
    for (int i = 0; i < n && out->items; i++)
        read_group(pg, res, i, &out->items[out->n++]);
    if (hk_pg_ok(pg)) {
        out->now_ms = hk_pg_now(pg, hk_pg_i64(res, 0, G_NOW));
        out->letters = hk_pa_u64(res, 0, G_LETTERS);
        out->maybe = hk_pa_u64(res, 0, G_MAYBE_ALL);
        out->more = hk_pa_u64(res, 0, G_GROUPS) > out->n;
    }
}

static void group_sql(struct hk_admin *admin, const struct hk_letter_query *query, uint32_t limit,
                      struct hk_letter_groups *out)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    int64_t above, below;
    hk_pl_bounds(query, &above, &below);
    hk_pl_arg_query(admin, &a, query, above, below);
    hk_pg_arg_i64(pg, &a, limit);
    PGresult *res = hk_pg_query(pg, false, HK_PL_GROUPS, &a);
    read_groups(pg, res, out);
    PQclear(res);
}

/* Groups by fingerprint: a table of places in `items`, from 1, open addressing. Newest first, so that the first of a group is
 * its example. */
struct grouper {
    struct hk_admin *admin;
    struct hk_letter_groups *out;
    size_t room;
    uint32_t *places;
    size_t n_places; /* a power of two; never more than half full */
};

static uint64_t hash_text(uint64_t hash, struct hk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        hash = (hash ^ (unsigned char)s.ptr[i]) * UINT64_C(0x100000001b3);
    return (hash ^ 0xff) * UINT64_C(0x100000001b3);
}

static uint64_t hash_of(struct hk_str fingerprint, struct hk_str reason, struct hk_str destination)
{
    uint64_t hash = hash_text(UINT64_C(0xcbf29ce484222325), fingerprint);
    return fingerprint.len ? hash : hash_text(hash_text(hash, reason), destination);
}

static bool is_of(const struct hk_letter_group *g, const struct hk_letter *l)
{
    return hk_str_eq(g->fingerprint, l->fingerprint) &&
           (g->fingerprint.len ||
            (hk_str_eq(g->reason, l->reason) && hk_str_eq(g->destination, l->destination)));
}

/* Where it is, or belongs. */
static size_t place_of(const struct grouper *g, const struct hk_letter *l)
{
    size_t at = (size_t)hash_of(l->fingerprint, l->reason, l->destination) & (g->n_places - 1);
    while (g->places[at] && !is_of(&g->out->items[g->places[at] - 1], l))
        at = (at + 1) & (g->n_places - 1);
    return at;
}

static bool grow_places(struct grouper *g)
{
    if (2 * (g->out->n + 1) <= g->n_places)
        return true;
    size_t n = g->n_places ? 2 * g->n_places : 64;
    uint32_t *places = hk_pg_alloc(&g->admin->pg, n, sizeof *places);
    if (!places)
        return false;
    for (size_t i = 0; i < g->out->n; i++) {
        const struct hk_letter_group *group = &g->out->items[i];
        size_t at = (size_t)hash_of(group->fingerprint, group->reason, group->destination) & (n - 1);
        while (places[at])
            at = (at + 1) & (n - 1);
        places[at] = (uint32_t)i + 1;
    }
    g->places = places;
    g->n_places = n;
    return true;
}

static bool add_group(struct grouper *g, const PGresult *res, int row, size_t at)
{
    struct hk_letter_groups *out = g->out;
    if (out->n == GROUPS_MAX) {
        out->more = true;
        return true;
    }
    struct hk_letter_group *items = hk_pa_grow(g->admin, out->items, out->n, &g->room, sizeof *items);
    struct hk_letter l;
    if (!items)
        return false;
    out->items = items;
    hk_pl_letter(&g->admin->pg, res, row, HK_PL_W_LETTER, true, &l);
    items[out->n++] = (struct hk_letter_group){
        .n = 1,
        .maybe = l.possibly_delivered,
        .first_ms = l.first_failed_ms,
        .last_ms = l.last_failed_ms,
        .example_id = l.id,
        .fingerprint = l.fingerprint,
        .reason = l.reason,
        .failure_class = l.failure_class,
        .blame = l.blame,
        .destination = l.destination,
        .example_error = l.error,
        .example_event_type = l.event_type,
        .example_message_id = l.message_id,
    };
    g->places[at] = (uint32_t)out->n;
    return hk_pg_ok(&g->admin->pg);
}

static bool take_letter(void *arg, const PGresult *res, int row, const struct hk_letter *letter)
{
    struct grouper *g = arg;
    g->out->letters++;
    g->out->maybe += letter->possibly_delivered;
    if (!grow_places(g))
        return false;
    size_t at = place_of(g, letter);
    if (!g->places[at])
        return add_group(g, res, row, at);
    struct hk_letter_group *group = &g->out->items[g->places[at] - 1];
    group->n++;
    group->maybe += letter->possibly_delivered;
    if (letter->first_failed_ms < group->first_ms)
        group->first_ms = letter->first_failed_ms;
    if (letter->last_failed_ms > group->last_ms)
        group->last_ms = letter->last_failed_ms;
    return true;
}

static int by_size(const void *a, const void *b)
{
    const struct hk_letter_group *x = a, *y = b;
    if (x->n != y->n)
        return x->n < y->n ? 1 : -1;
    return (x->example_id < y->example_id) - (x->example_id > y->example_id);
}

static void end_groups(const struct hk_pl_walk *walk, uint32_t limit, struct hk_letter_groups *out)
{
    out->now_ms = hk_pg_now(&walk->admin->pg, walk->now_ms);
    if (out->n > 1)
        qsort(out->items, out->n, sizeof *out->items, by_size);
    if (out->n > limit) {
        out->n = limit;
        out->more = true;
    }
}

static void group_here(struct hk_admin *admin, const struct hk_letter_query *query, uint32_t limit,
                       struct hk_letter_groups *out)
{
    struct grouper g = {.admin = admin, .out = out};
    struct hk_pl_walk walk;
    hk_pl_walk_init(&walk, admin, query);
    while (hk_pl_walk_on(&walk, take_letter, &g))
        continue;
    if (hk_pg_ok(&admin->pg))
        end_groups(&walk, limit, out);
}

/* ---- a page of letters ---- */

/* Where a page has come to. */
struct looked {
    uint64_t letters;
    int64_t oldest, newest;
    int64_t above; /* no letter of the query has this id, or a lower one */
};

/* What was found among the ids that were looked at is taken to hold for those below. */
static uint64_t estimate(struct hk_pg *pg, const struct looked *l, uint64_t n)
{
    PGresult *res = hk_pg_query(pg, false, HK_PL_FIRST_ID, NULL);
    int64_t lowest = res && PQntuples(res) == 1 ? hk_pg_i64(res, 0, 0) : l->oldest;
    PQclear(res);
    if (l->above >= lowest)
        lowest = l->above + 1;
    double seen = (double)l->newest - (double)l->oldest + 1, all = (double)l->newest - (double)lowest + 1;
    return all > seen ? (uint64_t)((double)n * (all / seen)) : n;
}

/* One more look: where the bound was the end there is no more. */
static void say_where(struct hk_admin *admin, const struct hk_letter_query *query, const struct looked *l,
                      struct hk_letter_groups *out)
{
    out->partial = hk_pl_has_more(admin, query, l->above, l->oldest);
    if (!out->partial)
        return;
    out->looked = l->letters;
    out->next = l->oldest;
    out->about = estimate(&admin->pg, l, out->letters);
}

static void group_page(struct hk_admin *admin, const struct hk_letter_query *query,
                       const struct hk_letter_groups_page *page, int64_t below, uint32_t limit,
                       struct hk_letter_groups *out)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    struct looked looked = {.letters = 0};
    int64_t unused;
    hk_pl_bounds(query, &looked.above, &unused);
    hk_pl_arg_query(admin, &a, query, looked.above, below);
    hk_pg_arg_i64(pg, &a, page->looks < INT64_MAX ? (int64_t)page->looks : INT64_MAX);
    hk_pg_arg_i64(pg, &a, limit);
    PGresult *res = hk_pg_query(pg, false, HK_PL_GROUPS_BY_ID + (unsigned)hk_pl_path_of(query), &a);
    read_groups(pg, res, out);
    if (hk_pg_ok(pg) && PQntuples(res) > 0 && !hk_pg_null(res, 0, G_OLDEST)) {
        looked.letters = hk_pa_u64(res, 0, G_LOOKED);
        looked.oldest = hk_pg_i64(res, 0, G_OLDEST);
        looked.newest = hk_pg_i64(res, 0, G_NEWEST);
    }
    PQclear(res);
    if (looked.letters >= page->looks)
        say_where(admin, query, &looked, out);
}

static void match_page(struct hk_admin *admin, const struct hk_letter_query *query,
                       const struct hk_letter_groups_page *page, int64_t below, uint32_t limit,
                       struct hk_letter_groups *out)
{
    struct grouper g = {.admin = admin, .out = out};
    struct hk_pl_walk walk;
    bool more = true;
    hk_pl_walk_init(&walk, admin, query);
    walk.below = below;
    while (more && walk.compared < page->looks) {
        uint64_t left = page->looks - walk.compared;
        walk.window = left < (uint64_t)walk.window ? (int64_t)left : walk.window;
        more = hk_pl_walk_on(&walk, take_letter, &g);
    }
    if (!hk_pg_ok(&admin->pg))
        return;
    end_groups(&walk, limit, out);
    PGresult *res = more ? hk_pg_query(&admin->pg, false, HK_PL_LAST_ID, NULL) : NULL;
    int64_t last = res && PQntuples(res) == 1 ? hk_pg_i64(res, 0, 0) : walk.below;
    PQclear(res);
    const struct looked looked = {walk.compared, walk.below, last < below ? last : below - 1, walk.above};
    if (more)
        say_where(admin, query, &looked, out);
}

enum hk_code hk_pl_groups_page(struct hk_admin *admin, const struct hk_letter_query *query,
                               const struct hk_letter_groups_page *page, const struct hk_letter_groups **out,
                               struct hk_err *err)
{
    hk_pg_call(&admin->pg);
    struct hk_letter_groups *groups = hk_pg_alloc(&admin->pg, 1, sizeof *groups);
    uint32_t limit = page->limit < GROUPS_MAX ? page->limit : GROUPS_MAX;
    int64_t above, below;
    hk_pl_bounds(query, &above, &below);
    if (page->after_id && page->after_id < below)
        below = page->after_id;
    if (groups && query->match)
        match_page(admin, query, page, below, limit, groups);
    else if (groups)
        group_page(admin, query, page, below, limit, groups);
    enum hk_code rc = hk_pl_end(admin, "group dead letters", err);
    if (rc == HK_OK)
        *out = groups;
    return rc;
}

/* ---- all of them ---- */

enum hk_code hk_pl_groups(struct hk_admin *admin, const struct hk_letter_query *query, uint32_t limit,
                          const struct hk_letter_groups **out, struct hk_err *err)
{
    hk_pg_call(&admin->pg);
    struct hk_letter_groups *groups = hk_pg_alloc(&admin->pg, 1, sizeof *groups);
    if (limit > GROUPS_MAX)
        limit = GROUPS_MAX;
    if (groups && query->match)
        group_here(admin, query, limit, groups);
    else if (groups)
        group_sql(admin, query, limit, groups);
    enum hk_code rc = hk_pl_end(admin, "group dead letters", err);
    if (rc == HK_OK)
        *out = groups;
    return rc;
}

enum hk_code hk_pl_hours(struct hk_admin *admin, const char *fingerprint, struct hk_letter_span *span,
                         uint64_t out[HK_LETTER_HOURS], struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    uint64_t hours[HK_LETTER_HOURS] = {0}, left = span->looks;
    hk_pg_call(pg);
    hk_pa_arg_now(admin, &a);
    hk_pg_arg_text(pg, &a, hk_str_of(fingerprint));
    hk_pg_arg_i64(pg, &a, HK_LETTER_HOURS);
    hk_pg_arg_i64(pg, &a, span->from_id ? span->from_id - 1 : INT64_MIN);
    hk_pg_arg_i64(pg, &a, span->looks < INT64_MAX ? (int64_t)span->looks : INT64_MAX);
    PGresult *res = hk_pg_query(pg, false, HK_PL_GROUP_HOURS, &a);
    for (int i = 0; res && i < PQntuples(res) && !hk_pg_null(res, i, 2); i++) {
        left -= hk_pa_u64(res, i, 2);
        if (hk_pg_null(res, i, 1))
            continue;
        int64_t now_hour = hk_pg_i64(res, i, 0) / HOUR_MS;
        int64_t at = hk_pg_i64(res, i, 1) - now_hour + HK_LETTER_HOURS - 1;
        if (at >= 0 && at < HK_LETTER_HOURS)
            hours[at] = hk_pa_u64(res, i, 2);
    }
    PQclear(res);
    enum hk_code rc = hk_pl_end(admin, "count a group's dead letters", err);
    if (rc == HK_OK) {
        memcpy(out, hours, sizeof hours);
        span->looks = left;
    }
    return rc;
}

/* ---- stats ---- */

/* Kinds of HK_PL_TALLIES. */
enum {
    T_STATUS,
    T_FAULT,
    T_AGAIN,
    T_REASON,
    T_EVENT_TYPE,
    T_DESTINATION
};

static void add_to_list(struct hk_pg *pg, const PGresult *res, int i, struct hk_tally **list, size_t *n)
{
    if (!*list)
        *list = hk_pg_alloc(pg, HK_STATS_TOP, sizeof **list);
    if (*list && *n < HK_STATS_TOP)
        (*list)[(*n)++] = (struct hk_tally){hk_pg_text(pg, res, i, 1), hk_pa_u64(res, i, 2)};
}

static void add_again(struct hk_letter_stats *out, enum hk_letter_status status, uint64_t n)
{
    out->requeued += n;
    switch (status) {
    case HK_LETTER_RESOLVED:
        out->requeued_resolved += n;
        break;
    case HK_LETTER_RETRYING:
        out->requeued_waiting += n;
        break;
    case HK_LETTER_FAILED:
    case HK_LETTER_DISCARDED:
    case HK_NLETTER_STATUSES:
        out->requeued_failed += n;
        break;
    }
}

static void read_tally(struct hk_pg *pg, const PGresult *res, int i, struct hk_letter_stats *out)
{
    struct hk_str name = hk_str_of(PQgetvalue(res, i, 1));
    uint64_t n = hk_pa_u64(res, i, 2);
    enum hk_letter_status status = HK_LETTER_DISCARDED;
    enum hk_blame blame = HK_BLAME_DESTINATION;
    switch (hk_pg_i64(res, i, 0)) {
    case T_STATUS:
        if (hk_letter_status_by_name(name, &status))
            out->by_status[status] += n;
        break;
    case T_FAULT:
        if (hk_blame_by_name(name, &blame))
            out->by_blame[blame] += n;
        break;
    case T_AGAIN:
        (void)hk_letter_status_by_name(name, &status);
        add_again(out, status, n);
        break;
    case T_REASON:
        add_to_list(pg, res, i, &out->reasons, &out->n_reasons);
        break;
    case T_EVENT_TYPE:
        add_to_list(pg, res, i, &out->event_types, &out->n_event_types);
        break;
    default: /* T_DESTINATION */
        add_to_list(pg, res, i, &out->destinations, &out->n_destinations);
        break;
    }
}

static void read_days(struct hk_pg *pg, const PGresult *res, struct hk_letter_stats *out)
{
    for (int i = 0; res && i < PQntuples(res) && i < HK_STATS_DAYS; i++) {
        out->days[i].day_ms = hk_pg_i64(res, i, 1);
        out->days[i].n = hk_pa_u64(res, i, 2);
    }
    if (res)
        out->now_ms = hk_pg_now(pg, hk_pg_i64(res, 0, 0));
}

static void read_longest(struct hk_pg *pg, const PGresult *res, struct hk_letter_stats *out)
{
    int n = res ? PQntuples(res) : 0;
    out->oldest = n ? hk_pg_alloc(pg, (size_t)n, sizeof *out->oldest) : NULL;
    for (int i = 0; i < n && out->oldest; i++)
        hk_pl_letter(pg, res, i, 0, true, &out->oldest[out->n_oldest++]);
}

static void ask_stats(struct hk_admin *admin)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args days = {.n = 0}, top = {.n = 0};
    hk_pa_arg_now(admin, &days);
    hk_pg_arg_i64(pg, &days, HK_STATS_DAYS);
    hk_pg_arg_i64(pg, &top, HK_STATS_TOP);
    hk_pg_begin(pg, false);
    hk_pg_add(pg, HK_PL_DAYS, &days);
    hk_pg_add(pg, HK_PL_LONGEST, &top);
    hk_pg_add(pg, HK_PL_SCANS, NULL); /* behind what indexes are better for */
    hk_pg_add(pg, HK_PL_TALLIES, NULL);
    hk_pg_send(pg);
}

static void read_stats(struct hk_pg *pg, struct hk_letter_stats *out)
{
    PGresult *days = hk_pg_result(pg), *longest = hk_pg_result(pg);
    read_days(pg, days, out);
    read_longest(pg, longest, out);
    PQclear(days);
    PQclear(longest);
    PQclear(hk_pg_result(pg));
    PGresult *tallies = hk_pg_result(pg);
    for (int i = 0; tallies && i < PQntuples(tallies); i++)
        read_tally(pg, tallies, i, out);
    PQclear(tallies);
}

enum hk_code hk_pl_stats(struct hk_admin *admin, const struct hk_letter_stats **out, struct hk_err *err)
{
    hk_pg_call(&admin->pg);
    struct hk_letter_stats *stats = hk_pg_alloc(&admin->pg, 1, sizeof *stats);
    ask_stats(admin);
    if (stats)
        read_stats(&admin->pg, stats);
    enum hk_code rc = hk_pl_end(admin, "count dead letters", err);
    if (rc == HK_OK)
        *out = stats;
    return rc;
}
