// Where a tree is shaped: here when it is small, in a worker when it is large.
//
// In: a tree, then options. Out: what compute.js gives, the newest question's only: an older answer that comes late
// is dropped (null). Without workers everything is done here.

import { compute } from './compute.js';

/** From so many nodes on a worker is worth its round trip. */
const LARGE = 20_000;

let policy;

/** The page's content policy lets no text become a script's address but this one. */
function workerAddress() {
  const url = new URL('./worker.js', import.meta.url).href;
  if (!globalThis.trustedTypes) return url;
  policy ??= globalThis.trustedTypes.createPolicy('emberscope-worker', { createScriptURL: (given) => {
    if (given !== url) throw new TypeError('not the worker');
    return given;
  } });
  return policy.createScriptURL(url);
}

/** Shapes one tree after another. */
export class Engine {
  #worker = null;
  #source = null;
  #asked = 0;
  #waiting = new Map();

  /** Takes a tree. */
  load(source) {
    this.#source = source;
    this.#asked += 1;
    this.large = source.parent.length >= LARGE && typeof Worker === 'function';
    if (!this.large) return;
    if (!this.#worker) {
      this.#worker = new Worker(workerAddress(), { type: 'module' });
      this.#worker.addEventListener('message', ({ data }) => this.#answer(data));
      this.#worker.addEventListener('error', () => this.#fail());
    }
    this.#worker.postMessage({ load: source });
  }

  /** Shapes it; null where something newer was asked meanwhile. */
  async shape(options) {
    const id = (this.#asked += 1);
    if (!this.large) return compute(this.#source, options);
    const result = await new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject, options });
      this.#worker.postMessage({ id, options });
    });
    return id === this.#asked ? result : null;
  }

  close() {
    this.#worker?.terminate();
    this.#worker = null;
  }

  #answer({ id, result, error }) {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error) waiting?.reject(new Error(error));
    else waiting?.resolve(result);
  }

  /** The worker could not start: what waits is done here. */
  #fail() {
    this.large = false;
    for (const { resolve, reject, options } of this.#waiting.values()) {
      try { resolve(compute(this.#source, options)); } catch (error) { reject(error); }
    }
    this.#waiting.clear();
    this.close();
  }
}
