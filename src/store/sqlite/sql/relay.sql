-- SPDX-License-Identifier: Apache-2.0
-- The statements of the relay's side of the SQLite store, prepared at first use and kept.
--
-- INDEXED BY and NOT INDEXED pin the plans: an application may run ANALYZE
-- while the tables are empty, and a plan for an empty table must not meet a full one.

-- Columns that are missing: one line; no row = none is.
--@ fragment LACKS_ONE(table; columns)
SELECT '{table}' AS t, j.value AS c
FROM json_each('["' || replace('{columns}', ',', '","') || '"]') j
WHERE j.value NOT IN (SELECT lower(i.name) FROM pragma_table_info('{table}') i)

--@ fragment LACKS_FOUND
SELECT 'the table ' || t || ' lacks ' || group_concat(c, ', ') || ': was it renamed?'
FROM ({LACKS_ONE(outbox; {=HK_OUTBOX_COLUMNS})} UNION ALL {LACKS_ONE(outbox_retry; {=HK_RETRY_COLUMNS})}
  UNION ALL {LACKS_ONE(dead_letters; {=HK_LETTER_COLUMNS})})
GROUP BY t
ORDER BY t LIMIT 1

-- Of others, on our tables: one line. One that only fires when an application writes to outbox is its own business.
--@ fragment TRIGGERS_FOUND
SELECT group_concat('trigger ' || name || ' on ' || tbl_name, ', ')
FROM sqlite_master
WHERE type = 'trigger' AND name <> 'dead_letters_gone' AND (lower(tbl_name) <> 'outbox' OR sql LIKE '%delete%'
  OR sql LIKE '%update%') AND lower(tbl_name) IN ('outbox', 'outbox_retry', 'dead_letters', 'outbox_claim',
  'outbox_stuck')

-- What a message is made of, wherever it lies, without id and destination. The payload last: see the schema.
--@ fragment META
message_id, event_type, message_key, headers, content_type, encoding, correlation_id, traceparent, idempotency_key,
not_before, expires_at, policy, max_attempts, created_at

--@ fragment MESSAGE
{META}, payload

-- The same of a row that is copied to another table (rest.c).
--@ fragment KEPT_ENCODING
hk_rest_encoding(encoding, typeof(payload))

--@ fragment KEPT
hk_rest(message_id, encoding, payload)

--@ fragment KEPT_META
message_id, event_type, message_key, headers, content_type, {KEPT_ENCODING}, correlation_id, traceparent, idempotency_key,
not_before, expires_at, policy, max_attempts, created_at

-- ?2 is the destination as the relay resolved it
--@ fragment RESOLVED
CASE WHEN ?2 = '' THEN destination ELSE ?2 END

-- For how long the destination has been paused, in all, up to `now`.
--@ fragment PAUSED_TOTAL(destination; now)
coalesce((SELECT d.paused_total_ms + CASE WHEN d.paused <> 0 THEN max(0, {now} - d.since_ms) ELSE 0 END
  FROM outbox_destination d WHERE d.name = {destination}), 0)

-- What a message has been through: ?7 to ?15, ?16 now, then ?17 first failed, ?18 last attempt, ?19 cause, ?20 error,
-- ?21 possibly delivered.
--@ fragment PAST
attempts, charged, failed_transient, failed_rate_limit, failed_auth, failed_permanent, failed_unknown, prev_wait_ms,
first_attempt_ms, paused_mark_ms, first_failed_ms, last_attempt_ms, last_cause, last_error, possibly_delivered

--@ fragment PAST_VALUES
?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, {PAUSED_TOTAL({RESOLVED}; ?16)}, ?17, ?18, ?19, ?20, ?21

-- The mark is set with the first attempt.
--@ fragment MARK_KEPT
CASE WHEN first_attempt_ms = 0 THEN {PAUSED_TOTAL({RESOLVED}; ?16)} ELSE paused_mark_ms END

--@ fragment PAST_KEPT
?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, {MARK_KEPT}, ?17, CASE WHEN ?6 THEN ?18 ELSE last_attempt_ms END, coalesce(?19, last_cause),
coalesce(?20, last_error), max(possibly_delivered, ?21)

-- hk_sq_head: id, destination, event_type, key, not_before, expires_at, max_attempts, encoding, type of the payload,
-- crashes, due, is it the first of its key
--@ fragment HEAD
destination, event_type, message_key, not_before, expires_at, max_attempts, encoding, typeof(payload)

--@ fragment BARE
NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'null'

--@ fragment FRESH
, 0, 0, 1

