import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { connect, createServer, type AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import type { Page } from 'playwright-core';
import { temporaryFolder, type Cleaning } from '../../folder.ts';
import { freePort } from '../../free-port.ts';
import { startSite } from '../../harness.ts';
import { startCaddy, startNginx } from '../../other-servers.ts';
import { browserForms, programForms, type Form } from './forms.ts';

/** What one server does: a port for each thing that a path can name. */
export interface Ports {
  /** An application behind it. */
  readonly application: number;
  readonly file: number;
  /** A stored page, which Waymark alone has. */
  readonly page?: number;
}

/** The servers of one table. */
export interface Servers {
  readonly nginx?: Ports;
  readonly caddy?: Ports;
  readonly waymark: Ports;
  /** A bare server: what arrives there is what the client sends. */
  readonly bare: number;
  /** The target of the last request that reached an application, or the bare server. */
  lastTarget(): string | undefined;
  forget(): void;
}

/** Starts Waymark, and nginx and Caddy if they are asked for, with the same content. */
export async function startServers(
  t: Cleaning,
  { isAlone }: { readonly isAlone: boolean },
): Promise<Servers> {
  const folder = await temporaryFolder(t);
  const root = join(folder, 'site');
  await writeForms(root);
  let last: string | undefined;
  const application = createServer((socket) => {
    let head = '';
    // A client may be gone before the answer.
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => {
      head += chunk.toString();
      if (!head.includes('\r\n\r\n')) return;
      const target = /^\S+ (.*) HTTP\/1\.\d\r\n/.exec(head)?.[1];
      // Chromium asks for the icon of a site whenever it likes.
      if (target !== '/favicon.ico') last = target;
      socket.end(
        'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 6\r\n' +
          'Connection: close\r\n\r\nfound\n',
      );
    });
  });
  application.listen(0, '127.0.0.1');
  await once(application, 'listening');
  t.after(() => application.close());
  const { port: bare } = application.address() as AddressInfo;
  const start = { t, folder, root, bare };
  return {
    ...(!isAlone && { nginx: await nginxPorts(start), caddy: await caddyPorts(start) }),
    waymark: await waymarkPorts(start),
    bare,
    lastTarget: () => last,
    forget: () => (last = undefined),
  };
}

interface Start {
  readonly t: Cleaning;
  readonly folder: string;
  readonly root: string;
  readonly bare: number;
}

async function writeForms(root: string): Promise<void> {
  for (const { name } of [...browserForms, ...programForms]) {
    if (name === undefined) continue;
    await mkdir(dirname(join(root, name.toString())), { recursive: true });
    // A name of bytes that are not UTF-8 has no text.
    const path = Buffer.concat([Buffer.from(`${root}/`), Buffer.from(name)]);
    await writeFile(path, 'found\n');
  }
}

async function nginxPorts({ t, folder, root, bare }: Start): Promise<Ports> {
  const [application, file] = [await freePort(), await freePort()];
  const text =
    `server { listen 127.0.0.1:${application}; location / { proxy_pass http://127.0.0.1:${bare}; } }\n` +
    `server { listen 127.0.0.1:${file}; root ${root}; }\n`;
  await startNginx(t, text, { folder, port: application });
  return { application, file };
}

async function caddyPorts({ t, folder, root, bare }: Start): Promise<Ports> {
  const [application, file] = [await freePort(), await freePort()];
  const text =
    `:${application} {\n\treverse_proxy 127.0.0.1:${bare}\n}\n` +
    `:${file} {\n\troot * ${root}\n\tfile_server\n}\n`;
  await startCaddy(t, text, { folder, port: application });
  return { application, file };
}

async function waymarkPorts({ t, root, bare }: Start): Promise<Required<Ports>> {
  const application = await startSite(t, {
    ini: `[proxy.app]\nsource = http://127.0.0.1:${bare}\n`,
  });
  const file = await startSite(t, { ini: `[disk.site]\nroot = ${root}\n` });
  // The path of a page rule has no backslash, no control character, and `*` at its end alone.
  const names = browserForms.flatMap(({ name }) => {
    return typeof name === 'string' && !/[\\*\n]/.test(name) ? [name] : [];
  });
  const paths = [...new Set(names)].map((name) =>
    name.split('/').map(encodeURIComponent).join('/'),
  );
  const page = await startSite(t, {
    rules: paths.map((path) => ({
      path: `/${path}`,
      ...{ kind: 'content', content: 'found\n', contenttype: 'text/plain' },
    })),
  });
  return { application: application.port, file: file.port, page: page.port };
}

/** An answer: its status, and where it redirects to. */
interface Answer {
  readonly status: number;
  readonly location?: string | undefined;
}

/** Sends a form to a port. */
export type Ask = (port: number, written: string) => Promise<Answer>;

/** Asks as a browser that follows a link. */
export function browserAsk(page: Page): Ask {
  return async (port, written) => {
    const origin = `http://localhost:${port}`;
    const response = await page.goto(origin + written);
    let request = response?.request() ?? null;
    for (let earlier = request; earlier !== null; earlier = earlier.redirectedFrom()) {
      request = earlier;
    }
    const first = await request?.response();
    const location = await first?.headerValue('location');
    const status = first?.status() ?? 0;
    return { status, ...(location && { location: location.replace(origin, '') }) };
  };
}

/** Asks over a socket with the bytes as they are, as a program may. */
export const rawAsk: Ask = async (port, written) => {
  const host = `localhost:${port}`;
  const socket = connect(port, '127.0.0.1');
  const target = written.replace('{host}', host);
  socket.write(`GET ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
  const chunks: Buffer[] = [];
  // A server may reset the connection after its refusal.
  socket.on('error', () => undefined);
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  await once(socket, 'close');
  const head = Buffer.concat(chunks).toString('latin1').split('\r\n\r\n', 1)[0] ?? '';
  const location = /^location: (.*)$/im.exec(head)?.[1];
  const status = Number(/^HTTP\/1\.\d (\d{3})/.exec(head)?.[1] ?? 0);
  return {
    status,
    ...(location !== undefined && { location: location.replace(`http://${host}`, '') }),
  };
};

/** A row of the table: what each server makes of one form. */
export interface Row {
  readonly written: string;
  /** The target that the client sends; undefined if it is malformed for a bare server. */
  readonly sent: string | undefined;
  /** Cells: what the application gets, the status for a file, and for a stored page. */
  readonly nginx?: readonly string[];
  readonly caddy?: readonly string[];
  readonly waymark: readonly string[];
}

/** Sends a form to all servers. */
export async function rowOf(servers: Servers, ask: Ask, { written }: Form): Promise<Row> {
  servers.forget();
  await ask(servers.bare, written);
  const sent = servers.lastTarget();
  const cells = async ({ application, file, page }: Ports): Promise<readonly string[]> => {
    servers.forget();
    const answer = await ask(application, written);
    // A browser follows a redirect, and then the application gets another target.
    const got = answer.location === undefined ? servers.lastTarget() : undefined;
    return [
      got === undefined ? cellOf(answer) : got === sent ? 'as sent' : `\`${got}\``,
      cellOf(await ask(file, written)),
      ...(page === undefined ? [] : [cellOf(await ask(page, written))]),
    ];
  };
  const { nginx, caddy, waymark } = servers;
  return {
    ...{ written, sent },
    ...(nginx && { nginx: await cells(nginx) }),
    ...(caddy && { caddy: await cells(caddy) }),
    waymark: await cells(waymark),
  };
}

function cellOf({ status, location }: Answer): string {
  return location === undefined ? String(status) : `${status} to \`${location}\``;
}
