import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatRoute, parseRoute } from '../../assets/app/route.js';
import { addSample, rates } from '../../assets/app/cluster/throughput.js';
import { count, duration, share, size } from '../../assets/app/quantities.js';

test('an address says its view, its job and its parameters, whatever is in them', () => {
  for (const route of [
    { view: 'ask', id: '', parameters: {} },
    { view: 'job', id: '0123456789abcdef', parameters: { token: 'abc' } },
    { view: 'job', id: 'a/b?c#d', parameters: { question: 'x&y=1' } },
  ]) {
    assert.deepEqual(parseRoute(formatRoute(route)), route);
  }
  assert.equal(parseRoute('').view, 'ask');
  assert.equal(parseRoute('#/job/%E0%A4').id, '%E0%A4');
});

test('quantities are short and never round a count', () => {
  assert.equal(count(1234567), '1\u202f234\u202f567');
  assert.equal(count(null), '–');
  assert.deepEqual([0, 999, 1500, 99_960_000, 2.5e12].map(size), ['0 B', '999 B', '1.50 kB', '100 MB', '2.50 TB']);
  assert.deepEqual([0.25, 5, 75, 7300, 90_000].map(duration), ['250 ms', '5.0 s', '1 min 15 s', '2 h 1 min', '1 d 1 h']);
  assert.deepEqual([share(1, 4), share(0, 0), share(5, 4), share(1, null)], [0.25, 1, 1, null]);
});

test('throughput is what all jobs gained, and a removed job takes nothing back', () => {
  const job = (name, bytes) => ({ job: name, state: 'processing', progress: { bytes, chunks: 1, chunks_known: 4 } });
  let samples = addSample([], 1000, [job('a', 100), job('b', 50)]);
  samples = addSample(samples, 2000, [job('a', 300)]);
  samples = addSample(samples, 4000, [job('a', 300), job('c', 500)]);
  assert.deepEqual(samples.map(({ rate }) => rate), [null, 200, 250]);
  assert.deepEqual(rates(samples), { now: 250, most: 250 });
  assert.equal(samples[0].waiting, 6);
});
