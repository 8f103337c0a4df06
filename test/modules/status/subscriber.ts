import type { WebSocket } from 'ws';
import type { Answer, TestSocket } from '../../harness.ts';

/** A change in a packet. */
export interface ChangePacket {
  readonly seq: number;
  readonly txn: string;
  readonly action: string;
  readonly id: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- a test reads any member
  readonly data: any;
  // oxlint-disable-next-line typescript/no-explicit-any -- the same
  readonly record: any;
}

/** A subscription, with its packets so far. */
export interface Subscriber {
  /** The seq of its answer. */
  readonly seq: number;
  readonly packets: readonly ChangePacket[];
  readonly seqs: () => readonly number[];
  /** Failures after the answer. */
  readonly errors: readonly Answer['error'][];
  /** Resolves as soon as the packets match. */
  until(isDone: (packets: readonly ChangePacket[]) => boolean): Promise<void>;
}

let lastId = 0;

/** Subscribes; rejects with the failure of the answer. Checks that no packet precedes the answer. */
export async function subscribe(
  { websocket }: { readonly websocket: WebSocket },
  v: object = {},
): Promise<Subscriber> {
  lastId += 1;
  // Each subscription listens to its websocket.
  websocket.setMaxListeners(0);
  const id = `subscription ${lastId}`;
  const packets: ChangePacket[] = [];
  const errors: Answer['error'][] = [];
  const watching = new Set<() => void>();
  const answer = await new Promise<Answer>((resolve) => {
    let isAnswered = false;
    websocket.on('message', (text: Buffer) => {
      const message = JSON.parse(text.toString()) as Answer;
      if (message.id !== id) return;
      if (message.r === 'svc1.userinterface.change') packets.push(message.data as ChangePacket);
      else if (isAnswered) errors.push(message.error);
      if (!isAnswered) resolve(message);
      isAnswered = true;
      for (const look of watching) look();
    });
    websocket.send(JSON.stringify({ a: 'svc1.userinterface.subscribe', v, id }));
  });
  if (answer.error !== undefined) {
    throw Object.assign(new Error(answer.error.message), answer.error);
  }
  return {
    seq: (answer.data as { seq: number }).seq,
    packets,
    seqs: () => packets.map(({ seq }) => seq),
    errors,
    until: (isDone) =>
      new Promise((resolve) => {
        const look = () => {
          if (!isDone(packets)) return;
          watching.delete(look);
          resolve();
        };
        watching.add(look);
        look();
      }),
  };
}

/** Inserts a page; resolves to its id and seq. */
export async function insertPage(
  { call }: Pick<TestSocket, 'call'>,
  fields: object,
): Promise<{ readonly id: string; readonly seq: number }> {
  const page = { kind: 'content', content: 'x', ...fields };
  const { data, error } = await call('svc1.userinterface.insert', page);
  if (error !== undefined) throw new Error(error.message);
  return data as { id: string; seq: number };
}
