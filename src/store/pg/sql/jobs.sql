-- SPDX-License-Identifier: Apache-2.0
-- The statements about jobs. They share the operators' connection.
--
-- `$1`, where a statement begins with the time, is the time of tests; NULL is the server's own.

--@ fragment NOW
coalesce($1::bigint, (extract(epoch FROM now()) * 1000)::bigint)

--@ fragment TEXT(t)
left({t}, 1000)

--@ fragment HEAD(j)
{j}.id, {j}.status, {TEXT({j}.operation)}, {TEXT({j}.actor)}, {TEXT({j}.reason)}, {TEXT({j}.role)}, {j}.reveal, {j}.done,
{j}.total, {j}.changed, {j}.failed, {j}.act_id, {TEXT({j}.error_code)}, {TEXT({j}.error)}, {TEXT({j}.cancelled_by)},
{TEXT({j}.cancel_reason)}, {TEXT({j}.owner)}, {j}.created_ms, {j}.started_ms, {j}.ended_ms, {j}.tries, {j}.token

--@ fragment ALL(j)
{HEAD({j})}, left({j}.request, 262144), left({j}.cursor, 1024), left({j}.result, 1048576)

-- $2 how far ahead a lease may lie
--@ fragment IS_FREE(j)
{j}.ended_ms = 0 AND ({j}.status = 'queued' OR {j}.lease_ms <= {NOW} OR {j}.lease_ms > {NOW} + $2::bigint)

-- Two who start a job at once count one after the other.
--@ statement TURN
SELECT 1 FROM @outbox_turn WHERE name = 'job' FOR NO KEY UPDATE

-- $1 now, $2 operation, $3 request, $4 actor, $5 reason, $6 role, $7 reveal, $8 how many may be open; no row: there are
--@ statement CREATE
WITH put AS (INSERT INTO @outbox_job AS j (operation, request, actor, reason, role, reveal, created_ms)
  SELECT $2, $3, $4, $5, $6, $7::boolean, {NOW} WHERE (SELECT count(*) FROM @outbox_job WHERE ended_ms = 0) < $8::bigint
  RETURNING j.id),
audit AS (INSERT INTO @outbox_audit (at_ms, actor, act, reason, detail)
  SELECT {NOW}, $4, 'job-start', $5, '{"job":' || put.id || ',"operation":' || to_json($2::text)::text || '}' FROM put)
SELECT put.id
FROM put

-- $1 now, $2 ids below this, $3 only those that wait or run, $4 how many
--@ statement LIST
SELECT {NOW}, {HEAD(j)} FROM (SELECT 1) AS one LEFT JOIN (SELECT * FROM @outbox_job WHERE id < $2::bigint
  AND (NOT $3::boolean OR ended_ms = 0) ORDER BY id DESC LIMIT $4::bigint) j ON true
ORDER BY j.id DESC

-- $1 now, $2 id
--@ statement FIND
SELECT {NOW}, {ALL(j)} FROM (SELECT 1) AS one LEFT JOIN @outbox_job j ON j.id = $2::bigint

-- $1 now, $2 id, $3 actor, $4 reason: how it was
--@ statement CANCEL
WITH hit AS MATERIALIZED (SELECT j.id, j.status, j.ended_ms, j.operation, j.cancelled_by FROM @outbox_job j WHERE j.id = $2::bigint
  FOR UPDATE),
put AS (UPDATE @outbox_job j SET cancelled_by = $3, cancel_reason = $4, ended_ms = CASE j.status WHEN 'queued' THEN {NOW}
  ELSE 0 END, status = CASE j.status WHEN 'queued' THEN 'cancelled' ELSE j.status END FROM hit
  WHERE j.id = hit.id AND hit.ended_ms = 0 AND hit.cancelled_by IS NULL RETURNING j.id),
audit AS (INSERT INTO @outbox_audit (at_ms, actor, act, reason, detail)
  SELECT {NOW}, $3, 'job-cancel', $4, '{"job":' || put.id || ',"operation":' || to_json(hit.operation)::text || '}'
  FROM put JOIN hit ON hit.id = put.id)
SELECT hit.status, hit.ended_ms
FROM hit

--@ statement WAITING
SELECT 1 FROM @outbox_job j WHERE {IS_FREE(j)} LIMIT 1

-- $1 now, $2 how far ahead, $3 how often at the most, $4 code, $5 why: those that came no further have failed
--@ statement GIVE_UP
UPDATE @outbox_job j SET status = 'failed', ended_ms = {NOW}, error_code = $4, error = $5, lease_ms = 0, token = token + 1
WHERE {IS_FREE(j)} AND j.tries >= $3::integer

-- $1 now, $2 how far ahead, $3 owner, $4 lease: the job, if there is one. What others lock they take.
--@ statement TAKE
WITH free AS MATERIALIZED (SELECT j.id FROM @outbox_job j WHERE {IS_FREE(j)} ORDER BY j.id LIMIT 1 FOR UPDATE SKIP LOCKED)
UPDATE @outbox_job j SET status = 'running', owner = $3, token = j.token + 1, lease_ms = {NOW} + $4::bigint,
  tries = j.tries + 1, started_ms = CASE j.started_ms WHEN 0 THEN {NOW} ELSE j.started_ms END
FROM free
WHERE j.id = free.id
RETURNING {ALL(j)}

-- $2 id, $3 token
--@ fragment IS_OURS
id = $2::bigint AND token = $3::bigint AND status = 'running'

-- $1 now, and $4 lease: is it to end? No row: it is not ours
--@ statement RENEW
UPDATE @outbox_job SET lease_ms = {NOW} + $4::bigint WHERE {IS_OURS} RETURNING cancelled_by IS NOT NULL

-- $1 how long the server waits for the rest of a transaction
--@ statement PATIENCE
SELECT set_config('idle_in_transaction_session_timeout', $1::text, true)

-- $1 now, and $4 status, $5 lease, $6 to $9 progress, $10 act, $11 cursor, $12 result, $13 code, $14 why, $15 it moved,
-- $16 the request is to be forgotten
--@ statement SAVE
UPDATE @outbox_job SET status = $4, lease_ms = CASE $4 WHEN 'running' THEN {NOW} + $5::bigint ELSE 0 END,
  ended_ms = CASE WHEN $4 IN ('queued', 'running') THEN 0 ELSE {NOW} END, done = $6::bigint, total = $7::bigint,
  changed = $8::bigint, failed = $9::bigint, act_id = $10::bigint, cursor = $11, result = $12, error_code = $13,
  error = $14, tries = CASE WHEN $15::boolean THEN 0 ELSE tries END, request = CASE WHEN $16::boolean THEN '{}' ELSE request END
WHERE {IS_OURS}
RETURNING 1
