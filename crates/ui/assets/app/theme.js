// Light or dark: as the system says, until somebody chooses.
import { makeStore } from './store.js';

const system = window.matchMedia('(prefers-color-scheme: dark)');

export const theme = makeStore({ chosen: null, dark: system.matches });

system.addEventListener('change', () => theme.set(({ chosen }) => ({ dark: chosen === null ? system.matches : chosen === 'dark' })));

export function toggleTheme() {
  const chosen = theme.get().dark ? 'light' : 'dark';
  document.documentElement.dataset.theme = chosen;
  theme.set({ chosen, dark: chosen === 'dark' });
}

// A colour of the theme, for what is drawn on a canvas.
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
