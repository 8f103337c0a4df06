import { useEffect, useRef, useState } from 'preact/hooks';
import { endSession, isBound, may, service } from './api.ts';
import { currentSession, type Session } from './session.ts';
import { parseJson } from './json.ts';

/** Whether a subscription gets packets; `lost` while the tab tries to connect again. */
export type FollowState = 'connecting' | 'open' | 'lost';

/** The parts of the server's state that a screen can watch: the topics of server.subscribe. */
type Topic =
  | 'changes'
  | 'times'
  | 'series'
  | 'sources'
  | 'nodes'
  | 'deliveries'
  | 'keys'
  | 'certificates'
  | 'configuration'
  | 'cache';

interface Subscription {
  readonly name: string;
  readonly v: object;
  readonly onState: (state: FollowState) => void;
  readonly onData: (data: unknown) => void;
}

interface ActiveSubscription extends Subscription {
  isAnswered: boolean;
  /** The newest seq that it has; a connection after this one begins there. */
  seq: number | undefined;
}

interface Message {
  readonly r: string;
  readonly id?: number;
  readonly data?: { readonly seq?: number };
  readonly error?: { readonly code: string; readonly field?: string };
}

const authenticate = 'session.authenticate';
const retryMsMin = 1000;
const retryMsMax = 30_000;
/** A screen that waits for its subscription reads without it after this time. */
const readAnywayMs = 1000;

/** The subscriptions of this tab, by the id of their requests. They share one websocket. */
const subscriptions = new Map<number, ActiveSubscription>();
/** Subscriptions that ended before they were answered. */
const endedEarly = new Set<number>();
const lossListeners = new Set<(lostAt: number | undefined) => void>();
let newestId = 0;
let socket: WebSocket | undefined;
let isAuthenticated = false;
let lostAt: number | undefined;
let retryMs = retryMsMin;
let retry: ReturnType<typeof setTimeout> | undefined;

/** Opens the websocket of this tab; it opens again after a loss, while somebody is signed in. */
function connect(): void {
  clearTimeout(retry);
  const session = currentSession();
  if (socket !== undefined || session === undefined) return;
  const url = new URL('ws', service);
  url.protocol = url.protocol.replace('http', 'ws');
  const opened = new WebSocket(url);
  socket = opened;
  opened.addEventListener('open', () => {
    send(authenticate, 0, { apikey: session.token });
    for (const [id, one] of subscriptions) begin(id, one);
  });
  opened.addEventListener('message', ({ data }) => {
    if (socket === opened) receive(parseJson(String(data)) as unknown as Message, session);
  });
  opened.addEventListener('close', () => {
    if (socket === opened) closed();
  });
}

function closed(): void {
  socket = undefined;
  isAuthenticated = false;
  endedEarly.clear();
  setLost(lostAt ?? Date.now());
  for (const one of subscriptions.values()) {
    one.isAnswered = false;
    one.onState('lost');
  }
  retry = setTimeout(connect, retryMs);
  retryMs = Math.min(retryMsMax, 2 * retryMs);
}

/** Closes the websocket, when the session ends. */
export function closeLive(): void {
  clearTimeout(retry);
  const last = socket;
  [socket, isAuthenticated, retryMs] = [undefined, false, retryMsMin];
  setLost(undefined);
  last?.close();
}

function setLost(at: number | undefined): void {
  lostAt = at;
  for (const listener of lossListeners) listener(at);
}

function send(name: string, id: number, v: object): void {
  if (socket?.readyState === WebSocket.OPEN) {
    socket.send(JSON.stringify({ a: `svc1.${name}`, v, id }));
  }
}

function begin(id: number, { name, v, seq }: ActiveSubscription): void {
  send(name, id, { ...v, ...(seq !== undefined && { from_seq: seq }) });
}

