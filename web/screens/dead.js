// Dead letters: grouped by cause in the receiver's words; the letters of a filter; figures. Acts are on all that match, or on those marked.
import { html, useEffect, useState } from '../dom.js';
import { get } from '../api.js';
import { useLive } from '../live.js';
import { bytes, duration, num, percent, t } from '../i18n.js';
import { go, link } from '../router.js';
import { Act, Chip, Empty, Head, Loading, Table, Time, Trouble, useRows } from '../parts.js';
import { Pages, pageSize, startOf } from '../pages.js';
import { ActDialog } from '../acts.js';
import { Bars, Chart, HourTable, Spark } from '../chart.js';
import { FilterBox, rowsInSight } from '../filter_box.js';
import { letterActs } from './letter_acts.js';

const TABS = ['groups', 'letters', 'figures'];
const GROUPS = 50, OLDEST = 10;

// ---- groups ----

// The last day in hours: a line, and the words for the last two of them.
function Trend({ hours }) {
  if (!hours) return '–';
  const lately = hours[hours.length - 1] + hours[hours.length - 2];
  return html`<${Spark} values=${hours} label=${t('dead.trend', { n: hours.reduce((a, b) => a + b, 0) })} /><small class="soft">${lately ? t('dead.lately', { n: lately }) : t('dead.lately_none')}</small>`;
}

function Groups({ filter }) {
  const { data: all, problem } = useLive((signal) => get('/dead-letters/groups', { filter, limit: GROUPS, hours: true }, signal), [filter], ['state', 'alert', 'redrive', 'job']);
  const open = (g) => go(['dead'], { tab: 'letters', filter: `group:${g.group}` });
  const at = useRows(all?.items || [], open);
  if (!all) return problem ? html`<${Trouble} problem=${problem} />` : html`<${Loading} />`;
  const bound = all.partial && html`<p class="hint">${t(all.about ? 'dead.newest_only' : 'dead.newest_none', { looked: all.looked, about: all.about })}</p>`;
  if (!all.items.length) return html`<div class="card"><${Empty} title=${t('dead.none')}>${filter ? t('dead.none_filter') : t('dead.none_words')}<//>${bound}</div>`;
  return html`<section class="card"><${Table} at=${at} keyOf=${(g) => g.group} onOpen=${open} rows=${all.items}
    caption=${t(all.items.length === 1 ? 'dead.group_caption' : 'dead.groups_caption', { n: all.letters, groups: all.items.length })} columns=${[
      { name: t('col.letters'), n: true, cell: (g) => html`<strong>${num(g.letters)}</strong>` },
      { name: t('col.words'), wide: true, cell: (g) => html`<a href=${link(['dead'], { tab: 'letters', filter: `group:${g.group}` })}><span class="words">${g.example_error || g.reason_code}</span></a>
        ${g.may_have_arrived > 0 && html` <${Chip} state="warning" text=${t('act.maybe', { n: g.may_have_arrived })} />`}` },
      { name: t('col.destination'), cell: (g) => g.destination },
      { name: t('col.reason'), tight: true, cell: (g) => html`<span class="id">${g.reason_code}</span>` },
      { name: t('col.trend'), tight: true, cell: (g) => html`<${Trend} hours=${g.hours} />` },
      { name: t('col.first'), tight: true, extra: true, cell: (g) => html`<${Time} at=${g.first_failed_at} />` },
      { name: t('col.last'), tight: true, cell: (g) => html`<${Time} at=${g.last_failed_at} />` },
    ]} /><${HourTable} title=${t('dead.trend_table')} now=${all.now} rows=${all.items.slice(0, 12).map((g) => ({ name: `${g.destination} · ${g.reason_code}`, values: g.hours || [] }))} />${all.more && html`<p class="hint">${t('dead.more_groups')}</p>`}${bound}</section>`;
}

// ---- letters ----

// Acts that this filter is for: a filter without a status means open letters.
const effective = (filter) => filter || 'status:failed';
const isDiscarded = (filter) => /\bstatus:discarded\b/.test(filter);

function GroupHead({ group, n }) {
  return html`<section class="card"><p><strong>${group.example_error || group.reason_code}</strong></p>
    <p class="soft">${t('dead.group_line', { n, destination: group.destination, reason: group.reason_code })} · ${t('col.first')}: <${Time} at=${group.first_failed_at} /> · ${t('col.last')}: <${Time} at=${group.last_failed_at} /></p></section>`;
}

// One page at a time, of which the table draws what is in sight. The address holds the page, so that back goes back.
function usePage(filter, after, round) {
  const [page, set] = useState({ items: null, next: null, looked: null, problem: null });
  useEffect(() => {
    const abort = new AbortController();
    get('/dead-letters', { filter, limit: pageSize(), after }, abort.signal).then((found) => { rowsInSight.set(found.items); set({ ...found, problem: null }); }, (problem) => { if (problem.name !== 'AbortError') set({ items: [], next: null, looked: null, problem }); });
    return () => abort.abort();
  }, [filter, after, round]);
  return page;
}

