-- SPDX-License-Identifier: Apache-2.0
-- The statements about dead letters.

--@ fragment BY_ID
FROM dead_letters NOT INDEXED WHERE id = ?1

--@ fragment BRIEF
SELECT id, original_outbox_id, message_id, event_type, destination, message_key, correlation_id, traceparent,
reason_code, error_message, failure_class, fault, fingerprint, status, attempts, crashes, life, requeues,
payload_version, possibly_delivered, message_created_at, created_at, first_failed_at, last_failed_at,
last_attempt_at, requeued_at, resolved_at, edited_at, sending_at, requeued_as, resolution, redrive_id,
typeof(payload)

--@ fragment DETAILS
, headers, content_type, encoding, idempotency_key, policy, expires_at, error_detail, max_attempts

--@ fragment FIND
SELECT status, sending_at IS NOT NULL, message_id, destination, requeued_as, payload_version > 1
  AND (requeued_at IS NULL OR edited_at > requeued_at), possibly_delivered, edited_at, requeued_at, expires_at,
payload_version, encoding
FROM dead_letters NOT INDEXED
WHERE id = ?1

-- In a statement that copies a row: its payload, unless ?n says that it is large.
--@ fragment HK_SQ_UNLESS_LARGE(n; payload)
CASE WHEN ?{n} THEN NULL ELSE {payload} END

--@ fragment CLOSE(status)
UPDATE dead_letters SET status = '{status}', resolved_at = ?2, resolution = ?3, sending_at = NULL WHERE id = ?1

-- What is grouped, and by which index.
--@ fragment ALL_LETTERS
SELECT fingerprint, count(*), min(first_failed_at), max(last_failed_at), max(id)
FROM dead_letters INDEXED BY dead_letters_group
WHERE id >= ?1 AND id <= ?2 AND

--@ fragment A_GROUP
SELECT fingerprint, id FROM dead_letters INDEXED BY dead_letters_group WHERE fingerprint

--@ fragment MAYBE_ARRIVED
SELECT fingerprint, count(*), '', '', max(id)
FROM dead_letters INDEXED BY dead_letters_maybe
WHERE possibly_delivered <> 0 AND id >= ?1 AND id <= ?2 AND

--@ fragment OF_JOB
FROM dead_letters d INDEXED BY dead_letters_redrive WHERE d.redrive_id IS NOT NULL AND d.redrive_id = ?1

--@ fragment STRUGGLING_MAX
10000

-- ---- the row ----
--@ fragment JOB
SELECT id, status, filter, rate_per_s, ramp_ms, canary, abort_ratio, ids, last_id, cursor_id, total, requeued,
exhausted, tokens, tokens_ms, started_ms, created_ms, ended_ms, actor, reason, ending, held, destination
FROM outbox_redrive

-- Not those that large.c wrote: to change a row is to load it.
--@ fragment STALE
NOT (fingerprint_made IS NULL AND typeof(payload) = 'blob' AND length(payload) > 1048576)
  AND fingerprint_made IS NOT ('{=HK_FINGERPRINT_MADE}' || fingerprint) AND status IN ('failed', 'retrying')

-- ---- acts ----
--@ fragment AUDIT
SELECT id, at_ms, actor, act, message_id, destination, reason, letter_id, redrive_id, before_hash, after_hash,
detail, prev, hash, act_id, (SELECT count(*) FROM outbox_audit_letters l WHERE l.act_id = x.id),
(SELECT count(*) FROM outbox_audit_messages l WHERE l.act_id = x.id)
FROM

-- As the view outbox_audit_of_letters; what is asked for stands inside, or all of the audit would be read.
--@ fragment OF_LETTER(letter)
(SELECT id, at_ms, actor, act, message_id, destination, reason, letter_id, redrive_id, before_hash, after_hash,
  detail, prev, hash, NULL AS act_id FROM outbox_audit WHERE letter_id = {letter} AND letter_id IS NOT NULL
  UNION ALL SELECT a.id, a.at_ms, a.actor, a.act, l.message_id, l.destination, a.reason, l.letter_id, a.redrive_id,
  l.before_hash, l.after_hash, l.detail, a.prev, a.hash, l.act_id FROM outbox_audit_letters l
  JOIN outbox_audit a ON a.id = l.audit_id WHERE l.letter_id = {letter}) x

