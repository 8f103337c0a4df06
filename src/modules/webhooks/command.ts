import { setTimeout as delay } from 'node:timers/promises';
import type { Operations } from '../../cli/client/operations.ts';
import { type ApiTarget, callApi } from '../../cli/remote/api-client.ts';
import { type Subcommand, type SubcommandResult, table } from '../../cli/remote/client-command.ts';
import { recordCommand, recordSubcommands } from '../../cli/remote/record-commands.ts';
import type { JsonObject } from '../../core/values/json/json.ts';
import { attemptOutcomes } from './log/deliveries.ts';
import { hookFamily } from './operations/hook-family.ts';

/** How long `hook test` waits for the attempt at its message, and how often it polls. */
const testWaitMs = 20_000;
const testPollMs = 100;

type DeliveryList = Operations['webhook.deliveries']['output'];
type Attempt = DeliveryList['rows'][number];

/** The argument of a command for one hook. */
const hookArg = { '<id>': 'the id of the hook' };

const records = recordSubcommands(hookFamily);

const insert: Subcommand = {
  ...records.insert,
  async *run(args, input) {
    for await (const result of records.insert.run(args, input)) {
      yield { ...result, notes: [...(result.notes ?? []), ...secretNotes(result)] };
    }
  },
};

function secretNotes({ answer }: SubcommandResult): readonly string[] {
  const { secret } = answer.data as JsonObject;
  if (secret !== undefined) return ['The secret is shown only once, now.'];
  return ['An earlier request inserted this hook; its secret is not shown again.'];
}

const rotate: Subcommand = {
  summary: 'give a hook a new secret; the old one also signs for 24 hours',
  args: hookArg,
  writes: true,
  async *run([id = ''], { api, vk }) {
    const v = { id };
    const answer = await callApi(api, 'webhook.rotate', { v, vk });
    const { secret, previous_until: until } = answer.data;
    yield {
      answer,
      lines: typeof secret === 'string' ? [secret] : [],
      notes: [
        ...(typeof secret === 'string'
          ? ['This is the new secret; it is shown only once, now.']
          : ['An earlier request rotated the secret; it is not shown again.']),
        ...(typeof until === 'string' ? [`The previous secret also signs until ${until}.`] : []),
      ],
    };
  },
};

/** Attempts that are listed without `--limit`. */
const deliveriesShown = 20;

/** `waymark hook deliveries ID`. */
const deliveries: Subcommand = {
  summary: "list the attempts at a hook's messages, the newest first",
  args: hookArg,
  options: {
    outcome: {
      value: 'outcome',
      description: 'only attempts with this outcome',
      values: attemptOutcomes,
    },
    before: { value: 'seq', description: 'only attempts before this seq', isNumber: true },
    limit: { value: 'n', description: `at most this many (${deliveriesShown})`, isNumber: true },
  },
  async *run([id = ''], { api, input }) {
    const v = { limit: deliveriesShown, ...input, id };
    const answer = await callApi(api, 'webhook.deliveries', { v });
    const { rows, next, queued, waiting } = answer.data;
    const heading = ['SEQ', 'ATTEMPT', 'AT', 'OUTCOME', 'STATUS', 'MS', 'ID', 'ANSWER'];
    yield {
      answer,
      lines: table(heading, rows.map(cells)),
      notes: [
        `${queued} messages without an attempt, ${waiting} waiting for the next attempt.`,
        ...(next === null ? [] : [`For more: --before ${next}`]),
      ],
    };
  },
};

function cells({ seq, last_seq: last, attempt, ...row }: Attempt): readonly string[] {
  const { at, outcome, status, ms, id, error, answer } = row;
  const seqs = last === undefined ? String(seq) : `${seq}-${last}`;
  const result = error ?? (answer === undefined ? '' : oneLine(answer));
  return [seqs, String(attempt), at, outcome, String(status ?? '-'), String(ms), id, result];
}

/** The beginning of a receiver's answer as one line, without control characters. */
function oneLine(text: string): string {
  const shown = text
    .slice(0, answerCharactersShown)
    .replaceAll(/[\p{C}\s]+/gu, ' ')
    .trim();
  return shown.length < text.trim().length ? `${shown} …` : shown;
}

const answerCharactersShown = 80;

/** `waymark hook replay ID`. */
const replay: Subcommand = {
  summary: 'send messages of a hook again',
  args: hookArg,
  options: {
    delivery: { value: 'id', description: 'only the message with this id or seq' },
    since: { value: 'time', description: 'messages since a date-time' },
    until: { value: 'time', description: 'messages up to a date-time' },
    failed: { description: 'only messages that were not delivered' },
  },
  writes: true,
  async *run([id = ''], { api, vk, input }) {
    const v = { ...input, id };
    const answer = await callApi(api, 'webhook.replay', { v, vk });
    const { deliveries: count } = answer.data;
    const what = count === 1 ? 'One message' : `${count} messages`;
    yield { answer, lines: [], notes: [`${what} will be sent again.`] };
  },
};

/** `waymark hook test ID`. */
const test: Subcommand = {
  summary: 'send a test message, and wait for its result',
  args: hookArg,
  async *run([hook = ''], { api }) {
    const { page: before } = await latestPage(api, hook);
    const [newest] = before.rows;
    const last = (newest?.last_seq ?? newest?.seq ?? 0) + before.queued;
    const sent = await callApi(api, 'webhook.test', { v: { id: hook } });
    const { id: event } = sent.data;
    yield { answer: sent, lines: [], notes: ['Queued; waiting for the result …'] };
    const found = await waitForAttempt(
      api,
      hook,
      // A batch has its own id, and is sent at once when it contains a test.
      (row) => row.id === event || (row.last_seq ?? 0) > last,
    );
    if ('page' in found) {
      const { queued } = found.page;
      const notes = [
        `It has not been sent yet: ${queued} messages are waiting, including this one.`,
      ];
      yield { answer: found.answer, lines: [], notes, code: 1 };
      return;
    }
    const { outcome, status, ms, error, answer = '' } = found.attempt;
    const result = error ?? `status ${status ?? '-'}`;
    yield {
      answer: { r: sent.r ?? '', data: found.attempt },
      lines: [`${outcome} after ${ms} ms: ${result}`, ...(answer === '' ? [] : [oneLine(answer)])],
      code: outcome.startsWith('completed') ? 0 : 1,
    };
  },
};

/** Waits for an attempt; resolves to it, or after `testWaitMs` to the latest page. */
async function waitForAttempt(
  api: ApiTarget,
  hook: string,
  isWanted: (row: Attempt) => boolean,
): Promise<
  { readonly attempt: Attempt } | { readonly page: DeliveryList; readonly answer: JsonObject }
> {
  const deadlineMs = performance.now() + testWaitMs;
  for (;;) {
    const latest = await latestPage(api, hook);
    const attempt = latest.page.rows.find(isWanted);
    if (attempt !== undefined) return { attempt };
    if (performance.now() > deadlineMs) return latest;
    await delay(testPollMs);
  }
}

async function latestPage(
  api: ApiTarget,
  hook: string,
): Promise<{ readonly page: DeliveryList; readonly answer: JsonObject }> {
  const v = { id: hook, limit: deliveriesShown };
  const answer = await callApi(api, 'webhook.deliveries', { v });
  return { page: answer.data, answer };
}

/** `waymark hook list | read | insert | …`, with the deliveries of a hook. */
export const defineHook = recordCommand(hookFamily, { insert, rotate, test, deliveries, replay });
