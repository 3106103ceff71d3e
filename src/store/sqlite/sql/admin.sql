-- SPDX-License-Identifier: Apache-2.0
-- The statements of the operators' side of the SQLite store. They are prepared for each call: a person waits for them, not a
-- relay. What is put together from what was asked (lists, filters, samples) is still in C.

--@ fragment WITH_ID
WHERE message_id IN (?1, CAST(?1 AS BLOB)) AND (?2 IS NULL OR destination = ?2)

--@ fragment CANCELLED
INSERT INTO outbox_cancelled (original_outbox_id, attempts, message_id, destination, event_type, message_key,
  headers, content_type, encoding, correlation_id, traceparent, idempotency_key, policy, created_at, actor, reason,
  cancelled_ms, payload) SELECT

--@ fragment WHAT(payload)
message_id, destination, event_type, message_key, headers, content_type, encoding, correlation_id, traceparent,
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
content_type, encoding, correlation_id, traceparent, idempotency_key, expires_at, policy, max_attempts, created_at,
?2, 1, {payload}
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
{CANCEL(payload)}

--@ statement CANCEL_BARE
{CANCEL(NULL)}

--@ statement CANCEL_RETRY
{CANCEL_RETRY(payload)}

--@ statement CANCEL_RETRY_BARE
{CANCEL_RETRY(NULL)}

--@ statement DROP
DELETE FROM outbox WHERE id = ?1

--@ statement DROP_RETRY
DELETE FROM outbox_retry WHERE id = ?1

--@ statement MOVE
{MOVE(payload)}

--@ statement MOVE_BARE
{MOVE(NULL)}

--@ statement HURRY_RETRY
UPDATE outbox_retry SET due_ms = ?2, not_before = NULL WHERE id = ?1

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
