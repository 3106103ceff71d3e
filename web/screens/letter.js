// One dead letter: why it died in the receiver's words, what was tried, its payload, and everything that can be done with it.
import { html, useState } from '../dom.js';
import { enc, get, me, post } from '../api.js';
import { useLive } from '../live.js';
import { useShared } from '../store.js';
import { bytes, known, num, t } from '../i18n.js';
import { go, link } from '../router.js';
import { Act, Chip, Copy, Facts, Head, Loading, Table, Text, Time, Trouble } from '../parts.js';
import { ActDialog, Reason, ReasonDialog } from '../acts.js';
import { Dialog } from '../dialog.js';
import { asCurl, Attempt, headerLines } from './attempt.js';
import { letterActs } from './letter_acts.js';
import { Edit } from './letter_edit.js';

// ---- send once ----

function SendOnce({ letter, onClose }) {
  const [result, set] = useState(null), [sure, setSure] = useState(false), [reason, setReason] = useState(''), [problem, setProblem] = useState(null), [busy, setBusy] = useState(false);
  const ready = reason.trim() && !busy && (!letter.possibly_delivered || sure);
  const run = async (event) => {
    event.preventDefault();
    if (!ready) return;
    setBusy(true);
    try { set(await post(`/dead-letters/${enc(letter.id)}/send`, { reason, ...(sure ? { yes: true } : {}) })); } catch (error) { setProblem(error); setBusy(false); }
  };
  return html`<${Dialog} title=${t('act.send')} onClose=${onClose}>${result ? html`<div aria-live="polite"><p><${Chip} state=${result.ok ? 'sent' : 'failed'} text=${result.ok ? t('send.ok') : t('send.failed')} />
      ${' ' + (result.error || (result.status ? `HTTP ${result.status}` : ''))}</p>
    ${result.response_body && html`<${Text} text=${result.response_body} label=${t('attempt.body')} />`}
    <div class="acts"><button type="button" class="main" onClick=${onClose}>${t('dialog.close')}</button></div></div>` : html`<form onSubmit=${run}>
    <p>${t('act.send_words', { url: letter.url || letter.destination })}</p>
    ${letter.possibly_delivered && html`<label class="inline"><input type="checkbox" checked=${sure} onChange=${(e) => setSure(e.target.checked)} />${t('send.sure')}</label>`}
    <${Reason} value=${reason} onInput=${setReason} id="send-reason" /><${Trouble} problem=${problem} />
    <div class="acts"><button type="button" onClick=${onClose}>${t('dialog.cancel')}</button><button type="submit" class="main" aria-disabled=${ready ? undefined : 'true'}>${t('act.send')}</button></div></form>`}<//>`;
}

// ---- masked fields ----

function Reveal({ onReason }) {
  const who = useShared(me), [open, set] = useState(false);
  return html`<${Act} role="viewer" why=${who.reveal ? '' : t('reveal.no')} onClick=${() => set(true)}>${t('reveal.button')}<//>
    ${open && html`<${ReasonDialog} title=${t('reveal.button')} words=${t('reveal.words')} run=${async (reason) => onReason(reason)} onClose=${() => set(false)} />`}`;
}

// ---- why it died: the receiver's answer first, the rest on demand ----

function Words({ detail }) {
  if (!detail) return null;
  let parsed = null;
  try { parsed = JSON.parse(detail); } catch { /* plain text */ }
  const body = parsed && typeof parsed === 'object' ? parsed.response_body : null;
  return html`${body && html`<${Text} text=${String(body)} label=${t('attempt.body')} />`}
    <details><summary>${t('letter.detail')}</summary><${Text} text=${detail} label=${t('letter.detail')} /></details>`;
}

// ---- the screen ----

