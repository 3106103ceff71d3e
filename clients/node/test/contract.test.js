// SPDX-License-Identifier: Apache-2.0
// The shared contract (clients/contract.json) with each driver. HIKYAKU_TEST_PG is a URL, HIKYAKU_TEST_SQLITE a file, both with the
// schema of `hikyaku init`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { PrismaPg } from "@prisma/adapter-pg";
import prismaClient from "@prisma/client";
import Database from "better-sqlite3";
import pg from "pg";
import { columns, enqueue, enqueueSqlite } from "../index.js";

const CONTRACT = JSON.parse(readFileSync(new URL("../../contract.json", import.meta.url), "utf8"));
const { HIKYAKU_TEST_PG: PG, HIKYAKU_TEST_SQLITE: SQLITE } = process.env;
const NAMES = {
  event_type: "eventType", message_id: "messageId", message_key: "messageKey", content_type: "contentType", correlation_id: "correlationId",
  idempotency_key: "idempotencyKey", not_before: "notBefore", expires_at: "expiresAt", max_attempts: "maxAttempts", text: "payload", base64: "payload",
};

function messageOf(given, driver) {
  const message = {};
  for (const [name, value] of Object.entries(given)) {
    const is = name === "base64" ? Buffer.from(value, "base64") : name === "not_before" || name === "expires_at" ? new Date(value) : value;
    message[NAMES[name] ?? name] = is;
  }
  if (driver && message.messageId) message.messageId = `${driver}-${message.messageId}`; // tests of several drivers share a table
  return message;
}

class Undo extends Error {}

// `inside` runs in a transaction, which is rolled back when it throws.
const reader = new pg.Client({ connectionString: PG });
const client = new pg.Client({ connectionString: PG });
const prisma = new prismaClient.PrismaClient({ adapter: new PrismaPg({ connectionString: PG }) });
const sqlite = new Database(SQLITE, { timeout: 30000 });
const inPostgres = async (id) => (await reader.query(CONTRACT.select.postgres, [id])).rows.map((row) => JSON.parse(Object.values(row)[0]));

const drivers = {
  pg: {
    async inside(work) {
      await client.query("BEGIN");
      try {
        const result = await work((message) => enqueue(client, message));
        await client.query("COMMIT");
        return result;
      } catch (error) {
        await client.query("ROLLBACK");
        throw error;
      }
    },
    rows: inPostgres,
  },
  prisma: {
    inside: (work) => prisma.$transaction((tx) => work((message) => enqueue(tx, message))),
    rows: inPostgres,
  },
  "better-sqlite3": {
    async inside(work) {
      sqlite.exec("BEGIN IMMEDIATE");
      try {
        const result = await work(async (message) => enqueueSqlite(sqlite, message));
        sqlite.exec("COMMIT");
        return result;
      } catch (error) {
        sqlite.exec("ROLLBACK");
        throw error;
      }
    },
    rows: async (id) => sqlite.prepare(CONTRACT.select.sqlite).raw().all(id).map((row) => JSON.parse(row[0])),
  },
};

before(async () => {
  await reader.connect();
  await client.connect();
});
after(async () => {
  await reader.end();
  await client.end();
  await prisma.$disconnect();
  sqlite.close();
});

for (const [name, driver] of Object.entries(drivers))
  describe(name, () => {
    for (const entry of CONTRACT.cases)
      test(entry.name, async () => {
        const message = messageOf(entry.message, name);
        if (entry.refused) {
          const wrong = messageOf(entry.message);
          await assert.rejects(driver.inside((put) => put(wrong)), { name: "TypeError", message: new RegExp(entry.refused) });
          return;
        }
        const id = await driver.inside((put) => put(message));
        assert.equal(id, message.messageId ?? id);
        assert.deepEqual(await driver.rows(id), [entry.row]);
      });

    test("a rollback leaves nothing", async () => {
      let id;
      await assert.rejects(
        driver.inside(async (put) => {
          id = await put({ eventType: "Never", destination: "shop", payload: "1" });
          throw new Undo();
        }),
        Undo,
      );
      assert.deepEqual(await driver.rows(id), []);
    });

    test("ids are new, and what is no text is JSON", async () => {
      const [a, b] = await driver.inside(async (put) => [
        await put({ eventType: "Twice", destination: "shop", payload: { 名: [1] } }),
        await put({ eventType: "Twice", destination: "shop", payload: null }),
      ]);
      assert.notEqual(a, b);
      assert.equal((await driver.rows(a))[0].payload, '{"名":[1]}');
      assert.equal((await driver.rows(b))[0].payload, undefined);
    });
  });

test("a time must be one", () => {
  assert.throws(() => columns({ eventType: "E", notBefore: new Date("tomorrow") }), /not_before/);
  assert.throws(() => columns({ eventType: "E", expiresAt: "2026-01-01" }), /expires_at/);
});

test("schema and prefix", async () => {
  const id = await enqueue(client, { eventType: "Placed", destination: "shop" }, { schema: "public" });
  assert.equal((await inPostgres(id)).length, 1);
  await assert.rejects(enqueue(client, { eventType: "E" }, { schema: 'a"; DROP TABLE x --' }), /letters, digits/);
});
