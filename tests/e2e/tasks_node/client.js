// SPDX-License-Identifier: Apache-2.0
// Google's own client of Cloud Tasks as a program: one call a line on standard input, as JSON, and one answer a line.
//   {"call": "createTask", "request": {"parent": "…", "task": {…}}}  ->  {"ok": …} or {"error": {"code": 6, "message": "…"}}
// Usage: node client.js HOST PORT TOKEN
'use strict';
const readline = require('node:readline');
const {CloudTasksClient} = require('@google-cloud/tasks');
const {OAuth2Client} = require('google-auth-library');

const [host, port, token] = process.argv.slice(2);
const authClient = new OAuth2Client();
authClient.setCredentials({access_token: token, expiry_date: Date.now() + 3600e3});
const client = new CloudTasksClient({
  fallback: true, protocol: 'http', apiEndpoint: host, port: Number(port), projectId: 'shop', authClient,
});

// Buffers and 64-bit numbers as texts.
function plain(key, value) {
  if (value && value.type === 'Buffer') return Buffer.from(value.data).toString('base64');
  return value;
}

async function answer({call, request}) {
  const [result] = await client[call](request, {timeout: 60000});
  return result;
}

async function main() {
  console.log(JSON.stringify({ok: client.queuePath('shop', 'asia-northeast1', 'bigquery-sync-queue')}));
  for await (const line of readline.createInterface({input: process.stdin})) {
    try {
      console.log(JSON.stringify({ok: (await answer(JSON.parse(line))) ?? null}, plain));
    } catch (error) {
      console.log(JSON.stringify({error: {code: error.code ?? null, message: String(error.message)}}));
    }
  }
}

main();
