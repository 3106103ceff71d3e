// One redrive: planned with a canary, a rate and a ramp; watched until it ends.
import { html, useEffect, useRef, useState } from '../dom.js';
import { ask, get, post } from '../api.js';
import { useLive } from '../live.js';
import { duration, known, num, percent, t } from '../i18n.js';
import { go, link } from '../router.js';
import { Act, Chip, Facts, Head, Loading, problemText, Table, Time, Trouble } from '../parts.js';
import { Reason, ReasonDialog } from '../acts.js';
import { FilterBox } from '../filter_box.js';
import { Parts } from './redrive_parts.js';

// ---- watch ----

export function Redrive({ id }) {
  const [cancelling, setCancelling] = useState(false), last = useRef(null);
  const load = async (signal) => {
    if (!last.current || last.current.status === 'running' || last.current.waiting > 0) last.current = await get(`/redrives/${id}`, {}, signal);
    return last.current;
  };
  const { data: r, problem, reload } = useLive(load, [id], ['redrive'], 1000);
  if (!r) return problem ? html`<${Head} title=${t('redrive.title', { id })} /><${Trouble} problem=${problem} />` : html`<${Loading} />`;
  const runs = r.status === 'running', settled = r.resolved + r.failed;
  return html`<${Head} title=${t('redrive.title', { id })} sub=${html`<${Chip} state=${r.status} /> ${r.reason || ''}`}>
      ${runs && html`<${Act} kind="danger" onClick=${() => setCancelling(true)}>${t('redrive.cancel')}<//>`}<a class="button" href=${link(['dead'], { tab: 'letters', filter: `redrive:${id} status:any` })}>${t('redrive.letters')}</a><//>
    <${Trouble} problem=${problem} />
    <section class="card" aria-live="polite"><p class="spread"><strong>${t('redrive.progress', { done: r.requeued, total: r.total })}</strong><span class="soft">${runs && r.estimated_ms !== null ? t('redrive.left', { time: duration(r.estimated_ms) }) : known('ending.' + r.ending, r.ending || '')}</span></p>
      <progress max=${Math.max(1, r.total)} value=${r.status === 'done' ? Math.max(1, r.total) : r.requeued} aria-label=${t('job.progress')}></progress>
      <p class="soft">${settled ? t('redrive.rate_ok', { rate: percent(r.resolved / settled) }) : t('redrive.none_settled')}</p>
      ${r.paused_destination && html`<div class="problem">${t('redrive.paused', { destination: r.paused_destination })}</div>`}
      ${r.status === 'aborted' && html`<div class="problem">${t('redrive.aborted_words', { n: r.total - r.requeued + r.failed })}</div>`}
      ${!runs && r.status === 'done' && r.waiting === 0 && html`<div class="note">${r.failed ? t('redrive.ended_some', { n: r.failed }) : t('redrive.ended_all', { n: r.resolved })}</div>`}</section>
    <dl class="figures">${[['requeued', r.requeued], ['resolved', r.resolved], ['failed', r.failed], ['struggling', r.struggling], ['waiting', r.waiting]].map(([name, n]) => html`<div class=${'figure' + (name === 'failed' && n ? ' alarm' : '')}><dt>${t('redrive.' + name)}</dt><dd>${num(n)}<small>${t('redrive.' + name + '_sub')}</small></dd></div>`)}</dl>
    <${Parts} id=${id} />
    <section class="card"><${Facts} rows=${[[t('col.filter'), html`<span class="id">${r.filter}</span>`], [t('redrive.canary'), num(r.canary)], [t('redrive.rate'), r.rate_per_s ? `${num(r.rate_per_s, 1)}/s` : t('redrive.no_rate')], [t('redrive.ramp'), r.ramp_ms ? duration(r.ramp_ms) : null],
      [t('redrive.abort'), percent(r.abort_if_failing)], [t('redrive.to'), r.to], [t('col.who'), r.actor], [t('col.created'), html`<${Time} at=${r.created_at} relative=${false} />`], [t('redrive.ended'), r.ended_at && html`<${Time} at=${r.ended_at} relative=${false} />`]]} /></section>
    ${cancelling && html`<${ReasonDialog} title=${t('redrive.cancel')} words=${t('redrive.cancel_words')} danger run=${(reason) => post(`/redrives/${id}/cancel`, { reason })} onClose=${() => { setCancelling(false); reload(); }} />`}`;
}

// ---- plan and start ----

function usePlan(values) {
  const [state, set] = useState({ plan: null, wrong: null });
  useEffect(() => {
    if (!values.filter) { set({ plan: null, wrong: null }); return undefined; }
    const abort = new AbortController();
    const timer = setTimeout(() => ask('/redrives/plan', values, abort.signal).then((plan) => set({ plan, wrong: null }), (wrong) => { if (wrong.name !== 'AbortError') set({ plan: null, wrong }); }), 300);
    return () => { clearTimeout(timer); abort.abort(); };
  }, [JSON.stringify(values)]);
  return state;
}

export function StartRedrive({ query }) {
  const filter = query.get('filter') || 'status:failed';
  const [canary, setCanary] = useState('10'), [rate, setRate] = useState('50/s'), [ramp, setRamp] = useState(true), [abortAt, setAbort] = useState('20%'), [ids, setIds] = useState(''), [reason, setReason] = useState(''), [problem, setProblem] = useState(null), [busy, setBusy] = useState(false);
  const values = { filter, rate, ramp, abort_if_failing: abortAt, ...(canary === '' ? {} : { canary: Number(canary) }) };
  const { plan, wrong } = usePlan(values);
  const ready = plan && plan.letters.n > 0 && reason.trim() && !busy;
  const run = async () => {
    if (!ready) return;
    setBusy(true);
    try { go(['redrives', (await post('/redrives', { ...values, reason, ...(ids ? { [ids]: true } : {}) })).redrive]); } catch (error) { setProblem(error); setBusy(false); }
  };
  const field = (id, label, value, set, hint) => html`<div><label for=${id}>${label}</label><input id=${id} type="text" value=${value} onInput=${(e) => set(e.target.value)} /><p class="hint">${hint}</p></div>`;
  return html`<${Head} title=${t('redrives.new')} sub=${t('redrive.new_sub')} />
    <div class="card"><${FilterBox} kind="letters" value=${filter} placeholder=${t('dead.placeholder')} onChange=${(text) => go(['redrives', 'new'], { filter: text })} /></div>
    <div class="grid"><section class="card"><form onSubmit=${(e) => { e.preventDefault(); run(); }}><div class="row">${field('canary', t('redrive.canary'), canary, setCanary, t('redrive.canary_hint'))}${field('rate', t('redrive.rate'), rate, setRate, t('redrive.rate_hint'))}${field('abort', t('redrive.abort'), abortAt, setAbort, t('redrive.abort_hint'))}</div>
      <p><label class="inline"><input type="checkbox" checked=${ramp} onChange=${(e) => setRamp(e.target.checked)} />${t('redrive.ramp_hint')}</label></p>
      <label for="ids">${t('redrive.ids')}</label><select id="ids" value=${ids} onChange=${(e) => setIds(e.target.value)}><option value="">${t('redrive.ids_auto')}</option><option value="same_id">${t('redrive.ids_same')}</option><option value="new_id">${t('redrive.ids_new')}</option></select>
      <${Reason} value=${reason} onInput=${setReason} /><${Trouble} problem=${problem} />
      <p class="acts"><${Act} kind="main" why=${!plan ? t('redrive.first_plan') : !plan.letters.n ? t('dead.none_filter') : !reason.trim() ? t('reason.first') : ''} onClick=${run}>${t('redrive.start', { n: plan ? plan.letters.n : 0 })}<//></p></form></section>
    <section class="card"><h2>${t('redrive.plan')}</h2>${wrong && html`<div class="problem" role="alert">${problemText(wrong)}</div>`}
      ${plan && html`<p><strong>${t('redrive.plan_line', { n: plan.letters.n, time: duration(plan.estimated_ms) })}</strong></p>
        ${plan.may_have_arrived > 0 && html`<p><${Chip} state="warning" text=${t('act.maybe', { n: plan.may_have_arrived })} /></p>`}
        ${!plan.relay_running && html`<div class="problem">${t('attention.no_relay')}</div>`}${plan.paused_destination && html`<div class="problem">${t('redrive.paused', { destination: plan.paused_destination })}</div>`}
        ${plan.running_already && html`<div class="problem">${t('redrive.running_already', { id: plan.running_already })}</div>`}
        <${Table} narrow rows=${plan.groups} keyOf=${(g) => g.group} columns=${[{ name: t('col.letters'), n: true, cell: (g) => num(g.letters) }, { name: t('col.destination'), cell: (g) => g.destination }, { name: t('col.reason'), cell: (g) => html`<span class="id">${g.reason_code}</span>` }]} />`}</section></div>`;
}
