/* SPDX-License-Identifier: Apache-2.0 */
/* What wakes relays: a trigger that says NOTIFY when it is worth it. That is every application's INSERT, so it must cost next
 * to nothing, never wait, and never fail:
 *
 * - NOTIFY takes a lock, until its transaction has ended, that all of the server's notifying transactions share. So it is
 *   said only when a relay has asked for it, and once: a relay with nothing to do arms a flag, and the first INSERT that sees
 *   it armed disarms it. Under load nobody arms it, and an INSERT does no more than look at it.
 * - The flag is a sequence, since a sequence is no matter of transactions: looking, arming and disarming wait for nobody, write
 *   no row, and are seen at once. Unlogged, it writes no WAL either and takes no transaction number; after a crash it is disarmed.
 *   Its value is MILLION * (when it was armed, Unix ms); each INSERT that finds it so draws the next value, and the one
 *   that draws the first of them notifies. The time is there so that relays, however many, arm it only so often.
 * - What was disarmed for a transaction that is rolled back, or stays open for long, is armed again by the relay's next poll.
 * - The queue of notifications is the whole server's. Who adds to it when it is full fails: we stop when it is half full.
 * - A transaction that has notified cannot be PREPAREd. Who does that says SET hikyaku.notify = off.
 * - Whatever else goes wrong (somebody dropped the sequence, or gave it away) is caught: then nobody is woken.
 *
 * The function runs with its owner's rights, so that applications need none of their own; hence every name in it is
 * qualified, operators included, and none comes from outside. The channel is named after the outbox's oid, which no two outboxes
 * share. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "store/pg/pg.h"

#define SCRIPT_MAX (16 * 1024)

/* Its ownership is checked by the comment: a sequence that somebody else put there could stop every INSERT. Whoever may move
 * messages may use it. */
#define CREATE_FLAG                                                                                             \
    "CREATE UNLOGGED SEQUENCE IF NOT EXISTS @outbox_wake MINVALUE 0;\n"                                         \
    "COMMENT ON SEQUENCE @outbox_wake IS 'hikyaku: armed when a relay wants to be woken by the next INSERT';\n" \
    "DO $$\n"                                                                                                   \
    "DECLARE\n"                                                                                                 \
    "    role regrole;\n"                                                                                       \
    "BEGIN\n"                                                                                                   \
    "    FOR role IN SELECT DISTINCT a.grantee FROM pg_class c CROSS JOIN aclexplode(c.relacl) a\n"             \
    "                WHERE c.oid = '@outbox_relay'::regclass AND a.privilege_type = 'UPDATE'\n"                 \
    "                AND a.grantee NOT IN (0, c.relowner) LOOP\n"                                               \
    "        EXECUTE 'GRANT SELECT, UPDATE ON SEQUENCE @outbox_wake TO ' || role;\n"                            \
    "    END LOOP;\n"                                                                                           \
    "END\n"                                                                                                     \
    "$$;\n"

/* It does not know where SQL breaks. */
/* clang-format off */
#define CREATE_TRIGGER                                                                                       \
    "CREATE OR REPLACE FUNCTION @outbox_wake_up() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$\n" \
    "BEGIN\n"                                                                                                \
    "    IF pg_catalog.pg_sequence_last_value('@outbox_wake'::pg_catalog.regclass)\n"                         \
    "       OPERATOR(pg_catalog.%) 1000000 OPERATOR(pg_catalog.=) 0\n"                                       \
    "       AND coalesce(pg_catalog.current_setting('hikyaku.notify', true), '') OPERATOR(pg_catalog.<>) 'off'\n" \
    "       AND pg_catalog.pg_notification_queue_usage() OPERATOR(pg_catalog.<) 0.5 THEN\n"                  \
    "        IF pg_catalog.nextval('@outbox_wake'::pg_catalog.regclass)\n"                                       \
    "           OPERATOR(pg_catalog.%) 1000000 OPERATOR(pg_catalog.=) 1 THEN\n"                              \
    "            PERFORM pg_catalog.pg_notify(\n"                                                             \
    "                pg_catalog.concat('hikyaku_', '@outbox'::pg_catalog.regclass::pg_catalog.oid), '');\n"    \
    "        END IF;\n"                                                                                      \
    "    END IF;\n"                                                                                          \
    "    RETURN NULL;\n"                                                                                     \
    "EXCEPTION WHEN OTHERS THEN\n"                                                                           \
    "    RETURN NULL;\n"                                                                                     \
    "END\n"                                                                                                  \
    "$$;\n"                                                                                                  \
    "REVOKE ALL ON FUNCTION @outbox_wake_up() FROM PUBLIC;\n"                                                \
    "CREATE OR REPLACE TRIGGER @@outbox_wake_up AFTER INSERT ON @outbox\n"                                   \
    "    FOR EACH STATEMENT EXECUTE FUNCTION @outbox_wake_up();\n"
/* clang-format on */

/* The trigger first: it locks out whoever would miss the rest. */
#define DROP_ALL                                                                                             \
    "DROP TRIGGER IF EXISTS @@outbox_wake_up ON @outbox;\n"                                                  \
    "DROP FUNCTION IF EXISTS @outbox_wake_up();\n"                                                           \
    "DROP SEQUENCE IF EXISTS @outbox_wake;\n"

static enum hk_code run_once(struct hk_pg *pg, const void *arg, struct hk_err *err)
{
    hk_pg_call(pg);
    PQclear(hk_pg_script(pg, arg));
    return hk_pg_end_schema(pg, err);
}

enum hk_code hk_pg_set_notify(struct hk_pg *pg, const struct hk_store_init *how, struct hk_store_inited *out,
                              struct hk_err *err)
{
    struct hk_buf sql;
    bool two_phase = false;
    hk_buf_init(&sql, SCRIPT_MAX);
    hk_pg_call(pg);
    PGresult *res =
        hk_pg_script(pg, "SELECT pg_catalog.current_setting('max_prepared_transactions')::integer > 0");
    two_phase = hk_pg_bool(res, 0, 0);
    PQclear(res);
    enum hk_code rc = hk_pg_end_schema(pg, err);
    if (rc == HK_OK) {
        hk_pg_url_names(&pg->url,
                        how->notify == HK_NOTIFY_ON ? HK_PG_BEGIN_CHANGE CREATE_FLAG CREATE_TRIGGER
                            "COMMIT;\n"
                                                    : HK_PG_BEGIN_CHANGE DROP_ALL "COMMIT;\n",
                        &sql);
        rc = hk_buf_status(&sql);
        if (rc != HK_OK)
            (void)hk_err_set(err, rc, "out of memory");
    }
    if (rc == HK_OK && how->print)
        rc = hk_buf_adds(how->print, hk_buf_cstr(&sql));
    else if (rc == HK_OK)
        rc = hk_pg_patiently(pg, run_once, hk_buf_cstr(&sql), err);
    hk_buf_fini(&sql);
    out->two_phase = two_phase && how->notify == HK_NOTIFY_ON;
    return rc;
}
