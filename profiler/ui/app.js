// The page: its frame, and who asks what when.
//
// In: the address. Out: the page. The state decides all: a change of what is asked fetches again (an older question
// is dropped), any other only redraws. Live asks again whenever a window should have closed.

import { get } from './api.js';
import { anew, button, h, say } from './dom.js';
import { safe } from './format.js';
import { help } from './help.js';
import { listenKeys } from './keys.js';
import { Period } from './period.js';
import { FRESH, Store } from './state.js';
import { SparkPages } from './spark.js';
import { Strip } from './strip.js';
import { renew } from './table.js';
import { startTheme, switchTheme } from './theme.js';
import { trouble } from './trouble.js';
import { qualityLine } from './quality.js';
import * as apps from './views/apps.js';
import * as stages from './views/stages.js';
import * as executors from './views/executors.js';
import * as queries from './views/queries.js';
import * as runs from './views/runs.js';
import * as versus from './views/versus.js';
import * as tasks from './views/tasks.js';
import * as tax from './views/tax.js';
import * as source from './views/source.js';
import * as compare from './views/compare.js';
import { FlameView } from './views/flame.js';
import { chips, filterForm } from './views/filters.js';
import { nothing } from './trouble.js';

const VIEWS = [['apps', 'Applications'], ['runs', 'Runs'], ['versus', 'Two runs'], ['queries', 'Queries'], ['stages', 'Stages'], ['tasks', 'Tasks'], ['executors', 'Executors'], ['tax', 'Tax'], ['flame', 'Flame graph'], ['methods', 'Methods'], ['compare', 'Compare'], ['slow', 'Slow tasks'], ['processes', 'Processes']];
const TABLES = {
  apps: [apps.ask, apps.show], stages: [stages.ask, stages.show],
  queries: [queries.ask, queries.show], tasks: [tasks.ask, tasks.show], tax: [tax.ask, tax.show],
  runs: [runs.ask, runs.show], versus: [versus.ask, versus.show],
  executors: [executors.ask, executors.show], processes: [executors.ask, executors.showProcesses],
};

const store = new Store(window);
const names = {}; // of applications by id
const links = new Map(); // to the views
let asked = null; // the question that the view shows
let asking = null; // the request under way
let answer = null;
let flame = null;
let timer = 0;

const nav = h('nav', { aria: { label: 'Views' } });
const filters = h('div', { class: 'filters' });
const view = h('main', { id: 'main', tabindex: '-1' });
const busy = h('span', { class: 'busy', hidden: true }, 'loading …');
const node = h('span', { class: 'muted node' });
const period = new Period({ store, refresh: () => refresh() });
const pages = new SparkPages();
const strip = new Strip({ store, names, pages, known: () => { if (['flame', 'methods'].includes(store.state.view)) about(store.state); } });

function frame() {
  const theme = button('◐', () => { say(`${switchTheme()} colours`); restyle(); }, { aria: { label: 'Dark or light' }, title: 'Dark or light', id: 'theme' });
  document.getElementById('app').replaceChildren(
    button('Skip to the content', () => view.focus(), { class: 'skip' }),
    h('header', {}, h('a', { class: 'brand', href: '#' }, 'Emberscope'), node, busy, h('span', { class: 'gap' }), period.element, theme, button('?', help, { aria: { label: 'Help' }, title: 'Help: ?', id: 'help' })),
    nav, filters, strip.element, view);
}

