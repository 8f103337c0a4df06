import { timedOut } from './failure.ts';

/** Calls a function once nothing has happened for a time. */
export class StalledTimer {
  readonly #timer: NodeJS.Timeout;
  #isStopped = false;

  constructor(timeoutMs: number, stalled: (error: Error) => void) {
    this.#timer = setTimeout(() => {
      stalled(timedOut());
    }, timeoutMs);
  }

  /** Begins the time again. */
  readonly restart = (): void => {
    if (!this.#isStopped) this.#timer.refresh();
  };

  /** Ends the time for good. */
  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }
}
