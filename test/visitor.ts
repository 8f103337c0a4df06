import type { ClientAddress } from '../src/core/values/network/peer.ts';
import { preferredLanguage } from '../src/core/http/representation/negotiation.ts';
import { bucketOf } from '../src/modules/visitors/bucket.ts';
import type { DeviceClass, User, Visitor } from '../src/core/http/visitor.ts';

/** The properties of a visitor that a test sets; the others are unknown. */
export interface VisitorTraits {
  readonly address?: ClientAddress;
  readonly nowMs?: number;
  /** Accept-Language. */
  readonly lang?: string | undefined;
  readonly devices?: readonly DeviceClass[];
  readonly seed?: number;
  readonly user?: User | undefined;
  readonly country?: string | undefined;
  readonly regions?: readonly string[];
  readonly cities?: readonly string[];
  readonly place?: string | undefined;
  /** Headers of its request, by lower-case name. */
  readonly fields?: Readonly<Record<string, string>>;
}

/** A visitor whose properties are known without waiting. */
export function someVisitor({
  address = '192.0.2.7',
  nowMs = Date.UTC(2026, 0, 31),
  lang,
  devices = [],
  seed = 0,
  user,
  country,
  regions = [],
  cities = [],
  place,
  fields = {},
}: VisitorTraits = {}): Visitor {
  return {
    address,
    nowMs,
    language: () => preferredLanguage(lang),
    devices: () => new Set(devices),
    seed: () => seed,
    bucket: (ruleId) => bucketOf(seed, ruleId),
    prepare: () => undefined,
    user: () => user,
    signedInUser: () => user,
    location: () => ({ country, regions, cities }),
    place: () => place,
    certificate: () => undefined,
    field: (name) => fields[name],
    with: (other) =>
      someVisitor({
        ...{ address, lang, devices, seed, user, country, regions, cities, place, fields },
        nowMs: other.nowMs ?? nowMs,
      }),
  };
}
