import type { VisitorRequest } from '../../core/pipeline/incoming-request.ts';
import type { Config } from '../../core/config/config.ts';
import { preferredLanguage } from '../../core/http/representation/negotiation.ts';
import type { Fields } from '../../core/http/request.ts';
import {
  type DeviceClass,
  type Location,
  type User,
  type Visitor,
  type VisitorChange,
  type VisitorNeeds,
  countryCode,
  placeName,
  unknownLocation,
} from '../../core/http/visitor.ts';
import type { Log } from '../../core/report/log.ts';
import { createLruCache } from '../../core/values/lru-cache.ts';
import type { ClientIdentity } from '../../core/values/network/networks.ts';
import type { ClientAddress } from '../../core/values/network/peer.ts';
import { bucketOf, seedOf } from './bucket.ts';
import { type DeviceDetector, createDeviceDetector } from './device.ts';
import { type GeoDatabase, openGeoDatabase } from './geo-database.ts';
import {
  languageFieldCharactersMax,
  languagesRememberedMax,
  userNameCharactersMax,
  userRolesMax,
} from './limits.ts';
import { type TokenVerifier, createTokenService } from './tokens.ts';

/** Describes visitors by their requests. */
export interface Visitors {
  visitorOf(arrived: VisitorRequest): Visitor;
  /**
   * The country of an address, or the one that a trusted proxy claims (ISO 3166-1); undefined if it
   * is not known, or not yet. It takes no time.
   */
  countryOf(address: string, claimed: string | undefined): string | undefined;
  /** The location of an address, as far as `[geo] database` knows it. */
  locationOf(address: string): Promise<Location>;
  close(): Promise<void>;
}

/** Creates the description of visitors that `[auth]` and `[geo]` configure. */
export function createVisitors({
  config: { auth, geo, node },
  loginUser,
  now,
  log,
  via,
}: {
  /** As for a dialler. */
  readonly via?: string;
  /** The user who has signed in by `[login]`, of the cookies of a request. */
  readonly loginUser?: LoginUser | undefined;
  readonly config: Pick<Config, 'auth' | 'geo' | 'node'>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly log: Log;
}): Visitors {
  const tokens = createTokenService(auth, { now, log, via });
  const locations =
    geo.database === undefined ? undefined : openGeoDatabase({ file: geo.database, now, log });
  const parts = {
    ...{ now, tokens, locations, loginUser },
    ...{ jwtCookie: auth.jwtCookie, place: node.place },
    devices: createDeviceDetector(),
    languages: createLanguageReader(),
  };
  return {
    visitorOf: (arrived) => new RequestVisitor(arrived, parts),
    countryOf(address, claimed) {
      const code = claimed === undefined ? undefined : countryCode(claimed);
      if (code !== undefined && code !== 'XX') return code;
      if (locations === undefined) return undefined;
      // Nobody waits until the database is read, or read again.
      void locations.prepare();
      return locations.locationOf(address).country;
    },
    async locationOf(address) {
      await locations?.prepare();
      return locations?.locationOf(address) ?? unknownLocation;
    },
    close: () => tokens?.close() ?? Promise.resolve(),
  };
}

/** The user of the cookies of a request to an origin; undefined without a session. */
type LoginUser = (cookie: string | undefined, origin: string) => User | undefined;

interface VisitorParts {
  readonly loginUser: LoginUser | undefined;
  readonly now: () => number;
  readonly devices: DeviceDetector;
  readonly languages: LanguageReader;
  readonly tokens: TokenVerifier | undefined;
  readonly jwtCookie: string;
  readonly locations: GeoDatabase | undefined;
  readonly place: string | undefined;
}

class RequestVisitor implements Visitor {
  readonly address: ClientAddress;
  readonly #arrived: VisitorRequest;
  readonly #parts: VisitorParts;
  /** As VisitorChange.user. */
  readonly #givenUser: User | undefined;
  #nowMs: number | undefined;
  #language: string | undefined | null = null;
  #devices: ReadonlySet<DeviceClass> | undefined;
  #location: Location | undefined;
  /** The user of its token, once the token is verified, or of its session. */
  #verified: { readonly user: User | undefined } | undefined;

