// Makes elements. Text is always text: nothing here, or anywhere on the page, parses HTML.
//
// In: a tag, properties, children. Out: an element. `on` holds listeners, `data` and `aria` their attributes,
// `style` custom properties and others by name; a property that is null, undefined or false is left out.

/** An element. */
export function h(tag, properties = {}, ...children) {
  const out = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === 'on') for (const [event, listener] of Object.entries(value)) out.addEventListener(event, listener);
    else if (name === 'style') for (const [key, v] of Object.entries(value)) out.style.setProperty(key, v);
    else if (name === 'aria') for (const [key, v] of Object.entries(value)) { if (v !== null && v !== undefined) out.setAttribute(`aria-${key}`, v); }
    else if (name === 'data') Object.assign(out.dataset, value);
    else if (name === 'value' || name === 'checked' || name === 'disabled' || name === 'selected') out[name] = value;
    else out.setAttribute(name, value === true ? '' : value);
  }
  out.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return out;
}

/** A choice with a name. */
export function select(label, choices, value, onChange, properties = {}) {
  const list = h('select', { ...properties, on: { change: (e) => onChange(e.target.value) } },
    choices.map(([key, text]) => h('option', { value: key, selected: key === value }, text)));
  return h('label', { class: 'field' }, h('span', {}, label), list);
}

/** A switch with a name; whoever made it says by `aria-pressed` how it stands. */
export function toggle(label, on, onChange, properties = {}) {
  const click = (e) => onChange(e.currentTarget.getAttribute('aria-pressed') !== 'true');
  return h('button', { type: 'button', class: 'toggle', aria: { pressed: String(Boolean(on)) }, ...properties, on: { click } }, label);
}

/** A button. */
export function button(label, onClick, properties = {}) {
  return h('button', { type: 'button', ...properties, on: { click: onClick } }, label);
}

/** Fills a part of the page anew: what is typed and chosen in it stays, and the focus, where its fields have an id. */
export function anew(host, ...children) {
  const typed = [...host.querySelectorAll('input[id]')].some((f) => f.value);
  const fields = typed ? [...host.querySelectorAll('input[id], select[id]')].map((f) => [f.id, f.value]) : [];
  const active = document.activeElement;
  const within = host.contains(active);
  const range = within && active.selectionStart !== undefined ? [active.selectionStart, active.selectionEnd] : null;
  host.replaceChildren(...children);
  for (const [id, value] of fields) {
    const field = host.querySelector(`#${CSS.escape(id)}`);
    if (field && value) field.value = value;
  }
  if (!within) return;
  const place = (active.id && host.querySelector(`#${CSS.escape(active.id)}`)) || host.querySelector('input, select, button, a');
  place?.focus({ preventScroll: true });
  if (range?.[0] !== null && range && place?.id === active.id) place.setSelectionRange?.(...range);
}

let saying;

/** Says something to those who hear the page. */
export function say(text) {
  const place = document.getElementById('say');
  if (!place) return;
  clearTimeout(saying);
  saying = setTimeout(() => { place.textContent = text; }, 150);
}
