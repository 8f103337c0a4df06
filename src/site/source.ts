import { statusFor } from '../http/status.ts';
import { noBody, type Reply } from '../http/reply.ts';
import type { ContentRequest } from '../http/request.ts';
import type { SourceName, Tried, TriedBranch } from '../model/explanation.ts';
import { Failure } from '../model/failure.ts';
import type { Resolution } from '../model/found.ts';
import type { Answer } from './disk/files.ts';

/** What decides how a request is answered. */
export type Asked = Pick<
  ContentRequest,
  'method' | 'origin' | 'path' | 'query' | 'fields' | 'visitor'
>;

/**
 * One source of content (contract §3). Both of its functions stand on the same decisions; `opened`
 * counts the generic pages that a request has come through.
 */
export interface Source {
  readonly name: SourceName;
  /**
   * The answer; undefined where the source does not have the page. Throws or rejects with
   * `method_not_allowed` where it does not take the method, and with what it fails with itself.
   */
  respond(request: ContentRequest, opened: number): Answer;
  /** What respond would come to; reads only, and asks no other server. */
  look(asked: Asked, opened: number): Look;
}

/** What a look into a source came to; all candidates but the one that answers have lost. */
export interface Look extends Pick<Tried, 'candidates' | 'omitted'> {
  /** What is answered; undefined where the source does not have the page. */
  readonly answer: LookedAnswer | undefined;
}

/** What would be answered, and by whom. */
export interface LookedAnswer extends Outcome {
  readonly mount?: string;
  readonly id?: string;
  /** The branches of a breadcrumb. */
  readonly branches?: readonly TriedBranch[];
  /** Looks at further keys that it leads over. */
  readonly over?: readonly Tried[];
}

/** What is answered. */
export interface Outcome {
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
export function answerUnread(method: string): Reply {
  if (method === 'OPTIONS') return readOptionsReply;
  throw new Failure('method_not_allowed', 'This page can only be read.', { allow: readMethods });
}

/** Redirects that keep method and content of a request (RFC 9110 §15.4.8, §15.4.9). */
const keeping: ReadonlySet<number> = new Set([307, 308]);
const keptMethods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;

/**
 * The methods that a breadcrumb takes which comes to this; throws `method_not_allowed` where the
 * one asked with is not among them.
 */
export function methodsTaken(
  method: string,
  { status, target }: Pick<Resolution, 'status' | 'target'>,
): readonly string[] {
  const isKept = target !== undefined && keeping.has(status);
  const allow: readonly string[] = isKept ? keptMethods : readMethods;
  if (allow.includes(method)) return allow;
  const why = isKept ? '' : ': only a redirect by 307 or 308 takes other methods';
  throw new Failure('method_not_allowed', `This page can only be read${why}.`, { allow });
}

/** What answerUnread comes to; throws as it does. */
export function lookUnread(method: string): Outcome {
  const { status } = answerUnread(method);
  return { status };
}

/** The answer where no source has the page: throws `not_found` but to OPTIONS. */
export function answerAbsence(method: string): Reply {
  if (method === 'OPTIONS') return readOptionsReply;
  throw absence;
}

/** Made once: a stack would take a tenth of the time that such an answer takes, and say nothing. */
const absence = new Failure('not_found', 'There is no page here.');

/** What a decision comes to, a Failure being an answer as well. */
export function outcomeOf<T>(decide: () => T): T | Outcome {
  try {
    return decide();
  } catch (thrown) {
    if (!(thrown instanceof Failure)) throw thrown;
    return { status: statusFor(thrown), notes: [thrown.message] };
  }
}
