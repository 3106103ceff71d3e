/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at messages: list, by keyset within each place, and show, by message_id.
 *
 * All places are read in one transaction, so that a message which moves meanwhile is shown once. A filter that no index serves
 * is applied to WINDOW rows of a place in one call: a listing of a huge table goes on page by page, each in bounded time, and none
 * holds vacuum back for longer. Where payloads are matched, a call looks at MATCH_WINDOW rows of one place, and what comes of them is
 * bounded in bytes, too. */
#include "base/show.h"
#include "base/str.h"
#include "store/pg/letters.h"

#define LIMIT_MAX    INT64_C(100000)
#define WINDOW       INT64_C(50000)
#define BRIEF_WINDOW INT64_C(1000)
#define MATCH_WINDOW INT64_C(5000)
#define MATCH_ROWS   INT64_C(1000)    /* that come to be matched, */
#define MATCH_BYTES  INT64_C(8388608) /* and bytes of their payloads */
#define PAYLOAD_MAX  (INT64_C(1) << 20)

/* ---- rows ---- */

static struct hk_str text_of(struct hk_admin *admin, const PGresult *res, int row, int column)
{
    return hk_pg_text(&admin->pg, res, row, column);
}

static void read_brief(struct hk_admin *admin, const PGresult *res, int i, enum hk_place place,
                       struct hk_row *out)
{
    *out = (struct hk_row){
        .place = place,
        .id = hk_pg_i64(res, i, HK_PA_C_ID),
        .outbox_id = hk_pg_i64(res, i, HK_PA_C_OUTBOX_ID),
        .state = (enum hk_state)hk_pg_i64(res, i, HK_PA_C_STATE),
        .message_id = text_of(admin, res, i, HK_PA_C_MESSAGE_ID),
        .destination = text_of(admin, res, i, HK_PA_C_DESTINATION),
        .event_type = text_of(admin, res, i, HK_PA_C_EVENT_TYPE),
        .key = text_of(admin, res, i, HK_PA_C_KEY),
        .correlation_id = text_of(admin, res, i, HK_PA_C_CORRELATION_ID),
        .attempts = hk_pa_u32(res, i, HK_PA_C_ATTEMPTS),
        .crashes = hk_pa_u32(res, i, HK_PA_C_CRASHES),
        .life = hk_pa_u32(res, i, HK_PA_C_LIFE),
        .created_ms = hk_pg_i64(res, i, HK_PA_C_CREATED_MS),
        .next_ms = hk_pg_i64(res, i, HK_PA_C_NEXT_MS),
        .last_attempt_ms = hk_pg_i64(res, i, HK_PA_C_LAST_MS),
        .done_ms = hk_pg_i64(res, i, HK_PA_C_DONE_MS),
        .last_error = text_of(admin, res, i, HK_PA_C_ERROR),
        .cause = text_of(admin, res, i, HK_PA_C_CAUSE),
        .locked_by = text_of(admin, res, i, HK_PA_C_LOCKED_BY),
        .locked_ms = hk_pg_i64(res, i, HK_PA_C_LOCKED_MS),
        .status = (int)hk_pg_i64(res, i, HK_PA_C_STATUS),
        .letter_status = text_of(admin, res, i, HK_PA_C_LETTER),
        .actor = text_of(admin, res, i, HK_PA_C_ACTOR),
        .reason = text_of(admin, res, i, HK_PA_C_REASON),
    };
}

