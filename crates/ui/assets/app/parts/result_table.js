// A table of rows of which only those in view exist. Arrow keys move a cell, Shift chooses more, Ctrl+C copies, Enter on a column
// sorts.
import { isNumber } from '../chart_choice.js';
import { tabSeparated } from '../csv_rows.js';
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from '../markup.js';
import { count } from '../quantities.js';
import { scrollGeometry, scrollTopOf, viewportHeight, visibleRows } from '../row_pages.js';

const ROW = 26;
const HEAD = 30;
const CHAR = 7.3;
// Characters of a cell that are put on the page; copying takes them all.
const SHOWN_CHARS = 300;
const MEASURED_ROWS = 60;

export function ResultTable({ columns, rows, version, label }) {
  const box = useRef(null);
  const [scroll, setScroll] = useState({ top: 0, left: 0 });
  const [viewport, setViewport] = useState({ width: 800, height: 300 });
  const [active, setActive] = useState({ row: 0, column: 0 });
  const [anchor, setAnchor] = useState(null);
  const [copied, setCopied] = useState('');
  const total = rows.total;
  const body = Math.max(0, viewport.height - HEAD);
  const { first, end, offset } = visibleRows(scroll.top, total, ROW, body);

  useLayoutEffect(() => {
    const measure = () => setViewport({ width: box.current.clientWidth, height: viewportHeight(box.current) });
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  useEffect(() => rows.need(first, end), [rows, first, end, version]);

  const places = useMemo(() => columnPlaces(columns, rows, total), [columns, rows, total > 0]);
  const shown = places.columns.filter(({ left, width }) => left + width >= scroll.left && left <= scroll.left + viewport.width);
  const range = anchor && {
    top: Math.min(anchor.row, active.row),
    bottom: Math.max(anchor.row, active.row),
    left: Math.min(anchor.column, active.column),
    right: Math.max(anchor.column, active.column),
  };
  const isChosen = (row, column) =>
    range && row >= range.top && row <= range.bottom && column >= range.left && column <= range.right;

  const reveal = ({ row, column }) => {
    const element = box.current;
    if (row < first + (offset > 0 ? 1 : 0)) element.scrollTop = scrollTopOf(row, total, ROW, body);
    else if ((row + 1) * ROW > first * ROW + offset + body) {
      element.scrollTop = Math.max(0, scrollTopOf(row + 1, total, ROW, body) - body / scrollGeometry(total, ROW, body).scale);
    }
    const place = places.columns[column];
    if (!place) return;
    if (place.left < element.scrollLeft + places.index) element.scrollLeft = place.left - places.index;
    else if (place.left + place.width > element.scrollLeft + viewport.width) element.scrollLeft = place.left + place.width - viewport.width;
  };
  const keys = (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'c') {
      event.preventDefault();
      return copy();
    }
    const next = moved(active, event, { total, columns: columns.length, page: Math.max(1, Math.floor(body / ROW) - 1) });
    if (!next) return undefined;
    event.preventDefault();
    setAnchor(event.shiftKey ? (anchor ?? active) : null);
    setActive(next);
    reveal(next);
    return undefined;
  };
  const copy = async () => {
    const { top, bottom, left, right } = range ?? { top: active.row, bottom: active.row, left: active.column, right: active.column };
    const chosen = [];
    for (let row = top; row <= bottom; row += 1) chosen.push((rows.row(row) ?? []).slice(left, right + 1));
    await navigator.clipboard.writeText(tabSeparated(chosen));
    setCopied(`${count(chosen.length * (right - left + 1))} copied`);
  };
  const sortBy = (column) => {
    const { sorting } = rows;
    if (sorting?.column !== column) rows.sort(column, false);
    else if (!sorting.descending) rows.sort(column, true);
    else rows.sort(null, false);
  };
  const headKeys = (event, column) => {
    if (event.key !== 'Enter' && event.key !== ' ') return;
    event.preventDefault();
    event.stopPropagation();
    sortBy(column);
  };

  const { height } = scrollGeometry(total, ROW, body);
  return html`<div
    class="grid"
    ref=${box}
    role="grid"
    aria-label=${label}
    aria-rowcount=${total}
    aria-colcount=${columns.length}
    tabindex="0"
    onKeyDown=${keys}
    onScroll=${(event) => setScroll({ top: event.currentTarget.scrollTop, left: event.currentTarget.scrollLeft })}
  >
    <div class="canvas" style=${{ width: `${places.width}px`, height: `${height + HEAD}px` }}>
      <div class="head" role="row" style=${{ width: `${places.width}px` }}>
        ${shown.map(({ index, left, width, right }) => {
          const { name, type } = columns[index];
          const order = rows.sorting?.column === index ? (rows.sorting.descending ? 'descending' : 'ascending') : 'none';
          return html`<div
            key=${index}
            role="columnheader"
            tabindex="0"
            aria-sort=${order}
            title=${`${name} · ${type}`}
            class=${right ? 'right' : ''}
            style=${{ left: `${left}px`, width: `${width}px` }}
            onClick=${() => sortBy(index)}
            onKeyDown=${(event) => headKeys(event, index)}
          >
            ${{ ascending: '↑ ', descending: '↓ ', none: '' }[order]}${name}<small>${type}</small>
          </div>`;
        })}
      </div>
      <div class="rows" role="presentation" style=${{ height: `${Math.min(body, total * ROW)}px`, width: `${places.width}px` }}>
        ${range_(first, end).map((row) => {
          const cells = rows.row(row);
          return html`<div class="row" role="row" key=${row} aria-rowindex=${row + 1} style=${{ top: `${(row - first) * ROW - offset}px`, width: `${places.width}px` }}>
            <div class="index" role="rowheader" style=${{ left: 0, width: `${places.index}px` }}>${count(row + 1)}</div>
            ${shown.map(({ index, left, width, right }) => {
              const value = cells?.[index];
              const isActive = active.row === row && active.column === index;
              const classes = [
                right ? 'right' : '',
                cells === undefined ? 'loading' : value === null ? 'null' : '',
                isActive ? 'active' : '',
                isChosen(row, index) ? 'chosen' : '',
              ];
              return html`<div
                key=${index}
                role="gridcell"
                class=${classes.filter(Boolean).join(' ')}
                style=${{ left: `${left}px`, width: `${width}px` }}
                onMouseDown=${(event) => {
                  setAnchor(event.shiftKey ? (anchor ?? active) : null);
                  setActive({ row, column: index });
                }}
                title=${value && value.length * CHAR > width - 16 ? value.slice(0, 2000) : undefined}
              >
                ${cells === undefined ? '…' : shownText(value)}
              </div>`;
            })}
          </div>`;
        })}
      </div>
    </div>
    <span class="unseen" role="status">${copied}</span>
  </div>`;
}

function shownText(value) {
  if (value === null || value === undefined) return 'null';
  const text = value.length > SHOWN_CHARS ? `${value.slice(0, SHOWN_CHARS)}…` : value;
  return text.replaceAll('\n', '⏎').replaceAll('\t', '⇥');
}

function range_(first, end) {
  return Array.from({ length: Math.max(0, end - first) }, (_, index) => first + index);
}

// Where the active cell goes.
function moved({ row, column }, event, { total, columns, page }) {
  const last = total - 1;
  const all = event.ctrlKey || event.metaKey;
  const steps = {
    ArrowDown: [all ? last : row + 1, column],
    ArrowUp: [all ? 0 : row - 1, column],
    ArrowRight: [row, all ? columns - 1 : column + 1],
    ArrowLeft: [row, all ? 0 : column - 1],
    PageDown: [row + page, column],
    PageUp: [row - page, column],
    Home: [all ? 0 : row, 0],
    End: [all ? last : row, columns - 1],
  };
  const step = steps[event.key];
  if (!step || total === 0) return null;
  const within = (value, most) => Math.min(Math.max(0, value), most);
  return { row: within(step[0], last), column: within(step[1], columns - 1) };
}

// The left edge and width of every column, as its name and its first cells need it.
function columnPlaces(columns, rows, total) {
  const index = Math.max(5, count(total).length + 2) * CHAR + 8;
  let left = index;
  const placed = columns.map(({ name, type }, place) => {
    let chars = name.length + type.length * 0.92 + 2;
    for (let row = 0; row < Math.min(total, MEASURED_ROWS); row += 1) {
      chars = Math.max(chars, Math.min(44, rows.row(row)?.[place]?.length ?? 4));
    }
    const width = Math.round(Math.min(chars, 56) * CHAR + 18);
    const at = { index: place, left, width, right: isNumber(type) };
    left += width;
    return at;
  });
  return { columns: placed, width: left, index };
}
