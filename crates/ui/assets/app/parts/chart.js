// An answer as bars, a line or points. uPlot draws; the table beside it shows every digit.
import uPlot from 'uplot';
import { CHARTS, chartValues, chooseChart, inOrderOf, isNumber, isTime } from '../chart_choice.js';
import { html, useEffect, useMemo, useRef, useState } from '../markup.js';
import { count } from '../quantities.js';
import { useStore } from '../store.js';
import { colour, theme } from '../theme.js';
import { Empty } from './parts.js';

// Rows that a chart takes: more points than a screen has columns help nobody.
const CHART_ROWS = 5000;
// Bars that can still be read.
const MAX_BARS = 60;

export function Chart({ columns, rows, version }) {
  const [head, setHead] = useState(null);
  const [chosen, setChosen] = useState(null);
  const total = rows.total;
  useEffect(() => {
    let wanted = true;
    rows.head(CHART_ROWS).then((found) => wanted && setHead(found), () => {});
    return () => {
      wanted = false;
    };
  }, [rows, total, version]);
  const proposed = useMemo(() => chooseChart(columns, total), [columns, total > 0]);
  const choice = chosen ?? proposed;
  if (!proposed) return html`<${Empty} title="Nothing to draw">A chart needs a column of numbers and at least one row.<//>`;
  if (!head) return html`<p class="empty">…</p>`;
  const change = (part) => setChosen({ ...choice, ...part });
  const drawn = choice.kind === 'bar' ? Math.min(MAX_BARS, head.length) : head.length;
  return html`<div class="chart">
    <div class="choices">
      <${Choice} label="Chart" value=${choice.kind} options=${CHARTS.map((kind) => [kind, kind])} choose=${(kind) => change({ kind })} />
      <${Choice}
        label="x"
        value=${String(choice.x)}
        options=${[['null', 'row number'], ...columns.map(({ name }, place) => [String(place), name])]}
        choose=${(place) => change({ x: place === 'null' ? null : Number(place) })}
      />
      <${Choice}
        label="y"
        value=${String(choice.y[0])}
        options=${columns.flatMap(({ name, type }, place) => (isNumber(type) ? [[String(place), name]] : []))}
        choose=${(place) => change({ y: [Number(place)] })}
      />
      ${drawn < total && html`<span class="quiet">the first ${count(drawn)} of ${count(total)} rows</span>`}
    </div>
    <${Plot} columns=${columns} rows=${head.slice(0, drawn)} choice=${choice} />
  </div>`;
}

function Choice({ label, value, options, choose }) {
  return html`<label class="quiet">
    ${label}${' '}
    <select value=${value} onChange=${(event) => choose(event.currentTarget.value)}>
      ${options.map(([id, name]) => html`<option key=${id} value=${id} selected=${id === value}>${name}</option>`)}
    </select>
  </label>`;
}

function Plot({ columns, rows, choice }) {
  const box = useRef(null);
  const { dark } = useStore(theme);
  useEffect(() => {
    const element = box.current;
    const { data, options } = plotOf(columns, rows, choice);
    const size = () => ({ width: Math.max(200, element.clientWidth), height: Math.max(160, element.clientHeight - 32) });
    const plot = new uPlot({ ...options, ...size() }, data, element);
    const observer = new ResizeObserver(() => plot.setSize(size()));
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [columns, rows, choice, dark]);
  const names = choice.y.map((place) => columns[place].name).join(', ');
  const across = choice.x === null ? 'row number' : columns[choice.x].name;
  return html`<div class="plot" ref=${box} role="img" aria-label=${`${choice.kind} chart of ${names} by ${across}, ${rows.length} rows`}></div>`;
}

function plotOf(columns, rows, { kind, x, y }) {
  const type = x === null ? 'int' : columns[x].type;
  const isScale = kind !== 'bar' && (isNumber(type) || isTime(type));
  const positions = rows.map((_, index) => index);
  const xs = isScale && x !== null ? chartValues(rows, x, type) : positions;
  const series = y.map((place) => chartValues(rows, place, columns[place].type));
  const data = inOrderOf(xs, series);
  const names = isScale ? null : rows.map((row, index) => (x === null ? String(index + 1) : (row[x] ?? 'null')));
  const axis = { stroke: colour('quiet'), grid: { stroke: colour('line'), width: 1 }, ticks: { stroke: colour('line'), width: 1 }, font: '11px system-ui' };
  const labels = names && {
    splits: () => positions.filter((_, index) => index % Math.ceil(positions.length / 20) === 0),
    values: (_, splits) => splits.map((place) => shortened(names[place] ?? '')),
    rotate: names.some((name) => name.length > 6) && names.length > 6 ? -40 : 0,
    size: names.length > 6 ? 84 : 40,
    grid: { show: false },
  };
  return {
    data,
    options: {
      scales: { x: { time: isScale && isTime(type), range: names ? (_, low, high) => [low - 0.6, high + 0.6] : undefined }, y: { range: fromZero(kind) } },
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), 'UTC'),
      axes: [{ ...axis, ...labels, ...(isScale && isTime(type) ? { space: 90, values: timeLabels } : {}) }, { ...axis, size: 72, values: (_, splits) => splits.map(axisNumber) }],
      series: [
        { label: x === null ? 'row' : columns[x].name, value: names ? (_, place) => names[place] ?? '' : undefined },
        ...y.map((place, index) => drawn(kind, columns[place].name, colour(`series-${(index % 4) + 1}`))),
      ],
    },
  };
}

function drawn(kind, label, stroke) {
  const common = { label, stroke, width: 1.5 };
  if (kind === 'bar') return { ...common, fill: stroke, paths: uPlot.paths.bars({ size: [0.7, 60] }), points: { show: false } };
  if (kind === 'scatter') return { ...common, paths: () => null, points: { show: true, size: 6, fill: stroke } };
  return { ...common, points: { size: 5 } };
}

// Bars begin at zero, or they would lie.
function fromZero(kind) {
  return (_, low, high) => {
    const room = (high - low || Math.abs(high) || 1) * 0.06;
    if (kind === 'bar') return [Math.min(0, low < 0 ? low - room : 0), Math.max(0, high > 0 ? high + room : 0)];
    return [low - room, high + room];
  };
}

// Dates as everybody reads them the same.
function timeLabels(_, splits) {
  const isLong = splits.length > 1 && splits.at(-1) - splits[0] > 2 * 86_400;
  return splits.map((seconds) => {
    const text = new Date(seconds * 1000).toISOString();
    return isLong ? text.slice(0, 10) : text.slice(11, 19);
  });
}

function axisNumber(value) {
  if (Math.abs(value) >= 1e15) return value.toExponential(1);
  const units = [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e4, 'k']];
  const unit = units.find(([least]) => Math.abs(value) >= least);
  if (!unit) return String(Number(value.toPrecision(6)));
  const [least, name] = unit[1] === 'k' ? [1e3, 'k'] : unit;
  return `${Number((value / least).toPrecision(4))} ${name}`;
}

function shortened(name) {
  return name.length > 16 ? `${name.slice(0, 15)}…` : name;
}
