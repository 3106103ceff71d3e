-- hikyaku, schema version 5: keeps facts that operators missed.

-- Retention leaves a row in the audit about what it takes from it. audit_purged counts what it ever took, audit_unwitnessed_prev
-- is where the chain began when it left no rows yet.
INSERT INTO outbox_meta (key, value)
SELECT 'audit_purged', '0' UNION ALL
SELECT 'audit_unwitnessed_prev', value FROM outbox_meta WHERE key = 'audit_first_prev';

-- ---- redrives ----
-- The paused destination that a running job waits for: its letters are not requeued into a pause.
ALTER TABLE outbox_redrive ADD COLUMN held TEXT;
-- Which letter goes under a message id that is not its own.
CREATE INDEX dead_letters_requeued_as ON dead_letters (requeued_as) WHERE requeued_as IS NOT NULL;

-- ---- letters that may have arrived ----
-- People ask before they repair or requeue: how many of each group? The index has only those, and answers without the letters.
CREATE INDEX dead_letters_maybe ON dead_letters (fingerprint, status, id, last_failed_at) WHERE possibly_delivered <> 0;

-- ---- groups by what the receiver said ----
-- Version 2 of the rule that makes fingerprints reads the receiver's words. fingerprint_made is '2:' and the fingerprint where that
-- version made it. Anything else there means that a relay of an older version wrote the letter, during a rolling upgrade
-- too: a relay of this version then groups open letters anew, some at a time, and finds by the index which are left.
-- fingerprint_old is what an older version made: filters that name it (a redrive that runs, a ticket) find the same letters.
ALTER TABLE dead_letters ADD COLUMN fingerprint_made TEXT;
ALTER TABLE dead_letters ADD COLUMN fingerprint_old TEXT;
CREATE INDEX dead_letters_regroup ON dead_letters (id)
    WHERE fingerprint_made IS NOT ('2:' || fingerprint) AND status IN ('failed', 'retrying');
CREATE INDEX dead_letters_group_old ON dead_letters (fingerprint_old, status, id) WHERE fingerprint_old IS NOT NULL;

-- Rows of outbox (source 0) and outbox_retry (1) that a trigger or a constraint of the application's did not let the relay take
-- away. They are not sent again: the relay tries now and then to write down what became of them.
CREATE TABLE outbox_stuck (
    source             INTEGER NOT NULL,
    row_id             INTEGER NOT NULL,
    since_ms           INTEGER NOT NULL,
    delivered          INTEGER NOT NULL, -- 1: its receiver has confirmed it, only the row could not go
    possibly_delivered INTEGER NOT NULL,
    message_id         TEXT    NOT NULL,
    destination        TEXT    NOT NULL, -- as the relay resolved it
    message_key        TEXT,
    error              TEXT    NOT NULL, -- why the row stays
    attempts           INTEGER NOT NULL,
    reason_code        TEXT,             -- it was to become a dead letter; NULL = to be sent again, or delivered
    last_error         TEXT,             -- of its last attempt
    PRIMARY KEY (source, row_id)
) WITHOUT ROWID;

-- ---- payloads larger than a relay takes ----
-- While a statement changes a row of outbox_retry (home 1) or dead_letters (2), its large payload waits here: the statement would
-- hold it in memory, twice. Rows come and go within one transaction: others always see this table empty.
CREATE TABLE outbox_aside (
    id      INTEGER PRIMARY KEY,
    home    INTEGER NOT NULL,
    row_id  INTEGER NOT NULL,
    payload
);

-- ---- acts on many letters ----
-- A row of the audit for each of 10,000 letters buries all other acts. One row stands for them now; the letters lie here, and the
-- row's detail has the digest of its list. Programs of version 4 go on writing a row for each letter.
CREATE TABLE outbox_audit_letters (
    audit_id    INTEGER NOT NULL, -- the row of outbox_audit that covers it
    letter_id   INTEGER NOT NULL,
    act_id      INTEGER NOT NULL, -- the act's first row: an act on many takes several transactions
    message_id  TEXT,
    destination TEXT,
    before_hash TEXT,
    after_hash  TEXT,
    detail      TEXT, -- JSON object
    PRIMARY KEY (audit_id, letter_id)
) WITHOUT ROWID;
CREATE INDEX outbox_audit_letters_act ON outbox_audit_letters (act_id, letter_id);
CREATE INDEX outbox_audit_letters_letter ON outbox_audit_letters (letter_id);
CREATE INDEX outbox_audit_redrive ON outbox_audit (redrive_id) WHERE act = 'redrive-start';
CREATE TRIGGER outbox_audit_gone AFTER DELETE ON outbox_audit
BEGIN
    DELETE FROM outbox_audit_letters WHERE audit_id = OLD.id;
END;
CREATE TRIGGER outbox_audit_letters_stay BEFORE UPDATE ON outbox_audit_letters
BEGIN
    SELECT raise(ABORT, 'outbox_audit_letters: what was done stays as it was written');
END;
-- For how long a relay may be silent and live: who resets the clock must not take it for dead before. 0 = not told.
ALTER TABLE outbox_relay ADD lease_ms INTEGER NOT NULL DEFAULT 0;

-- What was done with each letter, by acts on one and on many. For people; `hikyaku audit list --letter` asks the same.
CREATE VIEW outbox_audit_of_letters AS
SELECT a.id, a.at_ms, a.actor, a.act, a.message_id, a.destination, a.reason, a.letter_id, a.redrive_id, a.before_hash, a.after_hash,
       a.detail, a.prev, a.hash, NULL AS act_id
  FROM outbox_audit a WHERE a.letter_id IS NOT NULL
UNION ALL
SELECT a.id, a.at_ms, a.actor, a.act, l.message_id, l.destination, a.reason, l.letter_id, a.redrive_id, l.before_hash, l.after_hash,
       l.detail, a.prev, a.hash, l.act_id
  FROM outbox_audit_letters l JOIN outbox_audit a ON a.id = l.audit_id;
