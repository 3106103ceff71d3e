// Policies: each schedule drawn, and a simulator that shows the herd with and without jitter.
import { html, useEffect, useState } from '../dom.js';
import { ask, enc, get } from '../api.js';
import { useLive } from '../live.js';
import { duration, known, num, t } from '../i18n.js';
import { go, link } from '../router.js';
import { Chip, Head, Loading, problemText, Table, Trouble } from '../parts.js';

// ---- the schedule, as bars from the earliest to the latest time of each attempt ----

function Schedule({ plan }) {
  const rows = plan.attempts.filter((a) => a.latest_ms !== null && a.latest_ms !== undefined).slice(0, 20), most = Math.max(1, ...rows.map((a) => a.latest_ms));
  const x = (ms) => 2 + (Math.log1p(ms / 1000) / Math.log1p(most / 1000)) * 96;
  return html`<div role="img" aria-label=${t('policy.drawn')}><svg viewBox=${`0 0 100 ${rows.length * 4 + 2}`} width="100%" preserveAspectRatio="none" height=${rows.length * 14 + 8}>
      ${rows.map((a, i) => html`<g><rect x="0" y=${i * 4 + 1} width=${x(a.earliest_ms)} height="2.6" fill="var(--one)" opacity="0.18" /><rect x=${x(a.earliest_ms)} y=${i * 4 + 1} width=${Math.max(0.6, x(a.latest_ms) - x(a.earliest_ms))} height="2.6" fill="var(--one)" opacity="0.45" /><rect x=${x(a.median_ms) - 0.3} y=${i * 4 + 1} width="0.6" height="2.6" fill="var(--two)" /></g>`)}</svg></div>
    <p class="hint">${t('policy.drawn_hint')}</p>
    <${Table} rows=${plan.attempts.slice(0, 12)} keyOf=${(a) => a.attempt} columns=${[{ name: t('policy.attempt'), n: true, cell: (a) => num(a.attempt) }, { name: t('policy.earliest'), n: true, cell: (a) => duration(a.earliest_ms) }, { name: t('policy.median'), n: true, cell: (a) => duration(a.median_ms) }, { name: t('policy.latest'), n: true, cell: (a) => duration(a.latest_ms) }, { name: t('policy.since_first'), n: true, cell: (a) => duration(a.cumulative_ms) }]} />
    <p>${t('policy.end', { n: plan.end.attempts, time: duration(plan.end.median_ms) })} <span class="id">${plan.end.reason}</span></p>`;
}

// ---- the herd ----

const WIDTH = 300, HIGH = 60;

function Herd({ title, run, most, span }) {
  const per = Math.max(1, Math.ceil(span / WIDTH)), bars = [];
  for (let i = 0; i < span; i += per) bars.push(Math.max(0, ...run.attempts_per_100_ms.slice(i, i + per)));
  return html`<h3>${title} <span class="soft">${t('herd.peak', { n: run.peak_after_outage_per_s })}</span></h3>
    <svg role="img" aria-label=${t('herd.label', { title, n: run.peak_after_outage_per_s })} viewBox=${`0 0 ${bars.length} ${HIGH}`} width="100%" height="90" preserveAspectRatio="none">${bars.map((n, i) => n > 0 && html`<rect x=${i} y=${HIGH - (n / most) * HIGH} width="1" height=${(n / most) * HIGH} fill="var(--two)" />`)}</svg>`;
}

function Slider({ id, label, value, set, min, max, show }) {
  return html`<div><label for=${id}>${label}: ${show(value)}</label><input id=${id} type="range" min=${min} max=${max} step="1" value=${value} onInput=${(e) => set(Number(e.target.value))} /></div>`;
}

