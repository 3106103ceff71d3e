// Relays of this database, and what the doctor says.
import { html } from '../dom.js';
import { get } from '../api.js';
import { useLive } from '../live.js';
import { duration, loadFindings, num, said, t } from '../i18n.js';
import { Chip, Empty, Head, Loading, Table, Time, Trouble } from '../parts.js';

export function Relays() {
  const { data, problem } = useLive((signal) => get('/relays', {}, signal), [], [], 3000);
  const { data: doctor } = useLive(async (signal) => (await Promise.all([get('/doctor', {}, signal), loadFindings()]))[0], [], [], 60000);
  if (!data) return problem ? html`<${Trouble} problem=${problem} />` : html`<${Loading} />`;
  return html`<${Head} title=${t('nav.relays')} sub=${t('relays.sub', { n: data.shards, free: data.shards_free })} /><${Trouble} problem=${problem} />
    <section class="card">${data.items.length ? html`<${Table} rows=${data.items} keyOf=${(r) => r.lane + r.boot} columns=${[
      { name: t('relays.name'), cell: (r) => r.name }, { name: t('col.state'), cell: (r) => html`<${Chip} state=${r.running ? 'running' : 'stopped'} />` }, { name: t('relays.version'), cell: (r) => r.version }, { name: t('relays.started'), tight: true, cell: (r) => html`<${Time} at=${r.started_at} />` },
      { name: t('relays.shards'), n: true, cell: (r) => num(r.shards) }, { name: t('relays.in_hand'), n: true, cell: (r) => num(r.in_hand) }, { name: t('relays.lag'), n: true, cell: (r) => duration(r.lag_ms) }, { name: t('relays.lease'), n: true, cell: (r) => (r.lease_left_ms > 0 ? duration(r.lease_left_ms) : t('relays.over')) }]} />` : html`<${Empty} title=${t('relays.none')}>${t('attention.no_relay')}<//>`}</section>
    ${doctor && html`<section class="card"><h2>${t('relays.doctor')} <${Chip} state=${doctor.ok ? 'ok' : 'fail'} /></h2><${Table} rows=${doctor.items} columns=${[{ name: t('col.state'), cell: (i) => html`<${Chip} state=${i.level} />` }, { name: t('relays.check'), tight: true, cell: (i) => said('check', { code: i.check.toLowerCase().replace(/\W/g, '_') }, i.check) }, { name: t('relays.says'), wide: true, cell: (i) => said('doctor', i, i.message) }]} /></section>`}`;
}