--@ fragment FIRST
message_key IS NULL OR message_key = '' OR NOT EXISTS (SELECT 1 FROM outbox_retry k INDEXED BY outbox_retry_key
  WHERE k.message_key IS NOT NULL AND k.destination = r.destination AND k.message_key = r.message_key
  AND k.deferred = 0 AND (k.id < r.id OR r.deferred <> 0) AND NOT EXISTS (SELECT 1 FROM outbox_stuck s
  WHERE s.source = 1 AND s.row_id = k.id AND s.delivered <> 0))

--@ fragment OF_OUTBOX
FROM outbox NOT INDEXED WHERE id >= ?1 ORDER BY id LIMIT ?2

-- What names the destination, and what names none: only the engine knows where a route leads. Two short index scans and a
-- merge, since one scan over both would have to sort all that is there.
--@ fragment BOTH(columns; index; key)
SELECT *{FRESH}
FROM (SELECT * FROM (SELECT id, {columns} FROM outbox INDEXED BY {index} WHERE destination = ?3 {key}
  AND id >= ?1 ORDER BY id LIMIT ?2) UNION ALL SELECT * FROM (SELECT id, {columns}
  FROM outbox INDEXED BY {index} WHERE destination = '' {key} AND id >= ?1 ORDER BY id LIMIT ?2))
ORDER BY 1 LIMIT ?2

--@ fragment BY_KEY
AND message_key = ?4 AND message_key IS NOT NULL

-- ?6: the store's time, by which waits end; ?7: the clock, by which a message is due that was only deferred.
--@ fragment OF_RETRY
FROM outbox_retry r INDEXED BY outbox_retry_due
WHERE claim IS NULL AND destination = ?3 AND due_ms <= ?6 AND (deferred = 0 OR due_ms <= ?7)
  AND (due_ms, id) > (?5, ?1)
ORDER BY due_ms, id LIMIT ?2

-- Those that people have forced, of any destination, when they are due or not.
--@ fragment OF_FORCED
FROM outbox_retry r INDEXED BY outbox_retry_forced
WHERE forced = 1 AND claim IS NULL AND (due_ms, id) > (?3, ?1)
ORDER BY due_ms, id LIMIT ?2

--@ fragment OF_RETRY_KEY
FROM outbox_retry r INDEXED BY outbox_retry_key
WHERE destination = ?3 AND message_key = ?4 AND message_key IS NOT NULL AND claim IS NULL AND due_ms <= ?6
  AND (deferred = 0 OR due_ms <= ?7) AND (due_ms, id) > (?5, ?1)
ORDER BY due_ms, id LIMIT ?2

-- Walks from name to name through the index, so that the cost is in destinations, not in rows.
--@ fragment DUE
FROM outbox_retry INDEXED BY outbox_retry_due WHERE claim IS NULL

--@ fragment DESTS
WITH RECURSIVE d (name) AS (SELECT (SELECT destination {DUE} ORDER BY destination LIMIT 1) UNION ALL
  SELECT (SELECT destination {DUE} AND destination > d.name ORDER BY destination LIMIT 1) FROM d
  WHERE d.name IS NOT NULL) SELECT d.name, (SELECT due_ms {DUE} AND destination = d.name ORDER BY due_ms
  LIMIT 1), coalesce(p.paused <> 0, 0), coalesce(p.open_until_ms, 0)
FROM d LEFT JOIN outbox_destination p ON p.name = d.name
WHERE d.name IS NOT NULL
UNION ALL SELECT p.name, NULL, p.paused <> 0, p.open_until_ms
FROM outbox_destination p
WHERE (p.paused <> 0 OR p.open_until_ms <> 0) AND NOT EXISTS (SELECT 1 {DUE} AND destination = p.name)

-- hk_sq_message: id, destination, the message, then for retry rows what it has been through
--@ fragment WHOLE
SELECT o.id, o.destination, {MESSAGE}

--@ fragment WHOLE_BARE
SELECT o.id, o.destination, {META}, NULL

--@ fragment WHOLE_PAST
, crashes, life, letter_id, first_failed_ms, attempts, charged, failed_transient, failed_rate_limit, failed_auth,
failed_permanent, failed_unknown, prev_wait_ms, first_attempt_ms, CASE WHEN first_attempt_ms = 0 THEN 0
  ELSE max(0, {PAUSED_TOTAL(o.destination; ?2)} - paused_mark_ms) END, last_cause, substr(last_error, 1, 40)

--@ fragment TO_SENT
INSERT INTO outbox_sent (original_outbox_id, message_id, destination, event_type, message_key, correlation_id,
  attempts, status, life, created_at, sent_ms) SELECT

