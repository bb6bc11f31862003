// The strip above every view: the timeline, and for one stage where its time went.
//
// In: the state. Out: `/series`, `/stages` and `/pauses` drawn. An error stands in a line, without the chart of what was asked
// before: the view below shows its own.

import { get } from './api.js';
import { h, select } from './dom.js';
import { duration, percent, safe } from './format.js';
import { FRESH, outer, selection, without } from './state.js';
import { Timeline } from './timeline.js';
import { kindOf } from './units.js';
import * as stages from './views/stages.js';

const BY = [['thread_class', 'thread class'], ['role', 'role'], ['executor', 'executor'], ['stage', 'stage'], ['app_name', 'application'], ['process', 'process'], ['operator', 'operator']];

/** Labels that say of which JVMs pauses are shown. */
const WHOSE = ['app', 'executor', 'role', 'pid', 'node'];

const of = (state, names) => Object.fromEntries(names.filter((name) => state.labels[name]).map((name) => [name, state.labels[name]]));

/** A pause as the timeline has it. */
const pause = (p) => ({
  from: Date.parse(p.began), until: Date.parse(p.began) + p.seconds * 1000,
  name: `${p.cause ?? 'cause not known'} of ${p.executor ? `executor ${p.executor}` : (p.role ?? `pid ${p.pid}`)}`,
});

/** The strip. */
export class Strip {
  /** `known` is called when the timeline and the stages are there. */
  constructor({ store, names, pages, known }) {
    this.store = store;
    this.names = names;
    this.pages = pages;
    this.known = known;
    this.timeline = new Timeline({
      choose: (from, until) => store.set(from === null ? { from: '', until: '' } : { from: String(Math.max(0, from)), until: String(until), live: '' }),
      pick: (lane) => store.set({ ...FRESH, view: 'flame', labels: lane.labels }),
    });
    this.by = select('Split by', BY, 'thread_class', (by) => store.set({ by }, { replace: true }), { id: 'by' });
    this.note = h('p', { class: 'muted note' });
    this.timeline.element.querySelector('.timeline-foot').append(this.by);
    this.element = h('section', { class: 'strip', aria: { label: 'Timeline' } }, this.timeline.element, this.note);
  }

  /** Follows the state; asks again where the question is another one. */
  async follow(state, again = false) {
    const by = state.by || (state.labels.app || state.labels.pid ? 'thread_class' : 'app_name');
    this.by.querySelector('select').value = by;
    // A task's stage is not what the timeline is of: it shows when the stage ran in its application.
    const seen = without(state, ['task', 'task_index', 'task_attempt']);
    const pairs = [...selection(seen), ...Object.entries(outer(state.range)), ['type', state.type]];
    const key = JSON.stringify([pairs, by]);
    if (key === this.asked && !again) { this.#show(state, by); return; }
    this.asked = key;
    this.asking?.abort();
    const mine = (this.asking = new AbortController());
    try {
      const apps = state.labels.app?.length ? get('stages', [...selection({ ...state, labels: { app: state.labels.app }, query: '' }), ...Object.entries(outer(state.range)), ['join', 'no']], { signal: mine.signal }) : null;
      const paused = state.labels.app?.length ? get('pauses', [...selection({ ...state, labels: of(state, WHOSE), query: '' }), ...Object.entries(outer(state.range)), ['limit', '1000']], { signal: mine.signal }) : null;
      const [answer, list, stood] = await Promise.all([get('series', [...pairs, ['by', by]], { signal: mine.signal }), apps?.catch(() => null), paused?.catch(() => null)]);
      if (this.asking !== mine) return;
      this.answer = answer;
      this.stages = list?.stages ?? [];
      this.pauses = (stood?.pauses ?? []).map(pause);
      this.note.textContent = '';
      this.#show(this.store.state, by);
      this.known();
    } catch (error) {
      if (error.name === 'AbortError' || this.asking !== mine) return;
      this.asked = null;
      this.answer = null;
      this.timeline.clear();
      this.note.textContent = error.code === 'unauthorized' ? '' : `No timeline: ${safe(error.message, 300)}`;
    }
  }

  #show(state, by) {
    if (!this.answer) return;
    const window = state.from && state.until ? { from: Number(state.from), until: Number(state.until) } : null;
    const on = (s) => state.labels.stage?.includes(s.stage);
    const spans = this.stages.filter((s) => s.stage !== 'unknown').map((s) => ({
      from: Date.parse(s.first_seen), until: Date.parse(s.last_seen), on: on(s), name: `${stages.title(s)}: ${duration(stages.cpuOf(s))} CPU`,
      labels: { app: [s.app], stage: [s.stage], stage_attempt: s.stage_attempt ? [s.stage_attempt] : [] },
    }));
    this.timeline.show(this.answer, by, window, { spans, pauses: this.pauses });
  }

  /** Where the chosen range goes when a newer window has closed; null where none is chosen. */
  newest(state) {
    const end = Date.parse(this.answer?.span?.until);
    if (!state.from || !end || Number(state.until) === end) return null;
    return { from: String(end - (Number(state.until) - Number(state.from))), until: String(end) };
  }

  /** One stage's time in a line, where just one is selected. */
  stage(state) {
    const { app, stage } = state.labels;
    if (!this.stages || app?.length !== 1 || stage?.length !== 1 || stage[0] === 'unknown') return null;
    const found = this.stages.find((s) => s.stage === stage[0] && (!state.labels.stage_attempt || state.labels.stage_attempt.includes(s.stage_attempt)));
    const parts = found && stages.parts(found);
    if (!parts) return null;
    const whole = found.exact.wall_seconds || 1;
    const kind = kindOf(state);
    const limited = state.from || state.labels.executor || state.labels.task ? ' (the whole stage)' : '';
    return h('div', { class: 'where' },
      h('p', {}, h('b', {}, `${stages.title(found)}${limited}`), `: its ${found.tasks} tasks took ${duration(whole)} in all. The graph below shows ${kind.type === 'cpu' ? 'the part on the CPU' : `their ${kind.title}`}. `, h('a', { href: this.store.href({ ...FRESH, view: 'slow' }) }, 'Slow tasks'), ' ', this.pages.link(found, 'In Spark')),
      stages.split(found),
      h('ul', { class: 'legend' }, parts.map(([key, name, s, says]) => h('li', { title: says }, h('i', { class: key }), `${name} `, h('b', {}, duration(s)), ` ${percent(s / whole, 0)}`))));
  }
}
