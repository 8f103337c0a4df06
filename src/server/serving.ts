import type { Config } from '../config/config.ts';
import type { Caller } from '../model/key.ts';
import type { PublicFileReplies, PublicFiles } from '../pages/public-files.ts';
import type { Site } from '../site/site.ts';
import type { Authenticate } from '../api/keys/authenticate.ts';
import type { Visitors } from '../visitors/visitor.ts';
import type { Execute } from '../api/execute.ts';
import type { Documents } from './documents.ts';
import type { IndexPages } from './index-pages.ts';
import type { PublicAnswers } from './public-answers.ts';

/**
 * Everything that answers requests under one configuration. A reload makes a new one; a request
 * keeps the one it started with to its end.
 */
export interface Serving {
  readonly config: Config;
  readonly site: Site;
  /**
   * Makes later reads see all that is committed by now: called when a request arrives.
   */
  readonly refresh: () => void;
  /** Seq of the newest change of the log, whichever process wrote it. */
  readonly seq: () => number;
  readonly execute: Execute;
  readonly authenticate: Authenticate;
  /** Finds out about the visitor of a request, as far as a response may depend on it. */
  readonly visitors: Visitors;
  /** Throws `unauthenticated` when the caller's key has been revoked. */
  readonly requireUnrevoked: (caller: Caller) => void;
  readonly publicFiles: PublicFiles;
  readonly ownFiles: PublicFileReplies;
  readonly documents: Documents;
  readonly indexPages: IndexPages;
  /** The metrics of all processes on the port, as Prometheus reads them. */
  readonly metricsText: () => Promise<string>;
  readonly publicAnswers: PublicAnswers;
}

/** The state of the site when a request arrives. */
export interface Moment {
  readonly serving: Serving;
  /** Seq of the newest change of the log. */
  readonly seq: number;
  /** Milliseconds since 1970. */
  readonly nowMs: number;
}
