import { Reader, type Response } from 'mmdb-lib';
import { countryCode } from '../model/condition.ts';
import { isJsonObject } from '../model/json.ts';
import { countriesRemembered, geoDatabaseBytesMax } from '../model/limits.ts';
import { remembered } from '../model/remembered.ts';
import type { Log } from '../observability/log.ts';
import { LoadedFile } from './loaded-file.ts';

/** Tells where addresses are. */
export interface Countries {
  /** Has to be done before a country is asked for; undefined where nothing is to be waited for. */
  prepare(): Promise<void> | undefined;
  /** ISO 3166-1 code of the country of an address; undefined where nobody knows it. */
  countryOf(address: string): string | undefined;
}

/**
 * Makes a look-up in a database of MaxMind's format (MMDB 2.0), which is read when the first
 * country is asked for, and again when its file changes.
 */
export function createCountries({
  file,
  now,
  log,
}: {
  readonly file: string;
  readonly now: () => number;
  readonly log: Log;
}): Countries {
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
    countryOf: (address) => database.value?.(address),
  };
}

/** Makes the look-up of a database; throws for what is none. */
function readDatabase(bytes: Buffer): (address: string) => string | undefined {
  const reader = new Reader<Response>(bytes);
  const known = remembered<{ readonly country: string | undefined }>(countriesRemembered);
  // A database of IPv4 alone would find something for others too.
  const isCovered = (address: string): boolean =>
    address !== '' && (reader.metadata.ipVersion !== 4 || !address.includes(':'));
  // A file that was cut off, or is of another format, shows it when something is looked up.
  reader.get('192.0.2.1');
  return (address) => {
    if (!isCovered(address)) return undefined;
    let entry = known.get(address);
    if (entry === undefined) {
      entry = { country: lookUp(reader, address) };
      known.set(address, entry);
    }
    return entry.country;
  };
}

function lookUp(reader: Reader<Response>, address: string): string | undefined {
  try {
    return codeIn(reader.get(address));
  } catch {
    // An address that is none, or a damaged record.
    return undefined;
  }
}

/** The country that a record names, in the ways in which the databases that can be had do. */
function codeIn(record: unknown): string | undefined {
  if (!isJsonObject(record)) return undefined;
  const { country, country_code: code, registered_country: registered } = record;
  const places = [
    isJsonObject(country) ? country.iso_code : country,
    code,
    isJsonObject(registered) ? registered.iso_code : undefined,
  ];
  return places
    .map((place) => (typeof place === 'string' ? countryCode(place) : undefined))
    .find((one) => one !== undefined);
}
