-- SPDX-License-Identifier: Apache-2.0
-- What a clock that was wrong has left behind, found and mended: the rules are in store/clock.h. For both kinds of store. Theirs are
-- the fragments CLOCK_AT (what stands before a table's name), CLOCK_W (the clock, which is right), CLOCK_M (the mark, the latest time
-- that the store has seen), CLOCK_NO (a flag is not set), CLOCK_YES (a flag that is), CLOCK_UNSET (a time is not there), CLOCK_NAMED
-- (not_before in milliseconds) and CLOCK_SLICE (which retry rows a statement looks at).

--@ fragment CLOCK_AHEAD(x)
{x} > {CLOCK_W} + 2000

--@ fragment CLOCK_AT_MOST(x)
{x} = CASE WHEN {x} > {CLOCK_W} THEN {CLOCK_W} ELSE {x} END

-- By as much as the last attempt lies ahead, and not later than now.
--@ fragment CLOCK_SHIFT(x)
{x} = CASE WHEN {x} <= {CLOCK_W} THEN {x} WHEN {x} - (last_attempt_ms - {CLOCK_W}) > {CLOCK_W} THEN {CLOCK_W}
ELSE {x} - (last_attempt_ms - {CLOCK_W}) END

-- What is left of it by the store's own time.
--@ fragment CLOCK_LEFT(x)
{x} = CASE WHEN {x} > {CLOCK_M} THEN {CLOCK_W} + ({x} - {CLOCK_M}) WHEN {x} > {CLOCK_W} THEN {CLOCK_W} ELSE {x} END

--@ fragment CLOCK_OFF
{CLOCK_M} > {CLOCK_W} + 2000

-- Due without any wait, though not now: not scheduled by its application, and not tried, or found in a dead relay's hands since, or
-- given back by a relay that stopped.
--@ fragment CLOCK_AT_ONCE
(NOT ({CLOCK_NO(deferred)}) AND {CLOCK_UNSET(not_before)} OR {CLOCK_NO(deferred)} AND (attempts = 0 OR crashes > 0
  OR last_error = '{=HK_STOPPED_SENDING}'))

-- A wrong clock took it for due: it was fanned out, found in a dead relay's hands, or tried.
--@ fragment CLOCK_EARLY
life = 1 AND {CLOCK_NO(deferred)} AND {CLOCK_NAMED} > {CLOCK_W}

--@ fragment CLOCK_DEFER
deferred = CASE WHEN {CLOCK_EARLY} THEN {CLOCK_YES} ELSE deferred END

-- ---- which rows ----

--@ fragment CLOCK_WAITS_WRONG
{CLOCK_AHEAD(last_attempt_ms)}

--@ fragment CLOCK_DUE_WRONG
last_attempt_ms <= {CLOCK_W} + 2000 AND ({CLOCK_AHEAD(due_ms)} AND {CLOCK_AT_ONCE} OR {CLOCK_EARLY})

--@ fragment CLOCK_BREAKERS_WRONG
{CLOCK_AHEAD(open_until_ms)} AND {CLOCK_OFF}

--@ fragment CLOCK_STATES_WRONG
{CLOCK_AHEAD(since_ms)}

--@ fragment CLOCK_LEASES_WRONG
{CLOCK_AHEAD(until_ms)} AND {CLOCK_OFF}

--@ fragment CLOCK_CLAIMS_WRONG
{CLOCK_AHEAD(claimed_ms)}

--@ fragment CLOCK_REDRIVES_WRONG
status = 'running' AND ({CLOCK_AHEAD(started_ms)} OR {CLOCK_AHEAD(tokens_ms)})

--@ fragment CLOCK_NOTICES_WRONG
sent_ms = 0 AND given_up_ms = 0 AND ({CLOCK_AHEAD(due_ms)} OR {CLOCK_AHEAD(claim_until_ms)}) AND {CLOCK_OFF}

--@ fragment CLOCK_MUTES_WRONG
{CLOCK_AHEAD(since_ms)}

--@ fragment CLOCK_LOOKS_WRONG
({CLOCK_AHEAD(evaluated_ms)} OR {CLOCK_AHEAD(again_ms)})

-- The latest time that rows were written with. No lease is longer than an hour, but for one that is held while something large is
-- moved.
--@ fragment CLOCK_WRITTEN
SELECT max(w.at) FROM (SELECT max(last_attempt_ms) AS at FROM {CLOCK_AT}outbox_retry
UNION ALL SELECT max(due_ms) FROM {CLOCK_AT}outbox_retry WHERE {CLOCK_AT_ONCE}
UNION ALL SELECT max(since_ms) FROM {CLOCK_AT}outbox_destination
UNION ALL SELECT max(started_ms) FROM {CLOCK_AT}outbox_relay
UNION ALL SELECT max(until_ms) - 7200000 FROM {CLOCK_AT}outbox_relay
UNION ALL SELECT max(claimed_ms) FROM {CLOCK_AT}outbox_claim
UNION ALL SELECT max(started_ms) FROM {CLOCK_AT}outbox_redrive WHERE status = 'running'
UNION ALL SELECT max(tokens_ms) FROM {CLOCK_AT}outbox_redrive WHERE status = 'running'
UNION ALL SELECT max(since_ms) FROM {CLOCK_AT}outbox_mute
UNION ALL SELECT max(evaluated_ms) FROM {CLOCK_AT}outbox_alert_look
UNION ALL SELECT max(again_ms) FROM {CLOCK_AT}outbox_alert_look) w

