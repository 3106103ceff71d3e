// SPDX-License-Identifier: Apache-2.0

/** A message. Only eventType is required; docs/outbox.md explains every member. */
export interface Message {
  eventType: string;
  /** What the receiver gets. A string goes out as it is. Bytes go out as they are, too, and are stored as base64. Anything else becomes JSON. */
  payload?: string | Uint8Array | object | number | boolean | null;
  /** Absent: the relay's routes choose. */
  destination?: string;
  /** Absent: a new UUID. */
  messageId?: string;
  /** Order within a destination. */
  messageKey?: string;
  headers?: Record<string, string>;
  contentType?: string;
  correlationId?: string;
  traceparent?: string;
  idempotencyKey?: string;
  notBefore?: Date;
  expiresAt?: Date;
  policy?: string;
  maxAttempts?: number;
  /** A payload that you have sealed already (docs/sealed-format.md), in place of payload; it needs a messageId. */
  sealed?: string;
}

/** Where the outbox is: schema and prefix of the relay's store URL. */
export interface Place {
  schema?: string;
  prefix?: string;
}

/** What pg's Client and PoolClient have. Do not give a Pool: each of its queries may run on another connection. */
export interface PgClient {
  query(sql: string, values: unknown[]): Promise<unknown>;
}

/** What Prisma's transaction client has: the argument of prisma.$transaction(async (tx) => …). */
export interface PrismaClient {
  $executeRawUnsafe(sql: string, ...values: unknown[]): PromiseLike<unknown>;
}

/** What better-sqlite3's Database and node:sqlite's DatabaseSync have. */
export interface SqliteDatabase {
  prepare(sql: string): { run(...values: never[]): unknown };
}

/** Writes the message in the client's transaction on PostgreSQL, and gives its message_id. It neither begins nor commits. */
export function enqueue(client: PgClient | PrismaClient, message: Message, place?: Place): Promise<string>;

/** The same on SQLite. */
export function enqueueSqlite(db: SqliteDatabase, message: Message, place?: Place): string;

/** What is written, by the names of outbox's columns. A TypeError names the column that is wrong. */
export function columns(message: Message): Record<string, string | number>;
