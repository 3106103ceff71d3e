-- SPDX-License-Identifier: Apache-2.0
-- The statements of the operators' side of the SQLite store. They are prepared for each call: a person waits for them, not a
-- relay. What is put together from what was asked (lists, filters, samples) is still in C.

--@ fragment WITH_ID
WHERE message_id IN (?1, CAST(?1 AS BLOB)) AND (?2 IS NULL OR destination = ?2)

--@ fragment CANCELLED
INSERT INTO outbox_cancelled (original_outbox_id, attempts, message_id, destination, event_type, message_key,
  headers, content_type, encoding, correlation_id, traceparent, idempotency_key, policy, created_at, actor, reason,
  cancelled_ms, payload) SELECT

-- Of a row that is copied to another table (rest.c).
--@ fragment KEPT_ENCODING
hk_rest_encoding(encoding, typeof(payload))

--@ fragment KEPT
hk_rest(message_id, encoding, payload)

--@ fragment WHAT(payload)
message_id, destination, event_type, message_key, headers, content_type, {KEPT_ENCODING}, correlation_id, traceparent,
idempotency_key, policy, created_at, ?3, ?4, ?2, {payload}
FROM

--@ fragment CANCEL(payload)
{CANCELLED} id, 0, {WHAT({payload})} outbox NOT INDEXED WHERE id = ?1

--@ fragment CANCEL_RETRY(payload)
{CANCELLED} original_outbox_id, attempts, {WHAT({payload})} outbox_retry WHERE id = ?1

-- A scheduled row that no relay has looked at yet is moved as the relay would have moved it: it joins its key's order
-- when it is due, which is now.
--@ fragment MOVE(payload)
INSERT INTO outbox_retry (original_outbox_id, message_id, destination, event_type, message_key, headers,
  content_type, encoding, correlation_id, traceparent, idempotency_key, expires_at, policy, max_attempts,
  created_at, due_ms, deferred, payload) SELECT id, message_id, destination, event_type, message_key, headers,
content_type, {KEPT_ENCODING}, correlation_id, traceparent, idempotency_key, expires_at, policy, max_attempts, created_at,
?2, 1, {payload}
FROM outbox NOT INDEXED
WHERE id = ?1

-- What a message has been through, but for attempts, which outbox_cancelled has itself.
--@ fragment PAST
charged, failed_transient, failed_rate_limit, failed_auth, failed_permanent, failed_unknown, prev_wait_ms,
first_attempt_ms, paused_mark_ms, first_failed_ms, last_attempt_ms, last_cause, last_error, crashes, life,
possibly_delivered

-- ?1 id, ?2 due, ?3 deferred, ?4 letter
--@ fragment RESTORE(payload)
INSERT INTO outbox_retry (due_ms, deferred, letter_id, original_outbox_id, attempts, message_id, destination,
  event_type, message_key, headers, content_type, encoding, correlation_id, traceparent, idempotency_key, policy,
  created_at, not_before, expires_at, max_attempts, {PAST}, payload)
SELECT ?2, ?3, ?4, c.original_outbox_id, c.attempts, c.message_id, c.destination, c.event_type, c.message_key,
c.headers, c.content_type, c.encoding, c.correlation_id, c.traceparent, c.idempotency_key, c.policy, c.created_at,
p.not_before, p.expires_at, p.max_attempts, coalesce(p.charged, 0), coalesce(p.failed_transient, 0),
coalesce(p.failed_rate_limit, 0), coalesce(p.failed_auth, 0), coalesce(p.failed_permanent, 0),
coalesce(p.failed_unknown, 0), coalesce(p.prev_wait_ms, 0), coalesce(p.first_attempt_ms, 0),
coalesce(p.paused_mark_ms, 0), coalesce(p.first_failed_ms, 0), coalesce(p.last_attempt_ms, 0), p.last_cause,
p.last_error, coalesce(p.crashes, 0), coalesce(p.life, 1), coalesce(p.possibly_delivered, 0), {payload}
FROM outbox_cancelled c NOT INDEXED LEFT JOIN outbox_cancelled_past p ON p.id = c.id
WHERE c.id = ?1

-- A row of outbox that stays before one of its key that is restored.
--@ fragment MOVE_AHEAD(payload)
INSERT INTO outbox_retry (original_outbox_id, message_id, destination, event_type, message_key, headers,
  content_type, encoding, correlation_id, traceparent, idempotency_key, not_before, expires_at, policy,
  max_attempts, created_at, due_ms, payload) SELECT id, message_id, destination, event_type, message_key, headers,
content_type, {KEPT_ENCODING}, correlation_id, traceparent, idempotency_key, not_before, expires_at, policy, max_attempts,
created_at, ?2, {payload}
FROM outbox NOT INDEXED
WHERE id = ?1

-- Columns of both statements, from destination on.
--@ fragment COLUMNS
destination, at_ms, window_ms, seen, sent, failed, dead, in_flight, ready_at_ms, breaker, latency, last_error,
last_error_ms

--@ fragment OUTBOX
outbox INDEXED BY outbox_by_destination

