import { Reader, type Response } from 'mmdb-lib';
import { LoadedFile } from '../../core/config/loaded-file.ts';
import { type Location, countryCode, placeName, unknownLocation } from '../../core/http/visitor.ts';
import type { Log } from '../../core/report/log.ts';
import { type JsonObject, isJsonObject } from '../../core/values/json/json.ts';
import { createLruCache } from '../../core/values/lru-cache.ts';
import { MIB } from '../../core/values/units.ts';

/** The largest geo database, and the most addresses with a location in memory. */
const geoDatabaseBytesMax = 512 * MIB;
const locationsRememberedMax = 4_096;

/** Looks up the location of addresses. */
export interface GeoDatabase {
  /** To be awaited before locationOf; undefined if the database is ready. */
  prepare(): Promise<void> | undefined;
  /** The location of an address, as far as the database knows it. */
  locationOf(address: string): Location;
}

/** Opens a database in MaxMind's format (MMDB 2.0); reads it on first use and after a change. */
export function openGeoDatabase({
  file,
  now,
  log,
}: {
  readonly file: string;
  readonly now: () => number;
  readonly log: Log;
}): GeoDatabase {
  const database = new LoadedFile({
    file,
    bytesMax: geoDatabaseBytesMax,
    read: readDatabase,
    now,
    failed: (error) => {
      log.warn(
        { err: error },
        'Cannot read [geo] database. The server keeps its previous content.',
      );
    },
  });
  return {
    prepare: () => database.prepare(),
    locationOf: (address) => database.value?.(address) ?? unknownLocation,
  };
}

/** Parses a database into a function that looks up addresses; throws for an invalid one. */
function readDatabase(bytes: Buffer): (address: string) => Location {
  const reader = new Reader<Response>(bytes);
  const known = createLruCache<Location>(locationsRememberedMax);
  // An IPv4 database would also return a record for an IPv6 address.
  const isCovered = (address: string): boolean =>
    reader.metadata.ipVersion !== 4 || !address.includes(':');
  // A truncated file, or one in another format, only fails when an address is looked up.
  reader.get('192.0.2.1');
  return (address) => {
    if (!isCovered(address)) return unknownLocation;
    let location = known.get(address);
    if (location === undefined) {
      location = lookUp(reader, address);
      known.set(address, location);
    }
    return location;
  };
}

function lookUp(reader: Reader<Response>, address: string): Location {
  try {
    return { ...locationIn(reader.get(address)), isLookedUp: true };
  } catch {
    // An invalid address, or a damaged record.
    return unknownLocation;
  }
}

/** The location in a record, in the formats of the common providers. */
function locationIn(record: unknown): Location {
  if (!isJsonObject(record)) return unknownLocation;
  const country = countryIn(record);
  const { subdivisions, region, state1, city } = record;
  const parts = Array.isArray(subdivisions) ? (subdivisions as readonly unknown[]) : [];
  const regions = [...parts, region, state1].flatMap(namesIn);
  const codes =
    country === undefined ? [] : regions.map((name) => `${country.toLowerCase()}-${name}`);
  return {
    country,
    regions: [...new Set([...regions, ...codes])],
    cities: [...new Set(namesIn(city))],
  };
}

/** The code and names of a place: `{iso_code, names: {en, …}}` in MaxMind's format, or a text. */
function namesIn(place: unknown): readonly string[] {
  const texts = isJsonObject(place)
    ? [place.iso_code, ...(isJsonObject(place.names) ? Object.values(place.names) : [])]
    : [place];
  return texts
    .map((text) => (typeof text === 'string' ? placeName(text) : undefined))
    .filter((name) => name !== undefined);
}

function countryIn({
  country,
  country_code: code,
  registered_country: registered,
}: JsonObject): string | undefined {
  const places = [
    isJsonObject(country) ? country.iso_code : country,
    code,
    isJsonObject(registered) ? registered.iso_code : undefined,
  ];
  return places
    .map((place) => (typeof place === 'string' ? countryCode(place) : undefined))
    .find((one) => one !== undefined);
}