--@ fragment TO_RETRY
INSERT INTO outbox_retry (original_outbox_id, destination, due_ms, deferred, crashes, life, letter_id, {PAST},
  {MESSAGE}) SELECT

--@ fragment MADE(fingerprint)
'{=HK_FINGERPRINT_MADE}' || {fingerprint}

--@ fragment PLAIN
typeof(payload) = 'blob' OR (typeof(payload) = 'text' AND (SELECT encoding FROM pragma_encoding) = 'UTF-8')

-- Of a row that is copied: not when it is large (large.c).
--@ fragment UNLESS(large; payload)
CASE WHEN {large} THEN NULL ELSE {payload} END

--@ fragment MADE_SMALL
{UNLESS(?14; {MADE(?12)})}

--@ fragment LETTER_FATE
reason_code, error_message, error_detail, attempts, first_failed_at, last_failed_at, last_attempt_at, created_at,
failure_class, fault, fingerprint, fingerprint_made, possibly_delivered

--@ fragment LETTER_META
message_id, event_type, message_key, headers, content_type, encoding, correlation_id, traceparent, idempotency_key,
expires_at, policy, max_attempts

--@ fragment LETTER_META_KEPT
message_id, event_type, message_key, headers, content_type, {KEPT_ENCODING}, correlation_id, traceparent, idempotency_key,
expires_at, policy, max_attempts

--@ fragment TO_LETTER
INSERT INTO dead_letters (original_outbox_id, destination, message_created_at, crashes, life, {LETTER_META},
  {LETTER_FATE}, payload) SELECT

--@ fragment LETTER_FATE_VALUES
?3, ?4, ?5, ?6, ?7, ?8, ?9, ?8, ?10, ?11, ?12, {MADE_SMALL}, ?13, {UNLESS(?14; {KEPT})}

-- What the row knows from before, where this settle brings nothing new.
--@ fragment LAST_ATTEMPT
coalesce(?9, CASE WHEN last_attempt_ms > 0 THEN strftime('%Y-%m-%dT%H:%M:%fZ', last_attempt_ms / 1000.0,
  'unixepoch') END)

--@ fragment LETTER_FATE_RETRY
?3, coalesce(?4, last_error), ?5, max(?6, attempts), ?7, ?8, {LAST_ATTEMPT}, ?8, ?10, ?11, ?12, {MADE_SMALL},
max(?13, possibly_delivered), {UNLESS(?14; {KEPT})}

-- The letter that retry row ?1 was requeued from, while it waits for that row's outcome.
--@ fragment REOPENED
WHERE r.id = ?1 AND dead_letters.id = r.letter_id AND dead_letters.status <> 'failed' AND dead_letters.life < r.life

--@ fragment TO_ATTEMPT
INSERT INTO outbox_attempts (message_id, destination, life, n, started_ms, duration_ms, settled_ms, status, class,
  cause, error, request_headers, response_headers, response_body, address, possibly_delivered)
SELECT

--@ fragment ATTEMPT_VALUES
?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15

-- A retry row that is stuck keeps the number of a manifest that is gone, and so is nobody's.
--@ fragment NOT_STUCK
AND NOT EXISTS (SELECT 1 FROM outbox_stuck s WHERE s.source = 1 AND s.row_id = outbox_retry.id)

-- ?1 id, ?2 destination as the relay resolved it, ?3 now, ?4 delivered, ?5 possibly delivered, ?6 why,
-- ?7 attempts, ?8 reason, ?9 last error
--@ fragment TO_STUCK(source; table)
INSERT OR REPLACE INTO outbox_stuck (source, row_id, since_ms, delivered, possibly_delivered, message_id,
  destination, message_key, error, attempts, reason_code, last_error)
SELECT {source}, o.id, ?3, ?4, ?5, coalesce(o.message_id, 'outbox-' || o.id), CASE
  WHEN ?2 = '' THEN coalesce(o.destination, '') ELSE ?2 END, CASE
  WHEN length(CAST(o.message_key AS BLOB)) <= 8192 THEN o.message_key END, ?6, ?7, ?8, ?9
FROM {table} o NOT INDEXED
WHERE o.id = ?1

-- What the manifests of lane ?1 name and is still there.
--@ fragment IN_HAND
SELECT o.message_id, o.destination, 1 AS life, c.claimed_ms
FROM outbox_claim c JOIN json_each(CASE WHEN json_valid(c.ids) THEN c.ids ELSE '[]' END) j
  JOIN outbox o ON o.id = j.value
