/* SPDX-License-Identifier: Apache-2.0 */
/* Alerts and the store: looks, has core/alert.c decide, and writes what that says, with the notices, in one transaction. All
 * of it blocks, and none of it is the relay's own connection. */
#include <string.h>

#include "base/str.h"
#include "config/definition.h"
#include "daemon/alerts.h"
#include "desk/letters.h"
#include "exec/clock.h"
#include "observe/crash.h"

#define PAYLOAD_MAX ((size_t)1 << 20)
#define TEXT_MAX    ((size_t)4 << 20)

enum {
    FIGURES_SHARE = 50
};

enum hk_code hk_alerts_rounds_init(struct hk_alerts_rounds *rounds, const char *url, const char *relay,
                                   struct hk_err *err)
{
    *rounds = (struct hk_alerts_rounds){.url = url,
                                        .relay = relay,
                                        .ops = hk_store_admin_by_url(url, err),
                                        .letters = hk_store_letters_by_url(url, err),
                                        .alerts = hk_store_alerts_by_url(url, err)};
    return rounds->ops && rounds->letters && rounds->alerts ? HK_OK : err->code;
}

void hk_alerts_rounds_close(struct hk_alerts_rounds *rounds)
{
    if (rounds->admin)
        rounds->ops->close(rounds->admin);
    rounds->admin = NULL;
}

static enum hk_code open_store(struct hk_alerts_rounds *rounds, struct hk_err *err)
{
    static const struct hk_store_options options = {.busy_ms = 5000};
    return rounds->admin ? HK_OK : rounds->ops->open(rounds->url, &options, &rounds->admin, err);
}

/* ---- what was seen, kept while more is asked ---- */

struct seen {
    struct hk_pool arena;
    struct hk_alerts_looked looked;
    struct hk_alert_facts facts;
    struct hk_alert_dest *dests;
    size_t n_dests;
    struct hk_alert_mute *mutes;
    bool failed;
};

static struct hk_str keep(struct seen *s, struct hk_str text)
{
    const char *copy = text.len ? hk_pool_copy_str(&s->arena, text) : "";
    s->failed = s->failed || !copy;
    return (struct hk_str){copy, copy ? text.len : 0};
}

static void keep_deaths(struct seen *s, const struct hk_alerts_looked *looked)
{
    struct hk_alert_deaths *out = hk_pool_alloc(&s->arena, looked->n_deaths + 1, sizeof *out);
    s->failed = s->failed || !out;
    for (size_t i = 0; i < looked->n_deaths && !s->failed; i++) {
        out[i] = looked->deaths[i];
        out[i].destination = keep(s, out[i].destination);
        out[i].reason = keep(s, out[i].reason);
        out[i].event_type = keep(s, out[i].event_type);
        out[i].message_id = keep(s, out[i].message_id);
    }
    s->facts.deaths = out;
    s->facts.n_deaths = looked->n_deaths;
}

static enum hk_code keep_alerts(struct seen *s, const struct hk_alerts_looked *looked,
                                struct hk_alert_board *board)
{
    enum hk_code rc = HK_OK;
    for (size_t i = 0; i < looked->n_alerts && rc == HK_OK && !s->failed; i++) {
        struct hk_alert a = looked->alerts[i];
        a.rule = keep(s, a.rule);
        a.destination = keep(s, a.destination);
        a.reason = keep(s, a.reason);
        a.event_type = keep(s, a.event_type);
        a.example_id = keep(s, a.example_id);
        a.detail = keep(s, a.detail);
        a.fields = keep(s, a.fields);
        rc = hk_alert_board_add(board, &a);
    }
    return rc;
}

static void keep_rest(struct seen *s, const struct hk_alerts_looked *looked)
{
    s->mutes = hk_pool_alloc(&s->arena, looked->n_mutes + 1, sizeof *s->mutes);
    s->dests = hk_pool_alloc(&s->arena, looked->n_dests + 1, sizeof *s->dests);
    s->failed = s->failed || !s->mutes || !s->dests;
    for (size_t i = 0; i < looked->n_mutes && !s->failed; i++) {
        s->mutes[i] = looked->mutes[i];
        s->mutes[i].rule = keep(s, looked->mutes[i].rule);
    }
    for (size_t i = 0; i < looked->n_dests && !s->failed; i++) {
        s->dests[i] = looked->dests[i];
        s->dests[i].name = keep(s, looked->dests[i].name);
        s->dests[i].detail = keep(s, looked->dests[i].detail);
    }
    s->n_dests = looked->n_dests;
    s->looked = *looked;
    s->looked.gaps = keep(s, looked->gaps);
    s->looked.deaths = NULL;
    s->looked.alerts = NULL;
    s->facts.now_ms = looked->now_ms;
    s->facts.progress = looked->progress;
}

