import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { PassThrough } from 'node:stream';
import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises';
import { createSharedLimits } from '../../../../src/core/fair/shared-limits.ts';
import { TokenBuckets } from '../../../../src/core/fair/token-buckets.ts';
import { replyField } from '../../../../src/core/http/reply.ts';
import {
  createWrongKeys,
  wrongKeysPerMinuteMax,
} from '../../../../src/core/operations/keys/authenticate.ts';
import { MIB } from '../../../../src/core/values/units.ts';
import { OnDemandCertificates } from '../../../../src/modules/acme/on-demand-certificates.ts';
import { createResponseCompressor } from '../../../../src/modules/compression/compressors.ts';
import { createPageCompressor } from '../../../../src/modules/compression/page-compressor.ts';
import { createAnonymousWrites } from '../../../../src/modules/tables/rows/anonymous-writes.ts';
import { addressA, addressB, floodWith, type Attacked, type Row } from './row.ts';

const [clientA, clientB] = [addressA, addressB].map((address) => ({ keyId: undefined, address }));

/** A bound of which clients take amounts at once, or not at all. */
function taking(take: (client: typeof clientA & object) => unknown): () => Promise<Attacked> {
  return () =>
    Promise.resolve({
      async ask() {
        take(clientB ?? assert.fail());
        await nextTurn();
      },
      async attack() {
        assert.throws(() => {
          for (;;) take(clientA ?? assert.fail());
        });
        await nextTurn();
      },
    });
}

const shared = createSharedLimits();

/** Bounds that are tried without a server, since the attack is the same for all of them. */
export const partRows: readonly Row[] = [
  {
    bound: 'websockets and other protocols to sources',
    of: ['core/fair/shared-limits.ts', 'core/server/h1/tunnels.ts'],
    limits: ['tunnels'],
    start: taking((client) => {
      shared.tunnels.take(client, 1);
    }),
  },
  {
    bound: 'bytes of unanswered requests',
    of: ['core/fair/shared-limits.ts'],
    limits: ['requests_held'],
    start: taking((client) => {
      shared.requests.take(client, MIB / 4);
    }),
  },
  {
    bound: 'bytes of unread answers',
    of: ['core/fair/shared-limits.ts'],
    limits: ['unread_answers'],
    start: taking((client) => {
      shared.unread.hold(client, [Buffer.allocUnsafeSlow(MIB)], { encrypted: true });
    }),
  },
  {
    bound: 'wrong API keys',
    of: ['core/operations/keys/authenticate.ts', 'cli/serve/worker-metrics.ts'],
    limits: ['wrong_keys'],
    start() {
      const wrongKeys = createWrongKeys(new TokenBuckets({ monotonicMs: () => 0 }));
      return taking(({ address }) => {
        wrongKeys.count(address);
      })();
    },
  },
  {
    bound: 'rows without a key',
    of: ['modules/tables/rows/anonymous-writes.ts'],
    limits: ['anonymous_writes'],
    start() {
      const writes = createAnonymousWrites(new TokenBuckets({ monotonicMs: () => 0 }));
      return taking(({ address }) => {
        writes.count(address);
      })();
    },
  },
  {
    bound: 'handshakes for names without a certificate',
    of: ['modules/acme/on-demand-certificates.ts'],
    start(t) {
      const store = {
        onDemand: { has: () => Promise.resolve(false) },
      } as unknown as ConstructorParameters<typeof OnDemandCertificates>[0]['store'];
      // The operator's server does not answer for the names of A.
      const permissions = {
        of: (host: string) =>
          host.startsWith('a')
            ? new Promise<never>(() => undefined)
            : delay(20, 'refused' as const),
      };
      const certificates = new OnDemandCertificates({
        ...{ store, permissions, waitMs: 1_000, demanded: () => undefined },
        ...{ now: Date.now, wait: delay },
      });
      let asked = 0;
      return Promise.resolve({
        ask: async (at) => {
          const before = performance.now();
          assert.equal(await certificates.pairFor(`b${at}.example`, addressB), undefined);
          assert.ok(performance.now() - before >= 10, 'the server was asked');
        },
        async attack() {
          for (; asked < 300; asked += 1) void certificates.pairFor(`a${asked}.example`, addressA);
          await nextTurn();
          t.diagnostic(`${asked} handshakes of A`);
        },
      });
    },
  },
  {
    bound: 'pages that are compressed once',
    of: ['modules/compression/page-compressor.ts'],
    start(t) {
      const compressor = createPageCompressor();
      t.after(() => {
        compressor.close();
      });
      const pageOf = (name: string) => {
        const bytes = Buffer.from(randomBytes(40_000).toString('hex'));
        const representation = {
          ...{ status: 200, contentType: 'text/html', etag: `"${name}"` },
          ...{ lastModifiedMs: undefined, fields: [], bytesLength: bytes.length },
        };
        return compressor.prepare({ representation, bytes }, { source: name });
      };
      const coded = async (
        page: ReturnType<typeof pageOf>,
        address: typeof addressA | typeof addressB,
      ) => {
        const fields = { 'accept-encoding': 'gzip' };
        const ask = () => compressor.respond(page, { method: 'GET', fields, address });
        while (!t.signal.aborted && replyField(ask(), 'content-encoding') === undefined)
          await delay(1);
      };
      return Promise.resolve({
        ask: (at) => coded(pageOf(`b${at}`), addressB),
        attack: () => floodWith(t, 100, (at) => coded(pageOf(`a${at}`), addressA)),
      });
    },
  },
  {
    bound: 'answers that are compressed while they are sent',
    of: ['modules/compression/compressors.ts'],
    start(t) {
      const compressor = createResponseCompressor();
      const content = Buffer.from(randomBytes(100_000).toString('hex'));
      return Promise.resolve({
        async ask() {
          const own = Buffer.from(content);
          const bytes = await compressor.bytes(own, 'gzip', clientB ?? assert.fail());
          assert.ok(bytes !== undefined);
        },
        async attack() {
          for (let at = 0; at < 100; at += 1) {
            const stream = compressor.stream(new PassThrough(), 'gzip', clientA ?? assert.fail());
            t.after(() => stream?.destroy());
          }
          await nextTurn();
        },
      });
    },
  },
];

assert.ok(wrongKeysPerMinuteMax > 2 * 7, 'B sends fewer wrong keys than one may');
