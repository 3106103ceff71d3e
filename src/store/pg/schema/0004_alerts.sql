-- hikyaku, schema version 4: alerts, what is to be told of them, and who wants to hear nothing.

-- One row for each rule and what it is about, as core/alert.h has it.
CREATE TABLE @outbox_alert (
    fingerprint text    PRIMARY KEY, -- of rule, destination and reason
    rule        text    NOT NULL,
    kind        text    NOT NULL,    -- as in `when:`
    severity    text    NOT NULL,
    status      text    NOT NULL,    -- watching, pending, firing, resolved
    destination text    NOT NULL DEFAULT '',
    reason      text    NOT NULL DEFAULT '',
    event_type  text    NOT NULL DEFAULT '',
    example_id  text    NOT NULL DEFAULT '', -- a message_id
    detail      text    NOT NULL DEFAULT '', -- masked
    episode     bigint  NOT NULL DEFAULT 0,
    count       bigint  NOT NULL DEFAULT 0,
    since_ms    bigint  NOT NULL DEFAULT 0,
    fired_ms    bigint  NOT NULL DEFAULT 0,
    resolved_ms bigint  NOT NULL DEFAULT 0,
    gone_ms     bigint  NOT NULL DEFAULT 0,
    told_ms     bigint  NOT NULL DEFAULT 0,
    told        boolean NOT NULL DEFAULT false,
    owed        boolean NOT NULL DEFAULT false,
    value       double precision NOT NULL DEFAULT 0,
    threshold   double precision NOT NULL DEFAULT 0,
    letter_id   bigint  NOT NULL DEFAULT 0, -- a letter of it that was not settled when it was looked at last
    series_ms   bigint  NOT NULL DEFAULT 0,
    series      text    NOT NULL DEFAULT '' -- numbers with blanks between
) WITH (fillfactor = 50);

-- Where the last look ended: the one row. Who has another version than the row's was overtaken by another relay.
CREATE TABLE @outbox_alert_look (
    id           bigint PRIMARY KEY,
    version      bigint NOT NULL DEFAULT 0,
    evaluated_ms bigint NOT NULL DEFAULT 0,
    relay        text   NOT NULL DEFAULT '',
    letter_id    bigint NOT NULL DEFAULT 0, -- letters up to here were counted
    again_ms     bigint NOT NULL DEFAULT 0, -- those that died again before this, too
    gaps         text   NOT NULL DEFAULT '' -- but for these, which may turn up yet: from-to:noticed_ms …
) WITH (fillfactor = 20);
INSERT INTO @outbox_alert_look (id, again_ms) VALUES (1, (extract(epoch FROM now()) * 1000)::bigint);

-- What is to be told, once for each channel.
CREATE TABLE @outbox_notice (
    id             bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    fingerprint    text    NOT NULL,
    rule           text    NOT NULL,
    kind           text    NOT NULL, -- firing, update, resolved
    channel        text    NOT NULL,
    facts          text    NOT NULL, -- JSON object, masked
    created_ms     bigint  NOT NULL,
    due_ms         bigint  NOT NULL,
    attempts       bigint  NOT NULL DEFAULT 0, -- begun
    claimed_by     text    NOT NULL DEFAULT '',
    claim_until_ms bigint  NOT NULL DEFAULT 0,
    sent_ms        bigint  NOT NULL DEFAULT 0,
    given_up_ms    bigint  NOT NULL DEFAULT 0,
    last_error     text
);
CREATE INDEX @@outbox_notice_open ON @outbox_notice (channel, due_ms) WHERE sent_ms = 0 AND given_up_ms = 0;
CREATE INDEX @@outbox_notice_alert ON @outbox_notice (fingerprint, (id + 0)) WHERE sent_ms = 0 AND given_up_ms = 0;
CREATE INDEX @@outbox_notice_created ON @outbox_notice (created_ms);

-- Rules of which nothing is told until then.
CREATE TABLE @outbox_mute (
    rule     text   PRIMARY KEY,
    until_ms bigint NOT NULL,
    since_ms bigint NOT NULL,
    actor    text   NOT NULL,
    reason   text   NOT NULL
);

-- Letters that died again after a requeue: few, and only those are in it.
CREATE INDEX @@dead_letters_again ON @dead_letters (last_failed_at) WHERE life > 1;

-- Who moves messages decides and tells, and who looks may look: rights as on outbox_retry.
DO $$
DECLARE
    g record;
    t text;
BEGIN
    FOR g IN SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS role,
                    a.privilege_type AS what
               FROM pg_class c CROSS JOIN aclexplode(c.relacl) a
              WHERE c.oid = '@outbox_retry'::regclass AND a.grantee <> c.relowner
                AND a.privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE') LOOP
        FOREACH t IN ARRAY ARRAY['@outbox_alert', '@outbox_notice', '@outbox_mute'] LOOP
            EXECUTE 'GRANT ' || g.what || ' ON ' || t || ' TO ' || g.role;
        END LOOP;
        IF g.what IN ('SELECT', 'UPDATE') THEN
            EXECUTE 'GRANT ' || g.what || ' ON @outbox_alert_look TO ' || g.role;
        END IF;
    END LOOP;
END
$$;
