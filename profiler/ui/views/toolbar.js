// The controls of a graph.
//
// In: the store, and what the graph can do. Out: an element; `sync` sets every control to the state, `found` says what
// the search found. Controls change the state only: the graph follows.

import { button, h, select, toggle } from '../dom.js';
import { FORMATS } from '../export/save.js';
import { percent } from '../format.js';
import { KINDS } from '../kinds.js';

const GROUPS = [['', 'nothing'], ['thread_class', 'thread class'], ['stage', 'stage'], ['operator', 'operator'], ['sql', 'query'], ['sql,operator', 'query, operator'], ['executor', 'executor'], ['role', 'role'], ['stage,thread_class', 'stage, class'], ['lock,lock_owner', 'lock, owner'], ['event', 'event'], ['process', 'process']];

/** The controls. */
export class Toolbar {
  constructor({ store, save, copy, reset, next }) {
    this.store = store;
    const set = (change) => store.set(change, { replace: true });
    this.search = h('input', {
      type: 'search', id: 'search', placeholder: 'Search methods (regular expression)  /', maxlength: '500', spellcheck: 'false', autocomplete: 'off',
      aria: { label: 'Search methods by a regular expression', describedby: 'found' },
      on: {
        input: (e) => set({ q: e.target.value }),
        keydown: (e) => { if (e.key === 'Enter') { e.preventDefault(); next(e.shiftKey ? -1 : 1); } if (e.key === 'Escape' && e.target.value) { set({ q: '' }); e.stopPropagation(); } },
      },
    });
    this.result = h('span', { id: 'found', class: 'found', role: 'status' });
    this.controls = {
      order: select('Root', [['icicle', 'on top'], ['flame', 'at the bottom']], 'icicle', (order) => set({ order }), { id: 'order' }),
      invert: toggle('Callers first', false, (on) => set({ invert: on ? '1' : '', focus: '', zoom: '' }), { id: 'invert', title: 'Each stack from its last frame up: what the CPU was in, and who called it' }),
      kernel: toggle('Hide kernel', false, (on) => this.#hide('kernel', on), { id: 'hide-kernel' }),
      jvm: toggle('Hide JVM', false, (on) => this.#hide('jvm', on), { id: 'hide-jvm', title: 'Frames of libjvm.so and the JVM’s stubs; their time goes to who called them' }),
      colour: select('Colour', [['kind', 'kind of code'], ['package', 'package'], ['self', 'self time']], 'kind', (colour) => set({ colour }), { id: 'colour' }),
      contrast: select('Colour', [['redblue', 'red and blue'], ['orangeblue', 'orange and blue (for all eyes)']], 'redblue', (contrast) => set({ contrast }), { id: 'contrast' }),
      width: select('Width', [['both', 'both sides'], ['right', 'right side'], ['left', 'left side']], 'both', (width) => set({ width, zoom: '' }), { id: 'width' }),
      scale: select('Compare', [['equal', 'shares'], ['absolute', 'amounts']], 'equal', (scale) => set({ scale }), { id: 'scale' }),
      sort: select('Order', [['weight', 'largest first'], ['name', 'by name']], 'weight', (sort) => set({ sort }), { id: 'sort' }),
      group: select('Group by', GROUPS, '', (group) => store.set({ group, zoom: '' }), { id: 'group' }),
      type: select('Of', KINDS.map((kind) => [kind.type, kind.title]), KINDS[0].type, (type) => store.set({ type, zoom: '' }), { id: 'type' }),
      unit: select('Count', [['weight', 'amount'], ['samples', 'samples']], 'weight', (unit) => set({ unit }), { id: 'unit' }),
      detail: toggle('Kinds apart', false, (on) => set({ detail: on ? '1' : '', zoom: '' }), { id: 'detail', title: 'Compiled, inlined and interpreted code of one method are boxes of their own' }),
      lines: toggle('Lines', false, (on) => store.set({ lines: on ? '1' : '', zoom: '' }), { id: 'lines', title: 'Source lines are told apart' }),
      fold: toggle('Task frames', false, (on) => set({ fold: on ? '0' : '', zoom: '' }), { id: 'task-frames', title: 'The frames from a thread’s start to Task.run, which all tasks share, one by one instead of as one box' }),
      only: this.#only(set),
      table: toggle('As a table', false, (on) => set({ table: on ? '1' : '' }), { id: 'as-table' }),
    };
    const download = h('select', { id: 'download', aria: { label: 'Download what is shown' }, on: { change: (e) => { const format = e.target.value; e.target.value = ''; if (format) save(format); } } },
      h('option', { value: '' }, 'Download …'), FORMATS.map(([key, name]) => h('option', { value: key }, name)));
    this.zoomOut = button('Whole graph', reset, { id: 'whole' });
    this.focus = h('span', { class: 'focus' });
    const c = this.controls;
    this.element = h('div', { class: 'toolbar', role: 'group', aria: { label: 'Controls of the graph' } },
      h('div', { class: 'row' }, h('span', { class: 'search' }, this.search, this.result), this.focus, this.zoomOut, h('span', { class: 'gap' }), download, button('Copy link', copy, { id: 'copy-link' })),
      h('div', { class: 'row small' }, c.table, c.scale, c.width, c.contrast, c.order, c.invert, c.kernel, c.jvm, c.fold, c.only, c.colour, c.sort, c.group, c.type, c.unit, c.detail, c.lines));
  }

  /** A field for the beginnings of names whose code is shown alone. */
  #only(set) {
    this.own = h('input', { type: 'search', id: 'only', placeholder: 'com.example', maxlength: '500', spellcheck: 'false', autocomplete: 'off', on: { change: (e) => set({ only: e.target.value.trim(), zoom: '' }) } });
    return h('label', { class: 'field', title: 'Only frames whose names begin so, several with commas; what they call counts as their self time' }, h('span', {}, 'Only code of'), this.own);
  }

  #hide(name, on) {
    const now = new Set(this.store.state.hide.split(',').filter(Boolean));
    if (on) now.add(name); else now.delete(name);
    this.store.set({ hide: [...now].sort().join(','), zoom: '' }, { replace: true });
  }

