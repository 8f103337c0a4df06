import { useEffect, useRef, useState } from 'preact/hooks';
import { service } from './api.ts';
import { currentSession } from './session.ts';

/** The state of a websocket that follows an operation. */
export type FollowState = 'connecting' | 'open' | 'lost';

const retryMsMax = 30_000;

/**
 * Follows an operation that streams while the component is shown, over a websocket of its own, and
 * calls a function with the data of each packet. It connects again after a loss. `v` is undefined
 * while nothing is to be followed.
 */
export function useFollow(
  name: string,
  v: object | undefined,
  onData: (data: unknown) => void,
): FollowState {
  const [state, setState] = useState<FollowState>('connecting');
  const latest = useRef(onData);
  latest.current = onData;
  const input = v === undefined ? undefined : JSON.stringify(v);
  useEffect(() => {
    if (input === undefined) return undefined;
    const connection = follow({ name, input }, setState, (data) => {
      latest.current(data);
    });
    return () => {
      connection.abort();
    };
  }, [name, input]);
  return state;
}

function follow(
  { name, input }: { readonly name: string; readonly input: string },
  onState: (state: FollowState) => void,
  onData: (data: unknown) => void,
): AbortController {
  const abort = new AbortController();
  let retryMs = 1000;
  const open = (): void => {
    const session = currentSession();
    if (session === undefined || abort.signal.aborted) return;
    onState('connecting');
    const url = new URL('ws', service);
    url.protocol = url.protocol.replace('http', 'ws');
    const socket = new WebSocket(url);
    const close = (): void => {
      socket.close();
    };
    abort.signal.addEventListener('abort', close, { once: true });
    socket.addEventListener('open', () => {
      socket.send(JSON.stringify({ a: 'svc1.session.authenticate', v: { apikey: session.token } }));
      socket.send(JSON.stringify({ a: `svc1.${name}`, v: JSON.parse(input) as object }));
    });
    socket.addEventListener('message', ({ data }) => {
      const message = JSON.parse(String(data)) as { r: string; data?: unknown };
      if (message.r === `svc1.${name}` && message.data !== undefined) {
        retryMs = 1000;
        onState('open');
      } else if (message.data !== undefined && message.r !== 'svc1.session.authenticate') {
        onData(message.data);
      }
    });
    socket.addEventListener('close', () => {
      abort.signal.removeEventListener('abort', close);
      if (abort.signal.aborted) return;
      onState('lost');
      setTimeout(open, retryMs);
      retryMs = Math.min(retryMsMax, 2 * retryMs);
    });
  };
  open();
  return abort;
}

/** Calls a function at intervals while the component is shown and the page is visible. */
export function useInterval(run: () => void, ms: number): void {
  const latest = useRef(run);
  latest.current = run;
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) latest.current();
    }, ms);
    return () => {
      clearInterval(timer);
    };
  }, [ms]);
}
