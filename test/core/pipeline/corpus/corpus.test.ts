import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { suite, test, type TestContext } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { startSite, type TestSite } from '../../../harness.ts';
import { head, type Case } from './case.ts';
import { chunks } from './chunks.ts';
import { fields } from './fields.ts';
import { framing } from './framing.ts';
import { hosts } from './hosts.ts';
import { lines } from './lines.ts';
import { sequences } from './sequences.ts';
import { targets } from './targets.ts';

const corpus: Readonly<Record<string, readonly Case[]>> = {
  framing,
  chunks,
  hosts,
  targets,
  lines,
  fields,
  sequences,
};

/** A request after each case: it gets a response if the server keeps the connection open. */
const probe = head('GET /probe', 'Connection: close');
const probeStatus = '299';

/** Ways to split the bytes of a case into pieces. */
const deliveries: Readonly<Record<string, (bytes: Buffer) => readonly Buffer[]>> = {
  whole: (bytes) => [bytes],
  'in two': (bytes) => {
    const cut = Math.floor((bytes.length * 2) / 3);
    return [bytes.subarray(0, cut), bytes.subarray(cut)];
  },
  'byte by byte': (bytes) => {
    // Longer cases only repeat a text.
    const single = Array.from(bytes.subarray(0, 1_500), (_, at) => bytes.subarray(at, at + 1));
    return [...single, bytes.subarray(1_500)];
  },
};

suite('HTTP/1.1 requests, valid and hostile', () => {
  for (const [way, piecesOf] of Object.entries(deliveries)) {
    for (const [area, cases] of Object.entries(corpus)) {
      test(`${area}, ${way}`, async (t) => {
        const { site, reached } = await startRig(t);
        const wrong: string[] = [];
        for (const [title, bytes, outcome, ...reaching] of cases) {
          const pieces = piecesOf(Buffer.from(bytes + probe, 'latin1'));
          const answer = await exchange(site.port, pieces);
          const seen = [outcomeOf(answer), ...reached.splice(0)];
          if (JSON.stringify(seen) !== JSON.stringify([outcome, ...reaching])) {
            wrong.push(`${JSON.stringify(title)}: ${JSON.stringify(seen)}, not ${outcome}`);
          }
          for (const date of datesOf(answer)) {
            if (date.length !== 1) wrong.push(`${title}: ${date.length} Date fields`);
          }
          if (outcome.endsWith(' closed') && !/^(?:101|200|203) closed/.test(outcome)) {
            if (!/\r\nConnection: close\r\n[^]*$/.test(answer)) wrong.push(`${title}: no close`);
          }
        }
        assert.deepEqual(wrong, []);
      });
    }
  }

  test('are all different, and enough', () => {
    const all = Object.values(corpus).flat();
    assert.equal(new Set(all.map(([, bytes]) => bytes)).size, all.length);
    assert.ok(all.length >= 160, String(all.length));
  });
});

/** A site with another server as the source of `/far/*`, which records complete requests. */
async function startRig(t: TestContext): Promise<{ site: TestSite; reached: string[] }> {
  const reached: string[] = [];
  const source = createServer((request, response) => {
    const content: Buffer[] = [];
    request.on('data', (chunk: Buffer) => content.push(chunk));
    request.on('end', () => {
      const { method = '', url = '' } = request;
      reached.push(`${method} ${url} ${Buffer.concat(content).toString('latin1')}`);
      response.end('far');
    });
  });
  await new Promise<void>((resolve) => source.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    source.closeAllConnections();
    source.close();
  });
  const address = source.address();
  assert.ok(address !== null && typeof address === 'object');
  const far = {
    path: '/far/*',
    kind: 'content.fetch',
    enginedata: {
      source: `http://127.0.0.1:${address.port}/far/*`,
      methods: ['GET', 'POST', 'DELETE'],
    },
  };
  const page = { path: '/page', kind: 'content', content: 'page', httpresponse: 203 };
  const probed = { path: '/probe', kind: 'content', content: 'probe', httpresponse: 299 };
  const ini = '[fetch]\nallow_private = 127.0.0.0/8\n';
  return { site: await startSite(t, { ini, rules: [far, page, probed] }), reached };
}

/** Sends pieces, each after the server has read the one before; resolves to all bytes received. */
function exchange(port: number, pieces: readonly Buffer[]): Promise<string> {
  return new Promise((resolve) => {
    const answer: Buffer[] = [];
    const socket = connect(port, '127.0.0.1', () => void send());
    socket.setNoDelay(true);
    const send = async (): Promise<void> => {
      for (const piece of pieces) {
        if (socket.writable && piece.length > 0) socket.write(piece);
        await turn();
      }
    };
    socket.on('data', (chunk: Buffer) => answer.push(chunk));
    // The server may reset the connection if bytes arrive after its refusal.
    socket.on('error', () => undefined);
    socket.on('close', () => {
      resolve(Buffer.concat(answer).toString('latin1'));
    });
  });
}

/** The statuses of the responses, and whether the server closed the connection before the probe. */
function outcomeOf(answer: string): string {
  const statuses = [...answer.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => status ?? '');
  const kept = statuses.at(-1) === probeStatus && answer.endsWith('probe');
  if (!kept) return [...statuses, 'closed'].join(' ');
  return [...statuses.slice(0, -1), 'kept'].join(' ');
}

/** The Date fields of each final response (RFC 9110 §6.6.1). */
function datesOf(answer: string): readonly (readonly string[])[] {
  const heads = answer.match(/HTTP\/1\.1 (?:101|[2-5]\d\d) [^]*?\r\n\r\n/g) ?? [];
  return heads.map((one) => one.match(/\r\nDate: \w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT/g) ?? []);
}
