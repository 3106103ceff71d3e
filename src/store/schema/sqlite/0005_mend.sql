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