static void read_details(struct hk_admin *admin, const PGresult *res, int i, size_t payload_max,
                         struct hk_row *out)
{
    out->headers = text_of(admin, res, i, HK_PA_C_HEADERS);
    out->content_type = text_of(admin, res, i, HK_PA_C_CONTENT_TYPE);
    out->encoding = text_of(admin, res, i, HK_PA_C_ENCODING);
    out->traceparent = text_of(admin, res, i, HK_PA_C_TRACEPARENT);
    out->idempotency_key = text_of(admin, res, i, HK_PA_C_IDEMPOTENCY_KEY);
    out->policy = text_of(admin, res, i, HK_PA_C_POLICY);
    out->max_attempts = hk_pa_u32(res, i, HK_PA_C_MAX_ATTEMPTS);
    out->not_before = text_of(admin, res, i, HK_PA_C_NOT_BEFORE);
    out->expires_at = text_of(admin, res, i, HK_PA_C_EXPIRES);
    out->error_detail = text_of(admin, res, i, HK_PA_C_DETAIL);
    out->first_failed_ms = hk_pg_i64(res, i, HK_PA_C_FIRST_MS);
    out->has_payload = !hk_pg_null(res, i, HK_PA_C_PAYLOAD_BYTES);
    out->payload_bytes = hk_pa_u64(res, i, HK_PA_C_PAYLOAD_BYTES);
    out->payload = text_of(admin, res, i, HK_PA_C_PAYLOAD);
    if (out->payload.len > payload_max) /* it was cut by characters */
        out->payload.len = payload_max;
}

/* ---- list ---- */

static bool has_state(enum hk_place place, enum hk_state state)
{
    static const bool table[HK_NPLACES][HK_NSTATES] = {
        [HK_IN_RETRY] = {[HK_PENDING] = true, [HK_PROCESSING] = true, [HK_RETRYING] = true},
        [HK_IN_OUTBOX] = {[HK_PENDING] = true, [HK_PROCESSING] = true},
        [HK_IN_DEAD] =
            {[HK_PROCESSING] = true, [HK_RETRYING] = true, [HK_SENT] = true, [HK_STATE_DEAD] = true},
        [HK_IN_CANCELLED] = {[HK_STATE_CANCELLED] = true},
        [HK_IN_SENT] = {[HK_SENT] = true},
    };

    return state == HK_STATE_NONE || table[place][state];
}

/* Is every row of the place of that state? */
static bool is_whole(enum hk_place place, enum hk_state state)
{
    return (state == HK_STATE_NONE && place != HK_IN_DEAD) || place == HK_IN_CANCELLED || place == HK_IN_SENT;
}

/* Is nothing asked but a state and a destination? */
static bool is_plain(const struct hk_list *list)
{
    return !list->event_type && !list->correlation_id && !list->key && !list->since_ms && !list->before_ms &&
           !list->match;
}

/* Few of a destination's rows are in flight. ('' stands for NULL, too, which makes two ranges of the index.) */
static bool is_of_one(const struct hk_list *list, enum hk_place place)
{
    return place == HK_IN_OUTBOX && is_plain(list) && list->destination && list->destination[0];
}

/* Rows that are few whatever the tables hold, or found through an index that gives them in order. */
static bool needs_window(const struct hk_list *list, enum hk_place place)
{
    if (list->state == HK_PROCESSING || (list->state == HK_RETRYING && place == HK_IN_DEAD))
        return false;
    if (is_of_one(list, place))
        return false;
    return list->destination || !is_plain(list) || !is_whole(place, list->state);
}

static enum hk_pa_id statement_of(const struct hk_list *list, enum hk_place place)
{
    if (place == HK_IN_DEAD && (list->state == HK_PROCESSING || list->state == HK_RETRYING))
        return HK_PA_LIST_DEAD_AWAY;
    if (list->state == HK_PROCESSING)
        return place == HK_IN_OUTBOX ? HK_PA_LIST_OUTBOX_HELD : HK_PA_LIST_RETRY_HELD;
    if (is_of_one(list, place))
        return HK_PA_LIST_OUTBOX_OF;
    return (enum hk_pa_id)(HK_PA_LIST_IN_RETRY + (int)place);
}

static int64_t below_of(const struct hk_list *list, enum hk_place place)
{
    return list->resume && list->after_place == place ? list->after_id : INT64_MAX;
}

