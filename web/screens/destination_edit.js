// Define a destination that the store keeps: the usual fields, and the whole definition beside them. What the relay refuses stands at the
// field that it is about.
import { html, useEffect, useRef, useState } from '../dom.js';
import { enc, get, getTagged, may, me, post, put } from '../api.js';
import { useShared } from '../store.js';
import { t } from '../i18n.js';
import { go } from '../router.js';
import { Act, Head, Loading, problemText, Trouble } from '../parts.js';
import { Reason } from '../acts.js';

const START = { http: { url: '' } };
// JSON pointer, kind of value, example
const FIELDS = [['/http/url', 'text', 'https://billing.example/hooks'], ['/http/auth/bearer', 'text', '${HIKYAKU_SECRET_BILLING}'], ['/policy', 'policy'], ['/limits/rate', 'text', '50/s'], ['/limits/concurrency', 'number', '8'], ['/order', 'order'], ['/allow', 'list', '10.20.0.0/16']];

// ---- a definition by pointers ----

const stepsOf = (pointer) => pointer.split('/').slice(1).map((s) => s.replace(/~1/g, '/').replace(/~0/g, '~'));
const at = (value, pointer) => stepsOf(pointer).reduce((v, step) => (v === null || v === undefined ? undefined : v[step]), value);

// A copy with the value there; an empty value is taken away, and so is what it leaves empty.
export function withValue(value, steps, next) {
  const [step, ...rest] = steps;
  if (!steps.length) return next;
  const copy = { ...(value && typeof value === 'object' ? value : {}) };
  const inner = withValue(copy[step], rest, next);
  if (inner === undefined || (rest.length && Object.keys(inner).length === 0)) delete copy[step];
  else copy[step] = inner;
  return copy;
}

function parsed(text) {
  try {
    const value = JSON.parse(text);
    return value && typeof value === 'object' && !Array.isArray(value) ? value : null;
  } catch { return null; }
}

const pretty = (value) => JSON.stringify(value, null, 2);

// ---- what the relay refused: {pointer: words} of the definition; '' is all of it ----

