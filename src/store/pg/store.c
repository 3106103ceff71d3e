/* SPDX-License-Identifier: Apache-2.0 */
/* The PostgreSQL store: open and close, and the table of its operations. */
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "store/pg/listen.h"
#include "store/pg/store.h"

#define MAX_PAYLOAD     (UINT64_C(1024) * 1024)
#define PATIENCE_MAX_MS UINT64_C(600000)

void hk_pg_arg_now(struct hk_store *store, struct hk_pg_args *a)
{
    if (store->options.clock_ms)
        hk_pg_arg_i64(&store->pg, a, store->options.clock_ms(store->options.clock_arg));
    else
        hk_pg_arg_null(&store->pg, a);
}

int64_t hk_pg_monotonic_us(void)
{
    struct timespec ts = {0};
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static int64_t give_out(struct hk_store *store, int64_t server_ms)
{
    int64_t now_ms = hk_pg_now(&store->pg, server_ms);
    store->behind_ms = now_ms > server_ms ? (uint64_t)(now_ms - server_ms) : 0;
    return now_ms;
}

int64_t hk_pg_told(struct hk_store *store, int64_t server_ms)
{
    store->told_ms = server_ms;
    store->told_at_ms = hk_pg_monotonic_us() / 1000;
    int64_t late_ms = store->told_at_ms - store->asked_at_ms + 1; /* of whole milliseconds */
    store->told_late_ms = late_ms < 0 || late_ms > UINT32_MAX ? 0 : (uint32_t)late_ms;
    return give_out(store, server_ms);
}

int64_t hk_pg_reckon(struct hk_store *store, uint32_t *out_late_ms)
{
    *out_late_ms = store->options.clock_ms ? 0 : store->told_late_ms;
    if (store->options.clock_ms)
        return give_out(store, store->options.clock_ms(store->options.clock_arg));
    return give_out(store, store->told_ms + hk_pg_monotonic_us() / 1000 - store->told_at_ms);
}

int64_t hk_pg_to_row(const struct hk_store *store, int64_t ms)
{
    return ms ? ms - (int64_t)store->behind_ms : 0;
}

int64_t hk_pg_of_row(const struct hk_store *store, int64_t ms)
{
    return ms ? ms + (int64_t)store->behind_ms : 0;
}

void hk_pg_keep(struct hk_store *store, PGresult *res)
{
    PQclear(store->kept[store->pg.pool]);
    store->kept[store->pg.pool] = res;
}

bool hk_pg_relay_call(struct hk_store *store)
{
    bool ok = hk_pg_call(&store->pg);
    store->asked_at_ms = hk_pg_monotonic_us() / 1000;
    hk_pg_keep(store, NULL);
    hk_pg_pages_call(&store->pages, store->pg.pool);
    if (store->connects == store->pg.connects)
        return ok;
    /* Another server perhaps, with numbers of its own, perhaps behind the last one. */
    store->connects = store->pg.connects;
    hk_pg_window_fini(&store->window);
    hk_pg_pages_drop(&store->pages, store->pg.pool);
    store->shards_unsure = true;
    store->upkeep_at_ms = INT64_MIN;
    store->reset_due |= store->polled;
    store->beyond = false;
    store->stuck_stale = true;
    return ok;
}

/* ---- moving what is large ---- */

void hk_pg_begin_moving(struct hk_store *store)
{
    struct hk_pg *pg = &store->pg;
    struct hk_pg_args a = {0};
    hk_pg_begin(pg, true);
    store->moving_since_us = hk_pg_monotonic_us();
    if (!store->patience_ms)
        return;
    pg->call_ms = 2 * store->patience_ms;
    hk_pg_arg_u64(pg, &a, store->patience_ms);
    hk_pg_add(pg, HK_PG_PATIENCE, &a);
}

/* Four times as much when it was too little; half when that was far too much. */
void hk_pg_end_moving(struct hk_store *store)
{
    struct hk_pg *pg = &store->pg;
    uint64_t usual_ms = pg->busy_ms + 5000, had_ms = store->patience_ms ? store->patience_ms : usual_ms;
    uint64_t took_ms = (uint64_t)(hk_pg_monotonic_us() - store->moving_since_us) / 1000;
    pg->call_ms = pg->busy_ms + 10000;
    if (strcmp(pg->sqlstate, "57014") == 0 || pg->late)
        store->patience_ms = 4 * had_ms < PATIENCE_MAX_MS ? 4 * had_ms : PATIENCE_MAX_MS;
    else if (hk_pg_ok(pg) && store->patience_ms && took_ms < had_ms / 16)
        store->patience_ms = had_ms / 2 > usual_ms ? had_ms / 2 : 0;
}

uint64_t hk_pg_moving_lease(const struct hk_store *store, uint64_t lease_ms)
{
    return lease_ms < UINT64_MAX / 2 ? lease_ms + 2 * store->patience_ms : lease_ms;
}

static void pg_close(struct hk_store *store)
{
    if (!store)
        return;
    hk_pg_close(&store->pg);
    hk_manifests_clear(&store->claims);
    hk_stuck_clear(&store->stuck);
    hk_pg_window_fini(&store->window);
    hk_pg_pages_fini(&store->pages);
    hk_mem_free(store->lost.settles);
    PQclear(store->kept[0]);
    PQclear(store->kept[1]);
    hk_mem_free(store);
}

static enum hk_code pg_open(const char *url, const struct hk_store_options *options,
                            struct hk_store **out_store, struct hk_err *err)
{
    struct hk_store *store = hk_mem_zalloc(1, sizeof *store);
    if (!store)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    store->options = *options;
    if (!store->options.max_payload_bytes)
        store->options.max_payload_bytes = MAX_PAYLOAD;
    enum hk_code rc = hk_pg_open(&store->pg, url, &hk_pg_relay_table, options->busy_ms, err);
    if (rc != HK_OK) {
        hk_mem_free(store);
        return rc;
    }
    rc = hk_pg_check_schema(&store->pg, NULL, err);
    if (rc != HK_OK) {
        pg_close(store);
        return rc;
    }
    *out_store = store;
    return HK_OK;
}

const struct hk_store_ops hk_store_postgres = {
    .name = "postgres",
    .partitions = true,
    .shared = true,
    .init = hk_pg_init,
    .grants = hk_pg_grants,
    .open = pg_open,
    .close = pg_close,
    .acquire = hk_pg_acquire,
    .taken_over = hk_pg_taken_over,
    .release = hk_pg_release,
    .poll = hk_pg_poll,
    .scan = hk_pg_scan,
    .held_keys = hk_pg_held_keys,
    .exchange = hk_pg_exchange,
    .pause = hk_pg_pause,
    .listen = hk_pg_listen,
    .listening = hk_pg_listening,
    .unlisten = hk_pg_unlisten,
    .hint = hk_pg_hint,
    .definitions = hk_pg_definitions,
    .guards = hk_pg_guards,
    .purge = hk_pg_purge,
};
