import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planGraph } from '../../assets/app/plan_layout.js';

const STAGES = [
  { stage: 0, tasks: 'chunk', table: 'users', reads: [], broadcasts: [], edge: 'broadcast' },
  { stage: 1, tasks: 'chunk', table: 'orders', reads: [], broadcasts: [0], edge: 'hash' },
  { stage: 2, tasks: 'partition', reads: [1], broadcasts: [], edge: 'results', query: 'q1' },
];

test('tables stand at the left, questions at the right, and what is read before its reader', () => {
  const { nodes, edges } = planGraph(STAGES);
  const column = (id) => nodes.find((node) => node.id === id).column;
  for (const { from, to } of edges) assert.ok(column(from) < column(to), `${from} → ${to}`);
  assert.deepEqual(edges.map(({ kind }) => kind).sort(), ['broadcast', 'log', 'rows', 'scan', 'scan']);
  assert.equal(column('question-q1'), Math.max(...nodes.map((node) => node.column)));
});

test('no two nodes stand on the same place', () => {
  const { nodes } = planGraph(STAGES);
  assert.equal(new Set(nodes.map(({ x, y }) => `${x} ${y}`)).size, nodes.length);
});

test('a plan that reads itself or what is not there does not hang the page', () => {
  const { nodes } = planGraph([{ stage: 0, reads: [1], edge: 'one' }, { stage: 1, reads: [0, 9], edge: 'one' }]);
  assert.equal(nodes.length, 2);
});
