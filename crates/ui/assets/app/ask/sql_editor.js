// The SQL editor: a plain text field, so that every habit of the browser works, over the same text in colours.
import { html, useEffect, useMemo, useRef, useState } from '../markup.js';
import { completions, tokens } from '../sql_words.js';

const LINE = 20;
const CHAR_SAMPLE = 'mmmmmmmmmmmmmmmmmmmm';

export function SqlEditor({ sql, change, run, tables, mistake }) {
  const field = useRef(null);
  const colours = useRef(null);
  const [offer, setOffer] = useState(null);
  const charWidth = useCharWidth(colours);

  const follow = () => {
    colours.current.scrollTop = field.current.scrollTop;
    colours.current.scrollLeft = field.current.scrollLeft;
  };
  const propose = (always) => {
    const { value, selectionStart, selectionEnd } = field.current;
    if (selectionStart !== selectionEnd) return setOffer(null);
    const { start, options } = completions(value, selectionStart, tables);
    const isWorth = options.length > 0 && (always || selectionStart - start >= 1 || value[start - 1] === '.');
    return setOffer(isWorth ? { start, options, chosen: 0, end: selectionStart } : null);
  };
  const accept = (option) => {
    field.current.focus();
    field.current.setSelectionRange(offer.start, offer.end);
    // Undo works only for what is typed, and this counts as typed.
    document.execCommand('insertText', false, option.text);
    setOffer(null);
  };
  const keys = (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      setOffer(null);
      return run();
    }
    if (event.key === ' ' && event.ctrlKey) {
      event.preventDefault();
      return propose(true);
    }
    if (!offer) return undefined;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      const { length } = offer.options;
      return setOffer({ ...offer, chosen: (offer.chosen + step + length) % length });
    }
    if (event.key === 'Tab' || (event.key === 'Enter' && !event.shiftKey)) {
      event.preventDefault();
      return accept(offer.options[offer.chosen]);
    }
    if (event.key === 'Escape') {
      event.preventDefault();
      return setOffer(null);
    }
    if (['ArrowLeft', 'ArrowRight', 'Home', 'End'].includes(event.key)) setOffer(null);
    return undefined;
  };
  const input = (event) => {
    change(event.currentTarget.value);
    propose(false);
  };
  useEffect(follow, [sql]);

  const described = mistake ? 'sql-mistake' : undefined;
  return html`<div class="editor">
    <pre class="colours" ref=${colours} aria-hidden="true">${coloured(sql, mistake)}${'\n '}</pre>
    <textarea
      ref=${field}
      id="sql"
      aria-label="SQL"
      aria-describedby=${described}
      aria-invalid=${mistake ? 'true' : undefined}
      aria-autocomplete="list"
      aria-controls="completions"
      spellcheck=${false}
      autocapitalize="off"
      autocomplete="off"
      placeholder="SELECT … FROM …"
      value=${sql}
      onInput=${input}
      onKeyDown=${keys}
      onScroll=${follow}
      onBlur=${() => setOffer(null)}
    ></textarea>
    ${offer && html`<${Offer} offer=${offer} place=${placeOf(sql, offer.start, charWidth, field.current)} accept=${accept} />`}
  </div>`;
}

function Offer({ offer, place, accept }) {
  const list = useRef(null);
  useEffect(() => list.current.children[offer.chosen]?.scrollIntoView({ block: 'nearest' }), [offer.chosen]);
  return html`<ul class="offer" id="completions" role="listbox" aria-label="Completions" ref=${list} style=${place}>
    ${offer.options.map(
      (option, index) => html`<li
        key=${`${option.kind}${option.text}${option.detail}`}
        role="option"
        aria-selected=${index === offer.chosen ? 'true' : 'false'}
        onMouseDown=${(event) => {
          event.preventDefault();
          accept(option);
        }}
      >
        <span class=${option.kind}>${option.text}</span><small>${option.detail || option.kind}</small>
      </li>`,
    )}
  </ul>`;
}

// The text in colours, with the mistake underlined.
function coloured(sql, mistake) {
  const parts = [];
  for (const { kind, text, start } of tokens(sql)) {
    const end = start + text.length;
    const isWrong = mistake && start < mistake.end && mistake.start < end;
    const name = [kind, isWrong ? 'wrong' : ''].filter((word) => word && word !== 'space').join(' ');
    parts.push(name ? html`<span class=${name}>${text}</span>` : text);
  }
  return parts;
}

function placeOf(sql, start, charWidth, field) {
  const lines = sql.slice(0, start).split('\n');
  const [line, column] = [lines.length, lines.at(-1).length];
  const left = Math.max(0, 12 + column * charWidth - (field?.scrollLeft ?? 0));
  return { left: `min(${left}px, calc(100% - 260px))`, top: `${10 + line * LINE - (field?.scrollTop ?? 0)}px` };
}

function useCharWidth(element) {
  const [width, setWidth] = useState(7.8);
  const context = useMemo(() => document.createElement('canvas').getContext('2d'), []);
  useEffect(() => {
    context.font = getComputedStyle(element.current).font;
    setWidth(context.measureText(CHAR_SAMPLE).width / CHAR_SAMPLE.length);
  }, []);
  return width;
}
