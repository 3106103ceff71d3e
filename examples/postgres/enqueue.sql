-- psql: the business change and its message in one transaction.
-- psql -v ON_ERROR_STOP=1 "$URL" -f examples/postgres/enqueue.sql
CREATE TABLE IF NOT EXISTS orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, item text);

BEGIN;
WITH placed AS (INSERT INTO orders (item) VALUES ('a parcel') RETURNING id)
INSERT INTO outbox (destination, event_type, message_key, payload)
SELECT 'shop', 'OrderCreated', 'order-' || id, json_build_object('order', id, 'from', 'sql') FROM placed;
COMMIT;

-- Rolled back: neither the order nor the message exists.
BEGIN;
INSERT INTO orders (item) VALUES ('a mistake');
INSERT INTO outbox (destination, event_type, payload) VALUES ('shop', 'OrderCreated', '{"from":"nowhere"}');
ROLLBACK;
