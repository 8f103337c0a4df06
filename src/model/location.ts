/** Where a visitor is, as far as anything tells. */
export interface Location {
  /** ISO 3166-1 alpha-2 code in upper case. */
  readonly country: string | undefined;
  /** Codes and names of the region, as placeName makes them comparable. */
  readonly regions: readonly string[];
  /** Names of the city, likewise. */
  readonly cities: readonly string[];
}

/** The location of which nothing is known. */
export const unknownLocation: Location = { country: undefined, regions: [], cities: [] };

/** An ISO 3166-1 alpha-2 code in upper case, or one of its like: `XK`, `T1`; else undefined. */
export function countryCode(text: string): string | undefined {
  return /^[a-z][a-z0-9]$/i.test(text) ? text.toUpperCase() : undefined;
}

const placeNameCharactersMax = 128;

/** The name or code of a region or city so that it can be compared; undefined for an empty text. */
export function placeName(text: string): string | undefined {
  if (text.length > placeNameCharactersMax) return undefined;
  const name = text.trim().normalize('NFC').toLowerCase();
  return name === '' ? undefined : name;
}
