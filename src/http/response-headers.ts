import { needsUser } from '../model/visitor.ts';
import { isPlaceholder } from './redirect-lines.ts';
import { isSameForUrl, parseTemplate, type TemplateRequest } from './field-template.ts';
import { withoutFields, type FieldList, type Reply } from './reply.ts';
import { withVary } from './vary.ts';

/** Fields for the answers of an origin and of some paths, or of one source. */
export interface HeaderRule {
  /** For explain, such as `[headers.assets]`. */
  readonly name: string;
  readonly origin: string;
  /** Canonical paths, in which each `*` stands for any text. */
  readonly paths: readonly string[];
  /** Whether a segment such as `:year` of `paths` stands for any segment. */
  readonly hasPlaceholders?: boolean;
  /** As in `Reply`; undefined for answers of every source. */
  readonly source: string | undefined;
  /** As in createFieldChanges. */
  readonly fields: FieldList;
}

/** Changes the fields of answers as `[headers.<name>]` and `[proxy.<name>.headers]` say. */
export type ResponseHeaders = (reply: Reply, request: TemplateRequest) => Reply | Promise<Reply>;

/**
 * Creates the change of answers; undefined if there are no rules. The rules apply in order.
 * `newNonce` makes the nonce of an answer (CSP 3 §2.3).
 */
export function createResponseHeaders(
  rules: readonly HeaderRule[],
  newNonce: () => string,
): ResponseHeaders | undefined {
  if (rules.length === 0) return undefined;
  const prepared = rules.map((rule) => ({ rule, changes: createFieldChanges(rule.fields) }));
  return (reply, request) => {
    const applied = prepared.filter(({ rule }) => appliesTo(rule, reply.source, request));
    if (applied.length === 0) return reply;
    const changes = applied.map((one) => one.changes);
    if (reply.withNonce === undefined || !changes.some(({ usesNonce }) => usesNonce)) {
      return applyChanges(reply, request, changes);
    }
    const nonce = newNonce();
    const applyWith = (page: Reply) => applyChanges(page, { ...request, nonce }, changes);
    return reply.withNonce(nonce).then(applyWith);
  };
}

/** The names of the rules that change the fields of an answer of a source, in their order. */
export function headerRulesFor(
  rules: readonly HeaderRule[],
  source: string,
  request: Pick<TemplateRequest, 'origin' | 'path'>,
): readonly string[] {
  return rules.filter((rule) => appliesTo(rule, source, request)).map(({ name }) => name);
}

/** One field that is changed. */
interface Change {
  readonly name: string;
  readonly lowerName: string;
  readonly isAdded: boolean;
  readonly value: (request: TemplateRequest) => string | undefined;
}

/** Changes of the fields of an answer, in their order. */
export interface FieldChanges {
  readonly changes: readonly Change[];
  /** Whether all requests for a URL get the same fields. */
  readonly isSame: boolean;
  readonly usesUser: boolean;
  readonly usesNonce: boolean;
}

/**
 * Prepares changes: name, template, name, template …: each replaces the fields of its name, and an
 * empty template removes them. A name that ends with `[]` adds a field.
 */
export function createFieldChanges(fields: FieldList): FieldChanges {
  const names = fields.filter((_, at) => at % 2 === 0);
  const texts = fields.filter((_, at) => at % 2 === 1);
  const templates = texts.map(parseTemplate);
  const changes = names.map((written, at): Change => {
    const isAdded = written.endsWith('[]');
    const name = isAdded ? written.slice(0, -'[]'.length) : written;
    const value = texts[at] === strictPolicy ? policyFor : templates[at]?.value;
    return { name, lowerName: name.toLowerCase(), isAdded, value: value ?? (() => undefined) };
  });
  const used = templates.flatMap(({ variables }) => variables);
  return {
    changes,
    isSame: templates.every(isSameForUrl),
    usesUser: used.includes('user'),
    usesNonce: used.includes('nonce') || texts.includes(strictPolicy),
  };
}

