// Breaks the code on purpose, to prove that the checker of `npm run faults:shop` notices:
// `NODE_OPTIONS=--import …/broken.ts BROKEN=<name>` replaces one text of a source file when it is
// loaded. No file of src/ knows of this.
import { registerHooks } from 'node:module';

interface Break {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

const breaks: Readonly<Record<string, Break>> = {
  // The centre does not recognise an entry that it has already stored.
  claim: {
    file: 'src/api/webhooks/events.ts',
    from: "if (earlier !== undefined) return { drafts: [], answer: () => earlier.seq };\n    if (reads.rows('event', id).length > 0) {",
    to: 'if (false) {',
  },
  // The counter takes an entry for stored before the centre has answered.
  early: {
    file: 'src/nodes/outbox-sender.ts',
    from: 'const { client, apikey } = central;',
    to: 'await store.outbox.settle(entries.map(({ n }) => ({ n, seq: 1 })));\n    const { client, apikey } = central;',
  },
  // A copy shows parts of transactions.
  half: {
    file: 'src/nodes/transactions.ts',
    from: 'if (areLast) this.#complete = this.#rows.length;',
    to: 'this.#complete = Math.ceil(this.#rows.length / 2);',
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
