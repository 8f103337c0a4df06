import { escapeHtml, pageFields, plainPage } from '../http/content/page.ts';
import { type FieldList, type Reply, statusFor, withoutFields } from '../http/reply.ts';
import { prefersHtml } from '../http/representation/negotiation.ts';
import { type DocumentedOperation, docsOf } from '../operations/http/failure-docs.ts';
import type { LimitLog } from '../report/limit-log.ts';
import { type Log, reasonOf } from '../report/log.ts';
import { STATUS_CODES } from './response-head.ts';
import { type Failure, type FailureCode, type Problem, failureFrom } from '../values/failure.ts';
import type { ClientAddress } from '../values/network/peer.ts';
import type { ErrorPages, FailedRequest } from './source.ts';

/** A failure in an envelope (docs/design/failures.md#failures). */
interface FailureMember {
  readonly code: string;
  readonly message: string;
  readonly field?: string;
  /** The problems of each field, if strict handling refuses a write. */
  readonly problems?: readonly Problem[];
  /** The log has the same id. */
  readonly id: string;
  /** The path of a page of the documentation that helps. */
  readonly docs?: string;
}

/** The log and the ids of failures. */
export interface FailureLogs {
  readonly log: Log;
  readonly limits: LimitLog;
  readonly newId: () => string;
}

/**
 * Makes a failure of any thrown value and logs it, under the id that the client gets
 * (docs/design/failures.md#failures).
 */
export function loggedFailure(
  { log, limits, newId }: FailureLogs,
  thrown: unknown,
  address: ClientAddress,
): { readonly failure: Failure; readonly id: string } {
  const failure = failureFrom(thrown);
  const id = newId();
  const { code, cause, field, limit, message, source } = failure;
  if (limit !== undefined) limits.passed(limit, address);
  if (code === 'internal') log.error({ err: cause, id, source }, 'request failed');
  else if (cause !== undefined) log.warn({ reason: reasonOf(cause), id, code, source }, message);
  else {
    const level = statusFor(failure) >= 500 && limit === undefined ? 'warn' : 'debug';
    log[level]({ id, code, field, address, source }, message);
  }
  return { failure, id };
}

/** The server of operations: where its documentation is, and which operations it has. */
interface OperationsServer {
  readonly config: { readonly server: { readonly base: string } };
  readonly execute: { find(name: string): DocumentedOperation | undefined };
}

/** Makes the `error` member of the envelope of an operation. */
export function failureMember(
  { config, execute }: OperationsServer,
  operation: string,
  failure: Failure,
  id: string,
): FailureMember {
  const { code, message, field, problems } = failure;
  const docs = docsOf(execute.find(operation), failure);
  return {
    code,
    message,
    ...(field !== undefined && { field }),
    ...(problems !== undefined && { problems }),
    id,
    ...(docs !== undefined && { docs: `${config.server.base}/svc1/docs/${docs}` }),
  };
}

/** Makes the answer of an operation that failed: `{"r", "error"}`. */
export function operationFailure(
  serving: OperationsServer,
  r: string,
  failure: Failure,
  id: string,
): Reply {
  const body = JSON.stringify({ r, error: failureMember(serving, r, failure, id) });
  return answer({ failure, id }, 'application/json', body);
}

/**
 * Makes the answer to a visitor of a page that fails: a small page for a browser, a line of text
 * for other clients.
 */
export function contentFailure(failure: Failure, id: string, accept: string | undefined): Reply {
  const status = statusFor(failure);
  const title = `${status} ${STATUS_CODES[status] ?? 'Error'}`;
  if (!prefersHtml(accept)) {
    return answer(
      { failure, id },
      'text/plain; charset=utf-8',
      `${title}\n${failure.message}\n(${id})\n`,
    );
  }
  const quote = `If you report this, quote ${escapeHtml(id)}`;
  const advice = advices[failure.code];
  const shown = advice === undefined ? '' : `\n<p>${advice}</p>`;
  const further =
    `${shown}${signedInText(failure)}\n<p><a href="/">Go to the front page</a></p>\n` +
    `<small>${quote}</small>`;
  const page = plainPage(title, escapeHtml(failure.message), further);
  return answer({ failure, id }, 'text/html; charset=utf-8', page);
}

