/* SPDX-License-Identifier: Apache-2.0 */
/* The filter language: a table of terms, each with the function that reads its value into the query. What SQL cannot say is kept
 * here and asked of each letter (filter_match.c). */
#include <stdio.h>
#include <string.h>

#include <hikyaku/policy.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/show.h"
#include "base/str.h"
#include "base/utf8.h"
#include "payload/filter_impl.h"

struct parse {
    struct hk_filter *filter;
    struct hk_str text;
    size_t pos;
    size_t term_at; /* where the term at hand begins */
    int64_t now_ms;
    unsigned given; /* bit per row of `keys` */
    bool messages;  /* of live and past messages, not of letters */
    struct hk_err *err;
};

static enum hk_code refuse(const struct parse *p, size_t at, const char *what, const char *why)
{
    char shown[HK_SHOW_MAX];
    return hk_err_set(p->err, HK_INVALID, "column %zu: %s: %s", hk_path_column(p->text, at),
                      hk_show(hk_str_of(what), shown), why);
}

/* ---- values ---- */

struct key;
typedef enum hk_code read_fn(struct parse *p, const struct key *key, const char *value);

struct key {
    const char *name;
    read_fn *read;
    size_t offset;     /* in the query, for read_string */
    bool letters_only; /* messages have no such thing */
};

static enum hk_code bad_value(const struct parse *p, const struct key *key, const char *why)
{
    return refuse(p, p->term_at, key->name, why);
}

static enum hk_code read_string(struct parse *p, const struct key *key, const char *value)
{
    memcpy((char *)&p->filter->query + key->offset, &value, sizeof value);
    return HK_OK;
}

static enum hk_code read_destination(struct parse *p, const struct key *key, const char *value)
{
    if (strchr(value, '*'))
        return bad_value(p, key, "* is for event types (type:Order*); name one destination");
    return read_string(p, key, value);
}

static enum hk_code read_reason(struct parse *p, const struct key *key, const char *value)
{
    if (!hk_reason_is_valid(value))
        return bad_value(p, key, "a reason code is expected, such as HTTP_422 or TIMEOUT");
    return read_string(p, key, value);
}

static enum hk_code read_class(struct parse *p, const struct key *key, const char *value)
{
    enum hk_class cls = hk_class_by_name(value);
    if (cls != HK_NCLASSES && cls != HK_CLASS_SUCCESS)
        return read_string(p, key, value);
    char why[256] = "a class of failures is expected:";
    size_t len = strlen(why);
    for (unsigned i = HK_CLASS_SUCCESS + 1; i < HK_NCLASSES && len < sizeof why - 1; i++) {
        int n = snprintf(why + len, sizeof why - len, " %s%s", hk_class_name((enum hk_class)i),
                         i + 1 < HK_NCLASSES ? "," : "");
        len += n > 0 ? (size_t)n : 0;
    }
    return bad_value(p, key, why);
}

static enum hk_code read_fault(struct parse *p, const struct key *key, const char *value)
{
    enum hk_blame blame;
    if (!hk_blame_by_name(hk_str_of(value), &blame))
        return bad_value(p, key, "destination or pipeline is expected");
    return read_string(p, key, value);
}

static enum hk_code read_group(struct parse *p, const struct key *key, const char *value)
{
    if (strlen(value) != HK_FINGERPRINT_MAX - 1 || strspn(value, "0123456789abcdef") != strlen(value))
        return bad_value(p, key, "a group's fingerprint is expected, 16 digits as `dead groups` shows it");
    return read_string(p, key, value);
}

/* One, or any: each place of a listing is asked for one state. */
static enum hk_code read_state(struct parse *p, const struct key *key, const char *value)
{
    unsigned states = strcmp(value, "any") == 0 ? HK_ALL_STATES : 0;
    for (int s = HK_PENDING; s < HK_NSTATES; s++)
        if (strcmp(value, hk_state_name((enum hk_state)s)) == 0)
            states = 1u << s;
    if (!states)
        return bad_value(p, key, "pending, processing, retrying, sent, dead, cancelled or any is expected");
    p->filter->query.statuses = states;
    return HK_OK;
}

