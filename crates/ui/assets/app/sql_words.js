// SQL as words: for colours, completion and the place of a mistake. It is no parser; the engine says what is right.

const KEYWORDS = new Set(
  `all and any array as asc between by case cast copy cross cube current date desc describe distinct else end except exists explain
  extract false fetch filter first following from full group grouping having ilike in inner intersect interval is join last lateral
  left like limit natural not null nulls offset on or order outer over partition preceding qualify range recursive right rollup row
  rows select sets show similar some summarize table tables then time timestamp to true try_cast unbounded union unnest using values
  view when where window with within create`.split(/\s+/),
);

const FUNCTIONS = `abs any_value approx_distinct approx_median array_agg array_has avg ceil coalesce concat concat_ws corr count
  date_bin date_part date_trunc dense_rank digest distinct_count exact_percentile extract first_value floor greatest is_english lag
  language last_value lead least left length ln log lower lpad ltrim max md5 median min nth_value ntile now nullif percent_rank
  percentile_cont power python_list rank regexp_like regexp_match regexp_replace replace right round row_number rpad rtrim sentiment
  sha256 split_part sqrt starts_with stddev string_agg strpos substr sum to_char to_date to_timestamp trim trunc try_to_date
  try_to_timestamp upper variance year_of`.split(/\s+/);

const TOKEN =
  /(--[^\n]*|\/\*[^]*?(?:\*\/|$))|('(?:[^']|'')*(?:'|$))|("(?:[^"]|"")*(?:"|$))|(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|([\p{L}_][\p{L}\p{N}_$]*)|(\s+)|([^])/gu;
const KINDS = ['comment', 'text', 'name', 'number', 'word', 'space', 'mark'];

// The tokens of the text: {kind, text, start}. Put together they are the text.
export function tokens(sql) {
  const found = [];
  for (const match of sql.matchAll(TOKEN)) {
    const place = KINDS.findIndex((_, index) => match[index + 1] !== undefined);
    let kind = KINDS[place];
    if (kind === 'word') kind = KEYWORDS.has(match[0].toLowerCase()) ? 'keyword' : isCall(sql, match) ? 'function' : 'name';
    found.push({ kind, text: match[0], start: match.index });
  }
  return found;
}

function isCall(sql, match) {
  return sql[match.index + match[0].length] === '(';
}

// What could stand where the caret is: {start, options: [{text, kind, detail}]}. Tables are {name, columns: [{name, type}]}.
export function completions(sql, caret, tables) {
  const before = sql.slice(0, caret);
  const inside = tokens(before).at(-1);
  if (inside && (inside.kind === 'text' || inside.kind === 'comment')) return { start: caret, options: [] };
  const [, owner, typed] = /(?:([\p{L}_][\p{L}\p{N}_]*)\.)?([\p{L}_][\p{L}\p{N}_]*)?$/u.exec(before);
  const start = caret - (typed ?? '').length;
  if (owner !== undefined) return { start, options: ranked(columnsOf(owner, sql, tables), typed ?? '') };
  if (!typed) return { start, options: [] };
  const mentioned = tables.filter((table) => mentions(sql, table.name));
  const scope = mentioned.length ? mentioned : tables;
  const options = [
    ...scope.flatMap(columnOptions),
    ...tables.map((table) => ({ text: quoted(table.name), kind: 'table', detail: `${table.columns.length} columns` })),
    ...FUNCTIONS.map((name) => ({ text: `${name}(`, kind: 'function', detail: '' })),
    ...[...KEYWORDS].map((word) => ({ text: word.toUpperCase(), kind: 'keyword', detail: '' })),
  ];
  return { start, options: ranked(options, typed) };
}

function mentions(sql, name) {
  return tokens(sql).some((token) => token.kind === 'name' && unquoted(token.text).toLowerCase() === name.toLowerCase());
}

// The columns behind `owner.`: a table, or what a table is called here (`FROM orders o`, `JOIN orders AS o`).
function columnsOf(owner, sql, tables) {
  const words = tokens(sql).filter((token) => token.kind !== 'space' && token.kind !== 'comment');
  const same = (token, name) => token && unquoted(token.text).toLowerCase() === name.toLowerCase();
  const isCalled = (table) =>
    words.some((word, index) => {
      if (!same(word, table.name)) return false;
      const next = words[index + 1]?.text.toLowerCase() === 'as' ? words[index + 2] : words[index + 1];
      return next?.kind === 'name' && same(next, owner);
    });
  const table = tables.find((known) => known.name.toLowerCase() === owner.toLowerCase()) ?? tables.find(isCalled);
  return table ? columnOptions(table) : [];
}

function columnOptions(table) {
  return table.columns.map((column) => ({ text: quoted(column.name), kind: 'column', detail: `${table.name} · ${column.type}` }));
}

function ranked(options, typed) {
  const wanted = typed.toLowerCase();
  const bare = (option) => unquoted(option.text).toLowerCase();
  // A word that is complete needs no other one: Enter is a new line then.
  if (options.some((option) => bare(option) === wanted)) return [];
  const seen = new Set();
  const fits = options.filter((option) => {
    const key = `${option.kind} ${option.text}`;
    const fitting = bare(option).includes(wanted) && !seen.has(key);
    seen.add(key);
    return fitting;
  });
  const rank = (option) => (bare(option).startsWith(wanted) ? 0 : 1);
  return fits.sort((a, b) => rank(a) - rank(b)).slice(0, 50);
}

export function quoted(name) {
  return /^[a-z_][a-z0-9_]*$/.test(name) && !KEYWORDS.has(name) ? name : `"${name.replaceAll('"', '""')}"`;
}

function unquoted(text) {
  return text.startsWith('"') ? text.slice(1).replace(/"$/, '').replaceAll('""', '"') : text;
}

// Where in the text a mistake is, from what the engine says (`query:2:14: …`): {start, end}, or null where it says no place.
export function mistakeRange(sql, line, column) {
  if (!line) return null;
  const lines = sql.split('\n');
  if (line > lines.length) return null;
  const before = lines.slice(0, line - 1).reduce((length, text) => length + text.length + 1, 0);
  const start = before + [...lines[line - 1]].slice(0, Math.max(0, (column ?? 1) - 1)).join('').length;
  const token = tokens(sql).find((found) => found.start <= start && start < found.start + found.text.length);
  const end = token && token.kind !== 'space' ? token.start + token.text.length : Math.min(sql.length, start + 1);
  return { start: Math.min(start, Math.max(0, sql.length - 1)), end: Math.max(end, start + 1) };
}
