// One attempt: what was sent, what came back, and the same as a curl command.
import { html } from '../dom.js';
import { duration, known, t } from '../i18n.js';
import { Chip, Copy, Text, Time } from '../parts.js';

const quote = (text) => "'" + String(text).replace(/'/g, "'\\''") + "'";

// Headers as the API keeps them: a JSON object, or lines.
export function headerLines(text) {
  if (!text) return [];
  try {
    const parsed = JSON.parse(text);
    if (Array.isArray(parsed)) return parsed.map((h) => (Array.isArray(h) ? [h[0], h[1]] : [h.name, h.value]));
    return Object.entries(parsed).flatMap(([name, value]) => (Array.isArray(value) ? value : [value]).map((v) => [name, v]));
  } catch {
    return text.split(/\r?\n/).filter((line) => line.includes(':')).map((line) => [line.slice(0, line.indexOf(':')).trim(), line.slice(line.indexOf(':') + 1).trim()]);
  }
}

const LEFT_OUT = /^(host|content-length|connection|accept-encoding|transfer-encoding)$/i;

export function asCurl(url, headers, payload) {
  const lines = headers.filter(([name]) => !LEFT_OUT.test(name)).map(([name, value]) => `  -H ${quote(`${name}: ${value}`)}`);
  return [`curl -i -X POST ${quote(url)}`, ...lines, `  --data-binary ${quote(payload ?? '')}`].join(' \\\n');
}

function Headers({ text, label }) {
  const lines = headerLines(text);
  if (!lines.length) return null;
  return html`<h3>${label}</h3><pre tabindex="0" aria-label=${label}>${lines.map(([name, value]) => `${name}: ${value}`).join('\n')}</pre>`;
}

export function Attempt({ attempt: a, url, payload }) {
  const ok = a.class === 'success' || (!a.class && a.status >= 200 && a.status < 300);
  const headers = headerLines(a.request_headers);
  return html`<details><summary><strong>${t('attempt.title', { n: a.attempt })}</strong>${a.life > 1 ? ` · ${t('attempt.life', { n: a.life })}` : ''} · <${Time} at=${a.started_at} relative=${false} /> ·
      <${Chip} state=${ok ? 'sent' : 'failed'} text=${a.status ? `HTTP ${a.status}` : a.cause || a.class || ''} /> · ${duration(a.duration_ms)}
      ${a.possibly_delivered ? html` <${Chip} state="warning" text=${t('letter.maybe')} />` : ''}</summary>
    ${a.error && html`<p>${a.error}</p>`}
    <p class="soft">${[a.class && `${t('attempt.class')}: ${known('class.' + a.class, a.class)}`, a.cause && `${t('attempt.cause')}: ${a.cause}`, a.address && `${t('attempt.address')}: ${a.address}`].filter(Boolean).join(' · ')}</p>
    <${Headers} text=${a.request_headers} label=${t('attempt.request')} />
    <${Headers} text=${a.response_headers} label=${t('attempt.response')} />
    ${(a.response_body || a.response_body_base64) && html`<h3>${t('attempt.body')}</h3><${Text} text=${a.response_body ?? a.response_body_base64} label=${t('attempt.body')} />`}
    ${url && headers.length > 0 && html`<p class="acts"><${Copy} text=${asCurl(url, headers, payload)}>${t('attempt.curl')}<//></p>`}</details>`;
}
