// Destinations: how each is doing, the receiver's last words, pause and resume, a test request.
import { html, useEffect, useState } from '../dom.js';
import { del, enc, get, getTogether, post } from '../api.js';
import { useLive } from '../live.js';
import { duration, num, percent, t } from '../i18n.js';
import { go, link } from '../router.js';
import { Act, Chip, Count, Empty, Facts, Head, Loading, Text, Time, Trouble } from '../parts.js';
import { ReasonDialog } from '../acts.js';
import { Pages } from '../pages.js';
import { Dialog } from '../dialog.js';
import { DefineDestination } from './destination_edit.js';
import { headerLines } from './attempt.js';
import { Queues } from './queues.js';

function TestResult({ result: r, onClose }) {
  return html`<${Dialog} title=${t('test.title', { destination: r.destination })} onClose=${onClose}>
    <p><${Chip} state=${r.ok ? 'ok' : 'fail'} text=${r.ok ? t('send.ok') : t('send.failed')} /> ${r.status ? `HTTP ${r.status}` : ''} · ${duration(r.duration_ms)} ${r.error || ''}</p>
    <${Facts} rows=${[[t('letter.url'), html`<span class="id">${r.url}</span>`], [t('attempt.address'), r.address], [t('attempt.cause'), r.cause]]} />
    ${r.response_headers && html`<h3>${t('attempt.response')}</h3><pre tabindex="0" aria-label=${t('attempt.response')}>${headerLines(r.response_headers).map(([n, v]) => `${n}: ${v}`).join('\n')}</pre>`}
    ${(r.response_body || r.response_body_base64) && html`<h3>${t('attempt.body')}</h3><${Text} text=${r.response_body ?? r.response_body_base64} label=${t('attempt.body')} />`}
    <div class="acts"><button type="button" class="main" onClick=${onClose}>${t('dialog.close')}</button></div><//>`;
}

const stateOf = (d, s) => (d.paused ? 'paused' : s && s.breaker !== 'closed' ? s.breaker : s && s.limited ? 'limited' : 'active');

// Why it cannot be changed here; '' if it can.
const readOnly = (d) => (d.from === 'store' ? '' : d.from === 'file' ? t('define.of_file') : t('destinations.unknown'));

function Destination({ d, s, onAct }) {
  const m = s?.last_minute, tried = m && m.attempts_ok + m.attempts_failed > 0;
  return html`<section class="card" id=${'destination-' + d.name}><div class="spread"><h2>${d.name} <${Chip} state=${stateOf(d, s)} />${!d.configured && html` <${Chip} state="warning" text=${t('destinations.unknown')} />`}</h2><div class="acts">
      ${d.paused ? html`<${Act} kind="main" onClick=${() => onAct({ kind: 'resume', d })}>${t('act.resume')}<//>` : html`<${Act} onClick=${() => onAct({ kind: 'pause', d })}>${t('act.pause')}<//>`}
      <${Act} why=${d.configured ? '' : t('destinations.unknown')} onClick=${() => onAct({ kind: 'test', d })}>${t('act.test')}<//>
      <${Act} role="admin" why=${readOnly(d)} onClick=${() => go(['destinations'], { edit: d.name })}>${t('define.change')}<//>
      <${Act} role="admin" kind="danger" why=${readOnly(d)} onClick=${() => onAct({ kind: 'delete', d })}>${t('define.delete')}<//></div></div>
    ${d.unusable ? html`<div class="problem">${t('define.unusable_relays', { n: d.unusable.relays })} ${d.unusable.why} · <${Time} at=${d.unusable.since} /></div>` : d.problem && html`<div class="problem">${t('define.unusable')} ${d.problem}</div>`}
    ${d.also_stored && html`<div class="note">${t('define.also_stored')}</div>`}
    ${d.paused && html`<div class="note">${t('attention.paused', { destination: d.name, by: d.paused_by || '?' })} ${d.paused_reason ? html`<span>${d.paused_reason}</span>` : ''} · <${Time} at=${d.paused_at} /></div>`}
    ${s?.last_error && html`<p>${t('destinations.last_words')} <strong>${s.last_error}</strong> <span class="soft"><${Time} at=${s.last_error_at} /></span></p>`}
    <${Facts} many rows=${[[t('figure.due'), html`<a href=${link(['messages'], { filter: `destination:${d.name} status:pending` })}><${Count} of=${d.pending} /></a>`], [t('figure.retrying'), html`<a href=${link(['messages'], { filter: `destination:${d.name} status:retrying` })}><${Count} of=${d.retrying} /></a>`],
        [t('figure.dead'), html`<a href=${link(['dead'], { filter: `destination:${d.name}` })}><${Count} of=${d.dead} /></a>`], [t('figure.blocked'), s && html`<${Count} of=${s.blocked} />`], [t('destinations.breaker_until'), d.breaker_open_until && html`<${Time} at=${d.breaker_open_until} />`], [t('destinations.limited_until'), s?.limited && s.limited_until && html`<${Time} at=${s.limited_until} />`], [t('col.per_s'), m && num(m.out_per_s, 1)], [t('destinations.success'), tried && m.success_ratio !== null ? percent(m.success_ratio) : null], ['p50 / p95 / p99', tried ? `${duration(m.latency_ms.p50)} / ${duration(m.latency_ms.p95)} / ${duration(m.latency_ms.p99)}` : null],
        [t('define.from'), d.from && t('define.from_' + d.from, { n: d.version ?? 0 })], [t('destinations.kind'), d.kind], [t('letter.url'), d.url && html`<span class="id">${d.url}</span>`], [t('message.policy'), d.policy && html`<a href=${link(['policies', d.policy])}>${d.policy}</a>`], [t('destinations.rate'), d.rate_per_s ? `${num(d.rate_per_s, 1)}/s` : null], [t('destinations.concurrency'), d.concurrency && num(d.concurrency)], [t('destinations.order'), d.order && d.order !== 'none' ? d.order : null]]} /></section>`;
}

// How many wait is said first; the relay refuses unless somebody says that they may die.
function Delete({ d, onClose }) {
  const [force, setForce] = useState(false), waiting = (d.pending?.n || 0) + (d.retrying?.n || 0);
  return html`<${ReasonDialog} title=${t('define.delete_title', { name: d.name })} button=${t('define.delete')} danger words=${waiting ? t('define.delete_waiting', { n: waiting }) : t('define.delete_words')} ready=${!waiting || force}
    run=${(reason) => del(`/destinations/${enc(d.name)}`, { reason, if_version: d.version, ...(force ? { force: true } : {}) })} onClose=${onClose}>
    <p><label class="inline"><input type="checkbox" checked=${force} onChange=${(e) => setForce(e.target.checked)} />${t('define.force')}</label></p><//>`;
}