static int64_t limit_of(const struct hk_list *list)
{
    return list->limit < LIMIT_MAX ? (int64_t)list->limit : LIMIT_MAX;
}

/* Rows that a call looks through at the most. */
static int64_t window_of(const struct hk_list *list)
{
    int64_t most = list->match ? MATCH_WINDOW : WINDOW;
    return list->looks > 0 && list->looks < (uint64_t)most ? (int64_t)list->looks : most;
}

static void arg_payloads(struct hk_admin *admin, struct hk_pg_args *a, const struct hk_list *list)
{
    struct hk_pg *pg = &admin->pg;
    uint64_t most = admin->options.max_payload_bytes;
    int64_t bytes = most && most < (uint64_t)INT32_MAX ? (int64_t)most : PAYLOAD_MAX;
    hk_pg_arg_i64(pg, a, list->match ? bytes : 0);
    hk_pg_arg_i64(pg, a, list->match ? MATCH_BYTES : INT64_MAX);
    hk_pl_arg_sieve(pg, a, &list->sieve);
}

/* What is asked of a row, and how much of its payload; behind the first two arguments. */
static void arg_terms(struct hk_admin *admin, struct hk_pg_args *a, const struct hk_list *list)
{
    struct hk_pg *pg = &admin->pg;
    hk_pg_arg_i64(pg, a, list->match ? MATCH_ROWS : limit_of(list));
    hk_pl_arg_asked(pg, a, list->destination);
    hk_pl_arg_pattern(pg, a, list->event_type);
    hk_pg_arg_i64(pg, a, list->state);
    hk_pl_arg_asked(pg, a, list->correlation_id);
    hk_pl_arg_asked(pg, a, list->key);
    hk_pl_arg_time(pg, a, list->since_ms);
    hk_pl_arg_time(pg, a, list->before_ms);
    arg_payloads(admin, a, list);
}

static void ask_place(struct hk_admin *admin, const struct hk_list *list, enum hk_place place, int64_t window)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0}, floor = {.n = 0};
    hk_pg_arg_i64(pg, &floor, below_of(list, place));
    hk_pg_arg_i64(pg, &floor, window);
    if (needs_window(list, place))
        hk_pg_add(pg, (unsigned)HK_PA_FLOOR_IN_RETRY + (unsigned)place, &floor);
    hk_pg_arg_i64(pg, &a, below_of(list, place));
    if (needs_window(list, place))
        hk_pg_arg_i64(pg, &a, window);
    else
        hk_pg_arg_null(pg, &a);
    arg_terms(admin, &a, list);
    hk_pg_add(pg, statement_of(list, place), &a);
}

struct lister {
    struct hk_admin *admin;
    const struct hk_list *list;
    struct hk_rows *out;
    size_t room;
};

static int64_t looks_left(const struct lister *l)
{
    int64_t window = window_of(l->list);
    return l->out->looked < (uint64_t)window ? window - (int64_t)l->out->looked : 0;
}

static struct hk_str raw_text(const PGresult *res, int row, int column)
{
    if (hk_pg_null(res, row, column))
        return (struct hk_str){"", 0};
    return (struct hk_str){PQgetvalue(res, row, column), (size_t)PQgetlength(res, row, column)};
}

/* Asked of the answer itself: hardly any row of it is kept. */
static bool is_meant(const struct hk_list *list, const PGresult *res, int i)
{
    if (!list->match)
        return true;
    const struct hk_letter letter = {.id = hk_pg_i64(res, i, HK_PA_C_ID),
                                     .message_id = raw_text(res, i, HK_PA_C_MESSAGE_ID),
                                     .destination = raw_text(res, i, HK_PA_C_DESTINATION),
                                     .event_type = raw_text(res, i, HK_PA_C_EVENT_TYPE),
                                     .correlation_id = raw_text(res, i, HK_PA_C_CORRELATION_ID),
                                     .error = raw_text(res, i, HK_PA_C_ERROR),
                                     .encoding = raw_text(res, i, HK_PA_L_ENCODING),
                                     .payload = raw_text(res, i, HK_PA_L_PAYLOAD)};
    return list->match(list->match_arg, &letter);
}

