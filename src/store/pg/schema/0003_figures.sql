-- hikyaku, schema version 3: what relays saw lately, for `status`, `top` and alerts; buckets that no snapshot makes dearer.

-- One row for each relay at work and destination, written anew every few seconds while something happens: what happened in
-- the last `window_ms` before `at_ms`. Rows of relays that are gone go with their lanes.
CREATE UNLOGGED TABLE @outbox_figures (
    lane          bigint  NOT NULL,
    destination   text    NOT NULL,
    at_ms         bigint  NOT NULL,
    window_ms     bigint  NOT NULL,
    seen          bigint  NOT NULL DEFAULT 0, -- fresh messages that came by
    sent          bigint  NOT NULL DEFAULT 0, -- attempts that went well
    failed        bigint  NOT NULL DEFAULT 0, -- attempts that did not
    dead          bigint  NOT NULL DEFAULT 0, -- messages that became dead letters
    in_flight     bigint  NOT NULL DEFAULT 0,
    ready_at_ms   bigint  NOT NULL DEFAULT 0, -- the limiter lets nothing through before
    breaker       text    NOT NULL DEFAULT 'closed',
    latency       text    NOT NULL DEFAULT '', -- how long attempts took: bucket:count, separated by blanks
    last_error    text,
    last_error_ms bigint  NOT NULL DEFAULT 0,
    PRIMARY KEY (lane, destination)
) WITH (fillfactor = 50);

-- In place of outbox_quota, which relays of version 2 still draw from while they are exchanged: until the last of them is gone
-- a rate is kept by each kind for itself. Every draw leaves a new row and takes the old one away, and the newest is found at the
-- end of the index: of a row that is updated all versions would be walked over while a snapshot is held.
CREATE TABLE @outbox_bucket (
    destination text             NOT NULL,
    probe       bigint           NOT NULL,
    turn        bigint           NOT NULL,
    tokens      double precision NOT NULL,
    at_ms       bigint           NOT NULL,
    PRIMARY KEY (destination, probe, turn)
);

-- Beside the table of lanes, whatever schema and prefix it has: no name is looked for in a search path.
CREATE FUNCTION @outbox_figures_gone() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE format('DELETE FROM %I.%I WHERE lane = $1', TG_TABLE_SCHEMA, left(TG_TABLE_NAME, -5) || 'figures') USING OLD.lane;
    RETURN NULL;
END;
$$;
CREATE TRIGGER figures_gone AFTER DELETE ON @outbox_relay FOR EACH ROW EXECUTE FUNCTION @outbox_figures_gone();
-- Who moves messages may go on, and who looks: rights as on outbox_retry. (What init prints as grants has them, too.)
DO $$
DECLARE
    g record;
BEGIN
    FOR g IN SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS role,
                    a.privilege_type AS what
               FROM pg_class c CROSS JOIN aclexplode(c.relacl) a
              WHERE c.oid = '@outbox_retry'::regclass AND a.grantee <> c.relowner
                AND a.privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE') LOOP
        EXECUTE 'GRANT ' || g.what || ' ON @outbox_figures TO ' || g.role;
        IF g.what <> 'UPDATE' THEN
            EXECUTE 'GRANT ' || g.what || ' ON @outbox_bucket TO ' || g.role;
        END IF;
    END LOOP;
END
$$;
