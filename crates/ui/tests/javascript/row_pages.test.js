import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PAGE_ROWS, pagesFor, RowPages, scrollGeometry, scrollTopOf, visibleRows } from '../../assets/app/row_pages.js';

test('a window needs its pages and one on each side', () => {
  assert.deepEqual(pagesFor(0, 30, 10_000), [0, 1]);
  assert.deepEqual(pagesFor(450, 480, 10_000), [1, 2, 3]);
  assert.deepEqual(pagesFor(0, 30, 5), [0]);
  assert.deepEqual(pagesFor(0, 0, 0), []);
});

test('pages that nobody looks at are forgotten', () => {
  const pages = new RowPages();
  pages.set(0, [['first']]);
  for (let page = 1; page <= 23; page += 1) pages.set(page, [[String(page)]]);
  assert.deepEqual(pages.row(0), ['first']);
  pages.set(24, [['24']]);
  assert.ok(pages.has(0) && !pages.has(1));
  assert.equal(pages.row(PAGE_ROWS * 500), undefined);
});

test('every row of ten million can be reached', () => {
  const [total, row, viewport] = [10_000_000, 26, 500];
  const { height } = scrollGeometry(total, row, viewport);
  assert.ok(height <= 8_000_000);
  assert.equal(visibleRows(0, total, row, viewport).first, 0);
  assert.equal(visibleRows(height - viewport, total, row, viewport).end, total);
  for (const wanted of [1, 12_345, 5_000_000, 9_999_900]) {
    const { first } = visibleRows(scrollTopOf(wanted, total, row, viewport), total, row, viewport);
    assert.ok(Math.abs(first - wanted) <= 1, `${wanted}: ${first}`);
  }
});

test('a short table is not stretched', () => {
  assert.deepEqual(visibleRows(26, 20, 26, 260), { first: 1, end: 12, offset: 0 });
});
