import { dirname, join } from 'node:path';
import { atIntervals } from '../background/tasks.ts';
import { type Reply, noBody } from '../http/reply.ts';
import type { ContentRequest } from '../http/request.ts';
import type { Module, ModuleHost, ModuleProcess } from '../module.ts';
import type { ServicePath } from '../operations/http/service-path.ts';
import type { OperationDefinition } from '../operations/operation.ts';
import { passContentOn } from '../pipeline/body.ts';
import type { Step } from '../pipeline/pipeline.ts';
import type { ReplyOrPromise } from '../pipeline/source.ts';
import { Failure } from '../values/failure.ts';
import type { Json } from '../values/json/json.ts';
import type { Config } from '../config/config.ts';
import { importModule } from '../config/module-import.ts';
import type {
  CustomHandler,
  CustomModule,
  CustomProcess,
  CustomProvided,
  CustomStep,
} from './contract.ts';
import { ModuleGuard } from './module-guard.ts';
import { type ShownReply, replyOf, shownReply, webRequest } from './web-messages.ts';

/** The folder of the data folder that has those of modules. */
const modulesFolder = 'modules';

/** What a module has opened, and what runs its code. */
interface OpenedModule {
  readonly guard: ModuleGuard;
  readonly process: CustomProcess;
  readonly shared: unknown;
}

/** The modules that a configuration names. Rejects with `invalid` for one that cannot be loaded. */
export async function customModules({
  modules,
  file,
}: Pick<Config, 'modules' | 'file'>): Promise<readonly Module[]> {
  const loaded = Object.entries(modules).map(async ([name, { from }]) => {
    const imported = await importModule(from, dirname(file));
    if (!('refused' in imported)) return customModule({ name, custom: imported.module });
    throw new Failure('invalid', `[module.${name}] cannot be loaded: ${imported.refused}`);
  });
  return Promise.all(loaded);
}

/** A module of the ini file. */
interface NamedModule {
  /** The name of its section. */
  readonly name: string;
  readonly custom: CustomModule;
}

/**
 * A module of `[module.<name>]` as the loader takes it: its code runs within a guard, so that what
 * it throws ends its own answers only.
 */
function customModule({ name, custom }: NamedModule): Module<OpenedModule> {
  return {
    name,
    operations: operationsOf({ name, custom }),
    async open(process) {
      const opened = openedIn(name, process);
      const { guard } = opened;
      try {
        const shared = await guard.answer('open', () => custom.open?.(opened.process));
        return { ...opened, shared };
      } catch (error) {
        const cause = error instanceof Failure ? (error.cause ?? error) : error;
        throw new Failure('invalid', `[module.${name}] cannot be opened: ${reasonOf(cause)}`, {
          cause,
        });
      }
    },
    provision(host, opened) {
      const { guard } = opened;
      const provided = provide({ name, custom }, host, opened);
      if (provided instanceof Failure) return { parts: { [partsOf(name)]: { failed: provided } } };
      const { parts, paths = {}, steps = [], tasks = [] } = provided;
      return {
        parts: { [partsOf(name)]: { guard, parts } },
        paths: { [name]: pathOf(paths, guard) },
        steps: steps.map((step) => stepOf(name, step, guard)),
        tasks: tasks.map((task) => ({
          name: `module_${name}`,
          title: `The task ${task.name} of the module ${name}`,
          run: atIntervals(task.everyMs, (signal) =>
            guard.answer(`task ${task.name}`, () => task.run(signal)),
          ),
        })),
        close: async () => {
          await guard.answer('close', () => provided.close?.()).catch(reported(host, name));
        },
      };
    },
    async close({ guard, process, shared }) {
      await guard
        .answer('close', () => custom.close?.(shared))
        .catch((error: unknown) => {
          process.log.error('The module could not be closed.', { err: error });
        });
    },
  };
}

/** The member of the parts of operations that those of a module have. */
function partsOf(name: string): string {
  return `module ${name}`;
}

function openedIn(name: string, { config, log }: ModuleProcess): Omit<OpenedModule, 'shared'> {
  const guard = new ModuleGuard({ name, log, monotonicMs: () => performance.now() });
  const { server, file } = config();
  return {
    guard,
    process: {
      name,
      folder: join(server.data, modulesFolder, name),
      iniFolder: dirname(file),
      log: guard.log,
    },
  };
}

