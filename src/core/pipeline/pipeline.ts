import type { Reply } from '../http/reply.ts';
import type { ContentRequest } from '../http/request.ts';
import { Failure } from '../values/failure.ts';
import type { Explanation } from './explanation.ts';
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
  // How often its client may ask.
  'rates',
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

/** The places whose steps change answers of the places before: they are the first to be called. */
const answerPlaces: readonly StepPlace[] = ['freshness', 'fields'];

/** The places of a path inside the server, and of operations. */
const contentPlaces: readonly StepPlace[] = places.slice(places.indexOf('access'));

/** The result of opening another protocol: the connection to a source, or another answer. */
type OpenedOrPromise = SwitchedProtocol | Reply | Promise<SwitchedProtocol | Reply>;

/**
 * One step of a request's way. It answers, or calls `next`, perhaps with another request, and may
 * change the answer. What it leaves out is as if it called `next`.
 */
export interface Step {
  /** Where it stands; steps of one place stand in the order in which they are given. */
  readonly at: StepPlace;
  /**
   * The reply; undefined if nothing answers a path inside the server. Without a promise if the
   * answer is known at once. Throws or rejects with the Failure that is the answer.
   */
  handle?(
    request: ContentRequest,
    next: (request: ContentRequest) => ReplyOrPromise,
  ): ReplyOrPromise;
  /** Explains `handle` with the same decisions; reads only, and sends no request. */
  explain?(
    request: ExplainedRequest,
    next: (request: ExplainedRequest) => Explanation,
  ): Explanation;
  /**
   * The same for a request for another protocol, such as a websocket. Throws or rejects as
   * `handle`.
   */
  open?(
    request: ContentRequest,
    next: (request: ContentRequest) => OpenedOrPromise,
  ): OpenedOrPromise;
  /** Whether `open` passes a request on to a source, as far as its URL and head tell. */
  forwards?(request: UpgradeHead, next: (request: UpgradeHead) => boolean): boolean;
}

/** The parts of a request that decide whether a source gets its Upgrade. */
type UpgradeHead = Pick<ContentRequest, Exclude<keyof PageRequest, 'visitor'>>;

/** What answers a path that a request is led to inside the server; its `inside` says how. */
export type InsidePaths = Required<Pick<Pipeline, 'explain' | 'forwards' | 'open'>> & {
  /** The reply; undefined if nothing answers. Throws or rejects as Step.handle. */
  handle(request: ContentRequest): ReplyOrPromise;
};

/** The list of steps, as the transports, operations and explain use it. */
export interface Pipeline {
  /**
   * The reply to a request for content. Throws or rejects with `not_found` if no source has the
   * page, with `method_not_allowed` if the source does not allow the method, and with the source's
   * own failures.
   */
  respond(request: ContentRequest): Reply | Promise<Reply>;
  /** Explains respond; reads only, and sends no request to another server. */
  explain(request: PageRequest): Explanation;
  /**
   * Asks for another protocol. Throws or rejects as respond, and with `not_found` if no source has
   * one there.
   */
  open(request: ContentRequest): OpenedOrPromise;
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
  const all = [...answerPlaces, ...places.filter((place) => !answerPlaces.includes(place))].flatMap(
    (place) => given.filter(({ at }) => at === place),
  );
  const ofContent = all.filter(({ at }) => contentPlaces.includes(at) && at !== 'fields');
  // A redirect may be for some visitors only. Without one, the URL alone has decided.
  const isForAll = all.every(({ at }) => at !== 'redirect' && at !== 'lines');
  const handle = chain(
    ofContent.flatMap((step) => step.handle?.bind(step) ?? []),
    ({ method, inside: way }: ContentRequest): ReplyOrPromise =>
      way === undefined ? notFoundReply(method, isForAll) : undefined,
  );
  const open = chain(
    ofContent.flatMap((step) => step.open?.bind(step) ?? []),
    (_: ContentRequest): OpenedOrPromise => {
      throw new Failure('not_found', 'There is no websocket here.');
    },
  );
  const forwards = chain(
    ofContent.flatMap((step) => step.forwards?.bind(step) ?? []),
    (_: UpgradeHead) => false,
  );
  const fresh = all
    .filter(({ at }) => at === 'freshness')
    .flatMap((step) => step.handle?.bind(step) ?? []);
  const explainStep = (step: Step) => step.explain?.bind(step) ?? [];
  const explainPath = chain(ofContent.flatMap(explainStep), explainNothing);
  return {
    // The last one throws where nothing answers a path that a client asks for.
    respond: handle as Pipeline['respond'],
    explain: chain(all.flatMap(explainStep), explainNothing),
    open,
    forwards,
    limited: (request, reply) => chain(fresh, () => reply)(request),
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
