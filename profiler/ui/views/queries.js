// Queries of Spark SQL by what their tasks did, and one of them: its plan as a graph, and its operators as a table.
//
// In: `/sql`. Out: tables; a row of a query leads to its plan, a row or a box of an operator to its flame graph.

import { h } from '../dom.js';
import { count, duration, instant, percent, plusMinus, safe, seconds } from '../format.js';
import { planGraph } from '../plan/graph.js';
import { kept, table } from '../table.js';
import { nothing } from '../trouble.js';
import { FRESH, asked } from '../state.js';
import { amount, cell, kindOf } from '../units.js';
import { waitedFor } from './stages.js';

/** What to ask. An execution is asked for within an application alone, for each has numbers of its own. */
export function ask(state) {
  const one = state.execution && state.labels.app?.length ? [['execution', state.execution]] : [];
  return ['sql', [...asked(state), ['type', state.type], ...one]];
}

const stagesOf = (row) => row.stages.map(String);

/** Columns of what samples weigh. */
function cost(kind, most, whole) {
  const of = (row) => row[kind.amount] ?? 0;
  const label = kind.unit === 'ns' ? `${kind.title}, s` : kind.title;
  return [
    { key: 'cost', label, value: of, show: (row) => (kind.unit === 'ns' ? seconds(of(row)) : cell(of(row), kind.unit)), bar: (row) => of(row) / (most || 1) },
    { key: 'share', label: '%', value: (row) => row.share, show: (row) => percent(row.share), hint: whole },
    { key: 'error', label: 'Error', value: (row) => -row.samples, show: (row) => h('span', { class: 'muted' }, plusMinus(row.samples)), hint: 'Sampling error' },
  ];
}

/** What to show. */
export function show(answer, { state, store }) {
  const kind = kindOf(state);
  if (answer.queries.length === 0) {
    return nothing('No task was sampled in this range', answer.windows === 0 ? answer.note : 'No Spark task ran here, or there are samples of another kind only.');
  }
  return state.execution && answer.operators ? one(answer, { state, store, kind }) : list(answer, { state, store, kind });
}

const named = (q) => q.execution !== null;

/** Where a query leads: to its plan, or to the flame graph of what is no query. */
export function leads(q, store) {
  const app = q.app ? { app: [q.app] } : {};
  return named(q) ? store.href({ ...FRESH, view: 'queries', execution: String(q.execution), labels: app })
    : store.href({ ...FRESH, view: 'flame', labels: { ...app, stage: stagesOf(q) } });
}

/** Seconds that a query took; NaN while it runs, and of none. */
export const length = (q) => (Date.parse(q.ended) - Date.parse(q.begun)) / 1000;

/** Columns of what the queries' tasks waited for, by the kernel's accounts and by reason; none of an older daemon. */
function waiting(rows) {
  const exact = (key, label, of, hint) => ({ key, label, value: (q) => (q.exact ? of(q.exact) : undefined), show: (q) => seconds(q.exact ? of(q.exact) : NaN), hint });
  return [
    ...(rows.some((q) => q.exact) ? [
      exact('delay', 'Run delay, s', (e) => e.run_delay_seconds, 'Its tasks’ own threads were ready to run, and every CPU was busy'),
      exact('blocked', 'Blocked, s', (e) => Math.max(0, e.blocked_seconds), 'They were neither running nor ready to run'),
    ] : []),
    ...(rows.some((q) => q.waited) ? [{ key: 'waited', label: 'Waiting for', text: true, wide: true, value: waitedFor, show: (q) => waitedFor(q) || '–' }] : []),
  ];
}

