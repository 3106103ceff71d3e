// Small pieces that all screens use.
import { html, useEffect, useRef, useState } from './dom.js';
import { ago, clock, known, num, t, utc } from './i18n.js';
import { may, me } from './api.js';
import { useShared } from './store.js';
import { useWindow } from './window.js';

// ---- time and numbers ----

export function Time({ at, relative = true }) {
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((n) => n + 1), 5000);
    return () => clearInterval(timer);
  }, []);
  if (!at) return html`<span class="soft">–</span>`;
  const local = clock(at);
  return html`<time datetime=${at} title=${`${local} · ${utc(at)}`}>${relative ? ago(at) : local}</time>`;
}

// A count of the API: exact, or an estimate of the database's.
export const Count = ({ of }) => (of ? html`<span title=${of.estimate ? t('count.estimate') : undefined}>${of.estimate ? '≈ ' : ''}${num(of.n)}</span>` : '–');

// ---- states: a sign, a word and a colour ----

const LOOKS = {
  pending: ['info', '○'], processing: ['info', '▸'], retrying: ['warn', '↻'], sent: ['good', '✓'], dead: ['bad', '✕'], cancelled: ['', '⊘'],
  failed: ['bad', '✕'], resolved: ['good', '✓'], discarded: ['', '⊘'], none: ['', '·'],
  running: ['info', '▸'], queued: ['info', '○'], done: ['good', '✓'], aborted: ['bad', '!'],
  open: ['bad', '!'], half_open: ['warn', '½'], closed: ['good', '✓'], paused: ['warn', '‖'], limited: ['warn', '≤'], active: ['good', '✓'],
  firing: ['bad', '!'], watching: ['', '·'], critical: ['bad', '!'], warning: ['warn', '!'], info: ['info', 'i'],
  ok: ['good', '✓'], warn: ['warn', '!'], fail: ['bad', '✕'], stopped: ['bad', '✕'], expired: ['warn', '!'], revoked: ['', '⊘'],
};
export const signOf = (state) => LOOKS[state] || ['', '·'];

export function Chip({ state, text }) {
  const [colour, sign] = signOf(state);
  return html`<span class=${'chip ' + colour}><span aria-hidden="true">${sign}</span>${text || known('state.' + state, state)}</span>`;
}

// ---- what went wrong ----

export function problemText(problem) {
  if (!problem) return '';
  if (problem.code === 'UNREACHABLE') return t('problem.unreachable');
  return problem.message || String(problem);
}

export const Trouble = ({ problem }) => (problem ? html`<div class="problem" role="alert">${problemText(problem)}</div>` : null);
export const Loading = () => html`<p class="soft" aria-live="polite">${t('loading')}</p>`;
export const Empty = ({ title, children }) => html`<div class="empty"><strong>${title}</strong>${children}</div>`;

// ---- acts: what a role may not do is shown, with the reason ----

export function Act({ role = 'operator', why, kind = '', onClick, children, ...more }) {
  const who = useShared(me), allowed = may(who, role) && !why;
  const reason = why || (allowed ? undefined : t('role.needs', { role: t('role.' + role) }));
  return html`<button type="button" class=${kind} aria-disabled=${allowed ? undefined : 'true'} title=${reason}
    onClick=${(event) => { if (allowed) onClick(event); }} ...${more}>${children}</button>`;
}

export function Copy({ text, children }) {
  const [done, set] = useState(false);
  const copy = async () => {
    try { await navigator.clipboard.writeText(text); } catch { copyOldWay(text); }
    set(true);
    setTimeout(() => set(false), 2000);
  };
  return html`<button type="button" onClick=${copy}>${done ? t('copy.done') : children || t('copy.text')}</button>`;
}

function copyOldWay(text) {
  const area = document.createElement('textarea');
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand('copy');
  area.remove();
}

// ---- layout ----

export const Head = ({ title, sub, children }) => html`<div class="head"><div><h1>${title}</h1>${sub && html`<p>${sub}</p>`}</div><div class="acts">${children}</div></div>`;
// `many`: in as many columns as there is room for.
export const Facts = ({ rows, many }) => html`<dl class=${many ? 'facts many' : 'facts'}>${rows.filter((r) => r && r[1] !== null && r[1] !== undefined && r[1] !== '' && r[1] !== false)
  .map(([name, value]) => (many ? html`<div><dt>${name}</dt><dd>${value}</dd></div>` : html`<dt>${name}</dt><dd>${value}</dd>`))}</dl>`;

// Text of a payload, an answer or a header: shown as it is, never as markup.
export function Text({ text, cut, label }) {
  return html`<pre tabindex="0" aria-label=${label}>${text === null || text === undefined || text === '' ? t('empty.text') : pretty(text)}${cut ? '\n…' : ''}</pre>`;
}

