import { parseJson } from '../src/core/values/json/parse.ts';
import { EventEmitter, once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { WebSocket } from 'ws';
import { problemText } from '../src/core/config/problem.ts';
import { startWaymark, type Waymark } from '../src/main.ts';
import { createLogs } from '../src/core/report/log.ts';
import { temporaryFolder, writeFiles, type Cleaning } from './folder.ts';
import { readConfig } from './ini.ts';

/** The envelope of a response, loosely typed. */
export interface Answer {
  readonly status?: number;
  readonly r?: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- each test knows the fields that it reads
  readonly data?: any;
  readonly error?: {
    code: string;
    message: string;
    field?: string;
    problems?: readonly object[];
    id: string;
  };
  readonly vk?: string;
  readonly replayed?: boolean;
  readonly id?: unknown;
}

/** A Waymark in this process that serves a temporary folder on a free port of the loopback. */
export interface TestSite {
  readonly folder: string;
  readonly iniFile: string;
  /** `http://localhost:<port>`, also the origin of its pages. */
  readonly url: string;
  readonly port: number;
  readonly adminKey: string;
  readonly waymark: Waymark;
  /** The log so far. */
  readonly logged: () => string;
  /** Resolves once the log matches a pattern. */
  untilLogged(pattern: RegExp): Promise<void>;
  /** Calls an operation by HTTP POST, with the admin key unless `more` has another one. */
  call(name: string, v: object, more?: CallOptions): Promise<Answer>;
  /** Opens a websocket and resolves when it is open. */
  socket(apikey?: string): Promise<TestSocket>;
  /** Sends bytes over a new connection; resolves to all bytes that come back. */
  raw(text: string): Promise<string>;
}

export interface CallOptions {
  readonly vk?: string;
  readonly qk?: string;
  readonly draft?: string;
  readonly apikey?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A websocket that assigns responses to requests by their id. */
export interface TestSocket {
  readonly websocket: WebSocket;
  call(a: string, v: object, more?: { vk?: string; qk?: string; draft?: string }): Promise<Answer>;
}

/** Starts Waymark in this process, with an ini text that lacks `[server]`, files and page rules. */
export async function startSite(
  t: Cleaning,
  {
    listen = 'listen = 127.0.0.1:0',
    server = '',
    ini = '',
    files = {},
    rules = [],
    docsFolder,
  }: {
    readonly listen?: string;
    readonly server?: string;
    readonly ini?: string;
    readonly files?: Readonly<Record<string, string | Buffer>>;
    readonly rules?: readonly object[];
    /** The folder of the built documentation. */
    readonly docsFolder?: string;
  } = {},
): Promise<TestSite> {
  const started: Waymark[] = [];
  // node:test runs these in order: the server stops before its folder is removed.
  t.after(() => Promise.all(started.map((one) => one.stop(0))));
  const folder = await temporaryFolder(t);
  const iniFile = join(folder, 'server.ini');
  await writeFiles(folder, {
    ...files,
    'rules.ndjson': rules.map((rule) => JSON.stringify(rule)).join('\n'),
    'server.ini': `[server]\n${listen}\ndata = data\nimport = rules.ndjson\n${server}\n${ini}\n`,
  });
  const config = await readTestConfig(iniFile);
  const lines: string[] = [];
  const written = new EventEmitter().setMaxListeners(0);
  const logs = createLogs({
    settings: config.log,
    destination: new Writable({
      write(chunk: Buffer, _encoding, done) {
        lines.push(chunk.toString());
        written.emit('line');
        done();
      },
    }),
    colour: false,
    now: Date.now,
  });
  const waymark = await startWaymark(config, logs, {
    ...(docsFolder !== undefined && { docsFolder }),
  });
  started.push(waymark);
  const [url = ''] = waymark.addresses;
  const { firstKey: adminKey = '' } = waymark;
  return {
    folder,
    iniFile,
    url,
    port: Number(new URL(url).port),
    adminKey,
    waymark,
    logged: () => {
      logs.access.flush();
      return lines.join('');
    },
    async untilLogged(pattern) {
      while (!pattern.test(lines.join(''))) await once(written, 'line');
    },
    call: (name, v, more = {}) => postOperation(url, name, v, { apikey: adminKey, ...more }),
    socket: (apikey) => openSocket(t, `${url.replace('http', 'ws')}/svc1/ws`, apikey),
    raw: (text) => rawExchange(Number(new URL(url).port), text),
  };
}

/** Reads the ini file of a test; throws its problems. */
export async function readTestConfig(file: string) {
  const result = await readConfig({ file, env: {}, cores: 2, hostName: 'test' });
  if (!result.ok) throw new Error(result.problems.map(problemText).join('\n'));
  return result.config;
}

/** POSTs an envelope to an operation; resolves to the envelope of the response. */
export async function postOperation(
  url: string,
  name: string,
  v: object,
  { vk, qk, draft, apikey, headers = {} }: CallOptions,
): Promise<Answer> {
  const reply = await fetch(`${url}/svc1/${operationPath(name)}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(apikey !== undefined && { apikey }),
      ...headers,
    },
    body: JSON.stringify({ v, vk, qk, draft }),
    redirect: 'manual',
  });
  const text = await reply.text();
  const isEnvelope = reply.headers.get('content-type') === 'application/json';
  return { status: reply.status, ...(isEnvelope ? (parseJson(text) as Answer) : {}) };
}

function operationPath(name: string): string {
  return name.replace(/^svc1\./, '').replace(/^([a-z]+)\.(?!link)/, '$1/');
}

export async function openSocket(
  t: Cleaning,
  url: string,
  apikey: string | undefined,
  more: Readonly<Record<string, string>> = {},
): Promise<TestSocket> {
  const headers = apikey === undefined ? more : { apikey, ...more };
  const websocket = new WebSocket(url, { headers });
  t.after(() => {
    websocket.terminate();
  });
  const waiting = new Map<number, (answer: Answer) => void>();
  let lastId = 0;
  websocket.on('message', (data: Buffer) => {
    const answer = JSON.parse(data.toString()) as Answer;
    waiting.get(Number(answer.id))?.(answer);
    waiting.delete(Number(answer.id));
  });
  await new Promise((resolve, reject) => {
    websocket.once('open', resolve);
    websocket.once('error', reject);
  });
  return {
    websocket,
    call: (a, v, more = {}) =>
      new Promise((resolve) => {
        lastId += 1;
        waiting.set(lastId, resolve);
        websocket.send(JSON.stringify({ a, v, ...more, id: lastId }));
      }),
  };
}

/** Sends text as latin1 bytes; resolves to all bytes that came back once the server closes. */
export function rawExchange(port: number, text: string): Promise<string> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    const socket = connect(port, '127.0.0.1', () => socket.write(Buffer.from(text, 'latin1')));
    socket.on('data', (chunk) => chunks.push(chunk as Buffer));
    // The server may reset the connection after its response.
    socket.on('error', () => undefined);
    socket.on('close', () => {
      resolve(Buffer.concat(chunks).toString('latin1'));
    });
  });
}
