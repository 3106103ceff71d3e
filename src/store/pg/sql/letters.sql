-- SPDX-License-Identifier: Apache-2.0
-- The statements about dead letters. They share the operators' connection.
--
-- There may be millions of them, and a person waits.
--
-- What a query asks for is split in two: an index gives letters in the order of their ids (the path), and what else is asked
-- is looked at with each of them. A call looks at a bounded number of letters of a path, so that a filter that fits
-- nothing ends in bounded time and says where to go on. Plans are made for the very parameters (sql/admin.sql): what is
-- not asked for (`$5 IS NULL OR …`) costs nothing.
--
-- `$1`, where a statement begins with the time, is the time of tests; NULL is the server's own.

--@ fragment NOW
coalesce($1::bigint, (extract(epoch FROM now()) * 1000)::bigint)

--@ fragment TIME(ms)
('epoch'::timestamptz + {ms} * interval '1 ms')

--@ fragment MS(t)
(CASE WHEN isfinite({t}) THEN (date_part('epoch', {t}) * 1000)::bigint END)

--@ fragment TIME_TEXT(t)
(CASE WHEN isfinite({t}) THEN to_char({t}, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') ELSE {t}::text END)

--@ fragment CUT(t)
left({t}, 16000)

--@ fragment WIDE(t)
left({t}, 262144)

--@ fragment HASH(t)
encode(sha256(convert_to({t}, 'UTF8')), 'hex')

-- ---- a letter ----
-- `details`: a condition; `most`: how much of the payload
--@ fragment LETTER(t; details; most)
{t}.id, {t}.original_outbox_id, {CUT({t}.message_id)}, {CUT({t}.event_type)}, {CUT({t}.destination)},
{CUT({t}.message_key)}, {CUT({t}.correlation_id)}, {CUT({t}.traceparent)}, {CUT({t}.reason_code)},
{CUT({t}.error_message)}, {CUT({t}.failure_class)}, {CUT({t}.fault)}, {CUT({t}.fingerprint)}, {t}.status,
{t}.attempts, {t}.crashes, {t}.life, {t}.requeues, {t}.payload_version, {t}.possibly_delivered,
{MS({t}.message_created_at)}, {MS({t}.created_at)}, {MS({t}.first_failed_at)}, {MS({t}.last_failed_at)},
{MS({t}.last_attempt_at)}, {MS({t}.requeued_at)}, {MS({t}.resolved_at)}, {MS({t}.edited_at)}, {MS({t}.sending_at)},
{CUT({t}.requeued_as)}, {CUT({t}.resolution)}, {t}.redrive_id, octet_length({t}.payload), CASE
  WHEN {most}::int > 0 THEN left({t}.payload, {most}::int) END, {IF({details}; {WIDE({t}.headers)})}, {IF({details};
  {CUT({t}.content_type)})}, {IF({details}; {CUT({t}.encoding)})}, {IF({details}; {CUT({t}.idempotency_key)})},
{IF({details}; {CUT({t}.policy)})}, {IF({details}; {TIME_TEXT({t}.expires_at)})}, {IF({details};
  {WIDE({t}.error_detail)})}, {IF({details}; {t}.max_attempts)}

--@ fragment IF(condition; value)
CASE WHEN {condition} THEN {value} END

-- ---- a query ----
-- $2 ids above this, $3 ids below this, $4 statuses (NULL = any), $5 destination, $6 reason, $7 fingerprint, $8 message_id,
-- $9 correlation_id, $10 key, $11 event_type as LIKE has it, $12 class, $13 fault, $14 since, $15 before, $16 redrive
--@ fragment ASKED(column; param)
({param}::text IS NULL OR {column} = {param}) AND

--@ fragment FITS(t)
($4::text[] IS NULL OR {t}.status = ANY ($4)) AND {ASKED({t}.destination; $5)} {ASKED({t}.reason_code; $6)}
($7::text IS NULL OR {t}.fingerprint = $7 OR {t}.fingerprint_old = $7)
  AND {ASKED({t}.message_id; $8)} {ASKED({t}.correlation_id; $9)} {ASKED({t}.message_key; $10)} ($11::text IS NULL
  OR {t}.event_type LIKE $11) AND {ASKED({t}.failure_class; $12)} {ASKED({t}.fault; $13)} ($14::bigint IS NULL
  OR {t}.last_failed_at >= {TIME($14::bigint)}) AND ($15::bigint IS NULL
  OR {t}.last_failed_at < {TIME($15::bigint)}) AND ($16::bigint IS NULL OR {t}.redrive_id = $16)

--@ fragment FITS_WITHIN(t)
{FITS({t})} AND {t}.id > $2::bigint AND {t}.id < $3::bigint

-- Paths: $17 how many. `what` is the letters' ids or the whole letters. `id` says which index is meant (the schema has it), and
-- is called `at`. What is no status of the query is no branch of the plan.
--@ fragment ID(id)
{id} AS at

--@ fragment WHOLE(id)
l.*, {id} AS at

--@ fragment BRANCH(what; status; key; id; dir)
(SELECT {what({id})} FROM @dead_letters l WHERE l.status = '{status}' AND ($4::text[] IS NULL
  OR '{status}' = ANY ($4)) AND {key} {id} > $2::bigint AND {id} < $3::bigint ORDER BY {id} {dir} LIMIT $17::bigint)

--@ fragment BRANCHES(what; key; id; dir)
{BRANCH({what}; failed; {key}; {id}; {dir})}
UNION ALL {BRANCH({what}; retrying; {key}; {id}; {dir})}
UNION ALL {BRANCH({what}; resolved; {key}; {id}; {dir})}
UNION ALL {BRANCH({what}; discarded; {key}; {id}; {dir})}

--@ fragment ALL_OF(branches; dir)
SELECT * FROM ({branches}) u ORDER BY u.at {dir} LIMIT $17::bigint

--@ fragment PATH(what; key; id; dir)
{ALL_OF({BRANCHES({what}; {key}; {id}; {dir})}; {dir})}

--@ fragment PATH_ID(what; dir)
SELECT {what(l.id)}
FROM @dead_letters l
WHERE l.id > $2::bigint AND l.id < $3::bigint
ORDER BY l.id {dir} LIMIT $17::bigint

--@ fragment PATH_STATUS(what; dir)
{PATH({what}; ; (l.id + 0); {dir})}

--@ fragment PATH_DESTINATION(what; dir)
{PATH({what}; left(l.destination, 63) COLLATE "C" = left($5::text, 63) AND l.destination = $5
  AND; (l.id - 0); {dir})}

--@ fragment PATH_REASON(what; dir)
{PATH({what}; l.reason_code COLLATE "C" = $6::text AND; (l.id * 1); {dir})}

-- Also what an older version of the rule put into that group: no letter is in both, for where nothing changed nothing is kept.
--@ fragment PATH_GROUP(what; dir)
{ALL_OF({BRANCHES({what}; l.fingerprint = $7::text AND; (l.id / 1); {dir})}
  UNION ALL {BRANCHES({what}; l.fingerprint_old = $7::text AND; (l.id # 0); {dir})}; {dir})}

--@ fragment PATH_REDRIVE(what; dir)
{PATH({what}; l.redrive_id = $16::bigint AND; (l.id | 0); {dir})}

--@ fragment PATH_MESSAGE(what; dir)
SELECT {what(l.id)}
FROM (SELECT * FROM @dead_letters x WHERE x.message_id = $8::text OFFSET 0) l
WHERE l.id > $2::bigint AND l.id < $3::bigint
ORDER BY l.id {dir} LIMIT $17::bigint

-- $11 without what LIKE needs: it has no '*' where this path is taken.
--@ fragment TYPE
regexp_replace($11::text, '\\(.)', '\1', 'g')

-- These two without the statuses.
--@ fragment PATH_TYPE(what; dir)
SELECT {what((l.id & -1))}
FROM @dead_letters l
WHERE left(l.event_type, 200) = left({TYPE}, 200) AND l.event_type = {TYPE} AND (l.id & -1) > $2::bigint
  AND (l.id & -1) < $3::bigint
ORDER BY (l.id & -1) {dir} LIMIT $17::bigint

--@ fragment PATH_CORRELATION(what; dir)
SELECT {what((l.id << 0))}
FROM @dead_letters l
WHERE left(l.correlation_id, 200) = left($9::text, 200) AND l.correlation_id = $9 AND (l.id << 0) > $2::bigint
  AND (l.id << 0) < $3::bigint
ORDER BY (l.id << 0) {dir} LIMIT $17::bigint

-- Can it match at all (struct hk_letter_sieve)? $22 and $23 of the value, $24 and $25 of the text, $26 a pattern if the value stands alone. lower() in "C" changes A to Z
-- only. What is asked last is compressed, or lies elsewhere.
--@ fragment HAS(column; param)
strpos({column} COLLATE "C", {param}) > 0

--@ fragment HAS_ANY_CASE(column)
strpos(lower({column} COLLATE "C"), $24) > 0 OR

-- No more than is matched afterwards: of a gigabyte, lower() would make another.
--@ fragment BEGINNING(t)
(CASE WHEN octet_length({t}.payload) > $19::bigint THEN left({t}.payload, $19::int) ELSE {t}.payload END)

--@ fragment SIEVED(t)
(($22::text IS NULL AND $24::text IS NULL) OR lower({t}.encoding COLLATE "C") = 'base64' OR (($22::text IS NULL
  OR ({HAS({BEGINNING({t})}; $22)} AND ($26::text IS NULL OR {BEGINNING({t})} ~ $26)) OR {HAS({BEGINNING({t})}; $23::text)})
  AND ($24::text IS NULL OR {HAS_ANY_CASE({t}.error_message)} {HAS_ANY_CASE({t}.message_id)}
  {HAS_ANY_CASE({t}.correlation_id)} {HAS_ANY_CASE({t}.event_type)} {HAS_ANY_CASE({t}.destination)}
  {HAS_ANY_CASE({BEGINNING({t})})} {HAS({BEGINNING({t})}; $25::text)})))

-- $17 letters to look at, $18 to find, $19 bytes of each payload, $20 and of all, $21 details?, then the sieve. The first letter comes however
-- large it is. What is found is read again by its id: until then nothing but numbers is kept.
--@ fragment LIST(path; dir; last)
WITH m AS MATERIALIZED (SELECT t.id, least(coalesce(octet_length(t.payload), 0), $19::bigint) AS bytes
  FROM ( {path(WHOLE; {dir})} ) t WHERE {FITS(t)} AND {SIEVED(t)} ORDER BY t.at {dir} LIMIT $18::bigint),
k AS MATERIALIZED (SELECT f.n, CASE WHEN f.n < $18 THEN (SELECT ARRAY[count(*), {last}(w.at)]
  FROM ( {path(ID; {dir})} ) w) END AS looked FROM (SELECT count(*) AS n FROM m) f),
b AS MATERIALIZED (SELECT m.id, sum(m.bytes) OVER (ORDER BY m.id {dir} ROWS UNBOUNDED PRECEDING) - m.bytes AS before
  FROM m) SELECT {NOW}, k.n, k.looked[1], k.looked[2], {LETTER(t; $21::boolean; $19)}
FROM k LEFT JOIN (b CROSS JOIN LATERAL (SELECT * FROM @dead_letters x
  WHERE x.id = b.id OFFSET 0) t) ON b.before < $20::bigint
ORDER BY t.id {dir}

-- The time; letters on the path, $17 at the most; and those of them that fit. All parameters must stand somewhere.
--@ fragment COUNT(path)
SELECT {NOW}, count(*), count(*)
FROM ( {path(ID; ASC)} ) w
WHERE num_nulls($2::bigint, $3::bigint, $4::text[], $5::text, $6::text, $7::text, $8::text, $9::text, $10::text,
  $11::text, $12::text, $13::text, $14::bigint, $15::bigint, $16::bigint) >= 0

--@ fragment COUNT_FIT(path)
SELECT {NOW}, count(*), count(*) FILTER (WHERE {FITS(t)}) FROM ( {path(WHOLE; ASC)} ) t

-- As in sql/admin.sql.
--@ fragment SAMPLED
@dead_letters t TABLESAMPLE SYSTEM (least(100, 2457600000.0 / greatest(1,
  pg_relation_size('@dead_letters'::regclass)))) REPEATABLE (1)

--@ fragment SAMPLE_FACTOR
greatest(1, pg_relation_size('@dead_letters'::regclass) / 24576000.0)

--@ fragment NEWEST(path)
{LIST({path}; DESC; min)}

--@ fragment OLDEST(path)
{LIST({path}; ASC; max)}

-- ---- figures ----
-- As the indexes by destination and by reason have it, or they would not be thought of.
--@ fragment INDEXED
AND ($5::text IS NULL OR left(l.destination, 63) COLLATE "C" = left($5, 63)) AND ($6::text IS NULL
  OR l.reason_code COLLATE "C" = $6)

--@ fragment GROUP_OF(fingerprint; by)
SELECT count(*) AS n, min(l.first_failed_at) AS first, max(l.last_failed_at) AS last, max(l.id) AS example
FROM @dead_letters l
WHERE l.fingerprint {fingerprint} AND {FITS_WITHIN(l)} {INDEXED}
GROUP BY {by}

-- The same of those that may have arrived, which have an index of their own.
--@ fragment MAYBE_OF(fingerprint; key; by)
SELECT {key} AS key, count(*) AS n
FROM @dead_letters l
WHERE l.possibly_delivered AND l.fingerprint {fingerprint} AND {FITS_WITHIN(l)}
GROUP BY {by}

--@ fragment KEY_OF(t)
coalesce({t}.fingerprint, '?' || {t}.reason_code || ' ' || {t}.destination)

-- Of the newest letters on a path, $17 at the most; $18 groups. Columns as of GROUPS, then letters that were looked at, the oldest and
-- the newest of them.
--@ fragment GROUPS_PAGE(path)
WITH g AS MATERIALIZED (SELECT {KEY_OF(t)} AS key, ({FITS(t)}) IS TRUE AS fits, count(*) AS n,
  count(*) FILTER (WHERE t.possibly_delivered) AS maybe, min(t.first_failed_at) AS first, max(t.last_failed_at) AS last,
  max(t.id) AS example, min(t.at) AS low, max(t.at) AS high FROM ( {path(WHOLE; DESC)} ) t GROUP BY 1, 2),
s AS MATERIALIZED (SELECT * FROM g WHERE g.fits ORDER BY g.n DESC, g.example DESC LIMIT $18::bigint)
SELECT {NOW}, k.letters, k.n, k.maybe, s.n, s.maybe, {MS(s.first)}, {MS(s.last)}, e.id, {CUT(e.fingerprint)},
{CUT(e.reason_code)}, {CUT(e.failure_class)}, {CUT(e.fault)}, {CUT(e.destination)}, {CUT(e.error_message)},
{CUT(e.event_type)}, {CUT(e.message_id)}, k.looked, k.low, k.high
FROM (SELECT coalesce(sum(g.n) FILTER (WHERE g.fits), 0) AS letters, count(*) FILTER (WHERE g.fits) AS n,
  coalesce(sum(g.maybe) FILTER (WHERE g.fits), 0) AS maybe, coalesce(sum(g.n), 0) AS looked, min(g.low) AS low,
  max(g.high) AS high FROM g) k LEFT JOIN (s CROSS
  JOIN LATERAL (SELECT * FROM @dead_letters x WHERE x.id = s.example OFFSET 0) e) ON true
ORDER BY s.n DESC, s.example DESC

-- One look at every letter: what is the same is put together, then counted in several ways. Columns as they are, and event_type
-- as its index has it: so the planner knows how few there are, and that a table in memory will do.
--@ fragment TALLIED
c AS MATERIALIZED (SELECT l.status, l.reason_code AS reason, left(l.event_type, 200) AS type, l.destination,
  l.fault, l.requeues > 0 AS again, count(*) AS n FROM @dead_letters l GROUP BY 1, 2, 3, 4, 5, 6)

--@ fragment DAY(n)
{TIME(({n}) * 86400000)}

--@ fragment TALLY(kind; name; where)
SELECT {kind}, {name}::text, sum(c.n) FROM c WHERE {where} GROUP BY 2

--@ fragment TOP(kind; name)
({TALLY({kind}; {name}; true)} ORDER BY 3 DESC, 2 LIMIT 20)

-- ---- the audit ----
--@ fragment AUDIT_ROW
a.id, a.at_ms, {WIDE(a.actor)}, {WIDE(a.act)}, {WIDE(a.message_id)}, {WIDE(a.destination)}, {WIDE(a.reason)},
a.letter_id, a.redrive_id, {CUT(a.before_hash)}, {CUT(a.after_hash)}, {WIDE(a.detail)}, {CUT(a.prev)},
{CUT(a.hash)}, a.act_id, (SELECT count(*) FROM @outbox_audit_letters y WHERE y.act_id = a.id),
(SELECT count(*) FROM @outbox_audit_messages y WHERE y.act_id = a.id)

-- $1 ids above this, $2 ids below this, $3 letter, $4 actor, $5 act, $6 rows to look at, $7 rows to find, $8 also rows that go on with an
-- act?, $9 digests?: as LIST; the digest comes last
--@ fragment AUDIT_PATH(letter; dir)
SELECT * FROM {letter} x.id > $1::bigint AND x.id < $2::bigint ORDER BY x.id {dir} LIMIT $6::bigint

--@ fragment AUDIT(letter; dir; last)
WITH m AS MATERIALIZED (SELECT * FROM ({AUDIT_PATH({letter}; {dir})}) x WHERE ($4::text IS NULL OR x.actor = $4)
  AND ($5::text IS NULL OR x.act = $5) AND ($8::boolean OR x.detail IS NULL
  OR left(x.detail, 7) <> '{"act":') ORDER BY x.id {dir} LIMIT $7::bigint),
k AS MATERIALIZED (SELECT f.n, CASE WHEN f.n < $7 THEN (SELECT ARRAY[count(*), {last}(w.id)]
  FROM ({AUDIT_PATH({letter}; {dir})}) w) END AS looked FROM (SELECT count(*) AS n FROM m) f)
SELECT k.n, k.looked[1], k.looked[2], {AUDIT_ROW}, CASE WHEN $9::boolean THEN coalesce((SELECT {LIST_DIGEST(y;
  y.letter_id; y.before_hash; y.after_hash; y.detail)} FROM @outbox_audit_letters y WHERE y.audit_id = a.id),
  (SELECT {LIST_DIGEST(y; y.cancelled_id; NULL::text; NULL::text; NULL::text)} FROM @outbox_audit_messages y
  WHERE y.audit_id = a.id)) END
FROM k LEFT JOIN m a ON true
ORDER BY a.id {dir}

--@ fragment ANY_ACT
(SELECT *, NULL::bigint AS act_id FROM @outbox_audit) x WHERE $3::bigint IS NULL AND

--@ fragment OF_LETTER
@outbox_audit_of_letters x WHERE x.letter_id = $3::bigint AND

-- ---- acts: $1 the time, $2 ids, $3 actor, $4 reason ----
-- The letters are locked by the statement before (LOCK), so that this one, with a later snapshot, sees what is true until it
-- commits. `did` is enum hk_letter_did.
--@ fragment SENDING
d.sending_at IS NOT NULL

--@ fragment OPEN
d.status = 'failed' AND d.sending_at IS NULL

--@ fragment MEANT(ok; nothing; more)
l AS MATERIALIZED (SELECT d.id, d.status, {SENDING} AS sending, d.message_id, d.destination, coalesce(d.requeued_as,
  d.message_id) AS newest, CASE WHEN {ok} THEN 0 WHEN {nothing} THEN 1 ELSE 3 END AS did{more}

--@ fragment MEANT_IDS
FROM @dead_letters d WHERE d.id = ANY ($2::bigint[])

--@ fragment TO_AUDIT(columns)
INSERT INTO @outbox_audit (at_ms, actor, act, message_id, destination, reason, letter_id{columns})

-- What it leaves. `id`: the act that it goes on with; 0 = it begins one; NULL = it is about one letter and has no list. A list's row
-- has the digest, and where it begins an act, its words. sqlite/letters_trail.c writes the same.
--@ fragment TRAIL(act; id; filter; program; job; before; after; detail)
a AS ({TO_AUDIT(, redrive_id, before_hash, after_hash, detail)} SELECT {NOW}, $3, {act}, l.message_id,
  l.destination, $4, l.id, {job}, {before}, {after}, {detail} FROM l WHERE l.did = 0 AND ({id}) IS NULL
  UNION ALL SELECT {NOW}, $3, {act}, NULL, NULL, $4, NULL, {job}, NULL, NULL, '{' || coalesce('"act":' ||
  nullif(({id}), 0) || ',', '') || '"letters":' || k.n || ',"list":"' || k.digest || '"' || CASE
  WHEN ({id}) = 0 THEN coalesce(',"filter":' || to_json({filter}::text)::text, '') || coalesce(',"jq":' ||
  to_json({program}::text)::text, '') ELSE '' END || '}' FROM (SELECT count(*) AS n, {LIST_DIGEST(l; l.id; {before};
  {after}; {detail})} AS digest FROM l WHERE l.did = 0) k WHERE k.n > 0 AND ({id}) IS NOT NULL
  RETURNING id, letter_id),
y AS (INSERT INTO @outbox_audit_letters (audit_id, letter_id, act_id, message_id, destination, before_hash,
  after_hash, detail) SELECT a.id, l.id, coalesce(nullif(({id}), 0), a.id), l.message_id, l.destination, {before},
  {after}, {detail} FROM l CROSS JOIN a WHERE l.did = 0 AND a.letter_id IS NULL ORDER BY l.id)

--@ fragment NONE
NULL::text

-- The time, id, did, status, sending, message_id, act, version
--@ fragment DONE(status; message_id; id; version)
SELECT z.now, l.id, l.did, CASE l.did WHEN 0 THEN {status} ELSE l.status
  END, l.sending, {CUT({message_id})}, coalesce(nullif(({id}), 0), (SELECT a.id FROM a
  WHERE a.letter_id IS NULL)), {version}
FROM (SELECT {NOW} AS now) z LEFT JOIN l ON true

-- $5 the act, $6 filter, $7 program
--@ fragment CHANGE(ok; nothing; set; status; act)
WITH {MEANT({ok}; {nothing}; )} {MEANT_IDS}), u AS (UPDATE @dead_letters d SET status = {status}, {set}
FROM l
WHERE d.id = l.id AND l.did = 0), {TRAIL({act}; $5::bigint; $6; $7; NULL::bigint; {NONE}; {NONE}; {NONE})}
{DONE({status}; l.newest; $5::bigint; 0)}

--@ fragment CLOSED
sending_at = NULL, resolved_at = {TIME({NOW})}, resolution = $3::text || ': ' || $4::text

-- $5 which id (auto, same, new, same-always), $6 job or NULL; then the act, filter, program. Edited since it last went out: what arrived
-- under the old id was something else. Which of the two was later decides, so that neither is dated before the other, whatever the clock
-- does.
--@ fragment EDITED
(d.edited_at IS NOT NULL AND (d.requeued_at IS NULL OR d.edited_at > d.requeued_at))

--@ fragment NEW_ID
($5::text = 'new' OR ({EDITED} AND ($5 = 'auto' OR ($5 = 'same' AND d.possibly_delivered))))

-- Has the new destination had the message already, or will it, under its id? Another letter of the same message among $2 may go there first.
--@ fragment NEWEST_ID(d)
coalesce({d}.requeued_as, {d}.message_id)

--@ fragment OF_NEWEST(table; to)
EXISTS (SELECT 1 FROM {table} x WHERE x.message_id = {NEWEST_ID(d)} AND x.destination = {to}

--@ fragment TAKEN(to)
({to}::text IS NOT NULL AND {to} <> d.destination AND NOT {NEW_ID} AND ({OF_NEWEST(@outbox_retry; {to})})
  OR {OF_NEWEST(@outbox_sent; {to})}) OR {OF_NEWEST(@dead_letters; {to})} AND x.id <> d.id) OR EXISTS (SELECT 1
  FROM @dead_letters e WHERE e.id = ANY ($2::bigint[]) AND e.id < d.id AND {NEWEST_ID(e)} = {NEWEST_ID(d)})))

-- `to`: another destination; NULL = each goes to its own
--@ fragment REQUEUED(guard; id; filter; program; to)
{MEANT({OPEN} AND NOT {TAKEN({to})}; d.status = 'retrying' AND d.sending_at IS NULL; , CASE
  WHEN {NEW_ID} THEN CASE WHEN lower(d.encoding COLLATE "C") LIKE 'sealed%' THEN d.message_id || '~' ELSE '' END ||
  gen_random_uuid()::text ELSE {NEWEST_ID(d)} END AS goes_as,
  coalesce({to}::text, d.destination) AS goes_to)} {MEANT_IDS} {guard}), u AS (UPDATE @dead_letters d
  SET status = 'retrying', requeued_at = greatest({TIME({NOW})}, d.edited_at), requeues = d.requeues + 1,
requeued_as = nullif(l.goes_as, d.message_id), redrive_id = coalesce($6::bigint, d.redrive_id), destination = l.goes_to
FROM l
WHERE d.id = l.id AND l.did = 0), o AS (UPDATE @outbox_redrive o SET lost = o.lost + n.n
FROM (SELECT d.redrive_id, count(*) AS n FROM l JOIN @dead_letters d ON d.id = l.id WHERE l.did = 0
  AND d.redrive_id <> $6::bigint GROUP BY d.redrive_id) n
WHERE o.id = n.redrive_id), r AS (INSERT INTO @outbox_retry (original_outbox_id, message_id, destination,
  event_type, message_key, headers, content_type, encoding, correlation_id, traceparent, policy, max_attempts,
  created_at, possibly_delivered, payload, idempotency_key, expires_at, due_ms, life, letter_id)
SELECT d.original_outbox_id, l.goes_as, l.goes_to, d.event_type, d.message_key, d.headers, d.content_type,
d.encoding, d.correlation_id, d.traceparent, d.policy, d.max_attempts, d.message_created_at, d.possibly_delivered,
d.payload, CASE WHEN l.goes_as = d.message_id THEN d.idempotency_key END, CASE
  WHEN d.expires_at > {TIME({NOW})} THEN d.expires_at END, {NOW}, d.life + 1, d.id
FROM l JOIN @dead_letters d ON d.id = l.id
WHERE l.did = 0
ORDER BY l.id), {TRAIL('requeue'; {id}; {filter}; {program}; $6::bigint; {NONE}; {NONE}; '{"message_id":' ||
to_json(l.goes_as) || CASE WHEN l.goes_to <> l.destination THEN ',"from":' || to_json(l.destination) || ',"to":' ||
to_json(l.goes_to) ELSE '' END || '}')}

-- As the index has it.
--@ fragment STALE
('{=HK_FINGERPRINT_MADE}' || d.fingerprint) IS DISTINCT
FROM d.fingerprint_made AND d.status IN ('failed', 'retrying')

-- ---- jobs ----
-- The act that a job goes on with: the row that started it; 0 when retention has taken that.
--@ fragment JOB_ACT
SELECT coalesce(min(s.id), 0) FROM @outbox_audit s WHERE s.redrive_id = $6::bigint AND s.act = 'redrive-start'

--@ fragment TO_JOB_AUDIT
INSERT INTO @outbox_audit (at_ms, actor, act, reason, redrive_id)

--@ fragment DECIMAL(x)
round({x}::numeric, 9)

-- What was requeued and is neither on its way nor dead again has arrived.
--@ fragment OF_JOB(statuses)
(SELECT count(*) FROM @dead_letters d WHERE d.redrive_id = j.id AND d.status {statuses})

--@ fragment STRUGGLING
(SELECT count(*) FROM @outbox_retry r CROSS JOIN LATERAL (SELECT 1 FROM @dead_letters d WHERE d.id = r.letter_id
  AND d.redrive_id = j.id AND d.status = 'retrying' OFFSET 0) d WHERE r.letter_id <> 0 AND r.attempts > 0)

--@ columns C
ID, OUTBOX_ID, MESSAGE_ID, EVENT_TYPE, DESTINATION, KEY, CORRELATION_ID, TRACEPARENT, REASON, ERROR, CLASS, FAULT,
FINGERPRINT, STATUS, ATTEMPTS, CRASHES, LIFE, REQUEUES, VERSION, POSSIBLY, MESSAGE_MS, CREATED_MS, FIRST_MS,
LAST_MS, ATTEMPT_MS, REQUEUED_MS, RESOLVED_MS, EDITED_MS, SENDING_MS, REQUEUED_AS, RESOLUTION, REDRIVE,
PAYLOAD_BYTES, PAYLOAD, HEADERS, CONTENT_TYPE, ENCODING, IDEMPOTENCY_KEY, POLICY, EXPIRES, DETAIL, MAX_ATTEMPTS

--@ columns W
NOW, FOUND, LOOKED, LAST, LETTER

-- letters.c: one of each for each path
--@ statement NEWEST_BY_ID
{NEWEST(PATH_ID)}

--@ statement NEWEST_BY_STATUS
{NEWEST(PATH_STATUS)}

--@ statement NEWEST_BY_DESTINATION
{NEWEST(PATH_DESTINATION)}

--@ statement NEWEST_BY_REASON
{NEWEST(PATH_REASON)}

--@ statement NEWEST_BY_GROUP
{NEWEST(PATH_GROUP)}

--@ statement NEWEST_BY_REDRIVE
{NEWEST(PATH_REDRIVE)}

--@ statement NEWEST_BY_MESSAGE
{NEWEST(PATH_MESSAGE)}

--@ statement NEWEST_BY_TYPE
{NEWEST(PATH_TYPE)}

--@ statement NEWEST_BY_CORRELATION
{NEWEST(PATH_CORRELATION)}

--@ statement OLDEST_BY_ID
{OLDEST(PATH_ID)}

--@ statement OLDEST_BY_STATUS
{OLDEST(PATH_STATUS)}

--@ statement OLDEST_BY_DESTINATION
{OLDEST(PATH_DESTINATION)}

--@ statement OLDEST_BY_REASON
{OLDEST(PATH_REASON)}

--@ statement OLDEST_BY_GROUP
{OLDEST(PATH_GROUP)}

--@ statement OLDEST_BY_REDRIVE
{OLDEST(PATH_REDRIVE)}

--@ statement OLDEST_BY_MESSAGE
{OLDEST(PATH_MESSAGE)}

--@ statement OLDEST_BY_TYPE
{OLDEST(PATH_TYPE)}

--@ statement OLDEST_BY_CORRELATION
{OLDEST(PATH_CORRELATION)}

-- what lies on the path
--@ statement COUNT_BY_ID
{COUNT(PATH_ID)}

--@ statement COUNT_BY_STATUS
{COUNT(PATH_STATUS)}

--@ statement COUNT_BY_DESTINATION
{COUNT(PATH_DESTINATION)}

--@ statement COUNT_BY_REASON
{COUNT(PATH_REASON)}

--@ statement COUNT_BY_GROUP
{COUNT(PATH_GROUP)}

--@ statement COUNT_BY_REDRIVE
{COUNT(PATH_REDRIVE)}

--@ statement COUNT_BY_MESSAGE
{COUNT(PATH_MESSAGE)}

--@ statement COUNT_BY_TYPE
{COUNT(PATH_TYPE)}

--@ statement COUNT_BY_CORRELATION
{COUNT(PATH_CORRELATION)}

-- and fits the rest
--@ statement COUNT_FIT_BY_ID
{COUNT_FIT(PATH_ID)}

--@ statement COUNT_FIT_BY_STATUS
{COUNT_FIT(PATH_STATUS)}

--@ statement COUNT_FIT_BY_DESTINATION
{COUNT_FIT(PATH_DESTINATION)}

--@ statement COUNT_FIT_BY_REASON
{COUNT_FIT(PATH_REASON)}

--@ statement COUNT_FIT_BY_GROUP
{COUNT_FIT(PATH_GROUP)}

--@ statement COUNT_FIT_BY_REDRIVE
{COUNT_FIT(PATH_REDRIVE)}

--@ statement COUNT_FIT_BY_MESSAGE
{COUNT_FIT(PATH_MESSAGE)}

--@ statement COUNT_FIT_BY_TYPE
{COUNT_FIT(PATH_TYPE)}

--@ statement COUNT_FIT_BY_CORRELATION
{COUNT_FIT(PATH_CORRELATION)}

-- the time, an estimate
--@ statement ABOUT
SELECT {NOW}, (count(*) * {SAMPLE_FACTOR})::bigint FROM {SAMPLED} WHERE {FITS_WITHIN(t)}

--@ statement LAST_ID
SELECT coalesce(max(d.id), 0) FROM @dead_letters d

--@ statement FIRST_ID
SELECT coalesce(min(d.id), 0) FROM @dead_letters d

-- letters_sum.c
-- The query, $17 how many: the time, letters, groups and maybe-arrived in all; n, maybe, first and last failure, then of the newest: id,
-- fingerprint, reason, class, fault, destination, error, event type, message_id. Letters from before there were
-- fingerprints go by reason and destination.
--@ statement GROUPS
WITH g AS MATERIALIZED ({GROUP_OF(IS NOT NULL; l.fingerprint)} UNION ALL {GROUP_OF(IS NULL; l.reason_code,
  l.destination)}),
p AS MATERIALIZED ({MAYBE_OF(IS NOT NULL; l.fingerprint; l.fingerprint)}
  UNION ALL {MAYBE_OF(IS NULL; '?' || l.reason_code || ' ' || l.destination; l.reason_code, l.destination)}),
s AS MATERIALIZED (SELECT * FROM g ORDER BY g.n DESC, g.example DESC LIMIT $17::bigint)
SELECT {NOW}, k.letters, k.n, (SELECT coalesce(sum(p.n), 0) FROM p), s.n, coalesce(m.n, 0), {MS(s.first)},
{MS(s.last)}, e.id, {CUT(e.fingerprint)}, {CUT(e.reason_code)}, {CUT(e.failure_class)}, {CUT(e.fault)},
{CUT(e.destination)}, {CUT(e.error_message)}, {CUT(e.event_type)}, {CUT(e.message_id)}
FROM (SELECT coalesce(sum(g.n), 0) AS letters, count(*) AS n FROM g) k LEFT JOIN (s CROSS
  JOIN LATERAL (SELECT * FROM @dead_letters x WHERE x.id = s.example OFFSET 0) e LEFT
  JOIN p m ON m.key = {KEY_OF(e)}) ON true
ORDER BY s.n DESC, s.example DESC

-- one of each for each path
--@ statement GROUPS_BY_ID
{GROUPS_PAGE(PATH_ID)}

--@ statement GROUPS_BY_STATUS
{GROUPS_PAGE(PATH_STATUS)}

--@ statement GROUPS_BY_DESTINATION
{GROUPS_PAGE(PATH_DESTINATION)}

--@ statement GROUPS_BY_REASON
{GROUPS_PAGE(PATH_REASON)}

--@ statement GROUPS_BY_GROUP
{GROUPS_PAGE(PATH_GROUP)}

--@ statement GROUPS_BY_REDRIVE
{GROUPS_PAGE(PATH_REDRIVE)}

--@ statement GROUPS_BY_MESSAGE
{GROUPS_PAGE(PATH_MESSAGE)}

--@ statement GROUPS_BY_TYPE
{GROUPS_PAGE(PATH_TYPE)}

--@ statement GROUPS_BY_CORRELATION
{GROUPS_PAGE(PATH_CORRELATION)}

-- $1 the time, $2 a group, $3 how many hours, $4 an id, $5 how many letters are looked at: the time, an hour, how many open letters
-- failed in it; those that failed before have no hour
--@ statement GROUP_HOURS
SELECT z.now, h.hour, h.n
FROM (SELECT {NOW} AS now) z LEFT JOIN LATERAL (SELECT CASE WHEN w.ms >= (z.now / 3600000 - $3::bigint + 1) * 3600000
  THEN w.ms / 3600000 END AS hour, count(*) AS n FROM (SELECT {MS(l.last_failed_at)} AS ms FROM @dead_letters l
  WHERE l.status = 'failed' AND l.fingerprint = $2::text AND (l.id / 1) > $4::bigint
  ORDER BY (l.id / 1) DESC LIMIT $5::bigint) w GROUP BY 1) h ON true

-- lets the planner read tables from end to end, in this transaction
--@ statement SCANS
SELECT set_config('enable_seqscan', 'on', true), set_config('enable_sort', 'off', true)

-- What kind of tally (see letters_sum.c), name, n
--@ statement TALLIES
WITH {TALLIED} ({TALLY(0; c.status; true)})
UNION ALL ({TALLY(1; c.fault; c.status = 'failed')})
UNION ALL ({TALLY(2; c.status; c.again)})
UNION ALL {TOP(3; c.reason)}
UNION ALL {TOP(4; c.type)}
UNION ALL {TOP(5; {CUT(c.destination)})}

-- $1 the time, $2 how many days: the time, a day's first ms, how many came in
--@ statement DAYS
SELECT z.now, d.day * 86400000, (SELECT count(*) FROM @dead_letters l WHERE l.created_at >= {DAY(d.day)}
  AND l.created_at < {DAY(d.day + 1)})
FROM (SELECT {NOW} AS now) z CROSS JOIN LATERAL generate_series(z.now / 86400000 - $2::bigint + 1, z.now / 86400000)
AS d (day)
ORDER BY d.day

-- $1 how many: the open letters that failed first the longest ago
--@ statement LONGEST
WITH o AS MATERIALIZED (SELECT l.id, l.first_failed_at FROM @dead_letters l WHERE l.status = 'failed'
  ORDER BY l.first_failed_at, l.id LIMIT $1::bigint) SELECT {LETTER(t; false; 0)}
FROM o CROSS JOIN LATERAL (SELECT * FROM @dead_letters x WHERE x.id = o.id OFFSET 0) t
ORDER BY o.first_failed_at, o.id

-- letters_show.c
-- $1 the time, $2 id, $3 how much of the payload: the time, the letter
--@ statement SHOW
SELECT {NOW}, {LETTER(t; true; $3)} FROM @dead_letters t WHERE t.id = $2::bigint

-- $1 message_id; not `max(d.id)`, for which the planner would walk along the primary key
--@ statement REQUEUED_AS
SELECT max(d.id + 0) FROM @dead_letters d WHERE d.requeued_as = $1::text

--@ statement PAUSED
SELECT {CUT(d.name)} FROM @outbox_destination d WHERE d.paused ORDER BY d.name LIMIT $1::bigint

-- $1 id, $2 how many: as HK_PA_ATTEMPTS. A message goes to several destinations under one id; ids that it was requeued
-- under are its own.
--@ statement ATTEMPTS
WITH l AS MATERIALIZED (SELECT d.message_id, d.requeued_as, d.destination FROM @dead_letters d
  WHERE d.id = $1::bigint),
n AS MATERIALIZED (SELECT l.message_id AS id FROM l UNION SELECT l.requeued_as FROM l UNION
  SELECT substring(a.detail FROM '^{"message_id":"([-0-9a-f]{36})"[,}]') FROM @outbox_audit_of_letters a
  WHERE a.letter_id = $1::bigint AND a.act = 'requeue'),
w AS MATERIALIZED (SELECT l.destination AS name FROM l UNION SELECT a.detail::json ->> 'from'
  FROM @outbox_audit_of_letters a WHERE a.letter_id = $1::bigint AND a.act = 'requeue'
  AND a.detail LIKE '{"message_id":%,"from":%}'),
m AS MATERIALIZED (SELECT x.* FROM l CROSS JOIN n CROSS JOIN LATERAL (SELECT * FROM @outbox_attempts x
  WHERE x.message_id = n.id OFFSET 0) x WHERE x.destination IN (SELECT w.name FROM w) OR n.id <> l.message_id),
o AS MATERIALIZED (SELECT * FROM m ORDER BY m.id DESC LIMIT $2::bigint)
SELECT {CUT(destination)}, life, n, started_ms, duration_ms, status, {CUT(class)}, {CUT(cause)}, {CUT(error)},
{CUT(request_headers)}, {CUT(response_headers)}, substring(response_body
  FROM 1 FOR 8192), {CUT(address)}, possibly_delivered
FROM o
ORDER BY id

-- $1 id, $2 how much of the payload, $3 how many: version, when, actor, reason, bytes, payload
--@ statement VERSIONS
SELECT *
FROM (SELECT v.version, v.replaced_ms, {CUT(v.actor)}, {CUT(v.reason)}, octet_length(v.payload), CASE
  WHEN $2::int > 0 THEN left(v.payload, $2) END FROM @dead_letter_versions v WHERE v.letter_id = $1::bigint
  ORDER BY v.version DESC LIMIT $3::bigint) v
ORDER BY version

-- $1 id, $2 how many
--@ statement ACTS
SELECT *
FROM (SELECT {AUDIT_ROW} FROM @outbox_audit_of_letters a WHERE a.letter_id = $1::bigint ORDER BY a.id DESC
  LIMIT $2::bigint) a
ORDER BY id

-- $1 id, $2 how many: those of its key at its destination
--@ statement BLOCKED
WITH l AS MATERIALIZED (SELECT d.id, d.destination, d.message_key FROM @dead_letters d WHERE d.id = $1::bigint
  AND d.status IN ('failed', 'retrying') AND d.message_key <> '')
SELECT count(*)
FROM (SELECT 1 FROM l CROSS JOIN LATERAL (SELECT 1 FROM @outbox o
  WHERE left(o.destination, 63) COLLATE "C" = left(l.destination, 63) AND o.destination = l.destination
  AND hashtextextended(o.message_key, 0) = hashtextextended(l.message_key, 0)
  AND o.message_key = l.message_key UNION ALL SELECT 1 FROM @outbox_retry r
  WHERE left(r.destination, 63) COLLATE "C" = left(l.destination, 63) AND r.destination = l.destination
  AND hashtextextended(r.message_key, 0) = hashtextextended(l.message_key, 0) AND r.message_key = l.message_key
  AND r.letter_id <> l.id) q LIMIT $2::bigint) x

-- of a letter follows each
--@ statement AUDIT_NEWEST
{AUDIT({ANY_ACT}; DESC; min)}

--@ statement AUDIT_NEWEST_OF
{AUDIT({OF_LETTER}; DESC; min)}

--@ statement AUDIT_OLDEST
{AUDIT({ANY_ACT}; ASC; max)}

--@ statement AUDIT_OLDEST_OF
{AUDIT({OF_LETTER}; ASC; max)}

-- the first row of the chain, what stood before it, the last hash, what stood before it when purges left no rows
--@ statement CHAIN
SELECT (SELECT a.id FROM @outbox_audit a WHERE a.hash IS NOT NULL ORDER BY a.id LIMIT 1), (SELECT value
  FROM @outbox_meta WHERE key = 'audit_first_prev'), (SELECT value FROM @outbox_meta
  WHERE key = 'audit_head'), (SELECT value FROM @outbox_meta WHERE key = 'audit_unwitnessed_prev')

-- $1 act, $2 letters above this, $3 how many: row, letter, message_id, destination, before, after, detail, overtaken?, is it a message? An
-- act has a list of letters, or one of messages.
--@ statement ACT_LETTERS
(SELECT y.audit_id, y.letter_id, {WIDE(y.message_id)}, {WIDE(y.destination)}, {CUT(y.before_hash)},
{CUT(y.after_hash)}, {WIDE(y.detail)}, EXISTS (SELECT 1 FROM @outbox_audit_of_letters a
  WHERE a.letter_id = y.letter_id AND a.id > y.audit_id AND a.act IN ('discard', 'restore')), false
FROM @outbox_audit_letters y
WHERE y.act_id = $1::bigint AND y.letter_id > $2::bigint
ORDER BY y.letter_id LIMIT $3::bigint)
UNION ALL (SELECT y.audit_id, y.cancelled_id, {WIDE(y.message_id)}, {WIDE(y.destination)}, NULL, NULL, NULL, false, true
FROM @outbox_audit_messages y
WHERE y.act_id = $1::bigint AND y.cancelled_id > $2::bigint
ORDER BY y.cancelled_id LIMIT $3::bigint)

-- letters_act.c
-- $1 ids
--@ statement LOCK
SELECT d.id FROM @dead_letters d WHERE d.id = ANY ($1::bigint[]) ORDER BY d.id FOR UPDATE

-- $1 the time, $2 id, $3 actor, $4 reason, $5 version that was seen, $6 payload, $7 act: status, sending, version now,
-- version afterwards (NULL: it was refused)
--@ statement EDIT
WITH l AS MATERIALIZED (SELECT d.id, d.status, {SENDING} AS sending, d.payload_version, d.message_id, d.destination,
  {OPEN} AND d.payload_version = $5::bigint AS ok, CASE WHEN d.payload IS NOT NULL THEN {HASH(d.payload)}
  END AS before FROM @dead_letters d WHERE d.id = $2::bigint),
v AS (INSERT INTO @dead_letter_versions (letter_id, version, replaced_ms, actor, reason, payload)
  SELECT d.id, d.payload_version, {NOW}, $3, $4, d.payload FROM l JOIN @dead_letters d ON d.id = l.id WHERE l.ok),
u AS (UPDATE @dead_letters d SET payload = $6::text, payload_version = d.payload_version + 1, edited_at =
  greatest({TIME({NOW})}, d.requeued_at + interval '1 ms') FROM l WHERE d.id = l.id AND l.ok
  RETURNING d.payload_version),
a AS ({TO_AUDIT(, before_hash, after_hash, detail)} SELECT {NOW}, $3, $7, l.message_id, l.destination, $4, l.id,
  l.before, {HASH($6::text)}, '{"version":' || l.payload_version + 1 || '}' FROM l WHERE l.ok)
SELECT l.status, l.sending, l.payload_version, (SELECT u.payload_version FROM u)
FROM l

-- $1 the time, $2 ids, $3 actor, $4 reason, $5 the act, $6 filter, $7 program; of each id $8 the version that was seen, $9 the payload
--@ statement FIX
WITH n AS MATERIALIZED (SELECT * FROM unnest($2::bigint[], $8::bigint[], $9::text[]) AS n (id, version, payload)),
l AS MATERIALIZED (SELECT d.id, d.status, {SENDING} AS sending, d.message_id, d.destination, coalesce(d.requeued_as,
  d.message_id) AS newest, CASE WHEN {OPEN} AND d.payload_version = n.version THEN 0 ELSE 3
  END AS did, d.payload_version AS version, CASE WHEN d.payload IS NOT NULL THEN {HASH(d.payload)}
  END AS before, {HASH(n.payload)} AS after, '{"version":' || d.payload_version + 1 || '}' AS detail FROM n
  JOIN @dead_letters d ON d.id = n.id),
v AS (INSERT INTO @dead_letter_versions (letter_id, version, replaced_ms, actor, reason, payload)
  SELECT d.id, d.payload_version, {NOW}, $3, $4, d.payload FROM l JOIN @dead_letters d ON d.id = l.id
  WHERE l.did = 0),
u AS (UPDATE @dead_letters d SET payload = n.payload, payload_version = d.payload_version + 1, edited_at =
  greatest({TIME({NOW})}, d.requeued_at + interval '1 ms') FROM l JOIN n ON n.id = l.id WHERE d.id = l.id
  AND l.did = 0), {TRAIL('fix'; $5::bigint; $6; $7; NULL::bigint; l.before; l.after; l.detail)} {DONE(l.status;
  l.newest; $5::bigint; l.version + CASE l.did WHEN 0 THEN 1 ELSE 0 END)}

--@ statement REQUEUE
WITH {REQUEUED(; $7::bigint; $8; $9; $10)} {DONE('retrying'; CASE l.did WHEN 0 THEN l.goes_as ELSE l.newest
  END; $7::bigint; 0)}

--@ statement RESOLVE
{CHANGE(d.status = 'failed' OR {SENDING}; d.status = 'resolved'; {CLOSED}; 'resolved'; 'resolve')}

--@ statement DISCARD
{CHANGE({OPEN}; d.status = 'discarded'; {CLOSED}; 'discarded'; 'discard')}

-- Of a send without an outcome nobody knows whether it arrived.
--@ statement RESTORE
{CHANGE((d.status = 'discarded' AND d.encoding IS DISTINCT FROM '{=HK_ERASED}') OR {SENDING}; d.status = 'failed'; possibly_delivered = d.possibly_delivered
  OR {SENDING}, sending_at = NULL, resolved_at = NULL, resolution = NULL; 'failed'; 'restore')}

-- $5 what, then the act, filter, program
--@ statement REMARK
WITH {MEANT(true; false; )} {MEANT_IDS}), {TRAIL($5; $6::bigint; $7; $8; NULL::bigint; {NONE}; {NONE}; {NONE})}
{DONE(l.status; l.newest; $6::bigint; 0)}

--@ statement SEND_BEGIN
{CHANGE({OPEN}; false; sending_at = {TIME({NOW})}; 'retrying'; 'send')}

-- $1 the time, $2 ids (one), $3 actor, $4 did it arrive?, then the attempt: $5 started, $6 duration, $7 status, $8 class,
-- $9 cause, $10 error, $11 request headers, $12 response headers, $13 response body, $14 address, $15 possibly delivered,
-- $16 reason, $17 fault, $18 fingerprint, $19 detail, $20 when the send began: was it still that one? No row: there is no such letter. An outcome
-- that comes too late decides nothing, but what was sent may have arrived.
--@ statement SEND_END
WITH l AS MATERIALIZED (SELECT d.id, d.sending_at IS NOT DISTINCT
  FROM {TIME($20::bigint)} AS sending, d.message_id, d.destination, d.life, coalesce(d.requeued_as, d.message_id) AS
  newest, d.attempts + 1 AS n FROM @dead_letters d WHERE d.id = ANY ($2::bigint[])),
t AS (INSERT INTO @outbox_attempts (message_id, destination, life, n, started_ms, duration_ms, settled_ms, status,
  class, cause, error, request_headers, response_headers, response_body, address, possibly_delivered)
  SELECT l.newest, l.destination, l.life, l.n, $5, $6, {NOW}, $7, $8, $9, $10, $11, $12, $13, $14, $15::boolean
  FROM l),
u AS (UPDATE @dead_letters d SET sending_at = CASE WHEN NOT l.sending THEN d.sending_at
  END, attempts = l.n, last_attempt_at = {TIME($5::bigint)}, possibly_delivered = d.possibly_delivered
  OR $15::boolean OR (NOT l.sending AND $4::boolean), status = CASE WHEN NOT l.sending THEN d.status
  WHEN $4::boolean THEN 'resolved' ELSE 'failed' END, resolved_at = CASE WHEN l.sending
  AND $4::boolean THEN {TIME({NOW})} ELSE d.resolved_at END, resolution = CASE WHEN l.sending
  AND $4::boolean THEN 'delivered' ELSE d.resolution END, (last_failed_at, reason_code, error_message, error_detail,
  failure_class, fault, fingerprint, fingerprint_made, fingerprint_old) = (SELECT f.*
  FROM (SELECT {TIME({NOW})}, $16::text, $10::text, $19::text, $8::text, $17::text, $18::text,
  '{=HK_FINGERPRINT_MADE}' || $18::text, NULL::text WHERE l.sending AND NOT $4::boolean UNION ALL
  SELECT d.last_failed_at, d.reason_code, d.error_message, d.error_detail, d.failure_class, d.fault, d.fingerprint,
  d.fingerprint_made, d.fingerprint_old WHERE NOT l.sending OR $4::boolean) f) FROM l WHERE d.id = l.id),
a AS ({TO_AUDIT()} SELECT {NOW}, $3, CASE WHEN $4::boolean THEN 'sent' ELSE 'send-failed'
  END, l.newest, l.destination, coalesce(CASE WHEN NOT l.sending THEN 'too late: somebody had decided meanwhile'
  END, $10::text, ''), l.id FROM l) SELECT l.sending
FROM l

-- letters_regroup.c
-- $1 how many, $2 bytes of each payload: letters whose group another version of the rule made
--@ statement STALE_GROUPS
SELECT {LETTER(t; true; $2)}
FROM (SELECT * FROM @dead_letters d WHERE {STALE} ORDER BY d.id LIMIT $1::bigint) t
ORDER BY t.id

-- $1 ids, $2 fingerprints as they were seen, $3 new ones, $4 errors ('' = it keeps its own)
--@ statement REGROUP
UPDATE @dead_letters d SET fingerprint = v.print, fingerprint_made = '{=HK_FINGERPRINT_MADE}' || v.print,
fingerprint_old = CASE WHEN d.fingerprint <> v.print THEN d.fingerprint
  END, error_message = coalesce(nullif(v.error, ''), d.error_message)
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[]) v (id, was, print, error)
WHERE d.id = v.id AND (v.was = '' OR d.fingerprint = v.was) AND {STALE}

-- letters_redrive.c
-- Who starts one waits for whoever starts another: of two of the same filter the second then sees the first.
--@ statement JOB_TURN
SELECT 1 FROM @outbox_turn WHERE name = 'redrive' FOR NO KEY UPDATE

-- $1 the time, $2 filter, $3 rate, $4 ramp, $5 canary, $6 ratio, $7 ids, $8 total, $9 actor, $10 reason, $11 where to: the id, or that
-- of a running one of the same filter
--@ statement JOB_START
WITH r AS MATERIALIZED (SELECT t.id FROM @outbox_redrive t WHERE t.status = 'running' AND t.filter = $2
  ORDER BY t.id LIMIT 1),
j AS (INSERT INTO @outbox_redrive (filter, rate_per_s, ramp_ms, canary, abort_ratio, ids, total, actor, reason,
  destination, last_id, started_ms, created_ms) SELECT $2, $3::float8, $4::bigint, $5::bigint, $6::float8, $7, $8::bigint, $9,
  $10, $11, coalesce((SELECT max(d.id) FROM @dead_letters d), 0), {NOW}, {NOW} WHERE NOT EXISTS (SELECT 1
  FROM r) RETURNING id),
a AS (INSERT INTO @outbox_audit (at_ms, actor, act, reason, redrive_id, detail)
  SELECT {NOW}, $9, 'redrive-start', $10, j.id, '{"total":' || $8::bigint || ',"filter":' || to_json($2::text)::text
  || coalesce(',"to":' || to_json($11::text)::text, '') || '}' FROM j) SELECT (SELECT j.id FROM j), (SELECT r.id FROM r)

-- $1 the time, $2 job (0 = all), $3 only those that run?, $4 how many
--@ statement JOBS
WITH j AS MATERIALIZED (SELECT * FROM @outbox_redrive j WHERE ($2::bigint = 0 OR j.id = $2) AND (NOT $3::boolean
  OR j.status = 'running') ORDER BY j.id DESC LIMIT $4::bigint)
SELECT z.now, j.id, j.status, {CUT(j.filter)}, {DECIMAL(j.rate_per_s)}, j.ramp_ms, j.canary,
{DECIMAL(j.abort_ratio)}, j.ids, j.last_id, j.cursor_id, j.total, j.requeued, j.exhausted, {DECIMAL(j.tokens)},
j.tokens_ms, j.started_ms, j.created_ms, j.ended_ms, {CUT(j.actor)}, {CUT(j.reason)}, {CUT(j.ending)}, j.steps,
{OF_JOB(= 'retrying')}, {OF_JOB(IN ('failed', 'discarded'))} + j.lost, CASE
  WHEN j.status = 'running' THEN {STRUGGLING} ELSE 0 END, {CUT(j.held)}, {CUT(j.destination)}
FROM (SELECT {NOW} AS now) z LEFT JOIN j ON true
ORDER BY j.id DESC

-- $1 the time, $2 job, $3 steps as they were seen, $4 status, $5 ending, $6 act: was it done?
--@ statement JOB_END
WITH j AS MATERIALIZED (SELECT j.id, j.actor FROM @outbox_redrive j WHERE j.id = $2::bigint
  AND j.status = 'running' AND j.steps = $3::bigint FOR UPDATE SKIP LOCKED),
u AS (UPDATE @outbox_redrive t SET status = $4, ending = $5, steps = t.steps + 1, ended_ms = {NOW} FROM j
  WHERE t.id = j.id),
a AS ({TO_JOB_AUDIT} SELECT {NOW}, j.actor, $6, coalesce($5, ''), j.id FROM j)
SELECT j.id
FROM j

-- $1 the time, $2 job, $3 actor, $4 reason: did it run? No row: there is no such job.
--@ statement JOB_CANCEL
WITH j AS MATERIALIZED (SELECT j.id, j.status = 'running' AS runs FROM @outbox_redrive j
  WHERE j.id = $2::bigint FOR UPDATE),
u AS (UPDATE @outbox_redrive t SET status = 'cancelled', ending = $3::text || ': ' || $4::text, steps = t.steps + 1,
  ended_ms = {NOW} FROM j WHERE t.id = j.id AND j.runs),
a AS ({TO_JOB_AUDIT} SELECT {NOW}, $3, 'redrive-cancel', $4, j.id FROM j WHERE j.runs)
SELECT j.runs
FROM j

-- As REQUEUE, then $7 steps as they were seen, $8 cursor, $9 exhausted?, $10 tokens (those of letters that are not requeued
-- after all come back), $11 when, $12 the paused destination that it waits for, $13 where its letters go: how many were requeued. No
-- row: somebody else has the job in hand, or has had it; or has one that letters are taken from. Nobody waits for a job
-- while he has another: two that take each other's letters would wait for ever.
--@ statement STEP
WITH j AS MATERIALIZED (SELECT j.id FROM @outbox_redrive j WHERE j.id = $6::bigint AND j.status = 'running'
  AND j.steps = $7::bigint FOR UPDATE SKIP LOCKED),
p AS MATERIALIZED (SELECT DISTINCT d.redrive_id AS id FROM @dead_letters d WHERE d.id = ANY ($2::bigint[])
  AND d.redrive_id <> $6::bigint),
q AS MATERIALIZED (SELECT t.id FROM @outbox_redrive t WHERE t.id IN (SELECT p.id FROM p) FOR UPDATE SKIP LOCKED),
g AS MATERIALIZED (SELECT j.id FROM j WHERE (SELECT count(*) FROM q) = (SELECT count(*) FROM @outbox_redrive t
  WHERE t.id IN (SELECT p.id FROM p))), {REQUEUED(AND EXISTS (SELECT 1
  FROM g); {JOB_ACT}; NULL; NULL; $13)}, s AS (UPDATE @outbox_redrive t
  SET steps = t.steps + 1, requeued = t.requeued + (SELECT count(*) FROM l
  WHERE l.did = 0), cursor_id = $8::bigint, exhausted = $9::boolean, tokens = $10::float8 +
  cardinality($2::bigint[]) - (SELECT count(*) FROM l WHERE l.did = 0), tokens_ms = $11::bigint, held = $12::text
  FROM g WHERE t.id = g.id) SELECT (SELECT count(*) FROM l WHERE l.did = 0)
FROM g
