// My rights, my language and theme; tokens, for admins.
import { html, useEffect, useState } from '../dom.js';
import { enc, get, may, me, post } from '../api.js';
import { lang, language, t } from '../i18n.js';
import { useShared } from '../store.js';
import { theme } from '../theme.js';
import { Act, Chip, Copy, Facts, Head, Table, Time, Trouble } from '../parts.js';
import { Dialog } from '../dialog.js';
import { Reason, ReasonDialog } from '../acts.js';

const ROLES = ['viewer', 'operator', 'admin'];

function Rights({ who }) {
  return html`<section class="card"><h2>${t('settings.rights')}</h2><${Facts} rows=${[[t('settings.name'), who.name], [t('settings.role'), t('role.' + who.role)], [t('settings.reveal'), who.reveal ? t('yes') : t('no')]]} />
    <h3>${t('settings.roles')}</h3><ul class="plain">${ROLES.map((role) => html`<li><${Chip} state=${may(who, role) ? 'ok' : 'none'} text=${t('role.' + role)} /> ${t('role.' + role + '_may')}</li>`)}</ul></section>`;
}

function Look() {
  const chosen = useShared(theme);
  return html`<section class="card"><h2>${t('settings.look')}</h2>
    <label for="language">${t('settings.language')}</label><select id="language" value=${lang()} onChange=${(e) => language.set(e.target.value)}><option value="en" lang="en">English</option><option value="ja" lang="ja">日本語</option></select>
    <label for="theme">${t('settings.theme')}</label><select id="theme" value=${chosen} onChange=${(e) => theme.set(e.target.value)}>${['system', 'light', 'dark'].map((v) => html`<option value=${v}>${t('theme.' + v)}</option>`)}</select></section>`;
}

function NewToken({ onClose }) {
  const [name, setName] = useState(''), [role, setRole] = useState('viewer'), [expires, setExpires] = useState('90d'), [reason, setReason] = useState(''), [made, setMade] = useState(null), [problem, setProblem] = useState(null);
  const run = async (event) => { event.preventDefault(); try { setMade(await post('/tokens', { name, role, expires, reason })); } catch (error) { setProblem(error); } };
  return html`<${Dialog} title=${t('tokens.new')} onClose=${onClose}>${made ? html`<p>${t('tokens.once')}</p><pre tabindex="0">${made.token}</pre><div class="acts"><${Copy} text=${made.token} /><button type="button" class="main" onClick=${onClose}>${t('dialog.close')}</button></div>` : html`<form onSubmit=${run}>
    <label for="token-name">${t('settings.name')}</label><input id="token-name" type="text" required value=${name} onInput=${(e) => setName(e.target.value)} />
    <label for="token-role">${t('settings.role')}</label><select id="token-role" value=${role} onChange=${(e) => setRole(e.target.value)}>${['metrics', ...ROLES].map((r) => html`<option value=${r}>${t('role.' + r)}</option>`)}</select>
    <label for="token-expires">${t('tokens.expires')}</label><input id="token-expires" type="text" value=${expires} onInput=${(e) => setExpires(e.target.value)} />
    <${Reason} value=${reason} onInput=${setReason} id="token-reason" /><${Trouble} problem=${problem} />
    <div class="acts"><button type="button" onClick=${onClose}>${t('dialog.cancel')}</button><button type="submit" class="main">${t('tokens.make')}</button></div></form>`}<//>`;
}

function Tokens({ who }) {
  const [list, setList] = useState(null), [problem, setProblem] = useState(null), [making, setMaking] = useState(false), [revoking, setRevoking] = useState(null);
  const load = () => { if (may(who, 'admin')) get('/tokens').then(setList, setProblem); };
  useEffect(load, [who.name]);
  return html`<section class="card"><div class="spread"><h2>${t('tokens.title')}</h2><${Act} role="admin" onClick=${() => setMaking(true)}>${t('tokens.new')}<//></div>
    ${who.name === 'local' && html`<div class="note">${t('tokens.open_door')}</div>`}<${Trouble} problem=${problem} />
    ${!may(who, 'admin') ? html`<p class="soft">${t('role.needs', { role: t('role.admin') })}</p>` : list && (list.items.length ? html`<${Table} rows=${list.items} keyOf=${(k) => k.id} columns=${[{ name: t('settings.name'), cell: (k) => k.name }, { name: t('settings.role'), cell: (k) => t('role.' + k.role) }, { name: t('col.state'), cell: (k) => html`<${Chip} state=${k.state} />` }, { name: t('tokens.used'), cell: (k) => html`<${Time} at=${k.last_used_at} />` }, { name: t('tokens.expires'), cell: (k) => html`<${Time} at=${k.expires_at} />` }, { name: t('col.why'), wide: true, cell: (k) => k.reason || '–' },
      { name: t('col.do'), cell: (k) => k.state === 'active' && html`<${Act} role="admin" kind="danger" onClick=${() => setRevoking(k)}>${t('tokens.revoke')}<//>` }]} />` : who.name !== 'local' && html`<p class="soft">${t('tokens.none')}</p>`)}
    ${making && html`<${NewToken} onClose=${() => { setMaking(false); load(); }} />`}
    ${revoking && html`<${ReasonDialog} title=${t('tokens.revoke')} danger words=${t('tokens.revoke_words', { name: revoking.name })} run=${(reason) => post(`/tokens/${enc(revoking.id)}/revoke`, { reason })} onClose=${() => { setRevoking(null); load(); }} />`}</section>`;
}

export function Settings() {
  const who = useShared(me);
  return html`<${Head} title=${t('nav.settings')} /><div class="grid"><${Rights} who=${who} /><${Look} /></div><div class="card-gap"></div><${Tokens} who=${who} />`;
}
