-- hikyaku, schema version 9: figures over time.

-- One row for each relay, destination and minute in which something happened, kept for 48 hours, and the same of each hour, kept for 90
-- days. Lane 0: what lay in the store for a destination. Lane -1: what lay there in all.
CREATE TABLE @outbox_series (
    id          bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    step_ms     bigint  NOT NULL,            -- 60000 or 3600000
    at_ms       bigint  NOT NULL,            -- when the interval begins
    lane        bigint  NOT NULL,
    destination text    COLLATE "C" NOT NULL, -- '': of several, or not known yet
    seen        bigint  NOT NULL DEFAULT 0,  -- fresh messages that came by
    sent        bigint  NOT NULL DEFAULT 0,  -- attempts that went well
    failed      bigint  NOT NULL DEFAULT 0,  -- attempts that did not
    retried     bigint  NOT NULL DEFAULT 0,  -- of them, those that will be repeated
    dead        bigint  NOT NULL DEFAULT 0,  -- messages that became dead letters
    latency     text    NOT NULL DEFAULT '', -- how long attempts took: bucket:count, separated by blanks
    waiting     bigint  NOT NULL DEFAULT 0,  -- not sent and not in flight
    in_flight   bigint  NOT NULL DEFAULT 0,
    dead_open   bigint  NOT NULL DEFAULT 0,  -- dead letters that nobody has settled
    oldest_ms   bigint  NOT NULL DEFAULT 0   -- for how long the oldest could have gone
);
CREATE UNIQUE INDEX @@outbox_series_at ON @outbox_series (step_ms, at_ms, lane, destination);

-- Who moves messages counts them, and who looks may see it: rights as on outbox_retry.
DO $$
DECLARE
    g record;
BEGIN
    FOR g IN SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS role,
                    a.privilege_type AS what
               FROM pg_class c CROSS JOIN aclexplode(c.relacl) a
              WHERE c.oid = '@outbox_retry'::regclass AND a.grantee <> c.relowner
                AND a.privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE') LOOP
        EXECUTE 'GRANT ' || g.what || ' ON @outbox_series TO ' || g.role;
    END LOOP;
END
$$;
