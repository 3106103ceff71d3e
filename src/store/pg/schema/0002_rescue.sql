-- hikyaku, schema version 2: dead letters that people repair, redrive as jobs, and an audit that cannot be rewritten.
--
-- dead_letters is locked from the first ALTER to COMMIT: relays that have to bury a message meanwhile try again until they
-- can. Applications write to outbox, which is not touched.

ALTER TABLE @dead_letters
    ADD failure_class      text,              -- of the last attempt; NULL = nothing was sent, or not known
    ADD fault              text,              -- whose: destination, pipeline
    ADD fingerprint        text COLLATE "C",  -- the same for all that failed alike; NULL = from before this version
    ADD requeues           integer NOT NULL DEFAULT 0,
    ADD payload_version    integer NOT NULL DEFAULT 1, -- 1 = as the application wrote it
    ADD possibly_delivered boolean NOT NULL DEFAULT false, -- some attempt of some life may have arrived
    ADD sending_at         timestamptz,       -- a send by hand began then, and nobody knows yet how it ended
    ADD edited_at          timestamptz,
    ADD requeued_as        text,              -- message_id of its newest life, when that is another one
    ADD redrive_id         bigint;            -- the job that requeued it last

-- A key is held by a letter that is open, and by one that is being sent by hand: no successor may pass.
DROP INDEX @dead_letters_key;
CREATE INDEX @@dead_letters_key ON @dead_letters (left(destination, 63) COLLATE "C", hashtextextended(message_key, 0))
    WHERE message_key IS NOT NULL AND (status = 'failed' OR sending_at IS NOT NULL);
-- People ask by status, nearly always, and page by id: each of these gives pages in that order. The one by fingerprint gives
-- groups, too, without a look at the letters. Each has the id in its own words: who says (id + 0) means the one by status,
-- and so on. Else a plan that was made on an empty table, a relay's above all, could take any of them for any other.
DROP INDEX @dead_letters_open;
CREATE INDEX @@dead_letters_open ON @dead_letters (status, left(destination, 63) COLLATE "C", (id - 0));
CREATE INDEX @@dead_letters_status ON @dead_letters (status, (id + 0)) INCLUDE (id);
CREATE INDEX @@dead_letters_reason ON @dead_letters (status, reason_code COLLATE "C", (id * 1)) INCLUDE (id);
CREATE INDEX @@dead_letters_group ON @dead_letters (status, fingerprint, (id / 1))
    INCLUDE (id, first_failed_at, last_failed_at);
CREATE INDEX @@dead_letters_redrive ON @dead_letters (redrive_id, status, (id | 0)) INCLUDE (id)
    WHERE redrive_id IS NOT NULL;

-- Payloads that an edit has replaced.
CREATE TABLE @dead_letter_versions (
    letter_id   bigint  NOT NULL REFERENCES @dead_letters (id) ON DELETE CASCADE,
    version     integer NOT NULL,
    replaced_ms bigint  NOT NULL,
    actor       text    NOT NULL,
    reason      text    NOT NULL,
    payload     text,
    PRIMARY KEY (letter_id, version)
);

ALTER TABLE @outbox_retry ADD possibly_delivered boolean NOT NULL DEFAULT false;
-- Requeued letters that have failed again, but not for good: what a job looks at with every step.
CREATE INDEX @@outbox_retry_letter ON @outbox_retry (letter_id) WHERE letter_id <> 0 AND attempts > 0;

