import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Cleaning } from '../../folder.ts';
import { openIn } from './scratch.ts';
import { upkeep } from '../../../src/modules/upkeep/upkeep.ts';

const writer = fileURLToPath(new URL('row-writer.ts', import.meta.url));

/**
 * Kills a process that changes rows and indexes, again and again on one data folder. Asserts after
 * each kill that every acknowledged change is in the log, and that all projections agree with the
 * log. Resolves to the number of acknowledged changes.
 */
export async function killRowWriters(
  t: Cleaning,
  { folder, kills, lifeMsMax }: { folder: string; kills: number; lifeMsMax: number },
): Promise<number> {
  let acknowledged = 0;
  for (let kill = 0; kill < kills; kill += 1) {
    const lines = await linesUntilKilled(t, folder, Math.random() * lifeMsMax);
    const store = await openIn(folder);
    try {
      for (const line of lines) {
        const [seq, id] = line.split(' ');
        assert.equal(store.change(Number(seq))?.id, id, `${line} was acknowledged and is lost`);
      }
      for await (const { differences } of store.part(upkeep).verify())
        assert.deepEqual(differences, []);
    } finally {
      await store.close();
    }
    acknowledged += lines.length;
  }
  return acknowledged;
}

/** The complete lines that a writer has printed until it was killed. */
async function linesUntilKilled(
  t: Cleaning,
  folder: string,
  lifeMs: number,
): Promise<readonly string[]> {
  const child = spawn(process.execPath, [writer, folder], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  const lines: string[] = [];
  let killer: NodeJS.Timeout | undefined;
  for await (const line of createInterface({ input: child.stdout })) {
    if (line === 'ready') killer = setTimeout(() => child.kill('SIGKILL'), lifeMs);
    else lines.push(line);
  }
  clearTimeout(killer);
  assert.equal(child.exitCode, null, 'the writer ended by itself');
  // The last line may be incomplete.
  return lines.slice(0, -1);
}
