// The fuzz run: at least 100,000 requests and messages that an attacker could send, to one server
// with a hostile source. `npm run fuzz [-- COUNT [SEED]]`; the same seed makes the same choices. It
// fails if the server ends, if one turn of its event loop uses more than 100 ms of CPU time, or if
// a visitor gets content that a source wrote for another one.
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import type { TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { postOperation } from '../harness.ts';
import { serverFolder, startServed, type Served } from '../process.ts';
import { input, message, operation } from './messages.ts';
import { Random } from './random.ts';
import { identity, requestBytes, visitorNames } from './requests.ts';
import { startHostileSource } from './source.ts';

const count = Number(process.argv[2] ?? 100_000);
const seed = Number(process.argv[3] ?? Date.now() % 1_000_000_000);
if (!Number.isSafeInteger(count) || count < 1 || !Number.isSafeInteger(seed)) {
  process.stderr.write('Usage: npm run fuzz -- [COUNT [SEED]], two whole numbers.\n');
  process.exit(2);
}
const stallMs = 100;
/** How long one exchange may take before its connection is dropped: many requests wait for more. */
const exchangeMs = 300;
const inFlight = 8;

/** The violations found, one line each. */
const findings: string[] = [];
/** The last requests and messages; printed after a violation. */
const latest: string[] = [];
let sent = 0;

const cleanings: (() => unknown)[] = [];
const context = {
  after: (clean: () => unknown) => {
    cleanings.unshift(clean);
  },
} as Pick<TestContext, 'after'> as TestContext;

try {
  await fuzz();
} finally {
  for (const clean of cleanings) await clean();
}

async function fuzz(): Promise<void> {
  process.stdout.write(`${count} requests and messages with seed ${seed}\n`);
  const { origin, server } = await startHostileSource(new Random(seed + 1));
  context.after(() => server.close());
  const served = await startSite(origin);
  const isOver = new AbortController();
  const watching = watchTurns(served, isOver.signal);
  const senders = Array.from({ length: inFlight }, (_, sender) => sendAll(served, sender));
  const progress = setInterval(() => {
    process.stdout.write(`${sent} sent, ${findings.length} findings\n`);
  }, 10_000);
  await Promise.race([Promise.all(senders), served.closed]);
  clearInterval(progress);
  isOver.abort();
  const longestMs = await watching;
  if (served.child.exitCode !== null || served.child.signalCode !== null) {
    findings.push(`The server has ended: ${served.err().slice(-2_000)}`);
  }
  served.child.kill('SIGTERM');
  const internal = served.out().match(/"internal"|an answer failed|uncaught/gi)?.length ?? 0;
  if (internal > 0) findings.push(`The log has ${internal} internal failures.`);
  process.stdout.write(
    `${sent} sent with seed ${seed}; the longest turn used ${longestMs} ms of CPU time. ` +
      `${findings.length === 0 ? 'Nothing found.' : `Found:\n${findings.join('\n')}`}\n`,
  );
  process.exitCode = findings.length === 0 ? 0 : 1;
}

async function startSite(source: string): Promise<Served> {
  const ini = `trust_proxy = 127.0.0.0/8
connections_per_address = 1000
[disk.site]
root = site
[fetch]
allow_private = 127.0.0.0/8
timeout = 1s
[auth]
anonymous = render, read
user_header = x-user
[log]
format = json
access = no
`;
  const files = { 'site/file.html': '<p>a file</p>'.repeat(100) };
  const served = await startServed(context, (await serverFolder(context, ini, files)).iniFile);
  const { url, adminKey: apikey, port } = served;
  const far = {
    source: `${source}/*`,
    pass: ['cookie', 'authorization'],
    methods: ['GET', 'HEAD', 'POST', 'PUT'],
  };
  const rules: object[] = [
    { path: '/page.html', kind: 'content', content: '<p>a page</p>'.repeat(50) },
    { path: '/big.html', kind: 'content', content: 'x'.repeat(2_000_000) },
    { path: '/far/*', kind: 'content.fetch', enginedata: far },
    {
      path: '/loop/*',
      kind: 'content.fetch',
      enginedata: { source: `http://127.0.0.1:${port}/loop/*` },
    },
    {
      path: '/generic',
      kind: 'content',
      engine: 'html',
      enginedata: { html: '<p>g</p>'.repeat(9_000) },
    },
    {
      path: 'crumb',
      kind: 'resolve',
      enginedata: { target: '/page.html', when: [{ if: { lang: 'de' }, target: '/far/a' }] },
    },
  ];
  for (const rule of rules) {
    const { error } = await postOperation(url, 'svc1.userinterface.insert', rule, { apikey });
    if (error !== undefined) throw new Error(JSON.stringify(error));
  }
  return served;
}

/** Sends one sender's share of requests and messages, one after the other. */
async function sendAll(served: Served, sender: number): Promise<void> {
  const random = new Random(seed + 100 * (sender + 1));
  for (let at = sender; at < count && served.child.exitCode === null; at += inFlight) {
    const kind = random.below(10);
    if (kind < 7) await exchangeRaw(served, random, at);
    else if (kind < 9) await callHttp(served, random);
    else await talk(served, random);
  }
}

/** Sends a request of a visitor over a new connection, in pieces, and reads the response. */
async function exchangeRaw({ port }: Served, random: Random, number: number): Promise<void> {
  const visitor = identity(random, number);
  const bytes = requestBytes(random, visitor);
  note(bytes.toString('latin1'));
  const cut = random.chance(0.3) ? random.below(bytes.length) : bytes.length;
  const received = await new Promise<string>((resolve) => {
    let text = '';
    const socket = connect({ port, host: '127.0.0.1' });
    const end = (): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(text);
    };
    const timer = setTimeout(end, exchangeMs);
    socket.on('error', end).on('close', end);
    socket.on('data', (chunk: Buffer) => {
      if (text.length < 100_000) text += chunk.toString('latin1');
      // Most responses are complete by then; the others test a client that disconnects early.
      if (text.includes('\r\n\r\n')) setTimeout(end, 1);
    });
    socket.write(bytes.subarray(0, cut));
    if (cut < bytes.length) setImmediate(() => socket.write(bytes.subarray(cut)));
  });
  for (const name of visitorNames(received)) {
    if (name !== visitor.name)
      found(`${visitor.name} received what was written for ${name}`, received);
  }
}