function Letters({ filter, after, from }) {
  const [marked, setMarked] = useState(new Set()), [act, setAct] = useState(null), [round, again] = useState(0);
  const { data: sums, reload } = useLive((signal) => get('/dead-letters/groups', { filter, limit: 2 }, signal), [filter], ['state', 'redrive', 'job']);
  useEffect(() => again((n) => n + 1), [sums]);
  const { items, next, looked, problem } = usePage(filter, after, round);
  useEffect(() => setMarked(new Set()), [filter]);
  const mark = (letter) => setMarked((was) => { const now = new Set(was); if (!now.delete(letter.id)) now.add(letter.id); return now; });
  const at = useRows(items || [], (l) => go(['dead', l.id]), mark);
  if (!items) return html`<${Loading} />`;
  if (problem) return html`<${Trouble} problem=${problem} />`;
  const total = (sums?.partial ? sums.about : sums?.letters) ?? items.length;
  const which = marked.size ? { ids: [...marked] } : { filter: effective(filter) };
  const first = items[0], example = first && `${first.message_id} · ${first.event_type} → ${first.destination}`;
  const acts = letterActs();
  return html`${sums && sums.items.length === 1 && /group:/.test(filter) && html`<${GroupHead} group=${sums.items[0]} n=${total} />`}
    <section class="card">
    ${!items.length ? html`<${Empty} title=${t('dead.none')}>${t('dead.none_filter')}<//>` : html`
      <div class="spread"><p><strong>${marked.size ? t('dead.marked', { n: marked.size, total }) : t('dead.all', { n: total })}</strong>
        ${marked.size > 0 && html` <button type="button" class="plain" onClick=${() => setMarked(new Set())}>${t('dead.select_all', { n: total })}</button>`}</p>
      <div class="acts">
        ${isDiscarded(filter) ? html`<${Act} kind="main" onClick=${() => setAct(acts.restore)}>${t('act.restore')}<//>` : html`
        <${Act} kind="main" why=${marked.size ? t('dead.fix_all') : ''} onClick=${() => go(['dead', 'fix'], { filter: effective(filter) })}>${t('act.fix')}<//>
        <${Act} why=${marked.size ? t('dead.redrive_all') : ''} onClick=${() => go(['redrives', 'new'], { filter: effective(filter) })}>${t('act.redrive')}<//>
        <${Act} onClick=${() => setAct(acts.requeue)}>${t('act.requeue')}<//>
        <${Act} onClick=${() => setAct(acts.resolve)}>${t('act.resolve')}<//>
        <${Act} kind="danger" onClick=${() => setAct(acts.discard)}>${t('act.discard')}<//>`}</div></div>
      ${!isDiscarded(filter) && html`<p class="hint">${t('dead.acts_hint')}</p>`}
      <${Table} at=${at} keyOf=${(l) => l.id} onOpen=${(l) => go(['dead', l.id])} rows=${items} columns=${[
        { name: t('col.mark'), cell: (l) => html`<label class="inline"><input type="checkbox" checked=${marked.has(l.id)} onChange=${() => mark(l)} aria-label=${t('dead.mark', { id: l.id })} /></label>` },
        { name: t('col.letter'), cell: (l) => html`<a href=${link(['dead', l.id])}>${l.id}</a>` },
        { name: t('col.type'), cell: (l) => l.event_type },
        { name: t('col.destination'), cell: (l) => l.destination },
        { name: t('col.words'), wide: true, cell: (l) => html`<span class="words">${l.error_message || l.reason_code}</span>` },
        { name: t('col.state'), cell: (l) => html`<${Chip} state=${l.status} />${l.possibly_delivered ? html` <${Chip} state="warning" text=${t('letter.maybe')} />` : ''}` },
        { name: t('col.attempts'), n: true, extra: true, cell: (l) => num(l.attempts) },
        { name: t('col.size'), n: true, tight: true, extra: true, cell: (l) => bytes(l.payload_bytes) },
        { name: t('col.last'), tight: true, cell: (l) => html`<${Time} at=${l.last_failed_at} />` },
      ]} />
      <${Pages} from=${from} shown=${items.length} total=${total} looked=${looked} to=${(n, cursor) => link(['dead'], { tab: 'letters', filter, from: n > 1 ? n : '', after: cursor })} next=${next} />`}
    </section>
    ${act && html`<${ActDialog} act=${act} which=${which} example=${example} onClose=${() => { setAct(null); reload(); again((n) => n + 1); }} onDone=${() => setMarked(new Set())} />`}`;
}

