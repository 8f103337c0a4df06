import { useEffect, useState } from 'preact/hooks';
import { siteOf } from '../pages/address.ts';
import { call } from '../api/api.ts';
import { valuesOf, type BreadcrumbDraft } from './draft.ts';
import { countryName, outcomeText, visitorsText } from './sentences.ts';
import type { Route } from '../route.ts';
import { texts } from '../texts.ts';
import { useLoad } from '../components/loading.ts';
import { Busy, Fault, Field } from '../components/ui.tsx';
import {
  useVisitor,
  VisitorFields,
  visitorInput,
  type VisitorField,
  type VisitorInput,
} from '../components/visitor-fields.tsx';
import type { BreadcrumbRule } from './breadcrumb-rule.ts';

const t = texts.breadcrumbs;

const fieldNames: readonly VisitorField[] = [
  ...(['country', 'device', 'lang', 'user', 'role', 'place', 'region', 'city'] as const),
  ...(['ip', 'at', 'draw'] as const),
];

/** The dimensions of the grid. */
const axes = ['country', 'device', 'lang', 'role', 'place', 'region', 'city'] as const;
type Axis = (typeof axes)[number];
const axisValuesMax = 8;

interface Explained {
  readonly says: string;
  readonly status: number | null;
  readonly tried: readonly {
    readonly key?: string;
    readonly candidates: readonly {
      readonly id?: string;
      readonly lost?: { readonly says: string };
      readonly branches?: readonly {
        readonly branch: string;
        readonly lost?: { readonly says: string };
      }[];
    }[];
  }[];
  readonly notes: readonly string[];
}

interface TriedProps {
  readonly rule: BreadcrumbRule;
  /** The branches as they are saved. */
  readonly draft: BreadcrumbDraft;
  readonly isChanged: boolean;
  readonly route: Route;
}

/** Which branch a visitor gets whom the form describes, and why; and a grid of several visitors. */
export function TriedVisitors({ rule, draft, isChanged, route }: TriedProps) {
  const [visitor, setVisitor] = useVisitor(route, fieldNames);
  const settled = useSettled(visitor);
  return (
    <>
      <p class="lead">{t.simulateLead}</p>
      {isChanged ? <p class="fault soft">{t.notSaved}</p> : null}
      <div class="tried">
        <fieldset class="fields">
          <legend class="unseen">{t.simulate}</legend>
          <VisitorFields names={fieldNames} visitor={visitor} onInput={setVisitor} />
        </fieldset>
        <Answer {...{ rule, draft }} visitor={settled} />
      </div>
      <Grid {...{ rule, draft }} visitor={settled} />
    </>
  );
}

/** A visitor that has not changed for a moment. */
function useSettled(value: VisitorInput): VisitorInput {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => {
      setSettled(value);
    }, 200);
    return () => {
      clearTimeout(timer);
    };
  }, [JSON.stringify(value)]);
  return settled;
}

function inputOf(
  { path, origin }: BreadcrumbRule,
  visitor: VisitorInput,
): Record<string, string | number> {
  return { k: path, ...(origin !== '*' && { origin: siteOf(origin) }), ...visitorInput(visitor) };
}

/** The sentence of a branch by its name: `when[0]`, or `default`. */
function sentenceOf({ branches, otherwise }: BreadcrumbDraft, name: string): string {
  const branch = branches[branchIndex(name) ?? -1];
  if (branch !== undefined) {
    return t.sentence(visitorsText(branch.conditions), outcomeText(branch.outcome));
  }
  return t.sentence(branches.length === 0 ? t.everyone : t.everyoneElse, outcomeText(otherwise));
}

function branchIndex(name: string): number | undefined {
  const [, digits] = /^when\[(\d+)\]$/.exec(name) ?? [];
  return digits === undefined ? undefined : Number(digits);
}

type Winner = Explained['tried'][number]['candidates'][number];

/** The rule that answers for the key; undefined without one. */
function winnerOf(explained: Explained | undefined): Winner | undefined {
  return explained?.tried[0]?.candidates.find(({ lost }) => lost === undefined);
}

function takenBranch({ branches = [] }: Winner): string {
  return branches.find(({ lost }) => lost === undefined)?.branch ?? 'default';
}

