-- hikyaku, schema version 8: jobs, which are long operations that relays carry out.

-- ---- jobs ----
-- Any relay takes a job that waits, or whose lease has run out. Each take gives it the next token; who has an older one changes
-- nothing any more. A batch's changes and how far the job came are one transaction.
CREATE TABLE outbox_job (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    operation     TEXT    NOT NULL,           -- such as 'dead discard'
    request       TEXT    NOT NULL,           -- JSON, as the HTTP API takes it
    actor         TEXT    NOT NULL,
    reason        TEXT    NOT NULL,
    role          TEXT    NOT NULL,           -- what the caller was allowed
    reveal        INTEGER NOT NULL DEFAULT 0, -- 1: also to see what is masked
    status        TEXT    NOT NULL DEFAULT 'queued', -- queued, running, done, failed, cancelled
    done          INTEGER NOT NULL DEFAULT 0,
    total         INTEGER NOT NULL DEFAULT 0, -- 0 = not known
    changed       INTEGER NOT NULL DEFAULT 0,
    failed        INTEGER NOT NULL DEFAULT 0,
    cursor        TEXT    NOT NULL DEFAULT '', -- how far it came
    result        TEXT,                       -- JSON, as the operation answers; so far, while it runs
    act_id        INTEGER NOT NULL DEFAULT 0, -- in outbox_audit; 0 = nothing was changed
    error_code    TEXT,                       -- of one that failed
    error         TEXT,
    cancelled_by  TEXT,                       -- NULL = nobody has asked for that
    cancel_reason TEXT,
    owner         TEXT,                       -- the relay that has it in hand, or had it last
    token         INTEGER NOT NULL DEFAULT 0, -- of the last take
    lease_ms      INTEGER NOT NULL DEFAULT 0, -- until then
    tries         INTEGER NOT NULL DEFAULT 0, -- takes since it last came further
    created_ms    INTEGER NOT NULL,
    started_ms    INTEGER NOT NULL DEFAULT 0,
    ended_ms      INTEGER NOT NULL DEFAULT 0  -- 0 = it waits or runs
);
CREATE INDEX outbox_job_open ON outbox_job (id) WHERE ended_ms = 0;
CREATE INDEX outbox_job_ended ON outbox_job (ended_ms) WHERE ended_ms > 0;
