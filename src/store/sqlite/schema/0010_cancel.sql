-- hikyaku, schema version 10 (SQLite): messages that were cancelled can be restored.

-- What a message had been through when it was cancelled, and what else it needs to wait again. Not columns of outbox_cancelled: they
-- would stand behind the payload. Messages that an older version cancelled have no row here: they are restored as due now.
CREATE TABLE outbox_cancelled_past (
    id                 INTEGER PRIMARY KEY,        -- of outbox_cancelled
    fresh              INTEGER NOT NULL,           -- 1 = it lay in outbox, as the application wrote it
    due_ms             INTEGER NOT NULL DEFAULT 0, -- this and the following: as in outbox_retry
    deferred           INTEGER NOT NULL DEFAULT 0,
    charged            INTEGER NOT NULL DEFAULT 0,
    failed_transient   INTEGER NOT NULL DEFAULT 0,
    failed_rate_limit  INTEGER NOT NULL DEFAULT 0,
    failed_auth        INTEGER NOT NULL DEFAULT 0,
    failed_permanent   INTEGER NOT NULL DEFAULT 0,
    failed_unknown     INTEGER NOT NULL DEFAULT 0,
    prev_wait_ms       INTEGER NOT NULL DEFAULT 0,
    first_attempt_ms   INTEGER NOT NULL DEFAULT 0,
    paused_mark_ms     INTEGER NOT NULL DEFAULT 0,
    first_failed_ms    INTEGER NOT NULL DEFAULT 0,
    last_attempt_ms    INTEGER NOT NULL DEFAULT 0,
    crashes            INTEGER NOT NULL DEFAULT 0,
    life               INTEGER NOT NULL DEFAULT 1,
    letter_id          INTEGER NOT NULL DEFAULT 0,
    possibly_delivered INTEGER NOT NULL DEFAULT 0,
    max_attempts       INTEGER,
    not_before         TEXT,
    expires_at         TEXT,
    last_cause         TEXT,
    last_error         TEXT
);
CREATE TRIGGER outbox_cancelled_gone AFTER DELETE ON outbox_cancelled
BEGIN
    DELETE FROM outbox_cancelled_past WHERE id = OLD.id;
END;
-- Messages are restored in the order in which applications wrote them, so that the order of keys stays.
-- (Not an index of an expression: SQLite writes no payload in pieces into a table that has one.)
CREATE INDEX outbox_cancelled_origin ON outbox_cancelled (original_outbox_id);

-- ---- acts on many messages ----
-- As outbox_audit_letters: one row of the audit stands for all of them, and its detail has the digest of this list.
CREATE TABLE outbox_audit_messages (
    audit_id     INTEGER NOT NULL, -- the row of outbox_audit that covers it
    cancelled_id INTEGER NOT NULL, -- that the message has, or had, in outbox_cancelled
    act_id       INTEGER NOT NULL, -- the act's first row: an act on many takes several transactions
    message_id   TEXT,
    destination  TEXT,
    PRIMARY KEY (audit_id, cancelled_id)
) WITHOUT ROWID;
CREATE INDEX outbox_audit_messages_act ON outbox_audit_messages (act_id, cancelled_id);
CREATE TRIGGER outbox_audit_messages_gone AFTER DELETE ON outbox_audit
BEGIN
    DELETE FROM outbox_audit_messages WHERE audit_id = OLD.id;
END;
CREATE TRIGGER outbox_audit_messages_stay BEFORE UPDATE ON outbox_audit_messages
BEGIN
    SELECT raise(ABORT, 'outbox_audit_messages: what was done stays as it was written');
END;
