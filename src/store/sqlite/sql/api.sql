-- SPDX-License-Identifier: Apache-2.0
-- The statements about tokens of the HTTP API, and about calls with an Idempotency-Key.

--@ fragment TOKEN
id, name, role, reveal <> 0, created_ms, created_by, reason, expires_ms, revoked_ms, revoked_by, last_used_ms

-- ?1 name, ?2 now, ?3 actor: a token that has expired makes room for another of its name
--@ statement EXPIRE
UPDATE outbox_tokens SET revoked_ms = ?2, revoked_by = ?3
WHERE name = ?1 AND revoked_ms = 0 AND expires_ms <> 0 AND expires_ms <= ?2

--@ statement CREATE
INSERT INTO outbox_tokens (name, role, reveal, hash, created_ms, created_by, reason, expires_ms)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (name) WHERE revoked_ms = 0 DO NOTHING

-- ?1 how many
--@ statement LIST
SELECT {TOKEN} FROM outbox_tokens ORDER BY revoked_ms <> 0, id DESC LIMIT ?1

--@ statement BY_ID
SELECT {TOKEN} FROM outbox_tokens WHERE id = ?1

--@ statement BY_NAME
SELECT {TOKEN} FROM outbox_tokens WHERE name = ?1 ORDER BY revoked_ms <> 0, id DESC LIMIT 1

-- ?1 id, ?2 now, ?3 actor
--@ statement REVOKE
UPDATE outbox_tokens SET revoked_ms = ?2, revoked_by = ?3 WHERE id = ?1 AND revoked_ms = 0

--@ statement ANY
SELECT 1 FROM outbox_tokens LIMIT 1

--@ statement BY_HASH
SELECT {TOKEN}, hash FROM outbox_tokens WHERE hash = ?1

-- ?1 id, ?2 now, ?3 how long a use stands; also what a clock left that was ahead
--@ statement USE
UPDATE outbox_tokens SET last_used_ms = ?2 WHERE id = ?1 AND (last_used_ms <= ?2 - ?3 OR last_used_ms > ?2)

-- ---- calls ----

-- ?1 caller, ?2 key
--@ statement CALL
SELECT request_hash, state, run, started_ms, created_ms, status, content_type, body
FROM outbox_api_calls
WHERE caller = ?1 AND key_hash = ?2

-- ?1 caller, ?2 key, ?3 request, ?4 run, ?5 started, ?6 created
--@ statement BEGIN
INSERT INTO outbox_api_calls (caller, key_hash, request_hash, state, run, started_ms, created_ms)
VALUES (?1, ?2, ?3, 'running', ?4, ?5, ?6) ON CONFLICT (caller, key_hash) DO UPDATE
SET request_hash = ?3, state = 'running', run = ?4, started_ms = ?5, created_ms = ?6, status = NULL, content_type = NULL,
  body = NULL

-- ?1 caller, ?2 key, ?3 run, ?4 status, ?5 content type, ?6 body
--@ statement FINISH
UPDATE outbox_api_calls SET state = 'done', status = ?4, content_type = ?5, body = ?6
WHERE caller = ?1 AND key_hash = ?2 AND run = ?3 AND state = 'running'

-- ?1 caller, ?2 key, ?3 run
--@ statement FORGET
DELETE FROM outbox_api_calls WHERE caller = ?1 AND key_hash = ?2 AND run = ?3 AND state = 'running'
