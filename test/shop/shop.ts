// `npm run shop`: a centre with the demo site and two counters, each a process, on one machine. It
// shows their state in a table, sells something at each counter, and takes a counter offline and
// back with the keys 1 and 2. Everything is in a temporary folder, which is removed at the end.
import { cp, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { FaultyProxy } from '../faults/proxy.ts';
import { temporaryFolder, writeFiles, type Cleaning } from '../folder.ts';
import { freePort } from '../free-port.ts';
import { postOperation } from '../harness.ts';
import { startServed } from '../process.ts';
import { project } from '../tidy/sources.ts';

/** How often the table is printed, and each counter sells something. */
const shownMs = 1_000;

interface Counter {
  readonly name: string;
  readonly url: string;
  readonly proxy: FaultyProxy;
  isOffline: boolean;
}

const cleanings: (() => unknown)[] = [];
const context: Cleaning = {
  after: (clean) => {
    cleanings.unshift(clean);
  },
};

const folder = await temporaryFolder(context);
const ended = new AbortController();
for (const name of ['SIGINT', 'SIGTERM']) {
  process.on(name, () => {
    ended.abort();
  });
}
try {
  await run();
} finally {
  process.stdin.destroy();
  for (const clean of cleanings) await clean();
}

async function run(): Promise<void> {
  const { port, apikey } = await startCentre();
  const url = `http://127.0.0.1:${port}`;
  const counters: Counter[] = [];
  for (const name of ['counter-1', 'counter-2']) {
    counters.push(await startCounter(name, { port, url, apikey }));
  }
  process.stdout.write(
    [
      `The centre: ${url}  (its log: ${join(folder, 'centre')})`,
      ...counters.map(({ name, url: at }) => `${name}: ${at}`),
      `The admin key, for all three: ${apikey}`,
      'Press 1 or 2 to take that counter offline or back, q to end.\n\n',
    ].join('\n'),
  );
  readKeys(counters);
  for (let n = 1; !ended.signal.aborted; n += 1) {
    for (const { name, url: at } of counters) {
      const v = { type: 'sale.completed', data: { id: `${name}-${n}`, total: '12.50' } };
      await postOperation(at, 'svc1.event.insert', v, { apikey });
    }
    await show(url, counters, apikey);
    await delay(shownMs, undefined, { signal: ended.signal }).catch(() => undefined);
  }
}

/** Starts the centre with a copy of the demo; resolves to its port and admin key. */
async function startCentre(): Promise<{ readonly port: number; readonly apikey: string }> {
  const centre = join(folder, 'centre');
  await cp(join(project, 'conf'), centre, { recursive: true });
  const [port, supplier] = [await freePort(), await freePort()];
  const demo = await readFile(join(centre, 'server.ini'), 'utf8');
  const ini = demo
    .replace('SHOP_PORT = 8080', `SHOP_PORT = ${port}`)
    .replace('SUPPLIER_PORT = 8081', `SUPPLIER_PORT = ${supplier}`)
    .replace('data = ../data', 'data = data')
    .replace('access = yes', 'access = no');
  await writeFiles(centre, { 'server.ini': `${ini}\n[node]\nrole = central\nname = centre\n` });
  const env = { XDG_DATA_HOME: folder };
  const { adminKey } = await startServed(context, join(centre, 'server.ini'), { env });
  return { port, apikey: adminKey };
}

async function startCounter(
  name: string,
  centre: { readonly port: number; readonly url: string; readonly apikey: string },
): Promise<Counter> {
  const { url, apikey } = centre;
  const key = { name, scopes: ['follow', 'event'], node: name };
  const { data } = await postOperation(url, 'svc1.key.insert', key, { apikey });
  const own = await freePort();
  const proxy = await FaultyProxy.start(centre.port);
  context.after(() => {
    proxy.close();
  });
  await writeFiles(join(folder, name), {
    'central.key': (data as { key: string }).key,
    'server.ini': `[server]
listen = 127.0.0.1:${own}
data = data
[disk.site]
root = ../centre/site
[node]
role = counter
name = ${name}
place = ${name}
central = http://127.0.0.1:${proxy.port}
key_file = central.key
[log]
access = no
`,
  });
  await startServed(context, join(folder, name, 'server.ini'), { first: false });
  return { name, url: `http://127.0.0.1:${own}`, proxy, isOffline: false };
}

/** Prints a line for each process: its newest seq, how many it lacks, and its outbox. */
async function show(url: string, counters: readonly Counter[], apikey: string): Promise<void> {
  const status = async (at: string) => {
    const answer = postOperation(at, 'svc1.server.status', {}, { apikey });
    return (await answer.catch(() => undefined))?.data;
  };
  const { seq = 0 } = (await status(url)) ?? {};
  const cells = [
    ['NODE', 'STATE', 'SEQ', 'LAG', 'OUTBOX'],
    ['centre', 'serves', seq, 0, '-'],
  ];
  for (const { name, url: at, isOffline } of counters) {
    const one = await status(at);
    const { central } = one?.node ?? {};
    const isConnected = central?.connected === true && !isOffline;
    const state = isOffline ? 'offline' : isConnected ? 'follows' : 'connecting';
    cells.push([
      name,
      state,
      one?.seq,
      Math.max(0, seq - Number(one?.seq)),
      central?.outbox.waiting,
    ]);
  }
  const lines = cells.map((row) =>
    row
      .map((cell) => String(cell).padEnd(12))
      .join('')
      .trimEnd(),
  );
  process.stdout.write(`${lines.join('\n')}\n\n`);
}

function readKeys(counters: readonly Counter[]): void {
  const { stdin } = process;
  if (stdin.isTTY) stdin.setRawMode(true);
  stdin.on('data', (keys: Buffer) => {
    for (const key of keys.toString()) {
      if (key === 'q' || key === '\u0003') ended.abort();
      const counter = counters[Number(key) - 1];
      if (counter === undefined) continue;
      counter.isOffline = !counter.isOffline;
      if (counter.isOffline) counter.proxy.cut();
      else counter.proxy.heal();
    }
  });
}
