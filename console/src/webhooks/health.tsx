import { texts } from '../texts.ts';

const t = texts.webhooks;

/** A row of webhook.health. */
export interface Health {
  readonly id: string;
  readonly name?: string;
  readonly url: string;
  readonly method: string;
  readonly event: readonly string[];
  readonly state: keyof typeof t.states;
  readonly seq: number;
  readonly queued: number;
  readonly waiting: number;
  readonly oldest?: string;
  readonly recent: { readonly attempts: number; readonly failed: number; readonly ms: number };
  readonly last?: { readonly at: string; readonly status?: number; readonly error?: string };
}

/** The state of a hook in a word, which its colour repeats. */
export function StateTag({ state }: { state: Health['state'] }) {
  const colour = { healthy: 'good', failing: 'bad', idle: '', paused: '' }[state];
  return <span class={`tag ${colour}`}>{t.states[state]}</span>;
}
