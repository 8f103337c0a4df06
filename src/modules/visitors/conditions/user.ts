import { userNameCharactersMax, userRolesMax } from '../limits.ts';
import {
  defineCondition,
  listText,
  setOf,
  nonEmptyText,
  textField,
  type ConditionType,
} from '../../../core/pipeline/conditions/condition.ts';

/** `user`: users by name, or `*` for any signed-in user. */
const user = defineCondition<ReadonlySet<string>>({
  name: 'user',
  parse: (value) => setOf(value, nonEmptyText),
  holds(users, { visitor }) {
    const found = visitor.user();
    return found !== undefined && (users.has('*') || users.has(found.name));
  },
  explain(users, { visitor }) {
    if (users.has('*')) return 'It applies to signed-in users; the visitor is not signed in.';
    const found = visitor.user();
    const who = found === undefined ? notSignedIn : `the visitor is ${found.name}`;
    return `It applies to the users ${listText(users)}; ${who}.`;
  },
  vary: ['Authorization', 'Cookie'],
  needs: { user: true },
  preview: {
    user: textField('Name of the signed-in user.', (name) => ({ user: name }), {
      maxLength: userNameCharactersMax,
    }),
  },
});

/** `role`: signed-in users with one of some roles. */
const role = defineCondition<ReadonlySet<string>>({
  name: 'role',
  parse: (value) => setOf(value, nonEmptyText),
  holds: (roles, { visitor }) => visitor.user()?.roles.some((one) => roles.has(one)) === true,
  explain(roles, { visitor }) {
    const has = visitor.user()?.roles;
    const who =
      has === undefined
        ? notSignedIn
        : has.length === 0
          ? 'the visitor has no roles'
          : `the visitor has ${listText(has)}`;
    return `It applies to users with the role ${listText(roles)}; ${who}.`;
  },
  vary: ['Authorization', 'Cookie'],
  needs: { user: true },
  preview: {
    role: textField('Roles of the signed-in user, separated by commas.', (text) => ({
      roles: text
        .split(',')
        .map((part) => part.trim())
        .filter((part) => part !== '')
        .slice(0, userRolesMax),
    })),
  },
});

/** Conditions about the signed-in user. */
export const userConditions: readonly ConditionType[] = [user, role];

const notSignedIn = 'the visitor is not signed in';
