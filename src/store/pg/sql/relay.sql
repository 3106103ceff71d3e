-- SPDX-License-Identifier: Apache-2.0
-- The statements of the relay's side of the PostgreSQL store, prepared at first use and kept.

-- Unix milliseconds: the start of the transaction by the server's clock.
--@ fragment SERVER_MS
floor(extract(epoch FROM now()) * 1000)::bigint

--@ fragment CLOCK_MS
floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint

-- ---- purge: one statement, so that its limit holds for all tables together ----
-- $1 how many at the most, $2 now; $3 sent rows to keep, and ages: $4 sent, $5 attempts, $6 cancelled, $7 resolved,
-- $8 discarded, $9 dead; NULL = for ever. Gives how many, and how many of them were open dead letters. Only one relay at a time: they would wait for each other. Who has the
-- row of outbox_turn has the turn; an advisory lock could be held by anybody, for ever.
--@ fragment PURGE_TURN
WITH turn AS MATERIALIZED (SELECT coalesce($2::bigint, {SERVER_MS}) AS now, $1::bigint * (SELECT count(*)
  FROM (SELECT 1 FROM @outbox_turn t WHERE t.name = 'purge' FOR NO KEY UPDATE SKIP LOCKED) o) AS n)

-- Deletes the ids that `which` gives; `after` says how many are left to delete. An array, so that the planner cannot
-- think of reading the whole table.
--@ fragment PURGE_STEP(step; table; which; before; after)
, {step} AS (DELETE FROM {table} WHERE id = ANY(ARRAY({which})) RETURNING 1),
{after} AS MATERIALIZED (SELECT n - (SELECT count(*) FROM {step}) AS n FROM {before})

--@ fragment LEFT(of)
(SELECT n FROM {of})

--@ fragment AGO(age)
(SELECT now FROM turn) - {age}::bigint

--@ fragment AGO_AT(age)
to_timestamp(({AGO({age})}) / 1000.0)

-- Ids rise with time, or nearly: of the first ones those that are old enough.
--@ fragment PURGE_FIRST(step; table; time; age; before; after)
{PURGE_STEP({step}; {table}; SELECT id FROM (SELECT id, {time} AS at FROM {table}
  WHERE {age}::bigint IS NOT NULL ORDER BY id LIMIT {LEFT({before})}) s
  WHERE at <= {AGO({age})}; {before}; {after})}

--@ fragment PURGE_DONE(step; status; age; before; after)
{PURGE_STEP({step}; @dead_letters; SELECT id FROM @dead_letters WHERE status = '{status}'
  AND resolved_at IS NOT NULL AND resolved_at <= {AGO_AT({age})} ORDER BY resolved_at
  LIMIT {LEFT({before})}; {before}; {after})}

--@ fragment PURGE_SENT
{PURGE_STEP(d1; @outbox_sent; SELECT id FROM (SELECT id, sent_ms FROM @outbox_sent
  WHERE coalesce($3::bigint, $4::bigint) IS NOT NULL ORDER BY id LIMIT {LEFT(turn)}) s
  WHERE id <= (SELECT max(id) FROM @outbox_sent) - $3::bigint OR sent_ms <= {AGO($4)}; turn; l1)}

--@ fragment PURGE_ATTEMPTS
{PURGE_FIRST(d2; @outbox_attempts; settled_ms; $5; l1; l2)}

--@ fragment PURGE_CANCELLED
{PURGE_FIRST(d3; @outbox_cancelled; cancelled_ms; $6; l2; l3)}

--@ fragment PURGE_RESOLVED
{PURGE_DONE(d4; resolved; $7; l3; l4)}

--@ fragment PURGE_DISCARDED
{PURGE_DONE(d5; discarded; $8; l4; l5)}

--@ fragment PURGE_DEAD
{PURGE_STEP(d6; @dead_letters; SELECT id FROM @dead_letters WHERE created_at <= {AGO_AT($9)}
  AND last_failed_at <= {AGO_AT($9)} AND status = 'failed' ORDER BY created_at LIMIT {LEFT(l5)}; l5; l6)}

-- Nobody looks for a letter that is gone: the audit says how many were open.
--@ fragment PURGE_DEAD_TOLD
, told AS (INSERT INTO @outbox_audit (at_ms, actor, act, reason, detail)
  SELECT turn.now, 'hikyaku', 'purge-dead', 'retention.dead', format('{"letters":%s}', g.n) FROM turn CROSS
  JOIN (SELECT count(*) AS n FROM d6) g WHERE g.n > 0)

-- Jobs of redrive, with what they resolved.
--@ fragment PURGE_REDRIVE
{PURGE_STEP(d7; @outbox_redrive; SELECT id FROM @outbox_redrive WHERE ended_ms > 0 AND ended_ms <= {AGO($7)}
  LIMIT {LEFT(l6)}; l6; l7)}

-- Calls of the HTTP API, after a day: HK_API_KEEP_MS.
--@ fragment PURGE_CALLS
{PURGE_STEP(d8; @outbox_api_calls; SELECT id FROM @outbox_api_calls WHERE created_ms <= {AGO(86400000)}
  ORDER BY created_ms LIMIT {LEFT(l7)}; l7; l8)}

-- Jobs, as redrives.
--@ fragment PURGE_JOBS
{PURGE_STEP(d9; @outbox_job; SELECT id FROM @outbox_job WHERE ended_ms > 0 AND ended_ms <= {AGO($7)}
  ORDER BY ended_ms LIMIT {LEFT(l8)}; l8; l9)}

-- Figures over time: minutes after 48 hours, hours after 90 days (HK_SERIES_KEEP_MINUTE_MS, HK_SERIES_KEEP_HOUR_MS).
--@ fragment PURGE_SERIES
{PURGE_STEP(d10; @outbox_series; SELECT id FROM @outbox_series WHERE step_ms = 60000 AND at_ms <= {AGO(172800000)}
  ORDER BY step_ms, at_ms LIMIT {LEFT(l9)}; l9; l10)}{PURGE_STEP(d11; @outbox_series; SELECT id FROM @outbox_series
  WHERE step_ms = 3600000 AND at_ms <= {AGO(7776000000)} ORDER BY step_ms, at_ms LIMIT {LEFT(l10)}; l10; l11)}

-- The audit by itself, since what it is told of letters must stand in it before: $1 how many, $2 now, $3 age. A chain is cut only
-- at its beginning: up to the first row that is to stay, whatever the clock did. Rows about earlier purges go with others behind
-- them, or when there is nothing else among so many: else each purge would leave one for the next.
--@ fragment PURGE_AUDIT
{PURGE_TURN}, old AS MATERIALIZED (SELECT f.id, f.act, bool_and(f.at_ms <= {AGO($3)}) OVER (ORDER BY f.id) AS old
  FROM (SELECT id, act, at_ms FROM @outbox_audit ORDER BY id LIMIT {LEFT(turn)}) f),
d AS (DELETE FROM @outbox_audit WHERE id = ANY (ARRAY(SELECT o.id FROM old o WHERE o.old AND ((SELECT count(*)
  FROM old p WHERE p.old) = {LEFT(turn)} OR o.id <= (SELECT max(p.id) FROM old p WHERE p.old
  AND p.act <> 'purge-audit')))) RETURNING 1) SELECT count(*)
FROM d

-- ---- the relay's own ----
-- NOW is $1 unless said otherwise: Unix ms, NULL = the server's. Shards are a set of bits.
--
-- What keeps the relays apart: every exchange locks its lane's row first (RENEW), and so holds it until it ends. Whoever
-- takes a lane over must have locked that row, and deletes it with its manifests. So a statement behind RENEW that finds a
-- manifest of its own lane may rely on it; and RENEW fails, and all behind it with it, when the lane is gone.
--@ fragment NOW_BY(p)
coalesce({p}::bigint, {SERVER_MS})

--@ fragment NOW
{NOW_BY($1)}

--@ fragment TIME(ms)
to_timestamp(({ms}::bigint) / 1000.0)

-- Unix ms of a timestamptz, never early; 0 for NULL and both infinities.
--@ fragment MS(time)
CASE WHEN isfinite({time}) THEN ceil(date_part('epoch', {time}) * 1000 - 0.001)::bigint ELSE 0 END

--@ fragment OURS(set; t)
(({set}::bigint >> {t}.shard) & 1) = 1

--@ fragment IN_RUN
o.id BETWEEN k.lo AND k.hi AND ((k.bits >> (o.id - k.lo)::integer) & 1) = 1

-- Rows as applications write them: NULL stands for the default.
--@ fragment MESSAGE_ID(t)
coalesce({t}.message_id, 'outbox-' || {t}.id)

--@ fragment DESTINATION(t)
coalesce({t}.destination, '')

-- Of a value that may be a gigabyte octet_length reads no more than a header.
--@ fragment LINE(c)
CASE WHEN octet_length({c}) <= 8192 THEN {c} END

--@ fragment TEXT(t; c)
CASE WHEN {t}.hk_f THEN {c} END

