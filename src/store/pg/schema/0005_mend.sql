-- hikyaku, schema version 5: closes a hole in the rights of version 3, and keeps facts that operators missed.

-- ---- functions with their owner's rights ----
-- Versions 3 and 4 deleted a lane's figures with the rights of the function's owner, in a table that was named after the one that
-- the trigger hung on, and everybody could hang it on a table: see SECURITY.md. Whoever deletes a lane may delete its figures,
-- so the owner's rights are not needed. Triggers that somebody hung on other tables before have only the caller's rights now.
CREATE OR REPLACE FUNCTION @outbox_figures_gone() RETURNS trigger LANGUAGE plpgsql SECURITY INVOKER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM @outbox_figures f WHERE f.lane = OLD.lane;
    RETURN NULL;
END;
$$;
REVOKE ALL ON FUNCTION @outbox_figures_gone() FROM PUBLIC;

-- ---- the audit ----
-- The chain (version 2) needs the owner's rights, to write outbox_meta. It names its tables itself from now on, and refuses to work
-- for any other table than the audit. And it trusts nobody but the owner with two things more, since whoever has a relay's role
-- could say when something was done, and delete whatever was oldest:
--   for each row    the time is the server's
--   DELETE          leaves what is younger than audit_keep_ms (outbox_meta; a day unless the owner sets another), as if it were
--                   not there, and writes a row about the others: how many, up to which, by whose role. Retention of relays of
--                   earlier versions goes the same way
-- audit_purged counts what was ever deleted. audit_unwitnessed_prev is where the chain began when no purge left a row yet.
INSERT INTO @outbox_meta (key, value)
SELECT 'audit_keep_ms', '86400000' UNION ALL SELECT 'audit_purged', '0' UNION ALL
SELECT 'audit_unwitnessed_prev', m.value FROM @outbox_meta m WHERE m.key = 'audit_first_prev';
CREATE OR REPLACE FUNCTION @outbox_audit_chain() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    head   text := coalesce(current_setting('hikyaku.audit_head', true), '');
    now_ms bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
    owner  boolean := pg_has_role(session_user, (SELECT c.relowner FROM pg_class c WHERE c.oid = TG_RELID), 'MEMBER');
    field  text;
    line   text := '';
    last   bigint;
    n      bigint;
BEGIN
    IF TG_RELID <> '@outbox_audit'::regclass THEN
        RAISE EXCEPTION 'this trigger is for the audit only' USING ERRCODE = 'insufficient_privilege';
    ELSIF TG_OP = 'UPDATE' THEN
        RAISE EXCEPTION 'the audit is append-only' USING ERRCODE = 'restrict_violation';
    ELSIF TG_LEVEL = 'ROW' AND TG_OP = 'DELETE' THEN
        IF owner OR OLD.at_ms <= now_ms - (SELECT m.value::bigint FROM @outbox_meta m WHERE m.key = 'audit_keep_ms') THEN
            RETURN OLD;
        END IF;
    ELSIF TG_LEVEL = 'ROW' THEN
        IF NOT owner THEN
            NEW.at_ms := now_ms;
        END IF;
        NEW.prev := head;
        FOREACH field IN ARRAY ARRAY[NEW.prev, NEW.at_ms::text, NEW.actor, NEW.act, NEW.message_id, NEW.destination,
                NEW.reason, nullif(NEW.letter_id, 0)::text, nullif(NEW.redrive_id, 0)::text, NEW.before_hash,
                NEW.after_hash, NEW.detail] LOOP
            line := line || octet_length(coalesce(field, '')) || ':' || coalesce(field, '') || ',';
        END LOOP;
        NEW.hash := encode(sha256(convert_to(line, 'UTF8')), 'hex');
        PERFORM set_config('hikyaku.audit_head', NEW.hash, true);
        RETURN NEW;
    ELSIF TG_OP = 'INSERT' AND TG_WHEN = 'BEFORE' THEN
        SELECT m.value INTO head FROM @outbox_meta m WHERE m.key = 'audit_head' FOR UPDATE;
        PERFORM set_config('hikyaku.audit_head', coalesce(head, ''), true);
    ELSIF TG_OP = 'INSERT' THEN
        UPDATE @outbox_meta m SET value = head WHERE m.key = 'audit_head' AND m.value <> head;
    ELSE
        SELECT max(g.id), count(*) INTO last, n FROM gone g;
        IF n = 0 THEN
            RETURN NULL;
        ELSIF EXISTS (SELECT 1 FROM @outbox_audit a WHERE a.id < last) THEN
            RAISE EXCEPTION 'only the oldest rows of the audit can be deleted' USING ERRCODE = 'restrict_violation';
        END IF;
        SELECT coalesce(g.hash, '') INTO line FROM gone g WHERE g.id = last;
        UPDATE @outbox_meta m SET value = line WHERE m.key = 'audit_first_prev';
        UPDATE @outbox_meta m SET value = (m.value::bigint + n)::text WHERE m.key = 'audit_purged' RETURNING m.value INTO field;
        INSERT INTO @outbox_audit (at_ms, actor, act, reason, detail)
        VALUES (now_ms, session_user, 'purge-audit', 'retention.audit',
                format('{"rows":%s,"total":%s,"last_id":%s,"last_hash":"%s"}', n, field, last, line));
    END IF;
    RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION @outbox_audit_chain() FROM PUBLIC;
