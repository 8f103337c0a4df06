import type { RefObject } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Problem } from '../api/api.ts';
import { newBranch, sharesOf, type BranchDraft, type BreadcrumbDraft } from './draft.ts';
import { outcomeText, visitorsText } from './sentences.ts';
import { problemsOf } from '../api/problems.ts';
import { texts } from '../texts.ts';
import { Icon } from '../components/ui.tsx';
import { BranchFields, Outcome } from './breadcrumb-fields.tsx';

const t = texts.breadcrumbs;

interface BranchesProps {
  readonly draft: BreadcrumbDraft;
  readonly problems: readonly Problem[];
  readonly onInput: (change: (before: BreadcrumbDraft) => BreadcrumbDraft) => void;
}

/** The branches of a breadcrumb as sentences, and the form that changes them. */
export function Branches({ draft, problems, onInput }: BranchesProps) {
  const { branches, otherwise } = draft;
  const list = useRef<HTMLOListElement>(null);
  const { said, move, add, remove } = useListChanges(draft, onInput, list);
  return (
    <>
      <Shares draft={draft} />
      <p class="unseen" role="status">
        {said}
      </p>
      <ol class="branches" ref={list}>
        {branches.map((branch, at) => (
          <li key={branch.id} class="branch" data-branch={branch.id}>
            <BranchHead {...{ branch, at, count: branches.length, move, remove }} />
            <BranchFields
              {...{ branch, at, problems }}
              onInput={(to) => {
                onInput((before) => ({
                  ...before,
                  branches: before.branches.map((one) => (one.id === branch.id ? to(one) : one)),
                }));
              }}
            />
          </li>
        ))}
        <li>
          <button type="button" class="add-branch" onClick={add}>
            {t.addBranch}
          </button>
        </li>
        <li class="branch otherwise">
          <h2>
            {t.sentence(
              branches.length === 0 ? t.everyone : t.everyoneElse,
              outcomeText(otherwise),
            )}
          </h2>
          <fieldset class="fields">
            <legend class="unseen">{t.otherwise}</legend>
            <Outcome
              outcome={otherwise}
              problemsFor={(name) => problemsOf(problems, `enginedata.${name}`)}
              onInput={(outcome) => {
                onInput((before) => ({ ...before, otherwise: outcome }));
              }}
            />
          </fieldset>
        </li>
      </ol>
      <label class="check">
        <input
          type="checkbox"
          checked={draft.forwardQuery}
          onChange={({ currentTarget: { checked } }) => {
            onInput((before) => ({ ...before, forwardQuery: checked }));
          }}
        />
        {t.forwardQuery}
      </label>
    </>
  );
}

/** Adds, moves and removes branches; the focus stays where the change was. */
function useListChanges(
  { branches }: BreadcrumbDraft,
  onInput: BranchesProps['onInput'],
  list: RefObject<HTMLElement | null>,
) {
  const [said, setSaid] = useState('');
  /** The control that gets the focus once the list has changed. */
  const next = useRef<string>(undefined);
  useLayoutEffect(() => {
    if (next.current === undefined) return;
    list.current?.querySelector<HTMLElement>(next.current)?.focus();
    next.current = undefined;
  });
  const change = (to: (all: readonly BranchDraft[]) => readonly BranchDraft[]): void => {
    onInput((before) => ({ ...before, branches: to(before.branches) }));
  };
  return {
    said,
    add: (): void => {
      const branch = newBranch();
      next.current = `[data-branch="${branch.id}"] input`;
      change((all) => [...all, branch]);
    },
    remove: (id: number): void => {
      next.current = '.add-branch';
      change((all) => all.filter((one) => one.id !== id));
    },
    move: (at: number, step: number): void => {
      const branch = branches[at];
      if (branch === undefined) return;
      const to = at + step;
      // The button of the former direction is disabled at the ends.
      const canGoOn = to > 0 && to < branches.length - 1;
      const isUp = canGoOn ? step < 0 : to > 0;
      next.current = `[data-branch="${branch.id}"] .move-${isUp ? 'up' : 'down'}`;
      setSaid(t.moved(to + 1));
      change((all) => all.toSpliced(at, 1).toSpliced(to, 0, branch));
    },
  };
}

/** The shares of an A/B test as a bar. */
function Shares({ draft }: { draft: BreadcrumbDraft }) {
  const shares = sharesOf(draft);
  if (shares.length === 0) return null;
  const name = (branch: number | undefined): string =>
    branch === undefined ? t.rest : t.branch(branch + 1);
  const outcome = (branch: number | undefined): string =>
    outcomeText(draft.branches[branch ?? -1]?.outcome ?? draft.otherwise);
  return (
    <figure class="shares">
      <figcaption>{t.shares}</figcaption>
      <div class="share-bar" aria-hidden="true">
        {shares.map(({ branch, percent }, at) => (
          <span key={name(branch)} class={`share tone-${at % 5}`} style={{ flexGrow: percent }} />
        ))}
      </div>
      <ul>
        {shares.map(({ branch, percent }, at) => (
          <li key={name(branch)}>
            <span class={`share-dot tone-${at % 5}`} aria-hidden="true" />
            <b>{Number(percent.toFixed(4))} %</b> {t.sentence(name(branch), outcome(branch))}
          </li>
        ))}
      </ul>
      <p class="note">{t.sharesHint}</p>
    </figure>
  );
}

function BranchHead({
  branch: { id, conditions, outcome },
  at,
  count,
  move,
  remove,
}: {
  branch: BranchDraft;
  at: number;
  count: number;
  move: (at: number, step: number) => void;
  remove: (id: number) => void;
}) {
  return (
    <div class="branch-head">
      <h2>
        <span class="branch-number">{at + 1}</span>
        {t.sentence(visitorsText(conditions), outcomeText(outcome))}
      </h2>
      <div class="branch-tools">
        <button
          type="button"
          class="quiet-button move-up"
          aria-label={t.up(at + 1)}
          disabled={at === 0}
          onClick={() => {
            move(at, -1);
          }}
        >
          <Icon name="up" />
        </button>
        <button
          type="button"
          class="quiet-button move-down"
          aria-label={t.down(at + 1)}
          disabled={at === count - 1}
          onClick={() => {
            move(at, 1);
          }}
        >
          <Icon name="down" />
        </button>
        <button
          type="button"
          class="quiet-button"
          aria-label={t.removeBranch(at + 1)}
          onClick={() => {
            remove(id);
          }}
        >
          <Icon name="remove" />
        </button>
      </div>
    </div>
  );
}
