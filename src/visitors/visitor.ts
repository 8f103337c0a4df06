import { preferredLanguage } from '../http/negotiation.ts';
import { languageFieldCharactersMax, languagesRememberedMax, userNameCharactersMax, userRolesMax } from './limits.ts';
import { remembered } from '../model/remembered.ts';
import type { Config } from '../config/config.ts';
import type { Fields } from '../http/request.ts';
import { countryCode, placeName, unknownLocation, type Location } from '../model/location.ts';
import type { DeviceClass, User, Visitor, VisitorChange, VisitorNeeds } from '../model/visitor.ts';
import type { Log } from '../observability/log.ts';
import { createLocations, type Locations } from './geo-database.ts';
import { createDeviceReader, type DeviceReader } from './device.ts';
import { createTokenService } from './token-service.ts';
import { drawOf, lotOf } from './bucket.ts';
import type { Tokens } from './tokens.ts';

/** What is known of a visitor at once. */
interface Arrived {
  readonly address: string;
  readonly fields: Fields;
  /** What a trusted proxy says of the visitor. */
  readonly told: ProxyClaims;
}

/** Fields that only a trusted proxy may set, as they came; undefined for those that did not. */
export interface ProxyClaims {
  /** `[auth] user_header`. */
  readonly user: string | undefined;
  /** `[auth] roles_header`. */
  readonly roles: string | undefined;
  /** `[geo] country_header`. */
  readonly country: string | undefined;
  /** `[geo] region_header`. */
  readonly region: string | undefined;
  /** `[geo] city_header`. */
  readonly city: string | undefined;
}

/** The names in lower case of the fields that only a trusted proxy may set. */
export function identityFieldsOf({ auth, geo }: Pick<Config, 'auth' | 'geo'>): readonly string[] {
  const names = [
    ...[auth.userHeader, auth.rolesHeader],
    ...[geo.countryHeader, geo.regionHeader, geo.cityHeader],
  ];
  return names.filter((name) => name !== undefined);
}

/** Tells visitors by their requests. */
export interface Visitors {
  visitorOf(arrived: Arrived): Visitor;
  /** Where an address is, as far as `[geo] database` knows. */
  locationOf(address: string): Promise<Location>;
  close(): Promise<void>;
}

/** Makes what tells visitors under a configuration: `[auth]` and `[geo]`. */
export function createVisitors({
  config: { auth, geo, node },
  now,
  log,
}: {
  readonly config: Pick<Config, 'auth' | 'geo' | 'node'>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly log: Log;
}): Visitors {
  const tokens = createTokenService(auth, { now, log });
  const locations =
    geo.database === undefined ? undefined : createLocations({ file: geo.database, now, log });
  const parts = {
    ...{ now, tokens, locations, jwtCookie: auth.jwtCookie, place: node.place },
    devices: createDeviceReader(),
    languages: rememberLanguages(),
  };
  return {
    visitorOf: (arrived) => new Arrival(arrived, parts),
    async locationOf(address) {
      await locations?.prepare();
      return locations?.locationOf(address) ?? unknownLocation;
    },
    close: () => tokens?.close() ?? Promise.resolve(),
  };
}

interface Parts {
  readonly now: () => number;
  readonly devices: DeviceReader;
  readonly languages: LanguageReader;
  readonly tokens: Tokens | undefined;
  readonly jwtCookie: string;
  readonly locations: Locations | undefined;
  readonly place: string | undefined;
}

class Arrival implements Visitor {
  readonly address: string;
  readonly #arrived: Arrived;
  readonly #parts: Parts;
  #nowMs: number | undefined;
  #language: string | undefined | null = null;
  #devices: ReadonlySet<DeviceClass> | undefined;
  #location: Location | undefined;
  /** The user of its token, once that is verified. */
  #verified: { readonly user: User | undefined } | undefined;

  constructor(arrived: Arrived, parts: Parts, nowMs?: number) {
    this.address = arrived.address;
    this.#nowMs = nowMs;
    this.#arrived = arrived;
    this.#parts = parts;
  }

  get nowMs(): number {
    this.#nowMs ??= this.#parts.now();
    return this.#nowMs;
  }

  language(): string | undefined {
    if (this.#language === null) {
      this.#language = this.#parts.languages(this.#arrived.fields['accept-language']);
    }
    return this.#language;
  }

  devices(): ReadonlySet<DeviceClass> {
    this.#devices ??= this.#parts.devices(this.#arrived.fields);
    return this.#devices;
  }

