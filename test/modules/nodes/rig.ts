import { families } from '../../../src/families.ts';
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { openStore } from '../../../src/core/log/open.ts';
import { uuidv7 } from 'uuidv7';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { startWaymark, type Waymark } from '../../../src/main.ts';
import { createLogs } from '../../../src/core/report/log.ts';
import { readTestConfig, startSite, type TestSite } from '../../harness.ts';
import type { Cleaning } from '../../folder.ts';
import { rowLogPart } from '../../../src/modules/nodes/log/open-row-log.ts';
import { upkeep } from '../../../src/modules/upkeep/upkeep.ts';

/** The options of a node that follows another one. */
interface NodeOptions {
  readonly name: string;
  readonly role?: 'replica' | 'counter';
  readonly ini?: string;
  readonly files?: Readonly<Record<string, string>>;
  /** Its key on the centre; by default a new one. */
  readonly key?: string;
  /** The site to follow; by default the centre. */
  readonly central?: TestSite;
}

/** Makes a key on a centre with which a node may follow it. */
export async function nodeKey(centre: TestSite, node: string): Promise<string> {
  const v = { name: node, scopes: ['follow', 'event'], node };
  const { data, error } = await centre.call('svc1.key.insert', v);
  assert.equal(error, undefined);
  return (data as { key: string }).key;
}

/** Starts a node that follows a centre. */
export async function startFollower(
  t: Cleaning,
  centre: TestSite,
  { name, role = 'replica', ini = '', files = {}, central = centre, ...given }: NodeOptions,
): Promise<TestSite> {
  const key = given.key ?? (await nodeKey(centre, name));
  if (central !== centre) await untilEqual(centre, central);
  return startSite(t, {
    ini: `[node]\nrole = ${role}\nname = ${name}\ncentral = ${central.url}\nkey_file = central.key\n${ini}`,
    files: { ...files, 'central.key': `${key}\n` },
  });
}

/** Resolves to the newest seq of a site. */
export async function seqOf(site: TestSite, apikey: string): Promise<number> {
  const { data } = await site.call('svc1.server.status', {}, { apikey });
  return (data as { seq: number }).seq;
}

/** Resolves once a node has all changes of its centre. */
export async function untilEqual(centre: TestSite, node: TestSite): Promise<number> {
  for (;;) {
    const [wanted, has] = [
      await seqOf(centre, centre.adminKey),
      await seqOf(node, centre.adminKey),
    ];
    if (has === wanted) return has;
    await delay(10);
  }
}

/** Resolves once a check no longer throws; rejects with its error after 20 s. */
export async function eventually(check: () => Promise<void> | void): Promise<void> {
  for (let tries = 0; ; tries += 1) {
    try {
      await check();
      return;
    } catch (error) {
      if (tries > 400) throw error;
      await delay(50);
    }
  }
}

/** The digest of a site's log up to a seq, and the number of differences in its projections. */
export async function stateOf(site: TestSite, seq: number): Promise<string> {
  // Only to read: a second writer of one process can wait for the first for ever.
  const store = await openStore({
    families,
    folder: join(site.folder, 'data'),
    now: Date.now,
    newId: uuidv7,
    readOnly: true,
  });
  try {
    const differences = [];
    for await (const { differences: some } of store.part(upkeep).verify())
      differences.push(...some);
    assert.deepEqual(differences, []);
    return await store.part(rowLogPart).digest(seq);
  } finally {
    await store.close();
  }
}

/** Starts a server with an existing ini file; `logged` returns its log so far. */
export async function startFromIni(
  t: Cleaning,
  iniFile: string,
): Promise<Waymark & { readonly logged: () => string }> {
  const config = await readTestConfig(iniFile);
  let text = '';
  const destination = new Writable({
    write(chunk: Buffer, _encoding, done) {
      text += chunk.toString();
      done();
    },
  });
  const logs = createLogs({ settings: config.log, destination, colour: false, now: Date.now });
  const waymark = await startWaymark(config, logs);
  t.after(() => waymark.stop(0));
  return { ...waymark, logged: () => text };
}

/** Gives a log another id, as a purge of secrets does. */
export async function renewLog(folder: string): Promise<void> {
  const store = await openStore({ families, folder, now: Date.now, newId: uuidv7 });
  await store.part(rowLogPart).renew(uuidv7());
  await store.close();
}
