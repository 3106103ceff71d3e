-- hikyaku, schema version 2 (SQLite): dead letters that a person can repair.
--
-- dead_letters is written anew: what lists, groups and figures need stands before the long texts, and the payload last, so
-- that reading the former never walks through overflow pages.

DROP VIEW outbox_messages;

CREATE TABLE dead_letters_2 (
    id                 INTEGER PRIMARY KEY AUTOINCREMENT,
    message_id         TEXT NOT NULL,    -- as the application knows it, in every life
    original_outbox_id INTEGER,
    status             TEXT NOT NULL DEFAULT 'failed', -- failed, retrying, resolved, discarded
    life               INTEGER NOT NULL DEFAULT 1,
    attempts           INTEGER NOT NULL, -- of this life
    crashes            INTEGER NOT NULL DEFAULT 0,
    requeues           INTEGER NOT NULL DEFAULT 0,
    payload_version    INTEGER NOT NULL DEFAULT 1, -- 1 = as the application wrote it; older ones in dead_letter_versions
    possibly_delivered INTEGER NOT NULL DEFAULT 0, -- some attempt of some life may have arrived
    redrive_id         INTEGER,          -- the job that requeued it last
    event_type         TEXT NOT NULL,
    destination        TEXT NOT NULL,
    message_key        TEXT,
    reason_code        TEXT NOT NULL,
    failure_class      TEXT,             -- of the last attempt; NULL = nothing was sent
    fault              TEXT,             -- destination or pipeline
    fingerprint        TEXT,             -- the same for letters that failed in the same way
    first_failed_at    TEXT NOT NULL,    -- in its first life
    last_failed_at     TEXT NOT NULL,
    last_attempt_at    TEXT,             -- NULL = it was never sent
    created_at         TEXT NOT NULL,
    requeued_at        TEXT,
    requeued_as        TEXT,             -- the message_id of its newest life, when that is another one
    edited_at          TEXT,
    sending_at         TEXT,             -- a send by hand began then, and nobody knows yet how it ended
    resolved_at        TEXT,             -- or discarded
    resolution         TEXT,
    correlation_id     TEXT,
    traceparent        TEXT,
    message_created_at TEXT,             -- when the application wrote it
    error_message      TEXT,
    content_type       TEXT,
    encoding           TEXT,
    idempotency_key    TEXT,
    expires_at         TEXT,
    policy             TEXT,
    max_attempts       INTEGER,
    headers            TEXT,
    error_detail       TEXT,             -- JSON object
    payload
);
-- Fingerprints and faults of older letters are the program's to fill in: run `hikyaku init`.
INSERT INTO dead_letters_2 (id, message_id, original_outbox_id, event_type, destination, message_key, headers, content_type,
       encoding, correlation_id, traceparent, idempotency_key, expires_at, policy, max_attempts, message_created_at,
       reason_code, error_message, error_detail, attempts, crashes, first_failed_at, last_failed_at, last_attempt_at, status,
       requeued_at, resolved_at, resolution, life, created_at, requeues, failure_class, possibly_delivered, payload)
SELECT id, message_id, original_outbox_id, event_type, destination, message_key, headers, content_type,
       encoding, correlation_id, traceparent, idempotency_key, expires_at, policy, max_attempts, message_created_at,
       reason_code, error_message, error_detail, attempts, crashes, first_failed_at, last_failed_at, last_attempt_at, status,
       requeued_at, resolved_at, CASE resolution WHEN 'sent' THEN 'delivered' ELSE resolution END, life, created_at,
       max(life - 1, 0),
       CASE WHEN json_valid(error_detail) THEN json_extract(error_detail, '$.class') END,
       CASE WHEN json_valid(error_detail) THEN coalesce(json_extract(error_detail, '$.possibly_delivered') = 1, 0) ELSE 0 END,
       payload
  FROM dead_letters ORDER BY id;
-- Ids that were given to letters which are gone do not come back.
DELETE FROM sqlite_sequence WHERE name = 'dead_letters_2';
INSERT INTO sqlite_sequence (name, seq) SELECT 'dead_letters_2', seq FROM sqlite_sequence WHERE name = 'dead_letters';
DROP TABLE dead_letters;
ALTER TABLE dead_letters_2 RENAME TO dead_letters;

CREATE INDEX dead_letters_original ON dead_letters (original_outbox_id);
CREATE INDEX dead_letters_message ON dead_letters (message_id);
CREATE INDEX dead_letters_correlation ON dead_letters (correlation_id) WHERE correlation_id IS NOT NULL;
CREATE INDEX dead_letters_event_type ON dead_letters (event_type);
CREATE INDEX dead_letters_created ON dead_letters (created_at);
CREATE INDEX dead_letters_done ON dead_letters (status, resolved_at) WHERE resolved_at IS NOT NULL;
-- A send by hand that is under way must not let successors pass.
CREATE INDEX dead_letters_key ON dead_letters (destination, message_key)
    WHERE message_key IS NOT NULL AND (status = 'failed' OR sending_at IS NOT NULL);