/** The reply with changed fields; waits for the user if a field names one. */
export function applyChanges(
  reply: Reply,
  request: TemplateRequest,
  all: readonly FieldChanges[],
): Reply | Promise<Reply> {
  const apply = (): Reply => {
    let { fields } = reply;
    for (const { changes } of all) {
      for (const change of changes) fields = changed(fields, change, request);
    }
    if (all.every(({ isSame }) => isSame)) return { ...reply, fields };
    const { isReusable: _reusable, ...once } = reply;
    return { ...once, fields };
  };
  const waiting = all.some(({ usesUser }) => usesUser)
    ? request.visitor.prepare(needsUser)
    : undefined;
  return waiting === undefined ? apply() : waiting.then(apply);
}

function appliesTo(
  { origin, paths, hasPlaceholders = false, source }: HeaderRule,
  of: string,
  request: Pick<TemplateRequest, 'origin' | 'path'>,
): boolean {
  if (source !== undefined && source !== of) return false;
  if (origin !== '*' && origin !== request.origin) return false;
  return paths.some((pattern) =>
    hasPlaceholders && pattern.includes('/:')
      ? matchesSegments(pattern, request.path)
      : matchesPattern(pattern, request.path),
  );
}

/** Whether a path matches a pattern, in time that is linear in its length for each `*`. */
export function matchesPattern(pattern: string, path: string): boolean {
  const [first = '', ...rest] = pattern.split('*');
  const last = rest.pop();
  if (last === undefined) return path === first;
  if (!path.startsWith(first) || path.length < first.length + last.length) return false;
  let at = first.length;
  for (const part of rest) {
    const found = path.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return path.length - last.length >= at && path.endsWith(last);
}

/** Whether a path has the segments of a pattern; its last one may end with `*`, for any rest. */
function matchesSegments(pattern: string, path: string): boolean {
  const wanted = pattern.split('/');
  const segments = path.split('/');
  const last = wanted.at(-1) ?? '';
  const isOpen = last.endsWith('*');
  if (isOpen ? segments.length < wanted.length : segments.length !== wanted.length) return false;
  return wanted.every((one, at) => {
    const segment = segments[at] ?? '';
    if (isOpen && at === wanted.length - 1) return segment.startsWith(one.slice(0, -1));
    return isPlaceholder(one) ? segment !== '' : segment === one;
  });
}

function changed(fields: FieldList, change: Change, request: TemplateRequest): FieldList {
  const { name, lowerName, isAdded } = change;
  const value = change.value(request);
  // What an answer varies by stays true, whatever is added.
  if (lowerName === 'vary') {
    const named = value?.split(',').map((one) => one.trim()) ?? [];
    return withVary(fields, ...named);
  }
  const kept = isAdded ? fields : withoutFields(fields, lowerName);
  return value === undefined ? kept : [...kept, name, value];
}

const strictPolicy =
  "default-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'self'; " +
  "object-src 'none'";

/** The fields of `security = strict`. */
export const strictFields: FieldList = [
  ...['X-Content-Type-Options', 'nosniff'],
  ...['X-Frame-Options', 'SAMEORIGIN'],
  ...['Referrer-Policy', 'strict-origin-when-cross-origin'],
  ...['Permissions-Policy', 'camera=(), geolocation=(), microphone=(), payment=(), usb=()'],
  ...['Cross-Origin-Opener-Policy', 'same-origin'],
  'Content-Security-Policy',
  strictPolicy,
];

/** The policy of `security = strict`, with the nonce of a page that has a place for one. */
function policyFor({ nonce }: TemplateRequest): string {
  if (nonce === undefined) return strictPolicy;
  const sources = `'self' 'nonce-${nonce}'`;
  return `${strictPolicy}; script-src ${sources}; style-src ${sources}`;
}
