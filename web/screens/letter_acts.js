// What can be done with dead letters, for one and for many.
import { t } from '../i18n.js';

export function letterActs() {
  return {
    requeue: { title: t('act.requeue'), words: t('act.requeue_words'), path: '/dead-letters/requeue' },
    resolve: { title: t('act.resolve'), words: t('act.resolve_words'), path: '/dead-letters/resolve' },
    discard: { title: t('act.discard'), words: t('act.discard_words'), path: '/dead-letters/discard', danger: true, undo: { path: '/dead-letters/restore' } },
    restore: { title: t('act.restore'), words: t('act.restore_words'), path: '/dead-letters/restore' },
  };
}
