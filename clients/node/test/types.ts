// SPDX-License-Identifier: Apache-2.0
// Compiled, never run: the drivers' own types fit ours.
import { PrismaPg } from "@prisma/adapter-pg";
import { PrismaClient } from "@prisma/client";
import Database from "better-sqlite3";
import pg from "pg";
import { enqueue, enqueueSqlite, type Message } from "../index.js";

const message: Message = { eventType: "OrderCreated", payload: { orderId: 42 }, notBefore: new Date() };

export async function withPg(client: pg.Client, pooled: pg.PoolClient): Promise<string[]> {
  return [await enqueue(client, message), await enqueue(pooled, message, { schema: "app" })];
}

export async function withPrisma(): Promise<string> {
  const prisma = new PrismaClient({ adapter: new PrismaPg({}) });
  return prisma.$transaction(async (tx) => enqueue(tx, message));
}

export function withSqlite(db: Database.Database): string {
  return enqueueSqlite(db, message);
}

// @ts-expect-error: an event type is required
export const wrong: Message = { payload: "1" };
