/* SPDX-License-Identifier: Apache-2.0 */
/* Which store a URL means. Of the URL only the scheme is shown: the rest may hold a password. */
#include <stdio.h>

#include "base/show.h"
#include "base/str.h"
#include "store/store.h"
#if HK_POSTGRES
#include "store/pg/pg.h"
#endif

#if HK_POSTGRES
#define KNOWN "sqlite:PATH and postgres://USER@HOST/DATABASE"
#else
#define KNOWN "sqlite:PATH"
#endif

void hk_takings_add(struct hk_takings *takings, const struct hk_taken_over *one)
{
    if (takings->n < HK_TAKEN_MAX) {
        takings->items[takings->n++] = *one;
        return;
    }
    struct hk_taken_over *last = &takings->items[HK_TAKEN_MAX - 1];
    last->messages += one->messages;
    last->destination[0] = '\0';
}

static bool is_postgres(struct hk_str scheme)
{
    return hk_str_eq(scheme, hk_str_of("postgres")) || hk_str_eq(scheme, hk_str_of("postgresql"));
}

static const struct hk_store_ops *postgres_store(struct hk_err *err)
{
#if HK_POSTGRES
    (void)err;
    return &hk_store_postgres;
#else
    hk_err_set(err, HK_UNSUPPORTED,
               "this build has no PostgreSQL: install libpq (Debian: libpq-dev) and build hikyaku again, "
               "or use sqlite:PATH");
    return NULL;
#endif
}

const struct hk_store_ops *hk_store_by_url(const char *url, struct hk_err *err)
{
    struct hk_str rest = hk_str_of(url);
    struct hk_str scheme = hk_str_cut(&rest, ':');
    if (rest.ptr && hk_str_eq(scheme, hk_str_of("sqlite")))
        return &hk_store_sqlite;
    if (rest.ptr && is_postgres(scheme))
        return postgres_store(err);
    char shown[HK_SHOW_MAX];
    if (!rest.ptr)
        hk_err_set(err, HK_UNSUPPORTED, "%s is no database URL: write " KNOWN, hk_show(scheme, shown));
    else
        hk_err_set(err, HK_UNSUPPORTED, "this build has no store for %s: it knows " KNOWN,
                   hk_show(scheme, shown));
    return NULL;
}

const char *hk_store_place(const char *url, char out[HK_STORE_PLACE_MAX])
{
    struct hk_str rest = hk_str_of(url);
    struct hk_str scheme = hk_str_cut(&rest, ':');
    if (hk_str_eq(scheme, hk_str_of("sqlite"))) {
        snprintf(out, HK_STORE_PLACE_MAX, "%s", url);
        return out;
    }
    char shown[HK_SHOW_MAX];
    snprintf(out, HK_STORE_PLACE_MAX, "%s", rest.ptr ? hk_show(scheme, shown) : "?");
#if HK_POSTGRES
    struct hk_pg_url parsed;
    if (is_postgres(scheme) && hk_pg_url_parse(url, &parsed, NULL) == HK_OK) {
        snprintf(out, HK_STORE_PLACE_MAX, "%s", parsed.place);
        hk_pg_url_fini(&parsed);
    }
#endif
    return out;
}
