import { allOf, lastOf, type Directive } from '../directive.ts';
import { addRate } from '../sections.ts';
import { isOutside, placesIn, type NginxLocation } from './access.ts';
import { effective, type NginxSite } from './site.ts';
import { nearest } from './words.ts';

/** Directives about how often clients may ask, which this file converts. */
export const rateDirectives: readonly string[] = [
  ...['limit_req', 'limit_req_zone', 'limit_req_status', 'limit_req_log_level'],
];

/** A `limit_req_zone`. */
interface Zone {
  readonly by: string;
  readonly rate: string;
}

/**
 * Converts `limit_req` of a server and its locations to `[rate.<name>]` sections. Of the blocks of
 * nginx the innermost one counts, and in Waymark all sections that match: so a section leaves out
 * the paths of the locations that have rates of their own.
 */
export function convertRates(site: NginxSite, block: readonly Directive[]): void {
  const places = placesIn(allOf(block, 'location'), [block, ...site.outer]);
  const own = places.filter((one) => hasRates(one.block));
  const outer = [block, ...site.outer].find(hasRates);
  if (outer !== undefined) {
    const except = own.flatMap(({ paths = [] }) => paths);
    limit(site, { paths: ['/*'], except }, { block: outer, outer: site.outer });
  }
  for (const place of own) {
    const inner = own.filter((one) => isOutside(one, place, hasRates));
    const except = inner.flatMap(({ paths = [] }) => paths);
    limit(site, { paths: place.paths, except }, place);
  }
}

function hasRates(block: readonly Directive[]): boolean {
  return lastOf(block, 'limit_req') !== undefined;
}

function limit(
  site: NginxSite,
  { paths, except }: { readonly paths: NginxLocation['paths']; readonly except: readonly string[] },
  { block, outer }: Pick<NginxLocation, 'block' | 'outer'>,
): void {
  const { conversion } = site;
  for (const directive of allOf(block, 'limit_req')) {
    const words = new Map(
      directive.words.map((word) => [word.split('=')[0] ?? '', word.split('=')[1] ?? '']),
    );
    const zone = zoneOf(words.get('zone') ?? '', [block, ...outer]);
    if (zone === undefined || paths === undefined) {
      conversion.leave(directive, nearest.limit_req ?? '');
      continue;
    }
    const more = words.get('burst');
    if (more !== undefined && !words.has('nodelay')) {
      conversion.note(directive, 'Waymark answers requests of the burst at once, without a delay');
    }
    // nginx lets one request pass, and the burst besides.
    const burst = String(Number(more ?? 0) + 1);
    const status = effective({ outer }, block, 'limit_req_status')?.words[0] ?? '503';
    addRate(site, { paths, except, ...zone, burst, status }, directive);
  }
}

/** The zone that has a name; undefined for one whose key or rate cannot be expressed. */
function zoneOf(name: string, blocks: readonly (readonly Directive[])[]): Zone | undefined {
  const zones = blocks.flatMap((one) => allOf(one, 'limit_req_zone'));
  const words = zones.find((one) =>
    one.words.some((word) => word.startsWith(`zone=${name}:`)),
  )?.words;
  const [key = '', ...others] = words ?? [];
  const [, count, unit] = /^rate=(\d+)r\/([sm])$/.exec(others.at(-1) ?? '') ?? [];
  const field = /^\$http_(\w+)$/.exec(key)?.[1]?.replaceAll('_', '-');
  const isAddress = key === '$binary_remote_addr' || key === '$remote_addr';
  const by = isAddress ? 'address' : field === undefined ? undefined : `field:${field}`;
  if (by === undefined || count === undefined || unit === undefined) return undefined;
  return { by, rate: `${count}/${unit}` };
}
