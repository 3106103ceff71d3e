-- SPDX-License-Identifier: Apache-2.0
-- Fragments that operators' statements share.

-- A row of outbox_attempts, and the SELECT list that it reads; what follows says from where.
--@ fragment ATTEMPT_COLUMNS
destination, life, n, started_ms, duration_ms, status, class, cause, error, request_headers,
response_headers, response_body, address, possibly_delivered

--@ fragment ATTEMPT
SELECT {ATTEMPT_COLUMNS}
FROM

-- What manifests name: `held` by claim, `named` by row of outbox.
--@ fragment NAMED
held AS MATERIALIZED (SELECT c.claim, c.claimed_ms, r.name, c.ids FROM outbox_claim c
  JOIN outbox_relay r ON r.lane = c.lane),
named AS MATERIALIZED (SELECT CAST(j.value AS INTEGER) AS id, h.claimed_ms, h.name FROM held h
  JOIN json_each(CASE WHEN json_valid(h.ids) THEN h.ids ELSE '[]' END) j)

-- From name to name through an index: the cost is in destinations, not in rows.
--@ fragment NAMES(from; where)
WITH RECURSIVE d (name) AS (SELECT (SELECT destination FROM {from} WHERE {where} ORDER BY destination LIMIT 1)
  UNION ALL SELECT (SELECT destination FROM {from} WHERE {where} AND destination > d.name ORDER BY destination
  LIMIT 1) FROM d WHERE d.name IS NOT NULL LIMIT 1002) SELECT name
FROM d
WHERE name IS NOT NULL
