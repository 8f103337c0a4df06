import { visitNamesMax } from '../limits.ts';

/** The name under which names above the limit are counted together. */
const otherNames = '(other)';

/** The kinds of names by which visits are counted. */
export const visitDimensions = ['branches', 'countries', 'devices', 'hosts'] as const;

/** One of them. */
type VisitDimension = (typeof visitDimensions)[number];

/** The visits of one breadcrumb on one day: numbers that can be added. */
export interface VisitCounts extends Readonly<Record<VisitDimension, Map<string, number>>> {
  /** Without those of robots; each is in every dimension once. */
  visits: number;
  robots: number;
}

/** Counts of nothing. */
export function noVisits(): VisitCounts {
  return {
    visits: 0,
    robots: 0,
    branches: new Map(),
    countries: new Map(),
    devices: new Map(),
    hosts: new Map(),
  };
}

/** Adds to the count of a name; a new name above the limit is counted as `(other)`. */
export function addName(names: Map<string, number>, name: string, visits: number): void {
  const before = names.get(name);
  if (before !== undefined) names.set(name, before + visits);
  else if (names.size < visitNamesMax) names.set(name, visits);
  else names.set(otherNames, (names.get(otherNames) ?? 0) + visits);
}

/**
 * Adds counts to others. Of more names than the limit, the most frequent ones keep their counts, so
 * that made-up referring hosts do not displace real ones.
 */
export function addCounts(to: VisitCounts, more: VisitCounts): void {
  to.visits += more.visits;
  to.robots += more.robots;
  for (const dimension of visitDimensions) addNames(to[dimension], more[dimension]);
}

function addNames(to: Map<string, number>, more: ReadonlyMap<string, number>): void {
  for (const [name, visits] of more) to.set(name, (to.get(name) ?? 0) + visits);
  if (to.size <= visitNamesMax) return;
  const other = to.get(otherNames) ?? 0;
  to.delete(otherNames);
  const byVisits = [...to].toSorted(([, one], [, another]) => another - one);
  let rest = other;
  for (const [name, visits] of byVisits.slice(visitNamesMax)) {
    to.delete(name);
    rest += visits;
  }
  if (rest > 0) to.set(otherNames, rest);
}

/** The JSON text of counts. */
export function countsText(counts: VisitCounts): string {
  const names = visitDimensions.map((dimension) => [...counts[dimension]]);
  return JSON.stringify([counts.visits, counts.robots, ...names]);
}

/** The counts in a text of countsText. */
export function parseCounts(text: string): VisitCounts {
  const [visits, robots, branches, countries, devices, hosts] = JSON.parse(text) as [
    number,
    number,
    ...[string, number][][],
  ];
  return {
    visits,
    robots,
    branches: new Map(branches),
    countries: new Map(countries),
    devices: new Map(devices),
    hosts: new Map(hosts),
  };
}
