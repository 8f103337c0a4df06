// Counts the files and functions of src/ that run for one request, by V8's precise coverage. `npm
// run path` counts for a file, a stored page, a fetched page and a missing one of a small site;
// `npm run path -- PATH` names the functions for one of them, file by file. Each request comes from
// another browser, and after a warm-up, so that code that runs only once does not count.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { Session } from 'node:inspector/promises';
import { connect, type AddressInfo } from 'node:net';
import { startSite } from '../test/harness.ts';
import { browserFields } from './scenarios.ts';

const paths = ['/file.html', '/page.html', '/fetched.html', '/none.html'];
const warmUps = 5;
const [wanted] = process.argv.slice(2);
if (wanted !== undefined && !paths.includes(wanted)) {
  process.stderr.write(`Say one of ${paths.join(', ')}, or nothing.\n`);
  process.exit(2);
}

const cleanings: (() => unknown)[] = [];
const source = createServer((_, response) => {
  response.writeHead(200, { 'content-type': 'text/html', 'cache-control': 'no-store' });
  response.end('<p>fetched</p>');
});
source.listen(0, '127.0.0.1');
await once(source, 'listening');
const { port: sourcePort } = source.address() as AddressInfo;
const site = await startSite(
  { after: (clean) => cleanings.unshift(clean) },
  {
    ini: '[disk.site]\nroot = site\n[fetch]\nallow_private = 127.0.0.0/8\n',
    files: { 'site/file.html': '<p>a file</p>' },
    rules: [
      { path: '/page.html', kind: 'content', content: '<p>a page</p>' },
      {
        path: '/fetched.html',
        kind: 'content.fetch',
        enginedata: { source: `http://127.0.0.1:${sourcePort}/fetched.html` },
      },
    ],
  },
);
const session = new Session();
session.connect();
await session.post('Profiler.enable');
for (const path of wanted === undefined ? paths : [wanted]) await count(path);
session.disconnect();
for (const clean of cleanings) await clean();
source.close();

/** Counts the functions that run for one request on a connection that has had requests before. */
async function count(path: string): Promise<void> {
  const socket = connect({ port: site.port, host: '127.0.0.1' });
  await once(socket, 'connect');
  for (let at = 0; at < warmUps; at += 1) await ask(socket, path, at);
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  await ask(socket, path, warmUps);
  const { result } = await session.post('Profiler.takePreciseCoverage');
  await session.post('Profiler.stopPreciseCoverage');
  socket.destroy();
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
  process.stdout.write(`${path.padEnd(14)} ${files.size} files, ${functions} functions\n`);
  if (wanted === undefined) return;
  for (const [file, names] of [...files].sort(([a], [b]) => a.localeCompare(b))) {
    process.stdout.write(`  ${file}: ${names.join(', ')}\n`);
  }
}

/** Requests a page as a browser with another cookie, and waits for the whole response. */
async function ask(
  socket: ReturnType<typeof connect>,
  path: string,
  visitor: number,
): Promise<void> {
  const fields = { Host: `localhost:${site.port}`, ...browserFields, Cookie: `visitor=${visitor}` };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`);
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
