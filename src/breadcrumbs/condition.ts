import type { FieldList } from '../http/reply.ts';
import type { Fields } from '../http/request.ts';
import type { Json, JsonObject } from '../model/json.ts';
import { conditionValuesMax } from './limits.ts';
import type { DeviceClass, Visitor, VisitorNeeds } from '../model/visitor.ts';
import type { EvaluationContext } from './evaluation.ts';

/** One condition of an `if`, ready to be tested with visitors. */
export interface Condition {
  readonly name: string;
  holds(context: EvaluationContext): boolean;
  /** Why it does not hold, in a sentence or two for a person. */
  explain(context: EvaluationContext): string;
  readonly type: ConditionType;
  /** Of a condition that takes a share of the visitors: which share, so that they add up. */
  readonly share?: Share;
}

/** The visitors from the `from`-th millionth on; past the last one it goes on with the first. */
interface Share {
  readonly from: number;
  readonly size: number;
  /** The same share, beginning elsewhere. */
  startingAt(from: number): Condition;
}

/** Who visits, and from where: what the answer to a condition may depend on. */
export interface ConditionVisit {
  readonly origin: string;
  readonly fields: Fields;
  readonly visitor: Visitor;
}

/** Everything about the conditions of one name, in one object. */
export interface ConditionType {
  readonly name: string;
  /** Reads the value of a condition; undefined for a value that says nothing. */
  parse(value: Json): Condition | undefined;
  /** The fields of a request that it depends on, as Vary names them (RFC 9110 §12.5.5). */
  readonly vary: readonly string[];
  /** What has to be prepared of a visitor before it is tested. */
  readonly needs: Partial<VisitorNeeds>;
  /** What `explain` and previews may say of a visitor for it, by the names of their fields. */
  readonly preview: Readonly<Record<string, PreviewField>>;
  /** Header fields that the answer carries, so that the next visit can be told apart. */
  readonly answerFields?: (visit: ConditionVisit) => FieldList;
}

/** What a condition type says of itself; T is the parsed value. */
interface ConditionDefinition<T> {
  readonly name: string;
  readonly parse: (value: Json) => T | undefined;
  readonly holds: (wanted: T, context: EvaluationContext) => boolean;
  readonly explain: (wanted: T, context: EvaluationContext) => string;
  readonly vary?: readonly string[];
  readonly needs?: Partial<VisitorNeeds>;
  readonly preview?: Readonly<Record<string, PreviewField>>;
  readonly answerFields?: (visit: ConditionVisit) => FieldList;
}

/** Defines the conditions of a name. */
export function defineCondition<T>({
  name,
  parse,
  holds,
  explain,
  vary = [],
  needs = {},
  preview = {},
  answerFields,
}: ConditionDefinition<T>): ConditionType {
  const type: ConditionType = {
    ...{ name, vary, needs, preview },
    ...(answerFields !== undefined && { answerFields }),
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

/** What can be said of a visitor that nobody is: what is left out is not known. */
export interface VisitorTraits {
  readonly user?: string;
  readonly roles?: readonly string[];
  /** ISO 3166-1 code, upper case. */
  readonly country?: string;
  readonly regions?: readonly string[];
  readonly cities?: readonly string[];
  readonly place?: string;
  readonly devices?: ReadonlySet<DeviceClass>;
  readonly address?: string;
  /** Milliseconds since 1970. */
  readonly nowMs?: number;
  /** The bucket for shares, in millionths. */
  readonly bucket?: number;
  /** Header fields of its request, by lower-case name. */
  readonly fields?: Readonly<Record<string, string>>;
}

/** One field by which a preview describes a visitor. */
interface PreviewField {
  /** JSON Schema of its value, with a description. */
  readonly schema: JsonObject & { readonly description: string };
  /** What it says of the visitor; undefined for a value that cannot be. */
  readonly traits: (value: string | number) => VisitorTraits | undefined;
  /** What a value has to be: the end of the sentence "X must be …". */
  readonly form: string;
  /** The values that there are, where they are a closed list. */
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
export function someText(text: string): string | undefined {
  return text === '' ? undefined : text;
}

/** Values for a person: the first eight, and how many more there are. */
export function listText(values: Iterable<string>): string {
  const all = [...values];
  const shown = all.slice(0, shownMax).join(', ');
  return all.length > shownMax ? `${shown} and ${all.length - shownMax} more` : shown;
}

const shownMax = 8;