-- What indexes hold in place of a destination and a key (the schema says why). Rows of names that begin with the same 63
-- characters are shown together: nobody is called so, and each row says its own name.
--@ fragment NAME(t)
left({t}.destination, 63) COLLATE "C"

--@ fragment THIS(name)
left({name}::text, 63)

--@ fragment KEY_HASH(key)
hashtextextended({key}, 0)

--@ fragment OF_KEY(t; key)
{KEY_HASH({t}.message_key)} = {KEY_HASH({key})} AND {t}.message_key = {key}

-- What a message is made of, wherever it lies, without id, message_id, destination and its first times.
--@ fragment REST(t)
{t}.event_type, {t}.message_key, {t}.headers, {t}.content_type, {t}.encoding, {t}.correlation_id, {t}.traceparent,
{t}.idempotency_key, {t}.expires_at, {t}.policy, {t}.max_attempts, {t}.payload

-- The same of a row that leaves outbox.
--@ fragment KEPT(t; ids; encodings; payloads)
{t}.event_type, {t}.message_key, {t}.headers, {t}.content_type, {KEPT_ENCODING({t}; {ids}; {encodings})}, {t}.correlation_id,
{t}.traceparent, {t}.idempotency_key, {t}.expires_at, {t}.policy, {t}.max_attempts, {KEPT_PAYLOAD({t}; {ids}; {payloads})}

--@ fragment REST_NAMES
event_type, message_key, headers, content_type, encoding, correlation_id, traceparent, idempotency_key, expires_at,
policy, max_attempts, payload

-- For how long the destination has been paused, in all, up to `now`.
--@ fragment PAUSED_UP_TO(now; destination)
coalesce((SELECT p.paused_total_ms + CASE WHEN p.paused THEN greatest(0, {now} - p.since_ms) ELSE 0 END
  FROM @outbox_destination p WHERE p.name = {destination}), 0)

--@ fragment PAUSED_TOTAL(destination)
{PAUSED_UP_TO({NOW}; {destination})}

-- ---- heads: row.c has the order of columns ----
--@ fragment HEAD(t)
{t}.id, {LINE({t}.destination)}, {LINE({t}.event_type)}, {LINE({t}.message_key)}, {t}.not_before, {t}.expires_at,
{t}.max_attempts, {LINE({t}.encoding)}, octet_length({t}.payload), greatest(octet_length({t}.destination),
  octet_length({t}.event_type), octet_length({t}.message_key), octet_length({t}.encoding)) > 8192

-- Outbox scans: $1 shards, $2 horizon, $3 after which id, $4 how many. A number that is in the future even for the server
-- came with a dump from elsewhere: its row is there to stay.
--@ fragment SEEN
(pg_visible_in_snapshot(o.xid, $2::pg_snapshot) OR NOT pg_visible_in_snapshot(o.xid, pg_current_snapshot()))

--@ fragment FRESH(where; id; order)
SELECT {HEAD(o)}
FROM @outbox o
WHERE {where} {id} > $3::bigint AND {OURS($1; o)} AND {SEEN}
ORDER BY {order} LIMIT $4::bigint

-- What names the destination ($5), and what names none: only the engine knows where a route leads. Three short index scans
-- and a merge, since one scan over all would have to sort everything that is there. `id`: as the schema says.
--@ fragment NAMED(key; id; order)
SELECT *
FROM (({FRESH({NAME(o)} = {THIS($5)} {key} AND; {id}; {id})}) UNION ALL ({FRESH({NAME(o)} = ''
  AND $5::text <> '' {key} AND; {id}; {id})}) UNION ALL ({FRESH({NAME(o)} IS NULL {key}
  AND; {id}; {NAME(o)}, {order} {id})})) u
ORDER BY id LIMIT $4::bigint

-- Our columns of outbox, and no others: an application may have added one that is called as something of ours is here.
--@ fragment COLUMNS(t)
{t}.id, {t}.shard, {t}.max_attempts, {t}.not_before, {t}.expires_at, {t}.created_at, {t}.message_id,
{t}.destination, {t}.event_type, {t}.message_key, {t}.headers, {t}.content_type, {t}.encoding, {t}.correlation_id,
{t}.traceparent, {t}.idempotency_key, {t}.policy, {t}.payload

-- Small messages whole: the rest behind the head. A row that is not small gives NULLs there, but for its shard.
--@ fragment SMALL
greatest(octet_length(destination), octet_length(message_id), octet_length(event_type), octet_length(message_key),
  octet_length(headers), octet_length(content_type), octet_length(encoding), octet_length(correlation_id),
  octet_length(traceparent), octet_length(idempotency_key), octet_length(policy)) <= 8192
  AND octet_length(payload) <= 1024 AS small

--@ fragment IF_SMALL(t; c)
CASE WHEN {t}.small THEN {c} END

--@ fragment BODY(t)
{t}.small, {t}.shard, {IF_SMALL({t}; {MESSAGE_ID({t})})}, {IF_SMALL({t}; {t}.headers)}, {IF_SMALL({t};
  {t}.content_type)}, {IF_SMALL({t}; {t}.correlation_id)}, {IF_SMALL({t}; {t}.traceparent)}, {IF_SMALL({t};
  {t}.idempotency_key)}, {IF_SMALL({t}; {t}.policy)}, {t}.created_at, {IF_SMALL({t}; {t}.payload)}

--@ fragment FRESH_ROWS(where; id; order)
SELECT {COLUMNS(o)}, {SMALL}
FROM @outbox o
WHERE {where} {id} > $3::bigint AND {OURS($1; o)} AND {SEEN}
ORDER BY {order} LIMIT $4::bigint

--@ fragment NAMED_ROWS
SELECT *
FROM (({FRESH_ROWS({NAME(o)} = {THIS($5)} AND; (o.id + 0); (o.id + 0))}) UNION ALL ({FRESH_ROWS({NAME(o)} = ''
  AND $5::text <> '' AND; (o.id + 0); (o.id + 0))}) UNION ALL ({FRESH_ROWS({NAME(o)} IS NULL
  AND; (o.id + 0); {NAME(o)}, (o.id + 0))})) u
ORDER BY id LIMIT $4::bigint

--@ fragment WHOLE_HEADS(rows)
SELECT {HEAD(o)}, {BODY(o)} FROM ({rows}) o ORDER BY o.id

-- Retry scans: $1 now, $2 shards, $3 after which id, $4 how many, $5 destination, $6 after which due time. One row of NULLs
-- when there is none: the time is wanted all the same.
--@ fragment DUE_HEADS(from)
SELECT h.*, n.now
FROM (SELECT {NOW} AS now OFFSET 0) n LEFT JOIN LATERAL (SELECT {HEAD(r)}, r.crashes, r.due_ms, {KEY_FIRST} AS first
  FROM {from} r.claim IS NULL AND r.due_ms <= n.now AND (r.due_ms, r.id) > ($6::bigint, $3::bigint)
  AND {OURS($2; r)} ORDER BY r.due_ms, r.id LIMIT $4::bigint) h ON true

--@ fragment NOT_STUCK_SENT
AND (SELECT 1 FROM @outbox_stuck s WHERE s.source = 1 AND s.row_id = k.id AND s.delivered) IS NULL

--@ fragment KEY_FIRST
r.message_key IS NULL OR r.message_key = '' OR NOT EXISTS (SELECT 1 FROM @outbox_retry k
  WHERE {NAME(k)} = {NAME(r)} AND k.destination = r.destination AND {OF_KEY(k; r.message_key)}
  AND NOT k.deferred AND (k.id < r.id OR r.deferred) {NOT_STUCK_SENT})

-- Walks from name to name through the index, so that the cost is in destinations, not in rows. $1 shards.
--@ fragment WAITING
FROM @outbox_retry r WHERE r.claim IS NULL

--@ fragment DESTS
WITH RECURSIVE d (name) AS ((SELECT left(r.destination, 63) {WAITING} ORDER BY {NAME(r)} LIMIT 1) UNION ALL
  SELECT (SELECT left(r.destination, 63) {WAITING} AND {NAME(r)} > d.name ORDER BY {NAME(r)} LIMIT 1) FROM d
  WHERE d.name IS NOT NULL) SELECT d.name, (SELECT r.due_ms {WAITING} AND {NAME(r)} = d.name AND $1::bigint <> 0
  AND {OURS($1; r)} ORDER BY r.due_ms, r.id LIMIT 1), coalesce(p.paused, false), coalesce(p.open_until_ms, 0)
FROM d LEFT JOIN @outbox_destination p ON p.name = d.name
WHERE d.name IS NOT NULL
UNION ALL SELECT p.name, NULL, p.paused, p.open_until_ms
FROM @outbox_destination p
WHERE (p.paused OR p.open_until_ms <> 0) AND (SELECT 1 {WAITING} AND {NAME(r)} = p.name ORDER BY r.due_ms
  LIMIT 1) IS NULL