-- How many of one destination: from an index alone.
--@ fragment COUNTS(from; where)
SELECT count(*) FROM (SELECT 1 FROM {from} WHERE {where} AND destination = ?1 LIMIT ?2)

--@ fragment RETRY
outbox_retry INDEXED BY outbox_retry_due

-- Of how many how many were tried: from the rows themselves.
--@ fragment WAS_TRIED
attempts > 0 OR crashes > 0

--@ fragment TRIED
SELECT count(*), coalesce(sum(tried), 0)
FROM (SELECT {WAS_TRIED} AS tried FROM {RETRY} WHERE claim IS NULL AND destination = ?1 LIMIT ?2)

--@ fragment DEAD
dead_letters INDEXED BY dead_letters_open

--@ fragment KEYED
?3 AND t.message_key IS NOT NULL AND t.message_key <> ''

--@ fragment HOLDS
EXISTS (SELECT 1 FROM outbox_retry k INDEXED BY outbox_retry_key WHERE k.destination = ?1
  AND k.message_key = t.message_key AND k.deferred = 0

--@ fragment DEAD_HOLDS
(?4 AND EXISTS (SELECT 1 FROM dead_letters k INDEXED BY dead_letters_key WHERE k.destination = ?1
  AND k.message_key = t.message_key AND (k.status = 'failed' OR k.sending_at IS NOT NULL)))

--@ fragment FRESH
outbox INDEXED BY outbox_by_destination

--@ fragment WHY_RETRY
outbox_retry INDEXED BY outbox_retry_key

--@ fragment WHY_KEYED
message_key IS NOT NULL AND message_key <> ''

--@ fragment WHY_DEAD
dead_letters INDEXED BY dead_letters_key

--@ fragment OPEN
(status = 'failed' OR sending_at IS NOT NULL)

-- ?1 destination, ?2 LIMIT, ?3 dead letters block, ?4 the time (not used): heads
--@ fragment HEADS
SELECT (SELECT count(*) FROM (SELECT 1 FROM {WHY_RETRY} WHERE destination = ?1 AND {WHY_KEYED}
  AND deferred = 0 LIMIT ?2)) + (SELECT count(*) FROM (SELECT 1 FROM {WHY_DEAD} WHERE ?3 AND destination = ?1
  AND {WHY_KEYED} AND {OPEN} LIMIT ?2))
WHERE ?4 IS NOT NULL

--@ fragment WHY_FRESH
outbox INDEXED BY outbox_by_key

-- The same: how many messages that were not tried yet wait behind them
--@ fragment COUNT_FRESH
WITH heads (k) AS MATERIALIZED (SELECT message_key FROM (SELECT message_key FROM {WHY_RETRY}
  WHERE destination = ?1 AND {WHY_KEYED} AND deferred = 0 LIMIT ?2) UNION SELECT message_key
  FROM (SELECT message_key FROM {WHY_DEAD} WHERE ?3 AND destination = ?1 AND {WHY_KEYED} AND {OPEN}
  LIMIT ?2)) SELECT (SELECT count(*) FROM (SELECT 1 FROM heads h CROSS JOIN {WHY_FRESH} WHERE destination = ?1
  AND message_key = h.k AND (not_before IS NULL OR coalesce((julianday(not_before) - 2440587.5) * 86400000 <= ?4,
  1)) LIMIT ?2))

-- The same of retry rows.
--@ fragment COUNT_TRIED
SELECT coalesce(sum(CASE WHEN r.claim IS NOT NULL THEN 0 WHEN r.deferred = 0 THEN EXISTS (SELECT 1
  FROM {WHY_RETRY} WHERE destination = ?1 AND message_key = r.message_key AND deferred = 0 AND id < r.id)
  WHEN r.due_ms > ?4 THEN 0 ELSE EXISTS (SELECT 1 FROM {WHY_RETRY} WHERE destination = ?1
  AND message_key = r.message_key AND deferred = 0) OR (?3 AND EXISTS (SELECT 1 FROM {WHY_DEAD}
  WHERE destination = ?1 AND message_key = r.message_key AND {OPEN})) END), 0)
FROM (SELECT * FROM {WHY_RETRY} WHERE destination = ?1 AND {WHY_KEYED} LIMIT ?2) r

--@ fragment LANE
SELECT r.lane, c.claimed_ms, r.until_ms, r.name FROM outbox_claim c JOIN outbox_relay r ON r.lane = c.lane

--@ fragment OF_KEY
WHERE destination = ?1 AND message_key = ?2

--@ fragment TRIED_HEAD
SELECT id, message_id, CASE WHEN claim IS NULL THEN 3 ELSE 2 END, due_ms FROM {WHY_RETRY} {OF_KEY}

-- ---- admin.c ----

--@ statement ENQUEUE
INSERT INTO outbox (message_id, destination, event_type, message_key, headers, content_type, encoding,
  correlation_id, traceparent, idempotency_key, not_before, expires_at, policy, max_attempts, payload)
  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)
RETURNING message_id