CREATE TRIGGER chain_keep BEFORE DELETE ON @outbox_audit FOR EACH ROW EXECUTE FUNCTION @outbox_audit_chain();

-- ---- whose turn it is ----
-- What one relay or operator does at a time. Whoever has locked the row has the turn. Advisory locks did this before, and every
-- role of the database could hold those: whoever did stopped retention, new redrives, and where relays share a rate all of them.
CREATE TABLE @outbox_turn (
    name text PRIMARY KEY
);
INSERT INTO @outbox_turn (name) VALUES ('purge'), ('redrive'), ('days');
-- Who moves messages may take turns, and lock the row of a bucket that it draws from; who looks may look.
DO $$
DECLARE
    g record;
BEGIN
    FOR g IN SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS role,
                    a.privilege_type AS what
               FROM pg_class c CROSS JOIN aclexplode(c.relacl) a
              WHERE c.oid = '@outbox_retry'::regclass AND a.grantee <> c.relowner
                AND a.privilege_type IN ('SELECT', 'UPDATE') LOOP
        EXECUTE 'GRANT ' || g.what || ' ON @outbox_turn TO ' || g.role;
        IF g.what = 'UPDATE' THEN
            EXECUTE 'GRANT UPDATE ON @outbox_bucket TO ' || g.role;
        END IF;
    END LOOP;
END
$$;

-- ---- redrives ----
-- The paused destination that a running job waits for: its letters are not requeued into a pause.
ALTER TABLE @outbox_redrive ADD held text;

-- For how long a relay may be silent and live: who resets the clock must not take it for dead before. 0 = not told.
ALTER TABLE @outbox_relay ADD lease_ms bigint NOT NULL DEFAULT 0;
-- Which letter goes under a message id that is not its own.
CREATE INDEX @@dead_letters_requeued_as ON @dead_letters USING hash (requeued_as) WHERE requeued_as IS NOT NULL;

-- ---- letters that may have arrived ----
-- People ask before they repair or requeue: how many of each group? The index has only those, and answers without the letters.
CREATE INDEX @@dead_letters_maybe ON @dead_letters (status, fingerprint) INCLUDE (id, last_failed_at) WHERE possibly_delivered;

-- ---- groups by what the receiver said ----
-- Version 2 of the rule that makes fingerprints reads the receiver's words. fingerprint_made is '2:' and the fingerprint where that
-- version made it. Anything else there means that a relay of an older version wrote the letter, during a rolling upgrade
-- too: a relay of this version then groups open letters anew, some at a time, and finds by the index which are left.
-- fingerprint_old is what an older version made: filters that name it (a redrive that runs, a ticket) find the same letters.
ALTER TABLE @dead_letters ADD fingerprint_made text COLLATE "C", ADD fingerprint_old text COLLATE "C";
CREATE INDEX @@dead_letters_regroup ON @dead_letters (id)
    WHERE ('2:' || fingerprint) IS DISTINCT FROM fingerprint_made AND status IN ('failed', 'retrying');