function Simulator({ name }) {
  const [clients, setClients] = useState(10), [outage, setOutage] = useState(30), [spread, setSpread] = useState(5), [state, set] = useState({ data: null, wrong: null });
  const many = Math.round(10 ** (clients / 4));
  useEffect(() => {
    const abort = new AbortController();
    const timer = setTimeout(() => ask('/policies/simulate', { name, clients: many, outage: `${outage}s`, spread: `${spread}s`, details: true }, abort.signal).then((data) => set({ data, wrong: null }), (wrong) => { if (wrong.name !== 'AbortError') set({ data: null, wrong }); }), 300);
    return () => { clearTimeout(timer); abort.abort(); };
  }, [name, many, outage, spread]);
  const runs = state.data && [[t('herd.as_is'), state.data.as_is], [t('herd.without'), state.data.without_jitter], [t('herd.full'), state.data.with_full_jitter]].filter(([, r]) => r && r.attempts_per_100_ms);
  const most = runs ? Math.max(1, ...runs.flatMap(([, r]) => r.attempts_per_100_ms)) : 1, span = runs ? Math.max(1, ...runs.map(([, r]) => r.attempts_per_100_ms.length)) : 1;
  return html`<section class="card"><h2>${t('herd.title')}</h2><p class="hint">${t('herd.words')}</p><div class="row">
      <${Slider} id="clients" label=${t('herd.clients')} value=${clients} set=${setClients} min="4" max="16" show=${() => num(many)} />
      <${Slider} id="outage" label=${t('herd.outage')} value=${outage} set=${setOutage} min="1" max="300" show=${(v) => duration(v * 1000)} />
      <${Slider} id="spread" label=${t('herd.spread')} value=${spread} set=${setSpread} min="1" max="60" show=${(v) => duration(v * 1000)} /></div>
    ${state.wrong && html`<div class="problem">${problemText(state.wrong)}</div>`}
    ${runs && html`${runs.map(([title, run]) => html`<${Herd} title=${title} run=${run} most=${most} span=${span} />`)}
      <${Table} rows=${runs} keyOf=${(r) => r[0]} columns=${[{ name: '', cell: (r) => r[0] }, { name: t('herd.attempts'), n: true, cell: (r) => num(r[1].attempts) }, { name: t('herd.peak_after'), n: true, cell: (r) => num(r[1].peak_after_outage_per_s) }, { name: t('herd.factor'), n: true, cell: (r) => num(r[1].herding_factor, 1) }, { name: t('herd.served'), n: true, cell: (r) => duration(r[1].served_99_ms) }, { name: t('herd.dead'), n: true, cell: (r) => num(r[1].dead) }]} />`}</section>`;
}

// ---- the screen ----

function One({ name }) {
  const { data, problem } = useLive(async (signal) => {
    const [policy, plan] = await Promise.all([get(`/policies/${enc(name)}`, {}, signal), get(`/policies/${enc(name)}/plan`, {}, signal)]);
    return { policy, plan };
  }, [name], [], 600000);
  if (!data) return problem ? html`<${Trouble} problem=${problem} />` : html`<${Loading} />`;
  return html`<div class="grid"><section class="card"><h2>${t('policy.schedule', { name })}</h2><${Schedule} plan=${data.plan} /></section>
    <section class="card"><h2>${t('policy.answers')}</h2><${Table} rows=${data.policy.answers} columns=${[{ name: t('policy.answer'), cell: (a) => a.answer }, { name: t('attempt.class'), cell: (a) => known('class.' + a.class, a.class) }, { name: t('policy.does'), cell: (a) => html`<${Chip} state=${a.class === 'success' ? 'sent' : a.retry ? 'retrying' : 'dead'} />${a.pause ? html` <${Chip} state="paused" />` : ''}` }]} />
      <details><summary>YAML</summary><pre tabindex="0">${data.policy.yaml}</pre></details></section></div><div class="card-gap"></div><${Simulator} name=${name} />`;
}

export function Policies({ name }) {
  const { data, problem } = useLive((signal) => get('/policies', {}, signal), [], [], 600000);
  if (!data) return problem ? html`<${Trouble} problem=${problem} />` : html`<${Loading} />`;
  const chosen = name || (data.items.find((p) => p.default) || data.items[0])?.name;
  return html`<${Head} title=${t('nav.policies')} sub=${t('policy.sub')} />
    <section class="card"><${Table} rows=${data.items} keyOf=${(p) => p.name} onOpen=${(p) => go(['policies', p.name])} at=${data.items.findIndex((p) => p.name === chosen)} columns=${[
      { name: t('policy.name'), cell: (p) => html`<a href=${link(['policies', p.name])}>${p.name}</a>${p.default ? html` <${Chip} state="active" text=${t('policy.default')} />` : ''}` }, { name: t('policy.backoff'), wide: true, cell: (p) => p.backoff_text || p.backoff }, { name: t('policy.jitter'), cell: (p) => p.jitter_text || p.jitter },
      { name: t('policy.attempts'), n: true, cell: (p) => (p.max_attempts === null ? '–' : num(p.max_attempts)) }, { name: t('policy.elapsed'), n: true, cell: (p) => duration(p.max_elapsed_ms) }]} /></section>
    ${chosen && html`<${One} name=${chosen} key=${chosen} />`}`;
}
