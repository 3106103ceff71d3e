-- SPDX-License-Identifier: Apache-2.0
-- The statements about alerts. They share the operators' connection.
--
--
-- What died since the last look is read by the letters' ids, which are not in the order of commits: an id that is missing
-- below one that is there may turn up yet. Such ids are remembered for a minute (`gaps`), as "id:noticed_ms" with blanks
-- between, and looked for with every look. What is older was rolled back, or deleted.
--
-- `$1`, where a statement begins with the time, is the time of tests; NULL is the server's own.

--@ fragment NOW
coalesce($1::bigint, (extract(epoch FROM now()) * 1000)::bigint)

--@ fragment TIME(ms)
to_timestamp(({ms}::bigint) / 1000.0)

--@ fragment TEXT(t)
left({t}, 250)

--@ fragment OPEN
sent_ms = 0 AND given_up_ms = 0

--@ fragment GAP_MS
60000

--@ fragment GAPS_MAX
2000

--@ fragment ALERT
fingerprint, rule, kind, severity, status, destination, reason, event_type, example_id, detail, episode, count,
since_ms, fired_ms, resolved_ms, gone_ms, told_ms, told, owed, value, threshold, letter_id, series_ms, series

--@ fragment COLUMNS
d.id, {TEXT(d.destination)} AS destination, {TEXT(d.reason_code)} AS reason, {TEXT(d.event_type)} AS event_type,
{TEXT(d.message_id)} AS message_id, d.status, d.life

-- destination, reason, event type, how many, the newest letter and its message_id, how many in their second life, how many
-- of which FRESH tells, too
--@ fragment GROUPS(from; known)
SELECT w.destination, w.reason, w.event_type, count(*), max(w.id), (array_agg(w.message_id
  ORDER BY w.id DESC))[1], count(*) FILTER (WHERE w.life = 2), {known}
FROM ({from}) w
WHERE w.status IN ('failed', 'retrying')
GROUP BY w.destination, w.reason, w.event_type

-- $1 ids above this, $2 how many
--@ fragment PAGE(columns)
SELECT {columns} FROM @dead_letters d WHERE d.id > $1::bigint ORDER BY d.id LIMIT $2::bigint

-- $3 gaps
--@ fragment OLD_GAPS
SELECT split_part(g.x, ':', 1)::bigint AS id, split_part(g.x, ':', 2)::bigint AS at
FROM unnest(string_to_array($3::text, ' ')) AS g (x)
WHERE g.x <> ''

-- $1 ids above this, $2 how many, $3 destination, $4 reason, $5 status: the lowest that fits, the last that was looked at, how
-- many were
--@ fragment WALK(key; id)
SELECT min(w.at) FILTER (WHERE w.fits), max(w.at), count(*)
FROM (SELECT {id} AS at, ($3::text = '' OR {TEXT(d.destination)} = $3) AND ($4::text = ''
  OR {TEXT(d.reason_code)} = $4) AS fits FROM @dead_letters d WHERE d.status = $5::text
  AND {key} {id} > $1::bigint ORDER BY {id} LIMIT $2::bigint) w

-- A time has come; also one that lies so far ahead that only a clock which was set back can have brought it there: waits and
-- leases are of half an hour at the most.
--@ fragment COME(ms)
({ms} <= {NOW} OR {ms} > {NOW} + 7200000)

-- now, version, evaluated_ms, letter_id, again_ms, gaps, relay
--@ statement STATE
SELECT {NOW}, version, evaluated_ms, letter_id, again_ms, gaps, left(relay, 250)
FROM @outbox_alert_look
WHERE id = 1

--@ statement FRESH
{GROUPS(SELECT * FROM ({PAGE({COLUMNS})}) p UNION ALL SELECT {COLUMNS} FROM ({OLD_GAPS}) o
  JOIN @dead_letters d ON d.id = o.id; 0)}

-- $4 now: the last letter, how many, and the gaps that there are now
--@ statement SEEN
WITH p AS MATERIALIZED (SELECT w.id, lag(w.id, 1, $1::bigint) OVER (ORDER BY w.id) AS before, w.created_at
  FROM ({PAGE(d.id, d.created_at)}) w),
g AS (SELECT o.id, o.at FROM ({OLD_GAPS}) o WHERE o.at > $4::bigint - {GAP_MS} AND NOT EXISTS (SELECT 1
  FROM @dead_letters d WHERE d.id = o.id) UNION ALL SELECT s.id, $4::bigint FROM p CROSS
  JOIN LATERAL generate_series(p.before + 1, p.id - 1) AS s (id) WHERE p.id - p.before BETWEEN 2 AND {GAPS_MAX}
  AND p.created_at > {TIME($4::bigint - {GAP_MS})}) SELECT coalesce(max(p.id), 0), count(*), (SELECT
  coalesce(string_agg(l.id || ':' || l.at, ' '), '') FROM (SELECT * FROM g ORDER BY g.id DESC
  LIMIT {GAPS_MAX}) l) FROM p

