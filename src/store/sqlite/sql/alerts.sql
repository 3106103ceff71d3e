-- SPDX-License-Identifier: Apache-2.0
-- The statements about alerts.

--@ fragment PAGE(columns)
SELECT {columns} FROM dead_letters NOT INDEXED WHERE id > ?1 ORDER BY id LIMIT ?2

--@ fragment TEXT(column)
substr({column}, 1, 250)

-- The bare column is of the row that max() comes from.
--@ fragment GROUPS(from; known)
SELECT {TEXT(destination)} AS g1, {TEXT(reason_code)} AS g2, {TEXT(event_type)} AS g3, count(*), max(id),
{TEXT(message_id)}, sum(life = 2), {known}
FROM ({from})
WHERE status IN ('failed', 'retrying')
GROUP BY g1, g2, g3

--@ fragment COLUMNS
id, destination, reason_code, event_type, message_id, status, life

--@ fragment AGAIN
FROM dead_letters INDEXED BY dead_letters_again WHERE life > 1 AND last_failed_at >= ?1 AND last_failed_at < ?2

-- The columns of an alert, in the order of hk_sn_alert and of the UPSERT.
--@ fragment ALERT_COLUMNS
fingerprint, rule, kind, severity, status, destination, reason, event_type, example_id, detail, episode, count,
since_ms, fired_ms, resolved_ms, gone_ms, told_ms, told, owed, value, threshold, letter_id, series_ms, series

--@ fragment ALERT
SELECT {ALERT_COLUMNS} FROM outbox_alert

--@ fragment OPEN
sent_ms = 0 AND given_up_ms = 0

-- ---- alerts.c ----

--@ statement FRESH_END
SELECT max(id), count(*) FROM ({PAGE(id)})

--@ statement FRESH
{GROUPS({PAGE({COLUMNS})}; 0)}

--@ statement AGAIN_END
SELECT last_failed_at {AGAIN} ORDER BY last_failed_at LIMIT 1 OFFSET ?3

--@ statement AGAIN
{GROUPS(SELECT {COLUMNS} {AGAIN} AND last_failed_at > created_at; sum(id > ?3))}

--@ statement IS_OPEN
SELECT 1
FROM dead_letters
WHERE id = ?1 AND status IN ('failed', 'retrying') AND (?2 = '' OR {TEXT(destination)} = ?2) AND (?3 = ''
  OR {TEXT(reason_code)} = ?3)

--@ statement WALK_STATUS
SELECT id, {TEXT(destination)}, {TEXT(reason_code)}
FROM dead_letters INDEXED BY dead_letters_status
WHERE status = ?1 AND id > ?2
ORDER BY id LIMIT ?3

--@ statement ALERTS
{ALERT} ORDER BY status = 'resolved', resolved_ms DESC LIMIT 5000

--@ statement MUTES
SELECT rule, until_ms FROM outbox_mute WHERE until_ms > ?1 LIMIT 1000

--@ statement DESTS
SELECT name, paused, open_until_ms <> 0, CASE WHEN paused THEN {TEXT(coalesce(actor, '') || ': ' || coalesce(reason,
  ''))} ELSE '' END
FROM outbox_destination
WHERE paused OR open_until_ms <> 0
ORDER BY name LIMIT 1000

--@ statement PROGRESS
SELECT coalesce((SELECT max(id) FROM outbox_sent), 0) * 31 + coalesce((SELECT max(id)
  FROM dead_letters NOT INDEXED), 0) * 17 + coalesce((SELECT min(id) FROM outbox NOT INDEXED), 0)

--@ statement STATE
SELECT version, evaluated_ms, letter_id, again_ms FROM outbox_alert_look WHERE id = 1

-- ---- alerts_act.c ----

--@ statement DECIDE
UPDATE outbox_alert_look SET version = version + 1, evaluated_ms = ?1, relay = ?2, letter_id = ?3, again_ms = ?4
WHERE id = 1 AND version = ?5

--@ statement DROP_ALERT
DELETE FROM outbox_alert WHERE fingerprint = ?1

--@ statement PUT_ALERT
INSERT OR REPLACE INTO outbox_alert ({ALERT_COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12,
  ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24)

--@ statement DROP_UPDATE
DELETE
FROM outbox_notice
WHERE fingerprint = ?1 AND channel = ?2 AND kind = 'update' AND claim_until_ms <= ?3 AND {OPEN}

--@ statement ADD_NOTICE
INSERT INTO outbox_notice (fingerprint, rule, kind, channel, facts, created_ms, due_ms)
  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6)

--@ statement PURGE_NOTICES
DELETE FROM outbox_notice WHERE id IN (SELECT id FROM outbox_notice WHERE created_ms <= ?1 LIMIT 1000)

--@ statement PURGE_ALERTS
DELETE FROM outbox_alert WHERE status = 'resolved' AND owed = 0 AND resolved_ms <= ?1

--@ statement PURGE_MUTES
DELETE FROM outbox_mute WHERE until_ms <= ?1

--@ statement CLAIM
UPDATE outbox_notice SET attempts = attempts + 1, claimed_by = ?1, claim_until_ms = ?2
WHERE id = (SELECT n.id FROM outbox_notice n INDEXED BY outbox_notice_open WHERE n.channel = ?3
  AND n.sent_ms = 0 AND n.given_up_ms = 0 AND n.due_ms <= ?4 AND n.claim_until_ms <= ?4
  AND NOT EXISTS (SELECT 1 FROM outbox_notice e WHERE e.fingerprint = n.fingerprint AND e.id < n.id
  AND e.channel = n.channel AND e.sent_ms = 0 AND e.given_up_ms = 0) ORDER BY n.id LIMIT 1)
RETURNING id, fingerprint, rule, kind, channel, facts, attempts, created_ms

--@ statement HAS_OPEN_NOTICE
SELECT 1 FROM outbox_notice WHERE due_ms <= ?1 AND claim_until_ms <= ?1 AND {OPEN} LIMIT 1

--@ statement SETTLE
UPDATE outbox_notice SET claimed_by = '', claim_until_ms = 0, sent_ms = ?3, given_up_ms = ?4, due_ms = coalesce(?5,
  due_ms), last_error = ?6
WHERE id = ?1 AND attempts = ?2 AND {OPEN}

--@ statement LIST_ALERTS
{ALERT}
WHERE status IN ('firing', 'pending', 'resolved')
ORDER BY CASE status WHEN 'firing' THEN 0 WHEN 'pending' THEN 1 ELSE 2 END, max(since_ms, resolved_ms) DESC LIMIT ?1

--@ statement LIST_NOTICES
SELECT id, fingerprint, rule, kind, channel, last_error, attempts, created_ms, due_ms, given_up_ms
FROM outbox_notice
WHERE sent_ms = 0
ORDER BY id DESC LIMIT ?1

--@ statement LIST_MUTES
SELECT rule, actor, reason, until_ms, since_ms FROM outbox_mute WHERE until_ms > ?1 ORDER BY rule LIMIT ?2

--@ statement LIST_LOOK
SELECT evaluated_ms, relay FROM outbox_alert_look WHERE id = 1

--@ statement MUTE
INSERT OR REPLACE INTO outbox_mute (rule, until_ms, since_ms, actor, reason) VALUES (?1, ?2, ?3, ?4, ?5)

--@ statement UNMUTE
DELETE FROM outbox_mute WHERE rule = ?1 AND until_ms > ?2
