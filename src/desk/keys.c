/* SPDX-License-Identifier: Apache-2.0 */
/* Keys: list, rotate, retire.
 *
 * DESIGN. Rotating is a job. A batch reads a page of rows, makes the new texts while nothing is locked, then opens the job's transaction and
 * exchanges each text, if it still is the one that was read. So a batch that dies has done nothing, a message that goes out or is
 * edited meanwhile wins, and two rotations at once find each other's work done. The payload itself is not opened: only its data key is
 * wrapped anew. In mode rest, payloads from before it was turned on are sealed on the way; a letter together with its earlier versions,
 * which go by the letter's encoding. */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/str.h"
#include "core/encoding.h"
#include "desk/forms.h"
#include "desk/job.h"
#include "desk/keys.h"
#include "observe/crash.h"
#include "payload/codec.h"
#include "payload/words.h"
#include "store/rest.h"

#define PAGE_BYTES ((uint64_t)4 << 20)

enum {
    PAGE = 100,
    ROWS_MAX = 64, /* of a list: keys that are configured, and others that rows name */
    NAP_MS = 200,
    DETAIL_MAX = 160
};

/* ---- list ---- */

static struct hk_key_row *row_of(struct hk_keys_listed *out, struct hk_str id)
{
    for (size_t i = 0; i < out->n; i++)
        if (hk_str_eq(out->rows[i].id, id))
            return &out->rows[i];
    if (out->n == ROWS_MAX)
        return NULL;
    out->rows[out->n] = (struct hk_key_row){.id = id};
    return &out->rows[out->n++];
}

static void add_configured(struct hk_keyring *keys, struct hk_pool *mem, struct hk_keys_listed *out)
{
    for (size_t i = 0; keys && i < hk_keyring_count(keys); i++) {
        struct hk_key key;
        struct hk_err err = {.message = ""};
        const char *id = hk_pool_copy_str(mem, hk_str_of(hk_keyring_id(keys, i)));
        struct hk_key_row *row = id ? row_of(out, hk_str_of(id)) : NULL;
        if (!row)
            return;
        row->configured = true;
        row->seals = i == 0;
        if (hk_keyring_get(keys, row->id, &key, &err) != HK_OK) {
            const char *why = hk_pool_copy_str(mem, hk_str_of(err.message));
            row->why = hk_str_of(why ? why : "out of memory");
        }
        hk_key_wipe(&key);
    }
}

static enum hk_code count_uses(struct hk_desk *desk, struct hk_pool *mem, struct hk_keys_listed *out,
                               struct hk_err *err)
{
    const struct hk_seal_uses *uses = NULL;
    enum hk_code rc = desk->ops->seal_uses(desk->admin, &uses, err);
    if (rc != HK_OK)
        return rc;
    hk_desk_keep(desk, mem);
    for (size_t i = 0; i < uses->n; i++) {
        const struct hk_seal_use *use = &uses->items[i];
        struct hk_key_row *row = row_of(out, use->key_id);
        if (row)
            *(use->home == HK_SEAL_OUTBOX ? &row->outbox : &row->kept) += use->n;
    }
    return HK_OK;
}

static enum hk_code list_keys(struct hk_desk *desk, const struct hk_caller *caller, const void *request,
                              struct hk_pool *mem, struct hk_keys_listed *out, struct hk_err *err)
{
    (void)caller, (void)request;
    *out = (struct hk_keys_listed){.rows = hk_pool_alloc(mem, ROWS_MAX, sizeof *out->rows)};
    if (!out->rows)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    add_configured(desk->config->keys, mem, out);
    return count_uses(desk, mem, out, err);
}

/* ---- rotate: one page ---- */

struct rotation {
    struct hk_job_run *run;
    struct hk_desk *desk;
    struct hk_keyring *keys;
    struct hk_pool *mem;
    bool seals_open; /* mode rest */
    struct hk_keys_rotated *o;
};