-- A job that requeues letters at a rate. The row is all its state: any relay goes on with it.
CREATE TABLE @outbox_redrive (
    id          bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    status      text    NOT NULL DEFAULT 'running', -- running, done, cancelled, aborted
    filter      text    NOT NULL,
    rate_per_s  double precision NOT NULL,
    ramp_ms     bigint  NOT NULL,
    canary      bigint  NOT NULL,
    abort_ratio double precision NOT NULL,
    ids         text    NOT NULL, -- auto, same, new
    last_id     bigint  NOT NULL, -- letters above came later
    cursor_id   bigint  NOT NULL DEFAULT 0, -- letters up to here were looked at
    total       bigint  NOT NULL,
    requeued    bigint  NOT NULL DEFAULT 0,
    lost        bigint  NOT NULL DEFAULT 0, -- of those: dead again, and then requeued by another job
    exhausted   boolean NOT NULL DEFAULT false,
    tokens      double precision NOT NULL DEFAULT 0,
    tokens_ms   bigint  NOT NULL DEFAULT 0,
    steps       bigint  NOT NULL DEFAULT 0, -- a relay that decided from an older row is told by this
    started_ms  bigint  NOT NULL,
    created_ms  bigint  NOT NULL,
    ended_ms    bigint  NOT NULL DEFAULT 0, -- 0 = it runs
    actor       text    NOT NULL,
    reason      text    NOT NULL,
    ending      text
) WITH (fillfactor = 50);

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
        EXECUTE 'GRANT ' || g.what || ' ON @outbox_redrive TO ' || g.role;
        IF g.what IN ('SELECT', 'INSERT') THEN
            EXECUTE 'GRANT ' || g.what || ' ON @dead_letter_versions TO ' || g.role;
        END IF;
    END LOOP;
END
$$;

-- ---- the audit's chain ----
-- Each row bears the hash of the one before (prev) and one over prev and its own fields (hash); outbox_meta keeps the last
-- hash (audit_head), and the one before the oldest row that is still there (audit_first_prev).
ALTER TABLE @outbox_audit
    ADD letter_id   bigint,
    ADD redrive_id  bigint,
    ADD before_hash text, -- SHA-256 of what was changed
    ADD after_hash  text,
    ADD detail      text, -- JSON object
    ADD prev        text, -- NULL: from before the chain
    ADD hash        text;
CREATE INDEX @@outbox_audit_letter ON @outbox_audit (letter_id, id) WHERE letter_id IS NOT NULL;
INSERT INTO @outbox_meta (key, value) VALUES ('audit_head', ''), ('audit_first_prev', ''), ('compatible_from', '2');

-- Who acts may add rows, and need not be able to write outbox_meta for it: the function is its owner's, finds the tables
-- beside the one that it is called for, and nobody else may hang it on a table of his own.
--   before a statement  locks audit_head, so that what many do at once becomes one chain; ids are drawn behind the lock, and
--                       so in the chain's order. The hash goes from row to row in a setting of the transaction.
--   for each row        the hash
--   behind it           audit_head
-- DELETE is retention's: from the oldest row on, and outbox_meta knows where the chain begins.
CREATE FUNCTION @outbox_audit_chain() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    head  text := coalesce(current_setting('hikyaku.audit_head', true), '');
    field text;
    line  text := '';
    last  bigint;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        RAISE EXCEPTION 'the audit is append-only' USING ERRCODE = 'restrict_violation';
    ELSIF TG_LEVEL = 'ROW' THEN
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
        EXECUTE format('SELECT value FROM %I.@@outbox_meta WHERE key = ''audit_head'' FOR UPDATE', TG_TABLE_SCHEMA)
           INTO head;
        PERFORM set_config('hikyaku.audit_head', coalesce(head, ''), true);
    ELSIF TG_OP = 'INSERT' THEN
        EXECUTE format('UPDATE %I.@@outbox_meta SET value = $1 WHERE key = ''audit_head'' AND value <> $1',
                       TG_TABLE_SCHEMA) USING head;
    ELSE
        SELECT max(g.id) INTO last FROM gone g;
        EXECUTE format('SELECT id::text FROM %I.%I WHERE id < $1 LIMIT 1', TG_TABLE_SCHEMA, TG_TABLE_NAME)
           INTO field USING last;
        IF field IS NOT NULL THEN
            RAISE EXCEPTION 'only the oldest rows of the audit can be deleted' USING ERRCODE = 'restrict_violation';
        END IF;
        SELECT coalesce(g.hash, '') INTO line FROM gone g WHERE g.id = last;
        EXECUTE format('UPDATE %I.@@outbox_meta SET value = $1 WHERE key = ''audit_first_prev'' AND $2 IS NOT NULL',
                       TG_TABLE_SCHEMA) USING line, last;
    END IF;
    RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION @outbox_audit_chain() FROM PUBLIC;