-- ---- what relays may do together ----
-- $1 now, $2 destinations, $3 1 for the leave to probe, $4 rates and $5 bursts in millionths, $6 how many are wanted. A bucket
-- that nobody drew from yet is full. Gives the quota's place, tokens, and when there is another.
--
-- Who draws locks the bucket's newest row, replaces it, and so has the bucket until COMMIT. Nobody waits for it: what another
-- relay has locked, or has replaced since this statement began, gives no tokens this time, so that settles in the same
-- exchange do not wait either. Only relays can lock a row; the advisory lock that was here could be held by anybody.
-- Relays of schema version 4 still take that one, and count turns by one: counting by two, nobody ever writes a turn that they
-- write. Only where both draw in the same moment is one draw forgotten.
-- Two that make a bucket's first row meet at its key: the second waits for the first, in one order, and gets nothing.
--@ fragment QUOTA_AGAIN_MS
10

--@ fragment QUOTAS
WITH t AS MATERIALIZED (SELECT coalesce($1::bigint, {CLOCK_MS}) AS now),
q AS MATERIALIZED (SELECT u.n, u.name, u.probe, u.want, u.rate / 1e6::float8 AS rate, o.turn, k.at, t.now,
  least(u.burst / 1e6::float8, coalesce(k.tokens + greatest(t.now - k.at_ms, 0) * (u.rate / 1e6::float8) / 1000,
  u.burst / 1e6::float8)) AS had FROM t CROSS JOIN unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[],
  $6::bigint[]) WITH ORDINALITY AS u (name, probe, rate, burst, want, n) LEFT JOIN LATERAL (SELECT b.turn
  FROM @outbox_bucket b WHERE b.destination = u.name AND b.probe = u.probe ORDER BY b.turn DESC
  LIMIT 1) o ON true LEFT JOIN LATERAL (SELECT b.ctid AS at, b.tokens, b.at_ms FROM @outbox_bucket b
  WHERE b.destination = u.name AND b.probe = u.probe AND b.turn = o.turn FOR UPDATE SKIP LOCKED) k ON true),
z AS (DELETE FROM @outbox_bucket b WHERE b.ctid = ANY (ARRAY(SELECT q.at FROM q))),
made AS (INSERT INTO @outbox_bucket (destination, probe, turn, tokens, at_ms)
  SELECT q.name, q.probe, coalesce(q.turn, 0) + 2, q.had - least(q.want, floor(q.had)), q.now FROM q
  WHERE q.turn IS NULL OR q.at IS NOT NULL ORDER BY q.name, q.probe ON CONFLICT DO NOTHING
  RETURNING destination, probe) SELECT q.n, CASE WHEN m.probe IS NULL THEN 0
  ELSE least(q.want, floor(q.had))::bigint END, q.now + CASE WHEN m.probe IS NULL THEN {QUOTA_AGAIN_MS}
  ELSE ceil(greatest(1 - (q.had - least(q.want, floor(q.had))), 0) * 1000 / q.rate)::bigint END
FROM q LEFT JOIN made m ON m.destination = q.name AND m.probe = q.probe

-- ---- seats: src/core/engine_seats.c ----
-- $1 now, $2 lane, $3 destinations, $4 how many there are of each, $5 how many the lane keeps, $6 how many it wants. Gives the place of
-- what was asked, was it written, how many the lane has, and with how many it is to go on (NULL: nobody waits). The book is taken as a
-- bucket is, above: what another relay has in hand is not written this time.
--
-- o: what the others have, by the book; a lane that is gone has nothing, and one that has not asked for a second does not wait.
-- d: what each needs to have its fair share, and who has waited longer than the one that asks. The rest may be had by anybody.
--@ fragment SEATS_FRESH_MS
1000

--@ fragment SEATS
WITH t AS MATERIALIZED (SELECT coalesce($1::bigint, {CLOCK_MS}) AS now),
q AS MATERIALIZED (SELECT u.n, u.name, u.most, u.hold, u.want, w.turn, k.at, k.lanes, k.held, k.wants, k.since_ms,
  k.asked_ms, t.now FROM t CROSS JOIN unnest($3::text[], $4::bigint[], $5::bigint[], $6::bigint[])
  WITH ORDINALITY AS u (name, most, hold, want, n) LEFT JOIN LATERAL (SELECT b.turn FROM @outbox_seats b
  WHERE b.destination = u.name ORDER BY b.turn DESC LIMIT 1) w ON true LEFT JOIN LATERAL (SELECT b.ctid AS at, b.*
  FROM @outbox_seats b WHERE b.destination = u.name AND b.turn = w.turn FOR UPDATE SKIP LOCKED) k ON true),
e AS MATERIALIZED (SELECT q.n, x.lane, x.held, x.want, x.since, x.asked, CASE
  WHEN q.now - x.asked < {SEATS_FRESH_MS} THEN greatest(x.want, x.held) ELSE x.held END AS needs
  FROM q CROSS JOIN LATERAL unnest(q.lanes, q.held, q.wants, q.since_ms, q.asked_ms) AS x (lane, held, want, since,
  asked) WHERE EXISTS (SELECT 1 FROM @outbox_relay r WHERE r.lane = x.lane)),
o AS MATERIALIZED (SELECT q.n, coalesce(sum(e.held), 0)::bigint AS taken,
  (count(*) FILTER (WHERE e.needs > 0) + CASE WHEN q.want > 0 THEN 1 ELSE 0 END)::bigint AS sharers,
  coalesce((SELECT CASE WHEN m.want > m.held THEN m.since END FROM e m WHERE m.n = q.n
  AND m.lane = $2::bigint), q.now) AS since FROM q LEFT JOIN e ON e.n = q.n AND e.lane <> $2::bigint
  GROUP BY q.n, q.want, q.now),
s AS MATERIALIZED (SELECT o.*, CASE WHEN o.sharers > 0 THEN greatest(q.most / o.sharers, 1) ELSE 1 END AS share,
  q.most - o.taken - q.hold AS free FROM o JOIN q ON q.n = o.n),
d AS MATERIALIZED (SELECT s.n, coalesce(sum(least(e.needs, s.share) - e.held), 0)::bigint AS needed,
  coalesce(sum(least(e.needs, s.share) - e.held) FILTER (WHERE (e.since, e.lane) < (s.since, $2::bigint)), 0)::bigint
  AS ahead FROM s LEFT JOIN e ON e.n = s.n AND e.lane <> $2::bigint AND least(e.needs, s.share) > e.held
  GROUP BY s.n),
g AS MATERIALIZED (SELECT q.n, q.name, q.turn, q.at, q.want, q.now, s.since, s.share, s.sharers, q.most, q.hold,
  greatest(0, least(q.want - q.hold, greatest(least(s.share - q.hold, s.free - d.ahead), s.free - d.needed))) AS more,
  s.free, d.needed FROM q JOIN s ON s.n = q.n JOIN d ON d.n = q.n),
b AS MATERIALIZED (SELECT g.n, array_agg(x.lane ORDER BY x.lane) AS lanes, array_agg(x.held ORDER BY x.lane) AS held,
  array_agg(x.want ORDER BY x.lane) AS wants, array_agg(x.since ORDER BY x.lane) AS since_ms,
  array_agg(x.asked ORDER BY x.lane) AS asked_ms FROM g CROSS JOIN LATERAL (SELECT e.lane, e.held, e.want, e.since,
  e.asked FROM e WHERE e.n = g.n AND e.lane <> $2::bigint UNION ALL SELECT $2::bigint, g.hold + g.more, g.want, CASE
  WHEN g.more > 0 THEN g.now ELSE g.since END, g.now) x GROUP BY g.n),
z AS (DELETE FROM @outbox_seats b WHERE b.ctid = ANY (ARRAY(SELECT q.at FROM q))),
made AS (INSERT INTO @outbox_seats (destination, turn, lanes, held, wants, since_ms, asked_ms)
  SELECT g.name, coalesce(g.turn, 0) + 1, b.lanes, b.held, b.wants, b.since_ms, b.asked_ms FROM g JOIN b ON b.n = g.n
  WHERE g.turn IS NULL OR g.at IS NOT NULL ORDER BY g.name ON CONFLICT DO NOTHING RETURNING destination)
SELECT g.n, m.destination IS NOT NULL, g.hold + g.more, CASE WHEN g.needed > g.free - g.more THEN greatest(CASE
  WHEN g.most >= g.sharers THEN g.share ELSE 0 END, CASE WHEN g.more > 0 THEN g.hold + g.more ELSE 0 END) END
FROM g LEFT JOIN made m ON m.destination = g.name

--@ fragment CIRCUITS
INSERT INTO @outbox_destination (name, paused, since_ms, open_until_ms)
SELECT u.name, false, {NOW}, u.until
FROM unnest($2::text[], $3::bigint[]) AS u (name, until)
ORDER BY u.name ON CONFLICT (name) DO UPDATE SET open_until_ms = excluded.open_until_ms