-- ?1 destination, ?2 task, ?3 now, ?4 an hour ago. A row: the name is ours.
--@ statement TASK_NAME
INSERT INTO outbox_task (destination, task, created_ms) VALUES (?1, ?2, ?3)
ON CONFLICT (destination, task) DO UPDATE SET created_ms = excluded.created_ms
WHERE outbox_task.created_ms <= ?4
  AND NOT EXISTS (SELECT 1 FROM outbox_retry r INDEXED BY outbox_retry_message WHERE r.message_id = ?2 AND r.destination = ?1)
  AND NOT EXISTS (SELECT 1 FROM outbox o INDEXED BY outbox_by_destination WHERE o.destination = ?1 AND o.message_id = ?2)
  AND NOT EXISTS (SELECT 1 FROM dead_letters d INDEXED BY dead_letters_message WHERE d.message_id = ?2
    AND d.destination = ?1 AND d.status IN ('failed', 'retrying'))
  AND NOT EXISTS (SELECT 1 FROM outbox_sent s INDEXED BY outbox_sent_message WHERE s.message_id = ?2
    AND s.destination = ?1 AND s.sent_ms > ?4)
  AND NOT EXISTS (SELECT 1 FROM outbox_cancelled c INDEXED BY outbox_cancelled_message WHERE c.message_id = ?2
    AND c.destination = ?1 AND c.cancelled_ms > ?4)
RETURNING 1

-- ?1 names that were given before this
--@ statement TASK_FORGET
DELETE FROM outbox_task WHERE id IN (SELECT id FROM outbox_task INDEXED BY outbox_task_created WHERE created_ms < ?1 LIMIT 100)

--@ statement PAUSE_CHANGES
SELECT paused, open_until_ms <> 0 FROM outbox_destination WHERE name = ?1

-- ---- admin_act.c ----

--@ statement FIND_IN_OUTBOX
SELECT id FROM outbox NOT INDEXED WHERE message_id IN (?1, CAST(?1 AS BLOB)) LIMIT ?2

--@ statement FIND_MANIFEST
SELECT r.name, r.until_ms
FROM outbox_claim c JOIN outbox_relay r ON r.lane = c.lane JOIN json_each(CASE
  WHEN json_valid(c.ids) THEN c.ids ELSE '[]' END) j
WHERE CAST(j.value AS INTEGER) = ?1

--@ statement FIND_CLAIM
SELECT r.name, r.until_ms FROM outbox_claim c JOIN outbox_relay r ON r.lane = c.lane WHERE c.claim = ?1

--@ statement REREAD_OUTBOX
SELECT destination, not_before FROM outbox NOT INDEXED WHERE id = ?2 AND message_id IN (?1, CAST(?1 AS BLOB))

--@ statement FIND_IN_RETRY
SELECT id, destination, due_ms, claim, attempts > 0 OR crashes > 0
FROM outbox_retry INDEXED BY outbox_retry_message
WHERE message_id IN (?1, CAST(?1 AS BLOB)) LIMIT ?2

--@ statement IS_DEAD
SELECT 1 FROM dead_letters {WITH_ID}

--@ statement IS_CANCELLED
SELECT 1 FROM outbox_cancelled {WITH_ID}

--@ statement IS_SENT
SELECT 1 FROM outbox_sent {WITH_ID}

--@ statement LETTER_OF
SELECT d.id
FROM dead_letters d JOIN outbox_retry r ON d.id = r.letter_id
WHERE r.id = ?1 AND r.letter_id > 0 AND d.status = 'retrying'

--@ statement CLOSE_LETTER
UPDATE dead_letters SET status = 'discarded', resolution = 'cancelled', resolved_at = strftime('%Y-%m-%dT%H:%M:%fZ',
  ?2 / 1000.0, 'unixepoch')
WHERE id = ?1

--@ statement CANCEL
{CANCEL({KEPT})}

--@ statement CANCEL_BARE
{CANCEL(NULL)}

--@ statement CANCEL_RETRY
{CANCEL_RETRY({KEPT})}

--@ statement CANCEL_RETRY_BARE
{CANCEL_RETRY(NULL)}

--@ statement DROP
DELETE FROM outbox WHERE id = ?1

--@ statement DROP_RETRY
DELETE FROM outbox_retry WHERE id = ?1

--@ statement MOVE
{MOVE({KEPT})}

--@ statement MOVE_BARE
{MOVE(NULL)}

-- Due since its last attempt, where it had one: by a clock that is ahead it would wait until that time has come.
--@ statement HURRY_RETRY
UPDATE outbox_retry SET due_ms = CASE WHEN last_attempt_ms > 0 THEN min(last_attempt_ms, ?2) ELSE ?2 END, not_before = NULL
WHERE id = ?1

--@ statement FORCE_RETRY
UPDATE outbox_retry SET forced = 1, due_ms = CASE WHEN last_attempt_ms > 0 THEN min(last_attempt_ms, ?2)
  ELSE min(due_ms, ?2) END, not_before = NULL
WHERE id = ?1

--@ statement FORCE_MOVED
UPDATE outbox_retry SET forced = 1 WHERE id = ?1

--@ statement HAS_KEY
SELECT 1 FROM outbox NOT INDEXED WHERE id = ?1 AND message_key <> ''