-- Of the letter ?1: ids that it went out under, destinations that it was at before.
--@ fragment REQUEUE_SAYS(path)
json_extract(CASE WHEN json_valid(detail) THEN detail END, '{path}') FROM (SELECT detail FROM outbox_audit
  WHERE letter_id = ?1 AND letter_id IS NOT NULL AND act = 'requeue' UNION ALL SELECT l.detail
  FROM outbox_audit_letters l JOIN outbox_audit a ON a.id = l.audit_id WHERE l.letter_id = ?1 AND a.act = 'requeue')

--@ fragment ANY_ACT
(SELECT *, NULL AS act_id FROM outbox_audit) x

--@ fragment MEANT
AND (?3 IS NULL OR actor = ?3) AND (?4 IS NULL OR act = ?4) AND (?6 OR detail IS NULL
  OR substr(detail, 1, 7) <> '{"act":')
ORDER BY id

--@ fragment LETTER
SELECT l.audit_id, l.letter_id, l.message_id, l.destination, l.before_hash, l.after_hash, l.detail,

--@ fragment MESSAGE
SELECT l.audit_id, l.cancelled_id, l.message_id, l.destination, NULL, NULL, NULL, 0, 1

--@ fragment LATER
EXISTS (SELECT 1 FROM outbox_audit a WHERE a.letter_id = l.letter_id AND a.letter_id IS NOT NULL
  AND a.id > l.audit_id AND a.act IN ('discard', 'restore')) OR EXISTS (SELECT 1 FROM outbox_audit_letters m
  JOIN outbox_audit a ON a.id = m.audit_id WHERE m.letter_id = l.letter_id AND m.audit_id > l.audit_id
  AND a.act IN ('discard', 'restore'))

-- ---- letters.c ----

--@ statement PAYLOAD
SELECT payload {BY_ID}

--@ statement READ_WHOLE
{BRIEF}{DETAILS} {BY_ID}

--@ statement READ_BRIEF
{BRIEF} {BY_ID}

-- ---- letters_acts.c ----

--@ statement FIND_LETTER
{FIND}

--@ statement TO_RETRY
INSERT INTO outbox_retry (original_outbox_id, message_id, destination, event_type, message_key, headers,
  content_type, encoding, correlation_id, traceparent, idempotency_key, expires_at, policy, max_attempts,
  created_at, due_ms, life, letter_id, possibly_delivered, payload)
SELECT original_outbox_id, ?2, coalesce(?7, destination), event_type, message_key, headers, content_type, encoding,
correlation_id, traceparent, CASE WHEN ?3 THEN idempotency_key END, CASE WHEN ?4 THEN NULL ELSE expires_at
  END, policy, max_attempts, message_created_at, ?5, life + 1, id, possibly_delivered, {HK_SQ_UNLESS_LARGE(6;
  payload)}
FROM dead_letters NOT INDEXED
WHERE id = ?1

--@ statement REQUEUE
UPDATE dead_letters SET status = 'retrying', requeued_at = ?2, requeues = requeues + 1, requeued_as = ?3, redrive_id
= coalesce(?4, redrive_id), destination = coalesce(?5, destination)
WHERE id = ?1

-- ?1 message_id, ?2 destination, ?3 the letter that is to go there: is there another one of the two?
--@ statement TAKEN
SELECT EXISTS (SELECT 1 FROM outbox_retry WHERE message_id = ?1 AND destination = ?2) OR EXISTS (SELECT 1
  FROM outbox_sent WHERE message_id = ?1 AND destination = ?2) OR EXISTS (SELECT 1 FROM dead_letters
  WHERE message_id = ?1 AND destination = ?2 AND id <> ?3)

