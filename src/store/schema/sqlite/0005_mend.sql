-- hikyaku, schema version 5: keeps facts that operators missed.

-- ---- letters that may have arrived ----
-- People ask before they repair or requeue: how many of each group? The index has only those, and answers without the letters.
CREATE INDEX dead_letters_maybe ON dead_letters (fingerprint, status, id, last_failed_at) WHERE possibly_delivered <> 0;
