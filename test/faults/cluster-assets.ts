// Kills the machines of a cluster in the middle of uploads, again and again; now and then a server
// of NATS, too. After each kill, every acknowledged file is at every machine byte for byte, and any
// other asset has its former file or the new one, as a whole and the same one at every machine. At
// the end, `check --data` finds nothing wrong at any of them.
// `npm run faults:cluster-assets [-- RUNS [SEED]]`; prints counts, and exits with 1 at a violation.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { uuidv7 } from 'uuidv7';
import { createCluster } from '../../src/modules/cluster/status.ts';
import { findNatsServer, noServer } from '../modules/cluster/nats-server.ts';
import { startNats, until, type NatsServer } from '../modules/cluster/nats.ts';
import { settingsOf } from '../modules/cluster/rig.ts';
import { temporaryFolder } from '../folder.ts';
import { postOperation } from '../harness.ts';
import { runWaymark } from '../process.ts';
import { startMember, type WaymarkMember } from './member.ts';
import { runFaults, type FaultRun } from './runs.ts';

const names = Array.from({ length: 12 }, (_, at) => `folder/file-${at}.bin`);
const inFlight = 6;
const lifeMsMax = 400;
/** How long the others go on after a kill. */
const afterKillMs = 100;
const bytesMax = 3_000_000;
/** Most files are short: each machine keeps all of them, on a disk of 1 GiB. */
const shortness = 8;
/** After so many kills of machines, the next one is that of a server of NATS as well. */
const natsKillEvery = 10;
/** How long an election of a leader, and what waits for it, may take. */
const settledMsMax = 120_000;

/** What an asset may have: its last acknowledged content, or one whose outcome is not known. */
interface Asset {
  acknowledged: string | undefined;
  readonly possible: Set<string>;
}

interface Counts {
  acknowledged: number;
  /** Uploads without an answer, because the machine was killed. */
  cut: number;
  /** Uploads that a machine has refused as `unavailable`: their outcome is not known either. */
  unavailable: number;
  continued: number;
  /** Files that were compared at machines. */
  compared: number;
}

/** A run, which uploads until `isLoading` is false. */
interface Load {
  readonly apikey: string;
  readonly assets: ReadonlyMap<string, Asset>;
  readonly counts: Counts;
  isLoading: boolean;
}

if (findNatsServer() === undefined) {
  process.stderr.write(`${noServer}\n`);
  process.exit(2);
}
await runFaults(process.argv.slice(2), killUploads);

async function killUploads(run: FaultRun): Promise<Counts> {
  const { random, faults, injected } = run;
  const { nats, machines, apikey } = await start(run);
  const assets = new Map<string, Asset>(
    names.map((name) => [name, { acknowledged: undefined, possible: new Set() }]),
  );
  const counts: Counts = { acknowledged: 0, cut: 0, unavailable: 0, continued: 0, compared: 0 };
  for (let kill = 1; kill <= faults; kill += 1) {
    const load: Load = { apikey, assets, counts, isLoading: true };
    const killed = machines[random.below(machines.length)] ?? assert.fail();
    const server = kill % natsKillEvery === 0 ? nats[random.below(nats.length)] : undefined;
    const uploaders = Array.from({ length: inFlight }, (_, at) => {
      // Each asset has one writer, so that its last content is known.
      const own = names.filter((_name, index) => index % inFlight === at);
      return uploadOn(machines[at % machines.length] ?? assert.fail(), own, load);
    });
    await delay(20 + random.below(lifeMsMax));
    await Promise.all([killed.kill(), server?.kill()]);
    injected.machine = kill;
    if (server !== undefined) injected.nats = (injected.nats ?? 0) + 1;
    await delay(afterKillMs);
    load.isLoading = false;
    await Promise.all(uploaders);
    await Promise.all([killed.start(), server?.start()]);
    await until(() => haveSameFiles(machines, load), settledMsMax);
    if (kill % 10 === 0) process.stderr.write(`${kill} kills: ${JSON.stringify(counts)}\n`);
  }
  for (const machine of machines) {
    const { folder, name } = machine;
    await machine.kill();
    const { code, out, err } = await runWaymark([
      ...['check', '--data', '--config', join(folder, 'server.ini')],
    ]);
    assert.equal(code, 0, `${name}: ${out}${err}`);
    process.stderr.write(`${name}: ${out}${err}`);
  }
  return counts;
}