  /** Sets the controls to a state. */
  sync(state) {
    const { controls: c } = this;
    const pair = ['compare', 'slow'].includes(state.view);
    const table = state.view === 'methods' || (pair && state.table);
    const press = (name, on) => c[name].setAttribute('aria-pressed', String(Boolean(on)));
    press('invert', state.invert);
    press('kernel', state.hide.split(',').includes('kernel'));
    press('jvm', state.hide.split(',').includes('jvm'));
    press('detail', state.detail);
    press('lines', state.lines);
    press('table', state.table);
    press('fold', state.fold);
    if (this.own.value !== state.only && document.activeElement !== this.own) this.own.value = state.only;
    for (const name of ['order', 'colour', 'contrast', 'width', 'scale', 'sort', 'group', 'type', 'unit']) c[name].querySelector('select').value = state[name];
    const hide = (names, hidden) => { for (const name of names) c[name].hidden = hidden; };
    hide(['colour', 'group', 'unit', 'lines'], pair);
    hide(['contrast', 'width', 'table'], !pair);
    hide(['scale'], state.view !== 'compare');
    hide(['order', 'sort', 'invert', 'fold'], table);
    if (table) hide(['contrast', 'width', 'colour', 'group'], true);
    if (this.search.value !== state.q) this.search.value = state.q;
    this.search.parentElement.hidden = table;
    this.zoomOut.hidden = table || (!state.zoom && this.isWhole !== false);
    this.focus.hidden = !state.focus;
  }

  /** Whether the graph shows all of its width. */
  whole(is) {
    this.isWhole = is;
    if (!this.search.parentElement.hidden) this.zoomOut.hidden = is && !this.store.state.zoom;
  }

  /** Says of whom the sandwich is. */
  sandwich(name, drop) {
    this.focus.replaceChildren('Sandwich of ', document.createElement('b'), button('×', drop, { aria: { label: 'Leave the sandwich' }, class: 'drop', id: 'leave-sandwich' }));
    this.focus.querySelector('b').textContent = name;
  }

  /** Says what a search found. */
  found(result) {
    this.search.setAttribute('aria-invalid', String(Boolean(result?.error)));
    this.result.textContent = !result ? '' : result.error ? `Not a regular expression: ${result.error.replace(/^Invalid regular expression: /, '')}` : `${percent(result.share)} in ${result.nodes} box${result.nodes === 1 ? '' : 'es'}`;
  }
}
