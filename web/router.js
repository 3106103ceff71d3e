// Where the page is: everything behind # in the address, so that links can be sent to others, and back goes back.
import { shared } from './store.js';

function parse() {
  const text = location.hash.replace(/^#\/?/, '');
  const [path, query] = text.split('?');
  return { parts: path.split('/').filter(Boolean).map(decodeURIComponent), query: new URLSearchParams(query || '') };
}

export const place = shared(parse());
addEventListener('hashchange', () => place.set(parse()));

export function link(parts, query) {
  const path = parts.map((p) => encodeURIComponent(p)).join('/');
  const clean = Object.entries(query || {}).filter(([, v]) => v !== '' && v !== null && v !== undefined);
  const text = new URLSearchParams(clean).toString();
  return '#/' + path + (text ? '?' + text : '');
}

export function go(parts, query, replace = false) {
  const to = link(parts, query);
  if (replace) history.replaceState(null, '', to);
  else location.hash = to;
  if (replace) place.set(parse());
}
