-- The sqlite3 shell: the business change and its message in one transaction.
-- sqlite3 shop.db < examples/enqueue.sql
.bail on
.timeout 5000
CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, item TEXT);

BEGIN IMMEDIATE;
INSERT INTO orders (item) VALUES ('a parcel');
INSERT INTO outbox (destination, event_type, payload)
VALUES ('shop', 'OrderCreated', json_object('order', last_insert_rowid(), 'from', 'sql'));
COMMIT;

-- Rolled back: neither the order nor the message exists.
BEGIN IMMEDIATE;
INSERT INTO orders (item) VALUES ('a mistake');
INSERT INTO outbox (destination, event_type, payload) VALUES ('shop', 'OrderCreated', '{"from":"nowhere"}');
ROLLBACK;
