-- hikyaku, schema version 1 (SQLite).
--
-- Applications insert into outbox, in their own transactions, and read outbox_messages and dead_letters. The other
-- tables are the relay's own. Whatever an application writes must not fail here for a reason it does not expect: a
-- value that makes no sense becomes a dead letter later. So: no unique constraints, no checks, and a NULL where ORMs
-- write one turns into the default.
--
-- Times: TEXT in RFC 3339, UTC, where applications and people look; *_ms (Unix milliseconds) where the relay counts.
-- AUTOINCREMENT: an id that was seen once never comes back, which cursors and fencing rely on.
-- The payload stands last, so that reading the columns before it never walks through its overflow pages.

CREATE TABLE outbox (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    -- a UUID of version 7: sorts by time, which keeps the index of outbox_sent compact
    message_id      TEXT NOT NULL ON CONFLICT REPLACE DEFAULT (
        substr(printf('%012x', CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)), 1, 8) || '-' ||
        substr(printf('%012x', CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)), 9, 4) || '-7' ||
        substr(lower(hex(randomblob(2))), 2) || '-' || substr('89ab', 1 + (random() & 3), 1) ||
        substr(lower(hex(randomblob(2))), 2) || '-' || lower(hex(randomblob(6)))),
    destination     TEXT NOT NULL ON CONFLICT REPLACE DEFAULT '', -- '' = by route
    event_type      TEXT NOT NULL,
    message_key     TEXT,    -- order within a destination
    headers         TEXT,    -- JSON object
    content_type    TEXT,
    encoding        TEXT NOT NULL ON CONFLICT REPLACE DEFAULT 'utf8', -- or base64
    correlation_id  TEXT,
    traceparent     TEXT,
    idempotency_key TEXT,
    not_before      TEXT,
    expires_at      TEXT,
    policy          TEXT,
    max_attempts    INTEGER,
    created_at      TEXT NOT NULL ON CONFLICT REPLACE DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    payload         -- TEXT or BLOB, sent unchanged
);
-- What a full or paused destination could not take is read by itself later; without this, past everybody else's rows.
CREATE INDEX outbox_by_destination ON outbox (destination);
CREATE INDEX outbox_by_key ON outbox (destination, message_key) WHERE message_key IS NOT NULL;

-- A lane: one incarnation of a running relay, and the fencing token.
CREATE TABLE outbox_relay (
    lane       INTEGER PRIMARY KEY AUTOINCREMENT,
    name       TEXT NOT NULL,
    boot       TEXT NOT NULL,
    version    TEXT NOT NULL DEFAULT '',
    started_ms INTEGER NOT NULL,
    until_ms   INTEGER NOT NULL,
    lock       TEXT NOT NULL DEFAULT '' -- '' = none; else which lock its process holds for as long as it lives
);

-- A manifest: what a lane has in hand. Names ids of outbox; rows of outbox_retry name their claim themselves.
CREATE TABLE outbox_claim (
    claim      INTEGER PRIMARY KEY AUTOINCREMENT,
    lane       INTEGER NOT NULL REFERENCES outbox_relay (lane),
    claimed_ms INTEGER NOT NULL,
    ids        TEXT NOT NULL -- JSON array
);

