import type { Reply } from '../http/reply.ts';
import type { ContentRequest } from '../http/request.ts';
import { Failure } from '../values/failure.ts';
import type { Exchange } from './exchange.ts';
import type { Explanation } from './explanation.ts';
import type { IncomingRequest } from './incoming-request.ts';
import {
  type ExplainedRequest,
  type PageRequest,
  type ReplyOrPromise,
  type SwitchedProtocol,
  notFoundReply,
  replyOrFailure,
} from './source.ts';

/**
 * The order of a request (docs/design/requests.md#precedence): the places of its steps, from the
 * first to the last one. A request has its connection, its head and its client before it gets here.
 */
export const places = [
  'head',
  // Answers that come before all others: to an ACME server, and redirects from http to https.
  'challenge',
  'https',
  // How often its client may ask.
  'rates',
  // Waymark's own paths, and the console's own origin.
  'service',
  'console',
  // All else is content, for websockets too. An answer ends when its visitor signs out,
  'content',
  'sign-in',
  // and a browser that previews a draft gets it as the draft has it.
  'preview',
  // Who may have the answer: asked again for each path that the request is led to.
  'access',
  // Redirects of the ini file and forced lines of files, then `[rewrite.<name>]`.
  'redirect',
  'rewrite',
  // The sources of content: the first one that has the page answers.
  'disk',
  'stored',
  'fetch',
  'lines',
  'fallback',
  // The answer of any step above gets its fields,
  'fields',
  // and caches may use it until another page rule answers its path.
  'freshness',
] as const;

/** The name of a place. */
export type StepPlace = (typeof places)[number];

/** The places whose steps change the answers of all others: they are the first to be called. */
const answerPlaces: readonly StepPlace[] = ['freshness', 'fields'];

/** The places of operations, and of a path inside the server. */
const contentPlaces: readonly StepPlace[] = [
  'freshness',
  ...places.slice(places.indexOf('access'), places.indexOf('fields')),
];

/** What a client has sent, and the ways to answer it that are not content of the site. */
export interface SentRequest {
  /** The request as the client has sent it: with the cookies of the server, for example. */
  readonly incoming: IncomingRequest;
  readonly exchange: Exchange;
  readonly answers: {
    /** The answer of a path below `{base}/svc1`. */
    service(path: string, request: StepRequest): ReplyOrPromise;
    /** The content of the site, which `next` makes, or what opens another protocol. */
    content(request: StepRequest, next: (request: StepRequest) => ReplyOrPromise): ReplyOrPromise;
    /** The answer to a failure. */
    failed(thrown: unknown, request: StepRequest): Promise<Reply>;
  };
}

/** A request on its way. */
export interface StepRequest extends ContentRequest {
  /** Absent for a request of an operation. */
  readonly sent?: SentRequest;
}

/** The result of opening another protocol: the connection to a source, or another answer. */
type OpenedOrPromise = SwitchedProtocol | Reply | Promise<SwitchedProtocol | Reply>;

/**
 * One step of a request's way. It answers, or calls `next`, perhaps with another request, and may
 * change the answer. What it leaves out is as if it called `next`.
 */
export interface Step {
  /** Where it stands; steps of one place stand in the order in which they are given. */
  readonly at: StepPlace;
  /** Whether two requests for one URL may get different answers; no 404 stands for others then. */
  readonly mayDiffer?: true;
  /**
   * The reply; undefined if nothing answers a path inside the server. Without a promise if the
   * answer is known at once. Throws or rejects with the Failure that is the answer.
   */
  handle?(request: StepRequest, next: (request: StepRequest) => ReplyOrPromise): ReplyOrPromise;
  /** Explains `handle` with the same decisions; reads only, and sends no request. */
  explain?(
    request: ExplainedRequest,
    next: (request: ExplainedRequest) => Explanation,
  ): Explanation;
  /**
   * The same for a request for another protocol, such as a websocket. Throws or rejects as
   * `handle`.
   */
  open?(request: StepRequest, next: (request: StepRequest) => OpenedOrPromise): OpenedOrPromise;
  /** Whether `open` passes a request on to a source, as far as its URL and head tell. */
  forwards?(request: UpgradeHead, next: (request: UpgradeHead) => boolean): boolean;
}

/** The parts of a request that decide whether a source gets its Upgrade. */
type UpgradeHead = Pick<ContentRequest, Exclude<keyof PageRequest, 'visitor'>>;

/** What answers a path that a request is led to inside the server; its `inside` says how. */
export type InsidePaths = Required<Pick<Pipeline, 'explain' | 'forwards' | 'open'>> & {
  /** The reply; undefined if nothing answers. Throws or rejects as Step.handle. */
  handle(request: StepRequest): ReplyOrPromise;
};

