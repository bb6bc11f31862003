// What is being looked at, kept in the address behind `#`, so that a link shows the same.
//
// In: the address, and changes. Out: a plain object, and calls to whoever listens. Labels are lists (either
// value); `right.LABEL` is the other side of a comparison. What has its default value is not in the address. Pure
// but for `Store`.

import { KINDS } from './kinds.js';

/** Labels of the daemon that select samples. */
export const LABELS = ['app', 'executor', 'stage', 'stage_attempt', 'task', 'role', 'thread_class', 'task_index',
  'task_attempt', 'user', 'deploy', 'container', 'process', 'pid', 'service_name', 'app_name', 'app_run', 'node', 'source',
  'spark_user', 'spark_job', 'sql', 'operator', 'wait', 'lock', 'lock_owner', 'event'];

/** Everything else, with what it is when the address does not say. */
export const DEFAULTS = {
  type: KINDS[0].type, // what samples count
  view: 'apps', // apps, runs, versus, queries, stages, tasks, tax, executors, processes, flame, methods, slow, compare
  range: '-1h', // what the timeline shows: -1h, or FROM..UNTIL in milliseconds
  from: '', until: '', // the part of it that is chosen, milliseconds
  live: '', // 1: follow the newest window
  by: '', // what the timeline splits by
  query: '', // a PromQL selector
  execution: '', // of Spark SQL, in the view of queries
  left: '', other: '', // two runs, by their applications, in the views of runs
  unit: 'weight', // weight or samples
  order: 'icicle', // icicle (root on top) or flame
  invert: '', // 1: callers, the leaf first
  focus: '', // the method of the sandwich
  zoom: '', // a node, by the hash of its path
  q: '', // search
  hide: '', // kernel, jvm; with a comma both
  only: '', // beginnings of names, with commas: whose code is shown alone
  fold: '', // 0: the frames that all tasks share one by one
  colour: 'kind', // kind, package, or self
  sort: 'weight', // weight or name
  detail: '', // 1: compiled, inlined and interpreted code apart
  lines: '', // 1: source lines apart
  group: '', // labels as prefix frames
  ts: '', // a table's order: column, or -column
  tq: '', // a table's search
  scale: 'equal', // of a comparison: equal or absolute
  width: 'both', // of a comparison's graph: both, left, right
  contrast: 'redblue', // redblue or orangeblue
  table: '', // 1: a comparison as a table
};

/** Reads the part of an address behind `#`. Names that are not known are left out. */
export function parse(hash) {
  const out = { ...DEFAULTS, labels: {}, right: {} };
  const pairs = new URLSearchParams(hash.replace(/^#/, ''));
  for (const [name, value] of pairs) {
    const side = name.startsWith('right.') ? out.right : out.labels;
    const label = name.replace(/^right\./, '');
    if (LABELS.includes(label)) (side[label] ??= []).push(value);
    else if (side === out.right && ['from', 'until', 'query'].includes(label)) side[label] = [value];
    else if (name in DEFAULTS) out[name] = value;
  }
  // Links of earlier pages.
  if (out.unit === 'ns') out.unit = 'weight';
  return out;
}

/** The part behind `#` for a state. */
export function format(state) {
  const out = new URLSearchParams();
  for (const [name, usual] of Object.entries(DEFAULTS)) {
    if (state[name] !== usual) out.append(name, state[name]);
  }
  for (const [prefix, side] of [['', state.labels], ['right.', state.right]]) {
    for (const name of [...LABELS, 'from', 'until', 'query']) {
      for (const value of side[name] ?? []) out.append(prefix + name, value);
    }
  }
  // What may stand in a fragment as it is, for people's eyes.
  return `#${out.toString().replace(/%2C/gi, ',').replace(/%3A/gi, ':')}`;
}

/** A state with changes. `labels` and `right` are merged by label; an empty list takes one out. */
export function patched(state, change) {
  const out = { ...state, ...change };
  for (const side of ['labels', 'right']) {
    out[side] = { ...state[side], ...change[side] };
    for (const [name, values] of Object.entries(out[side])) {
      if (!values || values.length === 0) delete out[side][name];
    }
    if (change[side] === null) out[side] = {};
  }
  return out;
}

/** What is of one graph only, and is dropped when something else is looked at. */
export const FRESH = { zoom: '', focus: '', ts: '', tq: '' };

/** A state without some labels. */
export function without(state, names) {
  return { ...state, labels: Object.fromEntries(Object.entries(state.labels).filter(([name]) => !names.includes(name))) };
}

/** The times that are asked for: the chosen part, else the whole range. */
export function times(state) {
  if (state.from && state.until) return { from: state.from, until: state.until };
  return outer(state.range);
}

/** The times of a range. */
export function outer(range) {
  const [from, until] = range.split('..');
  return until ? { from, until } : { from };
}

/** Parameters of the API for what is selected; `left.` and the like by `prefix`. */
export function selection(state, side = state.labels) {
  const out = [];
  for (const name of LABELS) for (const value of side[name] ?? []) out.push([name, value]);
  if (side === state.labels && state.query) out.push(['query', state.query]);
  return out;
}

/** Parameters of a table: what is selected, but for operators, which stacks tell: only graphs and methods are of one. */
export const asked = (state) => [...selection(without(state, ['operator'])), ...Object.entries(times(state))];

/** The state and who listens to it. */
export class Store {
  constructor(window) {
    this.window = window;
    this.listeners = [];
    this.state = parse(window.location.hash);
    const read = () => this.#become(parse(window.location.hash));
    window.addEventListener('popstate', read);
    window.addEventListener('hashchange', read);
  }

  /** Changes it: a step that Back undoes, unless it replaces. */
  set(change, { replace = false } = {}) {
    const next = patched(this.state, change);
    const hash = format(next);
    if (hash === format(this.state)) return;
    const { history, location } = this.window;
    history[replace ? 'replaceState' : 'pushState'](null, '', location.pathname + location.search + hash);
    this.#become(next);
  }

  /** The address of a change, for links. */
  href(change) {
    return format(patched(this.state, change));
  }

  listen(listener) {
    this.listeners.push(listener);
  }

  #become(next) {
    const before = this.state;
    if (format(before) === format(next)) return;
    this.state = next;
    for (const listener of this.listeners) listener(next, before);
  }
}
