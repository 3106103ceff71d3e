/* SPDX-License-Identifier: Apache-2.0 */
/* Sent rows by the day: `hikyaku init --partition-sent` makes outbox_sent a table with a partition for each day, so that rows
 * which have outlived their retention go with their table, which writes next to nothing, and not one by one.
 *
 * - The rows that are there stay where they are: their table becomes the first partition, for all days up to today.
 * - A relay's role owns no tables and may not make any. So a function does it that runs with its owner's rights, and that
 *   relays may call. It makes the next days' partitions ahead, drops one whose day is past, and takes only such locks as it
 *   gets within a moment: what it does not get it leaves for the next time. Only one of many relays does so at a time.
 * - What has no partition goes to the one for the rest, and is deleted from there row by row.
 *
 * Days are UTC's. The function names its table itself, and looks for nothing along the caller's search path. */
#include "base/buf.h"
#include "store/pg/pg.h"

#define SCRIPT_MAX (32 * 1024)

/* Where a partition ends, of pg_class c; NULL for the one of the rest. */
#define UNTIL "(regexp_match(pg_get_expr(c.relpartbound, c.oid), 'TO \\(''?(-?[0-9]+)'))[1]::bigint"

#define BEGIN HK_PG_BEGIN_CHANGE "SET LOCAL statement_timeout = 0;\n"

/* Nothing to be done when it has partitions. A view follows its table when that is renamed, so that ours is made again; others'
 * would go on showing the first partition only. */
static const char convert[] =
    "DO $do$\n"
    "DECLARE\n"
    "    day constant bigint := 86400000;\n"
    "    path text := current_setting('search_path');\n"
    "    strange text;\n"
    "    view regclass := '@outbox_messages';\n"
    "    view_text text;\n"
    "    first_id bigint;\n"
    "    until_ms bigint;\n"
    "    owner regrole;\n"
    "    right_ record;\n"
    "BEGIN\n"
    "    IF (SELECT relkind FROM pg_class WHERE oid = '@outbox_sent'::regclass) = 'p' THEN\n"
    "        RETURN;\n"
    "    END IF;\n"
    "    LOCK TABLE @outbox_sent IN ACCESS EXCLUSIVE MODE;\n"
    "    SELECT string_agg(DISTINCT r.ev_class::regclass::text, ', ') INTO strange FROM pg_depend d\n"
    "      JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid\n"
    "     WHERE d.refobjid = '@outbox_sent'::regclass AND r.ev_class <> view;\n"
    "    IF strange IS NOT NULL THEN\n"
    "        RAISE EXCEPTION 'drop % first, and make it again behind this: it would go on showing the rows of today only', "
    "strange;\n"
    "    END IF;\n"
    "    PERFORM set_config('search_path', 'pg_catalog', true);\n"
    "    view_text := pg_get_viewdef(view);\n"
    "    PERFORM set_config('search_path', path, true);\n"
    "    SELECT c.relowner, coalesce(pg_sequence_last_value(pg_get_serial_sequence('@outbox_sent', 'id')::regclass), 0) + 1\n"
    "      INTO owner, first_id FROM pg_class c WHERE c.oid = '@outbox_sent'::regclass;\n"
    "    SELECT greatest(max(sent_ms), floor(extract(epoch FROM now()) * 1000)) INTO until_ms FROM @outbox_sent;\n"
    "    until_ms := (until_ms / day + 1) * day;\n"
    "    ALTER TABLE @outbox_sent RENAME TO @@outbox_sent_before;\n"
    "    ALTER TABLE @outbox_sent_before DROP CONSTRAINT @@outbox_sent_pkey;\n"
    "    ALTER TABLE @outbox_sent_before ALTER id DROP IDENTITY;\n"
    "    ALTER INDEX @outbox_sent_message RENAME TO @@outbox_sent_before_message;\n"
    "    CREATE TABLE @outbox_sent (LIKE @outbox_sent_before INCLUDING DEFAULTS) PARTITION BY RANGE (sent_ms);\n"
    "    EXECUTE 'ALTER TABLE @outbox_sent ALTER id ADD GENERATED ALWAYS AS IDENTITY (START WITH ' || first_id || ')';\n"
    "    ALTER TABLE @outbox_sent ADD PRIMARY KEY (id, sent_ms);\n"
    "    CREATE INDEX @@outbox_sent_message ON @outbox_sent USING hash (message_id);\n"
    "    EXECUTE 'ALTER TABLE @outbox_sent ATTACH PARTITION @outbox_sent_before FOR VALUES FROM (MINVALUE) TO (' || "
    "until_ms || ')';\n"
    "    CREATE TABLE @outbox_sent_rest PARTITION OF @outbox_sent DEFAULT;\n"
    "    EXECUTE 'ALTER TABLE @outbox_sent OWNER TO ' || owner;\n"
    "    EXECUTE 'ALTER TABLE @outbox_sent_rest OWNER TO ' || owner;\n"
    "    FOR right_ IN SELECT a.* FROM pg_class c CROSS JOIN aclexplode(c.relacl) a\n"
    "                   WHERE c.oid = '@outbox_sent_before'::regclass AND a.grantee <> c.relowner LOOP\n"
    "        EXECUTE format('GRANT %s ON @outbox_sent TO %s', right_.privilege_type,\n"
    "                       CASE right_.grantee WHEN 0 THEN 'PUBLIC' ELSE right_.grantee::regrole::text END)\n"
    "                || CASE WHEN right_.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END;\n"
    "    END LOOP;\n"
    "    EXECUTE 'CREATE OR REPLACE VIEW @outbox_messages AS ' || view_text;\n"
    "END\n"
    "$do$;\n";

