/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the letters of a query: list and count.
 *
 * An index serves one condition of the query; SQL compares the others row by row (sql/letters.sql). Conditions that SQL cannot express
 * (query->match) are tested here, letter by letter: letters come in portions of a bounded number of bytes, straight from the result, and
 * only matching ones are kept. */
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "store/pg/letters.h"

#define LIMIT_MAX      UINT32_C(100000)
#define TIME_MAX_MS    INT64_C(253402300799999) /* 9999-12-31: PostgreSQL and we can write it */
#define PAYLOAD_MAX    INT64_C(0x3fffffff)
#define PORTION_BYTES  INT64_C(8388608) /* of payloads in one answer */
#define PORTION        4000             /* letters in one answer that are only looked at */
#define WINDOW         50000            /* letters that one statement compares */
#define LIST_LOOKS     20000            /* letters that one list matches, */
#define LIST_WINDOWS   4                /* and how often it asks for more: some tenths of a second */
#define COUNT_WINDOWS  20
#define PATTERN_MAX    ((size_t)16 * 1024)
#define MATCH_BYTES    (UINT64_C(1) << 20)
#define COUNT_ON_INDEX INT64_C(1000000) /* an index alone is quickly counted */

/* ---- a letter ---- */

static struct hk_str text_at(struct hk_pg *pg, const PGresult *res, int row, int column, bool copy)
{
    if (copy)
        return hk_pg_text(pg, res, row, column);
    if (hk_pg_null(res, row, column))
        return (struct hk_str){"", 0};
    return (struct hk_str){PQgetvalue(res, row, column), (size_t)PQgetlength(res, row, column)};
}

/* A status that is none of ours is nobody's business to change. */
static enum hk_letter_status status_at(const PGresult *res, int row, int column)
{
    enum hk_letter_status status = HK_LETTER_DISCARDED;
    (void)hk_letter_status_by_name(hk_str_of(PQgetvalue(res, row, column)), &status);
    return status;
}

static void read_details(struct hk_pg *pg, const PGresult *res, int row, int first, bool copy,
                         struct hk_letter *out)
{
    out->headers = text_at(pg, res, row, first + HK_PL_C_HEADERS, copy);
    out->content_type = text_at(pg, res, row, first + HK_PL_C_CONTENT_TYPE, copy);
    out->encoding = text_at(pg, res, row, first + HK_PL_C_ENCODING, copy);
    out->idempotency_key = text_at(pg, res, row, first + HK_PL_C_IDEMPOTENCY_KEY, copy);
    out->policy = text_at(pg, res, row, first + HK_PL_C_POLICY, copy);
    out->expires_at = text_at(pg, res, row, first + HK_PL_C_EXPIRES, copy);
    out->error_detail = text_at(pg, res, row, first + HK_PL_C_DETAIL, copy);
    out->max_attempts = hk_pa_u32(res, row, first + HK_PL_C_MAX_ATTEMPTS);
    out->payload = text_at(pg, res, row, first + HK_PL_C_PAYLOAD, copy);
}

