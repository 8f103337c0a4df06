import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFile, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import type { AcmeConfig } from '../../../src/core/config/config.ts';
import type { Store } from '../../../src/core/log/store.ts';
import { AcmeFolder } from '../../../src/modules/acme/folder.ts';
import { type SharedAcme, openSharedAcme } from '../../../src/modules/acme/shared-acme.ts';
import {
  sharedStates,
  usedKeys,
  writeAcmeFiles,
} from '../../../src/modules/acme/shared-certificates.ts';
import { createAuthority } from '../../certificates.ts';
import { MemoryLog } from '../../core/log/shared/memory-log.ts';
import { openNode } from '../../core/log/shared/open-node.ts';
import { type Cleaning, temporaryFolder } from '../../folder.ts';
import { noDns, notOnDemand } from './no-dns.ts';
import { upkeep } from '../../../src/modules/upkeep/upkeep.ts';

const authority = createAuthority();
const host = 'shop.example';
const token = 'evaGxfADs6pSRb2LAv9IZf17Dt3juxGJ';
const [oldKey, newKey] = [randomBytes(32), randomBytes(32)].map((key) => key.toString('base64'));
const { signal } = new AbortController();
const lost = (): void => undefined;

const settings: AcmeConfig = {
  hosts: [host],
  directory: 'https://ca.example/dir',
  eabKid: undefined,
  eabKeyFile: undefined,
  profile: undefined,
  email: undefined,
  caFile: undefined,
  allowPrivate: [],
  ...noDns,
  ...notOnDemand,
};

interface Node {
  readonly store: Store;
  readonly acme: SharedAcme;
  readonly folder: AcmeFolder;
  /** Its data folder. */
  readonly data: string;
  readonly keyFile: string;
}

/** A node of a cluster, with lines of its `secrets_key_file`. */
async function startNode(
  t: Cleaning,
  log: MemoryLog,
  {
    keys = oldKey,
    ...options
  }: {
    readonly keys?: string | undefined;
    readonly isLate?: boolean;
    readonly looks?: () => void;
  } = {},
): Promise<Node> {
  const data = await temporaryFolder(t);
  const keyFile = join(await temporaryFolder(t), 'cluster.key');
  await writeFile(keyFile, keys ?? '');
  const { looks, ...more } = options;
  const beforeEnd = (): Promise<void> => Promise.resolve(looks?.());
  const store = await openNode(t, log, { folder: data, beforeEnd, ...more });
  const folder = new AcmeFolder(data, settings);
  const shared = store.shared ?? assert.fail();
  return {
    store,
    data,
    folder,
    keyFile,
    acme: openSharedAcme(shared, { acme: settings, keyFile, folder }),
  };
}

async function issue(days = 90, name = host) {
  return (await authority).issue([name], { days });
}

/** The names of the certificate that a node has; or why it has none that it can use. */
async function certificateAt({ acme }: Node): Promise<string | undefined> {
  const pair = await acme.keyPair(host);
  return pair && ('refused' in pair ? pair.refused : pair.certificate.subjectAltName);
}

