import {
  type PublicFile,
  type PublicFileReplies,
  pageFields,
} from '../../../core/http/content/page.ts';
import { type Reply, isEmptyStatus, noBody, withoutFields } from '../../../core/http/reply.ts';
import type { ContentRequest, Fields } from '../../../core/http/request.ts';
import { type Explanation, winnerName } from '../../../core/pipeline/explanation.ts';
import type { ExpectedReply, PageRequest, ReplyOrPromise } from '../../../core/pipeline/source.ts';
import { type CanonicalPath, canonicalPath, requestPathOf } from '../../../core/values/path.ts';
import type { FoundRule, Rule } from '../rule.ts';
import { pageStatus } from './stored-pages.ts';

/**
 * Replies with the engine's generic page at each URL whose rule has an engine, without a redirect
 * (docs/design/rendering.md#generic-pages).
 */
export interface GenericPages {
  /** `open` gives the reply of another path of the site; undefined if there is none. */
  respond(
    found: FoundRule,
    request: ContentRequest,
    open: (request: ContentRequest) => ReplyOrPromise,
  ): Promise<Reply>;
  /** Explains respond; `explain` explains `open`. */
  explain(
    found: FoundRule,
    pageRequest: PageRequest,
    explain: (pageRequest: PageRequest) => Explanation,
  ): ExpectedReply;
}

const conditional: ReadonlySet<string> = new Set([
  'if-match',
  'if-none-match',
  'if-modified-since',
  'if-unmodified-since',
  'if-range',
  'range',
]);

/**
 * Creates the replies: with the rule's `enginedata.page`, else the engine's own page, else the
 * built-in one. The page is the same at every URL that shows it and keeps its validators; only the
 * status comes from the rule.
 */
export function createGenericPages({
  engines,
  builtInPage,
  ownFiles,
}: {
  readonly engines: readonly { readonly name: string; readonly page: string | undefined }[];
  /** The page for rules and engines that name none. */
  readonly builtInPage: PublicFile;
  readonly ownFiles: PublicFileReplies;
}): GenericPages {
  /** The path of a rule's generic page; undefined for the built-in one. */
  function pageOf(rule: Rule): CanonicalPath | undefined {
    const named = rule.enginedata?.page;
    const engine = engines.find(({ name }) => name === rule.engine);
    return canonicalPath(typeof named === 'string' ? named : (engine?.page ?? ''));
  }

  return {
    async respond({ stored }, request, open) {
      const { rule } = stored;
      const page = pageOf(rule);
      const method = methodFor(rule, request.method);
      const pageRequest =
        pageStatus(rule) === 200
          ? request
          : { ...request, method, fields: withoutConditions(request.fields) };
      const opened =
        page === undefined
          ? undefined
          : await open({ ...pageRequest, ...requestPathOf(page), query: '' });
      const reply = opened ?? sendBuiltIn(pageRequest);
      return withStatus(reply, statusFor(rule, reply.status), `rule:${rule.id}`);
    },
    explain({ stored }, pageRequest, explain) {
      const { rule } = stored;
      const path = pageOf(rule);
      if (path === undefined) return { status: statusFor(rule, 200), notes: [`${builtIn}.`] };
      const method = methodFor(rule, pageRequest.method);
      const { winner, status } = explain({
        ...pageRequest,
        ...requestPathOf(path),
        method,
        query: '',
      });
      if (winner === null) {
        return { status: statusFor(rule, 200), notes: [`${builtIn}: nothing is at ${path}.`] };
      }
      const answers = `${winnerName(winner)} answers${status === null ? '' : ` with ${status}`}`;
      return {
        status: status === null ? null : statusFor(rule, status),
        notes: [`It shows the generic page ${path}, which ${answers}.`],
      };
    },
  };

  function sendBuiltIn(request: ContentRequest): Reply {
    return ownFiles.respond(builtInPage, { fields: pageFields, source: 'none' }, request);
  }
}

const builtIn = 'It shows the built-in generic page';

/** The method for the generic page: HEAD if the rule's status allows no content. */
function methodFor(rule: Rule, method: string): string {
  return isEmptyStatus(pageStatus(rule)) ? 'HEAD' : method;
}

/** The rule's own status replaces its page's 200. */
function statusFor(rule: Rule, status: number): number {
  return status === 200 ? pageStatus(rule) : status;
}

function withStatus(reply: Reply, status: number, source: string): Reply {
  if (!isEmptyStatus(status) || reply.body.kind !== 'none') {
    return { ...reply, status, source };
  }
  const fields = withoutFields(reply.fields, 'content-type', 'content-length', 'content-encoding');
  // A 205 needs Content-Length: 0; a 204 and a 304 must not have the field (RFC 9110 §8.6).
  const length = status === 205 ? ['Content-Length', '0'] : [];
  return { status, fields: [...fields, ...length], body: noBody, source };
}

/**
 * The fields of a request without preconditions and ranges: they apply to a 200 only, and the rule
 * sets another status, such as 404.
 */
function withoutConditions(fields: Fields): Fields {
  const others = Object.entries(fields).filter(([name]) => !conditional.has(name));
  return Object.assign(Object.create(null) as Record<string, string>, Object.fromEntries(others));
}
