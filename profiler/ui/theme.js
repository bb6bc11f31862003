// Dark or light: as the system says, until somebody says otherwise.
//
// Out: `data-theme` on the page, which the styles and the graph's colours follow. The choice is kept in this browser.

const KEY = 'emberscope-theme';
const system = matchMedia('(prefers-color-scheme: dark)');

function stored() {
  try { return localStorage.getItem(KEY); } catch { return null; }
}

const apply = () => { document.documentElement.dataset.theme = stored() ?? (system.matches ? 'dark' : 'light'); };

/** Sets it, and follows the system. */
export function startTheme(changed) {
  apply();
  system.addEventListener('change', () => { apply(); changed(); });
}

/** The other one. */
export function switchTheme() {
  const next = document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark';
  try { localStorage.setItem(KEY, next); } catch { /* it holds until the page is closed */ }
  document.documentElement.dataset.theme = next;
  return next;
}
