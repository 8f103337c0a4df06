import type { Duplex } from 'node:stream';
import { type FieldList, type Reply, noBody, statusFor } from '../http/reply.ts';
import type { ContentRequest, RequestTarget } from '../http/request.ts';
import { Failure } from '../values/failure.ts';
import type {
  AccessExplanation,
  BranchExplanation,
  ExplainedSource,
  Explanation,
  SourceName,
  Winner,
} from './explanation.ts';

/** A reply, or a promise if it has to be read or fetched; undefined if there is none. */
export type ReplyOrPromise = Reply | undefined | Promise<Reply | undefined>;

/** The parts of a request that decide which source answers it, and how. */
export type PageRequest = Pick<
  ContentRequest,
  'method' | 'origin' | 'path' | 'sentPath' | 'query' | 'fields' | 'visitor' | 'inside'
>;

/** A request that is explained, and the source before this one that answers it, if there is one. */
export interface ExplainedRequest extends PageRequest {
  readonly winner?: Winner;
}

/**
 * One source of content (docs/design/requests.md#precedence). Both of its functions make the same
 * decisions.
 */
export interface ContentSource {
  readonly name: SourceName;
  /** Whether a promise of `respond` may resolve to undefined; otherwise only its result may be. */
  readonly mayMiss?: true;
  /**
   * The reply; undefined if the source does not have the page. Throws or rejects with
   * `method_not_allowed` if the page does not allow the method, and with the source's own failures.
   */
  respond(request: ContentRequest): ReplyOrPromise;
  /** Explains respond; reads only, and sends no request to another server. */
  explain(request: PageRequest): SourceExplanation;
}

/** The reply of a source, and why; each candidate has a loss, except the one that replies. */
export interface SourceExplanation extends Pick<ExplainedSource, 'candidates' | 'omitted'> {
  /** Undefined if the source does not have the page. */
  readonly reply: ExplainedReply | undefined;
  /** What answers the path that the request is led to inside the server; it decides. */
  readonly then?: Explanation;
}

/** A reply as far as explain knows it, and the rule, proxy or mount that it comes from. */
export interface ExplainedReply extends ExpectedReply {
  readonly redirect?: string;
  readonly mount?: string;
  readonly proxy?: string;
  readonly id?: string;
  /** The access sections that its page rules name. */
  readonly access?: readonly AccessExplanation[];
  /** The branches of a breadcrumb. */
  readonly branches?: readonly BranchExplanation[];
  /** The look-ups of further keys that a breadcrumb leads over. */
  readonly hops?: readonly ExplainedSource[];
}

/** A connection to a source that has switched to another protocol. */
export interface SwitchedProtocol {
  /** The protocols, as the source names them in Upgrade. */
  readonly protocol: string;
  /** The fields of the 101 without Connection and Upgrade. */
  readonly fields: FieldList;
  /** The connection to the source, from the first byte after its 101. */
  readonly connection: Duplex;
  /** As in Reply. */
  readonly source: string;
}

/** The properties of a reply that are known before it is made. */
export interface ExpectedReply {
  /** HTTP status; null if another server decides it. */
  readonly status: number | null;
  /** Further sentences for the reader. */
  readonly notes?: readonly string[];
}

const readMethods = ['GET', 'HEAD', 'OPTIONS'] as const;

/** The reply to OPTIONS for a page that allows some methods (RFC 9110 §9.3.7). */
export function optionsReply(allowed: readonly string[]): Reply {
  return { status: 204, fields: ['Allow', allowed.join(', ')], body: noBody, source: 'none' };
}

const readOptionsReply = optionsReply(readMethods);

/**
 * The reply of a read-only page to methods other than GET and HEAD: Allow for OPTIONS; throws
 * `method_not_allowed` for all others.
 */
export function readOnlyReply(method: string): Reply {
  if (method === 'OPTIONS') return readOptionsReply;
  throw new Failure('method_not_allowed', 'This page can only be read.', { allow: readMethods });
}

/** Explains readOnlyReply; throws as it does. */
export function explainReadOnly(method: string): ExpectedReply {
  const { status } = readOnlyReply(method);
  return { status };
}

/**
 * The reply if no source has the page: Allow for OPTIONS; throws `not_found` for all others.
 * `isReusable` is whether the URL alone has decided that.
 */
export function notFoundReply(method: string, isReusable = false): Reply {
  if (method === 'OPTIONS') return readOptionsReply;
  throw isReusable ? notFoundForAll : notFound;
}

// Made once: capturing a stack would take a tenth of the time of a 404.
const nothingHere = 'There is no page here.';
const notFound = new Failure('not_found', nothingHere);
const notFoundForAll = new Failure('not_found', nothingHere, { isReusable: true });

/** The result of a decision; a Failure becomes a reply with its status. */
export function replyOrFailure<T>(decide: () => T): T | ExpectedReply {
  try {
    return decide();
  } catch (thrown) {
    if (!(thrown instanceof Failure)) throw thrown;
    return { status: statusFor(thrown), notes: [thrown.message] };
  }
}

/** The parts of a failed request that an error page is chosen by. */
export type FailedRequest = RequestTarget & Pick<ContentRequest, 'fields' | 'address' | 'visitor'>;

/** The error pages of a site. */
export interface ErrorPages {
  /** The site's own error page for a failure, with its status; undefined if it has none. */
  errorPage(status: number, failed: FailedRequest): Promise<Reply | undefined>;
}
