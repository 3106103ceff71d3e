/* SPDX-License-Identifier: Apache-2.0 */
/* Another payload for one dead letter. Checked as the relay would check it; the older one is kept. */
#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "config/payload.h"
#include "desk/dead.h"
#include "desk/forms.h"
#include "payload/canon.h"
#include "payload/diff.h"
#include "payload/scan.h"

#define SHOWN_MAX ((size_t)256 << 20)

enum {
    DIFF_CONTEXT = 3
};

struct edit {
    struct hk_desk *desk;
    const struct hk_caller *caller;
    struct hk_pool *mem;
    struct hk_masks *masks;
    struct hk_letter letter; /* in `mem` */
    struct hk_str before;
};

static enum hk_code load_letter(struct edit *e, int64_t id, struct hk_err *err)
{
    const struct hk_letter_shown *shown = NULL;
    enum hk_code rc = e->desk->letters->show(e->desk->admin, id, HK_LETTER_BYTES, &shown, err);
    if (rc != HK_OK)
        return rc;
    e->letter = shown->letter;
    hk_desk_keep(e->desk, e->mem);
    if (e->letter.status != HK_LETTER_FAILED)
        return hk_err_set(err, HK_CONFLICT, "letter %" PRId64 " is %s: only an open one can be edited", id,
                          hk_letter_state(&e->letter));
    if (e->letter.payload.len < e->letter.payload_bytes)
        return hk_letter_too_large(&e->letter, "edited", err);
    struct hk_err why = {.message = ""};
    rc = hk_letter_open(e->desk, &e->letter, e->caller->reveal, e->mem, &e->before, &why);
    return rc == HK_OK ? HK_OK : hk_err_set(err, rc, "the payload cannot be read: %s", why.message);
}

static enum hk_code open_letter(struct edit *e, const struct hk_dead_edit_ask *ask, struct hk_err *err)
{
    int64_t id = 0;
    enum hk_code rc = hk_letter_find(e->desk, ask->id, ask->destination, &id, err);
    if (rc == HK_OK)
        rc = hk_desk_masks(e->desk, e->caller, &e->masks, err);
    return rc == HK_OK ? load_letter(e, id, err) : rc;
}

/* ---- for an editor ---- */

/* Does a mask hide any of it? That masks fit its event type is not enough: the fields may not be there. */
static bool has_masked(const struct edit *e)
{
    struct hk_buf shown;
    hk_buf_init(&shown, SHOWN_MAX);
    (void)hk_mask_payload(e->masks, e->letter.event_type, e->before, &shown);
    bool masked = hk_buf_status(&shown) != HK_OK || !hk_str_eq(hk_buf_str(&shown), e->before);
    hk_buf_fini(&shown);
    return masked;
}

static enum hk_code open_to_edit(struct hk_desk *desk, const struct hk_caller *caller,
                                 const struct hk_dead_edit_ask *ask, struct hk_pool *mem,
                                 struct hk_dead_opened *out, struct hk_err *err)
{
    struct edit e = {.desk = desk, .caller = caller, .mem = mem};
    enum hk_code rc = open_letter(&e, ask, err);
    if (rc == HK_OK && has_masked(&e))
        rc = hk_err_set(
            err, HK_CONFLICT,
            "its payload has masked fields: --reveal opens it in the editor, and is recorded; or give "
            "--payload");
    if (rc == HK_OK)
        rc = hk_letters_reveal(desk, caller, &e.letter.id, 1, err);
    if (rc == HK_OK)
        *out = (struct hk_dead_opened){.id = e.letter.id, .version = e.letter.version, .payload = e.before};
    return rc;
}

/* ---- checking and keeping ---- */

/* A person who edits the shown text and gives it back would overwrite a hidden value with its mask. */
static bool has_mask(struct hk_str json)
{
    static const char mask[] = "\"" HK_MASKED "\"";
    for (size_t i = 0; i + sizeof mask - 1 <= json.len; i++)
        if (memcmp(json.ptr + i, mask, sizeof mask - 1) == 0)
            return true;
    return false;
}

