// A flame graph in a notebook's cell, or in a file of its own: the page's view over one answer that stands in the document.
//
// In: JSON in the element `given`: `answer` (columns of `/api/v1/flamegraph`), `title`, `state` (what the view begins with),
// `lines` (what else is to be said). Out: the view in the element `app`. Nothing is asked and nothing is kept: what would be a
// new question (another kind, groups, lines, a link) is hidden by notebook.css, and the state is no part of an address that anybody keeps.

import { h } from '../../../profiler/ui/dom.js';
import { safe } from '../../../profiler/ui/format.js';
import { listenKeys } from '../../../profiler/ui/keys.js';
import { DEFAULTS, format, parse, patched } from '../../../profiler/ui/state.js';
import { FlameView } from '../../../profiler/ui/views/flame.js';

const given = JSON.parse(document.getElementById('given').textContent);
document.documentElement.dataset.theme = 'light';

/** The page's store, without its history. */
const store = {
  state: { ...DEFAULTS, view: 'flame', labels: {}, right: {}, ...given.state },
  set(change) {
    this.state = patched(this.state, change);
    asTable.setAttribute('aria-pressed', String(this.state.view === 'methods'));
    view.follow(this.state);
  },
  href(change) { return format(patched(this.state, change)); },
};

const view = new FlameView({ store, link: () => {} });
const asTable = h('button', {
  type: 'button', id: 'methods', class: 'toggle', aria: { pressed: 'false' },
  on: { click: () => store.set({ view: store.state.view === 'methods' ? 'flame' : 'methods' }) },
}, 'Methods');
view.element.querySelector('.toolbar .row.small').append(asTable);
// A method of the table leads to its sandwich. Its link must not be followed: in a cell it would lead to the notebook's address.
view.table.addEventListener('click', (event) => {
  const link = event.target.closest('tr.goes')?.querySelector('a[href^="#"]');
  if (!link || String(getSelection())) return;
  event.preventDefault();
  event.stopPropagation();
  store.set(parse(link.getAttribute('href')));
}, true);
view.about(h('h2', {}, safe(given.title, 300)), given.lines.map((line) => h('p', { class: 'note' }, safe(line, 600))));
document.documentElement.style.setProperty('--lines', given.lines.length);
document.getElementById('app').append(view.element, h('p', { id: 'say', class: 'quiet', role: 'status' }));
listenKeys({ '/': () => view.element.querySelector('#search').focus() });
view.take(store.state, given.answer).then(() => { document.documentElement.dataset.drawn = '1'; });
