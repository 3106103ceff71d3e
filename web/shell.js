// The frame around every screen: where you are, who you are, and whether what you see is live.
import { html, useEffect, useState } from './dom.js';
import { getTogether, logOut, me, reachable } from './api.js';
import { connection, useLive } from './live.js';
import { lang, language, num, t } from './i18n.js';
import { noteStatus } from './recent.js';
import { link, place } from './router.js';
import { useShared } from './store.js';
import { Help, useKeys } from './keys.js';

export const Logo = () => html`<svg viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="7" fill="#b3341f" /><path d="M8 6v20M8 16h9q6 0 6 10M23 6q0 6-6 10" fill="none" stroke="#fff" stroke-width="3.4" stroke-linecap="round" /></svg>`;

const PLACES = ['overview', 'dead', 'messages', 'redrives', 'destinations', 'policies', 'alerts', 'audit', 'relays', 'settings'];

function Navigation({ here }) {
  const { data } = useLive(async () => {
    const [status, alerts] = await Promise.all([getTogether('/status'), getTogether('/alerts')]);
    noteStatus(status);
    return { dead: status.dead?.n, alerts: alerts.items.filter((a) => a.status === 'firing').length };
  }, [], ['state', 'alert']);
  useEffect(() => document.querySelector('.side nav a[aria-current]')?.scrollIntoView({ inline: 'center', block: 'nearest' }), [here]); // on a phone they are wider than the screen
  const count = { dead: data?.dead, alerts: data?.alerts };
  return html`<nav aria-label=${t('nav.label')}>${PLACES.map((name) => html`<a href=${link(name === 'overview' ? [] : [name])} aria-current=${here === name ? 'page' : undefined}>
    <span>${t('nav.' + name)}</span>${count[name] > 0 && html`<span class="count" aria-label=${t('nav.count', { n: count[name] })}>${num(count[name])}</span>`}</a>`)}</nav>`;
}

function Live() {
  const state = useShared(connection), there = useShared(reachable);
  const word = !there ? 'lost' : state === 'live' ? 'on' : 'connecting';
  return html`<span class="live" data-state=${word} aria-live="polite"><span aria-hidden="true">${word === 'on' ? '●' : word === 'lost' ? '✕' : '◌'}</span> ${t('live.' + word)}</span>`;
}

const otherLanguage = () => (lang() === 'ja' ? 'en' : 'ja');

export function Shell({ children }) {
  const [help, setHelp] = useState(false), at = useShared(place), who = useShared(me), there = useShared(reachable);
  useKeys(() => setHelp(true));
  const here = at.parts[0] || 'overview';
  useEffect(() => { document.title = `${t(PLACES.includes(here) ? 'nav.' + here : 'nav.overview')} · hikyaku`; }, [here, lang()]);
  return html`<a class="skip" href="#main" onClick=${(e) => { e.preventDefault(); document.getElementById('main').focus(); }}>${t('nav.skip')}</a>
    <div class="frame"><header class="side"><a class="brand" href="#/"><${Logo} />hikyaku</a><${Navigation} here=${here} />
      <div class="foot"><${Live} /><span>${t('who', { name: who.name, role: t('role.' + who.role) })}</span>
        <span><button type="button" class="plain" lang=${otherLanguage()} onClick=${() => language.set(otherLanguage())}>${lang() === 'ja' ? 'English' : '日本語'}</button>
        <button type="button" class="plain" onClick=${() => setHelp(true)}>${t('keys.title')}</button></span>
        ${who.name !== 'local' && html`<span><button type="button" class="plain" onClick=${logOut}>${t('login.out')}</button></span>`}</div></header>
      <main id="main" tabindex="-1">${!there && html`<div class="banner" role="alert">${t('live.banner')}</div>`}${children}</main></div>
    ${help && html`<${Help} onClose=${() => setHelp(false)} />`}`;
}
