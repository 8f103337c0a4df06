import type { Worker } from 'node:cluster';

/** A connection that the process which leads has accepted. */
interface Connection {
  close(): void;
}

/**
 * Has connections answered that were on their way to a worker when it died. Node waits for each
 * worker's word that it has taken a connection; from a dead one none comes, and the client would
 * wait for as long as it likes (nodejs/node#3551, still so in Node 26). Here that word is said for
 * it: not taken. Node then gives the connection to another one; where `hasOthers` says that there
 * is none, it is closed. What Node does otherwise one day, this leaves as it is.
 */
export function returnHandedOver(worker: Worker, hasOthers: () => boolean): void {
  const { process: child } = worker;
  const underWay = new Map<number, Connection>();
  const send = child.send.bind(child) as (...words: readonly unknown[]) => boolean;
  child.send = (message: unknown, ...more: readonly unknown[]): boolean => {
    const [connection] = more;
    const number = numberOf(message, 'seq');
    if (number !== undefined && isConnection(connection)) underWay.set(number, connection);
    return send(message, ...more);
  };
  child.on('internalMessage', (message: unknown) => {
    const number = numberOf(message, 'ack');
    if (number !== undefined) underWay.delete(number);
  });
  // Either may be the last that is heard of it; from then on Node gives it nothing any more.
  const giveBack = (): void => {
    if (worker.isConnected()) return;
    for (const [ack, connection] of underWay) {
      if (hasOthers()) child.emit('internalMessage', { cmd, ack, accepted: false });
      else connection.close();
    }
    underWay.clear();
  };
  worker.once('disconnect', giveBack).once('exit', giveBack);
}

const cmd = 'NODE_CLUSTER';

/** The number of a message of Node's own, or of the one that it answers. */
function numberOf(message: unknown, name: 'seq' | 'ack'): number | undefined {
  const { cmd: of, [name]: number } = (message ?? {}) as Readonly<Record<string, unknown>>;
  return of === cmd && typeof number === 'number' ? number : undefined;
}

function isConnection(value: unknown): value is Connection {
  return typeof value === 'object' && value !== null && 'close' in value;
}