suite('what ACME stores in a cluster', () => {
  test('has the names on demand, which any node adds and forgets', async (t) => {
    const log = new MemoryLog();
    const [one, other] = [await startNode(t, log), await startNode(t, log)];
    const day = Date.parse('2026-11-28');
    const name = 'customer.example';
    const bothKnow = async (): Promise<void> => {
      for (const { store } of [one, other]) await store.shared?.catchUp();
    };
    await one.acme.onDemand.use(name, day + 5_000);
    await bothKnow();
    assert.deepEqual(await other.acme.onDemand.hosts(), new Map([[name, day]]));
    assert.deepEqual(
      [await other.acme.onDemand.has(name), await other.acme.onDemand.has(host)],
      [true, false],
    );
    await one.acme.saveCertificate(name, await issue(90, name), signal);
    await bothKnow();
    assert.ok(await other.acme.keyPair(name));
    await other.acme.onDemand.use(name, day + 86_400_000);
    await bothKnow();
    assert.deepEqual(await one.acme.onDemand.hosts(), new Map([[name, day + 86_400_000]]));
    await other.acme.onDemand.forget([name]);
    await bothKnow();
    assert.deepEqual(await one.acme.onDemand.hosts(), new Map());
    assert.equal(await one.acme.keyPair(name), undefined);
    await assert.rejects(one.acme.onDemand.use('a/b', day), TypeError);
  });

  test('is the same on all nodes, and secret', async (t) => {
    const log = new MemoryLog();
    const [one, other] = [await startNode(t, log), await startNode(t, log)];
    assert.equal(await other.acme.keyPair(host), undefined);
    await one.acme.take(lost);
    const account = await one.acme.accountKey();
    await one.acme.saveChallenge(token, `${token}.thumbprint`);
    await one.acme.saveChallenge(host, { cert: 'cert', key: 'key' });
    const pair = await issue();
    await one.acme.saveCertificate(host, pair, signal);
    const state = { state: 'valid', since: 'a', failures: 0, next: 'b', error: null } as const;
    await one.acme.saveState(host, state);
    await other.store.shared?.catchUp();
    assert.equal(await other.acme.keyAuthorization(token), `${token}.thumbprint`);
    assert.equal((await other.acme.challengeCertificate(host))?.key, 'key\ncert');
    assert.equal(await certificateAt(other), `DNS:${host}`);
    assert.deepEqual(await other.acme.state(host), state);
    await one.acme.removeChallenges();
    await one.acme.release();
    await other.acme.take(lost);
    assert.equal(await other.acme.accountKey(), account);
    assert.equal(await other.acme.keyAuthorization(token), undefined);
    await other.acme.release();

    const backup = join(await temporaryFolder(t), 'backup');
    await one.store.part(upkeep).backUp(backup);
    const texts = [...log.entries.map(({ data }) => Buffer.from(data))];
    for (const folder of [one.data, other.data, backup]) {
      texts.push(await readFile(join(folder, 'data.mdb')));
      assert.ok(!(await readdir(folder)).includes('acme'));
    }
    const bodies = [account, pair.key].map((pem) => pem.split('\n')[1] ?? assert.fail());
    for (const secret of ['PRIVATE KEY', 'thumbprint', ...bodies]) {
      assert.ok(texts.every((text) => !text.includes(secret)));
    }
    assert.equal(one.store.seq(), 0, 'no change of the site');
  });

  test('is known to a node that is late when a challenge comes', async (t) => {
    const log = new MemoryLog();
    const one = await startNode(t, log);
    const late = await startNode(t, log, { isLate: true });
    await one.acme.take(lost);
    await one.acme.saveChallenge(token, 'answer');
    assert.equal(await late.acme.keyAuthorization(token), 'answer');
    await one.acme.release();
  });

  test('is not looked for in the shared log for each token of a stranger', async (t) => {
    let looks = 0;
    const node = await startNode(t, new MemoryLog(), { looks: () => (looks += 1) });
    const before = looks;
    for (const malformed of ['', 'short', `${token}/..`, 'ä'.repeat(20), 'a'.repeat(257)]) {
      assert.equal(await node.acme.keyAuthorization(malformed), undefined);
    }
    assert.equal(await node.acme.challengeCertificate('../x'), undefined);
    assert.equal(looks, before);
    const strangers = Array.from({ length: 500 }, (_, at) => `${token}${at}`);
    await Promise.all(strangers.map((one) => node.acme.keyAuthorization(one)));
    assert.ok(looks - before <= 3, `${looks - before} looks`);
  });

  test('cannot be used by a node with another key, which orders nothing', async (t) => {
    const log = new MemoryLog();
    const [one, other] = [await startNode(t, log), await startNode(t, log, { keys: newKey })];
    await one.acme.take(lost);
    await one.acme.accountKey();
    await one.acme.saveChallenge(token, 'answer');
    await one.acme.saveCertificate(host, await issue(), signal);
    await one.acme.release();
    await other.store.shared?.catchUp();
    const [id = ''] = usedKeys(other.store.sharedValues);
    const why = `is encrypted with the key ${id}, which ${other.keyFile} does not have`;
    assert.equal((await certificateAt(other))?.startsWith(why), true);
    assert.equal(await other.acme.keyAuthorization(token), undefined);
    await assert.rejects(other.acme.take(lost), { code: 'invalid', message: /copy that file/ });
    await writeFile(other.keyFile, 'no key');
    assert.match((await certificateAt(other)) ?? '', /^cannot be decrypted, because .* has no key/);
    await writeFile(other.keyFile, `${newKey}\n${oldKey}\n`);
    assert.equal(await certificateAt(other), `DNS:${host}`);
    await other.acme.take(lost);
    await other.acme.release();
  });

  test('is encrypted again with the first key of a file', async (t) => {
    const log = new MemoryLog();
    const node = await startNode(t, log);
    await node.acme.take(lost);
    const account = await node.acme.accountKey();
    await node.acme.saveCertificate(host, await issue(), signal);
    const before = usedKeys(node.store.sharedValues);
    await writeFile(node.keyFile, `${newKey}\n${oldKey}\n`);
    await node.acme.encryptAgain();
    const after = usedKeys(node.store.sharedValues);
    assert.deepEqual([before.length, after.length], [1, 1]);
    assert.notEqual(after[0], before[0]);
    const entries = log.entries.length;
    await node.acme.encryptAgain();
    assert.equal(log.entries.length, entries, 'once');
    await writeFile(node.keyFile, newKey ?? '');
    assert.equal(await certificateAt(node), `DNS:${host}`);
    assert.equal(await node.acme.accountKey(), account);
    await node.acme.release();
  });

  test('is refused if its text was changed or exchanged', async (t) => {
    const node = await startNode(t, new MemoryLog());
    const { values } = node.store.shared ?? assert.fail();
    await node.acme.saveCertificate(host, await issue(), signal);
    await node.acme.saveCertificate('other.example', await issue(90, 'other.example'), signal);
    const [[otherName, others] = assert.fail(), [name, own] = assert.fail()] =
      values.withPrefix('acme certificate ');
    assert.match(`${otherName} ${name}`, /other\.example .*shop\.example$/);
    await values.write(() => [[name, others]]);
    assert.match((await certificateAt(node)) ?? '', /^was changed after it was encrypted/);
    await values.write(() => [[name, own.replace(/.{4}"}$/, 'AAAA"}')]]);
    assert.match((await certificateAt(node)) ?? '', /^was changed after it was encrypted/);
  });

  test('keeps the certificate that ends last, also of a node that has lost its turn', async (t) => {
    const log = new MemoryLog();
    const [one, other] = [await startNode(t, log), await startNode(t, log)];
    await one.acme.take(lost);
    await assert.rejects(other.acme.take(lost), { code: 'conflict' });
    const state = { state: 'failed', since: 'a', failures: 1, next: 'b', error: 'e' } as const;
    await assert.rejects(other.acme.saveState(host, state), { code: 'conflict' });
    await assert.rejects(other.acme.saveChallenge(token, 'x'), { code: 'conflict' });
    await one.acme.saveCertificate(host, await issue(60), signal);
    await other.acme.saveCertificate(host, await issue(30), signal);
    const endOf = async (node: Node): Promise<number> => {
      await node.store.shared?.catchUp();
      const pair = await node.acme.keyPair(host);
      if (pair === undefined || 'refused' in pair) assert.fail();
      return Math.round((pair.certificate.validToDate.getTime() - Date.now()) / 86_400_000);
    };
    assert.equal(await endOf(other), 60);
    await other.acme.saveCertificate(host, await issue(90), signal);
    assert.equal(await endOf(one), 90);
    await one.acme.release();
  });

  test('gets an issued certificate as soon as the shared log can be reached again', async (t) => {
    const log = new MemoryLog();
    const node = await startNode(t, log);
    log.next('lost', 'lost');
    await node.acme.saveCertificate(host, await issue(), signal);
    assert.equal(await certificateAt(node), `DNS:${host}`);
    log.next('lost');
    await assert.rejects(node.acme.saveCertificate(host, await issue(99), AbortSignal.abort()), {
      code: 'unavailable',
    });
  });
});

suite('the certificates of a machine', () => {
  test('move into its cluster, and back when it leaves', async (t) => {
    const log = new MemoryLog();
    const [one, other] = [await startNode(t, log), await startNode(t, log)];
    await one.folder.prepare();
    const account = await one.folder.accountKey();
    await one.folder.saveCertificate(host, await issue(60));
    const state = { state: 'valid', since: 'a', failures: 0, next: 'b', error: null } as const;
    await one.folder.saveState(host, state);
    assert.deepEqual(await one.acme.moveFiles(), [host]);
    assert.equal(await one.folder.keyPair(host), undefined, 'no private key in plain text');
    assert.equal(await one.folder.knownAccountKey(), undefined);
    assert.deepEqual(await one.acme.moveFiles(), []);
    await other.store.shared?.catchUp();
    assert.equal(await certificateAt(other), `DNS:${host}`);
    assert.deepEqual(await other.acme.state(host), state);

    await other.folder.prepare();
    await other.folder.accountKey();
    await other.folder.saveCertificate(host, await issue(30));
    await other.folder.saveState(host, { ...state, failures: 3 });
    await other.acme.take(lost);
    assert.equal(await other.folder.keyPair(host), undefined);
    assert.equal(await other.acme.accountKey(), account, 'the cluster has an account already');
    assert.deepEqual(await other.acme.state(host), state, 'that of the certificate that ends last');
    await other.acme.release();

    await one.store.shared?.catchUp();
    assert.deepEqual(sharedStates(one.store.sharedValues), [[host, state]]);
    const { data, keyFile } = one;
    const leaving = { data, acme: settings };
    const values = one.store.sharedValues;
    const missing = join(data, 'missing.key');
    const [left] = await writeAcmeFiles(values, { ...leaving, keyFile: missing });
    assert.match(left?.refused ?? '', /missing\.key does not exist/);
    assert.deepEqual(await writeAcmeFiles(values, { ...leaving, keyFile }), []);
    const pair = await one.folder.keyPair(host);
    assert.ok(pair !== undefined && 'certificate' in pair);
    assert.equal(await one.folder.knownAccountKey(), account);
    assert.deepEqual(await one.folder.state(host), state);
  });
});
