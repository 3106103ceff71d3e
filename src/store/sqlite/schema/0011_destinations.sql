-- hikyaku, schema version 11: destinations that are created while relays run.

-- A definition is what would stand under the destination's name in the configuration, as JSON. Secrets stand there by reference only.
CREATE TABLE outbox_destination_def (
    name       TEXT    PRIMARY KEY NOT NULL,
    version    INTEGER NOT NULL,  -- one more with each change
    seq        INTEGER NOT NULL,  -- outbox_definitions.version when it was last changed
    definition TEXT    NOT NULL,
    created_ms INTEGER NOT NULL,
    created_by TEXT    NOT NULL,
    changed_ms INTEGER NOT NULL,
    changed_by TEXT    NOT NULL,
    reason     TEXT    NOT NULL   -- of the last change
);

-- One row: one more with each change of any definition. Relays look at it.
CREATE TABLE outbox_definitions (
    one     INTEGER PRIMARY KEY CHECK (one = 1),
    version INTEGER NOT NULL
);
INSERT INTO outbox_definitions (one, version) VALUES (1, 0);