WHERE c.lane = ?1 AND NOT EXISTS (SELECT 1 FROM outbox_stuck s WHERE s.source = 0 AND s.row_id = o.id)
UNION ALL SELECT r.message_id, r.destination, r.life, c.claimed_ms
FROM outbox_claim c JOIN outbox_retry r ON r.claim = c.claim
WHERE c.lane = ?1 AND NOT EXISTS (SELECT 1 FROM outbox_stuck s WHERE s.source = 1 AND s.row_id = r.id)

--@ statement BEGIN_WRITE
BEGIN IMMEDIATE

--@ statement BEGIN_READ
BEGIN

--@ statement COMMIT
COMMIT

--@ statement ROLLBACK
ROLLBACK

--@ statement HIGH_WATER
SELECT (SELECT value FROM outbox_meta WHERE key = 'high_water_ms'),
  (SELECT value FROM outbox_meta WHERE key = 'clock_resets')

--@ statement SET_HIGH_WATER
INSERT INTO outbox_meta (key, value) VALUES ('high_water_ms', ?1) ON CONFLICT (key) DO
UPDATE SET value = excluded.value

--@ statement META
SELECT value FROM outbox_meta WHERE key = ?1

--@ statement SET_META
INSERT INTO outbox_meta (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = excluded.value

--@ statement DATA_VERSION
PRAGMA data_version

--@ statement LAST_ID
SELECT max(id) FROM outbox NOT INDEXED

-- every act of a person leaves a row there
--@ statement LAST_ACT
SELECT max(id) FROM outbox_audit NOT INDEXED

--@ statement DESTS
{DESTS}

-- Heads; each with a _BARE form that reads nothing that may be huge. Same order of columns everywhere.
--@ columns H of SCAN, SCAN_BARE, SCAN_RETRY, SCAN_RETRY_BARE, SCAN_RETRY_KEY, SCAN_RETRY_KEY_BARE, SCAN_FORCED, SCAN_FORCED_BARE
ID, DESTINATION, EVENT_TYPE, KEY, NOT_BEFORE, EXPIRES, MAX_ATTEMPTS, ENCODING, PAYLOAD_TYPE, CRASHES, DUE, FIRST

-- Heads; each with a _BARE form that reads nothing that may be huge. Same order of columns everywhere.
--@ statement SCAN
SELECT id, {HEAD}{FRESH} {OF_OUTBOX}

--@ statement SCAN_BARE
SELECT id, {BARE}{FRESH} {OF_OUTBOX}

--@ statement SCAN_DEST
{BOTH({HEAD}; outbox_by_destination; )}

--@ statement SCAN_DEST_BARE
{BOTH({BARE}; outbox_by_destination; )}

--@ statement SCAN_KEY
{BOTH({HEAD}; outbox_by_key; {BY_KEY})}

--@ statement SCAN_KEY_BARE
{BOTH({BARE}; outbox_by_key; {BY_KEY})}

--@ statement SCAN_RETRY
SELECT id, {HEAD}, crashes, due_ms, {FIRST} {OF_RETRY}

--@ statement SCAN_RETRY_BARE
SELECT id, {BARE}, crashes, due_ms, 1 {OF_RETRY}

--@ statement SCAN_RETRY_KEY
SELECT id, {HEAD}, crashes, due_ms, {FIRST} {OF_RETRY_KEY}

--@ statement SCAN_RETRY_KEY_BARE
SELECT id, {BARE}, crashes, due_ms, 1 {OF_RETRY_KEY}

--@ statement SCAN_FORCED
SELECT id, {HEAD}, crashes, due_ms, {FIRST} {OF_FORCED}

--@ statement SCAN_FORCED_BARE
SELECT id, {BARE}, crashes, due_ms, 1 {OF_FORCED}

-- A key over 256 KiB holds nobody: no message that has it can be sent, and it may be a gigabyte.
--@ fragment HOLDS
message_key IS NOT NULL AND message_key <> '' AND length(CAST(message_key AS BLOB)) <= 262144

--@ statement HELD_RETRY
SELECT destination, message_key, id
FROM outbox_retry INDEXED BY outbox_retry_key
WHERE {HOLDS} AND deferred = 0

--@ statement HELD_DEAD
SELECT destination, message_key
FROM dead_letters INDEXED BY dead_letters_key
WHERE {HOLDS} AND (status = 'failed' OR sending_at IS NOT NULL)

--@ statement HELD_STUCK
SELECT s.destination, s.message_key
FROM outbox_stuck s
WHERE s.source = 0 AND s.delivered = 0 AND s.message_key IS NOT NULL AND s.message_key <> ''

--@ statement LANES
SELECT lane, name, until_ms, lock, lease_ms FROM outbox_relay ORDER BY lane

--@ statement ADD_LANE
INSERT INTO outbox_relay (name, boot, version, started_ms, until_ms, lock, lease_ms)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)

