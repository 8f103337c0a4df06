import { eventLoop } from '../../core/fair/turns.ts';
import { type Visitor, needsUser } from '../../core/http/visitor.ts';
import type { IncomingRequest } from '../../core/pipeline/incoming-request.ts';
import type { Serving } from '../../core/pipeline/serving.ts';
import type { Log } from '../../core/report/log.ts';

/** How often open answers and websockets are ended whose visitors are no longer signed in … */
const signedInCheckMs = 2_000;

/** A request whose answer, or websocket, is still open. */
interface OpenRequest {
  readonly incoming: IncomingRequest;
  /** As whom its answer was begun. */
  readonly visitor: Visitor;
  /** Ends the answer or websocket. */
  readonly end: () => void;
}

/**
 * Ends long answers and websockets of sources once their visitor is no longer signed in: after a
 * session of `[login]` has ended, or its token has expired (docs/design/access.md). What was open
 * to a request that did not need to know its user stays open.
 */
export class SignedInWatch {
  readonly #open = new Set<OpenRequest>();
  readonly #serving: () => Serving;
  readonly #log: Log;
  readonly #timer: NodeJS.Timeout;
  #isChecking = false;

  constructor({ serving, log }: { readonly serving: () => Serving; readonly log: Log }) {
    this.#serving = serving;
    this.#log = log;
    this.#timer = setInterval(() => {
      void this.#check();
    }, signedInCheckMs);
    this.#timer.unref();
  }

  /**
   * Watches a request until the returned function is called; undefined for one whose user cannot
   * cease to be signed in.
   */
  watch(open: OpenRequest): (() => void) | undefined {
    const { config, login } = this.#serving();
    const { cookie, authorization } = open.incoming.fields;
    const hasUsers = login !== undefined || config.auth.jwtJwks !== undefined;
    if (!hasUsers || (cookie ?? authorization) === undefined) return undefined;
    this.#open.add(open);
    return () => {
      this.#open.delete(open);
    };
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#open.clear();
  }

  async #check(): Promise<void> {
    if (this.#isChecking || this.#open.size === 0) return;
    this.#isChecking = true;
    try {
      // Another process may have ended a session.
      this.#serving().refresh();
      const turns = eventLoop.turns('login');
      for (const one of this.#open) {
        if (turns.isOver()) await turns.next();
        if (await this.#isSignedIn(one)) continue;
        if (this.#open.delete(one)) one.end();
      }
    } catch (error) {
      // Tried again at the next interval.
      this.#log.error({ err: error }, 'cannot check whether visitors are still signed in');
    } finally {
      this.#isChecking = false;
    }
  }

  async #isSignedIn({ incoming, visitor }: OpenRequest): Promise<boolean> {
    const then = visitor.signedInUser();
    if (then === undefined) return true;
    const now = this.#serving().visitors.visitorOf(incoming);
    await now.prepare(needsUser);
    const user = now.signedInUser();
    return user?.name === then.name && user.provider === then.provider;
  }
}
