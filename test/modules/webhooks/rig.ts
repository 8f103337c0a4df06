import { randomUUID } from 'node:crypto';
import type { TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { startSite, type TestSite } from '../../harness.ts';
import { startReceiver, type TestReceiver } from './receiver.ts';

/** Allows deliveries to the loopback, and retries at once. */
export const local = '[webhook]\nallow_private = 127.0.0.0/8\nretry = 1ms\n';
/** An event. */
export const sale = { type: 'sale.completed', data: { id: 'S-1', total: 12.5 } };

/** A row of webhook.deliveries. */
export interface Row {
  readonly seq: number;
  readonly attempt: number;
  readonly outcome: string;
  readonly status?: number;
  readonly error?: string;
  readonly answer?: string;
  readonly id: string;
  readonly last_seq?: number;
}

/** A site with a hook and its receiver. */
export interface Rig {
  readonly site: TestSite;
  readonly receiver: TestReceiver;
  /** The id of the hook of that receiver. */
  readonly id: string;
  /** Inserts an event; resolves to its id. */
  readonly insertEvent: (v?: object) => Promise<string>;
  /** Resolves to the attempts, oldest first, once there are at least this many. */
  readonly attempts: (count: number) => Promise<readonly Row[]>;
}

/** Starts a site with a hook, by default for sales and errors. */
export async function startRig(t: TestContext, hook: object = {}, ini = local): Promise<Rig> {
  const site = await startSite(t, { ini });
  const receiver = await startReceiver(t);
  const sent = { event: ['sale.completed', 'error.detected'], url: receiver.url, ...hook };
  const { id } = (await site.call('svc1.webhook.insert', sent)).data;
  return {
    site,
    receiver,
    id,
    insertEvent: async (v = sale) =>
      (await site.call('svc1.event.insert', v, { vk: randomUUID() })).data.id,
    attempts: async (count) => {
      for (;;) {
        const { rows } = (await site.call('svc1.webhook.deliveries', { id })).data;
        if (rows.length >= count) return rows.toReversed();
        await delay(5);
      }
    },
  };
}
