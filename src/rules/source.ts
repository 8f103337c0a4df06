import { statusFor } from '../http/status.ts';
import { noBody, type Reply } from '../http/reply.ts';
import type { ContentRequest } from '../http/request.ts';
import type { SourceName, Tried, TriedBranch } from '../model/explanation.ts';
import { Failure } from '../model/failure.ts';

/** An answer, at once or after bytes were read; undefined where there is nothing. */
export type ReplyOrPromise = Reply | undefined | Promise<Reply | undefined>;

/** What decides how a request is answered. */
export type PageRequest = Pick<
  ContentRequest,
  'method' | 'origin' | 'path' | 'query' | 'fields' | 'visitor'
>;

/**
 * One source of content (docs/design/requests.md#precedence). Both of its functions stand on the
 * same decisions; `opened` counts the generic pages that a request has come through.
 */
export interface ContentSource {
  readonly name: SourceName;
  /**
   * The answer; undefined where the source does not have the page. Throws or rejects with
   * `method_not_allowed` where it does not take the method, and with what it fails with itself.
   */
  respond(request: ContentRequest, opened: number): ReplyOrPromise;
  /** What respond would come to; reads only, and asks no other server. */
  explain(asked: PageRequest, opened: number): SourceExplanation;
}

/** What a look into a source came to; all candidates but the one that answers have lost. */
export interface SourceExplanation extends Pick<Tried, 'candidates' | 'omitted'> {
  /** What is answered; undefined where the source does not have the page. */
  readonly reply: ExplainedReply | undefined;
}

/** What would be answered, and by whom. */
export interface ExplainedReply extends ExpectedReply {
  readonly mount?: string;
  readonly id?: string;
  /** The branches of a breadcrumb. */
  readonly branches?: readonly TriedBranch[];
  /** Looks at further keys that it leads over. */
  readonly hops?: readonly Tried[];
}

/** What is answered. */
export interface ExpectedReply {
  /** HTTP status; null where only another server knows it. */
  readonly status: number | null;
  /** What is worth a sentence besides. */
  readonly notes?: readonly string[];
}

const readMethods = ['GET', 'HEAD', 'OPTIONS'] as const;

/** What OPTIONS is told of a page that takes some methods (RFC 9110 §9.3.7). */
export function optionsReply(allowed: readonly string[]): Reply {
  return { status: 204, fields: ['Allow', allowed.join(', ')], body: noBody, source: 'none' };
}

const readOptionsReply = optionsReply(readMethods);

/**
 * The answer of a page that can only be read to other methods than GET and HEAD: OPTIONS is told
 * so, all others throw `method_not_allowed`.
 */
export function readOnlyReply(method: string): Reply {
  if (method === 'OPTIONS') return readOptionsReply;
  throw new Failure('method_not_allowed', 'This page can only be read.', { allow: readMethods });
}

/** What answerUnread comes to; throws as it does. */
export function explainReadOnly(method: string): ExpectedReply {
  const { status } = readOnlyReply(method);
  return { status };
}

/** The answer where no source has the page: throws `not_found` but to OPTIONS. */
export function notFoundReply(method: string): Reply {
  if (method === 'OPTIONS') return readOptionsReply;
  throw notFound;
}

/** Made once: a stack would take a tenth of the time that such an answer takes, and say nothing. */
const notFound = new Failure('not_found', 'There is no page here.');

/** What a decision comes to, a Failure being an answer as well. */
export function replyOrFailure<T>(decide: () => T): T | ExpectedReply {
  try {
    return decide();
  } catch (thrown) {
    if (!(thrown instanceof Failure)) throw thrown;
    return { status: statusFor(thrown), notes: [thrown.message] };
  }
}
