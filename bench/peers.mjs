// SPDX-License-Identifier: Apache-2.0
// What bench/postgres.py compares with: other queues on PostgreSQL, with the settings at which each was fastest of those tried.
// Usage: node peers.mjs seed|noop|http LIBRARY JOBS, with PEERS_DIR (where npm put the libraries), PEERS_PG (a database's URL)
// and PEERS_HOOK (where to POST) in the environment. Prints one line of JSON.
import { readFileSync } from 'fs';
import { createRequire } from 'module';

const require = createRequire(process.env.PEERS_DIR + '/');
const [mode, library, jobs] = process.argv.slice(2);
const N = +jobs;
const connectionString = process.env.PEERS_PG;
const SECONDS = 120; // at most
const CHUNK = 5000;

function payload(i) {
  const made = { order: i, text: '' };
  made.text = 'x'.repeat(500 - JSON.stringify(made).length);
  return made;
}

async function inChunks(f) {
  for (let i = 0; i < N; i += CHUNK)
    await f(Array.from({ length: Math.min(CHUNK, N - i) }, (_, k) => payload(i + k)));
}

async function query(text, values) {
  const { Client } = require('pg');
  const client = new Client({ connectionString });
  await client.connect();
  await client.query(text, values);
  await client.end();
}

function pgBoss() {
  const module = require('pg-boss');
  const PgBoss = module.PgBoss || module.default || module;
  const boss = new PgBoss({ connectionString, max: 10, supervise: false, schedule: false });
  boss.on('error', e => console.error(e));
  return boss;
}

const libraries = {
  'graphile-worker': {
    async seed() {
      await require('graphile-worker').runMigrations({ connectionString });
      await query('TRUNCATE graphile_worker._private_jobs');
      await inChunks(many => query(`SELECT count(*) FROM graphile_worker.add_jobs(ARRAY(SELECT
        row('deliver', p::json, NULL, NULL, NULL, NULL, NULL, NULL)::graphile_worker.job_spec FROM unnest($1::text[]) p))`,
        [many.map(p => JSON.stringify(p))]));
      await query('VACUUM ANALYZE graphile_worker._private_jobs');
    },
    async start(handle) { // batches on both sides: 12 times as fast as without
      const { run, WorkerPreset, Logger } = require('graphile-worker');
      const runner = await run({
        logger: new Logger(() => () => { }),
        preset: {
          extends: [WorkerPreset],
          worker: {
            connectionString, maxPoolSize: 10, concurrentJobs: 96, localQueue: { size: 2000 }, completeJobBatchDelay: 0,
            failJobBatchDelay: 0, pollInterval: 2000
          }
        },
        taskList: { deliver: handle }
      });
      return () => runner.stop();
    }
  },
  'pg-boss': {
    async seed() {
      const boss = pgBoss();
      await boss.start();
      await boss.deleteQueue('deliver').catch(() => { });
      await boss.createQueue('deliver');
      await inChunks(many => {
        const all = many.map(data => ({ name: 'deliver', data }));
        return boss.insert.length > 1 ? boss.insert('deliver', all) : boss.insert(all);
      });
      await boss.stop({ graceful: false });
      await query('VACUUM ANALYZE');
    },
    async start(handle) { // 8 workers of 1,000 twice a second, so that its interval is not what limits it
      const boss = pgBoss();
      await boss.start();
      for (let i = 0; i < 8; i++)
        await boss.work('deliver', { batchSize: 1000, pollingIntervalSeconds: 0.5 },
          all => Promise.all(all.map(job => handle(job.data))));
      return () => boss.stop({ graceful: true, wait: true, timeout: 10000 });
    }
  }
};

function poster() {
  const { Pool } = require('undici');
  const hook = new URL(process.env.PEERS_HOOK);
  const pool = new Pool(hook.origin, { connections: 64, pipelining: 1 });
  return async p => {
    const answer = await pool.request({
      method: 'POST', path: hook.pathname, headers: { 'content-type': 'application/json' }, body: JSON.stringify(p)
    });
    await answer.body.dump();
    if (answer.statusCode >= 300)
      throw new Error(`status ${answer.statusCode}`);
  };
}

async function drain() {
  const send = mode === 'http' ? poster() : async () => { };
  let done = 0, finish;
  const all = new Promise(resolve => { finish = resolve; });
  const timer = setTimeout(finish, SECONDS * 1000);
  const began = performance.now(), before = process.cpuUsage();
  const stop = await libraries[library].start(async p => {
    await send(p);
    if (++done === N)
      finish();
  });
  await all;
  const seconds = (performance.now() - began) / 1000;
  const handled = done;
  clearTimeout(timer);
  await stop(); // what it has still to write counts as its CPU, not as its time
  const cpu = process.cpuUsage(before);
  const peak = /VmHWM:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'));
  console.log(JSON.stringify({
    done: handled, rate: handled / seconds, cpu_us: (cpu.user + cpu.system) / handled, rss_mb: +peak[1] / 1024
  }));
}

await (mode === 'seed' ? libraries[library].seed() : drain());
process.exit(0);
