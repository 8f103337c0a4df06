import { Failure } from '../../model/failure.ts';
import type { Databases } from '../databases.ts';
import { deliveryAliveMs, deliveryTakeOverMs } from '../limits.ts';

/**
 * Decides which of several nodes delivers (docs/design/cluster.md#deliveries): one whose name is in
 * the shared log, until it ends or no sign of it has come for deliveryTakeOverMs.
 */
export class DeliveryTurn {
  readonly #databases: Databases;
  readonly #parts: {
    readonly monotonicMs: () => number;
    readonly catchUp: () => Promise<void>;
    readonly member: string;
  };
  /** The writer and its last sign, as they were first seen. */
  #seen = { text: '', sinceMs: 0 };
  #signs: NodeJS.Timeout | undefined;

  /**
   * `member` names the data folder, whose processes take over from each other at once; `catchUp`
   * applies what the shared log has.
   */
  constructor(
    databases: Databases,
    parts: {
      readonly monotonicMs: () => number;
      readonly catchUp: () => Promise<void>;
      readonly member: string;
    },
  ) {
    this.#databases = databases;
    this.#parts = parts;
  }

  /** The name of a writer of this data folder. */
  nameOf(id: string): string {
    return `${id}@${this.#parts.member}`;
  }

  /** Rejects with `conflict` while another node delivers. */
  async ready(): Promise<void> {
    // The newest sign of another node, or its end, may not have come yet.
    await this.#parts.catchUp();
    this.require();
  }

  /** Throws `conflict` while another node delivers. */
  require(): void {
    const { delivery } = this.#databases;
    const writer = delivery.get('writer');
    if (writer === undefined || writer.endsWith(`@${this.#parts.member}`)) return;
    const text = `${writer} ${delivery.get('alive') ?? ''}`;
    const nowMs = this.#parts.monotonicMs();
    if (text !== this.#seen.text) this.#seen = { text, sinceMs: nowMs };
    if (nowMs - this.#seen.sinceMs >= deliveryTakeOverMs) return;
    throw new Failure('conflict', 'Another node delivers the webhooks of the cluster.');
  }

  /** Gives a sign from time to time, until `end` or until `sign` rejects. */
  begin(sign: () => Promise<void>): void {
    this.end();
    const signs = setInterval(() => {
      sign().catch((error: unknown) => {
        // Another node delivers by now; other errors pass.
        if (error instanceof Failure && error.code === 'conflict') clearInterval(signs);
      });
    }, deliveryAliveMs).unref();
    this.#signs = signs;
  }

  end(): void {
    clearInterval(this.#signs);
  }
}
