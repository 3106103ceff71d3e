-- hikyaku, schema version 10: messages that were cancelled can be restored.

-- What a message had been through when it was cancelled, and what else it needs to wait again: as in outbox_retry. Of messages that
-- an older version cancelled nothing of it is known: they are restored as due now.
ALTER TABLE @outbox_cancelled
    ADD fresh              boolean NOT NULL DEFAULT true, -- it lay in outbox, as the application wrote it
    ADD due_ms             bigint  NOT NULL DEFAULT 0,
    ADD deferred           boolean NOT NULL DEFAULT false,
    ADD charged            integer NOT NULL DEFAULT 0,
    ADD failed_transient   integer NOT NULL DEFAULT 0,
    ADD failed_rate_limit  integer NOT NULL DEFAULT 0,
    ADD failed_auth        integer NOT NULL DEFAULT 0,
    ADD failed_permanent   integer NOT NULL DEFAULT 0,
    ADD failed_unknown     integer NOT NULL DEFAULT 0,
    ADD prev_wait_ms       bigint  NOT NULL DEFAULT 0,
    ADD first_attempt_ms   bigint  NOT NULL DEFAULT 0,
    ADD paused_mark_ms     bigint  NOT NULL DEFAULT 0,
    ADD first_failed_ms    bigint  NOT NULL DEFAULT 0,
    ADD last_attempt_ms    bigint  NOT NULL DEFAULT 0,
    ADD crashes            integer NOT NULL DEFAULT 0,
    ADD life               integer NOT NULL DEFAULT 1,
    ADD letter_id          bigint  NOT NULL DEFAULT 0,
    ADD possibly_delivered boolean NOT NULL DEFAULT false,
    ADD max_attempts       integer,
    ADD not_before         timestamptz,
    ADD expires_at         timestamptz,
    ADD last_cause         text,
    ADD last_error         text;
-- Messages are restored in the order in which applications wrote them, so that the order of keys stays. Not by the bare id: see version 1.
CREATE INDEX @@outbox_cancelled_origin ON @outbox_cancelled (coalesce(original_outbox_id, 0), (id + 0));

-- ---- acts on many messages ----
-- As outbox_audit_letters: one row of the audit stands for all of them, and its detail has the digest of this list.
CREATE TABLE @outbox_audit_messages (
    audit_id     bigint NOT NULL REFERENCES @outbox_audit (id) ON DELETE CASCADE, -- the row that covers it
    cancelled_id bigint NOT NULL, -- that the message has, or had, in outbox_cancelled
    act_id       bigint NOT NULL, -- the act's first row: an act on many takes several transactions
    message_id   text,
    destination  text,
    PRIMARY KEY (audit_id, cancelled_id)
);
CREATE INDEX @@outbox_audit_messages_act ON @outbox_audit_messages (act_id, cancelled_id);
-- Who moves messages may add lists, and who looks may read them: rights as on outbox_retry. Rows go with the audit's, and by nobody's
-- hand.
DO $$
DECLARE
    g record;
BEGIN
    FOR g IN SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS role,
                    a.privilege_type AS what
               FROM pg_class c CROSS JOIN aclexplode(c.relacl) a
              WHERE c.oid = '@outbox_retry'::regclass AND a.grantee <> c.relowner
                AND a.privilege_type IN ('SELECT', 'INSERT') LOOP
        EXECUTE 'GRANT ' || g.what || ' ON @outbox_audit_messages TO ' || g.role;
    END LOOP;
END
$$;
