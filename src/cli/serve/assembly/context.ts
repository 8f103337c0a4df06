import type { BackgroundTasks, TaskState } from '../../../core/background/tasks.ts';
import type { Passwords } from '../../../modules/access/passwords.ts';
import type { RateParts } from '../../../modules/rates/rates.ts';
import type { createWrongKeys } from '../../../core/operations/keys/authenticate.ts';
import type { KeyRates } from '../../../core/operations/keys/key-rates.ts';
import type { KeyUseRecorder } from '../../../modules/keys/key-use-recorder.ts';
import type { AnonymousWrites } from '../../../modules/tables/rows/anonymous-writes.ts';
import type {
  CertificateState,
  ConfigurationState,
} from '../../../modules/status/server-status.ts';
import type { OperationParts } from '../../../modules.ts';
import type { RowCheckProgress } from '../../../modules/tables/operations/row-checks.ts';
import type { AssetFiles } from '../../../modules/assets/asset-files.ts';
import type { MissingFiles } from '../../../modules/assets/missing-files.ts';
import type { Variants } from '../../../modules/assets/variants.ts';
import type { AssetPages } from '../../../modules/assets/asset-pages.ts';
import type { VisitCounter } from '../../../modules/breadcrumbs/visit-counter.ts';
import type { CacheStore } from '../../../modules/cache/cache-store.ts';
import type { Compressors } from '../../../modules/compression/compressors.ts';
import type { TableHostState } from '../../../modules/hosts/host-follower.ts';
import type { LiveAccess } from '../../../modules/status/live-access.ts';
import type { Logs } from '../../../core/report/log.ts';
import type { MemoryUse } from '../../../core/report/memory-use.ts';
import type { GatherMetrics } from '../../../core/report/metrics.ts';
import type { StateWatcher } from '../../../modules/status/state-watcher.ts';
import type { ConsoleFiles } from '../../../modules/console/console-files.ts';
import type { PublicFileReplies } from '../../../core/http/content/page.ts';
import type { PublicFiles } from '../../../modules/console/public-files.ts';
import type { StoredPages } from '../../../modules/rules/pages/stored-pages.ts';
import type { SourceHealth } from '../../../modules/proxy/source-health.ts';
import type { ServerPlaces } from '../../../core/outbound/server-places.ts';
import type { SourceStatistics } from '../../../modules/proxy/source-statistics.ts';
import type { RenderedPages } from '../../../modules/rendering/rendered-pages.ts';
import type { RuleCache } from '../../../modules/rules/rule-cache.ts';
import type { OwnNames } from '../../../core/outbound/own-names.ts';
import type { OpenModules } from '../../../core/loader.ts';
import type { Emit } from '../../../core/log/events/emit.ts';
import type { Store } from '../../../core/log/store.ts';
import type { Tls } from '../../../core/server/tls/tls.ts';
import type { SignedInWatch } from '../../../modules/login/signed-in-watch.ts';

/** What lives as long as the process and does not depend on the configuration. */
export interface AppContext {
  readonly modules: OpenModules;
  readonly store: Store;
  readonly logs: Logs;
  readonly version: string;
  readonly emit: Emit;
  /** The names of this server in the requests that it sends. */
  readonly ownNames: OwnNames;
  /** The work in the background. */
  readonly tasks: BackgroundTasks;
  readonly content: ContentContext;
  readonly sources: SourceContext;
  readonly callers: CallerContext;
  readonly state: StateContext;
  /** The listeners, once there are any. */
  readonly port: {
    readonly tls: () => Pick<Tls, 'certificates' | 'acme'> | undefined;
    /** The port that plain HTTP is redirected to; undefined where no listener has TLS. */
    readonly tlsPort: () => string | undefined;
  };
  /** The open answers that end when their visitors sign out. */
  readonly signedIn: Pick<SignedInWatch, 'watch'>;
}

/** What pages and files are made of, and the memory of those that are made. */
export interface ContentContext {
  readonly rules: RuleCache;
  readonly publicFiles: PublicFiles;
  readonly consoleFiles: ConsoleFiles;
  readonly ownFiles: PublicFileReplies;
  readonly storedPages: StoredPages;
  readonly assetFiles: AssetFiles;
  /** The files that this node gets from its centre or cluster; undefined without one. */
  readonly missingFiles?: MissingFiles | undefined;
  /** Pictures in other sizes and formats. */
  readonly variants: Variants;
  readonly assetPages: AssetPages;
  readonly renderedPages: RenderedPages;
  /** Makes rendered pages that are apart from those of visitors. */
  readonly newRenderedPages: () => RenderedPages;
  readonly compressors: Compressors;
}

/** What the process knows of other servers: their answers, and how they are. */
export interface SourceContext {
  readonly answers: CacheStore;
  readonly health: SourceHealth;
  readonly statistics: SourceStatistics;
  readonly places: ServerPlaces;
}

/** What the process counts and remembers of visitors and keys. */
export interface CallerContext {
  readonly wrongKeys: ReturnType<typeof createWrongKeys>;
  readonly passwords: Passwords;
  readonly keyRates: KeyRates;
  readonly rates: RateParts;
  readonly keyUses: Pick<KeyUseRecorder, 'note' | 'count' | 'last' | 'counted'>;
  readonly anonymousWrites: AnonymousWrites;
  readonly visits: Pick<VisitCounter, 'count' | keyof OperationParts['visits']>;
  readonly requestVisits: OperationParts['requestVisits'];
}

/** What the process says about itself. */
interface StateContext {
  readonly started: string;
  readonly liveAccess: LiveAccess;
  readonly stateWatcher: StateWatcher;
  readonly status: () => ConfigurationState;
  readonly metricsText: () => Promise<string>;
  readonly gatherMetrics: GatherMetrics;
  readonly certificates: () => Promise<readonly CertificateState[]>;
  readonly memory: () => MemoryUse;
  readonly hostStates: () => readonly TableHostState[];
  readonly rowChecks: () => readonly RowCheckProgress[];
  readonly tasks: () => Promise<readonly TaskState[]>;
}
