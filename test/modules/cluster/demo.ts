// `npm run cluster`: three NATS servers, three nodes with the demo site, and two counters, each a
// process, on one machine. It shows their state in a table and sells something at each counter. The
// keys 1 to 3 stop a NATS server, or let it continue; a to c do so with a node. Everything is in a
// temporary folder, which is removed at the end.
import { cp, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { temporaryFolder, writeFiles, type Cleaning } from '../../folder.ts';
import { freePort } from '../../free-port.ts';
import { postOperation } from '../../harness.ts';
import { startServed } from '../../process.ts';
import { project } from '../../tidy/sources.ts';
import { findNatsServer, noServer } from './nats-server.ts';
import { startLog } from './rig.ts';

/** How often the table is printed, and each counter sells something. */
const shownMs = 2_000;
/** After this time without an answer, the table shows a process as silent. */
const answerMs = 1_000;

/** A process that a key stops, and lets continue. */
interface Target {
  freeze(): void;
  thaw(): void;
}

interface Member extends Target {
  readonly name: string;
  readonly url: string;
  readonly isCounter: boolean;
}

const cleanings: (() => unknown)[] = [];
const context: Cleaning = {
  after: (clean) => {
    cleanings.unshift(clean);
  },
};
const ended = new AbortController();
for (const name of ['SIGINT', 'SIGTERM']) {
  process.on(name, () => {
    ended.abort();
  });
}
try {
  if (findNatsServer() === undefined) process.stderr.write(`${noServer}.\n`);
  else await run();
} finally {
  process.stdin.destroy();
  for (const clean of cleanings) await clean();
}

async function run(): Promise<void> {
  const folder = await temporaryFolder(context);
  const { servers } = await startLog(context, 3);
  const urls = servers.map(({ url }) => url).join(', ');
  const nodes: Member[] = [];
  let apikey = '';
  for (const name of ['a', 'b', 'c']) {
    const { member, adminKey } = await startNode(folder, { name, urls });
    nodes.push(member);
    apikey ||= adminKey;
  }
  const counters: Member[] = [];
  for (const [at, name] of ['counter-1', 'counter-2'].entries()) {
    counters.push(await startCounter(folder, { name, url: nodes[at]?.url ?? '', apikey }));
  }
  process.stdout.write(
    [
      `NATS: ${urls}`,
      ...[...nodes, ...counters].map(({ name, url }) => `${name}: ${url}`),
      `The admin key, for all: ${apikey}`,
      'Press 1, 2 or 3 to stop a server of NATS or let it go on, a, b or c for a node, q to end.\n\n',
    ].join('\n'),
  );
  const targets = new Map<string, Target>(nodes.map((node) => [node.name, node]));
  for (const [at, server] of servers.entries()) targets.set(String(at + 1), server);
  readKeys(targets);
  for (let n = 1; !ended.signal.aborted; n += 1) {
    for (const { name, url } of counters) {
      const v = { type: 'sale.completed', data: { id: `${name}-${n}`, total: '12.50' } };
      await postOperation(url, 'svc1.event.insert', v, { apikey });
    }
    await show([...nodes, ...counters], apikey);
    await delay(shownMs, undefined, { signal: ended.signal }).catch(() => undefined);
  }
}

/** Starts a node with a copy of the demo; the first one imports its pages. */
async function startNode(
  parent: string,
  { name, urls }: { readonly name: string; readonly urls: string },
): Promise<{ readonly member: Member; readonly adminKey: string }> {
  const folder = join(parent, name);
  await cp(join(project, 'conf'), folder, { recursive: true });
  const [port, supplier] = [await freePort(), await freePort()];
  const demo = await readFile(join(folder, 'server.ini'), 'utf8');
  const ini = demo
    .replace('SHOP_PORT = 8080', `SHOP_PORT = ${port}`)
    .replace('SUPPLIER_PORT = 8081', `SUPPLIER_PORT = ${supplier}`)
    .replace('data = ../data', 'data = data')
    .replace('access = yes', 'access = no')
    .replace(/^import = .*$/m, (line) => (name === 'a' ? line : ''));
  const cluster = `[node]\nrole = central\nname = ${name}\n[cluster]\nservers = ${urls}\n`;
  await writeFiles(folder, { 'server.ini': `${ini}\n${cluster}` });
  const env = { XDG_DATA_HOME: folder };
  const first = name === 'a';
  const iniFile = join(folder, 'server.ini');
  const { child, adminKey } = await startServed(context, iniFile, { env, first });
  return { member: memberOf(name, { port, child, isCounter: false }), adminKey };
}

async function startCounter(
  parent: string,
  { name, url, apikey }: { readonly name: string; readonly url: string; readonly apikey: string },
): Promise<Member> {
  const key = { name, scopes: ['follow', 'event'], node: name };
  const { data } = await postOperation(url, 'svc1.key.insert', key, { apikey });
  const port = await freePort();
  await writeFiles(join(parent, name), {
    'central.key': (data as { key: string }).key,
    'server.ini': `[server]
listen = 127.0.0.1:${port}
data = data
[disk.site]
root = ../a/site
[node]
role = counter
name = ${name}
place = ${name}
central = ${url}
key_file = central.key
[log]
access = no
`,
  });
  const { child } = await startServed(context, join(parent, name, 'server.ini'), { first: false });
  return memberOf(name, { port, child, isCounter: true });
}

function memberOf(
  name: string,
  {
    port,
    child,
    isCounter,
  }: {
    readonly port: number;
    readonly child: Awaited<ReturnType<typeof startServed>>['child'];
    readonly isCounter: boolean;
  },
): Member {
  return {
    ...{ name, url: `http://127.0.0.1:${port}`, isCounter },
    freeze: () => void child.kill('SIGSTOP'),
    thaw: () => void child.kill('SIGCONT'),
  };
}

/** Prints a line for each process: its newest seq, how many it lacks, and its outbox. */
async function show(members: readonly Member[], apikey: string): Promise<void> {
  const states = await Promise.all(
    members.map(async ({ url }) => {
      const answer = postOperation(url, 'svc1.server.status', {}, { apikey });
      const late = delay(answerMs, undefined, { ref: false });
      return (await Promise.race([answer, late]).catch(() => undefined))?.data;
    }),
  );
  const newest = Math.max(0, ...states.map((state) => Number(state?.seq ?? 0)));
  const rows = members.map(({ name, isCounter }, at) => {
    const state = states[at];
    const seq = state?.seq;
    return [
      ...[name, isCounter ? 'counter' : 'node', state === undefined ? 'no answer' : 'answers'],
      seq ?? '-',
      seq === undefined ? '-' : newest - Number(seq),
      isCounter ? (state?.node?.central?.outbox.waiting ?? '-') : '-',
    ];
  });
  const lines = [['NAME', 'KIND', 'STATE', 'SEQ', 'LAG', 'OUTBOX'], ...rows].map((row) =>
    row
      .map((cell) => String(cell).padEnd(12))
      .join('')
      .trimEnd(),
  );
  process.stdout.write(`${lines.join('\n')}\n\n`);
}

function readKeys(targets: ReadonlyMap<string, Target>): void {
  const { stdin } = process;
  const frozen = new Set<string>();
  if (stdin.isTTY) stdin.setRawMode(true);
  stdin.on('data', (keys: Buffer) => {
    for (const key of keys.toString()) {
      if (key === 'q' || key === '\u0003') ended.abort();
      const target = targets.get(key);
      if (target === undefined) continue;
      if (frozen.delete(key)) target.thaw();
      else {
        frozen.add(key);
        target.freeze();
      }
    }
  });
}
