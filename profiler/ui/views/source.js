// What a graph is of: a selection, a comparison, or a stage's slow tasks.
//
// In: the state. Out: the route and parameters to ask with, the tree of the answer, a title, and what the quality
// lines are. Pure.

import { fromColumns, fromDiff } from '../flame/tree.js';
import { clock, safe } from '../format.js';
import { KINDS } from '../kinds.js';
import { selection, times } from '../state.js';
import { kindOf, unitOf } from '../units.js';

/** What is selected, in words: `app-1 · stage 3 · executor 1`. */
export function words(labels, query = '') {
  const names = { app: '', thread_class: 'class', stage_attempt: 'attempt' };
  const parts = Object.entries(labels).filter(([name]) => !['from', 'until', 'query'].includes(name))
    .map(([name, values]) => `${names[name] ?? name.replaceAll('_', ' ')} ${values.map((v) => safe(v || '(none)', 60)).join(' or ')}`.trim());
  if (query) parts.push(safe(query, 60));
  return parts.join(' · ') || 'whole node';
}

/** The labels of a comparison's right side: the left one's, and what is different. */
export const rightLabels = (state) => Object.fromEntries(Object.entries({ ...state.labels, ...state.right }).filter(([name]) => !['from', 'until', 'query'].includes(name)));

/** Whether there is anything to compare. */
export const differs = (state) => Object.keys(state.right).length > 0;

/** The question of a view: `[route, parameters]`. */
export function ask(state) {
  // CPU time is what a daemon compares unless it is told.
  const type = kindOf(state) === KINDS[0] ? [] : [['type', state.type]];
  if (state.view === 'slow') return ['diff', [...selection(state), ...Object.entries(times(state)), ...type, ['slow', '1'], ...DIFF]];
  if (state.view === 'compare') return ['diff', [...sides(state), ...type, ['scale', state.scale], ...DIFF]];
  const group = state.group ? [['group', state.group]] : [];
  const lines = state.lines ? [['lines', '1']] : [];
  return ['flamegraph', [...selection(state), ...Object.entries(times(state)), ['format', 'json'], ['columns', '1'], ['type', state.type], ['unit', unitOf(state)], ...group, ...lines]];
}

const DIFF = [['format', 'json'], ['nodes', '1'], ['limit', '1']];

function sides(state) {
  const out = [];
  const put = (side, pairs) => { for (const [name, value] of pairs) out.push([`${side}.${name}`, value]); };
  put('left', [...selection(state), ...Object.entries(times(state))]);
  put('right', selection(state, rightLabels(state)));
  const { from, until, query } = state.right;
  const query2 = query?.[0] ?? state.query;
  if (query2) put('right', [['query', query2]]);
  put('right', Object.entries(from && until ? { from: from[0], until: until[0] } : times(state)));
  return out;
}

/** The tree of an answer. */
export const treeOf = (state, answer) => (state.view === 'slow' || state.view === 'compare' ? fromDiff(answer) : fromColumns(answer));

/** What a graph is called. */
export function title(state) {
  if (state.view === 'slow') return `${words(state.labels)}: slow tasks against usual ones`;
  if (state.view === 'compare') return `${words(rightLabels(state))} against ${words(state.labels)}`;
  return words(state.labels, state.query);
}

/** From when to when an answer is, for a subtitle. */
export function span(answer) {
  const range = answer.range ?? answer.right?.range;
  return range ? `${new Date(range.from).toISOString()} to ${new Date(range.until).toISOString()} (${clock(range.from)} to ${clock(range.until)} here)` : '';
}
