import { type WorkTurns, inTurns } from '../../fair/turns.ts';
import { type QueryParameter, parseQuery } from '../../http/query.ts';
import { ndjsonType, parseMediaType } from '../../http/representation/mediatype.ts';
import { formPairsMax, jsonValuesMax, readValuesMax } from '../../server/limits.ts';
import { Failure } from '../../values/failure.ts';
import { parseJsonSteps } from '../../values/json/parse-steps.ts';
import { parseDistinct, requireDistinct } from '../../values/json/parse.ts';
import { type JsonOutline, outlineJson } from '../../values/json/json-outline.ts';
import { type JsonObject, isJsonObject } from '../../values/json/json.ts';
import { jsonDepthMax } from '../../values/limits.ts';
import { nearestName } from '../../values/nearest.ts';
import { readBodyBytesMax, shownNameCharactersMax } from '../limits.ts';
import type { Effect, Operation } from '../operation.ts';
import { unknownInput } from '../problems.ts';

/** A name of a form or query, including its dots. */
const memberNameCharactersMax = 1_024;

/**
 * A request of HTTP or websocket before its operation runs (docs/design/operations.md#envelope):
 * operation, input, idempotency key, query kind.
 */
export interface Envelope {
  readonly a: string;
  readonly v: unknown;
  readonly vk: string | undefined;
  readonly qk: string | undefined;
  /** Preferences, in the form of the header field Prefer (RFC 7240). */
  readonly prefer: string | undefined;
  /** The draft that the operation reads or changes instead of the live state. */
  readonly draft: string | undefined;
  /** Whether all values of the input are text, as those of a query or form. */
  readonly isText: boolean;
}

/** The parts of an operation that decide which names a query or form may have. */
type NamedInput = Pick<Operation, 'name' | 'input' | 'fields' | 'query'>;

/**
 * Reads the query string of an operation that reads: `_v.<field>=…`, with dots for members of
 * members, and `_qk`. It ignores empty parameters. Throws `invalid` for other names, unless the
 * operation has parameters of its own, such as a breadcrumb's `k`; for names that contradict each
 * other; and for text that is not UTF-8.
 */
export function envelopeFromQuery(operation: NamedInput, query: string): Envelope {
  return envelopeFromPairs(operation, filledIn(parsePairs(query)));
}

/** Throws `invalid` for the query of a POST, whose input is its body. */
export function requireNoQuery({ name }: Pick<Operation, 'name'>, query: string): void {
  const [first] = query === '' ? [] : filledIn(parsePairs(query));
  if (first === undefined) return;
  const shown = JSON.stringify(first.name.slice(0, shownNameCharactersMax));
  throw new Failure(
    'invalid',
    `A POST of ${name} takes no query, but has the parameter ${shown}. Send it in the body.`,
    { field: first.name.slice(0, shownNameCharactersMax) },
  );
}

/**
 * Reads the body of an operation: `{"v", "vk", "qk"}` as JSON, or a form with `_v.` names. `curl
 * -d` sends any body as a form, so a body that starts like JSON is read as JSON. An empty field of
 * a form is written by an operation that writes, and ignored by one that reads. Throws `invalid`.
 */
