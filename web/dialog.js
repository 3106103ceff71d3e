// A modal dialog of the browser's own: it keeps the focus, and Escape closes it.
import { html, useEffect, useRef } from './dom.js';

export function Dialog({ title, onClose, children }) {
  const box = useRef(null);
  useEffect(() => {
    const dialog = box.current, before = /** @type {HTMLElement} */ (document.activeElement);
    dialog.showModal();
    return () => { if (dialog.open) dialog.close(); before?.focus?.(); };
  }, []);
  return html`<dialog ref=${box} aria-labelledby="dialog-title" onCancel=${(event) => { event.preventDefault(); onClose(); }}
    onClick=${(event) => { if (event.target === box.current && event.offsetX < 0) onClose(); }}>
    <h2 id="dialog-title">${title}</h2>${children}</dialog>`;
}
