// Policies: each schedule drawn, a draft beside the running one, and a simulator that shows the herd with and without jitter.
import { html, useEffect, useState } from '../dom.js';
import { ask, enc, get } from '../api.js';
import { useLive } from '../live.js';
import { duration, known, num, t } from '../i18n.js';
import { go, link } from '../router.js';
import { Chip, Head, Loading, problemText, Table, Trouble } from '../parts.js';

// ---- the schedule, as bars from the earliest to the latest time of each attempt ----

const rowsOf = (plan) => plan.attempts.filter((a) => a.latest_ms !== null && a.latest_ms !== undefined).slice(0, 20);
export const longestOf = (...plans) => Math.max(1, ...plans.flatMap(rowsOf).map((a) => a.latest_ms));

const TICKS = [1, 10, 60, 600, 3600, 21600, 86400, 604800].map((s) => s * 1000);

// The times below a drawing: at each its place in percent.
function Ticks({ at }) {
  return html`<div class="ticks" aria-hidden="true">${at.map(([percent, ms], i) => html`<span class=${percent < 4 ? 'first' : percent > 93 ? 'last' : ''} style=${{ left: `${percent}%` }} key=${i}>${duration(ms)}</span>`)}</div>`;
}

// `most`: the time at the right edge, the same for schedules that are compared.
function Drawn({ plan, most, n }) {
  const rows = rowsOf(plan), x = (ms) => 2 + (Math.log1p(ms / 1000) / Math.log1p(most / 1000)) * 96;
  return html`<div role="img" aria-label=${t('policy.drawn')}><svg viewBox=${`0 0 100 ${n * 4 + 2}`} width="100%" preserveAspectRatio="none" height=${n * 14 + 8}>
      ${rows.map((a, i) => html`<g><rect x="0" y=${i * 4 + 1} width=${x(a.earliest_ms)} height="2.6" fill="var(--one)" opacity="0.18" /><rect x=${x(a.earliest_ms)} y=${i * 4 + 1} width=${Math.max(0.6, x(a.latest_ms) - x(a.earliest_ms))} height="2.6" fill="var(--one)" opacity="0.45" /><rect x=${x(a.median_ms) - 0.3} y=${i * 4 + 1} width="0.6" height="2.6" fill="var(--two)" /></g>`)}</svg><${Ticks} at=${TICKS.filter((ms) => ms < most).map((ms) => [x(ms), ms])} /></div>`;
}

const End = ({ plan }) => html`<p>${t('policy.end', { n: plan.end.attempts, time: duration(plan.end.median_ms) })} <span class="id">${plan.end.reason}</span></p>`;

function Schedule({ plan }) {
  return html`<${Drawn} plan=${plan} most=${longestOf(plan)} n=${rowsOf(plan).length} />
    <p class="hint">${t('policy.drawn_hint')}</p>
    <${Table} narrow rows=${plan.attempts.slice(0, 12)} keyOf=${(a) => a.attempt} columns=${[{ name: t('policy.attempt'), n: true, cell: (a) => num(a.attempt) }, { name: t('policy.earliest'), n: true, cell: (a) => duration(a.earliest_ms) }, { name: t('policy.median'), n: true, cell: (a) => duration(a.median_ms) }, { name: t('policy.latest'), n: true, cell: (a) => duration(a.latest_ms) }, { name: t('policy.since_first'), n: true, cell: (a) => duration(a.cumulative_ms) }]} />
    <${End} plan=${plan} />`;
}

// ---- a draft beside the running one ----

// The policy's own part of the file that the API gives: what stands below its name.
export function bodyOf(yaml) {
  const lines = yaml.split('\n'), from = lines.findIndex((line) => /^ {2}\S.*:$/.test(line)) + 1;
  const own = [];
  for (const line of lines.slice(from)) {
    if (line && !line.startsWith('    ')) break;
    own.push(line.slice(4));
  }
  return own.join('\n').trimEnd() + '\n';
}

const DRAFT_PAUSE_MS = 400;

function useDraft(name, text) {
  const [state, set] = useState({ plan: null, wrong: null });
  useEffect(() => {
    if (!text) { set({ plan: null, wrong: null }); return undefined; }
    const abort = new AbortController();
    const timer = setTimeout(() => get(`/policies/${enc(name)}/plan`, { draft: text }, abort.signal).then((plan) => set({ plan, wrong: null }), (wrong) => { if (wrong.name !== 'AbortError') set({ plan: null, wrong }); }), DRAFT_PAUSE_MS);
    return () => { clearTimeout(timer); abort.abort(); };
  }, [name, text]);
  return state;
}

function Side({ title, plan, most, n }) {
  return html`<div><h3>${title}</h3><${Drawn} plan=${plan} most=${most} n=${n} /><${End} plan=${plan} /></div>`;
}

