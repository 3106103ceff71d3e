// Light or dark: as the system is, unless somebody chose.
import { remembered } from './store.js';

export const theme = remembered('theme', 'system');

function apply() {
  if (theme.get() === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.get();
}
apply();
theme.listen(apply);