/* False: there was more in the window than came. */
static bool read_page(struct lister *l, const PGresult *res, enum hk_place place)
{
    int n = res ? PQntuples(res) : 0;
    for (int i = 0; i < n && l->out->n < (size_t)limit_of(l->list); i++) {
        if (is_meant(l->list, res, i)) {
            struct hk_row *rows = hk_pa_grow(l->admin, l->out->items, l->out->n, &l->room, sizeof *rows);
            if (!rows)
                return true;
            l->out->items = rows;
            read_brief(l->admin, res, i, place, &rows[l->out->n++]);
        }
        l->out->last_place = place;
        l->out->last_id = hk_pg_i64(res, i, HK_PA_C_ID);
        l->out->last_origin = hk_pg_i64(res, i, HK_PA_C_OUTBOX_ID);
    }
    return !l->list->match || n == 0 ||
           (n == hk_pg_i64(res, 0, HK_PA_L_FOUND) && hk_pg_i64(res, 0, HK_PA_L_FOUND) < MATCH_ROWS);
}

/* True: the place has been seen to its end. What was asked for is read in any case. */
static bool read_place(struct lister *l, enum hk_place place, bool wanted)
{
    struct hk_pg *pg = &l->admin->pg;
    int64_t floor = INT64_MIN;
    if (needs_window(l->list, place)) {
        PGresult *res = hk_pg_result(pg);
        if (res && PQntuples(res) == 1 && !hk_pg_null(res, 0, 0))
            floor = hk_pg_i64(res, 0, 0);
        if (res && PQntuples(res) == 1 && wanted)
            l->out->looked += hk_pa_u64(res, 0, 1);
        PQclear(res);
    }
    PGresult *res = hk_pg_result(pg);
    bool all = !wanted || read_page(l, res, place);
    PQclear(res);
    if (!wanted || !all || l->out->n == (size_t)limit_of(l->list) || !hk_pg_ok(pg))
        return false;
    if (floor == INT64_MIN)
        return true;
    l->out->last_place = place;
    l->out->last_id = floor;
    return false;
}

/* ---- by origin ---- */

static void ask_by_origin(struct hk_admin *admin, const struct hk_list *list, bool whole)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0}, end = {.n = 0};
    hk_pg_arg_i64(pg, &end, list->resume ? list->after_id : INT64_MIN);
    hk_pg_arg_i64(pg, &end, whole ? 0 : window_of(list));
    hk_pg_arg_i64(pg, &end, list->resume ? list->after_origin : INT64_MIN);
    hk_pg_arg_i64(pg, &a, list->resume ? list->after_id : INT64_MIN);
    if (whole)
        hk_pg_arg_null(pg, &a);
    else
        hk_pg_arg_i64(pg, &a, window_of(list));
    arg_terms(admin, &a, list);
    hk_pg_arg_i64(pg, &a, list->resume ? list->after_origin : INT64_MIN);
    if (list->act_id)
        hk_pg_arg_i64(pg, &a, list->act_id);
    else
        hk_pg_arg_null(pg, &a);
    hk_pg_begin(pg, false);
    hk_pg_add(pg, HK_PA_END_BY_ORIGIN, &end);
    hk_pg_add(pg, HK_PA_LIST_BY_ORIGIN, &a);
    hk_pg_send(pg);
}

