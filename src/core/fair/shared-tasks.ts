import { clientName, type Release, type SharedLimit, type Sharer } from './shared-limit.ts';

/** Clients in whose lines one task waits: a crowd that asks for the same takes no more places. */
const linesOfTaskMax = 8;

interface Task<T> {
  readonly done: PromiseWithResolvers<T>;
  readonly act: () => Promise<T>;
  /** The names of the clients in whose lines it waits. */
  readonly clients: Set<string>;
  /** Aborts when it begins, so that it leaves the other lines. */
  readonly begun: AbortController;
  waiting: number;
}

/**
 * Tasks that run when it is the turn of a client that asks for them. A task that several clients
 * ask for at the same time runs once, in the turn that comes first: nobody waits in the line of
 * another client.
 */
export class SharedTasks<T> {
  readonly #limit: SharedLimit;
  readonly #tasks = new Map<string, Task<T>>();

  constructor(limit: SharedLimit) {
    this.#limit = limit;
  }

  /** The task of a name that waits or runs; undefined for none. */
  running(name: string): Promise<T> | undefined {
    return this.#tasks.get(name)?.done.promise;
  }

  /** Runs a task, or joins the one of its name; rejects as SharedLimit.acquire and the task do. */
  run(name: string, client: Sharer, act: () => Promise<T>): Promise<T> {
    const task = this.#tasks.get(name) ?? this.#add(name, act);
    const line = clientName(client);
    const joins = !task.clients.has(line) && task.clients.size < linesOfTaskMax;
    if (joins && !task.begun.signal.aborted) void this.#wait(task, client, line);
    return task.done.promise;
  }

  #add(name: string, act: () => Promise<T>): Task<T> {
    const done = Promise.withResolvers<T>();
    const begun = new AbortController();
    const task: Task<T> = { done, act, clients: new Set(), begun, waiting: 0 };
    this.#tasks.set(name, task);
    const forget = (): void => {
      this.#tasks.delete(name);
    };
    done.promise.then(forget, forget);
    return task;
  }

  async #wait(task: Task<T>, client: Sharer, line: string): Promise<void> {
    task.clients.add(line);
    task.waiting += 1;
    let release: Release;
    try {
      // At once if it can be: a caller may rely on it.
      const taken = this.#limit.tryAcquire(client);
      release = taken ?? (await this.#limit.acquire(client, 1, task.begun.signal));
    } catch (error) {
      task.waiting -= 1;
      if (task.waiting === 0 && !task.begun.signal.aborted) task.done.reject(error);
      return;
    }
    task.waiting -= 1;
    try {
      if (task.begun.signal.aborted) return;
      task.begun.abort();
      task.done.resolve(await task.act());
    } catch (error) {
      task.done.reject(error);
    } finally {
      release();
    }
  }
}