-- ---- whole messages: row.c has the order of columns ----
-- $1 now, $2 shards, $3 to $5 runs of ids in outbox, $6 those of them wanted without payload, $7 the longest payload,
-- $8 lane; $9 ids in outbox_retry, $10 those of them without payload.
--@ fragment WHOLE(t; bare; most)
{t}.id, {t}.shard, {TEXT({t}; {DESTINATION({t})})} AS destination, {TEXT({t}; {MESSAGE_ID({t})})} AS message_id,
{TEXT({t}; {t}.event_type)} AS event_type, {TEXT({t}; {t}.message_key)} AS message_key, {TEXT({t}; {t}.headers)} AS
headers, {TEXT({t}; {t}.content_type)} AS content_type, {TEXT({t}; {t}.encoding)} AS encoding, {TEXT({t};
  {t}.correlation_id)} AS correlation_id, {TEXT({t}; {t}.traceparent)} AS traceparent, {TEXT({t};
  {t}.idempotency_key)} AS idempotency_key, {TEXT({t}; {t}.policy)} AS policy, {t}.not_before, {t}.expires_at,
{t}.created_at, {t}.max_attempts, CASE WHEN octet_length({t}.payload) <= {most}::bigint
  AND {t}.id <> ALL ({bare}::bigint[]) THEN {t}.payload END AS payload, CASE
  WHEN {t}.id <> ALL ({bare}::bigint[]) THEN octet_length({t}.payload) END AS payload_bytes, NOT {t}.hk_f AS huge

-- Asked once for each row: OFFSET keeps the planner from asking it for each column.
--@ fragment FITS
greatest(octet_length(destination), octet_length(message_id), octet_length(event_type), octet_length(message_key),
  octet_length(headers), octet_length(content_type), octet_length(encoding), octet_length(correlation_id),
  octet_length(traceparent), octet_length(idempotency_key), octet_length(policy)) <= 262144 AS hk_f

--@ fragment RUNS(lo; hi; bits)
unnest({lo}::bigint[], {hi}::bigint[], {bits}::bigint[]) AS k (lo, hi, bits) JOIN @outbox o ON {IN_RUN}

--@ fragment PICKED
SELECT {WHOLE(o; $6; $7)} FROM (SELECT o.*, {FITS} FROM {RUNS($3; $4; $5)} AND {OURS($2; o)} OFFSET 0) o

--@ fragment PICKED_RETRIES
r AS MATERIALIZED (SELECT {WHOLE(r; $10; $7)}, 1 AS source, r.crashes, r.life, r.letter_id, r.first_failed_ms,
  r.attempts, r.charged, r.failed_transient, r.failed_rate_limit, r.failed_auth, r.failed_permanent,
  r.failed_unknown, r.prev_wait_ms, r.first_attempt_ms, CASE WHEN r.first_attempt_ms = 0 THEN 0
  ELSE greatest(0, {PAUSED_TOTAL(r.destination)} - r.paused_mark_ms) END AS paused_ms, r.last_cause,
  left(r.last_error, 40) AS last_error FROM (SELECT *, {FITS}
  FROM @outbox_retry r WHERE r.id = ANY ($9::bigint[]) AND coalesce(r.claim, 0) = 0 AND {OURS($2; r)} FOR
  UPDATE OF r SKIP LOCKED) r)

--@ fragment NO_PAST
0, 0, 0, 0::bigint, 0::bigint, 0, 0, 0, 0, 0, 0, 0, 0::bigint, 0::bigint, 0::bigint, NULL::text, NULL::text

-- ---- settles: $1 now, $2 id, $3 manifest, $4 lane, $5 destination as the relay resolved it ----
--@ fragment STANDS
EXISTS (SELECT 1 FROM @outbox_claim c WHERE c.claim = $3::bigint AND c.lane = $4::bigint)

--@ fragment RESOLVED(d; row)
CASE WHEN {d} = '' THEN {row} ELSE {d} END

--@ fragment FRESH_NAME
{RESOLVED($5::text; {DESTINATION(d)})}

--@ fragment RETRY_NAME
{RESOLVED($5::text; d.destination)}

--@ fragment ON_RETRY
WHERE r.id = $2::bigint AND r.claim = $3::bigint AND {STANDS}

--@ fragment GONE
d AS (DELETE FROM @outbox o WHERE o.id = $2::bigint AND {STANDS} RETURNING o.*)

--@ fragment GONE_RETRY
d AS (DELETE FROM @outbox_retry r {ON_RETRY} RETURNING r.*)

-- A row that is still there when it should have gone, or what it should have become is not: a trigger, a rule or row-level security
-- made one of our statements do nothing. When the text is no number that is an error, which undoes the transaction; `words` of
-- hk_pg_stays. The count keeps the planner from trying it out.
--@ fragment STAYS
('{=HK_PG_STAYS}, ' || (SELECT count(*) FROM d))::bigint

--@ fragment UNLESS_STAYS(row; made)
SELECT CASE WHEN (SELECT count(*) FROM d) = 0 AND EXISTS (SELECT 1 FROM {row} AND {STANDS}) THEN {STAYS}
  WHEN {made} THEN {STAYS} END

--@ fragment FRESH_ROW
@outbox o WHERE o.id = $2::bigint

--@ fragment RETRY_ROW
@outbox_retry r WHERE r.id = $2::bigint AND coalesce(r.claim, $3::bigint) = $3::bigint

--@ fragment MADE(n)
(SELECT count(*) FROM i) <> (SELECT count(*) FROM d) * {n}

-- $1 id, $2 manifest, $3 lane
--@ fragment RELEASED
r.id = $1::bigint AND r.claim = $2::bigint AND EXISTS (SELECT 1 FROM @outbox_claim c WHERE c.claim = $2::bigint
  AND c.lane = $3::bigint)

-- Many at once: $1 to $3 runs of ids, $4 the manifest of each, $5 each manifest once, $6 lane, $7 manifests that are done
-- with. Gives the manifests that stand, as FENCE does.
--@ fragment ALL_SENT
DELETE FROM @outbox o USING unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]

--@ fragment STANDING
f AS MATERIALIZED (SELECT c.claim FROM @outbox_claim c WHERE c.claim = ANY ($5::bigint[]) AND c.lane = $6::bigint)

--@ fragment OF_STANDING
k.claim = ANY (ARRAY(SELECT f.claim FROM f)) AND {IN_RUN}

--@ fragment OVER
z AS (DELETE FROM @outbox_claim c WHERE c.claim = ANY ($7::bigint[]) AND c.lane = $6::bigint)

-- $`n` how many rows there are to go
--@ fragment UNLESS_SOME_STAY(n)
SELECT f.claim, CASE WHEN (SELECT count(*) FROM d) <> {n}::bigint AND EXISTS (SELECT 1
  FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) AS k (lo, hi, bits, claim) CROSS
  JOIN LATERAL (SELECT o.id FROM @outbox o WHERE {IN_RUN} OFFSET 0) o WHERE k.claim = ANY (ARRAY(SELECT f.claim
  FROM f)) AND NOT EXISTS (SELECT 1 FROM d WHERE d.id = o.id)) THEN {STAYS} END
FROM f

--@ fragment TO_SENT
INSERT INTO @outbox_sent (original_outbox_id, message_id, destination, event_type, message_key, correlation_id,
  attempts, status, life, created_at, sent_ms) SELECT

--@ fragment RESOLVE_LETTER
l AS (UPDATE @dead_letters l SET status = 'resolved', resolved_at = {TIME({NOW})}, resolution = 'delivered'
  WHERE l.id = (SELECT d.letter_id FROM d) AND l.status || '' = 'retrying')

--@ fragment PAST
attempts, charged, failed_transient, failed_rate_limit, failed_auth, failed_permanent, failed_unknown, prev_wait_ms,
first_attempt_ms, paused_mark_ms, first_failed_ms, last_attempt_ms, last_cause, last_error, possibly_delivered

--@ fragment TO_RETRY
INSERT INTO @outbox_retry (original_outbox_id, message_id, destination, due_ms, deferred, crashes, life, letter_id,
  not_before, created_at, {PAST}, {REST_NAMES}) SELECT

-- The mark is set with the first attempt.
--@ fragment MARK
CASE WHEN r.first_attempt_ms = 0 THEN {PAUSED_TOTAL({RESOLVED($5::text; r.destination)})} ELSE r.paused_mark_ms END

--@ fragment LETTER_NAMES
original_outbox_id, message_id, destination, message_created_at, crashes, life, {REST_NAMES}, reason_code,
error_message, error_detail, attempts, first_failed_at, last_failed_at, last_attempt_at, created_at, {LETTER_CAUSE},
possibly_delivered

--@ fragment LETTER_CAUSE
failure_class, fault, fingerprint, fingerprint_made, fingerprint_old

--@ fragment CAUSE
$12, $13, $14::text, '{=HK_FINGERPRINT_MADE}' || $14::text, NULL

--@ fragment FIRST_FAILED
{TIME(CASE WHEN $10::bigint > 0 THEN $10 ELSE {NOW} END)}

--@ fragment TO_ATTEMPT
INSERT INTO @outbox_attempts (message_id, destination, life, n, started_ms, duration_ms, settled_ms, status, class,
  cause, error, request_headers, response_headers, response_body, address, possibly_delivered)
SELECT

