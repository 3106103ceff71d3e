// Pages of long lists. The address holds the first row's number and not a page's: pages differ in size, so that only the number means the
// same to everybody who opens the address.
import { html } from './dom.js';
import { t } from './i18n.js';

// A phone draws each row as a block of lines: the end of a page of 200 would be a hundred screens away.
const PHONE = '(max-width: 760px)';
export const pageSize = () => (matchMedia(PHONE).matches ? 50 : 200);

// Where the page of this address begins: {after, from}. `from` counts rows from 1, and is 0 where the address does not say it.
export function startOf(query) {
  const after = query.get('after') || '', from = Number(query.get('from'));
  return { after, from: !after ? 1 : from > 1 ? Math.floor(from) : 0 };
}

// The address before each address that this visit has offered: a list's cursors lead forward only.
const before = new Map();

// Where a list stands: "51–100 of 10,000", and the pages around it. `to(from, cursor)` gives an address; `next` is the cursor behind this
// page. `previous` is an address, for lists that can tell it. `total` may be unknown.
export function Pages({ from, shown, total, looked, to, next, previous }) {
  if (from === 1 && !next) return null;
  const last = from + shown - 1, onward = next && to(from && last + 1, next), back = previous ?? before.get(location.hash);
  if (onward && !before.has(onward)) before.set(onward, location.hash);
  return html`<nav class="pages" aria-label=${t('pages.label')}>${from !== 1 && html`<a class="button" href=${to(1, '')}>${t('pages.first')}</a>${back && html`<a class="button" rel="prev" href=${back}>${t('pages.previous')}</a>`}`}
    ${from > 0 && shown > 0 && html`<span class="soft">${total ? t('pages.of', { from, to: last, total }) : t('pages.range', { from, to: last })}</span>`}
    ${onward && html`<a class="button" rel="next" href=${onward}>${t('pages.next')}</a>`}
    ${looked && html`<span class="soft">${t('pages.looked', { n: looked })}</span>`}</nav>`;
}