void hk_pl_letter(struct hk_pg *pg, const PGresult *res, int row, int first, bool copy, struct hk_letter *out)
{
    *out = (struct hk_letter){
        .id = hk_pg_i64(res, row, first + HK_PL_C_ID),
        .outbox_id = hk_pg_i64(res, row, first + HK_PL_C_OUTBOX_ID),
        .message_id = text_at(pg, res, row, first + HK_PL_C_MESSAGE_ID, copy),
        .event_type = text_at(pg, res, row, first + HK_PL_C_EVENT_TYPE, copy),
        .destination = text_at(pg, res, row, first + HK_PL_C_DESTINATION, copy),
        .key = text_at(pg, res, row, first + HK_PL_C_KEY, copy),
        .correlation_id = text_at(pg, res, row, first + HK_PL_C_CORRELATION_ID, copy),
        .traceparent = text_at(pg, res, row, first + HK_PL_C_TRACEPARENT, copy),
        .reason = text_at(pg, res, row, first + HK_PL_C_REASON, copy),
        .error = text_at(pg, res, row, first + HK_PL_C_ERROR, copy),
        .failure_class = text_at(pg, res, row, first + HK_PL_C_CLASS, copy),
        .blame = text_at(pg, res, row, first + HK_PL_C_FAULT, copy),
        .fingerprint = text_at(pg, res, row, first + HK_PL_C_FINGERPRINT, copy),
        .status = status_at(res, row, first + HK_PL_C_STATUS),
        .attempts = hk_pa_u32(res, row, first + HK_PL_C_ATTEMPTS),
        .crashes = hk_pa_u32(res, row, first + HK_PL_C_CRASHES),
        .life = hk_pa_u32(res, row, first + HK_PL_C_LIFE),
        .requeues = hk_pa_u32(res, row, first + HK_PL_C_REQUEUES),
        .version = hk_pa_u32(res, row, first + HK_PL_C_VERSION),
        .possibly_delivered = hk_pg_bool(res, row, first + HK_PL_C_POSSIBLY),
        .message_created_ms = hk_pg_i64(res, row, first + HK_PL_C_MESSAGE_MS),
        .created_ms = hk_pg_i64(res, row, first + HK_PL_C_CREATED_MS),
        .first_failed_ms = hk_pg_i64(res, row, first + HK_PL_C_FIRST_MS),
        .last_failed_ms = hk_pg_i64(res, row, first + HK_PL_C_LAST_MS),
        .last_attempt_ms = hk_pg_i64(res, row, first + HK_PL_C_ATTEMPT_MS),
        .requeued_ms = hk_pg_i64(res, row, first + HK_PL_C_REQUEUED_MS),
        .resolved_ms = hk_pg_i64(res, row, first + HK_PL_C_RESOLVED_MS),
        .edited_ms = hk_pg_i64(res, row, first + HK_PL_C_EDITED_MS),
        .sending_ms = hk_pg_i64(res, row, first + HK_PL_C_SENDING_MS),
        .requeued_as = text_at(pg, res, row, first + HK_PL_C_REQUEUED_AS, copy),
        .resolution = text_at(pg, res, row, first + HK_PL_C_RESOLUTION, copy),
        .redrive = hk_pg_i64(res, row, first + HK_PL_C_REDRIVE),
        .payload_bytes = hk_pa_u64(res, row, first + HK_PL_C_PAYLOAD_BYTES),
        .has_payload = !hk_pg_null(res, row, first + HK_PL_C_PAYLOAD_BYTES),
    };
    read_details(pg, res, row, first, copy, out);
}

void hk_pl_cut_payload(struct hk_letter *letter, size_t payload_max)
{
    if (letter->payload.len > payload_max)
        letter->payload.len = payload_max;
}

/* ---- the parameters of a query ---- */

void hk_pl_bounds(const struct hk_letter_query *query, int64_t *above, int64_t *below)
{
    *above = query->first_id ? query->first_id - (query->first_id > INT64_MIN) : INT64_MIN;
    *below = query->last_id && query->last_id < INT64_MAX ? query->last_id + 1 : INT64_MAX;
}

void hk_pl_arg_asked(struct hk_pg *pg, struct hk_pg_args *a, const char *text)
{
    if (text)
        hk_pg_arg_text(pg, a, hk_str_of(text));
    else
        hk_pg_arg_null(pg, a);
}

static void arg_statuses(struct hk_pg *pg, struct hk_pg_args *a, unsigned statuses)
{
    struct hk_str names[HK_NLETTER_STATUSES];
    size_t n = 0;
    for (unsigned s = 0; s < HK_NLETTER_STATUSES; s++)
        if (statuses & 1u << s)
            names[n++] = hk_str_of(hk_letter_status_name((enum hk_letter_status)s));
    if (statuses)
        hk_pg_arg_texts(pg, a, names, n);
    else
        hk_pg_arg_null(pg, a);
}

/* '*' as LIKE has it; what means something to LIKE means itself here. */
void hk_pl_arg_pattern(struct hk_pg *pg, struct hk_pg_args *a, const char *pattern)
{
    size_t len = pattern ? strlen(pattern) : 0, n = 0;
    char *like = hk_pg_alloc(pg, 2 * len + 1, 1);
    for (size_t i = 0; like && i < len; i++) {
        if (pattern[i] == '%' || pattern[i] == '_' || pattern[i] == '\\')
            like[n++] = '\\';
        like[n++] = pattern[i] == '*' ? '%' : pattern[i];
    }
    if (pattern && like)
        hk_pg_arg_text(pg, a, (struct hk_str){like, n});
    else
        hk_pg_arg_null(pg, a);
}

void hk_pl_arg_time(struct hk_pg *pg, struct hk_pg_args *a, int64_t ms)
{
    if (ms)
        hk_pg_arg_i64(pg, a, ms < -TIME_MAX_MS / 8 ? -TIME_MAX_MS / 8 : ms > TIME_MAX_MS ? TIME_MAX_MS : ms);
    else
        hk_pg_arg_null(pg, a);
}

