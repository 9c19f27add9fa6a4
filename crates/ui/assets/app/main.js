// Where the page begins.
import { html, render } from './markup.js';
import { Shell } from './shell.js';

render(html`<${Shell} />`, document.getElementById('page'));
