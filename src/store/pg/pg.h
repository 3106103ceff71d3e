/* SPDX-License-Identifier: Apache-2.0 */
/* The PostgreSQL store from inside: what its files share.
 *
 *   url.c       our own parameters (schema, prefix) out of a URL, the rest for libpq; names into SQL texts
 *   pg.c        connect and reconnect
 *   pipe.c      transactions as pipelines
 *   error.c     what SQLSTATEs and lost connections mean to our callers
 *   value.c     parameters of statements, values of results
 *   stmt.c      how the statements are planned; their texts: sql/relay.sql
 *   schema.c    init: create and migrate
 *   notify.c    init: the trigger that wakes relays
 *   days.c      init: sent rows by the day
 *   grants.c    least privilege for three roles
 *   listen.c    a thread that listens for it
 *   store.c     open and close of the relay's side, and its table of operations
 *   lane.c      acquire, take-over, release, sharing shards out
 *   window.c    which ids may have become visible late: snapshots and floors, no I/O
 *   scan.c      poll, scan, held keys: never writes
 *   row.c       rows to heads and messages
 *   exchange.c  the one transaction that settles and claims
 *   settle.c    one settle, by kind
 *   rest.c      payloads that are sealed when they leave outbox
 *   keep.c      pause and purge
 *   admin*.c    the operators' side
 *   letters*.c  dead letters, on the operators' connection
 *
 * Every transaction goes out whole: BEGIN, its statements, COMMIT and the pipeline's sync are written before the first
 * reply is read. A relay that stalls therefore never holds a lock, and a take-over never waits for one.
 *
 * Errors stick, as in sqlite/sqlite.h: after the first one the helpers below do nothing, and hk_pg_end says what went wrong. */
#ifndef HK_STORE_PG_PG_H
#define HK_STORE_PG_PG_H

#include <libpq-fe.h>

#include "base/buf.h"
#include "base/pool.h"
#include "store/store.h"

enum {
    HK_PG_SHARDS = 64,
    HK_PG_PARAMS_MAX = 40,
    HK_PG_NAME_MAX = 63,        /* PostgreSQL's own limit for identifiers */
    HK_PG_LONGEST_NAME = 31,    /* no name of ours is longer, so that a prefix may have the rest */
    HK_PG_DESTINATION_MAX = 252 /* bytes: the 63 characters of it that indexes hold */
};

/* ---- url.c ---- */

/* A URL, taken apart. */
struct hk_pg_url {
    char *conninfo;                                              /* for libpq, without our own parameters */
    char schema[HK_PG_NAME_MAX + 1], prefix[HK_PG_NAME_MAX + 1]; /* "" = as the search path says; "" = none */
    bool schema_said; /* by the URL; a connection finds it out where that is silent */
    bool service;     /* a service file has a part in it */
    int keeper;       /* of the password (run/password.h); 0 = none */
    char place[256];  /* "postgres://user@host/db", without the password, for messages */
};

/* HK_INVALID, HK_NOMEM; `out` is untouched then. No message holds the password. */
enum hk_code hk_pg_url_parse(const char *url, struct hk_pg_url *out, struct hk_err *err);
void hk_pg_url_fini(struct hk_pg_url *url);
/* Adds `sql` with our names filled in: `@name` becomes "schema"."prefixname", `@@name` only "prefixname" (CREATE INDEX
 * takes no schema). */
void hk_pg_url_names(const struct hk_pg_url *url, const char *sql, struct hk_buf *out);

/* ---- a connection ---- */

/* The search path of all our sessions: pg_temp stands there so that it is not looked into first. */
#define HK_PG_PATH "pg_catalog, pg_temp"

/* A table of statements, and what its sessions need set. */
struct hk_pg_table {
    const char *(*sql)(unsigned id);
    unsigned count;
    const char *const *settings; /* name, value, name, value …, NULL; e.g. "enable_seqscan", "off" */
    bool (*binary)(unsigned id); /* are its results wanted in binary? NULL: none's are */
};

struct hk_pg_expected;