CREATE TRIGGER chain BEFORE INSERT ON @outbox_audit FOR EACH STATEMENT EXECUTE FUNCTION @outbox_audit_chain();
CREATE TRIGGER chain_end AFTER INSERT ON @outbox_audit FOR EACH STATEMENT EXECUTE FUNCTION @outbox_audit_chain();
CREATE TRIGGER chain_row BEFORE INSERT OR UPDATE ON @outbox_audit FOR EACH ROW EXECUTE FUNCTION @outbox_audit_chain();
CREATE TRIGGER chain_start AFTER DELETE ON @outbox_audit REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION @outbox_audit_chain();

-- The same columns; a letter on its way under another id, or being sent by hand, is there as well.
CREATE OR REPLACE VIEW @outbox_messages AS
WITH held AS MATERIALIZED (
    SELECT c.claim, to_timestamp(c.claimed_ms / 1000.0) AS claimed_at, r.name, c.ids
      FROM @outbox_claim c JOIN @outbox_relay r ON r.lane = c.lane
), named AS MATERIALIZED (
    SELECT u.id, h.claimed_at, h.name FROM held h CROSS JOIN unnest(h.ids) AS u (id)
)
SELECT o.id AS id, 'outbox' AS source, coalesce(o.message_id, 'outbox-' || o.id) AS message_id,
       coalesce(o.destination, '') AS destination, o.event_type AS event_type,
       CASE WHEN n.id IS NULL THEN 'pending' ELSE 'processing' END AS status,
       0 AS attempts, o.not_before AS next_attempt_at, NULL::timestamptz AS last_attempt_at, NULL::text AS last_error,
       n.name AS locked_by, n.claimed_at AS locked_at,
       o.created_at AS created_at, NULL::timestamptz AS sent_at, o.correlation_id AS correlation_id,
       o.message_key AS message_key, 0 AS crashes, 1 AS life
  FROM @outbox o LEFT JOIN named n ON n.id = o.id
UNION ALL
SELECT r.original_outbox_id, 'retry', r.message_id, r.destination, r.event_type,
       CASE WHEN r.claim IS NOT NULL THEN 'processing'
            WHEN r.attempts > 0 OR r.crashes > 0 THEN 'retrying'
            ELSE 'pending' END,
       r.attempts, to_timestamp(r.due_ms / 1000.0),
       CASE WHEN r.last_attempt_ms > 0 THEN to_timestamp(r.last_attempt_ms / 1000.0) END,
       r.last_error, h.name, h.claimed_at,
       r.created_at, NULL, r.correlation_id, r.message_key, r.crashes, r.life
  FROM @outbox_retry r LEFT JOIN held h ON h.claim = r.claim
UNION ALL
SELECT original_outbox_id, 'sent', message_id, destination, event_type, 'sent', attempts, NULL, NULL, NULL, NULL, NULL,
       created_at, to_timestamp(sent_ms / 1000.0), correlation_id, message_key, 0, life
  FROM @outbox_sent
UNION ALL
-- A letter that was requeued shows as its new life; one that was resolved as sent, unless outbox_sent says so itself.
SELECT original_outbox_id, 'dead', message_id, destination, event_type,
       CASE WHEN status = 'resolved' THEN 'sent'
            WHEN status <> 'retrying' THEN 'dead'
            WHEN sending_at IS NOT NULL THEN 'processing'
            ELSE 'retrying' END,
       attempts, NULL, last_attempt_at, error_message, NULL, sending_at, message_created_at,
       CASE status WHEN 'resolved' THEN resolved_at END, correlation_id, message_key, crashes, life
  FROM @dead_letters d
 WHERE status = 'failed'
    OR (status = 'retrying' AND (sending_at IS NOT NULL OR requeued_as IS NOT NULL))
    OR (status = 'discarded' AND resolution IS DISTINCT FROM 'cancelled') -- that one shows as cancelled
    OR (status = 'resolved' AND NOT EXISTS (
            SELECT 1 FROM @outbox_sent s WHERE s.message_id = d.message_id AND s.destination = d.destination))
UNION ALL
SELECT original_outbox_id, 'cancelled', message_id, destination, event_type, 'cancelled', attempts, NULL, NULL, reason,
       NULL, NULL, created_at, NULL, correlation_id, message_key, 0, 1
  FROM @outbox_cancelled;
