/*
 * What a form has sent without an answer yet, kept for this tab: after a reload, the same form can
 * be sent again with the same vk, so that the record is stored once.
 */

import { parseJson } from '../exact-json.js';

/** Keeps what was sent: its vk and values. */
export function keepPending(answer, sent) {
  attempt(() => sessionStorage.setItem(nameOf(answer), JSON.stringify(sent)));
}

/** What was sent without an answer; undefined for nothing. */
export function pendingOf(answer) {
  return attempt(() => parseJson(sessionStorage.getItem(nameOf(answer)) ?? 'null')) ?? undefined;
}

export function dropPending(answer) {
  attempt(() => sessionStorage.removeItem(nameOf(answer)));
}

function nameOf({ id }) {
  return `waymark-form:${id}:${location.pathname}${location.search}`;
}

/** Browsers may refuse the storage, or have no room in it. */
function attempt(act) {
  try {
    return act();
  } catch {
    return undefined;
  }
}