static enum hk_code list_by_origin(struct hk_admin *admin, const struct hk_list *list,
                                   const struct hk_rows **out, struct hk_err *err)
{
    struct lister l = {.admin = admin, .list = list, .out = &admin->rows};
    struct hk_pg *pg = &admin->pg;
    bool whole = is_plain(list) && !list->destination && !list->act_id, more = false;
    admin->rows = (struct hk_rows){.more = false};
    hk_pg_call(pg);
    ask_by_origin(admin, list, whole);
    PGresult *end = hk_pg_result(pg), *res = hk_pg_result(pg);
    bool all = read_page(&l, res, HK_IN_CANCELLED);
    if (end && PQntuples(end) == 1 && !whole) {
        more = !hk_pg_null(end, 0, 0);
        l.out->looked = hk_pa_u64(end, 0, 2);
        if (more && all && l.out->n < (size_t)limit_of(list)) {
            l.out->last_origin = hk_pg_i64(end, 0, 0);
            l.out->last_id = hk_pg_i64(end, 0, 1);
        }
    }
    PQclear(end);
    PQclear(res);
    enum hk_code rc = hk_pg_end(pg, "list messages", err);
    if (rc != HK_OK)
        return rc;
    admin->rows.last_place = HK_IN_CANCELLED;
    admin->rows.more = list->limit > 0 && (more || !all || admin->rows.n == (size_t)limit_of(list));
    *out = &admin->rows;
    return HK_OK;
}

/* Goes on with the places from the list's own on, in one snapshot. True: all of them up to `end` have been seen to their ends. */
static bool list_at_once(struct lister *l, int end, int64_t window)
{
    struct hk_pg *pg = &l->admin->pg;
    int first = l->list->resume ? (int)l->list->after_place : 0;
    bool ended = true;
    hk_pg_begin(pg, false);
    for (int place = first; place < end; place++)
        if (has_state((enum hk_place)place, l->list->state))
            ask_place(l->admin, l->list, (enum hk_place)place, window);
    hk_pg_send(pg);
    for (int place = first; place < end && hk_pg_ok(pg); place++)
        if (has_state((enum hk_place)place, l->list->state))
            ended = read_place(l, (enum hk_place)place, ended);
    if (ended) { /* the next place from its beginning */
        l->out->last_place = (enum hk_place)end;
        l->out->last_id = INT64_MAX;
    }
    return ended;
}

/* First a brief look at every place at once: of small tables, a message that moves meanwhile is seen once. What is large is then looked
 * through place by place, so that nothing is looked at in vain. Payloads are matched in one place a call. */
static void list_places(struct hk_admin *admin, struct hk_list list)
{
    struct lister l = {.admin = admin, .list = &list, .out = &admin->rows};
    const int last = list.live ? HK_IN_DEAD : HK_NPLACES;
    bool briefly = !list.match, ended = false;
    do {
        int place = list.resume ? (int)list.after_place : 0;
        while (place < last && !has_state((enum hk_place)place, list.state))
            place++;
        int end = briefly || place >= last ? last : place + 1;
        int64_t left = looks_left(&l);
        ended = list_at_once(&l, end, briefly && left > BRIEF_WINDOW ? BRIEF_WINDOW : left) && end == last;
        list.resume = true;
        list.after_place = l.out->last_place;
        list.after_id = l.out->last_id;
        briefly = false;
    } while (!ended && !list.match && hk_pg_ok(&admin->pg) && l.out->n < (size_t)limit_of(&list) &&
             looks_left(&l) > 0);
    l.out->more = !ended;
}

enum hk_code hk_pa_list(struct hk_admin *admin, const struct hk_list *list, const struct hk_rows **out,
                        struct hk_err *err)
{
    if (list->by_origin)
        return list_by_origin(admin, list, out, err);
    admin->rows = (struct hk_rows){.more = false};
    hk_pg_call(&admin->pg);
    if (list->limit > 0)
        list_places(admin, *list);
    enum hk_code rc = hk_pg_end(&admin->pg, "list messages", err);
    if (rc == HK_OK)
        *out = &admin->rows;
    return rc;
}

/* ---- show ---- */