--@ fragment ATTEMPT
$6, $7, $8, {NOW}, $9, $10, $11, $12, $13, $14, $15, $16, $17

-- ---- take-over: $1 the lane that expired, $2 the lane that takes, $3 now ----
-- The first of the statements marks the row if it got it, and the others ask for the mark: all of them are on their way
-- before the first is answered.
--@ fragment TAKEN
EXISTS (SELECT 1 FROM @outbox_relay l WHERE l.lane = $1::bigint AND l.until_ms = -$2::bigint)

-- Each leaves a line in the history, if $4; gives how many there were, by destination.
--@ fragment ORPHANED
a AS ({TO_ATTEMPT} q.message_id, q.destination, q.life, 0, {NOW_BY($3)}, 0, {NOW_BY($3)}, 0, 'transient',
  'RELAY_CRASHED', '{=HK_RELAY_DIED}', NULL, NULL, NULL, NULL, true FROM q WHERE $4::boolean)
SELECT q.destination, count(*)
FROM q
GROUP BY q.destination

--@ fragment OF_LANE
SELECT c.claim FROM @outbox_claim c WHERE c.lane = $1::bigint

-- ---- rows that cannot be taken away: stuck.h ----
-- A retry row that is stuck keeps the number of a manifest that is gone, and so is nobody's. Not by NOT EXISTS: as a join it would
-- tempt the planner to walk through the other table.
--@ fragment NOT_STUCK(source; t)
AND (SELECT 1 FROM @outbox_stuck s WHERE s.source = {source} AND s.row_id = {t}.id) IS NULL

--@ fragment TO_STUCK(values)
INSERT INTO @outbox_stuck AS s (source, row_id, shard, since_ms, delivered, possibly_delivered, message_id,
  destination, message_key, error, attempts, reason_code, last_error)
SELECT {values}

--@ fragment STUCK_ID(t)
coalesce({LINE({t}.message_id)}, 'outbox-' || {t}.id)

--@ fragment STUCK_KEY(t)
{LINE({t}.message_key)}

-- As a settle, with $6 was it delivered, $7 may it have been, $8 why, $9 attempts, $10 reason, $11 last error
--@ fragment STICK(source; name; row)
{TO_STUCK({source}, d.id, d.shard, {NOW}, $6::boolean, $7::boolean, {STUCK_ID(d)}, {name}, {STUCK_KEY(d)}, $8::text,
  $9::bigint, $10::text, $11::text)}
FROM {row} AND {STANDS} ON CONFLICT (source, row_id) DO UPDATE SET since_ms = excluded.since_ms, delivered =
excluded.delivered, possibly_delivered = s.possibly_delivered OR excluded.possibly_delivered, error =
excluded.error, attempts = excluded.attempts, reason_code = excluded.reason_code, last_error = excluded.last_error

-- keep.c
--@ statement NOW
SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint

--@ statement PAUSE
WITH put AS (INSERT INTO @outbox_destination AS d (name, paused, actor, reason, since_ms)
  VALUES ($1, $2, $3, $4, coalesce($5::bigint, {SERVER_MS})) ON CONFLICT (name) DO UPDATE
  SET paused_total_ms = d.paused_total_ms + CASE WHEN d.paused THEN greatest(0, excluded.since_ms - d.since_ms)
  ELSE 0 END, paused = excluded.paused, actor = excluded.actor, reason = excluded.reason, since_ms =
  excluded.since_ms, open_until_ms = CASE WHEN excluded.paused THEN d.open_until_ms ELSE 0 END
  RETURNING d.since_ms) INSERT INTO @outbox_audit (at_ms, actor, act, destination, reason)
SELECT put.since_ms, coalesce($3, ''), CASE WHEN $2 THEN 'pause' ELSE 'resume' END, $1, coalesce($4, '')
FROM put

--@ statement PURGE
{PURGE_TURN}{PURGE_SENT}{PURGE_ATTEMPTS}{PURGE_CANCELLED}{PURGE_RESOLVED}{PURGE_DISCARDED}{PURGE_DEAD}{PURGE_DEAD_TOLD}{PURGE_REDRIVE}{PURGE_CALLS}{PURGE_JOBS}{PURGE_SERIES}
SELECT turn.n - l11.n, (SELECT count(*) FROM d6)
FROM turn, l11

--@ statement PURGE_AUDIT
{PURGE_AUDIT}

--@ statement SENT_IS_DAILY
SELECT c.relkind = 'p' FROM pg_class c WHERE c.oid = '@outbox_sent'::regclass

-- $1 now, $2 age or NULL = for ever, $3 how many rows at the most
-- only when it is
--@ statement SENT_DAYS
SELECT @outbox_sent_days($1::bigint, $2::bigint, $3::bigint)

-- lane.c
-- ---- lanes ----
--@ statement CHECK_OUTBOX
SELECT x.attnum < i.attnum AND q.seqcache = 1 AND pg_get_expr(e.adbin, e.adrelid) = 'pg_current_xact_id()'
FROM pg_attribute x JOIN pg_attribute i ON i.attrelid = x.attrelid AND i.attname = 'id'
  JOIN pg_attrdef e ON e.adrelid = x.attrelid AND e.adnum = x.attnum
  JOIN pg_sequence q ON q.seqrelid = '@outbox_id_seq'::regclass
WHERE x.attrelid = '@outbox'::regclass AND x.attname = 'xid'

--@ statement CHECK_SHAPE
{SHAPE_FOUND}

--@ statement LANES
SELECT lane, until_ms <= {NOW}, exchange, {NOW} FROM @outbox_relay ORDER BY lane

--@ statement SHARDS_OF_ALL
SELECT shard, lane FROM @outbox_shard

--@ statement ADD_LANE
INSERT INTO @outbox_relay (name, boot, version, started_ms, until_ms, lease_ms)
  VALUES ($2, $3, $4, {NOW}, {NOW} + $5::bigint, $5::bigint) RETURNING lane, started_ms

-- $1 boot, $2 the lane that we know: the others were never used, and what shards they took are free with that
--@ statement DROP_LOST_LANES
DELETE
FROM @outbox_relay r
WHERE r.boot = $1 AND r.lane <> $2::bigint AND (SELECT m.number FROM @outbox_exchange m
  WHERE m.lane = r.lane ORDER BY m.number DESC LIMIT 1) IS NULL

--@ statement HOLD_LANE
SELECT exchange FROM @outbox_relay WHERE lane = $1::bigint FOR UPDATE

--@ statement IS_OUR_LANE
SELECT 1 FROM @outbox_relay WHERE lane = $1::bigint AND boot = $2::text

-- One that belongs to a lane which is not there is free, too: nobody else would ever free it.
--@ statement TAKE_SHARDS
UPDATE @outbox_shard SET lane = $1::bigint
WHERE shard = ANY (ARRAY(SELECT s.shard FROM @outbox_shard s WHERE s.lane IS NULL OR NOT EXISTS (SELECT 1
  FROM @outbox_relay r WHERE r.lane = s.lane) ORDER BY s.shard LIMIT $2::bigint FOR UPDATE OF s SKIP LOCKED))
  AND EXISTS (SELECT 1 FROM @outbox_relay r WHERE r.lane = $1::bigint)
RETURNING shard

--@ statement FREE_SHARDS
UPDATE @outbox_shard s SET lane = NULL WHERE s.lane = $1::bigint AND {OURS($2; s)}

-- then the five that follow, in one transaction
--@ statement TAKE_OVER
UPDATE @outbox_relay SET until_ms = -$2::bigint
WHERE lane = (SELECT r.lane FROM @outbox_relay r WHERE r.lane = $1::bigint AND r.until_ms <= {NOW_BY($3)} FOR
  UPDATE SKIP LOCKED)
RETURNING name, (SELECT min(c.claimed_ms) FROM @outbox_claim c WHERE c.lane = $1::bigint)

--@ statement ORPHANS
WITH d AS (DELETE FROM @outbox o WHERE o.id = ANY (ARRAY(SELECT unnest(c.ids) FROM @outbox_claim c
  WHERE c.lane = $1::bigint AND {TAKEN})) {NOT_STUCK(0; o)} RETURNING {COLUMNS(o)}, {MS(o.not_before)} AS
  earliest_ms, {NOW_BY($3)} AS now),
q AS (INSERT INTO @outbox_retry (original_outbox_id, message_id, destination, due_ms, deferred, crashes,
  possibly_delivered, not_before, created_at, paused_mark_ms, {REST_NAMES})
  SELECT d.id, {MESSAGE_ID(d)}, {DESTINATION(d)}, greatest(d.now, d.earliest_ms), d.earliest_ms > d.now, 1, true,
  d.not_before, d.created_at, {PAUSED_UP_TO(d.now; {DESTINATION(d)})}, {KEPT(d; $5; $6; $7)} FROM d
  RETURNING message_id, destination, life), {ORPHANED}

