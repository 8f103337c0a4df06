import type { Task } from './background/tasks.ts';
import type { Config } from './config/config.ts';
import type { Emit } from './log/events/emit.ts';
import type { Store } from './log/store.ts';
import type { Execute } from './operations/execute.ts';
import type { ServicePath } from './operations/http/service-path.ts';
import type { OperationDefinition, OperationDescription } from './operations/operation.ts';
import type { Dialler } from './outbound/dialler.ts';
import type { Log } from './report/log.ts';
import type { CacheUse } from './report/memory-use.ts';
import type { GatherMetrics, Metric } from './report/metrics.ts';
import type { Step } from './pipeline/pipeline.ts';
import type { Tracer } from './report/trace.ts';

/**
 * One capability of the server, with all that belongs to it. `modules.ts` lists those of Waymark;
 * the core knows none of them by name. `Shared` is what it opens once a process, `Definition`
 * is the type of its operations.
 */
export interface Module<
  Shared = unknown,
  Definition extends OperationDefinition<never> = OperationDefinition<never>,
> {
  /** The name of its folder. */
  readonly name: string;
  /** The modules whose files it may import, and that have to be there with it; no circles. */
  readonly needs?: readonly string[];
  /** Its operations: HTTP, websocket, command line, documents and tools have them. */
  readonly operations?: readonly Definition[];
  /** Its commands; the code of one is loaded to run it. */
  readonly commands?: readonly CommandEntry[];
  /** Opens what outlives a reload. Rejects with a Failure that ends the start. */
  open?(process: ModuleProcess): Shared | Promise<Shared>;
  /**
   * Makes what depends on the configuration, before the former one ends. It opens no port, and
   * waits for nothing: a reload is one turn of the event loop.
   */
  provision?(host: ModuleHost, shared: Shared): Provided;
  /** What this process says of the module. */
  report?(shared: Shared): ModuleReport;
  /** Closes what `open` has opened; no request runs any more. */
  close?(shared: Shared): Promise<void>;
}

/** What operations together need. */
export type PartsOf<Definition> = (
  Definition extends OperationDefinition<infer Parts>
    ? [Parts] extends [never]
      ? never
      : (parts: Parts) => void
    : never
) extends (parts: infer All) => void
  ? All
  : never;

/** A module whose `provision` gives parts that its operations need. */
export function defineModule<Definition extends OperationDefinition<never>, Shared = unknown>(
  module: Module<Shared, Definition> & {
    provision?(
      host: ModuleHost,
      shared: Shared,
    ): Provided & { readonly parts?: Partial<PartsOf<Definition>> };
  },
): Module<Shared, Definition> {
  return module;
}

/** What a module adds under one configuration. */
interface Provided {
  /** What its operations need. */
  readonly parts?: object;
  /**
   * What answers below `{base}/svc1/` beside operations, by the first segment of the path: `docs`
   * for `/docs` and all below it, `*` for what nothing else answers.
   */
  readonly paths?: Readonly<Record<string, ServicePath>>;
  /** Its steps in the way of a request for a page. */
  readonly steps?: readonly Step[];
  /** What others find by its name, if the module is there. */
  readonly offers?: Partial<Offers>;
  /** The work that one process of the server does for all of them, until the next reload. */
  readonly tasks?: readonly Task[];
  /** Waits until its running work has ended, then closes what `provision` has made. */
  close?(): Promise<void>;
}

/** What a module gives to others, who find it by its name here and do not import the module. */
export interface Offers {
  /** The traces of requests and of what they lead to. */
  readonly tracing: Tracing;
  /** Whether the documentation is built, and so has an address. */
  readonly hasDocs: boolean;
  /** Runs an operation with all rights; `author` is in the history. Rejects with a Failure. */
  readonly run: (author: string, operation: string, v: object) => Promise<unknown>;
}

/** Begins traces, and adds to them what the server does for a request. */
interface Tracing {
  readonly tracer: Tracer;
  readonly dialler: (given: Dialler) => Dialler;
  readonly execute: (given: Execute) => Execute;
}

/** The process that opens a module. */
export interface ModuleProcess {
  /** The configuration that is in use now. */
  readonly config: () => Config;
  readonly store: Store;
  readonly log: Log;
  readonly emit: Emit;
  readonly version: string;
  /** The metrics of all processes of the server. */
  readonly gatherMetrics: GatherMetrics;
  /** Waymark's own files for browsers, and the built documentation. */
  readonly folders: { readonly public: string; readonly docs: string };
  readonly newId: () => string;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly random: () => number;
  /** What a module that this one needs has opened. */
  readonly sharedOf: SharedOf;
}

/** Finds what a module has opened. */
export type SharedOf = <Shared>(module: Pick<Module<Shared>, 'name' | 'open'>) => Shared;

/** The surroundings of a module under one configuration. */
export interface ModuleHost extends ModuleProcess {
  readonly settings: Config;
  /** The operations of all modules. */
  readonly operations: () => readonly OperationDescription[];
  /** What the modules offer; complete when all are provisioned. */
  readonly offers: Partial<Offers>;
}

/** What a module says of itself. */
export interface ModuleReport {
  readonly metrics?: readonly Metric[];
  readonly memory?: readonly CacheUse[];
}

/** A command of the command line. */
export interface CommandEntry {
  readonly name: string;
  /** Half a sentence for the list of commands. */
  readonly summary: string;
  /** Loads the function that adds its options and actions: see DefineCommand of `cli/`. */
  readonly load: () => Promise<unknown>;
}
