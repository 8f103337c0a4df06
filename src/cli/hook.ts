import { setTimeout as delay } from 'node:timers/promises';
import type { Hook } from '../model/hook.ts';
import type { JsonObject } from '../model/json.ts';
import { attemptOutcomes } from '../store/deliveries/deliveries.ts';
import { clientCommand, table, type Act, type Done } from './client.ts';
import { record, recordActs } from './record-acts.ts';
import { callService, type Service } from './service.ts';

/** The argument of a command for one hook. */
const hookWord = { '<id>': 'the id of the hook' };

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

/** Attempts that are shown unless more are asked for. */
const deliveriesShown = 20;
/** How long a test waits for its message to be tried, and how often it asks. */
const testWaitMs = 20_000;
const testPollMs = 100;

/** One attempt, as the API shows it. */
interface Attempt {
  readonly id: string;
  readonly seq: number;
  /** Of a batch, the last. */
  readonly last_seq?: number;
  readonly attempt: number;
  readonly at: string;
  readonly outcome: string;
  readonly ms: number;
  readonly status?: number;
  readonly error?: string;
  readonly answer?: string;
}

interface Page {
  readonly rows: readonly Attempt[];
  readonly next: number | null;
  /** Messages that have not been tried. */
  readonly queued: number;
  /** Messages that wait for their next attempt. */
  readonly waiting: number;
}

/** `waymark hook deliveries ID`. */
const deliveries: Act = {
  summary: "list the attempts at a hook's messages, the newest first",
  words: hookWord,
  takes: {
    outcome: { value: 'outcome', description: 'those with an outcome', values: attemptOutcomes },
    before: { value: 'seq', description: 'those before a seq', isNumber: true },
    limit: { value: 'n', description: `at most so many (${deliveriesShown})`, isNumber: true },
  },
  async *run([id = ''], { service, input }) {
    const v = { limit: deliveriesShown, ...input, id };
    const answer = await callService(service, 'svc1.webhook.deliveries', { v });
    const { rows, next, queued, waiting } = answer.data as unknown as Page;
    const heading = ['SEQ', 'ATTEMPT', 'AT', 'OUTCOME', 'STATUS', 'MS', 'ID', 'WHAT CAME BACK'];
    yield {
      answer,
      lines: table(heading, rows.map(cells)),
      notes: [
        `${queued} not tried yet, ${waiting} waiting for another attempt.`,
        ...(next === null ? [] : [`There are more: --before ${next}`]),
      ],
    };
  },
};

function cells({ seq, last_seq: last, attempt, ...row }: Attempt): readonly string[] {
  const { at, outcome, status, ms, id, error, answer } = row;
  const seqs = last === undefined ? String(seq) : `${seq}-${last}`;
  const back = error ?? (answer === undefined ? '' : oneLine(answer));
  return [seqs, String(attempt), at, outcome, String(status ?? '-'), String(ms), id, back];
}

/** Of what a receiver has sent, as much as a line holds, and nothing that commands a terminal. */
function oneLine(text: string): string {
  const shown = text
    .slice(0, answerCharactersShown)
    .replaceAll(/[\p{C}\s]+/gu, ' ')
    .trim();
  return shown.length < text.trim().length ? `${shown} …` : shown;
}

const answerCharactersShown = 80;

/** `waymark hook replay ID`. */
const replay: Act = {
  summary: 'send messages of a hook again',
  words: hookWord,
  takes: {
    delivery: { value: 'id', description: 'the message with the id or seq of a delivery' },
    since: { value: 'time', description: 'the messages since a date-time' },
    until: { value: 'time', description: 'the messages up to a date-time' },
    failed: { description: 'the messages that were not delivered' },
  },
  writes: true,
  async *run([id = ''], { service, vk, input }) {
    const v = { ...input, id };
    const answer = await callService(service, 'svc1.webhook.replay', { v, vk });
    const { deliveries: count } = answer.data as { readonly deliveries: number };
    const what = count === 1 ? 'One message is' : `${count} messages are`;
    yield { answer, lines: [], notes: [`${what} sent again.`] };
  },
};

/** `waymark hook test ID`. */
const test: Act = {
  summary: 'send a test message, and wait for its result',
  words: hookWord,
  async *run([hook = ''], { service }) {
    const { page: before } = await latestPage(service, hook);
    const [newest] = before.rows;
    const last = (newest?.last_seq ?? newest?.seq ?? 0) + before.queued;
    const sent = await callService(service, 'svc1.webhook.test', { v: { id: hook } });
    const { id: event } = sent.data as { readonly id: string };
    yield { answer: sent, lines: [], notes: ['Sent; waiting for the result …'] };
    const found = await untilTried(
      service,
      hook,
      // A batch has an id of its own, and does not wait for more once a test is in it.
      (row) => row.id === event || (row.last_seq ?? 0) > last,
    );
    if ('page' in found) {
      const { queued } = found.page;
      const notes = [`It has not been sent yet: ${queued} messages wait, this one among them.`];
      yield { answer: found.answer, lines: [], notes, code: 1 };
      return;
    }
    const { outcome, status, ms, error, answer = '' } = found.attempt;
    const came = error ?? `status ${status ?? '-'}`;
    yield {
      answer: { r: sent.r ?? '', data: found.attempt as unknown as JsonObject },
      lines: [`${outcome} after ${ms} ms: ${came}`, ...(answer === '' ? [] : [oneLine(answer)])],
      code: outcome.startsWith('completed') ? 0 : 1,
    };
  },
};

/** The first attempt of some kind; the latest page where none is made in time. */
async function untilTried(
  service: Service,
  hook: string,
  isSought: (row: Attempt) => boolean,
): Promise<{ readonly attempt: Attempt } | { readonly page: Page; readonly answer: JsonObject }> {
  const deadlineMs = performance.now() + testWaitMs;
  for (;;) {
    const latest = await latestPage(service, hook);
    const attempt = latest.page.rows.find(isSought);
    if (attempt !== undefined) return { attempt };
    if (performance.now() > deadlineMs) return latest;
    await delay(testPollMs);
  }
}

async function latestPage(
  service: Service,
  hook: string,
): Promise<{ readonly page: Page; readonly answer: JsonObject }> {
  const v = { id: hook, limit: deliveriesShown };
  const answer = await callService(service, 'svc1.webhook.deliveries', { v });
  return { page: answer.data as unknown as Page, answer };
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
