import { parseQuery } from '../../http/query.ts';
import type { FieldList } from '../../http/reply.ts';
import type { Fields } from '../../http/request.ts';
import type { DeviceClass, Visitor, VisitorNeeds } from '../../http/visitor.ts';
import type { Json, JsonObject } from '../../values/json/json.ts';
import {
  type ComparableAddress,
  type Networks,
  comparableAddress,
} from '../../values/network/networks.ts';
import type { ClientAddress } from '../../values/network/peer.ts';

/** Values of one condition. */
export const conditionValuesMax = 1_000;

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

/** One parsed condition of an `if`. */
export interface Condition {
  readonly name: string;
  holds(context: EvaluationContext): boolean;
  /** Why it does not hold, in a sentence or two for the reader of explain. */
  explain(context: EvaluationContext): string;
  readonly type: ConditionType;
  /** The share of the visitors, for a percentage: consecutive percentages are added up. */
  readonly share?: Share;
}

/** A range of buckets in millionths; beyond the last bucket it continues with the first. */
interface Share {
  readonly from: number;
  readonly size: number;
  /** A share of the same size that begins elsewhere. */
  startingAt(from: number): Condition;
}

/** The visit that the fields of a reply may depend on. */
export interface ConditionVisit {
  readonly origin: string;
  readonly fields: Fields;
  readonly visitor: Visitor;
}

/**
 * One kind of condition: parser, test, explanation, Vary and preview
 * (docs/design/rendering.md#conditions).
 */
export interface ConditionType {
  readonly name: string;
  /** Parses the value of a condition; undefined for an invalid one. */
  parse(value: Json): Condition | undefined;
  /** The request fields that it depends on, for Vary (RFC 9110 §12.5.5). */
  readonly vary: readonly string[];
  /** The facts about a visitor that must be prepared before the test. */
  readonly needs: Partial<VisitorNeeds>;
  /** The fields by which explain and previews describe a visitor for this condition. */
  readonly preview: Readonly<Record<string, PreviewField>>;
  /** Fields of the reply by which the next visit can be recognised, such as Set-Cookie. */
  readonly answerFields?: (visit: ConditionVisit) => FieldList;
}

/**
 * The definition of a condition type; T is the parsed value. `vary`, `needs` and `preview` have no
 * defaults: a condition that depends on nothing says so, and a forgotten member does not compile.
 */
interface ConditionDefinition<T> extends Omit<ConditionType, 'parse'> {
  readonly parse: (value: Json) => T | undefined;
  readonly holds: (wanted: T, context: EvaluationContext) => boolean;
  readonly explain: (wanted: T, context: EvaluationContext) => string;
}

/** Defines a condition type. */
export function defineCondition<T>({
  name,
  parse,
  holds,
  explain,
  ...effects
}: ConditionDefinition<T>): ConditionType {
  const type: ConditionType = {
    name,
    ...effects,
    parse(value) {
      const wanted = parse(value);
      if (wanted === undefined) return undefined;
      return {
        name,
        type,
        holds: (context) => holds(wanted, context),
        explain: (context) => explain(wanted, context),
      };
    },
  };
  return type;
}

/** The description of an imaginary visitor; missing facts are unknown. */
export interface VisitorTraits {
  readonly user?: string;
  readonly roles?: readonly string[];
  /** ISO 3166-1 code, upper case. */
  readonly country?: string;
  readonly regions?: readonly string[];
  readonly cities?: readonly string[];
  readonly place?: string;
  readonly devices?: ReadonlySet<DeviceClass>;
  readonly address?: ClientAddress;
  /** Milliseconds since 1970. */
  readonly nowMs?: number;
  /** The bucket for percentages, in millionths. */
  readonly bucket?: number;
  /** Header fields of its request, by lower-case name. */
  readonly fields?: Readonly<Record<string, string>>;
}

/** One field by which a preview describes a visitor. */
export interface PreviewField {
  /** JSON Schema of its value, with a description. */
  readonly schema: JsonObject & { readonly description: string };
  /** The traits that a value describes; undefined for an invalid value. */
  readonly traits: (value: string | number) => VisitorTraits | undefined;
  /** The end of the sentence "X must be …". */
  readonly form: string;
  /** All values, if they are a closed list. */
  readonly choices?: readonly string[];
}

/** A preview field that is a text. */
export function textField(
  description: string,
  traits: (text: string) => VisitorTraits | undefined,
  {
    form = 'a text',
    choices,
    ...schema
  }: JsonObject & { readonly form?: string; readonly choices?: readonly string[] } = {},
): PreviewField {
  return {
    schema: { type: 'string', nullable: true, description, ...schema },
    traits: (value) => traits(String(value)),
    form,
    ...(choices !== undefined && { choices }),
  };
}

/** The values of a condition that is a text, or a list of texts each of which `parse` takes. */
export function listOf<T>(
  value: Json,
  parse: (text: string) => T | undefined,
): readonly T[] | undefined {
  const texts = typeof value === 'string' ? [value] : value;
  if (!Array.isArray(texts) || texts.length === 0 || texts.length > conditionValuesMax) {
    return undefined;
  }
  const values = (texts as readonly Json[]).map((text) =>
    typeof text === 'string' ? parse(text) : undefined,
  );
  return values.every((one) => one !== undefined) ? values : undefined;
}

/** As listOf, as a set. */
export function setOf<T>(
  value: Json,
  parse: (text: string) => T | undefined,
): ReadonlySet<T> | undefined {
  const values = listOf(value, parse);
  return values && new Set(values);
}

/** A text that is not empty. */
export function nonEmptyText(text: string): string | undefined {
  return text === '' ? undefined : text;
}

/** Values for a person: the first eight, and how many more there are. */
export function listText(values: Iterable<string>): string {
  const all = [...values];
  const shown = all.slice(0, shownMax).join(', ');
  return all.length > shownMax ? `${shown} and ${all.length - shownMax} more` : shown;
}

const shownMax = 8;

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
