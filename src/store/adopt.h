/* SPDX-License-Identifier: Apache-2.0 */
/* An outbox table that an application has already: a trigger on it copies each new row into ours. This is what all SQL stores
 * share: which column is what, and the SQL of one copied row. Each store has its own trigger (pg/adopt.c, sqlite/adopt.c).
 *
 * The trigger runs inside the application's INSERT, so the message has the application's transaction: a rollback leaves nothing.
 * Nothing that the row holds may make that INSERT fail; the relay makes a dead letter of what it cannot send. */
#ifndef HK_STORE_ADOPT_H
#define HK_STORE_ADOPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hikyaku/error.h>
#include <hikyaku/facts.h>

#include "base/buf.h"

enum {
    HK_ADOPT_COLUMNS_MAX = 1000, /* of the application's table; PostgreSQL allows 1,600 */
    HK_ADOPT_TEXTS_MAX = 100,
    HK_ADOPT_NAME_MAX = 63,
    HK_ADOPT_TABLE_MAX = 48 /* the function is called hikyaku_adopt_TABLE */
};

#define HK_ADOPT_SQL_MAX ((size_t)256 * 1024)

/* Whose table it is. */
enum hk_adopt_from {
    HK_ADOPT_DEBEZIUM = 0, /* aggregatetype, aggregateid, type, payload */
    HK_ADOPT_POLLING       /* status, retry_count, next_retry_at: a publisher reads it in a loop */
};

/* What a column of that table is to us. Up to HK_ADOPT_STATUS: a column of outbox. */
enum hk_adopt_to {
    HK_ADOPT_MESSAGE_ID = 0,
    HK_ADOPT_DESTINATION,
    HK_ADOPT_EVENT_TYPE,
    HK_ADOPT_MESSAGE_KEY,
    HK_ADOPT_PAYLOAD,
    HK_ADOPT_HEADERS,
    HK_ADOPT_CORRELATION_ID,
    HK_ADOPT_TRACEPARENT,
    HK_ADOPT_NOT_BEFORE,
    HK_ADOPT_EXPIRES_AT,
    HK_ADOPT_STATUS,         /* says whether the row still has to be sent */
    HK_ADOPT_AGGREGATE_TYPE, /* becomes a header */
    HK_ADOPT_ORDER,          /* rows that are there already are copied in this order */
    HK_NADOPT
};

struct hk_adopt_column {
    struct hk_str name, type;
};

struct hk_adopt {
    enum hk_adopt_from from;
    const char *table;          /* TABLE or SCHEMA.TABLE */
    const char *destination;    /* of every message; NULL: the column's, else the relay's routes choose */
    const char *const *columns; /* OURS=THEIRS, past what is recognized; OURS= leaves it out */
    size_t n_columns;
    const char *const *pending; /* rows with these statuses become messages; none: "pending" */
    size_t n_pending;
    const char *done; /* the trigger gives the application's row this status; NULL: leaves it */
    bool existing;    /* rows that are there already, too */
    bool undo;        /* take the trigger away */
    const char *actor;
    const char *reason; /* NULL: only the SQL, nothing is changed */
};

struct hk_adopted {
    struct hk_str table; /* as the database calls it */
    struct hk_str sql;   /* to be piped; valid until the handle's next call but one */
    bool applied;
    uint64_t copied; /* rows that were there already */
};

/* The columns of one table. */
struct hk_adopt_table {
    struct hk_str schema, name; /* SQLite: no schema */
    struct hk_adopt_column columns[HK_ADOPT_COLUMNS_MAX];
    size_t n;
    const struct hk_adopt_column *of[HK_NADOPT]; /* NULL = there is none */
};

/* How a store reads one value. */
struct hk_adopt_dialect {
    const char *outbox; /* our table in its statements */
    /* Adds the SQL of the value for `to` out of the row called `new`. HK_INVALID: a column of this type cannot be that. */
    enum hk_code (*value)(const struct hk_adopt_table *table, enum hk_adopt_to to, struct hk_buf *out,
                          struct hk_err *err);
    /* 'utf8', or 'base64' where `value` encodes the payload; NULL: the default will do. */
    const char *(*encoding)(const struct hk_adopt_table *table);
};

/* Fills `table->of`. HK_INVALID: an option is wrong, or the table lacks a column that is needed. */
enum hk_code hk_adopt_match(const struct hk_adopt *ask, struct hk_adopt_table *table, struct hk_err *err);
/* "outbox_of", and every name that goes into the SQL: HK_INVALID for what cannot be quoted everywhere. */
enum hk_code hk_adopt_check_name(struct hk_str name, struct hk_err *err);

void hk_adopt_add_name(struct hk_buf *out, struct hk_str name); /* "a""b" */
void hk_adopt_add_text(struct hk_buf *out, struct hk_str text); /* 'it''s' */
void hk_adopt_add_table(const struct hk_adopt_table *table, struct hk_buf *out);
void hk_adopt_add_column(const struct hk_adopt_column *column, struct hk_buf *out); /* new."name" */
/* 'TABLE-', with which ids that are numbers become ids of messages; only characters that a signed message_id may have. */
void hk_adopt_add_id_prefix(const struct hk_adopt_table *table, struct hk_buf *out);
/* What was recognized, one comment line for each. */
void hk_adopt_add_story(const struct hk_adopt *ask, const struct hk_adopt_table *table, struct hk_buf *out);
/* The condition on the row called `new`; false: every row is meant, and nothing was added. */
bool hk_adopt_add_condition(const struct hk_adopt *ask, const struct hk_adopt_table *table,
                            struct hk_buf *out);
/* INSERT INTO outbox (…), then VALUES (…), or `SELECT … FROM table AS new` of all rows that are meant. */
enum hk_code hk_adopt_add_copy(const struct hk_adopt *ask, const struct hk_adopt_table *table,
                               const struct hk_adopt_dialect *dialect, bool existing, struct hk_buf *out,
                               struct hk_err *err);
/* UPDATE of the status: of the row called `new`, or of all rows that are meant. */
void hk_adopt_add_done(const struct hk_adopt *ask, const struct hk_adopt_table *table, bool existing,
                       struct hk_buf *out);
/* The audit's detail: a JSON object. */
void hk_adopt_detail(const struct hk_adopt *ask, const struct hk_adopt_table *table, struct hk_buf *out);

#endif
