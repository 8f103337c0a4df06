import { texts } from '../texts.ts';
import type { Draft } from './draft-record.ts';

const t = texts.drafts;

/** The state of a draft in a word, which its colour repeats. */
export function StateTag({ state }: Pick<Draft, 'state'>) {
  const colour = { open: '', published: 'good', discarded: 'bad' }[state];
  return <span class={`tag ${colour}`}>{t.states[state]}</span>;
}