-- Tried and to be tried again, scheduled ahead, fanned out or requeued.
CREATE TABLE outbox_retry (
    id                 INTEGER PRIMARY KEY AUTOINCREMENT,
    original_outbox_id INTEGER,
    message_id         TEXT NOT NULL,
    destination        TEXT NOT NULL,
    event_type         TEXT NOT NULL,
    message_key        TEXT,
    headers            TEXT,
    content_type       TEXT,
    encoding           TEXT,
    correlation_id     TEXT,
    traceparent        TEXT,
    idempotency_key    TEXT,
    not_before         TEXT,
    expires_at         TEXT,
    policy             TEXT,
    max_attempts       INTEGER,
    created_at         TEXT,
    due_ms             INTEGER NOT NULL,
    claim              INTEGER,                    -- NULL = free
    deferred           INTEGER NOT NULL DEFAULT 0, -- 1 = only waiting for its time: does not hold its key
    attempts           INTEGER NOT NULL DEFAULT 0,
    charged            INTEGER NOT NULL DEFAULT 0,
    failed_transient   INTEGER NOT NULL DEFAULT 0,
    failed_rate_limit  INTEGER NOT NULL DEFAULT 0,
    failed_auth        INTEGER NOT NULL DEFAULT 0,
    failed_permanent   INTEGER NOT NULL DEFAULT 0,
    failed_unknown     INTEGER NOT NULL DEFAULT 0,
    prev_wait_ms       INTEGER NOT NULL DEFAULT 0,
    first_attempt_ms   INTEGER NOT NULL DEFAULT 0,
    paused_mark_ms     INTEGER NOT NULL DEFAULT 0, -- for how long its destination had been paused, in all, at its first failure
    first_failed_ms    INTEGER NOT NULL DEFAULT 0,
    last_attempt_ms    INTEGER NOT NULL DEFAULT 0,
    last_cause         TEXT,
    last_error         TEXT,
    crashes            INTEGER NOT NULL DEFAULT 0,
    life               INTEGER NOT NULL DEFAULT 1,
    letter_id          INTEGER NOT NULL DEFAULT 0, -- the dead letter that it was requeued from
    payload
);
CREATE INDEX outbox_retry_due ON outbox_retry (destination, due_ms) WHERE claim IS NULL;
CREATE INDEX outbox_retry_claim ON outbox_retry (claim) WHERE claim IS NOT NULL;
CREATE INDEX outbox_retry_key ON outbox_retry (destination, message_key, deferred) WHERE message_key IS NOT NULL;
CREATE INDEX outbox_retry_message ON outbox_retry (message_id);

-- "Did it go?" Without payload. Ids rise with sent_ms, so that neither needs an index of its own.
CREATE TABLE outbox_sent (
    id                 INTEGER PRIMARY KEY,
    original_outbox_id INTEGER,
    message_id         TEXT NOT NULL,
    destination        TEXT NOT NULL,
    event_type         TEXT NOT NULL,
    message_key        TEXT,
    correlation_id     TEXT,
    attempts           INTEGER NOT NULL,
    status             INTEGER NOT NULL, -- of the answer; 0 = the destination has none
    life               INTEGER NOT NULL,
    created_at         TEXT,
    sent_ms            INTEGER NOT NULL
);
CREATE INDEX outbox_sent_message ON outbox_sent (message_id);

CREATE TABLE outbox_cancelled (
    id                 INTEGER PRIMARY KEY AUTOINCREMENT,
    original_outbox_id INTEGER,
    message_id         TEXT NOT NULL,
    destination        TEXT NOT NULL,
    event_type         TEXT NOT NULL,
    message_key        TEXT,
    headers            TEXT,
    content_type       TEXT,
    encoding           TEXT,
    correlation_id     TEXT,
    traceparent        TEXT,
    idempotency_key    TEXT,
    policy             TEXT,
    attempts           INTEGER NOT NULL DEFAULT 0,
    created_at         TEXT,
    actor              TEXT NOT NULL,
    reason             TEXT NOT NULL,
    cancelled_ms       INTEGER NOT NULL,
    payload
);
CREATE INDEX outbox_cancelled_message ON outbox_cancelled (message_id);

