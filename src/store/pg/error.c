/* SPDX-License-Identifier: Apache-2.0 */
/* Turns errors into codes by SQLSTATE; for people it adds the place, the server's words, and what to do. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/utf8.h"
#include "store/pg/pg.h"

struct meaning {
    const char *sqlstate; /* whole, or the two letters of its class */
    enum hk_code code;
    const char *advice;
};

#define AGAIN     "try again"
#define START     "check that the server runs and takes connections"
#define NO_WRITER "of all its hosts none can be written to"
#define SPACE     "the server lacks room: free disk space or memory, or allow more connections"

/* Whole states stand before the class that they belong to. */
static const struct meaning meanings[] = {
    {"57P01", HK_UNAVAILABLE, "the server ended the connection: " AGAIN},
    {"57P02", HK_UNAVAILABLE, "the server ended the connection: " AGAIN},
    {"57P03", HK_UNAVAILABLE, "the server is starting or stopping: " AGAIN},
    {"57P04", HK_UNAVAILABLE, "the database was dropped"},
    {"57P05", HK_UNAVAILABLE, "the server ended the idle connection: " AGAIN},
    {"57014", HK_BUSY, "cancelled by the statement time-out, or by hand: " AGAIN},
    {"25P03", HK_UNAVAILABLE, "the server ended the connection: " AGAIN},
    {"25006", HK_UNAVAILABLE, "the server is read-only: a standby, or default_transaction_read_only is on"},
    {"40001", HK_BUSY, AGAIN},
    {"40P01", HK_BUSY, AGAIN},
    {"40003", HK_UNAVAILABLE, AGAIN},
    {"55P03", HK_BUSY, "somebody else holds the lock: " AGAIN},
    {"42P01", HK_NOTFOUND, "run `hikyaku init`"},
    {"42703", HK_NOTFOUND,
     "if somebody renamed or dropped the column, give it its name back (`hikyaku doctor` names all that are missing); if the "
     "schema is of an older version, run `hikyaku init`"},
    {"3F000", HK_NOTFOUND, "run `hikyaku init`"},
    {"42501", HK_UNAVAILABLE, "grant it: `hikyaku init --print-grants` prints what is needed"},
    {"42P07", HK_CONFLICT,
     "it is not hikyaku's: rename it, or name a schema or a prefix: ?schema=NAME&prefix=NAME"},
    {"23503", HK_CONFLICT, "what it belongs to is gone"},
    {"26000", HK_BUSY, AGAIN}, /* a pooler that was not noticed, or DISCARD ALL; see hk_pg_refused */
    {"42P05", HK_BUSY, AGAIN},
    {"0A000", HK_BUSY, AGAIN}, /* "cached plan must not change result type": a migration ran meanwhile */
    {"XX001", HK_IO, "its data are damaged: stop, and restore it from a backup"},
    {"XX002", HK_IO, "an index is damaged: REINDEX it"},
    {"08", HK_UNAVAILABLE, START},
    {"28", HK_UNAVAILABLE, "check user and password"},
    {"3D", HK_UNAVAILABLE, "check the database's name"},
    {"53", HK_UNAVAILABLE, SPACE},
    {"54", HK_TOOBIG, "it is more than PostgreSQL takes"},
    {"58", HK_UNAVAILABLE, "the server cannot read or write its files: look into its log"},
};

/* A connection that does not come about has no SQLSTATE in libpq, only words: the server's, which may be in any language, and
 * libpq's own. What is not understood is the server's not being there. */
static const struct {
    const char *words, *advice;
} unconnected[] = {
    {"unexpectedly", START}, /* it was there */
    {"password_command gave", "run it by hand as the relay's user; its own words are in the relay's log"},
    {"password_command cannot", "restart the relay"},
    {"password", "check user and password"},
    {"role \"", "check user and password"},
    {"authentication", "check user and password"},
    {"no pg_hba.conf entry",
     "the server's pg_hba.conf does not let this user in from here, or not without TLS"},
    {"database \"", "check the database's name"},
    {"host name \"", "check the host's name, DNS, and the names in the server's certificate"},
    {"certificate", "check sslmode, sslrootcert and the certificates"},
    {"SSL", "check sslmode, sslrootcert and the certificates"},
    {"definition of service", "check the service's name and PGSERVICEFILE"},
    {"service file", "check the service's name and PGSERVICEFILE"},
    {"too many", SPACE},
    {"connection slots", SPACE},
    {"session is read-only", NO_WRITER},
    {"server is in hot standby", NO_WRITER},
    {"the database system is", AGAIN},
};

const char *hk_pg_unconnected(const char *words)
{
    for (size_t i = 0; i < sizeof unconnected / sizeof unconnected[0]; i++)
        if (strstr(words, unconnected[i].words))
            return unconnected[i].advice;
    return START;
}