/** Calls operations over HTTP, with the admin key or without a key. */
async function callHttp({ url, adminKey }: Served, random: Random): Promise<void> {
  const name = operation(random);
  const apikey = random.chance(0.5) ? adminKey : undefined;
  const body = random.chance(0.9) ? JSON.stringify({ v: input(random) }) : String(message(random));
  note(`${name} ${body}`);
  const path = name.replace('svc1.', '').replace('.', '/');
  try {
    const reply = await fetch(`${url}/svc1/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(apikey !== undefined && { apikey }) },
      body,
      signal: AbortSignal.timeout(2_000),
    });
    if (reply.status === 500) found(`${name} answered 500`, body);
    await reply.body?.cancel();
  } catch {
    // The server may close the connection early: that is no violation.
  }
}

/** Sends some messages over a websocket. */
async function talk({ url, adminKey }: Served, random: Random): Promise<void> {
  const headers = random.chance(0.5) ? { apikey: adminKey } : {};
  const socket = new WebSocket(`${url.replace('http', 'ws')}/svc1/ws`, { headers });
  await new Promise<void>((resolve) => {
    const timer = setTimeout(() => {
      socket.terminate();
    }, exchangeMs);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      clearTimeout(timer);
      resolve();
    });
    socket.on('message', (text: Buffer) => {
      if (text.includes('"code":"internal"'))
        found('a message was answered with internal', String(text));
    });
    socket.on('open', () => {
      for (let left = 1 + random.below(8); left > 0; left -= 1) {
        const text = message(random);
        note(String(text));
        socket.send(text);
      }
      setTimeout(() => {
        socket.close();
      }, 20);
    });
  });
}

function note(text: string): void {
  sent += 1;
  latest.push(text.slice(0, 600));
  if (latest.length > 2 * inFlight) latest.shift();
}

function found(what: string, detail: string): void {
  if (findings.length < 50) findings.push(`${what}\n  ${JSON.stringify(detail.slice(0, 600))}`);
}

/**
 * Requests the health of the server repeatedly. The CPU time of its main thread between two
 * responses is the longest time that other clients waited, independent of the load of the machine.
 */
async function watchTurns({ pid, url }: Served, isOver: AbortSignal): Promise<number> {
  let longestMs = 0;
  while (!isOver.aborted) {
    const before = mainThreadMs(pid);
    try {
      await (await fetch(`${url}/svc1/health`)).text();
    } catch {
      return longestMs;
    }
    const usedMs = mainThreadMs(pid) - before;
    longestMs = Math.max(longestMs, usedMs);
    if (usedMs > stallMs) found(`A turn used ${usedMs} ms of CPU time`, latest.join('\n---\n'));
    await delay(5);
  }
  return longestMs;
}

/** CPU time of a process's main thread so far, in milliseconds (Linux, proc(5), stat). */
function mainThreadMs(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/task/${pid}/stat`, 'utf8');
    const [, , , , , , , , , , , user = 0, system = 0] = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number);
    return (user + system) * 10;
  } catch {
    return 0;
  }
}
