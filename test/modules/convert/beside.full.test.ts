import assert from 'node:assert/strict';
import { chmod } from 'node:fs/promises';
import { createServer, request, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { before, suite, test } from 'node:test';
import { cleaningAfterAll, temporaryFolder, writeFiles, type Cleaning } from '../../folder.ts';
import { freePort } from '../../free-port.ts';
import { startCaddy, startNginx, versionOf } from '../../other-servers.ts';
import { startServed } from '../../process.ts';
import { configurations, converters, type Configuration, type Question } from './configurations.ts';

/** The files that the configurations serve. */
const site: Readonly<Record<string, string>> = {
  'index.html': '<h1>home</h1>',
  'about.html': '<h1>about</h1>',
  '404.html': '<h1>custom: not found</h1>',
  'robots.txt': 'User-agent: *\n',
  '.env': 'SECRET=1\n',
  '.git/config': '[core]\n',
  'assets/app.css': 'h1 { color: navy }\n',
  'assets/app.js': 'export const a = 1;\n',
  'assets/logo.svg': '<svg xmlns="http://www.w3.org/2000/svg"/>',
  'app/index.html': '<h1>app</h1>',
  'errors/404.html': '<h1>custom: not found</h1>',
  'docs/index.html': '<h1>docs</h1>',
  'docs/guide.html': '<h1>guide</h1>',
  'downloads/a.txt': 'a download\n',
  'static/file.txt': 'a file\n',
  'img/photo.jpg': 'not really a photo',
};

/** An application that tells what it got; its name is that of the application. */
async function startApplication(t: Cleaning, name: string): Promise<number> {
  const server = createServer((incoming, response) => {
    const { method = '', url = '', headers } = incoming;
    const host = headers.host?.replace(/:\d+$/, '') ?? '';
    const told = [headers['x-real-ip'], headers['x-app']].map((one) => one?.toString() ?? '-');
    response.setHeader('content-type', 'text/plain');
    response.setHeader('x-powered-by', 'tests');
    // For servers that ask another one who may see a page.
    response.setHeader('x-app', `seen by ${name}`);
    if (url === '/refused') response.statusCode = 401;
    response.end(`${name} ${method} ${url} ${host} ${told.join(' ')}\n`);
  });
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Sends a request; fetch would not send Host. */
function ask(
  port: number,
  { method, host: name, path }: Question,
  host = `${name === '' ? 'localhost' : name}:${port}`,
): Promise<Answer> {
  // Waymark sends pages to browsers, and a line of text to programs.
  const headers = { accept: 'text/html', host };
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, method, path, headers }, (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => (body += chunk));
      response.on('end', () => {
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body });
      });
      response.on('error', reject);
    });
    sent.on('error', reject);
    sent.end();
  });
}

/** What is compared of an answer: differences that no visitor notices are left out. */
function compared(
  { status, headers, body }: Answer,
  {
    port,
    path,
    fields,
  }: { readonly port: number; readonly path: string; readonly fields: readonly string[] },
): string {
  const isRedirect = status >= 300 && status < 400;
  const location = headers.location;
  const target =
    location === undefined ? undefined : new URL(location, `http://localhost:${port}${path}`);
  const isError = status >= 400 && !body.includes('custom');
  // nginx answers the path of a folder without its slash with 301, Caddy with 308.
  const isFolder = target?.pathname === `${path}/`;
  const shown = status === 403 ? 404 : isFolder && status === 308 ? 301 : status;
  const parts = [
    // Waymark hides what nginx forbids.
    `status ${shown}`,
    ...(target === undefined ? [] : [`to ${target.href.replaceAll(String(port), 'PORT')}`]),
    ...(isRedirect || isError
      ? []
      : [`type ${headers['content-type']?.split(';')[0] ?? '-'}`, body]),
    ...fields.map((name) => `${name}: ${headers[name]?.toString() ?? '-'}`),
  ];
  return parts.join('\n').replaceAll('application/javascript', 'text/javascript');
}

interface Place {
  readonly folder: string;
  readonly root: string;
  readonly app: number;
  readonly app2: number;
}

function filled({ text }: Configuration, port: number, { root, app, app2 }: Place): string {
  return text
    .replaceAll('{{PORT}}', String(port))
    .replaceAll('{{ROOT}}', root)
    .replaceAll('{{APP}}', String(app))
    .replaceAll('{{APP2}}', String(app2));
}

const programs = { nginx: startNginx, caddy: startCaddy } as const;

for (const format of ['nginx', 'caddy'] as const) {
  const skip = versionOf(format) === undefined && `${format} is not on the PATH`;
  suite(`a converted configuration answers as ${format} does`, { skip }, () => {
    const cleaning = cleaningAfterAll();
    let place: Omit<Place, 'folder'> = { root: '', app: 0, app2: 0 };
    before(async () => {
      const root = join(await temporaryFolder(cleaning), 'site');
      await writeFiles(root, site);
      // A worker of nginx is another user.
      await chmod(join(root, '..'), 0o755);
      const [app, app2] = [
        await startApplication(cleaning, 'one'),
        await startApplication(cleaning, 'two'),
      ];
      place = { root, app, app2 };
    });
    const all = configurations().filter((one) => one.format === format && one.questions.length > 0);
    for (const configuration of all) {
      test(configuration.name, async (t) => {
        const { questions, fields, name } = configuration;
        const folder = await temporaryFolder(t);
        const within = { ...place, folder };
        const [theirs, ours] = [await freePort(), await freePort()];
        await programs[format](t, filled(configuration, theirs, within), { folder, port: theirs });
        const converted = converters[format]?.(filled(configuration, ours, within), name);
        await writeFiles(folder, {
          'server.ini': converted?.ini ?? '',
          'rules.ndjson': (converted?.rules ?? [])
            .map((rule) => `${JSON.stringify(rule)}\n`)
            .join(''),
        });
        await startServed(t, join(folder, 'server.ini'));
        for (const question of questions) {
          const [expected, answered] = await Promise.all([
            ask(theirs, question),
            ask(ours, question),
          ]);
          assert.equal(
            compared(answered, { port: ours, path: question.path, fields }),
            compared(expected, { port: theirs, path: question.path, fields }),
            `${question.method} ${question.host} ${question.path}`,
          );
        }
      });
    }
  });
}

const promised = configurations().filter(({ expected }) => expected.length > 0);

suite('a converted configuration answers as its documentation promises', () => {
  for (const { name, format, text, expected } of promised) {
    test(name, async (t) => {
      const folder = await temporaryFolder(t);
      const { ini = '', rules = [] } = converters[format]?.(text, name, 'site') ?? {};
      const port = await freePort();
      const server = `[server]\nlisten = :${port}\ndata = data\n`;
      const isThere = ini.startsWith('[server]\n');
      await writeFiles(join(folder, 'site'), {
        ...site,
        ...Object.fromEntries(Object.entries(site).map(([path, file]) => [`dist/${path}`, file])),
      });
      await writeFiles(folder, {
        'server.ini': isThere ? ini.replace('[server]\n', server) : server + ini,
        'rules.ndjson': rules.map((rule) => `${JSON.stringify(rule)}\n`).join(''),
      });
      await startServed(t, join(folder, 'server.ini'));
      for (const { status, location, ...question } of expected) {
        const answered = await ask(port, question, question.host || `localhost:${port}`);
        const target = answered.headers.location?.replace(`http://localhost:${port}`, '') ?? '';
        const place = `${question.host} ${question.path}`;
        assert.deepEqual([answered.status, target], [status, location], place);
      }
    });
  }
});
