import { Failure } from '../model/failure.ts';
import type { FoundRule, Resolution } from '../model/found.ts';
import type { Candidate, StoredRule } from '../model/rule.ts';
import { noBody, type Reply } from '../http/reply.ts';
import type { ContentRequest, Fields } from '../http/request.ts';
import type { Disk } from './disk.ts';
import type { Fetch } from './fetch.ts';
import type { GenericPages } from './generic.ts';
import {
  candidatesFor,
  captureOf,
  inOrder,
  varyByLanguage,
  type CandidateReads,
} from './matcher.ts';
import { breadcrumbReply, resolveKey, resolveVisit } from './resolve.ts';
import type { SiteRules } from './rules.ts';
import type { StoredPages } from './stored.ts';

/** What the site's sources are made of. */
export interface SiteParts {
  readonly rules: SiteRules;
  readonly disk: Disk;
  readonly stored: StoredPages;
  readonly generic: GenericPages;
  readonly fetch: Fetch;
}

/**
 * The site under one configuration: serving, the get operations and tests all ask it, and it has
 * one precedence.
 */
export interface Site {
  /**
   * The answer to a request for content. Rejects with `not_found` when no source has it,
   * `method_not_allowed` when the source that has it does not take the method, and with what the
   * source itself fails with.
   */
  respond(request: ContentRequest): Promise<Reply>;
  /** The rule that answers an origin and path if no file does; undefined when there is none. */
  findRule(asked: {
    readonly origin: string;
    readonly path: string;
    readonly fields: Fields;
  }): FoundRule | undefined;
  resolve(asked: {
    readonly key: string;
    readonly origin: string;
    readonly query: string;
  }): Resolution;
  breadcrumb(resolution: Resolution): Reply;
  /** The same sources over page rules of another moment. */
  at(rules: CandidateReads & { rule(id: string): StoredRule | undefined }): Site;
}

const readMethods = ['GET', 'HEAD', 'OPTIONS'] as const;

/** Puts the sources of content together (contract §3.3). */
export function createSite(parts: SiteParts): Site {
  const { rules } = parts;
  return {
    async respond(request) {
      const reads = request.method === 'GET' || request.method === 'HEAD';
      const reply = await (reads ? readFrom(parts, request, 0) : answerOther(parts, request));
      if (reply === undefined) throw new Failure('not_found', 'There is no page here.');
      return reply;
    },
    findRule: (asked) => findStored(rules, asked) ?? findFetched(rules, asked),
    resolve: (asked) => resolveKey(rules, asked),
    breadcrumb: breadcrumbReply,
    at: (past) =>
      createSite({
        ...parts,
        rules: {
          exactRules: (origin, path) => past.exactRules(origin, path),
          wildcardRules: (origin, path) => past.wildcardRules(origin, path),
          ruleOf: ({ id }) => past.rule(id),
        },
      }),
  };
}

/**
 * THE precedence (contract §3.3) for GET and HEAD: the first source that has it answers. `opened`
 * counts the generic pages that the request has come through.
 */
async function readFrom(
  parts: SiteParts,
  request: ContentRequest,
  opened: number,
): Promise<Reply | undefined> {
  return (
    (await parts.disk.respond(request)) ??
    (await readStored(parts, request, opened)) ??
    (await readFetched(parts, request)) ??
    (await parts.disk.fallback(request))
  );
}

async function readStored(
  parts: SiteParts,
  request: ContentRequest,
  opened: number,
): Promise<Reply | undefined> {
  const { rules, stored, generic } = parts;
  const found = findStored(rules, request);
  if (found === undefined) return undefined;
  if (found.stored.rule.kind === 'resolve') {
    return breadcrumbReply(resolveVisit(rules, found.stored, request));
  }
  if (!isGeneric(found.stored)) return stored.respond(found, request);
  // A generic page shown by a generic page would have no end.
  if (opened > 0) return undefined;
  return generic.respond(found, request, (page) => readFrom(parts, page, opened + 1));
}

async function readFetched(
  { rules, fetch }: SiteParts,
  request: ContentRequest,
): Promise<Reply | undefined> {
  const found = findFetched(rules, request);
  return found && fetch.respond(found.stored.rule, request);
}

/**
 * Other methods reach a source only where it is a fetched one; a file or page in front of it hides
 * it from them too.
 */
async function answerOther(parts: SiteParts, request: ContentRequest): Promise<Reply | undefined> {
  const { rules, disk } = parts;
  const isOptions = request.method === 'OPTIONS';
  const inFront = await disk.respond({ ...request, method: 'HEAD' });
  if (inFront !== undefined || findStored(rules, request) !== undefined) {
    if (isOptions) return optionsReply;
    throw new Failure('method_not_allowed', 'This page can only be read.', { allow: readMethods });
  }
  if (isOptions && !takesOptions(findFetched(rules, request))) return optionsReply;
  return readFetched(parts, request);
}

function findStored(rules: SiteRules, asked: Asked): FoundRule | undefined {
  return find(rules, asked, ({ kind }) => kind !== 'content.fetch');
}

function findFetched(rules: SiteRules, asked: Asked): FoundRule | undefined {
  return find(rules, asked, ({ kind }) => kind === 'content.fetch');
}

function find(
  rules: SiteRules,
  asked: Asked,
  isSource: (candidate: Candidate) => boolean,
): FoundRule | undefined {
  const candidates = candidatesFor(rules, asked).filter(isSource);
  const [winner] = inOrder(candidates, asked.fields);
  const stored = winner && rules.ruleOf(winner);
  if (stored === undefined) return undefined;
  return {
    stored,
    capture: captureOf(stored.rule.path, asked.path),
    variesByLanguage: varyByLanguage(candidates),
  };
}

type Asked = Parameters<Site['findRule']>[0];

/**
 * Whether a rule is answered with a generic page: an engine, or a record to edit, and no body of
 * its own.
 */
function isGeneric({ rule }: StoredRule): boolean {
  if (rule.content !== undefined) return false;
  return rule.engine !== undefined || rule.kind !== 'content';
}

function takesOptions(found: FoundRule | undefined): boolean {
  const methods = found?.stored.rule.enginedata?.methods;
  return Array.isArray(methods) && methods.includes('OPTIONS');
}

const optionsReply: Reply = {
  status: 204,
  fields: ['Allow', readMethods.join(', ')],
  body: noBody,
  source: 'none',
};