-- $1 from, $2 to (both ms), $3 so many: when the next one died
--@ statement AGAIN_END
SELECT floor(extract(epoch FROM d.last_failed_at) * 1000)::bigint
FROM @dead_letters d
WHERE d.life > 1 AND d.last_failed_at >= {TIME($1)} AND d.last_failed_at < {TIME($2)}
ORDER BY d.last_failed_at LIMIT 1 OFFSET $3::bigint

-- $1 from, $2 to (both ms), $3 gaps, $4 the id that FRESH begins at; the columns of FRESH
--@ statement AGAIN
{GROUPS(SELECT {COLUMNS} FROM @dead_letters d WHERE d.life > 1 AND d.last_failed_at >= {TIME($1)}
  AND d.last_failed_at < {TIME($2)} AND d.last_failed_at > d.created_at; count(*) FILTER (WHERE w.id > $4::bigint
  OR w.id IN (SELECT o.id FROM ({OLD_GAPS}) o)))}

--@ statement ALERTS
SELECT {ALERT} FROM @outbox_alert ORDER BY status = 'resolved', resolved_ms DESC LIMIT 5000

-- $1 now
--@ statement MUTES
SELECT {TEXT(rule)}, until_ms FROM @outbox_mute WHERE until_ms > $1::bigint LIMIT 1000

--@ statement DESTS
SELECT {TEXT(name)}, paused, open_until_ms <> 0, CASE WHEN paused THEN {TEXT(coalesce(actor, '') || ': ' ||
  coalesce(reason, ''))} ELSE '' END
FROM @outbox_destination
WHERE paused OR open_until_ms <> 0
ORDER BY name LIMIT 1000

-- The ends of what was delivered and buried, and the beginning of what was not.
--@ statement PROGRESS
SELECT coalesce((SELECT max(id) FROM @outbox_sent), 0) * 31 + coalesce((SELECT max(id)
  FROM @dead_letters), 0) * 17 + coalesce((SELECT min(id) FROM @outbox), 0)

-- $1 letter, $2 destination, $3 reason; '' = any
--@ statement IS_OPEN
SELECT 1
FROM @dead_letters d
WHERE d.id = $1::bigint AND d.status IN ('failed', 'retrying') AND ($2::text = '' OR {TEXT(d.destination)} = $2)
  AND ($3::text = '' OR {TEXT(d.reason_code)} = $3)

--@ statement WALK_REASON
{WALK(d.reason_code COLLATE "C" = $4::text AND; (d.id * 1))}

--@ statement WALK_ANY
{WALK(; (d.id + 0))}

-- $1 now, $2 version, $3 relay, $4 letter, $5 again_ms, $6 gaps. Who was overtaken fails, and all behind it.
--@ statement DECIDE
WITH u AS (UPDATE @outbox_alert_look SET version = version + 1, evaluated_ms = {NOW}, relay = $3, letter_id =
  $4::bigint, again_ms = $5::bigint, gaps = $6 WHERE id = 1 AND version = $2::bigint RETURNING 1)
SELECT CASE count(*) WHEN 1 THEN 1 ELSE ('hikyaku: another relay has evaluated: ' || count(*))::bigint END
FROM u

--@ statement PUT_ALERT
INSERT INTO @outbox_alert ({ALERT}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16,
  $17, $18, $19, $20, $21, $22, $23, $24) ON CONFLICT (fingerprint) DO
UPDATE SET ({ALERT}) = ROW(excluded.*)

--@ statement DROP_ALERT
DELETE FROM @outbox_alert WHERE fingerprint = $1

-- $1 now, $2 fingerprint, $3 rule, $4 kind, $5 channel, $6 facts. An update that nobody has been told of yet is replaced by
-- the newer one.
--@ statement NOTICE
WITH old AS (DELETE FROM @outbox_notice WHERE $4::text = 'update' AND fingerprint = $2 AND channel = $5
  AND kind = 'update' AND claim_until_ms <= {NOW} AND {OPEN})
INSERT INTO @outbox_notice (fingerprint, rule, kind, channel, facts, created_ms, due_ms)
  VALUES ($2, $3, $4, $5, $6, {NOW}, {NOW})

-- $1 now, $2 age
--@ statement PURGE_NOTICES
DELETE
FROM @outbox_notice
WHERE id = ANY (ARRAY(SELECT id FROM @outbox_notice WHERE created_ms <= {NOW} - $2::bigint LIMIT 1000))