/* A transaction that several calls share: what jobs.c says. */
enum hk_pg_held {
    HK_PG_FREE = 0, /* each call has its own */
    HK_PG_HELD,     /* calls join it: hk_pg_begin begins nothing, hk_pg_send does not commit */
    HK_PG_LOST      /* one of them failed: it is rolled back, and all others fail until hk_pg_unhold */
};

/* One connection. Everything that relay and operators share. */
struct hk_pg {
    struct hk_pg_url url;
    const struct hk_pg_table *table;
    PGconn *conn; /* NULL or bad: the next call connects anew */
    bool pooled;  /* a pooler stands between: no prepared statements, settings go with each transaction */
    bool never_prepare; /* for ever: a pooler was noticed only by what it broke */
    uint64_t connects;  /* so many: a reader resets when it changes */
    uint64_t busy_ms;   /* lock_timeout; statement and connect time-outs follow from it */
    uint64_t call_ms; /* the longest wait for the answers to one transaction; whoever opened may change it */
    bool late;        /* this call took longer */
    char **sql;       /* with names filled in; made at first use */
    bool *prepared;   /* on this connection */
    char *settings;   /* SELECT set_config …, for this session or for each transaction */
    enum hk_pg_held held;
    /* the transaction under way */
    enum hk_code rc;
    struct hk_err err;
    char sqlstate[6]; /* "" = not the server's words */
    char
        where[160]; /* the first line of the server's context, such as the function of a trigger; "" = none */
    bool
        commit_sent; /* COMMIT was handed to libpq: a connection that is lost now leaves the outcome unknown */
    bool committed;  /* and it was answered: so it is, whatever else went wrong */
    bool aborted;    /* the server said so */
    bool
        commit_unknown; /* the connection was lost before either. Stays until the next transaction that has one */
    bool sent;          /* what is expected was handed to libpq */
    struct hk_pg_expected *expected; /* what libpq will answer, in this order */
    size_t n_expected, room_expected, answered;
    int64_t deadline_ms; /* monotonic */
    struct hk_pool
        pools[2]; /* this call's results, and those of the last one, which arguments may point into */
    unsigned pool;
    int64_t high_ms; /* time never goes back: the latest that was given out */
    int64_t wall_ms; /* what the server's clock said then, when it lags behind */
};

/* Parses and connects, and checks that the server will do: HK_UNSUPPORTED before PostgreSQL 15 or for a database whose encoding
 * is not UTF8. Schema: see hk_pg_check_schema. `busy_ms` 0 = 5 s. On failure nothing is left to close. */
enum hk_code hk_pg_open(struct hk_pg *pg, const char *url, const struct hk_pg_table *table, uint64_t busy_ms,
                        struct hk_err *err);
void hk_pg_close(struct hk_pg *pg);
void hk_pg_drop(struct hk_pg *pg); /* the connection: the next call makes a new one */

/* With our defaults for what the URL does not say. `wait`: until it stands or has failed; else PQconnectPoll is the caller's,
 * and so is the time that it takes. `password` NULL: what the URL says. NULL: no memory. */
PGconn *hk_pg_dial(const struct hk_pg_url *url, const char *password, uint64_t timeout_ms, bool wait);

/* Begins a call: connects if need be, results of the last but one are freed, no error sticks. False: not connected; the
 * error sticks, and hk_pg_end tells it. */
bool hk_pg_call(struct hk_pg *pg);
bool hk_pg_again(struct hk_pg *pg); /* the same, but results of earlier calls stay */
struct hk_pool *hk_pg_pool(struct hk_pg *pg);
void *hk_pg_alloc(struct hk_pg *pg, size_t count, size_t bytes); /* zeroed; NULL: the error sticks */
bool hk_pg_ok(const struct hk_pg *pg);
void hk_pg_fail(struct hk_pg *pg, enum hk_code rc, const char *words); /* keeps the first */