--@ statement LOSE
UPDATE outbox_redrive SET lost = lost + 1
WHERE id <> ?2 AND id = (SELECT redrive_id FROM dead_letters NOT INDEXED WHERE id = ?1)

--@ statement KEEP_VERSION
INSERT INTO dead_letter_versions (letter_id, version, replaced_ms, actor, reason, payload)
SELECT id, payload_version, ?2, ?3, ?4, {HK_SQ_UNLESS_LARGE(5; payload)}
FROM dead_letters NOT INDEXED
WHERE id = ?1

--@ statement EDIT
UPDATE dead_letters SET payload = ?2, payload_version = payload_version + 1, edited_at = ?3 WHERE id = ?1

--@ statement RESOLVE
{CLOSE(resolved)}

--@ statement DISCARD
{CLOSE(discarded)}

--@ statement RESTORE
UPDATE dead_letters SET status = 'failed', resolved_at = NULL, resolution = NULL, sending_at = NULL,
possibly_delivered = possibly_delivered OR sending_at IS NOT NULL
WHERE id = ?1 AND ?2 IS NOT NULL

--@ statement SEND_BEGIN
UPDATE dead_letters SET status = 'retrying', sending_at = ?2 WHERE id = ?1

-- ---- letters_groups.c ----

--@ statement HAS_OLD_GROUP
SELECT 1 FROM dead_letters INDEXED BY dead_letters_group_old WHERE fingerprint_old = ?1 LIMIT 1

--@ statement ALL_LETTERS
{ALL_LETTERS}

--@ statement GROUP_NONE
{A_GROUP} IS NULL ORDER BY id DESC LIMIT 1

--@ statement GROUP_FIRST
{A_GROUP} IS NOT NULL ORDER BY fingerprint LIMIT 1

--@ statement GROUP_NEXT
{A_GROUP} > ?1 ORDER BY fingerprint LIMIT 1

--@ statement MAYBE_ARRIVED
{MAYBE_ARRIVED}

-- ?1 a group, ?2 a time, ?3 an id, ?4 how many letters are looked at: hours as text, how many letters failed in each; NULL and how many
-- failed before
--@ statement GROUP_HOURS
SELECT CASE WHEN last_failed_at >= ?2 THEN substr(last_failed_at, 1, 13) END, count(*)
FROM (SELECT last_failed_at FROM dead_letters INDEXED BY dead_letters_group
  WHERE fingerprint = ?1 AND status = 'failed' AND id >= ?3
  ORDER BY id DESC LIMIT ?4)
GROUP BY 1

--@ statement GROUP_EXAMPLE
SELECT destination, reason_code, failure_class, fault, fingerprint, error_message, event_type, message_id
FROM dead_letters NOT INDEXED
WHERE id = ?1

-- ---- letters_list.c ----

--@ statement FIRST_ID
SELECT min(id) FROM dead_letters NOT INDEXED

--@ statement LAST_ID
SELECT max(id) FROM dead_letters NOT INDEXED

-- ---- letters_redrive.c ----

--@ statement JOB_WAITING
SELECT count(*) {OF_JOB} AND d.status = 'retrying'

--@ statement JOB_FAILED
SELECT count(*) {OF_JOB} AND d.status IN ('failed', 'discarded')

--@ statement JOB_LOST
SELECT lost FROM outbox_redrive WHERE id = ?1

--@ statement JOB_STRUGGLING
SELECT count(*)
FROM (SELECT 1 {OF_JOB} AND d.status = 'retrying' AND EXISTS (SELECT 1
  FROM outbox_retry r INDEXED BY outbox_retry_letter WHERE r.letter_id = d.id AND r.letter_id <> 0
  AND r.attempts > 0) LIMIT {STRUGGLING_MAX})

--@ statement JOB
{JOB} WHERE id = ?1

--@ statement JOB_START
INSERT INTO outbox_redrive (filter, rate_per_s, ramp_ms, canary, abort_ratio, ids, last_id, total, started_ms,
  created_ms, actor, reason, destination) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9, ?10, ?11, ?12)