function Answer({
  rule,
  draft,
  visitor,
}: Pick<TriedProps, 'rule' | 'draft'> & { visitor: VisitorInput }) {
  const input = inputOf(rule, visitor);
  const explained = useLoad(
    (signal) => call<Explained>('userinterface.explain', input, { signal }),
    [JSON.stringify(input), rule.seq],
  );
  if (explained.error !== undefined) return <Fault error={explained.error} />;
  if (explained.data === undefined) return <Busy />;
  const { tried, notes, status } = explained.data;
  const winner = winnerOf(explained.data);
  const isOther = winner?.id !== rule.id;
  return (
    <section class="tried-answer" aria-live="polite">
      {isOther ? (
        <p class="fault soft">
          {t.otherRule} <a href={`#/breadcrumbs/${winner?.id ?? ''}`}>{winner?.id}</a>
        </p>
      ) : null}
      <ol class="tried-branches">
        {(winner?.branches ?? []).map(({ branch, lost }) => (
          <li key={branch} class={lost === undefined ? 'won' : ''}>
            <p>
              {isOther ? branch : sentenceOf(draft, branch)}
              {lost === undefined ? <span class="tag good">{t.taken}</span> : null}
            </p>
            {lost === undefined ? null : <p class="note">{lost.says}</p>}
          </li>
        ))}
      </ol>
      {tried.slice(1).map(({ key = '', candidates }) => (
        <p key={key} class="note">
          {t.outcome.key(key)}:{' '}
          {candidates[0]?.branches?.find(({ lost }) => lost === undefined)?.branch}
        </p>
      ))}
      <p class="verdict">
        {notes.join(' ')} <span class="tag">{status}</span>
      </p>
    </section>
  );
}

/** The values of an axis: those of the conditions, and one that none of them names. */
function axisValues(draft: BreadcrumbDraft, axis: Axis): readonly (string | undefined)[] {
  const common = axis === 'device' ? ['mobile', 'tablet', 'desktop'] : [];
  const named = [...new Set([...common, ...valuesOf(draft, axis)])].filter((one) => one !== '*');
  return [...named.slice(0, axisValuesMax), undefined];
}

function axisName(axis: Axis, value: string | undefined): string {
  if (value === undefined) return t.anyOther;
  return axis === 'country' ? countryName(value) : value;
}

function visitorAt(axis: Axis, value: string | undefined): VisitorInput {
  if (value === undefined) return {};
  // A role belongs to a user.
  return axis === 'role' ? { role: value, user: 'someone' } : { [axis]: value };
}

function Grid({
  rule,
  draft,
  visitor,
}: Pick<TriedProps, 'rule' | 'draft'> & { visitor: VisitorInput }) {
  const used = axes.filter((axis) => valuesOf(draft, axis).length > 0);
  const [rows, setRows] = useState<Axis>(used.find((axis) => axis !== 'device') ?? 'country');
  const [columns, setColumns] = useState<Axis>('device');
  const [across, down] = [axisValues(draft, columns), axisValues(draft, rows)];
  return (
    <section>
      <h2>{t.grid}</h2>
      <p class="note">{t.gridLead}</p>
      <div class="filters">
        <AxisField label={t.rows} axis={rows} other={columns} onInput={setRows} />
        <AxisField label={t.columns} axis={columns} other={rows} onInput={setColumns} />
      </div>
      <div class="grid-scroll" tabIndex={0} role="region" aria-label={t.grid}>
        <table class="visitor-grid">
          <thead>
            <tr>
              <td />
              {across.map((value) => (
                <th key={value} scope="col">
                  {axisName(columns, value)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {down.map((value) => (
              <tr key={value}>
                <th scope="row">{axisName(rows, value)}</th>
                {across.map((one) => (
                  <Cell
                    key={one}
                    {...{ rule, draft }}
                    visitor={{ ...visitor, ...visitorAt(rows, value), ...visitorAt(columns, one) }}
                  />
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function AxisField({
  label,
  axis,
  other,
  onInput,
}: {
  label: string;
  axis: Axis;
  other: Axis;
  onInput: (axis: Axis) => void;
}) {
  return (
    <div class="inline-field">
      <Field label={label}>
        <select
          value={axis}
          onChange={({ currentTarget }) => {
            onInput(currentTarget.value as Axis);
          }}
        >
          {axes
            .filter((one) => one !== other)
            .map((one) => (
              <option key={one} value={one}>
                {texts.visitor[one]}
              </option>
            ))}
        </select>
      </Field>
    </div>
  );
}

function Cell({
  rule,
  draft,
  visitor,
}: Pick<TriedProps, 'rule' | 'draft'> & { visitor: VisitorInput }) {
  const input = inputOf(rule, visitor);
  const { data, error } = useLoad(
    (signal) => call<Explained>('userinterface.explain', input, { signal }),
    [JSON.stringify(input), rule.seq],
  );
  if (error !== undefined) return <td class="failed">{t.failed}</td>;
  const winner = winnerOf(data);
  if (winner === undefined) return <td />;
  if (winner.id !== rule.id) return <td>{t.otherRule}</td>;
  const name = takenBranch(winner);
  const index = branchIndex(name);
  const outcome = draft.branches[index ?? -1]?.outcome ?? draft.otherwise;
  return (
    <td class={index === undefined ? '' : `tone-${index % 5}`} title={sentenceOf(draft, name)}>
      <b>{index === undefined ? t.otherwise : t.branch(index + 1)}</b>
      <span class="cell-target">{outcomeText(outcome)}</span>
    </td>
  );
}