/* ---- a transaction: begin, add …, send, read, end ----
 * The answers come in the order of the statements. Either each statement brings a reader along, and hk_pg_read gives every
 * answer to its own; or the caller takes one hk_pg_result per statement, where there are few and always the same.
 * A call may hold several, one after the other; hk_pg_begin reads what is left of the one before. */

/* Text parameters; NULL = SQL NULL. Values must live until hk_pg_send. Numbers are formatted into the call's pool. */
struct hk_pg_args {
    const char *values[HK_PG_PARAMS_MAX];
    int lengths[HK_PG_PARAMS_MAX];
    int formats[HK_PG_PARAMS_MAX]; /* 1 = binary (payloads with any bytes into bytea) */
    int n;
};

void hk_pg_arg_null(struct hk_pg *pg, struct hk_pg_args *a);
void hk_pg_arg_i64(struct hk_pg *pg, struct hk_pg_args *a, int64_t value);
void hk_pg_arg_u64(struct hk_pg *pg, struct hk_pg_args *a, uint64_t value); /* cut to INT64_MAX */
void hk_pg_arg_bool(struct hk_pg *pg, struct hk_pg_args *a, bool value);
/* What PostgreSQL cannot keep as text (a NUL byte, ill-formed UTF-8) becomes U+FFFD: the statement does not fail. */
void hk_pg_arg_text(struct hk_pg *pg, struct hk_pg_args *a, struct hk_str s);         /* empty is '' */
void hk_pg_arg_text_or_null(struct hk_pg *pg, struct hk_pg_args *a, struct hk_str s); /* empty is NULL */
void hk_pg_arg_bytes(struct hk_pg *pg, struct hk_pg_args *a, struct hk_str s);        /* bytea; not copied */
void hk_pg_arg_i64s(struct hk_pg *pg, struct hk_pg_args *a, const int64_t *values, size_t n); /* bigint[] */
void hk_pg_arg_texts(struct hk_pg *pg, struct hk_pg_args *a, const struct hk_str *values,
                     size_t n); /* text[] */

/* READ COMMITTED when it writes; else READ ONLY, and all its statements see one snapshot. */
void hk_pg_begin(struct hk_pg *pg, bool writes);
void hk_pg_add(struct hk_pg *pg, unsigned id, const struct hk_pg_args *args); /* args NULL: none */
/* Gets the answer to its statement, which belongs to it (PQclear); NULL: that statement failed, and the error sticks. Not called
 * when an earlier one failed. */
typedef void hk_pg_reader(void *arg, PGresult *res);
/* As hk_pg_add, for hk_pg_read. */
void hk_pg_add_read(struct hk_pg *pg, unsigned id, const struct hk_pg_args *args, hk_pg_reader *reader,
                    void *arg);
void hk_pg_send(struct hk_pg *pg); /* COMMIT, sync, all of it onto the wire */
/* As hk_pg_send, without COMMIT: the transaction stays open for the calls that follow, until hk_pg_send with `held` HK_PG_FREE, or
 * hk_pg_unhold. */
void hk_pg_hold(struct hk_pg *pg);
void hk_pg_unhold(struct hk_pg *pg); /* undoes what is held; nothing is: no harm */
/* Every answer to its reader; those that have none are dropped. */
void hk_pg_read(struct hk_pg *pg);
/* Belongs to the caller (PQclear); NULL when an error sticks. */
PGresult *hk_pg_result(struct hk_pg *pg);
/* Reads what is left, fills `err` with `doing` and what to do about it. */
enum hk_code hk_pg_end(struct hk_pg *pg, const char *doing, struct hk_err *err);
/* begin + add + send + result for a single statement; end is still the caller's. One that does not write goes without BEGIN
 * and COMMIT where that makes no difference, so that nothing keeps it from writing. */
PGresult *hk_pg_query(struct hk_pg *pg, bool writes, unsigned id, const struct hk_pg_args *args);
/* One or more statements of any text, names filled in, no parameters, as one message (so without BEGIN: one implicit
 * transaction). The last result, or NULL when an error sticks. For init and doctor, not for the relay. */
PGresult *hk_pg_script(struct hk_pg *pg, const char *sql);