-- How many are open, and where.
CREATE INDEX dead_letters_open ON dead_letters (destination) WHERE status = 'failed';
-- Lists by status in the order of ids, and the figures, which need no more than this.
CREATE INDEX dead_letters_status ON dead_letters (status, id, fault, destination, reason_code, requeues);
-- Groups, likewise; and a group's letters in the order of ids.
CREATE INDEX dead_letters_group ON dead_letters (fingerprint, status, id, first_failed_at, last_failed_at);
CREATE INDEX dead_letters_redrive ON dead_letters (redrive_id, status) WHERE redrive_id IS NOT NULL;

-- Payloads that an edit has replaced.
CREATE TABLE dead_letter_versions (
    letter_id   INTEGER NOT NULL,
    version     INTEGER NOT NULL,
    replaced_ms INTEGER NOT NULL,
    actor       TEXT NOT NULL, -- of the edit that replaced it
    reason      TEXT NOT NULL,
    payload,
    PRIMARY KEY (letter_id, version)
);
-- A trigger, since an application's own connection may not heed foreign keys.
CREATE TRIGGER dead_letters_gone AFTER DELETE ON dead_letters
BEGIN
    DELETE FROM dead_letter_versions WHERE letter_id = old.id;
END;

-- Many letters requeued as a job: the row is all that is known of it, so that any relay can go on with it.
CREATE TABLE outbox_redrive (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    status      TEXT NOT NULL DEFAULT 'running', -- running, done, cancelled, aborted
    filter      TEXT NOT NULL,
    rate_per_s  REAL NOT NULL,
    ramp_ms     INTEGER NOT NULL,
    canary      INTEGER NOT NULL,
    abort_ratio REAL NOT NULL,
    ids         TEXT NOT NULL,    -- auto, same, new
    last_id     INTEGER NOT NULL, -- letters above came later
    cursor_id   INTEGER NOT NULL DEFAULT 0, -- letters up to here were looked at
    total       INTEGER NOT NULL,
    requeued    INTEGER NOT NULL DEFAULT 0,
    lost        INTEGER NOT NULL DEFAULT 0, -- of those: dead again, and then requeued by another job
    exhausted   INTEGER NOT NULL DEFAULT 0,
    tokens      REAL NOT NULL DEFAULT 0, -- of the rate, as of tokens_ms
    tokens_ms   INTEGER NOT NULL DEFAULT 0,
    started_ms  INTEGER NOT NULL,
    created_ms  INTEGER NOT NULL,
    ended_ms    INTEGER NOT NULL DEFAULT 0,
    actor       TEXT NOT NULL,
    reason      TEXT NOT NULL,
    ending      TEXT
);
CREATE INDEX outbox_redrive_running ON outbox_redrive (id) WHERE status = 'running';

ALTER TABLE outbox_retry ADD COLUMN possibly_delivered INTEGER NOT NULL DEFAULT 0; -- some attempt may have arrived
CREATE INDEX outbox_retry_letter ON outbox_retry (letter_id) WHERE letter_id <> 0;

-- Databases of version 1 exist with and without open_until_ms; what it said is not worth keeping.
CREATE TABLE outbox_destination_2 (
    name     TEXT PRIMARY KEY,
    paused   INTEGER NOT NULL,
    actor    TEXT,
    reason   TEXT,
    since_ms INTEGER NOT NULL,
    paused_total_ms INTEGER NOT NULL DEFAULT 0, -- up to since_ms: paused time does not count towards max_elapsed
    open_until_ms   INTEGER NOT NULL DEFAULT 0  -- its breaker opened: half-open then; 0 = closed
) WITHOUT ROWID;
INSERT INTO outbox_destination_2 (name, paused, actor, reason, since_ms, paused_total_ms)
SELECT name, paused, actor, reason, since_ms, paused_total_ms FROM outbox_destination;
DROP TABLE outbox_destination;
ALTER TABLE outbox_destination_2 RENAME TO outbox_destination;

