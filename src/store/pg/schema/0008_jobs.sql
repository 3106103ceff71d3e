-- hikyaku, schema version 8: jobs, which are long operations that relays carry out.

-- ---- jobs ----
-- Any relay takes a job that waits, or whose lease has run out. Each take gives it the next token; who has an older one changes
-- nothing any more. A batch's changes and how far the job came are one transaction.
CREATE TABLE @outbox_job (
    id            bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    operation     text    NOT NULL,               -- such as 'dead discard'
    request       text    NOT NULL,               -- JSON, as the HTTP API takes it
    actor         text    NOT NULL,
    reason        text    NOT NULL,
    role          text    NOT NULL,               -- what the caller was allowed
    reveal        boolean NOT NULL DEFAULT false, -- also to see what is masked
    status        text    NOT NULL DEFAULT 'queued', -- queued, running, done, failed, cancelled
    done          bigint  NOT NULL DEFAULT 0,
    total         bigint  NOT NULL DEFAULT 0,     -- 0 = not known
    changed       bigint  NOT NULL DEFAULT 0,
    failed        bigint  NOT NULL DEFAULT 0,
    cursor        text    NOT NULL DEFAULT '',    -- how far it came
    result        text,                           -- JSON, as the operation answers; so far, while it runs
    act_id        bigint  NOT NULL DEFAULT 0,     -- in outbox_audit; 0 = nothing was changed
    error_code    text,                           -- of one that failed
    error         text,
    cancelled_by  text,                           -- NULL = nobody has asked for that
    cancel_reason text,
    owner         text,                           -- the relay that has it in hand, or had it last
    token         bigint  NOT NULL DEFAULT 0,     -- of the last take
    lease_ms      bigint  NOT NULL DEFAULT 0,     -- until then
    tries         integer NOT NULL DEFAULT 0,     -- takes since it last came further
    created_ms    bigint  NOT NULL,
    started_ms    bigint  NOT NULL DEFAULT 0,
    ended_ms      bigint  NOT NULL DEFAULT 0      -- 0 = it waits or runs
);
CREATE INDEX @@outbox_job_open ON @outbox_job (id) WHERE ended_ms = 0;
CREATE INDEX @@outbox_job_ended ON @outbox_job (ended_ms) WHERE ended_ms > 0;
INSERT INTO @outbox_turn (name) VALUES ('job');

-- Rights as on outbox_retry, which whoever moves messages has, and whoever looks may read.
DO $$
DECLARE
    g record;
BEGIN
    FOR g IN SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS role, a.privilege_type AS what
               FROM pg_class c CROSS JOIN aclexplode(c.relacl) a
              WHERE c.oid = '@outbox_retry'::regclass AND a.grantee <> c.relowner
                AND a.privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE') LOOP
        EXECUTE 'GRANT ' || g.what || ' ON @outbox_job TO ' || g.role;
    END LOOP;
END
$$;
