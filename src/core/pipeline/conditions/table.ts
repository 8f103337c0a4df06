import type { JsonObject } from '../../values/json/json.ts';
import type { Condition, ConditionType, PreviewField } from './condition.ts';
import { browserConditions } from '../../../modules/visitors/conditions/browser.ts';
import { caller } from './caller.ts';
import { locationConditions } from '../../../modules/visitors/conditions/location.ts';
import { percent } from '../../../modules/visitors/conditions/percent.ts';
import { query } from './query.ts';
import { timeConditions } from './time.ts';
import { userConditions } from '../../../modules/visitors/conditions/user.ts';

/** Every condition that an `if` may have (docs/design/rendering.md#breadcrumbs). */
export const conditionTypes: readonly ConditionType[] = [
  ...userConditions,
  ...locationConditions,
  ...browserConditions,
  caller,
  query,
  ...timeConditions,
  percent,
];

/** The fields by which explain and previews describe a visitor; conditions may share one. */
export const previewFields: Readonly<Record<string, PreviewField>> = Object.fromEntries(
  conditionTypes.flatMap(({ preview }) => Object.entries(preview)),
);

const typesByName = new Map(conditionTypes.map((type) => [type.name, type]));

/** The conditions of an `if`, and the names of those with an unknown name or an invalid value. */
export function parseConditions(written: JsonObject): {
  readonly conditions: readonly Condition[];
  readonly unreadable: readonly string[];
} {
  const conditions: Condition[] = [];
  const unreadable: string[] = [];
  for (const [name, value] of Object.entries(written)) {
    const condition = typesByName.get(name)?.parse(value);
    if (condition === undefined) unreadable.push(name);
    else conditions.push(condition);
  }
  return { conditions, unreadable };
}
