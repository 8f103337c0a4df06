import { preferredLanguage } from '../http/negotiation.ts';
import type { Fields } from '../http/request.ts';
import type { DeviceClass, User, Visitor } from '../model/visitor.ts';
import { createDeviceReader, type DeviceReader } from './device.ts';
import { lotOf } from './lot.ts';

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
}

/** Tells visitors by their requests. */
export interface Visitors {
  visitorOf(arrived: Arrived): Visitor;
}

/** Makes what tells visitors under a configuration. */
export function createVisitors({ now }: { readonly now: () => number }): Visitors {
  const parts: Parts = { now, devices: createDeviceReader() };
  return { visitorOf: (arrived) => new Arrival(arrived, parts) };
}

interface Parts {
  readonly now: () => number;
  readonly devices: DeviceReader;
}

class Arrival implements Visitor {
  readonly #arrived: Arrived;
  readonly #parts: Parts;
  #nowMs: number | undefined;

  constructor(arrived: Arrived, parts: Parts) {
    this.#arrived = arrived;
    this.#parts = parts;
  }

  get address(): string {
    return this.#arrived.address;
  }

  get nowMs(): number {
    this.#nowMs ??= this.#parts.now();
    return this.#nowMs;
  }

  language(): string | undefined {
    return preferredLanguage(this.#arrived.fields['accept-language']);
  }

  devices(): ReadonlySet<DeviceClass> {
    return this.#parts.devices(this.#arrived.fields);
  }

  lot(): number {
    return lotOf(this.#arrived.fields, this.#arrived.address);
  }

  prepare(): Promise<void> | undefined {
    return undefined;
  }

  user(): User | undefined {
    const { user } = this.#arrived.told;
    return user === undefined || user === '' ? undefined : { name: user, roles: [] };
  }

  country(): string | undefined {
    return undefined;
  }
}
