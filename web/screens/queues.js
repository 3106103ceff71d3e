// Queues of Cloud Tasks: what waits in each; make, change, pause, purge and delete them.
import { html, useState } from '../dom.js';
import { del, enc, patch, post } from '../api.js';
import { duration, num, t } from '../i18n.js';
import { link } from '../router.js';
import { Act, Chip, Count, problemText, Table } from '../parts.js';
import { Reason, ReasonDialog } from '../acts.js';
import { Dialog } from '../dialog.js';

const short = (name) => name.split('/').pop();
// The field of the API, an example, and how a queue that is there says it.
const time = (ms) => (ms === null ? 'unlimited' : ms % 1000 ? `${ms}ms` : `${ms / 1000}s`);
/** @type {[string, string, (q: any) => string][]} */
const FIELDS = [['rate', '5/s', (q) => `${q.rate_per_s}/s`], ['burst', '10', (q) => String(q.burst)], ['concurrency', '3', (q) => String(q.concurrency)], ['max_attempts', '10, unlimited', (q) => (q.max_attempts === null ? 'unlimited' : String(q.max_attempts))],
  ['max_retry_duration', '1h, unlimited', (q) => time(q.max_retry_ms)], ['min_backoff', '1s', (q) => time(q.min_backoff_ms)], ['max_backoff', '1h', (q) => time(q.max_backoff_ms)], ['max_doublings', '16', (q) => String(q.max_doublings)], ['policy', 'cloud-tasks', (q) => q.policy || '']];
const NUMBERS = ['burst', 'concurrency'];

// What the API takes of what was typed: numbers as numbers. What was emptied gets its default again.
function changesOf(values, before) {
  const out = {}, reset = [];
  for (const [name] of FIELDS) {
    const value = (values[name] ?? '').trim();
    if (value === (before[name] ?? '')) continue;
    if (value === '') reset.push(name);
    else out[name] = NUMBERS.includes(name) && /^\d+$/.test(value) ? Number(value) : value;
  }
  return reset.length ? { ...out, reset } : out;
}

