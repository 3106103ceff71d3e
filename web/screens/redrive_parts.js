// What became of each part of a redrive: by destination, how many arrived, died again, wait; and the new causes of those that died again.
import { html } from '../dom.js';
import { get } from '../api.js';
import { useLive } from '../live.js';
import { num, t } from '../i18n.js';
import { link } from '../router.js';
import { Empty, Loading, Table, Trouble } from '../parts.js';

const OUTCOMES = ['resolved', 'failed', 'retrying', 'discarded'], GROUPS = 100;
const lettersOf = (id, destination, status) => link(['dead'], { tab: 'letters', filter: `redrive:${id}${destination ? ` destination:${/[\s"]/.test(destination) ? JSON.stringify(destination) : destination}` : ''} status:${status}` });

// [{destination, resolved, failed, retrying, discarded}], and the groups of those that are open again.
async function load(id, signal) {
  const found = await Promise.all(OUTCOMES.map((status) => get('/dead-letters/groups', { filter: `redrive:${id} status:${status}`, limit: GROUPS }, signal)));
  const rows = new Map();
  found.forEach((groups, i) => groups.items.forEach((g) => {
    const row = rows.get(g.destination) || { destination: g.destination, resolved: 0, failed: 0, retrying: 0, discarded: 0 };
    row[OUTCOMES[i]] += g.letters;
    rows.set(g.destination, row);
  }));
  return { rows: [...rows.values()].sort((a, b) => (a.destination < b.destination ? -1 : 1)), again: found[1].items, partial: found.some((g) => g.partial || g.more) };
}

export function Parts({ id }) {
  const { data, problem } = useLive((signal) => load(id, signal), [id], ['redrive', 'state'], 3000);
  if (!data) return problem ? html`<${Trouble} problem=${problem} />` : html`<${Loading} />`;
  const cell = (status) => (r) => (r[status] ? html`<a href=${lettersOf(id, r.destination, status)}>${num(r[status])}</a>` : '0');
  return html`<section class="card"><h2>${t('redrive.parts')}</h2>${!data.rows.length ? html`<${Empty} title=${t('redrive.no_parts')}>${t('redrive.no_parts_words')}<//>` : html`
      <${Table} narrow keyOf=${(r) => r.destination} rows=${data.rows} columns=${[{ name: t('col.destination'), cell: (r) => r.destination }, { name: t('redrive.resolved'), n: true, cell: cell('resolved') }, { name: t('redrive.failed'), n: true, cell: cell('failed') },
        { name: t('redrive.waiting'), n: true, cell: cell('retrying') }, { name: t('redrive.discarded'), n: true, cell: cell('discarded') }]} />`}
    ${data.partial && html`<p class="hint">${t('redrive.parts_partial')}</p>`}
    ${data.again.length > 0 && html`<h3>${t('redrive.again')}</h3><${Table} keyOf=${(g) => g.group} rows=${data.again} columns=${[{ name: t('col.letters'), n: true, cell: (g) => num(g.letters) }, { name: t('col.destination'), cell: (g) => g.destination },
      { name: t('col.words'), wide: true, cell: (g) => html`<a href=${link(['dead'], { tab: 'letters', filter: `redrive:${id} group:${g.group}` })}><span class="words">${g.example_error || g.reason_code}</span></a>` }, { name: t('col.reason'), cell: (g) => html`<span class="id">${g.reason_code}</span>` }]} />`}</section>`;
}
