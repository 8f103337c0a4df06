import { openAsBlob } from 'node:fs';
import { basename } from 'node:path';
import { listAssets } from './operations/assets.ts';
import type { Operations } from '../../cli/client/operations.ts';
import type { JsonObject } from '../../core/values/json/json.ts';
import { UsageError } from '../../cli/command.ts';
import { callApi, putToApi } from '../../cli/remote/api-client.ts';
import { clientCommand, table, type Subcommand } from '../../cli/remote/client-command.ts';
import { inputOptions, operationSubcommands } from '../../cli/remote/operation-command.ts';

type Asset = Operations['asset.list']['output']['rows'][number];

/** `waymark asset put | list | read | invalidate`. */
export const defineAsset = clientCommand({
  description: 'Upload, list and delete the pictures and other files of pages.',
  subcommands: operationSubcommands('asset', {
    put: putAct(),
    list: listAct(),
    invalidate: invalidateAct(),
  }),
});

function putAct(): Subcommand {
  return {
    summary: 'upload a file; one of the same name is replaced',
    args: {
      '<file>': 'the file to upload',
      '[name]': 'the name of the asset, such as photos/harbour.jpg; default: that of the file',
    },
    inDrafts: true,
    async *run([file = '', name = basename(file)], { api }) {
      const body = await fileBlob(file);
      const answer = await putToApi(api, name, body);
      const { name: stored, bytes, contenttype } = answer.data;
      yield { answer, lines: [stored], notes: [`Stored ${bytes} bytes of ${contenttype}.`] };
    },
  };
}

async function fileBlob(file: string): Promise<Blob> {
  try {
    return await openAsBlob(file);
  } catch (error) {
    const { code = 'unreadable' } = error as NodeJS.ErrnoException;
    throw new UsageError(`cannot read ${file}: ${code}.`);
  }
}

function listAct(): Subcommand {
  const { properties } = listAssets.input as { readonly properties: Record<string, JsonObject> };
  const fields = Object.entries(properties);
  return {
    summary: 'list assets by name, with the page rules that show them',
    options: inputOptions(fields.filter(([field]) => field !== 'after' && field !== 'limit')),
    inDrafts: true,
    async *run(_args, { api, input: v }) {
      let after: string | undefined;
      do {
        const page = { ...v, ...(after !== undefined && { after }) };
        const answer = await callApi(api, 'asset.list', { v: page });
        const { rows, next } = answer.data;
        const lines = table(['BYTES', 'TYPE', 'USED', 'NAME'], rows.map(cells));
        yield { answer, lines: after === undefined ? lines : lines.slice(1) };
        after = next ?? undefined;
      } while (after !== undefined);
    },
  };
}

function cells({ bytes, contenttype, used, name }: Asset): readonly string[] {
  return [String(bytes), contenttype, String(used), name];
}

function invalidateAct(): Subcommand {
  return {
    summary: 'delete an asset; without --confirm, only show who uses it',
    args: { '<name>': 'the name of the asset' },
    options: {
      confirm: {
        value: 'digest',
        description: 'the digest that the command printed without --confirm',
      },
    },
    writes: true,
    inDrafts: true,
    async *run([name = ''], { api, vk, input }) {
      const answer = await callApi(api, 'asset.invalidate', { v: { name, ...input }, vk });
      const { done, used, uses, digest = '', txn = '' } = answer.data;
      const shown = uses.map(({ origin, path }) => (origin === '*' ? path : origin + path));
      const more = used > shown.length ? [`and ${used - shown.length} more`] : [];
      if (done) {
        const undo = `To undo this: waymark record invalidate asset --txn ${txn}`;
        yield { answer, lines: [txn], notes: [`Deleted ${name}.`, undo] };
        return;
      }
      const users = used === 0 ? 'No page rule shows it.' : 'These pages would have no file:';
      yield { answer, lines: [...shown, ...more, digest], notes: [users, 'Confirm the digest.'] };
    },
  };
}
