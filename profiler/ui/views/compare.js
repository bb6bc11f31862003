// What stands above a comparison's graph: its two sides and the verdict; of slow tasks who they are, and why they are slow.
//
// In: the state and the answer. Out: elements. The left side is what is selected; the right side is the same but for
// what is said here: other labels, or another time.

import { button, h } from '../dom.js';
import { clock, count, duration, percent, safe } from '../format.js';
import { times } from '../state.js';
import { filterForm } from './filters.js';
import { kindOf } from '../units.js';
import { words } from './source.js';
import { verdict } from './verdict.js';

const rangeOf = (state) => {
  const { from, until } = times(state);
  return until ? `${clock(Number(from))} to ${clock(Number(until))}` : `the last ${from.replace('-', '')}`;
};

/** Both sides of a comparison, and how to change the right one. */
export function sides(state, store, answer) {
  const { right } = state;
  const drop = (name, value) => store.set({ right: { [name]: (right[name] ?? []).filter((v) => v !== value) } });
  const own = Object.entries(right).filter(([name]) => !['from', 'until', 'query'].includes(name));
  const chips = own.flatMap(([name, values]) => values.map((value) => h('span', { class: 'chip' }, `${name.replaceAll('_', ' ')} ${safe(value || '(none)', 60)}`, button('×', () => drop(name, value), { class: 'drop', aria: { label: `Remove ${name} ${safe(value, 60)}` } }))));
  if (right.from) chips.push(h('span', { class: 'chip' }, `${clock(Number(right.from[0]))} to ${clock(Number(right.until[0]))}`, button('×', () => store.set({ right: { from: [], until: [] } }), { class: 'drop', aria: { label: 'The same time as the left side' } })));
  const take = () => store.set({ right: { from: [state.from], until: [state.until] }, from: '', until: '' });
  const swap = () => {
    const labels = Object.fromEntries(own);
    const back = Object.fromEntries(own.map(([name]) => [name, state.labels[name] ?? []]));
    const change = { labels, right: back, zoom: '' };
    if (right.from) Object.assign(change, { from: right.from[0], until: right.until[0], right: { ...back, from: state.from ? [state.from] : [], until: state.until ? [state.until] : [] } });
    store.set(change);
  };
  return h('div', { class: 'sides' },
    h('section', {}, h('h2', {}, 'Left'), h('p', {}, words(state.labels, state.query)), h('p', { class: 'muted' }, rangeOf(state), ' · the filters and the timeline above')),
    h('section', {}, h('h2', {}, 'Right'), h('p', {}, chips.length > 0 ? ['the same, but with ', chips] : 'the same so far: add what is different'),
      filterForm({ id: 'right', store, add: (name, value) => store.set({ right: { [name]: [...(store.state.right[name] ?? []), value] }, zoom: '' }), label: 'is' }),
      h('p', { class: 'row' },
        state.from ? button(`Use ${clock(Number(state.from))} to ${clock(Number(state.until))} for the right side`, take, { id: 'take-window' }) : h('span', { class: 'muted' }, 'Or drag a range on the timeline, and use it here.'),
        chips.length > 0 ? button('Swap sides', swap, { id: 'swap' }) : null)),
    answer ? verdict(answer) : null);
}

const REASONS = { cpu: 'CPU', run_delay: 'run delay', blocked: 'waiting, not sampled', throttled: 'throttled' };

/**
 * What slow tasks have more of than usual ones, as words and where each leads: parts over a percent, the most first; and the locks
 * among it, each with who held it.
 */
export function reasons(facts) {
  const parts = (facts.because ?? []).filter((part) => part.share >= 0.01).map((part) => ({
    text: `${REASONS[part.of] ?? safe(part.of, 40)} ${percent(part.share, 0)} (${duration(part.seconds)} a task)`,
    to: part.of === 'cpu' ? { view: 'flame', type: 'cpu' } : part.of in REASONS ? null : { view: 'flame', type: 'off-cpu', labels: { wait: [part.of] } },
  }));
  const locks = (facts.locks ?? []).map((l) => ({
    text: `${safe(l.lock)} held by ${safe(l.owner)} (${duration(l.seconds)} a task)`,
    to: { view: 'flame', type: 'lock', labels: { lock: [l.lock], lock_owner: [l.owner] } },
  }));
  return { parts, locks };
}