/** Starts three servers of NATS, and three machines that share their stream. */
async function start({ context }: FaultRun): Promise<{
  readonly nats: readonly NatsServer[];
  readonly machines: readonly WaymarkMember[];
  readonly apikey: string;
}> {
  const parent = await temporaryFolder(context);
  const nats = await startNats(context, { servers: 3 });
  await until(() => createCluster(settingsOf(nats), { id: uuidv7(), replicas: 3 }));
  const urls = nats.map(({ url }) => url).join(', ');
  const machines: WaymarkMember[] = [];
  for (const name of ['a', 'b', 'c']) {
    const ini = `[node]\nrole = central\nname = ${name}\n[cluster]\nservers = ${urls}\n`;
    const plan = { name, kind: 'node', ini, isFirst: machines.length === 0 } as const;
    machines.push(await startMember(context, parent, plan));
  }
  return { nats, machines, apikey: machines[0]?.apikey ?? '' };
}

/** Uploads file after file, until the machine is killed or the load ends. */
async function uploadOn(at: WaymarkMember, own: readonly string[], load: Load): Promise<void> {
  const { assets, counts } = load;
  for (let turn = 0; load.isLoading; turn += 1) {
    const name = own[turn % own.length] ?? '';
    const asset = assets.get(name) ?? assert.fail();
    const content = randomBytes(1 + Math.floor(Math.random() ** shortness * bytesMax));
    asset.possible.add(digestOf(content));
    const upload = { name, content };
    const outcome =
      Math.random() < 0.5 ? await send(at, load, upload) : await sendParts(at, load, upload);
    if (outcome === 'cut') {
      counts.cut += 1;
      return;
    }
    if (outcome === 'unavailable') {
      counts.unavailable += 1;
      continue;
    }
    asset.acknowledged = digestOf(content);
    asset.possible.clear();
    counts.acknowledged += 1;
  }
}

interface Upload {
  readonly name: string;
  readonly content: Buffer;
  readonly range?: string;
}

/** What has become of an upload: without an answer, refused, or done. */
type Outcome = 'cut' | 'unavailable' | 'done';

/** Sends a file or a part. */
async function send(
  { url }: WaymarkMember,
  { apikey }: Load,
  { name, content, range }: Upload,
): Promise<Outcome> {
  let reply: Response;
  let text: string;
  try {
    reply = await fetch(`${url}/svc1/asset/${name}`, {
      method: 'PUT',
      body: new Uint8Array(content),
      headers: { apikey, ...(range !== undefined && { 'content-range': range }) },
    });
    text = await reply.text();
  } catch {
    return 'cut';
  }
  if (reply.status === 503) return 'unavailable';
  assert.ok(reply.status === 200 || reply.status === 202, `${name}: ${text}`);
  return 'done';
}

/** Sends a file in two parts to one machine, which has the first of them. */
async function sendParts(at: WaymarkMember, load: Load, { name, content }: Upload) {
  const total = content.length;
  const half = Math.floor(total / 2);
  if (half === 0) return send(at, load, { name, content });
  const first = `bytes 0-${half - 1}/${total}`;
  const begun = await send(at, load, { name, content: content.subarray(0, half), range: first });
  if (begun !== 'done') return begun;
  const rest = `bytes ${half}-${total - 1}/${total}`;
  const ended = await send(at, load, { name, content: content.subarray(half), range: rest });
  if (ended === 'done') load.counts.continued += 1;
  return ended;
}

/**
 * Every machine has the same rows, and of each asset its acknowledged file, or one whose outcome
 * was not known: then that is what all have from now on.
 */
async function haveSameFiles(machines: readonly WaymarkMember[], load: Load): Promise<void> {
  const { apikey, assets, counts } = load;
  const seqs = new Set<unknown>();
  for (const { url } of machines) {
    seqs.add((await postOperation(url, 'svc1.server.status', {}, { apikey })).data?.seq);
  }
  assert.equal(seqs.size, 1, 'a machine does not have all rows yet');
  for (const [name, asset] of assets) {
    const digests = new Set<string | undefined>();
    for (const machine of machines) digests.add(await digestAt(machine, apikey, name));
    assert.equal(digests.size, 1, `${name} is not the same at all machines`);
    const [found] = digests;
    const isRight = found === asset.acknowledged || asset.possible.has(found ?? '');
    assert.ok(isRight, `${name} is neither the acknowledged file nor one that was cut off`);
    asset.acknowledged = found;
    asset.possible.clear();
    counts.compared += machines.length;
  }
}

/** The digest of the file of an asset at a machine; undefined if there is no such asset. */
async function digestAt(
  { url, name: machine }: WaymarkMember,
  apikey: string,
  name: string,
): Promise<string | undefined> {
  const reply = await fetch(`${url}/svc1/asset/${name}`, { headers: { apikey } });
  const content = Buffer.from(await reply.arrayBuffer());
  if (reply.status === 404) return undefined;
  assert.equal(reply.status, 200, `${name} at ${machine}: ${content.toString()}`);
  return digestOf(content);
}

function digestOf(content: Buffer): string {
  return createHash('sha256').update(content).digest('hex');
}
