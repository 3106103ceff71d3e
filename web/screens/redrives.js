// Redrives and jobs: what runs, what ran, what became of it.
import { html, useState } from '../dom.js';
import { get, post } from '../api.js';
import { useLive } from '../live.js';
import { known, num, t } from '../i18n.js';
import { go, link } from '../router.js';
import { Act, Chip, Empty, Head, Loading, Table, Time, Trouble, useRows } from '../parts.js';
import { ReasonDialog } from '../acts.js';

function Jobs() {
  const [cancelling, setCancelling] = useState(null);
  const { data, problem, reload } = useLive((signal) => get('/jobs', { limit: 200 }, signal), [], ['job']);
  if (!data) return problem ? html`<${Trouble} problem=${problem} />` : html`<${Loading} />`;
  const runs = (j) => j.status === 'queued' || j.status === 'running';
  return html`<section class="card"><h2>${t('jobs.title')}</h2>${!data.items.length ? html`<${Empty} title=${t('jobs.none')}>${t('jobs.none_words')}<//>` : html`
    <${Table} keyOf=${(j) => j.id} rows=${data.items} onOpen=${(j) => go(['redrives', 'job', j.id])} columns=${[
      { name: t('col.job'), cell: (j) => html`<a href=${link(['redrives', 'job', j.id])}>${j.id}</a>` }, { name: t('col.act'), cell: (j) => known('operation.' + j.operation, j.operation) }, { name: t('col.state'), cell: (j) => html`<${Chip} state=${j.status} />` },
      { name: t('col.done'), n: true, cell: (j) => `${num(j.done)}${j.total ? ` / ${num(j.total)}` : ''}` }, { name: t('col.changed'), n: true, cell: (j) => num(j.changed) }, { name: t('col.failed'), n: true, cell: (j) => num(j.failed) },
      { name: t('col.who'), cell: (j) => j.actor }, { name: t('col.why'), wide: true, cell: (j) => html`<span class="words">${j.error || j.reason || '–'}</span>` }, { name: t('col.when'), tight: true, cell: (j) => html`<${Time} at=${j.created_at} />` },
      { name: t('col.do'), cell: (j) => (runs(j) ? html`<${Act} onClick=${() => setCancelling(j)}>${t('act.stop')}<//>` : j.act_id && html`<a href=${link(['audit'], { id: j.act_id })}>${t('jobs.audit')}</a>`) }]} />`}</section>
    ${cancelling && html`<${ReasonDialog} title=${t('act.stop')} words=${t('jobs.stop_words')} danger run=${(reason) => post(`/jobs/${cancelling.id}/cancel`, { reason })} onClose=${() => { setCancelling(null); reload(); }} />`}`;
}

export function Redrives() {
  const { data, problem } = useLive((signal) => get('/redrives', {}, signal), [], ['redrive']);
  const rows = data?.items || [], at = useRows(rows, (r) => go(['redrives', r.id]));
  return html`<${Head} title=${t('nav.redrives')} sub=${t('redrives.sub')}><a class="button" href=${link(['redrives', 'new'])}>${t('redrives.new')}</a><//>
    <${Trouble} problem=${problem} />
    ${!data ? html`<${Loading} />` : html`<section class="card"><h2>${t('redrives.title')}</h2>${!rows.length ? html`<${Empty} title=${t('redrives.none')}>${t('redrives.none_words')}<//>` : html`
      <${Table} at=${at} keyOf=${(r) => r.id} rows=${rows} onOpen=${(r) => go(['redrives', r.id])} columns=${[
        { name: t('col.redrive'), cell: (r) => html`<a href=${link(['redrives', r.id])}>${r.id}</a>` }, { name: t('col.state'), cell: (r) => html`<${Chip} state=${r.status} />` }, { name: t('col.filter'), names: true, cell: (r) => html`<span class="id">${r.filter}</span>` },
        { name: t('col.letters'), n: true, cell: (r) => num(r.total) }, { name: t('redrive.requeued'), n: true, cell: (r) => num(r.requeued) }, { name: t('redrive.resolved'), n: true, cell: (r) => num(r.resolved) }, { name: t('redrive.failed'), n: true, cell: (r) => num(r.failed) },
        { name: t('col.why'), names: true, cell: (r) => html`<span class="words">${r.reason}</span><small class="soft">${r.actor}</small>` }, { name: t('col.when'), tight: true, cell: (r) => html`<${Time} at=${r.created_at} />` }]} />`}</section>`}
    <${Jobs} />`;
}
