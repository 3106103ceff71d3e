// Live events. The browser connects again by itself and says what it saw last; after a longer break everything is loaded again.
import { shared } from './store.js';
import { me, reachable, whoAmI } from './api.js';
import { noteNow } from './i18n.js';
import { useEffect, useState } from './dom.js';

export const connection = shared('connecting'); // live, connecting, off
const listeners = new Set();                     // function(type, data)
const TYPES = ['state', 'figures', 'alert', 'redrive', 'job'];
const RETRY_MS = 2000;
let source = null, timer = 0;

function tell(type, data) {
  for (const listener of [...listeners]) listener(type, data);
}

function again() {
  if (source) source.close();
  source = null;
  connection.set('connecting');
  clearTimeout(timer);
  timer = setTimeout(probe, RETRY_MS);
}

// A stream that was refused says nothing of why: an ordinary call does.
async function probe() {
  try {
    await whoAmI();
  } catch { /* said by `reachable` */ }
  if (me.get() && reachable.get()) start();
  else if (!reachable.get()) again();
}

export function start() {
  stop();
  source = new EventSource('/api/v1/events');
  source.addEventListener('open', (/** @type {MessageEvent} */ event) => { if (event.data === undefined) connection.set('live'); });
  source.addEventListener('error', () => {
    if (source && source.readyState === EventSource.CLOSED) again();
    else connection.set('connecting');
  });
  for (const type of TYPES) source.addEventListener(type, (event) => tell(type, JSON.parse(event.data)));
  source.addEventListener('heartbeat', (event) => noteNow(JSON.parse(event.data).now));
  source.addEventListener('reset', () => tell('reset', {}));
  source.addEventListener('end', again);
  source.onopen = () => { connection.set('live'); reachable.set(true); tell('reset', {}); };
}

export function stop() {
  clearTimeout(timer);
  if (source) source.close();
  source = null;
}

export function onEvents(types, act) {
  const listener = (type, data) => { if (type === 'reset' || types.includes(type)) act(type, data); };
  listeners.add(listener);
  return () => listeners.delete(listener);
}

const GATHER_MS = 400;  // many events are one reload
const REST = 4;         // after a question that took long the page rests four times as long: what many ask of a large store stays bounded
const POLL_MS = 10000;  // without events
const QUIET_MS = 30000; // with them: a count that went up and came back is no event

// Loads with `load(signal)`, again when an event of `types` comes, and by time where there is no stream. {data, problem, loading, reload}
// `every`: ask again after so many ms in any case. `types` null: load once, for what must not be asked twice.
export function useLive(load, inputs, types = [], every = 0) {
  const [state, set] = useState({ data: null, problem: null, loading: true });
  const [round, setRound] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    let waiting = 0, tookMs = 0, askedAt = 0, running = false, wanted = false, ended = false;
    const run = async () => {
      if (running) { wanted = true; return; }
      running = true;
      const began = askedAt = performance.now();
      try {
        const data = await load(abort.signal);
        if (!ended) set({ data, problem: null, loading: false });
      } catch (problem) {
        if (!ended && problem.name !== 'AbortError') set((was) => ({ ...was, problem, loading: false }));
      }
      tookMs = performance.now() - began;
      running = false;
      if (wanted && !ended) { wanted = false; soon(); }
    };
    const soon = () => { clearTimeout(waiting); waiting = setTimeout(run, Math.max(GATHER_MS, REST * tookMs)); };
    set((was) => ({ ...was, loading: true, problem: null }));
    run();
    if (!types) return () => { ended = true; abort.abort(); };
    const off = onEvents(types, soon);
    const poll = setInterval(() => { if (every || connection.get() !== 'live' || types.length === 0 || performance.now() - askedAt > QUIET_MS) run(); }, every || POLL_MS);
    return () => { ended = true; abort.abort(); off(); clearTimeout(waiting); clearInterval(poll); };
  }, [...inputs, round]);
  return { ...state, reload: () => setRound((n) => n + 1) };
}
