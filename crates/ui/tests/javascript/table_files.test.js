import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tableOf } from '../../assets/app/table_files.js';
import { viewportHeight } from '../../assets/app/row_pages.js';

test('a file belongs to the table with the longest name that fits', () => {
  const tables = ['transactions', 'transaction_items', 'users', 'menu_items'];
  assert.equal(tableOf('transactions_202401.csv', tables), 'transactions');
  assert.equal(tableOf('transaction_items_202401.csv.gz', tables), 'transaction_items');
  assert.equal(tableOf('Menu-Items.CSV', tables), 'menu_items');
  assert.equal(tableOf('vouchers.csv', tables), null);
});

test('a layout that gives a table endless height does not put all rows onto the page', () => {
  assert.equal(viewportHeight({ clientHeight: 2_600_000 }), 3000);
  assert.equal(viewportHeight({ clientHeight: 400 }), 400);
});
