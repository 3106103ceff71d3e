-- hikyaku, schema version 15: messages that people force; the concurrency that all relays keep together.

-- A person wants it to go now, whatever guards its destination: until an attempt of it is settled.
ALTER TABLE @outbox_retry ADD COLUMN forced boolean NOT NULL DEFAULT false;
CREATE INDEX @@outbox_retry_forced ON @outbox_retry (due_ms, id) WHERE forced;

-- The book of a destination's seats: how many each lane has, and wants, since when it waits, and when it asked last. As in outbox_bucket
-- every writing leaves a new row and takes the old one away. Entries of lanes that are gone count for nothing.
CREATE TABLE @outbox_seats (
    destination text     NOT NULL,
    turn        bigint   NOT NULL,
    lanes       bigint[] NOT NULL,
    held        bigint[] NOT NULL,
    wants       bigint[] NOT NULL,
    since_ms    bigint[] NOT NULL,
    asked_ms    bigint[] NOT NULL,
    PRIMARY KEY (destination, turn)
);

-- Rights as on outbox_retry.
DO $$
DECLARE
    g record;
BEGIN
    FOR g IN SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS role,
                    a.privilege_type AS what
               FROM pg_class c CROSS JOIN aclexplode(c.relacl) a
              WHERE c.oid = '@outbox_retry'::regclass AND a.grantee <> c.relowner
                AND a.privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE') LOOP
        EXECUTE 'GRANT ' || g.what || ' ON @outbox_seats TO ' || g.role;
    END LOOP;
END
$$;
