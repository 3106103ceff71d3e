-- hikyaku, schema version 14: what the last notice of an alert named of a payload.
ALTER TABLE @outbox_alert ADD COLUMN fields text NOT NULL DEFAULT ''; -- JSON array, masked