void hk_pl_arg_query(struct hk_admin *admin, struct hk_pg_args *a, const struct hk_letter_query *query,
                     int64_t above, int64_t below)
{
    struct hk_pg *pg = &admin->pg;
    hk_pa_arg_now(admin, a);
    hk_pg_arg_i64(pg, a, above);
    hk_pg_arg_i64(pg, a, below);
    arg_statuses(pg, a, query->statuses);
    hk_pl_arg_asked(pg, a, query->destination);
    hk_pl_arg_asked(pg, a, query->reason);
    hk_pl_arg_asked(pg, a, query->fingerprint);
    hk_pl_arg_asked(pg, a, query->message_id);
    hk_pl_arg_asked(pg, a, query->correlation_id);
    hk_pl_arg_asked(pg, a, query->key);
    hk_pl_arg_pattern(pg, a, query->event_type);
    hk_pl_arg_asked(pg, a, query->failure_class);
    hk_pl_arg_asked(pg, a, query->blame);
    hk_pl_arg_time(pg, a, query->since_ms);
    hk_pl_arg_time(pg, a, query->before_ms);
    if (query->redrive)
        hk_pg_arg_i64(pg, a, query->redrive);
    else
        hk_pg_arg_null(pg, a);
}

/* The index that leaves the fewest letters to look at, as far as one can tell without asking. */
enum hk_pl_path hk_pl_path_of(const struct hk_letter_query *q)
{
    if (q->message_id)
        return HK_PL_BY_MESSAGE;
    if (q->correlation_id)
        return HK_PL_BY_CORRELATION;
    if (q->fingerprint)
        return HK_PL_BY_GROUP;
    if (q->redrive)
        return HK_PL_BY_REDRIVE;
    if (q->reason)
        return HK_PL_BY_REASON;
    if (q->destination)
        return HK_PL_BY_DESTINATION;
    if (q->event_type && !strchr(q->event_type, '*'))
        return HK_PL_BY_TYPE;
    return q->statuses ? HK_PL_BY_STATUS : HK_PL_BY_ID;
}

/* Does the path leave something to be compared? */
static bool compares(const struct hk_letter_query *q, enum hk_pl_path path)
{
    if (q->sieve.value || q->sieve.text)
        return true;

    const struct {
        bool asked;
        enum hk_pl_path path;
    } terms[] = {{q->destination != NULL, HK_PL_BY_DESTINATION},   {q->reason != NULL, HK_PL_BY_REASON},
                 {q->fingerprint != NULL, HK_PL_BY_GROUP},         {q->redrive != 0, HK_PL_BY_REDRIVE},
                 {q->message_id != NULL, HK_PL_BY_MESSAGE},        {q->event_type != NULL, HK_PL_BY_TYPE},
                 {q->correlation_id != NULL, HK_PL_BY_CORRELATION}};

    for (size_t i = 0; i < sizeof terms / sizeof terms[0]; i++)
        if (terms[i].asked && terms[i].path != path)
            return true;
    return q->key || q->failure_class || q->blame || q->since_ms || q->before_ms ||
           (q->statuses && path >= HK_PL_BY_MESSAGE);
}

/* ---- walking ---- */

void hk_pl_walk_init(struct hk_pl_walk *walk, struct hk_admin *admin, const struct hk_letter_query *query)
{
    *walk = (struct hk_pl_walk){.admin = admin, .query = query, .limit = PORTION, .window = WINDOW};
    hk_pl_bounds(query, &walk->above, &walk->below);
}

static int64_t payload_wanted(const struct hk_pl_walk *walk)
{
    uint64_t most = walk->admin->options.max_payload_bytes, want = walk->payload_max;
    if (walk->query->match && want < (most ? most : MATCH_BYTES))
        want = most ? most : MATCH_BYTES;
    return want < (uint64_t)PAYLOAD_MAX ? (int64_t)want : PAYLOAD_MAX;
}

