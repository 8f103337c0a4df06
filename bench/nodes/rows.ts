import { newId } from '../../src/core/values/clock.ts';
import type { Draft } from '../../src/core/log/change.ts';
import type { Store } from '../../src/core/log/store.ts';

const rowsAtOnce = 500;

/** Page rules as the lines of an import. */
export function ruleLines(count: number, folder: string): string {
  const lines = Array.from({ length: count }, (_, n) => {
    const path = `/${folder}/${n}/page.html`;
    return JSON.stringify({ path, content: `<p>The text of page ${n}</p>` });
  });
  return lines.join('\n');
}

/**
 * Writes half events, a quarter inserts of page rules and a quarter edits, each in a transaction.
 */
export async function writeMixedRows(store: Store, count: number): Promise<void> {
  const rules: string[] = [];
  const drafts = (n: number): Draft => {
    const kind = n % 4;
    if (kind === 0) rules.push(newId());
    const id = rules.at(-1) ?? '';
    const page = { origin: '*', path: `/rule/${n}`, kind: 'content', content: `<p>${n}</p>` };
    if (kind === 0) return { family: 'userinterface', id, action: 'insert', data: page };
    if (kind === 1) {
      const data = { content: `<p>Edited ${n}</p>` };
      return { family: 'userinterface', id, action: 'edit', data };
    }
    const data = { type: 'shop.sale', data: { n, total: '12.50', shop: 'shop-1' } };
    return { family: 'event', id: newId(), action: 'insert', data };
  };
  for (let at = 0; at < count; at += rowsAtOnce) {
    const some = Array.from({ length: Math.min(rowsAtOnce, count - at) }, (_, n) => at + n);
    await Promise.all(
      some.map((n) =>
        store.commit('bench', () => ({ drafts: [drafts(n)], answer: () => undefined })),
      ),
    );
  }
}
