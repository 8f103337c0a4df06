// Breaks the code on purpose, to prove that the checks of the fault runs notice it:
// `NODE_OPTIONS=--import …/broken.ts BROKEN=<name>` replaces a text of a source file when Node
// loads it. No file of src/ depends on this.
import { registerHooks } from 'node:module';

interface Break {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

export const breaks: Readonly<Record<string, Break>> = {
  // The centre does not recognise an entry that it has already stored.
  claim: {
    file: 'src/modules/webhooks/operations/events.ts',
    from: 'if (first !== undefined) {\n      const { hooks = 0 }',
    to: 'if (false) {\n      const { hooks = 0 }',
  },
  // The counter treats an entry as stored before the centre has answered.
  early: {
    file: 'src/modules/nodes/outbox-sender.ts',
    from: 'const { client, apikey } = central;',
    to: 'await store.part(outboxPart).settle(entries.map(({ n }) => ({ n, seq: 1 })));\n    const { client, apikey } = central;',
  },
  // A copy shows parts of transactions.
  half: {
    file: 'src/modules/nodes/copy-rows.ts',
    from: 'if (areLast) this.#complete = this.#rows.length;',
    to: 'this.#complete = Math.ceil(this.#rows.length / 2);',
  },
  // A node of a cluster does not learn which idempotency keys the others know.
  'cluster-claim': {
    file: 'src/modules/cluster/log/shared-follower.ts',
    from: 'for (const [key, value] of claims)',
    to: 'for (const [key, value] of [])',
  },
  // The position is not in the transaction of the rows: a kill in between leaves rows out.
  'cluster-cursor': {
    file: 'src/modules/cluster/log/shared-follower.ts',
    from: 'const copied = copiedRows(rows, reads.seq());\n        return () => {',
    to: "const copied = copiedRows(rows, reads.seq());\n        return Math.random() < 0.02 ? () => { putSharedPlace(databases, { id: shared.id, position }); setTimeout(() => process.kill(process.pid, 'SIGKILL'), 5); return { result: undefined, bytes: 0 }; } : () => {",
  },
  // A node appends without demanding that it has seen the newest entry.
  'cluster-append': {
    file: 'src/modules/cluster/append.ts',
    from: "if (at === 0) fields.set('Nats-Expected-Last-Sequence', String(after));",
    to: '',
  },
};

const broken = breaks[process.env.BROKEN ?? ''];
if (broken !== undefined) {
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context);
      if (!url.endsWith(broken.file)) return loaded;
      const { source: text } = loaded;
      const source = typeof text === 'string' ? text : Buffer.from(text as Uint8Array).toString();
      if (!source.includes(broken.from)) throw new Error(`${broken.file} has changed`);
      return { ...loaded, source: source.replace(broken.from, () => broken.to) };
    },
  });
}
