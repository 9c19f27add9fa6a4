// The rows of an answer, as the table asks for them. Where the server gives windows (tenaz ui), millions of rows are at hand; where
// it only streams (a gateway), the first rows are kept in memory.
import { pieces, request } from '../api.js';
import { isNumber } from '../chart_choice.js';
import { CsvRows, endRecord } from '../csv_rows.js';
import { isLocal } from '../host.js';
import { PAGE_ROWS, pagesFor, RowPages } from '../row_pages.js';

// Rows of a streamed answer that are kept for looking at.
const KEPT_ROWS = 50_000;

export function answerRows(path, columns, onChange) {
  return isLocal ? new WindowedRows(path, onChange) : new StreamedRows(path, columns, onChange);
}

// Rows that are fetched page by page.
class WindowedRows {
  total = 0;
  isFinal = false;
  isPartial = false;
  failure = null;
  sorting = null;
  #path;
  #onChange;
  #pages = new RowPages();
  #asked = new Set();
  #round = 0;
  #abort = new AbortController();

  constructor(path, onChange) {
    this.#path = path;
    this.#onChange = onChange;
    this.#fetch(0);
  }

  row(index) {
    return this.#pages.row(index);
  }

  need(first, end) {
    for (const page of pagesFor(first, end, this.total)) if (!this.#pages.has(page)) this.#fetch(page);
  }

  // More rows are known, or all.
  refresh() {
    if (this.isFinal) return;
    this.#begin();
  }

  sort(column, descending) {
    this.sorting = column === null ? null : { column, descending };
    this.#pages.clear();
    this.#begin();
  }

  // The first rows, for a chart.
  async head(count) {
    const { rows } = await this.#window(0, count);
    return rows;
  }

  close() {
    this.#abort.abort();
  }

  #begin() {
    this.#round += 1;
    this.#asked.clear();
    if (!this.isFinal) this.#pages.clear();
    this.#fetch(0);
  }

  async #fetch(page) {
    if (this.#asked.has(page)) return;
    this.#asked.add(page);
    const round = this.#round;
    try {
      const { rows, total, isFinal } = await this.#window(page * PAGE_ROWS, PAGE_ROWS);
      if (round !== this.#round) return;
      this.#pages.set(page, rows);
      this.total = total;
      this.isFinal = isFinal;
      this.failure = null;
    } catch (error) {
      if (this.#abort.signal.aborted) return;
      this.failure = error.message;
    } finally {
      if (round === this.#round) this.#asked.delete(page);
    }
    this.#onChange();
  }

  async #window(from, count) {
    const { column, descending } = this.sorting ?? {};
    const order = this.sorting ? `&sort=${column}&descending=${descending}` : '';
    const response = await request(`${this.#path}?format=csv&from=${from}&rows=${count}${order}`, { signal: this.#abort.signal });
    const [, ...rows] = new CsvRows().push(await response.text());
    return {
      rows,
      total: Number(response.headers.get('tenaz-rows')),
      isFinal: response.headers.get('tenaz-final') === 'true',
    };
  }
}

// Rows that come in one stream.
class StreamedRows {
  total = 0;
  isFinal = false;
  isPartial = false;
  failure = null;
  sorting = null;
  #rows = [];
  #shown = this.#rows;
  #columns;
  #onChange;
  #abort = new AbortController();

  constructor(path, columns, onChange) {
    this.#columns = columns;
    this.#onChange = onChange;
    this.#read(`${path}?format=csv`);
  }

  row(index) {
    return this.#shown[index];
  }

  need() {}

  refresh() {}

  sort(column, descending) {
    this.sorting = column === null ? null : { column, descending };
    this.#order();
    this.#onChange();
  }

  async head(count) {
    return this.#shown.slice(0, count);
  }

  close() {
    this.#abort.abort();
  }

  async #read(path) {
    let told = 0;
    try {
      const response = await request(path, { signal: this.#abort.signal });
      const parser = new CsvRows();
      let header = true;
      for await (const text of pieces(response)) {
        for (const row of parser.push(text)) {
          if (header) header = false;
          else this.#rows.push(row);
        }
        if (this.#rows.length > KEPT_ROWS) {
          this.#rows.length = KEPT_ROWS;
          this.isPartial = true;
          break;
        }
        this.total = Math.max(0, this.#rows.length - 1);
        if (performance.now() - told > 100) {
          told = performance.now();
          this.#onChange();
        }
      }
      this.#end();
    } catch (error) {
      if (this.#abort.signal.aborted) return;
      this.failure = error.message;
    }
    this.total = this.#rows.length;
    this.#order();
    this.#onChange();
  }

  // The last line tells how the answer ended; its text may have fallen apart at commas.
  #end() {
    if (this.isPartial) return;
    const last = endRecord((this.#rows.pop() ?? []).join(','));
    if (last?.end) this.isFinal = true;
    else this.failure = last?.error?.text ?? 'the answer was cut off before its end';
  }

  #order() {
    this.#shown = this.sorting ? sorted(this.#rows, this.sorting, this.#columns) : this.#rows;
  }
}

function sorted(rows, { column, descending }, columns) {
  const numeric = isNumber(columns[column]?.type ?? '');
  const sign = descending ? -1 : 1;
  const compare = (a, b) => {
    if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
    return sign * (numeric ? Number(a) - Number(b) : a < b ? -1 : a > b ? 1 : 0);
  };
  return rows.map((row) => row).sort((a, b) => compare(a[column], b[column]));
}
