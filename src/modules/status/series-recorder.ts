import { readFile, rename, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Task, atIntervals } from '../../core/background/tasks.ts';
import type { GatherMetrics } from '../../core/report/metrics.ts';
import { CounterDifferences, type Series, emptySeries, withCounts } from './series.ts';

/** How often the time series gets the counts of the time since. */
const seriesSampleMs = 60_000;

/** The parts of the recorder; `now` is in milliseconds since 1970. */
interface RecorderParts {
  /** The data folder. */
  readonly folder: string;
  readonly gather: GatherMetrics;
  readonly now: () => number;
}

/**
 * Records the time series of a server in its data folder
 * (docs/design/console.md#time-series): what happened in each minute, and in the last part of one
 * when it stops. One process of a server does that.
 */
export function seriesRecording(parts: RecorderParts): Task {
  const record = seriesRecorder(parts);
  const everyMinute = atIntervals(seriesSampleMs, record);
  return {
    name: 'series_recorder',
    title: 'The recording of the time series of the metrics',
    async run(signal, well) {
      await everyMinute(signal, well);
      await record();
    },
  };
}

/**
 * Makes the function that records what happened since its last call; the first call takes the
 * counters to compare with.
 */
export function seriesRecorder({ folder, gather, now }: RecorderParts): () => Promise<void> {
  const differences = new CounterDifferences();
  let series: Series | undefined;
  return async () => {
    const found = differences.next(await gather());
    if (found === undefined) return;
    series = withCounts(series ?? (await readSeries(folder)), found, now());
    const file = seriesFile(folder);
    await writeFile(`${file}.new`, JSON.stringify(series), { mode: 0o600 });
    await rename(`${file}.new`, file);
  };
}

function seriesFile(folder: string): string {
  return join(folder, 'series.json');
}

/** Reads the time series of a data folder; without a readable one, a series without points. */
export async function readSeries(folder: string): Promise<Series> {
  try {
    const series = JSON.parse(await readFile(seriesFile(folder), 'utf8')) as Partial<Series>;
    return series.version === 1 && Array.isArray(series.tiers) ? (series as Series) : emptySeries();
  } catch {
    return emptySeries();
  }
}

/** When the time series of a data folder was written: milliseconds since 1970, 0 for never. */
export async function seriesChangedMs(folder: string): Promise<number> {
  const stats = await stat(seriesFile(folder)).catch(() => undefined);
  return stats?.mtimeMs ?? 0;
}