/** The site's error page for a failure, with the fields of its reply; undefined without one. */
export async function errorPage(
  site: ErrorPages,
  reply: Reply,
  failed: FailedRequest,
): Promise<Reply | undefined> {
  const page = await site.errorPage(reply.status, failed);
  if (page === undefined) return undefined;
  const said = withoutFields(reply.fields, ...page.fields.map((name) => name.toLowerCase()));
  const fields = [...page.fields, ...withoutFields(said, 'content-length')];
  const { failureId, reason, isPrivate } = reply;
  const source = /^(?:access|rate):/.test(reply.source) ? reply.source : page.source;
  return {
    ...page,
    fields,
    source,
    ...(failureId && { failureId }),
    ...(reason && { reason }),
    ...(isPrivate && { isPrivate }),
  };
}

/**
 * The page of a site where nothing answers, as its visitors get it; a caller that asks for no type
 * gets that for people.
 */
export async function notFoundPage(
  { log, newId }: Pick<FailureLogs, 'log' | 'newId'>,
  site: ErrorPages,
  { failure, request }: { readonly failure: Failure; readonly request: FailedRequest },
): Promise<Reply> {
  const id = newId();
  const { code, message, source } = failure;
  log.debug({ id, code, address: request.address, source }, message);
  const { accept = 'text/html' } = request.fields;
  const reply = contentFailure(failure, id, accept);
  if (!prefersHtml(accept)) return reply;
  return (await errorPage(site, reply, request)) ?? reply;
}

/** Who is refused, and the link to sign out: a person may have chosen the wrong account. */
function signedInText({ signedIn }: Failure): string {
  if (signedIn === undefined) return '';
  const { as, signOut } = signedIn;
  const link = signOut === undefined ? '' : ` <a href="${escapeHtml(signOut)}">Sign out</a>`;
  return `\n<p>You are signed in as ${escapeHtml(as)}.${link}</p>`;
}

/** The advice to a visitor after a failure, in HTML. */
const advices: Readonly<Partial<Record<FailureCode, string>>> = {
  invalid: 'Check the address for typing mistakes.',
  not_found: 'Check the address for typing mistakes, or look for the page from the front page.',
  unauthenticated: 'Sign in first, then open the page again.',
  forbidden: 'If you should have access, ask the people who run this site.',
  conflict: 'Load the page again, and repeat what you did.',
  too_large: 'Send less at a time.',
  rate_limited: 'Too many requests have come from your network. Wait a minute, then try again.',
  internal: 'The fault is on this site, not with you. Try again later.',
  bad_gateway:
    'This page comes from another server, which does not answer as it should. Try again in a few ' +
    'minutes.',
  gateway_timeout:
    'This page comes from another server, which takes too long. Try again in a few minutes.',
  unavailable: 'Wait a moment, then load the page again.',
  storage_full: 'What you sent was not stored. The site can still be read; try again later.',
};

function answer(
  { failure, id }: { readonly failure: Failure; readonly id: string },
  contentType: string,
  text: string,
): Reply {
  const bytes = Buffer.from(text);
  const further: FieldList = [
    ...(failure.allow ? ['Allow', failure.allow.join(', ')] : []),
    ...(failure.retryAfterSeconds === undefined
      ? []
      : ['Retry-After', String(failure.retryAfterSeconds)]),
    ...(failure.websocketVersion === undefined
      ? []
      : ['Sec-WebSocket-Version', failure.websocketVersion]),
    ...(failure.code === 'unauthenticated'
      ? ['WWW-Authenticate', failure.challenge ?? 'apikey, Bearer']
      : []),
    ...(failure.fields ?? []),
  ];
  return {
    status: statusFor(failure),
    fields: [
      'Content-Type',
      contentType,
      'Content-Length',
      String(bytes.length),
      'Cache-Control',
      'no-store',
      ...pageFields,
      ...further,
    ],
    body: { kind: 'bytes', bytes },
    source: failure.source ?? 'none',
    failureId: id,
    reason: failure.reason ?? failure.code,
    ...(failure.isPrivate && { isPrivate: failure.isPrivate }),
  };
}
