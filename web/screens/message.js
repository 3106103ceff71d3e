// One message, wherever it is: its states in time, every attempt, and why it has not gone out yet.
import { html, useState } from '../dom.js';
import { enc, get, post } from '../api.js';
import { useLive } from '../live.js';
import { bytes, known, loadFindings, num, said, t } from '../i18n.js';
import { link } from '../router.js';
import { Act, Chip, Copy, Facts, Head, Loading, signOf, Text, Time, Trouble } from '../parts.js';
import { ReasonDialog } from '../acts.js';
import { asCurl, Attempt, headerLines } from './attempt.js';

// ---- the life of a message ----

function stepsOf(m, attempts) {
  /** @type {{ at: string, state: string, text: string, more?: string, rank?: number }[]} */
  const steps = [{ at: m.created_at, state: 'pending', text: t('life.created'), rank: 0 }];
  if (m.not_before) steps.push({ at: m.not_before, state: 'pending', text: t('life.not_before') });
  for (const a of attempts.filter((one) => one.destination === m.destination)) {
    const ok = a.class === 'success' || (a.status >= 200 && a.status < 300);
    steps.push({ at: a.started_at, state: ok ? 'sent' : 'retrying', text: t('life.attempt', { n: a.attempt }) + (a.status ? ` · HTTP ${a.status}` : ''), more: a.error });
  }
  if (m.locked_at && m.status === 'processing') steps.push({ at: m.locked_at, state: 'processing', text: t('life.processing', { relay: m.locked_by }) });
  if (m.sent_at) steps.push({ at: m.sent_at, state: 'sent', text: t('life.sent'), rank: 2 });
  if (m.dead_at) steps.push({ at: m.dead_at, state: 'dead', text: t('life.dead'), more: m.last_error, rank: 2 });
  if (m.cancelled_at) steps.push({ at: m.cancelled_at, state: 'cancelled', text: t('life.cancelled', { by: m.cancelled_by || '?' }), more: m.cancelled_reason, rank: 2 });
  if (m.next_attempt_at && (m.status === 'retrying' || m.status === 'pending')) steps.push({ at: m.next_attempt_at, state: 'pending', text: t('life.next'), rank: 2 });
  // Relays note these times at different moments of one turn: how it began comes first, and how it ended last.
  return steps.filter((s) => s.at).sort((a, b) => (a.rank ?? 1) - (b.rank ?? 1) || Date.parse(a.at) - Date.parse(b.at));
}

const Steps = ({ steps, on }) => html`<ol class=${on ? 'life on' : 'life'}>${steps.map((s) => html`<li class=${signOf(s.state)[0]} data-sign=${signOf(s.state)[1]}>
    <strong>${s.text}</strong> <span class="soft"><${Time} at=${s.at} relative=${false} /></span>${s.more && html`<div class="soft">${s.more}</div>`}</li>`)}</ol>`;

// Of a long life the middle is folded: how it began and how it stands are in sight.
const MOST = 9, FIRST = 3, LAST = 4;

function Life({ message, attempts }) {
  const steps = stepsOf(message, attempts), rest = steps.length - LAST;
  if (steps.length <= MOST) return html`<${Steps} steps=${steps} />`;
  return html`<${Steps} steps=${steps.slice(0, FIRST)} on /><details class="more"><summary>${t('life.more', { n: rest - FIRST })}</summary><${Steps} steps=${steps.slice(FIRST, rest)} /></details><${Steps} steps=${steps.slice(rest)} />`;
}

// The newest first, and the older ones on demand.
function Attempts({ list, url, payload }) {
  const newest = [...list].reverse(), one = (a) => html`<${Attempt} attempt=${a} url=${url} payload=${payload} />`;
  return html`${newest.slice(0, MOST).map(one)}${newest.length > MOST && html`<details class="older"><summary>${t('attempt.older', { n: newest.length - MOST })}</summary>${newest.slice(MOST).map(one)}</details>`}`;
}

// ---- why not yet ----

function Why({ causes }) {
  if (!causes.length) return null;
  return html`<section class="card"><h2>${t('explain.title')}</h2>${causes.map((c) => html`<div class="note"><p><strong>${known('why.' + c.cause, c.text)}</strong></p><p class="soft">${said('because', c, c.text)}</p>
    <p class="soft">${c.since && html`${t('explain.since')} <${Time} at=${c.since} /> `}${c.until && html`${t('explain.until')} <${Time} at=${c.until} /> `}${c.by && t('explain.by', { by: c.by })} ${c.reason || ''}
    ${c.blocked_by && html` <a class="id" href=${link(['messages', c.blocked_by])}>${c.blocked_by}</a>`}${c.letter && html` <a href=${link(['dead', c.letter])}>${t('letter.title', { id: c.letter })}</a>`}</p>
    ${c.do && html`<p class="hint">${t('explain.shell')} ${said('do', c, c.do)}</p>`}</div>`)}</section>`;
}

