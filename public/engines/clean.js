/*
 * Sanitizes HTML that contains values from outside: removes scripts, event handlers, `javascript:`
 * URLs and embedded documents. It returns nodes, because HTML that is serialised and parsed again
 * can have another meaning (mutation XSS).
 */

import purify from './purify.js';

const options = {
  RETURN_DOM_FRAGMENT: true,
  // Removes names and ids that would shadow members of the document (DOM clobbering).
  SANITIZE_DOM: true,
  ADD_ATTR: ['target'],
};

/** Sanitizes a text of HTML; returns a fragment of this document. */
export function clean(html, { trusted }) {
  return document.importNode(purify.sanitize(html, { ...options, ...policyOf(trusted) }), true);
}

/** The option with the page's Trusted Types policy, in browsers that have Trusted Types. */
function policyOf(trusted) {
  const isPolicy = window.TrustedTypePolicy !== undefined && trusted instanceof TrustedTypePolicy;
  return isPolicy ? { TRUSTED_TYPES_POLICY: trusted } : {};
}
