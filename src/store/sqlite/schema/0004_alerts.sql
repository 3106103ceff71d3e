-- hikyaku, schema version 4 (SQLite): alerts, what is to be told of them, and who wants to hear nothing.

-- One row for each rule and what it is about, as core/alert.h has it.
CREATE TABLE outbox_alert (
    fingerprint TEXT    PRIMARY KEY, -- of rule, destination and reason
    rule        TEXT    NOT NULL,
    kind        TEXT    NOT NULL,    -- as in `when:`
    severity    TEXT    NOT NULL,
    status      TEXT    NOT NULL,    -- watching, pending, firing, resolved
    destination TEXT    NOT NULL DEFAULT '',
    reason      TEXT    NOT NULL DEFAULT '',
    event_type  TEXT    NOT NULL DEFAULT '',
    example_id  TEXT    NOT NULL DEFAULT '', -- a message_id
    detail      TEXT    NOT NULL DEFAULT '', -- masked
    episode     INTEGER NOT NULL DEFAULT 0,
    count       INTEGER NOT NULL DEFAULT 0,
    since_ms    INTEGER NOT NULL DEFAULT 0,
    fired_ms    INTEGER NOT NULL DEFAULT 0,
    resolved_ms INTEGER NOT NULL DEFAULT 0,
    gone_ms     INTEGER NOT NULL DEFAULT 0,
    told_ms     INTEGER NOT NULL DEFAULT 0,
    told        INTEGER NOT NULL DEFAULT 0,
    owed        INTEGER NOT NULL DEFAULT 0,
    value       REAL    NOT NULL DEFAULT 0,
    threshold   REAL    NOT NULL DEFAULT 0,
    letter_id   INTEGER NOT NULL DEFAULT 0, -- a letter of it that was not settled when it was looked at last
    series_ms   INTEGER NOT NULL DEFAULT 0,
    series      TEXT    NOT NULL DEFAULT '' -- numbers with blanks between
) WITHOUT ROWID;

-- Where the last look ended: the one row. Who has another version than the row's was overtaken by another relay.
CREATE TABLE outbox_alert_look (
    id           INTEGER PRIMARY KEY,
    version      INTEGER NOT NULL DEFAULT 0,
    evaluated_ms INTEGER NOT NULL DEFAULT 0,
    relay        TEXT    NOT NULL DEFAULT '',
    letter_id    INTEGER NOT NULL DEFAULT 0, -- letters up to here were counted
    again_ms     INTEGER NOT NULL DEFAULT 0, -- those that died again before this, too
    gaps         TEXT    NOT NULL DEFAULT '' -- but for these, which may turn up yet (PostgreSQL): from-to:noticed_ms …
);
INSERT INTO outbox_alert_look (id, again_ms) VALUES (1, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER));

-- What is to be told, once for each channel.
CREATE TABLE outbox_notice (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    fingerprint    TEXT    NOT NULL,
    rule           TEXT    NOT NULL,
    kind           TEXT    NOT NULL, -- firing, update, resolved
    channel        TEXT    NOT NULL,
    facts          TEXT    NOT NULL, -- JSON object, masked
    created_ms     INTEGER NOT NULL,
    due_ms         INTEGER NOT NULL,
    attempts       INTEGER NOT NULL DEFAULT 0, -- begun
    claimed_by     TEXT    NOT NULL DEFAULT '',
    claim_until_ms INTEGER NOT NULL DEFAULT 0,
    sent_ms        INTEGER NOT NULL DEFAULT 0,
    given_up_ms    INTEGER NOT NULL DEFAULT 0,
    last_error     TEXT
);
CREATE INDEX outbox_notice_open ON outbox_notice (channel, due_ms) WHERE sent_ms = 0 AND given_up_ms = 0;
CREATE INDEX outbox_notice_alert ON outbox_notice (fingerprint, id) WHERE sent_ms = 0 AND given_up_ms = 0;
CREATE INDEX outbox_notice_created ON outbox_notice (created_ms);

-- Rules of which nothing is told until then.
CREATE TABLE outbox_mute (
    rule     TEXT    PRIMARY KEY,
    until_ms INTEGER NOT NULL,
    since_ms INTEGER NOT NULL,
    actor    TEXT    NOT NULL,
    reason   TEXT    NOT NULL
) WITHOUT ROWID;

-- Letters that died again after a requeue: few, and only those are in it.
CREATE INDEX dead_letters_again ON dead_letters (last_failed_at) WHERE life > 1;
