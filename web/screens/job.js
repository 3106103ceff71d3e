// One job: what was asked, how far it is, and what became of each item.
import { html, useState } from '../dom.js';
import { get, post } from '../api.js';
import { useLive } from '../live.js';
import { known, num, t } from '../i18n.js';
import { go, link } from '../router.js';
import { Act, Chip, Facts, Head, Loading, Table, Text, Time, Trouble } from '../parts.js';
import { JobProgress, ReasonDialog } from '../acts.js';

const RUNS = ['queued', 'running'];

// The rows of a result that have an id: letters or messages, and what was refused.
function Items({ items, messages }) {
  const href = (i) => (messages ? link(['messages', i.id ?? i.message_id]) : link(['dead', i.id]));
  return html`<${Table} rows=${items} columns=${[{ name: messages ? t('col.message') : t('col.letter'), cell: (i) => html`<a class="id" href=${href(i)}>${i.id ?? i.message_id ?? i.name}</a>` },
    { name: t('col.state'), cell: (i) => (i.error ? html`<${Chip} state="failed" text=${t('col.failed')} />` : html`<${Chip} state="done" />`) }, ...(items.some((i) => i.error) ? [{ name: t('relays.says'), wide: true, cell: (i) => html`<span class="words">${i.error || '–'}</span>` }] : [])]} />`;
}

// A job's filter says that it means open letters; a redrive's may leave it unsaid.
const unsaid = (filter) => filter.replace(/\s*\bstatus:failed\b/g, '').trim();

// What follows a fix: the redrive that somebody has started since, or the way to start it.
function AfterFix({ job }) {
  const filter = job.request?.filter || 'status:failed';
  const { data } = useLive((signal) => get('/redrives', {}, signal), [job.id], ['redrive']);
  if (!data) return null;
  const started = data.items.find((r) => unsaid(r.filter) === unsaid(filter) && Date.parse(r.created_at) >= Date.parse(job.ended_at));
  return html`<section class="card">${started ? html`<p>${t('job.fixed_redriven')} <a href=${link(['redrives', started.id])}>${t('redrive.title', { id: started.id })}</a></p>`
    : html`<p>${t('job.fixed_next')}</p><p class="acts"><${Act} kind="main" onClick=${() => go(['redrives', 'new'], { filter })}>${t('job.fixed_redrive')}<//></p>`}</section>`;
}

export function Job({ id }) {
  const [stopping, setStopping] = useState(false);
  const { data: j, problem, reload } = useLive((signal) => get(`/jobs/${id}`, {}, signal), [id], ['job']);
  if (!j) return problem ? html`<${Head} title=${t('job.title', { id })} /><${Trouble} problem=${problem} />` : html`<${Loading} />`;
  const items = [...(j.result?.items || []), ...(j.result?.failures || [])], title = known('operation.' + j.operation, j.operation);
  return html`<${Head} title=${t('job.title', { id })} sub=${html`<${Chip} state=${j.status} /> ${title}`}>${RUNS.includes(j.status) && html`<${Act} kind="danger" onClick=${() => setStopping(true)}>${t('act.stop')}<//>`}
      ${j.act_id && html`<a class="button" href=${link(['audit'], { id: j.act_id })}>${t('jobs.audit')}</a>`}<//><${Trouble} problem=${problem} />
    <section class="card"><${JobProgress} id=${id} key=${id} onEnd=${reload} /></section>
    ${j.operation === 'dead fix' && j.ended_at && j.changed > 0 && html`<${AfterFix} job=${j} />`}
    <div class="grid"><section class="card"><h2>${t('job.asked')}</h2><${Facts} rows=${[[t('col.act'), title], [t('col.who'), j.actor], [t('col.why'), j.reason], [t('col.created'), html`<${Time} at=${j.created_at} relative=${false} />`],
        [t('relays.started'), j.started_at && html`<${Time} at=${j.started_at} relative=${false} />`], [t('redrive.ended'), j.ended_at && html`<${Time} at=${j.ended_at} relative=${false} />`], [t('relays.name'), j.relay],
        [t('job.cancelled_by'), j.cancelled_by && `${j.cancelled_by}: ${j.cancel_reason || ''}`], [t('col.changed'), num(j.changed)], [t('col.failed'), num(j.failed)]]} />
      ${j.request && html`<details><summary>${t('job.request')}</summary><${Text} text=${JSON.stringify(j.request, null, 2)} label=${t('job.request')} /></details>`}</section>
    <section class="card"><h2>${t('job.became')}</h2>${items.length ? html`<${Items} items=${items} messages=${j.operation.startsWith('messages')} />` : html`<p class="soft">${j.ended_at ? t('job.no_items') : t('job.later')}</p>`}
      ${j.result && html`<details><summary>${t('letter.detail')}</summary><${Text} text=${JSON.stringify(j.result, null, 2)} label=${t('letter.detail')} /></details>`}</section></div>
    ${stopping && html`<${ReasonDialog} title=${t('act.stop')} words=${t('jobs.stop_words')} danger run=${(reason) => post(`/jobs/${id}/cancel`, { reason })} onClose=${() => { setStopping(false); reload(); }} />`}`;
}