function errorsOf(problem) {
  const found = {};
  for (const e of problem?.errors || []) {
    const pointer = (e.pointer || '').replace(/^#/, '');
    if (pointer === '/destination') found.name = e.detail;
    else if (pointer.startsWith('/definition')) found[pointer.slice('/definition'.length)] = e.detail;
  }
  return found;
}

const known = (pointer) => FIELDS.find(([field]) => pointer === field || pointer.startsWith(field + '/'));

function Wrong({ id, words }) {
  return words ? html`<p class="wrong" id=${id}>${words}</p>` : null;
}

function Field({ field, value, wrong, onInput, policies, off }) {
  const [pointer, kind, example] = field, id = 'f' + pointer.replace(/\//g, '-');
  const more = { id, disabled: off, 'aria-invalid': wrong ? 'true' : undefined, 'aria-describedby': wrong ? id + '-wrong' : undefined };
  const input = kind === 'policy' || kind === 'order'
    ? html`<select ...${more} value=${value ?? ''} onChange=${(e) => onInput(e.target.value || undefined)}><option value="">${t('define.default')}</option>${(kind === 'order' ? ['key', 'none'] : policies).map((v) => html`<option value=${v}>${v}</option>`)}</select>`
    : html`<input type="text" ...${more} inputmode=${kind === 'number' ? 'numeric' : undefined} spellcheck="false" autocomplete="off" placeholder=${example} value=${Array.isArray(value) ? value.join(', ') : value ?? ''}
        onInput=${(e) => onInput(read(kind, e.target.value))} />`;
  return html`<div><label for=${id}>${t('define' + pointer.replace(/\//g, '.'))}</label>${input}<${Wrong} id=${id + '-wrong'} words=${wrong} /></div>`;
}

function read(kind, text) {
  if (text.trim() === '') return undefined;
  if (kind === 'list') return text.split(/[\s,]+/).filter(Boolean);
  return kind === 'number' && /^\d+$/.test(text.trim()) ? Number(text) : text;
}

// ---- the screen ----

function useLoaded(name) {
  const [state, set] = useState({ ready: false, problem: null, etag: null, from: null, version: 0, text: pretty(START), policies: [] });
  const load = async () => {
    try {
      const [list, one] = await Promise.all([get('/policies'), name ? getTagged(`/destinations/${enc(name)}`) : null]);
      const definition = one?.body.definition;
      set({ ready: true, problem: null, etag: one?.etag, from: one?.body.from, version: one?.body.version ?? 0, text: one ? pretty(definition ?? {}) : pretty(START), policies: list.items.map((p) => p.name) });
    } catch (problem) { set((was) => ({ ...was, problem })); }
  };
  useEffect(() => { load(); }, [name]);
  return { ...state, reload: load };
}

function Form({ name, loaded }) {
  const [called, setCalled] = useState(''), [text, setText] = useState(loaded.text), [reason, setReason] = useState(''), [problem, setProblem] = useState(null), [busy, setBusy] = useState(false);
  const seen = useRef(loaded.etag); // what was typed before the first effect ran must stay
  useEffect(() => {
    if (seen.current === loaded.etag) return;
    seen.current = loaded.etag;
    setText(loaded.text);
    setProblem(null);
  }, [loaded.etag]);
  const value = parsed(text), wrong = errorsOf(problem), changed = !name || text !== loaded.text;
  const others = Object.entries(wrong).filter(([pointer]) => pointer !== 'name' && !known(pointer));
  const conflict = problem?.status === 412;
  const why = !name && !called.trim() ? t('define.first_name') : !changed ? t('edit.no_change') : !reason.trim() ? t('reason.first') : '';
  const save = async () => {
    if (why || busy) return;
    setBusy(true);
    setProblem(null);
    try {
      if (name) await put(`/destinations/${enc(name)}`, { definition: text, reason }, loaded.etag);
      else await post('/destinations', { destination: called.trim(), definition: text, reason });
      go(['destinations'], { show: name || called.trim() });
    } catch (error) { setProblem(error); setBusy(false); }
  };
  const wrongAt = (pointer) => wrong[pointer] || Object.entries(wrong).find(([p]) => p.startsWith(pointer + '/'))?.[1];
  return html`<form onSubmit=${(e) => { e.preventDefault(); save(); }}>
    ${conflict && html`<div class="problem" role="alert"><p>${t('define.conflict')}</p><p class="acts"><button type="button" onClick=${loaded.reload}>${t('define.reload')}</button></p></div>`}
    ${problem && !conflict && (others.length || !Object.keys(wrong).length) ? html`<div class="problem" role="alert">${others.length ? others.map(([pointer, words]) => html`<p>${pointer && html`<span class="id">${pointer}</span>: `}${words}</p>`) : problemText(problem)}</div>` : null}
    ${problem && Object.keys(wrong).length > 0 && html`<p class="sr" role="alert">${t('define.wrong', { n: Object.keys(wrong).length })}</p>`}
    <div class="grid"><section class="card">
      ${!name && html`<label for="define-name">${t('settings.name')}</label><input id="define-name" type="text" value=${called} autocomplete="off" spellcheck="false" placeholder="billing" aria-invalid=${wrong.name ? 'true' : undefined} aria-describedby=${wrong.name ? 'define-name-wrong' : undefined} onInput=${(e) => setCalled(e.target.value)} /><${Wrong} id="define-name-wrong" words=${wrong.name} />`}
      ${FIELDS.map((field) => html`<${Field} key=${field[0]} field=${field} off=${!value} policies=${loaded.policies} value=${value ? at(value, field[0]) : ''} wrong=${wrongAt(field[0])} onInput=${(next) => setText(pretty(withValue(value, stepsOf(field[0]), next)))} />`)}
      ${!value && html`<p class="hint">${t('define.not_json')}</p>`}
      <p class="hint">${t('define.secrets')} <span class="code">${'${HIKYAKU_SECRET_NAME}'}</span>, <span class="code">${'${file:NAME}'}</span></p></section>
    <section class="card"><label for="definition">${t('define.whole')}</label>
      <textarea id="definition" rows="16" spellcheck="false" value=${text} onInput=${(e) => setText(e.target.value)}></textarea>
      <p class="hint">${t('define.whole_hint')}</p>
      <${Reason} value=${reason} onInput=${setReason} id="define-reason" />
      <p class="acts"><a class="button" href="#/destinations">${t('dialog.cancel')}</a><${Act} role="admin" kind="main" why=${why} onClick=${save}>${name ? t('define.save') : t('define.create')}<//></p></section></div></form>`;
}

export function DefineDestination({ name }) {
  const loaded = useLoaded(name), who = useShared(me);
  const title = name ? t('define.title', { name }) : t('define.new');
  if (!loaded.ready) return html`<${Head} title=${title} />${loaded.problem ? html`<${Trouble} problem=${loaded.problem} />` : html`<${Loading} />`}`;
  if (!may(who, 'admin')) return html`<${Head} title=${title} /><div class="note">${t('role.needs', { role: t('role.admin') })}</div>`;
  if (loaded.from === 'file') return html`<${Head} title=${title} /><div class="note">${t('define.of_file')}</div>`;
  return html`<${Head} title=${title} sub=${name ? t('letter.version', { n: loaded.version }) : t('define.sub')} /><${Form} name=${name} loaded=${loaded} />`;
}
