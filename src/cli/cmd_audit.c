/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku audit list, audit show, audit verify: who did what and why, and whether anybody has changed that since. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/parse.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/dead/dead.h"
#include "cli/out.h"
#include "cli/table.h"

enum {
    VERIFY_PAGE = 100, /* rows, each with a list of up to HK_LETTER_ACTS_MAX letters */
};

/* ---- list ---- */

/* A text of the row's detail, without quotes and escapes: "" when it has none. Belongs to `scratch`. */
static struct hk_str words_of(const struct hk_audit_row *row, const char *key, struct hk_buf *scratch)
{
    struct hk_str raw;
    hk_buf_reset(scratch);
    if (!hk_act_detail(row, key, &raw) || raw.len < 2 || raw.ptr[0] != '"')
        return (struct hk_str){"", 0};
    (void)hk_scan_text(raw, scratch);
    return hk_buf_str(scratch);
}

static void put_words(struct hk_json *json, const struct hk_audit_row *row, const char *key)
{
    struct hk_buf scratch;
    hk_buf_init(&scratch, HK_OPERATE_OUTPUT_MAX);
    hk_put_str(json, key, words_of(row, key, &scratch));
    hk_buf_inherit(json->out, &scratch); /* rather nothing than an act without its words */
    hk_buf_fini(&scratch);
}

/* The members of an open object. */
static void put_row(struct hk_json *json, const struct hk_audit_row *row)
{
    hk_put_id(json, "id", row->id);
    hk_put_time(json, "at", row->at_ms);
    hk_put_str(json, "actor", row->actor);
    hk_put_str(json, "act", row->act);
    hk_put_id(json, "letter", row->letter_id);
    hk_put_u64(json, "letters", row->letters > 0 ? row->letters : row->letter_id != 0);
    hk_put_id(json, "act_id", row->act_id);
    hk_put_id(json, "redrive", row->redrive);
    hk_put_str(json, "message_id", row->message_id);
    hk_put_str(json, "destination", row->destination);
    hk_put_str(json, "reason", row->reason);
    hk_put_str(json, "before", row->before);
    hk_put_str(json, "after", row->after);
    hk_put_str(json, "detail", row->detail);
    put_words(json, row, "filter");
    put_words(json, row, "jq");
    hk_put_str(json, "hash", row->hash);
}

static void put_rows(struct hk_buf *out, const struct hk_audit_rows *rows)
{
    struct hk_json json;
    hk_json_init(&json, out, true);
    hk_json_object(&json);
    hk_json_key(&json, "items");
    hk_json_array(&json);
    for (size_t i = 0; i < rows->n; i++) {
        hk_json_object(&json);
        put_row(&json, &rows->items[i]);
        hk_json_end(&json);
    }
    hk_json_end(&json);
    hk_put_id(&json, "next", rows->more ? rows->last_id : 0);
    hk_json_end(&json);
    (void)hk_buf_addc(out, '\n');
}

/* "4711", or "5,000 letters" that `audit show` lists. */
static const char *letters_of(const struct hk_audit_row *row, char out[64])
{
    char number[HK_OUT_TEXT];
    if (row->letter_id != 0)
        (void)snprintf(out, 64, "%" PRId64, row->letter_id);
    else if (row->letters > 0)
        (void)snprintf(out, 64, "%s letter%s", hk_out_count(row->letters, number),
                       row->letters == 1 ? "" : "s");
    else
        (void)snprintf(out, 64, "-");
    return out;
}

static void write_rows(struct hk_buf *out, const struct hk_audit_rows *rows)
{
    static const struct hk_table_column columns[] = {
        {"ID", true, 0},     {"AT", false, 0},       {"ACTOR", false, 24},       {"ACT", false, 16},
        {"LETTER", true, 0}, {"MESSAGE", false, 36}, {"DESTINATION", false, 20}, {"REASON", false, 60}};
    struct hk_table table;
    char text[64], at[HK_TIME_TEXT_MAX];
    if (rows->n == 0) {
        (void)hk_buf_adds(out, "nobody has done anything\n");
        return;
    }
    hk_table_init(&table, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < rows->n; i++) {
        const struct hk_audit_row *row = &rows->items[i];
        (void)snprintf(text, sizeof text, "%" PRId64, row->id);
        hk_table_adds(&table, text);
        (void)hk_format_rfc3339(row->at_ms, at);
        hk_table_adds(&table, at);
        hk_table_add(&table, row->actor);
        hk_table_add(&table, row->act);
        hk_table_adds(&table, letters_of(row, text));
        hk_table_add(&table, row->message_id);
        hk_table_add(&table, row->destination);
        hk_table_add(&table, row->reason);
    }
    hk_table_write(&table, out);
    hk_table_fini(&table);
    if (rows->more)
        (void)hk_buf_addf(out, "there are more: --after %" PRId64 "\n", rows->last_id);
}