-- $5 why
-- in its place, where some of them cannot go
--@ statement STICK_ORPHANS
WITH q AS ({TO_STUCK(0, d.id, d.shard, {NOW_BY($3)}, false, true, {STUCK_ID(d)}, {DESTINATION(d)}, {STUCK_KEY(d)},
  $5::text, 0, NULL, NULL)} FROM @outbox d WHERE d.id = ANY (ARRAY(SELECT unnest(c.ids) FROM @outbox_claim c
  WHERE c.lane = $1::bigint AND {TAKEN})) ON CONFLICT DO NOTHING
  RETURNING message_id, destination, 1 AS life), {ORPHANED}

-- Whose own time has not come was claimed by a clock that was wrong.
--@ statement ORPHAN_RETRIES
WITH q AS (UPDATE @outbox_retry r SET claim = NULL, crashes = crashes + 1, possibly_delivered = true, deferred =
  r.life = 1 AND coalesce({MS(r.not_before)} > {NOW_BY($3)}, false), due_ms = greatest({NOW_BY($3)}, CASE r.life
  WHEN 1 THEN {MS(r.not_before)} END) WHERE claim = ANY (ARRAY({OF_LANE} AND {TAKEN})) {NOT_STUCK(1; r)}
  RETURNING r.message_id, r.destination, r.life), {ORPHANED}

--@ statement DROP_ORPHANED_CLAIMS
DELETE FROM @outbox_claim WHERE lane = $1::bigint AND {TAKEN}

--@ statement FREE_ORPHANED_SHARDS
UPDATE @outbox_shard SET lane = NULL WHERE lane = $1::bigint AND {TAKEN}

--@ statement DROP_ORPHANED_LANE
WITH l AS (DELETE FROM @outbox_relay WHERE lane = $1::bigint AND until_ms = -$2::bigint RETURNING lane)
DELETE
FROM @outbox_exchange
WHERE lane = (SELECT l.lane FROM l)

-- $1 lane, $2 now. Who has locked an expired lane's row, waits for its client, and is ours to end.
--@ statement EVICT
SELECT pg_terminate_backend(a.pid)
FROM @outbox_relay r JOIN pg_locks k ON k.locktype = 'transactionid' AND k.transactionid = r.xmax AND k.granted
  JOIN pg_stat_activity a ON a.pid = k.pid
WHERE r.lane = $1::bigint AND r.until_ms <= {NOW_BY($2)} AND a.wait_event = 'ClientRead'
  AND a.state_change < clock_timestamp() - interval '1 second' AND pg_has_role(a.usesysid, 'MEMBER')

--@ statement FREE_RETRIES
UPDATE @outbox_retry r SET claim = NULL WHERE claim = ANY (ARRAY({OF_LANE})) {NOT_STUCK(1; r)}

--@ statement DROP_LANE_CLAIMS
DELETE FROM @outbox_claim WHERE lane = $1::bigint

--@ statement DROP_LANE
WITH l AS (DELETE FROM @outbox_relay WHERE lane = $1::bigint) DELETE FROM @outbox_exchange WHERE lane = $1::bigint

-- scan.c
-- ---- reading ----
-- The flag of notify.c: true when it is armed, be it by us; NULL when it is not there. $1 how many milliseconds since it
-- was armed last are too few.
--@ statement ARM
SELECT CASE WHEN v.last % 1000000 = 0 THEN true WHEN abs(v.last / 1000000 - v.now) < $1::bigint THEN false
  ELSE setval(v.wake, v.now * 1000000) IS NOT NULL END
FROM (SELECT w.wake, pg_sequence_last_value(w.wake), floor(extract(epoch
  FROM clock_timestamp()) * 1000)::bigint FROM (SELECT to_regclass('@outbox_wake')) AS w (wake)) AS v (wake, last,
  now)

-- $2 the highest id that was read. The last column: a row above that one and above the sequence, which somebody numbered
-- himself (OVERRIDING SYSTEM VALUE, a subscription, a dump whose sequence was left behind). It is sought from below: at
-- the other end of the index all that was delivered and not vacuumed yet would be walked over.
-- max() may walk
--@ statement SNAPSHOT
SELECT pg_current_snapshot()::text, CASE WHEN s.is_called THEN s.last_value END, {NOW}, (SELECT a.id
  FROM @outbox_audit a ORDER BY a.id DESC LIMIT 1), (SELECT o.id FROM @outbox o
  WHERE o.id > greatest($2::bigint, CASE WHEN s.is_called THEN s.last_value END) ORDER BY o.id LIMIT 1)
FROM @outbox_id_seq s

--@ statement TAKE_NUMBER
SELECT pg_current_xact_id()

--@ statement DESTS
{DESTS}

--@ columns H of SCAN, SCAN_LATE, SCAN_DEST, SCAN_KEY, SCAN_RETRY, SCAN_RETRY_KEY, SCAN_FORCED
ID, DESTINATION, EVENT_TYPE, KEY, NOT_BEFORE, EXPIRES, MAX_ATTEMPTS, ENCODING, PAYLOAD_BYTES, HUGE, CRASHES, DUE,
FIRST, NOW

-- Heads, in binary; the same order of columns everywhere.
--@ statement SCAN
{FRESH(; o.id; o.id)}

--@ statement SCAN_LATE
{FRESH(o.id <= $5::bigint AND NOT pg_visible_in_snapshot(o.xid, $6::pg_snapshot) AND; o.id; o.id)}

--@ statement SCAN_DEST
{NAMED(; (o.id + 0); )}

--@ statement SCAN_KEY
{NAMED(AND {OF_KEY(o; $6::text)}; (o.id - 0); {KEY_HASH(o.message_key)},)}

--@ statement SCAN_RETRY
{DUE_HEADS(@outbox_retry r WHERE {NAME(r)} = {THIS($5)} AND)}

-- Those that people have forced, of any destination, when they are due or not. $5 after which due time.
--@ statement SCAN_FORCED
SELECT h.*, n.now
FROM (SELECT {NOW} AS now OFFSET 0) n LEFT JOIN LATERAL (SELECT {HEAD(r)}, r.crashes, r.due_ms, {KEY_FIRST} AS first
  FROM @outbox_retry r WHERE r.forced AND r.claim IS NULL AND (r.due_ms, r.id) > ($5::bigint, $3::bigint)
  AND {OURS($2; r)} ORDER BY r.due_ms, r.id LIMIT $4::bigint) h ON true

-- By key first: in the order of due times a key's few rows would be sought among all of the destination's.
--@ statement SCAN_RETRY_KEY
{DUE_HEADS((SELECT * FROM @outbox_retry k WHERE {NAME(k)} = {THIS($5)} AND {OF_KEY(k; $7::text)}
  AND k.claim IS NULL ORDER BY (k.id + 0) LIMIT 1000) r WHERE)}

--@ columns W of SCAN_WHOLE, SCAN_DEST_WHOLE
ID, DESTINATION, EVENT_TYPE, KEY, NOT_BEFORE, EXPIRES, MAX_ATTEMPTS, ENCODING, PAYLOAD_BYTES, HUGE, SMALL, SHARD,
MESSAGE_ID, HEADERS, CONTENT_TYPE, CORRELATION_ID, TRACEPARENT, IDEMPOTENCY_KEY, POLICY, CREATED, PAYLOAD

-- The same with the rest of the message behind it, where that is small.
--@ statement SCAN_WHOLE
{WHOLE_HEADS({FRESH_ROWS(; o.id; o.id)})}

--@ statement SCAN_DEST_WHOLE
{WHOLE_HEADS({NAMED_ROWS})}

-- A key over 256 KiB, or for a longer name, holds nobody: no message that has it can be sent, and it may be a gigabyte.
--@ fragment HOLDS(t)
octet_length({t}.message_key) <= 262144 AND octet_length({t}.destination) <= 262144

--@ statement HELD_RETRY
SELECT r.destination, r.message_key, r.id
FROM @outbox_retry r
WHERE r.message_key IS NOT NULL AND r.message_key <> '' AND {HOLDS(r)} AND NOT r.deferred AND {OURS($1; r)}

-- so that only their index will do
--@ statement HELD_DEAD
SELECT d.destination, d.message_key
FROM @dead_letters d
WHERE d.message_key IS NOT NULL AND d.message_key <> '' AND {HOLDS(d)}
  AND (d.status = 'failed' OR d.sending_at IS NOT NULL)
  AND (($1::bigint >> (hashtextextended(d.message_key, 0) & 63)::integer) & 1) = 1
ORDER BY {NAME(d)}, {KEY_HASH(d.message_key)}

--@ statement HELD_STUCK
SELECT s.destination, s.message_key, s.source, s.delivered, s.row_id
FROM @outbox_stuck s
WHERE s.message_key IS NOT NULL AND s.message_key <> '' AND {OURS($1; s)}

-- exchange.c
-- ---- exchange ----
--@ statement PATIENCE
SELECT set_config('statement_timeout', $1::bigint::text, true)

