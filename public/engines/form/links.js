/* The links of enginedata.done. */

import { link } from './dom.js';
import { textOf } from './schema.js';

/** The links; `{name}` in one stands for a value. */
export function linksOf({ enginedata: { done } }, data) {
  const values = new Map(Object.entries(typeof data === 'object' && data !== null ? data : {}));
  const links = Array.isArray(done?.links) ? done.links : [];
  return links.flatMap(({ href, label }) => {
    const whole = String(href).replace(/\{([^{}]+)\}/g, (_, name) =>
      encodeURIComponent(textOf(values.get(name) ?? '')),
    );
    return link(whole, String(label)) ?? [];
  });
}
