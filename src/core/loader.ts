import type { Task } from './background/tasks.ts';
import type { Config } from './config/config.ts';
import type {
  Module,
  ModuleHost,
  ModuleProcess,
  ModuleReport,
  Offers,
  SharedOf,
} from './module.ts';
import type { Step } from './pipeline/pipeline.ts';
import type { ServicePath } from './operations/http/service-path.ts';
import type { OperationDefinition, OperationDescription } from './operations/operation.ts';

/** What all modules together add under one configuration. */
interface ProvisionedModules {
  /** By the first segment of the path below `{base}/svc1/`. */
  readonly paths: ReadonlyMap<string, ServicePath>;
  readonly offers: Partial<Offers>;
  readonly steps: readonly Step[];
  /** The work in the background, for the process that does it for all of them. */
  readonly tasks: readonly Task[];
  /** What their operations need. */
  readonly parts: object;
  /** Waits until running work has ended, then closes what was made for the configuration. */
  close(): Promise<void>;
}

/** The modules of a process, which are open. */
export class OpenModules {
  readonly #modules: readonly Module[];
  readonly #process: ModuleProcess;
  readonly #shared = new Map<string, unknown>();

  private constructor(modules: readonly Module[], process: Omit<ModuleProcess, 'sharedOf'>) {
    this.#modules = modules;
    this.#process = { ...process, sharedOf: this.sharedOf };
  }

  /** What a module has opened. */
  readonly sharedOf: SharedOf = <Shared>({ name }: Pick<Module<Shared>, 'name'>) =>
    this.#shared.get(name) as Shared;

  /** The operations of all modules. */
  get operations(): readonly OperationDefinition<never>[] {
    return operationsOf(this.#modules);
  }

  /**
   * Opens modules, each after those that it needs. Rejects as the first one does that cannot be
   * opened, and closes the others.
   */
  static async open(
    modules: readonly Module[],
    process: Omit<ModuleProcess, 'sharedOf'>,
  ): Promise<OpenModules> {
    const all = new OpenModules(inOrder(modules), process);
    try {
      for (const module of all.#modules) {
        all.#shared.set(module.name, await module.open?.(all.#process));
      }
    } catch (error) {
      await all.close();
      throw error;
    }
    return all;
  }

  /** Makes what depends on a configuration. */
  provision(settings: Config): ProvisionedModules {
    const offers: Partial<Offers> = {};
    const operations = (): readonly OperationDescription[] => this.operations;
    const host: ModuleHost = { ...this.#process, settings, operations, offers };
    const all = this.#modules.map((module) => {
      const provided = module.provision?.(host, this.#shared.get(module.name)) ?? {};
      Object.assign(offers, provided.offers);
      return provided;
    });
    return {
      offers,
      paths: new Map(all.flatMap(({ paths = {} }) => Object.entries(paths))),
      steps: all.flatMap(({ steps = [] }) => steps),
      tasks: all.flatMap(({ tasks = [] }) => tasks),
      parts: Object.assign({}, ...all.map(({ parts }) => parts)) as object,
      close: async () => {
        await Promise.all(all.map(async (provided) => provided.close?.()));
      },
    };
  }

  /** What this process says of its modules. */
  reports(): readonly ModuleReport[] {
    return this.#each((module, shared) => module.report?.(shared) ?? {});
  }

  /** Closes all modules, each before those that it needs. */
  async close(): Promise<void> {
    for (const module of this.#modules.toReversed()) {
      const { name } = module;
      if (this.#shared.has(name)) await module.close?.(this.#shared.get(name));
    }
  }

  #each<T>(ask: (module: Module, shared: unknown) => T): readonly T[] {
    return this.#modules.map((module) => ask(module, this.#shared.get(module.name)));
  }
}

/** The operations of modules. */
export function operationsOf(modules: readonly Module[]): readonly OperationDefinition<never>[] {
  return modules.flatMap(({ operations = [] }) => operations);
}

/** Paths below `{base}/svc1` that no module has. */
const corePaths = ['batch', 'engines', 'health', 'metrics', 'webhooks', 'ws'];

/** The names of modules, of their operations and of paths: no other module may have them. */
export function namesOf(modules: readonly Module[]): ReadonlySet<string> {
  const families = operationsOf(modules).map(({ name }) => name.split('.')[1] ?? '');
  return new Set([...modules.map(({ name }) => name), ...families, ...corePaths]);
}

/** Modules, each behind those that it needs. Throws for a circle, and for one that is missing. */
function inOrder(modules: readonly Module[]): readonly Module[] {
  const byName = new Map(modules.map((module) => [module.name, module]));
  const ordered = new Set<Module>();
  const add = (name: string, above: readonly string[]): void => {
    const module = byName.get(name);
    const way = [...above, name].join(' → ');
    if (module === undefined) throw new TypeError(`there is no module ${name}: ${way}`);
    if (ordered.has(module)) return;
    if (above.includes(name)) throw new TypeError(`modules need each other: ${way}`);
    for (const needed of module.needs ?? []) add(needed, [...above, name]);
    ordered.add(module);
  };
  for (const { name } of modules) add(name, []);
  return [...ordered];
}
