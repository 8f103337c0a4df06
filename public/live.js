/*
 * Shows a generic page anew when the page rules behind its address change (`?_live`), an address
 * that gains or loses its rule included. It follows the log over a websocket
 * (svc1.userinterface.follow); after a lost connection it goes on behind the last change that it
 * knows of, so that none is missed. `<html data-waymark-live>` says whether it is `on` or `off`.
 */

const retryMsMin = 500;
const retryMsMax = 30_000;
/** A connection that was out of sight for so long may be dead without the browser knowing. */
const doubtMs = 60_000;

/** `refresh` renders again where the answer is another one. */
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
    else if (Date.now() - hiddenAtMs > doubtMs) connect();
  });
  connect();

  /** Connects anew, whatever there was before. */
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
      if (own === socket) take(JSON.parse(data));
    };
    own.onclose = () => {
      if (own !== socket) return;
      dataset.waymarkLive = 'off';
      // The pages of a server that was away do not all come back in the same moment.
      const waitMs = Math.min(retryMsMax, retryMsMin * 2 ** failures) * (0.5 + Math.random());
      failures += 1;
      retry = setTimeout(connect, waitMs);
    };
  }

  function take({ r, data, error }) {
    if (error !== undefined) {
      // The log may be another one than before: then all may have changed.
      seq = undefined;
      console.error(error.message);
      socket.close();
    } else if (r === 'svc1.userinterface.stale') {
      seq = data.seq;
      refresh();
    } else {
      failures = 0;
      dataset.waymarkLive = 'on';
      // What has changed since the page asked for its answer is not told.
      if (seq === undefined) refresh();
      seq ??= data.seq;
    }
  }
}
