import { useEffect } from 'preact/hooks';
import { may, service } from './api.ts';
import { currentSession } from './session.ts';

const listeners = new Set<() => void>();
let socket: WebSocket | undefined;
let retryMs = 1000;

/** Opens the websocket of changes while a component waits for them; it opens again after a loss. */
function open(): void {
  const session = currentSession();
  if (socket !== undefined || session === undefined || !may('read')) return;
  const url = new URL('ws', service);
  url.protocol = url.protocol.replace('http', 'ws');
  const opened = new WebSocket(url);
  socket = opened;
  opened.addEventListener('open', () => {
    retryMs = 1000;
    opened.send(JSON.stringify({ a: 'svc1.session.authenticate', v: { apikey: session.token } }));
    opened.send(JSON.stringify({ a: 'svc1.userinterface.subscribe', v: {} }));
  });
  opened.addEventListener('message', ({ data }) => {
    const { r } = JSON.parse(String(data)) as { r: string };
    if (r !== 'svc1.userinterface.change') return;
    for (const listener of listeners) listener();
  });
  opened.addEventListener('close', () => {
    socket = undefined;
    if (listeners.size === 0 || currentSession() !== session) return;
    setTimeout(open, retryMs);
    retryMs = Math.min(30_000, 2 * retryMs);
  });
}

/** Closes the websocket, when the session ends. */
export function closeLive(): void {
  socket?.close();
}

/** Calls a function after changes of page rules; several in a moment count as one. */
export function useChanges(changed: () => void): void {
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const listener = (): void => {
      clearTimeout(timer);
      timer = setTimeout(changed, 300);
    };
    listeners.add(listener);
    open();
    return () => {
      listeners.delete(listener);
      clearTimeout(timer);
    };
  }, [changed]);
}