--@ statement RENEW_LANE
UPDATE outbox_relay SET until_ms = ?2 WHERE lane = ?1

--@ statement DROP_LANE
DELETE FROM outbox_relay WHERE lane = ?1

--@ statement LANE_IDS
SELECT CAST(j.value AS INTEGER)
FROM outbox_claim c JOIN json_each(CASE WHEN json_valid(c.ids) THEN c.ids ELSE '[]' END) j
WHERE c.lane = ?1

--@ statement LANE_HAND
SELECT x.destination, count(*), min(x.claimed_ms) FROM ({IN_HAND}) x GROUP BY 1

-- ?1 lane, ?2 now
--@ statement ORPHAN_ATTEMPTS
{TO_ATTEMPT} x.message_id, x.destination, x.life, 0, x.claimed_ms, 0, ?2, 0, 'transient', 'RELAY_CRASHED',
'{=HK_RELAY_DIED}', NULL, NULL, NULL, NULL, 1
FROM ({IN_HAND}) x

--@ statement LANE_RETRIES
SELECT id FROM outbox_retry WHERE claim IN (SELECT claim FROM outbox_claim WHERE lane = ?1)

-- When its application wants it, in milliseconds.
--@ fragment NAMED_MS
CAST(round((julianday(not_before) - 2440587.5) * 86400000) AS INTEGER)

-- ?1 lane, ?2 now, ?3 the clock: whose own time has not come was claimed by a clock that was wrong
--@ statement ORPHAN_RETRIES
UPDATE outbox_retry SET claim = NULL, crashes = crashes + 1, possibly_delivered = 1,
deferred = CASE WHEN life = 1 AND {NAMED_MS} > ?3 THEN 1 ELSE 0 END,
due_ms = CASE WHEN life = 1 AND {NAMED_MS} > ?3 THEN {NAMED_MS} ELSE ?2 END
WHERE claim IN (SELECT claim FROM outbox_claim WHERE lane = ?1) {NOT_STUCK}

-- ?1 id, ?2 the clock. It was fanned out by a clock that was wrong, and nobody has tried it yet.
--@ statement PUT_OFF_RETRY
UPDATE outbox_retry SET deferred = 1, due_ms = {NAMED_MS}
WHERE id = ?1 AND claim IS NULL AND deferred = 0 AND life = 1 AND attempts = 0 AND {NAMED_MS} > ?2

--@ statement FREE_RETRIES
UPDATE outbox_retry SET claim = NULL WHERE claim IN (SELECT claim FROM outbox_claim WHERE lane = ?1) {NOT_STUCK}

--@ statement DROP_LANE_CLAIMS
DELETE FROM outbox_claim WHERE lane = ?1

-- ?1 destination, ?2 open until, ?3 now
--@ statement CIRCUIT
INSERT INTO outbox_destination (name, paused, since_ms, open_until_ms) VALUES (?1, 0, ?3, ?2)
  ON CONFLICT (name) DO UPDATE SET open_until_ms = excluded.open_until_ms

--@ statement CLAIM_STANDS
SELECT 1 FROM outbox_claim WHERE claim = ?1 AND lane = ?2

--@ statement CLAIM_IDS
SELECT CAST(j.value AS INTEGER)
FROM outbox_claim c JOIN json_each(CASE WHEN json_valid(c.ids) THEN c.ids ELSE '[]' END) j
  JOIN outbox o ON o.id = j.value
WHERE c.claim = ?1

--@ statement CLAIM_RETRIES
SELECT id FROM outbox_retry WHERE claim = ?1

--@ statement ADD_CLAIM
INSERT INTO outbox_claim (lane, claimed_ms, ids) VALUES (?1, ?2, ?3)

--@ statement SET_CLAIM_IDS
UPDATE outbox_claim SET ids = ?2 WHERE claim = ?1

--@ statement DROP_CLAIM
DELETE FROM outbox_claim WHERE claim = ?1

-- Messages; _ONE by id, _BARE without payload. Same order of columns everywhere.
--@ columns M of READ_MANY, READ_RANGE, READ_ONE, READ_BARE, READ_RETRY, READ_RETRY_BARE
ID, DESTINATION, MESSAGE_ID, EVENT_TYPE, KEY, HEADERS, CONTENT_TYPE, ENCODING, CORRELATION_ID, TRACEPARENT,
IDEMPOTENCY_KEY, NOT_BEFORE, EXPIRES, POLICY, MAX_ATTEMPTS, CREATED, PAYLOAD, CRASHES, LIFE, LETTER, FIRST_FAILED,
ATTEMPTS, CHARGED, FAILED, FAILED_RATE_LIMIT, FAILED_AUTH, FAILED_PERMANENT, FAILED_UNKNOWN, PREV_WAIT,
FIRST_ATTEMPT, PAUSED, LAST_CAUSE, LAST_ERROR

