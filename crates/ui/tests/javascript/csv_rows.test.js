import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CsvRows, endRecord, tabSeparated } from '../../assets/app/csv_rows.js';

const CSV = 'a,b\n1234567890123456.789,\n"",x\n"say ""hi""\nthere","1,2"\n';
const ROWS = [['a', 'b'], ['1234567890123456.789', null], ['', 'x'], ['say "hi"\nthere', '1,2']];

test('rows are the same wherever the stream is cut', () => {
  for (let cut = 0; cut <= CSV.length; cut += 1) {
    const parser = new CsvRows();
    assert.deepEqual([...parser.push(CSV.slice(0, cut)), ...parser.push(CSV.slice(cut))], ROWS, `cut at ${cut}`);
  }
});

test('the last line tells how a stream has ended', () => {
  assert.deepEqual(endRecord('# end rows=2 fingerprint=ab01 ordered=true'), { end: { rows: 2, fingerprint: 'ab01', ordered: true } });
  assert.deepEqual(endRecord('# error code=query_failed q1: no'), { error: { code: 'query_failed', text: 'q1: no' } });
  assert.equal(endRecord('1'), null);
});

test('copied cells survive a spreadsheet', () => {
  assert.equal(tabSeparated([['a\tb', null], ['say "x"', '1']]), '"a\tb"\t\n"say ""x"""\t1');
});