static enum hk_code read_status(struct parse *p, const struct key *key, const char *value)
{
    if (p->messages)
        return read_state(p, key, value);
    unsigned statuses = 0;
    struct hk_str rest = hk_str_of(value);
    do {
        enum hk_letter_status status = HK_LETTER_FAILED;
        struct hk_str name = hk_str_cut(&rest, ',');
        if (hk_str_eq(name, hk_str_of("any")))
            statuses |= HK_ALL_STATUSES;
        else if (hk_letter_status_by_name(name, &status))
            statuses |= 1u << status;
        else
            return bad_value(
                p, key, "failed, retrying, resolved, discarded or any is expected, or several with commas");
    } while (rest.ptr);
    p->filter->query.statuses = statuses;
    return HK_OK;
}

static enum hk_code read_redrive(struct parse *p, const struct key *key, const char *value)
{
    int64_t id = 0;
    if (hk_parse_i64(hk_str_of(value), &id, NULL) != HK_OK || id <= 0)
        return bad_value(p, key, "the number of a redrive job is expected");
    p->filter->query.redrive = id;
    return HK_OK;
}

/* Both ends may be given in two ways: the narrower one holds. 0 means "any" to a query. */
static void narrow(struct parse *p, bool since, int64_t ms)
{
    struct hk_letter_query *query = &p->filter->query;
    ms = ms < 1 ? 1 : ms;
    if (since)
        query->since_ms = ms > query->since_ms ? ms : query->since_ms;
    else if (!query->before_ms || ms < query->before_ms)
        query->before_ms = ms;
}

static enum hk_code limit_age(struct parse *p, const struct key *key, bool at_most, const char *value)
{
    struct hk_err why = {.code = HK_OK};
    uint64_t ms = 0;
    if (hk_parse_duration(hk_str_of(value), &ms, &why) != HK_OK)
        return bad_value(p, key, why.message);
    uint64_t now = p->now_ms > 0 ? (uint64_t)p->now_ms : 0;
    narrow(p, at_most, ms < now ? (int64_t)(now - ms) : 1);
    return HK_OK;
}

static enum hk_code read_older(struct parse *p, const struct key *key, const char *value)
{
    return limit_age(p, key, false, value);
}

static enum hk_code read_newer(struct parse *p, const struct key *key, const char *value)
{
    return limit_age(p, key, true, value);
}

/* The same two with a sign, as people write them: age:>1h, age:<2d. */
static enum hk_code read_age(struct parse *p, const struct key *key, const char *value)
{
    if (value[0] != '>' && value[0] != '<')
        return bad_value(p, key, "> or < is expected before the duration, such as age:>1h or age:<2d");
    return limit_age(p, key, value[0] == '<', value + 1);
}

static enum hk_code read_time(struct parse *p, const struct key *key, const char *value)
{
    struct hk_err why = {.code = HK_OK};
    char whole[HK_TIME_TEXT_MAX];
    int64_t ms = 0;
    if (strlen(value) == 10) { /* a date alone is its beginning in UTC */
        (void)snprintf(whole, sizeof whole, "%sT00:00:00Z", value);
        value = whole;
    }
    if (hk_parse_rfc3339(hk_str_of(value), &ms, &why) != HK_OK)
        return bad_value(p, key, "a time is expected, such as 2026-11-15T08:30:00Z, or a date");
    narrow(p, key->name[0] == 's', ms);
    return HK_OK;
}

static enum hk_code read_opens(struct parse *p, const struct key *key, const char *value)
{
    if (strcmp(value, "sealed") != 0)
        return bad_value(p, key, "sealed is expected");
    p->filter->opens = true;
    return HK_OK;
}

static enum hk_code read_text(struct parse *p, const struct key *key, const char *value)
{
    (void)key;
    p->filter->texts[p->filter->n_texts++] = value;
    return HK_OK;
}

#define INTO(field) read_string, offsetof(struct hk_letter_query, field)

static const struct key keys[] = {
    {"destination", read_destination, offsetof(struct hk_letter_query, destination), false},
    {"reason", read_reason, offsetof(struct hk_letter_query, reason), true},
    {"type", INTO(event_type), false},
    {"class", read_class, offsetof(struct hk_letter_query, failure_class), true},
    {"status", read_status, 0, false},
    {"fault", read_fault, offsetof(struct hk_letter_query, blame), true},
    {"group", read_group, offsetof(struct hk_letter_query, fingerprint), true},
    {"id", INTO(message_id), true},
    {"correlation", INTO(correlation_id), false},
    {"key", INTO(key), false},
    {"older", read_older, 0, false},
    {"newer", read_newer, 0, false},
    {"age", read_age, 0, false},
    {"since", read_time, 0, false},
    {"before", read_time, 0, false},
    {"redrive", read_redrive, 0, true},
    {"opens", read_opens, 0, false},
    {"text", read_text, 0, false}, /* the last one */
};