-- Messages; _ONE by id, _BARE without payload. Same order of columns everywhere.
--@ statement READ_MANY
{WHOLE} FROM json_each(?1) j CROSS JOIN outbox o NOT INDEXED ON o.id = j.value

--@ statement READ_RANGE
{WHOLE} FROM outbox o NOT INDEXED WHERE id BETWEEN ?1 AND ?2 ORDER BY id

--@ statement READ_ONE
{WHOLE} FROM outbox o NOT INDEXED WHERE id = ?1

--@ statement READ_BARE
{WHOLE_BARE} FROM outbox o NOT INDEXED WHERE id = ?1

--@ statement READ_RETRY
{WHOLE} {WHOLE_PAST} FROM outbox_retry o NOT INDEXED WHERE id = ?1 AND claim IS NULL

--@ statement READ_RETRY_BARE
{WHOLE_BARE} {WHOLE_PAST} FROM outbox_retry o NOT INDEXED WHERE id = ?1 AND claim IS NULL

--@ statement CLAIM_RETRY
UPDATE outbox_retry SET claim = ?2 WHERE id = ?1

--@ statement DROP_RANGE
DELETE FROM outbox WHERE id BETWEEN ?1 AND ?2

--@ statement DROP_RETRY
DELETE FROM outbox_retry WHERE id = ?1

--@ statement KEEP_SENT
{TO_SENT} id, message_id, {RESOLVED}, event_type, message_key, correlation_id, ?3, ?4, 1, created_at, ?5
FROM outbox NOT INDEXED
WHERE id BETWEEN ?1 AND ?6

--@ statement KEEP_SENT_RETRY
{TO_SENT} original_outbox_id, message_id, {RESOLVED}, event_type, message_key, correlation_id, ?3, ?4, life,
created_at, ?5
FROM outbox_retry
WHERE id BETWEEN ?1 AND ?6

--@ statement NOT_BEFORE
SELECT not_before FROM outbox NOT INDEXED WHERE id = ?1

--@ statement MOVE
{TO_RETRY} id, {RESOLVED}, ?3, ?4, ?5, 1, 0, {PAST_VALUES}, {KEPT_META}, {UNLESS(?6; {KEPT})}
FROM outbox NOT INDEXED
WHERE id = ?1

-- Due when the row was. By the clock at hand one that was deferred would wait for a time that may be wrong.
--@ statement COPY_RETRY
{TO_RETRY} original_outbox_id, ?2, min(due_ms, ?3), deferred, crashes, life, letter_id, {PAST}, {KEPT_META}, {UNLESS(?4; {KEPT})}
FROM outbox_retry
WHERE id = ?1

--@ statement UPDATE_RETRY
UPDATE outbox_retry SET claim = NULL, deferred = 0, forced = 0, destination = {RESOLVED}, due_ms = ?3, crashes = CASE
  WHEN ?6 THEN 0 ELSE crashes END, ({PAST}) = ({PAST_KEPT})
WHERE id = ?1

--@ statement DEFER_RETRY
UPDATE outbox_retry SET claim = NULL, destination = {RESOLVED}, due_ms = ?3, attempts = max(attempts, ?7), charged =
max(charged, ?8), failed_transient = max(failed_transient, ?9), failed_rate_limit = max(failed_rate_limit, ?10),
failed_auth = max(failed_auth, ?11), failed_permanent = max(failed_permanent, ?12), failed_unknown =
max(failed_unknown, ?13), first_attempt_ms = max(first_attempt_ms, ?15), paused_mark_ms = {MARK_KEPT},
first_failed_ms = max(first_failed_ms, ?17), last_attempt_ms = max(last_attempt_ms, ?18), last_cause = coalesce(?19,
  last_cause), last_error = coalesce(?20, last_error), possibly_delivered = max(possibly_delivered, ?21)
WHERE id = ?1

--@ statement RELEASE_RETRY
UPDATE outbox_retry SET claim = NULL WHERE id = ?1

--@ statement RETRY_LETTER
SELECT letter_id FROM outbox_retry WHERE id = ?1

--@ statement PLAIN
SELECT {PLAIN} FROM outbox NOT INDEXED WHERE id = ?1

--@ statement PLAIN_RETRY
SELECT {PLAIN} FROM outbox_retry NOT INDEXED WHERE id = ?1

--@ statement PLAIN_LETTER
SELECT {PLAIN} FROM dead_letters NOT INDEXED WHERE id = ?1

