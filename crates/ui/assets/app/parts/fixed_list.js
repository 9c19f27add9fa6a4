// A list of rows of one height, of which only those in view exist: a thousand jobs cost as much as thirty.
import { html, useLayoutEffect, useRef, useState } from '../markup.js';
import { viewportHeight, visibleRows } from '../row_pages.js';

export function FixedList({ items, rowHeight, height, row, label }) {
  const box = useRef(null);
  const [top, setTop] = useState(0);
  const [viewport, setViewport] = useState(400);
  useLayoutEffect(() => {
    const measure = () => setViewport(viewportHeight(box.current));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  const { first, end } = visibleRows(top, items.length, rowHeight, viewport);
  const shown = items.slice(first, end);
  const full = items.length * rowHeight;
  return html`<div
    class="fixed-list"
    ref=${box}
    role="list"
    aria-label=${label}
    tabindex="0"
    style=${{ height: height ?? `${Math.min(full, 12 * rowHeight)}px` }}
    onScroll=${(event) => setTop(event.currentTarget.scrollTop)}
  >
    <div style=${{ height: `${full}px` }}>
      ${shown.map(
        (item, index) =>
          html`<div key=${first + index} role="listitem" style=${{ top: `${(first + index) * rowHeight}px`, height: `${rowHeight}px` }}>
            ${row(item, first + index)}
          </div>`,
      )}
    </div>
  </div>`;
}
