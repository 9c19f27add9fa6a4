import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lanes, ticks } from '../../assets/app/lanes.js';

const at = (second) => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString();
const ms = (second) => Date.parse(at(second));

test('a process that is killed and started again has two lives and all marks', () => {
  const events = [
    { at: at(0), kind: 'started', name: 'worker-1', role: 'worker', life: 1 },
    { at: at(0), kind: 'joined', name: 'worker-1', role: 'worker', life: 1 },
    { at: at(5), kind: 'killed', name: 'worker-1' },
    { at: at(5), kind: 'died', name: 'worker-1' },
    { at: at(6), kind: 'started', name: 'worker-1', life: 2 },
  ];
  const [lane] = lanes(events);
  assert.deepEqual(lane.lives, [{ from: ms(0), to: ms(5), life: 1 }, { from: ms(6), to: null, life: 2 }]);
  assert.deepEqual(lane.marks.map(({ kind }) => kind), ['started', 'joined', 'killed', 'died', 'started']);
});

test('a hang ends when the process goes on, or with it', () => {
  const events = [
    { at: at(1), kind: 'paused', name: 'worker-1' },
    { at: at(3), kind: 'resumed', name: 'worker-1' },
    { at: at(4), kind: 'paused', name: 'worker-1' },
    { at: at(9), kind: 'died', name: 'worker-1' },
  ];
  assert.deepEqual(lanes(events)[0].pauses, [{ from: ms(1), to: ms(3) }, { from: ms(4), to: ms(9) }]);
});

test('members whose beginning was forgotten have a life that is open at both ends', () => {
  const [first, second] = lanes([], [{ name: 'worker-10', role: 'worker', state: 'up' }, { name: 'worker-2', role: 'worker', state: 'dead' }]);
  assert.deepEqual([first.name, second.name], ['worker-2', 'worker-10']);
  assert.deepEqual([first.lives.length, second.lives], [0, [{ from: null, to: null, life: null }]]);
});

test('unknown kinds are no marks and break nothing', () => {
  assert.deepEqual(lanes([{ at: at(0), kind: 'something_new', name: 'worker-1' }])[0].marks, []);
});

test('ticks stand at round times, and are never too many', () => {
  assert.deepEqual(ticks(ms(1), ms(31), 4), [ms(10), ms(20), ms(30)]);
  for (const seconds of [1, 59, 3600, 86400 * 400]) assert.ok(ticks(0, seconds * 1000, 10).length <= 11);
});
