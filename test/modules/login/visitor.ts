import assert from 'node:assert/strict';
import { request, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';

/** An answer to a visitor. */
export interface Answered {
  readonly status: number;
  readonly fields: IncomingHttpHeaders;
  readonly text: string;
  /** The lines of its cookies. */
  readonly cookies: readonly string[];
}

/** A visitor whose browser keeps cookies and follows redirects as far as a test wants. */
export class TestVisitor {
  /** The values of the cookies by name. */
  readonly cookies = new Map<string, string>();

  /** Opens a URL as a browser opens a page; with `fields`, with others. */
  open(url: string, fields: Readonly<Record<string, string>> = {}): Promise<Answered> {
    return this.send('GET', url, { fields });
  }

  /** Sends a request with the cookies. */
  async send(
    method: string,
    url: string,
    { fields = {}, body = '' }: { fields?: Readonly<Record<string, string>>; body?: string } = {},
  ): Promise<Answered> {
    const cookie = [...this.cookies].map((pair) => pair.join('=')).join('; ');
    const headers = {
      ...{ accept: 'text/html', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' },
      ...(cookie === '' ? {} : { cookie }),
      ...(body === '' ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
      ...fields,
    };
    const message = await new Promise<IncomingMessage>((resolve, reject) => {
      const sent = request(url, { method, headers, agent: false }, resolve);
      sent.once('error', reject).end(body);
    });
    const cookies = message.headers['set-cookie'] ?? [];
    for (const line of cookies) this.#keep(line);
    const { statusCode: status = 0, headers: answered } = message;
    return { status, fields: answered, text: await text(message), cookies };
  }

  /** Opens a URL and follows its redirects; resolves with the last answer and its URL. */
  async follow(url: string): Promise<Answered & { readonly url: string }> {
    let at = url;
    for (let hop = 0; hop < 12; hop += 1) {
      const seen = await this.open(at);
      const { location } = seen.fields;
      if (location === undefined) return { ...seen, url: at };
      at = new URL(location, at).href;
    }
    return assert.fail(`${url} leads round in a circle`);
  }

  /**
   * Opens a URL and follows its redirects up to the callback, which it does not open; resolves with
   * the URL of the callback.
   */
  async upToCallback(url: string): Promise<string> {
    let at = url;
    for (let hop = 0; hop < 6; hop += 1) {
      const { location } = (await this.open(at)).fields;
      at = new URL(location ?? assert.fail(`${at} is no redirect`), at).href;
      if (new URL(at).pathname.endsWith('/svc1/login/callback')) return at;
    }
    return assert.fail(`${url} does not lead to the callback`);
  }

  #keep(line: string): void {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
    if (line.includes('Max-Age=0')) this.cookies.delete(name);
    else this.cookies.set(name, value);
  }
}
