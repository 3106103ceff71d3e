-- SPDX-License-Identifier: Apache-2.0
-- Fragments that relays and operators share.

-- Of a row of outbox that goes to another table: what rest.c has sealed takes the place of what the row has. `ids`, `encodings` and
-- `payloads` are parameters.
--@ fragment KEPT_ENCODING(t; ids; encodings)
coalesce((SELECT k.encoding FROM unnest({ids}::bigint[], {encodings}::text[]) AS k (id, encoding) WHERE k.id = {t}.id),
  {t}.encoding)

--@ fragment KEPT_PAYLOAD(t; ids; payloads)
coalesce((SELECT k.payload FROM unnest({ids}::bigint[], {payloads}::text[]) AS k (id, payload) WHERE k.id = {t}.id),
  {t}.payload)

-- What rest.c reads of rows of outbox.
--@ fragment UNSEALED(where)
SELECT o.id, coalesce(o.message_id, 'outbox-' || o.id), o.encoding, o.payload
FROM @outbox o
WHERE {where} AND o.payload IS NOT NULL AND lower(coalesce(o.encoding, '') COLLATE "C") NOT LIKE 'sealed%'

-- Triggers, rules and row-level security on our tables: what, its name, the table's; and children of outbox. Those of ours are
-- left out.
--@ fragment GUARDS_FOUND
WITH t AS (SELECT c.oid, c.relname, c.relrowsecurity, c.relforcerowsecurity FROM pg_class c
  WHERE c.oid IN (to_regclass('@outbox'), to_regclass('@outbox_retry'), to_regclass('@dead_letters'),
  to_regclass('@outbox_claim'), to_regclass('@outbox_stuck')))
SELECT 'trigger', g.tgname::text, t.relname::text
FROM t JOIN pg_trigger g ON g.tgrelid = t.oid
WHERE NOT g.tgisinternal AND g.tgenabled <> 'D' AND g.tgfoid <> coalesce(to_regproc('@outbox_wake_up')::oid, 0::oid)
AND (g.tgtype & 24 <> 0 OR t.oid <> to_regclass('@outbox'))
UNION ALL SELECT 'rule', r.rulename::text, t.relname::text
FROM t JOIN pg_rewrite r ON r.ev_class = t.oid
UNION ALL SELECT 'row-level security', CASE WHEN row_security_active(t.oid) THEN 'active for ' || current_user
  ELSE 'not for ' || current_user END, t.relname::text
FROM t
WHERE t.relrowsecurity
UNION ALL SELECT 'foreign key', k.conname::text, t.relname::text
FROM t JOIN pg_constraint k ON k.confrelid = t.oid AND k.contype = 'f'
WHERE k.conrelid <> ALL (ARRAY(SELECT t.oid FROM t)) AND k.conrelid IS DISTINCT
FROM to_regclass('@dead_letter_versions')::oid
ORDER BY 3, 1, 2

-- What no relay can work with, in words; no row = nothing. Two rows of a child and its parent may have one id, and PostgreSQL supports no
-- rules where we write.
--@ fragment SHAPE_FOUND
SELECT 'the table ' || i.inhrelid::regclass || ' inherits from ' || i.inhparent::regclass ||
': rows of both may have the same id; end it with ALTER TABLE ... NO INHERIT'
FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhparent
WHERE i.inhparent IN (to_regclass('@outbox'), to_regclass('@outbox_retry'), to_regclass('@dead_letters'))
  AND c.relkind = 'r'
UNION ALL SELECT 'the column ' || n.name || ' of ' || w.name || ' is not there: was it renamed?'
FROM (VALUES ('outbox', '@outbox', '{=HK_OUTBOX_COLUMNS},xid,shard'), ('outbox_retry', '@outbox_retry',
  '{=HK_RETRY_COLUMNS},shard'), ('dead_letters', '@dead_letters', '{=HK_LETTER_COLUMNS}')) AS w (name, place,
  columns), unnest(string_to_array(w.columns, ',')) AS n (name)
WHERE NOT EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = to_regclass(w.place) AND a.attname = n.name
  AND NOT a.attisdropped)
UNION ALL SELECT 'the rule ' || r.rulename || ' on ' || r.ev_class::regclass || ' is not supported: drop it'
FROM pg_rewrite r
WHERE r.ev_class IN (to_regclass('@outbox'), to_regclass('@outbox_retry'), to_regclass('@dead_letters'),
  to_regclass('@outbox_claim')) LIMIT 1
