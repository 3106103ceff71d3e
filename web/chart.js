// Lines over time, drawn by uPlot on a canvas, with the same figures as a table beside it for those who cannot see or use the drawing.
import uPlot from './vendor/uplot.js';
import { html, useEffect, useRef } from './dom.js';
import { clock, lang, num, t } from './i18n.js';
import { theme } from './theme.js';
import { useShared } from './store.js';

const HEIGHT = 190;
const STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 345600, 604800, 1209600, 2592000];
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// So few points that a line hardly shows them.
const few = (values) => values.filter((v) => v !== null && v !== undefined).length < 5;

function tickText(seconds, spanS) {
  const date = new Date(seconds * 1000);
  /** @type {Intl.DateTimeFormatOptions} */
  const how = spanS > 2 * 86400 ? { month: 'short', day: 'numeric' } : { hour: '2-digit', minute: '2-digit', second: spanS < 600 ? '2-digit' : undefined, hourCycle: 'h23' };
  return new Intl.DateTimeFormat(lang(), how).format(date);
}

/** @returns {import('./vendor/uplot.js').default.Options} */
function optionsOf(series, unit, width) {
  const axis = { stroke: colour('--soft'), grid: { stroke: colour('--line'), width: 1 }, ticks: { stroke: colour('--line') }, font: '12px system-ui, sans-serif' };
  return {
    width, height: HEIGHT, cursor: { drag: { x: false, y: false } },
    scales: { y: { range: (_u, _lo, hi) => [0, hi > 0 ? hi * 1.1 : 1] } },
    axes: [{ ...axis, size: 34, space: 70, incrs: STEPS_S, values: (_u, at) => at.map((s) => tickText(s, at[at.length - 1] - at[0])) },
      { ...axis, size: 66, values: (_u, at) => at.map((v) => num(v, 2) + (unit ? ' ' + unit : '')) }],
    series: [{ label: t('chart.time'), value: (_u, s) => (s ? clock(s * 1000) : '–') },
      ...series.map((s) => ({ label: s.name, stroke: colour(s.colour), width: 2, dash: s.dash, points: { show: (u, i) => few(u.data[i]) }, spanGaps: false,
        fill: s.fill ? colour(s.colour) + '22' : undefined, value: (_u, v) => (v === null || v === undefined ? '–' : num(v, 1) + (unit ? ' ' + unit : '')) }))],
  };
}

// times: seconds; series: [{name, colour, values, fill?, dash?}]
export function Chart({ title, times, series, unit = '' }) {
  const box = useRef(null), plot = useRef(null), chosen = useShared(theme);
  const data = [times, ...series.map((s) => s.values)];
  useEffect(() => {
    const draw = () => {
      plot.current?.destroy();
      plot.current = new uPlot(optionsOf(series, unit, Math.max(240, box.current.clientWidth)), data, box.current);
    };
    draw();
    const dark = matchMedia('(prefers-color-scheme: dark)');
    const watch = new ResizeObserver(() => plot.current?.setSize({ width: Math.max(240, box.current.clientWidth), height: HEIGHT }));
    dark.addEventListener('change', draw);
    watch.observe(box.current);
    return () => { watch.disconnect(); dark.removeEventListener('change', draw); plot.current?.destroy(); plot.current = null; };
  }, [chosen, series.map((s) => s.name).join()]);
  useEffect(() => { plot.current?.setData(data); });
  return html`<div class="chart" ref=${box} role="img" aria-label=${t('chart.label', { title })}></div>
    <${AsTable} title=${title} times=${times} series=${series} unit=${unit} />`;
}

function AsTable({ title, times, series, unit }) {
  const rows = times.map((s, i) => [s, ...series.map((one) => one.values[i])]).filter((r) => r.slice(1).some((v) => v)).reverse().slice(0, 60);
  return html`<details><summary>${t('chart.table')}</summary><div class="scroll" tabindex="0"><table>
    <caption>${title}</caption><thead><tr><th scope="col">${t('chart.time')}</th>${series.map((s) => html`<th scope="col" class="n">${s.name}${unit ? ` (${unit})` : ''}</th>`)}</tr></thead>
    <tbody>${rows.length ? rows.map(([s, ...values]) => html`<tr><td class="tight">${clock(s * 1000)}</td>${values.map((v) => html`<td class="n">${v === null || v === undefined ? '–' : num(v, 1)}</td>`)}</tr>`)
      : html`<tr><td colspan=${series.length + 1}>${t('chart.nothing')}</td></tr>`}</tbody></table></div></details>`;
}

// Counts by name: a table with the bars in it. `show` writes a value where it is no count.
export function Bars({ title, rows, what, second = false, linkOf, show = num }) {
  const most = Math.max(1, ...rows.map((r) => r.n));
  return html`<div class="scroll" tabindex="0"><table class="bars"><caption class="sr">${title}</caption><thead class="sr"><tr><th scope="col">${title}</th><th scope="col">${what || t('col.letters')}</th><td></td></tr></thead>
    <tbody>${rows.map((r) => html`<tr><th scope="row" title=${r.name}>${linkOf ? html`<a href=${linkOf(r)}>${r.name}</a>` : r.name}</th><td class="n">${show(r.n)}</td>
      <td class="track" aria-hidden="true"><span class=${'fill' + (second ? ' two' : '')} style=${{ width: `${(r.n / most) * 100}%` }}></span></td></tr>`)}</tbody></table></div>`;
}

// One value an hour as a small line; the figures stand in the table of HourTable.
export function Spark({ values, label }) {
  const most = Math.max(1, ...values), step = 100 / (values.length - 1), y = (v) => 23 - (v / most) * 21;
  const points = values.map((v, i) => `${(i * step).toFixed(1)},${y(v).toFixed(1)}`).join(' ');
  return html`<svg class="spark" viewBox="0 0 100 24" preserveAspectRatio="none" role="img" aria-label=${label}><polygon points=${`0,24 ${points} 100,24`} /><polyline points=${points} /></svg>`;
}

// rows: [{name, values}], the last value of each is the hour that has begun at `now`. The newest first; hours without anything are left out.
export function HourTable({ title, rows, now }) {
  const n = Math.max(0, ...rows.map((r) => r.values.length)), begun = Math.floor(Date.parse(now) / 3600000) * 3600000;
  const hours = Array.from({ length: n }, (_, i) => n - 1 - i).filter((i) => rows.some((r) => r.values[i] > 0));
  return html`<details><summary>${t('chart.table')}</summary><div class="scroll" tabindex="0"><table><caption>${title}</caption>
    <thead><tr><th scope="col">${t('chart.time')}</th>${rows.map((r) => html`<th scope="col" class="n">${r.name}</th>`)}</tr></thead>
    <tbody>${hours.length ? hours.map((i) => html`<tr><th scope="row">${clock(begun - (n - 1 - i) * 3600000)}</th>${rows.map((r) => html`<td class="n">${num(r.values[i])}</td>`)}</tr>`)
      : html`<tr><td colspan=${rows.length + 1}>${t('chart.nothing')}</td></tr>`}</tbody></table></div></details>`;
}
