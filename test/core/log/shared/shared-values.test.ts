import { families } from '../../../../src/families.ts';
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { uuidv7 } from 'uuidv7';
import { openStore } from '../../../../src/core/log/open.ts';
import type { Values } from '../../../../src/core/log/shared/shared-values.ts';
import type { Store } from '../../../../src/core/log/store.ts';
import { temporaryFolder } from '../../../folder.ts';
import { MemoryLog } from './memory-log.ts';
import { openNode } from './open-node.ts';
import { membership } from '../../../../src/modules/cluster/log/join.ts';
import { rowLogPart } from '../../../../src/modules/nodes/log/open-row-log.ts';

function valuesOf(store: Store): Values {
  return store.shared?.values ?? assert.fail('the store shares no log');
}

/** Resolves after the next change of the values of a node. */
function changed(store: Store): Promise<void> {
  return new Promise((resolve) => {
    const end = valuesOf(store).onChange(() => {
      end();
      resolve();
    });
  });
}

suite('values that the nodes of a cluster share', () => {
  test('are the same on all nodes, each of which learns of changes', async (t) => {
    const log = new MemoryLog();
    const [one, other] = [await openNode(t, log), await openNode(t, log)];
    const learnt = changed(other);
    await valuesOf(one).write(() => [
      ['a 1', 'x'],
      ['a 2', 'y'],
      ['b', 'z'],
    ]);
    await learnt;
    assert.deepEqual(valuesOf(other).withPrefix('a '), [
      ['a 1', 'x'],
      ['a 2', 'y'],
    ]);
    await valuesOf(other).write(() => [['a 1', null]]);
    assert.equal(valuesOf(other).get('a 1'), undefined);
    await one.shared?.catchUp();
    assert.equal(valuesOf(one).get('a 1'), undefined);
    assert.equal(one.seq(), 0, 'they are no changes of the log');
  });

  test('are decided on the newest state', async (t) => {
    const log = new MemoryLog();
    const nodes = [await openNode(t, log), await openNode(t, log), await openNode(t, log)];
    await Promise.all(
      nodes.map((node) =>
        valuesOf(node).write((values) => [['n', String(Number(values.get('n') ?? 0) + 1)]]),
      ),
    );
    const [one = assert.fail()] = nodes;
    await one.shared?.catchUp();
    assert.equal(valuesOf(one).get('n'), '3');
  });

  test('with a task, are written by the node whose turn it is', async (t) => {
    const log = new MemoryLog();
    const [one, other] = [await openNode(t, log), await openNode(t, log)];
    const [mine, its] = [one, other].map((node) => node.shared?.task('x'));
    if (mine === undefined || its === undefined) assert.fail();
    const lost = (): void => undefined;
    await mine.take(lost);
    await valuesOf(one).write(() => [['n', '1']], mine);
    await assert.rejects(
      valuesOf(other).write(() => [['n', '2']], its),
      { code: 'conflict' },
    );
    await mine.release();
    await its.take(lost);
    await valuesOf(other).write(() => [['n', '2']], its);
    await assert.rejects(
      valuesOf(one).write(() => [['n', '3']], mine),
      { code: 'conflict' },
    );
    assert.equal(valuesOf(other).get('n'), '2');
    await its.release();
  });

  test('go with the history into a new cluster, without the turns of tasks', async (t) => {
    const folder = await temporaryFolder(t);
    const one = await openNode(t, new MemoryLog(), { folder });
    await valuesOf(one).write(() => [['n', '1']]);
    await one.shared?.task('x').take(() => undefined);
    await one.close();
    const alone = await openStore({ families, folder, now: Date.now, newId: uuidv7 });
    await alone.part(membership).leave();
    const log = new MemoryLog(alone.part(rowLogPart).identity().id);
    await alone.close();
    const again = await openNode(t, log, { folder, uploadProgress: () => undefined });
    const other = await openNode(t, log);
    await other.shared?.catchUp();
    assert.equal(valuesOf(other).get('n'), '1');
    await other.shared?.task('x').take(() => undefined);
    assert.equal(valuesOf(again).get('n'), '1');
  });
});