  lot(): number {
    return lotOf(this.#arrived.fields, this.address);
  }

  draw(ruleId: string): number {
    return drawOf(this.lot(), ruleId);
  }

  prepare({ user, location }: VisitorNeeds): Promise<void> | undefined {
    const verification = user ? this.#verify() : undefined;
    const reading = location ? this.#parts.locations?.prepare() : undefined;
    if (verification === undefined) return reading;
    return reading === undefined ? verification : verification.then(() => reading);
  }

  user(): User | undefined {
    const name = this.#toldUser();
    if (name === undefined) return this.#verified?.user;
    return { name, roles: listedRoles(this.#arrived.told.roles) };
  }

  /** What a trusted proxy says goes before what the database has. */
  location(): Location {
    if (this.#location === undefined) {
      const found = this.#parts.locations?.locationOf(this.address) ?? unknownLocation;
      const { country, region, city } = this.#arrived.told;
      const code = countryCode(country ?? '');
      this.#location = {
        // XX is what proxies write for a country that they do not know.
        country: code === undefined || code === 'XX' ? found.country : code,
        regions: toldName(region) ?? found.regions,
        cities: toldName(city) ?? found.cities,
      };
    }
    return this.#location;
  }

  place(): string | undefined {
    return this.#parts.place;
  }

  field(name: string): string | undefined {
    return this.#arrived.fields[name];
  }

  #toldUser(): string | undefined {
    const { user = '' } = this.#arrived.told;
    return user === '' || user.length > userNameCharactersMax ? undefined : user;
  }

  with({ nowMs = this.#nowMs, fields }: VisitorChange): Visitor {
    const arrived = this.#arrived;
    if (fields === undefined) return new Arrival(arrived, this.#parts, nowMs);
    const both = Object.create(null) as Record<string, string | undefined>;
    Object.assign(both, arrived.fields, fields);
    return new Arrival({ ...arrived, fields: both }, this.#parts, nowMs);
  }

  #verify(): Promise<void> | undefined {
    const { tokens, jwtCookie } = this.#parts;
    const isKnown = this.#verified !== undefined || this.#toldUser() !== undefined;
    if (tokens === undefined || isKnown) return undefined;
    const token = tokenIn(this.#arrived.fields, jwtCookie);
    const user = token === undefined ? undefined : tokens.userOf(token);
    if (!(user instanceof Promise)) {
      this.#verified = { user };
      return undefined;
    }
    return user.then((found) => {
      this.#verified = { user: found };
    });
  }
}

/** A name that a proxy tells, which may be UTF-8 in a field that is read as latin1. */
function toldName(written: string | undefined): readonly string[] | undefined {
  if (written === undefined) return undefined;
  const utf8 = Buffer.from(written, 'latin1').toString('utf8');
  const name = placeName(utf8.includes('\ufffd') ? written : utf8);
  return name === undefined ? undefined : [name];
}

/** A bearer token (RFC 6750 §2.1), or else one in a cookie; undefined for none. */
export function tokenIn({ authorization, cookie }: Fields, cookieName: string): string | undefined {
  const bearer = authorization === undefined ? null : /^bearer +(\S+)$/i.exec(authorization);
  return bearer?.[1] ?? cookieValue(cookie, cookieName);
}

/** The first cookie of a name (RFC 6265 §4.2.1), without the quotes that may be around it. */
function cookieValue(cookies: string | undefined, name: string): string | undefined {
  for (const pair of cookies?.split(';') ?? []) {
    const equals = pair.indexOf('=');
    if (equals === -1 || pair.slice(0, equals).trim() !== name) continue;
    return pair
      .slice(equals + 1)
      .trim()
      .replace(/^"(.*)"$/, '$1');
  }
  return undefined;
}

/** Roles as a proxy lists them, with commas between them. */
export function listedRoles(roles: string | undefined): readonly string[] {
  if (roles === undefined) return [];
  const names = roles.split(',').map((role) => role.trim());
  return names.filter((role) => role !== '').slice(0, userRolesMax);
}

/** Tells which language an Accept-Language field likes best. */
export type LanguageReader = typeof preferredLanguage;

/** Makes a reader that does not find out again what most browsers send. */
export function rememberLanguages(): LanguageReader {
  const known = remembered<{ readonly language: string | undefined }>(languagesRememberedMax);
  return (field) => {
    if (field === undefined || field.length > languageFieldCharactersMax) {
      return preferredLanguage(field);
    }
    let entry = known.get(field);
    if (entry === undefined) {
      entry = { language: preferredLanguage(field) };
      known.set(field, entry);
    }
    return entry.language;
  };
}
