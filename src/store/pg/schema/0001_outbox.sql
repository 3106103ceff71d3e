-- hikyaku, schema version 1 (PostgreSQL 15 and later). In the source a name behind an at sign stands for the table or view
-- in the configured schema, with the configured prefix; behind two of them for the name alone, as CREATE INDEX wants it.
--
-- Applications insert into outbox, in their own transactions, and read outbox_messages and dead_letters. The other
-- tables are the relays' own. Whatever an application writes must not fail here for a reason it does not expect: no
-- unique constraints, no checks; a NULL where ORMs write one stands for the default.
--
-- Times: timestamptz where applications and people look; *_ms (Unix milliseconds) where relays count.
-- The columns are the SQLite schema's, and besides:
--   xid    the transaction that wrote the row. It stands FIRST: defaults are evaluated in the order of columns, and the
--          reader relies on a transaction having its number before it draws ids.
--   shard  of the key, or of the id: 64 for ever. All messages of a key lie in one shard, and a shard has one owner.
-- A B-tree refuses values over 2,704 bytes, and would undo the application's transaction. So indexes hold of a destination its
-- first 63 characters (no destination that a relay knows has more), of a message_key a hash, and those on message_id are
-- hashes altogether, which are smaller, too, and write less than half of the WAL. COLLATE "C": the order must not change when
-- the operating system's library does.

CREATE TABLE @outbox (
    xid             xid8        NOT NULL DEFAULT pg_current_xact_id(),
    id              bigint      GENERATED ALWAYS AS IDENTITY (CACHE 1) PRIMARY KEY,
    shard           smallint    NOT NULL GENERATED ALWAYS AS
                    ((coalesce(hashtextextended(nullif(message_key, ''), 0), id) & 63)::smallint) STORED,
    max_attempts    integer,
    not_before      timestamptz,
    expires_at      timestamptz,
    created_at      timestamptz DEFAULT now(),
    message_id      text        DEFAULT gen_random_uuid()::text, -- NULL: 'outbox-' || id
    destination     text        DEFAULT '', -- '' = by route
    event_type      text        NOT NULL,
    message_key     text,       -- order within a destination
    headers         text,       -- JSON object
    content_type    text,
    encoding        text        DEFAULT 'utf8', -- or base64
    correlation_id  text,
    traceparent     text,
    idempotency_key text,
    policy          text,
    payload         text        -- sent unchanged; binary as base64
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
        autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000,
        autovacuum_vacuum_cost_delay = 0);
-- What a full or paused destination could not take is read by itself later; without this, past everybody else's rows.
-- Not by the bare id: while the table is empty these would look as good for finding an id as the primary key does, and a plan
-- that was made then would walk through all of them when the table is full. Only who says (id + 0) means the first, and
-- (id - 0) the second.
CREATE INDEX @@outbox_by_destination ON @outbox (left(destination, 63) COLLATE "C", (id + 0));
CREATE INDEX @@outbox_by_key ON @outbox (left(destination, 63) COLLATE "C", hashtextextended(message_key, 0), (id - 0))
    WHERE message_key IS NOT NULL;