-- ---- admin_bulk.c ----

-- ?1 the row that was cancelled, ?2 what it is now
--@ statement PAST_OF_OUTBOX
INSERT INTO outbox_cancelled_past (id, fresh, not_before, expires_at, max_attempts)
SELECT ?2, 1, not_before, expires_at, max_attempts FROM outbox NOT INDEXED WHERE id = ?1

--@ statement PAST_OF_RETRY
INSERT INTO outbox_cancelled_past (id, fresh, due_ms, deferred, not_before, expires_at, max_attempts, letter_id,
  {PAST})
SELECT ?2, 0, due_ms, deferred, not_before, expires_at, max_attempts, letter_id, {PAST}
FROM outbox_retry NOT INDEXED
WHERE id = ?1

--@ statement NAMED_IDS
SELECT CAST(j.value AS INTEGER)
FROM outbox_claim c JOIN json_each(CASE WHEN json_valid(c.ids) THEN c.ids ELSE '[]' END) j

-- message_id, destination, may it not be cancelled?
--@ statement REF_IN_OUTBOX
SELECT o.message_id, o.destination, EXISTS (SELECT 1 FROM outbox_stuck s WHERE s.source = 0 AND s.row_id = o.id)
FROM outbox o NOT INDEXED
WHERE o.id = ?1

--@ statement REF_IN_RETRY
SELECT message_id, destination, claim IS NOT NULL FROM outbox_retry NOT INDEXED WHERE id = ?1

-- message_id, destination, key, outbox_id, fresh, due, deferred, not_before, letter
--@ statement REF_CANCELLED
SELECT c.message_id, c.destination, c.message_key, coalesce(c.original_outbox_id, 0), coalesce(p.fresh, 1),
coalesce(p.due_ms, 0), coalesce(p.deferred, 0), p.not_before, coalesce(p.letter_id, 0)
FROM outbox_cancelled c NOT INDEXED LEFT JOIN outbox_cancelled_past p ON p.id = c.id
WHERE c.id = ?1

-- Does another message of the id ?1 wait for the destination ?2, or was one sent that was written behind the row ?3?
--@ statement AGAIN
SELECT EXISTS (SELECT 1 FROM outbox_retry r INDEXED BY outbox_retry_message WHERE r.message_id = ?1
  AND r.destination = ?2 AND coalesce(r.original_outbox_id, 0) <> ?3) OR EXISTS (SELECT 1 FROM outbox_sent s
  INDEXED BY outbox_sent_message WHERE s.message_id = ?1 AND s.destination = ?2 AND s.original_outbox_id > ?3)

-- The newest that no relay has read yet, behind the row ?1; ?2 LIMIT
--@ statement NEWEST
SELECT o.id, o.message_id, o.destination FROM outbox o NOT INDEXED WHERE o.id > ?1 ORDER BY o.id DESC LIMIT ?2

-- What waits in outbox before the row ?3 of its key, and is due: ?1 destination, ?2 key, ?4 LIMIT. A row that cannot go holds its key
-- where it is.
--@ statement BEFORE
SELECT o.id, o.not_before
FROM outbox o INDEXED BY outbox_by_key
WHERE o.destination = ?1 AND o.message_key = ?2 AND o.message_key IS NOT NULL AND o.id < ?3
  AND NOT EXISTS (SELECT 1 FROM outbox_stuck s WHERE s.source = 0 AND s.row_id = o.id)
ORDER BY o.id LIMIT ?4

-- Does it wait for what becomes of the cancelled message (1), or have people decided since (2)? Of another destination's letter nobody
-- knows (0).
--@ statement LETTER_WAITS
SELECT CASE WHEN status = 'discarded' AND resolution = 'cancelled' THEN 1 WHEN destination = ?2 THEN 2 ELSE 0 END
FROM dead_letters NOT INDEXED
WHERE id = ?1

--@ statement REOPEN_LETTER
UPDATE dead_letters SET status = 'retrying', resolution = NULL, resolved_at = NULL WHERE id = ?1

--@ statement RESTORE
{RESTORE(c.payload)}

--@ statement RESTORE_BARE
{RESTORE(NULL)}

--@ statement MOVE_AHEAD
{MOVE_AHEAD({KEPT})}

--@ statement MOVE_AHEAD_BARE
{MOVE_AHEAD(NULL)}

--@ statement DROP_CANCELLED
DELETE FROM outbox_cancelled WHERE id = ?1

-- ---- admin_figures.c ----

--@ statement LANE_STANDS
SELECT 1 FROM outbox_relay WHERE lane = ?1

