import { WebSocket } from 'ws';
import type { Answer } from '../harness.ts';

/** An envelope without its id. */
export interface Sent {
  readonly a: string;
  readonly v: object;
  readonly vk?: string;
}

/** Calls over a websocket whose server may be killed at any moment. */
export interface SocketCalls {
  /** Resolves to the answer; undefined if the connection is lost. */
  call(sent: Sent): Promise<Answer | undefined>;
}

/** Opens a websocket to a running Waymark. */
export async function openSocketCalls(url: string, apikey: string): Promise<SocketCalls> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/svc1/ws`, { headers: { apikey } });
  await new Promise((resolve, reject) => {
    socket.once('open', resolve).once('error', reject);
  });
  const waiting = new Map<number, (answer: Answer | undefined) => void>();
  let id = 0;
  let isOpen = true;
  socket.on('message', (text: Buffer) => {
    const answer = JSON.parse(text.toString()) as Answer;
    const done = waiting.get(Number(answer.id));
    waiting.delete(Number(answer.id));
    done?.(answer);
  });
  socket.on('error', () => undefined);
  socket.on('close', () => {
    isOpen = false;
    for (const done of waiting.values()) done(undefined);
  });
  return {
    call(sent) {
      if (!isOpen) return Promise.resolve(undefined);
      id += 1;
      socket.send(JSON.stringify({ ...sent, id }));
      return new Promise((resolve) => waiting.set(id, resolve));
    },
  };
}
