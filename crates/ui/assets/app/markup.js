// Markup as tagged templates, and the hooks that components use.
import htm from 'htm';
import { h } from 'preact';

export const html = htm.bind(h);
export { render } from 'preact';
export { useCallback, useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from 'preact/hooks';
