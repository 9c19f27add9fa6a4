import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chartValues, chooseChart, inOrderOf } from '../../assets/app/chart_choice.js';

const columns = (...types) => types.map((type, place) => ({ name: `c${place}`, type }));

test('the types of the columns choose the chart', () => {
  assert.deepEqual(chooseChart(columns('text', 'decimal(10,2)'), 3), { kind: 'bar', x: 0, y: [1] });
  assert.deepEqual(chooseChart(columns('date', 'int', 'float'), 3), { kind: 'line', x: 0, y: [1, 2] });
  assert.deepEqual(chooseChart(columns('float', 'float'), 3), { kind: 'scatter', x: 0, y: [1] });
  assert.deepEqual(chooseChart([{ name: 'year', type: 'int' }, { name: 'n', type: 'int' }], 3), { kind: 'line', x: 0, y: [1] });
  const ids = [{ name: 'city', type: 'text' }, { name: 'store_id', type: 'int' }, { name: 'turnover', type: 'float' }];
  assert.deepEqual(chooseChart(ids, 3), { kind: 'bar', x: 0, y: [2] });
  assert.equal(chooseChart(columns('text', 'text'), 3), null);
  assert.equal(chooseChart(columns('text', 'int'), 0), null);
});

test('nulls and words leave gaps, times are seconds', () => {
  assert.deepEqual(chartValues([['1.5'], [null], ['NaN']], 0, 'float'), [1.5, null, null]);
  assert.deepEqual(chartValues([['1970-01-02'], ['1970-01-01 00:00:01']], 0, 'timestamp'), [86400, 1]);
});

test('lines go from left to right', () => {
  assert.deepEqual(inOrderOf([3, null, 1], [[30, 0, 10]]), [[1, 3], [10, 30]]);
});
