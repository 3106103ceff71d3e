// Log in with a token. It is sent once, and a cookie that scripts cannot read stands for it.
import { html, useState } from '../dom.js';
import { logIn } from '../api.js';
import { lang, language, t } from '../i18n.js';
import { problemText } from '../parts.js';
import { Logo } from '../shell.js';

function wordsOf(problem) {
  if (problem.code === 'TOKEN_EXPIRED') return t('login.expired');
  if (problem.code === 'TOKEN_REVOKED') return t('login.revoked');
  if (problem.status === 401) return t('login.wrong');
  if (problem.status === 429) return t('login.wait');
  return problemText(problem);
}

export function Login() {
  const [token, setToken] = useState(''), [problem, setProblem] = useState(null), [busy, setBusy] = useState(false);
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    try { await logIn(token); } catch (error) { setProblem(error); setBusy(false); }
  };
  return html`<main class="login"><h1 class="brand"><${Logo} />hikyaku</h1><div class="card"><form onSubmit=${submit}>
    <p>${t('login.words')}</p>
    <label for="token">${t('login.token')}</label>
    <input id="token" type="password" value=${token} onInput=${(e) => setToken(e.target.value)} autocomplete="current-password" autofocus required />
    ${problem && html`<div class="problem" role="alert">${wordsOf(problem)}</div>`}
    <p class="acts"><button type="submit" class="main" aria-disabled=${busy ? 'true' : undefined}>${t('login.in')}</button></p></form>
    <p class="hint">${t('login.hint')} <span class="code">hikyaku token create NAME --role operator</span></p></div>
    <button type="button" class="plain" onClick=${() => language.set(lang() === 'ja' ? 'en' : 'ja')}>${lang() === 'ja' ? 'English' : '日本語'}</button></main>`;
}
