// Words, numbers and times in the reader's language and zone. t('key', {n: 3}) takes key_one where n is 1 and the language has it.
import { remembered } from './store.js';

const KNOWN = ['en', 'ja'];
export const language = remembered('language', '');
let words = {}, findings = {}, code = 'en';

function preferred() {
  if (KNOWN.includes(language.get())) return language.get();
  const wanted = (navigator.languages || [navigator.language]).map((l) => l.slice(0, 2).toLowerCase());
  return wanted.find((l) => KNOWN.includes(l)) || 'en';
}

export async function loadWords() {
  code = preferred();
  words = (await (code === 'ja' ? import('./words/ja.js') : import('./words/en.js'))).default;
  if (Object.keys(findings).length) await loadFindings(); // the language was changed on such a screen
  document.documentElement.lang = code;
}

// Only two screens need them: they are not part of the first load. To be awaited before `said` is used.
export async function loadFindings() {
  findings = (await (code === 'ja' ? import('./words/findings_ja.js') : import('./words/findings_en.js'))).default;
}

export const lang = () => code;

export const t = (key, values) => tell(words, key, values) ?? key;

function tell(from, key, values) {
  const text = values && values.n === 1 ? from[key + '_one'] ?? from[key] : from[key];
  return text === undefined || !values ? text : text.replace(/\{(\w+)\}/g, (whole, name) => {
    const value = values[name];
    if (value === undefined || value === null) return whole;
    return typeof value === 'number' ? num(value) : String(value);
  });
}

// A word of the API that may be unknown to this page: shown as it is then.
export const known = (key, fallback) => words[key] ?? fallback;

// A sentence of the API by its code, in the reader's language; without words for that code, the API's own.
export const said = (kind, what, fallback) => (what.code && tell(findings, `${kind}.${what.code}`, shown(what.values || {}))) || fallback;

// Their names say how values are shown.
function shown({ estimate, ...values }) {
  for (const [name, value] of Object.entries(values)) {
    if (typeof value !== 'number') continue;
    if (name.endsWith('_ms')) values[name] = duration(value);
    else if (name.endsWith('_bytes')) values[name] = bytes(value);
    else if (name === 'n' && estimate) values[name] = t('count.about', { n: num(value) });
  }
  return values;
}

export const num = (n, digits = 0) => new Intl.NumberFormat(code, { maximumFractionDigits: digits }).format(n);
export const percent = (ratio) => new Intl.NumberFormat(code, { style: 'percent', maximumFractionDigits: 1 }).format(ratio);
export const bytes = (n) => (n < 1024 ? t('unit.bytes', { n }) : n < 1048576 ? t('unit.kib', { k: num(n / 1024, 1) }) : n < 10737418240 ? t('unit.mib', { m: num(n / 1048576, 1) }) : t('unit.gib', { g: num(n / 1073741824, 1) }));

// An answer counts as "now", not this computer's clock, which may be wrong.
let offsetMs = 0;
export function noteNow(text) {
  const at = Date.parse(text);
  if (at) offsetMs = at - Date.now();
}
export const now = () => Date.now() + offsetMs;

/** @type {[string, number][]} */
const STEPS = [['d', 86400000], ['h', 3600000], ['m', 60000], ['s', 1000]];

export function duration(ms) {
  if (ms === null || ms === undefined) return '–';
  if (ms < 1000) return t('unit.ms', { n: Math.round(ms) });
  const at = STEPS.findIndex(([, size]) => ms >= size);
  const [name, size] = STEPS[at], whole = Math.floor(ms / size), next = STEPS[at + 1];
  const rest = next ? Math.floor((ms % size) / next[1]) : 0;
  if (name === 's' && ms < 10000) return t('unit.s', { n: num(ms / 1000, 1) });
  return t('unit.' + name, { n: num(whole) }) + (rest && next ? ' ' + t('unit.' + next[0], { n: num(rest) }) : '');
}

export function ago(text) {
  const ms = now() - Date.parse(text);
  return ms < -1000 ? t('time.in', { time: duration(-ms) }) : ms < 2000 ? t('time.now') : t('time.ago', { time: duration(ms) });
}

export function clock(text, withDate = true) {
  const date = new Date(text), today = new Date(now());
  const same = date.toDateString() === today.toDateString();
  const time = new Intl.DateTimeFormat(code, { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' }).format(date);
  if (same && !withDate) return time;
  return new Intl.DateTimeFormat(code, { year: date.getFullYear() === today.getFullYear() ? undefined : 'numeric', month: 'short', day: 'numeric' }).format(date) + ' ' + time;
}

export const utc = (text) => new Date(text).toISOString().replace('T', ' ').replace('.000Z', 'Z');
