// Alerts: what fires, what was sent, what is muted.
import { html, useState } from '../dom.js';
import { getTogether, post } from '../api.js';
import { useLive } from '../live.js';
import { num, t } from '../i18n.js';
import { Act, Chip, Empty, Head, Loading, Table, Time, Trouble } from '../parts.js';
import { ReasonDialog } from '../acts.js';
import { alertLink, alertText } from './alert_words.js';

export function Alerts() {
  const [muting, setMuting] = useState(null), [length, setLength] = useState('1h');
  const { data, problem, reload } = useLive(() => getTogether('/alerts'), [], ['alert']);
  if (!data) return problem ? html`<${Trouble} problem=${problem} />` : html`<${Loading} />`;
  const muted = (rule) => data.mutes.find((m) => m.rule === rule);
  return html`<${Head} title=${t('nav.alerts')} sub=${html`${t('alerts.sub', { n: data.channels })} ${data.evaluated_at && html`<${Time} at=${data.evaluated_at} />`}`} /><${Trouble} problem=${problem} />
    <section class="card"><h2>${t('alerts.now')}</h2>${!data.items.length ? html`<${Empty} title=${t('alerts.none')}>${t('alerts.none_words')}<//>` : html`<${Table} rows=${data.items} keyOf=${(a) => a.fingerprint} columns=${[
      { name: t('col.state'), cell: (a) => html`<${Chip} state=${a.status} /> <${Chip} state=${a.severity} />` },
      { name: t('alerts.what'), wide: true, cell: (a) => html`<a href=${alertLink(a)}>${alertText(a)}</a>${a.detail && html`<div class="soft words">${a.detail}</div>`}` },
      { name: t('alerts.rule'), tight: true, cell: (a) => html`${a.rule}${muted(a.rule) ? html` <${Chip} state="none" text=${t('alerts.muted')} />` : ''}` }, { name: t('col.letters'), n: true, extra: true, cell: (a) => (a.count ? num(a.count) : '–') }, { name: t('alerts.since'), tight: true, cell: (a) => html`<${Time} at=${a.since} />` }, { name: t('alerts.told'), tight: true, extra: true, cell: (a) => html`<${Time} at=${a.told_at} />` },
      { name: t('col.do'), cell: (a) => (muted(a.rule) ? html`<${Act} onClick=${() => setMuting({ rule: a.rule, un: true })}>${t('act.unmute')}<//>` : html`<${Act} onClick=${() => setMuting({ rule: a.rule })}>${t('act.mute')}<//>`) }]} />`}</section>
    <div class="grid"><section class="card"><h2>${t('alerts.mutes')}</h2>${data.mutes.length ? html`<${Table} rows=${data.mutes} keyOf=${(m) => m.rule} columns=${[{ name: t('alerts.rule'), cell: (m) => m.rule }, { name: t('alerts.until'), cell: (m) => html`<${Time} at=${m.until} />` }, { name: t('col.who'), cell: (m) => m.actor }, { name: t('col.why'), cell: (m) => m.reason },
      { name: t('col.do'), cell: (m) => html`<${Act} onClick=${() => setMuting({ rule: m.rule, un: true })}>${t('act.unmute')}<//>` }]} />` : html`<p class="soft">${t('alerts.no_mutes')}</p>`}</section>
    <section class="card"><h2>${t('alerts.notices')}</h2>${data.notices.length ? html`<${Table} rows=${data.notices} keyOf=${(n) => n.id} columns=${[{ name: t('alerts.channel'), cell: (n) => n.channel }, { name: t('alerts.rule'), cell: (n) => n.rule }, { name: t('col.attempts'), n: true, cell: (n) => num(n.attempts) }, { name: t('col.next'), tight: true, cell: (n) => (n.given_up_at ? html`<${Chip} state="failed" text=${t('alerts.given_up')} />` : html`<${Time} at=${n.next_at} />`) }, { name: t('col.last_error'), wide: true, cell: (n) => n.last_error || '–' }]} />` : html`<p class="soft">${t('alerts.no_notices')}</p>`}</section></div>
    ${muting && html`<${ReasonDialog} title=${muting.un ? t('act.unmute') : t('act.mute')} words=${t(muting.un ? 'alerts.unmute_words' : 'alerts.mute_words', { rule: muting.rule })} run=${(reason) => post(muting.un ? '/alerts/unmute' : '/alerts/mute', { rule: muting.rule, reason, ...(muting.un ? {} : { for: length }) })} onClose=${() => { setMuting(null); reload(); }}>
      ${!muting.un && html`<label for="length">${t('alerts.for')}</label><select id="length" value=${length} onChange=${(e) => setLength(e.target.value)}>${['15m', '1h', '6h', '24h'].map((v) => html`<option value=${v}>${t('span.' + v)}</option>`)}</select>`}<//>`}`;
}
