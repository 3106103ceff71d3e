/* SPDX-License-Identifier: Apache-2.0 */
/* Letters by keyset, grouped, counted and whole. Where masks apply, it reads payloads to find masked values in errors, and does not keep them. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <hikyaku/policy.h>

#include "base/str.h"
#include "base/url.h"
#include "desk/dead.h"
#include "desk/dead_look.h"
#include "desk/definitions.h"
#include "desk/forms.h"
#include "payload/target.h"

enum {
    EXPORT_PAGE = 50,
    LIST_PAGE = 500,
    LIMIT = 50,
    LIMIT_MAX = 100000,
    GROUPS_MAX = 10000,
};

/* Of each letter of a list, to find in its error what the masks hide; a larger payload hides the error instead. */
#define LOOK_BYTES ((size_t)256 << 10)
/* Of a page, so that 50 large payloads are not in memory at once. */
#define PAGE_BYTES ((uint64_t)4 << 20)

static enum hk_code no_memory(struct hk_err *err)
{
    return hk_err_set(err, HK_NOMEM, "out of memory");
}

static enum hk_code view_for(struct hk_desk *desk, const struct hk_caller *caller, struct hk_letter_view *out,
                             struct hk_err *err)
{
    struct hk_masks *masks = NULL;
    enum hk_code rc = hk_desk_masks(desk, caller, &masks, err);
    *out = (struct hk_letter_view){.desk = desk, .masks = masks, .opens = caller->reveal};
    return rc;
}

/* The next letters, in `mem`, once it is recorded that the caller sees what is masked in them. */
static enum hk_code next_page(struct hk_desk *desk, const struct hk_caller *caller,
                              const struct hk_letter_query *query, struct hk_letter_page *page,
                              struct hk_pool *mem, struct hk_letters *out, struct hk_err *err)
{
    int64_t ids[LIST_PAGE];
    const struct hk_letters *found = NULL;
    enum hk_code rc = desk->letters->list(desk->admin, query, page, &found, err);
    if (rc != HK_OK)
        return rc;
    *out = *found;
    hk_desk_keep(desk, mem);
    page->after_id = out->last_id;
    for (size_t i = 0; i < out->n && i < LIST_PAGE; i++)
        ids[i] = out->items[i].id;
    return hk_letters_reveal(desk, caller, ids, out->n, err);
}

/* ---- list ---- */

/* A letter as lists show it: without the payload, which was needed to mask its error. */
static bool copy_facts(struct hk_pool *mem, struct hk_letter *l)
{
    struct hk_str *const texts[] = {&l->message_id,     &l->event_type,  &l->destination, &l->key,
                                    &l->correlation_id, &l->traceparent, &l->reason,      &l->error,
                                    &l->failure_class,  &l->blame,       &l->fingerprint, &l->requeued_as,
                                    &l->resolution};
    static const struct hk_str none = {"", 0};
    l->headers = l->content_type = l->encoding = l->idempotency_key = l->policy = none;
    l->expires_at = l->error_detail = l->payload = none;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        texts[i]->ptr = texts[i]->len > 0 ? hk_pool_copy_str(mem, *texts[i]) : "";
        if (!texts[i]->ptr)
            return false;
    }
    return true;
}

static bool add_page(const struct hk_letter_view *view, bool briefly, struct hk_pool *mem,
                     const struct hk_letters *found, struct hk_dead_list *out)
{
    for (size_t i = 0; i < found->n; i++) {
        struct hk_letter *item = &out->items[out->n++];
        *item = found->items[i];
        if (briefly)
            item->error = (struct hk_str){"", 0};
        else
            hk_letter_veil_text(view, &found->items[i], mem, &item->error);
        if (!copy_facts(mem, item))
            return false;
    }
    return true;
}