/* Counts and ages; with the destinations that have letters. */
static enum hk_code keep_figures(struct seen *s, struct hk_alerts_rounds *rounds, struct hk_err *err)
{
    const struct hk_store_status *status = NULL;
    enum hk_code rc = rounds->ops->status(rounds->admin, &status, err);
    if (rc != HK_OK)
        return rc;
    struct hk_alert_dest *all = hk_pool_alloc(&s->arena, s->n_dests + status->n_dests + 1, sizeof *all);
    s->failed = s->failed || !all;
    if (!all)
        return HK_OK;
    memcpy(all, s->dests, s->n_dests * sizeof *all);
    size_t known = s->n_dests, n = known;
    for (size_t i = 0; i < status->n_dests && !s->failed; i++) {
        size_t k = 0;
        while (k < known && !hk_str_eq(all[k].name, status->dests[i].name))
            k++;
        if (k == known) {
            k = n++;
            all[k] = (struct hk_alert_dest){.name = keep(s, status->dests[i].name)};
        }
        all[k].dead = status->dests[i].dead.n;
    }
    s->dests = all;
    s->n_dests = n;
    s->facts.dead = status->dead.n;
    s->facts.oldest_ms = status->oldest_ms;
    return HK_OK;
}

/* Which destinations keep the order of keys: the configuration's, and those of the store for which something waits. */
static enum hk_code keep_ordered(struct seen *s, struct hk_alerts_rounds *rounds,
                                 const struct hk_alerts_plan *plan, struct hk_blocking **out, size_t *out_n,
                                 struct hk_err *err)
{
    const struct hk_definitions *kept = NULL;
    size_t n_names = 0, n = 0;
    struct hk_str *names = hk_pool_alloc(&s->arena, s->n_dests + 1, sizeof *names);
    for (size_t i = 0; names && i < s->n_dests; i++)
        if (s->dests[i].name.len && !hk_alerts_plan_names(plan, s->dests[i].name.ptr))
            names[n_names++] = s->dests[i].name;
    enum hk_code rc =
        names && n_names ? rounds->ops->definitions_of(rounds->admin, names, n_names, &kept, err) : HK_OK;
    if (rc != HK_OK)
        return rc;
    struct hk_blocking *items = hk_pool_alloc(&s->arena, plan->n_ordered + n_names + 1, sizeof *items);
    s->failed = s->failed || !names || !items;
    for (size_t i = 0; !s->failed && i < plan->n_ordered; i++)
        items[n++] = plan->ordered[i];
    for (size_t i = 0; !s->failed && kept && i < kept->n; i++) {
        struct hk_definition_order order = hk_config_definition_order(kept->items[i].text);
        if (order.by_key)
            items[n++] = (struct hk_blocking){.destination = keep(s, kept->items[i].name).ptr,
                                              .skip_dead = order.skip_dead};
    }
    *out = items;
    *out_n = n;
    return HK_OK;
}

/* What waits, and whether it could have gone. What relays saw lately is told by them, and may be missing. */
static enum hk_code keep_waiting(struct seen *s, struct hk_alerts_rounds *rounds,
                                 const struct hk_alerts_plan *plan, struct hk_err *err)
{
    const struct hk_figures none = {.n = 0}, *figures = NULL;
    const struct hk_waiting *waiting = NULL;
    struct hk_err no_figures = {.message = ""};
    struct hk_blocking *ordered = NULL;
    size_t n_ordered = 0;
    enum hk_code rc = keep_ordered(s, rounds, plan, &ordered, &n_ordered, err);
    if (rc != HK_OK || s->failed)
        return rc;
    if (rounds->ops->figures(rounds->admin, &figures, &no_figures) != HK_OK)
        figures = &none;
    rc = rounds->ops->waiting(rounds->admin, ordered, n_ordered, &waiting, err);
    if (rc != HK_OK)
        return rc;
    s->facts.dests = s->dests;
    s->facts.n_dests = s->n_dests;
    hk_alerts_judge_waiting(plan, waiting, figures, &s->facts);
    s->facts.oldest_dest = keep(s, hk_alerts_cut(s->facts.oldest_dest));
    s->facts.due_dest = keep(s, hk_alerts_cut(s->facts.due_dest));
    return HK_OK;
}

/* However large the outbox is, the store spends one part in FIGURES_SHARE of its time on figures: rules that need them are
 * looked at less often then. */
