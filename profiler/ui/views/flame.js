// The view of a flame graph, its table of methods, and comparisons: one thing, for they have the same controls.
//
// In: the state and answers of the daemon. Out: an element that follows the state: what must be asked again is asked,
// what must be shaped again is shaped, else only drawn.

import { anew, h, say } from '../dom.js';
import { count, safe } from '../format.js';
import { colours, legend } from '../flame/colour.js';
import { compute } from '../flame/compute.js';
import { Engine } from '../flame/engine.js';
import { Graph } from '../flame/graph.js';
import { widths } from '../flame/layout.js';
import { openMenu } from '../flame/menu.js';
import { search } from '../flame/search.js';
import { save } from '../export/save.js';
import { qualityLine } from '../quality.js';
import { renew } from '../table.js';
import { longer, nothing } from '../trouble.js';
import { methodsTable } from './methods.js';
import { span, title, treeOf } from './source.js';
import { Toolbar } from './toolbar.js';
import { kindOf, unitOf } from '../units.js';

const list = (text) => text.split(',').map((word) => word.trim()).filter(Boolean);
const asTable = (state) => state.view === 'methods' || (['compare', 'slow'].includes(state.view) && state.table === '1');
const isDark = () => document.documentElement.dataset.theme === 'dark';

/** The view. */
export class FlameView {
  constructor({ store, link }) {
    this.store = store;
    this.engine = new Engine();
    this.toolbar = new Toolbar({
      store,
      save: (format) => this.#save(format),
      copy: link,
      reset: () => this.graph.zoomTo(0),
      next: (step) => this.graph.nextFound(step),
    });
    this.graph = new Graph({
      zoom: (zoom) => store.set({ zoom }),
      whole: (is) => this.toolbar.whole(is),
      menu: (node, x, y) => this.#menu(node, x, y),
      unfold: () => store.set({ fold: '0', zoom: '' }),
      say,
    });
    this.head = h('div', { class: 'graph-head' });
    this.legend = h('ul', { class: 'legend' });
    this.quality = h('div', { class: 'qualities' });
    this.table = h('div');
    this.note = h('div');
    this.element = h('section', { class: 'flame-view', aria: { label: 'Flame graph' } }, this.head, this.toolbar.element, this.note, this.graph.element, this.table, this.legend, this.quality);
    this.toolbar.sync(store.state);
  }

  /** Takes an answer of the daemon. */
  async take(state, answer) {
    performance.mark('answer');
    this.answer = answer;
    this.source = treeOf(state, answer);
    this.engine.load(this.source);
    this.shaped = null;
    this.quality.replaceChildren(...(answer.left ? [qualityLine(answer.left, `Left, ${answer.left.name ?? 'the selection'}`), qualityLine(answer.right, `Right, ${answer.right.name ?? 'the other'}`)] : [qualityLine(answer)]).filter(Boolean));
    await this.follow(state);
  }

  /** Follows the state. */
  async follow(state) {
    this.toolbar.sync(state);
    if (!this.source) return;
    const empty = this.source.parent.length <= 1 && !this.source.sum.some((column) => column[0] > 0);
    const options = { hide: list(state.hide), only: list(state.only), fold: !state.fold && !asTable(state), detail: Boolean(state.detail || state.lines), invert: Boolean(state.invert), focus: state.focus, sort: state.sort, basis: state.width };
    const key = JSON.stringify(options);
    if (key !== this.shaped) {
      this.shaped = key;
      this.options = options;
      let result;
      try {
        result = await this.engine.shape(options);
      } catch (error) {
        this.note.replaceChildren(nothing('The graph could not be laid out', error.message));
        return;
      }
      if (!result) return;
      this.result = result;
      this.drawn = null;
      performance.mark('laid-out');
    }
    this.#show(this.store.state, empty);
  }

