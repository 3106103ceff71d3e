// SPDX-License-Identifier: Apache-2.0
// Node with pg: the business change and its message in one transaction. Usage: node enqueue.mjs URL
import pg from "pg";

const db = new pg.Client({ connectionString: process.argv[2] });
await db.connect();
await db.query("CREATE TABLE IF NOT EXISTS orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, item text)");

async function createOrder(item, fail = false) {
  await db.query("BEGIN");
  try {
    const { rows } = await db.query("INSERT INTO orders (item) VALUES ($1) RETURNING id", [item]);
    await db.query("INSERT INTO outbox (destination, event_type, message_key, payload) VALUES ($1, $2, $3, $4)",
      ["shop", "OrderCreated", `order-${rows[0].id}`, JSON.stringify({ order: Number(rows[0].id), from: "node" })]);
    if (fail) throw new Error("the card was refused");
    await db.query("COMMIT");
  } catch (error) {
    await db.query("ROLLBACK"); // neither the order nor the message exists
    throw error;
  }
}

await createOrder("a parcel");
await createOrder("a mistake", true).catch(() => {});
await db.end();
