// Where the page begins: the language, who asks, then the screen that the address names.
import { html, render, useEffect, useState } from './dom.js';
import { language, loadWords, t } from './i18n.js';
import { me, useTicket, whoAmI } from './api.js';
import { start, stop } from './live.js';
import { go, place } from './router.js';
import { useShared } from './store.js';
import { Shell } from './shell.js';
import { Trouble } from './parts.js';
import { Login } from './screens/login.js';
import { Overview } from './screens/overview.js';
import { Dead } from './screens/dead.js';
import { Letter } from './screens/letter.js';
import { Fix } from './screens/fix.js';
import { Messages } from './screens/messages.js';
import { Message } from './screens/message.js';
import { Job } from './screens/job.js';
import { Redrives } from './screens/redrives.js';
import { Redrive, StartRedrive } from './screens/redrive.js';
import { Destinations } from './screens/destinations.js';
import { Policies } from './screens/policies.js';
import { Alerts } from './screens/alerts.js';
import { Audit } from './screens/audit.js';
import { Relays } from './screens/relays.js';
import { Settings } from './screens/settings.js';

function Screen({ parts, query }) {
  const [name, id, more] = parts;
  switch (name) {
    case undefined: return html`<${Overview} query=${query} />`;
    case 'dead':
      if (id === 'fix') return html`<${Fix} query=${query} />`;
      return id ? html`<${Letter} id=${id} query=${query} key=${id} />` : html`<${Dead} query=${query} />`;
    case 'messages': return id ? html`<${Message} id=${id} key=${id} />` : html`<${Messages} query=${query} />`;
    case 'redrives':
      if (id === 'new') return html`<${StartRedrive} query=${query} />`;
      if (id === 'job' && more) return html`<${Job} id=${more} key=${more} />`;
      return id ? html`<${Redrive} id=${id} key=${id} />` : html`<${Redrives} />`;
    case 'destinations': return html`<${Destinations} query=${query} />`;
    case 'policies': return html`<${Policies} name=${id} query=${query} />`;
    case 'alerts': return html`<${Alerts} />`;
    case 'audit': return html`<${Audit} query=${query} />`;
    case 'relays': return html`<${Relays} />`;
    case 'settings': return html`<${Settings} />`;
    default: return html`<h1>${t('nowhere')}</h1>`;
  }
}

function App() {
  const who = useShared(me), at = useShared(place);
  useEffect(() => { if (who) start(); else stop(); }, [who?.name, who?.role]);
  useEffect(() => { if (who) document.getElementById('main')?.focus({ preventScroll: true }); window.scrollTo(0, 0); }, [at.parts.join('/'), at.query.get('from')]);
  if (!who) return html`<${Login} />`;
  return html`<${Shell}><${Screen} parts=${at.parts} query=${at.query} /><//>`;
}

// A link with a ticket logs in once; the address forgets it at once, so that it is in no history.
async function takeTicket() {
  const { parts } = place.get();
  if (parts[0] !== 'ticket') return;
  go([], {}, true);
  await useTicket(parts[1] || '').catch(() => {});
}

function Root() {
  const [ready, set] = useState(0), [problem, setProblem] = useState(null), chosen = useShared(language);
  useEffect(() => { loadWords().then(() => set((n) => n + 1)); }, [chosen]);
  useEffect(() => { takeTicket().then(whoAmI).then(() => setProblem(false), setProblem); }, []);
  if (!ready || problem === null) return null;
  if (problem) return html`<main class="login"><${Trouble} problem=${problem} /><button type="button" onClick=${() => location.reload()}>${t('again')}</button></main>`;
  return html`<${App} key=${ready} />`;
}

render(html`<${Root} />`, document.getElementById('app'));