function Payload({ letter, onReveal }) {
  const text = letter.payload ?? letter.payload_base64;
  return html`<section class="card"><div class="spread"><h2>${t('letter.payload')} <span class="soft">${t('letter.version', { n: letter.payload_version })} · ${bytes(letter.payload_bytes)}${letter.payload === undefined || letter.payload === null ? ' · base64' : ''}</span></h2>
    <div class="acts">${letter.masked && html`<${Reveal} onReason=${onReveal} />`}<${Copy} text=${text || ''} /></div></div>
    ${letter.masked && html`<p class="hint">${t('reveal.masked')}</p>`}
    <${Text} text=${text} cut=${letter.payload_cut} label=${t('letter.payload')} />
    ${letter.headers && html`<h3>${t('letter.headers')}</h3><pre tabindex="0" aria-label=${t('letter.headers')}>${headerLines(letter.headers).map(([n, v]) => `${n}: ${v}`).join('\n')}</pre>`}</section>`;
}

function History({ letter }) {
  return html`<div class="grid"><section class="card"><h2>${t('letter.attempts', { n: letter.attempts_made.length })}</h2>
      ${letter.attempts_made.length ? letter.attempts_made.map((a) => html`<${Attempt} attempt=${a} url=${letter.url} payload=${letter.payload} />`) : html`<p class="soft">${t('letter.no_attempts')}</p>`}</section>
    <section class="card"><h2>${t('letter.acts')}</h2>${letter.acts.length ? html`<${Table} rows=${letter.acts} keyOf=${(a) => a.id} columns=${[
      { name: t('col.when'), tight: true, cell: (a) => html`<${Time} at=${a.at} />` }, { name: t('col.who'), cell: (a) => a.actor }, { name: t('col.act'), cell: (a) => known('audit.' + a.act, a.act) }, { name: t('col.why'), wide: true, cell: (a) => a.reason || '–' }]} />`
      : html`<p class="soft">${t('letter.no_acts')}</p>`}
      ${letter.versions.length > 0 && html`<h3>${t('letter.versions')}</h3><${Table} rows=${letter.versions} keyOf=${(v) => v.version} columns=${[
        { name: t('col.version'), n: true, cell: (v) => html`<a href=${link(['dead', letter.id], { version: v.version })}>${v.version}</a>` }, { name: t('col.when'), cell: (v) => html`<${Time} at=${v.replaced_at} />` }, { name: t('col.who'), cell: (v) => v.actor }, { name: t('col.why'), cell: (v) => v.reason }]} />`}</section></div>`;
}