function Both({ running, draft }) {
  const most = longestOf(running, draft), n = Math.max(rowsOf(running).length, rowsOf(draft).length);
  const rows = Array.from({ length: Math.min(12, Math.max(running.attempts.length, draft.attempts.length)) }, (_, i) => ({ n: i + 1, a: running.attempts[i], b: draft.attempts[i] }));
  const range = (a) => (a && a.latest_ms !== null && a.latest_ms !== undefined ? (a.earliest_ms === a.latest_ms ? duration(a.latest_ms) : `${duration(a.earliest_ms)} – ${duration(a.latest_ms)}`) : '–');
  return html`<div class="grid"><${Side} title=${t('draft.running')} plan=${running} most=${most} n=${n} /><${Side} title=${t('draft.draft')} plan=${draft} most=${most} n=${n} /></div>
    <p class="hint">${t('policy.drawn_hint')}</p>
    <${Table} narrow rows=${rows} keyOf=${(r) => r.n} columns=${[{ name: t('policy.attempt'), n: true, cell: (r) => num(r.n) }, { name: t('draft.running'), n: true, cell: (r) => range(r.a) }, { name: t('draft.draft'), n: true, cell: (r) => range(r.b) },
      { name: t('draft.running_since'), n: true, cell: (r) => (r.a ? duration(r.a.cumulative_ms) : '–') }, { name: t('draft.draft_since'), n: true, cell: (r) => (r.b ? duration(r.b.cumulative_ms) : '–') }]} />`;
}

function Draft({ name, yaml, running, text, onText }) {
  const { plan, wrong } = useDraft(name, text);
  return html`<section class="card"><div class="spread"><h2>${t('draft.title', { name })}</h2>${text && html`<button type="button" onClick=${() => onText('')}>${t('draft.drop')}</button>`}</div>
    ${text ? html`<label for="draft">${t('draft.label')}</label><textarea id="draft" rows="12" spellcheck="false" value=${text} aria-describedby="draft-hint" onInput=${(e) => onText(e.target.value || ' ')}></textarea>
      <p class="hint" id="draft-hint">${t('draft.hint')}</p>
      ${wrong && html`<div class="problem" role="alert">${problemText(wrong)}</div>`}${plan && html`<${Both} running=${running} draft=${plan} />`}` : html`<p>${t('draft.words')}</p><p><button type="button" onClick=${() => onText(bodyOf(yaml))}>${t('draft.begin')}</button></p>`}</section>`;
}

// ---- the herd ----

const WIDTH = 300, HIGH = 60;

function Herd({ title, run, most, span }) {
  const per = Math.max(1, Math.ceil(span / WIDTH)), bars = [];
  for (let i = 0; i < span; i += per) bars.push(Math.max(0, ...run.attempts_per_100_ms.slice(i, i + per)));
  return html`<h3>${title} <span class="soft">${t('herd.peak', { n: run.peak_after_outage_per_s })}</span></h3>
    <svg role="img" aria-label=${t('herd.label', { title, n: run.peak_after_outage_per_s })} viewBox=${`0 0 ${bars.length} ${HIGH}`} width="100%" height="90" preserveAspectRatio="none">${bars.map((n, i) => n > 0 && html`<rect x=${i} y=${HIGH - (n / most) * HIGH} width="1" height=${(n / most) * HIGH} fill="var(--two)" />`)}</svg><${Ticks} at=${[0, 25, 50, 75, 100].map((percent) => [percent, span * percent])} />`;
}

function Slider({ id, label, value, set, min, max, show }) {
  return html`<div><label for=${id}>${label}: ${show(value)}</label><input id=${id} type="range" min=${min} max=${max} step="1" value=${value} onInput=${(e) => set(Number(e.target.value))} /></div>`;
}

// The runs of one policy: as it is, and without its jitter, or with full jitter where it has none.
const runsOf = (data, as) => [[as, data.as_is], [`${as} · ${data.without_jitter ? t('herd.without') : t('herd.full')}`, data.without_jitter || data.with_full_jitter]].filter(([, r]) => r && r.attempts_per_100_ms);

