import assert from 'node:assert/strict';
import { test } from 'node:test';
import { completions, mistakeRange, quoted, tokens } from '../../assets/app/sql_words.js';

const TABLES = [
  { name: 'orders', columns: [{ name: 'id', type: 'int' }, { name: 'order_date', type: 'date' }] },
  { name: 'customers', columns: [{ name: 'city', type: 'text' }, { name: 'Weird Name', type: 'text' }] },
];
const offered = (sql) => completions(sql, sql.length, TABLES).options.map(({ text }) => text);

test('tokens put together are the text', () => {
  for (const sql of ["SELECT 'it''s', \"a b\" -- ende\nFROM t /* x", 'größe<script>🙂 1.5e3', "'open", '']) {
    assert.equal(tokens(sql).map(({ text }) => text).join(''), sql);
  }
  const kinds = tokens("SELECT sum(x) -- no\n, 'a'").filter(({ kind }) => kind !== 'space').map(({ kind }) => kind);
  assert.deepEqual(kinds, ['keyword', 'function', 'mark', 'name', 'mark', 'comment', 'mark', 'text']);
});

test('columns of the tables that are mentioned come first', () => {
  assert.equal(offered('SELECT ord')[0], 'order_date');
  assert.ok(offered('SELECT * FROM cust').includes('customers'));
  const inOrders = completions('SELECT i FROM orders', 8, TABLES).options.map(({ text }) => text);
  assert.ok(inOrders.includes('id') && !inOrders.includes('city'));
});

test('behind a table or its alias stand its columns alone', () => {
  assert.deepEqual(offered('SELECT orders.'), ['id', 'order_date']);
  const sql = 'SELECT c. FROM customers AS c';
  assert.deepEqual(completions(sql, 9, TABLES).options.map(({ text }) => text), ['city', '"Weird Name"']);
});

test('nothing is offered for a word that is complete', () => {
  assert.deepEqual(offered('SELECT 1 ORDER BY 1 DESC'), []);
  assert.ok(offered('SELECT 1 ORDER BY 1 DES').includes('DESC'));
});

test('nothing is offered inside of texts and comments', () => {
  assert.deepEqual(offered("SELECT 'ord"), []);
  assert.deepEqual(offered('SELECT 1 -- ord'), []);
});

test('a mistake is marked as the whole word at its place', () => {
  const sql = 'SELECT id,\n  nmae FROM orders';
  const { start, end } = mistakeRange(sql, 2, 3);
  assert.equal(sql.slice(start, end), 'nmae');
  assert.equal(mistakeRange(sql, undefined, undefined), null);
  assert.equal(mistakeRange(sql, 9, 1), null);
  assert.ok(mistakeRange(sql, 2, 99).end > 0);
});

test('names that need quotes get them', () => {
  assert.equal(quoted('order_date'), 'order_date');
  assert.equal(quoted('Order "x"'), '"Order ""x"""');
  assert.equal(quoted('select'), '"select"');
});
