/* SPDX-License-Identifier: Apache-2.0 */
/* The door of the desk: rights and reasons before anything is asked of a store. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "config/payload.h"
#include "desk/desk.h"
#include "desk/job.h"

void hk_desk_init(struct hk_desk *desk, const struct hk_config *config, const char *url)
{
    *desk = (struct hk_desk){.config = config, .url = url, .policies = config ? config->policies : NULL};
}

void hk_desk_fini(struct hk_desk *desk)
{
    if (desk->ops)
        desk->ops->close(desk->admin);
    hk_masks_free(desk->masks);
    *desk = (struct hk_desk){.config = NULL};
}

bool hk_desk_is_open(const struct hk_desk *desk)
{
    return desk->admin != NULL || desk->elsewhere != NULL;
}

enum hk_code hk_desk_place(const struct hk_desk *desk, char out[HK_STORE_PLACE_MAX], struct hk_err *err)
{
    (void)hk_store_place(desk->url, out);
    return hk_store_admin_by_url(desk->url, err) ? HK_OK : HK_UNSUPPORTED;
}

enum hk_code hk_desk_open(struct hk_desk *desk, struct hk_err *err)
{
    if (desk->admin)
        return HK_OK;
    const struct hk_store_admin_ops *ops = hk_store_admin_by_url(desk->url, err);
    if (!ops)
        return HK_UNSUPPORTED;
    desk->letters = hk_store_letters_by_url(desk->url, err);
    desk->alerts = hk_store_alerts_by_url(desk->url, err);
    desk->api = hk_store_api_by_url(desk->url, err);
    desk->jobs = hk_store_jobs_by_url(desk->url, err);
    const struct hk_config *c = desk->config;
    const struct hk_store_options options = {.turns = desk->turns,
                                             .seal = c && c->seal.mode == HK_SEAL_REST ? c->keys : NULL};
    enum hk_code rc = ops->open(desk->url, &options, &desk->admin, err);
    if (rc == HK_OK)
        desk->ops = ops;
    return rc;
}

bool hk_op_is_dry_run(const struct hk_op *op, const void *request)
{
    for (const struct hk_arg *a = op->args; a && a->name; a++) {
        const bool *flag = (const bool *)((const char *)request + a->offset);
        if (strcmp(a->name, "dry_run") == 0)
            return *flag;
        if (strcmp(a->name, "apply") == 0)
            return !*flag;
    }
    return false;
}

static enum hk_code check_role(const struct hk_op *op, const struct hk_caller *caller, struct hk_err *err)
{
    if (caller->role >= op->role && caller->reveal && !caller->may_reveal)
        return hk_err_set(err, HK_DENIED, "your rights do not allow to reveal what is masked");
    if (caller->role >= op->role)
        return HK_OK;
    return hk_err_set(err, HK_DENIED, "your rights do not allow '%s%s%s'", op->noun, op->verb ? " " : "",
                      op->verb ? op->verb : "");
}

static enum hk_code check_reason(const struct hk_op *op, const struct hk_caller *caller, const void *request,
                                 struct hk_err *err)
{
    bool must = caller->reveal || (op->needs_reason && !hk_op_is_dry_run(op, request));
    bool given = caller->reason && hk_str_trim(hk_str_of(caller->reason)).len > 0;
    if (caller->reveal && !op->reveals)
        return hk_err_set(err, HK_INVALID, "nothing is masked there that could be revealed");
    if (must && !given)
        return hk_err_set(err, HK_INVALID, "a reason is needed: the audit keeps it with your name");
    return HK_OK;
}

enum hk_code hk_desk_ask(struct hk_desk *desk, const struct hk_op *op, const struct hk_caller *caller,
                         const void *request, struct hk_pool *mem, void *result, struct hk_err *err)
{
    desk->wrong_field = desk->wrong_below = NULL;
    desk->wrongs = NULL;
    enum hk_code rc = check_role(op, caller, err);
    if (rc == HK_OK && op->check)
        rc = op->check(desk, request, err);
    if (rc == HK_OK)
        rc = check_reason(op, caller, request, err);
    if (rc == HK_OK && caller->background)
        rc = hk_job_check(op, request, err);
    if (rc == HK_OK && desk->elsewhere)
        return desk->elsewhere(desk->elsewhere_arg, desk, op, caller, request, mem, result, err);
    if (rc == HK_OK && op->store)
        rc = hk_desk_open(desk, err);
    if (rc == HK_OK && caller->background)
        return hk_job_start(desk, op, caller, request, mem, result, err);
    if (rc == HK_OK)
        rc = op->run(desk, caller, request, mem, result, err);
    return rc;
}

void hk_desk_keep(struct hk_desk *desk, struct hk_pool *mem)
{
    desk->ops->keep(desk->admin, mem);
}

enum hk_code hk_desk_masks(struct hk_desk *desk, const struct hk_caller *caller, struct hk_masks **out,
                           struct hk_err *err)
{
    *out = NULL;
    if (caller->reveal)
        return HK_OK;
    enum hk_code rc = desk->has_masks ? HK_OK : hk_config_make_masks(desk->config, &desk->masks, err);
    desk->has_masks = rc == HK_OK;
    if (rc == HK_OK)
        *out = desk->masks;
    return rc;
}

enum hk_code hk_desk_hidden(struct hk_desk *desk, const struct hk_caller *caller, struct hk_masks **out,
                            struct hk_err *err)
{
    *out = NULL;
    return caller->may_reveal ? HK_OK : hk_desk_masks(desk, caller, out, err);
}

enum hk_code hk_desk_wrong(struct hk_desk *desk, const char *field, struct hk_err *err, const char *fmt, ...)
{
    char text[HK_ERR_MESSAGE_MAX];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    desk->wrong_field = field;
    desk->wrong_below = NULL;
    desk->wrongs = NULL;
    return hk_err_set(err, HK_INVALID, "%s", text);
}

enum hk_code hk_desk_wrong_below(struct hk_desk *desk, const char *field,
                                 const struct hk_definition_wrongs *wrongs, const char *message,
                                 struct hk_err *err)
{
    enum hk_code rc = hk_desk_wrong(desk, field, err, ": %s", message);
    if (wrongs->n > 0) {
        desk->wrong_below = wrongs->items[0].pointer;
        desk->wrongs = wrongs;
    }
    return rc;
}

void hk_caller_progress(const struct hk_caller *caller, uint64_t done, uint64_t total)
{
    hk_caller_tell(caller, &(struct hk_progress){.done = done, .total = total});
}

void hk_caller_tell(const struct hk_caller *caller, const struct hk_progress *progress)
{
    if (caller->progress)
        caller->progress(caller->arg, progress);
}

bool hk_caller_stops(const struct hk_caller *caller)
{
    return caller->stop && caller->stop(caller->arg);
}

uint64_t hk_list_scan(uint64_t asked, bool reads_payloads)
{
    return asked != 0 ? asked : reads_payloads ? HK_LIST_SCAN_MATCH : HK_LIST_SCAN;
}

void *hk_desk_grow(struct hk_pool *mem, void *items, size_t n, size_t *room, size_t more, size_t size)
{
    if (items && more <= *room - n)
        return items;
    size_t wanted = (n + more) * 2 + 8;
    void *grown = hk_pool_alloc(mem, wanted, size);
    if (!grown)
        return NULL;
    if (n > 0)
        memcpy(grown, items, n * size);
    *room = wanted;
    return grown;
}
