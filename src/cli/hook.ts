import type { Hook } from '../model/hook.ts';
import type { JsonObject } from '../model/json.ts';
import { clientCommand, table, type Act, type Done } from './client.ts';
import { deliveries, replay, test } from './hook-deliveries.ts';
import { requireNoMore } from './options.ts';
import { record, recordActs, requireId } from './record-acts.ts';
import { callService } from './service.ts';

const records = recordActs({
  family: 'svc1.webhook',
  noun: 'hook',
  command: 'hook',
  filters: { event: 'text', text: 'text' },
  listLines: (rows) =>
    table(
      ['ID', 'STATE', 'EVENTS', 'DELIVERED TO', 'NAME'],
      (rows as unknown as readonly Hook[]).map(({ id, active, event, method, url, name }) => [
        ...[id, active ? 'active' : 'paused', event.join(','), `${method} ${url}`, name ?? ''],
      ]),
    ),
});

const insert: Act = {
  ...records.insert,
  async *run(words, given) {
    for await (const done of records.insert.run(words, given)) {
      yield { ...done, notes: [...(done.notes ?? []), ...secretNotes(done)] };
    }
  },
};

function secretNotes({ answer }: Done): readonly string[] {
  const { secret } = answer.data as JsonObject;
  if (secret !== undefined) return ['The secret is shown only this once.'];
  return ['This was inserted before; its secret was shown then, and is not again.'];
}

const rotate: Act = {
  takes: {},
  writes: true,
  async *run([id, ...more], { service, vk }) {
    requireNoMore(more);
    const v = { id: requireId(id, 'hook') };
    const answer = await callService(service, 'svc1.webhook.rotate', { v, vk });
    const { secret, previous_until: until } = answer.data as JsonObject;
    yield {
      answer,
      lines: typeof secret === 'string' ? [secret] : [],
      notes: [
        ...(typeof secret === 'string'
          ? ['This is the new secret; it is shown only this once.']
          : ['This was rotated before; its secret was shown then, and is not again.']),
        ...(typeof until === 'string' ? [`The one before it signs too until ${until}.`] : []),
      ],
    };
  },
};

function switching(name: 'pause' | 'resume'): Act {
  return {
    takes: {},
    writes: true,
    async *run([id, ...more], { service, vk }) {
      requireNoMore(more);
      const v = { id: requireId(id, 'hook') };
      yield record(await callService(service, `svc1.webhook.${name}`, { v, vk }));
    },
  };
}

/**
 * `waymark hook list | read | insert | edit | history | invalidate | rotate | pause | resume | test
 * | deliveries | replay`.
 */
export const hook = clientCommand({
  usage:
    'hook list [--event TYPE] [--text WORDS] | hook read ID [--as-of T] | hook history ID | ' +
    'hook insert JSON|@FILE|- [--vk KEY] | hook edit ID JSON|@FILE|- [--vk KEY] | ' +
    'hook invalidate [ID] [--txn TXN] [--by KEY] [--from T] [--until T] [--confirm DIGEST] | ' +
    'hook rotate ID | hook pause ID | hook resume ID | hook test ID | ' +
    'hook deliveries ID [--outcome O] [--before SEQ] [--limit N] | ' +
    'hook replay ID [--delivery SEQ] [--failed] [--since T] [--until T] [--vk KEY]',
  summary: 'have other servers told of events, and see how that goes,',
  acts: {
    ...records,
    insert,
    rotate,
    pause: switching('pause'),
    resume: switching('resume'),
    test,
    deliveries,
    replay,
  },
});