function pretty(text) {
  if (typeof text !== 'string') return JSON.stringify(text, null, 2);
  if (!/^\s*[[{]/.test(text) || text.length > 200000 || text.includes('\n')) return text;
  return indent(text);
}

// Adds line breaks between the tokens of JSON, and changes none of them: a parser would round long numbers.
function indent(text) {
  let out = '', depth = 0, inString = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (inString) {
      out += c;
      if (c === '\\') out += text[++i] ?? '';
      else if (c === '"') inString = false;
    } else if (c === '"') { inString = true; out += c; }
    else if (c === '{' || c === '[') {
      const close = text.slice(i + 1).match(/^\s*[\]}]/);
      if (close) { out += c + close[0].trim(); i += close[0].length; }
      else out += c + '\n' + '  '.repeat(++depth);
    } else if (c === '}' || c === ']') { depth = Math.max(0, depth - 1); out += '\n' + '  '.repeat(depth) + c; }
    else if (c === ',') out += c + '\n' + '  '.repeat(depth);
    else if (c === ':') out += ': ';
    else if (!/\s/.test(c)) out += c;
  }
  return out;
}
export { indent };

// Lines of a diff as the API gives it: - what was, + what will be.
export function Diff({ text }) {
  if (!text) return html`<p class="soft">${t('diff.none')}</p>`;
  const kind = (line) => (line.startsWith('+') ? 'add' : line.startsWith('-') ? 'del' : 'same');
  return html`<pre class="diff" tabindex="0" aria-label=${t('diff.label')}>${text.replace(/\n$/, '').split('\n').map((line) => html`<span class=${kind(line)}>${line || ' '}</span>`)}</pre>`;
}

// A table that becomes a list on a phone; of a long one only the rows in sight are drawn. columns: [{name, cell(row),
// n?, wide?, names?, tight?, extra?}]; `extra` ones are left out on a phone, and a `narrow` table stays a table there.
export function Table({ caption, columns, rows, keyOf, onOpen, at, narrow }) {
  const body = useRef(null), { whole, from, to, above, below } = useWindow(body, rows.length, at);
  const blank = (px) => px > 0 && html`<tr class="blank" aria-hidden="true"><td colspan=${columns.length} style=${{ height: px + 'px' }}></td></tr>`;
  return html`<div class="scroll" tabindex="0"><table class=${narrow ? '' : 'stack'} aria-rowcount=${whole ? undefined : rows.length + 1}>
    ${caption && html`<caption>${caption}</caption>`}
    <thead><tr>${columns.map((c) => html`<th scope="col" class=${c.n ? 'n' : ''}>${c.name}</th>`)}</tr></thead>
    <tbody ref=${body}>${blank(above)}${rows.slice(from, to).map((row, k) => { const i = from + k; return html`<tr key=${keyOf ? keyOf(row) : i} aria-rowindex=${whole ? undefined : i + 2} class=${(onOpen ? 'link ' : '') + (at === i ? 'at' : '')}
        onClick=${onOpen && ((event) => { if (!event.target.closest('a,button,input,label')) onOpen(row, i); })}>
      ${columns.map((c) => html`<td class=${(c.n ? 'n ' : '') + (c.wide ? 'wide ' : '') + (c.names ? 'names ' : '') + (c.tight ? 'tight ' : '') + (c.extra ? 'extra' : '')} data-label=${c.plain ? '' : c.name}><div>${c.cell(row)}</div></td>`)}</tr>`; })}${blank(below)}</tbody>
  </table></div>`;
}

// j and k walk through rows, Enter opens, x marks.
export function useRows(rows, open, mark) {
  const [at, set] = useState(-1);
  const state = useRef(null);
  state.current = { at, rows, open, mark };
  useEffect(() => {
    const listen = (event) => {
      const { at: i, rows: all, open: act, mark: pick } = state.current;
      if (event.defaultPrevented || isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
      if (event.key === 'j') set(Math.min(i + 1, all.length - 1));
      else if (event.key === 'k') set(Math.max(i - 1, 0));
      else if (event.key === 'Enter' && i >= 0 && all[i] && act && event.target === document.body) act(all[i]);
      else if (event.key === 'x' && i >= 0 && all[i] && pick) pick(all[i]);
      else return;
      event.preventDefault();
    };
    addEventListener('keydown', listen);
    return () => removeEventListener('keydown', listen);
  }, []);
  useEffect(() => { document.querySelector('tr.at')?.scrollIntoView({ block: 'nearest' }); }, [at]);
  return at;
}

export const isTyping = (target) => target instanceof Element && !!target.closest('input,textarea,select,[contenteditable]');