--@ statement JOB_TWIN
SELECT id FROM outbox_redrive WHERE status = 'running' AND filter = ?1 ORDER BY id LIMIT 1

--@ statement JOBS
{JOB} WHERE (?1 = 0 OR id = ?1) AND (?2 = 0 OR status = 'running') ORDER BY id DESC LIMIT ?3

--@ statement JOB_END
UPDATE outbox_redrive SET status = ?2, ended_ms = ?3, ending = ?4 WHERE id = ?1

-- ?2 where its letters go; NULL = each to its own
--@ statement IS_PAUSED
SELECT p.name
FROM dead_letters d JOIN outbox_destination p ON p.name = coalesce(?2, d.destination)
WHERE d.id = ?1 AND p.paused <> 0

--@ statement JOB_SAVE
UPDATE outbox_redrive SET cursor_id = ?2, requeued = ?3, exhausted = ?4, tokens = ?5, tokens_ms = ?6, held = ?7
WHERE id = ?1

--@ statement JOB_ACT
SELECT id
FROM outbox_audit INDEXED BY outbox_audit_redrive
WHERE redrive_id = ?1 AND act = 'redrive-start'
ORDER BY id LIMIT 1

-- ---- letters_regroup.c ----

--@ statement STALE_GROUPS
SELECT id FROM dead_letters INDEXED BY dead_letters_regroup WHERE {STALE} ORDER BY id LIMIT ?1

--@ statement REGROUP
UPDATE dead_letters SET fingerprint = ?3, fingerprint_made = '{=HK_FINGERPRINT_MADE}' || ?3,
  fingerprint_old = CASE WHEN fingerprint <> ?3 THEN fingerprint END, error_message = coalesce(?4, error_message)
WHERE id = ?1 AND (?2 = '' OR fingerprint = ?2) AND {STALE}

-- ---- letters_send.c ----

--@ statement SEND_FIND
SELECT sending_at IS ?2, message_id, destination, coalesce(requeued_as, message_id), life, attempts
FROM dead_letters NOT INDEXED
WHERE id = ?1

--@ statement ADD_ATTEMPT
INSERT INTO outbox_attempts (message_id, destination, life, n, started_ms, duration_ms, settled_ms, status, class,
  cause, error, request_headers, response_headers, response_body, address, possibly_delivered)
  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)

--@ statement SENT
UPDATE dead_letters SET status = 'resolved', resolved_at = ?2, resolution = 'delivered', sending_at = NULL, attempts
= attempts + 1, last_attempt_at = ?3
WHERE id = ?1

--@ statement SEND_FAILED
UPDATE dead_letters SET status = 'failed', sending_at = NULL, attempts = attempts + 1, last_failed_at = ?2,
last_attempt_at = ?3, reason_code = ?4, error_message = ?5, failure_class = ?6, fault = ?7, fingerprint = ?8,
fingerprint_made = '{=HK_FINGERPRINT_MADE}' || ?8, fingerprint_old = NULL, error_detail = ?10,
possibly_delivered = max(possibly_delivered, ?9)
WHERE id = ?1

--@ statement SEND_LATE
UPDATE dead_letters SET possibly_delivered = 1 WHERE id = ?1

-- ---- letters_show.c ----

--@ statement ATTEMPTS
{ATTEMPT} (SELECT * FROM outbox_attempts WHERE destination IN (SELECT ?5 UNION SELECT {REQUEUE_SAYS($.from)})
  AND message_id IN (SELECT ?2 UNION SELECT ?3 UNION SELECT {REQUEUE_SAYS($.message_id)}) ORDER BY id DESC LIMIT ?4)
ORDER BY id

--@ statement VERSIONS
SELECT rowid, version, replaced_ms, actor, reason, typeof(payload) IN ('text', 'blob')
FROM dead_letter_versions
WHERE letter_id = ?1 AND version > (SELECT max(version) FROM dead_letter_versions WHERE letter_id = ?1) - ?2
ORDER BY version

