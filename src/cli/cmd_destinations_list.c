/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku destinations list: those of the configuration, and those that only the store knows. */
#include <inttypes.h>
#include <stdio.h>

#include "base/str.h"
#include "cli/args.h"
#include "cli/operate.h"
#include "cli/out.h"
#include "cli/table.h"

static const struct hk_dest_status *status_of(const struct hk_store_status *s, const char *name)
{
    for (size_t i = 0; i < s->n_dests; i++)
        if (hk_str_eq(s->dests[i].name, hk_str_of(name)))
            return &s->dests[i];
    return NULL;
}

/* Calls `each` for every destination once: `conf` or `state` may be NULL, not both. */
static void each_destination(const struct hk_config *config, const struct hk_store_status *s, void *arg,
                             void (*each)(void *arg, const struct hk_conf_destination *conf,
                                          const struct hk_dest_status *state))
{
    const struct hk_conf_destination *conf = NULL;
    for (size_t i = 0; (conf = hk_config_destination(config, i)) != NULL; i++)
        each(arg, conf, status_of(s, conf->name));
    for (size_t i = 0; i < s->n_dests; i++)
        if (hk_operate_destination(config, s->dests[i].name) == NULL)
            each(arg, NULL, &s->dests[i]);
}

static void limits_text(const struct hk_conf_limits *limits, char out[96])
{
    char rate[HK_OUT_TEXT];
    int used = 0;
    out[0] = '\0';
    if (limits->rate_per_s > 0)
        used = snprintf(out, 96, "%s/s", hk_out_rate(limits->rate_per_s, rate));
    if (limits->concurrency > 0)
        (void)snprintf(out + used, 96 - (size_t)used, "%s%" PRIu32 " at once", used > 0 ? ", " : "",
                       limits->concurrency);
    if (out[0] == '\0')
        (void)snprintf(out, 96, "-");
}

struct printer {
    struct hk_table table;
    struct hk_json json;
    int64_t now_ms;
};

static void add_state(struct hk_table *table, const struct hk_conf_destination *conf,
                      const struct hk_dest_status *state, int64_t now_ms)
{
    struct hk_buf text;
    hk_buf_init(&text, 1 << 16);
    if (conf == NULL && state->name.len > 0)
        (void)hk_buf_adds(&text, "not configured here; ");
    if (state != NULL)
        hk_operate_held(&text, state, now_ms);
    struct hk_str s = hk_buf_str(&text);
    if (s.len > 2 && s.ptr[s.len - 2] == ';')
        s.len -= 2;
    hk_table_add(table, s);
    hk_buf_fini(&text);
}

/* At least one of the two is there. */
static struct hk_str name_of(const struct hk_conf_destination *conf, const struct hk_dest_status *state)
{
    if (conf != NULL)
        return hk_str_of(conf->name);
    return state != NULL ? state->name : hk_str_of("");
}

static void add_row(void *arg, const struct hk_conf_destination *conf, const struct hk_dest_status *state)
{
    struct printer *p = arg;
    const struct hk_count none = {0, false};
    char limits[96] = "-", n[48], url[HK_URL_SHOWN_MAX];
    struct hk_str name = name_of(conf, state);
    hk_table_add(&p->table, hk_operate_to(name));
    if (conf != NULL)
        limits_text(&conf->limits, limits);
    hk_table_adds(&p->table, conf != NULL ? conf->policy : "-");
    hk_table_adds(&p->table, limits);
    hk_table_adds(&p->table, hk_operate_count(state != NULL ? state->pending : none, n));
    hk_table_adds(&p->table, hk_operate_count(state != NULL ? state->retrying : none, n));
    hk_table_adds(&p->table, hk_operate_count(state != NULL ? state->dead : none, n));
    hk_table_adds(&p->table, conf != NULL ? hk_conf_target(conf, url) : "-");
    add_state(&p->table, conf, state, p->now_ms);
}

