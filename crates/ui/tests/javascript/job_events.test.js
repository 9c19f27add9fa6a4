import assert from 'node:assert/strict';
import { test } from 'node:test';
import { applyEvent, ledgerOf, questionsOf, titleOf } from '../../assets/app/job/job_events.js';

test('a later event replaces what it is about, and nothing else', () => {
  let job = { state: 'uploading', tables: [{ name: 'a', records: 1 }, { name: 'b' }], stages: [{ stage: 0, plan: ['Scan'] }] };
  job = applyEvent(job, 'table', { name: 'a', records: 2 });
  job = applyEvent(job, 'stages', [{ stage: 0, rows_in: 5 }]);
  job = applyEvent(job, 'question', { name: 'q1', state: 'final', rows: 3 });
  job = applyEvent(job, 'unheard of', {});
  assert.deepEqual(job.tables, [{ name: 'a', records: 2 }, { name: 'b' }]);
  assert.deepEqual(job.stages, [{ stage: 0, plan: ['Scan'], rows_in: 5 }]);
  assert.equal(job.questions[0].state, 'final');
  assert.equal(applyEvent(job, 'end', { state: 'done', results: { queries: [] } }).state, 'done');
});

test('questions are known from the results alone', () => {
  const job = { results: { queries: [{ name: 'q1', rows: 2, fingerprint: 'ab' }], failed: [{ name: 'q2', text: 'no' }] } };
  const [first, second] = questionsOf(job);
  assert.deepEqual([first.state, first.rows, second.state, second.error.text], ['final', 2, 'failed', 'no']);
});

test('a ledger that does not add up is seen', () => {
  const tables = [{ name: 'a', records: 3, accepted: 2, rejected: 1 }, { name: 'b', records: 3, accepted: 2, rejected: 0 }];
  assert.deepEqual(ledgerOf({ results: { tables } }).map(({ balanced }) => balanced), [true, false]);
});

test('a title that only repeats the question is not shown', () => {
  assert.equal(titleOf({ title: 'SELECT a, b FROM…', sql: 'SELECT a,\n  b FROM t' }), '');
  assert.equal(titleOf({ title: 'Best sellers', sql: 'SELECT 1' }), 'Best sellers');
  assert.equal(titleOf({ title: 'Best sellers' }), 'Best sellers');
});