bool hk_pg_mends(const char *advice)
{
    static const char *const by_itself[] = {AGAIN, START, SPACE, NO_WRITER, "read-only"};
    for (size_t i = 0; i < sizeof by_itself / sizeof by_itself[0]; i++)
        if (strstr(advice, by_itself[i]))
            return true;
    return false;
}

static const struct meaning *meaning_of(const char *sqlstate)
{
    static const struct meaning lost = {"", HK_UNAVAILABLE, START},
                                other = {"", HK_IO, "run `hikyaku doctor`"};
    if (!sqlstate[0])
        return &lost;
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
        if (strncmp(meanings[i].sqlstate, sqlstate, strlen(meanings[i].sqlstate)) == 0)
            return &meanings[i];
    return &other;
}

enum hk_code hk_pg_meaning(const char *sqlstate, const char **out_advice)
{
    const struct meaning *m = meaning_of(sqlstate);
    if (out_advice)
        *out_advice = m->advice;
    return m->code;
}

static bool is_unprintable(uint32_t c)
{
    return c == HK_UTF8_BAD || c < 0x20 || (c >= 0x7f && c <= 0x9f) || (c >= 0x200b && c <= 0x200f) ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff;
}

/* The server's or libpq's words on one line, with nothing that moves a cursor. */
static void plain(const char *words, char *out, size_t room)
{
    struct hk_str s = hk_str_of(words);
    size_t len = 0;
    while (s.len > 0) {
        uint32_t c;
        size_t n = hk_utf8_next(s, &c);
        bool blank = is_unprintable(c) || c == ' ';
        if (len + n + 1 > room)
            break;
        if (blank && len > 0 && out[len - 1] != ' ')
            out[len++] = ' ';
        if (!blank) {
            memcpy(out + len, s.ptr, n);
            len += n;
        }
        s = (struct hk_str){s.ptr + n, s.len - n};
    }
    while (len > 0 && out[len - 1] == ' ')
        len--;
    out[len] = '\0';
}

#define WORDS_MAX 220 /* the place, what was done and the advice want room, too */

void hk_pg_fail(struct hk_pg *pg, enum hk_code rc, const char *words)
{
    if (pg->rc != HK_OK)
        return;
    char text[WORDS_MAX];
    plain(words, text, sizeof text);
    pg->rc = hk_err_set(&pg->err, rc, "%s", text);
    pg->sqlstate[0] = '\0';
}

/* A session that ended, is no good for writing, or has lost the statements that we believe to be prepared. */
static bool ends_session(const char *sqlstate)
{
    static const char *const states[] = {"57P01", "57P02", "57P03", "57P04", "57P05", "25P03",
                                         "25006", "26000", "42P05", "0A000", "08"};
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++)
        if (strncmp(states[i], sqlstate, strlen(states[i])) == 0)
            return true;
    return false;
}

void hk_pg_refused(struct hk_pg *pg, const PGresult *res)
{
    const char *sqlstate = PQresultErrorField(res, PG_DIAG_SQLSTATE);
    const char *words = PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY);
    if (!sqlstate || !words) { /* libpq's own: the connection broke, or there was no memory */
        hk_pg_lost(pg);
        return;
    }
    if (pg->rc == HK_OK) {
        const char *context = PQresultErrorField(res, PG_DIAG_CONTEXT);
        struct hk_str rest = hk_str_of(context ? context : "");
        char line[sizeof pg->where];
        struct hk_str first = hk_str_cut(&rest, '\n');
        (void)snprintf(line, sizeof line, "%.*s", (int)first.len, first.len ? first.ptr : "");
        plain(line, pg->where, sizeof pg->where);
        hk_pg_fail(pg, hk_pg_meaning(sqlstate, NULL), words);
        hk_str_copy(pg->sqlstate, sizeof pg->sqlstate, hk_str_of(sqlstate));
    }
    if (strcmp(sqlstate, "26000") == 0 || strcmp(sqlstate, "42P05") == 0)
        pg->never_prepare = true;
    if (ends_session(sqlstate))
        hk_pg_drop(pg);
}

/* Data and integrity exceptions, and whatever a trigger's function raises; of errors that can be the statement's own (its syntax,
 * its rights) only those that came about in a function. */
bool hk_pg_is_refusal(const struct hk_pg *pg)
{
    static const char *const classes[] = {"09", "22", "23", "27", "2F", "38", "39", "44", "P0"};
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
        if (strncmp(classes[i], pg->sqlstate, 2) == 0)
            return true;
    return strncmp(pg->sqlstate, "42", 2) == 0 && strstr(pg->where, "function");
}

void hk_pg_lost(struct hk_pg *pg)
{
    if (pg->conn) {
        const char *words = PQerrorMessage(pg->conn);
        bool memory = PQstatus(pg->conn) == CONNECTION_OK && strstr(words, "out of memory");
        hk_pg_fail(pg, memory ? HK_NOMEM : HK_UNAVAILABLE, *words ? words : "the connection was lost");
    }
    hk_pg_drop(pg);
}
