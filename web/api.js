// The HTTP API, and nothing else. Errors are the problems that the relay answers with (RFC 9457).
import { shared } from './store.js';
import { noteNow } from './i18n.js';

export const me = shared(null);          // {name, role, reveal}; null: nobody is logged in
export const reachable = shared(true);   // did the relay answer the last call?

export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || body.title || String(status));
    this.status = status;
    this.code = body.code || '';
    this.errors = body.errors || [];
  }
}

function queryOf(values) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values || {}))
    if (value !== undefined && value !== null && value !== '') query.set(name, value);
  const text = query.toString();
  return text ? '?' + text : '';
}

async function read(answer) {
  const kind = answer.headers.get('Content-Type') || '';
  if (!kind.includes('json')) return { detail: await answer.text() };
  return answer.json();
}

async function call(url, options) {
  let answer;
  try {
    answer = await fetch(url, { credentials: 'same-origin', cache: 'no-store', ...options });
  } catch (error) {
    if (error.name !== 'AbortError') reachable.set(false);
    throw error.name === 'AbortError' ? error : new Problem(0, { detail: '', code: 'UNREACHABLE' });
  }
  reachable.set(true);
  const body = answer.status === 204 ? {} : await read(answer);
  if (body.now) noteNow(body.now);
  if (answer.status === 401 && me.get()) me.set(null);
  if (!answer.ok) throw new Problem(answer.status, body);
  return { body, etag: answer.headers.get('ETag'), status: answer.status };
}

export async function get(path, query, signal) {
  return (await call('/api/v1' + path + queryOf(query), { signal })).body;
}

// The same question asked by two parts of the page at once is one call. It cannot be broken off.
const underWay = new Map();

export function getTogether(path) {
  if (!underWay.has(path)) underWay.set(path, get(path).finally(() => underWay.delete(path)));
  return underWay.get(path);
}

export async function getTagged(path, query) {
  return call('/api/v1' + path + queryOf(query), {});
}

function sending(method, path, body, headers = {}, signal = undefined) {
  return call('/api/v1' + path, { method, signal, body: JSON.stringify(body || {}), headers: { 'Content-Type': 'application/json', ...headers } });
}

// A change is sent with a key of its own, so that a repeat after a lost answer does nothing twice.
export async function post(path, body, { signal = undefined, once = true } = {}) {
  const headers = once ? { 'Idempotency-Key': crypto.randomUUID ? crypto.randomUUID() : String(Math.random()) + Date.now() } : {};
  return (await sending('POST', path, body, headers, signal)).body;
}

export async function ask(path, body, signal) {
  return (await sending('POST', path, body, {}, signal)).body; // changes nothing: a plan, a preview
}

export async function put(path, body, etag) {
  return (await sending('PUT', path, body, etag ? { 'If-Match': etag } : {})).body;
}

export async function patch(path, body) {
  return (await sending('PATCH', path, body)).body;
}

export async function del(path, query, etag) {
  return (await call('/api/v1' + path + queryOf(query), { method: 'DELETE', headers: etag ? { 'If-Match': etag } : {} })).body;
}

export const enc = encodeURIComponent;

// ---- sessions ----

export async function whoAmI() {
  try {
    me.set(await get('/me'));
  } catch (problem) {
    if (problem.status !== 401 && problem.status !== 429) throw problem;
    me.set(null);
  }
}

export async function logIn(token) {
  await call('/ui/session', { method: 'POST', headers: { Authorization: 'Bearer ' + token.trim() } });
  await whoAmI();
}

export async function useTicket(ticket) {
  await call('/ui/session', { method: 'POST', headers: { 'Hikyaku-Ticket': ticket } });
  await whoAmI();
}

export async function logOut() {
  await call('/ui/session', { method: 'DELETE' });
  me.set(null);
  await whoAmI();
}

const ROLES = ['none', 'metrics', 'viewer', 'operator', 'admin'];
export const may = (who, role) => !!who && ROLES.indexOf(who.role) >= ROLES.indexOf(role);
