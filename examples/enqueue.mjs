// SPDX-License-Identifier: Apache-2.0
// Node 22.5 or later: the business change and its message in one transaction. Usage: node enqueue.mjs shop.db
import { DatabaseSync } from "node:sqlite";

const db = new DatabaseSync(process.argv[2]);
db.exec("PRAGMA busy_timeout = 5000");
db.exec("CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, item TEXT)");

function createOrder(item, fail = false) {
  db.exec("BEGIN IMMEDIATE");
  try {
    const { lastInsertRowid } = db.prepare("INSERT INTO orders (item) VALUES (?)").run(item);
    db.prepare("INSERT INTO outbox (destination, event_type, payload) VALUES (?, ?, ?)")
      .run("shop", "OrderCreated", JSON.stringify({ order: Number(lastInsertRowid), from: "node" }));
    if (fail) throw new Error("the card was refused");
    db.exec("COMMIT");
  } catch (error) {
    db.exec("ROLLBACK"); // neither the order nor the message exists
    throw error;
  }
}

createOrder("a parcel");
try {
  createOrder("a mistake", true);
} catch {}
