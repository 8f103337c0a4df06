import { reasonOf, type Log } from '../report/log.ts';
import type { Metric, ProcessMetrics } from '../report/metrics.ts';
import { Failure } from '../values/failure.ts';
import { pause, retryUntilAborted } from './retry-loop.ts';

/** Work in the background, until it is stopped. */
export interface Task {
  /** For metrics and `server.status`: `certificate_renewal`. Tasks of one kind share it. */
  readonly name: string;
  /** What stops after an error, as a sentence begins: `Certificate renewal`. */
  readonly title: string;
  /** What holds until it begins again, a sentence for the log. */
  readonly meanwhile?: string;
  /**
   * Works until the signal aborts; if it resolves before, the task has ended. After an error it is
   * called again. It calls `well` when it has done what it is for, so that the next error is
   * logged and has a short pause again; a call that lasts for `taskWellMs` counts the same.
   */
  readonly run: (signal: AbortSignal, well: () => void) => Promise<void>;
  /** The pauses before it is called again, if they are not those of all tasks. */
  readonly retryMs?: { readonly minMs: number; readonly maxMs: number };
  /** Called with each error, besides the line in the log. */
  readonly failed?: (error: unknown) => void;
}

/** A task that was started. */
export interface RunningTask {
  /** Resolves when the task has ended, by itself or because it was stopped. Never rejects. */
  readonly over: Promise<void>;
  /** Aborts its signal; resolves when it has ended, after `taskStopMs` at most. */
  readonly stop: () => Promise<void>;
}

/** The tasks of one name, as `server.status` shows them. */
export interface TaskState {
  readonly task: string;
  /** `waiting` if one of them has stopped after an error, and is called again at `next`. */
  readonly state: 'running' | 'waiting';
  /** Errors in a row, of the one with the most. */
  readonly failures: number;
  /** The last error of that one, until it works again. */
  readonly problem: string | null;
  /** ISO 8601, UTC. */
  readonly next: string | null;
}

/** The metrics and the tasks of one process. */
export interface ProcessState extends ProcessMetrics {
  readonly tasks: readonly TaskState[];
}

interface TasksParts {
  readonly log: Log;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly monotonicMs: () => number;
  readonly wait?: typeof pause | undefined;
}

/** The state of one task. */
interface Progress {
  failures: number;
  problem: string | undefined;
  /** When it is called again; undefined while it runs. */
  nextMs: number | undefined;
}

/** All tasks of a name, of which there may be one for each hook or table. */
interface TaskKind {
  readonly running: Set<Progress>;
  errors: number;
}

/** The pauses after an error: at first, and after many. */
const retryMs = { minMs: 1_000, maxMs: 300_000 } as const;

/** After how much time without an error a task works well. */
export const taskWellMs = 60_000;

/** How long a stop waits for a task. */
const taskStopMs = 30_000;

/**
 * Runs all work in the background of a process. No error ends a task for good, and none ends the
 * process: the log says once what has stopped and why, and the task begins again after a pause
 * that grows (docs/design/background.md).
 */
export class BackgroundTasks {
  readonly #parts: TasksParts;
  readonly #kinds = new Map<string, TaskKind>();
  readonly #running = new Set<RunningTask>();

  constructor(parts: TasksParts) {
    this.#parts = parts;
  }

