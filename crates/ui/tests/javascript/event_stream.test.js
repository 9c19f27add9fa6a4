import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EventStream, pauseBefore } from '../../assets/app/event_stream.js';

const TEXT = ': all\n\nevent: table\nid: 7\ndata: {"name":"a"}\n\n: still here\n\ndata: x\r\n\r\n';

test('events are the same wherever the stream is cut', () => {
  const expected = [{ comment: 'all' }, { event: 'table', id: '7', data: '{"name":"a"}' }, { comment: 'still here' }, { event: 'message', data: 'x' }];
  for (let cut = 0; cut <= TEXT.length; cut += 1) {
    const stream = new EventStream();
    assert.deepEqual([...stream.push(TEXT.slice(0, cut)), ...stream.push(TEXT.slice(cut))], expected, `cut at ${cut}`);
  }
});

test('attempts come at longer and longer intervals, but never cease', () => {
  assert.deepEqual([0, 1, 2, 3, 50].map(pauseBefore), [250, 500, 1000, 2000, 5000]);
});
