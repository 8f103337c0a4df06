import { AsyncLocalStorage } from 'node:async_hooks';
import type { Log } from '../report/log.ts';
import { Failure, failureFrom, isFailureCode } from '../values/failure.ts';
import type { CustomLog } from './contract.ts';

/** How long an answer of a module may take. */
const answerMsMax = 30_000;

/** The calls of a module that have not ended. */
const openCallsMax = 10_000;

/** How long a module may keep the event loop to itself until the log names it. */
const blockedMsMin = 100;

/** Lines of the log that a module may write in a minute. */
const linesPerMinute = 300;

/** The guard of the module whose code runs now, and of all that follows from it. */
const running = new AsyncLocalStorage<ModuleGuard>();

/**
 * Logs an exception that nothing catches, if it comes from a module: no answer waits for it.
 * Returns whether it does.
 */
export function isOfModule(uncaught: unknown): boolean {
  const guard = running.getStore();
  guard?.logUncaught(uncaught);
  return guard !== undefined;
}

/** Waits for work that Waymark does, not the module: it does not count as time of the module. */
type Others = <T>(work: () => Promise<T>) => Promise<T>;

interface GuardParts {
  readonly name: string;
  readonly log: Log;
  readonly monotonicMs: () => number;
  readonly answerMsMax?: number;
}

/**
 * Runs the code of a module that is not a part of Waymark, so that what it does wrong ends its own
 * answers only.
 */
export class ModuleGuard {
  readonly #parts: GuardParts;
  #open = 0;
  #lines = 0;
  #minute = -1;

  constructor(parts: GuardParts) {
    this.#parts = parts;
  }

  /** The log for the module: its lines name it. */
  get log(): CustomLog {
    const { log } = this.#parts;
    const write =
      (level: 'info' | 'warn' | 'error') =>
      (message: string, fields: object = {}) => {
        this.#write(() => {
          log[level]({ ...fields, module: this.#parts.name }, message);
        });
      };
    return { info: write('info'), warn: write('warn'), error: write('error') };
  }

  /** The source of its answers, in the access log and in failures. */
  get source(): string {
    return `module:${this.#parts.name}`;
  }

  /**
   * Calls a function of the module for an answer. Rejects with a Failure: its own one, `internal`
   * for all else that it throws, `gateway_timeout` if it takes too long, `unavailable` if too many
   * calls have not ended. The time of what the function waits for by `others` does not count.
   */
  async answer<T>(step: string, call: (others: Others) => T | Promise<T>): Promise<T> {
    const { name, answerMsMax: ms = answerMsMax } = this.#parts;
    if (this.#open >= openCallsMax) {
      const message = `The module ${name} has ${openCallsMax} answers that do not end.`;
      throw new Failure('unavailable', message, { source: this.source, retryAfterSeconds: 10 });
    }
    this.#open += 1;
    let timer: NodeJS.Timeout | undefined;
    const { promise: late, reject } = Promise.withResolvers<never>();
    const end = (): void => {
      const text = `The module ${name} has not answered within ${ms / 1000} s: ${step}.`;
      this.#write(() => {
        this.#parts.log.warn({ module: name, step }, text);
      });
      reject(new Failure('gateway_timeout', text, { source: this.source }));
    };
    const others: Others = async (work) => {
      clearTimeout(timer);
      try {
        // What Waymark does meanwhile is not the code of the module.
        return await running.exit(work);
      } finally {
        timer = setTimeout(end, ms);
      }
    };
    timer = setTimeout(end, ms);
    const called = this.#called(step, () => call(others)).finally(() => {
      this.#open -= 1;
    });
    // What it does behind the time limit is its own affair.
    called.catch(() => undefined);
    try {
      return await Promise.race([called, late]);
    } catch (thrown) {
      throw this.failureOf(step, thrown);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Does work of Waymark that the module has asked for. */
  outside<T>(work: () => T): T {
    return running.exit(work);
  }

  /** Calls a function of the module, and names it in the log if it blocks the event loop. */
  run<T>(step: string, call: () => T): T {
    const { name, log, monotonicMs } = this.#parts;
    const beganMs = monotonicMs();
    try {
      return running.run(this, call);
    } finally {
      const ms = Math.round(monotonicMs() - beganMs);
      if (ms >= blockedMsMin) {
        this.#write(() => {
          const text = `The module ${name} has blocked all other requests for ${ms} ms: ${step}.`;
          log.warn({ module: name, step, ms }, text);
        });
      }
    }
  }

  /** Logs what the module has thrown where nobody waits for it: in a timer, or behind an answer. */
  logUncaught(error: unknown): void {
    const { name, log } = this.#parts;
    this.#write(() => {
      log.error(
        { err: error, module: name },
        `The module ${name} has thrown outside of an answer.`,
      );
    });
  }

  /** What a module has thrown as a Failure, also if it has a copy of the class of its own. */
  failureOf(step: string, thrown: unknown): Failure {
    if (thrown instanceof Failure) return thrown;
    const { source } = this;
    if (thrown instanceof Error && thrown.name === 'Failure') {
      const { code, message } = thrown as Error & { readonly code?: unknown };
      if (isFailureCode(code) && code !== 'internal') return new Failure(code, message, { source });
    }
    const cause = new Error(`the module ${this.#parts.name} failed: ${step}`, { cause: thrown });
    return failureFrom(cause).of(source);
  }

  async #called<T>(step: string, call: () => T | Promise<T>): Promise<T> {
    return this.run(step, call);
  }

  #write(line: () => void): void {
    const { name, log, monotonicMs } = this.#parts;
    const minute = Math.floor(monotonicMs() / 60_000);
    if (minute !== this.#minute) [this.#minute, this.#lines] = [minute, 0];
    this.#lines += 1;
    if (this.#lines <= linesPerMinute) line();
    if (this.#lines === linesPerMinute) {
      const text = `The module ${name} has written ${linesPerMinute} lines in a minute.`;
      log.warn({ module: name }, `${text} The log leaves out its others of this minute.`);
    }
  }
}
