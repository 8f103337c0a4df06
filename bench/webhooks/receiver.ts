import { fork } from 'node:child_process';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { ReceiverCommand, ReceiverMessage } from './receiver-process.ts';

const program = fileURLToPath(new URL('./receiver-process.ts', import.meta.url));
const pollMs = 20;

/** The deliveries to the fast receiver since `begin`. */
export type Report = Extract<ReceiverMessage, { kind: 'report' }>;

/** Receivers of webhooks in another process. */
export interface Receivers {
  /** Answers at once. */
  readonly fastUrl: string;
  /** Accepts requests, and never answers. */
  readonly silentUrl: string;
  /** Sends a byte a second. */
  readonly dripUrl: string;
  /** Starts to count. */
  readonly begin: () => void;
  /** Resolves to a report once the receiver has got this number of deliveries. */
  readonly until: (deliveries: number) => Promise<Report>;
  readonly stop: () => void;
}

/** Starts the receivers; they end with this process. */
export async function startReceivers(): Promise<Receivers> {
  const child = fork(program, { serialization: 'advanced' });
  const send = (command: ReceiverCommand): void => void child.send(command);
  const next = (): Promise<ReceiverMessage> =>
    new Promise((resolve, reject) => {
      child.once('message', resolve).once('exit', () => {
        reject(new Error('the receivers have ended'));
      });
    });
  const ready = await next();
  if (ready.kind !== 'ready') throw new Error('the receivers sent no ports');
  const report = async (): Promise<Report> => {
    const message = next();
    send('report');
    const answer = await message;
    if (answer.kind !== 'report') throw new Error('the receivers sent no report');
    return answer;
  };
  child.setMaxListeners(0);
  return {
    fastUrl: `http://127.0.0.1:${ready.fast}/hook`,
    silentUrl: `http://127.0.0.1:${ready.silent}/hook`,
    dripUrl: `http://127.0.0.1:${ready.drip}/hook`,
    begin: () => {
      send('begin');
    },
    async until(deliveries) {
      for (;;) {
        const message = await report();
        if (message.deliveries >= deliveries) return message;
        await wait(pollMs);
      }
    },
    stop: () => child.kill(),
  };
}