  #show(state, empty) {
    if (!this.result) return; // the first shape is under way
    const { tree } = this.result;
    const table = asTable(state);
    this.graph.element.hidden = table || empty;
    this.legend.hidden = table || empty;
    this.table.hidden = !table || empty;
    this.note.replaceChildren(...(empty ? [this.#empty()] : this.result.missing ? [h('p', { class: 'note' }, `${safe(state.focus, 120)} is not in this answer.`)] : []));
    if (state.focus) this.toolbar.sandwich(safe(state.focus, 80), () => this.store.set({ focus: '', zoom: '' }));
    const look = { colour: state.colour, contrast: state.contrast, dark: isDark() };
    const key = JSON.stringify([look, state.order, state.zoom, unitOf(state)]);
    if (this.drawn !== key && !table) {
      this.drawn = key;
      this.graph.show(this.result, { ...look, order: state.order, zoom: state.zoom, unit: unitOf(state), shape: JSON.stringify([this.shaped, state.view, state.labels, state.right, state.group]) });
      this.legend.replaceChildren(...legend(tree, { ...look, unit: unitOf(state) }).map(([colour, name]) => h('li', {}, h('i', { style: { background: colour } }), safe(name, 40))));
    }
    const found = search(tree, state.q, widths(tree, state.width));
    this.toolbar.found(found);
    this.graph.mark(found);
    if (state.q !== this.sought && !table) this.graph.seek(found);
    this.sought = state.q;
    if (table) renew(this.table, () => this.table.replaceChildren(methodsTable(this.result, state, this.store, this.answer)));
  }

  #empty() {
    const note = this.answer.note ?? this.answer.right?.note ?? this.answer.left?.note;
    return nothing('No samples here', note ?? kindOf(this.store.state).none, 'Choose a longer range, or remove a filter.', longer(this.store));
  }

  /** The theme has changed. */
  restyle() {
    this.drawn = null;
    if (this.result) this.#show(this.store.state, false);
  }

  #menu(node, x, y) {
    const { tree } = this.graph;
    const frame = tree.frames[tree.frame[node]];
    const name = safe(frame.name, 60);
    const { store } = this;
    const copy = async () => {
      try { await navigator.clipboard.writeText(frame.name); say(`Copied ${name}`); } catch { say('The browser does not let this page copy.'); }
    };
    const exact = frame.name.slice(0, 400).replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
    openMenu(x, y, name, [
      ['Zoom to it', () => this.graph.zoomTo(node)],
      ['Sandwich: its callers and callees', () => store.set({ focus: frame.name, invert: '', zoom: '' })],
      ['Copy its name', copy],
      // Of generated code alone: what its method is for.
      ...(frame.operator ? [[`All of its operator: ${safe(frame.operator, 60)}`, () => store.set({ labels: { operator: [frame.operator] }, focus: '', zoom: '' })]] : []),
      ['Search for it', () => store.set({ q: `^${exact}$` })],
      ['See it in the table of methods', () => store.set(['compare', 'slow'].includes(store.state.view) ? { table: '1', tq: frame.name } : { view: 'methods', tq: frame.name, ts: '' })],
      ['Whole graph', () => this.graph.zoomTo(0)],
    ], this.graph.box);
  }

  async #save(format) {
    const { state } = this.store;
    if (!this.result) return;
    // A fold is for eyes: files of data have all frames.
    const { tree, layout } = format === 'svg' || !this.options.fold ? this.result : compute(this.source, { ...this.options, fold: false });
    const quality = (this.answer.right ?? this.answer).quality;
    const range = (this.answer.right ?? this.answer).range;
    try {
      await save(format, {
        tree, layout, title: title(state), unit: unitOf(state), kind: kindOf(state), flame: state.order === 'flame',
        x0: this.graph.view.x0, x1: this.graph.view.x1, colours: colours(tree, { colour: state.colour, contrast: state.contrast }),
        subtitle: `${span(this.answer)}, ${count(quality.samples)} samples, ${count(quality.lost)} lost`,
        from: Date.parse(range.from), until: Date.parse(range.until),
      });
      say('Saved.');
    } catch (error) {
      say(`It could not be saved: ${error.message}`);
    }
  }

  /** What stands above the graph. */
  about(...content) {
    anew(this.head, ...content.flat().filter(Boolean));
  }

  close() {
    this.engine.close();
    this.graph.close();
  }
}
