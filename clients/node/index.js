// SPDX-License-Identifier: Apache-2.0
// Writes messages into hikyaku's outbox, inside your own transaction. index.d.ts has the types and the explanations.
import { randomUUID } from "node:crypto";

const VISIBLE = /^[\x21-\x7e]{1,256}$/;
const CONTROL = /[\x00-\x1f\x7f]/; // eslint-disable-line no-control-regex
const WORD = /^[A-Za-z_][A-Za-z0-9_]{0,62}$/;
const SEALED = /^hk1\.[A-Za-z0-9_-]{1,32}\.[0-9a-f]{8}\.[A-Za-z0-9+/]+={0,2}$/;
const TEXTS = {
  destination: "destination", eventType: "event_type", messageKey: "message_key", contentType: "content_type",
  correlationId: "correlation_id", traceparent: "traceparent", idempotencyKey: "idempotency_key", policy: "policy",
};

function textOf(column, value) {
  if (typeof value !== "string" || value.includes("\0")) throw new TypeError(`${column} is not a text without NUL characters`);
  return value;
}

function idOf(message) {
  if (message.messageId == null) {
    if (message.sealed != null) throw new TypeError("a sealed payload is bound to its message_id: give the one that it was sealed with");
    return randomUUID();
  }
  if (typeof message.messageId !== "string" || !VISIBLE.test(message.messageId))
    throw new TypeError("message_id has 1 to 256 visible ASCII characters");
  return message.messageId;
}

function payloadOf({ payload, sealed }) {
  if (sealed != null) {
    if (payload != null || typeof sealed !== "string" || !SEALED.test(sealed))
      throw new TypeError("sealed is the text hk1.KEY-ID.CHECK.BODY, in place of a payload");
    return { payload: sealed, encoding: "sealed" };
  }
  if (payload == null) return {};
  if (payload instanceof Uint8Array)
    return { payload: Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).toString("base64"), encoding: "base64" };
  return { payload: textOf("payload", typeof payload === "string" ? payload : JSON.stringify(payload)) };
}

function headersOf(headers) {
  for (const [name, value] of Object.entries(headers))
    if (!name || typeof value !== "string" || CONTROL.test(name) || CONTROL.test(value))
      throw new TypeError("headers have names, and texts without control characters");
  return JSON.stringify(headers);
}

function timeOf(column, at) {
  if (!(at instanceof Date) || Number.isNaN(at.getTime())) throw new TypeError(`${column} is not a valid Date`);
  return at.toISOString();
}

export function columns(message) {
  const row = { message_id: idOf(message) };
  for (const [name, column] of Object.entries(TEXTS)) if (message[name] != null) row[column] = textOf(column, message[name]);
  if (!row.event_type) throw new TypeError("event_type is empty");
  Object.assign(row, payloadOf(message));
  if (message.headers != null) row.headers = headersOf(message.headers);
  if (message.notBefore != null) row.not_before = timeOf("not_before", message.notBefore);
  if (message.expiresAt != null) row.expires_at = timeOf("expires_at", message.expiresAt);
  if (message.maxAttempts != null) {
    if (!Number.isInteger(message.maxAttempts) || message.maxAttempts < 0 || message.maxAttempts > 2147483647)
      throw new TypeError("max_attempts is not a count of attempts");
    row.max_attempts = message.maxAttempts;
  }
  return row;
}

function tableOf({ schema, prefix = "" } = {}) {
  for (const name of [schema, prefix || undefined])
    if (name !== undefined && !WORD.test(name)) throw new TypeError(`schema and prefix have letters, digits and '_' only, not ${JSON.stringify(name)}`);
  return `${schema ? `"${schema}".` : ""}"${prefix}outbox"`;
}

// PostgreSQL is told the types: a driver that sends all as text would be refused a time.
const POSTGRES_TYPES = { not_before: "timestamptz", expires_at: "timestamptz", max_attempts: "integer" };

function insert(message, place, mark) {
  const row = columns(message);
  const names = Object.keys(row);
  const sql = `INSERT INTO ${tableOf(place)} (${names.join(", ")}) VALUES (${names.map(mark).join(", ")})`;
  return { sql, values: Object.values(row), id: row.message_id };
}

const dollar = (name, i) => `$${i + 1}::${POSTGRES_TYPES[name] ?? "text"}`;

export async function enqueue(client, message, place) {
  const { sql, values, id } = insert(message, place, dollar);
  if (typeof client.$executeRawUnsafe === "function") await client.$executeRawUnsafe(sql, ...values);
  else await client.query(sql, values);
  return id;
}

export function enqueueSqlite(db, message, place) {
  const { sql, values, id } = insert(message, place, () => "?");
  db.prepare(sql).run(...values);
  return id;
}