/* What stands alone is of digits, letters and signs; those mean themselves in brackets. */
static void arg_alone(struct hk_pg *pg, struct hk_pg_args *a, const char *value)
{
    struct hk_buf pattern;
    hk_buf_init(&pattern, PATTERN_MAX);
    (void)hk_buf_adds(&pattern, "(^|[" HK_SIEVE_BEFORE "])");
    for (; *value; value++)
        (void)hk_buf_addf(&pattern, hk_ascii_isalpha(*value) || hk_ascii_isdigit(*value) ? "%c" : "[%c]",
                          *value);
    (void)hk_buf_adds(&pattern, "($|[" HK_SIEVE_BEHIND "])");
    if (hk_buf_status(&pattern) == HK_OK)
        hk_pg_arg_text(pg, a, hk_buf_str(&pattern));
    else /* it only saves time */
        hk_pg_arg_null(pg, a);
    hk_buf_fini(&pattern);
}

void hk_pl_arg_sieve(struct hk_pg *pg, struct hk_pg_args *a, const struct hk_letter_sieve *sieve)
{
    hk_pl_arg_asked(pg, a, sieve->value);
    hk_pl_arg_asked(pg, a, sieve->value_escapes);
    hk_pl_arg_asked(pg, a, sieve->text);
    hk_pl_arg_asked(pg, a, sieve->text_escapes);
    if (sieve->value_alone)
        arg_alone(pg, a, sieve->value);
    else
        hk_pg_arg_null(pg, a);
}

static PGresult *ask_portion(const struct hk_pl_walk *walk, int64_t looks)
{
    struct hk_pg *pg = &walk->admin->pg;
    struct hk_pg_args a = {.n = 0};
    enum hk_pl_path path = hk_pl_path_of(walk->query);
    hk_pl_arg_query(walk->admin, &a, walk->query, walk->above, walk->below);
    hk_pg_arg_i64(pg, &a, looks);
    hk_pg_arg_i64(pg, &a, walk->limit);
    hk_pg_arg_i64(pg, &a, payload_wanted(walk));
    hk_pg_arg_i64(pg, &a, PORTION_BYTES);
    hk_pg_arg_bool(pg, &a, walk->details || walk->query->match); /* which asks for the encoding */
    hk_pl_arg_sieve(pg, &a, &walk->query->sieve);
    unsigned first = walk->oldest_first ? HK_PL_OLDEST_BY_ID : HK_PL_NEWEST_BY_ID;
    return hk_pg_query(pg, false, first + (unsigned)path, &a);
}

/* Everything up to this one was looked at. */
static void go_behind(struct hk_pl_walk *walk, int64_t id)
{
    if (walk->oldest_first)
        walk->above = id;
    else
        walk->below = id;
}

/* How many letters came; -1: an error. */
static int portion(struct hk_pl_walk *walk, PGresult **out)
{
    int64_t looks = walk->window;
    if (looks > walk->limit && !compares(walk->query, hk_pl_path_of(walk->query)))
        looks = walk->limit;
    PGresult *res = *out = ask_portion(walk, looks);
    walk->windows++;
    if (!res || PQntuples(res) == 0)
        return -1;
    int n = hk_pg_null(res, 0, HK_PL_W_LETTER) ? 0 : PQntuples(res);
    walk->now_ms = hk_pg_i64(res, 0, HK_PL_W_NOW);
    bool full = hk_pg_null(res, 0, HK_PL_W_LOOKED);
    if (full || n < hk_pg_i64(res, 0, HK_PL_W_FOUND)) {
        walk->compared += (uint64_t)n;
        go_behind(walk, hk_pg_i64(res, n - 1, HK_PL_W_LETTER + HK_PL_C_ID));
        return n;
    }
    walk->compared += hk_pa_u64(res, 0, HK_PL_W_LOOKED);
    walk->ended = hk_pg_i64(res, 0, HK_PL_W_LOOKED) < looks;
    if (!walk->ended)
        go_behind(walk, hk_pg_i64(res, 0, HK_PL_W_LAST));
    return n;
}

bool hk_pl_walk_on(struct hk_pl_walk *walk, hk_pl_take_fn *take, void *arg)
{
    const struct hk_letter_query *q = walk->query;
    PGresult *res = NULL;
    bool wanted = true;
    int n = portion(walk, &res);
    for (int i = 0; i < n && wanted; i++) {
        struct hk_letter letter;
        hk_pl_letter(&walk->admin->pg, res, i, HK_PL_W_LETTER, false, &letter);
        walk->looked++;
        if (!q->match || q->match(q->match_arg, &letter))
            wanted = take(arg, res, i, &letter);
    }
    PQclear(res);
    if (q->seen && hk_pg_ok(&walk->admin->pg) && !walk->ended)
        q->seen(q->seen_arg, walk->oldest_first ? walk->above : walk->below);
    return hk_pg_ok(&walk->admin->pg) && wanted && !walk->ended;
}

