import { needsUser } from '../model/visitor.ts';
import { isPlaceholder } from './redirect-lines.ts';
import { isSameForUrl, parseTemplate, type TemplateRequest } from './field-template.ts';
import { withoutFields, type FieldList, type Reply } from './reply.ts';
import { withVary } from './vary.ts';

/** Fields for the answers of an origin and of some paths, or of one source. */
export interface HeaderRule {
  readonly origin: string;
  /** Canonical paths, in which each `*` stands for any text. */
  readonly paths: readonly string[];
  /** Whether a segment such as `:year` of `paths` stands for any segment. */
  readonly hasPlaceholders?: boolean;
  /** As in `Reply`; undefined for answers of every source. */
  readonly source: string | undefined;
  /**
   * Name, template, name, template …: each replaces the fields of its name, and an empty template
   * removes them. A name that ends with `[]` adds a field.
   */
  readonly fields: FieldList;
}

/** Changes the fields of answers as `[headers.<name>]` and `[proxy.<name>.headers]` say. */
export type ResponseHeaders = (reply: Reply, request: TemplateRequest) => Reply | Promise<Reply>;

/** Creates the change of answers; undefined if there are no rules. The rules apply in order. */
export function createResponseHeaders(rules: readonly HeaderRule[]): ResponseHeaders | undefined {
  if (rules.length === 0) return undefined;
  const prepared = rules.map(prepareRule);
  const apply = (reply: Reply, request: TemplateRequest, applied: readonly PreparedRule[]) => {
    let { fields } = reply;
    for (const { changes } of applied) {
      for (const change of changes) fields = changed(fields, change, request);
    }
    if (applied.every(({ isSame }) => isSame)) return { ...reply, fields };
    const { isReusable: _reusable, ...once } = reply;
    return { ...once, fields };
  };
  return (reply, request) => {
    const applied = prepared.filter((rule) => appliesTo(rule, reply, request));
    if (applied.length === 0) return reply;
    const waiting = applied.some(({ usesUser }) => usesUser)
      ? request.visitor.prepare(needsUser)
      : undefined;
    return waiting === undefined
      ? apply(reply, request, applied)
      : waiting.then(() => apply(reply, request, applied));
  };
}

/** One field of a rule. */
interface Change {
  readonly name: string;
  readonly lowerName: string;
  readonly isAdded: boolean;
  readonly value: (request: TemplateRequest) => string | undefined;
}

interface PreparedRule extends Omit<HeaderRule, 'fields'> {
  readonly changes: readonly Change[];
  /** Whether all requests for a URL get the same fields. */
  readonly isSame: boolean;
  readonly usesUser: boolean;
}

function prepareRule({ fields, ...rule }: HeaderRule): PreparedRule {
  const names = fields.filter((_, at) => at % 2 === 0);
  const templates = names.map((_, at) => parseTemplate(fields[2 * at + 1] ?? ''));
  const changes = names.map((written, at): Change => {
    const isAdded = written.endsWith('[]');
    const name = isAdded ? written.slice(0, -'[]'.length) : written;
    const value = templates[at]?.value ?? (() => undefined);
    return { name, lowerName: name.toLowerCase(), isAdded, value };
  });
  return {
    ...rule,
    changes,
    isSame: templates.every(isSameForUrl),
    usesUser: templates.some(({ variables }) => variables.includes('user')),
  };
}

function appliesTo(
  { origin, paths, hasPlaceholders = false, source }: PreparedRule,
  reply: Reply,
  request: TemplateRequest,
): boolean {
  if (source !== undefined && source !== reply.source) return false;
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

/** The fields of `security = strict`. */
export const strictFields: FieldList = [
  ...['X-Content-Type-Options', 'nosniff'],
  ...['X-Frame-Options', 'SAMEORIGIN'],
  ...['Referrer-Policy', 'strict-origin-when-cross-origin'],
  ...['Permissions-Policy', 'camera=(), geolocation=(), microphone=(), payment=(), usb=()'],
  ...['Cross-Origin-Opener-Policy', 'same-origin'],
  'Content-Security-Policy',
  "default-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'self'; " +
    "object-src 'none'",
];
