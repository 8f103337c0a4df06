import { parseQuery } from '../../http/query.ts';
import {
  comparableAddress,
  type ComparableAddress,
  type Networks,
} from '../../values/network/networks.ts';
import type { Visitor } from '../../http/visitor.ts';

/** The visitor and the query that the conditions of one rule are evaluated with, read on demand. */
export class EvaluationContext {
  readonly visitor: Visitor;
  readonly #ruleId: string;
  readonly #query: string;
  #parameters: ReadonlyMap<string, ReadonlySet<string>> | undefined;
  #bucket: number | undefined;
  /** Null for a visitor without an address. */
  #address: ComparableAddress | null | undefined;

  constructor(ruleId: string, { visitor, query }: { visitor: Visitor; query: string }) {
    this.visitor = visitor;
    this.#ruleId = ruleId;
    this.#query = query;
  }

  /** The values of a query parameter. */
  values(name: string): ReadonlySet<string> {
    this.#parameters ??= parametersOf(this.#query);
    return this.#parameters.get(name) ?? none;
  }

  /** The visitor's bucket for the percentages of this rule, in millionths. */
  bucket(): number {
    this.#bucket ??= this.visitor.bucket(this.#ruleId);
    return this.#bucket;
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
  for (const { name, value } of parseQuery(query)) {
    const values = parameters.get(name);
    if (values === undefined) parameters.set(name, new Set([value]));
    else values.add(value);
  }
  return parameters;
}