/* ---- list ---- */

struct lister {
    struct hk_admin *admin;
    struct hk_letters *out;
    size_t room, limit, payload_max;
    uint64_t bytes, bytes_max; /* of payloads */
};

static bool take_letter(void *arg, const PGresult *res, int row, const struct hk_letter *letter)
{
    struct lister *l = arg;
    struct hk_letters *out = l->out;
    if (out->n == l->limit || (l->bytes_max && l->bytes >= l->bytes_max)) {
        out->more = true;
        return false;
    }
    struct hk_letter *items = hk_pa_grow(l->admin, out->items, out->n, &l->room, sizeof *items);
    if (!items)
        return false;
    out->items = items;
    struct hk_letter *item = &items[out->n];
    hk_pl_letter(&l->admin->pg, res, row, HK_PL_W_LETTER, true, item);
    hk_pl_cut_payload(item, l->payload_max);
    out->last_id = letter->id;
    out->n++;
    l->bytes += item->payload.len;
    return hk_pg_ok(&l->admin->pg);
}

static void begin_after(struct hk_pl_walk *walk, int64_t after_id)
{
    if (after_id && walk->oldest_first && after_id > walk->above)
        walk->above = after_id;
    if (after_id && !walk->oldest_first && after_id < walk->below)
        walk->below = after_id;
}

static uint32_t limit_of(const struct hk_letter_page *page)
{
    return page->limit < LIMIT_MAX ? page->limit : LIMIT_MAX;
}

enum hk_code hk_pl_end(struct hk_admin *admin, const char *doing, struct hk_err *err)
{
    return hk_pg_end(&admin->pg, doing, err);
}

static void list_all(struct hk_admin *admin, const struct hk_letter_query *query,
                     const struct hk_letter_page *page, struct hk_letters *out)
{
    struct lister l = {.admin = admin,
                       .out = out,
                       .limit = limit_of(page),
                       .payload_max = page->payload_max,
                       .bytes_max = page->bytes_max};
    struct hk_pl_walk walk;
    hk_pl_walk_init(&walk, admin, query);
    walk.oldest_first = page->oldest_first;
    walk.details = page->details;
    walk.payload_max = page->payload_max;
    if (!query->match)
        walk.limit = limit_of(page) + 1;
    if (page->looks > 0 && page->looks < WINDOW)
        walk.window = (int64_t)page->looks;
    begin_after(&walk, page->after_id);
    out->last_id = page->after_id;
    bool more = true;
    do {
        more = hk_pl_walk_on(&walk, take_letter, &l);
    } while (more && query->match && walk.looked < LIST_LOOKS && walk.windows < LIST_WINDOWS &&
             !(page->looks > 0 && walk.compared >= page->looks));
    out->looked = walk.compared;
    if (more) { /* the rest is for another call */
        out->more = true;
        out->last_id = page->oldest_first ? walk.above : walk.below;
    }
    if (hk_pg_ok(&admin->pg))
        out->now_ms = hk_pg_now(&admin->pg, walk.now_ms);
}

static enum hk_code pl_list(struct hk_admin *admin, const struct hk_letter_query *query,
                            const struct hk_letter_page *page, const struct hk_letters **out,
                            struct hk_err *err)
{
    hk_pg_call(&admin->pg);
    struct hk_letters *letters = hk_pg_alloc(&admin->pg, 1, sizeof *letters);
    if (letters) {
        list_all(admin, query, page, letters);
        letters->more = letters->more && page->limit > 0;
    }
    enum hk_code rc = hk_pl_end(admin, "list dead letters", err);
    if (rc == HK_OK)
        *out = letters;
    return rc;
}

/* ---- count ---- */

bool hk_pl_has_more(struct hk_admin *admin, const struct hk_letter_query *query, int64_t above, int64_t below)
{
    struct hk_pg_args a = {.n = 0};
    hk_pl_arg_query(admin, &a, query, above, below);
    hk_pg_arg_i64(&admin->pg, &a, 1);
    PGresult *res = hk_pg_query(&admin->pg, false, HK_PL_COUNT_BY_ID + (unsigned)hk_pl_path_of(query), &a);
    bool more = res && PQntuples(res) == 1 && hk_pg_i64(res, 0, 1) > 0;
    PQclear(res);
    return more;
}

