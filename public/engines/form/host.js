/*
 * Sends envelopes {a, v, vk} to the data host of a form, by HTTP POST or over a websocket. The host
 * answers {r, data} or {r, error: {code, message, field, problems, id}}
 * (docs/design/operations.md#envelope).
 */

import { parseJson } from '../exact-json.js';

const answerMsMax = 30_000;

/** A failed request: code `down` without an answer, else the `error` of the host. */
export class HostFailure extends Error {
  constructor({ code, message = '', field, id, problems }, host, isOwn = false) {
    super(message);
    Object.assign(this, { code, field, id, problems, host, isOwn });
  }
}

/** Connects to a data host; throws unless its URL is http, https, ws or wss. */
export function connectHost({ url, credentials, isOwn }) {
  const address = new URL(url, document.baseURI);
  const host = address.origin === location.origin ? location.host : address.host;
  const down = () => new HostFailure({ code: 'down' }, host, isOwn);
  switch (address.protocol) {
    case 'http:':
    case 'https:':
      return { ask: askByHttp };
    case 'ws:':
    case 'wss:':
      return { ask: askBySocket() };
    default:
      throw new Error(
        `enginedata.submit.url must be http, https, ws or wss, not ${address.protocol}`,
      );
  }

  async function askByHttp(envelope) {
    let reply;
    try {
      reply = await fetch(address, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json' },
        body: JSON.stringify(envelope),
        credentials: credentials === 'include' ? 'include' : 'same-origin',
        signal: AbortSignal.timeout(answerMsMax),
      });
    } catch {
      throw down();
    }
    const answer = parsed(await reply.text().catch(() => ''));
    if (answer === null && reply.status >= 500) throw down();
    return dataOf(answer);
  }

  /** All requests of a form use one websocket, which the first one opens. */
  function askBySocket() {
    const waiting = new Map();
    let lastId = 0;
    let socket;

    function open() {
      if (socket !== undefined && socket.readyState <= WebSocket.OPEN) return;
      socket = new WebSocket(address);
      socket.onmessage = ({ data }) => {
        const answer = parsed(data);
        waiting.get(answer?.id)?.resolve(answer);
      };
      socket.onclose = () => {
        for (const { reject } of waiting.values()) reject(down());
      };
    }

    return async (envelope) => {
      open();
      lastId += 1;
      const id = lastId;
      const text = JSON.stringify({ ...envelope, id });
      const { promise, resolve, reject } = Promise.withResolvers();
      waiting.set(id, { resolve, reject });
      const timer = setTimeout(() => reject(down()), answerMsMax);
      if (socket.readyState === WebSocket.OPEN) socket.send(text);
      else socket.addEventListener('open', ({ target }) => target.send(text), { once: true });
      try {
        return dataOf(await promise);
      } finally {
        clearTimeout(timer);
        waiting.delete(id);
      }
    };
  }

  function dataOf(answer) {
    if (typeof answer?.error === 'object' && answer.error !== null) {
      throw new HostFailure(answer.error, host, isOwn);
    }
    if (typeof answer !== 'object' || answer === null || answer.data === undefined) {
      throw new HostFailure({ code: 'refused' }, host, isOwn);
    }
    return answer.data;
  }
}

/** An idempotency key, so that the host executes a form only once if it is sent twice. */
export function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `form:${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}

function parsed(text) {
  try {
    return parseJson(text);
  } catch {
    return null;
  }
}
