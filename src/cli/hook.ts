import type { Hook } from '../model/hook.ts';
import type { JsonObject } from '../model/json.ts';
import { clientCommand, table, type Act, type Done } from './client.ts';
import { deliveries, hookWord, replay, test } from './hook-deliveries.ts';
import { record, recordActs } from './record-acts.ts';
import { callService } from './service.ts';

const records = recordActs({
  family: 'svc1.webhook',
  noun: 'hook',
  command: 'hook',
  filters: {
    event: { value: 'type', description: 'those for a type of event' },
    text: { value: 'words', description: 'those whose fields contain this text' },
  },
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
  summary: 'give a hook a new secret; the old one signs as well for 24 hours',
  words: hookWord,
  writes: true,
  async *run([id = ''], { service, vk }) {
    const v = { id };
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

function switching(name: 'pause' | 'resume', summary: string): Act {
  return {
    summary,
    words: hookWord,
    writes: true,
    async *run([id = ''], { service, vk }) {
      yield record(await callService(service, `svc1.webhook.${name}`, { v: { id }, vk }));
    },
  };
}

/**
 * `waymark hook list | read | insert | edit | history | invalidate | rotate | pause | resume | test
 * | deliveries | replay`.
 */
export const defineHook = clientCommand({
  description: 'Read and write webhooks through the HTTP API, and see what they have delivered.',
  acts: {
    ...records,
    insert,
    rotate,
    pause: switching('pause', 'stop deliveries; events wait'),
    resume: switching('resume', 'go on with deliveries'),
    test,
    deliveries,
    replay,
  },
});
