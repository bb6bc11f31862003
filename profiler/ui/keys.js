// Keys that work anywhere on the page.
//
// In: what each does. Out: nothing; they are silent while something is typed, and with Ctrl, Alt or Meta.

/** Connects them. */
export function listenKeys(actions) {
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.target.closest?.('input, select, textarea, dialog, .menu')) return;
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
}
