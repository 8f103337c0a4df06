import { Reader, type Response } from 'mmdb-lib';
import { isJsonObject, type JsonObject } from '../model/json.ts';
import { countryCode, placeName, unknownLocation, type Location } from '../model/location.ts';
import { locationsRememberedMax, geoDatabaseBytesMax } from './limits.ts';
import { remembered } from '../model/remembered.ts';
import type { Log } from '../observability/log.ts';
import { LoadedFile } from './loaded-file.ts';

/** Tells where addresses are. */
export interface Locations {
  /** Has to be done before a location is looked up; undefined where nothing is to be waited for. */
  prepare(): Promise<void> | undefined;
  /** Where an address is, as far as the database knows. */
  locationOf(address: string): Location;
}

/**
 * Makes a look-up in a database of MaxMind's format (MMDB 2.0), which is read when the first
 * location is looked up, and again when its file changes.
 */
export function createLocations({
  file,
  now,
  log,
}: {
  readonly file: string;
  readonly now: () => number;
  readonly log: Log;
}): Locations {
  const database = new LoadedFile({
    file,
    bytesMax: geoDatabaseBytesMax,
    read: readDatabase,
    now,
    failed: (error) => {
      log.warn({ err: error }, '[geo] database cannot be used; what it said before still holds.');
    },
  });
  return {
    prepare: () => database.prepare(),
    locationOf: (address) => database.value?.(address) ?? unknownLocation,
  };
}

/** Makes the look-up of a database; throws for what is none. */
function readDatabase(bytes: Buffer): (address: string) => Location {
  const reader = new Reader<Response>(bytes);
  const known = remembered<Location>(locationsRememberedMax);
  // A database of IPv4 alone would find something for others too.
  const isCovered = (address: string): boolean =>
    address !== '' && (reader.metadata.ipVersion !== 4 || !address.includes(':'));
  // A file that was cut off, or is of another format, shows it when something is looked up.
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
    return locationIn(reader.get(address));
  } catch {
    // An address that is none, or a damaged record.
    return unknownLocation;
  }
}

/** What a record says, in the ways in which the databases that can be had do. */
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

/** Code and names of a place: `{iso_code, names: {en, …}}` as MaxMind has it, or a text. */
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