--@ statement FIGURES_PUT
INSERT OR REPLACE INTO outbox_figures (lane, {COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12,
  ?13, ?14)

--@ statement FIGURES
SELECT lane, {COLUMNS}
FROM outbox_figures
WHERE lane IN (SELECT r.lane FROM outbox_relay r WHERE r.until_ms > ?1)
ORDER BY destination, lane LIMIT ?2

-- ---- admin_series.c ----

--@ fragment SERIES_COLUMNS
step_ms, at_ms, lane, destination, seen, sent, failed, retried, dead, latency, waiting, in_flight, dead_open, oldest_ms

-- What was counted is written anew; of levels the largest stays.
--@ statement SERIES_PUT
INSERT INTO outbox_series ({SERIES_COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
ON CONFLICT (step_ms, at_ms, lane, destination) DO UPDATE SET seen = excluded.seen, sent = excluded.sent, failed =
  excluded.failed, retried = excluded.retried, dead = excluded.dead, latency = excluded.latency, waiting = max(waiting,
  excluded.waiting), in_flight = max(in_flight, excluded.in_flight), dead_open = max(dead_open, excluded.dead_open),
  oldest_ms = max(oldest_ms, excluded.oldest_ms)

-- ?1 step, ?2 since, ?3 until, ?4 destination or NULL, ?5 LIMIT, behind ?6 time, ?7 lane, ?8 destination
--@ statement SERIES
SELECT {SERIES_COLUMNS}
FROM outbox_series
WHERE step_ms = ?1 AND at_ms >= ?2 AND at_ms >= ?6 AND at_ms < ?3 AND (at_ms, lane, destination) > (?6, ?7, ?8)
AND (?4 IS NULL OR destination = ?4)
ORDER BY at_ms, lane, destination LIMIT ?5

-- The same parameters, up to ?5.
--@ statement SERIES_NAMES
SELECT destination
FROM outbox_series
WHERE step_ms = ?1 AND at_ms >= ?2 AND at_ms < ?3 AND (?4 IS NULL OR destination = ?4) AND destination <> ''
GROUP BY destination
ORDER BY sum(sent + failed + dead) DESC, max(waiting + dead_open) DESC, destination LIMIT ?5

-- ---- admin_inspect.c ----

--@ statement SCHEMA_VERSION
SELECT value FROM outbox_meta WHERE key = 'schema_version'

--@ statement HIGH_WATER
SELECT value FROM outbox_meta WHERE key = 'high_water_ms'

--@ statement STUCK_TEXT
SELECT count(*) || ' (' || sum(delivered <> 0) || ' of them delivered): the database does not let them go: ' ||
substr(min(error), 1, 200)
FROM outbox_stuck HAVING count(*) > 0

-- ---- admin_list.c ----

--@ statement ATTEMPTS
{ATTEMPT} (SELECT * FROM outbox_attempts WHERE message_id IN (?1, CAST(?1 AS BLOB)) ORDER BY id DESC LIMIT ?2)
ORDER BY id

-- ?1 message_id, ?2 LIMIT, ?3 behind this id: as ATTEMPTS, and the id
--@ statement ATTEMPTS_PAGE
SELECT {ATTEMPT_COLUMNS}, id
FROM outbox_attempts
WHERE message_id IN (?1, CAST(?1 AS BLOB)) AND id > ?3
ORDER BY id LIMIT ?2

-- ---- admin_status.c ----

--@ statement WALK_OUTBOX
WITH {NAMED} SELECT o.not_before, o.created_at, n.id IS NOT NULL
FROM outbox o NOT INDEXED LEFT JOIN named n ON n.id = o.id
ORDER BY o.id LIMIT ?1

--@ statement WALK_RETRY
SELECT claim IS NOT NULL, due_ms, attempts, crashes, created_at FROM outbox_retry NOT INDEXED ORDER BY id LIMIT ?1

--@ statement NAMES_OUTBOX
{NAMES({OUTBOX}; destination IS NOT NULL)}

--@ statement COUNT_OUTBOX
{COUNTS({OUTBOX}; destination IS NOT NULL)}

--@ statement NAMES_RETRY
{NAMES({RETRY}; claim IS NULL)}

--@ statement COUNT_RETRY
{COUNTS({RETRY}; claim IS NULL)}

--@ statement TRIED
{TRIED}

--@ statement NAMES_DEAD
{NAMES({DEAD}; status = 'failed')}

--@ statement COUNT_DEAD
{COUNTS({DEAD}; status = 'failed')}

--@ statement IN_FLIGHT
WITH {NAMED} SELECT o.destination, count(*), 1
FROM named n CROSS JOIN outbox o NOT INDEXED ON o.id = n.id
GROUP BY o.destination
UNION ALL SELECT destination, count(*), 0
FROM outbox_retry INDEXED BY outbox_retry_claim
WHERE claim IS NOT NULL
GROUP BY destination

--@ statement PAUSES
SELECT name, paused <> 0, actor, reason, since_ms, open_until_ms
FROM outbox_destination
WHERE paused <> 0 OR open_until_ms > ?1 LIMIT 1001

--@ statement LAST_RELAY
SELECT lane, name, version, started_ms, until_ms FROM outbox_relay ORDER BY until_ms DESC, lane DESC LIMIT 1

--@ statement COUNT_STUCK
SELECT count(*) FROM (SELECT 1 FROM outbox_stuck LIMIT 1000000)

--@ statement RELAYS
WITH hand (lane, n) AS (SELECT n.lane, count(*) FROM (SELECT c.lane, CAST(j.value AS INTEGER) AS id
  FROM outbox_claim c JOIN json_each(CASE WHEN json_valid(c.ids) THEN c.ids ELSE '[]' END) j) n CROSS
  JOIN outbox o NOT INDEXED ON o.id = n.id GROUP BY n.lane UNION ALL SELECT c.lane, count(*)
  FROM outbox_retry r INDEXED BY outbox_retry_claim JOIN outbox_claim c ON c.claim = r.claim
  WHERE r.claim IS NOT NULL GROUP BY c.lane) SELECT lane, name, boot, version, started_ms, until_ms, (SELECT
  coalesce(sum(h.n), 0) FROM hand h WHERE h.lane = r.lane)
FROM outbox_relay r
ORDER BY lane LIMIT ?1

-- ---- admin_waiting.c ----

-- ?1 destination, ?2 LIMIT, ?3 it keeps the order of keys, ?4 dead letters hold theirs, ?5 the time: when it was written, from
-- when on it may go, whether it is due, whether its key is held, event type
--@ statement WAITING_ROWS
WITH {NAMED} SELECT t.created_at, t.not_before, NOT EXISTS (SELECT 1 FROM named n WHERE n.id = t.id), {KEYED}
  AND ({HOLDS}) OR {DEAD_HOLDS}), t.event_type
FROM (SELECT *
FROM {FRESH}
WHERE destination = ?1
ORDER BY id LIMIT ?2) t
WHERE ?5 IS NOT NULL

-- The same of those that are due again.
--@ statement WAITING_RETRIES
SELECT t.created_at, t.due_ms, 1, {KEYED} AND CASE WHEN t.deferred = 0 THEN {HOLDS} AND k.id < t.id)
  ELSE {HOLDS}) OR {DEAD_HOLDS} END, t.event_type
