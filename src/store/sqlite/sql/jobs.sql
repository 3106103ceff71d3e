-- SPDX-License-Identifier: Apache-2.0
-- The statements about jobs.

--@ fragment HEAD
id, status, operation, actor, reason, role, reveal <> 0, done, total, changed, failed, act_id, error_code, error, cancelled_by,
cancel_reason, owner, created_ms, started_ms, ended_ms, tries, token

-- ?1 now, ?2 how far ahead a lease may lie
--@ fragment IS_FREE
ended_ms = 0 AND (status = 'queued' OR lease_ms <= ?1 OR lease_ms > ?1 + ?2)

--@ statement OPEN
SELECT count(*) FROM outbox_job INDEXED BY outbox_job_open WHERE ended_ms = 0

--@ statement CREATE
INSERT INTO outbox_job (operation, request, actor, reason, role, reveal, created_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)

-- ?1 ids below this, ?2 only those that wait or run, ?3 how many
--@ statement LIST
SELECT {HEAD} FROM outbox_job WHERE id < ?1 AND (?2 = 0 OR ended_ms = 0) ORDER BY id DESC LIMIT ?3

--@ statement FIND
SELECT {HEAD}, request, cursor, result FROM outbox_job WHERE id = ?1

--@ statement WAITING
SELECT 1 FROM outbox_job INDEXED BY outbox_job_open WHERE {IS_FREE} LIMIT 1

--@ statement FREE
SELECT id, tries FROM outbox_job INDEXED BY outbox_job_open WHERE {IS_FREE} ORDER BY id LIMIT 1

-- ?1 id, ?2 now, ?3 owner, ?4 lease
--@ statement TAKE
UPDATE outbox_job SET status = 'running', owner = ?3, token = token + 1, lease_ms = ?2 + ?4, tries = tries + 1,
  started_ms = CASE started_ms WHEN 0 THEN ?2 ELSE started_ms END
WHERE id = ?1

-- ?1 id, ?2 now, ?3 code, ?4 why
--@ statement GIVE_UP
UPDATE outbox_job SET status = 'failed', ended_ms = ?2, error_code = ?3, error = ?4, lease_ms = 0, token = token + 1 WHERE id = ?1

-- ?1 id, ?2 token
--@ fragment IS_OURS
id = ?1 AND token = ?2 AND status = 'running'

-- and ?3 until when
--@ statement RENEW
UPDATE outbox_job SET lease_ms = ?3 WHERE {IS_OURS}

--@ statement IS_CANCELLED
SELECT cancelled_by IS NOT NULL FROM outbox_job WHERE id = ?1

-- and ?3 status, ?4 lease, ?5 ended, ?6 to ?9 progress, ?10 act, ?11 cursor, ?12 result, ?13 code, ?14 why, ?15 it moved,
-- ?16 the request is to be forgotten
--@ statement SAVE
UPDATE outbox_job SET status = ?3, lease_ms = ?4, ended_ms = ?5, done = ?6, total = ?7, changed = ?8, failed = ?9, act_id = ?10,
  cursor = ?11, result = ?12, error_code = ?13, error = ?14, tries = CASE WHEN ?15 THEN 0 ELSE tries END,
  request = CASE WHEN ?16 THEN '{}' ELSE request END
WHERE {IS_OURS}

-- ?1 id, ?2 now, ?3 actor, ?4 reason
--@ statement CANCEL
UPDATE outbox_job SET cancelled_by = ?3, cancel_reason = ?4, ended_ms = CASE status WHEN 'queued' THEN ?2 ELSE 0 END,
  status = CASE status WHEN 'queued' THEN 'cancelled' ELSE status END
WHERE id = ?1
