-- hikyaku, schema version 6: who may use the HTTP API, and calls that must not be done twice.

-- ---- tokens ----
-- Only a token's hash is kept. A name belongs to one token at a time; a revoked token's row stays, so that the audit can be read.
CREATE TABLE @outbox_tokens (
    id           bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name         text    COLLATE "C" NOT NULL,
    role         text    NOT NULL,               -- metrics, viewer, operator, admin; any other word gives no right
    reveal       boolean NOT NULL DEFAULT false, -- may also see what is masked
    hash         text    COLLATE "C" NOT NULL,   -- SHA-256 of the token, in hex
    created_ms   bigint  NOT NULL,
    created_by   text    NOT NULL,
    reason       text    NOT NULL,
    expires_ms   bigint  NOT NULL DEFAULT 0,     -- 0 = never
    revoked_ms   bigint  NOT NULL DEFAULT 0,     -- 0 = it is not
    revoked_by   text,
    last_used_ms bigint  NOT NULL DEFAULT 0      -- within a minute; 0 = never
);
CREATE UNIQUE INDEX @@outbox_tokens_hash ON @outbox_tokens (hash);
CREATE UNIQUE INDEX @@outbox_tokens_name ON @outbox_tokens (name) WHERE revoked_ms = 0;

-- ---- calls with an Idempotency-Key ----
-- A call that is repeated with the same key gets the first one's response for a day. Responses that hold a secret are not kept.
CREATE TABLE @outbox_api_calls (
    id           bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    caller       text    COLLATE "C" NOT NULL,   -- who called: keys of one caller are nothing to another
    key_hash     text    COLLATE "C" NOT NULL,   -- SHA-256, in hex, like request_hash
    request_hash text    COLLATE "C" NOT NULL,   -- of method, path and body
    state        text    NOT NULL,               -- running, done
    run          bigint  NOT NULL DEFAULT 1,     -- a call that takes over from one that died has the next number
    started_ms   bigint  NOT NULL,               -- of this run
    created_ms   bigint  NOT NULL,
    status       integer,                        -- of the response, once it is done
    content_type text,
    body         bytea                           -- NULL: it was too large to keep, or holds a secret
);
CREATE UNIQUE INDEX @@outbox_api_calls_key ON @outbox_api_calls (caller, key_hash);
CREATE INDEX @@outbox_api_calls_created ON @outbox_api_calls (created_ms);

-- Who moves messages serves the API, too: rights as on outbox_retry. Who looks may see which tokens there are, neither their hashes
-- nor anybody's responses. Tokens are revoked, and deleted by nobody.
DO $$
DECLARE
    g record;
BEGIN
    FOR g IN SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS role,
                    a.privilege_type AS what,
                    EXISTS (SELECT 1 FROM aclexplode(c.relacl) b WHERE b.grantee = a.grantee AND b.privilege_type = 'UPDATE') AS moves
               FROM pg_class c CROSS JOIN aclexplode(c.relacl) a
              WHERE c.oid = '@outbox_retry'::regclass AND a.grantee <> c.relowner
                AND a.privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE') LOOP
        IF g.moves THEN
            EXECUTE 'GRANT ' || g.what || ' ON @outbox_api_calls TO ' || g.role;
        END IF;
        IF g.moves AND g.what <> 'DELETE' THEN
            EXECUTE 'GRANT ' || g.what || ' ON @outbox_tokens TO ' || g.role;
        ELSIF g.what = 'SELECT' THEN
            EXECUTE 'GRANT SELECT (id, name, role, reveal, created_ms, created_by, reason, expires_ms, revoked_ms, revoked_by, '
                    'last_used_ms) ON @outbox_tokens TO ' || g.role;
        END IF;
    END LOOP;
END
$$;