/* Reads until there are enough, or until so many did not match that the caller gets what there is. */
static enum hk_code collect(const struct hk_letter_view *view, const struct hk_caller *caller,
                            const struct hk_letter_query *query, const struct hk_dead_list_ask *ask,
                            struct hk_pool *mem, struct hk_dead_list *out, struct hk_err *err)
{
    bool masked = view->masks && !ask->briefly;
    struct hk_letter_page page = {.after_id = (int64_t)ask->after,
                                  .oldest_first = ask->oldest,
                                  .details = masked, /* headers: as the payload */
                                  .payload_max = masked ? LOOK_BYTES : 0,
                                  .bytes_max = PAGE_BYTES};
    struct hk_letters found = {.more = true};
    size_t room = 0;
    uint64_t scan = hk_list_scan(ask->scan, query->match != NULL), looked = 0;
    enum hk_code rc = HK_OK;
    while (found.more && out->n < ask->limit && looked - out->n < scan && rc == HK_OK) {
        struct hk_pool scratch = {.blocks = NULL};
        page.looks = scan - (looked - out->n);
        page.limit = (uint32_t)(ask->limit - out->n < LIST_PAGE ? ask->limit - out->n : LIST_PAGE);
        rc = next_page(view->desk, caller, query, &page, &scratch, &found, err);
        if (rc == HK_OK) {
            looked += found.looked;
            out->items = hk_desk_grow(mem, out->items, out->n, &room, found.n, sizeof *out->items);
            rc = out->items && add_page(view, ask->briefly, mem, &found, out) ? HK_OK : no_memory(err);
        }
        out->now_ms = found.now_ms;
        hk_pool_fini(&scratch);
    }
    out->next = found.more ? page.after_id : 0;
    out->looked = found.more && out->n < ask->limit ? looked : 0;
    return rc;
}

static enum hk_code dead_list(struct hk_desk *desk, const struct hk_caller *caller,
                              const struct hk_dead_list_ask *ask, struct hk_pool *mem,
                              struct hk_dead_list *out, struct hk_err *err)
{
    struct hk_letter_filter filter;
    struct hk_letter_view view;
    enum hk_code rc = hk_letter_filter(desk, caller, &ask->words, false, mem, &filter, err);
    if (rc != HK_OK)
        return rc;
    hk_letter_query_tells(&filter.query, &caller);
    rc = view_for(desk, caller, &view, err);
    if (rc == HK_OK)
        rc = collect(&view, caller, &filter.query, ask, mem, out, err);
    hk_letter_filter_free(&filter);
    return rc;
}

/* ---- groups ---- */

static enum hk_code look_at_groups(const struct hk_letter_view *view, const struct hk_letter_query *query,
                                   const struct hk_dead_groups_ask *ask, struct hk_pool *mem,
                                   struct hk_letter_groups *out, struct hk_err *err)
{
    const struct hk_letter_groups_page page = {.limit = (uint32_t)ask->limit,
                                               .looks = hk_list_scan(ask->scan, query->match != NULL),
                                               .after_id = (int64_t)ask->after};
    const struct hk_letter_groups *found = NULL;
    enum hk_code rc = view->desk->letters->groups_page(view->desk->admin, query, &page, &found, err);
    if (rc != HK_OK)
        return rc;
    *out = *found;
    hk_desk_keep(view->desk, mem);
    for (size_t i = 0; i < out->n; i++) {
        struct hk_letter_group *g = &out->items[i];
        /* of its payload nothing is known but that there may be one */
        const struct hk_letter example = {
            .id = g->example_id, .event_type = g->example_event_type, .payload_bytes = 1};
        hk_letter_veil_text(view, &example, mem, &g->example_error);
    }
    return HK_OK;
}

/* One question for each group: an index answers it. Together they look at as many letters as the groups did, and at none that the groups
 * did not come to. */
static enum hk_code add_hours(struct hk_desk *desk, uint64_t scan, struct hk_letter_groups *groups,
                              struct hk_pool *mem, struct hk_err *err)
{
    struct hk_letter_span span = {.from_id = groups->next, .looks = hk_list_scan(scan, false)};
    enum hk_code rc = HK_OK;
    for (size_t i = 0; rc == HK_OK && i < groups->n; i++) {
        struct hk_letter_group *g = &groups->items[i];
        const char *print = g->fingerprint.len ? hk_pool_copy_str(mem, g->fingerprint) : NULL;
        uint64_t *hours = hk_pool_alloc(mem, HK_LETTER_HOURS, sizeof *hours);
        if (!hours || (g->fingerprint.len && !print))
            return hk_err_set(err, HK_NOMEM, "out of memory");
        memset(hours, 0, HK_LETTER_HOURS * sizeof *hours);
        if (print)
            rc = desk->letters->hours(desk->admin, print, &span, hours, err);
        g->hours = hours;
    }
    return rc;
}