  constructor(
    arrived: VisitorRequest,
    parts: VisitorParts,
    { nowMs, user }: { readonly nowMs?: number | undefined; readonly user?: User | undefined } = {},
  ) {
    this.address = arrived.address;
    this.#nowMs = nowMs;
    this.#givenUser = user;
    if (user !== undefined) this.#verified = { user };
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

  seed(): number {
    return seedOf(this.#arrived.fields, this.address);
  }

  bucket(ruleId: string): number {
    return bucketOf(this.seed(), ruleId);
  }

  prepare({ user, location }: VisitorNeeds): Promise<void> | undefined {
    const verification = user ? this.#verify() : undefined;
    const reading = location ? this.#parts.locations?.prepare() : undefined;
    if (verification === undefined) return reading;
    return reading === undefined ? verification : verification.then(() => reading);
  }

  user(): User | undefined {
    const name = this.#claimedUser();
    if (name === undefined) return this.#verified?.user;
    return { name, roles: listedRoles(this.#arrived.claims.roles) };
  }

  signedInUser(): User | undefined {
    return this.user();
  }

  /** The claims of a trusted proxy win over the database. */
  location(): Location {
    if (this.#location === undefined) {
      const found = this.#parts.locations?.locationOf(this.address) ?? unknownLocation;
      const { country, region, city } = this.#arrived.claims;
      const code = countryCode(country ?? '');
      this.#location = {
        // Proxies send XX for an unknown country.
        country: code === undefined || code === 'XX' ? found.country : code,
        regions: claimedName(region) ?? found.regions,
        cities: claimedName(city) ?? found.cities,
        isLookedUp: code !== undefined || found.isLookedUp === true,
      };
    }
    return this.#location;
  }

  place(): string | undefined {
    return this.#parts.place;
  }

  certificate(): ClientIdentity | undefined {
    return this.#arrived.certificate?.();
  }

  field(name: string): string | undefined {
    return this.#arrived.fields[name];
  }

  #claimedUser(): string | undefined {
    const { user = '' } = this.#arrived.claims;
    return user === '' || user.length > userNameCharactersMax ? undefined : user;
  }

  with(change: VisitorChange): Visitor {
    const { nowMs = this.#nowMs, fields, isSignedOut = false } = change;
    const { claims, ...others } = this.#arrived;
    const signedOut = { ...claims, user: undefined, roles: undefined };
    const user = change.user ?? (isSignedOut ? undefined : this.#givenUser);
    // A user that is given is not the one of the request.
    const isOther = isSignedOut || user !== undefined;
    const arrived = {
      ...others,
      claims: isOther ? signedOut : claims,
      ...(isOther && { certificate: undefined }),
    };
    const none = { tokens: undefined, loginUser: undefined };
    const parts = isOther ? { ...this.#parts, ...none } : this.#parts;
    if (fields === undefined) return new RequestVisitor(arrived, parts, { nowMs, user });
    const both = Object.create(null) as Record<string, string | undefined>;
    Object.assign(both, arrived.fields, fields);
    return new RequestVisitor({ ...arrived, fields: both }, parts, { nowMs, user });
  }

  /** A valid token wins over a session: programs send one on purpose. */
  #verify(): Promise<void> | undefined {
    const { tokens, jwtCookie, loginUser } = this.#parts;
    const isKnown = this.#verified !== undefined || this.#claimedUser() !== undefined;
    if (isKnown || (tokens === undefined && loginUser === undefined)) return undefined;
    const { fields, target } = this.#arrived;
    const token = tokens === undefined ? undefined : tokenOf(fields, jwtCookie);
    const user = token === undefined ? undefined : tokens?.userOf(token);
    const know = (found: User | undefined): void => {
      const origin = target?.origin;
      const signedIn = origin === undefined ? undefined : loginUser?.(fields.cookie, origin);
      this.#verified = { user: found ?? signedIn };
    };
    if (user instanceof Promise) return user.then(know);
    know(user);
    return undefined;
  }
}

/** A name from a proxy's field, which Node decodes as latin1 although it may be UTF-8. */
function claimedName(written: string | undefined): readonly string[] | undefined {
  if (written === undefined) return undefined;
  const utf8 = Buffer.from(written, 'latin1').toString('utf8');
  const name = placeName(utf8.includes('\ufffd') ? written : utf8);
  return name === undefined ? undefined : [name];
}

/** The bearer token of a request (RFC 6750 §2.1), else the one in its cookie. */
function tokenOf({ authorization, cookie }: Fields, cookieName: string): string | undefined {
  const bearer = authorization === undefined ? null : /^bearer +(\S+)$/i.exec(authorization);
  return bearer?.[1] ?? cookieValue(cookie, cookieName);
}

/** The value of the first cookie with a name (RFC 6265 §4.2.1), without quotes around it. */
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

/** The roles in a proxy's field, separated by commas. */
function listedRoles(roles: string | undefined): readonly string[] {
  if (roles === undefined) return [];
  const names = roles.split(',').map((role) => role.trim());
  return names.filter((role) => role !== '').slice(0, userRolesMax);
}

/** Returns the preferred language of an Accept-Language field. */
type LanguageReader = typeof preferredLanguage;

/** Creates a language reader that caches the results of short fields. */
function createLanguageReader(): LanguageReader {
  const known = createLruCache<{ readonly language: string | undefined }>(languagesRememberedMax);
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