--@ statement ACTS
SELECT * FROM ({AUDIT} {OF_LETTER(?1)} ORDER BY id DESC LIMIT ?2) ORDER BY id

--@ statement COUNT_BLOCKED
SELECT count(*)
FROM (SELECT 1 FROM outbox INDEXED BY outbox_by_key WHERE destination = ?2 AND message_key = ?3
  AND message_key IS NOT NULL UNION ALL SELECT 1 FROM outbox_retry INDEXED BY outbox_retry_key
  WHERE destination = ?2 AND message_key = ?3 AND message_key IS NOT NULL LIMIT ?1)

--@ statement META
SELECT value FROM outbox_meta WHERE key = ?1

--@ statement CHAIN_FIRST
SELECT id FROM outbox_audit NOT INDEXED WHERE hash IS NOT NULL ORDER BY id LIMIT 1

--@ statement AUDIT_NEWEST
{AUDIT} {ANY_ACT} WHERE id < ?1 AND ?2 = 0 {MEANT} DESC LIMIT ?5

--@ statement AUDIT_NEWEST_OF
{AUDIT} {OF_LETTER(?2)} WHERE id < ?1 {MEANT} DESC LIMIT ?5

--@ statement AUDIT_OLDEST
{AUDIT} {ANY_ACT} WHERE id > ?1 AND ?2 = 0 {MEANT} LIMIT ?5

--@ statement AUDIT_OLDEST_OF
{AUDIT} {OF_LETTER(?2)} WHERE id > ?1 {MEANT} LIMIT ?5

--@ statement FIND_REQUEUED
SELECT max(id)
FROM dead_letters INDEXED BY dead_letters_requeued_as
WHERE requeued_as IS NOT NULL AND requeued_as = ?1

--@ statement PAUSED
SELECT name FROM outbox_destination WHERE paused <> 0 ORDER BY name LIMIT ?1

-- ---- letters_stats.c ----

--@ statement TALLIES
SELECT status, fault, destination, reason_code, requeues > 0 FROM dead_letters INDEXED BY dead_letters_status

--@ statement COUNT_DAY
SELECT count(*) FROM dead_letters INDEXED BY dead_letters_created WHERE created_at >= ?1 AND created_at < ?2

--@ statement EVENT_TYPES
SELECT event_type, count(*)
FROM dead_letters INDEXED BY dead_letters_event_type
GROUP BY event_type
ORDER BY count(*) DESC, event_type LIMIT ?1

--@ statement LONGEST
SELECT id
FROM dead_letters INDEXED BY dead_letters_group
WHERE status = 'failed'
ORDER BY first_failed_at, id LIMIT ?1

-- ---- letters_trail.c ----

--@ statement ADD_TO_LIST
INSERT INTO outbox_audit_letters (audit_id, letter_id, act_id, message_id, destination, before_hash, after_hash,
  detail) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)

--@ statement ADD_MESSAGE_TO_LIST
INSERT INTO outbox_audit_messages (audit_id, cancelled_id, act_id, message_id, destination)
VALUES (?1, ?2, ?3, ?4, ?5)

-- An act has a list of letters, or one of messages.
--@ statement LIST_OF
{LETTER} 0, 0
FROM outbox_audit_letters l
WHERE l.audit_id = ?1
UNION ALL {MESSAGE}
FROM outbox_audit_messages l
WHERE l.audit_id = ?1
ORDER BY 2

--@ statement ACT_LETTERS
SELECT *
FROM ({LETTER} {LATER}, 0 FROM outbox_audit_letters l INDEXED BY outbox_audit_letters_act WHERE l.act_id = ?1
  AND l.letter_id > ?2 ORDER BY l.letter_id LIMIT ?3)
UNION ALL SELECT *
FROM ({MESSAGE} FROM outbox_audit_messages l INDEXED BY outbox_audit_messages_act WHERE l.act_id = ?1
  AND l.cancelled_id > ?2 ORDER BY l.cancelled_id LIMIT ?3)
