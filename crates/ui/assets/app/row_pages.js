// Which pages of rows a window into an answer needs. A table of millions of rows keeps only the pages near the window.

export const PAGE_ROWS = 200;
const KEPT_PAGES = 24;

// The numbers of the pages that hold the rows [first, end), and one more on each side.
export function pagesFor(first, end, total) {
  if (total <= 0) return [];
  const last = Math.floor((total - 1) / PAGE_ROWS);
  const from = Math.max(0, Math.floor(first / PAGE_ROWS) - 1);
  const to = Math.min(last, Math.floor(Math.max(first, end - 1) / PAGE_ROWS) + 1);
  return Array.from({ length: Math.max(0, to - from + 1) }, (_, index) => from + index);
}

// Pages by number; those that were not looked at for longest go first.
export class RowPages {
  #pages = new Map();

  has(page) {
    return this.#pages.has(page);
  }

  set(page, rows) {
    this.#pages.delete(page);
    this.#pages.set(page, rows);
    while (this.#pages.size > KEPT_PAGES) this.#pages.delete(this.#pages.keys().next().value);
  }

  row(index) {
    const page = Math.floor(index / PAGE_ROWS);
    const rows = this.#pages.get(page);
    if (!rows) return undefined;
    this.#pages.delete(page);
    this.#pages.set(page, rows);
    return rows[index % PAGE_ROWS];
  }

  clear() {
    this.#pages.clear();
  }
}

// Browsers cannot scroll further than some millions of pixels: beyond that, a pixel of the scroll bar stands for more than one.
const MAX_HEIGHT = 8_000_000;

export function scrollGeometry(total, rowHeight, viewport) {
  const full = total * rowHeight;
  const height = Math.min(full, MAX_HEIGHT);
  const scale = height > viewport ? (full - viewport) / (height - viewport) : 1;
  return { height, scale };
}

// The rows in view at this position of the scroll bar, and how far their first one is above the window's edge.
export function visibleRows(scrollTop, total, rowHeight, viewport) {
  const { scale } = scrollGeometry(total, rowHeight, viewport);
  const top = Math.max(0, scrollTop * scale);
  const first = Math.min(Math.max(0, total - 1), Math.floor(top / rowHeight));
  const shown = Math.ceil(viewport / rowHeight) + 1;
  return { first, end: Math.min(total, first + shown), offset: top - first * rowHeight };
}

// The position of the scroll bar at which this row stands at the window's upper edge.
export function scrollTopOf(row, total, rowHeight, viewport) {
  return (row * rowHeight) / scrollGeometry(total, rowHeight, viewport).scale;
}

// No window is taller than this, whatever a layout makes of it: a table must never put all of its rows onto the page.
const MAX_VIEWPORT = 3000;

export function viewportHeight(element) {
  return Math.min(element.clientHeight, MAX_VIEWPORT);
}
