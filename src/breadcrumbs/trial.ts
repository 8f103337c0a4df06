import { millionths, type Condition, type WantedParameter } from '../model/condition.ts';
import { comparableAddress, type ComparableAddress, type Networks } from '../model/networks.ts';
import type { Visitor } from '../model/visitor.ts';

/** A visitor before a breadcrumb: what its conditions are held against, found out on demand. */
export class Trial {
  readonly visitor: Visitor;
  readonly #ruleId: string;
  readonly #query: string;
  #parameters: ReadonlyMap<string, ReadonlySet<string>> | undefined;
  #draw: number | undefined;
  /** Null for a visitor without an address. */
  #address: ComparableAddress | null | undefined;

  constructor(ruleId: string, { visitor, query }: { visitor: Visitor; query: string }) {
    this.visitor = visitor;
    this.#ruleId = ruleId;
    this.#query = query;
  }

  /** Values of a parameter of the query. */
  values(name: string): ReadonlySet<string> {
    this.#parameters ??= parametersOf(this.#query);
    return this.#parameters.get(name) ?? none;
  }

  /** What the visitor drew at this breadcrumb, in millionths. */
  draw(): number {
    this.#draw ??= this.visitor.draw(this.#ruleId);
    return this.#draw;
  }

  /** Whether the visitor's address is in one of some networks. */
  isIn(networks: Networks): boolean {
    this.#address ??= comparableAddress(this.visitor.address) ?? null;
    return this.#address !== null && networks.contains(this.#address);
  }
}

const none: ReadonlySet<string> = new Set();

function parametersOf(query: string): ReadonlyMap<string, ReadonlySet<string>> {
  const parameters = new Map<string, Set<string>>();
  if (query === '') return parameters;
  for (const [name, value] of new URLSearchParams(query)) {
    const values = parameters.get(name);
    if (values === undefined) parameters.set(name, new Set([value]));
    else values.add(value);
  }
  return parameters;
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
      for (const one of condition.classes) if (devices.has(one)) return true;
      return false;
    }
    case 'query':
      return condition.parameters.every((wanted) => isThere(wanted, trial));
    case 'ip':
      return trial.isIn(condition.networks);
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
  for (const tag of tags) {
    if (
      language.startsWith(tag) &&
      (language.length === tag.length || language[tag.length] === '-')
    )
      return true;
  }
  return false;
}

function isThere({ name, values }: WantedParameter, trial: Trial): boolean {
  const sent = trial.values(name);
  return values === undefined ? sent.size > 0 : !values.isDisjointFrom(sent);
}