static void note_failure(struct rotation *r, const struct hk_seal_row *row, const struct hk_err *why)
{
    char text[HK_ERR_MESSAGE_MAX + 80];
    if (r->o->failed++ > 0)
        return;
    (void)snprintf(text, sizeof text, "message %.*s: %s",
                   (int)(row->message_id.len < 60 ? row->message_id.len : 60), row->message_id.ptr,
                   why->message);
    const char *copy = hk_pool_copy_str(r->mem, hk_str_of(text));
    r->o->error = hk_str_of(copy ? copy : "out of memory");
}

/* Fills in the new text of a row; `put->text` is `put->old` if nothing has to change. */
static enum hk_code make_payload(struct rotation *r, const struct hk_seal_row *row, struct hk_seal_put *put,
                                 struct hk_err *err)
{
    const struct hk_codec_of of = {.keys = r->keys, .encoding = row->encoding, .message_id = row->message_id};
    if (hk_encoding_is_sealed(row->encoding))
        return hk_codec_rewrap(&of, put->old, r->mem, &put->text, err);
    if (!r->seals_open)
        return HK_OK;
    put->encoding = hk_rest_encoding(row->encoding, r->mem);
    if (!put->encoding.ptr)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    return hk_rest_seal(r->keys, row->message_id, put->old, r->mem, &put->text, err);
}

static bool make_put(struct rotation *r, enum hk_seal_home home, const struct hk_seal_row *row, bool second,
                     struct hk_seal_put *out)
{
    struct hk_err err = {.message = ""};
    struct hk_str old = second ? row->b : row->a;
    *out = (struct hk_seal_put){
        .home = home, .second = second, .id = row->id, .sub = row->sub, .old = old, .text = old};
    if (!old.ptr)
        return false;
    bool is_words = home == HK_SEAL_ATTEMPTS || second;
    enum hk_code rc = is_words ? hk_words_rewrap(r->keys, row->message_id, old, r->mem, &out->text, &err)
                               : make_payload(r, row, out, &err);
    if (rc != HK_OK)
        note_failure(r, row, &err);
    return rc == HK_OK && out->text.ptr != old.ptr;
}

struct puts {
    struct hk_seal_put *items;
    size_t n, room;
};

static bool add_put(struct rotation *r, struct puts *puts, const struct hk_seal_put *put)
{
    if (puts->n == puts->room) {
        size_t room = puts->room ? 2 * puts->room : 2 * PAGE;
        struct hk_seal_put *more = hk_pool_alloc(r->mem, room, sizeof *more);
        for (size_t i = 0; more && i < puts->n; i++)
            more[i] = puts->items[i];
        if (!more)
            return false;
        puts->items = more;
        puts->room = room;
    }
    puts->items[puts->n++] = *put;
    return true;
}

/* The earlier versions of a letter that is sealed only now: they are read by the encoding that it gets. */
static enum hk_code add_versions(struct rotation *r, const struct hk_seal_row *letter, struct puts *puts,
                                 struct hk_err *err)
{
    struct hk_seal_page page = {.home = HK_SEAL_VERSIONS,
                                .after_id = letter->id - 1,
                                .after_sub = INT64_MAX,
                                .limit = PAGE,
                                .bytes = PAGE_BYTES,
                                .open = true};
    const struct hk_seal_rows *rows = NULL;
    struct hk_seal_put put;
    do {
        enum hk_code rc = r->desk->ops->seal_page(r->desk->admin, &page, &rows, err);
        if (rc != HK_OK)
            return rc;
        hk_desk_keep(r->desk, r->mem);
        for (size_t i = 0; i < rows->n && rows->items[i].id == letter->id; i++)
            if (make_put(r, HK_SEAL_VERSIONS, &rows->items[i], false, &put) && !add_put(r, puts, &put))
                return hk_err_set(err, HK_NOMEM, "out of memory");
        page.after_id = letter->id;
        page.after_sub = rows->n ? rows->items[rows->n - 1].sub : INT64_MAX;
    } while (rows->n && rows->items[rows->n - 1].id == letter->id);
    return HK_OK;
}