CREATE TABLE dead_letters (
    id                 INTEGER PRIMARY KEY AUTOINCREMENT,
    message_id         TEXT NOT NULL,
    original_outbox_id INTEGER,
    event_type         TEXT NOT NULL,
    destination        TEXT NOT NULL,
    message_key        TEXT,
    headers            TEXT,
    content_type       TEXT,
    encoding           TEXT,
    correlation_id     TEXT,
    traceparent        TEXT,
    idempotency_key    TEXT,
    expires_at         TEXT,
    policy             TEXT,
    max_attempts       INTEGER,
    message_created_at TEXT,             -- when the application wrote it
    reason_code        TEXT NOT NULL,
    error_message      TEXT,
    error_detail       TEXT,             -- JSON object
    attempts           INTEGER NOT NULL, -- of this life
    crashes            INTEGER NOT NULL DEFAULT 0,
    first_failed_at    TEXT NOT NULL,
    last_failed_at     TEXT NOT NULL,
    last_attempt_at    TEXT,             -- NULL = it was never sent
    status             TEXT NOT NULL DEFAULT 'failed', -- failed, retrying, resolved, discarded
    requeued_at        TEXT,
    resolved_at        TEXT,             -- or discarded
    resolution         TEXT,
    life               INTEGER NOT NULL DEFAULT 1,
    created_at         TEXT NOT NULL,
    payload
);
CREATE INDEX dead_letters_original ON dead_letters (original_outbox_id);
CREATE INDEX dead_letters_message ON dead_letters (message_id);
CREATE INDEX dead_letters_event_type ON dead_letters (event_type);
CREATE INDEX dead_letters_created ON dead_letters (created_at);
CREATE INDEX dead_letters_done ON dead_letters (status, resolved_at) WHERE resolved_at IS NOT NULL;
CREATE INDEX dead_letters_key ON dead_letters (destination, message_key)
    WHERE message_key IS NOT NULL AND status = 'failed';
-- How many are open, and where.
CREATE INDEX dead_letters_open ON dead_letters (destination) WHERE status = 'failed';

-- Ids rise with settled_ms.
CREATE TABLE outbox_attempts (
    id                 INTEGER PRIMARY KEY,
    message_id         TEXT NOT NULL,
    destination        TEXT NOT NULL,
    life               INTEGER NOT NULL,
    n                  INTEGER NOT NULL, -- from 1 in each life
    started_ms         INTEGER NOT NULL,
    duration_ms        INTEGER NOT NULL,
    settled_ms         INTEGER NOT NULL,
    status             INTEGER NOT NULL,
    class              TEXT NOT NULL,
    cause              TEXT,
    error              TEXT,
    request_headers    TEXT,
    response_headers   TEXT,
    response_body      BLOB,
    address            TEXT,
    possibly_delivered INTEGER NOT NULL
);
CREATE INDEX outbox_attempts_message ON outbox_attempts (message_id);

CREATE TABLE outbox_destination (
    name     TEXT PRIMARY KEY,
    paused   INTEGER NOT NULL,
    actor    TEXT,
    reason   TEXT,
    since_ms INTEGER NOT NULL,
    paused_total_ms INTEGER NOT NULL DEFAULT 0, -- up to since_ms: paused time does not count towards max_elapsed
    open_until_ms   INTEGER NOT NULL DEFAULT 0  -- its breaker opened: half-open then; 0 = closed
) WITHOUT ROWID;

-- Who did what, and why: one row for each act of a person. Ids rise with at_ms.
CREATE TABLE outbox_audit (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    at_ms       INTEGER NOT NULL,
    actor       TEXT NOT NULL,
    act         TEXT NOT NULL, -- cancel, retry, pause, resume
    message_id  TEXT,
    destination TEXT,
    reason      TEXT NOT NULL
);

CREATE TABLE outbox_meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO outbox_meta (key, value) VALUES ('schema_version', '1'), ('high_water_ms', '0');

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
-- A letter that was requeued shows as its new life; one that was resolved as sent, unless outbox_sent says so itself.
SELECT original_outbox_id, 'dead', message_id, destination, event_type,
       CASE status WHEN 'resolved' THEN 'sent' ELSE 'dead' END,
       attempts, NULL, last_attempt_at, error_message, NULL, NULL, message_created_at,
       CASE status WHEN 'resolved' THEN resolved_at END, correlation_id, message_key, crashes, life
  FROM dead_letters d
 WHERE status = 'failed' OR (status = 'discarded' AND resolution IS NOT 'cancelled') -- that one shows as cancelled
    OR (status = 'resolved' AND NOT EXISTS (
            SELECT 1 FROM outbox_sent s WHERE s.message_id = d.message_id AND s.destination = d.destination))
UNION ALL
SELECT original_outbox_id, 'cancelled', message_id, destination, event_type, 'cancelled', attempts, NULL, NULL, reason,
       NULL, NULL, created_at, NULL, correlation_id, message_key, 0, 1
  FROM outbox_cancelled;
