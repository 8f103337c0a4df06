import { setImmediate as nextTurn } from 'node:timers/promises';
import type { WebSocket } from 'ws';
import type { Packet } from '../../api/operation.ts';

/**
 * Sends the packets of a feed, each once the connection has taken the one before. Rejects with what
 * the packets or `requireAllowed`, which is called before each, throw.
 */
export async function sendFeed({
  packets,
  echo,
  websocket,
  requireAllowed,
  isEnded,
}: {
  readonly packets: AsyncIterable<Packet>;
  /** The members of the request that each packet repeats. */
  readonly echo: object;
  readonly websocket: WebSocket;
  readonly requireAllowed: () => void;
  /** Whether the client has ended it. */
  readonly isEnded: () => boolean;
}): Promise<void> {
  await nextTurn();
  for await (const packet of packets) {
    if (websocket.readyState !== websocket.OPEN || isEnded()) return;
    requireAllowed();
    const text = JSON.stringify({ ...packet, ...echo });
    await new Promise<void>((resolve) => {
      // The callback gets an error if the connection ends first, which the loop notices.
      websocket.send(text, () => {
        resolve();
      });
    });
  }
}
