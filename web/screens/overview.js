// What needs attention first, in sentences; then the figures, live; then the last hours.
import { html } from '../dom.js';
import { get, getTogether } from '../api.js';
import { useLive } from '../live.js';
import { duration, num, t } from '../i18n.js';
import { recent, noteStatus } from '../recent.js';
import { go, link } from '../router.js';
import { useShared } from '../store.js';
import { Chart } from '../chart.js';
import { Chip, Count, Empty, Head, Loading, Table, Time, Trouble } from '../parts.js';
import { alertLink, alertText } from './alert_words.js';

const LATE_MS = 5 * 60 * 1000; // a message that is due for so long is late
const GROUPS = 3;             // of dead letters, each a sentence

// ---- what needs attention: [{level, text, more, href}] ----

// An alert about letters whose group stands here already would say the same twice.
function ofAlerts(alerts, groups) {
  const told = (a) => a.when === 'dead_letter' && groups.items.slice(0, GROUPS).some((g) => g.destination === a.destination && g.reason_code === a.reason);
  return alerts.items.filter((a) => a.status === 'firing' && !told(a)).map((a) => ({ level: a.severity === 'critical' ? 'bad' : 'warn', text: alertText(a), more: a.detail, href: alertLink(a), at: a.fired_at }));
}

function ofGroups(groups) {
  const list = groups.items.slice(0, GROUPS).map((g) => ({ level: 'bad', text: t(groups.partial ? 'attention.group_least' : 'attention.group', { n: g.letters, destination: g.destination }),
    more: g.example_error || g.reason_code, href: link(['dead'], { filter: `group:${g.group}`, tab: 'letters' }), at: g.last_failed_at, go: t('attention.open_group') }));
  if (groups.items.length > GROUPS) list.push({ level: 'warn', text: t('attention.more_groups'), href: link(['dead']) });
  return list;
}

function ofDestination(d) {
  const out = [], href = link(['destinations']);
  if (d.unusable) out.push({ level: 'bad', text: t('attention.unusable', { destination: d.name, n: d.unusable.relays }), more: d.unusable.why, href, at: d.unusable.since });
  if (d.paused) out.push({ level: 'warn', text: t('attention.paused', { destination: d.name, by: d.paused_by || '?' }), more: d.paused_reason, href, at: d.paused_at });
  else if (d.breaker === 'open') out.push({ level: 'bad', text: t('attention.breaker', { destination: d.name }), more: d.last_error, href, at: d.last_error_at });
  else if (d.retrying?.n > 0 && d.last_error) out.push({ level: 'warn', text: t('attention.retrying', { destination: d.name, n: d.retrying.n }), more: d.last_error,
    href: link(['messages'], { filter: `destination:${d.name} status:retrying` }), at: d.last_error_at });
  if (d.blocked?.n > 0) out.push({ level: 'warn', text: t('attention.blocked', { destination: d.name, n: d.blocked.n }), href: link(['dead'], { filter: `destination:${d.name}` }) });
  return out;
}

function attention({ status, alerts, groups, redrives }) {
  const list = [];
  if (status.relays_running === 0) list.push({ level: 'bad', text: t('attention.no_relay'), href: link(['relays']) });
  list.push(...ofAlerts(alerts, groups), ...ofGroups(groups), ...status.destinations.flatMap(ofDestination));
  if (status.oldest_due_ms > LATE_MS) list.push({ level: 'warn', text: t('attention.late', { time: duration(status.oldest_due_ms) }), href: link(['messages'], { filter: 'status:pending' }) });
  for (const r of redrives.items) list.push({ level: 'info', text: t('attention.redrive', { id: r.id, done: r.requeued, total: r.total }), more: r.reason, href: link(['redrives', r.id]), go: t('attention.watch') });
  return list;
}

const SIGNS = { bad: '!', warn: '!', info: '▸', good: '✓' };

function Attention({ list }) {
  if (!list.length) return html`<ul class="attention"><li class="good"><span class="sign" aria-hidden="true">✓</span><span class="what">${t('attention.none')}</span></li></ul>`;
  return html`<ul class="attention" aria-label=${t('attention.label')}>${list.map((item) => html`<li class=${item.level}>
    <span class="sign" aria-label=${t('level.' + item.level)}>${SIGNS[item.level]}</span>
    <span class="what">${item.text}${item.more && html`<small>${item.more}</small>`}</span>
    ${item.at && html`<span class="soft"><${Time} at=${item.at} /></span>`}
    ${item.href && html`<a class="go" href=${item.href}>${item.go || t('attention.show')}</a>`}</li>`)}</ul>`;
}

// ---- figures ----