int hk_cmd_audit_list(struct hk_cli *cli)
{
    struct hk_dead dead;
    const struct hk_audit_rows *rows = NULL;
    struct hk_err err = {.message = ""};
    struct hk_buf out;
    uint64_t limit = 50, after = 0, letter = 0;
    if (!hk_args_u64(cli, "limit", 1, 100000, &limit) || !hk_args_u64(cli, "after", 1, INT64_MAX, &after) ||
        !hk_args_u64(cli, "letter", 1, INT64_MAX, &letter))
        return HK_EXIT_USAGE;
    struct hk_audit_page page = {.after_id = (int64_t)after,
                                 .oldest_first = hk_args_flag(cli, "oldest"),
                                 .limit = (uint32_t)limit,
                                 .letter_id = (int64_t)letter,
                                 .actor = hk_args_value(cli, "by"),
                                 .act = hk_args_value(cli, "act")};
    int code = hk_dead_open(cli, &dead);
    if (code != HK_EXIT_OK)
        return code;
    hk_buf_init(&out, HK_OPERATE_OUTPUT_MAX);
    if (dead.letters->audit(dead.op.admin, &page, &rows, &err) != HK_OK) {
        code = hk_operate_failed(&err);
    } else {
        if (hk_args_flag(cli, "json"))
            put_rows(&out, rows);
        else
            write_rows(&out, rows);
        code = hk_out_buffer(&out);
    }
    hk_buf_fini(&out);
    hk_dead_close(&dead);
    return code;
}

/* ---- show ---- */

static void put_act(struct hk_buf *out, const struct hk_audit_row *row,
                    const struct hk_audit_letters *letters)
{
    struct hk_json json;
    hk_json_init(&json, out, true);
    hk_json_object(&json);
    put_row(&json, row);
    hk_json_key(&json, "items");
    hk_json_array(&json);
    for (size_t i = 0; i < letters->n; i++) {
        const struct hk_audit_letter *l = &letters->items[i];
        hk_json_object(&json);
        hk_put_id(&json, "letter", l->letter_id);
        hk_put_str(&json, "message_id", l->message_id);
        hk_put_str(&json, "destination", l->destination);
        hk_put_str(&json, "before", l->before);
        hk_put_str(&json, "after", l->after);
        hk_put_str(&json, "detail", l->detail);
        hk_json_end(&json);
    }
    hk_json_end(&json);
    hk_put_id(&json, "next", letters->more ? letters->items[letters->n - 1].letter_id : 0);
    hk_json_end(&json);
    (void)hk_buf_addc(out, '\n');
}

static void write_letters(struct hk_buf *out, const struct hk_audit_letters *letters)
{
    static const struct hk_table_column columns[] = {
        {"LETTER", true, 0}, {"MESSAGE", false, 36}, {"DESTINATION", false, 20}, {"DETAIL", false, 70}};
    struct hk_table table;
    char text[64];
    hk_table_init(&table, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < letters->n; i++) {
        (void)snprintf(text, sizeof text, "%" PRId64, letters->items[i].letter_id);
        hk_table_adds(&table, text);
        hk_table_add(&table, letters->items[i].message_id);
        hk_table_add(&table, letters->items[i].destination);
        hk_table_add(&table, letters->items[i].detail);
    }
    hk_table_write(&table, out);
    hk_table_fini(&table);
    if (letters->more)
        (void)hk_buf_addf(out, "there are more: --after %" PRId64 "\n",
                          letters->items[letters->n - 1].letter_id);
}

static void write_act(struct hk_buf *out, const struct hk_audit_row *row,
                      const struct hk_audit_letters *letters)
{
    char text[64], at[HK_TIME_TEXT_MAX];
    struct hk_buf scratch;
    hk_buf_init(&scratch, HK_OPERATE_OUTPUT_MAX);
    (void)snprintf(text, sizeof text, "%" PRId64, row->id);
    hk_operate_fact(out, "act", hk_str_of(text));
    hk_operate_fact(out, "what", row->act);
    (void)hk_format_rfc3339(row->at_ms, at);
    hk_operate_fact(out, "at", hk_str_of(at));
    hk_operate_fact(out, "actor", row->actor);
    hk_operate_fact(out, "reason", row->reason);
    hk_operate_fact(out, "destination", row->destination);
    hk_operate_fact(out, "message", row->message_id);
    (void)snprintf(text, sizeof text, "%" PRId64, row->redrive);
    hk_operate_fact(out, "redrive", hk_str_of(row->redrive != 0 ? text : ""));
    hk_operate_fact(out, "filter", words_of(row, "filter", &scratch));
    hk_operate_fact(out, "jq", words_of(row, "jq", &scratch));
    hk_buf_inherit(out, &scratch);
    hk_operate_fact(out, row->letter_id != 0 ? "letter" : "letters", hk_str_of(letters_of(row, text)));
    if (letters->n > 0) {
        (void)hk_buf_addc(out, '\n');
        write_letters(out, letters);
    }
    hk_buf_fini(&scratch);
}