export function envelopeFromBody(
  operation: NamedInput & Pick<Operation, 'effect'>,
  body: Buffer,
  contentType: string | undefined,
): Envelope {
  const { name: a, effect } = operation;
  const text = utf8(body);
  const isJson = /^\s*[{[]/.test(text);
  const type = typeOf(contentType);
  if (!isJson && type === 'application/x-www-form-urlencoded') {
    const pairs = parsePairs(text);
    if (effect !== 'reads' && !pairs.some(({ name }) => name.startsWith('_'))) {
      throw new Failure('invalid', `A form names its fields _v.path and so on. ${jsonHint}`, {
        field: 'v',
      });
    }
    return envelopeFromPairs(operation, effect === 'reads' ? filledIn(pairs) : pairs);
  }
  if (text.trim() === '') return envelopeFromPairs(operation, []);
  if (!isJson && type?.startsWith('multipart/') === true) {
    throw new Failure(
      'invalid',
      `A body of the type ${type} is not taken. Send application/json or ` +
        `application/x-www-form-urlencoded. ${jsonHint}`,
    );
  }
  const outline = envelopeOutline(body);
  requireParsable(outline, effect);
  return envelopeFrom(parseInput(text, outline), a);
}

/** Whether a body or message is so long that its JSON is parsed in turns. */
export function isLongJson(body: Buffer): boolean {
  if (body.length <= readBodyBytesMax) return false;
  let at = body.compare(byteOrderMark, 0, 3, 0, 3) === 0 ? byteOrderMark.length : 0;
  while (blanks.includes(body[at] ?? 0)) at += 1;
  return body[at] === openBrace || body[at] === openBracket;
}

const byteOrderMark = Buffer.from('\ufeff');
/** The blanks of JSON (RFC 8259 §2). */
const blanks = Buffer.from(' \t\n\r');
const [openBrace, openBracket] = Buffer.from('{[');

/** As envelopeFromBody, for JSON that isLongJson. */
export async function envelopeInTurns(
  { name, effect }: Pick<Operation, 'name' | 'effect'>,
  body: Buffer,
  turns: WorkTurns,
): Promise<Envelope> {
  await turns.next();
  const outline = envelopeOutline(body);
  requireParsable(outline, effect);
  return envelopeFrom(await parseInputInTurns(body, outline, turns), name);
}

/** Whether a body is NDJSON for an input field of an operation. */
export function isLinesBody(
  { linesField }: Pick<Operation, 'linesField'>,
  contentType: string | undefined,
): boolean {
  return linesField !== undefined && typeOf(contentType) === ndjsonType;
}

/** Reads NDJSON from the body, and the other input fields from the query. Throws `invalid`. */
export function envelopeFromLines(
  operation: NamedInput & Pick<Operation, 'linesField'>,
  body: Buffer,
  query: string,
): Envelope {
  const { linesField = '' } = operation;
  const envelope = envelopeFromQuery(operation, query);
  return { ...envelope, v: { ...(envelope.v as object), [linesField]: utf8(body) } };
}

function typeOf(contentType: string | undefined): string | undefined {
  return contentType === undefined ? undefined : parseMediaType(contentType)?.type;
}

/**
 * Reads a parsed envelope; its `a` names the operation if `operation` is undefined. Throws
 * `invalid`.
 */
export function envelopeFrom(sent: unknown, operation?: string): Envelope {
  if (!isJsonObject(sent)) {
    throw new Failure('invalid', `The body must be one JSON object. ${jsonHint}`);
  }
  const { a, v, vk, qk, prefer, draft } = sent;
  const stray = Object.keys(sent).find((name) => !members.has(name));
  if (stray !== undefined) {
    const shown = JSON.stringify(stray.slice(0, shownNameCharactersMax));
    throw new Failure('invalid', `${shown} is outside v. ${jsonHint}`, { field: 'v' });
  }
  if (operation !== undefined && a !== undefined && a !== operation) {
    throw new Failure('invalid', `a says another operation than the URL, ${operation}.`, {
      field: 'a',
    });
  }
  return {
    a: operation ?? optionalText('a', a) ?? '',
    v,
    vk: optionalText('vk', vk),
    qk: optionalText('qk', qk),
    prefer: optionalText('prefer', prefer),
    draft: optionalText('draft', draft),
    isText: false,
  };
}

/** The members of an envelope (docs/design/operations.md#envelope). */
const members = new Set(['a', 'v', 'vk', 'qk', 'id', 'r', 'prefer', 'draft']);

const jsonHint = 'Send the input in the member v: {"v": {"path": "/news", …}}.';

/** Returns the outline of an envelope in JSON, with its members `a`, `id` and `v`. */
export function envelopeOutline(bytes: Buffer): JsonOutline {
  return outlineJson(bytes, ['a', 'id', 'v']);
}

/** Throws `too_large` for an envelope on which JSON.parse would spend too much time or memory. */
export function requireParsable({ depth, values, members }: JsonOutline, effect: Effect): void {
  // The envelope is one level of its own.
  if (depth > jsonDepthMax + 1) {
    const isInput = (members.get('v')?.depth ?? 0) > jsonDepthMax;
    throw new Failure(
      'too_large',
      `${isInput ? 'v' : 'The envelope'} nests deeper than ${jsonDepthMax} levels.`,
      { limit: 'input_structure', ...(isInput && { field: 'v' }) },
    );
  }
  const valuesMax = effect === 'writes' ? jsonValuesMax : readValuesMax;
  if (values > valuesMax) {
    throw new Failure('too_large', `The JSON has more than ${valuesMax} values.`, {
      limit: 'input_structure',
    });
  }
}

/** Parses JSON as parseDistinct; throws `invalid` with the parser's message for other texts. */
export function parseInput(text: string, outline: JsonOutline): unknown {
  try {
    return parseDistinct(text, outline);
  } catch (error) {
    throw notJson(error);
  }
}

/** As parseInput, for a long text in UTF-8. */
export async function parseInputInTurns(
  bytes: Buffer,
  outline: JsonOutline,
  turns: WorkTurns,
): Promise<unknown> {
  try {
    const value = await inTurns(parseJsonSteps(bytes), turns);
    await turns.next();
    requireDistinct(value, outline, () => bytes.toString());
    return value;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw code === 'ERR_ENCODING_INVALID_ENCODED_DATA' ? notUtf8() : notJson(error);
  }
}

function notJson(error: unknown): unknown {
  if (!(error instanceof SyntaxError)) return error;
  return new Failure('invalid', `The body is not JSON: ${error.message.slice(0, 120)}`);
}

function notUtf8(): Failure {
  return new Failure('invalid', 'The body is not UTF-8.');
}

function optionalText(field: string, value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'string') return value;
  throw new Failure('invalid', `${field} must be a string.`, { field });
}

function utf8(body: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(body);
  } catch {
    throw notUtf8();
  }
}