/** A task that took long without much CPU time, where tasks are slow by CPU: words, and where it leads. Null where there is none. */
export function longest({ long }) {
  if (!long) return null;
  const index = `#${safe(long.task_index ?? '–', 12)}${long.task_attempt && long.task_attempt !== '0' ? ` (attempt ${safe(long.task_attempt, 12)})` : ''}`;
  const where = long.executor ? ` on executor ${safe(long.executor, 20)}` : '';
  // Up to Spark 4.1 only samples of waits tell a task's end from its thread's wait for the next one.
  const maybe = long.waits_sampled ? '' : '; up to Spark 4.1 its thread’s wait for the next task may be part of that';
  return {
    text: `Slow by wall time is another: task ${index}${where} took ${duration(long.wall_seconds)}, ${duration(long.blocked_seconds)} of it blocked, where the usual ones took ${duration(long.usual_wall_seconds)}${maybe}.`,
    to: long.task ? { view: 'flame', type: long.waits_sampled ? 'off-cpu' : 'cpu', labels: { task: [long.task] } } : null,
    name: long.waits_sampled ? 'What it waited for' : 'Its flame graph',
  };
}

/** Why the slow tasks are slow. */
function why(facts, store) {
  const { parts, locks } = reasons(facts);
  const links = (list) => list.map(({ text, to }) => (to ? h('a', { class: 'chip', href: store.href(to) }, text) : h('span', { class: 'chip' }, text)));
  const line = (name, list) => (list.length > 0 ? h('p', { class: 'chips' }, h('strong', {}, name), ' ', links(list)) : null);
  return parts.length > 0 ? h('section', {}, h('h2', {}, 'Why'), line('Slow because of', parts), line('Locks', locks)) : null;
}

function another(facts, store) {
  const found = longest(facts);
  return found && h('p', { class: 'verdict' }, found.text, found.to ? [' ', h('a', { href: store.href(found.to) }, found.name)] : null);
}

/** Who the slow tasks are, and why. */
export function slow(answer, store) {
  const { slow: facts, left, right } = answer;
  if (!facts) return verdict(answer);
  const list = (side) => (side.tasks ?? []).slice(0, 12).map((t) => h('a', {
    class: 'chip', href: store.href({ view: 'flame', labels: { task: [t.task] } }),
    title: `task ${safe(t.task, 20)} on executor ${safe(t.executor, 20)}`,
  }, `#${safe(t.task_index, 12)} ${duration(t.cpu_seconds)}`));
  const by = facts.by === 'wall' ? 'wall' : 'cpu';
  const at = (p) => duration(facts[`p${p}_${by}_seconds`]);
  const each = by === 'wall' ? 'each, from start to end' : 'CPU each';
  const side = (name, s, says) => h('section', {}, h('h2', {}, name), h('p', {}, `${count(s.task_count)} of ${count(facts.tasks)} tasks, ${says}`), h('p', { class: 'chips' }, list(s), (s.tasks ?? []).length > 12 ? h('span', { class: 'muted' }, `and ${s.task_count - 12} more`) : null));
  return h('div', { class: 'sides' },
    side('Usual tasks (left)', left, `${at(40)} to ${at(60)} ${each}`),
    side('Slow tasks (right)', right, `above ${at(90)} ${each}`),
    why(facts, store),
    verdict(answer),
    another(facts, store),
    by === 'wall' || kindOf(right).type !== 'cpu' ? h('p', { class: 'verdict muted' }, `Methods are compared by ${kindOf(right).title}.`) : null);
}
