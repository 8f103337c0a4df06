import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { suite, test } from 'node:test';
import { cleaningAfterAll } from '../../folder.ts';
import { until } from './nats.ts';
import { Appender, entriesUpTo, needsNats, startLog, type LogRig } from './rig.ts';

// Killing the leader of the stream stalls appends for 4 to 9 s, which `npm run faults:log` does
// often.
suite('a log in a stream of three servers', needsNats, () => {
  const cleaning = cleaningAfterAll();
  let rig: Promise<LogRig> | undefined;
  const started = (): Promise<LogRig> => (rig ??= startLog(cleaning, 3));

  test('goes on without a follower that is killed or stopped', async () => {
    const { servers, open, leader } = await started();
    const nodes = [new Appender(await open()), new Appender(await open())];
    const [one, other] = nodes;
    assert.ok(one !== undefined && other !== undefined);
    let texts = 0;
    const write = async (count: number): Promise<void> => {
      for (let n = 0; n < count; n += 1) {
        texts += 1;
        await (n % 2 === 0 ? one : other).append(`text ${texts}`);
      }
    };
    await write(50);
    const first = await leader();
    const [killed, stopped] = servers.filter((server) => server !== first);
    assert.ok(killed !== undefined && stopped !== undefined);
    await killed.kill();
    await write(50);
    await killed.start();
    stopped.freeze();
    await write(20);
    stopped.thaw();
    await write(20);
    for (const node of nodes) {
      await node.reach(Math.max(one.position, other.position));
      const seen = node.seen.map(({ data }) => Buffer.from(data).toString());
      assert.deepEqual(
        seen,
        Array.from({ length: texts }, (_, at) => `text ${at + 1}`),
      );
      await node.stop();
    }
  });

  test('without most servers, an append is not acknowledged; with them, it is known which one is stored', async () => {
    const { servers, open, leader } = await started();
    const [shared, reader] = [await open(), await open()];
    const before = await until(() => shared.end());
    const first = await leader();
    const others = servers.filter((server) => server !== first);
    for (const server of others) server.freeze();
    const data = randomBytes(3 * 2 ** 20);
    let isAcknowledged = false;
    const appended = shared.append(data, before).then(
      (position) => {
        isAcknowledged = true;
        return position;
      },
      () => undefined,
    );
    // The leader may act as such until 3 s after the last message of the other servers.
    await until(() => assert.rejects(reader.end(), { code: 'unavailable' }));
    assert.equal(isAcknowledged, false);
    for (const server of others) server.thaw();
    const position = await appended;
    const end = await until(async () => {
      const stored = position ?? (await shared.append(Buffer.from('next'), before));
      return stored ?? (await shared.end());
    }, 40_000);
    const [entry] = await entriesUpTo(reader, end, before);
    if (position !== undefined) assert.ok(entry !== undefined && data.equals(entry.data));
    assert.equal(entry?.after, before);
  });
});