/* $1 the time (NULL: the server's), $2 how long they are kept (NULL: for ever), $3 how many rows to delete at the most. Gives
 * how many it has deleted; $3 when there is more to do. */
static const char make_function[] =
    "DO $do$\n"
    "DECLARE\n"
    "    parent text := (SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c\n"
    "                      JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = '@outbox_sent'::regclass);\n"
    "    owner regrole := (SELECT relowner FROM pg_class WHERE oid = '@outbox_sent'::regclass);\n"
    "    grantee regrole;\n"
    "BEGIN\n"
    "    EXECUTE replace($make$\n"
    "CREATE OR REPLACE FUNCTION @outbox_sent_days(now_ms bigint, keep_ms bigint, most bigint) RETURNS bigint\n"
    "    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '200ms' AS $body$\n"
    "DECLARE\n"
    "    day constant bigint := 86400000;\n"
    "    parent constant regclass := PARENT;\n"
    "    rest constant regclass := (SELECT partdefid FROM pg_partitioned_table WHERE partrelid = parent);\n"
    "    now_ constant bigint := coalesce(now_ms, floor(extract(epoch FROM clock_timestamp()) * 1000));\n"
    "    today constant bigint := now_ - now_ % day;\n"
    "    next_ bigint;\n"
    "    name text;\n"
    "    past regclass;\n"
    "    taken boolean;\n"
    "    deleted bigint := 0;\n"
    "BEGIN\n"
    "    PERFORM 1 FROM @outbox_turn t WHERE t.name = 'days' FOR NO KEY UPDATE SKIP LOCKED;\n"
    "    IF NOT FOUND THEN\n"
    "        RETURN 0;\n"
    "    END IF;\n"
    "    EXECUTE format('SELECT EXISTS (SELECT 1 FROM %s)', rest) INTO taken;\n"
    "    SELECT greatest(today, max(" UNTIL
    ")) INTO next_ FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid\n"
    "     WHERE i.inhparent = parent;\n"
    "    -- today's rows may lie in the rest already: then they stay there\n"
    "    WHILE next_ <= today + 3 * day LOOP\n"
    "        BEGIN\n"
    "            SELECT format('%I.%I', n.nspname, c.relname || '_d' || to_char(to_timestamp(next_ / 1000) AT TIME ZONE 'UTC',\n"
    "                          'YYYYMMDD')) INTO name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace\n"
    "             WHERE c.oid = parent;\n"
    "            IF NOT (taken AND next_ = today) THEN\n"
    "                EXECUTE format('CREATE TABLE %s (LIKE %s INCLUDING STORAGE)', name, parent);\n"
    "                EXECUTE format('ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM (%s) TO (%s)', parent, name, next_,\n"
    "                               next_ + day);\n"
    "            END IF;\n"
    "        EXCEPTION WHEN check_violation OR duplicate_table OR lock_not_available THEN\n"
    "            NULL; -- another time\n"
    "        END;\n"
    "        next_ := next_ + day;\n"
    "    END LOOP;\n"
    "    IF keep_ms IS NULL THEN\n"
    "        RETURN 0;\n"
    "    END IF;\n"
    "    SELECT c.oid INTO past FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid\n"
    "     WHERE i.inhparent = parent AND " UNTIL " <= now_ - keep_ms ORDER BY " UNTIL " LIMIT 1;\n"
    "    IF past IS NOT NULL THEN\n"
    "        BEGIN\n"
    "            EXECUTE format('DROP TABLE %s', past);\n"
    "            RETURN most;\n"
    "        EXCEPTION WHEN lock_not_available OR dependent_objects_still_exist THEN\n"
    "            NULL;\n"
    "        END;\n"
    "    END IF;\n"
    "    IF taken THEN\n"
    "        EXECUTE format('DELETE FROM %s WHERE id = ANY (ARRAY(SELECT id FROM (SELECT id, sent_ms FROM %s ORDER BY id '\n"
    "                       'LIMIT $1) s WHERE sent_ms <= $2))', rest, rest) USING most, now_ - keep_ms;\n"
    "        GET DIAGNOSTICS deleted = ROW_COUNT;\n"
    "    END IF;\n"
    "    RETURN deleted;\n"
    "END\n"
    "$body$;\n"
    "$make$, 'PARENT', quote_literal(parent));\n";