static enum hk_code make_puts(struct rotation *r, enum hk_seal_home home, const struct hk_seal_rows *rows,
                              struct puts *puts, struct hk_err *err)
{
    struct hk_seal_put put;
    for (size_t i = 0; i < rows->n; i++) {
        const struct hk_seal_row *row = &rows->items[i];
        /* sealed together with its letter, or not at all */
        bool skip = home == HK_SEAL_VERSIONS && !hk_encoding_is_sealed(row->encoding);
        r->o->looked++;
        if (!skip && make_put(r, home, row, false, &put)) {
            if (!add_put(r, puts, &put))
                return hk_err_set(err, HK_NOMEM, "out of memory");
            enum hk_code rc =
                home == HK_SEAL_LETTERS && put.encoding.ptr ? add_versions(r, row, puts, err) : HK_OK;
            if (rc != HK_OK)
                return rc;
        }
        if (make_put(r, home, row, true, &put) && !add_put(r, puts, &put))
            return hk_err_set(err, HK_NOMEM, "out of memory");
    }
    return HK_OK;
}

/* Versions follow their letter: where it has changed meanwhile, they stay, too. */
static enum hk_code do_puts(struct rotation *r, const struct puts *puts, struct hk_err *err)
{
    bool changed = false, letter_changed = false;
    int64_t letter = 0;
    enum hk_code rc = puts->n > 0 ? hk_job_hold(r->run, err) : HK_OK;
    for (size_t i = 0; rc == HK_OK && i < puts->n; i++) {
        const struct hk_seal_put *put = &puts->items[i];
        if (put->home == HK_SEAL_VERSIONS && put->id == letter && !letter_changed)
            continue;
        rc = r->desk->ops->seal_put(r->desk->admin, put, &changed, err);
        if (put->home == HK_SEAL_LETTERS && !put->second && put->encoding.ptr) {
            letter = put->id;
            letter_changed = rc == HK_OK && changed;
        }
        r->o->changed += rc == HK_OK && changed;
        hk_crash_point("rotate-inside");
    }
    return rc;
}

/* ---- rotate: the job ---- */

/* So that receivers and applications are not held up. The lease is kept meanwhile. */
static void wait_for_rate(const struct hk_caller *caller, size_t rows, double rate)
{
    const struct timespec nap = {.tv_nsec = NAP_MS * 1000000L};
    for (double left_ms = 1000.0 * (double)rows / rate; left_ms > 0 && !hk_caller_stops(caller);
         left_ms -= NAP_MS) {
        if (left_ms < NAP_MS)
            (void)nanosleep(&(struct timespec){.tv_nsec = (long)(left_ms * 1e6)}, NULL);
        else
            (void)nanosleep(&nap, NULL);
        hk_caller_progress(caller, 0, 0);
    }
}

static enum hk_code count_all(struct rotation *r, struct hk_err *err)
{
    const struct hk_seal_uses *uses = NULL;
    enum hk_code rc = r->desk->ops->seal_uses(r->desk->admin, &uses, err);
    for (size_t i = 0; rc == HK_OK && i < uses->n; i++)
        if (uses->items[i].home != HK_SEAL_OUTBOX && (uses->items[i].key_id.len || r->seals_open))
            r->run->progress.total += uses->items[i].n;
    return rc;
}

static enum hk_code rotate_page(struct rotation *r, const struct hk_caller *caller, int64_t at[3],
                                double rate, struct hk_err *err)
{
    const struct hk_seal_page page = {.home = (enum hk_seal_home)at[0],
                                      .after_id = at[1],
                                      .after_sub = at[2],
                                      .limit = PAGE,
                                      .bytes = PAGE_BYTES,
                                      .open = r->seals_open};
    const struct hk_seal_rows *found = NULL;
    struct puts puts = {.n = 0};
    enum hk_code rc = r->desk->ops->seal_page(r->desk->admin, &page, &found, err);
    if (rc != HK_OK)
        return rc;
    const struct hk_seal_rows rows = *found;
    hk_desk_keep(r->desk, r->mem);
    if (rows.n == 0) {
        at[0]++;
        at[1] = at[2] = INT64_MIN;
        return HK_OK;
    }
    at[1] = rows.items[rows.n - 1].id;
    at[2] = rows.items[rows.n - 1].sub;
    rc = make_puts(r, page.home, &rows, &puts, err);
    if (rc == HK_OK)
        wait_for_rate(caller, rows.n, rate);
    return rc == HK_OK ? do_puts(r, &puts, err) : rc;
}