function receive({ r, id = 0, data, error }: Message, session: Session): void {
  if (r === `svc1.${authenticate}`) {
    if (error?.code === 'unauthenticated') endSession(session);
    if (error !== undefined) return;
    isAuthenticated = true;
    retryMs = retryMsMin;
    setLost(undefined);
    return;
  }
  if (endedEarly.delete(id)) send('session.unsubscribe', ++newestId, { id });
  const one = subscriptions.get(id);
  if (one === undefined) return;
  if (error !== undefined) {
    refused(id, one, error);
    return;
  }
  if (r !== `svc1.${one.name}`) {
    if (one.seq !== undefined) one.seq = data?.seq ?? one.seq;
    one.onData(data);
    return;
  }
  one.isAnswered = true;
  if (one.name === 'record.subscribe') one.seq ??= data?.seq;
  one.onState('open');
}

/** A log that was replaced may lack the seq; a server with too many readers may have room later. */
function refused(
  id: number,
  one: ActiveSubscription,
  { field }: { readonly field?: string },
): void {
  if (field === 'from_seq') {
    one.seq = undefined;
    begin(id, one);
    return;
  }
  one.onState('lost');
  setTimeout(() => {
    if (subscriptions.get(id) === one && !one.isAnswered) begin(id, one);
  }, retryMsMax);
}

/** Subscribes over the websocket of this tab; returns the function that ends it. */
function subscribe(given: Subscription): () => void {
  const id = ++newestId;
  const one: ActiveSubscription = { ...given, isAnswered: false, seq: undefined };
  subscriptions.set(id, one);
  if (socket?.readyState === WebSocket.OPEN) begin(id, one);
  else connect();
  return () => {
    subscriptions.delete(id);
    if (socket?.readyState !== WebSocket.OPEN) return;
    if (one.isAnswered) send('session.unsubscribe', ++newestId, { id });
    else endedEarly.add(id);
  };
}

/**
 * Follows an operation that streams while the component is shown, and calls a function with the
 * data of each packet. `v` is undefined while nothing is to be followed.
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
    return subscribe({
      ...{ name, v: parseJson(input) as object, onState: setState },
      onData: (data) => {
        latest.current(data);
      },
    });
  }, [name, input]);
  return state;
}

/**
 * A number that grows when one of these parts of the server's state may have changed: a screen reads
 * what it shows again. It is 0 while a screen must not read yet, because its subscription, which
 * says what changes after the read, is not answered. A hidden tab gets one change when it is shown.
 */
export function useLive(topics: readonly Topic[], hook?: string): number {
  const [turn, setTurn] = useState(() => (isAuthenticated ? 0 : 1));
  const input = JSON.stringify({ topics, hook });
  // A bound key may not watch the whole server.
  const mayWatch = hook !== undefined || (may('read') && !isBound());
  useEffect(() => {
    if (!mayWatch) {
      setTurn(1);
      return undefined;
    }
    let isDue = false;
    const change = (): void => {
      isDue = document.hidden;
      if (!isDue) setTurn((before) => before + 1);
    };
    const shown = (): void => {
      if (isDue) change();
    };
    const waiting = setTimeout(() => {
      setTurn((before) => Math.max(1, before));
    }, readAnywayMs);
    const end = subscribe({
      name: 'server.subscribe',
      v: parseJson(input) as object,
      onData: change,
      onState(state) {
        if (state === 'open') change();
        else setTurn((before) => Math.max(1, before));
      },
    });
    document.addEventListener('visibilitychange', shown);
    return () => {
      clearTimeout(waiting);
      end();
      document.removeEventListener('visibilitychange', shown);
    };
  }, [input, mayWatch]);
  return turn;
}

/**
 * Keeps the websocket of this tab open. Returns since when it has no connection, in milliseconds
 * since 1970; undefined while it has one, or has not had one yet.
 */
export function useConnection(): number | undefined {
  const [lost, setLostHere] = useState(lostAt);
  useEffect(() => {
    const tryNow = (): void => {
      if (!document.hidden && lostAt !== undefined) connect();
    };
    lossListeners.add(setLostHere);
    connect();
    addEventListener('online', tryNow);
    document.addEventListener('visibilitychange', tryNow);
    return () => {
      lossListeners.delete(setLostHere);
      removeEventListener('online', tryNow);
      document.removeEventListener('visibilitychange', tryNow);
    };
  }, []);
  return lost;
}