function Figure({ name, of, text, sub, href, alarm }) {
  const value = text ?? html`<${Count} of=${of} />`;
  return html`<div class=${'figure' + (alarm ? ' alarm' : '')}><dt>${name}</dt><dd class=${text && text.length > 6 ? 'long' : ''}>${href ? html`<a href=${href}>${value}</a>` : value}<small>${sub || ''}</small></dd></div>`;
}

function Figures({ status: s }) {
  const messages = (filter) => link(['messages'], { filter });
  return html`<dl class="figures">
    <${Figure} name=${t('figure.due')} of=${s.due} sub=${t('figure.due_sub')} href=${messages('status:pending')} />
    <${Figure} name=${t('figure.processing')} of=${s.processing} sub=${t('figure.processing_sub')} href=${messages('status:processing')} />
    <${Figure} name=${t('figure.retrying')} of=${s.retrying} sub=${t('figure.retrying_sub')} href=${messages('status:retrying')} />
    <${Figure} name=${t('figure.blocked')} of=${s.blocked} sub=${t('figure.blocked_sub')} alarm=${s.blocked?.n > 0} />
    <${Figure} name=${t('figure.dead')} of=${s.dead} sub=${t('figure.dead_sub')} href=${link(['dead'])} alarm=${s.dead?.n > 0} />
    <${Figure} name=${t('figure.oldest')} text=${duration(s.oldest_due_ms)} sub=${t('figure.oldest_sub')} alarm=${s.oldest_due_ms > LATE_MS} />
    <${Figure} name=${t('figure.sent')} of=${s.sent} sub=${t('figure.sent_sub')} href=${messages('status:sent')} />
  </dl>`;
}

// ---- charts ----

const SPANS = { live: null, '15m': ['15m', '1m'], '1h': ['1h', '1m'], '6h': ['6h', '5m'], '24h': ['24h', '5m'] };
const USUAL = '1h', LIVE_MS = 2000, MINUTE_MS = 15000;

// Relays write a minute's figures when it is over: the newest points hold nothing yet, which is not the same as zero.
const isOpen = (p, data) => Date.parse(data.now) - Date.parse(p.at) < 2 * data.step_ms && !p.attempts_ok && !p.attempts_failed && !p.dead;

// The same four charts of both: {times, ok, failed, p50, p95, waiting, inFlight, died, open}
function ofRecent(points) {
  const of = (f) => points.map(f);
  return { times: of((p) => p.at), ok: of((p) => p.ok), failed: of((p) => p.failed), p50: of((p) => p.p50 || null), p95: of((p) => p.p95 || null), waiting: of((p) => p.waiting), inFlight: of((p) => p.in_flight), open: of((p) => p.open) };
}

function ofFigures(data) {
  const all = data.items.find((i) => i.destination === null) || data.items[0], seconds = data.step_ms / 1000;
  if (!all) return null;
  const of = (f) => all.points.map((p) => (isOpen(p, data) ? null : f(p)));
  return { times: all.points.map((p) => Date.parse(p.at) / 1000), ok: of((p) => p.attempts_ok / seconds), failed: of((p) => p.attempts_failed / seconds), p50: of((p) => p.latency_p50_ms), p95: of((p) => p.latency_p95_ms),
    waiting: of((p) => p.waiting), inFlight: of((p) => p.in_flight), died: of((p) => p.dead), open: of((p) => p.dead_open) };
}

function Four({ c, newest, live }) {
  const line = (name, colour, values, more) => ({ name, colour, values, ...more }), dash = { dash: [6, 3] }, fill = { fill: true };
  return html`<div class="grid">
    <section class="card"><div class="spread"><h2>${t('chart.throughput')}</h2>${newest && html`<span class="soft">${t('chart.now', { n: num(newest.ok, 1) })}</span>`}</div>
      <${Chart} title=${t('chart.throughput')} unit="/s" times=${c.times} series=${[line(t('chart.ok'), '--one', c.ok, fill), line(t('chart.failed'), '--two', c.failed, dash)]} /></section>
    <section class="card"><div class="spread"><h2>${t(live ? 'chart.latency_slowest' : 'chart.latency')}</h2>${newest && newest.p95 > 0 && html`<span class="soft">${t('chart.p95_now', { time: duration(newest.p95) })}</span>`}</div>
      <${Chart} title=${t(live ? 'chart.latency_slowest' : 'chart.latency')} unit="ms" times=${c.times} series=${[line('p50', '--one', c.p50), line('p95', '--three', c.p95, dash)]} /></section>
    <section class="card"><h2>${t('chart.waiting')}</h2><${Chart} title=${t('chart.waiting')} times=${c.times} series=${[line(t('chart.waits'), '--one', c.waiting, fill), line(t('chart.in_flight'), '--four', c.inFlight, dash)]} /></section>
    <section class="card"><h2>${t('chart.dead')}</h2><${Chart} title=${t('chart.dead')} times=${c.times} series=${[...(c.died ? [line(t('chart.died'), '--two', c.died, fill)] : []), line(t('chart.open'), '--three', c.open, dash)]} /></section></div>`;
}