static enum hk_code dead_groups(struct hk_desk *desk, const struct hk_caller *caller,
                                const struct hk_dead_groups_ask *ask, struct hk_pool *mem,
                                struct hk_letter_groups *out, struct hk_err *err)
{
    struct hk_letter_filter filter;
    struct hk_letter_view view;
    enum hk_code rc = hk_letter_filter(desk, caller, &ask->words, false, mem, &filter, err);
    if (rc != HK_OK)
        return rc;
    hk_letter_query_tells(&filter.query, &caller);
    rc = view_for(desk, caller, &view, err);
    if (rc == HK_OK)
        rc = look_at_groups(&view, &filter.query, ask, mem, out, err);
    if (rc == HK_OK && ask->hours)
        rc = add_hours(desk, ask->scan, out, mem, err);
    hk_letter_filter_free(&filter);
    return rc;
}

/* ---- stats ---- */

uint64_t hk_letter_stats_total(const struct hk_letter_stats *stats)
{
    uint64_t n = 0;
    for (size_t i = 0; i < HK_NLETTER_STATUSES; i++)
        n += stats->by_status[i];
    return n;
}

static enum hk_code dead_stats(struct hk_desk *desk, const struct hk_caller *caller, const void *request,
                               struct hk_pool *mem, struct hk_letter_stats *out, struct hk_err *err)
{
    const struct hk_letter_stats *stats = NULL;
    (void)caller, (void)request;
    enum hk_code rc = desk->letters->stats(desk->admin, &stats, err);
    if (rc != HK_OK)
        return rc;
    *out = *stats;
    hk_desk_keep(desk, mem);
    return HK_OK;
}

/* ---- show ---- */

static enum hk_code pick_version(const struct hk_letter_shown *shown, uint64_t wanted, struct hk_letter *out,
                                 struct hk_err *err)
{
    *out = shown->letter;
    if (wanted == 0 || wanted == out->version)
        return HK_OK;
    for (size_t i = 0; i < shown->n_versions; i++) {
        const struct hk_letter_version *v = &shown->versions[i];
        if (v->version == wanted) {
            out->payload = v->payload;
            out->payload_bytes = v->payload_bytes;
            out->version = v->version;
            out->has_payload = true;
            return HK_OK;
        }
    }
    return hk_err_set(err, HK_NOTFOUND, "letter %" PRId64 " has no version %" PRIu64, out->id, wanted);
}

/* Everything that a mask hides is gone from the result: so are payloads that were only read to find that. */
static void veil_all(const struct hk_letter_view *alone, struct hk_pool *mem, struct hk_dead_shown *s)
{
    const struct hk_letter_shown history = s->all;
    const struct hk_letter_view whole = {alone->desk, alone->masks, &history, alone->opens}, *view = &whole;
    for (size_t i = 0; i < s->all.n_attempts; i++)
        hk_letter_veil_attempt(view, &history.letter, mem, &s->all.attempts[i]);
    s->cut = s->letter.payload.len < s->letter.payload_bytes;
    s->masked = hk_masks_fit(view->masks, s->letter.event_type);
    hk_letter_veil(view, mem, &s->letter);
    s->all.letter.error = s->letter.error;
    s->all.letter.error_detail = s->letter.error_detail;
    s->all.letter.headers = s->letter.headers;
    s->all.letter.payload = (struct hk_str){"", 0};
    for (size_t i = 0; i < s->all.n_versions; i++)
        s->all.versions[i].payload = (struct hk_str){"", 0};
}

