import { whenReady } from '../../core/values/when-ready.ts';
import { coversOrigin } from '../../core/values/network/origin-pattern.ts';
import {
  type TemplateRequest,
  isSameForUrl,
  parseTemplate,
} from '../../core/http/field-template.ts';
import {
  type FieldList,
  type Reply,
  guardedFields,
  isCacheControl,
  privateReply,
  replyField,
  withVary,
  withoutFields,
} from '../../core/http/reply.ts';
import { needsUser } from '../../core/http/visitor.ts';
import { isPlaceholder } from '../redirects/redirect-lines.ts';

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
 * Creates the change of answers; undefined if there are no rules. The rules apply in order. On an
 * error, none of them lets caches store it: a picture that is missing for a minute would stay so
 * for the year that the rule means for pictures. `newNonce` makes the nonce of an answer (CSP 3
 * §2.3).
 */
export function createResponseHeaders(
  rules: readonly HeaderRule[],
  newNonce: () => string,
): ResponseHeaders | undefined {
  if (rules.length === 0) return undefined;
  // The changes follow as answers need them: there may be thousands of rules.
  const prepared = rules.map((rule) => ({ applies: compileRule(rule), fields: rule.fields }));
  /** What several rules change together, by their positions. */
  const together = new Map<string, FieldChanges>();
  const changesFor = (applied: readonly number[], isError: boolean): FieldChanges => {
    const key = `${isError} ${applied.join()}`;
    const known = together.get(key);
    if (known !== undefined) return known;
    // A site has a few combinations; a client cannot make more than there are.
    if (together.size >= combinationsMax) together.clear();
    const fields = applied.map((at) => prepared[at]?.fields ?? []);
    const changes = fields.map((one) => createFieldChanges(isError ? withoutFreshness(one) : one));
    const merged = mergeChanges(changes);
    together.set(key, merged);
    return merged;
  };
  return (reply, request) => {
    const applied: number[] = [];
    for (let at = 0; at < prepared.length; at += 1) {
      if (prepared[at]?.applies(reply.source, request) === true) applied.push(at);
    }
    if (applied.length === 0) return reply;
    const changes = changesFor(applied, reply.status >= 400);
    if (reply.withNonce === undefined || !changes.usesNonce) {
      return applyKept(reply, request, changes);
    }
    const nonce = newNonce();
    const applyWith = (page: Reply) => applyKept(page, { ...request, nonce }, changes);
    return reply.withNonce(nonce).then(applyWith);
  };
}

/** Changes a reply; no field lets a cache store what the reply did not. */
function applyKept(
  reply: Reply,
  request: TemplateRequest,
  changes: FieldChanges,
): Reply | Promise<Reply> {
  const changed = applyChanges(reply, request, changes);
  if (reply.isPrivate !== true) return changed;
  return whenReady(changed, (one) => stillPrivate(one, reply));
}

function stillPrivate(changed: Reply, before: Reply): Reply {
  const said = replyField(before, 'cache-control') ?? '';
  const reply = privateReply(changed);
  if (!/no-store/i.test(said)) return reply;
  const fields = [...withoutFields(reply.fields, 'cache-control'), 'Cache-Control', said];
  return { ...reply, fields };
}

const combinationsMax = 256;

/** The fields of a rule, except those that let caches store an answer, or remove its refusal. */
function withoutFreshness(fields: FieldList): FieldList {
  return fields.flatMap((name, at) => {
    if (at % 2 === 1) return [];
    const value = fields[at + 1] ?? '';
    const plain = name.replace(/\[\]$/, '');
    const isFreshness = isCacheControl(plain) || plain.toLowerCase() === 'expires';
    return isFreshness && !/no-store|no-cache/i.test(value) ? [] : [name, value];
  });
}

/** The names of the rules that change the fields of an answer of a source, in their order. */
export function headerRulesFor(
  rules: readonly HeaderRule[],
  source: string,
  request: Pick<TemplateRequest, 'origin' | 'path'>,
): readonly string[] {
  return rules.filter((rule) => compileRule(rule)(source, request)).map(({ name }) => name);
}

/** One field that is changed. */
interface Change {
  readonly name: string;
  readonly lowerName: string;
  readonly value: (request: TemplateRequest) => string | undefined;
}