export function Letter({ id, query }) {
  const [act, setAct] = useState(null), [sending, setSending] = useState(false), [noting, setNoting] = useState(false), [revealed, setRevealed] = useState(null);
  const version = query.get('version'), editing = query.get('edit') === 'yes';
  const { data: letter, problem, reload } = useLive((signal) => get(`/dead-letters/${enc(id)}`, { payload_version: version, ...(revealed ? { reveal: true, reason: revealed } : {}) }, signal), [id, version, revealed], revealed || editing ? null : ['state', 'redrive', 'job']);
  if (!letter) return problem ? html`<${Head} title=${t('letter.title', { id })} /><${Trouble} problem=${problem} />` : html`<${Loading} />`;
  const acts = letterActs(), open = letter.status === 'failed';
  const notOpen = open ? '' : t('letter.not_open', { state: known('state.' + letter.status, letter.status) });
  const old = version && Number(version) !== letter.present_version;
  if (editing) return html`<${Edit} letter=${letter} onClose=${() => go(['dead', letter.id])} onSaved=${() => { go(['dead', letter.id]); reload(); }} />`;
  return html`<${Head} title=${t('letter.title', { id: letter.id })} sub=${html`<${Chip} state=${letter.status} /> ${letter.event_type} → ${letter.destination} ${letter.possibly_delivered ? html`<${Chip} state="warning" text=${t('letter.maybe')} />` : ''}`}>
      <${Act} why=${notOpen} onClick=${() => go(['dead', letter.id], { edit: 'yes' })}>${t('act.edit')}<//>
      <${Act} why=${notOpen} kind="main" onClick=${() => setAct(acts.requeue)}>${t('act.requeue')}<//>
      <${Act} why=${notOpen} onClick=${() => setSending(true)}>${t('act.send')}<//>
      <${Act} why=${notOpen} onClick=${() => setAct(acts.resolve)}>${t('act.resolve')}<//>
      ${letter.status === 'discarded' ? html`<${Act} onClick=${() => setAct(acts.restore)}>${t('act.restore')}<//>` : html`<${Act} why=${notOpen} kind="danger" onClick=${() => setAct(acts.discard)}>${t('act.discard')}<//>`}
      <${Act} onClick=${() => setNoting(true)}>${t('act.note')}<//><//>
    ${old && html`<div class="note">${t('letter.old_version', { n: version })} <a href=${link(['dead', letter.id])}>${t('letter.present')}</a></div>`}
    ${sending && html`<${SendOnce} letter=${letter} onClose=${() => { setSending(false); reload(); }} />`}
    <section class="card"><p><strong>${letter.error_message || letter.reason_code}</strong></p><${Words} detail=${letter.error_detail} />
      ${letter.did_you_mean && html`<div class="note">${t('letter.did_you_mean', { name: letter.did_you_mean })}</div>`}
      ${letter.blocked > 0 && html`<div class="note">${t('letter.blocks', { n: letter.blocked })}</div>`}</section>
    <div class="grid"><section class="card"><h2>${t('letter.facts')}</h2><${Facts} rows=${[
      [t('col.message'), html`<a class="id" href=${link(['messages', letter.message_id])}>${letter.message_id}</a>`],
      [t('col.reason'), html`<span class="id">${letter.reason_code}</span>`], [t('attempt.class'), known('class.' + letter.class, letter.class)], [t('letter.fault'), known('fault.' + letter.fault, letter.fault)],
      [t('col.attempts'), num(letter.attempts)], [t('letter.life'), letter.life > 1 ? num(letter.life) : null], [t('letter.requeues'), letter.requeues ? num(letter.requeues) : null],
      [t('col.key'), letter.message_key], [t('col.correlation'), letter.correlation_id && html`<span class="id">${letter.correlation_id}</span>`], [t('letter.trace'), letter.traceparent && html`<span class="id">${letter.traceparent}</span>`],
      [t('col.created'), html`<${Time} at=${letter.message_created_at} relative=${false} />`], [t('col.first'), html`<${Time} at=${letter.first_failed_at} relative=${false} />`], [t('col.last'), html`<${Time} at=${letter.last_failed_at} relative=${false} />`],
      [t('letter.group'), letter.group && html`<a class="id" href=${link(['dead'], { tab: 'letters', filter: `group:${letter.group}` })}>${letter.group}</a>`],
      [t('letter.redrive'), letter.redrive && html`<a href=${link(['redrives', letter.redrive])}>${letter.redrive}</a>`], [t('letter.resolution'), letter.resolution], [t('letter.url'), letter.url && html`<span class="id">${letter.url}</span>`]]} />
      ${letter.url && html`<p class="acts"><${Copy} text=${asCurl(letter.url, headerLines(letter.headers), letter.payload)}>${t('attempt.curl')}<//></p>`}</section>
    <${Payload} letter=${letter} onReveal=${setRevealed} /></div>
    <${History} letter=${letter} />
    ${act && html`<${ActDialog} act=${act} which=${{ ids: [letter.id] }} example=${`${letter.message_id} · ${letter.event_type} → ${letter.destination}`} onClose=${() => { setAct(null); reload(); }} />`}
    ${noting && html`<${NoteDialog} letter=${letter} onClose=${() => { setNoting(false); reload(); }} />`}`;
}

function NoteDialog({ letter, onClose }) {
  return html`<${ReasonDialog} title=${t('act.note')} words=${t('act.note_words')} run=${(text) => post(`/dead-letters/${enc(letter.id)}/note`, { text })} onClose=${onClose} />`;
}
