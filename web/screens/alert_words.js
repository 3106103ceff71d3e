// An alert in a sentence, by what it looks at.
import { duration, num, t } from '../i18n.js';
import { link } from '../router.js';

const where = (a) => a.destination || t('alert.everywhere');

export function alertText(a) {
  const values = { destination: where(a), n: a.count || Math.round(a.value), value: num(a.value, 1), threshold: num(a.threshold, 1), reason: a.reason || '', type: a.event_type || '', time: duration(a.value * 1000), rule: a.rule || '' };
  switch (a.when) {
    case 'dead_letter': return t('alert.dead_letter', values);
    case 'dead_letters_above': return t('alert.dead_letters_above', values);
    case 'dead_letters_rising': return t('alert.dead_letters_rising', values);
    case 'oldest_age': return t('alert.oldest_age', values);
    case 'breaker_open': return t('alert.breaker_open', values);
    case 'paused': return t('alert.paused', values);
    case 'store_unreachable': return t('alert.store_unreachable', values);
    case 'no_progress': return t('alert.no_progress', values);
    case 'lag_growing': return t('alert.lag_growing', values);
    case 'requeue_failed': return t('alert.requeue_failed', values);
    default: return a.rule || a.when;
  }
}

export function alertLink(a) {
  const filter = [a.destination && `destination:${a.destination}`, a.reason && `reason:${a.reason}`].filter(Boolean).join(' ');
  if (a.when.startsWith('dead') || a.when === 'requeue_failed') return link(['dead'], { filter });
  return a.destination ? link(['destinations']) : link(['alerts']);
}