--@ fragment CLOCK_COUNT(table; wrong)
(SELECT count(*) FROM {CLOCK_AT}{table} WHERE {wrong})

-- How many of each part, in the order of enum hk_clock_part.
--@ statement CLOCK_COUNTS
SELECT {CLOCK_COUNT(outbox_retry; {CLOCK_WAITS_WRONG})}, {CLOCK_COUNT(outbox_retry; {CLOCK_DUE_WRONG})},
{CLOCK_COUNT(outbox_destination; {CLOCK_BREAKERS_WRONG})}, {CLOCK_COUNT(outbox_destination; {CLOCK_STATES_WRONG})},
{CLOCK_COUNT(outbox_relay; {CLOCK_LEASES_WRONG})}, {CLOCK_COUNT(outbox_claim; {CLOCK_CLAIMS_WRONG})},
{CLOCK_COUNT(outbox_redrive; {CLOCK_REDRIVES_WRONG})}, {CLOCK_COUNT(outbox_notice; {CLOCK_NOTICES_WRONG})},
{CLOCK_COUNT(outbox_mute; {CLOCK_MUTES_WRONG})}, {CLOCK_COUNT(outbox_alert_look; {CLOCK_LOOKS_WRONG})}

-- ---- mending: one statement for each part, in the same order ----
-- All of them are given both times, also where one is enough.

--@ statement CLOCK_WAITS
UPDATE {CLOCK_AT}outbox_retry SET due_ms = CASE WHEN NOT ({CLOCK_NO(deferred)}) THEN due_ms
WHEN {CLOCK_EARLY} AND {CLOCK_NAMED} > due_ms - (last_attempt_ms - {CLOCK_W}) THEN {CLOCK_NAMED}
WHEN due_ms - (last_attempt_ms - {CLOCK_W}) < {CLOCK_W} THEN {CLOCK_W} ELSE due_ms - (last_attempt_ms - {CLOCK_W}) END,
{CLOCK_DEFER}, {CLOCK_SHIFT(first_attempt_ms)}, {CLOCK_SHIFT(first_failed_ms)}, last_attempt_ms = {CLOCK_W}
WHERE {CLOCK_WAITS_WRONG} AND {CLOCK_M} IS NOT NULL AND {CLOCK_SLICE}

--@ statement CLOCK_DUE
UPDATE {CLOCK_AT}outbox_retry SET due_ms = CASE WHEN {CLOCK_EARLY} AND NOT {CLOCK_AT_ONCE} AND due_ms > {CLOCK_NAMED}
THEN due_ms WHEN {CLOCK_EARLY} THEN {CLOCK_NAMED} ELSE {CLOCK_W} END, {CLOCK_DEFER}
WHERE {CLOCK_DUE_WRONG} AND {CLOCK_M} IS NOT NULL AND {CLOCK_SLICE}

--@ statement CLOCK_BREAKERS
UPDATE {CLOCK_AT}outbox_destination SET {CLOCK_LEFT(open_until_ms)} WHERE {CLOCK_BREAKERS_WRONG}

--@ statement CLOCK_STATES
UPDATE {CLOCK_AT}outbox_destination SET {CLOCK_AT_MOST(since_ms)} WHERE {CLOCK_STATES_WRONG} AND {CLOCK_M} IS NOT NULL

--@ statement CLOCK_LEASES
UPDATE {CLOCK_AT}outbox_relay SET {CLOCK_AT_MOST(until_ms)}, {CLOCK_AT_MOST(started_ms)} WHERE {CLOCK_LEASES_WRONG}

--@ statement CLOCK_CLAIMS
UPDATE {CLOCK_AT}outbox_claim SET {CLOCK_AT_MOST(claimed_ms)} WHERE {CLOCK_CLAIMS_WRONG} AND {CLOCK_M} IS NOT NULL

--@ statement CLOCK_REDRIVES
UPDATE {CLOCK_AT}outbox_redrive SET {CLOCK_AT_MOST(started_ms)}, {CLOCK_AT_MOST(tokens_ms)}
WHERE {CLOCK_REDRIVES_WRONG} AND {CLOCK_M} IS NOT NULL

--@ statement CLOCK_NOTICES
UPDATE {CLOCK_AT}outbox_notice SET {CLOCK_LEFT(due_ms)}, {CLOCK_LEFT(claim_until_ms)} WHERE {CLOCK_NOTICES_WRONG}

--@ statement CLOCK_MUTES
UPDATE {CLOCK_AT}outbox_mute SET until_ms = until_ms - (since_ms - {CLOCK_W}), since_ms = {CLOCK_W}
WHERE {CLOCK_MUTES_WRONG} AND {CLOCK_M} IS NOT NULL

--@ statement CLOCK_LOOKS
UPDATE {CLOCK_AT}outbox_alert_look SET {CLOCK_AT_MOST(evaluated_ms)}, {CLOCK_AT_MOST(again_ms)}
WHERE {CLOCK_LOOKS_WRONG} AND {CLOCK_M} IS NOT NULL

-- The latest time of rows; no parameters.
--@ statement CLOCK_MARK
{CLOCK_WRITTEN}
