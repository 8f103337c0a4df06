/** What a percentage is counted in. */
export const millionths = 1_000_000;

/**
 * What a device can be told to be (docs/design/rendering.md#generic-pages); a telephone is `mobile`
 * and, say, `ios`.
 */
export const deviceClasses = [
  'mobile',
  'tablet',
  'desktop',
  'bot',
  'ios',
  'android',
  'windows',
  'macos',
  'linux',
] as const;

/** One of the classes. */
export type DeviceClass = (typeof deviceClasses)[number];

/** Whether a text names a class of devices. */
export function isDeviceClass(text: string): text is DeviceClass {
  return (deviceClasses as readonly string[]).includes(text);
}

/** A signed-in user, as a trusted proxy or a verified token names it. */
export interface User {
  readonly name: string;
  readonly roles: readonly string[];
}

/** What of a visitor has to be found out somewhere else before it can be told. */
export interface VisitorNeeds {
  readonly user: boolean;
  readonly location: boolean;
}

/** The signed-in user alone. */
export const needsUser: VisitorNeeds = { user: true, location: false };

/**
 * Who asks for something: whatever an answer may depend on besides the URL. Nothing is found out
 * before somebody asks for it, and nothing twice.
 */
export interface Visitor {
  /** Address as believed; empty where nobody knows it. */
  readonly address: string;
  /** When it asks, in milliseconds since 1970. */
  readonly nowMs: number;
  /** The language tag that it likes best, lower case; undefined where it names none. */
  language(): string | undefined;
  /** What its device is; empty where nothing tells. */
  devices(): ReadonlySet<DeviceClass>;
  /**
   * A number below visitorSeeds that stays the same for a visitor; all are equally likely. The
   * buckets for percentages are made of it.
   */
  seed(): number;
  /** Its bucket at a rule, in millionths: the same each time, and independent of other rules. */
  bucket(ruleId: string): number;
  /**
   * Finds out what is needed of the following; undefined where nothing has to be waited for. Never
   * rejects.
   */
  prepare(needs: VisitorNeeds): Promise<void> | undefined;
  /** The signed-in user, once that is prepared; undefined for nobody. */
  user(): User | undefined;
  /** Where it is, once that is prepared. */
  location(): Location;
  /** The `[node] place` that answers it; undefined for a node without one. */
  place(): string | undefined;
  /** A field of its request by lower-case name. */
  field(name: string): string | undefined;
  /** The same visitor, had it come at another time or with some other fields in its request. */
  with(other: VisitorChange): Visitor;
}

/** In what a visitor differs from another one. */
export interface VisitorChange {
  /** Milliseconds since 1970. */
  readonly nowMs?: number | undefined;
  /** Fields of the request by lower-case name. */
  readonly fields?: Readonly<Record<string, string | undefined>>;
}

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
