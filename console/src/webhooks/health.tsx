import { Countdown } from '../components/countdown.tsx';
import { When } from '../components/ui.tsx';
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
  /** When its next batch leaves, of a hook with batches. */
  readonly next_batch?: string;
  readonly recent: { readonly attempts: number; readonly failed: number; readonly ms: number };
  readonly last?: { readonly at: string; readonly status?: number; readonly error?: string };
}

/** The state of a hook in a word, which its colour repeats. */
export function StateTag({ state }: { state: Health['state'] }) {
  const colour = { healthy: 'good', failing: 'bad', idle: '', paused: '' }[state];
  return <span class={`tag ${colour}`}>{t.states[state]}</span>;
}

/** The time until the next batch of a hook leaves; nothing for one without. */
export function NextBatch({ health: { next_batch: at } }: { health: Pick<Health, 'next_batch'> }) {
  return at === undefined ? null : (
    <p class="note">
      {t.nextBatch} <Countdown until={at} /> (<When time={at} />)
    </p>
  );
}
