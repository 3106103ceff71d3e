// SPDX-License-Identifier: Apache-2.0
// Seal a payload for hikyaku's outbox (docs/sealed-format.md):
//
//     node seal.mjs KEY-ID KEY-FILE STORE MESSAGE-ID < payload
import { createCipheriv, createHash, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";

function gcm(key, nonce, plain, place) {
  const cipher = createCipheriv("aes-256-gcm", key, nonce);
  cipher.setAAD(Buffer.from(place));
  return Buffer.concat([cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
}

// The value for the column payload; the row's encoding is 'sealed', and its message_id is this one.
export function seal(keyId, key, store, messageId, payload) {
  const place = `${store}\noutbox.payload\n${messageId}`;
  const check = createHash("sha256").update(`hikyaku-check/1\n${store}\n`).update(key).digest("hex").slice(0, 8);
  const dataKey = randomBytes(32), keyNonce = randomBytes(12), nonce = randomBytes(12);
  const body = Buffer.concat([
    keyNonce, gcm(key, keyNonce, dataKey, `hikyaku-key/1\n${keyId}\n${place}`),
    nonce, gcm(dataKey, nonce, payload, `hikyaku-data/1\n${place}`),
  ]);
  return `hk1.${keyId}.${check}.${body.toString("base64")}`;
}

const [keyId, keyFile, store, messageId] = process.argv.slice(2);
const key = Buffer.from(readFileSync(keyFile, "ascii").trim(), "base64");
process.stdout.write(seal(keyId, key, store, messageId, readFileSync(0)));