/** The list of steps, as the transports, operations and explain use it. */
export interface Pipeline {
  /**
   * The reply to a request for content. Throws or rejects with `not_found` if no source has the
   * page, with `method_not_allowed` if the source does not allow the method, and with the source's
   * own failures.
   */
  respond(request: ContentRequest): Reply | Promise<Reply>;
  /**
   * The answer to a request that a client has sent: every step takes part, and a failure is an
   * answer, too.
   */
  answer(request: StepRequest & { readonly sent: SentRequest }): Reply | Promise<Reply>;
  /** Explains respond; reads only, and sends no request to another server. */
  explain(request: PageRequest): Explanation;
  /**
   * Asks for another protocol. Throws or rejects as respond, and with `not_found` if no source has
   * one there.
   */
  open(request: StepRequest): OpenedOrPromise;
  /** Whether a source gets a request for another protocol. */
  forwards(request: UpgradeHead): boolean;
  /** An answer whose fields were changed, which caches may use no longer than before. */
  limited(request: ContentRequest, reply: Reply): ReplyOrPromise;
}

/**
 * Makes the list of the steps that `make` returns, in the order of their places; they may lead
 * requests to paths inside the server.
 */
export function createPipeline(make: (inside: InsidePaths) => readonly Step[]): Pipeline {
  const inside: InsidePaths = {
    handle: (request) => handle(request),
    explain: (request) => explainPath(request),
    open: (request) => open(request),
    forwards: (request) => forwards(request),
  };
  const given = make(inside);
  const isAnswer = (place: StepPlace): boolean => answerPlaces.includes(place);
  const order = [...answerPlaces, ...places.filter((place) => !isAnswer(place))];
  const all = order.flatMap((place) => given.filter(({ at }) => at === place));
  const ofContent = all.filter(({ at }) => contentPlaces.includes(at));
  const handles = (steps: readonly Step[]) =>
    steps.flatMap((step) => step.handle?.bind(step) ?? []);
  const isForAll = all.every(({ mayDiffer }) => mayDiffer !== true);
  const nothing = ({ method, inside: way }: StepRequest): ReplyOrPromise =>
    way === undefined ? notFoundReply(method, isForAll) : undefined;
  const handle = chain(handles(ofContent), nothing);
  const beforeAnswer = handles(all.filter(({ at }) => !isAnswer(at)));
  const answer = chain(
    handles(all.filter(({ at }) => isAnswer(at))),
    caught(chain(beforeAnswer, nothing)),
  );
  const open = chain<StepRequest, OpenedOrPromise>(
    all.flatMap((step) => step.open?.bind(step) ?? []),
    () => {
      throw new Failure('not_found', 'There is no websocket here.');
    },
  );
  const forwards = chain<UpgradeHead, boolean>(
    all.flatMap((step) => step.forwards?.bind(step) ?? []),
    () => false,
  );
  const fresh = handles(all.filter(({ at }) => at === 'freshness'));
  const explainStep = (step: Step) => step.explain?.bind(step) ?? [];
  const explainPath = chain(ofContent.flatMap(explainStep), explainNothing);
  return {
    // The last one throws where nothing answers a path that a client asks for.
    respond: handle as Pipeline['respond'],
    answer: answer as Pipeline['answer'],
    explain: chain(all.flatMap(explainStep), explainNothing),
    open,
    forwards,
    limited: (request, reply) => chain(fresh, () => reply)(request),
  };
}

/** Turns what steps throw into the answer of the request. */
function caught(next: (request: StepRequest) => ReplyOrPromise) {
  return (request: StepRequest): ReplyOrPromise => {
    const fail = (thrown: unknown): ReplyOrPromise => {
      if (request.sent === undefined) throw thrown;
      return request.sent.answers.failed(thrown, request);
    };
    try {
      const reply = next(request);
      return reply instanceof Promise ? reply.catch(fail) : reply;
    } catch (thrown) {
      return fail(thrown);
    }
  };
}

/** Calls steps in their order, each with the function that calls the next one; then `last`. */
function chain<R, A>(
  steps: readonly ((request: R, next: (request: R) => A) => A)[],
  last: (request: R) => A,
): (request: R) => A {
  return steps.reduceRight<typeof last>((next, step) => (request) => step(request, next), last);
}

function explainNothing({ method }: ExplainedRequest): Explanation {
  const { status } = replyOrFailure(() => notFoundReply(method));
  return { winner: null, status, tried: [], notes: [] };
}
