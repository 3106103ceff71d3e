-- hikyaku, schema version 7 (SQLite): what operators do with many messages at once.

-- Where a redrive sends its letters; NULL = each to its own destination.
ALTER TABLE outbox_redrive ADD COLUMN destination TEXT;
