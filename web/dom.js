// One place that knows where markup comes from: htm bound to Preact. Text is text: nothing here makes markup of it.
import { h, render } from './vendor/preact.js';
import htm from './vendor/htm.js';

export const html = htm.bind(h);
export { render };
export { useState, useEffect, useLayoutEffect, useRef, useCallback, useMemo } from './vendor/hooks.js';
