-- hikyaku, schema version 11: destinations that are created while relays run.

-- A definition is what would stand under the destination's name in the configuration, as JSON. Secrets stand there by reference only.
CREATE TABLE @outbox_destination_def (
    name       text   COLLATE "C" PRIMARY KEY,
    version    bigint NOT NULL,  -- one more with each change
    seq        bigint NOT NULL,  -- outbox_definitions.version when it was last changed
    definition text   NOT NULL,
    created_ms bigint NOT NULL,
    created_by text   NOT NULL,
    changed_ms bigint NOT NULL,
    changed_by text   NOT NULL,
    reason     text   NOT NULL   -- of the last change
);

-- One row: one more with each change of any definition. Relays look at it.
CREATE TABLE @outbox_definitions (
    one     boolean PRIMARY KEY CHECK (one),
    version bigint  NOT NULL
);
INSERT INTO @outbox_definitions (one, version) VALUES (true, 0);

-- Who moves messages makes destinations, too, for the operators: rights as on outbox_retry. Who looks may read them.
DO $$
DECLARE
    g record;
BEGIN
    FOR g IN SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS role,
                    a.privilege_type AS what,
                    EXISTS (SELECT 1 FROM aclexplode(c.relacl) b WHERE b.grantee = a.grantee AND b.privilege_type = 'UPDATE') AS moves
               FROM pg_class c CROSS JOIN aclexplode(c.relacl) a
              WHERE c.oid = '@outbox_retry'::regclass AND a.grantee <> c.relowner
                AND a.privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE') LOOP
        IF g.moves OR g.what = 'SELECT' THEN
            EXECUTE 'GRANT ' || g.what || ' ON @outbox_destination_def TO ' || g.role;
        END IF;
        IF g.what = 'SELECT' OR (g.moves AND g.what = 'UPDATE') THEN
            EXECUTE 'GRANT ' || g.what || ' ON @outbox_definitions TO ' || g.role;
        END IF;
    END LOOP;
END
$$;
