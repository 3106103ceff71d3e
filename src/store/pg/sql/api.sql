-- SPDX-License-Identifier: Apache-2.0
-- The statements about tokens of the HTTP API, and about calls with an Idempotency-Key. They share the operators' connection.
--
-- `$1`, where a statement begins with the time, is the time of tests; NULL is the server's own.

--@ fragment NOW
coalesce($1::bigint, (extract(epoch FROM now()) * 1000)::bigint)

--@ fragment TEXT(t)
left({t}, 250)

--@ fragment TOKEN(t)
{t}.id, {TEXT({t}.name)}, {TEXT({t}.role)}, {t}.reveal, {t}.created_ms, {TEXT({t}.created_by)}, {TEXT({t}.reason)},
{t}.expires_ms, {t}.revoked_ms, {TEXT({t}.revoked_by)}, {t}.last_used_ms

-- $1 now, $2 name, $3 actor: a token that has expired makes room for another of its name
--@ statement EXPIRE
UPDATE @outbox_tokens SET revoked_ms = {NOW}, revoked_by = $3::text
WHERE name = $2::text AND revoked_ms = 0 AND expires_ms <> 0 AND expires_ms <= {NOW}

-- $1 now, $2 name, $3 role, $4 reveal, $5 hash, $6 for how long or 0, $7 actor, $8 reason; no row: the name is taken
--@ statement CREATE
WITH put AS (INSERT INTO @outbox_tokens AS t (name, role, reveal, hash, created_ms, created_by, reason, expires_ms)
  VALUES ($2, $3, $4::boolean, $5, {NOW}, $7, $8, CASE WHEN $6::bigint = 0 THEN 0 ELSE {NOW} + $6::bigint END)
  ON CONFLICT (name) WHERE revoked_ms = 0 DO NOTHING RETURNING t.id, t.name, t.role, t.reveal, t.created_ms, t.expires_ms),
audit AS (INSERT INTO @outbox_audit (at_ms, actor, act, reason, detail)
  SELECT {NOW}, $7, 'token-create', $8, '{"token":' || to_json(put.name)::text || ',"id":' || put.id || ',"role":' ||
    to_json(put.role)::text || ',"reveal":' || put.reveal || ',"expires_ms":' || put.expires_ms || '}' FROM put)
SELECT put.id, put.created_ms, put.expires_ms
FROM put

-- $1 now, $2 how many: now first
--@ statement LIST
SELECT {NOW}, {TOKEN(t)} FROM (SELECT 1) AS one LEFT JOIN (SELECT * FROM @outbox_tokens ORDER BY revoked_ms <> 0, id DESC
  LIMIT $2::bigint) t ON true
ORDER BY t.revoked_ms <> 0, t.id DESC

-- $1 now, $2 id or 0, $3 name, $4 actor, $5 reason: whether it changed, and the token as it was
--@ statement REVOKE
WITH hit AS MATERIALIZED (SELECT t.id, t.name, t.role, t.reveal, t.created_ms, t.created_by, t.reason, t.expires_ms,
  t.revoked_ms, t.revoked_by, t.last_used_ms FROM @outbox_tokens t
  WHERE CASE WHEN $2::bigint > 0 THEN t.id = $2::bigint ELSE t.name = $3::text END
  ORDER BY t.revoked_ms <> 0, t.id DESC LIMIT 1 FOR UPDATE),
put AS (UPDATE @outbox_tokens t SET revoked_ms = {NOW}, revoked_by = $4 FROM hit
  WHERE t.id = hit.id AND hit.revoked_ms = 0 RETURNING t.id),
audit AS (INSERT INTO @outbox_audit (at_ms, actor, act, reason, detail)
  SELECT {NOW}, $4, 'token-revoke', $5, '{"token":' || to_json(hit.name)::text || ',"id":' || hit.id || '}'
  FROM hit JOIN put ON put.id = hit.id)
SELECT hit.revoked_ms = 0, {NOW}, {TOKEN(hit)}
FROM hit

-- $1 now, $2 hash or NULL: now, is there any, the token and its hash
--@ statement FIND
SELECT {NOW}, EXISTS (SELECT 1 FROM @outbox_tokens), {TOKEN(t)}, t.hash
FROM (SELECT 1) AS one LEFT JOIN @outbox_tokens t ON t.hash = $2::text

-- $1 now, $2 id, $3 how long a use stands; also what a clock left that was ahead
--@ statement USE
UPDATE @outbox_tokens SET last_used_ms = {NOW}
WHERE id = $2::bigint AND (last_used_ms <= {NOW} - $3::bigint OR last_used_ms > {NOW})

-- $1 now, $2 address, $3 code, $4 how many
--@ statement REFUSED
INSERT INTO @outbox_audit (at_ms, actor, act, reason, detail)
VALUES ({NOW}, 'hikyaku', 'api-refused', $3, '{"address":' || to_json($2::text)::text || ',"requests":' || $4::bigint || '}')

-- ---- calls ----

-- $1 now, $2 caller, $3 key, $4 request, $5 lease, $6 how long it is kept: the run, or no row when it is not to be done. A time that
-- lies ahead is one of a clock that was set back.
--@ statement BEGIN
INSERT INTO @outbox_api_calls AS c (caller, key_hash, request_hash, state, started_ms, created_ms)
VALUES ($2, $3, $4, 'running', {NOW}, {NOW}) ON CONFLICT (caller, key_hash) DO UPDATE
SET request_hash = excluded.request_hash, state = 'running', run = c.run + 1, started_ms = excluded.started_ms,
  created_ms = CASE WHEN c.created_ms BETWEEN {NOW} - $6::bigint + 1 AND {NOW} + $5::bigint THEN c.created_ms
    ELSE excluded.created_ms END,
  status = NULL, content_type = NULL, body = NULL
WHERE c.created_ms NOT BETWEEN {NOW} - $6::bigint + 1 AND {NOW} + $5::bigint
  OR (c.state <> 'done' AND c.request_hash = excluded.request_hash
    AND c.started_ms NOT BETWEEN {NOW} - $5::bigint + 1 AND {NOW} + $5::bigint)
RETURNING c.run

-- $1 caller, $2 key, $3 request: is it the same, is it done, and the response
--@ statement CALL
SELECT c.request_hash = $3::text, c.state = 'done', c.status, {TEXT(c.content_type)}, c.body IS NOT NULL,
  CASE WHEN c.request_hash = $3::text THEN c.body END
FROM @outbox_api_calls c
WHERE c.caller = $1::text AND c.key_hash = $2::text

-- $1 caller, $2 key, $3 run, $4 status, $5 content type, $6 body
--@ statement FINISH
UPDATE @outbox_api_calls SET state = 'done', status = $4::integer, content_type = $5, body = $6::bytea
WHERE caller = $1::text AND key_hash = $2::text AND run = $3::bigint AND state = 'running'

-- $1 caller, $2 key, $3 run
--@ statement FORGET
DELETE FROM @outbox_api_calls WHERE caller = $1::text AND key_hash = $2::text AND run = $3::bigint AND state = 'running'