-- Every row but the oldest ones, from before, is a link of a chain: hash is SHA-256 over prev and the row's fields, prev
-- the hash of the row before (src/store/digest.c). outbox_meta keeps both ends: audit_head is the last row's hash,
-- audit_first_prev the prev of the oldest row that retention has left.
ALTER TABLE outbox_audit ADD COLUMN letter_id INTEGER;
ALTER TABLE outbox_audit ADD COLUMN redrive_id INTEGER;
ALTER TABLE outbox_audit ADD COLUMN before_hash TEXT; -- SHA-256 of what was changed
ALTER TABLE outbox_audit ADD COLUMN after_hash TEXT;
ALTER TABLE outbox_audit ADD COLUMN detail TEXT; -- JSON object
ALTER TABLE outbox_audit ADD COLUMN prev TEXT;
ALTER TABLE outbox_audit ADD COLUMN hash TEXT;
CREATE INDEX outbox_audit_letter ON outbox_audit (letter_id) WHERE letter_id IS NOT NULL;
CREATE TRIGGER outbox_audit_stays BEFORE UPDATE ON outbox_audit
BEGIN
    SELECT raise(ABORT, 'outbox_audit: what was done stays as it was written');
END;

-- A program of an older version may work with this schema if it knows at least version compatible_from.
INSERT INTO outbox_meta (key, value) VALUES ('audit_head', ''), ('audit_first_prev', ''), ('compatible_from', '2');

-- One row per message and destination, in whatever state.
CREATE VIEW outbox_messages AS
WITH held AS MATERIALIZED (
    SELECT c.claim, c.claimed_ms, r.name, c.ids FROM outbox_claim c JOIN outbox_relay r ON r.lane = c.lane
), named AS MATERIALIZED (
    SELECT CAST(j.value AS INTEGER) AS id, h.claimed_ms, h.name FROM held h JOIN json_each(h.ids) j
)
SELECT o.id AS id, 'outbox' AS source, o.message_id AS message_id, o.destination AS destination,
       o.event_type AS event_type,
       CASE WHEN n.id IS NULL THEN 'pending' ELSE 'processing' END AS status,
       0 AS attempts, o.not_before AS next_attempt_at, NULL AS last_attempt_at, NULL AS last_error,
       n.name AS locked_by, strftime('%Y-%m-%dT%H:%M:%fZ', n.claimed_ms / 1000.0, 'unixepoch') AS locked_at,
       o.created_at AS created_at, NULL AS sent_at, o.correlation_id AS correlation_id,
       o.message_key AS message_key, 0 AS crashes, 1 AS life
  FROM outbox o LEFT JOIN named n ON n.id = o.id
UNION ALL
SELECT r.original_outbox_id, 'retry', r.message_id, r.destination, r.event_type,
       CASE WHEN r.claim IS NOT NULL THEN 'processing'
            WHEN r.attempts > 0 OR r.crashes > 0 THEN 'retrying'
            ELSE 'pending' END,
       r.attempts, strftime('%Y-%m-%dT%H:%M:%fZ', r.due_ms / 1000.0, 'unixepoch'),
       CASE WHEN r.last_attempt_ms > 0
            THEN strftime('%Y-%m-%dT%H:%M:%fZ', r.last_attempt_ms / 1000.0, 'unixepoch') END,
       r.last_error, h.name, strftime('%Y-%m-%dT%H:%M:%fZ', h.claimed_ms / 1000.0, 'unixepoch'),
       r.created_at, NULL, r.correlation_id, r.message_key, r.crashes, r.life
  FROM outbox_retry r LEFT JOIN held h ON h.claim = r.claim
UNION ALL
SELECT original_outbox_id, 'sent', message_id, destination, event_type, 'sent', attempts, NULL, NULL, NULL, NULL, NULL,
       created_at, strftime('%Y-%m-%dT%H:%M:%fZ', sent_ms / 1000.0, 'unixepoch'), correlation_id, message_key, 0, life
  FROM outbox_sent
UNION ALL
-- A letter that was requeued shows as its new life (and, where that has another message_id, as itself, too); one that is
-- sent by hand right now as processing; one that was resolved as sent, unless outbox_sent says so itself.
SELECT original_outbox_id, 'dead', message_id, destination, event_type,
       CASE status WHEN 'resolved' THEN 'sent'
                   WHEN 'retrying' THEN CASE WHEN sending_at IS NULL THEN 'retrying' ELSE 'processing' END
                   ELSE 'dead' END,
       attempts, NULL, last_attempt_at, error_message, NULL, sending_at, message_created_at,
       CASE status WHEN 'resolved' THEN resolved_at END, correlation_id, message_key, crashes, life
  FROM dead_letters d
 WHERE status = 'failed' OR (status = 'discarded' AND resolution IS NOT 'cancelled') -- that one shows as cancelled
    OR (status = 'retrying' AND (sending_at IS NOT NULL OR requeued_as IS NOT NULL))
    OR (status = 'resolved' AND NOT EXISTS (
            SELECT 1 FROM outbox_sent s WHERE s.message_id = d.message_id AND s.destination = d.destination))
UNION ALL
SELECT original_outbox_id, 'cancelled', message_id, destination, event_type, 'cancelled', attempts, NULL, NULL, reason,
       NULL, NULL, created_at, NULL, correlation_id, message_key, 0, 1
  FROM outbox_cancelled;
