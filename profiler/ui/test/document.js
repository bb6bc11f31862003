// As much of a document as the page's elements need where there is no browser: a tree with text, attributes and classes.

class Style { setProperty(name, value) { this[name] = value; } }

/** An element. Selectors are `.class`, `tag` or `#id`, one of them. */
export class Element {
  constructor(tag) {
    Object.assign(this, { tag, children: [], attributes: {}, dataset: {}, listeners: {}, style: new Style(), clientWidth: 0, width: 0, height: 0 });
  }

  setAttribute(name, value) { this.attributes[name] = String(value); }
  getAttribute(name) { return this.attributes[name] ?? null; }
  removeAttribute(name) { delete this.attributes[name]; }
  addEventListener(name, listener) { this.listeners[name] = listener; }
  append(...children) { this.children.push(...children); }
  replaceChildren(...children) { this.children = children; }
  getContext() { return { clearRect: () => { this.cleared = true; } }; }
  set textContent(text) { this.children = [text]; }
  get textContent() { return this.children.map((c) => (c instanceof Element ? c.textContent : String(c))).join(''); }
  get classes() { return (this.attributes.class ?? '').split(' '); }
  get all() { return this.children.flatMap((c) => (c instanceof Element ? [c, ...c.all] : [])); }
  querySelectorAll(selector) {
    const name = selector.replace(/^[.#]/, '');
    return this.all.filter((e) => (selector[0] === '.' ? e.classes.includes(name) : selector[0] === '#' ? e.attributes.id === name : e.tag === name));
  }
  querySelector(selector) { return this.querySelectorAll(selector)[0] ?? null; }
}

/** Makes the names that the page takes from its window. */
export function install() {
  globalThis.document = { baseURI: 'http://host/', createElement: (tag) => new Element(tag), createElementNS: (_, tag) => new Element(tag), getElementById: () => null };
  globalThis.ResizeObserver = class { observe() {} };
}

/** Head and cells of an element's first table. */
export function cells(element) {
  const table = element.querySelector('table');
  const texts = (row) => row.children.map((cell) => cell.textContent);
  return { head: texts(table.querySelector('tr')), rows: table.querySelector('tbody').children.map(texts) };
}
