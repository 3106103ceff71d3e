/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the store of a URL. Errors show only the URL's scheme: the rest may contain a password. */
#include <stdio.h>

#include "base/show.h"
#include "base/str.h"
#include "store/kinds.h"

#define FORMS_MAX 256

static const struct hk_store_kind *const kinds[] = {&hk_store_kind_sqlite, &hk_store_kind_postgres, NULL};

static bool has_scheme(const struct hk_store_kind *kind, struct hk_str scheme)
{
    for (size_t i = 0; kind->schemes[i]; i++)
        if (hk_str_eq(scheme, hk_str_of(kind->schemes[i])))
            return true;
    return false;
}

static const struct hk_store_kind *by_scheme(struct hk_str scheme)
{
    for (size_t i = 0; kinds[i]; i++)
        if (has_scheme(kinds[i], scheme))
            return kinds[i];
    return NULL;
}

/* "sqlite:PATH and postgres://USER@HOST/DATABASE": what this build has. */
static const char *forms(char out[FORMS_MAX])
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; kinds[i]; i++)
        if (!kinds[i]->missing && used < FORMS_MAX)
            used +=
                (size_t)snprintf(out + used, FORMS_MAX - used, "%s%s", used ? " and " : "", kinds[i]->form);
    return out;
}

const struct hk_store_kind *hk_store_kind_by_url(const char *url, struct hk_err *err)
{
    struct hk_str rest = hk_str_of(url);
    struct hk_str scheme = hk_str_cut(&rest, ':');
    const struct hk_store_kind *kind = rest.ptr ? by_scheme(scheme) : NULL;
    char shown[HK_SHOW_MAX], known[FORMS_MAX];
    if (kind && !kind->missing)
        return kind;
    if (kind)
        hk_err_set(err, HK_UNSUPPORTED, "%s", kind->missing);
    else if (!rest.ptr)
        hk_err_set(err, HK_UNSUPPORTED, "%s is no database URL: write %s", hk_show(scheme, shown),
                   forms(known));
    else
        hk_err_set(err, HK_UNSUPPORTED, "this build has no store for %s: it knows %s", hk_show(scheme, shown),
                   forms(known));
    return NULL;
}

const struct hk_store_ops *hk_store_by_url(const char *url, struct hk_err *err)
{
    const struct hk_store_kind *kind = hk_store_kind_by_url(url, err);
    return kind ? kind->ops : NULL;
}

const struct hk_store_admin_ops *hk_store_admin_by_url(const char *url, struct hk_err *err)
{
    const struct hk_store_kind *kind = hk_store_kind_by_url(url, err);
    return kind ? kind->admin : NULL;
}

const struct hk_store_letters_ops *hk_store_letters_by_url(const char *url, struct hk_err *err)
{
    const struct hk_store_kind *kind = hk_store_kind_by_url(url, err);
    return kind ? kind->letters : NULL;
}

const struct hk_store_alerts_ops *hk_store_alerts_by_url(const char *url, struct hk_err *err)
{
    const struct hk_store_kind *kind = hk_store_kind_by_url(url, err);
    return kind ? kind->alerts : NULL;
}

const struct hk_store_api_ops *hk_store_api_by_url(const char *url, struct hk_err *err)
{
    const struct hk_store_kind *kind = hk_store_kind_by_url(url, err);
    return kind ? kind->api : NULL;
}

const struct hk_store_jobs_ops *hk_store_jobs_by_url(const char *url, struct hk_err *err)
{
    const struct hk_store_kind *kind = hk_store_kind_by_url(url, err);
    return kind ? kind->jobs : NULL;
}

const char *hk_store_place(const char *url, char out[HK_STORE_PLACE_MAX])
{
    struct hk_str rest = hk_str_of(url);
    struct hk_str scheme = hk_str_cut(&rest, ':');
    const struct hk_store_kind *kind = by_scheme(scheme);
    char shown[HK_SHOW_MAX];
    if (!kind || !kind->place || !kind->place(url, out))
        snprintf(out, HK_STORE_PLACE_MAX, "%s", rest.ptr ? hk_show(scheme, shown) : "?");
    return out;
}