enum {
    N_KEYS = sizeof keys / sizeof keys[0],
    TEXT_KEY = N_KEYS - 1
};

/* ---- terms ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static char peek(const struct parse *p)
{
    return p->pos < p->text.len ? p->text.ptr[p->pos] : ' ';
}

/* Room for all values: each is shorter than its term, or as long and followed by a blank or the end. */
static void keep(struct parse *p, char c)
{
    p->filter->storage[p->filter->used++] = c;
}

static enum hk_code quoted_value(struct parse *p)
{
    size_t start = p->pos++;
    while (p->pos < p->text.len && peek(p) != '"') {
        if (peek(p) == '\\') {
            p->pos++;
            if (peek(p) != '"' && peek(p) != '\\')
                return hk_err_set(p->err, HK_INVALID,
                                  "column %zu: inside quotes, \\ stands before \" or \\ only",
                                  hk_path_column(p->text, p->pos - 1));
        }
        keep(p, p->text.ptr[p->pos++]);
    }
    if (p->pos >= p->text.len)
        return hk_err_set(p->err, HK_INVALID, "column %zu: the quotes that begin here do not end",
                          hk_path_column(p->text, start));
    p->pos++;
    if (!is_blank(peek(p)))
        return hk_err_set(p->err, HK_INVALID, "column %zu: a blank is expected after the closing quotes",
                          hk_path_column(p->text, p->pos));
    return HK_OK;
}

/* What stands up to the next blank, or in quotes. */
static enum hk_code read_value(struct parse *p, const char **out)
{
    size_t from = p->filter->used;
    if (peek(p) == '"') {
        enum hk_code rc = quoted_value(p);
        if (rc != HK_OK)
            return rc;
    }
    for (; !is_blank(peek(p)); p->pos++) {
        if (peek(p) == '"')
            return hk_err_set(p->err, HK_INVALID, "column %zu: quotes stand around the whole value",
                              hk_path_column(p->text, p->pos));
        keep(p, peek(p));
    }
    keep(p, '\0');
    *out = p->filter->storage + from;
    return HK_OK;
}

/* What was probably meant: the beginning of it, or all but a letter or two. */
static const char *nearest_key(const char *name)
{
    const char *best = NULL;
    unsigned least = strlen(name) > 4 ? 3 : 2;
    for (size_t i = 0; i < N_KEYS; i++) {
        if (hk_str_starts(hk_str_of(keys[i].name), hk_str_of(name)))
            return keys[i].name;
        unsigned d = hk_str_distance(name, keys[i].name);
        if (d < least) {
            least = d;
            best = keys[i].name;
        }
    }
    return best;
}

static enum hk_code unknown_key(struct parse *p, struct hk_str name)
{
    char key[32], why[200];
    (void)hk_str_copy(key, sizeof key, (struct hk_str){name.ptr, name.len < 31 ? name.len : 31});
    const char *near = nearest_key(key);
    (void)snprintf(why, sizeof why, "there is no such filter%s%s%s; a text to look for stands in quotes",
                   near ? "; did you mean " : "", near ? near : "", near ? ":…" : "");
    return refuse(p, p->term_at, key, why);
}

static bool is_called(const struct key *key, struct hk_str name)
{
    return hk_str_eq(name, hk_str_of(key->name)) ||
           (key->read == read_destination && hk_str_eq(name, hk_str_of("dest")));
}

/* Texts must all be found, and two ages are a range. */
static bool may_repeat(const struct key *key)
{
    return key->read == read_text || key->read == read_age;
}

static enum hk_code keyed_term(struct parse *p, struct hk_str name)
{
    size_t i = 0;
    while (i < N_KEYS && !is_called(&keys[i], name))
        i++;
    if (i == N_KEYS)
        return unknown_key(p, name);
    if (p->messages && keys[i].letters_only)
        return bad_value(p, &keys[i],
                         strcmp(keys[i].name, "id") == 0 ? "a message is named by its id: messages show ID"
                                                         : "only dead letters have it: dead list");
    if (!may_repeat(&keys[i]) && p->given >> i & 1u)
        return bad_value(p, &keys[i], "is given twice");
    p->given |= 1u << i;
    p->pos += name.len + 1;
    const char *value = "";
    enum hk_code rc = read_value(p, &value);
    if (rc != HK_OK)
        return rc;
    return value[0] ? keys[i].read(p, &keys[i], value) : bad_value(p, &keys[i], "a value is missing");
}

