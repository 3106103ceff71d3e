// Search messages with the filter language; cancel those that match, or bring cancelled ones back.
import { html, useEffect, useState } from '../dom.js';
import { get } from '../api.js';
import { onEvents } from '../live.js';
import { num, t } from '../i18n.js';
import { go, link } from '../router.js';
import { Act, Chip, Empty, Head, Loading, Table, Time, Trouble, useRows } from '../parts.js';
import { ActDialog } from '../acts.js';
import { Pages, pageSize, startOf } from '../pages.js';
import { FilterBox, rowsInSight } from '../filter_box.js';

const QUICK = ['pending', 'retrying', 'processing', 'sent', 'dead', 'cancelled'];

function usePage(filter, after) {
  const [state, set] = useState({ items: null, next: null, looked: null, problem: null });
  useEffect(() => {
    let ended = false, timer = 0;
    const load = () => get('/messages', { filter, limit: pageSize(), after }).then((found) => { if (!ended) { rowsInSight.set(found.items); set({ ...found, problem: null }); } }, (problem) => !ended && set({ items: [], next: null, looked: null, problem }));
    load();
    const off = onEvents(['state'], () => { clearTimeout(timer); timer = setTimeout(load, 800); });
    return () => { ended = true; clearTimeout(timer); off(); };
  }, [filter, after]);
  return state;
}

const CANCELLED = /\bstatus:cancelled\b/, ENDED = /\bstatus:(sent|dead|processing)\b/;

export function Messages({ query }) {
  const filter = query.get('filter') || '', [act, setAct] = useState(null);
  const { after, from } = startOf(query), { items, next, looked, problem } = usePage(filter, after);
  const at = useRows(items || [], (m) => go(['messages', m.message_id]));
  const show = (text) => go(['messages'], { filter: text });
  const cancel = { title: t('act.cancel'), words: t('act.cancel_words'), path: '/messages/cancel', danger: true, undo: { path: '/messages/restore' } };
  const restore = { title: t('act.restore_messages'), words: t('act.restore_messages_words'), path: '/messages/restore' };
  const withStatus = (name) => (filter.replace(/\s*\bstatus:\S+/g, '') + ` status:${name}`).trim();
  return html`<${Head} title=${t('nav.messages')} sub=${t('messages.sub')} />
    <div class="card"><${FilterBox} kind="messages" value=${filter} placeholder=${t('messages.placeholder')} onChange=${show} />
      <div class="acts" role="group" aria-label=${t('messages.quick')} style=${{ marginTop: '.7rem' }}>${QUICK.map((name) => html`<button type="button" aria-pressed=${filter.includes(`status:${name}`) ? 'true' : 'false'} class=${filter.includes(`status:${name}`) ? 'main' : ''} onClick=${() => show(withStatus(name))}>${t('state.' + name)}</button>`)}</div></div>
    <${Trouble} problem=${problem} />
    ${!items ? html`<${Loading} />` : !items.length ? !problem && html`<div class="card"><${Empty} title=${t('messages.none')}>${filter ? t('messages.none_filter') : t('messages.none_words')}<//></div>` : html`<section class="card">
      <div class="spread"><p class="soft">${next || after ? '' : t('messages.shown', { n: items.length })}</p><div class="acts">
        ${CANCELLED.test(filter) ? html`<${Act} onClick=${() => setAct(restore)}>${t('act.restore_messages')}<//>` : html`<${Act} kind="danger" why=${!filter ? t('messages.filter_first') : ENDED.test(filter) ? t('messages.cannot_cancel') : ''} onClick=${() => setAct(cancel)}>${t('act.cancel_all')}<//>`}</div></div>
      <${Table} at=${at} keyOf=${(m) => m.message_id + m.destination + m.status} onOpen=${(m) => go(['messages', m.message_id])} rows=${items} columns=${[
        { name: t('col.message'), names: true, cell: (m) => html`<a class="id" href=${link(['messages', m.message_id])}>${m.message_id}</a>` },
        { name: t('col.state'), cell: (m) => html`<${Chip} state=${m.status} />` },
        { name: t('col.type'), cell: (m) => m.event_type },
        { name: t('col.destination'), cell: (m) => m.destination || html`<span class="soft">${t('messages.by_route')}</span>` },
        { name: t('col.attempts'), n: true, extra: true, cell: (m) => num(m.attempts) },
        { name: t('col.next'), tight: true, cell: (m) => html`<${Time} at=${m.next_attempt_at} />` },
        { name: t('col.created'), tight: true, cell: (m) => html`<${Time} at=${m.created_at} />` },
        { name: t('col.last_error'), wide: true, cell: (m) => html`<span class="words">${m.last_error || '–'}</span>` },
      ]} />
      <${Pages} from=${from} shown=${items.length} looked=${looked} next=${next} to=${(n, cursor) => link(['messages'], { filter, from: n > 1 ? n : '', after: cursor })} /></section>`}
    ${act && html`<${ActDialog} act=${act} which=${{ filter }} onClose=${() => { setAct(null); show(filter); }} />`}`;
}
