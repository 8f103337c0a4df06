import { readFile, rename, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { reasonOf, type Log } from '../../core/report/log.ts';
import type { GatherMetrics } from '../../core/report/metrics.ts';
import { seriesSampleMs } from '../../core/report/limits.ts';
import { CounterDifferences, emptySeries, withCounts, type Series } from './series.ts';

/** The parts of the recorder; `now` is in milliseconds since 1970. */
interface RecorderParts {
  /** The data folder. */
  readonly folder: string;
  readonly gather: GatherMetrics;
  readonly now: () => number;
  readonly log: Log;
}

/**
 * Records the time series of a server in its data folder
 * (docs/design/console.md#time-series). One process of a server does that.
 */
export class SeriesRecorder {
  readonly #parts: RecorderParts;
  readonly #differences = new CounterDifferences();
  #timer: NodeJS.Timeout | undefined;
  #series: Series | undefined;
  #isFailing = false;

  constructor(parts: RecorderParts) {
    this.#parts = parts;
  }

  /** Takes the counters to compare with, then records every minute. */
  start(): void {
    void this.sample();
    this.#timer = setInterval(() => void this.sample(), seriesSampleMs);
    this.#timer.unref();
  }

  /** Records what happened since the last sample. Never rejects: a failure is logged once. */
  async sample(): Promise<void> {
    const { folder, gather, now, log } = this.#parts;
    try {
      const found = this.#differences.next(await gather());
      if (found === undefined) return;
      const before = this.#series ?? (await readSeries(folder));
      this.#series = withCounts(before, found, now());
      const file = seriesFile(folder);
      await writeFile(`${file}.new`, JSON.stringify(this.#series), { mode: 0o600 });
      await rename(`${file}.new`, file);
      this.#isFailing = false;
    } catch (error) {
      const reason = reasonOf(error);
      if (!this.#isFailing) log.warn({ reason }, 'Cannot write the time series of the metrics.');
      this.#isFailing = true;
    }
  }

  /** Records the last part of a minute, and stops; does nothing the second time. */
  async stop(): Promise<void> {
    if (this.#timer === undefined) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    await this.sample();
  }
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
