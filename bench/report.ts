import { ratioOf, spreadOf, type Spread } from './figures.ts';
import type { Memory, Row, Sample } from './measure.ts';
import type { Scenario } from './scenarios.ts';

/** The server that the others are compared with. */
const ours = 'Waymark';
const busyEnough = 0.9;
const quietEnough = 0.05;
const widths = [12, 25, 26, 11, 10, 10, 7, 8] as const;

/** The results of one scenario, as in the JSON file. */
export interface ScenarioReport {
  readonly id: string;
  readonly title: string;
  readonly servers: readonly (Row & { readonly summary: Readonly<Record<SummaryName, Spread>> })[];
  /** CPU time a request of Waymark, divided by that of each other server, round by round. */
  readonly cpuRatios: Readonly<Record<string, Spread>>;
}

type SummaryName =
  | 'requestsPerSecond'
  | 'cpuUsPerRequest'
  | 'clientUsPerRequest'
  | 'p50Us'
  | 'p99Us'
  | 'busy'
  | 'others';

/** Medians, spreads and ratios of a scenario's samples. */
export function summarise({ id, title }: Scenario, rows: readonly Row[]): ScenarioReport {
  const mine = rows.find(({ name }) => name === ours);
  const peers = rows.filter(({ name }) => name !== ours);
  return {
    id,
    title,
    servers: rows.map((row) => ({ ...row, summary: summaryOf(row.samples) })),
    cpuRatios: Object.fromEntries(
      mine === undefined ? [] : peers.map((row) => [row.name, ratioOf(cpuOf(mine), cpuOf(row))]),
    ),
  };
}

function cpuOf({ samples }: Row): readonly number[] {
  return samples.map(({ cpuUsPerRequest }) => cpuUsPerRequest);
}

function summaryOf(samples: readonly Sample[]): Readonly<Record<SummaryName, Spread>> {
  const of = (name: SummaryName): Spread => spreadOf(samples.map((sample) => sample[name] ?? NaN));
  return {
    requestsPerSecond: of('requestsPerSecond'),
    cpuUsPerRequest: of('cpuUsPerRequest'),
    clientUsPerRequest: of('clientUsPerRequest'),
    p50Us: of('p50Us'),
    p99Us: of('p99Us'),
    busy: of('busy'),
    others: of('others'),
  };
}

/** The line above all tables. */
export function headingText(): string {
  return line([
    '',
    'requests/s (min–max)',
    'CPU µs/request',
    'client µs',
    'p50 ms',
    'p99 ms',
    'busy',
    'others',
  ]);
}

/** One scenario as a table, with its ratios and warnings about doubtful figures. */
export function scenarioText({ title, servers, cpuRatios }: ScenarioReport): string {
  const rows = servers.map(({ name, summary }) =>
    line([
      `  ${name}`,
      spreadText(summary.requestsPerSecond, 0),
      spreadText(summary.cpuUsPerRequest, 1),
      summary.clientUsPerRequest.median.toFixed(1),
      (summary.p50Us.median / 1000).toFixed(2),
      (summary.p99Us.median / 1000).toFixed(2),
      percentText(summary.busy.median),
      percentText(summary.others.median),
    ]),
  );
  const ratios = Object.entries(cpuRatios).map(
    ([name, ratio]) => `${ours}/${name} ${spreadText(ratio, 2)}`,
  );
  return [
    title,
    ...rows,
    ...(ratios.length > 0 ? [`  CPU ratio   ${ratios.join('    ')}`] : []),
    ...servers.flatMap(memoryText),
    ...servers.flatMap(doubts),
  ].join('\n');
}

/** The text of two rows of one scenario, and the ratio of the first to the second. */
export function pairText({ title }: Scenario, [ours, theirs]: readonly Row[]): string {
  if (ours === undefined || theirs === undefined) throw new Error(`${title}: not two rows`);
  const lines = [ours, theirs].map(
    (row) => `  ${row.name.padEnd(20)}${spreadText(spreadOf(cpuOf(row)), 1)}`,
  );
  const ratio = spreadText(ratioOf(cpuOf(ours), cpuOf(theirs)), 2);
  const heading = `${title}: CPU µs a request, median (min–max)`;
  return [heading, ...lines, `  ${'ratio'.padEnd(20)}${ratio}`].join('\n');
}

/** Resident memory if it was measured: the medians of the rounds, and the largest peak. */
function memoryText({ name, samples }: ScenarioReport['servers'][number]): readonly string[] {
  const watched = samples.flatMap(({ memory }) => memory ?? []);
  if (watched.length === 0) return [];
  const median = (of: keyof Memory): string =>
    mebibytes(spreadOf(watched.map((memory) => memory[of])).median);
  const peak = mebibytes(Math.max(...watched.map((memory) => memory.peak)));
  return [
    `  ${name}: MiB resident before ${median('before')}, after ${median('after')}, peak ${peak}`,
  ];
}

function mebibytes(bytes: number): string {
  return (bytes / 1024 / 1024).toFixed(0);
}

/** A spread as `median (min–max)`. */
export function spreadText({ median, min, max }: Spread, digits: number): string {
  return `${median.toFixed(digits)} (${min.toFixed(digits)}–${max.toFixed(digits)})`;
}

function percentText(share: number): string {
  return Number.isNaN(share) ? '-' : `${Math.round(share * 100)} %`;
}

function doubts({ name, samples, summary }: ScenarioReport['servers'][number]): readonly string[] {
  const broken = samples.reduce((sum, sample) => sum + sample.broken, 0);
  const generator = Math.max(...samples.map(({ generatorBusy }) => generatorBusy));
  const { busy, others } = summary;
  return [
    ...(broken > 0 ? [`  ! ${name}: ${broken} connections failed or timed out`] : []),
    ...(others.median > quietEnough
      ? [`  ! ${name} shared its core: CPU time too high, requests/s too low, measure again`]
      : []),
    ...(busy.median + (others.median || 0) < busyEnough
      ? [
          `  ! ${name} was not kept busy` +
            (generator > busyEnough ? ', the load generator was the bottleneck' : '') +
            ': read its CPU time, not its requests/s',
        ]
      : []),
  ];
}

function line(cells: readonly string[]): string {
  return cells
    .map((cell, at) => (at === 0 ? cell.padEnd(widths[0]) : cell.padStart(widths[at] ?? 0)))
    .join('');
}
