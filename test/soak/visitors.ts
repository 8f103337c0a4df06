import { Agent, get } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { WebSocket } from 'ws';

/** The responses that the visitors of a soak run got. */
export interface Counts {
  readonly answers: number;
  readonly failures: number;
}

const connections = 40;
const websockets = 10;
/** The average time between two requests of a visitor: all send about 1,000 requests a second. */
const pauseMs = 40;

/** Visitors with different browsers, cookies and languages, which request all paths of a site. */
export class Visitors {
  readonly #url: string;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: connections });
  readonly #counts = { answers: 0, failures: 0 };
  #visit = 0;

  constructor(url: string) {
    this.#url = url;
  }

  get counts(): Counts {
    return this.#counts;
  }

  /** Sends requests until the signal aborts. */
  async run(isOver: AbortSignal): Promise<void> {
    await Promise.all([
      ...Array.from({ length: connections }, async () => {
        while (!isOver.aborted) {
          await this.#ask();
          await delay(2 * pauseMs * Math.random());
        }
      }),
      ...Array.from({ length: websockets }, async () => {
        while (!isOver.aborted) await this.#talk(isOver);
      }),
    ]);
    this.#agent.destroy();
  }

  #ask(): Promise<void> {
    this.#visit += 1;
    const [path, status] = pathOf(this.#visit);
    return new Promise((resolve) => {
      const failed = (): void => {
        this.#counts.failures += 1;
        resolve();
      };
      const request = get(this.#url + path, {
        agent: this.#agent,
        headers: headersOf(this.#visit),
      });
      request.once('error', failed).once('response', (response) => {
        if (response.statusCode !== status) this.#counts.failures += 1;
        response.resume();
        response.once('error', failed).once('end', () => {
          this.#counts.answers += 1;
          resolve();
        });
      });
    });
  }

  /** Reads pages over a websocket for a while, then closes it. */
  async #talk(isOver: AbortSignal): Promise<void> {
    const socket = new WebSocket(`${this.#url.replace('http', 'ws')}/svc1/ws`);
    await new Promise<void>((resolve) => {
      const end = (): void => {
        resolve();
      };
      socket.once('error', () => {
        this.#counts.failures += 1;
        resolve();
      });
      socket.once('close', end);
      let left = 200;
      const next = (): void => {
        left -= 1;
        if (left === 0 || isOver.aborted) socket.close();
        else {
          const v = { origin: this.#url, path: `/page-${left % 100}.html` };
          socket.send(JSON.stringify({ a: 'svc1.userinterface.get_content', v, id: left }));
        }
      };
      socket.once('open', next);
      socket.on('message', () => {
        this.#counts.answers += 1;
        setTimeout(next, 20);
      });
    });
  }
}

/** A path of the site, and the status of its response. */
function pathOf(visit: number): readonly [path: string, status: number] {
  const at = Math.floor(Math.random() * 1_000_000);
  switch (visit % 8) {
    case 0:
    case 1:
      return [`/file-${at % 200}.html`, 200];
    case 2:
    case 3:
      return [`/page-${at % 500}.html`, 200];
    case 4:
      return [`/kept/${at % 20_000}`, 200];
    case 5:
      return [`/passed/${at}`, 200];
    case 6:
      return [`/nothing-${at}.html`, 404];
    default:
      return visit % 800 === 7 ? ['/large.bin', 200] : [`/page-${at % 500}.html?v=${at}`, 200];
  }
}

function headersOf(visit: number): Record<string, string> {
  const version = 100 + (visit % 60);
  return {
    'user-agent': `Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/${version}.0.${visit % 9_000}.0`,
    accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8',
    'accept-language': `de-CH,de;q=0.9,en;q=0.${visit % 9}`,
    'accept-encoding': visit % 2 === 0 ? 'gzip, br' : 'gzip, deflate, br, zstd',
    cookie: `visitor=${visit}`,
    referer: `https://www.example.com/${visit}`,
  };
}