static int show_act(const struct hk_cli *cli, struct hk_dead *dead, int64_t id)
{
    struct hk_audit_row found;
    const struct hk_audit_row *row = &found;
    const struct hk_audit_letters *letters = NULL;
    struct hk_err err = {.message = ""};
    struct hk_buf out;
    uint64_t limit = 50, after = 0;
    if (!hk_args_u64(cli, "limit", 1, 100000, &limit) || !hk_args_u64(cli, "after", 1, INT64_MAX, &after))
        return HK_EXIT_USAGE;
    int code = hk_dead_find_act(dead, id, &found);
    if (code != HK_EXIT_OK)
        return code;
    if (dead->letters->act_letters(dead->op.admin, row->id, (int64_t)after, (uint32_t)limit, &letters,
                                   &err) != HK_OK)
        return hk_operate_failed(&err);
    hk_buf_init(&out, HK_OPERATE_OUTPUT_MAX);
    if (hk_args_flag(cli, "json"))
        put_act(&out, row, letters);
    else
        write_act(&out, row, letters);
    return hk_out_buffer(&out);
}

int hk_cmd_audit_show(struct hk_cli *cli)
{
    struct hk_dead dead;
    uint64_t id = 0;
    if (hk_parse_u64(hk_str_of(cli->operands[0]), &id, NULL) != HK_OK || id == 0 || id > INT64_MAX)
        return hk_out_error(HK_EXIT_USAGE, "an act is a number, as 'hikyaku audit list' shows it");
    int code = hk_dead_open(cli, &dead);
    if (code != HK_EXIT_OK)
        return code;
    code = show_act(cli, &dead, (int64_t)id);
    hk_dead_close(&dead);
    return code;
}

/* ---- verify ---- */

struct chain {
    uint64_t rows, unchained;
    int64_t bad_id; /* 0 = none */
    const char *why;
    char prev[HK_AUDIT_HASH_MAX]; /* hash of the row before; "" = nothing is chained yet */
    bool begun;
    int64_t
        purged_ms; /* retention deleted the rows before the first one then, and left a row about it; 0 = no such row */
    uint64_t purged; /* how many it ever deleted */
};

static bool is(struct hk_str hash, const char *wanted)
{
    return hk_str_eq(hash, hk_str_of(wanted));
}

static void fail(struct chain *c, int64_t id, const char *why)
{
    if (c->bad_id == 0) {
        c->bad_id = id;
        c->why = why;
    }
}

/* Is it what retention left when it deleted the rows up to where the chain begins now? The store writes its detail, always
 * alike. */
static void look_for_purge(struct chain *c, const struct hk_audit_row *row, struct hk_str first_prev)
{
    char wanted[HK_AUDIT_HASH_MAX + 20], detail[300];
    if (!is(row->act, "purge-audit") || first_prev.len == 0 ||
        !hk_str_copy(detail, sizeof detail, row->detail))
        return;
    (void)snprintf(wanted, sizeof wanted, "\"last_hash\":\"%.*s\"", (int)first_prev.len, first_prev.ptr);
    if (strstr(detail, wanted) == NULL)
        return;
    c->purged_ms = row->at_ms;
    const char *total = strstr(detail, "\"total\":");
    size_t skip = strlen("\"total\":");
    if (total == NULL || hk_parse_u64((struct hk_str){total + skip, strspn(total + skip, "0123456789")},
                                      &c->purged, NULL) != HK_OK)
        c->purged = 0;
}

/* The digest of the list stands in the row, which its own hash covers. A row without a digest has no list. */
static bool list_fits(const struct hk_audit_row *row)
{
    struct hk_str raw = {"\"\"", 2};
    (void)hk_act_detail(row, "list", &raw);
    return raw.len >= 2 && hk_str_eq((struct hk_str){raw.ptr + 1, raw.len - 2}, row->list);
}