-- $2 lane, $3 lease, $4 the number of this exchange: one that was given up, but comes through late, is too low. When no
-- row is there the text is no number: an error, which undoes the transaction and says why in the server's log.
-- $5 the boot of who has acquired it, $6 its last exchange that was committed ('' and 0: not known): a standby that took
-- over may have forgotten either, and gives the numbers of its lanes, claims and rows a second time.
-- Of exchanges that follow each other closely only one in a while writes the lease, with that while on top: a lock leaves
-- no version of the row behind.
--@ statement RENEW
WITH r AS MATERIALIZED (SELECT {NOW} + $3::bigint - until_ms AS short, least($3::bigint / 16, 2000) AS more
  FROM @outbox_relay WHERE lane = $2::bigint AND exchange < $4::bigint AND $5::text IN ('', boot)
  AND ($6::bigint = 0 OR EXISTS (SELECT FROM @outbox_exchange x WHERE x.lane = $2::bigint
  AND x.number = $6::bigint)) FOR NO KEY UPDATE),
u AS (UPDATE @outbox_relay SET until_ms = until_ms + (SELECT CASE WHEN r.short < r.more THEN r.short + r.more
  ELSE r.short END FROM r) WHERE lane = $2::bigint AND (SELECT r.short FROM r) > 0)
SELECT CASE count(*) WHEN 1 THEN {NOW} ELSE ('hikyaku: lane ' || $2::bigint || ' was taken over: ' ||
  count(*))::bigint END
FROM r

-- $1 lane, $2 this exchange, $3 the one before, of which nobody asks any more
--@ statement MARK
WITH z AS (DELETE FROM @outbox_exchange WHERE lane = $1::bigint AND number = $3::bigint)
INSERT INTO @outbox_exchange (lane, number) VALUES ($1::bigint, $2::bigint)

--@ statement IS_MARKED
SELECT 1 FROM @outbox_exchange WHERE lane = $1::bigint AND number = $2::bigint

-- $1 manifests, $2 lane, $3 those that are done with
--@ statement FENCE
WITH z AS (DELETE FROM @outbox_claim c WHERE c.claim = ANY ($3::bigint[]) AND c.lane = $2::bigint)
SELECT c.claim
FROM @outbox_claim c
WHERE c.claim = ANY ($1::bigint[]) AND c.lane = $2::bigint

--@ statement LOAD_CLAIMS
SELECT c.claim, 0, o.id, o.shard
FROM @outbox_claim c CROSS JOIN LATERAL unnest(c.ids) AS u (id) CROSS JOIN LATERAL (SELECT o.id, o.shard
  FROM @outbox o WHERE o.id = u.id OFFSET 0) o
WHERE c.claim = ANY ($1::bigint[]) AND c.lane = $2::bigint
UNION ALL SELECT c.claim, 1, r.id, r.shard
FROM @outbox_claim c CROSS JOIN LATERAL (SELECT r.id, r.shard FROM @outbox_retry r
  WHERE r.claim = c.claim OFFSET 0) r
WHERE c.claim = ANY ($1::bigint[]) AND c.lane = $2::bigint

--@ statement SET_CLAIM_IDS
UPDATE @outbox_claim SET ids = $3::bigint[] WHERE claim = $1::bigint AND lane = $2::bigint

-- $1 now, $2 shards, $3 to $5 runs of ids, $6 lane, $7 how many: which there were is told when it is not all of them
-- rows of outbox alone; then READ gives them, unless they are at hand
--@ statement CLAIM
INSERT INTO @outbox_claim (lane, claimed_ms, ids) SELECT $6::bigint, {NOW}, x.ids
FROM (SELECT array_agg(o.id) AS ids FROM {RUNS($3; $4; $5)} AND {OURS($2; o)}) x
WHERE x.ids IS NOT NULL
RETURNING claim, CASE WHEN cardinality(ids) <> $7::bigint THEN ids END

--@ columns M of READ, CLAIM_BOTH
CLAIM, ID, SHARD, DESTINATION, MESSAGE_ID, EVENT_TYPE, KEY, HEADERS, CONTENT_TYPE, ENCODING, CORRELATION_ID,
TRACEPARENT, IDEMPOTENCY_KEY, POLICY, NOT_BEFORE, EXPIRES, CREATED, MAX_ATTEMPTS, PAYLOAD, PAYLOAD_BYTES, HUGE,
SOURCE, CRASHES, LIFE, LETTER, FIRST_FAILED, ATTEMPTS, CHARGED, FAILED, FAILED_RATE_LIMIT, FAILED_AUTH,
FAILED_PERMANENT, FAILED_UNKNOWN, PREV_WAIT, FIRST_ATTEMPT, PAUSED, LAST_CAUSE, LAST_ERROR

-- Messages, in binary; the same order of columns.
-- $1 shards, $2 to $4 runs of ids, $5 those wanted without payload, $6 the longest payload. Behind CLAIM, and with the
-- lane's row in hand: no operator takes a row away in between.
--@ statement READ
SELECT 0::bigint, {WHOLE(o; $5; $6)} FROM (SELECT o.*, {FITS} FROM {RUNS($2; $3; $4)} AND {OURS($1; o)} OFFSET 0) o

-- The manifest is written from the very rows that are read.
--@ statement CLAIM_BOTH
WITH o AS MATERIALIZED ({PICKED}), {PICKED_RETRIES}, m AS (INSERT INTO @outbox_claim (lane, claimed_ms, ids)
  SELECT $8::bigint, {NOW}, ARRAY(SELECT o.id FROM o) WHERE EXISTS (SELECT 1 FROM o) OR EXISTS (SELECT 1
  FROM r) RETURNING claim),
u AS (UPDATE @outbox_retry t SET claim = (SELECT m.claim FROM m) WHERE t.id = ANY (ARRAY(SELECT r.id
  FROM r))) SELECT m.claim, o.*, {NO_PAST}
FROM m CROSS JOIN o
UNION ALL SELECT m.claim, r.*
FROM m CROSS JOIN r

--@ statement BURN_EXCHANGE
UPDATE @outbox_relay SET exchange = $2::bigint WHERE lane = $1::bigint AND exchange < $2::bigint

--@ statement FREE_STRAY_RETRIES
UPDATE @outbox_retry SET claim = NULL WHERE claim = ANY (ARRAY({OF_LANE} AND c.claim <> ALL ($2::bigint[])))

--@ statement DROP_STRAY_CLAIMS
DELETE FROM @outbox_claim WHERE lane = $1::bigint AND claim <> ALL ($2::bigint[])

-- quota.c
--@ statement QUOTAS
{QUOTAS}

--@ statement CIRCUITS
{CIRCUITS}

--@ statement SEATS
{SEATS}

-- settle.c
-- ---- settles ----
--@ statement SENT
WITH {STANDING}, d AS ({ALL_SENT}) AS k (lo, hi, bits, claim)
WHERE {OF_STANDING}
RETURNING o.id), {OVER} {UNLESS_SOME_STAY($8)}

-- $8 of each run how it was sent, counted from 1: $9 destinations, $10 attempts, $11 statuses; $12 now, $13 as $8 above
--@ statement SENT_KEPT
WITH {STANDING}, d AS ({ALL_SENT}, $8::bigint[]) AS k (lo, hi, bits, claim, how)
WHERE {OF_STANDING}
RETURNING o.id, o.message_id, o.destination, o.event_type, o.message_key, o.correlation_id, o.created_at,
k.how::integer), {OVER}, s AS ({TO_SENT} d.id, {MESSAGE_ID(d)}, {RESOLVED(($9::text[])[d.how]; {DESTINATION(d)})},
d.event_type, d.message_key, d.correlation_id, ($10::bigint[])[d.how], ($11::bigint[])[d.how], 1, d.created_at,
{NOW_BY($12)}
FROM d) {UNLESS_SOME_STAY($13)}

--@ statement SENT_RETRY
WITH {GONE_RETRY}, {RESOLVE_LETTER} {UNLESS_STAYS({RETRY_ROW}; false)}

-- $6 attempts, $7 status
--@ statement SENT_RETRY_KEPT
WITH {GONE_RETRY}, {RESOLVE_LETTER}, s AS ({TO_SENT} d.original_outbox_id, d.message_id, {RETRY_NAME}, d.event_type,
  d.message_key, d.correlation_id, $6, $7, d.life, d.created_at, {NOW} FROM d) {UNLESS_STAYS({RETRY_ROW}; false)}

-- $1 ids
--@ statement UNSEALED
{UNSEALED(o.id = ANY ($1::bigint[]))}

-- $1 lane
--@ statement UNSEALED_OF_LANE
{UNSEALED(o.id = ANY (ARRAY(SELECT unnest(c.ids) FROM @outbox_claim c WHERE c.lane = $1::bigint)))}

-- $5 destinations, $6 due (NULL = now), $7 is it only deferred?, $8 … what it has been through, $22 … sealed payloads (rest.c)
--@ statement MOVE
WITH {GONE}, i AS ({TO_RETRY} d.id, {MESSAGE_ID(d)}, t.destination, greatest(t.due_ms, t.earliest_ms), $7::boolean
  OR t.earliest_ms > greatest(t.due_ms, {NOW}), 0, 1, 0, d.not_before, d.created_at, $8, $9, $10, $11, $12, $13, $14, $15, $16,
  {PAUSED_TOTAL(t.destination)}, $17, $18, $19, $20, $21, {KEPT(d; $22; $23; $24)} FROM d CROSS
  JOIN unnest($5::text[]) AS u (name) CROSS JOIN LATERAL (SELECT {RESOLVED(u.name; {DESTINATION(d)})} AS
  destination, coalesce($6::bigint, {NOW}) AS due_ms, {MS(d.not_before)} AS earliest_ms) t
  RETURNING 1) {UNLESS_STAYS({FRESH_ROW}; {MADE(cardinality($5::text[]))})}

