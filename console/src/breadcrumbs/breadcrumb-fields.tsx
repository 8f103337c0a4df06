import type { Problem } from '../api/api.ts';
import {
  conditionForms,
  isConditionName,
  outcomeKinds,
  writtenCondition,
  type BranchDraft,
  type ConditionDraft,
  type ConditionName,
  type OutcomeDraft,
  type OutcomeKind,
} from './draft.ts';
import { problemsOf } from '../api/problems.ts';
import { texts } from '../texts.ts';
import { Field, Icon } from '../components/ui.tsx';

const t = texts.breadcrumbs;
const conditionNames = Object.keys(conditionForms) as ConditionName[];

function labelOf(name: string): string {
  return isConditionName(name) ? t.conditions[name] : name;
}

/** The form of one branch: its conditions, and what it leads to. */
export function BranchFields({
  branch,
  at,
  problems,
  onInput,
}: {
  branch: BranchDraft;
  at: number;
  problems: readonly Problem[];
  onInput: (to: (branch: BranchDraft) => BranchDraft) => void;
}) {
  const { conditions, outcome } = branch;
  const place = `enginedata.when[${at}]`;
  const own = problems.filter(({ field }) => field === place || field === `${place}.if`);
  const withConditions = (to: (all: readonly ConditionDraft[]) => readonly ConditionDraft[]) => {
    onInput((before) => ({ ...before, conditions: to(before.conditions) }));
  };
  const unused = conditionNames.filter((name) => conditions.every((one) => one.name !== name));
  return (
    <fieldset class="fields">
      <legend class="unseen">{t.branch(at + 1)}</legend>
      {conditions.map((condition) => (
        <Condition
          key={condition.name}
          condition={condition}
          problems={problemsOf(problems, `${place}.if.${condition.name}`)}
          onInput={(text) => {
            const written = writtenCondition(condition.name, text);
            withConditions((all) =>
              all.map((one) => (one.name === condition.name ? written : one)),
            );
          }}
          onRemove={() => {
            withConditions((all) => all.filter(({ name }) => name !== condition.name));
          }}
        />
      ))}
      <AddCondition
        unused={unused}
        onAdd={(name) => {
          withConditions((all) => [...all, writtenCondition(name, '')]);
        }}
      />
      <Outcome
        outcome={outcome}
        problemsFor={(name) => problemsOf(problems, `${place}.${name}`)}
        onInput={(changed) => {
          onInput((before) => ({ ...before, outcome: changed }));
        }}
      />
      <AnswerFields {...{ branch, place, problems, onInput }} />
      {own.map(({ message }) => (
        <span key={message} class="problem wide-field" role="status">
          {message}
        </span>
      ))}
    </fieldset>
  );
}

/** The menu of conditions that a branch does not have. */
function AddCondition({
  unused,
  onAdd,
}: {
  unused: readonly ConditionName[];
  onAdd: (name: string) => void;
}) {
  return (
    <div class="field add-condition">
      <select
        aria-label={t.addCondition}
        value=""
        onChange={({ currentTarget }) => {
          const { value } = currentTarget;
          currentTarget.value = '';
          onAdd(value);
        }}
      >
        <option value="">{t.addCondition}</option>
        {unused.map((name) => (
          <option key={name} value={name}>
            {labelOf(name)}
          </option>
        ))}
      </select>
    </div>
  );
}

/** The header fields and cookies of a branch. */
function AnswerFields({
  branch,
  place,
  problems,
  onInput,
}: {
  branch: BranchDraft;
  place: string;
  problems: readonly Problem[];
  onInput: (to: (branch: BranchDraft) => BranchDraft) => void;
}) {
  return (['headers', 'cookies'] as const).map((name) => (
    <div key={name} class="wide-field">
      <Field label={t[name]} problems={problemsBelow(problems, `${place}.${name}`)}>
        <textarea
          rows={2}
          spellcheck={false}
          placeholder={name === 'headers' ? 'X-Shop: ch' : 'shop=ch'}
          value={branch[name]}
          onInput={({ currentTarget: { value } }) => {
            onInput((before) => ({ ...before, [name]: value }));
          }}
        />
      </Field>
    </div>
  ));
}

/** The problems of a member, and of what is in it. */
function problemsBelow(problems: readonly Problem[], place: string): readonly string[] {
  return problems.flatMap(({ field, message }) =>
    field === place || field.startsWith(`${place}.`) ? [message] : [],
  );
}

function Condition({
  condition: { name, text },
  problems,
  onInput,
  onRemove,
}: {
  condition: ConditionDraft;
  problems: readonly string[];
  onInput: (text: string) => void;
  onRemove: () => void;
}) {
  return (
    <div class="condition">
      <Field label={labelOf(name)} problems={problems}>
        <input
          type="text"
          spellcheck={false}
          placeholder={isConditionName(name) ? t.hints[name] : undefined}
          value={text}
          onInput={({ currentTarget }) => {
            onInput(currentTarget.value);
          }}
        />
      </Field>
      <button
        type="button"
        class="quiet-button"
        aria-label={t.removeCondition(labelOf(name))}
        onClick={onRemove}
      >
        <Icon name="remove" />
      </button>
    </div>
  );
}

/** The form of what a branch leads to. */
export function Outcome({
  outcome,
  problemsFor,
  onInput,
}: {
  outcome: OutcomeDraft;
  problemsFor: (name: string) => readonly string[];
  onInput: (outcome: OutcomeDraft) => void;
}) {
  const { kind, text, status } = outcome;
  const label = { target: t.target, key: t.otherKey, html: t.html, status: '', none: '' }[kind];
  const set = (value: string): void => {
    onInput({ ...outcome, text: value });
  };
  return (
    <div class="outcome wide-field">
      <Field label={t.leadsTo}>
        <select
          value={kind}
          onChange={({ currentTarget }) => {
            onInput({ ...outcome, kind: currentTarget.value as OutcomeKind });
          }}
        >
          {outcomeKinds.map((one) => (
            <option key={one} value={one}>
              {t.outcomes[one]}
            </option>
          ))}
        </select>
      </Field>
      {label === '' ? null : (
        <Field label={label} problems={problemsFor(kind === 'html' ? 'html' : 'target')}>
          {kind === 'html' ? (
            <textarea
              rows={3}
              spellcheck={false}
              value={text}
              onInput={({ currentTarget }) => {
                set(currentTarget.value);
              }}
            />
          ) : (
            <input
              type="text"
              spellcheck={false}
              placeholder={kind === 'target' ? '/offers/' : 'summer'}
              value={text}
              onInput={({ currentTarget }) => {
                set(currentTarget.value);
              }}
            />
          )}
        </Field>
      )}
      {kind === 'key' || kind === 'none' ? null : (
        <Field label={t.status} problems={problemsFor('status')}>
          <input
            type="text"
            inputmode="numeric"
            placeholder={t.statusHint}
            value={status}
            onInput={({ currentTarget }) => {
              onInput({ ...outcome, status: currentTarget.value });
            }}
          />
        </Field>
      )}
    </div>
  );
}
