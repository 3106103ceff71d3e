// The filter language (docs/filters.md) in one line, with completion of its terms and of values that are known.
import { html, useEffect, useLayoutEffect, useRef, useState } from './dom.js';
import { get } from './api.js';
import { t } from './i18n.js';
import { shared } from './store.js';

const LETTER_TERMS = ['destination', 'type', 'reason', 'class', 'fault', 'group', 'status', 'id', 'correlation', 'key', 'age', 'older', 'newer', 'since', 'before', 'redrive', 'payload.', 'text'];
const MESSAGE_TERMS = ['destination', 'type', 'status', 'key', 'correlation', 'age', 'older', 'newer', 'since', 'before', 'payload.', 'text'];
const AGES = ['5m', '1h', '6h', '24h', '7d'], SIGNED = ['>', '<'].flatMap((sign) => AGES.map((age) => sign + age));
const SHORT = { dest: 'destination' };
const VALUES = {
  letters: { status: ['failed', 'retrying', 'resolved', 'discarded', 'any'], class: ['transient', 'rate_limit', 'auth', 'permanent', 'unknown'], fault: ['destination', 'pipeline'], age: SIGNED, older: AGES, newer: AGES },
  messages: { status: ['pending', 'processing', 'retrying', 'sent', 'dead', 'cancelled', 'any'], age: SIGNED, older: AGES, newer: AGES },
};

let names = null; // destinations and reasons, asked for once

async function loadNames() {
  if (names) return names;
  const [destinations, reasons] = await Promise.all([get('/destinations'), get('/dead-letters/reasons')]);
  names = { destination: destinations.items.map((d) => d.name), reason: reasons.items.map((r) => r.reason_code) };
  return names;
}

const quoted = (value) => (/[\s"]/.test(value) ? '"' + value.replace(/["\\]/g, '\\$&') + '"' : value);

// Values of the rows that the screen shows: what somebody looks for is often in sight.
export const rowsInSight = shared([]);
const FIELDS = { type: 'event_type', key: 'message_key', correlation: 'correlation_id', id: 'message_id', group: 'group' };
const inSight = (term) => (FIELDS[term] ? [...new Set(rowsInSight.get().map((row) => row[FIELDS[term]]).filter(Boolean))].sort() : []);

// What the word before the cursor may become: [{text, hint}]
function suggest(kind, text, cursor) {
  const word = text.slice(0, cursor).match(/\S*$/)[0], colon = word.indexOf(':');
  if (colon < 0) return (kind === 'letters' ? LETTER_TERMS : MESSAGE_TERMS).filter((term) => term.startsWith(word.toLowerCase()))
    .map((term) => ({ text: term.endsWith('.') ? term : term + ':', hint: t('filter.' + term.replace('.', '')), word }));
  const term = word.slice(0, colon), start = word.slice(colon + 1).toLowerCase();
  const values = VALUES[kind][term] || (names && names[SHORT[term] || term]) || inSight(term);
  return values.filter((v) => v.toLowerCase().startsWith(start) && v.toLowerCase() !== start).slice(0, 12).map((v) => ({ text: `${term}:${quoted(v)} `, hint: '', word }));
}

export function FilterBox({ kind, value, onChange, placeholder }) {
  const [text, setText] = useState(value), [cursor, setCursor] = useState(value.length), [open, setOpen] = useState(false), [at, setAt] = useState(-1), [, again] = useState(0);
  const box = useRef(null), moved = useRef(false);
  useEffect(() => { setText(value); setCursor(value.length); }, [value]);
  // Only where we have put the cursor: what is typed on meanwhile has moved it further.
  useLayoutEffect(() => { if (moved.current) box.current.setSelectionRange(cursor, cursor); moved.current = false; });
  const choices = open ? suggest(kind, text, cursor) : [];
  const submit = (event) => { event?.preventDefault(); setOpen(false); onChange(text.trim()); };
  const take = (choice) => {
    const from = cursor - choice.word.length;
    setText(text.slice(0, from) + choice.text + text.slice(cursor).trimStart());
    setCursor(from + choice.text.length);
    moved.current = true;
    setAt(-1);
    setOpen(true);
    box.current.focus();
  };
  const onKey = (event) => {
    if (event.key === 'ArrowDown' && choices.length) setAt((at + 1) % choices.length);
    else if (event.key === 'ArrowUp' && choices.length) setAt((at + choices.length - 1) % choices.length);
    else if ((event.key === 'Enter' || event.key === 'Tab') && at >= 0 && choices[at]) take(choices[at]);
    else if (event.key === 'Escape') { setOpen(false); setAt(-1); box.current.blur(); }
    else return;
    event.preventDefault();
  };
  return html`<form class="search" role="search" onSubmit=${submit}>
    <input ref=${box} id="filter" type="search" value=${text} placeholder=${placeholder} aria-label=${t('filter.label')} spellcheck="false" autocomplete="off"
      role="combobox" aria-expanded=${choices.length > 0 ? 'true' : 'false'} aria-controls="filter-choices" aria-autocomplete="list" aria-activedescendant=${at >= 0 ? `choice-${at}` : undefined}
      onInput=${(e) => { setText(e.target.value); setCursor(e.target.selectionStart); setAt(-1); setOpen(true); }} onFocus=${() => { setOpen(true); loadNames().then(() => again((n) => n + 1), () => {}); }}
      onBlur=${() => setTimeout(() => setOpen(false), 150)} onKeyDown=${onKey} />
    ${choices.length > 0 && html`<ul id="filter-choices" role="listbox" aria-label=${t('filter.choices')}>${choices.map((c, i) => html`<li id=${`choice-${i}`} role="option" aria-selected=${i === at ? 'true' : 'false'}
      onMouseDown=${(e) => { e.preventDefault(); take(c); }}><span class="code">${c.text}</span><small>${c.hint}</small></li>`)}</ul>`}
  </form>`;
}
