// Numbers, sizes and times in words. Digits of exact values are never rounded here: only the spaces between them are set.

const SIZES = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];

export function count(value) {
  return value === null || value === undefined ? '–' : String(value).replace(/\B(?=(\d{3})+(?!\d))/g, '\u202f');
}

export function size(bytes) {
  if (bytes === null || bytes === undefined) return '–';
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < SIZES.length - 1) {
    value /= 1000;
    unit += 1;
  }
  const digits = unit === 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return `${value.toFixed(digits)} ${SIZES[unit]}`;
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return '–';
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  const whole = Math.round(seconds);
  const [days, hours, minutes] = [Math.floor(whole / 86400), Math.floor(whole / 3600) % 24, Math.floor(whole / 60) % 60];
  if (days) return `${days} d ${hours} h`;
  if (hours) return `${hours} h ${minutes} min`;
  return `${minutes} min ${whole % 60} s`;
}

export function clock(time) {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? '–' : date.toTimeString().slice(0, 8);
}

export function plural(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

// A share from 0 to 1 for a bar; null where the whole is not known.
export function share(part, whole) {
  if (!whole) return whole === 0 ? 1 : null;
  return Math.min(1, Math.max(0, part / whole));
}