static enum hk_code rotate_batch(struct hk_job_run *run, const struct hk_caller *caller, const void *request,
                                 struct hk_pool *mem, void *result, struct hk_err *err)
{
    const struct hk_keys_rotate_ask *ask = request;
    struct hk_keyring *keys = run->desk->config->keys;
    struct hk_key newest;
    int64_t at[3] = {0, INT64_MIN, INT64_MIN};
    struct rotation r = {.run = run,
                         .desk = run->desk,
                         .keys = keys,
                         .mem = mem,
                         .seals_open = run->desk->config->seal.mode == HK_SEAL_REST,
                         .o = result};
    if (!keys)
        return hk_err_set(err, HK_CONFLICT, "no key is configured on this relay (seal.keys)");
    enum hk_code rc =
        hk_keyring_newest(keys, &newest, err); /* without it nothing can be done: later, perhaps */
    hk_key_wipe(&newest);
    if (rc == HK_OK && !hk_job_numbers(run, ' ', at, 3))
        rc = count_all(&r, err);
    if (rc == HK_OK)
        rc = rotate_page(&r, caller, at, ask->rate, err);
    if (rc != HK_OK)
        return rc;
    run->more = at[0] < HK_NSEAL_HOMES;
    r.o->key = hk_str_of(hk_keyring_id(keys, 0));
    run->progress.done = r.o->looked;
    run->progress.changed = r.o->changed;
    run->progress.failed = r.o->failed;
    (void)snprintf(run->cursor, sizeof run->cursor, "%" PRId64 " %" PRId64 " %" PRId64, at[0], at[1], at[2]);
    return HK_OK;
}

static enum hk_code freeze_rotate(struct hk_desk *desk, const struct hk_caller *caller, void *request,
                                  struct hk_pool *mem, struct hk_err *err)
{
    (void)desk, (void)caller, (void)request, (void)mem, (void)err;
    return HK_OK;
}

static enum hk_code rotate(struct hk_desk *desk, const struct hk_caller *caller,
                           const struct hk_keys_rotate_ask *ask, struct hk_pool *mem,
                           struct hk_keys_rotated *out, struct hk_err *err)
{
    (void)desk, (void)caller, (void)ask, (void)mem, (void)out;
    return hk_err_set(err, HK_INVALID, "a relay carries it out: give background");
}

/* ---- retire ---- */

static enum hk_code check_retire(struct hk_desk *desk, const void *request, struct hk_err *err)
{
    const struct hk_keys_retire_ask *ask = request;
    (void)desk;
    return hk_key_id_is_good(hk_str_of(ask->key_id))
               ? HK_OK
               : hk_err_set(err, HK_INVALID, "the id of a key is expected (hikyaku keys list)");
}

static enum hk_code refuse_needed(const struct hk_key_row *row, const char *id, struct hk_err *err)
{
    if (row->kept)
        return hk_err_set(err, HK_CONFLICT,
                          "key %s is needed: %" PRIu64 " texts that relays keep and %" PRIu64
                          " messages in outbox are sealed with it. Run: hikyaku keys rotate",
                          id, row->kept, row->outbox);
    return hk_err_set(err, HK_CONFLICT,
                      "key %s is needed: %" PRIu64
                      " messages in outbox are sealed with it. Wait until they were sent",
                      id, row->outbox);
}