-- A lane: one incarnation of a running relay, and the fencing token.
CREATE TABLE @outbox_relay (
    lane       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       text   NOT NULL,
    boot       text   NOT NULL,
    version    text   NOT NULL DEFAULT '',
    started_ms bigint NOT NULL,
    until_ms   bigint NOT NULL,
    exchange   bigint NOT NULL DEFAULT 0 -- up to this number they come too late: given up when their reply was lost
) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- The last exchange that a lane has committed: tells after a lost reply. A row of its own, found by its number: while somebody
-- holds a snapshot open, the versions of a row that changed with every exchange could not be removed, and each of them would
-- be looked at by the next.
CREATE TABLE @outbox_exchange (
    lane   bigint NOT NULL,
    number bigint NOT NULL,
    PRIMARY KEY (lane, number)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

CREATE TABLE @outbox_shard (
    shard smallint PRIMARY KEY,
    lane  bigint   -- NULL = free
) WITH (fillfactor = 50);
INSERT INTO @outbox_shard (shard) SELECT generate_series(0, 63);

-- A manifest: what a lane has in hand. Names ids of outbox; rows of outbox_retry name their claim themselves.
CREATE TABLE @outbox_claim (
    claim      bigint   GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    lane       bigint   NOT NULL REFERENCES @outbox_relay (lane),
    claimed_ms bigint   NOT NULL,
    ids        bigint[] NOT NULL
) WITH (toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
-- It lives for seconds: compressing 500 ids took more time than everything else about them.
ALTER TABLE @outbox_claim ALTER ids SET STORAGE EXTERNAL;

-- Tried and to be tried again, scheduled ahead, fanned out or requeued. Belongs to the owner of the shard.
CREATE TABLE @outbox_retry (
    id                 bigint   GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    original_outbox_id bigint,
    shard              smallint NOT NULL GENERATED ALWAYS AS -- of the key, or of the outbox row it was
                       ((coalesce(hashtextextended(nullif(message_key, ''), 0), original_outbox_id, id) & 63)::smallint)
                       STORED,
    due_ms             bigint   NOT NULL,
    claim              bigint,                     -- NULL = free
    deferred           boolean  NOT NULL DEFAULT false, -- only waiting for its time: does not hold its key
    attempts           integer  NOT NULL DEFAULT 0,
    charged            integer  NOT NULL DEFAULT 0,
    failed_transient   integer  NOT NULL DEFAULT 0,
    failed_rate_limit  integer  NOT NULL DEFAULT 0,
    failed_auth        integer  NOT NULL DEFAULT 0,
    failed_permanent   integer  NOT NULL DEFAULT 0,
    failed_unknown     integer  NOT NULL DEFAULT 0,
    prev_wait_ms       bigint   NOT NULL DEFAULT 0,
    first_attempt_ms   bigint   NOT NULL DEFAULT 0,
    paused_mark_ms     bigint   NOT NULL DEFAULT 0, -- how long its destination had been paused in all, at its first failure
    first_failed_ms    bigint   NOT NULL DEFAULT 0,
    last_attempt_ms    bigint   NOT NULL DEFAULT 0,
    crashes            integer  NOT NULL DEFAULT 0,
    life               integer  NOT NULL DEFAULT 1,
    letter_id          bigint   NOT NULL DEFAULT 0, -- the dead letter that it was requeued from
    max_attempts       integer,
    not_before         timestamptz,
    expires_at         timestamptz,
    created_at         timestamptz,
    message_id         text     NOT NULL,
    destination        text     NOT NULL,
    event_type         text     NOT NULL,
    message_key        text,
    headers            text,
    content_type       text,
    encoding           text,
    correlation_id     text,
    traceparent        text,
    idempotency_key    text,
    policy             text,
    last_cause         text,
    last_error         text,
    payload            text
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
CREATE INDEX @@outbox_retry_due ON @outbox_retry (left(destination, 63) COLLATE "C", due_ms, id) WHERE claim IS NULL;
CREATE INDEX @@outbox_retry_claim ON @outbox_retry (claim) WHERE claim IS NOT NULL;
CREATE INDEX @@outbox_retry_key ON @outbox_retry
    (left(destination, 63) COLLATE "C", hashtextextended(message_key, 0), (id + 0)) WHERE message_key IS NOT NULL;
CREATE INDEX @@outbox_retry_message ON @outbox_retry USING hash (message_id);

-- "Did it go?" Without payload. Ids rise with sent_ms, so that neither needs an index of its own.
CREATE TABLE @outbox_sent (
    id                 bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    original_outbox_id bigint,
    sent_ms            bigint  NOT NULL,
    created_at         timestamptz,
    attempts           integer NOT NULL,
    status             integer NOT NULL, -- of the answer; 0 = the destination has none
    life               integer NOT NULL,
    message_id         text    NOT NULL,
    destination        text    NOT NULL,
    event_type         text    NOT NULL,
    message_key        text,
    correlation_id     text
);
CREATE INDEX @@outbox_sent_message ON @outbox_sent USING hash (message_id);

CREATE TABLE @outbox_cancelled (
    id                 bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    original_outbox_id bigint,
    cancelled_ms       bigint  NOT NULL,
    attempts           integer NOT NULL DEFAULT 0,
    created_at         timestamptz,
    message_id         text    NOT NULL,
    destination        text    NOT NULL,
    event_type         text    NOT NULL,
    message_key        text,
    headers            text,
    content_type       text,
    encoding           text,
    correlation_id     text,
    traceparent        text,
    idempotency_key    text,
    policy             text,
    actor              text    NOT NULL,
    reason             text    NOT NULL,
    payload            text
);
CREATE INDEX @@outbox_cancelled_message ON @outbox_cancelled USING hash (message_id);

CREATE TABLE @dead_letters (
    id                 bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    message_id         text    NOT NULL,
    original_outbox_id bigint,
    event_type         text    NOT NULL,
    destination        text    NOT NULL,
    message_key        text,
    headers            text,
    content_type       text,
    encoding           text,
    correlation_id     text,
    traceparent        text,
    idempotency_key    text,
    expires_at         timestamptz,
    policy             text,
    max_attempts       integer,
    message_created_at timestamptz,      -- when the application wrote it
    reason_code        text    NOT NULL,
    error_message      text,
    error_detail       text,             -- JSON object
    attempts           integer NOT NULL, -- of this life
    crashes            integer NOT NULL DEFAULT 0,
    first_failed_at    timestamptz NOT NULL,
    last_failed_at     timestamptz NOT NULL,
    last_attempt_at    timestamptz,      -- NULL = it was never sent
    status             text    NOT NULL DEFAULT 'failed', -- failed, retrying, resolved, discarded
    requeued_at        timestamptz,
    resolved_at        timestamptz,      -- or discarded
    resolution         text,
    life               integer NOT NULL DEFAULT 1,
    created_at         timestamptz NOT NULL,
    payload            text
);
CREATE INDEX @@dead_letters_original ON @dead_letters (original_outbox_id);
CREATE INDEX @@dead_letters_message ON @dead_letters USING hash (message_id);
CREATE INDEX @@dead_letters_event_type ON @dead_letters (left(event_type, 200)); -- not all of it, either
CREATE INDEX @@dead_letters_created ON @dead_letters (created_at);
CREATE INDEX @@dead_letters_done ON @dead_letters (status, resolved_at) WHERE resolved_at IS NOT NULL;
CREATE INDEX @@dead_letters_key ON @dead_letters (left(destination, 63) COLLATE "C", hashtextextended(message_key, 0))
    WHERE message_key IS NOT NULL AND status = 'failed';
-- How many are open, and where.
CREATE INDEX @@dead_letters_open ON @dead_letters (left(destination, 63) COLLATE "C") WHERE status = 'failed';

-- Ids rise with settled_ms.
CREATE TABLE @outbox_attempts (
    id                 bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    started_ms         bigint  NOT NULL,
    duration_ms        bigint  NOT NULL,
    settled_ms         bigint  NOT NULL,
    life               integer NOT NULL,
    n                  integer NOT NULL, -- from 1 in each life
    status             integer NOT NULL,
    possibly_delivered boolean NOT NULL,
    message_id         text    NOT NULL,
    destination        text    NOT NULL,
    class              text    NOT NULL,
    cause              text,
    error              text,
    request_headers    text,
    response_headers   text,
    response_body      bytea,
    address            text
);
CREATE INDEX @@outbox_attempts_message ON @outbox_attempts USING hash (message_id);

CREATE TABLE @outbox_destination (
    name     text    PRIMARY KEY,
    paused   boolean NOT NULL,
    actor    text,
    reason   text,
    since_ms bigint  NOT NULL,
    paused_total_ms bigint NOT NULL DEFAULT 0, -- up to since_ms: paused time does not count towards max_elapsed
    open_until_ms   bigint NOT NULL DEFAULT 0  -- a relay's breaker opened: half-open then; 0 = closed
) WITH (fillfactor = 50);

-- What all relays together may send to a destination: a bucket of its rate, and one of leaves to probe it when it is broken.
CREATE TABLE @outbox_quota (
    destination text,
    probe       bigint,
    tokens      double precision NOT NULL,
    at_ms       bigint           NOT NULL,
    granted     bigint           NOT NULL, -- the last time
    PRIMARY KEY (destination, probe)
) WITH (fillfactor = 50);

-- Who did what, and why: one row for each act of a person. Ids rise with at_ms.
CREATE TABLE @outbox_audit (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at_ms       bigint NOT NULL,
    actor       text   NOT NULL,
    act         text   NOT NULL, -- cancel, retry, pause, resume
    message_id  text,
    destination text,
    reason      text   NOT NULL
);

CREATE TABLE @outbox_meta (
    key   text PRIMARY KEY,
    value text NOT NULL
);
INSERT INTO @outbox_meta (key, value) VALUES ('schema_version', '1');

-- One row per message and destination, in whatever state.
CREATE VIEW @outbox_messages AS
WITH held AS MATERIALIZED (
    SELECT c.claim, to_timestamp(c.claimed_ms / 1000.0) AS claimed_at, r.name, c.ids
      FROM @outbox_claim c JOIN @outbox_relay r ON r.lane = c.lane
), named AS MATERIALIZED (
    SELECT u.id, h.claimed_at, h.name FROM held h CROSS JOIN unnest(h.ids) AS u (id)
)
SELECT o.id AS id, 'outbox' AS source, coalesce(o.message_id, 'outbox-' || o.id) AS message_id,
       coalesce(o.destination, '') AS destination, o.event_type AS event_type,
       CASE WHEN n.id IS NULL THEN 'pending' ELSE 'processing' END AS status,
       0 AS attempts, o.not_before AS next_attempt_at, NULL::timestamptz AS last_attempt_at, NULL::text AS last_error,
       n.name AS locked_by, n.claimed_at AS locked_at,
       o.created_at AS created_at, NULL::timestamptz AS sent_at, o.correlation_id AS correlation_id,
       o.message_key AS message_key, 0 AS crashes, 1 AS life
  FROM @outbox o LEFT JOIN named n ON n.id = o.id
UNION ALL
SELECT r.original_outbox_id, 'retry', r.message_id, r.destination, r.event_type,
       CASE WHEN r.claim IS NOT NULL THEN 'processing'
            WHEN r.attempts > 0 OR r.crashes > 0 THEN 'retrying'
            ELSE 'pending' END,
       r.attempts, to_timestamp(r.due_ms / 1000.0),
       CASE WHEN r.last_attempt_ms > 0 THEN to_timestamp(r.last_attempt_ms / 1000.0) END,
       r.last_error, h.name, h.claimed_at,
       r.created_at, NULL, r.correlation_id, r.message_key, r.crashes, r.life
  FROM @outbox_retry r LEFT JOIN held h ON h.claim = r.claim
UNION ALL
SELECT original_outbox_id, 'sent', message_id, destination, event_type, 'sent', attempts, NULL, NULL, NULL, NULL, NULL,
       created_at, to_timestamp(sent_ms / 1000.0), correlation_id, message_key, 0, life
  FROM @outbox_sent
UNION ALL
-- A letter that was requeued shows as its new life; one that was resolved as sent, unless outbox_sent says so itself.
SELECT original_outbox_id, 'dead', message_id, destination, event_type,
       CASE status WHEN 'resolved' THEN 'sent' ELSE 'dead' END,
       attempts, NULL, last_attempt_at, error_message, NULL, NULL, message_created_at,
       CASE status WHEN 'resolved' THEN resolved_at END, correlation_id, message_key, crashes, life
  FROM @dead_letters d
 WHERE status = 'failed'
    OR (status = 'discarded' AND resolution IS DISTINCT FROM 'cancelled') -- that one shows as cancelled
    OR (status = 'resolved' AND NOT EXISTS (
            SELECT 1 FROM @outbox_sent s WHERE s.message_id = d.message_id AND s.destination = d.destination))
UNION ALL
SELECT original_outbox_id, 'cancelled', message_id, destination, event_type, 'cancelled', attempts, NULL, NULL, reason,
       NULL, NULL, created_at, NULL, correlation_id, message_key, 0, 1
  FROM @outbox_cancelled;
