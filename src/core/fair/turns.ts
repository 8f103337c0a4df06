/**
 * How long a piece of work runs before it waits for its next turn. A visitor waits for one turn at
 * each of the few steps of a request, so a turn is far shorter than a wait that people notice.
 */
export const turnMs = 5;

/** The turns of one piece of work on the event loop. */
export interface WorkTurns {
  /**
   * Whether the turn has ended, so that the next step has to wait; true before the first turn. It
   * is cheap enough to be asked before each step.
   */
  readonly isOver: () => boolean;
  /** Resolves when the next turn begins. Rejects with the signal's reason once that aborts. */
  readonly next: () => Promise<void>;
}

/** Work that may be interrupted wherever it yields. */
export type Steps<T> = Generator<undefined, T, undefined>;

/** Does the steps of a piece of work in turns. Rejects as they throw, and as `next` does. */
export async function inTurns<T>(steps: Steps<T>, turns: WorkTurns): Promise<T> {
  for (;;) {
    if (turns.isOver()) await turns.next();
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** Does the steps of a piece of work at once. */
export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** The turns that a piece of work gets before older ones of its caller, as a short one needs. */
const shortTurnsMax = 4;

/** A piece of work that waits for its next turn. */
interface Waiting {
  /** The number of the piece, in the order in which they came. */
  readonly number: number;
  /** Whether it has had more turns than a short one needs. */
  readonly isLong: boolean;
  readonly begin: () => void;
  readonly signal: AbortSignal | undefined;
  readonly refuse: (reason: unknown) => void;
}

/**
 * Shares the event loop of a thread among pieces of work: one of them runs for `turnMs`, then what
 * sockets and timers have to do, then the next one. Each caller has a line of its own and the lines
 * take turns, so that many pieces of one caller delay no other caller. Of the pieces of a caller a
 * short one is next; long ones end one after the other, in the order in which they came.
 */
export class EventLoop {
  readonly #monotonicMs: () => number;
  /** The lines by their callers; the first one is next. */
  readonly #lines = new Map<string, Waiting[]>();
  #isScheduled = false;
  #pieces = 0;

  /** `monotonicMs` measures durations. */
  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
  }

  /** The turns of a piece of work of a caller. */
  turns(caller: string, signal?: AbortSignal): WorkTurns {
    let endsAtMs = -Infinity;
    let taken = 0;
    this.#pieces += 1;
    const number = this.#pieces;
    return {
      isOver: () => this.#monotonicMs() >= endsAtMs,
      next: async () => {
        await this.#wait(caller, { number, isLong: taken >= shortTurnsMax, signal });
        taken += 1;
        endsAtMs = this.#monotonicMs() + turnMs;
      },
    };
  }

  #wait(caller: string, piece: Omit<Waiting, 'begin' | 'refuse'>): Promise<undefined> {
    const { promise, resolve, reject: refuse } = Promise.withResolvers<undefined>();
    const begin = (): void => {
      resolve(undefined);
    };
    const line = this.#lines.get(caller) ?? [];
    const after = line.findIndex((other) => isBefore(piece, other));
    line.splice(after === -1 ? line.length : after, 0, { ...piece, begin, refuse });
    this.#lines.set(caller, line);
    this.#schedule();
    return promise;
  }

  #schedule(): void {
    if (this.#isScheduled || this.#lines.size === 0) return;
    this.#isScheduled = true;
    setImmediate(this.#beginNext);
  }

  /** Begins one turn: what it runs until it waits again is in this turn of the event loop. */
  readonly #beginNext = (): void => {
    this.#isScheduled = false;
    for (const [caller, line] of this.#lines) {
      const next = line.shift();
      this.#lines.delete(caller);
      if (line.length > 0) this.#lines.set(caller, line);
      if (next === undefined) continue;
      if (next.signal?.aborted !== true) {
        next.begin();
        break;
      }
      // Nobody waits for it any more, so it takes no turn.
      next.refuse(next.signal.reason);
    }
    this.#schedule();
  };
}

/** Whether a piece of work has its turn before another one of the same caller. */
function isBefore(one: Piece, other: Piece): boolean {
  return one.isLong === other.isLong ? one.number < other.number : other.isLong;
}

type Piece = Pick<Waiting, 'number' | 'isLong'>;

/** The event loop of this thread. */
export const eventLoop = new EventLoop(() => performance.now());