function Leg({ message: m, attempts, explained, urls, onAct }) {
  const mine = attempts.filter((a) => a.destination === m.destination), url = urls.get(m.destination), payload = m.payload ?? '';
  const cannot = ['sent', 'dead', 'cancelled'].includes(m.status) ? t('letter.not_open', { state: known('state.' + m.status, m.status) }) : m.status === 'processing' ? t('message.in_flight') : '';
  return html`<div class="spread"><h2>${m.destination || t('messages.by_route')} <${Chip} state=${m.status} /></h2><div class="acts">
      <${Act} why=${cannot || (m.status !== 'retrying' ? t('message.not_waiting') : '')} onClick=${() => onAct({ kind: 'retry', message: m })}>${t('act.retry')}<//>
      <${Act} why=${cannot} kind="danger" onClick=${() => onAct({ kind: 'cancel', message: m })}>${t('act.cancel')}<//>
      ${m.place === 'dead' && m.place_id && html`<a class="button" href=${link(['dead', m.place_id])}>${t('letter.title', { id: m.place_id })}</a>`}
      ${url && html`<${Copy} text=${asCurl(url, headerLines(mine[mine.length - 1]?.request_headers || m.headers), payload)}>${t('attempt.curl')}<//>`}</div></div>
    <${Why} causes=${m.status === 'sent' ? [] : (explained.find((e) => e.destination === m.destination) || { causes: [] }).causes} />
    <div class="grid"><section class="card"><h2>${t('message.life')}</h2><${Life} message=${m} attempts=${attempts} /></section>
    <section class="card"><h2>${t('letter.facts')}</h2><${Facts} rows=${[[t('col.type'), m.event_type], [t('col.attempts'), m.attempts_allowed ? `${num(m.attempts)} / ${num(m.attempts_allowed)}` : num(m.attempts)], [t('col.key'), m.message_key],
      [t('col.correlation'), m.correlation_id && html`<span class="id">${m.correlation_id}</span>`], [t('letter.trace'), m.traceparent && html`<span class="id">${m.traceparent}</span>`], [t('message.policy'), m.policy && html`<a href=${link(['policies', m.policy])}>${m.policy}</a>`],
      [t('message.expires'), m.expires_at && html`<${Time} at=${m.expires_at} relative=${false} />`], [t('message.idempotency'), m.idempotency_key && html`<span class="id">${m.idempotency_key}</span>`], [t('message.content_type'), m.content_type], [t('message.crashes'), m.crashes || null], [t('col.size'), m.payload_bytes === null ? null : bytes(m.payload_bytes)]]} />
      <h3>${t('letter.payload')}</h3><${Text} text=${m.payload ?? m.payload_base64} cut=${m.payload_cut} label=${t('letter.payload')} /></section></div>
    <section class="card"><h2>${t('letter.attempts', { n: mine.length })}</h2>${mine.length ? html`<${Attempts} list=${mine} url=${url} payload=${payload} />` : html`<p class="soft">${t('message.no_attempts')}</p>`}</section>`;
}

export function Message({ id }) {
  const [act, setAct] = useState(null);
  const { data, problem, reload } = useLive(async (signal) => {
    const [shown, explained, destinations] = await Promise.all([get(`/messages/${enc(id)}`, { payload: true }, signal), get(`/messages/${enc(id)}/explain`, {}, signal).catch(() => ({ items: [] })), get('/destinations', {}, signal), loadFindings()]);
    return { shown, explained, urls: new Map(destinations.items.filter((d) => d.url).map((d) => [d.name, d.url])) };
  }, [id], ['state', 'redrive']);
  if (!data) return problem ? html`<${Head} title=${t('message.title')} /><${Trouble} problem=${problem} />` : html`<${Loading} />`;
  const { shown, explained, urls } = data;
  return html`<${Head} title=${t('message.title')} sub=${html`<span class="id">${id}</span>`} />
    ${shown.items.map((m) => html`<${Leg} key=${m.destination} message=${m} attempts=${shown.attempts} explained=${explained.items} urls=${urls} onAct=${setAct} />`)}
    ${act && html`<${ReasonDialog} title=${act.kind === 'retry' ? t('act.retry') : t('act.cancel')} danger=${act.kind === 'cancel'} words=${act.kind === 'retry' ? t('act.retry_words') : t('act.cancel_one_words')}
      run=${(reason) => post(`/messages/${enc(id)}/${act.kind}`, { reason, ...(act.message.destination ? { destination: act.message.destination } : {}) })} onClose=${() => { setAct(null); reload(); }} />`}`;
}
