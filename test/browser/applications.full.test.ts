import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { test } from 'node:test';
import { WebSocketServer } from 'ws';
import { startSite } from '../harness.ts';
import { httpSource } from '../core/outbound/sources.ts';
import { oneBrowser, visit } from './browser.ts';

const openTab = oneBrowser();

/** The page of an application, which shows what comes by each way. */
const page = `<!doctype html><html lang="en"><title>Live</title>
<ul id="got"></ul>
<script>
  const show = (text) => {
    document.querySelector('#got').append(Object.assign(document.createElement('li'), { textContent: text }));
  };
  const events = new EventSource('events');
  events.addEventListener('news', ({ data, lastEventId }) => show('event ' + lastEventId + ' ' + data));
  const socket = new WebSocket(new URL('socket', location.href).href.replace('http', 'ws'));
  socket.onopen = () => socket.send('hello');
  socket.onmessage = ({ data }) => show('socket ' + data);
  fetch('poll').then((answer) => answer.text()).then((text) => show('poll ' + text));
</script>`;

test('a page gets events, messages of a websocket and long polls through a proxy', async (t) => {
  const sockets = new WebSocketServer({ noServer: true });
  // Before the server is closed, which waits for them.
  t.after(() => {
    for (const client of sockets.clients) client.terminate();
  });
  const polled = Promise.withResolvers<ServerResponse>();
  let visits = 0;
  const { origin, server } = await httpSource(t, ({ url }, response) => {
    if (url === '/app/poll') polled.resolve(response);
    else if (url === '/app/events') {
      visits += 1;
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      // The browser comes back by itself after the first answer.
      if (visits === 1) response.end('retry: 1\nid: 1\nevent: news\ndata: one\n\n');
      else response.write('id: 2\nevent: news\ndata: two\n\n');
    } else response.writeHead(200, { 'content-type': 'text/html' }).end(page);
  });
  server.on('upgrade', (request, socket, head) => {
    sockets.handleUpgrade(request, socket, head, (client) => sockets.emit('connection', client));
  });
  sockets.on('connection', (socket) => {
    socket.on('message', (text: Buffer) => {
      socket.send(`${text.toString()} back`);
      void polled.promise.then((response) => response.end('answered'));
    });
  });
  const site = await startSite(t, { ini: `[proxy.app]\npath = /app/\nsource = ${origin}\n` });
  const tab = await openTab(t);
  await visit(tab, `${site.url}/app/`);
  for (const text of ['event 1 one', 'event 2 two', 'socket hello back', 'poll answered']) {
    await tab.page.getByText(text, { exact: true }).waitFor();
  }
  assert.deepEqual(tab.troubles, []);
});