function showNav(state) {
  for (const [key, name] of VIEWS) {
    let link = links.get(key);
    if (!link) { links.set(key, link = h('a', {}, name)); nav.append(link); }
    link.setAttribute('href', store.href(key === 'apps' ? { view: key, ...FRESH, labels: null, right: null } : { view: key, ...FRESH, execution: '' }));
    link.hidden = key !== state.view && ((key === 'slow' && !state.labels.stage?.length) || (key === 'versus' && !(state.left && state.other)));
    if (key === state.view) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  // In a narrow window they are a row that can be pushed: the current one is to be in sight.
  if (nav.scrollWidth > nav.clientWidth) nav.scrollLeft = (links.get(state.view)?.offsetLeft ?? 0) - nav.clientWidth / 3;
  // Not made anew while nothing of it changes: Live would take away what is being typed.
  const key = JSON.stringify([state.labels, state.query, state.labels.app?.map((id) => names[id])]);
  if (filters.dataset.of === key) return;
  filters.dataset.of = key;
  const add = (name, value) => {
    const { labels, view: now } = store.state;
    store.set({ ...FRESH, labels: { [name]: [...(labels[name] ?? []), value] }, ...(now === 'apps' ? { view: 'flame' } : {}) });
  };
  const all = chips(state, store, names);
  anew(filters, h('span', { class: 'muted' }, all.length > 0 ? 'Selected' : 'Selected: the whole node'), ...all, filterForm({ id: 'filter', store, add }));
}

/** Fills the view. The focus stays in it when what had it is gone. */
function place(...children) {
  const within = view.contains(document.activeElement);
  view.replaceChildren(...children);
  if (within && !view.contains(document.activeElement)) view.focus({ preventScroll: true });
}

/** What a state asks the daemon; null where something must be said first. */
function question(state) {
  if (state.view === 'compare' && !source.differs(state)) return null;
  if (state.view === 'slow' && !(state.labels.app && state.labels.stage)) return null;
  return TABLES[state.view] ? TABLES[state.view][0](state) : source.ask(state);
}

async function follow(state, { again = false } = {}) {
  showNav(state);
  document.title = `${source.title(state)} – Emberscope`;
  const next = question(state);
  const key = JSON.stringify([next, TABLES[state.view] ? state.view : 'flame']);
  if (key === asked && !again) { await redraw(state); return; }
  const old = asked;
  asked = key;
  asking?.abort();
  if (!next) { answer = null; unasked(state); return; }
  const mine = new AbortController();
  asking = mine;
  busy.hidden = false;
  if (!again || !answer) view.setAttribute('aria-busy', 'true');
  try {
    performance.mark('ask');
    const got = await get(...next, { signal: mine.signal });
    if (asking !== mine) return;
    answer = got;
    for (const app of got.apps ?? []) names[app.id] = app.name;
    pages.learn(Array.isArray(got.stages) ? got.stages : []);
    period.sync(store.state, seen(got));
    await redraw(store.state, true);
    if (key !== old) say(`${VIEWS.find(([k]) => k === state.view)?.[1] ?? ''}: ready.`);
  } catch (error) {
    if (error.name === 'AbortError' || asking !== mine) return;
    answer = null;
    asked = null;
    if (!error.code) console.error(error);
    closeFlame();
    place(trouble(error, { again: () => refresh(), choose: (change) => store.set(change) }));
  } finally {
    if (asking === mine) { busy.hidden = true; view.removeAttribute('aria-busy'); }
  }
}

const seen = (got) => {
  // Runs are of all that is kept, whatever time is chosen.
  if (['runs', 'versus'].includes(store.state.view)) return undefined;
  const range = got.range ?? got.left?.range;
  return range ? { from: Date.parse(range.from), until: Date.parse(range.until) } : undefined;
};

async function redraw(state, fresh = false) {
  if (!answer) { if (!question(state)) unasked(state); return; }
  if (TABLES[state.view]) { showTable(state); return; }
  if (!flame) {
    flame = new FlameView({ store, link: copyLink });
    place(flame.element);
  } else if (!flame.element.isConnected) place(flame.element);
  about(state);
  if (fresh) await flame.take(state, answer);
  else await flame.follow(state);
}

/** What stands above the graph. The answer may be there before the stages are, or after. */
function about(state) {
  if (!flame || !answer) return;
  flame.about(state.view === 'compare' ? compare.sides(state, store, answer) : state.view === 'slow' ? compare.slow(answer, store) : strip.stage(state));
}

function showTable(state) {
  closeFlame();
  const [, show] = TABLES[state.view];
  const lines = answer.left ? [qualityLine(answer.left, 'Left'), qualityLine(answer.right, 'Right')] : [qualityLine(answer)];
  renew(view, () => place(show(answer, { state, store, pages }), ...lines.filter(Boolean)));
}

/** Before there is a question. */
function unasked(state) {
  closeFlame();
  busy.hidden = true;
  view.removeAttribute('aria-busy');
  place(state.view === 'versus' ? nothing('Which two runs?', h('span', {}, 'Choose them in the ', h('a', { href: store.href({ view: 'runs', ...FRESH }) }, 'list of runs'), '.'))
    : state.view === 'compare' ? h('div', {}, compare.sides(state, store, null), nothing('What should be compared?', 'The left side is what the filters and the timeline select. Add above what is different on the right: another stage, executor, application or range.'))
    : nothing('Slow tasks of which stage?', h('span', {}, 'Choose an application, then a stage in the ', h('a', { href: store.href({ view: 'stages', ...FRESH }) }, 'table of stages'), '.')));
}

function closeFlame() {
  flame?.close();
  flame = null;
}

async function copyLink() {
  // The time as it is now, not as it will be when the link is opened.
  const { state } = store;
  const range = answer && seen(answer);
  const fixed = range && !state.from ? store.href({ from: String(range.from), until: String(range.until), range: `${range.from}..${range.until}`, live: '' }) : location.hash;
  const link = location.href.replace(/#.*$/, '') + fixed;
  try { await navigator.clipboard.writeText(link); say('Copied the link. It shows this range for as long as the daemon keeps it.'); } catch { location.hash = fixed; say('The link is in the address bar.'); }
}

async function refresh() {
  await Promise.all([follow(store.state, { again: true }), strip.follow(store.state, true)]);
}

function live(state) {
  clearTimeout(timer);
  if (!state.live) return;
  const length = (answer?.window_seconds ?? strip.answer?.window_seconds ?? 10) * 1000;
  timer = setTimeout(async () => {
    if (!document.hidden) {
      await strip.follow(store.state, true);
      const slide = strip.newest(store.state);
      if (slide) store.set(slide, { replace: true });
      else await follow(store.state, { again: true });
    }
    live(store.state);
  }, length);
}

function restyle() {
  flame?.restyle();
  strip.timeline.paint();
}

async function identify() {
  try {
    const status = await get('status');
    node.textContent = `${safe(status.node, 60)} · ${safe(status.version, 20)}`;
    if (!status.ready && status.waiting_for) say(status.waiting_for);
  } catch { node.textContent = ''; }
}

startTheme(restyle);
frame();
store.listen((state) => { period.sync(state, answer && seen(answer)); follow(state); strip.follow(state); live(state); });
const go = (key) => () => { location.hash = store.href({ view: key, ...FRESH }); };
listenKeys({
  '/': () => { const field = view.querySelector('#search:not([hidden]), .filter'); field?.focus(); field?.select(); },
  '?': help, g: () => view.querySelector('.graph')?.focus(), t: () => strip.timeline.box.focus(),
  l: () => store.set({ live: store.state.live ? '' : '1' }), 1: go('apps'), 2: go('stages'), 3: go('executors'), 4: go('flame'), 5: go('methods'), 6: go('compare'),
  Escape: () => { if (store.state.focus) store.set({ focus: '', zoom: '' }); else if (store.state.zoom) store.set({ zoom: '' }); },
});
period.sync(store.state);
follow(store.state);
strip.follow(store.state);
live(store.state);
identify();