static bool add_url(struct hk_desk *desk, const struct hk_caller *caller, struct hk_pool *mem,
                    struct hk_dead_shown *s)
{
    char room[HK_URL_SHOWN_MAX], own[HK_TARGET_URL_MAX + 1] = "";
    const struct hk_conf_destination *conf = NULL;
    struct hk_err err = {.message = ""};
    enum hk_code rc = hk_desk_destination(desk, s->letter.destination, false, mem, &conf, &err);
    if (rc != HK_OK || !conf || !conf->http.url) /* a broker's is of no use to who tries a request by hand */
        return true;
    const char *whole = conf->http.url, *shown = hk_conf_url(conf, room);
    if (hk_conf_is_targeted(conf) && hk_target_read(s->letter.headers, HK_TARGET_URL, own, sizeof own)) {
        whole = own;
        shown = hk_url_show(hk_str_of(own), room);
    }
    s->url = hk_pool_copy_str(mem, hk_str_of(caller->reveal ? whole : shown));
    return s->url != NULL;
}

static enum hk_code dead_show(struct hk_desk *desk, const struct hk_caller *caller,
                              const struct hk_dead_show_ask *ask, struct hk_pool *mem,
                              struct hk_dead_shown *out, struct hk_err *err)
{
    const struct hk_letter_shown *shown = NULL;
    struct hk_letter_view view;
    int64_t id = 0;
    enum hk_code rc = view_for(desk, caller, &view, err);
    if (rc == HK_OK)
        rc = hk_letter_find(desk, ask->id, ask->destination, &id, err);
    if (rc == HK_OK)
        rc = hk_letters_reveal(desk, caller, &id, 1, err);
    if (rc == HK_OK)
        rc = desk->letters->show(desk->admin, id, HK_LETTER_BYTES, &shown, err);
    if (rc != HK_OK)
        return rc;
    out->all = *shown;
    hk_desk_keep(desk, mem);
    rc = pick_version(&out->all, ask->payload_version, &out->letter, err);
    if (rc != HK_OK)
        return rc;
    if (hk_str_eq(out->all.letter.reason, hk_str_of("UNKNOWN_DESTINATION")))
        out->near = hk_destinations_near(desk->config, out->all.letter.destination, mem);
    veil_all(&view, mem, out);
    return add_url(desk, caller, mem, out) ? HK_OK : no_memory(err);
}

/* ---- export ---- */

/* False: no more is wanted. */
static bool export_page(const struct hk_letter_view *view, const struct hk_dead_export_ask *ask,
                        const struct hk_letters *found, struct hk_dead_exported *out)
{
    for (size_t i = 0; i < found->n; i++) {
        struct hk_letter letter = found->items[i];
        struct hk_pool mem = {.blocks = NULL};
        bool cut = letter.has_payload && letter.payload.len < letter.payload_bytes;
        hk_letter_veil(view, &mem, &letter);
        bool more = ask->take(ask->arg, &letter, cut);
        hk_pool_fini(&mem);
        if (!more)
            return false;
        out->letters++;
        out->cut += cut;
    }
    return true;
}

static enum hk_code export_all(const struct hk_letter_view *view, const struct hk_caller *caller,
                               const struct hk_letter_query *query, const struct hk_dead_export_ask *ask,
                               struct hk_dead_exported *out, struct hk_err *err)
{
    struct hk_letter_page page = {.limit = EXPORT_PAGE,
                                  .oldest_first = true,
                                  .details = true,
                                  .payload_max = HK_LETTER_BYTES,
                                  .bytes_max = PAGE_BYTES};
    struct hk_letters found = {.more = true};
    enum hk_code rc = HK_OK;
    while (rc == HK_OK && found.more) {
        struct hk_pool mem = {.blocks = NULL};
        if (hk_caller_stops(caller))
            return hk_err_set(err, HK_CANCELLED, "stopped after %" PRIu64 " letters, before the last one",
                              out->letters);
        rc = next_page(view->desk, caller, query, &page, &mem, &found, err);
        if (rc == HK_OK && !export_page(view, ask, &found, out))
            found.more = false;
        hk_pool_fini(&mem);
        hk_caller_progress(caller, out->letters, 0);
    }
    return rc;
}