static enum hk_code check_rules(const struct edit *e, struct hk_str after, struct hk_err *err)
{
    struct hk_validate *rules = NULL;
    struct hk_finding finding;
    enum hk_code rc = hk_config_make_validate(e->desk->config, &rules, err);
    if (rc != HK_OK)
        return rc;
    bool valid = hk_validate_payload(rules, e->letter.event_type, after, &finding);
    hk_validate_free(rules);
    return valid ? HK_OK
                 : hk_err_set(err, HK_CONFLICT, "the new payload is not valid (%s): %s", finding.reason,
                              finding.text);
}

/* Refuses changes that are probably a mistake. */
static enum hk_code check_doubts(const struct edit *e, struct hk_str after, struct hk_err *err)
{
    struct hk_err why = {.message = ""};
    if (after.len == 0 && e->before.len > 0)
        return hk_err_set(err, HK_CONFLICT, "the new payload is empty: give --yes to accept it");
    if (hk_masks_fit(e->masks, e->letter.event_type) && has_mask(after) && !has_mask(e->before))
        return hk_err_set(err, HK_CONFLICT,
                          "the new payload holds \"" HK_MASKED "\", which only stands for what is masked: "
                          "--reveal shows the value; --yes if that is meant");
    if (hk_scan_check(e->before, NULL) == HK_OK && hk_scan_check(after, &why) != HK_OK)
        return hk_err_set(err, HK_CONFLICT,
                          "the new payload is not JSON any more (%s): give --yes to accept it", why.message);
    return HK_OK;
}

static void write_diff(const struct edit *e, struct hk_str after, struct hk_buf *out)
{
    struct hk_buf old, new;
    hk_buf_init(&old, SHOWN_MAX);
    hk_buf_init(&new, SHOWN_MAX);
    (void)hk_mask_changed(e->masks, e->letter.event_type, e->before, e->before, &old);
    (void)hk_mask_changed(e->masks, e->letter.event_type, e->before, after, &new);
    if (hk_buf_status(&old) != HK_OK || hk_buf_status(&new) != HK_OK)
        (void)hk_buf_adds(out, "(too large to show)\n");
    else if (hk_str_eq(hk_buf_str(&old), hk_buf_str(&new)))
        (void)hk_buf_adds(out, "(only masked fields differ)\n");
    else
        (void)hk_diff_write(out, hk_buf_str(&old), hk_buf_str(&new), DIFF_CONTEXT);
    hk_buf_fini(&old);
    hk_buf_fini(&new);
}

static enum hk_code add_diff(const struct edit *e, struct hk_str after, struct hk_dead_edited *out,
                             struct hk_err *err)
{
    struct hk_buf diff;
    out->same_bytes = hk_str_eq(e->before, after);
    out->diff = (struct hk_str){"", 0};
    if (out->same_bytes)
        return HK_OK;
    hk_buf_init(&diff, SHOWN_MAX);
    write_diff(e, after, &diff);
    const char *copy = hk_buf_status(&diff) == HK_OK ? hk_pool_copy_str(e->mem, hk_buf_str(&diff)) : NULL;
    out->diff = (struct hk_str){copy, diff.len};
    hk_buf_fini(&diff);
    return copy ? HK_OK : hk_err_set(err, HK_NOMEM, "out of memory");
}

static enum hk_code keep_payload(struct edit *e, const struct hk_dead_edit_ask *ask, uint32_t *out_version,
                                 struct hk_err *err)
{
    const struct hk_letter_edit by = {.actor = e->caller->actor, .reason = e->caller->reason, .act = "edit"};
    struct hk_letter seen = e->letter;
    if (ask->version != 0)
        seen.version = ask->version <= UINT32_MAX ? (uint32_t)ask->version
                                                  : UINT32_MAX; /* another one now is the store's to refuse */
    return hk_letter_replace(e->desk, &seen, ask->payload, &by, out_version, err);
}

