// The long fault run of webhooks: kills a server at random points while it delivers, again and
// again on one data folder, and checks that every acknowledged event reaches its receivers, with
// the same body each time, numbered without gaps, and that nothing is sent to a hook once it is
// invalidated. `npm run faults:hooks [-- RUNS]`; prints counts, and exits with 1 at a violation.
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { postOperation } from '../harness.ts';
import type { Cleaning } from '../folder.ts';
import { runWaymark, serverFolder, startServed, type Served } from '../process.ts';
import { startFaultyReceiver, type FaultyReceiver } from './hook-receiver.ts';
import { runsAsked } from './runs.ts';
import { openSocketCalls, type SocketCalls } from './socket-calls.ts';

const runs = runsAsked(process.argv[2]);
const inFlight = 8;
/** The run kills the server after at most this number of requests and acknowledgements … */
const lifeStepsMax = 250;
/** … or after this time. */
const lifeMsMax = 10_000;
/** After this number of runs, the test waits for all deliveries and checks them. */
const runsTogether = 10;
const drainMsMax = 120_000;
const type = 'fault.happened';
const ini = `[log]
access = no
[webhook]
allow_private = 127.0.0.0/8
retry = 10ms, 30ms, 100ms
`;

/** Hooks that exist during all runs, by the paths of their receivers. */
const lasting: Readonly<Record<string, object>> = {
  '/each-1': {},
  '/each-2': {},
  '/order': { order: true },
  '/batch': { frequency: { mode: 'batch', every: '1s', max_events: 20 } },
  '/small-batch': { frequency: { mode: 'batch', every: '1s', max_events: 3 } },
};

const cleanings: (() => unknown)[] = [];
const context: Cleaning = {
  after: (clean) => {
    cleanings.unshift(clean);
  },
};

/** The shared state of all runs. */
interface Trial {
  readonly receiver: FaultyReceiver;
  readonly iniFile: string;
  readonly adminKey: string;
  /** Ids of the lasting hooks by their paths. */
  readonly hooks: ReadonlyMap<string, string>;
  /** Ids of the acknowledged events. */
  readonly acknowledged: Set<string>;
  shortLived: number;
}

try {
  await runAll();
} finally {
  for (const clean of cleanings) await clean();
}

async function runAll(): Promise<void> {
  const receiver = await startFaultyReceiver();
  context.after(() => {
    receiver.close();
  });
  const { iniFile } = await serverFolder(context, ini);
  let served = await startServed(context, iniFile);
  const { adminKey } = served;
  const hooks = new Map<string, string>();
  for (const [path, fields] of Object.entries(lasting)) {
    const v = { event: type, url: receiver.origin + path, retry_limit: 1_000, ...fields };
    const { data } = await postOperation(served.url, 'svc1.webhook.insert', v, {
      apikey: adminKey,
    });
    receiver.of(path).isOrdered = 'order' in fields;
    hooks.set(path, data.id as string);
  }
  const trial = {
    receiver,
    iniFile,
    adminKey,
    hooks,
    acknowledged: new Set<string>(),
    shortLived: 0,
  };
  for (let run = 1; run <= runs; run += 1) {
    await tellUntilKilled(served, trial);
    served = await startServed(context, iniFile, { first: false });
    assert.deepEqual(receiver.violations, []);
    if (run % runsTogether === 0 || run === runs) await holdPromises(served, trial, run);
  }
  served.child.kill('SIGKILL');
  await served.closed;
  const { code, err, out } = await runWaymark(['check', '--data', '--config', iniFile]);
  assert.equal(code, 0, out + err);
}

/** Sends events, and inserts and invalidates a hook, until the server is killed. */
async function tellUntilKilled(served: Served, trial: Trial): Promise<void> {
  const socket = await openSocketCalls(served.url, trial.adminKey);
  const kill = (): void => void served.child.kill('SIGKILL');
  const killer = setTimeout(kill, lifeMsMax);
  let stepsLeft = 1 + Math.floor(Math.random() * lifeStepsMax);
  const step = (): void => {
    stepsLeft -= 1;
    if (stepsLeft === 0) kill();
  };
  trial.receiver.onRequest(step);
  const telling = Array.from({ length: inFlight }, () => tellOn(socket, trial, step));
  await Promise.all([...telling, comeAndGo(socket, trial)]);
  clearTimeout(killer);
  await served.closed;
}

async function tellOn(
  socket: SocketCalls,
  { acknowledged }: Trial,
  step: () => void,
): Promise<void> {
  for (;;) {
    const vk = `vk ${Math.random()}`;
    const answer = await socket.call({ a: 'svc1.event.insert', v: { type, data: { vk } }, vk });
    if (answer === undefined) return;
    assert.equal(answer.error, undefined, JSON.stringify(answer));
    acknowledged.add(answer.data.id as string);
    step();
    await delay(Math.random() * 4);
  }
}

/** Hooks that are invalidated while their deliveries run. */
async function comeAndGo(socket: SocketCalls, trial: Trial): Promise<void> {
  for (;;) {
    trial.shortLived += 1;
    const path = `/short-lived-${trial.shortLived}`;
    const v = { event: type, url: trial.receiver.origin + path };
    const inserted = await socket.call({ a: 'svc1.webhook.insert', v });
    if (inserted === undefined) return;
    const { id } = inserted.data as { readonly id: string };
    await delay(Math.random() * 60);
    const invalidate = { a: 'svc1.webhook.invalidate', v: { id } };
    const dry = await socket.call(invalidate);
    if (dry === undefined) return;
    const confirm = dry.data.digest as string;
    const done = await socket.call({ ...invalidate, v: { id, confirm } });
    if (done === undefined) return;
    assert.equal(done.data?.done, true, JSON.stringify(done));
    trial.receiver.of(path).isClosed = true;
  }
}

async function holdPromises(served: Served, trial: Trial, run: number): Promise<void> {
  const { receiver, hooks, acknowledged } = trial;
  for (const id of hooks.values()) await untilDrained(served, trial, id);
  assert.deepEqual(receiver.violations, []);
  let requests = 0;
  for (const path of hooks.keys()) {
    const came = receiver.of(path);
    requests += came.requests;
    const received = new Set(came.events.values());
    const lost = [...acknowledged].filter((id) => !received.has(id));
    assert.deepEqual(lost, [], `${path} never had what was acknowledged`);
    const seqs = [...came.events.keys()].toSorted((one, other) => one - other);
    const gap = seqs.findIndex((seq, at) => seq !== at + 1);
    assert.equal(gap, -1, `${path} has a gap before seq ${seqs[gap] ?? ''}`);
    assert.equal(received.size, seqs.length, `${path} has an event under two seqs`);
  }
  process.stdout.write(
    `${run} kills: ${acknowledged.size} events acknowledged, ${requests} requests for ` +
      `${hooks.size} hooks, ${trial.shortLived} hooks came and went, all as promised\n`,
  );
}

/** Resolves once a hook has no waiting deliveries. */
async function untilDrained({ url }: Served, { adminKey }: Trial, id: string): Promise<void> {
  const deadlineMs = performance.now() + drainMsMax;
  for (;;) {
    const v = { id, limit: 1 };
    const { data } = await postOperation(url, 'svc1.webhook.deliveries', v, { apikey: adminKey });
    if (data.queued === 0 && data.waiting === 0) return;
    assert.ok(performance.now() < deadlineMs, `${id} still has ${JSON.stringify(data)}`);
    await delay(50);
  }
}