FROM (SELECT *
FROM {RETRY}
WHERE claim IS NULL AND destination = ?1 AND due_ms <= ?5
ORDER BY due_ms LIMIT ?2) t

-- ---- admin_why.c ----

--@ statement COUNT_HEADS
{HEADS}

--@ statement COUNT_BLOCKED
{COUNT_FRESH}

--@ statement COUNT_BLOCKED_RETRIES
{COUNT_TRIED}

--@ statement WHY_DESTINATION
SELECT paused <> 0, actor, reason, since_ms, open_until_ms FROM outbox_destination WHERE name = ?1

--@ statement RELAYS_RUNNING
SELECT count(*) FROM outbox_relay WHERE until_ms > ?1

--@ statement WHY_LANE_RETRY
{LANE} WHERE c.claim = (SELECT claim FROM outbox_retry WHERE id = ?1)

--@ statement WHY_LANE
{LANE}
WHERE EXISTS (SELECT 1 FROM json_each(CASE WHEN json_valid(c.ids) THEN c.ids ELSE '[]' END) j
  WHERE CAST(j.value AS INTEGER) = ?1) LIMIT 1

--@ statement HOLDS_ITS_KEY
SELECT 1 FROM outbox_retry WHERE id = ?1 AND deferred = 0

--@ statement HEAD_DEAD
SELECT id, message_id, 5, 0 FROM {WHY_DEAD} {OF_KEY} AND {OPEN} ORDER BY id LIMIT 1

--@ statement HEAD_HOLDS_BEFORE
{TRIED_HEAD} AND deferred = 0 AND id < ?3 ORDER BY id LIMIT 1

--@ statement HEAD_HOLDS
{TRIED_HEAD} AND deferred = 0 ORDER BY id LIMIT 1

--@ statement HEAD_CLAIMED_OTHER
{TRIED_HEAD} AND claim IS NOT NULL AND id <> ?3 ORDER BY id LIMIT 1

--@ statement HEAD_CLAIMED
{TRIED_HEAD} AND claim IS NOT NULL ORDER BY id LIMIT 1

--@ statement HEAD_IN_FLIGHT
WITH {NAMED} SELECT o.id, o.message_id, 2, 0
FROM named n CROSS JOIN outbox o ON o.id = n.id
WHERE o.destination = ?1 AND o.message_key = ?2
ORDER BY o.id LIMIT 1

--@ statement HEAD_BEFORE
WITH {NAMED} SELECT id, message_id, CASE WHEN id IN (SELECT n.id FROM named n) THEN 2 ELSE 1 END, 0
FROM {WHY_FRESH} {OF_KEY} AND id < ?3 AND (not_before IS NULL OR id IN (SELECT n.id FROM named n))
ORDER BY id LIMIT 1

--@ statement COUNT_AHEAD
SELECT count(*)
FROM (SELECT 1 FROM outbox INDEXED BY outbox_by_destination WHERE destination = ?1 AND id < ?2 LIMIT ?3)

--@ statement WHY_STUCK
SELECT since_ms, delivered, error FROM outbox_stuck WHERE source = ?1 AND row_id = ?2

-- ---- admin_define.c ----

--@ fragment DEFINITION
name, version, seq, definition, created_ms, created_by, changed_ms, changed_by, reason

