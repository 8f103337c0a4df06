/*
 * HTML that values from elsewhere have gone into, as nodes of which nothing runs: no script, no
 * event handler, no address that is code, no other document in the page's name. The nodes are used
 * as they were parsed: what is written out and parsed again may be something else.
 */

import purify from './purify.js';

const options = {
  RETURN_DOM_FRAGMENT: true,
  // Names and ids of forms are the template's business; those that would hide the document's own
  // members are taken out.
  SANITIZE_DOM: true,
  ADD_ATTR: ['target'],
};

/** The nodes of a text of HTML, as a fragment of this document. */
export function clean(html, { trusted }) {
  return document.importNode(purify.sanitize(html, { ...options, ...policyOf(trusted) }), true);
}

/** The page's own policy of Trusted Types, where it has such types. */
function policyOf(trusted) {
  const isPolicy = window.TrustedTypePolicy !== undefined && trusted instanceof TrustedTypePolicy;
  return isPolicy ? { TRUSTED_TYPES_POLICY: trusted } : {};
}
