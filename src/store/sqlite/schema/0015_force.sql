-- hikyaku, schema version 15: messages that people force.

-- A person wants it to go now, whatever guards its destination: until an attempt of it is settled.
ALTER TABLE outbox_retry ADD COLUMN forced INTEGER NOT NULL DEFAULT 0;
CREATE INDEX outbox_retry_forced ON outbox_retry (due_ms) WHERE forced = 1;
