-- hikyaku, schema version 12: lists of dead letters by type and by correlation id read no more letters than they show.

-- In the order of ids, and by an expression of the id that no other index has: see version 2. Not all of a text, which may be longer than
-- an entry of an index.
DROP INDEX @dead_letters_event_type;
CREATE INDEX @@dead_letters_event_type ON @dead_letters (left(event_type, 200), (id & -1)) INCLUDE (id);
CREATE INDEX @@dead_letters_correlation ON @dead_letters (left(correlation_id, 200), (id << 0)) INCLUDE (id)
    WHERE correlation_id IS NOT NULL;
