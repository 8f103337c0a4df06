import { families } from '../../../src/families.ts';
import { uuidv7 } from 'uuidv7';
import { failureFrom } from '../../../src/core/values/failure.ts';
import { openStore } from '../../../src/core/log/open.ts';
import { edited, inserted } from './scratch.ts';
import { storedRules } from '../../../src/modules/rules/log/family.ts';

// A process that writes page rules, 64 at a time. Arguments: the folder, the number of rules, and
// the size of their content. It inserts and edits each rule in one commit, and prints the seqs of
// every acknowledged commit, and the code of a failure.

const [folder = '', count = '0', contentLength = '10'] = process.argv.slice(2);
const store = await openStore({ families, folder, now: Date.now, newId: uuidv7 });
let left = Number(count);
process.stdout.write('ready\n');

await Promise.all(
  Array.from({ length: 64 }, async () => {
    while (left > 0) {
      left -= 1;
      const id = uuidv7();
      const path = `/child/${left % 7}`;
      const content = 'x'.repeat(Number(contentLength));
      try {
        const changes = await store.commit('child', () => ({
          drafts: [inserted(id, { path, content }), edited(id, { lang: 'en', path: `${path}/*` })],
          answer: (logged) => logged,
        }));
        process.stdout.write(`${changes.map(({ seq }) => seq).join(' ')} ${id}\n`);
      } catch (error) {
        process.stdout.write(`${failureFrom(error).code}\n`);
        left = 0;
      }
    }
  }),
);

const [[first] = []] = store.of(storedRules).wildcardRules('*', '/child/1/page');
process.stdout.write(
  `read ${first === undefined ? 'nothing' : store.of(storedRules).rule(first.id)?.rule.lang}\n`,
);
try {
  await store.commit('child', () => ({
    drafts: [inserted(uuidv7(), { path: '/small' })],
    answer: () => undefined,
  }));
  process.stdout.write('stored\n');
} catch (error) {
  process.stdout.write(`${failureFrom(error).code}\n`);
}
await store.close();