/** What a module adds to a configuration; the failure of its answers if it cannot use that. */
function provide(
  { name, custom }: NamedModule,
  host: ModuleHost,
  { guard, process, shared }: OpenedModule,
): CustomProvided | Failure {
  try {
    const { from: _from, ...settings } = host.settings.modules[name] ?? {};
    const run = async (operation: string, v: object = {}): Promise<unknown> => {
      if (host.offers.run === undefined) throw new TypeError('the server has not started yet');
      const { run: runOperation } = host.offers;
      return guard.outside(() => runOperation(guard.source, operation, v));
    };
    const own = { ...process, settings, run };
    return guard.run('provision', () => custom.provision?.(own, shared)) ?? {};
  } catch (thrown) {
    host.log.error({ err: thrown, module: name }, `[module.${name}] cannot use its settings.`);
    const message = `The module ${name} cannot use its settings; the log of the server says why.`;
    return new Failure('unavailable', message, { source: guard.source });
  }
}

function reported({ log }: ModuleHost, name: string): (error: unknown) => void {
  return (error) => {
    log.error({ err: error, module: name }, `The module ${name} could not be closed.`);
  };
}

interface ModuleParts {
  readonly guard: ModuleGuard;
  readonly parts: unknown;
  readonly failed?: Failure;
}

function operationsOf({ name, custom }: NamedModule): readonly OperationDefinition<never>[] {
  return (custom.operations ?? []).map((operation) => {
    const { scope, effect, summary, input, output } = operation;
    const run = (bag: Readonly<Record<string, ModuleParts>>) => async (v: unknown) => {
      const own = bag[partsOf(name)];
      if (own === undefined || own.failed !== undefined) throw own?.failed ?? new TypeError(name);
      const { guard, parts } = own;
      const data = await guard.answer(`operation ${operation.name}`, async () => {
        return plainData(await operation.run(v as never, parts));
      });
      return { kind: 'data', data } as const;
    };
    return { name: `svc1.${name}.${operation.name}`, scope, effect, summary, input, output, run };
  });
}

/** The data of an answer as JSON has it. Throws TypeError for what JSON cannot have. */
function plainData(data: unknown): Json {
  const text = JSON.stringify(data ?? null) as string | undefined;
  if (text === undefined) throw new TypeError('the answer of the operation is no JSON');
  return JSON.parse(text) as Json;
}

/** What answers below `{base}/svc1/<name>/`. */
function pathOf(paths: Readonly<Record<string, CustomHandler>>, guard: ModuleGuard): ServicePath {
  return (_serving, { path, exchange, incoming }) => {
    const [, , first = ''] = path.split('/', 3);
    const handler = Object.hasOwn(paths, first) ? paths[first] : undefined;
    if (handler === undefined) return undefined;
    const { body, head } = exchange;
    if (body !== undefined) passContentOn(body);
    const { target, fields, address } = incoming;
    const request = webRequest({ ...target, method: head.method, fields, body });
    if (request === undefined) return undefined;
    const step = `path ${first}`;
    return guard.answer(step, async () => {
      return replyOf(await handler(request, { address }), guard.source);
    });
  };
}

/** The place of each kind of step in the list of all. */
const places = { response: 'access', source: 'disk', fallback: 'fallback' } as const;

/** A step of a module in the list of all steps. */
function stepOf(name: string, own: CustomStep, guard: ModuleGuard): Step {
  const { name: title, at, about } = own;
  const step = `step ${title}`;
  return {
    at: places[at],
    mayDiffer: true,
    handle(request, next) {
      // An answer to a client is changed once, not again for each page inside of it.
      if (at === 'response' && request.inside !== undefined) return next(request);
      const shown = webRequest(request);
      if (shown === undefined) return next(request);
      return answerStep(shown, { guard, step, own, request, next });
    },
    explain(request, next) {
      const explained = next(request);
      const note = `The module ${name} has a step here, which may answer: ${about}`;
      return { ...explained, notes: [...explained.notes, note] };
    },
  };
}

async function answerStep(
  shown: Request,
  {
    guard,
    step,
    own,
    request,
    next,
  }: {
    readonly own: CustomStep;
    readonly guard: ModuleGuard;
    readonly step: string;
    readonly request: ContentRequest;
    readonly next: (request: ContentRequest) => ReplyOrPromise;
  },
): Promise<Reply | undefined> {
  let found: ShownReply | undefined;
  let isNothing = false;
  const { address } = request;
  const made = await guard.answer(step, async (others) => {
    const answer = await own.handle(
      shown,
      async () => {
        const reply = await others(async () => next(request));
        isNothing = reply === undefined;
        found = shownReply(reply ?? { status: 404, fields: [], body: noBody, source: 'none' });
        return found.response;
      },
      { address },
    );
    if (found === undefined) return replyOf(answer, guard.source);
    if (isNothing && answer === found.response) return undefined;
    return found.back(answer, guard.source);
  });
  if (made === undefined) return undefined;
  // The step may decide otherwise about the next request.
  const { isReusable: _reusable, admits: _admits, isCurrent: _current, ...once } = made;
  return once;
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