static void put_conf(struct hk_json *json, const struct hk_conf_destination *conf)
{
    char url[HK_URL_SHOWN_MAX];
    hk_put_cstr(json, "kind", conf != NULL ? hk_conf_kind_name(conf->kind) : NULL);
    hk_put_cstr(json, "url", conf != NULL ? hk_conf_url(conf, url) : NULL);
    hk_put_str(json, "policy", hk_str_of(conf != NULL ? conf->policy : NULL));
    hk_json_key(json, "rate_per_s");
    if (conf != NULL && conf->limits.rate_per_s > 0)
        hk_json_double(json, conf->limits.rate_per_s);
    else
        hk_json_null(json);
    hk_json_key(json, "concurrency");
    if (conf != NULL && conf->limits.concurrency > 0)
        hk_json_u64(json, conf->limits.concurrency);
    else
        hk_json_null(json);
    hk_put_str(json, "order", hk_str_of(conf == NULL ? NULL : conf->order == HK_ORDER_KEY ? "key" : "none"));
}

static void put_row(void *arg, const struct hk_conf_destination *conf, const struct hk_dest_status *state)
{
    struct printer *p = arg;
    const struct hk_dest_status nothing = {.name = {"", 0}, .actor = {"", 0}, .reason = {"", 0}};
    struct hk_str name = name_of(conf, state);
    if (state == NULL)
        state = &nothing;
    hk_json_object(&p->json);
    hk_json_key(&p->json, "name");
    hk_json_str(&p->json, name);
    hk_put_bool(&p->json, "configured", conf != NULL);
    put_conf(&p->json, conf);
    hk_put_count(&p->json, "pending", state->pending);
    hk_put_count(&p->json, "retrying", state->retrying);
    hk_put_count(&p->json, "dead", state->dead);
    hk_put_held(&p->json, state);
    hk_json_end(&p->json);
}

static void write_table(const struct hk_operate *op, const struct hk_store_status *status, struct hk_buf *out)
{
    static const struct hk_table_column columns[] = {
        {"DESTINATION", false, 40}, {"POLICY", false, 24}, {"LIMITS", false, 0}, {"PENDING", true, 0},
        {"RETRYING", true, 0},      {"DEAD", true, 0},     {"URL", false, 60},   {"", false, 120}};
    struct printer p = {.now_ms = status->now_ms};
    hk_table_init(&p.table, columns, sizeof columns / sizeof columns[0]);
    each_destination(op->config, status, &p, add_row);
    if (p.table.n_cells > 0)
        hk_table_write(&p.table, out);
    else
        (void)hk_buf_adds(out,
                          "no destinations: the configuration names none, and the store has seen none\n");
    hk_table_fini(&p.table);
}

static void write_json(const struct hk_operate *op, const struct hk_store_status *status, struct hk_buf *out)
{
    struct printer p = {.now_ms = status->now_ms};
    hk_json_init(&p.json, out, true);
    hk_json_object(&p.json);
    hk_json_key(&p.json, "items");
    hk_json_array(&p.json);
    each_destination(op->config, status, &p, put_row);
    hk_json_end(&p.json);
    hk_json_key(&p.json, "next");
    hk_json_null(&p.json);
    hk_json_end(&p.json);
    (void)hk_buf_addc(out, '\n');
}

static enum hk_code ask(const struct hk_cli *cli, const struct hk_operate *op, struct hk_buf *out,
                        struct hk_err *err)
{
    const struct hk_store_status *status = NULL;
    enum hk_code rc = op->ops->status(op->admin, &status, err);
    if (rc == HK_OK && hk_args_flag(cli, "json"))
        write_json(op, status, out);
    else if (rc == HK_OK)
        write_table(op, status, out);
    return rc;
}

int hk_cmd_destinations_list(struct hk_cli *cli)
{
    return hk_operate_show(cli, ask);
}
