// Keys that work everywhere: / to search, g and a letter to go somewhere, ? for help.
import { useEffect, html } from './dom.js';
import { go } from './router.js';
import { t } from './i18n.js';
import { isTyping } from './parts.js';
import { Dialog } from './dialog.js';

export const PLACES = [['o', []], ['d', ['dead']], ['m', ['messages']], ['r', ['redrives']], ['e', ['destinations']], ['p', ['policies']], ['a', ['alerts']], ['u', ['audit']], ['l', ['relays']], ['s', ['settings']]];
const FIRST_MS = 1500;

export function useKeys(showHelp) {
  useEffect(() => {
    let firstAt = 0;
    const listen = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || document.querySelector('dialog[open]')) return;
      const place = event.timeStamp - firstAt < FIRST_MS && PLACES.find(([key]) => key === event.key);
      firstAt = 0;
      if (place) go(place[1]);
      else if (event.key === 'g') firstAt = event.timeStamp;
      else if (event.key === '?') showHelp();
      else if (event.key === '/') {
        const box = document.getElementById('filter');
        if (box) box.focus();
        else { go(['messages']); setTimeout(() => document.getElementById('filter')?.focus(), 100); }
      } else return;
      event.preventDefault();
    };
    addEventListener('keydown', listen);
    return () => removeEventListener('keydown', listen);
  }, []);
}

export function Help({ onClose }) {
  const rows = [['/', t('keys.search')], ['j  k', t('keys.rows')], ['Enter', t('keys.open')], ['x', t('keys.mark')], ['Esc', t('keys.escape')], ['?', t('keys.help')],
    ...PLACES.map(([key, parts]) => [`g ${key}`, t('nav.' + (parts[0] || 'overview'))])];
  return html`<${Dialog} title=${t('keys.title')} onClose=${onClose}>
    <table><tbody>${rows.map(([key, what]) => html`<tr><th scope="row"><kbd>${key}</kbd></th><td>${what}</td></tr>`)}</tbody></table>
    <div class="acts"><button type="button" class="main" onClick=${onClose}>${t('dialog.close')}</button></div><//>`;
}