function Simulator({ name, draft }) {
  const [clients, setClients] = useState(10), [outage, setOutage] = useState(30), [spread, setSpread] = useState(5), [state, set] = useState({ data: null, other: null, wrong: null });
  const many = Math.round(10 ** (clients / 4));
  useEffect(() => {
    const abort = new AbortController();
    const values = { name, clients: many, outage: `${outage}s`, spread: `${spread}s`, details: true };
    const timer = setTimeout(async () => {
      try {
        const [data, other] = await Promise.all([ask('/policies/simulate', values, abort.signal), draft ? ask('/policies/simulate', { ...values, draft }, abort.signal).catch(() => null) : null]);
        set({ data, other, wrong: null });
      } catch (wrong) { if (wrong.name !== 'AbortError') set({ data: null, other: null, wrong }); }
    }, DRAFT_PAUSE_MS);
    return () => { clearTimeout(timer); abort.abort(); };
  }, [name, many, outage, spread, draft]);
  const runs = state.data && [...runsOf(state.data, t('herd.as_is')), ...(state.other ? runsOf(state.other, t('draft.draft')) : [])];
  const most = runs ? Math.max(1, ...runs.flatMap(([, r]) => r.attempts_per_100_ms)) : 1, span = runs ? Math.max(1, ...runs.map(([, r]) => r.attempts_per_100_ms.length)) : 1;
  return html`<section class="card"><h2>${t('herd.title')}</h2><p class="hint">${t('herd.words')}</p><div class="row">
      <${Slider} id="clients" label=${t('herd.clients')} value=${clients} set=${setClients} min="4" max="16" show=${() => num(many)} />
      <${Slider} id="outage" label=${t('herd.outage')} value=${outage} set=${setOutage} min="1" max="300" show=${(v) => duration(v * 1000)} />
      <${Slider} id="spread" label=${t('herd.spread')} value=${spread} set=${setSpread} min="1" max="60" show=${(v) => duration(v * 1000)} /></div>
    ${state.wrong && html`<div class="problem">${problemText(state.wrong)}</div>`}
    ${runs && html`${runs.map(([title, run]) => html`<${Herd} title=${title} run=${run} most=${most} span=${span} />`)}
      <${Table} narrow rows=${runs} keyOf=${(r) => r[0]} columns=${[{ name: '', cell: (r) => r[0] }, { name: t('herd.attempts'), n: true, cell: (r) => num(r[1].attempts) }, { name: t('herd.peak_after'), n: true, cell: (r) => num(r[1].peak_after_outage_per_s) }, { name: t('herd.factor'), n: true, cell: (r) => num(r[1].herding_factor, 1) }, { name: t('herd.served'), n: true, cell: (r) => duration(r[1].served_99_ms) }, { name: t('herd.dead'), n: true, cell: (r) => num(r[1].dead) }]} />`}</section>`;
}

// ---- the screen ----

function One({ name, draft }) {
  const onText = (text) => go(['policies', name], { draft: text }, true);
  const { data, problem } = useLive(async (signal) => {
    const [policy, plan] = await Promise.all([get(`/policies/${enc(name)}`, {}, signal), get(`/policies/${enc(name)}/plan`, {}, signal)]);
    return { policy, plan };
  }, [name], [], 600000);
  if (!data) return problem ? html`<${Trouble} problem=${problem} />` : html`<${Loading} />`;
  return html`<div class="grid"><section class="card"><h2>${t('policy.schedule', { name })}</h2><${Schedule} plan=${data.plan} /></section>
    <section class="card"><h2>${t('policy.answers')}</h2><${Table} narrow rows=${data.policy.answers} columns=${[{ name: t('policy.answer'), cell: (a) => a.answer }, { name: t('attempt.class'), cell: (a) => known('class.' + a.class, a.class) }, { name: t('policy.does'), cell: (a) => html`<${Chip} state=${a.class === 'success' ? 'sent' : a.retry ? 'retrying' : 'dead'} />${a.pause ? html` <${Chip} state="paused" />` : ''}` }]} />
      <details><summary>YAML</summary><pre tabindex="0">${data.policy.yaml}</pre></details></section></div><div class="card-gap"></div>
    <${Draft} name=${name} yaml=${data.policy.yaml} running=${data.plan} text=${draft} onText=${onText} /><${Simulator} name=${name} draft=${draft.trim()} />`;
}

export function Policies({ name, query }) {
  const { data, problem } = useLive((signal) => get('/policies', { details: true }, signal), [], [], 600000);
  if (!data) return problem ? html`<${Trouble} problem=${problem} />` : html`<${Loading} />`;
  const chosen = name || (data.items.find((p) => p.default) || data.items[0])?.name;
  return html`<${Head} title=${t('nav.policies')} sub=${t('policy.sub')} />
    <section class="card"><${Table} rows=${data.items} keyOf=${(p) => p.name} onOpen=${(p) => go(['policies', p.name])} at=${data.items.findIndex((p) => p.name === chosen)} columns=${[
      { name: t('policy.name'), cell: (p) => html`<a href=${link(['policies', p.name])}>${p.name}</a>${p.default ? html` <${Chip} state="active" text=${t('policy.default')} />` : ''}` }, { name: t('policy.backoff'), wide: true, cell: (p) => p.backoff_text || p.backoff }, { name: t('policy.jitter'), cell: (p) => (p.jitter_text || p.jitter).replace('+-', '±') },
      { name: t('policy.attempts'), n: true, cell: (p) => (p.max_attempts === null ? '–' : num(p.max_attempts)) }, { name: t('policy.elapsed'), n: true, cell: (p) => duration(p.max_elapsed_ms) }]} /></section>
    ${chosen && html`<${One} name=${chosen} draft=${query.get('draft') || ''} key=${chosen} />`}`;
}
