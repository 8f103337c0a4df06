import { fork } from 'node:child_process';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Question, Told } from './receiver-process.ts';

const program = fileURLToPath(new URL('./receiver-process.ts', import.meta.url));
const pollMs = 20;

/** The deliveries to the fast receiver since the start signal. */
export type Report = Extract<Told, { kind: 'report' }>;

/** Receivers of webhooks in a process of their own. */
export interface Receivers {
  /** Answers at once. */
  readonly fastUrl: string;
  /** Accepts requests, and never answers. */
  readonly silentUrl: string;
  /** Answers a byte a second. */
  readonly dripUrl: string;
  /** Counts from here on. */
  readonly begin: () => void;
  /** Resolves to a report once so many deliveries have come. */
  readonly until: (deliveries: number) => Promise<Report>;
  readonly stop: () => void;
}

/** Starts the receivers; they end with this process. */
export async function startReceivers(): Promise<Receivers> {
  const child = fork(program, { serialization: 'advanced' });
  const ask = (question: Question): void => void child.send(question);
  const next = (): Promise<Told> =>
    new Promise((resolve, reject) => {
      child.once('message', resolve).once('exit', () => {
        reject(new Error('the receivers have ended'));
      });
    });
  const ready = await next();
  if (ready.kind !== 'ready') throw new Error('the receivers do not say where they are');
  const report = async (): Promise<Report> => {
    const told = next();
    ask('report');
    const answer = await told;
    if (answer.kind !== 'report') throw new Error('the receivers do not say what came');
    return answer;
  };
  child.setMaxListeners(0);
  return {
    fastUrl: `http://127.0.0.1:${ready.fast}/hook`,
    silentUrl: `http://127.0.0.1:${ready.silent}/hook`,
    dripUrl: `http://127.0.0.1:${ready.drip}/hook`,
    begin: () => {
      ask('begin');
    },
    async until(deliveries) {
      for (;;) {
        const told = await report();
        if (told.deliveries >= deliveries) return told;
        await wait(pollMs);
      }
    },
    stop: () => child.kill(),
  };
}
