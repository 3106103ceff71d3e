-- hikyaku, schema version 3: what relays saw lately, for `status`, `top` and alerts; buckets that no snapshot makes dearer.

-- One row for each relay at work and destination, written anew every few seconds while something happens: what happened in
-- the last `window_ms` before `at_ms`. Rows of relays that are gone go with their lanes.
CREATE UNLOGGED TABLE @outbox_figures (
    lane          bigint  NOT NULL,
    destination   text    NOT NULL,
    at_ms         bigint  NOT NULL,
    window_ms     bigint  NOT NULL,
    seen          bigint  NOT NULL DEFAULT 0, -- fresh messages that came by
    sent          bigint  NOT NULL DEFAULT 0, -- attempts that went well
    failed        bigint  NOT NULL DEFAULT 0, -- attempts that did not
    dead          bigint  NOT NULL DEFAULT 0, -- messages that became dead letters
    in_flight     bigint  NOT NULL DEFAULT 0,
    ready_at_ms   bigint  NOT NULL DEFAULT 0, -- the limiter lets nothing through before
    breaker       text    NOT NULL DEFAULT 'closed',
    latency       text    NOT NULL DEFAULT '', -- how long attempts took: bucket:count, separated by blanks
    last_error    text,
    last_error_ms bigint  NOT NULL DEFAULT 0,
    PRIMARY KEY (lane, destination)
) WITH (fillfactor = 50);

-- In place of outbox_quota, which relays of version 2 still draw from while they are exchanged: until the last of them is gone
-- a rate is kept by each kind for itself. Every draw leaves a new row and takes the old one away, and the newest is found at the
-- end of the index: of a row that is updated all versions would be walked over while a snapshot is held.
CREATE TABLE @outbox_bucket (
    destination text             NOT NULL,
    probe       bigint           NOT NULL,
    turn        bigint           NOT NULL,
    tokens      double precision NOT NULL,
    at_ms       bigint           NOT NULL,
    PRIMARY KEY (destination, probe, turn)
);
