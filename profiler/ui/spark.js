// Links to Spark's own pages: a driver's, or a history server's.
//
// In: rows of `/stages`; `spark.page` is where the daemon found a stage's page. Out: links. An address of the daemon's
// own machine is given the name by which this page was asked for: Spark's pages are there too. What is no web address
// is no link.

import { h } from './dom.js';

const HERE = ['127.0.0.1', '[::1]', 'localhost'];

/** An address as this browser can ask for it; null where it is none. */
export function reachable(text, host) {
  let url;
  try { url = new URL(text); } catch { return null; }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return null;
  if (HERE.includes(url.hostname) && host && !HERE.includes(host)) url.hostname = host;
  return url.href;
}

const outside = (href, ...text) => h('a', { href, target: '_blank', rel: 'noopener noreferrer', title: 'Opens Spark’s own page', class: 'outside' }, text);

/** What is known of Spark's pages. Limit: the rows of the last answers. */
export class SparkPages {
  #stages = new Map();
  #apps = new Map();

  /** Takes the rows of an answer. */
  learn(stages, host = location.hostname) {
    for (const { app, stage, stage_attempt: attempt, spark } of stages ?? []) {
      const page = spark?.page && reachable(spark.page, host);
      if (!page) continue;
      if (this.#stages.size > 5000) this.#stages.clear();
      this.#stages.set(JSON.stringify([app, stage, attempt]), page);
      this.#apps.set(app, page.replace(/stages\/stage\/[^/]*$/, ''));
    }
  }

  /** A stage's page, as a link; its text alone, or nothing where that says nothing by itself, where it is not known. */
  link({ app, stage, stage_attempt: attempt }, text) {
    const page = this.#stages.get(JSON.stringify([app, stage, attempt]));
    return page ? outside(page, text) : text === 'In Spark' ? null : text;
  }

  /** An application's pages. */
  links(app) {
    const base = this.#apps.get(app);
    if (!base) return null;
    const all = [['jobs/', 'jobs'], ['stages/', 'stages'], ['SQL/', 'SQL'], ['executors/', 'executors']];
    return h('p', { class: 'muted aside' }, 'In Spark: ', all.flatMap(([path, name], i) => [i > 0 ? ', ' : '', outside(base + path, name)]));
  }
}
