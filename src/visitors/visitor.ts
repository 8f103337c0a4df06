import type { Config } from '../config/config.ts';
import type { Fields } from '../http/request.ts';
import { countryCode } from '../model/condition.ts';
import { userNameCharactersMax } from '../model/limits.ts';
import type { DeviceClass, User, Visitor, VisitorChange, VisitorNeeds } from '../model/visitor.ts';
import type { Log } from '../observability/log.ts';
import { createCountries, type Countries } from './country.ts';
import { listedRoles, tokenIn } from './credentials.ts';
import { createDeviceReader, type DeviceReader } from './device.ts';
import { createTokenService } from './identity.ts';
import { rememberLanguages, type LanguageReader } from './language.ts';
import { drawOf, lotOf } from './lot.ts';
import type { Tokens } from './tokens.ts';

/** What is known of a visitor at once. */
export interface Arrived {
  readonly address: string;
  readonly fields: Fields;
  /** What a trusted proxy says of the visitor. */
  readonly told: Told;
}

/** Fields that only a trusted proxy may set, as they came; undefined for those that did not. */
export interface Told {
  /** `[auth] user_header`. */
  readonly user: string | undefined;
  /** `[auth] roles_header`. */
  readonly roles: string | undefined;
  /** `[geo] country_header`. */
  readonly country: string | undefined;
}

/** The names in lower case of the fields that only a trusted proxy may set. */
export function identityFieldsOf({ auth, geo }: Pick<Config, 'auth' | 'geo'>): readonly string[] {
  const names = [auth.userHeader, auth.rolesHeader, geo.countryHeader];
  return names.filter((name) => name !== undefined);
}

/** Tells visitors by their requests. */
export interface Visitors {
  visitorOf(arrived: Arrived): Visitor;
  /** Where an address is, as far as `[geo] database` knows. */
  countryOf(address: string): Promise<string | undefined>;
  close(): Promise<void>;
}

/** Makes what tells visitors under a configuration: `[auth]` and `[geo]`. */
export function createVisitors({
  config: { auth, geo },
  now,
  log,
}: {
  readonly config: Pick<Config, 'auth' | 'geo'>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly log: Log;
}): Visitors {
  const tokens = createTokenService(auth, { now, log });
  const countries =
    geo.database === undefined ? undefined : createCountries({ file: geo.database, now, log });
  const parts = {
    ...{ now, tokens, countries, jwtCookie: auth.jwtCookie },
    devices: createDeviceReader(),
    languages: rememberLanguages(),
  };
  return {
    visitorOf: (arrived) => new Arrival(arrived, parts),
    async countryOf(address) {
      await countries?.prepare();
      return countries?.countryOf(address);
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
  readonly countries: Countries | undefined;
}

class Arrival implements Visitor {
  readonly address: string;
  readonly #arrived: Arrived;
  readonly #parts: Parts;
  #nowMs: number | undefined;
  #language: string | undefined | null = null;
  #devices: ReadonlySet<DeviceClass> | undefined;
  #toldCountry: string | undefined | null = null;
  #foundCountry: string | undefined | null = null;
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

  prepare({ user, country }: VisitorNeeds): Promise<void> | undefined {
    const verification = user ? this.#verify() : undefined;
    const reading =
      country && this.#countryTold() === undefined ? this.#parts.countries?.prepare() : undefined;
    if (verification === undefined) return reading;
    return reading === undefined ? verification : verification.then(() => reading);
  }

  user(): User | undefined {
    const name = this.#toldUser();
    if (name === undefined) return this.#verified?.user;
    return { name, roles: listedRoles(this.#arrived.told.roles) };
  }

  country(): string | undefined {
    const told = this.#countryTold();
    if (told !== undefined) return told;
    if (this.#foundCountry === null) {
      this.#foundCountry = this.#parts.countries?.countryOf(this.address);
    }
    return this.#foundCountry;
  }

  #toldUser(): string | undefined {
    const { user = '' } = this.#arrived.told;
    return user === '' || user.length > userNameCharactersMax ? undefined : user;
  }

  /** XX is what proxies write for a country that they do not know. */
  #countryTold(): string | undefined {
    if (this.#toldCountry === null) {
      const code = countryCode(this.#arrived.told.country ?? '');
      this.#toldCountry = code === 'XX' ? undefined : code;
    }
    return this.#toldCountry;
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
