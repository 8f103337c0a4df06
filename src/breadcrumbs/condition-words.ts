import { millionths, type Condition, type WantedParameter } from '../model/condition.ts';
import type { Visitor } from '../model/visitor.ts';
import type { Trial } from './trial.ts';

/** Why a condition does not hold, in a sentence or two for a person. */
export function failureWords(condition: Condition, trial: Trial): string {
  const { visitor } = trial;
  switch (condition.name) {
    case 'user':
      return condition.anyone
        ? 'It is for signed-in users; the visitor is not signed in.'
        : `It is for users named ${list(condition.users)}; ${userOf(visitor)}.`;
    case 'role':
      return `It is for users in the role of ${list(condition.roles)}; ${rolesOf(visitor)}.`;
    case 'country':
      return `It is for visitors in ${list(condition.countries)}; ${countryOf(visitor)}.`;
    case 'lang':
      return `It is for readers of ${list(condition.tags)}; ${languageOf(visitor)}.`;
    case 'device':
      return `It is for devices that are ${list(condition.classes)}; ${devicesOf(visitor)}.`;
    case 'query':
      return `It asks for ${condition.parameters.map(wantedWords).join(' and ')} in the query.`;
    case 'ip':
      return `It is for addresses of ${list(condition.networks.texts)}; ${addressOf(visitor)}.`;
    case 'after':
      return `It begins at ${time(condition.timeMs)}; it is ${time(visitor.nowMs)}.`;
    case 'before':
      return `It ended at ${time(condition.timeMs)}; it is ${time(visitor.nowMs)}.`;
    case 'percent': {
      const { from, share } = condition;
      const until = share === 0 ? from : (from + share) % millionths || millionths;
      return (
        `It takes ${percent(share)} % of the visitors, from ${percent(from)} ` +
        `to ${percent(until)}; this one drew ${percent(trial.draw())}.`
      );
    }
  }
}

/** How many of the values of a condition are told. */
const toldMax = 8;

function list(values: Iterable<string>): string {
  const all = [...values];
  const told = all.slice(0, toldMax).join(', ');
  return all.length > toldMax ? `${told} and ${all.length - toldMax} more` : told;
}

function userOf(visitor: Visitor): string {
  const user = visitor.user();
  return user === undefined ? 'the visitor is not signed in' : `the visitor is ${user.name}`;
}

function rolesOf(visitor: Visitor): string {
  const user = visitor.user();
  if (user === undefined) return 'the visitor is not signed in';
  return user.roles.length === 0 ? 'the visitor has none' : `the visitor has ${list(user.roles)}`;
}

function countryOf(visitor: Visitor): string {
  const country = visitor.country();
  return country === undefined
    ? 'nothing tells where the visitor is'
    : `the visitor is in ${country}`;
}

function languageOf(visitor: Visitor): string {
  return visitor.language() === undefined
    ? 'the visitor prefers no language'
    : `the visitor prefers ${visitor.language() ?? ''}`;
}

function devicesOf(visitor: Visitor): string {
  const devices = visitor.devices();
  return devices.size === 0
    ? "nothing tells what the visitor's device is"
    : `the visitor's is ${list(devices)}`;
}

function addressOf({ address }: Visitor): string {
  return address === '' ? "the visitor's is not known" : `the visitor comes from ${address}`;
}

function wantedWords({ name, values }: WantedParameter): string {
  return values === undefined ? name : `${name}=${list(values).replaceAll(', ', ' or ')}`;
}

function time(timeMs: number): string {
  return new Date(timeMs).toISOString();
}

function percent(parts: number): string {
  return String(parts / (millionths / 100));
}