static enum hk_code payload_term(struct parse *p)
{
    struct hk_filter *f = p->filter;
    p->pos += strlen("payload");
    p->pos += peek(p) == '.';
    enum hk_code rc = hk_path_parse_at(p->text, p->pos, &f->paths[f->n_paths], &p->pos, p->err);
    if (rc != HK_OK)
        return rc;
    f->values[f->n_paths++] = "";
    if (p->pos >= p->text.len || peek(p) != ':')
        return refuse(p, p->pos, "payload", "a colon and a value are expected after the path");
    p->pos++;
    if (is_blank(peek(p)))
        return refuse(p, p->term_at, "payload", "a value is missing; \"\" is the empty text");
    return read_value(p, &f->values[f->n_paths - 1]);
}

/* The letters before a colon; empty when the term does not begin so. */
static struct hk_str key_name(const struct parse *p)
{
    size_t i = p->pos;
    while (i < p->text.len && (hk_ascii_isalpha(p->text.ptr[i]) || p->text.ptr[i] == '_'))
        i++;
    bool keyed = i > p->pos && i < p->text.len && p->text.ptr[i] == ':';
    return (struct hk_str){p->text.ptr + p->pos, keyed ? i - p->pos : 0};
}

static enum hk_code term(struct parse *p)
{
    struct hk_str rest = {p->text.ptr + p->pos, p->text.len - p->pos};
    if (hk_str_starts(rest, hk_str_of("payload.")) || hk_str_starts(rest, hk_str_of("payload[")))
        return payload_term(p);
    struct hk_str name = key_name(p);
    if (name.len)
        return keyed_term(p, name);
    const char *value = "";
    enum hk_code rc = read_value(p, &value);
    if (rc != HK_OK)
        return rc;
    return value[0] ? read_text(p, &keys[TEXT_KEY], value)
                    : bad_value(p, &keys[TEXT_KEY], "there is nothing between the quotes");
}

static enum hk_code all_terms(struct parse *p)
{
    for (size_t n = 0;; n++) {
        while (p->pos < p->text.len && is_blank(peek(p)))
            p->pos++;
        if (p->pos >= p->text.len)
            return HK_OK;
        p->term_at = p->pos;
        if (n == HK_FILTER_TERMS_MAX)
            return hk_err_set(p->err, HK_INVALID, "column %zu: a filter has at most %d terms",
                              hk_path_column(p->text, p->pos), HK_FILTER_TERMS_MAX);
        enum hk_code rc = term(p);
        if (rc != HK_OK)
            return rc;
    }
}

/* ---- the whole ---- */

/* As text it may be longer than it was written (bare words, ages); a job must be able to read it again. */
static enum hk_code check_length(const struct hk_filter *filter, struct hk_err *err)
{
    struct hk_buf buf;
    hk_buf_init(&buf, HK_FILTER_TEXT_MAX);
    hk_filter_text(filter, &filter->query, &buf);
    enum hk_code rc = hk_buf_status(&buf);
    hk_buf_fini(&buf);
    if (rc == HK_OK)
        return rc;
    return rc == HK_NOMEM
               ? hk_err_set(err, rc, "out of memory")
               : hk_err_set(err, HK_INVALID, "the filter is longer than %d bytes", HK_FILTER_TEXT_MAX);
}

static void finish(struct hk_filter *filter)
{
    if (!filter->n_texts && !filter->n_paths)
        return;
    filter->query.match = hk_filter_match;
    filter->query.match_arg = filter;
    if (filter->opens)
        hk_filter_set_opens(filter);
    hk_filter_sieve(filter, &filter->query.sieve);
}

static enum hk_code parse_filter(const char *text, int64_t now_ms, bool messages, struct hk_filter **out,
                                 struct hk_err *err)
{
    struct hk_str all = hk_str_of(text);
    if (all.len > HK_FILTER_TEXT_MAX)
        return hk_err_set(err, HK_INVALID, "the filter is longer than %d bytes", HK_FILTER_TEXT_MAX);
    if (!hk_utf8_is_text(all))
        return hk_err_set(err, HK_INVALID, "the filter is not UTF-8 text");
    size_t room = all.len + HK_FILTER_TERMS_MAX;
    struct hk_filter *filter = hk_mem_zalloc(1, sizeof *filter + 3 * room);
    if (!filter)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    filter->messages = messages;
    filter->lower = filter->storage + room;
    filter->quoted = filter->lower + room;
    struct parse p = {.filter = filter, .text = all, .now_ms = now_ms, .messages = messages, .err = err};
    enum hk_code rc = all_terms(&p);
    finish(filter);
    if (rc == HK_OK)
        rc = check_length(filter, err);
    if (rc == HK_OK)
        *out = filter;
    else
        hk_filter_free(filter);
    return rc;
}

