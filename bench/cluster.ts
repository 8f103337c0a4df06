// Compares a cluster with one machine: writes, reads, visibility, replay, the failure of a NATS
// server, and webhooks; see bench/README.md. All processes share this machine.
import { createServer } from 'node:http';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { uuidv7 } from 'uuidv7';
import { createCluster } from '../src/modules/cluster/status.ts';
import { startNats, until, type NatsServer } from '../test/modules/cluster/nats.ts';
import { findNatsServer, noServer } from '../test/modules/cluster/nats-server.ts';
import { temporaryFolder, type Cleaning } from '../test/folder.ts';
import { postOperation } from '../test/harness.ts';
import { startServed, type Served } from '../test/process.ts';
import { findPrograms, surroundings } from './machine.ts';
import { cpuMicroseconds } from './proc.ts';

const seconds = 5;
const inFlight = 64;
const visibilitySamples = 300;
const reads = 20_000;
const readsInFlight = 16;
const eventsSent = 3_000;
const offlineMs = 20_000;
const pageContent = 'x'.repeat(1_024);

interface Machine {
  readonly name: string;
  readonly served: Served;
  readonly iniFile: string;
}

const cleanings: (() => unknown)[] = [];
const context: Cleaning = { after: (clean) => cleanings.unshift(clean) };
let apikey = '';
let written = 0;

if (findNatsServer() === undefined) {
  process.stderr.write(`${noServer}\n`);
  process.exit(2);
}
try {
  await run();
} finally {
  for (const clean of cleanings) await clean();
}
process.exit(0);

async function run(): Promise<void> {
  for (const [name, value] of Object.entries(await surroundings(findPrograms()))) {
    console.log(`${name.padEnd(7)} ${value}`);
  }
  const alone = await startMachine('alone', '', true);
  await measure('one machine', alone);
  await deliver('one machine', alone, [alone]);
  alone.served.child.kill('SIGTERM');
  await alone.served.closed;

  const servers = await startNats(context, { servers: 3 });
  const settings = { servers: servers.map(({ url }) => url), name: 'waymark' };
  const cluster = settings as unknown as Parameters<typeof createCluster>[0];
  await until(() => createCluster(cluster, { id: uuidv7(), replicas: 3 }));
  const more = `[cluster]\nservers = ${settings.servers.join(', ')}\n`;
  const a = await startMachine('a', more, true);
  const b = await startMachine('b', more, false);
  const c = await startMachine('c', more, false);
  await measure('a node of a cluster', a);
  await visibility(a, b);
  await deliver('three nodes', a, [a, b, c]);
  await failover(a, servers);
  await offline(a, c);
  const rows = await seqOf(a);
  const started = performance.now();
  await startMachine('d', more, false);
  print('a new node', { rows, ms: performance.now() - started });
}

async function startMachine(name: string, more: string, first: boolean): Promise<Machine> {
  const parent = await temporaryFolder(context);
  const folder = join(parent, name);
  await mkdir(folder);
  const iniFile = join(folder, 'server.ini');
  await writeFile(
    iniFile,
    '[server]\nlisten = 127.0.0.1:0\ndata = data\n[log]\naccess = no\n' +
      `[webhook]\nallow_private = 127.0.0.0/8\n[node]\nrole = central\nname = ${name}\n${more}`,
  );
  const env = { XDG_DATA_HOME: parent };
  const served = await startServed(context, iniFile, { first, env });
  if (first) apikey = served.adminKey;
  return { name, served, iniFile };
}

function call({ served }: Machine, name: string, v: object) {
  return postOperation(served.url, name, v, { apikey });
}

async function seqOf(machine: Machine): Promise<number> {
  const answer: { readonly data?: unknown } = await call(machine, 'svc1.server.status', {});
  return (answer.data as { readonly seq: number }).seq;
}

async function insert(machine: Machine): Promise<string> {
  written += 1;
  const path = `/page/${written}`;
  const page = { origin: '*', path, kind: 'content', content: pageContent };
  const { error } = await call(machine, 'svc1.userinterface.insert', page);
  if (error !== undefined) throw new Error(error.message);
  return path;
}