export function Destinations({ query }) {
  if (query.get('edit')) return html`<${DefineDestination} name=${query.get('edit')} key=${query.get('edit')} />`;
  if (query.get('new')) return html`<${DefineDestination} />`;
  return html`<${All} show=${query.get('show')} name=${query.get('name') || ''} first=${Math.max(1, Number(query.get('from')) || 1)} />`;
}

const PAGE = 50, SEARCH_FROM = 8;

function All({ show, name, first }) {
  const [act, setAct] = useState(null), [tested, setTested] = useState(null);
  const { data, problem, reload } = useLive(async (signal) => {
    const [list, status, queues] = await Promise.all([get('/destinations', {}, signal), getTogether('/status'), get('/queues', { limit: 1000 }, signal).catch(() => null)]);
    const ofQueues = new Set((queues?.items || []).map((q) => q.destination));
    return { list: list.items.filter((d) => !ofQueues.has(d.name)), queues, by: new Map(status.destinations.map((d) => [d.name, d])) };
  }, [], ['state', 'figures']);
  useEffect(() => { if (show && data) document.getElementById('destination-' + show)?.scrollIntoView({ block: 'start' }); }, [show, !data]);
  if (!data) return problem ? html`<${Trouble} problem=${problem} />` : html`<${Loading} />`;
  const found = data.list.filter((d) => d.name.toLowerCase().includes(name.toLowerCase())), page = show ? Math.floor(Math.max(0, found.findIndex((d) => d.name === show)) / PAGE) : Math.floor((first - 1) / PAGE);
  const items = found.slice(page * PAGE, (page + 1) * PAGE), pageAt = (n) => link(['destinations'], { name, from: n > 1 ? n : '' });
  const run = async (reason) => {
    const answer = await post(`/destinations/${enc(act.d.name)}/${act.kind}`, act.kind === 'test' ? {} : { reason });
    if (act.kind === 'test') setTested(answer);
  };
  return html`<${Head} title=${t('nav.destinations')} sub=${t('destinations.sub')}><${Act} role="admin" onClick=${() => go(['destinations'], { new: 'yes' })}>${t('define.new')}<//><//><${Trouble} problem=${problem} />
    ${data.list.length > SEARCH_FROM && html`<div class="card"><div class="row" role="search"><input id="filter" type="search" value=${name} aria-label=${t('destinations.search')} placeholder=${t('destinations.search')} onInput=${(e) => go(['destinations'], { name: e.target.value.trim() }, true)} /></div></div>`}
    ${items.length ? items.map((d) => html`<${Destination} key=${d.name} d=${d} s=${data.by.get(d.name)} onAct=${(next) => (next.kind === 'test' ? test(next.d, setTested, setAct) : setAct(next))} />`) : html`<div class="card"><${Empty} title=${t('destinations.none')}>${name ? t('destinations.none_name') : t('destinations.none_words')}<//></div>`}
    <${Pages} from=${page * PAGE + 1} shown=${items.length} total=${found.length} next=${(page + 1) * PAGE < found.length ? 'more' : ''} previous=${pageAt((page - 1) * PAGE + 1)} to=${pageAt} />
    <${Queues} list=${data.queues} reload=${reload} />
    ${act && act.problem && html`<div class="problem" role="alert">${act.problem.message}</div>`}
    ${act && act.kind === 'delete' && html`<${Delete} d=${act.d} onClose=${() => { setAct(null); reload(); }} />`}
    ${act && ['pause', 'resume'].includes(act.kind) && html`<${ReasonDialog} title=${act.kind === 'pause' ? t('act.pause') : t('act.resume')} words=${act.kind === 'pause' ? t('act.pause_words', { destination: act.d.name }) : t('act.resume_words', { destination: act.d.name })} run=${run} onClose=${() => { setAct(null); reload(); }} />`}
    ${tested && html`<${TestResult} result=${tested} onClose=${() => setTested(null)} />`}`;
}

// A test needs no reason: it sends one request that the receiver can tell.
async function test(d, show, fail) {
  try { show(await post(`/destinations/${enc(d.name)}/test`, {}, { once: false })); } catch (problem) { fail({ problem }); }
}