static enum hk_code dead_export(struct hk_desk *desk, const struct hk_caller *caller,
                                const struct hk_dead_export_ask *ask, struct hk_pool *mem,
                                struct hk_dead_exported *out, struct hk_err *err)
{
    struct hk_letter_filter filter;
    struct hk_letter_view view;
    enum hk_code rc = hk_letter_filter(desk, caller, &ask->words, false, mem, &filter, err);
    if (rc != HK_OK)
        return rc;
    rc = view_for(desk, caller, &view, err);
    if (rc == HK_OK)
        rc = export_all(&view, caller, &filter.query, ask, out, err);
    hk_letter_filter_free(&filter);
    return rc;
}

/* ---- reasons ---- */

static enum hk_code dead_reasons(struct hk_desk *desk, const struct hk_caller *caller, const void *request,
                                 struct hk_pool *mem, struct hk_reason_rows *out, struct hk_err *err)
{
    (void)desk, (void)caller, (void)request;
    while (hk_reason_name(out->n))
        out->n++;
    out->items = hk_pool_alloc(mem, out->n + 1, sizeof *out->items);
    if (!out->items)
        return no_memory(err);
    for (size_t i = 0; i < out->n; i++)
        out->items[i] = (struct hk_reason_row){
            hk_reason_name(i), hk_reason_rule(i),
            hk_blame_name(hk_blame_of(hk_str_of(hk_reason_name(i)), hk_str_of(""), 0))};
    return HK_OK;
}

/* ---- the table ---- */

/* The words are the first that each of these requests has. */
static enum hk_code check_words(struct hk_desk *desk, const void *request, struct hk_err *err)
{
    static_assert(offsetof(struct hk_dead_list_ask, words) == 0 &&
                      offsetof(struct hk_dead_groups_ask, words) == 0 &&
                      offsetof(struct hk_dead_export_ask, words) == 0,
                  "a request begins with its words");
    return hk_letter_words_check(desk, request, err);
}

HK_OP_RUN(dead_list)
HK_OP_RUN(dead_groups)
HK_OP_RUN(dead_stats)
HK_OP_RUN(dead_show)
HK_OP_RUN(dead_export)
HK_OP_RUN(dead_reasons)

static const struct hk_arg list_args[] = {
    HK_LETTER_WORDS(hk_dead_list_ask, words),
    {.name = "limit",
     .kind = HK_ARG_NUMBER,
     .offset = offsetof(struct hk_dead_list_ask, limit),
     .lo = 1,
     .hi = LIMIT_MAX,
     .fallback = LIMIT,
     .value = "N",
     .help = "at most this many (default: 50)"},
    {.name = "after",
     .kind = HK_ARG_NUMBER,
     .offset = offsetof(struct hk_dead_list_ask, after),
     .lo = 1,
     .hi = (double)INT64_MAX,
     .value = "CURSOR",
     .help = "continue where an earlier list ended"},
    {.name = "oldest", .offset = offsetof(struct hk_dead_list_ask, oldest), .help = "oldest first"},
    {HK_LIST_SCAN_ARG(hk_dead_list_ask, "letters")},
    {.name = NULL}};

static const struct hk_arg groups_args[] = {
    HK_LETTER_WORDS(hk_dead_groups_ask, words),
    {.name = "limit",
     .kind = HK_ARG_NUMBER,
     .offset = offsetof(struct hk_dead_groups_ask, limit),
     .lo = 1,
     .hi = GROUPS_MAX,
     .fallback = LIMIT,
     .value = "N",
     .help = "at most this many (default: 50)"},
    {.name = "after",
     .kind = HK_ARG_NUMBER,
     .offset = offsetof(struct hk_dead_groups_ask, after),
     .lo = 1,
     .hi = (double)INT64_MAX,
     .value = "CURSOR",
     .help = "continue where an earlier answer ended"},
    {HK_ARG(hk_dead_groups_ask, scan, HK_ARG_NUMBER, "N",
            "count this many letters, newest first (default: 30000, or 10000 where payloads are read)"),
     .lo = 1, .hi = 1000000000},
    {HK_ARG(hk_dead_groups_ask, hours, HK_ARG_FLAG, NULL,
            "with how many open letters of each group failed in each of the last 24 hours")},
    {.name = NULL}};

