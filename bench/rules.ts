// The cost of a million page rules, compared with SQLite on the same disk; see bench/README.md.
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { reportOf } from './load.ts';
import { surroundings, findPrograms } from './machine.ts';
import { freePorts } from './processes.ts';
import { ownBytes, residentBytes } from './proc.ts';
import type { FillTimes } from './rules/fill.ts';
import { measureMatching, percentilesOf, type Percentiles } from './rules/matching.ts';
import { addTransaction, measureRevert } from './rules/revert.ts';
import { measureEdits, measureInserts, openService } from './rules/service.ts';
import { measureSqliteEdits, measureSqliteInserts, measureSqliteLookups } from './rules/sqlite.ts';
import { firstKey, waymark } from './servers/waymark.ts';
import { createWorkspace, type Workspace } from './workspace.ts';

const { values: options } = parseArgs({
  options: {
    rules: { type: 'string', default: '1000000' },
    revert: { type: 'string', default: '100000' },
  },
});
const largest = Number(options.rules);
const sizes = [10_000, 100_000, 1_000_000].filter((size) => size < largest).concat(largest);
const mebibyte = 1024 * 1024;

const fillProgram = fileURLToPath(new URL('./rules/fill-process.ts', import.meta.url));
const workspace = await createWorkspace();
for (const [name, value] of Object.entries(await surroundings(findPrograms()))) {
  console.log(`${name.padEnd(7)} ${value}`);
}
console.log(
  '\n     rules  fill/s   match µs median/p99, later  start ms   MiB resident   edit ms median/p99',
);
for (const size of sizes) await measureSize(workspace, size);
await measurePeer(workspace);

async function measureSize(space: Workspace, rules: number): Promise<void> {
  const folder = await space.folderFor(`rules-${rules}`);
  const data = join(folder, 'data');
  const fill = [fillProgram, data, String(rules)];
  const parts = { core: undefined, folder };
  const { seconds: fillSeconds } = await reportOf<FillTimes>(parts, process.execPath, fill);
  const match = await measureMatching(folder, data, rules);
  const isLargest = rules === largest;
  const txn = isLargest ? await addTransaction(data, Number(options.revert)) : undefined;
  const [port = 0] = await freePorts(1);
  const server = waymark({ folder, port, core: undefined }, { root: space.diskRoot, rules: [] });
  const started = performance.now();
  const running = await server.start();
  const startMs = performance.now() - started;
  const resident = (await residentBytes(running.pids)) / mebibyte;
  const service = await openService(running.url, await firstKey(join(folder, 'stderr.log')));
  const edits = percentilesOf(await measureEdits(service, running.url, 300));
  console.log(
    [
      String(rules).padStart(10),
      (rules / fillSeconds).toFixed(0).padStart(7),
      `${microseconds(match.first)}, ${microseconds(match.then)}`.padStart(27),
      startMs.toFixed(0).padStart(10),
      resident.toFixed(0).padStart(14),
      `${edits.median.toFixed(1)} / ${edits.p99.toFixed(1)}`.padStart(20),
    ].join(' '),
  );
  if (txn !== undefined) {
    const inserts = await measureInserts(service, { inserts: 30_000, inFlight: 64 });
    console.log(`\nDurable inserts over one websocket, 64 in flight: ${inserts.toFixed(0)}/s`);
    const figures = await measureRevert(service, { url: running.url, txn });
    console.log(
      `A transaction of ${options.revert} rows: dry run ${(figures.dryRunMs / 1000).toFixed(2)} s, ` +
        `reverted in ${(figures.doneMs / 1000).toFixed(2)} s; meanwhile ${figures.visits} visits, ` +
        `median ${figures.visitorMedianMs.toFixed(1)} ms, p99 ${figures.visitorP99Ms.toFixed(1)} ms`,
    );
    const [after, own] = [await residentBytes(running.pids), await ownBytes(running.pids)];
    console.log(
      `Resident after all that: ${(after / mebibyte).toFixed(0)} MiB, ` +
        `${(own / mebibyte).toFixed(0)} MiB of them its own`,
    );
  }
  service.close();
  await server.stop();
}

async function measurePeer(space: Workspace): Promise<void> {
  const folder = await space.folderFor('sqlite');
  const single = measureSqliteInserts(folder, 2_000, 1);
  const grouped = measureSqliteInserts(folder, 30_000, 64);
  const bulk = measureSqliteInserts(await space.folderFor('sqlite-bulk'), largest, 20_000);
  const lookup = measureSqliteLookups(await space.folderFor('sqlite-bulk'), largest);
  const edits = percentilesOf(measureSqliteEdits(await space.folderFor('sqlite-bulk'), 300));
  console.log(
    `\nSQLite (WAL, synchronous=FULL) in its own process: ${single.toFixed(0)} inserts/s alone, ` +
      `${grouped.toFixed(0)}/s 64 to a transaction, ${bulk.toFixed(0)}/s 20,000 to one;\n` +
      `one indexed look-up of an exact path in ${largest} rows: ${microseconds(lookup)} µs; ` +
      `one edit there: ${edits.median.toFixed(1)} / ${edits.p99.toFixed(1)} ms`,
  );
}

function microseconds({ median, p99 }: Percentiles): string {
  return `${median.toFixed(1)} / ${p99.toFixed(1)}`;
}
