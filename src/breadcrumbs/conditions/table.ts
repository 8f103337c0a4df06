import type { JsonObject } from '../../model/json.ts';
import type { Condition, ConditionType } from '../condition.ts';
import { caller, device, lang, referer } from './browser.ts';
import { city, country, ip, place, region } from './location.ts';
import { percent } from './percent.ts';
import { query } from './query.ts';
import { after, before } from './time.ts';
import { role, user } from './user.ts';

/** Every condition that an `if` may have (docs/design/rendering.md#breadcrumbs). */
export const conditionTypes: readonly ConditionType[] = [
  user,
  role,
  country,
  region,
  city,
  place,
  lang,
  device,
  caller,
  referer,
  query,
  ip,
  after,
  before,
  percent,
];

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
