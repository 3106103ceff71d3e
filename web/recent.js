// What the relays saw lately, as /status told this page: the live charts. It is kept while somebody walks through the screens.
import { shared } from './store.js';

const MOST = 600, KEPT_S = 300;

export const recent = shared([]);

export function noteStatus(status) {
  const at = Date.parse(status.now) / 1000, points = recent.get(), last = points[points.length - 1];
  if (!at || (last && at <= last.at)) return;
  const minutes = status.destinations.map((d) => d.last_minute).filter(Boolean), sum = (f) => minutes.reduce((n, m) => n + f(m), 0);
  const slowest = (name) => Math.max(0, ...minutes.map((m) => (m.attempts_ok + m.attempts_failed ? m.latency_ms?.[name] || 0 : 0)));
  recent.set([...points, { at, ok: sum((m) => m.attempts_ok) / 60, failed: sum((m) => m.attempts_failed) / 60, p50: slowest('p50'), p95: slowest('p95'),
    waiting: (status.due?.n || 0) + (status.retrying?.n || 0), in_flight: status.processing?.n || 0, open: status.dead?.n || 0 }].filter((p) => at - p.at <= KEPT_S).slice(-MOST));
}
