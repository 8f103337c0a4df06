// Counts the files and functions of src/ that run for one message, by V8's precise coverage. `npm
// run path` counts for a file, a stored page (kept and made anew), a fetched page and a missing one
// of a small site, for the insert of a page rule, and for an event with its delivery to a webhook;
// `npm run path -- NAME` names the functions for one of them, file by file. Each request comes from
// another browser, and after a warm-up, so that code that runs only once does not count.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { Session } from 'node:inspector/promises';
import { connect, type AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { startSite } from '../test/harness.ts';
import { browserFields } from './scenarios.ts';

/** What is counted, by name: sends the message of a number, and waits until its work is done. */
const messages = new Map<string, (at: number) => Promise<unknown>>([
  ['/file.html', (at) => ask('/file.html', at)],
  ['/page.html', (at) => ask('/page.html', at)],
  // Waymark does not know the field, so it keeps no answer for it.
  ['/page.html-anew', (at) => ask('/page.html', at, 'X-Anew: 1\r\n')],
  ['/fetched.html', (at) => ask('/fetched.html', at)],
  ['/none.html', (at) => ask('/none.html', at)],
  ['insert', (at) => site.call('svc1.userinterface.insert', rule(`/new-${at}.html`))],
  ['delivery', deliver],
]);
const warmUps = 5;
/** A delivery is recorded within the next transaction; a question about it would count as well. */
const recordedMs = 200;
const [wanted] = process.argv.slice(2);
if (wanted !== undefined && !messages.has(wanted)) {
  process.stderr.write(`Say one of ${[...messages.keys()].join(', ')}, or nothing.\n`);
  process.exit(2);
}

const cleanings: (() => unknown)[] = [];
/** The source of the fetched page, and the receiver of the webhook. */
const other = createServer((_, response) => {
  response.writeHead(200, { 'content-type': 'text/html', 'cache-control': 'no-store' });
  response.end('<p>fetched</p>');
});
other.listen(0, '127.0.0.1');
await once(other, 'listening');
const otherUrl = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
const site = await startSite(
  { after: (clean) => cleanings.unshift(clean) },
  {
    ini:
      '[disk.site]\nroot = site\n[fetch]\nallow_private = 127.0.0.0/8\n' +
      '[webhook]\nallow_private = 127.0.0.0/8\n',
    files: { 'site/file.html': '<p>a file</p>' },
    rules: [
      rule('/page.html'),
      {
        path: '/fetched.html',
        kind: 'content.fetch',
        enginedata: { source: `${otherUrl}/fetched.html` },
      },
    ],
  },
);
const session = new Session();
session.connect();
await session.post('Profiler.enable');
const socket = connect({ port: site.port, host: '127.0.0.1' });
await once(socket, 'connect');
for (const [name, send] of messages) {
  if (wanted === undefined || name === wanted) await count(name, send);
}
socket.destroy();
session.disconnect();
for (const clean of cleanings) await clean();
other.close();

/** Counts the functions that run for one message, after others of its kind. */
async function count(name: string, send: (at: number) => Promise<unknown>): Promise<void> {
  for (let at = 0; at < warmUps; at += 1) await send(at);
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  await send(warmUps);
  const { result } = await session.post('Profiler.takePreciseCoverage');
  await session.post('Profiler.stopPreciseCoverage');
  const files = new Map<string, string[]>();
  for (const { url, functions } of result) {
    const [, file] = /\/src\/([^?]+)$/.exec(url) ?? [];
    if (file === undefined) continue;
    const ran = functions
      .filter(({ functionName, ranges }) => functionName !== '' && (ranges[0]?.count ?? 0) > 0)
      .map(({ functionName }) => functionName);
    if (ran.length > 0) files.set(file, ran);
  }
  const functions = [...files.values()].reduce((sum, names) => sum + names.length, 0);
  process.stdout.write(`${name.padEnd(16)} ${files.size} files, ${functions} functions\n`);
  if (wanted === undefined) return;
  for (const [file, names] of [...files].sort(([a], [b]) => a.localeCompare(b))) {
    process.stdout.write(`  ${file}: ${names.join(', ')}\n`);
  }
}

function rule(path: string): object {
  return { path, kind: 'content', content: '<p>a page</p>' };
}

/** Inserts an event, and waits until its delivery to the webhook has had time to be recorded. */
async function deliver(at: number): Promise<void> {
  const type = 'path.counted';
  if (at === 0) {
    await site.call('svc1.webhook.insert', { name: 'path', event: type, url: otherUrl });
  }
  const arrived = once(other, 'request');
  await site.call('svc1.event.insert', { type, data: { at } });
  await arrived;
  await wait(recordedMs);
}

/** Requests a page as a browser with another cookie, and waits for the whole response. */
async function ask(path: string, visitor: number, more = ''): Promise<void> {
  const fields = { Host: `localhost:${site.port}`, ...browserFields, Cookie: `visitor=${visitor}` };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`GET ${path} HTTP/1.1\r\n${lines.join('')}${more}\r\n`);
  let text = '';
  while (!isWhole(text)) text += String((await once(socket, 'data'))[0]);
}

function isWhole(text: string): boolean {
  const end = text.indexOf('\r\n\r\n');
  if (end < 0) return false;
  const [, length] = /\r\ncontent-length: (\d+)/i.exec(text) ?? [];
  if (length !== undefined) return text.length >= end + 4 + Number(length);
  return text.endsWith('0\r\n\r\n');
}
