// Rows of CSV as they arrive, piece by piece. Cells stay text, so no digit of a number is lost; null (an empty field) is told from
// the empty text (`""`). Understands what tenaz writes: RFC 4180 with `\n` line ends.

export class CsvRows {
  #rest = '';
  #row = [];

  // The complete rows in what has come so far.
  push(text) {
    const rows = [];
    const all = this.#rest + text;
    let at = 0;
    for (;;) {
      const field = fieldAt(all, at);
      if (!field) break;
      this.#row.push(field.value);
      at = field.end + 1;
      if (all[field.end] === '\n') {
        rows.push(this.#row);
        this.#row = [];
      }
    }
    this.#rest = all.slice(at);
    return rows;
  }

  // What has come since the last complete field.
  get rest() {
    return this.#rest;
  }
}

// The field that begins here, if its end is there.
function fieldAt(text, start) {
  if (text[start] !== '"') {
    const end = nextMark(text, start);
    if (end < 0) return null;
    return { value: end === start ? null : text.slice(start, end), end };
  }
  let from = start + 1;
  for (;;) {
    const quote = text.indexOf('"', from);
    if (quote < 0 || quote + 1 >= text.length) return null;
    if (text[quote + 1] !== '"') {
      return { value: text.slice(start + 1, quote).replaceAll('""', '"'), end: quote + 1 };
    }
    from = quote + 2;
  }
}

function nextMark(text, start) {
  for (let at = start; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 44 || code === 10) return at;
  }
  return -1;
}

// The last line of a stream of answers: `# end rows=2 fingerprint=… ordered=true` or `# error code=… text`.
export function endRecord(line) {
  const end = /^# end rows=(\d+) fingerprint=([0-9a-f]+) ordered=(true|false)$/.exec(line);
  if (end) return { end: { rows: Number(end[1]), fingerprint: end[2], ordered: end[3] === 'true' } };
  const error = /^# error code=(\S+) (.*)$/s.exec(line);
  if (error) return { error: { code: error[1], text: error[2] } };
  return null;
}

// Rows as text for a clipboard: fields between tabs, quoted where a spreadsheet needs it.
export function tabSeparated(rows) {
  const field = (value) => {
    const text = value ?? '';
    return /["\t\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => row.map(field).join('\t')).join('\n');
}
