import { WebSocket } from 'ws';

/** Calls operations over a websocket and finds each answer by its id. */
export interface Service {
  call(a: string, v: object): Promise<{ readonly data: Record<string, unknown> }>;
  close(): void;
}

/** Opens a websocket to a running Waymark. */
export async function openService(url: string, apikey: string): Promise<Service> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/svc1/ws`, { headers: { apikey } });
  await new Promise((resolve, reject) => {
    socket.once('open', resolve).once('error', reject);
  });
  const waiting = new Map<number, (answer: never) => void>();
  let id = 0;
  socket.on('message', (text: Buffer) => {
    const answer = JSON.parse(text.toString()) as { id: number; error?: { message: string } };
    if (answer.error !== undefined) throw new Error(answer.error.message);
    waiting.get(answer.id)?.(answer as never);
    waiting.delete(answer.id);
  });
  return {
    call(a, v) {
      id += 1;
      socket.send(JSON.stringify({ a, v, id }));
      return new Promise((resolve) => waiting.set(id, resolve));
    },
    close() {
      socket.close();
    },
  };
}

/**
 * Inserts a second over one websocket; each counts when the server has acknowledged it as durable.
 */
export async function measureInserts(
  service: Service,
  { inserts, inFlight }: { readonly inserts: number; readonly inFlight: number },
): Promise<number> {
  let next = 0;
  const started = performance.now();
  await Promise.all(
    Array.from({ length: inFlight }, async () => {
      while (next < inserts) {
        const at = (next += 1);
        const v = { path: `/live/${at}`, kind: 'content', content: `<h1>Live ${at}</h1>` };
        await service.call('svc1.userinterface.insert', v);
      }
    }),
  );
  return inserts / ((performance.now() - started) / 1000);
}

/** Edits that do not count: V8 compiles the code of both sides meanwhile. */
const warmUpEdits = 100;

/**
 * Milliseconds from the request of an edit until a visitor gets the edited page, one after the
 * other.
 */
export async function measureEdits(
  service: Service,
  url: string,
  edits: number,
): Promise<readonly number[]> {
  const { data } = await service.call('svc1.userinterface.insert', {
    path: '/edited',
    kind: 'content',
    content: '0',
  });
  const times: number[] = [];
  for (let edit = 1; edit <= warmUpEdits + edits; edit += 1) {
    const started = performance.now();
    await service.call('svc1.userinterface.edit', { id: data.id, content: String(edit) });
    const page = await fetch(`${url}/edited`);
    if ((await page.text()) !== String(edit)) throw new Error('an edit was not visible at once');
    if (edit > warmUpEdits) times.push(performance.now() - started);
  }
  return times;
}