  /** Starts a task: its first call begins before this returns. */
  start(task: Task): RunningTask {
    const ending = new AbortController();
    const kind = this.#kindOf(task.name);
    const progress: Progress = { failures: 0, problem: undefined, nextMs: undefined };
    kind.running.add(progress);
    const over = this.#keep(task, { kind, progress, signal: ending.signal }).finally(() => {
      kind.running.delete(progress);
      this.#running.delete(running);
    });
    const running: RunningTask = {
      over,
      stop: async () => {
        ending.abort();
        await this.#stopped(task, over);
      },
    };
    this.#running.add(running);
    return running;
  }

  /** Stops all tasks. */
  async stop(): Promise<void> {
    await Promise.all([...this.#running].map((one) => one.stop()));
  }

  /** The states of all tasks that were started, a line for each name. */
  states(): readonly TaskState[] {
    return [...this.#kinds].map(([task, { running }]) => {
      const most = (one: Progress, other: Progress): number => other.failures - one.failures;
      const [worst] = [...running].toSorted(most);
      const { failures = 0, problem = null, nextMs } = worst ?? {};
      const next = nextMs === undefined ? null : new Date(nextMs).toISOString();
      return { task, state: next === null ? 'running' : 'waiting', failures, problem, next };
    });
  }

  metrics(): readonly Metric[] {
    const kinds = [...this.#kinds];
    const isWaiting = ({ nextMs }: Progress): boolean => nextMs !== undefined;
    return [
      {
        type: 'counter',
        name: 'waymark_task_failures_total',
        help: 'Errors of the work in the background, by task; each was tried again.',
        samples: kinds.map(([task, { errors: value }]) => ({ labels: { task }, value })),
      },
      {
        type: 'gauge',
        name: 'waymark_tasks_waiting',
        help: 'Tasks in the background that have stopped after an error and wait to begin again.',
        samples: kinds.map(([task, { running }]) => ({
          labels: { task },
          value: [...running].filter(isWaiting).length,
        })),
      },
    ];
  }

  #kindOf(name: string): TaskKind {
    const known = this.#kinds.get(name);
    if (known !== undefined) return known;
    const kind: TaskKind = { running: new Set(), errors: 0 };
    this.#kinds.set(name, kind);
    return kind;
  }

  async #keep(
    { title, meanwhile, run, failed, retryMs: pauses = retryMs }: Task,
    {
      kind,
      progress,
      signal,
    }: { readonly kind: TaskKind; readonly progress: Progress; readonly signal: AbortSignal },
  ): Promise<void> {
    const { log, now, monotonicMs, wait } = this.#parts;
    const attempt = async (succeeded: () => void): Promise<'done'> => {
      const beganMs = monotonicMs();
      const well = (): void => {
        succeeded();
        const { problem } = progress;
        [progress.failures, progress.problem] = [0, undefined];
        if (problem !== undefined) log.info({}, `${title} goes on.`);
      };
      progress.nextMs = undefined;
      try {
        await run(signal, well);
      } catch (error) {
        if (monotonicMs() - beganMs >= taskWellMs) well();
        throw error;
      }
      return 'done';
    };
    await retryUntilAborted(attempt, {
      ...{ ...pauses, signal, wait },
      failed(error, pauseMs) {
        kind.errors += 1;
        progress.failures += 1;
        progress.nextMs = now() + pauseMs;
        failed?.(error);
        const problem = problemOf(error);
        if (problem === progress.problem) return;
        progress.problem = problem;
        const retrying = `Retrying in ${secondsText(pauseMs)}.`;
        const text = [`${title} stopped: ${problem}`, meanwhile, retrying]
          .filter(Boolean)
          .join(' ');
        // A Failure is a state of the world, such as a centre that is away; all else has a stack.
        if (error instanceof Failure && error.code !== 'internal') log.warn({}, text);
        else log.error({ err: error }, text);
      },
    });
  }

  async #stopped({ title }: Task, over: Promise<void>): Promise<void> {
    const ended = new AbortController();
    const late = pause(taskStopMs, ended.signal).then(() => {
      if (ended.signal.aborted) return;
      const after = secondsText(taskStopMs);
      this.#parts.log.warn({}, `${title} has not ended ${after} after it was stopped.`);
    });
    await Promise.race([over, late]);
    ended.abort();
  }
}

/** The tasks of several processes, a line for each name: that of the one with the most errors. */
export function joinedStates(all: Iterable<TaskState>): readonly TaskState[] {
  const byName = new Map<string, TaskState>();
  for (const one of all) {
    const known = byName.get(one.task);
    if (known === undefined || one.failures > known.failures) byName.set(one.task, one);
  }
  return [...byName.values()];
}

/** Does the same at the beginning and then at intervals. Its errors are those of the task. */
export function atIntervals(
  everyMs: number,
  work: (signal: AbortSignal) => Promise<unknown> | undefined,
): Task['run'] {
  return async (signal, well) => {
    while (!signal.aborted) {
      await work(signal);
      well();
      await pause(everyMs, signal);
    }
  };
}

/** As `atIntervals`, for the first time after the first interval. */
export function afterIntervals(
  everyMs: number,
  work: (signal: AbortSignal) => Promise<unknown> | undefined,
): Task['run'] {
  return async (signal, well) => {
    await pause(everyMs, signal);
    await atIntervals(everyMs, work)(signal, well);
  };
}

/** The reason of an error as a sentence. */
function problemOf(error: unknown): string {
  const text = error instanceof Error ? reasonOf(error) : String(error);
  return /[.!?]$/.test(text) ? text : `${text}.`;
}

function secondsText(ms: number): string {
  const seconds = Math.max(1, Math.round(ms / 1000));
  return seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
}
