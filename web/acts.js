// An act on one or many: shows how many and an example first, asks for a reason, runs as a job with progress, and offers the undo that exists.
import { html, useEffect, useRef, useState } from './dom.js';
import { ask, get, post } from './api.js';
import { t } from './i18n.js';
import { useLive } from './live.js';
import { Chip, problemText, Trouble } from './parts.js';
import { Dialog } from './dialog.js';

// Which letters or messages: {ids: [...]} or {filter: '…'}; an act on many needs a filter that means something.
const isMany = (which) => !which.ids;

export function Reason({ value, onInput, id = 'reason' }) {
  return html`<label for=${id}>${t('reason.label')}</label>
    <input id=${id} type="text" value=${value} onInput=${(e) => onInput(e.target.value)} required autocomplete="off" placeholder=${t('reason.hint')} />`;
}

// ---- progress ----

const ENDED = ['done', 'failed', 'cancelled', 'aborted'];

export function JobProgress({ id, onEnd }) {
  const last = useRef(null);
  const load = async (signal) => {
    if (!last.current || !ENDED.includes(last.current.status)) last.current = await get(`/jobs/${id}`, {}, signal);
    return last.current;
  };
  const { data: job, problem } = useLive(load, [id], ['job'], 1000); // a job often ends between two events
  const ended = job && ENDED.includes(job.status);
  useEffect(() => { if (ended && onEnd) onEnd(job); }, [ended]);
  if (problem) return html`<${Trouble} problem=${problem} />`;
  if (!job) return html`<progress aria-label=${t('job.progress')}></progress>`;
  const total = job.total || 0;
  return html`<div aria-live="polite"><p class="spread"><span><${Chip} state=${job.status} /> ${t('job.so_far', { done: job.done, total: total || job.done })}</span>
      <span class="soft">${t('job.changed', { n: job.changed })}${job.failed ? ' · ' + t('job.failed', { n: job.failed }) : ''}</span></p>
    <progress max=${Math.max(1, total)} value=${ended ? Math.max(1, total) : job.done} aria-label=${t('job.progress')}></progress>
    ${job.error && html`<div class="problem">${job.error}</div>`}</div>`;
}

// ---- the dialog ----

const letterExample = (plan) => (plan.examples && plan.examples[0] ? `${plan.examples[0].message_id} · ${plan.examples[0].event_type} → ${plan.examples[0].destination}` : null);

// act: {title, words, path, undo: {path, text}, danger, body}
export function ActDialog({ act, which, example, onClose, onDone }) {
  const [plan, setPlan] = useState(null), [reason, setReason] = useState(''), [problem, setProblem] = useState(null);
  const [busy, setBusy] = useState(false), [job, setJob] = useState(null), [done, setDone] = useState(null);
  const body = { ...which, ...(act.body || {}) };
  useEffect(() => {
    ask(act.path, { ...body, dry_run: true }).then(setPlan, setProblem);
  }, []);
  const count = plan ? plan.letters?.n ?? plan.messages ?? 0 : null;
  const run = async (event) => {
    event.preventDefault();
    if (busy || !reason.trim() || !plan) return;
    setBusy(true);
    setProblem(null);
    try {
      const answer = await post(act.path, { ...body, reason, ...(isMany(which) ? { background: true } : {}) });
      if (isMany(which)) setJob(answer.id);
      else finish(answer);
    } catch (error) { setProblem(error); setBusy(false); }
  };
  const finish = (result) => { setDone(result); onDone?.(result); };
  return html`<${Dialog} title=${act.title} onClose=${onClose}>
    ${done ? html`<${Ended} act=${act} result=${done} onClose=${onClose} onDone=${onDone} />` : job ? html`<${JobProgress} id=${job} onEnd=${finish} />
      <div class="acts"><button type="button" onClick=${onClose}>${t('dialog.leave')}</button></div>` : html`<form onSubmit=${run}>
      <p>${act.words}</p>
      ${plan && html`<p><strong>${t(act.path.startsWith('/messages') ? 'audit.n_messages' : 'audit.n_letters', { n: count })}</strong>${plan.may_have_arrived ? html` <${Chip} state="warning" text=${t('act.maybe', { n: plan.may_have_arrived })} />` : null}</p>
        ${(example || letterExample(plan)) && html`<p class="hint">${t('act.example')} <span class="id">${example || letterExample(plan)}</span></p>`}`}
      ${!plan && !problem && html`<p class="soft">${t('act.counting')}</p>`}
      <${Reason} value=${reason} onInput=${setReason} id="act-reason" />
      <${Trouble} problem=${problem} />
      <div class="acts"><button type="button" onClick=${onClose}>${t('dialog.cancel')}</button>
        <button type="submit" class=${act.danger ? 'danger' : 'main'} aria-disabled=${!plan || !reason.trim() || busy || count === 0 ? 'true' : undefined}>
          ${act.button ? act.button(count) : t('act.run', { act: act.title, n: count ?? 0 })}</button></div></form>`}
  <//>`;
}

function Ended({ act, result, onClose, onDone }) {
  const [undone, setUndone] = useState(null), [problem, setProblem] = useState(null);
  const changed = result.changed ?? 0, refused = (result.items || []).filter((i) => i.error);
  const undo = async () => {
    try {
      const answer = await post(act.undo.path, { act: Number(result.act_id), reason: t('undo.reason', { act: act.title }) });
      setUndone(answer);
      onDone?.(answer);
    } catch (error) { setProblem(error); }
  };
  return html`<p aria-live="polite"><${Chip} state=${result.status && result.status !== 'done' ? result.status : changed ? 'done' : 'warning'} text=${t('act.changed', { n: changed })} />
      ${undone && html` <${Chip} state="done" text=${t('undo.done', { n: undone.changed })} />`}</p>
    ${refused.map((item) => html`<div class="problem">${item.name || item.id}: ${item.error}</div>`)}
    ${result.error && html`<div class="problem">${result.error}</div>`}
    <${Trouble} problem=${problem} />
    <div class="acts">${act.undo && result.act_id && !undone && changed > 0 && html`<button type="button" onClick=${undo}>${t('undo.button')}</button>`}
      <button type="button" class="main" onClick=${onClose}>${t('dialog.close')}</button></div>`;
}

// An act without a count, such as a pause: title, words, reason, run.
export function ReasonDialog({ title, words, button, run, onClose, danger, children, ready = true }) {
  const [reason, setReason] = useState(''), [problem, setProblem] = useState(null), [busy, setBusy] = useState(false);
  const submit = async (event) => {
    event.preventDefault();
    if (busy || !reason.trim() || !ready) return;
    setBusy(true);
    try { await run(reason); onClose(); } catch (error) { setProblem(error); setBusy(false); }
  };
  return html`<${Dialog} title=${title} onClose=${onClose}><form onSubmit=${submit}><p>${words}</p>${children}
    <${Reason} value=${reason} onInput=${setReason} id="dialog-reason" />
    ${problem && html`<div class="problem" role="alert">${problemText(problem)}</div>`}
    <div class="acts"><button type="button" onClick=${onClose}>${t('dialog.cancel')}</button>
      <button type="submit" class=${danger ? 'danger' : 'main'} aria-disabled=${!reason.trim() || busy || !ready ? 'true' : undefined}>${button || title}</button></div></form><//>`;
}