/** Splits a query or form into its members. Throws `too_large` for too many of them. */
function parsePairs(text: string): readonly QueryParameter[] {
  let pairs = 1;
  for (let at = text.indexOf('&'); at !== -1; at = text.indexOf('&', at + 1)) {
    pairs += 1;
    if (pairs <= formPairsMax) continue;
    throw new Failure('too_large', `A query or form has at most ${formPairsMax} members.`, {
      limit: 'input_structure',
    });
  }
  return parseQuery(text);
}

/** Returns the fields of a form with a value: a browser sends empty fields too. */
function filledIn(pairs: readonly QueryParameter[]): readonly QueryParameter[] {
  return pairs.filter(({ value }) => value !== '');
}

/** Reads the members of an envelope; throws `invalid` if one is not UTF-8. */
function envelopeFromPairs(operation: NamedInput, pairs: readonly QueryParameter[]): Envelope {
  const { name: a } = operation;
  const v: Tree = Object.create(null) as Tree;
  let vk: string | undefined;
  let qk: string | undefined;
  let prefer: string | undefined;
  let draft: string | undefined;
  for (const { name, value, isUtf8 } of pairs) {
    if (!isUtf8 && envelopeName.test(name)) {
      throw new Failure('invalid', `${name} is not UTF-8 in its percent-encoding.`, {
        field: name.replace(/^_(?:v\.)?/, ''),
      });
    }
    if (name === '_vk') vk = value;
    else if (name === '_qk') qk = value;
    else if (name === '_prefer') prefer = value;
    else if (name === '_draft') draft = value;
    else if (name.startsWith('_v.')) putDeep(v, name.slice('_v.'.length), value);
    else if (operation.query === undefined && value !== '') throw unknownParameter(operation, name);
  }
  return { a, v, vk, qk, prefer, draft, isText: true };
}

/** The failure for a parameter of a query or form that is no member of an envelope. */
function unknownParameter({ name: a, input, fields }: NamedInput, name: string): Failure {
  const { properties = {} } = fields ?? input;
  const known = Object.keys(properties as JsonObject);
  const field = name.replace(/^_?v?\./, '');
  const nearest = known.includes(field) ? field : nearestName(field, known);
  return unknownInput(name, a, {
    known: [...known.map((one) => `_v.${one}`)],
    suggestion: nearest === undefined ? undefined : `_v.${nearest}`,
    noun: 'parameter',
  });
}

const envelopeName = /^_(?:v\.|vk$|qk$|prefer$|draft$)/;

interface Tree {
  [name: string]: string | string[] | Tree;
}

function putDeep(tree: Tree, name: string, value: string): void {
  const parts = name.slice(0, memberNameCharactersMax).split('.');
  if (parts.length > jsonDepthMax || name.length > memberNameCharactersMax) {
    throw new Failure(
      'too_large',
      `_v.${name.slice(0, 40)}… goes too deep, or is too long a name.`,
    );
  }
  const last = parts.pop() ?? '';
  let at = tree;
  for (const part of parts) {
    const next = (at[part] ??= Object.create(null) as Tree);
    if (typeof next === 'string' || Array.isArray(next)) throw contradiction(name);
    at = next;
  }
  const before = at[last];
  if (before === undefined) at[last] = value;
  else if (typeof before === 'string') at[last] = [before, value];
  else if (Array.isArray(before)) before.push(value);
  else throw contradiction(name);
}

function contradiction(name: string): Failure {
  return new Failure('invalid', `_v.${name} is given both as a value and as an object.`, {
    field: name,
  });
}
