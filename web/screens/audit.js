// Who did what, when and why; the chain that proves that nobody changed it.
import { html, useEffect, useState } from '../dom.js';
import { get } from '../api.js';
import { useLive } from '../live.js';
import { known, num, t } from '../i18n.js';
import { go, link } from '../router.js';
import { Chip, Empty, Facts, Head, Loading, Table, Text, Time, Trouble } from '../parts.js';
import { Pages, pageSize, startOf } from '../pages.js';

function Verify() {
  const [state, set] = useState(null);
  const run = () => { set({}); get('/audit/verify').then(set, (problem) => set({ problem })); };
  return html`<button type="button" onClick=${run}>${t('audit.verify')}</button>
    ${state && state.problem && html`<${Trouble} problem=${state.problem} />`}
    ${state && state.ok !== undefined && html`<span aria-live="polite"><${Chip} state=${state.ok ? 'ok' : 'fail'} text=${state.ok ? t('audit.whole', { n: state.rows }) : t('audit.broken', { id: state.bad_id })} /></span>`}`;
}

function One({ id }) {
  const { data: a, problem } = useLive((signal) => get(`/audit/${id}`, {}, signal), [id], [], 600000);
  if (!a) return problem ? html`<${Trouble} problem=${problem} />` : html`<${Loading} />`;
  return html`<section class="card"><div class="spread"><h2>${known('audit.' + a.act, a.act)}</h2><a href=${link(['audit'])}>${t('dialog.close')}</a></div><${Facts} rows=${[[t('col.when'), html`<${Time} at=${a.at} relative=${false} />`], [t('col.who'), a.actor], [t('col.why'), a.reason], [t('col.destination'), a.destination], [t('col.filter'), a.filter && html`<span class="id">${a.filter}</span>`], ['jq', a.jq && html`<span class="id">${a.jq}</span>`],
    [t('col.letters'), a.letters ? num(a.letters) : null], [t('audit.messages'), a.messages ? num(a.messages) : null], [t('col.redrive'), a.redrive && html`<a href=${link(['redrives', a.redrive])}>${a.redrive}</a>`], [t('col.letter'), a.letter && html`<a href=${link(['dead', a.letter])}>${a.letter}</a>`], [t('audit.before'), a.before], [t('audit.after'), a.after], [t('audit.hash'), html`<span class="id">${a.hash}</span>`]]} />
    ${a.detail && html`<${Text} text=${a.detail} label=${t('audit.detail')} />`}
    ${a.items?.length > 0 && html`<${Table} rows=${a.items} columns=${[{ name: t('col.letter'), cell: (i) => (i.letter ? html`<a href=${link(['dead', i.letter])}>${i.letter}</a>` : '–') }, { name: t('col.message'), cell: (i) => html`<span class="id">${i.message_id || '–'}</span>` }, { name: t('audit.before'), cell: (i) => i.before }, { name: t('audit.after'), cell: (i) => i.after }]} />`}</section>`;
}

export function Audit({ query }) {
  const by = query.get('by') || '', id = query.get('id'), { after, from } = startOf(query), [state, set] = useState({ items: null, next: null, problem: null }), [text, setText] = useState(by);
  useEffect(() => {
    const abort = new AbortController();
    get('/audit', { limit: pageSize(), by, after }, abort.signal).then((found) => set({ ...found, problem: null }), (problem) => { if (problem.name !== 'AbortError') set((was) => ({ ...was, items: was.items || [], problem })); });
    return () => abort.abort();
  }, [by, after]);
  return html`<${Head} title=${t('nav.audit')} sub=${t('audit.sub')}><${Verify} /><//>${id && html`<${One} id=${id} key=${id} />`}
    <div class="card"><form class="row" role="search" onSubmit=${(e) => { e.preventDefault(); go(['audit'], { by: text.trim() }); }}><input id="filter" type="search" value=${text} onInput=${(e) => setText(e.target.value)} aria-label=${t('audit.by')} placeholder=${t('audit.by')} /></form></div>
    <${Trouble} problem=${state.problem} />
    ${!state.items ? html`<${Loading} />` : !state.items.length ? html`<div class="card"><${Empty} title=${t('audit.none')}>${t('audit.none_words')}<//></div>` : html`<section class="card"><${Table} rows=${state.items} keyOf=${(a) => a.id} onOpen=${(a) => go(['audit'], { by, after, from: from > 1 ? from : '', id: a.id })} columns=${[
      { name: t('col.when'), tight: true, cell: (a) => html`<${Time} at=${a.at} />` }, { name: t('col.who'), cell: (a) => a.actor }, { name: t('col.act'), cell: (a) => html`<a href=${link(['audit'], { by, id: a.id })}>${known('audit.' + a.act, a.act)}</a>` },
      { name: t('audit.about'), cell: (a) => (a.letter ? html`<a href=${link(['dead', a.letter])}>${t('letter.title', { id: a.letter })}</a>` : a.redrive ? html`<a href=${link(['redrives', a.redrive])}>${t('redrive.title', { id: a.redrive })}</a>` : a.letters ? t('audit.n_letters', { n: a.letters }) : a.messages ? t('audit.n_messages', { n: a.messages }) : a.destination || a.message_id || (a.filter ? html`<span class="id">${a.filter}</span>` : '–')) }, { name: t('col.why'), wide: true, cell: (a) => html`<span class="words">${a.reason || '–'}</span>` }]} />
      <${Pages} from=${from} shown=${state.items.length} next=${state.next} to=${(n, cursor) => link(['audit'], { by, from: n > 1 ? n : '', after: cursor })} /></section>`}`;
}