static enum hk_code retire(struct hk_desk *desk, const struct hk_caller *caller,
                           const struct hk_keys_retire_ask *ask, struct hk_pool *mem,
                           struct hk_keys_retired *out, struct hk_err *err)
{
    struct hk_keys_listed listed;
    char detail[DETAIL_MAX];
    enum hk_code rc = list_keys(desk, caller, NULL, mem, &listed, err);
    if (rc != HK_OK)
        return rc;
    const struct hk_key_row *row = row_of(&listed, hk_str_of(ask->key_id));
    if (row && row->seals)
        return hk_err_set(err, HK_CONFLICT, "key %s seals: put another one before it in seal.keys first",
                          ask->key_id);
    if (row && (row->kept || row->outbox))
        return refuse_needed(row, ask->key_id, err);
    (void)snprintf(detail, sizeof detail, "{\"key\":\"%s\"}", ask->key_id);
    const struct hk_note_act note = {
        .act = "key-retire", .actor = caller->actor, .reason = caller->reason, .detail = detail};
    rc = desk->ops->note(desk->admin, &note, err);
    const char *id = hk_pool_copy_str(mem, hk_str_of(ask->key_id));
    if (rc == HK_OK)
        *out = (struct hk_keys_retired){.key = hk_str_of(id ? id : ""), .configured = row && row->configured};
    return rc;
}

/* ---- the table ---- */

HK_OP_RUN(list_keys)
HK_OP_RUN(rotate)
HK_OP_RUN(retire)

static const struct hk_arg rotate_args[] = {{HK_ARG(hk_keys_rotate_ask, rate, HK_ARG_RATE, "N",
                                                    "look at no more than N rows a second (default: 1000)"),
                                             .lo = 0.1, .hi = 1e6, .fallback = 1000},
                                            {.name = NULL}};

static const struct hk_op_job rotate_job = {.freeze = freeze_rotate, .batch = rotate_batch};

static const struct hk_arg retire_args[] = {{HK_SUBJECT(hk_keys_retire_ask, key_id, "KEY", "the key's id")},
                                            {.name = NULL}};

const struct hk_op hk_op_keys_list = {
    .noun = "keys",
    .verb = "list",
    .summary = "list the keys that seal payloads, and count the payloads that need each one",
    .details = "Reads every row that may hold something sealed: it takes a while where there are millions.",
    .route = "GET /keys",
    .role = HK_ROLE_VIEWER,
    .store = true,
    .result_size = sizeof(struct hk_keys_listed),
    .run = list_keys_op,
    .form = hk_form_keys};

const struct hk_op hk_op_keys_rotate = {
    .noun = "keys",
    .verb = "rotate",
    .summary = "seal payloads of older keys again with the first key of seal.keys",
    .details =
        "A relay runs this as a job, which continues after a crash: 'hikyaku job show' has its progress. In mode rest it\n"
        "also seals payloads from before that mode was turned on. Messages in outbox are their applications',\n"
        "and stay as they are until they were sent.",
    .route = "POST /keys/rotate",
    .role = HK_ROLE_ADMIN,
    .store = true,
    .changes = true,
    .needs_reason = true,
    .is_long = true,
    .job = &rotate_job,
    .args = rotate_args,
    .request_size = sizeof(struct hk_keys_rotate_ask),
    .result_size = sizeof(struct hk_keys_rotated),
    .run = rotate_op,
    .form = hk_form_keys_rotated};

const struct hk_op hk_op_keys_retire = {
    .noun = "keys",
    .verb = "retire",
    .summary = "check that no payload needs a key any more, and record that it is retired",
    .details =
        "Refused while the key seals, or while the store holds anything that it sealed. A backup may need it\n"
        "all the same: keep the key as long as the backup.",
    .route = "POST /keys/{key_id}/retire",
    .role = HK_ROLE_ADMIN,
    .store = true,
    .changes = true,
    .needs_reason = true,
    .args = retire_args,
    .request_size = sizeof(struct hk_keys_retire_ask),
    .result_size = sizeof(struct hk_keys_retired),
    .check = check_retire,
    .run = retire_op,
    .form = hk_form_keys_retired};