const isQuiet = (c) => ![c.ok, c.failed, c.waiting].some((values) => values.some((v) => v > 0));

// Where the usual hour has nothing to show, what happens now is of more use.
function Charts({ span, chosen }) {
  const [length, step] = SPANS[span] || SPANS[USUAL], points = useShared(recent), newest = points[points.length - 1];
  const { data, problem } = useLive((signal) => get('/figures', { for: length, step }, signal), [], [], MINUTE_MS);
  const figures = data && ofFigures(data), live = span === 'live' || (!chosen && !!figures && isQuiet(figures)), shown = live ? 'live' : span;
  return html`<div class="spread"><h2>${t(live ? 'chart.heading_live' : 'chart.heading')}</h2><div class="acts" role="group" aria-label=${t('chart.span')}>${Object.keys(SPANS).map((name) => html`
      <button type="button" class=${shown === name ? 'main' : ''} aria-pressed=${shown === name ? 'true' : 'false'} onClick=${() => go([], { span: name })}>${t('span.' + name)}</button>`)}</div></div>
    ${live ? html`<p class="hint">${t('chart.live_words')}</p><${Four} c=${ofRecent(points)} newest=${newest} live />` : figures ? html`<${Four} c=${figures} newest=${newest} />` : problem ? html`<${Trouble} problem=${problem} />` : html`<${Loading} />`}`;
}

// ---- the screen ----

function Hosts({ status }) {
  if (!status.destinations.length) return html`<section class="card"><h2>${t('nav.destinations')}</h2><${Empty} title=${t('destinations.none')}>${t('destinations.none_words')}<//></section>`;
  return html`<section class="card"><div class="spread"><h2>${t('nav.destinations')}</h2><a href=${link(['destinations'])}>${t('attention.show')}</a></div>
    <${Table} keyOf=${(d) => d.name} rows=${status.destinations} columns=${[
      { name: t('col.destination'), cell: (d) => d.name },
      { name: t('col.state'), cell: (d) => html`<${Chip} state=${d.paused ? 'paused' : d.breaker === 'open' || d.breaker === 'half_open' ? d.breaker : d.limited ? 'limited' : 'active'} />` },
      { name: t('figure.due'), n: true, cell: (d) => html`<${Count} of=${d.pending} />` },
      { name: t('figure.retrying'), n: true, cell: (d) => html`<${Count} of=${d.retrying} />` },
      { name: t('figure.dead'), n: true, cell: (d) => html`<${Count} of=${d.dead} />` },
      { name: t('col.per_s'), n: true, extra: true, cell: (d) => (d.last_minute ? num(d.last_minute.out_per_s, 1) : '–') },
      { name: 'p95', n: true, cell: (d) => (d.last_minute && d.last_minute.attempts_ok + d.last_minute.attempts_failed ? duration(d.last_minute.latency_ms.p95) : '–') },
      { name: t('col.last_error'), wide: true, cell: (d) => (d.last_error ? html`<span class="words">${d.last_error}</span>` : html`<span class="soft">–</span>`) },
    ]} /></section>`;
}

async function load(signal) {
  const [status, alerts, groups, redrives] = await Promise.all([getTogether('/status'), getTogether('/alerts'),
    get('/dead-letters/groups', { limit: 5 }, signal), get('/redrives', { running: true }, signal)]);
  noteStatus(status);
  return { status, alerts, groups, redrives };
}

export function Overview({ query }) {
  const span = query.get('span') in SPANS ? query.get('span') : USUAL;
  const { data, problem } = useLive(load, [span === 'live'], ['state', 'figures', 'alert', 'redrive'], span === 'live' ? LIVE_MS : 0);
  if (!data) return problem ? html`<${Trouble} problem=${problem} />` : html`<${Loading} />`;
  return html`<${Head} title=${t('nav.overview')} sub=${html`${t('overview.sub', { n: data.status.relays_running })} · <${Time} at=${data.status.now} relative=${false} />`} />
    <${Trouble} problem=${problem} />
    <${Attention} list=${attention(data)} />
    <${Figures} status=${data.status} />
    <${Charts} key=${span} span=${span} chosen=${query.has('span')} />
    <div class="card-gap"></div><${Hosts} status=${data.status} />`;
}