-- adopt.c: ?1 a table: its name, and each column with its type
--@ statement ADOPT_COLUMNS
SELECT m.name, p.name, p.type FROM sqlite_master m JOIN pragma_table_info(m.name) p
WHERE m.type = 'table' AND m.name = ?1 COLLATE NOCASE ORDER BY p.cid

-- ?1 name or NULL: all, ?2 how many
--@ statement DEFINITIONS
SELECT {DEFINITION} FROM outbox_destination_def WHERE ?1 IS NULL OR name = ?1 ORDER BY name LIMIT ?2

-- ?1 names, a JSON array; ?2 how many
--@ statement DEFINITIONS_OF
SELECT {DEFINITION} FROM outbox_destination_def WHERE name IN (SELECT value FROM json_each(?1)) ORDER BY name LIMIT ?2

--@ statement DEFINITION_VERSION
SELECT version FROM outbox_destination_def WHERE name = ?1

--@ statement DEFINITIONS_COUNT
SELECT count(*) FROM outbox_destination_def

--@ statement DEFINITIONS_NEXT
UPDATE outbox_definitions SET version = version + 1 WHERE one = 1 RETURNING version

-- ?1 name, ?2 seq, ?3 definition, ?4 now, ?5 actor, ?6 reason
--@ statement DEFINE
INSERT INTO outbox_destination_def (name, version, seq, definition, created_ms, created_by, changed_ms, changed_by, reason)
VALUES (?1, 1, ?2, ?3, ?4, ?5, ?4, ?5, ?6) ON CONFLICT (name) DO UPDATE
SET version = version + 1, seq = ?2, definition = ?3, changed_ms = ?4, changed_by = ?5, reason = ?6

--@ statement UNDEFINE
DELETE FROM outbox_destination_def WHERE name = ?1

-- ?1 name: does something wait for it, among the oldest?
--@ statement WAITS_FOR
SELECT EXISTS (SELECT 1 FROM outbox_retry WHERE destination = ?1)
  OR EXISTS (SELECT 1 FROM (SELECT destination FROM outbox NOT INDEXED ORDER BY id LIMIT 100000)
    WHERE destination IN (?1, CAST(?1 AS BLOB)))

-- ---- sealed texts: admin_seal.c ----

--@ fragment IS_SEALED(encoding)
lower(coalesce({encoding}, '')) LIKE 'sealed%'

-- ?1 and ?2 behind this row, ?3 also what is not sealed: id, sub, message_id, encoding, and two texts.
--@ fragment SEAL_PAGE(from; id; sub; order; message_id; encoding; a; b; where)
SELECT {id}, {sub}, {message_id}, {encoding}, {a}, {b} FROM {from}
WHERE ({id}, {sub}) > (?1, ?2) AND ({where})
ORDER BY {order}

--@ fragment OF_VERSIONS
dead_letter_versions v JOIN dead_letters t ON t.id = v.letter_id

--@ fragment PAYLOAD_COUNTS(payload)
{payload} IS NOT NULL AND (?3 OR {IS_SEALED(t.encoding)})

--@ fragment DETAIL_COUNTS
instr(coalesce(t.error_detail, ''), '"hk1.') > 0

--@ fragment SEALED_ONLY(text)
CASE WHEN substr({text}, 1, 4) IN ('hk1.', CAST('hk1.' AS BLOB)) THEN {text} END

--@ statement SEAL_RETRY
{SEAL_PAGE(outbox_retry t; t.id; 0; t.id; t.message_id; t.encoding; t.payload; NULL; {PAYLOAD_COUNTS(t.payload)})}

--@ statement SEAL_LETTERS
{SEAL_PAGE(dead_letters t; t.id; 0; t.id; t.message_id; t.encoding; t.payload; t.error_detail; ({PAYLOAD_COUNTS(t.payload)}) OR {DETAIL_COUNTS})}

--@ statement SEAL_VERSIONS
{SEAL_PAGE({OF_VERSIONS}; v.letter_id; v.version; v.letter_id, v.version; t.message_id; t.encoding; v.payload; NULL; {PAYLOAD_COUNTS(v.payload)})}

--@ statement SEAL_CANCELLED
{SEAL_PAGE(outbox_cancelled t; t.id; 0; t.id; t.message_id; t.encoding; t.payload; NULL; {PAYLOAD_COUNTS(t.payload)})}

--@ statement SEAL_ATTEMPTS
{SEAL_PAGE(outbox_attempts t; t.id; 0; t.id; t.message_id; NULL; {SEALED_ONLY(t.response_headers)}; {SEALED_ONLY(t.response_body)};
  {SEALED_ONLY(t.response_headers)} IS NOT NULL OR {SEALED_ONLY(t.response_body)} IS NOT NULL)}

-- ?1 id, ?2 sub, ?3 the old text, ?4 the new one, ?5 its encoding or NULL
--@ fragment SEAL_PUT(table; column; also)
UPDATE {table} SET {column} = ?4{also} WHERE id = ?1 AND ?2 = 0 AND CAST({column} AS BLOB) = CAST(?3 AS BLOB) AND ?5 IS ?5

--@ fragment AND_ENCODING
, encoding = coalesce(?5, encoding)

--@ statement PUT_RETRY
{SEAL_PUT(outbox_retry; payload; {AND_ENCODING})}

