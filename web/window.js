// Long tables draw only the rows in sight: two empty rows stand for those above and below. Rows may differ in height: those that were
// drawn are measured, and the others count as their average.
import { useEffect, useLayoutEffect, useRef, useState } from './dom.js';

const ALL = 80, MARGIN_PX = 600, FIRST_PX = 40;

// The rows to draw of `n`: {whole, from, to, above, below}; the last two are heights in px. `body` is a reference to the <tbody>. The row
// `at` comes into sight.
export function useWindow(body, n, at) {
  const heights = useRef(new Map()), [seen, see] = useState({ from: 0, to: Math.min(n, ALL) });
  const known = [...heights.current.values()], usual = known.length ? known.reduce((a, b) => a + b, 0) / known.length : FIRST_PX;
  const height = (i) => heights.current.get(i) ?? usual;
  const sum = (from, to) => { let px = 0; for (let i = from; i < to; i++) px += height(i); return px; };
  const look = useRef(() => {});
  look.current = () => {
    if (n <= ALL || !body.current) return;
    const top = body.current.getBoundingClientRect().top;
    let from = 0, px = top;
    while (from < n - 1 && px + height(from) < -MARGIN_PX) px += height(from++);
    let to = from;
    while (to < n && px < innerHeight + MARGIN_PX) px += height(to++);
    if (from !== seen.from || to !== seen.to) see({ from, to });
  };
  useEffect(() => {
    const tell = () => look.current();
    addEventListener('scroll', tell, { passive: true });
    addEventListener('resize', tell);
    return () => { removeEventListener('scroll', tell); removeEventListener('resize', tell); };
  }, []);
  useEffect(() => {
    if (n > ALL && at >= 0 && (at < seen.from || at >= seen.to)) scrollTo(0, scrollY + body.current.getBoundingClientRect().top + sum(0, at) - innerHeight / 2);
  }, [at]);
  useLayoutEffect(() => {
    if (n <= ALL || !body.current) return;
    for (const row of body.current.querySelectorAll('tr[aria-rowindex]')) heights.current.set(Number(row.getAttribute('aria-rowindex')) - 2, row.getBoundingClientRect().height);
    look.current();
  });
  if (n <= ALL) return { whole: true, from: 0, to: n, above: 0, below: 0 };
  const to = Math.min(n, seen.to), from = Math.min(seen.from, to);
  return { whole: false, from, to, above: sum(0, from), below: sum(to, n) };
}
