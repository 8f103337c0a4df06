import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdir, utimes, writeFile } from 'node:fs/promises';
import { suite, test } from 'node:test';
import { uuidv7 } from 'uuidv7';
import type { Store } from '../../../src/core/log/store.ts';
import { silentLog } from '../../../src/core/report/log.ts';
import { AssetFiles } from '../../../src/modules/assets/asset-files.ts';
import { keepAssets } from '../../../src/modules/assets/asset-keeper.ts';
import { assetFields, assetTable, writeAssetTable } from '../../../src/modules/assets/asset.ts';
import {
  assetFollowing,
  createMissingFiles,
  fromCluster,
} from '../../../src/modules/assets/missing-files.ts';
import { testTasks } from '../../core/background/test-tasks.ts';
import { commit } from '../../core/log/scratch.ts';
import { MemoryLog } from '../../core/log/shared/memory-log.ts';
import { openNode } from '../../core/log/shared/open-node.ts';
import { type Cleaning, temporaryFolder } from '../../folder.ts';
import { oneClock } from '../../installed.ts';
import { eventually } from '../nodes/rig.ts';

const dayMs = 86_400_000;

interface SharedNode {
  readonly store: Store;
  readonly files: AssetFiles;
  readonly names: () => Promise<readonly string[]>;
  readonly keep: (nowMs: number) => Promise<void>;
  readonly follow: () => void;
}

async function nodeOf(t: Cleaning, log: MemoryLog): Promise<SharedNode> {
  const folder = await temporaryFolder(t);
  const store = await openNode(t, log, { folder });
  const files = new AssetFiles(folder);
  const shared = store.shared ?? assert.fail();
  const missing = createMissingFiles({
    ...{ files, origin: fromCluster(shared.files), log: silentLog },
  });
  return {
    ...{ store, files },
    names: async () => (await readdir(files.folder)).filter((name) => !name.startsWith('.')).sort(),
    keep: async (nowMs) => {
      const parts = { files, store, log: silentLog, retentionMs: () => 30 * dayMs };
      await keepAssets({ ...parts, now: () => nowMs }, new AbortController().signal);
    },
    follow() {
      const following = assetFollowing({ files, missing, store, log: silentLog });
      const { stop } = testTasks().start(following);
      t.after(stop);
    },
  };
}

/** Writes a file into the folder of a node, for all nodes or for this one only. */
async function write({ files, store }: SharedNode, content: string, isShared = true) {
  const writer = await files.begin();
  await writer.write(Buffer.from(content));
  const { sha256 } = await writer.finish();
  if (isShared) await files.share(sha256, store.shared?.files ?? assert.fail());
  return sha256;
}

/** Commits the row of an asset. */
async function insert({ store }: SharedNode, sha256: string, bytes: number): Promise<void> {
  await writeAssetTable(store, uuidv7);
  const asset = { name: `${sha256.slice(0, 8)}.txt`, sha256, bytes, contenttype: 'text/plain' };
  await commit(store, {
    ...{ family: 'record', id: uuidv7(), action: 'insert' },
    data: { table: assetTable, ...assetFields(asset) },
  });
}

const hashOf = (content: string): string => createHash('sha256').update(content).digest('hex');

suite('the files that the nodes of a cluster share', () => {
  test('come to all nodes, also those of a folder that the cluster begins with', async (t) => {
    const log = new MemoryLog();
    const [one, other] = [await nodeOf(t, log), await nodeOf(t, log)];
    const own = await write(one, 'of one folder', false);
    const damaged = await write(one, 'damaged', false);
    await writeFile(one.files.path(damaged), 'DAMAGED');
    await insert(one, own, 13);
    await insert(one, damaged, 7);
    one.follow();
    await eventually(async () => {
      assert.deepEqual([...log.files.keys()], [own]);
      return Promise.resolve();
    });
    const later = await write(other, 'later');
    await other.store.shared?.catchUp();
    await insert(other, later, 5);
    await eventually(async () => {
      assert.ok((await one.names()).includes(later));
    });
    other.follow();
    await eventually(async () => {
      assert.deepEqual(await other.names(), [own, later].sort());
    });
  });

  const times = { skip: oneClock() };
  test('go once no asset has referred to them for the retention', times, async (t) => {
    const log = new MemoryLog();
    const [one, other] = [await nodeOf(t, log), await nodeOf(t, log)];
    const [used, unused] = [await write(one, 'used'), await write(one, 'unused')];
    await insert(one, used, 4);
    const stored = Date.now();
    await one.keep(stored);
    await one.keep(stored + 29 * dayMs);
    assert.equal(log.files.size, 2);
    // The time without the node counts from its return on.
    await one.keep(stored + 60 * dayMs);
    assert.equal(log.files.size, 2);
    for (let hours = 1; hours < 64; hours += 1) {
      await one.keep(stored + 60 * dayMs + (hours * dayMs) / 24);
    }
    await utimes(one.files.path(unused), 1, 1);
    assert.equal(log.files.size, 2);
    await one.keep(stored + 63 * dayMs);
    assert.deepEqual([...log.files.keys()], [used]);
    assert.deepEqual(await one.names(), [used]);
    assert.equal(unused, hashOf('unused'));
    // A node that still has it does not bring it back.
    await write(other, 'unused', false);
    other.follow();
    await eventually(async () => {
      assert.ok((await other.names()).includes(used));
    });
    assert.deepEqual([...log.files.keys()], [used]);
  });

  test('stay while the cluster cannot be asked who uses them', async (t) => {
    const log = new MemoryLog();
    const one = await nodeOf(t, log);
    await write(one, 'unused');
    const stored = Date.now();
    log.isReachable = false;
    await assert.rejects(one.keep(stored + 31 * dayMs), { code: 'unavailable' });
    assert.equal((await one.names()).length, 1);
    log.isReachable = true;
  });
});
