// Which chart an answer is shown as, by the types of its columns.

export function isNumber(type) {
  return /^(int|float|decimal|numeric)/.test(type);
}

export function isTime(type) {
  return /^(date|timestamp)/.test(type);
}

export const CHARTS = ['bar', 'line', 'scatter'];

// {kind, x, y: [columns]}, or null where there is nothing to draw. Columns are {name, type}; x and y are their places.
export function chooseChart(columns, rows) {
  const numbers = places(columns, isNumber);
  const times = places(columns, isTime);
  const texts = columns.map((_, place) => place).filter((place) => !numbers.includes(place) && !times.includes(place));
  if (!numbers.length || rows === 0) return null;
  if (times.length) return { kind: 'line', x: times[0], y: numbers.slice(0, 4) };
  if (texts.length) return { kind: 'bar', x: texts[0], y: [numbers.find((place) => !/(^|_)id$/i.test(columns[place].name)) ?? numbers[0]] };
  if (numbers.length === 1) return { kind: 'line', x: null, y: numbers };
  const [first, ...others] = numbers;
  const counts = /(year|month|week|day|hour|quarter|jahr|monat)/i.test(columns[first].name);
  return { kind: counts ? 'line' : 'scatter', x: first, y: others.slice(0, counts ? 4 : 1) };
}

function places(columns, fits) {
  return columns.map((column, place) => (fits(column.type) ? place : -1)).filter((place) => place >= 0);
}

// The values of a column for a chart. A chart draws with floats; the table beside it shows every digit.
export function chartValues(rows, place, type) {
  return rows.map((row) => {
    const text = row[place];
    if (text === null || text === undefined) return null;
    const value = isTime(type) ? Date.parse(text.length === 10 ? `${text}T00:00:00Z` : `${text.replace(' ', 'T')}Z`) / 1000 : Number(text);
    return Number.isFinite(value) ? value : null;
  });
}

// Rows in the order of x, as lines need them.
export function inOrderOf(xs, series) {
  const order = xs.map((_, index) => index).filter((index) => xs[index] !== null).sort((a, b) => xs[a] - xs[b]);
  return [order.map((index) => xs[index]), ...series.map((values) => order.map((index) => values[index]))];
}