-- Due when the row was: the clock at hand may be wrong.
--@ statement COPY_RETRY
WITH {GONE_RETRY}, i AS ({TO_RETRY} d.original_outbox_id, d.message_id, u.name, CASE WHEN d.deferred THEN d.due_ms ELSE least(d.due_ms, {NOW}) END, d.deferred,
  d.crashes, d.life, d.letter_id, d.not_before, d.created_at, {PAST}, {REST(d)} FROM d CROSS
  JOIN unnest($5::text[]) AS u (name) RETURNING 1) {UNLESS_STAYS({RETRY_ROW}; {MADE(cardinality($5::text[]))})}

-- $6 due, $7 was an attempt made?, $8 … what it has been through. The wait and the attempt that it follows go by one clock, also where
-- the one before was made by a clock that was ahead.
--@ statement UPDATE_RETRY
WITH d AS (UPDATE @outbox_retry r SET claim = NULL, deferred = false, forced = false, destination = {RESOLVED($5::text;
  r.destination)}, due_ms = $6, crashes = CASE WHEN $7::boolean THEN 0 ELSE r.crashes
  END, ({PAST}) = ROW($8, $9, $10, $11, $12, $13, $14, $15, $16, {MARK}, $17, CASE WHEN $7 THEN $18 ELSE r.last_attempt_ms END,
  coalesce($19, r.last_cause), coalesce($20, r.last_error), r.possibly_delivered OR $21) {ON_RETRY}
  RETURNING r.id) {UNLESS_STAYS({RETRY_ROW}; false)}

-- $6 due, $7 … what it has been through: the same, without prev_wait_ms
--@ statement DEFER_RETRY
WITH d AS (UPDATE @outbox_retry r SET claim = NULL, destination = {RESOLVED($5::text; r.destination)}, due_ms = $6,
  attempts = greatest(r.attempts, $7), charged = greatest(r.charged, $8), failed_transient =
  greatest(r.failed_transient, $9), failed_rate_limit = greatest(r.failed_rate_limit, $10), failed_auth =
  greatest(r.failed_auth, $11), failed_permanent = greatest(r.failed_permanent, $12), failed_unknown =
  greatest(r.failed_unknown, $13), first_attempt_ms = greatest(r.first_attempt_ms, $14), paused_mark_ms = {MARK},
  first_failed_ms = greatest(r.first_failed_ms, $15), last_attempt_ms = greatest(r.last_attempt_ms, $16), last_cause
  = coalesce($17, r.last_cause), last_error = coalesce($18, r.last_error), possibly_delivered = r.possibly_delivered
  OR $19 {ON_RETRY} RETURNING r.id) {UNLESS_STAYS({RETRY_ROW}; false)}

--@ statement RELEASE_RETRY
WITH d AS (UPDATE @outbox_retry r SET claim = NULL WHERE {RELEASED} RETURNING r.id)
SELECT CASE WHEN (SELECT count(*) FROM d) = 0 AND EXISTS (SELECT 1 FROM @outbox_retry r
  WHERE {RELEASED}) THEN {STAYS} END

-- $6 reason, $7 error, $8 detail, $9 attempts, $10 first failed, $11 last attempt, $12 class, $13 fault,
-- $14 fingerprint, $15 may the attempt have arrived?
--@ statement BURY
WITH {GONE}, i AS (INSERT INTO @dead_letters ({LETTER_NAMES}) SELECT d.id, {MESSAGE_ID(d)}, {FRESH_NAME},
  d.created_at, 0, 1, {KEPT(d; $16; $17; $18)}, $6, $7, $8, $9, {FIRST_FAILED}, {TIME({NOW})}, {TIME($11)}, {TIME({NOW})}, {CAUSE},
  $15 FROM d RETURNING 1) {UNLESS_STAYS({FRESH_ROW}; {MADE(1)})}

-- A requeued message dies into the letter that it came from, unless somebody deleted that, or another of its fan-out
-- has died into it. What the row knows from
-- before stands where this settle brings nothing new.
--@ statement BURY_RETRY
WITH {GONE_RETRY}, l AS (UPDATE @dead_letters l SET status = 'failed', resolved_at = NULL, resolution = NULL,
  sending_at = NULL, destination = {RETRY_NAME}, reason_code = $6, error_message = coalesce($7, d.last_error),
  error_detail = $8, attempts = greatest($9, d.attempts), last_failed_at = {TIME({NOW})}, last_attempt_at =
  coalesce({TIME($11)}, l.last_attempt_at), life = greatest(l.life + 1, d.life), crashes = d.crashes,
  ({LETTER_CAUSE}) = ROW({CAUSE}), possibly_delivered = l.possibly_delivered OR d.possibly_delivered
  OR $15, payload = d.payload FROM d WHERE l.id = (SELECT d.letter_id FROM d) AND l.status <> 'failed'
  AND l.life < d.life RETURNING l.id),
i AS (INSERT INTO @dead_letters ({LETTER_NAMES}) SELECT d.original_outbox_id, d.message_id, {RETRY_NAME},
  d.created_at, d.crashes, d.life, {REST(d)}, $6, coalesce($7, d.last_error), $8, greatest($9, d.attempts),
  {FIRST_FAILED}, {TIME({NOW})}, coalesce({TIME($11)}, CASE WHEN d.last_attempt_ms > 0 THEN
  {TIME(d.last_attempt_ms)} END), {TIME({NOW})}, {CAUSE}, d.possibly_delivered OR $15 FROM d
  WHERE NOT EXISTS (SELECT 1 FROM l) RETURNING 1) {UNLESS_STAYS({RETRY_ROW}; {MADE(1 - (SELECT count(*) FROM l))})}

-- $6 … as the columns of outbox_attempts
--@ statement ADD_ATTEMPT
{TO_ATTEMPT} {MESSAGE_ID(d)}, {FRESH_NAME}, 1, {ATTEMPT} FROM @outbox d WHERE d.id = $2::bigint AND {STANDS}

--@ statement ADD_ATTEMPT_RETRY
{TO_ATTEMPT} d.message_id, {RETRY_NAME}, d.life, {ATTEMPT}
FROM @outbox_retry d
WHERE d.id = $2::bigint AND d.claim = $3::bigint AND {STANDS}

-- stuck.c
-- ---- rows that cannot be taken away ----
--@ statement STICK
{STICK(0; {FRESH_NAME}; @outbox d WHERE d.id = $2::bigint)}

--@ statement STICK_RETRY
{STICK(1; {RETRY_NAME}; @outbox_retry d WHERE d.id = $2::bigint)}

--@ statement STUCK
SELECT s.source, s.row_id FROM @outbox_stuck s

-- $1 0 or 1, $2 id, $3 shards
--@ statement STUCK_ONE
SELECT s.delivered, s.possibly_delivered, s.destination, s.attempts, s.reason_code, s.last_error, s.shard
FROM @outbox_stuck s
WHERE s.source = $1::smallint AND s.row_id = $2::bigint AND {OURS($3; s)}

-- $1 now, $2 id, $3 lane, $4 is it a row of outbox_retry? Gives it a manifest again, so that it can be settled.
--@ statement RECLAIM
WITH m AS (INSERT INTO @outbox_claim (lane, claimed_ms, ids) SELECT r.lane, {NOW}, CASE
  WHEN $4::boolean THEN '{}' ELSE ARRAY[$2::bigint] END FROM @outbox_relay r WHERE r.lane = $3::bigint
  RETURNING claim),
d AS (UPDATE @outbox_retry r SET claim = (SELECT m.claim FROM m) WHERE $4::boolean AND r.id = $2::bigint
  RETURNING r.id) SELECT CASE WHEN $4::boolean AND (SELECT count(*) FROM d) = 0 AND EXISTS (SELECT 1
  FROM @outbox_retry r WHERE r.id = $2::bigint) THEN {STAYS} ELSE m.claim END
FROM m

--@ statement UNSTICK
DELETE FROM @outbox_stuck s WHERE s.source = $1::smallint AND s.row_id = $2::bigint

-- What others have put on our tables that may keep a statement of ours from doing what it says.
--@ statement GUARDS
{GUARDS_FOUND}

-- ---- destinations that are kept here ----

--@ statement DEFINITIONS_VERSION
SELECT version FROM @outbox_definitions WHERE one

-- $1 what is known: only the texts of newer ones are read; $2 how many
--@ statement DEFINITIONS
SELECT name, version, seq, CASE WHEN seq > $1::bigint THEN definition END FROM @outbox_destination_def ORDER BY name LIMIT $2::bigint
