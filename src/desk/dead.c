/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers that several acts on dead letters share. */
#include <inttypes.h>

#include "base/show.h"
#include "base/str.h"
#include "desk/dead.h"

enum hk_requeue_id hk_requeue_ids(bool same_id, bool new_id)
{
    return same_id ? HK_REQUEUE_SAME : new_id ? HK_REQUEUE_NEW : HK_REQUEUE_AUTO;
}

enum hk_code hk_requeue_ids_check(bool same_id, bool new_id, struct hk_err *err)
{
    if (!same_id || !new_id)
        return HK_OK;
    return hk_err_set(err, HK_INVALID, "--same-id and --new-id exclude each other");
}

enum {
    NEAR = 3,      /* letters that differ */
    NEAR_SHOWN = 5 /* names */
};

const char *hk_destinations_near(const struct hk_config *config, struct hk_str name, struct hk_pool *mem)
{
    const struct hk_conf_destination *conf;
    char wanted[128];
    struct hk_buf names;
    size_t n = 0;
    if (name.len < 2 || !hk_str_copy(wanted, sizeof wanted, name))
        return NULL;
    hk_buf_init(&names, 4096);
    for (size_t i = 0; (conf = hk_config_destination(config, i)) != NULL && n < NEAR_SHOWN; i++)
        if (hk_str_distance(conf->name, wanted) <= NEAR || hk_str_containsi(hk_str_of(conf->name), name) ||
            hk_str_containsi(name, hk_str_of(conf->name)))
            (void)hk_buf_addf(&names, "%s%s", n++ > 0 ? ", " : "", conf->name);
    const char *found =
        n > 0 && hk_buf_status(&names) == HK_OK ? hk_pool_copy_str(mem, hk_buf_str(&names)) : NULL;
    hk_buf_fini(&names);
    return found;
}

/* Does the store have a destination of that name? */
static bool is_kept(struct hk_desk *desk, const char *name)
{
    const struct hk_definitions *kept = NULL;
    struct hk_err err = {.message = ""};
    return hk_desk_open(desk, &err) == HK_OK &&
           desk->ops->definitions(desk->admin, name, &kept, &err) == HK_OK && kept->n > 0;
}

enum hk_code hk_requeue_to_check(struct hk_desk *desk, const char *to, struct hk_err *err)
{
    struct hk_pool mem = {.blocks = NULL};
    char shown[HK_SHOW_MAX];
    if (!to || !desk->config || desk->elsewhere) /* it is asked again, where the configuration is */
        return HK_OK;
    if (hk_config_destination_named(desk->config, hk_str_of(to)) || is_kept(desk, to))
        return HK_OK;
    const char *near = hk_destinations_near(desk->config, hk_str_of(to), &mem);
    enum hk_code rc =
        hk_desk_wrong(desk, "to", err, ": the configuration has no destination %s%s%s%s",
                      hk_show(hk_str_of(to), shown), near ? "; did you mean " : "",
                      near ? near : ": 'hikyaku destinations list' shows them", near ? "?" : "");
    hk_pool_fini(&mem);
    return rc;
}

bool hk_names_have(const struct hk_names *names, struct hk_str name)
{
    for (size_t i = 0; i < names->n; i++)
        if (hk_str_eq(names->items[i], name))
            return true;
    return false;
}

enum hk_code hk_letter_too_large(const struct hk_letter *letter, const char *done, struct hk_err *err)
{
    char has[HK_SHOW_NUMBER], most[HK_SHOW_NUMBER];
    return hk_err_set(
        err, HK_CONFLICT, "letter %" PRId64 " cannot be %s: its payload has %s bytes, and at most %s can",
        letter->id, done, hk_show_count(letter->payload_bytes, has), hk_show_count(HK_LETTER_BYTES, most));
}

const char *hk_letter_state(const struct hk_letter *letter)
{
    return letter->status == HK_LETTER_RETRYING && letter->sending_ms != 0
               ? "retrying (sent by hand, outcome unknown)"
               : hk_letter_status_name(letter->status);
}