static const struct hk_arg show_args[] = {
    HK_LETTER_SUBJECT(hk_dead_show_ask, id),
    {.name = "payload_version",
     .kind = HK_ARG_NUMBER,
     .offset = offsetof(struct hk_dead_show_ask, payload_version),
     .lo = 1,
     .hi = UINT32_MAX,
     .value = "N",
     .help = "an earlier payload instead of the present one (1 is the original)"},
    HK_LETTER_DESTINATION(hk_dead_show_ask, destination),
    {.name = NULL}};

static const struct hk_arg export_args[] = {HK_LETTER_WORDS(hk_dead_export_ask, words), {.name = NULL}};

const struct hk_op hk_op_dead_list = {
    .noun = "dead",
    .verb = "list",
    .summary = "list dead letters, newest first; the open ones unless --status says otherwise",
    .details =
        "Where no index serves the filter, the list stops after --scan letters, and says how to continue.",
    .route = "GET /dead-letters",
    .role = HK_ROLE_VIEWER,
    .store = true,
    .reveals = true,
    .args = list_args,
    .request_size = sizeof(struct hk_dead_list_ask),
    .result_size = sizeof(struct hk_dead_list),
    .check = check_words,
    .run = dead_list_op,
    .form = hk_form_letters};

const struct hk_op hk_op_dead_groups = {
    .noun = "dead",
    .verb = "groups",
    .summary = "group dead letters that failed in the same way, the largest group first",
    .details = "Letters of one group have the same destination, reason code and failure class, and the same\n"
               "error but for ids and numbers. --group narrows every other command down to one. With more\n"
               "letters than --scan the newest are counted, and a line says so.",
    .route = "GET /dead-letters/groups",
    .role = HK_ROLE_VIEWER,
    .store = true,
    .args = groups_args,
    .request_size = sizeof(struct hk_dead_groups_ask),
    .result_size = sizeof(struct hk_letter_groups),
    .check = check_words,
    .run = dead_groups_op,
    .form = hk_form_letter_groups};

const struct hk_op hk_op_dead_show = {
    .noun = "dead",
    .verb = "show",
    .summary = "show everything about one dead letter: reason, payload, attempts, and what people did",
    .details = "ID is the letter's, or a message's id. --curl prints the request to try by hand.",
    .route = "GET /dead-letters/{id}",
    .role = HK_ROLE_VIEWER,
    .store = true,
    .reveals = true,
    .args = show_args,
    .request_size = sizeof(struct hk_dead_show_ask),
    .result_size = sizeof(struct hk_dead_shown),
    .run = dead_show_op,
    .form = hk_form_letter};

const struct hk_op hk_op_dead_stats = {
    .noun = "dead",
    .verb = "stats",
    .summary = "count letters by day, reason and type; show the oldest, and how requeues ended",
    .route = "GET /dead-letters/stats",
    .role = HK_ROLE_VIEWER,
    .store = true,
    .result_size = sizeof(struct hk_letter_stats),
    .run = dead_stats_op,
    .form = hk_form_letter_stats};

const struct hk_op hk_op_dead_export = {.noun = "dead",
                                        .verb = "export",
                                        .summary = "write whole letters as NDJSON, oldest first",
                                        .route = "GET /dead-letters/export",
                                        .role = HK_ROLE_VIEWER,
                                        .store = true,
                                        .reveals = true,
                                        .is_long = true,
                                        .args = export_args,
                                        .request_size = sizeof(struct hk_dead_export_ask),
                                        .result_size = sizeof(struct hk_dead_exported),
                                        .check = check_words,
                                        .run = dead_export_op};

const struct hk_op hk_op_dead_reasons = {.noun = "dead",
                                         .verb = "reasons",
                                         .summary = "list every reason code with its rule",
                                         .route = "GET /dead-letters/reasons",
                                         .role = HK_ROLE_VIEWER,
                                         .result_size = sizeof(struct hk_reason_rows),
                                         .run = dead_reasons_op,
                                         .form = hk_form_reasons};
