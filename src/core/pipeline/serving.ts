import type { AssetReader } from '../../modules/assets/asset.ts';
import type { AssetFiles } from '../../modules/assets/asset-files.ts';
import type { MissingFiles } from '../../modules/assets/missing-files.ts';
import type { AssetPages } from '../../modules/assets/asset-pages.ts';
import type { Visitor } from '../http/visitor.ts';
import type { VisitorRequest } from './incoming-request.ts';
import type { Rates } from '../fair/rates.ts';
import type { Config } from '../config/config.ts';
import type { AccessRules } from '../report/access-entry.ts';
import type { Caller } from '../values/key.ts';
import type { Tracer } from '../report/trace.ts';
import type { ConsoleFiles } from '../../modules/console/console-files.ts';
import type { PublicFileReplies } from '../http/content/page.ts';
import type { PublicFiles } from '../../modules/console/public-files.ts';
import type { Pipeline } from './pipeline.ts';
import type { ErrorPages } from './source.ts';
import type { Authenticate, CallerEnds } from '../operations/keys/authenticate.ts';
import type { Login } from '../../modules/login/login.ts';
import type { Execute } from '../operations/execute.ts';
import type { IndexPages } from '../../modules/console/index-pages.ts';
import type { PublicAnswers } from '../operations/http/public-answers.ts';

/**
 * All parts that answer requests under one configuration. A reload makes a new one; a request uses
 * one from start to end.
 */
export interface Serving {
  readonly config: Config;
  readonly version: string;
  readonly site: Pipeline & ErrorPages;
  /** Lets later reads see all commits so far; to be called when a request arrives. */
  readonly refresh: () => void;
  /**
   * A number that changes with each change of the log, whichever process wrote it, and each time at
   * which a page rule begins or ceases to answer.
   */
  readonly period: () => number;
  readonly execute: Execute;
  /** Whether this server has sent a request with this Via. */
  readonly isOwnRequest: (via: string) => boolean;
  readonly authenticate: Authenticate;
  /** Finds the properties of a visitor that a response may depend on. */
  readonly visitors: {
    visitorOf(incoming: VisitorRequest): Visitor;
    /**
     * The country of an address, or the one that a trusted proxy claims (ISO 3166-1); undefined if
     * it is not known, or not yet. It takes no time.
     */
    countryOf(address: string, claimed: string | undefined): string | undefined;
  };
  /** The sign-in by `[login]`; undefined without a provider. */
  readonly login: Login | undefined;
  /** Throws `unauthenticated` if the caller's key is revoked, or it or its session has ended. */
  readonly requireUnrevoked: (caller: Caller) => void;
  readonly callerEnds: CallerEnds;
  readonly publicFiles: PublicFiles;
  readonly consoleFiles: ConsoleFiles;
  readonly ownFiles: PublicFileReplies;
  /**
   * What modules answer below `{base}/svc1/` beside operations, by the first segment of the path;
   * `*` answers the paths that nothing else has. Each is a ServicePath.
   */
  readonly paths: ReadonlyMap<string, (serving: Serving, request: never) => unknown>;
  readonly indexPages: IndexPages;
  /** Returns the metrics of all processes on the port in the text format of Prometheus. */
  readonly metricsText: () => Promise<string>;
  readonly publicAnswers: PublicAnswers;
  /** The previews of drafts (docs/design/drafts.md#preview). */
  readonly previews: {
    /** The preview of a token at a time; undefined if there is none, or it has ended. */
    find(token: string, nowMs: number): DraftSite | undefined;
  };
  /** The assets of the live site. */
  readonly assets: AssetReader & {
    readonly files: AssetFiles;
    readonly pages: Pick<AssetPages, 'respond' | 'respondFromFile'>;
    /** Gets files that this server does not have; undefined for one that has its own. */
    readonly missing: Pick<MissingFiles, 'getSoon'> | undefined;
    /** Gives a file to the other nodes of a cluster. Rejects with `unavailable`. */
    readonly share: (sha256: string) => Promise<void>;
    /** The assets of an open draft, by its name or id; undefined if there is none. */
    readonly inDraft: (draft: string) => AssetReader | undefined;
    /** Creates the table of the assets, if there is none. Rejects with `conflict`. */
    readonly prepareTable: () => Promise<void>;
  };
  /** How often clients may ask; undefined without rates. */
  readonly rates: Rates | undefined;
  /** Begins the spans of requests; undefined without `[telemetry]`. */
  readonly tracer: Tracer | undefined;
  /** What changes the lines of the access log, or leaves them out. */
  readonly accessRules: AccessRules | undefined;
}

/** A draft that a browser previews. */
export interface DraftSite {
  readonly draft: { readonly id: string; readonly name: string };
  readonly site: Pick<Pipeline, 'respond'>;
  /** When the preview ends, in milliseconds since 1970. */
  readonly endMs: number;
  /** Whether its pages may run scripts: see createPreviewTrust. */
  readonly isTrusted: boolean;
}

/** The state of the site when a request arrives. */
export interface Moment {
  readonly serving: Serving;
  /** See Serving.period. */
  readonly period: number;
  /** Milliseconds since 1970. */
  readonly nowMs: number;
}