--@ statement PLAIN_CANCELLED
SELECT {PLAIN} FROM outbox_cancelled NOT INDEXED WHERE id = ?1

--@ statement ADD_LETTER
{TO_LETTER} id, {RESOLVED}, created_at, 0, 1, {LETTER_META_KEPT}, {LETTER_FATE_VALUES}
FROM outbox NOT INDEXED
WHERE id = ?1

--@ statement ADD_LETTER_RETRY
{TO_LETTER} original_outbox_id, {RESOLVED}, created_at, crashes, life, {LETTER_META_KEPT}, {LETTER_FATE_RETRY}
FROM outbox_retry
WHERE id = ?1

--@ statement REOPENS
SELECT r.letter_id FROM outbox_retry r CROSS JOIN dead_letters {REOPENED}

--@ statement REOPEN_LETTER
UPDATE dead_letters SET status = 'failed', resolved_at = NULL, resolution = NULL, sending_at = NULL, destination =
CASE WHEN ?2 = '' THEN r.destination ELSE ?2 END, reason_code = ?3, error_message = coalesce(?4, r.last_error),
error_detail = ?5, attempts = max(?6, r.attempts), last_failed_at = ?8, last_attempt_at = coalesce(?9,
  last_attempt_at), failure_class = ?10, fault = ?11, fingerprint = ?12, fingerprint_made = {MADE_SMALL},
fingerprint_old = NULL, possibly_delivered = max(?13, r.possibly_delivered, dead_letters.possibly_delivered), life =
max(dead_letters.life + 1, r.life), crashes = r.crashes, requeued_as = nullif(r.message_id,
  dead_letters.message_id), message_key = r.message_key, headers = r.headers, content_type = r.content_type,
encoding = hk_rest_encoding(r.encoding, typeof(r.payload)), correlation_id = r.correlation_id, traceparent = r.traceparent, idempotency_key =
r.idempotency_key, expires_at = r.expires_at, policy = r.policy, max_attempts = r.max_attempts, payload =
{UNLESS(?14; hk_rest(r.message_id, r.encoding, r.payload))}
FROM outbox_retry r {REOPENED}

--@ statement RESOLVE_LETTER
UPDATE dead_letters SET status = 'resolved', resolved_at = ?2, resolution = 'delivered'
WHERE id = (SELECT letter_id FROM outbox_retry WHERE id = ?1) AND status = 'retrying'

--@ statement ADD_ATTEMPT
{TO_ATTEMPT} message_id, {RESOLVED}, 1, {ATTEMPT_VALUES} FROM outbox NOT INDEXED WHERE id = ?1

--@ statement ADD_ATTEMPT_RETRY
{TO_ATTEMPT} message_id, {RESOLVED}, life, {ATTEMPT_VALUES} FROM outbox_retry WHERE id = ?1

--@ statement HAS_ROW
SELECT 1 FROM outbox NOT INDEXED WHERE id BETWEEN ?1 AND ?2 LIMIT 1

--@ statement HAS_RETRY
SELECT 1 FROM outbox_retry NOT INDEXED WHERE id BETWEEN ?1 AND ?2 LIMIT 1

--@ statement TRIGGERS
{TRIGGERS_FOUND}

--@ statement LACKS
{LACKS_FOUND}

--@ statement STICK
{TO_STUCK(0; outbox)}

--@ statement STICK_RETRY
{TO_STUCK(1; outbox_retry)}

--@ statement STUCK
SELECT s.source, s.row_id FROM outbox_stuck s

--@ statement STUCK_ONE
SELECT s.delivered, s.possibly_delivered, s.destination, s.attempts, s.reason_code, s.last_error
FROM outbox_stuck s
WHERE s.source = ?1 AND s.row_id = ?2

--@ statement UNSTICK
DELETE FROM outbox_stuck WHERE source = ?1 AND row_id = ?2

--@ statement PAUSE
INSERT INTO outbox_destination AS d (name, paused, actor, reason, since_ms) VALUES (?1, ?2, ?3, ?4, ?5)
  ON CONFLICT (name) DO UPDATE SET paused_total_ms = d.paused_total_ms + CASE
  WHEN d.paused <> 0 THEN max(0, excluded.since_ms - d.since_ms) ELSE 0
  END, paused = excluded.paused, actor = excluded.actor, reason = excluded.reason, since_ms = excluded.since_ms,
open_until_ms = CASE WHEN excluded.paused <> 0 THEN d.open_until_ms ELSE 0 END