static void read_shown(struct hk_admin *admin, const PGresult *res, enum hk_place place, size_t payload_max,
                       size_t *room)
{
    struct hk_shown *out = &admin->shown;
    for (int i = 0; res && i < PQntuples(res) && out->n_rows < HK_SHOWN_MAX; i++) {
        struct hk_row *rows = hk_pa_grow(admin, out->rows, out->n_rows, room, sizeof *rows);
        if (!rows)
            return;
        out->rows = rows;
        read_brief(admin, res, i, place, &rows[out->n_rows]);
        read_details(admin, res, i, payload_max, &rows[out->n_rows]);
        out->n_rows++;
    }
}

void hk_pa_attempt(struct hk_pg *pg, const PGresult *res, int i, struct hk_tried *out)
{
    *out = (struct hk_tried){
        .destination = hk_pg_text(pg, res, i, 0),
        .life = hk_pa_u32(res, i, 1),
        .n = hk_pa_u32(res, i, 2),
        .started_ms = hk_pg_i64(res, i, 3),
        .duration_ms = hk_pa_u64(res, i, 4),
        .status = (int)hk_pg_i64(res, i, 5),
        .failure_class = hk_pg_text(pg, res, i, 6),
        .cause = hk_pg_text(pg, res, i, 7),
        .error = hk_pg_text(pg, res, i, 8),
        .request_headers = hk_pg_text(pg, res, i, 9),
        .response_headers = hk_pg_text(pg, res, i, 10),
        .response_body = hk_pg_bytes(pg, res, i, 11),
        .address = hk_pg_text(pg, res, i, 12),
        .possibly_delivered = hk_pg_bool(res, i, 13),
    };
}

enum hk_code hk_pa_attempts(struct hk_admin *admin, const char *message_id, int64_t after_id, uint32_t limit,
                            const struct hk_tries **out, struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    struct hk_tries *tries = &admin->tries;
    *tries = (struct hk_tries){.n = 0};
    hk_pg_call(pg);
    hk_pg_arg_text(pg, &a, hk_str_of(message_id));
    hk_pg_arg_i64(pg, &a, limit);
    hk_pg_arg_i64(pg, &a, after_id);
    PGresult *res = hk_pg_query(pg, false, HK_PA_ATTEMPTS_PAGE, &a);
    int n = res ? PQntuples(res) : 0;
    tries->items = n ? hk_pg_alloc(pg, (size_t)n, sizeof *tries->items) : NULL;
    for (int i = 0; i < n && tries->items; i++) {
        hk_pa_attempt(pg, res, i, &tries->items[tries->n]);
        tries->items[tries->n++].id = hk_pg_i64(res, i, 14);
    }
    PQclear(res);
    enum hk_code rc = hk_pg_end(pg, "read attempts", err);
    if (rc == HK_OK)
        *out = tries;
    return rc;
}

static void read_attempts(struct hk_admin *admin, const PGresult *res)
{
    struct hk_shown *out = &admin->shown;
    int n = res ? PQntuples(res) : 0;
    out->attempts = n ? hk_pg_alloc(&admin->pg, (size_t)n, sizeof *out->attempts) : NULL;
    for (int i = 0; i < n && out->attempts; i++)
        hk_pa_attempt(&admin->pg, res, i, &out->attempts[out->n_attempts++]);
}

static void ask_message(struct hk_pg *pg, const char *message_id, struct hk_str ids, size_t payload_max)
{
    struct hk_pg_args a = {.n = 0}, tried = {.n = 0};
    hk_pg_arg_text(pg, &a, hk_str_of(message_id));
    hk_pg_arg_text(pg, &a, ids);
    hk_pg_arg_i64(pg, &a, payload_max < INT32_MAX ? (int64_t)payload_max : INT32_MAX);
    hk_pg_arg_i64(pg, &a, HK_SHOWN_MAX);
    for (unsigned place = 0; place < HK_NPLACES; place++)
        hk_pg_add(pg, (unsigned)HK_PA_SHOW_IN_RETRY + place, &a);
    hk_pg_arg_text(pg, &tried, hk_str_of(message_id));
    hk_pg_arg_i64(pg, &tried, HK_TRIED_MAX);
    hk_pg_add(pg, HK_PA_ATTEMPTS, &tried);
}

