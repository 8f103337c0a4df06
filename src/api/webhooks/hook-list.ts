import { isDelivered, type Hook } from '../../model/hook.ts';
import { listRowsDefault, listRowsMax } from '../limits.ts';
import type { Reads } from '../../store/store.ts';
import { hookView } from './hooks.ts';
import { listedHooks } from './hooks-description.ts';
import type { Handler } from '../operation.ts';
import { textSearch } from '../rules/text-search.ts';

interface ListInput {
  event?: string;
  active?: boolean;
  text?: string;
  after?: string;
  limit?: number;
}

const optionalText = { type: 'string', nullable: true } as const;

/**
 * webhook.list: hooks in the order of their ids, which is that of their inserts; `next` goes into
 * `after` for the next page, and is null at the end.
 */
export function listHooks({
  store,
}: {
  readonly store: Pick<Reads, 'hooksAfter'>;
}): Handler<ListInput> {
  return {
    summary: 'Hooks that all filters let through, in the order of their inserts.',
    output: listedHooks,
    input: {
      type: 'object',
      properties: {
        event: { ...optionalText, description: 'Hooks that name this event type, or *.' },
        active: { type: 'boolean', nullable: true },
        text: { ...optionalText, description: 'Found in any field, in any case of letters.' },
        after: { ...optionalText, description: 'The next of the page before.' },
        limit: { type: 'integer', minimum: 1, maximum: listRowsMax, nullable: true },
      },
    },
    run: ({ after = '', limit = listRowsDefault, ...filters }) => {
      const rows: object[] = [];
      for (const stored of store.hooksAfter(after)) {
        if (!passes(stored.hook, filters)) continue;
        rows.push(hookView(stored));
        if (rows.length === limit) return { kind: 'data', data: { rows, next: stored.hook.id } };
      }
      return { kind: 'data', data: { rows, next: null } };
    },
  };
}

function passes(hook: Hook, { event, active, text }: Omit<ListInput, 'after' | 'limit'>): boolean {
  return (
    (event === undefined || hook.event.includes(event)) &&
    (active === undefined || isDelivered(hook) === active) &&
    (text === undefined || textSearch(text)(hook))
  );
}
