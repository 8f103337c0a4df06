import { pause } from '../../../core/background/retry-loop.ts';
import type { Databases } from '../../../core/log/databases.ts';
import type {
  ClusterTask,
  DeliveryWriter,
  PutDelivery,
} from '../../../core/log/shared/shared-log.ts';
import { Failure } from '../../../core/values/failure.ts';

/** How often a node that has a task of the cluster, such as deliveries, shows that it does it … */
const taskSignMs = 5_000;

/** … and after how long without a sign another one takes over. */
export const taskTakeOverMs = 15_000;

/** How often a node tries to get the turn of a task. */
const taskRetryMs = 2_000;

/** A task that one node of a cluster does at a time, and where the database `delivery` has it. */
interface SharedTask {
  /** The key for its holder: `<id>@<member>`, see memberOf. */
  readonly holderKey: string;
  /** A number that grows with each sign of the holder. */
  readonly signKey: string;
  /** The failure of a node that does not have its turn, a sentence. */
  readonly refusal: string;
}

/** The delivery of hooks. */
export const deliveryTask: SharedTask = {
  holderKey: 'writer',
  signKey: 'alive',
  refusal: 'Another node delivers the webhooks of the cluster.',
};

const [holderPrefix, signPrefix] = ['task ', 'sign '];

/** Any other task, by its name. */
function sharedTask(name: string): SharedTask {
  return {
    holderKey: `${holderPrefix}${name}`,
    signKey: `${signPrefix}${name}`,
    refusal: `Another node of the cluster has the task ${name}.`,
  };
}

/**
 * Whether a key of the database `delivery` names the holder of a task. A new cluster begins without
 * these.
 */
export function isTaskKey(key: string): boolean {
  const { holderKey, signKey } = deliveryTask;
  const isNamed = key.startsWith(holderPrefix) || key.startsWith(signPrefix);
  return key === holderKey || key === signKey || isNamed;
}

interface TurnParts {
  readonly monotonicMs: () => number;
  /** Applies what the shared log has. */
  readonly catchUp: () => Promise<void>;
  /**
   * The name of the data folder (memberOf). Processes of one folder take over from each other at
   * once.
   */
  readonly member: string;
}

/**
 * Decides which node does a task (docs/design/cluster.md#tasks): the one with its name in the
 * shared log, until it ends or has sent no sign for taskTakeOverMs.
 */
export class TaskTurn {
  readonly task: SharedTask;
  readonly #databases: Pick<Databases, 'delivery'>;
  readonly #parts: TurnParts;
  /** The holder and its last sign, as they were first seen. */
  #seen = { text: '', sinceMs: 0 };
  #signs: NodeJS.Timeout | undefined;

  constructor(databases: Pick<Databases, 'delivery'>, task: SharedTask, parts: TurnParts) {
    [this.#databases, this.task, this.#parts] = [databases, task, parts];
  }

  /** The name of a holder in this data folder. */
  nameOf(id: string): string {
    return `${id}@${this.#parts.member}`;
  }

  /** Rejects with `conflict` while another node does the task. */
  async ready(): Promise<void> {
    // The newest sign of another node, or its end, may not have come yet.
    await this.#parts.catchUp();
    this.require();
  }

  /** Throws `conflict` while another node does the task. */
  require(): void {
    const { delivery } = this.#databases;
    const { holderKey, signKey, refusal } = this.task;
    const holder = delivery.get(holderKey);
    if (holder === undefined || holder.endsWith(`@${this.#parts.member}`)) return;
    const text = `${holder} ${delivery.get(signKey) ?? ''}`;
    const nowMs = this.#parts.monotonicMs();
    if (text !== this.#seen.text) this.#seen = { text, sinceMs: nowMs };
    if (nowMs - this.#seen.sinceMs >= taskTakeOverMs) return;
    throw new Failure('conflict', refusal);
  }

  /** Gives a sign from time to time, until `end` or until `sign` rejects with `conflict`. */
  begin(sign: () => Promise<void>, lost?: () => void): void {
    this.end();
    const signs = setInterval(() => {
      sign().catch((error: unknown) => {
        // Another node has the task by now; other errors pass.
        if (!(error instanceof Failure) || error.code !== 'conflict') return;
        clearInterval(signs);
        if (signs === this.#signs) lost?.();
      });
    }, taskSignMs).unref();
    this.#signs = signs;
  }

  end(): void {
    clearInterval(this.#signs);
    this.#signs = undefined;
  }
}

/** Shows other nodes that the holder of a task still does it. */
export function putSign({ delivery }: Databases, { signKey }: SharedTask): void {
  delivery.putSync(signKey, String(Number(delivery.get(signKey) ?? 0) + 1));
}

/** Makes the ClusterTask of a name; `newId` makes the name of a holder. */
export function createClusterTask(
  databases: Databases,
  name: string,
  {
    writer,
    newId,
    ...parts
  }: TurnParts & { readonly writer: DeliveryWriter; readonly newId: () => string },
): ClusterTask {
  const task = sharedTask(name);
  const { holderKey, refusal } = task;
  const turn = new TaskTurn(databases, task, parts);
  let own: string | undefined;
  const write = (put: PutDelivery<void>): Promise<void> =>
    writer.write(() => {
      if (own === undefined || databases.delivery.get(holderKey) !== own) {
        throw new Failure('conflict', refusal);
      }
      return put;
    });
  return {
    async take(lost) {
      const holder = turn.nameOf(newId());
      await turn.ready();
      await writer.write(() => {
        turn.require();
        return ({ delivery }) => {
          delivery.putSync(holderKey, holder);
        };
      });
      own = holder;
      turn.begin(
        () =>
          write((to) => {
            putSign(to, task);
          }),
        lost,
      );
    },
    write,
    async release() {
      turn.end();
      if (own === undefined) return;
      await write(({ delivery }) => {
        delivery.removeSync(holderKey);
      });
      own = undefined;
    },
    holder: () => memberIn(databases.delivery.get(holderKey)),
  };
}

/** The member in the name of a holder. */
function memberIn(holder: string | undefined): string | undefined {
  return holder?.slice(holder.indexOf('@') + 1);
}

/** The tasks that have a holder, and its member. */
export function tasksIn({
  delivery,
}: Pick<Databases, 'delivery'>): readonly { readonly task: string; readonly member: string }[] {
  const named = [...delivery.getRange({ start: holderPrefix, end: `${holderPrefix}\uffff` })].map(
    ({ key, value }) => ({ task: key.slice(holderPrefix.length), member: memberIn(value) ?? '' }),
  );
  const deliverer = memberIn(delivery.get(deliveryTask.holderKey));
  return deliverer === undefined ? named : [{ task: 'webhooks', member: deliverer }, ...named];
}

/**
 * Does a task of the cluster whenever this node has its turn, until the signal aborts; that of
 * `work` also aborts when the turn is lost. Rejects as the shared log and `work` do.
 */
export async function doInTurn(
  task: ClusterTask,
  work: (signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const lost = new AbortController();
    try {
      await task.take(() => {
        lost.abort();
      });
      try {
        await work(AbortSignal.any([signal, lost.signal]));
      } finally {
        await task.release();
      }
    } catch (error) {
      // Another node has the turn, or has taken it over.
      if (!(error instanceof Failure) || error.code !== 'conflict') throw error;
    }
    await pause(taskRetryMs, signal);
  }
}