--@ statement PURGE_ALERTS
DELETE FROM @outbox_alert WHERE status = 'resolved' AND NOT owed AND resolved_ms <= {NOW} - $2::bigint

--@ statement PURGE_MUTES
DELETE FROM @outbox_mute WHERE until_ms <= {NOW} - $2::bigint

-- $1 now, $2 relay, $3 channels, $4 lease: now, and what was claimed
--@ statement CLAIM
WITH n AS MATERIALIZED (SELECT f.id FROM unnest($3::text[]) AS c (name) CROSS JOIN LATERAL (SELECT n.id
  FROM @outbox_notice n WHERE n.channel = c.name AND n.sent_ms = 0 AND n.given_up_ms = 0 AND {COME(n.due_ms)}
  AND {COME(n.claim_until_ms)} AND NOT EXISTS (SELECT 1 FROM @outbox_notice e
  WHERE e.fingerprint = n.fingerprint AND (e.id + 0) < n.id AND e.channel = n.channel AND e.sent_ms = 0
  AND e.given_up_ms = 0) ORDER BY n.id LIMIT 1 FOR UPDATE OF n SKIP LOCKED) f),
u AS (UPDATE @outbox_notice n SET attempts = n.attempts + 1, claimed_by = $2, claim_until_ms = {NOW} + $4::bigint
  FROM n AS p WHERE n.id = p.id AND {COME(n.claim_until_ms)} AND n.sent_ms = 0 AND n.given_up_ms = 0
  RETURNING n.*) SELECT {NOW}, u.id, u.fingerprint, u.rule, u.kind, u.channel, left(u.facts, 60000), u.attempts,
u.created_ms
FROM (SELECT 1) x LEFT JOIN u ON true

-- $1 now, $2 id, $3 attempts, $4 sent, $5 given up, $6 wait or NULL, $7 error
--@ statement SETTLE
UPDATE @outbox_notice SET claimed_by = '', claim_until_ms = 0, sent_ms = CASE WHEN $4::boolean THEN {NOW}
  ELSE 0 END, given_up_ms = CASE WHEN $5::boolean THEN {NOW} ELSE 0
  END, due_ms = coalesce({NOW} + $6::bigint, due_ms), last_error = $7
WHERE id = $2::bigint AND attempts = $3::bigint AND {OPEN}

-- $1 how many
--@ statement LIST_ALERTS
SELECT {ALERT}
FROM @outbox_alert
WHERE status IN ('firing', 'pending', 'resolved')
ORDER BY CASE status WHEN 'firing' THEN 0 WHEN 'pending' THEN 1 ELSE 2
  END, greatest(since_ms, resolved_ms) DESC LIMIT $1::bigint

--@ statement LIST_NOTICES
SELECT id, fingerprint, {TEXT(rule)}, kind, {TEXT(channel)}, left(last_error, 1000), attempts, created_ms, due_ms,
given_up_ms
FROM @outbox_notice
WHERE sent_ms = 0
ORDER BY id DESC LIMIT $1::bigint

--@ statement LIST_MUTES
SELECT {TEXT(rule)}, {TEXT(actor)}, left(reason, 1000), until_ms, since_ms
FROM @outbox_mute
WHERE until_ms > {NOW}
ORDER BY rule LIMIT $2::bigint

-- $1 now, $2 rule, $3 until or NULL, $4 for, $5 actor, $6 reason: until when
--@ statement MUTE
WITH put AS (INSERT INTO @outbox_mute AS m (rule, until_ms, since_ms, actor, reason)
  VALUES ($2, coalesce($3::bigint, {NOW} + $4::bigint), {NOW}, $5, $6) ON CONFLICT (rule) DO UPDATE
  SET until_ms = excluded.until_ms, since_ms = excluded.since_ms, actor = excluded.actor, reason = excluded.reason
  RETURNING m.until_ms),
audit AS (INSERT INTO @outbox_audit (at_ms, actor, act, reason, detail)
  SELECT {NOW}, $5, 'mute', $6, '{"rule":' || to_json($2::text)::text || ',"until_ms":' || put.until_ms || '}'
  FROM put) SELECT until_ms
FROM put

-- $1 now, $2 rule, $3 actor, $4 reason
--@ statement UNMUTE
WITH gone AS (DELETE FROM @outbox_mute WHERE rule = $2 AND until_ms > {NOW} RETURNING 1),
audit AS (INSERT INTO @outbox_audit (at_ms, actor, act, reason, detail)
  SELECT {NOW}, $3, 'unmute', $4, '{"rule":' || to_json($2::text)::text || '}' FROM gone)
SELECT count(*)
FROM gone