/** Changes of the fields of an answer, which are made in one pass over them. */
export interface FieldChanges {
  /** The lower-case names of the fields that are left out. */
  readonly removed: ReadonlySet<string>;
  /** Whether a name in any case is one of them. */
  readonly removes: (name: string) => boolean;
  /** The fields that are added then. */
  readonly added: readonly Change[];
  /** Further names of Vary: what an answer varies by stays true, whatever is changed. */
  readonly varies: readonly Change[];
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
  const removed = new Set<string>();
  let added: Change[] = [];
  const varies: Change[] = [];
  for (const [at, written] of names.entries()) {
    const isAdded = written.endsWith('[]');
    const name = isAdded ? written.slice(0, -'[]'.length) : written;
    const value = texts[at] === strictPolicy ? policyFor : templates[at]?.value;
    const change = { name, lowerName: name.toLowerCase(), value: value ?? (() => undefined) };
    if (change.lowerName === 'vary') {
      varies.push(change);
      continue;
    }
    if (!isAdded) {
      removed.add(change.lowerName);
      added = added.filter(({ lowerName }) => lowerName !== change.lowerName);
    }
    added.push(change);
  }
  const used = templates.flatMap(({ variables }) => variables);
  return {
    ...{ removed, removes: anyCase(removed), added, varies },
    isSame: templates.every(isSameForUrl),
    usesUser: used.includes('user'),
    usesNonce: used.includes('nonce') || texts.includes(strictPolicy),
  };
}

/** The changes of several, the first one first. */
function mergeChanges(all: readonly FieldChanges[]): FieldChanges {
  const [first, ...others] = all;
  if (first === undefined) return createFieldChanges([]);
  const merged = others.reduce(
    (before, next) => ({
      removed: before.removed.union(next.removed),
      removes: before.removes,
      added: [
        ...before.added.filter(({ lowerName }) => !next.removed.has(lowerName)),
        ...next.added,
      ],
      varies: [...before.varies, ...next.varies],
      isSame: before.isSame && next.isSame,
      usesUser: before.usesUser || next.usesUser,
      usesNonce: before.usesNonce || next.usesNonce,
    }),
    first,
  );
  return { ...merged, removes: anyCase(merged.removed) };
}

/** Whether a set of lower-case names has a name; a name that it has seen costs one look-up. */
function anyCase(names: ReadonlySet<string>): (name: string) => boolean {
  const known = new Map<string, boolean>();
  return (name) => {
    const answer = known.get(name);
    if (answer !== undefined) return answer;
    const isOne = names.has(name.toLowerCase());
    // Sources may send any name.
    if (known.size < namesKnownMax) known.set(name, isOne);
    return isOne;
  };
}

const namesKnownMax = 256;

/**
 * The reply with changed fields, and with its guards whatever the changes say; waits for the user
 * if a field names one. All changes that people configure are made here.
 */
export function applyChanges(
  reply: Reply,
  request: TemplateRequest,
  changes: FieldChanges,
): Reply | Promise<Reply> {
  const apply = (): Reply => {
    const changed = changedFields(reply.fields, changes, request);
    const { guards } = reply;
    const fields = guards === undefined ? changed : guardedFields(changed, guards);
    if (changes.isSame) return { ...reply, fields };
    const { isReusable: _reusable, ...once } = reply;
    return { ...once, fields };
  };
  const waiting = changes.usesUser ? request.visitor.prepare(needsUser) : undefined;
  return waiting === undefined ? apply() : waiting.then(apply);
}

function changedFields(
  before: FieldList,
  { removes, added, varies }: FieldChanges,
  request: TemplateRequest,
): FieldList {
  const fields: string[] = [];
  for (let at = 0; at + 1 < before.length; at += 2) {
    const [name = '', value = ''] = [before[at], before[at + 1]];
    if (!removes(name)) fields.push(name, value);
  }
  for (const { name, value } of added) {
    const text = value(request);
    if (text !== undefined) fields.push(name, text);
  }
  const names = varies.flatMap(({ value }) => value(request)?.split(',') ?? []);
  return names.length === 0 ? fields : withVary(fields, ...names.map((name) => name.trim()));
}

/** Whether a rule is for the answers of a source to requests for a path. */
type AppliesTo = (source: string, request: Pick<TemplateRequest, 'origin' | 'path'>) => boolean;

function compileRule({ origin, paths, hasPlaceholders = false, source }: HeaderRule): AppliesTo {
  const isOfAll = paths.includes('*');
  const matchers = paths.map((pattern) => {
    if (hasPlaceholders && pattern.includes('/:')) {
      return (path: string) => matchesSegments(pattern, path);
    }
    const parts = pattern.split('*');
    return (path: string) => matchesParts(parts, path);
  });
  return (of, request) =>
    (source === undefined || source === of) &&
    coversOrigin(origin, request.origin) &&
    (isOfAll || matchers.some((matches) => matches(request.path)));
}

/** Whether a path matches a pattern, in time that is linear in its length for each `*`. */
export function matchesPattern(pattern: string, path: string): boolean {
  return matchesParts(pattern.split('*'), path);
}

/** The same for the parts of a pattern between its `*`. */
function matchesParts(parts: readonly string[], path: string): boolean {
  const [first = ''] = parts;
  if (parts.length === 1) return path === first;
  const last = parts.at(-1) ?? '';
  if (!path.startsWith(first) || path.length < first.length + last.length) return false;
  let at = first.length;
  for (const part of parts.slice(1, -1)) {
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
