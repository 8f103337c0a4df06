import type { ClientIdentity } from '../values/network/networks.ts';
import type { ClientAddress } from '../values/network/peer.ts';

/** The unit of percentages: 100 % is a million. */
export const millionths = 1_000_000;

/**
 * The classes of devices (docs/design/rendering.md#conditions); a device may have several, such as
 * `mobile` and `ios`.
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

/** Whether a text is a class of devices. */
export function isDeviceClass(text: string): text is DeviceClass {
  return (deviceClasses as readonly string[]).includes(text);
}

/** A signed-in user, named by a trusted proxy or a verified token. */
export interface User {
  readonly name: string;
  readonly roles: readonly string[];
  /** The provider of `[login]` or `[login.<name>]`; absent for other ways to sign in. */
  readonly provider?: string;
}

/** The properties of a visitor that must be loaded asynchronously. */
export interface VisitorNeeds {
  readonly user: boolean;
  readonly location: boolean;
}

/** Only the signed-in user. */
export const needsUser: VisitorNeeds = { user: true, location: false };

/** Only the location. */
export const needsLocation: VisitorNeeds = { user: false, location: true };

/**
 * The client of a request: everything that an answer may depend on besides the URL. Each property
 * is computed when it is first used, and only once.
 */
export interface Visitor {
  /** The address of the client, also behind trusted proxies. */
  readonly address: ClientAddress;
  /** The time of the request, in milliseconds since 1970. */
  readonly nowMs: number;
  /** The preferred language tag in lower case; undefined if the request names none. */
  language(): string | undefined;
  /** The classes of its device; empty if they are unknown. */
  devices(): ReadonlySet<DeviceClass>;
  /**
   * A number below visitorSeeds that stays the same for a visitor, uniformly distributed. Buckets
   * for percentages derive from it.
   */
  seed(): number;
  /** Its bucket for a rule, in millionths: always the same, and independent of other rules. */
  bucket(ruleId: string): number;
  /**
   * Loads the needed properties; returns undefined if there is nothing to wait for. It never
   * rejects.
   */
  prepare(needs: VisitorNeeds): Promise<void> | undefined;
  /**
   * The user of conditions and words, after `prepare`: the signed-in one, or the one that a preview
   * names; undefined for an anonymous visitor.
   */
  user(): User | undefined;
  /**
   * The user who has signed in, after `prepare`, and may therefore access rows; undefined for an
   * anonymous visitor and in every preview.
   */
  signedInUser(): User | undefined;
  /** The location, after `prepare`. */
  location(): Location;
  /** The `[node] place` of the answering node, if it has one. */
  place(): string | undefined;
  /**
   * The certificate of the client, as its connection knows it at the moment; undefined for a
   * connection that was not asked for one.
   */
  certificate(): ClientIdentity | undefined;
  /** A header field of the request by its lower-case name. */
  field(name: string): string | undefined;
  /** The same visitor at another time, with other header fields, signed out, or as a user. */
  with(other: VisitorChange): Visitor;
}

/** The differences to another visitor. */
export interface VisitorChange {
  /** Milliseconds since 1970. */
  readonly nowMs?: number | undefined;
  /** Fields of the request by lower-case name. */
  readonly fields?: Readonly<Record<string, string | undefined>>;
  readonly isSignedOut?: boolean;
  /** Its user, in place of the one who has signed in; without a client certificate. */
  readonly user?: User | undefined;
}

/** The location of a visitor, as far as it is known. */
export interface Location {
  /** ISO 3166-1 alpha-2 code in upper case. */
  readonly country: string | undefined;
  /** Codes and names of the region, in the form of placeName. */
  readonly regions: readonly string[];
  /** Names of the city, in the form of placeName. */
  readonly cities: readonly string[];
  /** Whether the database has been asked or a proxy has said what it knows, if only nothing. */
  readonly isLookedUp?: boolean;
}

/** An unknown location. */
export const unknownLocation: Location = { country: undefined, regions: [], cities: [] };

/**
 * An ISO 3166-1 alpha-2 code, or a similar one such as `XK` or `T1`, in upper case; or undefined.
 */
export function countryCode(text: string): string | undefined {
  return /^[a-z][a-z0-9]$/i.test(text) ? text.toUpperCase() : undefined;
}

const placeNameCharactersMax = 128;

/** Normalizes the name or code of a region or city for comparison; undefined for an empty text. */
export function placeName(text: string): string | undefined {
  if (text.length > placeNameCharactersMax) return undefined;
  const name = text.trim().normalize('NFC').toLowerCase();
  return name === '' ? undefined : name;
}