static const char grant_function[] =
    "    EXECUTE 'ALTER FUNCTION @outbox_sent_days(bigint, bigint, bigint) OWNER TO ' || owner;\n"
    "    REVOKE ALL ON FUNCTION @outbox_sent_days(bigint, bigint, bigint) FROM PUBLIC;\n"
    "    FOR grantee IN SELECT a.grantee FROM pg_class c CROSS JOIN aclexplode(c.relacl) a\n"
    "                    WHERE c.oid = '@outbox_sent'::regclass AND a.privilege_type = 'DELETE'\n"
    "                    AND a.grantee NOT IN (0, c.relowner) LOOP\n"
    "        EXECUTE format('GRANT EXECUTE ON FUNCTION @outbox_sent_days(bigint, bigint, bigint) TO %s', grantee);\n"
    "    END LOOP;\n"
    "END\n"
    "$do$;\n"
    "SELECT @outbox_sent_days(NULL, NULL, 0);\n"
    "COMMIT;\n";

static enum hk_code run_once(struct hk_pg *pg, const void *arg, struct hk_err *err)
{
    hk_pg_call(pg);
    PQclear(hk_pg_script(pg, arg));
    return hk_pg_end_schema(pg, err);
}

enum hk_code hk_pg_partition_sent(struct hk_pg *pg, struct hk_buf *print, struct hk_err *err)
{
    struct hk_buf sql;
    hk_buf_init(&sql, SCRIPT_MAX);
    hk_buf_adds(&sql, BEGIN);
    hk_buf_adds(&sql, convert);
    hk_buf_adds(&sql, make_function);
    hk_buf_adds(&sql, grant_function);
    enum hk_code rc = hk_buf_status(&sql);
    if (rc == HK_OK && print) {
        hk_pg_url_names(&pg->url, hk_buf_cstr(&sql), print);
        rc = hk_buf_status(print);
    }
    if (rc != HK_OK)
        (void)hk_err_set(err, rc, "out of memory");
    else if (!print)
        rc = hk_pg_patiently(pg, run_once, hk_buf_cstr(&sql), err);
    hk_buf_fini(&sql);
    return rc;
}
