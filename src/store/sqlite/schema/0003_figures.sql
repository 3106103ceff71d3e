-- hikyaku, schema version 3: what relays saw lately, for `status`, `top` and alerts.

-- One row for each relay at work and destination, written anew every few seconds while something happens: what happened in
-- the last `window_ms` before `at_ms`. Rows of relays that are gone go with their lanes.
CREATE TABLE outbox_figures (
    lane          INTEGER NOT NULL,
    destination   TEXT    NOT NULL,
    at_ms         INTEGER NOT NULL,
    window_ms     INTEGER NOT NULL,
    seen          INTEGER NOT NULL DEFAULT 0, -- fresh messages that came by
    sent          INTEGER NOT NULL DEFAULT 0, -- attempts that went well
    failed        INTEGER NOT NULL DEFAULT 0, -- attempts that did not
    dead          INTEGER NOT NULL DEFAULT 0, -- messages that became dead letters
    in_flight     INTEGER NOT NULL DEFAULT 0,
    ready_at_ms   INTEGER NOT NULL DEFAULT 0, -- the limiter lets nothing through before
    breaker       TEXT    NOT NULL DEFAULT 'closed',
    latency       TEXT    NOT NULL DEFAULT '', -- how long attempts took: bucket:count, separated by blanks
    last_error    TEXT,
    last_error_ms INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (lane, destination)
) WITHOUT ROWID;
CREATE TRIGGER outbox_figures_gone AFTER DELETE ON outbox_relay
BEGIN
    DELETE FROM outbox_figures WHERE lane = OLD.lane;
END;