// ---- figures (requirement 113) ----

function Stats() {
  const { data: s, problem } = useLive((signal) => get('/dead-letters/stats', {}, signal), [], ['state', 'redrive', 'job']);
  if (!s) return problem ? html`<${Trouble} problem=${problem} />` : html`<${Loading} />`;
  if (!s.total) return html`<div class="card"><${Empty} title=${t('dead.none')}>${t('dead.none_words')}<//></div>`;
  const by = (name) => (r) => link(['dead'], { tab: 'letters', filter: `${name}:${/[\s"]/.test(r.name) ? JSON.stringify(r.name) : r.name}` });
  const rank = (rows) => rows.map((r) => ({ name: r.name || '–', n: r.letters }));
  const days = [...s.days].sort((a, b) => (a.day < b.day ? -1 : 1));
  const now = Date.parse(s.now), r = s.requeued;
  return html`<dl class="figures">
      ${['failed', 'retrying', 'resolved', 'discarded'].map((name) => html`<div class="figure"><dt>${t('state.' + name)}</dt><dd><a href=${link(['dead'], { tab: 'letters', filter: `status:${name}` })}>${num(s[name])}</a></dd></div>`)}
      <div class="figure"><dt>${t('stats.requeued')}</dt><dd>${num(r.letters)}<small>${r.success_rate === null ? t('stats.no_rate') : t('stats.rate', { rate: percent(r.success_rate) })}</small></dd></div>
    </dl><div class="columns">
    <section class="card"><h2>${t('stats.days')}</h2><${Chart} title=${t('stats.days')} times=${days.map((d) => Date.parse(d.day + (d.day.length === 10 ? 'T00:00:00Z' : '')) / 1000)} series=${[{ name: t('col.letters'), colour: '--two', fill: true, values: days.map((d) => d.letters) }]} /></section>
    <section class="card"><h2>${t('stats.reasons')}</h2><${Bars} second title=${t('stats.reasons')} rows=${rank(s.reasons)} linkOf=${by('reason')} /></section>
    <section class="card"><h2>${t('stats.types')}</h2><${Bars} title=${t('stats.types')} rows=${rank(s.event_types)} linkOf=${by('type')} /></section>
    <section class="card"><h2>${t('stats.destinations')}</h2><${Bars} title=${t('stats.destinations')} rows=${rank(s.destinations)} linkOf=${by('destination')} />
      <h3>${t('stats.fault')}</h3><${Bars} title=${t('stats.fault')} rows=${[{ name: t('fault.destination'), n: s.fault_destination }, { name: t('fault.pipeline'), n: s.fault_pipeline }]} /></section>
    <section class="card"><h2>${t('stats.success')}</h2>${r.letters ? html`<${Bars} title=${t('stats.success')} rows=${[{ name: t('redrive.resolved'), n: r.resolved }, { name: t('redrive.failed'), n: r.failed }, { name: t('redrive.waiting'), n: r.waiting }]} />` : html`<p class="soft">${t('stats.none_requeued')}</p>`}</section>
    <section class="card"><h2>${t('stats.oldest')}</h2>${s.oldest.length ? html`<${Bars} second title=${t('stats.oldest')} what=${t('stats.age')} show=${duration} linkOf=${(row) => link(['dead', row.id])}
      rows=${s.oldest.slice(0, OLDEST).map((l) => ({ id: l.id, name: `${l.id} · ${l.destination} · ${l.event_type}`, n: Math.max(0, now - Date.parse(l.first_failed_at)) }))} />` : html`<p class="soft">${t('stats.none_open')}</p>`}</section></div>`;
}

// ---- the screen ----

export function Dead({ query }) {
  const filter = query.get('filter') || '', tab = TABS.includes(query.get('tab')) ? query.get('tab') : 'groups';
  const show = (next) => go(['dead'], { tab, filter, ...next });
  return html`<${Head} title=${t('nav.dead')} sub=${t('dead.sub')} />
    <div class="card"><${FilterBox} kind="letters" value=${filter} placeholder=${t('dead.placeholder')} onChange=${(text) => show({ filter: text })} />
      <div class="acts" role="group" aria-label=${t('dead.tabs')} style=${{ marginTop: '.7rem' }}>${TABS.map((name) => html`<button type="button" class=${name === tab ? 'main' : ''} aria-pressed=${name === tab ? 'true' : 'false'} onClick=${() => show({ tab: name })}>${t('dead.tab.' + name)}</button>`)}</div></div>
    ${tab === 'groups' ? html`<${Groups} filter=${filter} />` : tab === 'letters' ? html`<${Letters} filter=${filter} ...${startOf(query)} key=${filter} />` : html`<${Stats} />`}`;
}