/* One statement without parameters, names or a transaction of its own: for setting up the session. */
PGresult *hk_pg_ask(struct hk_pg *pg, const char *sql);

/* ---- values of a result (text format) ---- */
bool hk_pg_null(const PGresult *res, int row, int column);
int64_t hk_pg_i64(const PGresult *res, int row, int column); /* 0 for NULL */
bool hk_pg_bool(const PGresult *res, int row, int column);
struct hk_str hk_pg_text(struct hk_pg *pg, const PGresult *res, int row,
                         int column); /* copied into the pool */
struct hk_str hk_pg_bytes(struct hk_pg *pg, const PGresult *res, int row,
                          int column);                  /* bytea, decoded likewise */
int hk_pg_touched(PGresult *res);                       /* rows that a statement changed; 0 for NULL */
int64_t hk_pg_now(struct hk_pg *pg, int64_t server_ms); /* never goes back */
/* May it be kept as a destination's name of its own? Else a key of outbox_destination could be too long for its index. */
bool hk_pg_is_name(const char *destination, struct hk_err *err);

/* ---- error.c ---- */

/* What a SQLSTATE is to our callers, and what a person can do about it. */
enum hk_code hk_pg_meaning(const char *sqlstate, const char **out_advice);
/* Is the error that sticks one of a constraint or a trigger, which concerns single rows? */
bool hk_pg_is_refusal(const struct hk_pg *pg);
const char *hk_pg_unconnected(const char *words); /* advice for what has no SQLSTATE */
bool hk_pg_mends(const char *advice);             /* false: somebody must change settings or rights */
/* Lets the error of a result stick; `res` stays the caller's. */
void hk_pg_refused(struct hk_pg *pg, const PGresult *res);
/* Lets "the connection is gone" stick, with libpq's words, and drops it. */
void hk_pg_lost(struct hk_pg *pg);

/* ---- schema.c ---- */

enum hk_code hk_pg_init(const char *url, const struct hk_store_init *how, struct hk_store_inited *out,
                        struct hk_err *err);
/* HK_NOTFOUND, HK_CONFLICT, HK_UNSUPPORTED: as store.h says of open. `out_version` may be NULL. */
enum hk_code hk_pg_check_schema(struct hk_pg *pg, uint32_t *out_version, struct hk_err *err);
uint32_t hk_pg_schema_wanted(void);
/* Until it does not end in HK_BUSY, or for half a minute: `once` waits for no lock longer than HK_PG_LOCK_WAIT. */
#define HK_PG_LOCK_WAIT "500ms"
/* What is printed instead may be run by anybody, along any search path. */
#define HK_PG_BEGIN_CHANGE                                                                                   \
    "BEGIN;\nSET LOCAL lock_timeout = '" HK_PG_LOCK_WAIT "';\nSET LOCAL search_path = " HK_PG_PATH ";\n"
enum hk_code hk_pg_end_schema(struct hk_pg *pg, struct hk_err *err); /* hk_pg_end, with advice for init */
enum hk_code hk_pg_patiently(struct hk_pg *pg,
                             enum hk_code (*once)(struct hk_pg *pg, const void *arg, struct hk_err *err),
                             const void *arg, struct hk_err *err);

/* notify.c: what `how->notify` asks for, done or printed. */
enum hk_code hk_pg_set_notify(struct hk_pg *pg, const struct hk_store_init *how, struct hk_store_inited *out,
                              struct hk_err *err);

/* days.c: makes outbox_sent a table with a partition for each day, if it is not so; or adds the SQL to `print`. */
enum hk_code hk_pg_partition_sent(struct hk_pg *pg, struct hk_buf *print, struct hk_err *err);

/* letters_old.c: gives letters from before version 2 what they lack. */
enum hk_code hk_pg_mark_letters(struct hk_pg *pg, struct hk_err *err);

/* grants.c; HK_INVALID: a name that no role can have. */
enum hk_code hk_pg_grants(const char *url, const struct hk_store_roles *roles, struct hk_buf *out,
                          struct hk_err *err);

#endif
