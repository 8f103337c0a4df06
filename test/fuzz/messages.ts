import type { Random } from './random.ts';
import { fieldText, jsonText, name, value } from './texts.ts';

const operations = [
  'userinterface.insert',
  'userinterface.edit',
  'userinterface.read',
  'userinterface.list',
  'userinterface.invalidate',
  'userinterface.explain',
  'userinterface.get',
  'userinterface.get_render',
  'userinterface.get_content',
  'userinterface.get_resolve',
  'userinterface.subscribe',
  'webhook.insert',
  'webhook.list',
  'event.insert',
  'event.list',
  'event.types',
  'key.list',
  'server.status',
  'cache.list',
  'session.authenticate',
  'nothing.at_all',
] as const;

/** The name of an operation, mostly one that exists. */
export function operation(random: Random): string {
  return `svc1.${random.pick(operations)}`;
}

/** The input of an operation: known fields with odd values, or anything. */
export function input(random: Random): unknown {
  if (random.chance(0.1)) return value(random, 3);
  const entries = Array.from(
    { length: random.below(6) },
    () => [name(random), value(random, 3)] as const,
  );
  const usual = random.chance(0.5) ? { path: '/page.html', kind: 'content' } : {};
  return { ...usual, ...Object.fromEntries(entries) };
}

/** A websocket message: an envelope, or another text. */
export function message(random: Random): string | Buffer {
  if (random.chance(0.1)) return jsonText(random);
  if (random.chance(0.05)) return Buffer.from(fieldText(random, 20_000), 'latin1');
  return JSON.stringify({
    a: operation(random),
    v: input(random),
    ...(random.chance(0.8) && { id: random.below(100) }),
    ...(random.chance(0.1) && { vk: fieldText(random, 300) }),
    ...(random.chance(0.1) && { qk: random.pick(['history', 'odd', '']) }),
  });
}
