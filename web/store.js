// Values that several parts of the page share. A part that uses one is drawn again when it changes.
import { useEffect, useState } from './dom.js';

export function shared(first) {
  let value = first;
  const listeners = new Set();
  return {
    get: () => value,
    set(next) {
      if (next === value) return;
      value = next;
      for (const tell of [...listeners]) tell(value);
    },
    listen(tell) {
      listeners.add(tell);
      return () => listeners.delete(tell);
    },
  };
}

export function useShared(source) {
  const [value, set] = useState(source.get());
  useEffect(() => {
    set(source.get());
    return source.listen((next) => set(() => next));
  }, [source]);
  return value;
}

// What a person chose is kept by this browser, where it lets us.
export function remembered(name, fallback) {
  let first = fallback;
  try { first = localStorage.getItem('hikyaku.' + name) ?? fallback; } catch { /* not allowed: nothing is kept */ }
  const source = shared(first);
  source.listen((value) => { try { localStorage.setItem('hikyaku.' + name, value); } catch { /* the same */ } });
  return source;
}