--@ statement PUT_LETTER
{SEAL_PUT(dead_letters; payload; {AND_ENCODING})}

--@ statement PUT_DETAIL
{SEAL_PUT(dead_letters; error_detail; )}

--@ statement PUT_VERSION
UPDATE dead_letter_versions SET payload = ?4
WHERE letter_id = ?1 AND version = ?2 AND CAST(payload AS BLOB) = CAST(?3 AS BLOB) AND ?5 IS ?5

--@ statement PUT_CANCELLED
{SEAL_PUT(outbox_cancelled; payload; {AND_ENCODING})}

--@ statement PUT_ATTEMPT_HEADERS
{SEAL_PUT(outbox_attempts; response_headers; )}

--@ statement PUT_ATTEMPT_BODY
{SEAL_PUT(outbox_attempts; response_body; )}

-- From behind "hk1." up to the next dot.
--@ fragment KEY_OF(text; at)
substr(CAST(substr({text}, {at} + 4, 33) AS TEXT), 1, instr(CAST(substr({text}, {at} + 4, 33) AS TEXT), '.') - 1)

--@ fragment PAYLOAD_KEY(payload)
CASE WHEN {IS_SEALED(t.encoding)} THEN {KEY_OF({payload}; 1)} ELSE '' END

--@ fragment PAYLOAD_USES(home; table)
SELECT {home}, {PAYLOAD_KEY(t.payload)}, count(*) FROM {table} t WHERE t.payload IS NOT NULL GROUP BY 2

-- The numbers are enum hk_seal_home.
--@ statement SEAL_USES
{PAYLOAD_USES(0; outbox_retry)} UNION ALL {PAYLOAD_USES(1; dead_letters)} UNION ALL {PAYLOAD_USES(3; outbox_cancelled)}
UNION ALL {PAYLOAD_USES(5; outbox)}
UNION ALL SELECT 2, {PAYLOAD_KEY(v.payload)}, count(*) FROM {OF_VERSIONS} WHERE v.payload IS NOT NULL GROUP BY 2
UNION ALL SELECT 1, {KEY_OF(t.error_detail; instr(t.error_detail, '"hk1.') + 1)}, count(*) FROM dead_letters t WHERE {DETAIL_COUNTS} GROUP BY 2
UNION ALL SELECT 4, {KEY_OF(coalesce({SEALED_ONLY(t.response_headers)}, t.response_body); 1)}, count(*) FROM outbox_attempts t
  WHERE {SEALED_ONLY(t.response_headers)} IS NOT NULL OR {SEALED_ONLY(t.response_body)} IS NOT NULL GROUP BY 2

-- ---- what is kept of a message: admin_erase.c ----

--@ statement NAME_DEAD
SELECT message_id FROM dead_letters NOT INDEXED WHERE id = ?1

--@ statement NAME_CANCELLED
SELECT message_id FROM outbox_cancelled NOT INDEXED WHERE id = ?1

--@ statement NAME_SENT
SELECT message_id FROM outbox_sent NOT INDEXED WHERE id = ?1

-- ?1 message_id
--@ statement ON_ITS_WAY
SELECT 1 FROM outbox_retry WHERE message_id = ?1 UNION ALL SELECT 1 FROM dead_letters WHERE message_id = ?1
  AND (status = 'retrying' OR sending_at IS NOT NULL) LIMIT 1

--@ statement ERASE_ATTEMPTS
UPDATE outbox_attempts SET error = NULL, request_headers = NULL, response_headers = NULL, response_body = NULL
WHERE message_id = ?1 OR message_id IN (SELECT requeued_as FROM dead_letters WHERE message_id = ?1)

--@ statement ERASE_VERSIONS
UPDATE dead_letter_versions SET payload = NULL WHERE letter_id IN (SELECT id FROM dead_letters WHERE message_id = ?1)

-- ?1 message_id, ?2 the time. One that was open is discarded: nobody could send it any more.
--@ statement ERASE_LETTERS
UPDATE dead_letters SET payload = NULL, headers = NULL, encoding = '{=HK_ERASED}', error_message = NULL, error_detail = NULL, resolution =
CASE WHEN status = 'failed' THEN '{=HK_ERASED}' ELSE resolution END, resolved_at = CASE WHEN status = 'failed'
  THEN strftime('%Y-%m-%dT%H:%M:%fZ', ?2 / 1000.0, 'unixepoch') ELSE resolved_at END, status = CASE WHEN status = 'failed'
  THEN 'discarded' ELSE status END
WHERE message_id = ?1

--@ statement ERASE_PAST
UPDATE outbox_cancelled_past SET last_error = NULL WHERE id IN (SELECT id FROM outbox_cancelled WHERE message_id = ?1)

--@ statement ERASE_CANCELLED
UPDATE outbox_cancelled SET payload = NULL, headers = NULL, encoding = '{=HK_ERASED}' WHERE message_id = ?1

--@ statement IS_ERASED
SELECT 1 FROM outbox_cancelled NOT INDEXED WHERE id = ?1 AND encoding = '{=HK_ERASED}'
