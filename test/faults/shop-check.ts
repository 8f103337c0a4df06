import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { postOperation } from '../harness.ts';
import { runWaymark } from '../process.ts';
import type { Came } from './hook-receiver.ts';
import type { Member } from './member.ts';
import type { Shop } from './shop-members.ts';

/** How long the members may take to be equal, and the deliveries to be complete. */
const healedMsMax = 60_000;

/** The writes that the members have acknowledged. */
export interface Acknowledged {
  /** The numbers of the sales of each counter, in order, and the ids of their events. */
  readonly sold: ReadonlyMap<string, { readonly numbers: number[]; readonly ids: string[] }>;
  /** The keys of the orders of each counter, in order. */
  readonly ordered: ReadonlyMap<string, string[]>;
  /** The newest content of each page rule. */
  readonly edited: ReadonlyMap<string, number>;
}

/** Waits until all outboxes are empty and all logs are equally long; returns the violations. */
export async function untilSettled({ members, apikey }: Shop): Promise<readonly string[]> {
  const status = async ({ url }: Member) =>
    (await postOperation(url, 'svc1.server.status', {}, { apikey }).catch(() => undefined))?.data;
  let states: readonly Awaited<ReturnType<typeof status>>[] = [];
  for (let waitedMs = 0; waitedMs < healedMsMax; waitedMs += 100) {
    states = await Promise.all(members.map(status));
    const [wanted, ...others] = states;
    const isSettled = others.every(
      (one) => one?.seq === wanted?.seq && one?.node.central.outbox.waiting === 0,
    );
    if (wanted !== undefined && isSettled) return [];
    await delay(100);
  }
  const found = states.map((one, at) => `${members[at]?.name}: ${JSON.stringify(one?.node)}`);
  return [`the nodes were not equal after ${healedMsMax / 1_000} s: ${found.join(' ')}`];
}

/** The violations in the rows of the centre, and in the logs and states of all members. */
export async function checkStored(
  { centre, members, apikey }: Shop,
  { sold, ordered, edited }: Acknowledged,
): Promise<readonly string[]> {
  const ask = async (name: string, v: object) =>
    (await postOperation(centre.url, name, v, { apikey })).data;
  const violations: string[] = [];
  const events = await allRows(async (before) =>
    ask('svc1.event.list', { type: 'shop.sale', limit: 1_000, ...(before && { before }) }),
  );
  const sales = events.map(({ data }) => data as { shop: string; n: number }).toReversed();
  for (const [shop, { numbers }] of sold) {
    const stored = sales.filter((one) => one.shop === shop).map(({ n }) => n);
    violations.push(...violationsOf(`${shop}: sales`, numbers, stored));
    if (stored.some((n, at) => at > 0 && n <= (stored[at - 1] ?? 0))) {
      violations.push(`${shop}: sales are stored in another order`);
    }
  }
  const rows = await allRows(async (after) =>
    ask('svc1.record.list', { table: 'orders', limit: 1_000, ...(after && { after }) }),
  );
  for (const [shop, numbers] of ordered) {
    const stored = rows.map(({ no }) => String(no)).filter((no) => no.startsWith(shop));
    violations.push(...violationsOf(`${shop}: orders`, numbers, stored));
  }
  for (const [id, k] of edited) {
    const { content } = await ask('svc1.userinterface.read', { id });
    if (k > 0 && content !== String(k)) violations.push(`the edit ${k} of ${id} is lost`);
  }
  const { seq } = await ask('svc1.server.status', {});
  const digests = new Set<string>();
  for (const { folder, name } of members) {
    const words = ['check', '--data', '--seq', String(seq), '--config', join(folder, 'server.ini')];
    const { code, out, err } = await runWaymark(words);
    if (code !== 0) violations.push(`${name}: ${err.trim()}`);
    digests.add(out.trim());
  }
  if (digests.size !== 1) violations.push(`the digests differ: ${[...digests].join(', ')}`);
  return violations;
}

/** A sentence for each acknowledged value that is lost or stored twice. */
function violationsOf<T>(what: string, acknowledged: readonly T[], stored: readonly T[]): string[] {
  const has = new Set(stored);
  const lost = acknowledged.filter((one) => !has.has(one));
  return [
    ...(lost.length > 0 ? [`${what}: ${lost.join()} are lost`] : []),
    ...(has.size < stored.length ? [`${what}: one is stored twice`] : []),
  ];
}

interface Page {
  readonly rows: readonly Record<string, unknown>[];
  readonly next?: number | string | null;
}

async function allRows(
  read: (from: number | string | undefined) => Promise<Page>,
): Promise<readonly Record<string, unknown>[]> {
  const all: Record<string, unknown>[] = [];
  for (let from: number | string | undefined; ;) {
    const { rows, next } = await read(from);
    all.push(...rows);
    if (next === null || next === undefined) return all;
    from = next;
  }
}

/**
 * Waits until the sales of a counter are delivered; returns a sentence for each missing one and
 * gap.
 */
export async function checkDelivered(
  shop: string,
  ids: readonly string[],
  came: Came,
): Promise<readonly string[]> {
  for (let waitedMs = 0; came.events.size < ids.length && waitedMs < healedMsMax; waitedMs += 100) {
    await delay(100);
  }
  const delivered = new Set(came.events.values());
  const missing = ids.filter((id) => !delivered.has(id)).length;
  const newest = Math.max(0, ...came.events.keys());
  return [
    ...(missing > 0 ? [`${shop}: ${missing} sales were not delivered`] : []),
    ...(newest !== came.events.size ? [`${shop}: the deliveries have gaps`] : []),
  ];
}