enum hk_code hk_pa_show(struct hk_admin *admin, const char *message_id, size_t payload_max,
                        const struct hk_shown **out, struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    char shown[HK_SHOW_MAX];
    size_t room = 0;
    admin->shown = (struct hk_shown){.n_rows = 0};
    hk_pg_call(pg);
    struct hk_str ids = hk_pa_find(admin, message_id);
    hk_pg_begin(pg, false);
    ask_message(pg, message_id, ids, payload_max);
    hk_pg_send(pg);
    for (int place = 0; place < HK_NPLACES && hk_pg_ok(pg); place++) {
        PGresult *res = hk_pg_result(pg);
        read_shown(admin, res, (enum hk_place)place, payload_max, &room);
        PQclear(res);
    }
    PGresult *res = hk_pg_result(pg);
    read_attempts(admin, res);
    PQclear(res);
    enum hk_code rc = hk_pg_end(pg, "read a message", err);
    if (rc == HK_OK && admin->shown.n_rows == 0 && admin->shown.n_attempts == 0)
        rc = hk_err_set(err, HK_NOTFOUND, "there is no message %s", hk_show(hk_str_of(message_id), shown));
    if (rc == HK_OK)
        *out = &admin->shown;
    return rc;
}

static struct hk_str ids_of(struct hk_pg *pg, const struct hk_ref *refs, size_t n, enum hk_place place)
{
    struct hk_buf text;
    hk_buf_init(&text, 32 * n + 8);
    (void)hk_buf_addc(&text, '{');
    for (size_t i = 0; i < n; i++)
        if (refs[i].place == place)
            (void)hk_buf_addf(&text, "%s%lld", text.len > 1 ? "," : "", (long long)refs[i].id);
    (void)hk_buf_addc(&text, '}');
    const char *copy =
        hk_buf_status(&text) == HK_OK ? hk_pool_copy_str(hk_pg_pool(pg), hk_buf_str(&text)) : NULL;
    if (!copy)
        hk_pg_fail(pg, HK_NOMEM, "out of memory");
    hk_buf_fini(&text);
    return hk_str_of(copy ? copy : "{}");
}

enum hk_code hk_pa_fetch(struct hk_admin *admin, const struct hk_ref *refs, size_t n, size_t payload_max,
                         const struct hk_shown **out, struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    size_t room = 0;
    admin->shown = (struct hk_shown){.n_rows = 0};
    hk_pg_call(pg);
    hk_pg_begin(pg, false);
    for (int place = HK_IN_RETRY; place <= HK_IN_OUTBOX; place++) {
        struct hk_pg_args a = {.n = 0};
        hk_pg_arg_null(pg, &a);
        hk_pg_arg_text(pg, &a, ids_of(pg, refs, n, (enum hk_place)place));
        hk_pg_arg_i64(pg, &a, payload_max < INT32_MAX ? (int64_t)payload_max : INT32_MAX);
        hk_pg_arg_i64(pg, &a, (int64_t)n);
        hk_pg_add(pg, place == HK_IN_RETRY ? HK_PA_FETCH_IN_RETRY : HK_PA_FETCH_IN_OUTBOX, &a);
    }
    hk_pg_send(pg);
    for (int place = HK_IN_RETRY; place <= HK_IN_OUTBOX && hk_pg_ok(pg); place++) {
        PGresult *res = hk_pg_result(pg);
        read_shown(admin, res, (enum hk_place)place, payload_max, &room);
        PQclear(res);
    }
    enum hk_code rc = hk_pg_end(pg, "read messages", err);
    if (rc == HK_OK)
        *out = &admin->shown;
    return rc;
}