enum hk_code hk_filter_parse(const char *text, int64_t now_ms, struct hk_filter **out, struct hk_err *err)
{
    return parse_filter(text, now_ms, false, out, err);
}

enum hk_code hk_filter_parse_messages(const char *text, int64_t now_ms, struct hk_filter **out,
                                      struct hk_err *err)
{
    return parse_filter(text, now_ms, true, out, err);
}

const struct hk_letter_query *hk_filter_query(const struct hk_filter *filter)
{
    return &filter->query;
}

void hk_filter_free(struct hk_filter *filter)
{
    if (!filter)
        return;
    for (size_t i = 0; i < filter->n_paths; i++)
        hk_path_free(filter->paths[i]);
    hk_mem_free(filter);
}

/* ---- as text ---- */

static void write_value(const char *value, struct hk_buf *out)
{
    if (value[0] && !strpbrk(value, " \t\n\r\"")) {
        hk_buf_adds(out, value);
        return;
    }
    hk_buf_addc(out, '"');
    for (; *value; value++) {
        if (*value == '"' || *value == '\\')
            hk_buf_addc(out, '\\');
        hk_buf_addc(out, *value);
    }
    hk_buf_addc(out, '"');
}

void hk_filter_term(const char *name, const char *value, struct hk_buf *out)
{
    hk_buf_addf(out, "%s%s:", out->len ? " " : "", name);
    write_value(value, out);
}

static void write_term(const char *name, const char *value, struct hk_buf *out)
{
    if (value)
        hk_filter_term(name, value, out);
}

static void write_time(const char *name, int64_t ms, struct hk_buf *out)
{
    char text[HK_TIME_TEXT_MAX];
    if (!ms)
        return;
    (void)hk_format_rfc3339(ms, text);
    write_term(name, text, out);
}

static void write_statuses(unsigned statuses, bool messages, struct hk_buf *out)
{
    if (!statuses)
        return;
    hk_buf_addf(out, "%sstatus:", out->len ? " " : "");
    if (statuses == (messages ? HK_ALL_STATES : HK_ALL_STATUSES)) {
        hk_buf_adds(out, "any");
        return;
    }
    const char *comma = "";
    for (unsigned i = 0; i < (messages ? (unsigned)HK_NSTATES : (unsigned)HK_NLETTER_STATUSES); i++) {
        if (!(statuses >> i & 1u))
            continue;
        hk_buf_addf(out, "%s%s", comma,
                    messages ? hk_state_name((enum hk_state)i)
                             : hk_letter_status_name((enum hk_letter_status)i));
        comma = ",";
    }
}

static void write_payload_terms(const struct hk_filter *filter, struct hk_buf *out)
{
    for (size_t i = 0; i < filter->n_paths; i++) {
        struct hk_buf path;
        hk_buf_init(&path, HK_FILTER_TEXT_MAX);
        hk_path_text(filter->paths[i], &path);
        hk_buf_addf(out, "%spayload%s%s:", out->len ? " " : "", hk_buf_cstr(&path)[0] == '[' ? "" : ".",
                    hk_buf_cstr(&path));
        if (path.status != HK_OK && out->status == HK_OK)
            out->status = path.status;
        hk_buf_fini(&path);
        write_value(filter->values[i], out);
    }
}

void hk_filter_text(const struct hk_filter *filter, const struct hk_letter_query *query, struct hk_buf *out)
{
    write_term("destination", query->destination, out);
    write_term("reason", query->reason, out);
    write_term("type", query->event_type, out);
    write_term("class", query->failure_class, out);
    write_statuses(query->statuses, filter->messages, out);
    write_term("fault", query->blame, out);
    write_term("group", query->fingerprint, out);
    write_term("id", query->message_id, out);
    write_term("correlation", query->correlation_id, out);
    write_term("key", query->key, out);
    write_time("since", query->since_ms, out);
    write_time("before", query->before_ms, out);
    if (query->redrive)
        hk_buf_addf(out, "%sredrive:%lld", out->len ? " " : "", (long long)query->redrive);
    write_term("opens", filter->opens ? "sealed" : NULL, out);
    write_payload_terms(filter, out);
    for (size_t i = 0; i < filter->n_texts; i++)
        write_term("text", filter->texts[i], out);
}
