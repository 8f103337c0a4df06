import type ipaddr from 'ipaddr.js';
import { parseAddress } from '../model/cidr.ts';
import { millionths, type Condition, type WantedParameter } from '../model/condition.ts';
import type { Visitor } from '../model/visitor.ts';

/** A visitor before a breadcrumb: what its conditions are held against, found out on demand. */
export class Trial {
  readonly visitor: Visitor;
  readonly #ruleId: string;
  readonly #query: string;
  #parameters: URLSearchParams | undefined;
  #draw: number | undefined;
  #address: ipaddr.IPv4 | ipaddr.IPv6 | null | undefined;

  constructor(ruleId: string, { visitor, query }: { visitor: Visitor; query: string }) {
    this.visitor = visitor;
    this.#ruleId = ruleId;
    this.#query = query;
  }

  /** Values of a parameter of the query. */
  values(name: string): readonly string[] {
    this.#parameters ??= new URLSearchParams(this.#query);
    return this.#parameters.getAll(name);
  }

  /** What the visitor drew at this breadcrumb, in millionths. */
  draw(): number {
    this.#draw ??= this.visitor.draw(this.#ruleId);
    return this.#draw;
  }

  /** The visitor's address; null for none. */
  address(): ipaddr.IPv4 | ipaddr.IPv6 | null {
    this.#address ??= parseAddress(this.visitor.address) ?? null;
    return this.#address;
  }
}

/** The first of some conditions that does not hold; undefined when all do (contract §6). */
export function firstFailing(
  conditions: readonly Condition[],
  trial: Trial,
): Condition | undefined {
  for (const condition of conditions) if (!holds(condition, trial)) return condition;
  return undefined;
}

function holds(condition: Condition, trial: Trial): boolean {
  const { visitor } = trial;
  switch (condition.name) {
    case 'user': {
      const user = visitor.user();
      return user !== undefined && (condition.anyone || condition.users.has(user.name));
    }
    case 'role':
      return visitor.user()?.roles.some((role) => condition.roles.has(role)) === true;
    case 'country':
      return condition.countries.has(visitor.country() ?? '');
    case 'lang':
      return speaks(visitor.language(), condition.tags);
    case 'device': {
      const devices = visitor.devices();
      return condition.classes.some((one) => devices.has(one));
    }
    case 'query':
      return condition.parameters.every((wanted) => isThere(wanted, trial));
    case 'ip': {
      const address = trial.address();
      if (address === null) return false;
      return condition.networks.some(
        ({ network, prefixBits }) =>
          network.kind() === address.kind() && address.match(network, prefixBits),
      );
    }
    case 'after':
      return visitor.nowMs >= condition.timeMs;
    case 'before':
      return visitor.nowMs < condition.timeMs;
    case 'percent':
      return (trial.draw() - condition.from + millionths) % millionths < condition.share;
  }
}

/** Whether a language is one of some, or a variety of one: `de` stands for de-CH too. */
function speaks(language: string | undefined, tags: readonly string[]): boolean {
  if (language === undefined) return false;
  return tags.some((tag) => language === tag || language.startsWith(`${tag}-`));
}

function isThere({ name, values }: WantedParameter, trial: Trial): boolean {
  const sent = trial.values(name);
  return values === undefined ? sent.length > 0 : sent.some((value) => values.has(value));
}
