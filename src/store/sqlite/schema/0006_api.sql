-- hikyaku, schema version 6: who may use the HTTP API, and calls that must not be done twice.

-- ---- tokens ----
-- Only a token's hash is kept. A name belongs to one token at a time; a revoked token's row stays, so that the audit can be read.
CREATE TABLE outbox_tokens (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    name         TEXT    NOT NULL,
    role         TEXT    NOT NULL,           -- metrics, viewer, operator, admin; any other word gives no right
    reveal       INTEGER NOT NULL DEFAULT 0, -- 1: may also see what is masked
    hash         TEXT    NOT NULL,           -- SHA-256 of the token, in hex
    created_ms   INTEGER NOT NULL,
    created_by   TEXT    NOT NULL,
    reason       TEXT    NOT NULL,
    expires_ms   INTEGER NOT NULL DEFAULT 0, -- 0 = never
    revoked_ms   INTEGER NOT NULL DEFAULT 0, -- 0 = it is not
    revoked_by   TEXT,
    last_used_ms INTEGER NOT NULL DEFAULT 0  -- within a minute; 0 = never
);
CREATE UNIQUE INDEX outbox_tokens_hash ON outbox_tokens (hash);
CREATE UNIQUE INDEX outbox_tokens_name ON outbox_tokens (name) WHERE revoked_ms = 0;

-- ---- calls with an Idempotency-Key ----
-- A call that is repeated with the same key gets the first one's response for a day. Responses that hold a secret are not kept.
CREATE TABLE outbox_api_calls (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    caller       TEXT    NOT NULL,           -- who called: keys of one caller are nothing to another
    key_hash     TEXT    NOT NULL,           -- SHA-256, in hex, like request_hash
    request_hash TEXT    NOT NULL,           -- of method, path and body
    state        TEXT    NOT NULL,           -- running, done
    run          INTEGER NOT NULL DEFAULT 1, -- a call that takes over from one that died has the next number
    started_ms   INTEGER NOT NULL,           -- of this run
    created_ms   INTEGER NOT NULL,
    status       INTEGER,                    -- of the response, once it is done
    content_type TEXT,
    body         BLOB                        -- NULL: it was too large to keep, or holds a secret
);
CREATE UNIQUE INDEX outbox_api_calls_key ON outbox_api_calls (caller, key_hash);
CREATE INDEX outbox_api_calls_created ON outbox_api_calls (created_ms);
