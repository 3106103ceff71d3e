-- hikyaku, schema version 13: names of tasks, which stay taken for a while.

-- A task with a name is a message with that message_id. Its name is not given again while the task lives, nor within an hour after its
-- end. Not a unique index of outbox: no INSERT of an application may fail for a reason that it does not expect.
CREATE TABLE @outbox_task (
    destination text   COLLATE "C" NOT NULL, -- the queue's
    task        text   COLLATE "C" NOT NULL,
    created_ms  bigint NOT NULL,
    PRIMARY KEY (destination, task)
);
CREATE INDEX @@outbox_task_created ON @outbox_task (created_ms);

-- Rights as on outbox_retry: who moves messages takes names. Who looks may read them.
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
            EXECUTE 'GRANT ' || g.what || ' ON @outbox_task TO ' || g.role;
        END IF;
    END LOOP;
END
$$;
