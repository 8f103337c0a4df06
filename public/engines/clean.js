/*
 * Sanitizes HTML that contains values from outside: removes scripts, event handlers, `javascript:`
 * URLs and embedded documents. It returns nodes, because HTML that is serialised and parsed again
 * can have another meaning (mutation XSS).
 */

import purify from './purify.js';
import { sanitizing } from './template/render.js';

/** Sanitizes a text of HTML; returns a fragment of this document. */
export function clean(html, { trusted }) {
  const options = { ...sanitizing, RETURN_DOM_FRAGMENT: true, ...policyOf(trusted) };
  return document.importNode(purify.sanitize(html, options), true);
}

/** The option with the page's Trusted Types policy, in browsers that have Trusted Types. */
function policyOf(trusted) {
  const isPolicy = window.TrustedTypePolicy !== undefined && trusted instanceof TrustedTypePolicy;
  return isPolicy ? { TRUSTED_TYPES_POLICY: trusted } : {};
}
