-- SPDX-License-Identifier: Apache-2.0
-- The statements of the operators' side of the PostgreSQL store.
--
--
-- A person waits for them, but nobody knows how large the tables are: whatever walks over rows has a LIMIT, lists go by
-- keyset, what is looked up by message_id is materialized before it is put in order (or the planner walks over the whole
-- primary key to save the sorting of three rows), and no text leaves the server without a bound. Plans are made for the very
-- parameters (plan_cache_mode), so that `$4 IS NULL OR …` costs nothing.
--
-- `$1::bigint`, where a statement begins with the time, is the time of tests; NULL is the server's own.

--@ fragment NOW
coalesce($1::bigint, (extract(epoch FROM now()) * 1000)::bigint)

-- A timestamptz as Unix ms; NULL for the infinities.
--@ fragment MS(t)
(CASE WHEN isfinite({t}) THEN (extract(epoch FROM {t}) * 1000)::bigint END)

-- As text that hk_parse_rfc3339 takes, or "infinity".
--@ fragment TIME_TEXT(t)
(CASE WHEN isfinite({t}) THEN to_char({t}, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') ELSE {t}::text END)

--@ fragment CUT(t)
left({t}, 16000)

--@ fragment SMALL(t)
left({t}, 4096)

-- What indexes hold of a destination, and figures go by: no relay knows a longer one.
--@ fragment NAME(t)
left({t}, 63)

--@ fragment IN_ORDER
COLLATE "C"

--@ fragment MESSAGE_ID
coalesce(t.message_id, 'outbox-' || t.id)

-- What manifests name: `held` by claim, `named` by row of outbox.
--@ fragment HELD
held AS MATERIALIZED (SELECT c.claim, c.claimed_ms, c.lane, r.name, r.until_ms, c.ids FROM @outbox_claim c
  JOIN @outbox_relay r ON r.lane = c.lane),
named AS MATERIALIZED (SELECT u.id, h.claimed_ms, h.lane, h.name, h.until_ms FROM held h CROSS
  JOIN unnest(h.ids) AS u (id) WHERE u.id IS NOT NULL)

-- ---- acts ----
-- $1 the time, $2 message_id, $3 destination or NULL, $4 ids of outbox: what is meant, and whether it may be changed.
--@ fragment TARGETS
WITH {HELD}, t AS MATERIALIZED (SELECT 1 AS place, t.id, coalesce(t.destination, '') AS destination,
  coalesce({MS(t.not_before)}, 0) AS due_ms, false AS tried, n.id IS NOT NULL AS in_flight, n.name AS relay,
  n.until_ms FROM @outbox t LEFT JOIN named n ON n.id = t.id WHERE t.id = ANY ($4::bigint[])
  AND {MESSAGE_ID} = $2 AND ($3::text IS NULL OR coalesce(t.destination, '') = $3) UNION ALL
  SELECT 0, t.id, t.destination, t.due_ms, t.attempts > 0 OR t.crashes > 0, t.claim IS NOT NULL, h.name, h.until_ms
  FROM @outbox_retry t LEFT JOIN held h ON h.claim = t.claim WHERE t.message_id = $2 AND ($3::text IS NULL
  OR t.destination = $3)),
ok AS MATERIALIZED (SELECT count(*) > 0 AND NOT bool_or(in_flight) AND count(DISTINCT destination) = 1 AS yes
  FROM t)

-- Place, id, destination, due_ms, tried, in_flight, relay, until_ms, rows changed.
--@ fragment OUTCOME(changed)
SELECT t.place, t.id, {SMALL(t.destination)}, t.due_ms, t.tried, t.in_flight, {SMALL(t.relay)}, t.until_ms,
{changed}
FROM t
ORDER BY t.place DESC, t.id

--@ fragment AUDIT(act; changed)
, audit AS (INSERT INTO @outbox_audit (at_ms, actor, act, message_id, destination, reason)
  SELECT {NOW}, $5, '{act}', $2, nullif(min(destination), ''), $6 FROM t WHERE {changed} > 0 HAVING count(*) > 0)

--@ fragment CANCELLED
(SELECT count(*) FROM kept)

--@ fragment HURRIED
((SELECT count(*) FROM moved) + (SELECT count(*) FROM hurried))

-- What a message has been through, but for its attempts.
--@ fragment PAST
charged, failed_transient, failed_rate_limit, failed_auth, failed_permanent, failed_unknown, prev_wait_ms,
first_attempt_ms, paused_mark_ms, first_failed_ms, last_attempt_ms, last_cause, last_error, crashes, life,
possibly_delivered

--@ fragment NO_PAST
0, 0, 0, 0, 0, 0, 0::bigint, 0::bigint, 0::bigint, 0::bigint, 0::bigint, NULL::text, NULL::text, 0, 1, false

--@ fragment WHEN
not_before, expires_at, max_attempts

-- What was deleted from outbox (`fresh`) and outbox_retry (`tried`) is kept. A letter that it was requeued from waits for an outcome that
-- will not come.
--@ fragment KEEP(actor; reason; ids; encodings; payloads)
kept AS (INSERT INTO @outbox_cancelled (original_outbox_id, attempts, message_id, destination, event_type, {META},
  created_at, payload, {WHEN}, fresh, due_ms, deferred, letter_id, {PAST}, actor, reason, cancelled_ms)
  SELECT y.*, {actor}, {reason}, {NOW} FROM (SELECT t.id, 0, {MESSAGE_ID}, coalesce(t.destination, ''), t.event_type,
  {KEPT_META({ids}; {encodings})}, created_at, {KEPT_PAYLOAD(t; {ids}; {payloads})}, {WHEN}, true, 0::bigint, false, 0::bigint,
  {NO_PAST} FROM fresh t UNION ALL
  SELECT original_outbox_id, attempts, message_id, destination, event_type, {META}, created_at, payload, {WHEN},
  false, due_ms, deferred, letter_id, {PAST} FROM tried) y RETURNING id, message_id, destination),
letters AS (UPDATE @dead_letters d SET status = 'discarded', resolution = 'cancelled', resolved_at =
  'epoch'::timestamptz + {NOW} * interval '1 ms' FROM tried WHERE tried.letter_id > 0 AND d.id = tried.letter_id
  AND d.status = 'retrying')

-- What an act on many leaves, of the messages `l`: as TRAIL of letters.sql. `id`: the act that it goes on with; 0 = it begins one; NULL =
-- it is about one message and has no list.
--@ fragment MESSAGES_TRAIL(act; l; actor; reason; id; filter)
a AS (INSERT INTO @outbox_audit (at_ms, actor, act, message_id, destination, reason, detail) SELECT {NOW}, {actor},
  '{act}', l.message_id, nullif(l.destination, ''), {reason}, NULL FROM {l} l WHERE ({id}) IS NULL UNION ALL
  SELECT {NOW}, {actor}, '{act}', NULL, NULL, {reason}, '{' || coalesce('"act":' || nullif(({id}), 0) || ',', '') ||
  '"messages":' || k.n || ',"list":"' || k.digest || '"' || CASE WHEN ({id}) = 0 THEN coalesce(',"filter":' ||
  to_json({filter}::text)::text, '') ELSE '' END || '}' FROM (SELECT count(*) AS n, {LIST_DIGEST(l; l.id; NULL::text;
  NULL::text; NULL::text)} AS digest FROM {l} l) k WHERE k.n > 0 AND ({id}) IS NOT NULL RETURNING id),
y AS (INSERT INTO @outbox_audit_messages (audit_id, cancelled_id, act_id, message_id, destination)
  SELECT a.id, l.id, coalesce(nullif(({id}), 0), a.id), l.message_id, l.destination FROM {l} l CROSS JOIN a
  WHERE ({id}) IS NOT NULL)

--@ fragment MESSAGES_ACT(id)
CASE WHEN ({id}) IS NOT NULL THEN coalesce(nullif(({id}), 0), (SELECT a.id FROM a)) END

-- Who must wait while an act looks at rows of these shards: see admin_act.c
--@ fragment LOCK_LANES_OF(shards)
SELECT r.lane
FROM @outbox_relay r
WHERE r.lane IN (SELECT s.lane FROM @outbox_shard s WHERE s.shard IN ({shards}))
ORDER BY r.lane FOR UPDATE

--@ fragment LOCK_SHARDS_OF(shards)
SELECT s.shard FROM @outbox_shard s WHERE s.shard IN ({shards}) ORDER BY s.shard FOR UPDATE

-- $1 ids of outbox, $2 message_id
--@ fragment SHARDS_OF_MESSAGE
SELECT o.shard FROM @outbox o WHERE o.id = ANY ($1::bigint[]) UNION ALL SELECT q.shard FROM @outbox_retry q
  WHERE q.message_id = $2

-- $1 ids of outbox, $2 ids of outbox_retry
--@ fragment SHARDS_OF_REFS
SELECT o.shard FROM @outbox o WHERE o.id = ANY ($1::bigint[]) UNION ALL SELECT q.shard FROM @outbox_retry q
  WHERE q.id = ANY ($2::bigint[])

-- $1 ids of outbox_cancelled, $2 destinations that keep order: as the schema reckons a key's shard
--@ fragment SHARDS_OF_KEYS
SELECT (hashtextextended(c.message_key, 0) & 63)::smallint FROM @outbox_cancelled c WHERE c.id = ANY ($1::bigint[])
  AND c.destination = ANY ($2::text[]) AND c.message_key <> ''

--@ fragment KEPT_META(ids; encodings)
message_key, headers, content_type, {KEPT_ENCODING(t; {ids}; {encodings})}, correlation_id, traceparent, idempotency_key, policy

--@ fragment META
message_key, headers, content_type, encoding, correlation_id, traceparent, idempotency_key, policy

-- ---- looking at messages ----
--@ fragment COMMON(message_id)
{CUT({message_id})}, {CUT(t.destination)}, {CUT(t.event_type)}, {CUT(t.message_key)}, {CUT(t.correlation_id)},

--@ fragment BRIEF_RETRY
t.id, t.original_outbox_id, {COMMON(t.message_id)} CASE WHEN t.claim IS NOT NULL THEN 2 WHEN t.attempts > 0
  OR t.crashes > 0 THEN 3 ELSE 1 END, t.attempts, t.crashes, t.life, {MS(t.created_at)}, t.due_ms,
t.last_attempt_ms, 0, {CUT(t.last_error)}, {CUT(t.last_cause)}, {CUT(h.name)}, h.claimed_ms, 0, NULL, NULL, NULL

--@ fragment BRIEF_OUTBOX
t.id, t.id, {COMMON({MESSAGE_ID})} CASE WHEN n.id IS NULL THEN 1 ELSE 2
  END, 0, 0, 1, {MS(t.created_at)}, {MS(t.not_before)}, 0, 0, NULL, NULL, {CUT(n.name)}, n.claimed_ms, 0, NULL,
NULL, NULL

--@ fragment BRIEF_DEAD
t.id, t.original_outbox_id, {COMMON(t.message_id)} CASE WHEN t.status = 'resolved' THEN 4
  WHEN t.status <> 'retrying' THEN 5 WHEN t.sending_at IS NULL THEN 3 ELSE 2
  END, t.attempts, t.crashes, t.life, {MS(t.message_created_at)}, 0, {MS(t.last_attempt_at)},
{MS(coalesce(t.resolved_at, t.last_failed_at))}, {CUT(t.error_message)}, {CUT(t.reason_code)}, NULL,
{MS(t.sending_at)}, 0, {CUT(t.status)}, NULL, NULL

--@ fragment BRIEF_CANCELLED
t.id, t.original_outbox_id, {COMMON(t.message_id)} 6, t.attempts, 0, 1, {MS(t.created_at)}, 0, 0, t.cancelled_ms,
NULL, NULL, NULL, 0, 0, NULL, {CUT(t.actor)}, {CUT(t.reason)}

--@ fragment BRIEF_SENT
t.id, t.original_outbox_id, {COMMON(t.message_id)} 4, t.attempts, 0, t.life, {MS(t.created_at)}, 0, 0, t.sent_ms,
NULL, NULL, NULL, 0, t.status, NULL, NULL, NULL

--@ fragment JOIN_RETRY
LEFT JOIN held h ON h.claim = t.claim

--@ fragment JOIN_OUTBOX
LEFT JOIN LATERAL (SELECT * FROM named x WHERE x.id = t.id LIMIT 1) n ON true

-- A letter that was requeued shows as its new life, and by itself, too, when that has another id; one that was resolved as
-- sent, unless outbox_sent says so itself.
--@ fragment AWAY_LETTER
(t.status = 'retrying' AND (t.sending_at IS NOT NULL OR t.requeued_as IS NOT NULL))

--@ fragment OPEN_LETTER
(t.status = 'failed' OR (t.status = 'discarded' AND t.resolution IS DISTINCT FROM 'cancelled'))

--@ fragment SENT_LETTER
(t.status = 'resolved' AND NOT EXISTS (SELECT 1 FROM @outbox_sent s WHERE s.message_id = t.message_id
  AND s.destination = t.destination))

-- $6 is the state; processing has statements of its own.
--@ fragment STATE_RETRY
($6::int = 0 OR ($6 = 1 AND t.claim IS NULL AND t.attempts <= 0 AND t.crashes <= 0) OR ($6 = 3
  AND t.claim IS NULL AND (t.attempts > 0 OR t.crashes > 0)))

--@ fragment STATE_OUTBOX
($6::int = 0 OR t.id NOT IN (SELECT n.id FROM named n))

--@ fragment STATE_DEAD
(($6::int <> 4 AND {OPEN_LETTER}) OR ($6 <> 5 AND {SENT_LETTER}) OR ($6 = 0 AND {AWAY_LETTER}))

--@ fragment STATE_ANY
$6::int >= 0

--@ fragment LEAST_ID
(-9223372036854775808)::bigint

-- Where a bounded look ends: this row is still looked at.
--@ fragment WINDOW_FLOOR(table; below; rows)
SELECT f.id FROM {table} f WHERE f.id < {below}::bigint ORDER BY f.id DESC OFFSET {rows}::bigint - 1 LIMIT 1

-- The same, or NULL at the table's end, and how many rows there are down to it.
--@ fragment WINDOW_LOOK(table)
SELECT CASE WHEN count(*) = $2::bigint THEN min(f.id) END, count(*)
FROM (SELECT x.id FROM {table} x WHERE x.id < $1::bigint ORDER BY x.id DESC LIMIT $2::bigint) f

-- Can it match at all (struct hk_letter_sieve; sql/letters.sql says more)? $13 and $14 of the value, $15 and $16 of the text, $17 a pattern
-- if the value stands alone.
--@ fragment LIST_HAS(column; param)
strpos({column} COLLATE "C", {param}) > 0

--@ fragment LIST_HAS_TEXT(column)
coalesce(strpos(lower({column} COLLATE "C"), $15) > 0, false) OR

--@ fragment LIST_BEGINNING(payload)
(CASE WHEN octet_length({payload}) > $11::bigint THEN left({payload}, $11::int) ELSE {payload} END)

--@ fragment LIST_SIEVED(message_id; error; encoding; payload)
(($13::text IS NULL AND $15::text IS NULL) OR lower({encoding} COLLATE "C") = 'base64' OR (($13::text IS NULL
  OR ({LIST_HAS({LIST_BEGINNING({payload})}; $13)} AND ($17::text IS NULL OR {LIST_BEGINNING({payload})} ~ $17))
  OR {LIST_HAS({LIST_BEGINNING({payload})}; $14::text)}) AND ($15::text IS NULL OR {LIST_HAS_TEXT({error})}
  {LIST_HAS_TEXT({message_id})} {LIST_HAS_TEXT(t.correlation_id)} {LIST_HAS_TEXT(t.event_type)}
  {LIST_HAS_TEXT(t.destination)} {LIST_HAS_TEXT({LIST_BEGINNING({payload})})}
  {LIST_HAS({LIST_BEGINNING({payload})}; $16::text)})))

-- $1 ids below this, $2 how many rows are looked at (NULL = all), $3 LIMIT, $4 destination, $5 event_type as LIKE has it, $6 state,
-- $7 correlation_id, $8 key, $9 since, $10 before, $11 bytes of each payload, $12 and of all; then the sieve. `of`: what a place
-- calls message_id, created_at, error, encoding and payload.
--@ fragment OF_RETRY(of)
{of(t.message_id; t.created_at; t.last_error; t.encoding; t.payload)}

--@ fragment OF_OUTBOX(of)
{of({MESSAGE_ID}; t.created_at; NULL::text; t.encoding; t.payload)}

--@ fragment OF_DEAD(of)
{of(t.message_id; t.message_created_at; t.error_message; t.encoding; t.payload)}

--@ fragment OF_CANCELLED(of)
{of(t.message_id; t.created_at; NULL::text; t.encoding; t.payload)}

--@ fragment OF_SENT(of)
{of(t.message_id; t.created_at; NULL::text; NULL::text; NULL::text)}

--@ fragment FITS_OF(message_id; created; error; encoding; payload)
($5::text IS NULL OR t.event_type LIKE $5) AND ($7::text IS NULL OR t.correlation_id = $7) AND ($8::text IS NULL
  OR t.message_key = $8) AND ($9::bigint IS NULL OR {created} >= 'epoch'::timestamptz + $9 * interval '1 ms')
  AND ($10::bigint IS NULL OR {created} < 'epoch'::timestamptz + $10 * interval '1 ms')
  AND {LIST_SIEVED({message_id}; {error}; {encoding}; {payload})}

--@ fragment BYTES_OF(message_id; created; error; encoding; payload)
least(coalesce(octet_length({payload}), 0), $11::bigint)

--@ fragment LOOKED_OF(message_id; created; error; encoding; payload)
{CUT({encoding})}, CASE WHEN $11::int > 0 THEN left({payload}, $11::int) END

-- The rows of `p`, as far as their payloads fit; the first comes however large its payload is.
--@ fragment LISTED(brief; rows; joined; place)
WITH {HELD}, p AS MATERIALIZED ({rows}),
b AS MATERIALIZED (SELECT s.id, sum(s.bytes) OVER (ORDER BY s.id DESC ROWS UNBOUNDED PRECEDING) - s.bytes AS before,
  count(*) OVER () AS found FROM (SELECT t.id, {place(BYTES_OF)} AS bytes FROM p t) s)
SELECT {brief}, b.found, {place(LOOKED_OF)}
FROM p t JOIN b ON b.id = t.id {joined}
WHERE b.before < $12::bigint
ORDER BY t.id DESC

--@ fragment LIST(brief; table; joined; state; null_destination; place)
{LISTED({brief}; SELECT t.* FROM {table} t WHERE t.id < $1::bigint AND t.id >= CASE WHEN $2::bigint IS NOT NULL
  THEN coalesce(({WINDOW_FLOOR({table}; $1; $2)}), {LEAST_ID}) ELSE {LEAST_ID} END AND {state}
  AND ($4::text IS NULL OR t.destination = $4 {null_destination}) AND {place(FITS_OF)}
  ORDER BY t.id DESC LIMIT $3::bigint; {joined}; {place})}

--@ fragment NULL_IS_EMPTY
OR ($4 = '' AND t.destination IS NULL)

-- What is in flight is few, whatever the tables hold: found from the manifests. The same parameters, without $2.
--@ fragment LIST_HELD(brief; rows; joined; null_destination; place)
{LISTED({brief}; SELECT t.* FROM ({rows}) t WHERE t.id < $1::bigint AND ($2::bigint IS NULL OR $2 > 0)
  AND ($4::text IS NULL OR t.destination = $4 {null_destination}) AND {place(FITS_OF)} AND $6::int >= 0
  ORDER BY t.id DESC LIMIT $3::bigint; {joined}; {place})}

--@ fragment DETAILS
, {CUT(t.headers)}, {CUT(t.content_type)}, {CUT(t.encoding)}, {CUT(t.traceparent)}, {CUT(t.idempotency_key)},
{CUT(t.policy)},

--@ fragment PAYLOAD
octet_length(t.payload), CASE WHEN $3::int > 0 THEN left(t.payload, $3) END

--@ fragment DETAILS_RETRY
{DETAILS} t.max_attempts, {TIME_TEXT(t.not_before)}, {TIME_TEXT(t.expires_at)}, NULL, t.first_failed_ms, {PAYLOAD}

--@ fragment DETAILS_OUTBOX
{DETAILS} t.max_attempts, {TIME_TEXT(t.not_before)}, {TIME_TEXT(t.expires_at)}, NULL, 0, {PAYLOAD}

--@ fragment DETAILS_DEAD
{DETAILS} t.max_attempts, NULL, {TIME_TEXT(t.expires_at)}, {CUT(t.error_detail)}, {MS(t.first_failed_at)}, {PAYLOAD}

--@ fragment DETAILS_CANCELLED
{DETAILS} NULL, NULL, NULL, NULL, 0, {PAYLOAD}

--@ fragment DETAILS_SENT
, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL

-- $1 message_id, $2 ids of outbox that may have it, $3 how much of the payload, $4 LIMIT
--@ fragment SHOW(columns; table; joined; which; state)
WITH {HELD}, m AS MATERIALIZED (SELECT t.* FROM {table} t WHERE {which} LIMIT 1000)
SELECT {columns}
FROM m t {joined}
WHERE {state} AND $2::bigint[] IS NOT NULL AND $3::int IS NOT NULL
ORDER BY t.id DESC LIMIT $4::bigint

--@ fragment BY_MESSAGE_ID
t.message_id = $1

-- ---- figures ----
--@ fragment EXACT_AND_ONE
100001

-- Some pages of a table, wherever they lie. pg_class.reltuples would be cheaper, but it is -1 until the first ANALYZE
-- and says of a queue, which fills and empties within seconds, how long it was some time ago; and this tells destinations
-- and states apart.
--@ fragment SIZE(table)
coalesce((SELECT sum(pg_relation_size(p.relid)) FROM pg_partition_tree('{table}'::regclass) p),
  pg_relation_size('{table}'::regclass))

--@ fragment SAMPLED_PAGES(table; alias; bytes_per_percent)
{table} {alias} TABLESAMPLE SYSTEM (least(100, {bytes_per_percent} / greatest(1, {SIZE({table})}))) REPEATABLE (1)

--@ fragment FACTOR_OF_PAGES(table; bytes)
greatest(1, {SIZE({table})} / {bytes})::numeric(20, 3)

-- 2,000 pages.
--@ fragment SAMPLED(table; alias)
{SAMPLED_PAGES({table}; {alias}; 1638400000.0)}

--@ fragment SAMPLE_FACTOR(table)
{FACTOR_OF_PAGES({table}; 16384000.0)}

-- 200, where each row costs a search or two.
--@ fragment SAMPLED_FEW(table; alias)
{SAMPLED_PAGES({table}; {alias}; 163840000.0)}

--@ fragment FACTOR_OF_FEW(table)
{FACTOR_OF_PAGES({table}; 1638400.0)}

-- $1 the time, $2 LIMIT of walks
--@ fragment NO_BUCKETS
, 0, 0, 0, 0, 0, 0, 0

--@ fragment GROUPED
GROUP BY GROUPING SETS ((), (s.d)) ORDER BY 1 DESC, 2 LIMIT 1002

-- For thousands of rows: the time is asked for once, and floating point is exact enough for ages (numeric took half of all).
--@ fragment ONCE
(SELECT {NOW})

--@ fragment FAST_MS(t)
(CASE WHEN isfinite({t}) THEN (date_part('epoch', {t}) * 1000)::bigint END)

-- $1 the time
--@ fragment FIGURES_OUTBOX(more; all; factor; source)
WITH {HELD}{more} SELECT grouping(s.d), s.d, {all}, count(*) FILTER (WHERE s.held), count(*) FILTER (WHERE NOT
  s.held AND s.from_ms > {ONCE}), count(*) FILTER (WHERE NOT s.held
  AND s.from_ms <= {ONCE}), 0, 0, min(nullif(s.created_ms, 0)), min(greatest(s.created_ms, s.from_ms, 1)) FILTER
(WHERE NOT s.held AND s.from_ms <= {ONCE}), count(*){NO_BUCKETS}, {factor}
FROM (SELECT {NAME(coalesce(t.destination, ''))} AS d, coalesce({FAST_MS(t.not_before)}, 0) AS from_ms,
  coalesce({FAST_MS(t.created_at)}, 0) AS created_ms, t.id IN (SELECT n.id FROM named n) AS held
  FROM {source}) s {GROUPED}

--@ fragment BUCKET(condition)
count(*) FILTER (WHERE s.attempts {condition})

--@ fragment FIGURES_RETRY(all; factor; source)
SELECT grouping(s.d), s.d, {all}, count(*) FILTER (WHERE s.held), count(*) FILTER (WHERE NOT s.held
  AND s.due_ms > {ONCE} AND NOT s.tried), count(*) FILTER (WHERE NOT s.held
  AND s.due_ms <= {ONCE}), count(*) FILTER (WHERE NOT s.held AND s.due_ms > {ONCE}
  AND s.tried), count(*) FILTER (WHERE NOT s.held AND s.tried), min(nullif(s.created_ms, 0)), min(greatest(s.due_ms,
  1)) FILTER (WHERE NOT s.held AND s.due_ms <= {ONCE}), {BUCKET(<= 0)}, {BUCKET(= 1)}, {BUCKET(= 2)}, {BUCKET(= 3)},
{BUCKET(= 4)}, {BUCKET(BETWEEN 5 AND 9)}, {BUCKET(BETWEEN 10 AND 19)}, {BUCKET(>= 20)}, {factor}
FROM (SELECT {NAME(t.destination)} AS d, t.claim IS NOT NULL AS held, t.due_ms, t.attempts, t.attempts > 0
  OR t.crashes > 0 AS tried, coalesce({FAST_MS(t.created_at)}, 0) AS created_ms FROM {source}) s {GROUPED}

--@ fragment FIGURES_DEAD(n; factor; source)
SELECT grouping(s.d), s.d, {n}, 0, 0, 0, 0, 0, 0, 0, 0{NO_BUCKETS}, {factor}
FROM (SELECT {NAME(t.destination)} AS d FROM {source}) s
WHERE $1::bigint IS NULL OR $1 IS NOT NULL {GROUPED}

-- How many there are is in an index, whose they are is not, but for letters themselves, which are wide: so these are read
-- only when they are few.
-- How many there are comes from an index; of many only the oldest are walked over, which are the first.
--@ fragment WALKED(table)
(SELECT * FROM {table} ORDER BY id LIMIT (SELECT CASE WHEN c.n < $2 THEN $2 ELSE 10000 END FROM c)) t

--@ fragment COUNTED(table)
c AS MATERIALIZED (SELECT count(*) AS n FROM (SELECT 1 FROM {table} LIMIT $2::bigint) x)

--@ fragment ALL_OR_SOME
CASE WHEN grouping(s.d) = 1 THEN (SELECT c.n FROM c) ELSE count(*) END

--@ fragment OPEN_LETTERS
WITH c AS MATERIALIZED (SELECT count(*) AS n FROM (SELECT 1 FROM @dead_letters WHERE status = 'failed'
  LIMIT $2::bigint) x)

-- From name to name through an index: the cost is in destinations, not in rows. Name, rows, of them tried, and the LIMIT
-- that counting them had: the more there are, the shorter. Few are counted twice. $1 names that are left out: it is known
-- that they have too many. $2 how many are counted in all.
--@ fragment COUNT_OF(table; where; tried; limit)
(SELECT count(*) AS n, count(*) FILTER (WHERE x.tried) AS tried FROM (SELECT {tried} AS tried FROM {table} t
  WHERE {where} AND {NAME(t.destination)} {IN_ORDER} = d.name LIMIT {limit}) x)

--@ fragment BY_NAME(table; where; tried)
WITH RECURSIVE w (name) AS (SELECT (SELECT {NAME(t.destination)} FROM {table} t WHERE {where}
  ORDER BY {NAME(t.destination)} {IN_ORDER} LIMIT 1) UNION ALL SELECT (SELECT {NAME(t.destination)}
  FROM {table} t WHERE {where} AND {NAME(t.destination)} {IN_ORDER} > w.name
  ORDER BY {NAME(t.destination)} {IN_ORDER} LIMIT 1) FROM w WHERE w.name IS NOT NULL),
few AS MATERIALIZED (SELECT d.name, c.n, c.tried FROM (SELECT * FROM w LIMIT 1002) d CROSS
  JOIN LATERAL {COUNT_OF({table}; {where}; {tried}; 1001)} c WHERE d.name IS NOT NULL
  AND d.name <> ALL ($1::text[])),
budget AS MATERIALIZED (SELECT greatest(1001, least({EXACT_AND_ONE}, $2::bigint / greatest(1, count(*)))) AS n
  FROM few WHERE few.n > 1000),
many AS MATERIALIZED (SELECT d.name, c.n, c.tried FROM few d CROSS
  JOIN LATERAL {COUNT_OF({table}; {where}; {tried}; (SELECT b.n FROM budget b))} c WHERE d.n > 1000)
SELECT {SMALL(few.name)}, few.n, few.tried, 1001
FROM few
WHERE few.n <= 1000
UNION ALL SELECT {SMALL(many.name)}, many.n, many.tried, b.n
FROM many CROSS JOIN budget b

-- $1 LIMIT
--@ fragment COUNT(table)
SELECT count(*) FROM (SELECT 1 FROM {table} LIMIT $1::bigint) x

--@ fragment ABOUT(table)
SELECT (count(*) * {SAMPLE_FACTOR({table})})::bigint FROM {SAMPLED({table}; t)}

-- ---- order by key ----
-- Of destination $2 (the time or an id is $1), through the indexes by key.
--@ fragment KEYED(t)
{NAME({t}.destination)} {IN_ORDER} = left($2::text, 63) AND {t}.destination = $2 AND {t}.message_key IS NOT NULL
  AND {t}.message_key <> ''

--@ fragment OF_KEY(t; key)
{NAME({t}.destination)} {IN_ORDER} = left($2::text, 63) AND {t}.destination = $2
  AND hashtextextended({t}.message_key, 0) = hashtextextended({key}, 0) AND {t}.message_key = {key}

-- The same of the row `of`.
--@ fragment SAME_KEY(t; of)
{NAME({t}.destination)} {IN_ORDER} = left({of}.destination, 63) AND {t}.destination = {of}.destination
  AND hashtextextended({t}.message_key, 0) = hashtextextended({of}.message_key, 0)
  AND {t}.message_key = {of}.message_key AND {t}.message_key IS NOT NULL

-- As the index has it.
--@ fragment HELD_LETTER(t)
({t}.status = 'failed' OR {t}.sending_at IS NOT NULL)

-- A retry row that holds the same key, before `r`.
--@ fragment BEFORE
EXISTS (SELECT 1 FROM @outbox_retry q WHERE {OF_KEY(q; r.message_key)} AND NOT q.deferred AND (q.id + 0) < r.id)

-- ---- who waits ----
-- The names of destinations as w, from name to name through an index.
--@ fragment WAITING_NAMES(w; table; where)
{w} (name) AS (SELECT (SELECT {NAME(t.destination)} FROM {table} t WHERE {where}
  ORDER BY {NAME(t.destination)} {IN_ORDER} LIMIT 1) UNION ALL SELECT (SELECT {NAME(t.destination)}
  FROM {table} t WHERE {where} AND {NAME(t.destination)} {IN_ORDER} > {w}.name
  ORDER BY {NAME(t.destination)} {IN_ORDER} LIMIT 1) FROM {w} WHERE {w}.name IS NOT NULL)

--@ fragment WAITING_COLUMNS
t.id, coalesce(t.destination, '') AS destination, t.event_type, t.message_key, coalesce({FAST_MS(t.created_at)}, 0)
AS created_ms,

-- Rows of outbox hold no key, as retry rows that were merely deferred.
--@ fragment WAITING_FRESH(which)
(SELECT {WAITING_COLUMNS} coalesce({FAST_MS(t.not_before)}, 0) AS from_ms, true AS deferred, true AS fresh
  FROM @outbox t WHERE {NAME(t.destination)} {which} ORDER BY {NAME(t.destination)} {IN_ORDER}, (t.id + 0)
  LIMIT $4::bigint) t

--@ fragment WAITING_AGAIN
(SELECT {WAITING_COLUMNS} t.due_ms, t.deferred, false FROM @outbox_retry t
  WHERE {NAME(t.destination)} {IN_ORDER} = n.name AND t.claim IS NULL AND t.due_ms <= {ONCE}
  ORDER BY t.due_ms, t.id LIMIT $4::bigint) t

--@ fragment WAITING_SOME(w)
(SELECT {w}.name FROM {w} WHERE {w}.name IS NOT NULL LIMIT $5::bigint) n CROSS JOIN LATERAL

-- $2 destinations that keep order, $3 those of them that dead letters do not block
--@ fragment WAITING_BEHIND
t.destination = ANY ($2::text[]) AND coalesce(t.message_key, '') <> '' AND (EXISTS (SELECT 1
  FROM @outbox_retry q WHERE {SAME_KEY(q; t)} AND NOT q.deferred AND (t.deferred OR (q.id + 0) < t.id))
  OR (t.deferred AND t.destination <> ALL ($3::text[]) AND EXISTS (SELECT 1 FROM @dead_letters d
  WHERE {SAME_KEY(d; t)} AND {HELD_LETTER(d)})))

-- ---- the table ----
-- Our functions that have, or had, their owner's rights, each with the table that its trigger hangs on.
--@ fragment OUR_FUNCTIONS
SELECT p.oid AS p, p.prosecdef AS definer, p.proacl AS acl, p.proowner AS owner, n.of
FROM (VALUES ('@outbox_figures_gone()', '@outbox_relay'), ('@outbox_audit_chain()', '@outbox_audit'),
  ('@outbox_wake_up()', '@outbox'), ('@outbox_sent_days(bigint, bigint, bigint)', NULL)) n (name, of)
  JOIN pg_proc p ON p.oid = to_regprocedure(n.name)

-- admin.c
-- $1 message_id, $2 destination, $3 event_type, $4 message_key, $5 headers, $6 content_type, $7 encoding,
-- $8 correlation_id, $9 traceparent, $10 idempotency_key, $11 not_before ms, $12 expires_at ms, $13 policy,
-- $14 max_attempts, $15 payload
--@ fragment TASK_NOW
(extract(epoch FROM now()) * 1000)::bigint

--@ statement ENQUEUE
INSERT INTO @outbox (message_id, destination, event_type, message_key, headers, content_type, encoding,
  correlation_id, traceparent, idempotency_key, not_before, expires_at, policy, max_attempts, payload)
  VALUES (coalesce($1, gen_random_uuid()::text), coalesce($2, ''), $3, $4, $5, $6, coalesce($7, 'utf8'), $8, $9,
  $10, 'epoch'::timestamptz + $11::bigint * interval '1 ms', 'epoch'::timestamptz + $12::bigint * interval '1 ms',
  $13, $14::int, $15::text)
RETURNING message_id

-- The same for a task: no row = its name is taken, or was given within the last hour. Names are forgotten after 32 days.
--@ statement ENQUEUE_TASK
WITH named AS (INSERT INTO @outbox_task AS t (destination, task, created_ms)
  VALUES ($2::text, $1::text, {TASK_NOW}) ON CONFLICT (destination, task) DO UPDATE SET created_ms = excluded.created_ms
  WHERE t.created_ms <= {TASK_NOW} - 3600000
    AND NOT EXISTS (SELECT 1 FROM @outbox_retry r WHERE r.message_id = $1 AND r.destination = $2)
    AND NOT EXISTS (SELECT 1 FROM @outbox o WHERE left(o.destination, 63) = left($2, 63) AND o.destination = $2
      AND o.message_id = $1)
    AND NOT EXISTS (SELECT 1 FROM @dead_letters d WHERE d.message_id = $1 AND d.destination = $2
      AND d.status IN ('failed', 'retrying'))
    AND NOT EXISTS (SELECT 1 FROM @outbox_sent s WHERE s.message_id = $1 AND s.destination = $2
      AND s.sent_ms > {TASK_NOW} - 3600000)
    AND NOT EXISTS (SELECT 1 FROM @outbox_cancelled c WHERE c.message_id = $1 AND c.destination = $2
      AND c.cancelled_ms > {TASK_NOW} - 3600000)
  RETURNING 1), old AS (DELETE FROM @outbox_task t USING (SELECT x.destination, x.task FROM @outbox_task x
    WHERE x.created_ms < {TASK_NOW} - 2764800000 ORDER BY x.created_ms LIMIT 100 FOR UPDATE SKIP LOCKED) x
  WHERE t.destination = x.destination AND t.task = x.task AND (t.destination, t.task) <> ($2::text, $1::text))
INSERT INTO @outbox (message_id, destination, event_type, message_key, headers, content_type, encoding,
  correlation_id, traceparent, idempotency_key, not_before, expires_at, policy, max_attempts, payload)
  SELECT $1, $2, $3, $4, $5, $6, coalesce($7, 'utf8'), $8, $9, $10,
  'epoch'::timestamptz + $11::bigint * interval '1 ms', 'epoch'::timestamptz + $12::bigint * interval '1 ms',
  $13, $14::int, $15::text FROM named
RETURNING message_id

-- $1 the time, $2 destination, $3 paused, $4 actor, $5 reason: was it so already? A pause that is repeated has a new
-- actor and reason. A resume also closes its breaker, paused or not.
--@ statement PAUSE
WITH was AS MATERIALIZED (SELECT paused, open_until_ms FROM @outbox_destination WHERE name = $2 FOR UPDATE),
changes AS MATERIALIZED (SELECT $3::boolean IS DISTINCT FROM coalesce((SELECT paused FROM was), false)
  OR (NOT $3 AND EXISTS (SELECT 1 FROM was WHERE open_until_ms <> 0)) AS yes),
put AS (INSERT INTO @outbox_destination AS d (name, paused, actor, reason, since_ms)
  SELECT $2, $3, $4, $5, {NOW} FROM changes WHERE yes OR $3 ON CONFLICT (name) DO UPDATE
  SET paused_total_ms = d.paused_total_ms + CASE WHEN d.paused THEN greatest(0, excluded.since_ms - d.since_ms)
  ELSE 0 END, paused = excluded.paused, actor = excluded.actor, reason = excluded.reason, since_ms =
  excluded.since_ms, open_until_ms = CASE WHEN excluded.paused THEN d.open_until_ms ELSE 0 END RETURNING 1),
audit AS (INSERT INTO @outbox_audit (at_ms, actor, act, destination, reason) SELECT {NOW}, $4, CASE
  WHEN $3 THEN 'pause' ELSE 'resume' END, $2, $5 FROM put) SELECT yes
FROM changes

-- $1 message_id, $2, $3 from which page of the table to which: the ids there that have it, with commas between, and how many pages
-- there are. An index on message_id, where somebody made one, is used.
--@ statement FIND
SELECT array_to_string(array(SELECT t.id FROM @outbox t WHERE t.message_id = $1 AND t.ctid >= $2::tid
  AND t.ctid < $3::tid LIMIT 1000), ','), pg_relation_size('@outbox'::regclass) /
current_setting('block_size')::bigint

-- admin_act.c
-- $1 ids of outbox, $2 message_id: see admin_act.c
--@ statement LOCK_LANES
{LOCK_LANES_OF({SHARDS_OF_MESSAGE})}

--@ statement LOCK_SHARDS
{LOCK_SHARDS_OF({SHARDS_OF_MESSAGE})}

-- $1 message_id
--@ statement LOCK_RETRIES
WITH m AS MATERIALIZED (SELECT q.id FROM @outbox_retry q WHERE q.message_id = $1)
SELECT q.id
FROM @outbox_retry q
WHERE q.id IN (SELECT m.id FROM m)
ORDER BY q.id FOR UPDATE OF q

-- $1 ids of outbox
--@ statement UNSEALED
{UNSEALED(o.id = ANY ($1::bigint[]))}

-- $1 ids of outbox_cancelled: what may have to move along when they are restored
--@ statement UNSEALED_BEFORE
{UNSEALED(o.id IN (SELECT (w.id - 0) FROM @outbox_cancelled k JOIN @outbox w ON {SAME_KEY(w; k)}
  AND (w.id - 0) < k.original_outbox_id WHERE k.id = ANY ($1::bigint[]) AND coalesce(k.message_key, '') <> '' LIMIT 10001))}

-- $1 to $4 as TARGETS, $5 actor, $6 reason, $7 … sealed payloads (rest.c)
--@ statement CANCEL
{TARGETS}, fresh AS (DELETE FROM @outbox x USING t, ok WHERE ok.yes AND t.place = 1 AND x.id = t.id
  RETURNING x.*), tried AS (DELETE FROM @outbox_retry x USING t, ok WHERE ok.yes AND t.place = 0 AND x.id = t.id
  AND x.claim IS NULL RETURNING x.*),
{KEEP($5; $6; $7; $8; $9)}{AUDIT(cancel; {CANCELLED})} {OUTCOME({CANCELLED})}

-- A scheduled row that no relay has looked at yet is moved as the relay would have moved it: it joins its key's order
-- when it is due, which is now. One that was tried is due since its last attempt: by a clock that is ahead it would wait until
-- that time has come.
--@ statement RETRY
{TARGETS}, late AS MATERIALIZED (SELECT t.place, t.id FROM t, ok WHERE ok.yes AND t.due_ms > {NOW}),
fresh AS (DELETE FROM @outbox x USING late WHERE late.place = 1 AND x.id = late.id RETURNING x.*),
moved AS (INSERT INTO @outbox_retry (original_outbox_id, message_id, destination, event_type, {META}, expires_at,
  max_attempts, created_at, due_ms, deferred, payload) SELECT t.id, {MESSAGE_ID}, coalesce(t.destination, ''),
  t.event_type, {KEPT_META($7; $8)}, expires_at, max_attempts, created_at, {NOW}, true, {KEPT_PAYLOAD(t; $7; $9)} FROM fresh t
  RETURNING 1), hurried AS (UPDATE @outbox_retry x SET due_ms = CASE WHEN x.last_attempt_ms > 0
  THEN least(x.last_attempt_ms, {NOW}) ELSE {NOW} END, not_before = NULL FROM late
  WHERE late.place = 0 AND x.id = late.id AND x.claim IS NULL RETURNING 1){AUDIT(retry; {HURRIED})}
{OUTCOME({HURRIED})}

-- The same, whatever guards its destination. Not one that names no destination, nor one that was not tried and has a key: what was written
-- before it may wait in outbox yet, and it must not overtake that. -1 = it is one of those.
--@ statement FORCE
{TARGETS}, barred AS MATERIALIZED (SELECT count(*) AS n FROM t JOIN @outbox o ON o.id = t.id
  WHERE t.place = 1 AND (coalesce(o.destination, '') = '' OR (o.message_key <> '' AND t.due_ms <= {NOW}))),
go AS MATERIALIZED (SELECT t.place, t.id FROM t, ok, barred WHERE ok.yes AND barred.n = 0),
fresh AS (DELETE FROM @outbox x USING go WHERE go.place = 1 AND x.id = go.id RETURNING x.*),
moved AS (INSERT INTO @outbox_retry (original_outbox_id, message_id, destination, event_type, {META}, expires_at,
  max_attempts, created_at, due_ms, deferred, forced, payload) SELECT t.id, {MESSAGE_ID}, coalesce(t.destination, ''),
  t.event_type, {KEPT_META($7; $8)}, expires_at, max_attempts, created_at, {NOW}, true, true, {KEPT_PAYLOAD(t; $7; $9)} FROM fresh t
  RETURNING 1), hurried AS (UPDATE @outbox_retry x SET forced = true, due_ms = CASE WHEN x.last_attempt_ms > 0
  THEN least(x.last_attempt_ms, {NOW}) ELSE least(x.due_ms, {NOW}) END, not_before = NULL FROM go
  WHERE go.place = 0 AND x.id = go.id AND x.claim IS NULL RETURNING 1){AUDIT(force; {HURRIED})}
{OUTCOME(CASE WHEN (SELECT n FROM barred) > 0 THEN -1 ELSE {HURRIED} END)}

-- $1 the time, $2 message_id, $3 destination or NULL: the time, and what has become of it (1 dead, 2 cancelled,
-- 3 sent)
--@ statement FATE
SELECT {NOW}, CASE WHEN EXISTS (SELECT 1 FROM @dead_letters WHERE message_id = $2 AND ($3::text IS NULL
  OR destination = $3)) THEN 1 WHEN EXISTS (SELECT 1 FROM @outbox_cancelled WHERE message_id = $2 AND ($3 IS NULL
  OR destination = $3)) THEN 2 WHEN EXISTS (SELECT 1 FROM @outbox_sent WHERE message_id = $2 AND ($3 IS NULL
  OR destination = $3)) THEN 3 ELSE 0 END

-- admin_bulk.c
--@ statement LOCK_LANES_OF_REFS
{LOCK_LANES_OF({SHARDS_OF_REFS})}

--@ statement LOCK_SHARDS_OF_REFS
{LOCK_SHARDS_OF({SHARDS_OF_REFS})}

-- $1 ids of outbox_retry
--@ statement LOCK_RETRY_REFS
SELECT q.id FROM @outbox_retry q WHERE q.id = ANY ($1::bigint[]) ORDER BY q.id FOR UPDATE

-- $1 the time, $2 ids of outbox, $3 ids of outbox_retry, $4 actor, $5 reason, $6 act, $7 filter: the time, the act, then of each that is
-- there its place, its id, and whether it was left (enum hk_ref_did)
--@ statement CANCEL_REFS
WITH {HELD}, t AS MATERIALIZED (SELECT 1 AS place, o.id, EXISTS (SELECT 1 FROM named n WHERE n.id = o.id)
  OR EXISTS (SELECT 1 FROM @outbox_stuck s WHERE s.source = 0 AND s.row_id = o.id) AS held
  FROM @outbox o WHERE o.id = ANY ($2::bigint[]) UNION ALL SELECT 0, q.id, q.claim IS NOT NULL
  FROM @outbox_retry q WHERE q.id = ANY ($3::bigint[])),
fresh AS (DELETE FROM @outbox x USING t WHERE t.place = 1 AND NOT t.held AND x.id = t.id RETURNING x.*),
tried AS (DELETE FROM @outbox_retry x USING t WHERE t.place = 0 AND NOT t.held AND x.id = t.id AND x.claim IS NULL
  RETURNING x.*), {KEEP($4; $5; $8; $9; $10)}, {MESSAGES_TRAIL(cancel; kept; $4; $5; $6::bigint; $7)}
SELECT {NOW}, {MESSAGES_ACT($6::bigint)}, t.place, t.id, CASE WHEN t.held THEN 2 ELSE 0 END
FROM (SELECT 1) z LEFT JOIN t ON true

-- $1 ids of outbox_cancelled, $2 destinations that keep order
--@ statement LOCK_LANES_OF_KEYS
{LOCK_LANES_OF({SHARDS_OF_KEYS})}

--@ statement LOCK_SHARDS_OF_KEYS
{LOCK_SHARDS_OF({SHARDS_OF_KEYS})}

--@ statement LOCK_CANCELLED_LETTERS
SELECT d.id
FROM @dead_letters d
WHERE d.id = ANY (ARRAY(SELECT c.letter_id FROM @outbox_cancelled c WHERE c.id = ANY ($1::bigint[])
  AND c.letter_id > 0)) AND ($2::text[] IS NULL OR $2 IS NOT NULL)
ORDER BY d.id FOR UPDATE

-- $1 the time, $2 ids of outbox_cancelled, $3 actor, $4 reason, $5 act, $6 filter, $7 destinations that keep order: the time, the act, then
-- of each that is there its id and enum hk_ref_did. `unread`: the newest that no relay has read. `again`: those whose id is written again. `c`: what
-- is meant, and of its letter whether that waits for it (1) or people have decided (2). `b`: what waits in outbox before one of them, of its key.
--@ statement RESTORE_REFS
WITH {HELD}, unread AS MATERIALIZED (SELECT t.id, {MESSAGE_ID} AS message_id, coalesce(t.destination, '') AS destination
  FROM @outbox t ORDER BY t.id DESC LIMIT 20000),
meant AS MATERIALIZED (SELECT c.id, coalesce(c.original_outbox_id, 0) AS origin, c.message_id, c.destination,
  row_number() OVER (PARTITION BY c.message_id, c.destination ORDER BY c.original_outbox_id NULLS FIRST, c.id) AS n
  FROM @outbox_cancelled c WHERE c.id = ANY ($2::bigint[])),
again AS MATERIALIZED (SELECT m.id FROM meant m WHERE m.n > 1 UNION SELECT m.id FROM meant m JOIN unread w ON w.message_id = m.message_id
  AND w.destination = m.destination AND w.id > m.origin UNION SELECT m.id FROM meant m JOIN @outbox_retry q
  ON q.message_id = m.message_id AND q.destination = m.destination AND coalesce(q.original_outbox_id, 0) <> m.origin
  UNION SELECT m.id FROM meant m JOIN @outbox_sent s ON s.message_id = m.message_id AND s.destination = m.destination
  AND s.original_outbox_id > m.origin),
c AS MATERIALIZED (SELECT c.id, coalesce(c.original_outbox_id, 0) AS origin, c.destination AS dest,
  c.message_key AS mkey, c.encoding IS NOT DISTINCT FROM '{=HK_ERASED}' AS erased, c.fresh AND coalesce({MS(c.not_before)}, 0) > {NOW} AS scheduled, c.fresh
  AND coalesce({MS(c.not_before)}, 0) <= {NOW} AND coalesce(c.message_key, '') <> ''
  AND c.destination = ANY ($7::text[]) AS keyed, CASE WHEN c.letter_id > 0 THEN coalesce((SELECT CASE
  WHEN d.status = 'discarded' AND d.resolution = 'cancelled' THEN 1 WHEN d.destination = c.destination THEN 2
  ELSE 0 END FROM @dead_letters d WHERE d.id = c.letter_id), 0) ELSE 0 END AS letter FROM @outbox_cancelled c
  WHERE c.id = ANY ($2::bigint[])),
k AS MATERIALIZED (SELECT c.dest AS destination, c.mkey AS message_key, max(c.origin) AS upto FROM c WHERE c.keyed
  AND c.letter <> 2 GROUP BY 1, 2),
b AS MATERIALIZED (SELECT o.id, o.n, k.destination, k.message_key, EXISTS (SELECT 1 FROM named n
  WHERE n.id = o.id) AS in_flight FROM k CROSS JOIN LATERAL (SELECT w.id, row_number() OVER (ORDER BY w.id) AS n
  FROM (SELECT (o.id - 0) AS id FROM @outbox o WHERE {SAME_KEY(o; k)} AND (o.id - 0) < k.upto
  AND coalesce({MS(o.not_before)}, 0) <= {NOW} AND NOT EXISTS (SELECT 1 FROM @outbox_stuck s
  WHERE s.source = 0 AND s.row_id = o.id) ORDER BY (o.id - 0) LIMIT 10001) w) o),
d AS MATERIALIZED (SELECT c.*, CASE WHEN c.erased THEN 7 WHEN c.letter = 2 THEN 5 WHEN EXISTS (SELECT 1 FROM again WHERE again.id = c.id) THEN 6
  WHEN NOT c.keyed THEN 0 ELSE coalesce((SELECT CASE
  WHEN bool_or(b.in_flight) THEN 3 WHEN max(b.n) > 10000 THEN 4 ELSE 0 END FROM b
  WHERE b.destination = c.dest AND b.message_key = c.mkey AND b.id < c.origin), 0) END AS did FROM c),
gone AS (DELETE FROM @outbox_cancelled x USING d WHERE d.did = 0 AND x.id = d.id RETURNING x.*),
ahead AS (DELETE FROM @outbox x USING b WHERE x.id = b.id AND EXISTS (SELECT 1 FROM d WHERE d.did = 0 AND d.keyed
  AND d.dest = b.destination AND d.mkey = b.message_key AND d.origin > b.id) RETURNING x.*),
r AS (INSERT INTO @outbox_retry (original_outbox_id, attempts, message_id, destination, event_type, {META},
  created_at, payload, {WHEN}, due_ms, deferred, letter_id, {PAST}) SELECT original_outbox_id, attempts, message_id,
  destination, event_type, {META}, created_at, payload, {WHEN}, CASE WHEN d.scheduled THEN {MS(g.not_before)}
  WHEN g.fresh THEN {NOW} ELSE g.due_ms END, CASE WHEN g.fresh THEN d.scheduled ELSE g.deferred END, CASE d.letter
  WHEN 1 THEN g.letter_id ELSE 0 END, {PAST} FROM gone g JOIN d ON d.id = g.id UNION ALL SELECT t.id, 0, {MESSAGE_ID},
  coalesce(t.destination, ''), t.event_type, {KEPT_META($8; $9)}, created_at, {KEPT_PAYLOAD(t; $8; $10)}, {WHEN}, {NOW}, false,
  0::bigint, {NO_PAST} FROM ahead t ORDER BY 1 NULLS FIRST),
u AS (UPDATE @dead_letters l SET status = 'retrying', resolution = NULL, resolved_at = NULL FROM gone g JOIN d
  ON d.id = g.id WHERE d.letter = 1 AND l.id = g.letter_id),
{MESSAGES_TRAIL(restore; gone; $3; $4; $5::bigint; $6)}
SELECT {NOW}, {MESSAGES_ACT($5::bigint)}, d.id, CASE WHEN d.did = 0 AND NOT EXISTS (SELECT 1 FROM gone g
  WHERE g.id = d.id) THEN 1 ELSE d.did END
FROM (SELECT 1) z LEFT JOIN d ON true

-- admin_list.c
-- Cancelled messages in the order of their outbox_ids. $1 and $18 behind this id and outbox_id, $2 how many rows are looked at (NULL = all),
-- $19 only of this act; the others as in LIST.
--@ statement LIST_BY_ORIGIN
WITH e AS MATERIALIZED (SELECT coalesce(x.original_outbox_id, 0) AS origin, x.id FROM @outbox_cancelled x
  WHERE $2::bigint IS NOT NULL AND (coalesce(x.original_outbox_id, 0), (x.id + 0)) > ($18::bigint, $1::bigint)
  ORDER BY coalesce(x.original_outbox_id, 0), (x.id + 0) OFFSET $2::bigint - 1 LIMIT 1),
p AS MATERIALIZED (SELECT t.* FROM @outbox_cancelled t WHERE (coalesce(t.original_outbox_id, 0), (t.id + 0)) > ($18, $1)
  AND (coalesce(t.original_outbox_id, 0), (t.id + 0)) <= (coalesce((SELECT e.origin FROM e), 9223372036854775807),
  coalesce((SELECT e.id FROM e), 9223372036854775807)) AND $6::int >= 0 AND ($4::text IS NULL OR t.destination = $4)
  AND {OF_CANCELLED(FITS_OF)} AND ($19::bigint IS NULL OR EXISTS (SELECT 1 FROM @outbox_audit_messages y
  WHERE y.act_id = $19 AND y.cancelled_id = t.id)) ORDER BY coalesce(t.original_outbox_id, 0), (t.id + 0)
  LIMIT $3::bigint),
b AS MATERIALIZED (SELECT s.id, sum(s.bytes) OVER (ORDER BY s.origin, s.id ROWS UNBOUNDED PRECEDING) - s.bytes
  AS before, count(*) OVER () AS found FROM (SELECT t.id, coalesce(t.original_outbox_id, 0) AS origin,
  {OF_CANCELLED(BYTES_OF)} AS bytes FROM p t) s)
SELECT {BRIEF_CANCELLED}, b.found, {OF_CANCELLED(LOOKED_OF)}
FROM p t JOIN b ON b.id = t.id
WHERE b.before < $12::bigint
ORDER BY coalesce(t.original_outbox_id, 0), (t.id + 0)

-- $1, $2, $3 (for $18) as there: outbox_id and id where such a look ends (NULL at the table's end), and how many rows there are to it
--@ statement END_BY_ORIGIN
WITH w AS MATERIALIZED (SELECT coalesce(x.original_outbox_id, 0) AS origin, x.id FROM @outbox_cancelled x
  WHERE (coalesce(x.original_outbox_id, 0), (x.id + 0)) > ($3::bigint, $1::bigint)
  ORDER BY coalesce(x.original_outbox_id, 0), (x.id + 0) LIMIT $2::bigint),
n AS (SELECT count(*) AS n FROM w)
SELECT l.origin, l.id, n.n
FROM n LEFT JOIN LATERAL (SELECT w.origin, w.id FROM w WHERE n.n = $2 ORDER BY w.origin DESC, w.id DESC
  LIMIT 1) l ON true

-- and the other four places'
--@ statement LIST_IN_RETRY
{LIST({BRIEF_RETRY}; @outbox_retry; {JOIN_RETRY}; {STATE_RETRY}; ; OF_RETRY)}

--@ statement LIST_IN_OUTBOX
{LIST({BRIEF_OUTBOX}; @outbox; {JOIN_OUTBOX}; {STATE_OUTBOX}; {NULL_IS_EMPTY}; OF_OUTBOX)}

--@ statement LIST_IN_DEAD
{LIST({BRIEF_DEAD}; @dead_letters; ; {STATE_DEAD}; ; OF_DEAD)}

--@ statement LIST_IN_CANCELLED
{LIST({BRIEF_CANCELLED}; @outbox_cancelled; ; {STATE_ANY}; ; OF_CANCELLED)}

--@ statement LIST_IN_SENT
{LIST({BRIEF_SENT}; @outbox_sent; ; {STATE_ANY}; ; OF_SENT)}

-- $1 ids below this, $2 how many rows
--@ statement FLOOR_IN_RETRY
{WINDOW_LOOK(@outbox_retry)}

--@ statement FLOOR_IN_OUTBOX
{WINDOW_LOOK(@outbox)}

--@ statement FLOOR_IN_DEAD
{WINDOW_LOOK(@dead_letters)}

--@ statement FLOOR_IN_CANCELLED
{WINDOW_LOOK(@outbox_cancelled)}

--@ statement FLOOR_IN_SENT
{WINDOW_LOOK(@outbox_sent)}

--@ statement SHOW_IN_RETRY
{SHOW({BRIEF_RETRY}{DETAILS_RETRY}; @outbox_retry; {JOIN_RETRY}; {BY_MESSAGE_ID}; true)}

--@ statement SHOW_IN_OUTBOX
{SHOW({BRIEF_OUTBOX}{DETAILS_OUTBOX}; @outbox; {JOIN_OUTBOX}; t.id = ANY ($2::bigint[])
  AND {MESSAGE_ID} = $1; true)}

--@ statement SHOW_IN_DEAD
{SHOW({BRIEF_DEAD}{DETAILS_DEAD}; @dead_letters; ; {BY_MESSAGE_ID}; ({OPEN_LETTER} OR {SENT_LETTER}
  OR {AWAY_LETTER}))}

--@ statement SHOW_IN_CANCELLED
{SHOW({BRIEF_CANCELLED}{DETAILS_CANCELLED}; @outbox_cancelled; ; {BY_MESSAGE_ID}; true)}

--@ statement SHOW_IN_SENT
{SHOW({BRIEF_SENT}{DETAILS_SENT}; @outbox_sent; ; {BY_MESSAGE_ID}; true)}

-- $2 ids, $3 bytes of payloads, $4 how many
--@ statement FETCH_IN_RETRY
{SHOW({BRIEF_RETRY}{DETAILS_RETRY}; @outbox_retry; {JOIN_RETRY}; t.id = ANY ($2::bigint[])
  AND $1::text IS NULL; true)}

--@ statement FETCH_IN_OUTBOX
{SHOW({BRIEF_OUTBOX}{DETAILS_OUTBOX}; @outbox; {JOIN_OUTBOX}; t.id = ANY ($2::bigint[])
  AND $1::text IS NULL; true)}

--@ statement LIST_OUTBOX_HELD
{LIST_HELD({BRIEF_OUTBOX}; SELECT x.* FROM (SELECT DISTINCT id FROM named) d CROSS JOIN LATERAL (SELECT o.*
  FROM @outbox o WHERE o.id = d.id OFFSET 0) x; {JOIN_OUTBOX}; {NULL_IS_EMPTY}; OF_OUTBOX)}

--@ statement LIST_RETRY_HELD
{LIST_HELD({BRIEF_RETRY}; SELECT * FROM @outbox_retry WHERE claim IS NOT NULL; {JOIN_RETRY}; ; OF_RETRY)}

-- Processing (sent by hand) or retrying: few as well, and an index has them. The same parameters.
--@ statement LIST_DEAD_AWAY
{LISTED({BRIEF_DEAD}; SELECT t.* FROM @dead_letters t WHERE t.status = 'retrying' AND {AWAY_LETTER}
  AND (t.sending_at IS NULL) = ($6::int = 3) AND (t.id + 0) < $1::bigint AND ($2::bigint IS NULL OR $2 > 0)
  AND ($4::text IS NULL OR t.destination = $4) AND {OF_DEAD(FITS_OF)}
  ORDER BY (t.id + 0) DESC LIMIT $3::bigint; ; OF_DEAD)}

-- Of one destination, whose rows an index has in order; by the primary key it might be a walk over all others' rows. The
-- same parameters.
--@ statement LIST_OUTBOX_OF
{LISTED({BRIEF_OUTBOX}; SELECT t.* FROM @outbox t WHERE {NAME(t.destination)} {IN_ORDER} = left($4::text,
  63) AND t.destination = $4 AND (t.id + 0) < $1::bigint AND ($2::bigint IS NULL OR $2 > 0) AND {STATE_OUTBOX}
  AND {OF_OUTBOX(FITS_OF)} ORDER BY (t.id + 0) DESC LIMIT $3::bigint; {JOIN_OUTBOX}; OF_OUTBOX)}

-- One attempt, as hk_pa_attempt reads it.
--@ fragment ATTEMPT_COLUMNS
{CUT(destination)}, life, n, started_ms, duration_ms, status, {CUT(class)}, {CUT(cause)}, {CUT(error)},
{CUT(request_headers)}, {CUT(response_headers)}, substring(response_body
  FROM 1 FOR 8192), {CUT(address)}, possibly_delivered

-- $1 message_id, $2 LIMIT
--@ statement ATTEMPTS
WITH m AS MATERIALIZED (SELECT * FROM @outbox_attempts WHERE message_id = $1),
l AS MATERIALIZED (SELECT * FROM m ORDER BY id DESC LIMIT $2::bigint)
SELECT {ATTEMPT_COLUMNS}
FROM l
ORDER BY id

-- $1 message_id, $2 LIMIT, $3 behind this id: as ATTEMPTS, and the id
--@ statement ATTEMPTS_PAGE
WITH m AS MATERIALIZED (SELECT * FROM @outbox_attempts WHERE message_id = $1),
l AS MATERIALIZED (SELECT * FROM m WHERE m.id > $3::bigint ORDER BY id LIMIT $2::bigint)
SELECT {ATTEMPT_COLUMNS}, id
FROM l
ORDER BY id

-- admin_status.c
-- $1 the time: the time, how many run, and the lane that was heard of last: lane, name, version, started, until
--@ statement RELAY
SELECT n.ms, (SELECT count(*) FROM @outbox_relay r WHERE r.until_ms > n.ms), l.lane, {SMALL(l.name)},
{SMALL(l.version)}, l.started_ms, l.until_ms
FROM (SELECT {NOW} AS ms) n LEFT JOIN LATERAL (SELECT * FROM @outbox_relay r
  ORDER BY r.until_ms DESC, r.lane DESC LIMIT 1) l ON true

-- $1 the time: name, paused, actor, reason, since, breaker open until
--@ statement PAUSES
SELECT {SMALL(name)}, paused, {SMALL(actor)}, {SMALL(reason)}, since_ms, open_until_ms
FROM @outbox_destination
WHERE paused OR open_until_ms > {NOW} LIMIT 1001

-- destination, how many in all, of them in outbox
--@ statement IN_FLIGHT
WITH {HELD} SELECT {NAME(y.d)}, count(*), count(*) FILTER (WHERE y.fresh)
FROM (SELECT coalesce(x.destination, '') AS d, true AS fresh FROM (SELECT DISTINCT id FROM named) n CROSS
  JOIN LATERAL (SELECT o.destination FROM @outbox o WHERE o.id = n.id OFFSET 0) x UNION ALL
  SELECT destination, false FROM @outbox_retry WHERE claim IS NOT NULL) y
GROUP BY 1

-- three of each kind, in this order
--@ statement WALK_OUTBOX
{FIGURES_OUTBOX(, {COUNTED(@outbox)}; {ALL_OR_SOME}; 1; {WALKED(@outbox)})}

--@ statement WALK_RETRY
WITH {COUNTED(@outbox_retry)} {FIGURES_RETRY({ALL_OR_SOME}; 1; {WALKED(@outbox_retry)})}

--@ statement WALK_DEAD
{OPEN_LETTERS} {FIGURES_DEAD({ALL_OR_SOME}; 1; (SELECT destination FROM @dead_letters WHERE status = 'failed'
  AND (SELECT c.n FROM c) < $2) t)}

--@ statement SAMPLE_OUTBOX
{FIGURES_OUTBOX(; count(*); {SAMPLE_FACTOR(@outbox)}; {SAMPLED(@outbox; t)})}

--@ statement SAMPLE_RETRY
{FIGURES_RETRY(count(*); {SAMPLE_FACTOR(@outbox_retry)}; {SAMPLED(@outbox_retry; t)})}

--@ statement SAMPLE_DEAD
{FIGURES_DEAD(count(*); {SAMPLE_FACTOR(@dead_letters)}; {SAMPLED(@dead_letters; t)} WHERE t.status = 'failed')}

--@ statement BY_NAME_OUTBOX
{BY_NAME(@outbox; t.destination IS NOT NULL; false)}

--@ statement BY_NAME_RETRY
{BY_NAME(@outbox_retry; t.claim IS NULL; t.attempts > 0 OR t.crashes > 0)}

--@ statement BY_NAME_DEAD
{BY_NAME(@dead_letters; t.status = 'failed'; false)}

--@ statement COUNT_SENT
{COUNT(@outbox_sent)}

--@ statement COUNT_CANCELLED
{COUNT(@outbox_cancelled)}

--@ statement ABOUT_SENT
{ABOUT(@outbox_sent)}

--@ statement ABOUT_CANCELLED
{ABOUT(@outbox_cancelled)}

-- $1 the time: the time, shards, free shards; lane (NULL: there is none), name, boot, version, started, until, its
-- shards, in hand, since when the oldest is due
--@ statement RELAYS
WITH {HELD}, hand AS MATERIALIZED (SELECT y.lane, count(*) AS n FROM (SELECT n.lane FROM named n CROSS
  JOIN LATERAL (SELECT 1 FROM @outbox o WHERE o.id = n.id OFFSET 0) x UNION ALL SELECT h.lane
  FROM @outbox_retry q JOIN held h ON h.claim = q.claim WHERE q.claim IS NOT NULL) y GROUP BY y.lane),
due AS MATERIALIZED (SELECT y.shard, min(y.ms) AS ms FROM (SELECT t.shard, greatest({MS(t.created_at)},
  {MS(t.not_before)}, 1) AS ms FROM (SELECT * FROM @outbox ORDER BY id LIMIT 10000) t
  WHERE t.id NOT IN (SELECT n.id FROM named n) AND coalesce({MS(t.not_before)}, 0) <= {NOW} UNION ALL
  SELECT t.shard, greatest(t.due_ms, 1) FROM (SELECT * FROM @outbox_retry ORDER BY id LIMIT 10000) t
  WHERE t.claim IS NULL AND t.due_ms <= {NOW}) y GROUP BY y.shard),
owned AS MATERIALIZED (SELECT s.lane, count(*) AS n, min(due.ms) AS ms FROM @outbox_shard s LEFT
  JOIN due ON due.shard = s.shard GROUP BY s.lane) SELECT {NOW}, (SELECT count(*)
  FROM @outbox_shard), (SELECT count(*) FROM @outbox_shard s WHERE s.lane IS NULL), r.lane, {SMALL(r.name)},
{SMALL(r.boot)}, {SMALL(r.version)}, r.started_ms, r.until_ms, coalesce(o.n, 0), coalesce(h.n, 0), o.ms
FROM (SELECT 1) one LEFT JOIN (SELECT * FROM @outbox_relay ORDER BY lane LIMIT 1000) r ON true LEFT
  JOIN owned o ON o.lane = r.lane LEFT JOIN hand h ON h.lane = r.lane
ORDER BY r.lane

-- Counting everything takes its time.
--@ statement AS_IT_IS
SELECT 1

--@ statement NO_HURRY
SELECT set_config('statement_timeout', '0', true)

-- admin_figures.c
-- What is written may be lost: nobody waits for a disk.
--@ statement OFFHAND
SELECT set_config('synchronous_commit', 'off', true)

-- $1 the time, $2 lane, $3 destinations, $4 numbers, nine of each: window, seen, sent, failed, dead, in flight, ready at, time
-- of the last error, 0; $5 breakers, $6 latencies, $7 last errors ('' = none). How many were written.
--@ statement FIGURES_PUT
INSERT INTO @outbox_figures AS f (lane, destination, at_ms, window_ms, seen, sent, failed, dead, in_flight,
  ready_at_ms, last_error_ms, breaker, latency, last_error) SELECT r.lane, x.d, {NOW}, n.v[x.i * 9 - 8], n.v[x.i * 9
- 7], n.v[x.i * 9 - 6], n.v[x.i * 9 - 5], n.v[x.i * 9 - 4], n.v[x.i * 9 - 3], n.v[x.i * 9 - 2], n.v[x.i * 9 - 1],
x.b, x.l, nullif(x.e, '')
FROM @outbox_relay r CROSS JOIN (SELECT $4::bigint[] AS v) n CROSS
  JOIN unnest($3::text[], $5::text[], $6::text[], $7::text[]) WITH ORDINALITY AS x (d, b, l, e, i)
WHERE r.lane = $2::bigint ON CONFLICT (lane, destination) DO UPDATE
  SET at_ms = excluded.at_ms, window_ms = excluded.window_ms, seen = excluded.seen, sent = excluded.sent, failed =
excluded.failed, dead = excluded.dead, in_flight = excluded.in_flight, ready_at_ms = excluded.ready_at_ms,
last_error_ms = excluded.last_error_ms, breaker = excluded.breaker, latency = excluded.latency, last_error =
excluded.last_error

-- $1 the time, $2 LIMIT: the time; lane (NULL: there is none), destination, at, the numbers, breaker, latency, last error
--@ statement FIGURES
SELECT n.ms, f.lane, {SMALL(f.destination)}, f.at_ms, f.window_ms, f.seen, f.sent, f.failed, f.dead, f.in_flight,
f.ready_at_ms, f.last_error_ms, left(f.breaker, 16), left(f.latency, 8192), left(f.last_error, 240)
FROM (SELECT {NOW} AS ms) n LEFT JOIN @outbox_figures f ON f.lane IN (SELECT r.lane FROM @outbox_relay r
  WHERE r.until_ms > n.ms)
ORDER BY f.destination {IN_ORDER}, f.lane LIMIT $2::bigint

-- admin_series.c
-- $1 numbers, twelve of each: step, at, lane, seen, sent, failed, retried, dead, waiting, in flight, dead open, oldest;
-- $2 destinations, $3 latencies. What was counted is written anew; of levels the largest stays.
--@ statement SERIES_PUT
INSERT INTO @outbox_series AS s (step_ms, at_ms, lane, destination, seen, sent, failed, retried, dead, latency, waiting,
  in_flight, dead_open, oldest_ms) SELECT n.v[x.i * 12 - 11], n.v[x.i * 12 - 10], n.v[x.i * 12 - 9], x.d, n.v[x.i * 12
- 8], n.v[x.i * 12 - 7], n.v[x.i * 12 - 6], n.v[x.i * 12 - 5], n.v[x.i * 12 - 4], x.l, n.v[x.i * 12 - 3],
n.v[x.i * 12 - 2], n.v[x.i * 12 - 1], n.v[x.i * 12]
FROM (SELECT $1::bigint[] AS v) n CROSS JOIN unnest($2::text[], $3::text[]) WITH ORDINALITY AS x (d, l, i)
ON CONFLICT (step_ms, at_ms, lane, destination) DO UPDATE SET seen = excluded.seen, sent = excluded.sent, failed =
  excluded.failed, retried = excluded.retried, dead = excluded.dead, latency = excluded.latency, waiting =
  greatest(s.waiting, excluded.waiting), in_flight = greatest(s.in_flight, excluded.in_flight), dead_open =
  greatest(s.dead_open, excluded.dead_open), oldest_ms = greatest(s.oldest_ms, excluded.oldest_ms)

-- $1 the time, $2 step, $3 since, $4 until, $5 destination or NULL, $6 LIMIT, behind $7 time, $8 lane, $9 destination: the time; then
-- a row (NULL: there is none)
--@ statement SERIES
SELECT n.ms, s.step_ms, s.at_ms, s.lane, {SMALL(s.destination)}, s.seen, s.sent, s.failed, s.retried, s.dead,
left(s.latency, 8192), s.waiting, s.in_flight, s.dead_open, s.oldest_ms
FROM (SELECT {NOW} AS ms) n LEFT JOIN LATERAL (SELECT * FROM @outbox_series x WHERE x.step_ms = $2::bigint
  AND x.at_ms >= $3::bigint AND x.at_ms >= $7::bigint AND x.at_ms < $4::bigint AND (x.at_ms, x.lane,
  x.destination) > ($7::bigint, $8::bigint, $9::text) AND ($5::text IS NULL OR x.destination = $5)
  ORDER BY x.step_ms, x.at_ms, x.lane, x.destination LIMIT $6::bigint) s ON true

-- $1 step, $2 since, $3 until, $4 destination or NULL, $5 LIMIT
--@ statement SERIES_NAMES
SELECT {SMALL(s.destination)}
FROM @outbox_series s
WHERE s.step_ms = $1::bigint AND s.at_ms >= $2::bigint AND s.at_ms < $3::bigint AND ($4::text IS NULL
  OR s.destination = $4) AND s.destination <> ''
GROUP BY s.destination
ORDER BY sum(s.sent + s.failed + s.dead) DESC, max(s.waiting + s.dead_open) DESC, s.destination LIMIT $5::bigint

-- admin_why.c
-- $1 LIMIT: rows that may hold a key, from indexes alone
--@ statement HEADS
SELECT (SELECT count(*) FROM (SELECT 1 FROM @outbox_retry q WHERE q.message_key IS NOT NULL
  LIMIT $1::bigint) x) + (SELECT count(*) FROM (SELECT 1 FROM @dead_letters d WHERE d.message_key IS NOT NULL
  AND {HELD_LETTER(d)} LIMIT $1::bigint) y)

-- $1 the time, $2 destination, $3 LIMIT, $4 dead letters block: how many wait behind a head and were not tried yet
--@ statement BLOCKED_OUTBOX
WITH heads AS MATERIALIZED (SELECT q.message_key AS k FROM @outbox_retry q WHERE {KEYED(q)} AND NOT q.deferred
  UNION SELECT d.message_key FROM @dead_letters d WHERE $4::boolean AND {KEYED(d)} AND {HELD_LETTER(d)})
SELECT count(*)
FROM (SELECT 1 FROM heads h CROSS JOIN LATERAL (SELECT 1 FROM @outbox o WHERE {OF_KEY(o; h.k)}
  AND coalesce({MS(o.not_before)}, 0) <= {NOW} OFFSET 0) z LIMIT $3::bigint) c

-- The same of retry rows.
--@ statement BLOCKED_RETRY
SELECT count(*)
FROM (SELECT q.* FROM @outbox_retry q WHERE {KEYED(q)} LIMIT $3::bigint) r
WHERE CASE WHEN r.claim IS NOT NULL THEN false WHEN NOT r.deferred THEN {BEFORE}
  WHEN r.due_ms > {NOW} THEN false ELSE EXISTS (SELECT 1 FROM @outbox_retry q WHERE {OF_KEY(q; r.message_key)}
  AND NOT q.deferred) OR ($4::boolean AND EXISTS (SELECT 1 FROM @dead_letters d WHERE {OF_KEY(d; r.message_key)}
  AND {HELD_LETTER(d)})) END

-- Both, estimated, for many: $1 the time, $2 destinations, $3 those of them that dead letters do not block: destination, how
-- many
--@ statement BLOCKED_ABOUT
SELECT y.d, sum(y.n)::bigint
FROM (SELECT o.destination AS d, count(*) * {FACTOR_OF_FEW(@outbox)} AS n FROM {SAMPLED_FEW(@outbox; o)}
  WHERE o.destination = ANY ($2::text[]) AND o.message_key <> '' AND coalesce({MS(o.not_before)}, 0) <= {NOW}
  AND (EXISTS (SELECT 1 FROM @outbox_retry q WHERE {SAME_KEY(q; o)} AND NOT q.deferred)
  OR (o.destination <> ALL ($3::text[]) AND EXISTS (SELECT 1 FROM @dead_letters d WHERE {SAME_KEY(d; o)}
  AND {HELD_LETTER(d)}))) GROUP BY 1 UNION ALL SELECT r.destination, count(*) * {FACTOR_OF_FEW(@outbox_retry)}
  FROM {SAMPLED_FEW(@outbox_retry; r)} WHERE r.destination = ANY ($2) AND r.message_key <> ''
  AND r.claim IS NULL AND NOT r.deferred AND EXISTS (SELECT 1 FROM @outbox_retry q WHERE {SAME_KEY(q; r)}
  AND NOT q.deferred AND (q.id + 0) < r.id) GROUP BY 1) y
GROUP BY 1

-- $1 the time, $2 destinations that keep order, $3 those of them that dead letters do not block, $4 LIMIT of rows, $5 of
-- destinations: the time; destination (NULL: nothing waits), event type, oldest, due since, some are behind
--@ statement WAITING
WITH RECURSIVE {WAITING_NAMES(w; @outbox; true)}, {WAITING_NAMES(v; @outbox_retry; t.claim IS NULL)}, old AS
MATERIALIZED (SELECT t.* FROM {WAITING_SOME(w)} {WAITING_FRESH({IN_ORDER} = n.name)} UNION ALL SELECT t.*
  FROM {WAITING_FRESH(IS NULL)} UNION ALL SELECT t.* FROM {WAITING_SOME(v)} {WAITING_AGAIN}),
told AS (SELECT t.destination AS d, t.event_type AS e, t.created_ms, greatest(t.from_ms, CASE
  WHEN t.fresh THEN t.created_ms END, 1) AS due_ms, t.from_ms <= {ONCE} AND NOT (t.fresh
  AND t.id IN (SELECT u.id FROM @outbox_claim c, unnest(c.ids) AS u (id)
  WHERE u.id IS NOT NULL)) AS due, {WAITING_BEHIND} AS behind FROM old t)
SELECT {ONCE}, g.*
FROM (SELECT 1) x LEFT JOIN (SELECT {SMALL(r.d)} AS d, CASE WHEN r.d = '' THEN left(r.e, 250) ELSE ''
  END AS e, coalesce(min(nullif(r.created_ms, 0)), 0), coalesce(min(r.due_ms) FILTER (WHERE r.due
  AND NOT r.behind), 0), coalesce(bool_or(r.due AND r.behind), false) FROM told r GROUP BY 1, 2 ORDER BY 1, 2
  LIMIT 2 * $5::bigint) g ON true

-- $1 the time, $2 destination: the time, how many run; paused, actor, reason, since, breaker open until
--@ statement WHY_PLACE
SELECT n.ms, (SELECT count(*) FROM @outbox_relay r WHERE r.until_ms > n.ms), coalesce(d.paused, false),
{SMALL(d.actor)}, {SMALL(d.reason)}, d.since_ms, d.open_until_ms
FROM (SELECT {NOW} AS ms) n LEFT JOIN @outbox_destination d ON d.name = $2

-- $1 id, $2 is it a retry row: lane that has it in hand (NULL: none), claimed, until, name; then the shard's owner: until, name
--@ statement WHY_LANE
WITH m AS MATERIALIZED (SELECT q.shard, q.claim FROM @outbox_retry q WHERE $2::boolean AND q.id = $1::bigint
  UNION ALL SELECT o.shard, (SELECT c.claim FROM @outbox_claim c WHERE $1 = ANY (c.ids) LIMIT 1)
  FROM @outbox o WHERE NOT $2 AND o.id = $1) SELECT r.lane, c.claimed_ms, r.until_ms, {SMALL(r.name)}, w.until_ms,
{SMALL(w.name)}
FROM m LEFT JOIN @outbox_claim c ON c.claim = m.claim LEFT JOIN @outbox_relay r ON r.lane = c.lane LEFT
  JOIN @outbox_shard s ON s.shard = m.shard LEFT JOIN @outbox_relay w ON w.lane = s.lane

-- $1 id, $2 destination, $3 key, $4 is it a retry row, $5 dead letters block: heads, the weightiest first: place, id, message_id,
-- state, due
--@ statement WHY_HEAD
WITH {HELD}, me AS MATERIALIZED (SELECT coalesce((SELECT NOT q.deferred FROM @outbox_retry q WHERE $4::boolean
  AND q.id = $1::bigint), false) AS holds) SELECT y.place, y.id, {SMALL(y.message_id)}, y.state, y.due_ms
FROM ((SELECT 1 AS n, 2 AS place, d.id, d.message_id, 5 AS state, 0::bigint AS due_ms FROM @dead_letters d, me
  WHERE $5::boolean AND NOT me.holds AND {OF_KEY(d; $3::text)} AND {HELD_LETTER(d)} ORDER BY d.id LIMIT 1)
  UNION ALL (SELECT 2, 0, q.id, q.message_id, CASE WHEN q.claim IS NULL THEN 3 ELSE 2 END, q.due_ms
  FROM @outbox_retry q, me WHERE {OF_KEY(q; $3::text)} AND NOT q.deferred AND (NOT me.holds
  OR q.id < $1::bigint) ORDER BY q.id LIMIT 1) UNION ALL (SELECT 3, 0, q.id, q.message_id, 2, q.due_ms
  FROM @outbox_retry q WHERE {OF_KEY(q; $3::text)} AND q.claim IS NOT NULL AND NOT ($4::boolean
  AND q.id = $1::bigint) ORDER BY q.id LIMIT 1) UNION ALL (SELECT 4, 1, t.id, {MESSAGE_ID}, CASE
  WHEN t.id IN (SELECT n.id FROM named n) THEN 2 ELSE 1 END, 0 FROM @outbox t WHERE {OF_KEY(t; $3::text)}
  AND ((NOT $4::boolean AND t.id < $1::bigint AND t.not_before IS NULL) OR t.id IN (SELECT n.id FROM named n
  WHERE $4::boolean OR n.id < $1::bigint)) ORDER BY t.id LIMIT 1)) y
ORDER BY y.n LIMIT 1

-- $1 id, $2 destination, $3 LIMIT: how many of its destination come before it
--@ statement WHY_AHEAD
SELECT count(*)
FROM (SELECT 1 FROM @outbox o WHERE {NAME(o.destination)} {IN_ORDER} = left($2::text, 63)
  AND (o.id + 0) < $1::bigint LIMIT $3::bigint) x

-- $1 id, $2 is it a row of outbox_retry?
--@ statement WHY_STUCK
SELECT s.since_ms, s.delivered, s.error
FROM @outbox_stuck s
WHERE s.row_id = $1::bigint AND s.source = CASE WHEN $2::boolean THEN 1 ELSE 0 END

--@ statement GUARDS
{GUARDS_FOUND}

--@ statement SHAPE
{SHAPE_FOUND}

--@ statement STUCK_COUNT
SELECT count(*), min(s.since_ms), min(s.error), count(*) FILTER (WHERE s.delivered) FROM @outbox_stuck s

-- admin_inspect.c
-- what admin_inspect.c reads, in the order of its enum
--@ statement SERVER
SELECT current_setting('server_version'), pg_is_in_recovery(), (extract(epoch
  FROM clock_timestamp()) * 1000)::bigint, current_setting('fsync')::boolean,
current_setting('full_page_writes')::boolean, current_setting('default_transaction_read_only')::boolean,
current_setting('autovacuum')::boolean, current_setting('max_connections')::int -
current_setting('superuser_reserved_connections')::int - coalesce(current_setting('reserved_connections', true),
  '0')::int, (SELECT count(*) FROM pg_stat_activity WHERE datid IS NOT NULL), (SELECT nullif(rolconnlimit, -1)
  FROM pg_roles WHERE rolname = current_user AND NOT rolsuper), (SELECT count(*) FROM pg_stat_activity
  WHERE usename = current_user), (SELECT nullif(datconnlimit, -1) FROM pg_database
  WHERE datname = current_database()), (SELECT count(*) FROM pg_stat_activity
  WHERE datname = current_database()), (SELECT count(*) FROM pg_stat_activity WHERE datid IS NOT NULL
  AND backend_type IS NULL), current_user, current_database()

-- What keeps vacuum from removing dead rows, the worst first: kind, name, what it is, whose, its state, age in
-- transactions, age in seconds (NULL = not known)
--@ statement HORIZON
SELECT *
FROM (SELECT 'session', a.pid::text, {SMALL(a.application_name)}, a.usename::text, a.state,
  greatest(age(a.backend_xmin), age(a.backend_xid)) AS xids, extract(epoch
  FROM clock_timestamp() - a.xact_start)::bigint AS s FROM pg_stat_activity a
  WHERE a.datname = current_database() AND a.pid <> pg_backend_pid()
  AND a.backend_type NOT IN ('autovacuum worker', 'walsender') AND (a.backend_xmin IS NOT NULL
  OR a.backend_xid IS NOT NULL) UNION ALL SELECT 'prepared', {SMALL(p.gid)}, '', p.owner::text, '',
  age(p.transaction), extract(epoch FROM clock_timestamp() - p.prepared)::bigint FROM pg_prepared_xacts p
  WHERE p.database = current_database() UNION ALL SELECT 'slot', s.slot_name::text, s.slot_type, '', CASE
  WHEN s.active THEN 'in use' ELSE 'not in use' END, age(s.xmin), NULL FROM pg_replication_slots s
  WHERE s.xmin IS NOT NULL UNION ALL SELECT 'standby', r.pid::text, {SMALL(r.application_name)},
  coalesce(r.client_addr::text, ''), r.state, age(r.backend_xmin), NULL FROM pg_stat_replication r
  WHERE r.backend_xmin IS NOT NULL) h
ORDER BY xids DESC NULLS LAST LIMIT 20

--@ statement PLAN
EXPLAIN (COSTS OFF) SELECT id
FROM @outbox
WHERE id > 1 AND shard = ANY ('{0,1,2,3}'::smallint[])
ORDER BY id LIMIT 500

-- What a relay needs and this role does not have.
--@ statement RIGHTS
SELECT string_agg(g.line, ', ' ORDER BY g.line)
FROM (SELECT string_agg(w.name, ', ') || ' on ' || w.t FROM (SELECT v.t, p.name
  FROM (VALUES ('@outbox', 'SELECT,DELETE'), ('@outbox_retry', 'SELECT,INSERT,UPDATE,DELETE'), ('@outbox_relay',
  'SELECT,INSERT,UPDATE,DELETE'), ('@outbox_claim', 'SELECT,INSERT,UPDATE,DELETE'), ('@dead_letters',
  'SELECT,INSERT,UPDATE,DELETE'), ('@outbox_redrive', 'SELECT,INSERT,UPDATE,DELETE'), ('@outbox_job', 'SELECT,INSERT,UPDATE,DELETE'), ('@dead_letter_versions',
  'SELECT,INSERT'), ('@outbox_audit_letters', 'SELECT,INSERT'), ('@outbox_audit_messages', 'SELECT,INSERT'), ('@outbox_shard', 'SELECT,UPDATE'),
  ('@outbox_exchange', 'SELECT,INSERT,DELETE'), ('@outbox_sent', 'SELECT,INSERT,DELETE'), ('@outbox_cancelled',
  'SELECT,INSERT,DELETE'), ('@outbox_attempts', 'SELECT,INSERT,DELETE'), ('@outbox_audit', 'SELECT,INSERT,DELETE'),
  ('@outbox_destination', 'SELECT,INSERT,UPDATE'), ('@outbox_bucket', 'SELECT,INSERT,UPDATE,DELETE'), ('@outbox_seats', 'SELECT,INSERT,UPDATE,DELETE'),
  ('@outbox_figures', 'SELECT,INSERT,UPDATE,DELETE'), ('@outbox_series', 'SELECT,INSERT,UPDATE,DELETE'), ('@outbox_meta', 'SELECT'), ('@outbox_alert',
  'SELECT,INSERT,UPDATE,DELETE'), ('@outbox_notice', 'SELECT,INSERT,UPDATE,DELETE'), ('@outbox_mute',
  'SELECT,INSERT,UPDATE,DELETE'), ('@outbox_alert_look', 'SELECT,UPDATE'), ('@outbox_turn', 'SELECT,UPDATE'), ('@outbox_destination_def',
  'SELECT,INSERT,UPDATE,DELETE'), ('@outbox_task', 'SELECT,INSERT,UPDATE,DELETE')) v (t,
  wanted) CROSS JOIN unnest(string_to_array(v.wanted, ',')) AS p (name)
  WHERE NOT has_table_privilege(v.t, p.name) UNION ALL SELECT '@outbox_id_seq', 'SELECT'
  WHERE NOT has_sequence_privilege('@outbox_id_seq', 'SELECT')) w GROUP BY w.t) g (line)

-- May this role write messages, as the HTTP API does?
--@ statement MAY_WRITE
SELECT has_column_privilege('@outbox', 'message_id', 'INSERT')

-- Of sent rows by the day: NULL when they are not; how many days, whether tomorrow is one, the rest's bytes.
--@ statement SENT_DAYS
SELECT t.partdefid IS NOT NULL, count(*) FILTER (WHERE i.inhrelid <> t.partdefid),
coalesce(bool_or((regexp_match(pg_get_expr(c.relpartbound, c.oid), 'TO \(''?(-?[0-9]+)'))[1]::bigint > extract(epoch
  FROM now() + interval '1 day') * 1000), false), pg_relation_size(t.partdefid), t.partdefid::regclass
FROM pg_partitioned_table t LEFT JOIN pg_inherits i ON i.inhparent = t.partrelid LEFT
  JOIN pg_class c ON c.oid = i.inhrelid
WHERE t.partrelid = '@outbox_sent'::regclass
GROUP BY t.partdefid

-- What wakes relays: the columns of listen.h; then how many listen, how many live, can transactions be prepared, how
-- full is the queue, in percent
--@ statement WAKE
SELECT {=HK_PG_WAKE_COLUMNS}, (SELECT count(*) FROM pg_locks k WHERE k.locktype = 'advisory'
  AND k.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND k.classid::bigint = {=HK_PG_LISTENERS} AND k.objid = f.outbox AND k.objsubid = 2
  AND k.granted), (SELECT count(*) FROM @outbox_relay r WHERE r.until_ms > floor(extract(epoch
  FROM now()) * 1000)::bigint), current_setting('max_prepared_transactions')::integer > 0,
floor(pg_notification_queue_usage() * 100)::bigint {=HK_PG_WAKE_FROM}

-- Functions of ours with the owner's rights that everybody may run (SECURITY.md); none: NULL. They are looked for by name: in
-- a schema of an older version not all of them are there.
--@ statement OPEN_FUNCTIONS
SELECT string_agg(f.p::regprocedure::text, ', ')
FROM ({OUR_FUNCTIONS}) f
WHERE f.definer AND EXISTS (SELECT 1 FROM aclexplode(coalesce(f.acl, acldefault('f', f.owner))) a
  WHERE a.grantee = 0)

-- Triggers that run one of them on a table that it is not meant for: trigger, table, whose.
--@ statement STRANGE_TRIGGERS
SELECT t.tgname::text, t.tgrelid::regclass::text, c.relowner::regrole::text
FROM pg_trigger t JOIN ({OUR_FUNCTIONS}) f ON f.p = t.tgfoid JOIN pg_class c ON c.oid = t.tgrelid
WHERE NOT t.tgisinternal AND t.tgrelid IS DISTINCT
FROM to_regclass(f.of)
ORDER BY t.oid LIMIT 3

-- ---- a clock that was wrong: see store/sql/clock.sql ----
--@ fragment CLOCK_AT
@

--@ fragment CLOCK_W
$1::bigint

--@ fragment CLOCK_M
$2::bigint

--@ fragment CLOCK_NO(flag)
NOT {flag}

--@ fragment CLOCK_YES
true

--@ fragment CLOCK_NAMED
{MS(not_before)}

--@ fragment CLOCK_UNSET(time)
{time} IS NULL

--@ fragment CLOCK_SLICE
true

-- $1 the time of tests: the server's clock
--@ statement CLOCK_NOW
SELECT {NOW}

-- $1 the clock: lane, name, a number that changes with everything that its relay does, and its lease. A lease that ends in a day is not renewed, but
-- locked with every exchange.
--@ statement CLOCK_LANES
SELECT r.lane, left(r.name, 250), r.until_ms + r.xmax::text::bigint, r.lease_ms FROM @outbox_relay r
WHERE r.until_ms > $1::bigint ORDER BY r.lane LIMIT 1000

-- A number that changes when any relay does anything.
--@ fragment CLOCK_SIGNS
(SELECT count(*) + coalesce(sum(r.until_ms + r.xmax::text::bigint), 0) FROM @outbox_relay r)::text

--@ statement CLOCK_SIGN
SELECT {CLOCK_SIGNS}

-- Then no relay begins or renews before the end of the transaction.
--@ statement CLOCK_STOP
LOCK TABLE @outbox_relay IN EXCLUSIVE MODE

-- $1 the number of before: fails when a relay has done something since
--@ statement CLOCK_STILL
SELECT CASE WHEN {CLOCK_SIGNS} = $1::text THEN 0 ELSE ('hikyaku: a relay runs: ' || {CLOCK_SIGNS})::bigint END

-- $1 the clock. All of them are dead, or asleep: one that wakes has lost its lane, for no number of an exchange is higher.
--@ statement CLOCK_FENCE
UPDATE @outbox_relay SET exchange = 9223372036854775807, until_ms = least(until_ms, $1::bigint)

-- $1 the clock, $2 actor, $3 reason, $4 detail
--@ statement CLOCK_AUDIT
INSERT INTO @outbox_audit (at_ms, actor, act, reason, detail)
VALUES ($1::bigint, $2::text, 'clock-reset', $3::text, $4::text)

-- ---- adopt.c ----

-- $1 schema or NULL, $2 table: each column with its type, of every table that is meant. Is it ours?
--@ statement ADOPT_COLUMNS
SELECT n.nspname::text, c.relname::text, a.attname::text,
  format_type(CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END, NULL),
  c.oid IN (SELECT to_regclass(w.name) FROM (VALUES ('@outbox'), ('@outbox_retry'), ('@dead_letters')) w (name))
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
  JOIN pg_type t ON t.oid = a.atttypid
WHERE c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped AND c.relname = $2::text
  AND n.nspname NOT LIKE 'pg\_%' AND n.nspname <> 'information_schema'
  AND ($1::text IS NULL AND c.oid <> coalesce(to_regclass('@outbox')::oid, 0::oid) OR n.nspname = $1::text)
ORDER BY n.nspname, c.oid, a.attnum

-- $1 schema, $2 table: who may insert into it, but for the owner of outbox.
--@ statement ADOPT_ROLES
SELECT DISTINCT CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE g.grantee::regrole::text END
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace CROSS JOIN LATERAL (
  SELECT x.grantee, x.privilege_type FROM aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) x
  UNION ALL SELECT x.grantee, x.privilege_type FROM pg_attribute a CROSS JOIN aclexplode(a.attacl) x WHERE a.attrelid = c.oid) g
WHERE c.relkind IN ('r', 'p') AND n.nspname = $1::text AND c.relname = $2::text AND g.privilege_type = 'INSERT'
  AND g.grantee <> (SELECT o.relowner FROM pg_class o WHERE o.oid = to_regclass('@outbox'))
ORDER BY 1

-- $1 time, $2 actor, $3 act, $4 reason, $5 detail
--@ statement ADOPT_AUDIT
INSERT INTO @outbox_audit (at_ms, actor, act, reason, detail)
VALUES ({NOW}, $2::text, $3::text, $4::text, $5::text)

-- ---- admin_define.c ----

-- $1 name or NULL: all, $2 how many: the version of all first, then each
--@ statement DEFINITIONS
SELECT v.version, d.name, d.version, d.seq, d.definition, d.created_ms, {SMALL(d.created_by)}, d.changed_ms, {SMALL(d.changed_by)},
  {SMALL(d.reason)}
FROM @outbox_definitions v LEFT JOIN (SELECT * FROM @outbox_destination_def WHERE $1::text IS NULL OR name = $1::text
  ORDER BY name LIMIT $2::bigint) d ON true
ORDER BY d.name

-- $1 names, a JSON array, $2 how many: the same
--@ statement DEFINITIONS_OF
SELECT v.version, d.name, d.version, d.seq, d.definition, d.created_ms, {SMALL(d.created_by)}, d.changed_ms, {SMALL(d.changed_by)},
  {SMALL(d.reason)}
FROM @outbox_definitions v LEFT JOIN (SELECT * FROM @outbox_destination_def
  WHERE name = ANY (ARRAY(SELECT jsonb_array_elements_text($1::jsonb))) ORDER BY name LIMIT $2::bigint) d ON true
ORDER BY d.name

-- Before the next two, in their transaction: they must see what those before them did, and a statement sees nothing newer than its own begin.
--@ statement DEFINITIONS_TURN
SELECT version FROM @outbox_definitions WHERE one FOR UPDATE

-- $1 the time, $2 name, $3 definition, $4 which version it must have (-1 any, 0 none), $5 actor, $6 reason, $7 how many there may be (0
-- any): the new version or NULL, now, the version that is there
--@ statement DEFINE
WITH turn AS (UPDATE @outbox_definitions SET version = version + 1 WHERE one RETURNING version),
put AS (INSERT INTO @outbox_destination_def AS d (name, version, seq, definition, created_ms, created_by, changed_ms, changed_by, reason)
  SELECT $2, 1, turn.version, $3, {NOW}, $5, {NOW}, $5, $6 FROM turn
  WHERE EXISTS (SELECT 1 FROM @outbox_destination_def WHERE name = $2)
    OR ($4::bigint <= 0 AND ($7::bigint = 0 OR (SELECT count(*) FROM @outbox_destination_def) < $7::bigint))
  ON CONFLICT (name) DO UPDATE SET version = d.version + 1, seq = excluded.seq, definition = excluded.definition,
    changed_ms = excluded.changed_ms, changed_by = excluded.changed_by, reason = excluded.reason
  WHERE $4::bigint = -1 OR d.version = $4::bigint RETURNING d.version),
audit AS (INSERT INTO @outbox_audit (at_ms, actor, act, destination, reason, detail)
  SELECT {NOW}, $5, CASE WHEN put.version = 1 THEN 'destination-create' ELSE 'destination-update' END, $2, $6,
    '{"version":' || put.version || '}' FROM put)
SELECT put.version, {NOW}, (SELECT version FROM @outbox_destination_def WHERE name = $2)
FROM (SELECT 1) AS one LEFT JOIN put ON true

-- $1 the time, $2 name, $3 which version it must have (-1 any), $4 actor, $5 reason, $6 even if messages wait: the version that went
-- or NULL, now, the version that is there, does something wait
--@ statement UNDEFINE
WITH busy AS MATERIALIZED (SELECT NOT $6::boolean AND (EXISTS (SELECT 1 FROM @outbox_retry WHERE destination = $2)
  OR EXISTS (SELECT 1 FROM (SELECT destination FROM @outbox ORDER BY id LIMIT 100000) o WHERE o.destination = $2)) AS yes),
turn AS (UPDATE @outbox_definitions SET version = version + 1 WHERE one RETURNING version),
gone AS (DELETE FROM @outbox_destination_def d USING busy, turn
  WHERE d.name = $2 AND ($3::bigint = -1 OR d.version = $3::bigint) AND NOT busy.yes RETURNING d.version),
audit AS (INSERT INTO @outbox_audit (at_ms, actor, act, destination, reason, detail)
  SELECT {NOW}, $4, 'destination-delete', $2, $5, '{"version":' || gone.version || '}' FROM gone)
SELECT gone.version, {NOW}, (SELECT version FROM @outbox_destination_def WHERE name = $2), busy.yes
FROM busy LEFT JOIN gone ON true

-- ---- sealed texts: admin_seal.c ----

--@ fragment IS_SEALED(encoding)
lower(coalesce({encoding}, '') COLLATE "C") LIKE 'sealed%'

-- $1 and $2 behind this row, $3 how many, $4 bytes, $5 also what is not sealed: id, sub, message_id, encoding, and two texts. The first row
-- comes however large it is.
--@ fragment SEAL_PAGE(from; id; sub; order; message_id; encoding; a; b; bytes; where)
SELECT {id}, {sub}::bigint, {message_id}, {encoding}, {a}, {b}
FROM (SELECT k.id, k.sub, sum(k.bytes) OVER (ORDER BY k.id, k.sub) - k.bytes AS before
  FROM (SELECT {id} AS id, {sub}::bigint AS sub, coalesce({bytes}, 0) AS bytes FROM {from}
  WHERE ({id}, {sub}::bigint) > ($1::bigint, $2::bigint) AND ($5::boolean OR true) AND ({where}) ORDER BY {order} LIMIT $3::bigint) k) p
  JOIN {from} ON {id} = p.id AND {sub}::bigint = p.sub
WHERE p.before < $4::bigint
ORDER BY 1, 2

--@ fragment OF_VERSIONS
(@dead_letter_versions v JOIN @dead_letters t ON t.id = v.letter_id)

--@ fragment PAYLOAD_COUNTS(payload)
{payload} IS NOT NULL AND ($5::boolean OR {IS_SEALED(t.encoding)})

--@ fragment DETAIL_COUNTS
coalesce(strpos(t.error_detail, '"hk1.'), 0) > 0

--@ fragment BODY_IS_SEALED
substring(t.response_body FROM 1 FOR 4) = '\x686b312e'::bytea

--@ statement SEAL_RETRY
{SEAL_PAGE(@outbox_retry t; t.id; 0; t.id; t.message_id; t.encoding; t.payload; NULL::text; octet_length(t.payload); {PAYLOAD_COUNTS(t.payload)})}

--@ statement SEAL_LETTERS
{SEAL_PAGE(@dead_letters t; t.id; 0; t.id; t.message_id; t.encoding; t.payload; t.error_detail; octet_length(t.payload); ({PAYLOAD_COUNTS(t.payload)})
  OR {DETAIL_COUNTS})}

--@ statement SEAL_VERSIONS
{SEAL_PAGE({OF_VERSIONS}; v.letter_id; v.version; v.letter_id, v.version; t.message_id; t.encoding; v.payload; NULL::text; octet_length(v.payload);
  {PAYLOAD_COUNTS(v.payload)})}

--@ statement SEAL_CANCELLED
{SEAL_PAGE(@outbox_cancelled t; t.id; 0; t.id; t.message_id; t.encoding; t.payload; NULL::text; octet_length(t.payload); {PAYLOAD_COUNTS(t.payload)})}

--@ statement SEAL_ATTEMPTS
{SEAL_PAGE(@outbox_attempts t; t.id; 0; t.id; t.message_id; NULL::text; CASE WHEN t.response_headers LIKE 'hk1.%' THEN t.response_headers END; CASE
  WHEN {BODY_IS_SEALED} THEN convert_from(t.response_body, 'UTF8') END; octet_length(t.response_body); t.response_headers LIKE 'hk1.%'
  OR {BODY_IS_SEALED})}

-- $1 id, $2 sub, $3 the old text, $4 the new one, $5 its encoding or NULL
--@ fragment SEAL_PUT(table; column; also)
UPDATE @{table} SET {column} = $4::text{also} WHERE id = $1::bigint AND coalesce($2::bigint, 0) = 0 AND {column} = $3::text
  AND coalesce($5::text, '') = coalesce($5, '')

--@ fragment AND_ENCODING
, encoding = coalesce($5::text, encoding)

--@ statement PUT_RETRY
{SEAL_PUT(outbox_retry; payload; {AND_ENCODING})}

--@ statement PUT_LETTER
{SEAL_PUT(dead_letters; payload; {AND_ENCODING})}

--@ statement PUT_DETAIL
{SEAL_PUT(dead_letters; error_detail; )}

--@ statement PUT_VERSION
UPDATE @dead_letter_versions SET payload = $4::text WHERE letter_id = $1::bigint AND version = $2::bigint AND payload = $3::text
  AND coalesce($5::text, '') = coalesce($5, '')

--@ statement PUT_CANCELLED
{SEAL_PUT(outbox_cancelled; payload; {AND_ENCODING})}

--@ statement PUT_ATTEMPT_HEADERS
{SEAL_PUT(outbox_attempts; response_headers; )}

--@ statement PUT_ATTEMPT_BODY
UPDATE @outbox_attempts SET response_body = convert_to($4::text, 'UTF8') WHERE id = $1::bigint AND coalesce($2::bigint, 0) = 0
  AND response_body = convert_to($3::text, 'UTF8') AND coalesce($5::text, '') = coalesce($5, '')

--@ fragment KEY_OF(text; at)
split_part(substr({text}, {at}, 40), '.', 2)

--@ fragment PAYLOAD_KEY
CASE WHEN {IS_SEALED(t.encoding)} THEN {KEY_OF(t.payload; 1)} ELSE '' END

--@ fragment PAYLOAD_USES(home; table)
SELECT {home}, {PAYLOAD_KEY} AS key, count(*) FROM @{table} t WHERE t.payload IS NOT NULL GROUP BY 2

-- The numbers are enum hk_seal_home.
--@ statement SEAL_USES
{PAYLOAD_USES(0; outbox_retry)} UNION ALL {PAYLOAD_USES(1; dead_letters)} UNION ALL {PAYLOAD_USES(3; outbox_cancelled)}
UNION ALL {PAYLOAD_USES(5; outbox)}
UNION ALL SELECT 2, CASE WHEN {IS_SEALED(t.encoding)} THEN {KEY_OF(v.payload; 1)} ELSE '' END AS key, count(*) FROM {OF_VERSIONS}
  WHERE v.payload IS NOT NULL GROUP BY 2
UNION ALL SELECT 1, {KEY_OF(t.error_detail; strpos(t.error_detail, '"hk1.') + 1)} AS key, count(*) FROM @dead_letters t
  WHERE {DETAIL_COUNTS} GROUP BY 2
UNION ALL SELECT 4, {KEY_OF(coalesce(t.response_headers, convert_from(t.response_body, 'UTF8')); 1)} AS key, count(*) FROM @outbox_attempts t
  WHERE t.response_headers LIKE 'hk1.%' OR (t.response_headers IS NULL AND {BODY_IS_SEALED}) GROUP BY 2

-- $1 the time, $2 act, $3 actor, $4 reason, $5 detail, $6 message_id
--@ statement NOTE
INSERT INTO @outbox_audit (at_ms, actor, act, reason, detail, message_id) VALUES ({NOW}, $3, $2, $4, $5, $6)

-- ---- what is kept of a message: admin_erase.c ----

-- $1 the time, $2 ids of dead_letters, $3 of outbox_cancelled, $4 of outbox_sent, $5 actor, $6 reason: the time, then of each that is there its
-- place (enum hk_place), its id and enum hk_ref_did. An open letter is discarded: nobody could send it any more.
--@ statement ERASE_REFS
WITH t AS MATERIALIZED (SELECT 2 AS place, d.id, d.message_id FROM @dead_letters d WHERE d.id = ANY ($2::bigint[])
  UNION ALL SELECT 3, c.id, c.message_id FROM @outbox_cancelled c WHERE c.id = ANY ($3::bigint[])
  UNION ALL SELECT 4, s.id, s.message_id FROM @outbox_sent s WHERE s.id = ANY ($4::bigint[])),
m AS MATERIALIZED (SELECT DISTINCT t.message_id FROM t),
away AS MATERIALIZED (SELECT m.message_id FROM m WHERE EXISTS (SELECT 1 FROM @outbox_retry q WHERE q.message_id = m.message_id)
  OR EXISTS (SELECT 1 FROM @dead_letters d WHERE d.message_id = m.message_id AND (d.status = 'retrying' OR d.sending_at IS NOT NULL))),
g AS MATERIALIZED (SELECT m.message_id FROM m WHERE NOT EXISTS (SELECT 1 FROM away WHERE away.message_id = m.message_id)),
l AS (UPDATE @dead_letters d SET payload = NULL, headers = NULL, encoding = '{=HK_ERASED}', error_message = NULL, error_detail = NULL,
  resolution = CASE d.status WHEN 'failed' THEN '{=HK_ERASED}' ELSE d.resolution END, resolved_at = CASE d.status
  WHEN 'failed' THEN 'epoch'::timestamptz + {NOW} * interval '1 ms' ELSE d.resolved_at END, status = CASE d.status
  WHEN 'failed' THEN 'discarded' ELSE d.status END FROM g WHERE d.message_id = g.message_id
  RETURNING d.id, d.requeued_as),
v AS (UPDATE @dead_letter_versions v SET payload = NULL FROM l WHERE v.letter_id = l.id),
c AS (UPDATE @outbox_cancelled c SET payload = NULL, headers = NULL, encoding = '{=HK_ERASED}', last_error = NULL FROM g
  WHERE c.message_id = g.message_id),
a AS (UPDATE @outbox_attempts a SET error = NULL, request_headers = NULL, response_headers = NULL, response_body = NULL
  FROM (SELECT g.message_id FROM g UNION SELECT l.requeued_as FROM l WHERE l.requeued_as IS NOT NULL) x
  WHERE a.message_id = x.message_id),
audit AS (INSERT INTO @outbox_audit (at_ms, actor, act, message_id, reason) SELECT {NOW}, $5, 'erase', g.message_id, $6 FROM g
  ORDER BY g.message_id)
SELECT {NOW}, t.place, t.id, CASE WHEN EXISTS (SELECT 1 FROM away WHERE away.message_id = t.message_id) THEN 2 ELSE 0 END
FROM (SELECT 1) z LEFT JOIN t ON true
