/** The name under which names above the limit are counted together. */
const otherNames = '(other)';

/** What the visits of a breadcrumb are counted by. */
export const breadcrumbDimensions = ['branches', 'countries', 'devices', 'hosts'] as const;

/** What the visits of a page are counted by. */
export const pageDimensions = ['sources', 'countries', 'languages', 'devices', 'hosts'] as const;

/**
 * What the requests of a whole server are counted by: its visits as those of a page and by origin,
 * then all answers by status class, by source, those that failed or were slow by source, and the
 * refused ones by source, status and reason.
 */
export const siteDimensions = [
  ...pageDimensions,
  ...(['origins', 'statuses', 'answers', 'failed', 'slow', 'refused'] as const),
] as const;

/** See breadcrumbDimensions. */
export type BreadcrumbDimension = (typeof breadcrumbDimensions)[number];
/** See pageDimensions. */
export type PageDimension = (typeof pageDimensions)[number];
/** See siteDimensions. */
export type SiteDimension = (typeof siteDimensions)[number];

/** The kinds of names by which visits are counted, and how many names of each. */
export interface CountShape<D extends string> {
  readonly dimensions: readonly D[];
  readonly namesMax: number;
}

/** The visits of one day: numbers that can be added, and those of each name of a dimension. */
export type VisitCounts<D extends string> = Readonly<Record<D, Map<string, number>>> & {
  /** Without those of robots. */
  visits: number;
  robots: number;
};

/** Counts of nothing. */
export function noVisits<D extends string>({
  dimensions,
}: Pick<CountShape<D>, 'dimensions'>): VisitCounts<D> {
  return countsOf(dimensions, [0, 0], () => new Map());
}

/** Adds to the count of a name; a new name above the limit is counted as `(other)`. */
export function addName(
  names: Map<string, number>,
  name: string,
  { namesMax }: Pick<CountShape<string>, 'namesMax'>,
  visits = 1,
): void {
  const before = names.get(name);
  if (before !== undefined) names.set(name, before + visits);
  else if (names.size < namesMax) names.set(name, visits);
  else names.set(otherNames, (names.get(otherNames) ?? 0) + visits);
}

/**
 * Adds counts to others. Of more names than the limit, the most frequent ones keep their counts, so
 * that made-up referring hosts do not displace real ones.
 */
export function addCounts<D extends string>(
  to: VisitCounts<D>,
  more: VisitCounts<D>,
  { dimensions, namesMax }: CountShape<D>,
): void {
  to.visits += more.visits;
  to.robots += more.robots;
  for (const dimension of dimensions) addNames(to[dimension], more[dimension], namesMax);
}

/** Adds names to others, as addCounts. */
export function addNames(
  to: Map<string, number>,
  more: ReadonlyMap<string, number>,
  namesMax: number,
): void {
  for (const [name, visits] of more) to.set(name, (to.get(name) ?? 0) + visits);
  if (to.size <= namesMax) return;
  const other = to.get(otherNames) ?? 0;
  to.delete(otherNames);
  const byVisits = [...to].toSorted(([, one], [, another]) => another - one);
  let rest = other;
  for (const [name, visits] of byVisits.slice(namesMax)) {
    to.delete(name);
    rest += visits;
  }
  if (rest > 0) to.set(otherNames, rest);
}

/** The JSON text of counts. */
export function countsText<D extends string>(
  counts: VisitCounts<D>,
  { dimensions }: Pick<CountShape<D>, 'dimensions'>,
): string {
  const names = dimensions.map((dimension) => [...counts[dimension]]);
  return JSON.stringify([counts.visits, counts.robots, ...names]);
}

/** The counts in a text of countsText. */
export function parseCounts<D extends string>(
  text: string,
  { dimensions }: Pick<CountShape<D>, 'dimensions'>,
): VisitCounts<D> {
  const [visits, robots, ...names] = JSON.parse(text) as [
    number,
    number,
    ...(readonly (readonly [string, number])[])[],
  ];
  return countsOf(dimensions, [visits, robots], (at) => new Map(names[at]));
}

function countsOf<D extends string>(
  dimensions: readonly D[],
  [visits, robots]: readonly [number, number],
  namesAt: (at: number) => Map<string, number>,
): VisitCounts<D> {
  const names = dimensions.map((dimension, at) => [dimension, namesAt(at)] as const);
  return { visits, robots, ...Object.fromEntries(names) } as VisitCounts<D>;
}
