import { once } from 'node:events';
import { connect, type ConnectionOptions } from 'node:tls';

type Version = 'TLSv1.2' | 'TLSv1.3';

/** Both versions of TLS that the server has: their tickets differ. */
export const tlsVersions: readonly Version[] = ['TLSv1.2', 'TLSv1.3'];

/**
 * Opens a connection, with the ticket of a session if there is one. Resolves to the ticket that the
 * server sends, and to whether it has continued the session.
 */
export async function visit(
  version: Version,
  options: ConnectionOptions,
): Promise<{ readonly session: Buffer; readonly isReused: boolean }> {
  const socket = connect({
    host: '127.0.0.1',
    minVersion: version,
    maxVersion: version,
    rejectUnauthorized: false,
    ...options,
  });
  const ticket = once(socket, 'session');
  try {
    await once(socket, 'secureConnect');
    const isReused = socket.isSessionReused();
    // In TLS 1.2, a server that continues a session may keep the ticket.
    if (isReused) return { session: socket.getSession() ?? Buffer.alloc(0), isReused };
    const [session] = (await ticket) as [Buffer];
    return { session, isReused };
  } finally {
    socket.destroy();
  }
}
