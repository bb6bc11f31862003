import assert from 'node:assert/strict';
import test from 'node:test';
import { DEFAULTS, Store, format, parse, patched, selection, times } from '../state.js';
import { ask, title, words } from '../views/source.js';

test('what is in the address comes back, and what is usual is not in it', () => {
  assert.equal(format(parse('')), '#');
  const hostile = '<img src=x onerror=alert(1)>&#%00\u202e';
  const state = patched(parse(''), { view: 'flame', q: hostile, labels: { app: [hostile, 'b'], stage: ['3'] }, right: { stage: ['4'], from: ['1'], until: ['2'] }, zoom: 'abc', hide: 'jvm,kernel' });
  assert.deepEqual(parse(format(state)), state);
  for (const name of Object.keys(DEFAULTS)) {
    const one = patched(parse(''), { [name]: 'v' });
    assert.deepEqual(parse(format(one)), one, name);
  }
  assert.equal(format(parse('#nonsense=1&__proto__=2&view=flame')), '#view=flame');
});

test('labels are merged by name, and an empty list takes one out', () => {
  const state = parse('#app=a&stage=1&stage=2');
  assert.deepEqual(state.labels, { app: ['a'], stage: ['1', '2'] });
  assert.deepEqual(patched(state, { labels: { stage: [] } }).labels, { app: ['a'] });
  assert.deepEqual(patched(state, { labels: null }).labels, {});
});

test('questions', () => {
  assert.deepEqual(times(parse('#range=-5m')), { from: '-5m' });
  assert.deepEqual(times(parse('#range=100..200')), { from: '100', until: '200' });
  assert.deepEqual(times(parse('#from=120&until=130')), { from: '120', until: '130' });
  assert.deepEqual(selection(parse('#app=a&app=b&query={}')), [['app', 'a'], ['app', 'b'], ['query', '{}']]);
  const [route, pairs] = ask(parse('#view=compare&app=a&stage=1&right.stage=2&right.from=5&right.until=6'));
  assert.equal(route, 'diff');
  const text = new URLSearchParams(pairs).toString();
  assert.equal(text, 'left.app=a&left.stage=1&left.from=-1h&right.app=a&right.stage=2&right.from=5&right.until=6&scale=equal&format=json&nodes=1&limit=1');
  assert.equal(new URLSearchParams(ask(parse('#view=slow&app=a&stage=1'))[1]).get('slow'), '1');
  const kinds = ['compare&app=a&right.stage=2', 'slow&app=a&stage=1'].map((of) => new URLSearchParams(ask(parse(`#view=${of}&type=alloc`))[1]).get('type'));
  assert.deepEqual(kinds, ['alloc', 'alloc']);
  assert.equal(new URLSearchParams(ask(parse('#view=methods&unit=samples&lines=1&group=stage'))[1]).toString(), 'from=-1h&format=json&columns=1&type=cpu&unit=samples&group=stage&lines=1');
});

test('titles', () => {
  assert.equal(words({}), 'whole node');
  assert.equal(words({ app: ['a\u202eb'], stage: ['1', '2'] }), 'a\\u{202e}b · stage 1 or 2');
  assert.equal(title(parse('#view=compare&app=a&stage=1&right.stage=2')), 'a · stage 2 against a · stage 1');
});

test('a step can be undone, and nothing is told twice', () => {
  const listeners = {};
  const calls = [];
  const window = {
    location: { hash: '#app=a', pathname: '/p/', search: '' },
    history: { pushState: (s, t, url) => { calls.push(['push', url]); window.location.hash = url.slice(3); }, replaceState: (s, t, url) => calls.push(['replace', url]) },
    addEventListener: (name, f) => { listeners[name] = f; },
  };
  const store = new Store(window);
  let told = 0;
  store.listen(() => { told += 1; });
  store.set({ view: 'flame' });
  store.set({ view: 'flame' });
  store.set({ q: 'x' }, { replace: true });
  assert.deepEqual(calls, [['push', '/p/#view=flame&app=a'], ['replace', '/p/#view=flame&q=x&app=a']]);
  assert.equal(told, 2);
  window.location.hash = '#app=b';
  listeners.popstate();
  listeners.hashchange();
  assert.equal(told, 3);
  assert.equal(store.href({ view: 'stages' }), '#view=stages&app=b');
});
