/*
 * Renders a generic page again when the page rules of its address change (`?_live`), also when a
 * rule appears or disappears. It follows the log over a websocket (svc1.userinterface.follow);
 * after a lost connection it continues after the last change that it received, so that it misses
 * none. `<html data-waymark-live>` is `on` while it is connected, and `off` otherwise.
 */

const retryMsMin = 500;
const retryMsMax = 30_000;
/** After this time in a hidden tab, the connection may be lost unnoticed. */
const hiddenMsMax = 60_000;

/** Calls `refresh` after each change; refresh renders the page if its data has changed. */
export function follow({ base, refresh }) {
  const address = `${base.replace(/^http/, 'ws')}/svc1/ws`;
  const { dataset } = document.documentElement;
  let seq;
  let failures = 0;
  let retry;
  let socket;
  let hiddenAtMs = 0;

  addEventListener('online', connect);
  // A page in the back/forward cache has lost its connection.
  addEventListener('pageshow', ({ persisted }) => persisted && connect());
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) hiddenAtMs = Date.now();
    else if (Date.now() - hiddenAtMs > hiddenMsMax) connect();
  });
  connect();

  /** Opens a new connection and closes the previous one. */
  function connect() {
    clearTimeout(retry);
    const former = socket;
    const own = new WebSocket(address);
    socket = own;
    former?.close();
    own.onopen = () => {
      const v = { origin: location.origin, path: location.pathname, from_seq: seq };
      own.send(JSON.stringify({ a: 'svc1.userinterface.follow', v, id: 'follow' }));
    };
    own.onmessage = ({ data }) => {
      if (own === socket) receive(JSON.parse(data));
    };
    own.onclose = () => {
      if (own !== socket) return;
      dataset.waymarkLive = 'off';
      // A random wait, so that not all pages reconnect at once after a restart of the server.
      const waitMs = Math.min(retryMsMax, retryMsMin * 2 ** failures) * (0.5 + Math.random());
      failures += 1;
      retry = setTimeout(connect, waitMs);
    };
  }

  function receive({ r, data, error }) {
    if (error !== undefined) {
      // The server may have another log now, in which the seq means nothing: start anew.
      seq = undefined;
      console.error(error.message);
      socket.close();
    } else if (r === 'svc1.userinterface.stale') {
      seq = data.seq;
      refresh();
    } else {
      failures = 0;
      dataset.waymarkLive = 'on';
      // The server does not report changes between the fetch of the data and this subscription.
      if (seq === undefined) refresh();
      seq ??= data.seq;
    }
  }
}
