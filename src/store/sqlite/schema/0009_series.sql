-- hikyaku, schema version 9: figures over time.

-- One row for each relay, destination and minute in which something happened, kept for 48 hours, and the same of each hour, kept for 90
-- days. Lane 0: what lay in the store for a destination. Lane -1: what lay there in all.
CREATE TABLE outbox_series (
    id          INTEGER PRIMARY KEY,
    step_ms     INTEGER NOT NULL,            -- 60000 or 3600000
    at_ms       INTEGER NOT NULL,            -- when the interval begins
    lane        INTEGER NOT NULL,
    destination TEXT    NOT NULL,            -- '': of several, or not known yet
    seen        INTEGER NOT NULL DEFAULT 0,  -- fresh messages that came by
    sent        INTEGER NOT NULL DEFAULT 0,  -- attempts that went well
    failed      INTEGER NOT NULL DEFAULT 0,  -- attempts that did not
    retried     INTEGER NOT NULL DEFAULT 0,  -- of them, those that will be repeated
    dead        INTEGER NOT NULL DEFAULT 0,  -- messages that became dead letters
    latency     TEXT    NOT NULL DEFAULT '', -- how long attempts took: bucket:count, separated by blanks
    waiting     INTEGER NOT NULL DEFAULT 0,  -- not sent and not in flight
    in_flight   INTEGER NOT NULL DEFAULT 0,
    dead_open   INTEGER NOT NULL DEFAULT 0,  -- dead letters that nobody has settled
    oldest_ms   INTEGER NOT NULL DEFAULT 0   -- for how long the oldest could have gone
);
CREATE UNIQUE INDEX outbox_series_at ON outbox_series (step_ms, at_ms, lane, destination);
