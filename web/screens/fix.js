// Repair many payloads with one jq program: a preview as you type, then the change as a job, then a redrive.
import { html, useEffect, useState } from '../dom.js';
import { ask, enc, get, post } from '../api.js';
import { t } from '../i18n.js';
import { go, link } from '../router.js';
import { Act, Chip, Diff, Head, problemText, Text, Trouble } from '../parts.js';
import { JobProgress, Reason } from '../acts.js';

const PAUSE_MS = 400, SAMPLES = 3, CANARY = 10;

// The dry run of what is typed. {plan, wrong, busy}
function usePreview(filter, jq) {
  const [state, set] = useState({ plan: null, wrong: null, busy: false });
  useEffect(() => {
    if (!jq.trim()) { set({ plan: null, wrong: null, busy: false }); return undefined; }
    const abort = new AbortController();
    const timer = setTimeout(async () => {
      set((was) => ({ ...was, busy: true }));
      try { set({ plan: await ask('/dead-letters/fix', { jq, filter, dry_run: true, samples: SAMPLES }, abort.signal), wrong: null, busy: false }); }
      catch (error) { if (error.name !== 'AbortError') set({ plan: null, wrong: error, busy: false }); }
    }, PAUSE_MS);
    return () => { clearTimeout(timer); abort.abort(); };
  }, [filter, jq]);
  return state;
}

// One of the letters as it is: what its receiver said, and the payload that the program will see.
function useExample(filter) {
  const [letter, set] = useState(null);
  useEffect(() => {
    const abort = new AbortController();
    get('/dead-letters', { filter, limit: 1 }, abort.signal).then((found) => found.items[0] && get(`/dead-letters/${enc(found.items[0].id)}`, {}, abort.signal)).then((one) => set(one || null), () => set(null));
    return () => abort.abort();
  }, [filter]);
  return letter;
}

function Example({ letter }) {
  if (!letter) return null;
  return html`<h3>${t('fix.sample')} <a href=${link(['dead', letter.id])}>${letter.id}</a> <span class="soft">${t('fix.as_it_is')}</span></h3><${Text} text=${letter.payload ?? letter.payload_base64} cut=${letter.payload_cut} label=${t('letter.payload')} />`;
}

function Preview({ plan }) {
  const matched = plan.letters?.n ?? plan.matched;
  return html`<p aria-live="polite"><${Chip} state="info" text=${t('fix.matched', { n: plan.matched || matched })} /> <${Chip} state=${plan.changed ? 'done' : 'warning'} text=${t('fix.changed', { n: plan.changed })} />
      ${plan.unchanged > 0 && html` <${Chip} state="none" text=${t('fix.unchanged', { n: plan.unchanged })} />`} ${plan.failed > 0 && html` <${Chip} state="failed" text=${t('fix.failed', { n: plan.failed })} />`}
      ${plan.may_have_arrived > 0 && html` <${Chip} state="warning" text=${t('act.maybe', { n: plan.may_have_arrived })} />`}</p>
    ${plan.samples.map((s) => html`<h3>${t('fix.sample')} <a href=${link(['dead', s.id])}>${s.id}</a></h3><${Diff} text=${s.diff} />`)}
    ${plan.failures.slice(0, 5).map((f) => html`<div class="problem"><a href=${link(['dead', f.id])}>${f.id}</a>: ${f.error}</div>`)}`;
}

export function Fix({ query }) {
  const filter = query.get('filter') || '';
  const [jq, setJq] = useState(query.get('jq') || ''), [reason, setReason] = useState(''), [redrive, setRedrive] = useState(true), [job, setJob] = useState(null), [problem, setProblem] = useState(null), [busy, setBusy] = useState(false);
  const { plan, wrong, busy: looking } = usePreview(filter, jq), example = useExample(filter);
  const ready = plan && plan.changed > 0 && reason.trim() && !busy;
  const run = async () => {
    if (!ready) return;
    setBusy(true);
    setProblem(null);
    try { setJob((await post('/dead-letters/fix', { jq, filter, reason, background: true })).id); } catch (error) { setProblem(error); setBusy(false); }
  };
  const fixed = async (done) => {
    if (!redrive || done.status !== 'done') return;
    try { go(['redrives', (await post('/redrives', { filter, reason, canary: CANARY })).redrive], {}, true); } catch (error) { setProblem(error); }
  };
  return html`<${Head} title=${t('fix.title')} sub=${html`${t('fix.sub')} <span class="id">${filter}</span>`}><a class="button" href=${link(['dead'], { tab: 'letters', filter })}>${t('fix.letters')}</a><//>
    ${example && html`<div class="note">${t('destinations.last_words')} <strong>${example.error_message || example.reason_code}</strong></div>`}
    <div class="grid"><section class="card"><form onSubmit=${(e) => { e.preventDefault(); run(); }}>
      <label for="jq">${t('fix.program')}</label><textarea id="jq" rows="5" spellcheck="false" value=${jq} onInput=${(e) => setJq(e.target.value)} placeholder=${'.currency = "JPY"'}></textarea>
      <p class="hint">${t('fix.hint')} <span class="code">.amount |= tonumber</span> · <span class="code">del(.debug)</span> · <span class="code">.currency //= "JPY"</span></p>
      <${Reason} value=${reason} onInput=${setReason} />
      <p><label class="inline"><input type="checkbox" checked=${redrive} onChange=${(e) => setRedrive(e.target.checked)} />${t('fix.then_redrive', { n: CANARY })}</label></p>
      <${Trouble} problem=${problem} />
      ${job ? html`${redrive && html`<p class="note">${t('fix.keep_open')} <a href=${link(['redrives', 'job', job])}>${t('job.title', { id: job })}</a></p>`}<${JobProgress} id=${job} onEnd=${fixed} />` : html`<p class="acts"><${Act} kind="main" why=${!plan || !plan.changed ? t('fix.first_preview') : !reason.trim() ? t('reason.first') : ''} onClick=${run}>
        ${redrive ? t('fix.run_redrive', { n: plan ? plan.changed : 0 }) : t('fix.run', { n: plan ? plan.changed : 0 })}<//></p>`}</form></section>
    <section class="card"><h2>${t('fix.preview')} ${looking && html`<span class="soft">${t('loading')}</span>`}</h2>
      ${wrong && html`<div class="problem" role="alert">${problemText(wrong)}</div>`}
      ${plan ? html`<${Preview} plan=${plan} />` : html`${!wrong && html`<p class="soft">${t('fix.no_preview')}</p>`}<${Example} letter=${example} />`}</section></div>`;
}
