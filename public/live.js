/*
 * Renders a generic page again when the page rules of its address change (`?_live`), also when a
 * rule appears or disappears, and when a row of its tables changes that the visitor may read. It
 * follows the log over a websocket (svc1.userinterface.follow, svc1.record.subscribe); after a lost
 * connection it continues after the last change that it received, so that it misses none.
 * `<html data-waymark-live>` is `on` while it is connected, and `off` otherwise.
 */

const retryMsMin = 500;
const retryMsMax = 30_000;
/** After this time in a hidden tab, the connection may be lost unnoticed. */
const hiddenMsMax = 60_000;

/**
 * Calls `refresh` after each change; refresh renders the page if its data has changed, and with
 * `rows` in any case. `tables` returns the names of the tables whose rows the page shows.
 */
export function follow({ base, refresh, tables }) {
  const address = `${base.replace(/^http/, 'ws')}/svc1/ws`;
  const { dataset } = document.documentElement;
  const update = oneAtATime(refresh);
  /** The newest seq of each subscription, by its id. */
  const seqs = new Map();
  /** The ids of the requests of this connection. */
  const sent = new Set();
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
  // The new data of a rule may show other tables.
  document.addEventListener('waymark:rendered', subscribeToTables);
  connect();

  /** Opens a new connection and closes the previous one. */
  function connect() {
    clearTimeout(retry);
    const former = socket;
    const own = new WebSocket(address);
    socket = own;
    sent.clear();
    former?.close();
    own.onopen = () => {
      const { origin, pathname: path } = location;
      send('follow', 'svc1.userinterface.follow', { origin, path });
      subscribeToTables();
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

  /** Sends a request, once for each connection. */
  function send(id, a, v) {
    if (socket.readyState !== WebSocket.OPEN || sent.has(id)) return;
    sent.add(id);
    socket.send(JSON.stringify({ a, v: { ...v, from_seq: seqs.get(id) }, id }));
  }

  function subscribeToTables() {
    for (const table of tables()) {
      send(`rows ${table}`, 'svc1.record.subscribe', { table });
      // Its rows may show titles of rows of other tables.
      send(`schema ${table}`, 'svc1.record.schema', { table });
    }
  }

  function receive({ id, r, data, error }) {
    const isOfRows = id !== 'follow';
    if (error !== undefined) {
      console.error(error.message);
      // The visitor may not read this table.
      if (isOfRows && error.field !== 'from_seq') return;
      // The server may have another log now, in which the seqs mean nothing: start anew.
      seqs.clear();
      socket.close();
    } else if (r === 'svc1.userinterface.stale' || r === 'svc1.record.change') {
      seqs.set(id, data.seq);
      void update(isOfRows);
    } else if (r === 'svc1.record.schema') {
      for (const { table } of Object.values(data.references)) {
        send(`rows ${table}`, 'svc1.record.subscribe', { table });
      }
    } else {
      failures = 0;
      if (!isOfRows) dataset.waymarkLive = 'on';
      // The server does not report changes between the fetch of the data and this subscription.
      if (!seqs.has(id)) void update(isOfRows);
      if (!seqs.has(id)) seqs.set(id, data.seq);
    }
  }
}

/** Calls `refresh` unless it runs; changes that arrive meanwhile make one call after it. */
function oneAtATime(refresh) {
  let isRunning = false;
  let isWaiting = false;
  let rows = false;
  return async function update(ofRows) {
    rows ||= ofRows;
    isWaiting = true;
    if (isRunning) return;
    isRunning = true;
    while (isWaiting) {
      const given = { rows };
      isWaiting = false;
      rows = false;
      await refresh(given);
    }
    isRunning = false;
  };
}
