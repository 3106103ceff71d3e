// Edit a payload: the difference and what the rules say, as you type; somebody else's change is never overwritten.
import { html, useEffect, useState } from '../dom.js';
import { enc, getTagged, put } from '../api.js';
import { t } from '../i18n.js';
import { Diff, Head, indent, Loading, problemText, Trouble } from '../parts.js';
import { Reason } from '../acts.js';

const PAUSE_MS = 350;

export function Edit({ letter, onClose, onSaved }) {
  const [loaded, setLoaded] = useState(null), [text, setText] = useState(''), [reason, setReason] = useState('');
  const [plan, setPlan] = useState(null), [wrong, setWrong] = useState(null), [problem, setProblem] = useState(null), [theirs, setTheirs] = useState(null), [busy, setBusy] = useState(false);
  const path = `/dead-letters/${enc(letter.id)}/payload`;
  const load = () => getTagged(path);
  useEffect(() => { load().then((got) => { setLoaded(got); setText(got.body.payload ?? ''); }, setProblem); }, []);
  useEffect(() => {
    if (!loaded || theirs) return undefined;
    if (text === loaded.body.payload) { setPlan(null); setWrong(null); return undefined; }
    const timer = setTimeout(() => put(path, { payload: text, dry_run: true }, loaded.etag).then((answer) => { setPlan(answer); setWrong(null); }, (error) => { setPlan(null); if (error.status === 412) conflict(); else setWrong(error); }), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text, loaded, theirs]);
  const conflict = async () => { try { setTheirs(await load()); } catch (error) { setProblem(error); } };
  const save = async (event) => {
    event.preventDefault();
    if (busy || !reason.trim() || !plan) return;
    setBusy(true);
    try { await put(path, { payload: text, reason }, loaded.etag); onSaved(); } catch (error) { setBusy(false); if (error.status === 412) conflict(); else setProblem(error); }
  };
  const takeTheirs = () => { setText(theirs.body.payload ?? ''); setLoaded(theirs); setTheirs(null); };
  const keepMine = () => { setLoaded(theirs); setTheirs(null); };
  if (!loaded) return problem ? html`<${Trouble} problem=${problem} />` : html`<${Loading} />`;
  if (loaded.body.payload === undefined) return html`<div class="problem">${t('edit.binary')}</div>`;
  return html`<${Head} title=${t('edit.title', { id: letter.id })} sub=${letter.error_message || letter.reason_code} />
    ${theirs && html`<div class="problem" role="alert"><p>${t('edit.conflict', { n: theirs.body.payload_version })}</p><pre>${theirs.body.payload}</pre>
      <p class="acts"><button type="button" onClick=${takeTheirs}>${t('edit.take_theirs')}</button><button type="button" onClick=${keepMine}>${t('edit.keep_mine')}</button></p></div>`}
    <form onSubmit=${save}><div class="grid"><section class="card"><label for="payload">${t('letter.payload')} <span class="soft">${t('letter.version', { n: loaded.body.payload_version })}</span></label>
        <textarea id="payload" rows="18" spellcheck="false" value=${text} onInput=${(e) => setText(e.target.value)}></textarea>
        <p class="acts"><button type="button" onClick=${() => setText(indent(text))}>${t('edit.indent')}</button></p></section>
      <section class="card"><h2>${t('edit.diff')}</h2>
        ${wrong && html`<div class="problem" role="alert">${problemText(wrong)}</div>`}
        ${plan ? html`${plan.same_values && html`<p class="hint">${t('edit.same_values')}</p>`}<${Diff} text=${plan.diff} />` : !wrong && html`<p class="soft">${t('edit.no_change')}</p>`}
        <${Reason} value=${reason} onInput=${setReason} id="edit-reason" /><${Trouble} problem=${problem} />
        <p class="acts"><button type="button" onClick=${onClose}>${t('dialog.cancel')}</button><button type="submit" class="main" aria-disabled=${!plan || !reason.trim() || busy || theirs ? 'true' : undefined}>${t('edit.save')}</button></p></section></div></form>`;
}
