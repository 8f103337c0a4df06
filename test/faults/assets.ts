// Kills a server in the middle of uploads, again and again on one data folder. After each kill,
// every acknowledged file is there byte for byte, and any other asset has its former file or the
// new one, as a whole; what was interrupted continues where it ended, and `check --data` finds
// nothing wrong. `npm run faults:assets [-- RUNS [SEED]]`; prints counts, and exits with 1 at a
// violation.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from '../modules/nodes/rig.ts';
import { runWaymark, serverFolder, startServed, type Served } from '../process.ts';
import { runFaults, type FaultRun } from './runs.ts';

const names = Array.from({ length: 12 }, (_, at) => `folder/file-${at}.bin`);
const inFlight = 6;
const lifeMsMax = 250;
const bytesMax = 3_000_000;

/** What an asset may have: its last acknowledged content, or one whose answer did not come. */
interface Asset {
  acknowledged: Buffer | undefined;
  readonly possible: Set<string>;
}

interface Counts {
  acknowledged: number;
  cut: number;
  continued: number;
}

await runFaults(process.argv.slice(2).length === 0 ? ['100'] : process.argv.slice(2), killUploads);

async function killUploads(run: FaultRun): Promise<Counts> {
  const { context, random, faults, injected } = run;
  const { iniFile, folder } = await serverFolder(context, '[log]\naccess = no\n');
  let served = await startServed(context, iniFile);
  const { adminKey } = served;
  const assets = new Map<string, Asset>(
    names.map((name) => [name, { acknowledged: undefined, possible: new Set() }]),
  );
  const counts: Counts = { acknowledged: 0, cut: 0, continued: 0 };
  for (let kill = 1; kill <= faults; kill += 1) {
    const killer = setTimeout(() => served.child.kill('SIGKILL'), 20 + random.below(lifeMsMax));
    const uploaders = Array.from({ length: inFlight }, async (_, at) => {
      // Each asset has one writer, so that its last content is known.
      const own = names.filter((_name, index) => index % inFlight === at);
      await uploadOn(served, adminKey, { own, assets, counts });
    });
    await Promise.all(uploaders);
    clearTimeout(killer);
    await served.closed;
    injected.kill = kill;
    served = await startServed(context, iniFile, { first: false });
    await holdFiles(served, adminKey, assets);
    if (kill % 20 === 0 || kill === faults) {
      const { code, err } = await runWaymark(['check', '--data', '--config', iniFile]);
      assert.equal(code, 0, err);
      await eventually(async () => {
        const left = await readdir(join(folder, 'data/assets/.incoming')).catch(() => []);
        const foreign = left.filter((name) => /^\d+-/.test(name));
        assert.deepEqual(foreign, [], 'what killed processes were writing is removed');
      });
      process.stderr.write(`${kill} kills: ${JSON.stringify(counts)}\n`);
    }
  }
  served.child.kill('SIGKILL');
  await served.closed;
  return counts;
}

/** Uploads file after file until the server is killed. */
async function uploadOn(
  { url }: Served,
  apikey: string,
  {
    own,
    assets,
    counts,
  }: {
    readonly own: readonly string[];
    readonly assets: ReadonlyMap<string, Asset>;
    readonly counts: Counts;
  },
): Promise<void> {
  for (let turn = 0; ; turn += 1) {
    const name = own[turn % own.length] ?? '';
    const asset = assets.get(name);
    assert.ok(asset !== undefined);
    const content = randomBytes(1 + Math.floor(Math.random() ** 3 * bytesMax));
    asset.possible.add(digestOf(content));
    const isDone =
      Math.random() < 0.5
        ? await send(url, apikey, { name, content })
        : await sendParts(url, apikey, { name, content, counts });
    if (!isDone) {
      counts.cut += 1;
      return;
    }
    asset.acknowledged = content;
    asset.possible.clear();
    counts.acknowledged += 1;
  }
}

interface Sent {
  readonly name: string;
  readonly content: Buffer;
  readonly range?: string;
}

/** Sends a file or a part; resolves to whether the server has acknowledged it. */
async function send(url: string, apikey: string, { name, content, range }: Sent): Promise<boolean> {
  try {
    const reply = await fetch(`${url}/svc1/asset/${name}`, {
      method: 'PUT',
      body: new Uint8Array(content),
      headers: { apikey, ...(range !== undefined && { 'content-range': range }) },
    });
    const text = await reply.text();
    assert.ok(reply.status === 200 || reply.status === 202, text);
    return true;
  } catch (error) {
    if (error instanceof assert.AssertionError) throw error;
    return false;
  }
}

/** Sends a file in two parts, where the server says that it continues. */
async function sendParts(
  url: string,
  apikey: string,
  { name, content, counts }: Sent & { readonly counts: Counts },
): Promise<boolean> {
  const total = content.length;
  const half = Math.floor(total / 2);
  if (half === 0) return send(url, apikey, { name, content });
  const first = `bytes 0-${half - 1}/${total}`;
  if (!(await send(url, apikey, { name, content: content.subarray(0, half), range: first }))) {
    return false;
  }
  const rest = `bytes ${half}-${total - 1}/${total}`;
  const isDone = await send(url, apikey, { name, content: content.subarray(half), range: rest });
  if (isDone) counts.continued += 1;
  return isDone;
}

/** Every asset has its acknowledged file, or one whose upload was cut off, as a whole. */
async function holdFiles(
  { url }: Served,
  apikey: string,
  assets: ReadonlyMap<string, Asset>,
): Promise<void> {
  for (const [name, { acknowledged, possible }] of assets) {
    const reply = await fetch(`${url}/svc1/asset/${name}`, { headers: { apikey } });
    const content = Buffer.from(await reply.arrayBuffer());
    if (reply.status === 404) {
      assert.equal(acknowledged, undefined, `${name} was acknowledged and is lost`);
      continue;
    }
    assert.equal(reply.status, 200, `${name}: ${content.toString()}`);
    const isKept = acknowledged !== undefined && content.equals(acknowledged);
    assert.ok(isKept || possible.has(digestOf(content)), `${name} is neither file`);
  }
}

function digestOf(content: Buffer): string {
  return createHash('sha256').update(content).digest('hex');
}