/* Without match. */
static struct hk_count count_sql(struct hk_admin *admin, const struct hk_letter_query *query)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0}, about = {.n = 0};
    enum hk_pl_path path = hk_pl_path_of(query);
    bool more = compares(query, path);
    int64_t most = more ? HK_COUNT_EXACT : COUNT_ON_INDEX, above, below;
    hk_pl_bounds(query, &above, &below);
    hk_pl_arg_query(admin, &a, query, above, below);
    about = a;
    hk_pg_arg_i64(pg, &a, most + 1);
    PGresult *res = hk_pg_query(
        pg, false, (unsigned)(more ? HK_PL_COUNT_FIT_BY_ID : HK_PL_COUNT_BY_ID) + (unsigned)path, &a);
    struct hk_count count = {.n = 0};
    if (res && PQntuples(res) == 1) {
        count.n = hk_pa_u64(res, 0, 2);
        count.about = hk_pg_i64(res, 0, 1) > most;
    }
    PQclear(res);
    if (!count.about || !hk_pg_ok(pg))
        return count;
    res = hk_pg_query(pg, false, HK_PL_ABOUT, &about);
    uint64_t n = res && PQntuples(res) == 1 ? hk_pa_u64(res, 0, 1) : 0;
    PQclear(res);
    if (n > count.n)
        count.n = n;
    return count;
}

static bool take_number(void *arg, const PGresult *res, int row, const struct hk_letter *letter)
{
    (void)res;
    (void)row;
    (void)letter;
    ++*(uint64_t *)arg;
    return true;
}

/* What was found among the ids up to there is taken to hold for the rest. */
static uint64_t scaled(const struct hk_pl_walk *walk, uint64_t n)
{
    struct hk_pg *pg = &walk->admin->pg;
    PGresult *res = hk_pg_query(pg, false, HK_PL_LAST_ID, NULL);
    double last = res && PQntuples(res) == 1 ? (double)hk_pg_i64(res, 0, 0) : 0;
    PQclear(res);
    double first = walk->query->first_id ? (double)walk->query->first_id : 1;
    if (walk->query->last_id && (double)walk->query->last_id < last)
        last = (double)walk->query->last_id;
    double all = last - first + 1, left = (double)walk->below - first, seen = all - left;
    return left > 0 && seen > 0 ? (uint64_t)((double)n * (all / seen)) : n;
}

/* Newest first: whoever asks means the trouble of today. */
struct hk_count hk_pl_count(struct hk_admin *admin, const struct hk_letter_query *query)
{
    if (!query->match)
        return count_sql(admin, query);
    struct hk_pl_walk walk;
    struct hk_count count = {.n = 0};
    hk_pl_walk_init(&walk, admin, query);
    while (hk_pl_walk_on(&walk, take_number, &count.n) && walk.looked < HK_COUNT_EXACT &&
           walk.windows < COUNT_WINDOWS)
        continue;
    if (walk.ended || !hk_pg_ok(&admin->pg))
        return count;
    return (struct hk_count){scaled(&walk, count.n), true};
}

static enum hk_code pl_count(struct hk_admin *admin, const struct hk_letter_query *query,
                             struct hk_count *out, struct hk_err *err)
{
    hk_pg_call(&admin->pg);
    struct hk_count count = hk_pl_count(admin, query);
    enum hk_code rc = hk_pl_end(admin, "count dead letters", err);
    if (rc == HK_OK)
        *out = count;
    return rc;
}

const struct hk_store_letters_ops hk_store_letters_postgres = {
    .list = pl_list,
    .count = pl_count,
    .groups = hk_pl_groups,
    .groups_page = hk_pl_groups_page,
    .hours = hk_pl_hours,
    .stats = hk_pl_stats,
    .show = hk_pl_show,
    .find_requeued = hk_pl_find_requeued,
    .paused = hk_pl_paused,
    .edit = hk_pl_edit,
    .fix = hk_pl_fix,
    .requeue = hk_pl_requeue,
    .resolve = hk_pl_resolve,
    .discard = hk_pl_discard,
    .restore = hk_pl_restore,
    .remark = hk_pl_remark,
    .send_begin = hk_pl_send_begin,
    .send_end = hk_pl_send_end,
    .redrive_start = hk_pl_redrive_start,
    .redrive_list = hk_pl_redrive_list,
    .redrive_cancel = hk_pl_redrive_cancel,
    .redrive_step = hk_pl_redrive_step,
    .regroup = hk_pl_regroup,
    .audit = hk_pl_audit,
    .act_letters = hk_pl_act_letters,
};
