-- hikyaku, schema version 12: lists of dead letters by reason read no more letters than they show.

CREATE INDEX dead_letters_reason ON dead_letters (reason_code, status);