/** Measures writes and reads of one machine: their rate, and the CPU time of its process. */
async function measure(what: string, machine: Machine): Promise<void> {
  for (const writers of [1, inFlight]) {
    const [started, before] = [performance.now(), await cpuMicroseconds([machine.served.pid])];
    let count = 0;
    await Promise.all(
      Array.from({ length: writers }, async () => {
        while (performance.now() - started < 1_000 * seconds) {
          await insert(machine);
          count += 1;
        }
      }),
    );
    const us = (await cpuMicroseconds([machine.served.pid])) - before;
    const rate = count / ((performance.now() - started) / 1_000);
    print(`${what}: writes over HTTP, ${writers} in flight`, {
      'writes/s': rate,
      'CPU us': us / count,
    });
  }
  const url = machine.served.url + (await insert(machine));
  const before = await cpuMicroseconds([machine.served.pid]);
  await Promise.all(
    Array.from({ length: readsInFlight }, async () => {
      for (let n = 0; n < reads / readsInFlight; n += 1) await (await fetch(url)).arrayBuffer();
    }),
  );
  const us = (await cpuMicroseconds([machine.served.pid])) - before;
  print(`${what}: a stored page`, { 'CPU us': us / reads });
}

/** Measures how long after its acknowledgement another node shows a write. */
async function visibility(from: Machine, at: Machine): Promise<void> {
  const delays: number[] = [];
  for (let n = 0; n < visibilitySamples; n += 1) {
    const path = await insert(from);
    const started = performance.now();
    while ((await fetch(at.served.url + path)).status !== 200);
    delays.push(performance.now() - started);
  }
  delays.sort((x, y) => x - y);
  const share = (part: number): number => delays[Math.floor(part * delays.length)] ?? 0;
  print('until another node shows a write', { 'p50 ms': share(0.5), 'p99 ms': share(0.99) });
}

async function deliver(what: string, at: Machine, machines: readonly Machine[]): Promise<void> {
  const done = Promise.withResolvers<undefined>();
  let received = 0;
  const receiver = createServer((request, response) => {
    request.resume();
    response.writeHead(204).end();
    received += 1;
    if (received >= eventsSent) done.resolve(undefined);
  });
  receiver.listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  const { port } = receiver.address() as AddressInfo;
  await call(at, 'svc1.webhook.insert', { url: `http://127.0.0.1:${port}/`, event: ['a.b'] });
  const started = performance.now();
  await Promise.all(
    Array.from({ length: inFlight }, async (_, writer) => {
      const machine = machines[writer % machines.length] ?? at;
      for (let n = 0; n < Math.ceil(eventsSent / inFlight); n += 1) {
        await call(machine, 'svc1.event.insert', { type: 'a.b', data: {} });
      }
    }),
  );
  await done.promise;
  const rate = eventsSent / ((performance.now() - started) / 1_000);
  print(`${what}: webhooks of ${eventsSent} events`, { 'deliveries/s': rate });
  receiver.close();
  receiver.closeAllConnections();
}

/** Measures the longest write while each NATS server is killed in turn. */
async function failover(machine: Machine, servers: readonly NatsServer[]): Promise<void> {
  for (const server of servers) {
    let [longestMs, isLoading] = [0, true];
    const writing = (async () => {
      while (isLoading) {
        const started = performance.now();
        await insert(machine).catch(() => undefined);
        longestMs = Math.max(longestMs, performance.now() - started);
      }
    })();
    await wait(1_000);
    await server.kill();
    await wait(12_000);
    isLoading = false;
    await writing;
    await server.start();
    await wait(5_000);
    print(`a NATS server is killed (${server.name})`, { 'longest ms of a write': longestMs });
  }
}

/** Measures the start of a node that was off while another one wrote. */
async function offline(writer: Machine, { served, iniFile }: Machine): Promise<void> {
  const env = { XDG_DATA_HOME: join(iniFile, '../..') };
  served.child.kill('SIGTERM');
  await served.closed;
  const before = await seqOf(writer);
  const started = performance.now();
  const writing = Array.from({ length: 8 }, async () => {
    while (performance.now() - started < offlineMs) await insert(writer);
  });
  await Promise.all(writing);
  const missed = (await seqOf(writer)) - before;
  const begun = performance.now();
  const again = await startServed(context, iniFile, { first: false, env });
  const late = performance.now() - begun;
  again.child.kill('SIGTERM');
  await again.closed;
  const next = performance.now();
  await startServed(context, iniFile, { first: false, env });
  const plain = performance.now() - next;
  print(`a node that was off for ${offlineMs / 1_000} s`, {
    'rows missed': missed,
    'ms of its start': late,
    'ms of a start without that': plain,
  });
}

function print(what: string, figures: Readonly<Record<string, number>>): void {
  const texts = Object.entries(figures).map(
    ([name, value]) => `${value >= 100 ? Math.round(value) : value.toFixed(2)} ${name}`,
  );
  console.log(`${what}: ${texts.join(', ')}`);
}
