import { setTimeout as delay } from 'node:timers/promises';
import type { JsonObject } from '../model/json.ts';
import { table, type Act } from './client.ts';
import { requireNoMore } from './options.ts';
import { requireId } from './record-acts.ts';
import { callService, type Service } from './service.ts';

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

/** `waymark hook deliveries ID`: what became of a hook's messages, the newest first. */
export const deliveries: Act = {
  takes: { outcome: 'text', before: 'number', limit: 'number' },
  async *run([id, ...more], { service, input }) {
    requireNoMore(more);
    const v = { limit: deliveriesShown, ...input, id: requireId(id, 'hook') };
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

/** `waymark hook replay ID`: has messages sent again. */
export const replay: Act = {
  takes: { delivery: 'text', since: 'text', until: 'text', failed: 'flag' },
  writes: true,
  async *run([id, ...more], { service, vk, input }) {
    requireNoMore(more);
    const v = { ...input, id: requireId(id, 'hook') };
    const answer = await callService(service, 'svc1.webhook.replay', { v, vk });
    const { deliveries: count } = answer.data as { readonly deliveries: number };
    const what = count === 1 ? 'One message is' : `${count} messages are`;
    yield { answer, lines: [], notes: [`${what} sent again.`] };
  },
};

/** `waymark hook test ID`: has a test sent, and tells how that went. */
export const test: Act = {
  takes: {},
  async *run([id, ...more], { service }) {
    requireNoMore(more);
    const hook = requireId(id, 'hook');
    const { page: before } = await latestPage(service, hook);
    const [newest] = before.rows;
    const last = (newest?.last_seq ?? newest?.seq ?? 0) + before.queued;
    const sent = await callService(service, 'svc1.webhook.test', { v: { id: hook } });
    const { id: event } = sent.data as { readonly id: string };
    yield { answer: sent, lines: [], notes: ['Sent; waiting for what comes of it …'] };
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
      lines: [`${outcome}: ${came} after ${ms} ms`, ...(answer === '' ? [] : [oneLine(answer)])],
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