static enum hk_code keep_counts(struct seen *s, struct hk_alerts_rounds *rounds,
                                const struct hk_alerts_plan *plan, struct hk_err *err)
{
    int64_t began_us = hk_clock_us();
    if (began_us < rounds->figures_at_us)
        return HK_OK;
    enum hk_code rc = keep_figures(s, rounds, err);
    if (rc == HK_OK)
        rc = keep_waiting(s, rounds, plan, err);
    int64_t ended_us = hk_clock_us();
    rounds->figures_at_us = ended_us + (ended_us - began_us) * FIGURES_SHARE;
    s->facts.figures = rc == HK_OK;
    return rc;
}

/* ---- the last error of an example, masked ---- */

static void mask_error(struct seen *s, const struct hk_masks *masks, const struct hk_letter_shown *shown,
                       struct hk_buf *out)
{
    const struct hk_letter *l = &shown->letter;
    struct hk_mask_about about;
    if (hk_letter_about(l, shown, &s->arena, &about) != HK_OK)
        s->failed = true;
    else if (about.partial && hk_masks_fit(masks, l->event_type))
        (void)hk_buf_adds(out, "(hidden: masks apply, and the payload is too large)");
    else
        s->failed = hk_mask_about(masks, &about, l->error, out) != HK_OK || s->failed;
}

/* A letter that is gone meanwhile has nothing to show. */
static enum hk_code read_letter(struct hk_alerts_rounds *rounds, const struct hk_alerts_plan *plan,
                                struct seen *s, struct hk_alert *a, const struct hk_alert_rule *rule,
                                struct hk_err *err)
{
    const struct hk_letter_shown *shown = NULL;
    struct hk_buf text;
    size_t payload_max = plan->masks || rule->n_fields ? PAYLOAD_MAX : 0;
    enum hk_code rc = rounds->letters->show(rounds->admin, a->letter_id, payload_max, &shown, err);
    if (rc != HK_OK)
        return rc == HK_NOTFOUND ? HK_OK : rc;
    hk_buf_init(&text, TEXT_MAX);
    mask_error(s, plan->masks, shown, &text);
    if (!s->failed)
        a->detail = keep(s, hk_alerts_cut(hk_buf_str(&text)));
    hk_buf_reset(&text);
    if (!s->failed && hk_alerts_name_fields(plan->masks, rule, shown, &s->arena, &text) != HK_OK)
        s->failed = true;
    if (!s->failed) {
        a->fields = keep(s, hk_buf_str(&text));
        a->example_id = keep(s, hk_alerts_cut(shown->letter.message_id));
    }
    hk_buf_fini(&text);
    return HK_OK;
}

/* ---- notices ---- */

struct notices {
    struct hk_alerts_notice *items;
    size_t n;
};

static void add_notices(struct seen *s, const struct hk_alerts_plan *plan, const struct hk_alert_board *board,
                        const struct hk_alert_tell *tell, struct notices *out)
{
    const struct hk_alert *a = &board->alerts[tell->alert];
    struct hk_notice notice;
    struct hk_buf facts;
    hk_alerts_notice_of(plan, a, tell->kind, s->facts.now_ms, &notice);
    s->failed =
        s->failed || hk_alerts_fields_of(a->fields, &s->arena, notice.fields, &notice.n_fields) != HK_OK;
    for (size_t i = 0; i < board->n; i++)
        if (hk_alert_is_line(board, tell, i))
            hk_alerts_notice_add_line(&notice, &board->alerts[i]);
    hk_buf_init(&facts, TEXT_MAX);
    hk_alerts_facts_write(&notice, &facts);
    s->failed = s->failed || hk_buf_status(&facts) != HK_OK;
    struct hk_str kept = keep(s, hk_buf_str(&facts));
    hk_buf_fini(&facts);
    for (size_t i = 0; i < plan->n_channels && !s->failed; i++)
        if (plan->rules[tell->rule].channels >> i & 1u)
            out->items[out->n++] = (struct hk_alerts_notice){.fingerprint = a->fingerprint,
                                                             .rule = plan->rules[tell->rule].name,
                                                             .channel = plan->channels[i].name,
                                                             .kind = tell->kind,
                                                             .facts = kept};
}

static enum hk_code make_notices(struct hk_alerts_rounds *rounds, const struct hk_alerts_plan *plan,
                                 struct seen *s, struct hk_alert_board *board, struct notices *out,
                                 struct hk_err *err)
{
    enum hk_code rc = HK_OK;
    out->items = hk_pool_alloc(&s->arena, board->n_tells * plan->n_channels + 1, sizeof *out->items);
    s->failed = s->failed || !out->items;
    for (size_t i = 0; i < board->n_tells && rc == HK_OK && !s->failed; i++) {
        struct hk_alert *a = &board->alerts[board->tells[i].alert];
        if (hk_alert_kind_has_letters(a->kind) && a->letter_id && board->tells[i].kind != HK_NOTICE_RESOLVED)
            rc = read_letter(rounds, plan, s, a, &plan->rules[board->tells[i].rule], err);
        add_notices(s, plan, board, &board->tells[i], out);
    }
    return rc;
}