-- ?1 the time up to which rows go, ?2 how many at the most; ids rise with time, so that the oldest come first
--@ statement PURGE_SENT
DELETE
FROM outbox_sent
WHERE id IN (SELECT id FROM (SELECT id, sent_ms FROM outbox_sent ORDER BY id LIMIT ?2) WHERE sent_ms <= ?1)

--@ statement PURGE_SENT_ROWS
DELETE
FROM outbox_sent
WHERE id IN (SELECT id FROM outbox_sent WHERE id <= (SELECT max(id) FROM outbox_sent) - ?1 ORDER BY id LIMIT ?2)

--@ statement PURGE_LETTERS
DELETE
FROM dead_letters
WHERE id IN (SELECT id FROM dead_letters INDEXED BY dead_letters_done WHERE status = ?3
  AND resolved_at IS NOT NULL AND resolved_at <= ?1 ORDER BY resolved_at LIMIT ?2)

--@ statement PURGE_DEAD
DELETE
FROM dead_letters
WHERE id IN (SELECT id FROM dead_letters INDEXED BY dead_letters_created WHERE created_at <= ?1
  AND last_failed_at <= ?1 AND status = 'failed' ORDER BY created_at LIMIT ?2)

--@ statement PURGE_CANCELLED
DELETE
FROM outbox_cancelled
WHERE id IN (SELECT id FROM (SELECT id, cancelled_ms FROM outbox_cancelled ORDER BY id LIMIT ?2)
  WHERE cancelled_ms <= ?1)

--@ statement PURGE_ATTEMPTS
DELETE
FROM outbox_attempts
WHERE id IN (SELECT id FROM (SELECT id, settled_ms FROM outbox_attempts ORDER BY id LIMIT ?2)
  WHERE settled_ms <= ?1)

--@ statement PURGE_REDRIVES
DELETE
FROM outbox_redrive
WHERE id IN (SELECT id FROM outbox_redrive WHERE status <> 'running' AND ended_ms <= ?1 ORDER BY id LIMIT ?2)

--@ statement PURGE_JOBS
DELETE
FROM outbox_job
WHERE id IN (SELECT id FROM outbox_job WHERE ended_ms > 0 AND ended_ms <= ?1 ORDER BY ended_ms LIMIT ?2)

--@ statement PURGE_CALLS
DELETE
FROM outbox_api_calls
WHERE id IN (SELECT id FROM outbox_api_calls WHERE created_ms <= ?1 ORDER BY created_ms LIMIT ?2)

--@ statement PURGE_SERIES_MINUTES
DELETE
FROM outbox_series
WHERE id IN (SELECT id FROM outbox_series WHERE step_ms = 60000 AND at_ms <= ?1 ORDER BY at_ms LIMIT ?2)

--@ statement PURGE_SERIES_HOURS
DELETE
FROM outbox_series
WHERE id IN (SELECT id FROM outbox_series WHERE step_ms = 3600000 AND at_ms <= ?1 ORDER BY at_ms LIMIT ?2)

--@ statement ADD_AUDIT
INSERT INTO outbox_audit (at_ms, actor, act, message_id, destination, reason, letter_id, redrive_id, before_hash,
  after_hash, detail, prev, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)

--@ statement OLD_AUDIT
SELECT id, at_ms, hash, act FROM outbox_audit NOT INDEXED ORDER BY id LIMIT ?1

--@ statement PURGE_AUDIT
DELETE FROM outbox_audit WHERE id <= ?1

-- ---- a clock that was wrong: see store/sql/clock.sql ----
--@ fragment CLOCK_AT

--@ fragment CLOCK_W
?1

--@ fragment CLOCK_M
?2

--@ fragment CLOCK_NO(flag)
{flag} = 0

--@ fragment CLOCK_YES
1

--@ fragment CLOCK_NAMED
{NAMED_MS}

--@ fragment CLOCK_UNSET(time)
coalesce({time}, '') = ''

-- What a statement changes it keeps in memory until its end: so it is given no more than a slice.
--@ fragment CLOCK_SLICE
id > ?3 AND id <= ?4

-- The last row of the slice of ?2 rows behind ?1; none: that is the last slice.
--@ statement CLOCK_SLICE_END
SELECT id FROM outbox_retry NOT INDEXED WHERE id > ?1 ORDER BY id LIMIT 1 OFFSET ?2 - 1

-- ---- destinations that are kept here ----

--@ statement DEFINITIONS_VERSION
SELECT version FROM outbox_definitions WHERE one = 1

-- ?1 what is known: only the texts of newer ones are read; ?2 how many
--@ statement DEFINITIONS
SELECT name, version, seq, CASE WHEN seq > ?1 THEN definition END FROM outbox_destination_def ORDER BY name LIMIT ?2
