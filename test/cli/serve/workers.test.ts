import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AccessMessage } from '../../../src/cli/serve/worker-messages.ts';
import {
  LeaderAccess,
  type MessagePort,
  liveMessagesUnreadMax,
} from '../../../src/cli/serve/workers.ts';

interface TestPort extends MessagePort {
  readonly got: AccessMessage[];
  readonly taken: (() => void)[];
}

function port(): TestPort {
  const got: AccessMessage[] = [];
  const taken: (() => void)[] = [];
  return {
    got,
    taken,
    isConnected: () => true,
    send: (message, sent) => {
      got.push(message);
      taken.push(sent);
    },
  };
}

const lines = (count: number): AccessMessage => ({
  kind: 'access-lines',
  lines: { rows: Array.from({ length: count }, () => ({})) as never, dropped: 0 },
});

test('lines go to the workers whose clients read them; one that takes none gets their number', () => {
  const leader = new LeaderAccess();
  const [reading, other] = [port(), port()];
  const workers = [reading, other];
  leader.handle({ kind: 'watch-access', isWatching: true }, reading, workers);
  assert.deepEqual(other.got, [{ kind: 'watch-access', isWatching: true }]);
  assert.deepEqual(reading.got, [{ kind: 'watch-access', isWatching: false }]);
  const before = reading.got.length;
  for (let at = 0; at < liveMessagesUnreadMax + 2; at += 1) leader.handle(lines(3), other, workers);
  assert.equal(reading.got.length, before + liveMessagesUnreadMax);
  reading.taken.at(-1)?.();
  leader.handle(lines(1), other, workers);
  const last = reading.got.at(-1);
  assert.equal(last?.kind === 'access-lines' && last.lines.dropped, 6);
  leader.handle(lines(1), reading, workers);
  assert.equal(other.got.length, 1, 'a worker that does not read gets no lines');
  leader.remove(reading, [other]);
  assert.deepEqual(other.got.at(-1), { kind: 'watch-access', isWatching: false });
});