/* ---- one evaluation ---- */

static void sum_up(const struct hk_alert_board *board, const struct hk_alerts_plan *plan,
                   const struct seen *s, struct hk_alerts_evaluated *out)
{
    out->mine = true;
    out->more = s->looked.more;
    out->told = board->n_tells;
    for (size_t i = 0; i < board->n; i++)
        out->firing += board->alerts[i].status == HK_ALERT_FIRING;
    for (size_t r = 0; r < plan->n_rules; r++)
        for (size_t i = 0; i < s->looked.n_mutes; i++)
            if (hk_alert_kind_is_own(plan->rules[r].kind) && !out->muted_ms[r] &&
                hk_str_eq(s->mutes[i].rule, hk_str_of(plan->rules[r].name)))
                out->muted_ms[r] = s->mutes[i].until_ms;
}

static enum hk_code judge(struct hk_alerts_rounds *rounds, const struct hk_alerts_plan *plan, struct seen *s,
                          struct hk_alert_board *board, struct hk_err *err)
{
    struct hk_alert_settings settings = plan->settings;
    struct notices notices = {.n = 0};
    enum hk_code rc = plan->figures ? keep_counts(s, rounds, plan, err) : HK_OK;
    if (rc != HK_OK)
        return rc;
    settings.mutes = s->mutes;
    settings.n_mutes = s->looked.n_mutes;
    s->facts.dests = s->dests;
    s->facts.n_dests = s->n_dests;
    if (!s->failed && hk_alert_evaluate(board, plan->rules, plan->n_rules, &settings, &s->facts) == HK_OK)
        rc = make_notices(rounds, plan, s, board, &notices, err);
    else
        s->failed = true;
    if (s->failed)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    if (rc != HK_OK)
        return rc;
    const struct hk_alerts_decided decided = {.looked = &s->looked,
                                              .relay = rounds->relay,
                                              .alerts = board->alerts,
                                              .n_alerts = board->n,
                                              .notices = notices.items,
                                              .n_notices = notices.n,
                                              .keep_ms = plan->keep_ms};
    return rounds->alerts->decide(rounds->admin, &decided, err);
}

enum hk_code hk_alerts_evaluate(struct hk_alerts_rounds *rounds, const struct hk_alerts_plan *plan,
                                struct hk_alerts_evaluated *out, struct hk_err *err)
{
    const struct hk_alerts_looked *looked = NULL;
    struct seen s = {.failed = false};
    struct hk_alert_board board;
    *out = (struct hk_alerts_evaluated){.mine = false};
    /* a little early, or timers would miss every other turn */
    uint64_t interval_ms = rounds->more ? 0 : plan->interval_ms - plan->interval_ms / 10;
    rounds->more = false;
    enum hk_code rc = open_store(rounds, err);
    if (rc == HK_OK)
        rc = rounds->alerts->look(rounds->admin, interval_ms, &looked, err);
    if (rc != HK_OK || !looked->due)
        return rc;
    hk_alert_board_init(&board);
    keep_deaths(&s, looked);
    keep_rest(&s, looked);
    rc = keep_alerts(&s, looked, &board);
    if (rc != HK_OK || s.failed)
        rc = hk_err_set(err, HK_NOMEM, "out of memory");
    if (rc == HK_OK)
        rc = judge(rounds, plan, &s, &board, err);
    if (rc == HK_OK)
        sum_up(&board, plan, &s, out);
    rounds->more = out->more;
    hk_alert_board_fini(&board);
    hk_pool_wipe(&s.arena);
    return rc == HK_BUSY ? HK_OK : rc; /* another relay was faster, or the store is busy: later */
}

enum hk_code hk_alerts_claim(struct hk_alerts_rounds *rounds, const struct hk_alerts_plan *plan,
                             uint32_t free, const struct hk_alerts_claims **out, struct hk_err *err)
{
    const char *names[HK_ALERTS_CHANNELS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < plan->n_channels; i++)
        if (free >> i & 1u)
            names[n++] = plan->channels[i].name;
    enum hk_code rc = open_store(rounds, err);
    if (rc == HK_OK)
        rc = rounds->alerts->claim(rounds->admin, rounds->relay, names, n, plan->lease_ms, out, err);
    if (rc == HK_OK && (*out)->n)
        hk_crash_point("alert-claimed");
    return rc;
}

enum hk_code hk_alerts_settle(struct hk_alerts_rounds *rounds, const struct hk_alerts_settle *settle,
                              struct hk_err *err)
{
    enum hk_code rc = open_store(rounds, err);
    return rc == HK_OK ? rounds->alerts->settle(rounds->admin, settle, err) : rc;
}