CREATE INDEX @@dead_letters_group_old ON @dead_letters (status, fingerprint_old, (id # 0)) WHERE fingerprint_old IS NOT NULL;

-- Rows of outbox (source 0) and outbox_retry (1) that a trigger, a constraint or a policy of the application's did not let the relay
-- take away. They are not sent again: the relay tries now and then to write down what became of them.
CREATE TABLE @outbox_stuck (
    source             smallint NOT NULL,
    row_id             bigint   NOT NULL,
    shard              smallint NOT NULL,
    since_ms           bigint   NOT NULL,
    delivered          boolean  NOT NULL, -- its receiver has confirmed it, only the row could not go
    possibly_delivered boolean  NOT NULL,
    message_id         text     NOT NULL,
    destination        text     NOT NULL, -- as the relay resolved it
    message_key        text,
    error              text     NOT NULL, -- why the row stays
    attempts           bigint   NOT NULL,
    reason_code        text,              -- it was to become a dead letter; NULL = to be sent again, or delivered
    last_error         text,              -- of its last attempt
    PRIMARY KEY (source, row_id)
);
-- Roles that were given their rights before: as they may move messages.
DO $$
DECLARE
    g record;
BEGIN
    FOR g IN SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS role,
                    a.privilege_type AS what
               FROM pg_class c CROSS JOIN aclexplode(c.relacl) a
              WHERE c.oid = '@outbox_retry'::regclass AND a.grantee <> c.relowner
                AND a.privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE') LOOP
        EXECUTE 'GRANT ' || g.what || ' ON @outbox_stuck TO ' || g.role;
    END LOOP;
END
$$;

-- ---- acts on many letters ----
-- A row of the audit for each of 10,000 letters buries all other acts. One row stands for them now; the letters lie here, and the
-- row's detail has the digest of its list. Programs of version 4 go on writing a row for each letter.
CREATE TABLE @outbox_audit_letters (
    audit_id    bigint NOT NULL REFERENCES @outbox_audit (id) ON DELETE CASCADE, -- the row that covers it
    letter_id   bigint NOT NULL,
    act_id      bigint NOT NULL, -- the act's first row: an act on many takes several transactions
    message_id  text,
    destination text,
    before_hash text,
    after_hash  text,
    detail      text, -- JSON object
    PRIMARY KEY (audit_id, letter_id)
);
CREATE INDEX @@outbox_audit_letters_act ON @outbox_audit_letters (act_id, letter_id);
CREATE INDEX @@outbox_audit_letters_letter ON @outbox_audit_letters (letter_id);
CREATE INDEX @@outbox_audit_redrive ON @outbox_audit (redrive_id) WHERE act = 'redrive-start';
-- What was done with each letter, by acts on one and on many.
CREATE VIEW @outbox_audit_of_letters AS
SELECT a.id, a.at_ms, a.actor, a.act, a.message_id, a.destination, a.reason, a.letter_id, a.redrive_id, a.before_hash, a.after_hash,
       a.detail, a.prev, a.hash, NULL::bigint AS act_id
  FROM @outbox_audit a WHERE a.letter_id IS NOT NULL
UNION ALL
SELECT a.id, a.at_ms, a.actor, a.act, l.message_id, l.destination, a.reason, l.letter_id, a.redrive_id, l.before_hash, l.after_hash,
       l.detail, a.prev, a.hash, l.act_id
  FROM @outbox_audit_letters l JOIN @outbox_audit a ON a.id = l.audit_id;
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
        EXECUTE 'GRANT ' || g.what || ' ON @outbox_audit_letters TO ' || g.role;
        IF g.what = 'SELECT' THEN
            EXECUTE 'GRANT SELECT ON @outbox_audit_of_letters TO ' || g.role;
        END IF;
    END LOOP;
END
$$;