static void look_at(struct chain *c, const struct hk_audit_row *row, struct hk_str first_prev)
{
    char hash[HK_AUDIT_HASH_MAX];
    c->rows++;
    if (row->hash.len == 0) {
        c->unchained++;
        if (c->begun)
            fail(c, row->id, "it has no hash, though rows before it have one");
        return;
    }
    hk_audit_hash(row, hash);
    if (!is(row->hash, hash))
        fail(c, row->id, "its contents do not fit its hash: it was changed");
    else if (!c->begun && !hk_str_eq(row->prev, first_prev))
        fail(c, row->id, "the rows before it are gone, and retention did not take them");
    else if (c->begun && !is(row->prev, c->prev))
        fail(c, row->id, "it does not follow the row before it: one was taken out or put in");
    else if (!list_fits(row))
        fail(c, row->id,
             "its list of letters does not fit its digest: letters were changed, taken out or put in");
    look_for_purge(c, row, first_prev);
    c->begun = true;
    (void)snprintf(c->prev, sizeof c->prev, "%.*s", (int)row->hash.len, row->hash.ptr);
}

/* Rows that are missing at its front must be accounted for by what retention left; before schema version 5 it left nothing. An empty
 * audit ends where it begins. */
static void look_at_ends(struct chain *c, const struct hk_audit_rows *rows)
{
    bool front = rows->first_prev.len > 0 && !hk_str_eq(rows->first_prev, rows->unwitnessed_prev);
    if (!(c->begun ? is(rows->head, c->prev) : hk_str_eq(rows->head, rows->first_prev)))
        fail(c, -1, "rows are missing at its end");
    else if (front && c->purged_ms == 0)
        fail(c, rows->first_id > 0 ? rows->first_id : -1,
             "the rows before it are gone, and no purge that stands in the audit took them");
}

/* What was cut off at the end leaves a chain that is whole; the head that the store keeps does not fit it then. Somebody may act
 * while we read: then the head is read again behind the new rows. */
static enum hk_code walk(const struct hk_dead *dead, struct chain *c, struct hk_err *err)
{
    struct hk_audit_page page = {.oldest_first = true, .limit = VERIFY_PAGE, .parts = true, .lists = true};
    const struct hk_audit_rows *rows = NULL;
    for (;;) {
        enum hk_code rc = dead->letters->audit(dead->op.admin, &page, &rows, err);
        if (rc != HK_OK)
            return rc;
        for (size_t i = 0; i < rows->n; i++)
            look_at(c, &rows->items[i], rows->first_prev);
        if (!rows->more)
            break;
        page.after_id = rows->last_id;
    }
    look_at_ends(c, rows);
    return HK_OK;
}

static int report(const struct hk_cli *cli, const struct chain *c)
{
    struct hk_buf out;
    struct hk_json json;
    char at[HK_TIME_TEXT_MAX];
    hk_buf_init(&out, 4096);
    if (hk_args_flag(cli, "json")) {
        hk_json_init(&json, &out, true);
        hk_json_object(&json);
        hk_put_bool(&json, "ok", c->bad_id == 0);
        hk_put_u64(&json, "rows", c->rows);
        hk_put_u64(&json, "unchained", c->unchained);
        hk_put_id(&json, "bad_id", c->bad_id > 0 ? c->bad_id : 0);
        hk_put_cstr(&json, "why", c->why);
        hk_put_str(&json, "head", hk_str_of(c->prev));
        hk_put_u64(&json, "purged", c->purged);
        hk_put_time(&json, "purged_at", c->purged_ms);
        hk_json_end(&json);
    } else if (c->bad_id == 0) {
        (void)hk_buf_addf(&out, "%" PRIu64 " rows, the chain is whole", c->rows);
        if (c->unchained > 0)
            (void)hk_buf_addf(&out, " (%" PRIu64 " from before there was one)", c->unchained);
        if (c->purged_ms != 0)
            (void)hk_buf_addf(&out,
                              "\nretention has deleted %" PRIu64 " rows before them, the last ones on %.*s",
                              c->purged, (int)hk_format_rfc3339(c->purged_ms, at), at);
        if (c->begun)
            (void)hk_buf_addf(&out, "\nits head: %s; kept elsewhere it proves more", c->prev);
    } else if (c->bad_id > 0) {
        (void)hk_buf_addf(&out, "broken at row %" PRId64 ": %s", c->bad_id, c->why);
    } else {
        (void)hk_buf_addf(&out, "broken: %s", c->why);
    }
    (void)hk_buf_addc(&out, '\n');
    int code = hk_out_buffer(&out);
    return code == HK_EXIT_OK && c->bad_id != 0 ? HK_EXIT_FAILURE : code;
}

int hk_cmd_audit_verify(struct hk_cli *cli)
{
    struct hk_dead dead;
    struct chain chain = {.why = NULL};
    struct hk_err err = {.message = ""};
    int code = hk_dead_open(cli, &dead);
    if (code != HK_EXIT_OK)
        return code;
    code = walk(&dead, &chain, &err) == HK_OK ? report(cli, &chain) : hk_operate_failed(&err);
    hk_dead_close(&dead);
    return code;
}