static enum hk_code edit_letter(struct hk_desk *desk, const struct hk_caller *caller,
                                const struct hk_dead_edit_ask *ask, struct hk_pool *mem,
                                struct hk_dead_edited *out, struct hk_err *err)
{
    struct edit e = {.desk = desk, .caller = caller, .mem = mem};
    if (!ask->payload.ptr)
        return hk_desk_wrong(desk, "payload", err, "is needed");
    enum hk_code rc = open_letter(&e, ask, err);
    if (rc == HK_OK && !ask->opened) /* the difference shows the older one */
        rc = hk_letters_reveal(desk, caller, &e.letter.id, 1, err);
    if (rc != HK_OK)
        return rc;
    struct hk_dead_edited o = {.id = e.letter.id, .version = e.letter.version, .dry_run = ask->dry_run};
    rc = add_diff(&e, ask->payload, &o, err);
    /* An edited letter gets a new message id when it is requeued; a letter whose JSON only has another layout must not. `yes` is for
     * receivers that compare bytes. */
    o.same = o.same_bytes || (!ask->yes && hk_json_same(e.before, ask->payload));
    if (rc == HK_OK && !o.same)
        rc = check_rules(&e, ask->payload, err);
    if (rc == HK_OK && !o.same && !ask->yes)
        rc = check_doubts(&e, ask->payload, err);
    if (rc == HK_OK && !o.same && !ask->dry_run) {
        o.version++;
        rc = keep_payload(&e, ask, &o.version, err);
        o.changed = rc == HK_OK;
    }
    if (rc == HK_OK)
        *out = o;
    return rc;
}

/* ---- the table ---- */

HK_OP_RUN(open_to_edit)
HK_OP_RUN(edit_letter)

static const struct hk_arg open_args[] = {HK_LETTER_SUBJECT(hk_dead_edit_ask, id),
                                          HK_LETTER_DESTINATION(hk_dead_edit_ask, destination),
                                          {.name = NULL}};

static const struct hk_arg edit_args[] = {
    HK_LETTER_SUBJECT(hk_dead_edit_ask, id),
    {.name = "payload",
     .kind = HK_ARG_BYTES,
     .offset = offsetof(struct hk_dead_edit_ask, payload),
     .value = "TEXT|-|@FILE",
     .help = "the new payload (default: $EDITOR opens the present one)"},
    HK_LETTER_DESTINATION(hk_dead_edit_ask, destination),
    {.name = "dry_run",
     .offset = offsetof(struct hk_dead_edit_ask, dry_run),
     .help = "check and show the difference, change nothing"},
    {.name = "yes",
     .offset = offsetof(struct hk_dead_edit_ask, yes),
     .help = "accept a payload that is no longer JSON, or differs only in layout"},
    {.name = NULL}};

const struct hk_op hk_op_dead_open = {.noun = "dead",
                                      .verb = "open",
                                      .summary = "read the payload of a letter that is to be edited",
                                      .route = "GET /dead-letters/{id}/payload",
                                      .role = HK_ROLE_OPERATOR,
                                      .store = true,
                                      .reveals = true,
                                      .args = open_args,
                                      .request_size = sizeof(struct hk_dead_edit_ask),
                                      .result_size = sizeof(struct hk_dead_opened),
                                      .run = open_to_edit_op,
                                      .form = hk_form_dead_opened};

const struct hk_op hk_op_dead_edit = {
    .noun = "dead",
    .verb = "edit",
    .summary = "replace the payload of one dead letter, after a check; the old payload is kept",
    .route = "PUT /dead-letters/{id}/payload",
    .role = HK_ROLE_OPERATOR,
    .store = true,
    .changes = true,
    .needs_reason = true,
    .reveals = true,
    .args = edit_args,
    .request_size = sizeof(struct hk_dead_edit_ask),
    .result_size = sizeof(struct hk_dead_edited),
    .run = edit_letter_op,
    .form = hk_form_dead_edited};