function list(answer, { state, store, kind }) {
  const most = Math.max(...answer.queries.map((q) => q[kind.amount] ?? 0));
  const of = { key: 'app', label: 'Application', text: true, wide: true, value: (q) => q.app_name ?? q.app, show: (q) => safe(q.app_name ?? q.app ?? '–', 60) };
  const columns = [
    { key: 'execution', label: 'Query', text: true, value: (q) => (named(q) ? String(q.execution) : '~'), show: (q) => (named(q) ? `Query ${q.execution}` : 'no query known') },
    { key: 'name', label: 'What it is', text: true, wide: true, value: (q) => q.description, show: (q) => (named(q) ? safe(q.description ?? '–', 90) : 'tasks of jobs that are not SQL, or that Spark said nothing about') },
    ...(state.labels.app?.length ? [] : [of]),
    ...cost(kind, most, 'Of all tasks’ samples'),
    ...waiting(answer.queries),
    { key: 'began', label: 'Began', value: (q) => Date.parse(q.begun), show: (q) => (q.begun ? instant(Date.parse(q.begun)) : '–') },
    { key: 'took', label: 'Took', value: length, show: (q) => (Number.isFinite(length(q)) ? duration(length(q)) : q.begun ? 'running' : '–') },
    { key: 'jobs', label: 'Jobs', text: true, value: (q) => q.jobs.join(', '), show: (q) => safe(q.jobs.join(', '), 40) },
    { key: 'stages', label: 'Stages', text: true, value: (q) => q.stages.join(', '), show: (q) => safe(q.stages.join(', '), 40) },
  ];
  return table({
    caption: 'Queries', label: 'queries', columns, rows: answer.queries, usual: '-cost', ...kept(state, store),
    link: (q) => leads(q, store),
    none: '',
  });
}

function one(answer, { state, store, kind }) {
  const query = answer.queries[0];
  const link = (rows) => store.href({ ...FRESH, view: 'flame', labels: { stage: all(rows, stagesOf), operator: all(rows, (row) => row.labels) } });
  const most = Math.max(...answer.operators.map((o) => o[kind.amount] ?? 0));
  const waits = answer.operators.some((o) => o.waited_seconds > 0);
  const columns = [
    { key: 'operator', label: 'Operator', text: true, wide: true, value: (o) => o.operator, show: (o) => safe(o.operator, 90) },
    ...cost(kind, most, 'Of the query’s samples'),
    ...(waits ? [{ key: 'waited', label: 'Waiting, s', value: (o) => o.waited_seconds, show: (o) => seconds(o.waited_seconds ?? NaN), hint: 'By samples of waits' }] : []),
    { key: 'of', label: 'Known as', text: true, value: (o) => o.of, show: (o) => KNOWN[o.of] ?? safe(o.of, 30) },
    { key: 'stages', label: 'Stages', text: true, value: (o) => o.stages.join(', '), show: (o) => safe(o.stages.join(', '), 40) },
  ];
  const flame = store.href({ ...FRESH, view: 'flame', labels: { stage: stagesOf(query) } });
  const { plan } = answer;
  return h('div', {},
    h('p', {}, h('a', { href: store.href({ ...FRESH, execution: '' }) }, 'All queries'), ' › ', h('b', {}, `Query ${query.execution}`), query.description ? ` ${safe(query.description, 200)}` : '', ' · ',
      `${amount(query[kind.amount] ?? 0, kind)} ${kind.title} ${plusMinus(query.samples)}`, ' · ', `stages ${query.stages.join(', ')}`, ' · ', h('a', { href: flame }, 'Flame graph of the whole query')),
    plan?.nodes.length > 0 ? h('section', {}, h('h2', {}, 'Plan'),
      h('p', { class: 'note' }, 'Rows flow down. A box is an operator, its bar the part of the query’s samples that belongs to it alone; a box leads to its flame graph.'),
      planGraph({ plan, operators: answer.operators, kind, link })) : h('p', { class: 'note' }, safe(plan?.says ?? '', 300)),
    table({
      caption: 'Operators', label: 'operators', columns, rows: answer.operators.filter((o) => o.samples > 0 || o.waited_seconds > 0), usual: '-cost', ...kept(state, store),
      link: (o) => (o.labels.length > 0 ? link([o]) : null),
      none: 'No sample was taken of this query.',
    }), h('p', { class: 'muted aside' }, count(query.samples), ' samples in all.'));
}

/** What the API's words for how an operator is known mean. */
const KNOWN = { operator: 'one operator', fused: 'several in one loop', codegen: 'generated code, of operators not known', around: 'Spark’s or another engine’s work', unknown: 'not known' };

const all = (rows, values) => [...new Set(rows.flatMap(values))];