function Define({ queue, onClose }) {
  const before = queue ? Object.fromEntries(FIELDS.map(([name, , show]) => [name, show(queue)])) : {};
  const [name, setName] = useState(queue ? queue.name : 'projects/P/locations/L/queues/'), [values, setValues] = useState(before), [reason, setReason] = useState(''), [problem, setProblem] = useState(null), [busy, setBusy] = useState(false);
  const changes = changesOf(values, before), ready = reason.trim() && !busy && (!queue || Object.keys(changes).length > 0);
  const wrong = Object.fromEntries((problem?.errors || []).map((e) => [(e.pointer || '').replace(/^#?\//, ''), e.detail]));
  const elsewhere = problem && !FIELDS.some(([field]) => wrong[field]) && !wrong.name;
  const submit = async (event) => {
    event.preventDefault();
    if (!ready) return;
    setBusy(true);
    setProblem(null);
    try {
      if (queue) await patch(`/queues/${enc(queue.name)}`, { ...changes, reason });
      else await post('/queues', { name: name.trim(), ...changes, reason });
      onClose();
    } catch (error) { setProblem(error); setBusy(false); }
  };
  const input = (field, value, onInput, example, off = false) => html`<div><label for=${'queue-' + field}>${t('queue.' + field)}</label><input id=${'queue-' + field} type="text" value=${value} disabled=${off} placeholder=${example} spellcheck="false" autocomplete="off"
    aria-invalid=${wrong[field] ? 'true' : undefined} aria-describedby=${wrong[field] ? `queue-${field}-wrong` : undefined} onInput=${(e) => onInput(e.target.value)} />${wrong[field] && html`<p class="wrong" id=${`queue-${field}-wrong`}>${wrong[field]}</p>`}</div>`;
  return html`<${Dialog} title=${queue ? t('define.title', { name: short(queue.name) }) : t('queue.new')} onClose=${onClose}><form onSubmit=${submit}>
    ${input('name', name, setName, 'projects/P/locations/L/queues/Q', !!queue)}
    <div class="fields">${FIELDS.map(([field, example]) => input(field, values[field] ?? '', (value) => setValues((was) => ({ ...was, [field]: value })), example))}</div>
    <p class="hint">${t('queue.hint')}</p><${Reason} value=${reason} onInput=${setReason} id="queue-reason" />
    ${elsewhere && html`<div class="problem" role="alert">${problemText(problem)}</div>`}
    <div class="acts"><button type="button" onClick=${onClose}>${t('dialog.cancel')}</button><button type="submit" class="main" aria-disabled=${ready ? undefined : 'true'}>${queue ? t('define.save') : t('define.create')}</button></div></form><//>`;
}

// What a reason is asked for, by kind: words, and what is done.
const ACTS = {
  pause: { words: (q) => t('act.pause_words', { destination: short(q.name) }), run: (q, reason) => post(`/queues/${enc(q.name)}/pause`, { reason }) },
  resume: { words: (q) => t('act.resume_words', { destination: short(q.name) }), run: (q, reason) => post(`/queues/${enc(q.name)}/resume`, { reason }) },
  purge: { danger: true, words: (q) => t('queue.purge_words', { n: q.waiting?.n ?? 0 }), run: (q, reason) => post(`/queues/${enc(q.name)}/purge`, { reason }) },
  delete: { danger: true, words: (q) => t('queue.delete_words', { n: q.waiting?.n ?? 0 }), run: (q, reason) => del(`/queues/${enc(q.name)}`, { reason }) },
};
const titleOf = (kind) => ({ pause: t('act.pause'), resume: t('act.resume'), purge: t('queue.purge'), delete: t('define.delete') })[kind];

// The list is loaded with the destinations: null where this relay has no queues.
export function Queues({ list: data, reload }) {
  const [act, setAct] = useState(null);
  if (!data) return null;
  const close = () => { setAct(null); reload(); };
  return html`<section class="card" id="queues"><div class="spread"><h2>${t('queue.title')}</h2><${Act} role="admin" onClick=${() => setAct({ kind: 'define' })}>${t('queue.new')}<//></div>
    ${!data.items.length ? html`<p class="soft">${t('queue.none')}</p>` : html`<${Table} rows=${data.items} keyOf=${(q) => q.name} columns=${[
      { name: t('settings.name'), cell: (q) => html`<span title=${q.name}>${short(q.name)}</span>` }, { name: t('col.state'), cell: (q) => html`<${Chip} state=${q.paused ? 'paused' : 'active'} />` },
      { name: t('queue.rate'), n: true, cell: (q) => `${num(q.rate_per_s, 2)}/s` }, { name: t('queue.concurrency'), n: true, cell: (q) => num(q.concurrency) }, { name: t('col.attempts'), n: true, cell: (q) => (q.max_attempts === null ? '∞' : num(q.max_attempts)) },
      { name: t('queue.backoff'), tight: true, cell: (q) => `${duration(q.min_backoff_ms)} – ${duration(q.max_backoff_ms)}` },
      { name: t('queue.waiting'), n: true, cell: (q) => html`<a href=${link(['messages'], { filter: `destination:${q.destination}` })}><${Count} of=${q.waiting} /></a>` }, { name: t('figure.dead'), n: true, cell: (q) => html`<a href=${link(['dead'], { filter: `destination:${q.destination}` })}><${Count} of=${q.dead} /></a>` },
      { name: t('col.do'), cell: (q) => html`<div class="acts"><${Act} onClick=${() => setAct({ kind: q.paused ? 'resume' : 'pause', queue: q })}>${titleOf(q.paused ? 'resume' : 'pause')}<//><${Act} role="admin" onClick=${() => setAct({ kind: 'define', queue: q })}>${t('define.change')}<//>
        <${Act} kind="danger" onClick=${() => setAct({ kind: 'purge', queue: q })}>${t('queue.purge')}<//><${Act} role="admin" kind="danger" onClick=${() => setAct({ kind: 'delete', queue: q })}>${t('define.delete')}<//></div>` }]} />`}
    ${act?.kind === 'define' && html`<${Define} queue=${act.queue} onClose=${close} />`}
    ${act && ACTS[act.kind] && html`<${ReasonDialog} title=${`${titleOf(act.kind)}: ${short(act.queue.name)}`} button=${titleOf(act.kind)} danger=${ACTS[act.kind].danger} words=${ACTS[act.kind].words(act.queue)} run=${(reason) => ACTS[act.kind].run(act.queue, reason)} onClose=${close} />`}</section>`;
}
