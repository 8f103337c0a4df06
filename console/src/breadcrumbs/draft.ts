import type { Json, JsonObject } from '../api/api.ts';
import { isObject, parseJson } from '../api/json.ts';
import { headerLines, headersOf } from '../components/header-lines.ts';

/** A condition in the form: its value, and the text by which a person writes it. */
export interface ConditionDraft {
  readonly name: string;
  readonly value: Json;
  readonly text: string;
}

/** The kinds of outcome of a branch. */
export const outcomeKinds = ['target', 'key', 'html', 'status', 'none'] as const;

/** One of them. */
export type OutcomeKind = (typeof outcomeKinds)[number];

/** What a branch leads to. */
export interface OutcomeDraft {
  readonly kind: OutcomeKind;
  /** The target, the key, or the page. */
  readonly text: string;
  /** The status, as a person writes it; empty for the usual one. */
  readonly status: string;
}

/** A branch in the form. */
export interface BranchDraft {
  /** Stays the same while the branch moves. */
  readonly id: number;
  readonly conditions: readonly ConditionDraft[];
  readonly outcome: OutcomeDraft;
  /** Its header fields and cookies, one on each line. */
  readonly headers: string;
  readonly cookies: string;
  /** Members that the form does not show. */
  readonly rest: JsonObject;
}

/** A breadcrumb's enginedata in the form. */
export interface BreadcrumbDraft {
  readonly branches: readonly BranchDraft[];
  readonly otherwise: OutcomeDraft;
  readonly forwardQuery: boolean;
  /** Members that the form does not show. */
  readonly rest: JsonObject;
}

/** How a person writes the value of a condition. */
type Form = 'list' | 'number' | 'text' | 'pairs';

/** The conditions of breadcrumbs (docs/how-to/breadcrumbs.md), in the order of the menu. */
export const conditionForms = {
  country: 'list',
  device: 'list',
  lang: 'list',
  percent: 'number',
  after: 'text',
  before: 'text',
  user: 'list',
  role: 'list',
  place: 'list',
  region: 'list',
  city: 'list',
  referer: 'list',
  caller: 'list',
  query: 'pairs',
  ip: 'list',
} as const satisfies Readonly<Record<string, Form>>;

/** The name of a condition. */
export type ConditionName = keyof typeof conditionForms;

/** Whether a text is the name of a condition. */
export function isConditionName(name: string): name is ConditionName {
  return Object.hasOwn(conditionForms, name);
}

/** The text of a condition's value; JSON if the form has no plainer one. */
function conditionText(name: string, value: Json): string {
  const text = isConditionName(name) ? plainText(conditionForms[name], value) : undefined;
  return text ?? JSON.stringify(value);
}

function plainText(form: Form, value: Json): string | undefined {
  const isPlain = (one: Json): one is string =>
    typeof one === 'string' && /^[^\s,[\]{}"](?:[^,[\]{}"]*[^\s,[\]{}"])?$/.test(one);
  switch (form) {
    case 'number':
      return typeof value === 'number' ? String(value) : undefined;
    case 'text':
      return isPlain(value) ? value : undefined;
    case 'list': {
      const values: readonly Json[] = Array.isArray(value) ? value : [value];
      return values.every(isPlain) ? values.join(', ') : undefined;
    }
    case 'pairs': {
      if (!isObject(value)) return undefined;
      const pairs = Object.entries(value);
      const isEachPlain = pairs.every(
        ([key, one]) => isPlain(key) && !key.includes('=') && isPlain(one),
      );
      return isEachPlain ? pairs.map(([key, one]) => `${key}=${plain(one)}`).join(', ') : undefined;
    }
  }
}

/** The value of a condition's text. */
function conditionValue(name: string, text: string): Json {
  const trimmed = text.trim();
  if (/^[[{"]/.test(trimmed) || !isConditionName(name)) return jsonOr(trimmed);
  switch (conditionForms[name]) {
    case 'number':
      return trimmed !== '' && Number.isFinite(Number(trimmed)) ? Number(trimmed) : trimmed;
    case 'text':
      return trimmed;
    case 'list': {
      const values = partsOf(trimmed);
      return values.length === 1 ? (values[0] ?? '') : values;
    }
    case 'pairs':
      return Object.fromEntries(
        partsOf(trimmed).map((pair) => {
          const at = pair.indexOf('=');
          return at < 0 ? [pair, '*'] : [pair.slice(0, at).trim(), pair.slice(at + 1).trim()];
        }),
      );
  }
}

function partsOf(text: string): readonly string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

function jsonOr(text: string): Json {
  try {
    return parseJson(text);
  } catch {
    return text;
  }
}

/** A condition with a text that a person has written. */
export function writtenCondition(name: string, text: string): ConditionDraft {
  return { name, text, value: conditionValue(name, text) };
}

function outcomeOf({ target, html, status }: JsonObject): OutcomeDraft {
  const written = status === undefined || status === null ? '' : plain(status);
  if (typeof target === 'string' && target.startsWith('key:')) {
    return { kind: 'key', text: target.slice('key:'.length), status: written };
  }
  if (target !== undefined) return { kind: 'target', text: plain(target), status: written };
  if (html !== undefined) return { kind: 'html', text: plain(html), status: written };
  return { kind: written === '' ? 'none' : 'status', text: '', status: written };
}

function plain(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function outcomeMembers({ kind, text, status }: OutcomeDraft): JsonObject {
  const digits = status.trim();
  const own =
    digits === '' || kind === 'key' || kind === 'none'
      ? {}
      : { status: /^\d+$/.test(digits) ? Number(digits) : digits };
  switch (kind) {
    case 'target':
      return { target: text.trim(), ...own };
    case 'key':
      return { target: `key:${text.trim()}` };
    case 'html':
      return { html: text, ...own };
    case 'status':
      return own;
    case 'none':
      return {};
  }
}

/**
 * Whether the form can show an enginedata: each branch is an object with an object as its `if`, and
 * leads to one text.
 */
export function isEditable(enginedata: JsonObject): boolean {
  const { when = [] } = enginedata;
  const isBranch = (branch: Json): boolean =>
    isObject(branch) && isObject(branch.if) && hasOneText(branch);
  return hasOneText(enginedata) && Array.isArray(when) && when.every(isBranch);
}

function hasOneText({ target, html }: JsonObject): boolean {
  const given = [target, html].filter((one) => one !== undefined);
  return given.length < 2 && given.every((one) => typeof one === 'string');
}

let ids = 0;

/** A new branch, for visitors whom a person has yet to describe. */
export function newBranch(): BranchDraft {
  ids += 1;
  return {
    id: ids,
    conditions: [writtenCondition('device', 'mobile')],
    outcome: { kind: 'target', text: '', status: '' },
    headers: '',
    cookies: '',
    rest: {},
  };
}

/** The form of an enginedata. */
export function draftOf(enginedata: JsonObject): BreadcrumbDraft {
  const { when, forward_query: forwards, target, html, status, ...rest } = enginedata;
  const branches = Array.isArray(when) ? (when as readonly JsonObject[]) : [];
  const all = { ...(target !== undefined && { target }), ...(html !== undefined && { html }) };
  return {
    branches: branches.map(branchOf),
    otherwise: outcomeOf({ ...all, ...(status !== undefined && { status }) }),
    forwardQuery: forwards === true,
    rest,
  };
}

function branchOf({ if: conditions, target, html, status, ...others }: JsonObject): BranchDraft {
  ids += 1;
  const { headers, cookies, ...rest } = others;
  const members = Object.entries({ target, html, status }).filter(
    ([, value]) => value !== undefined,
  );
  return {
    id: ids,
    conditions: Object.entries(isObject(conditions) ? conditions : {}).map(([name, value]) => ({
      ...{ name, value, text: conditionText(name, value) },
    })),
    outcome: outcomeOf(Object.fromEntries(members) as JsonObject),
    headers: writtenLines(headers, headerText),
    cookies: writtenLines(cookies, cookieText),
    rest,
  };
}

/** How a person writes the header fields or cookies of a branch: lines, or JSON. */
interface Lines {
  readonly toText: (value: Json) => string;
  readonly toValue: (text: string) => Json;
}

const headerText: Lines = { toText: headerLines, toValue: headersOf };

const cookieText: Lines = {
  toText: (cookies) =>
    Object.entries(isObject(cookies) ? cookies : {})
      .map(([name, value]) => `${name}=${plain(value)}`)
      .join('\n'),
  toValue: (text) =>
    Object.fromEntries(
      linesOf(text).map((line) => {
        const [name = '', ...value] = line.split('=');
        return [name.trim(), value.join('=').trim()];
      }),
    ),
};

function linesOf(text: string): readonly string[] {
  return text.split('\n').filter((line) => line.trim() !== '');
}

/** The lines of a value; JSON if they would not say the same. */
function writtenLines(value: Json | undefined, { toText, toValue }: Lines): string {
  if (value === undefined) return '';
  const json = JSON.stringify(value);
  const text = toText(value);
  return text !== '' && JSON.stringify(toValue(text)) === json ? text : json;
}

function readLines(text: string, { toValue }: Lines): Json {
  return /^\s*[[{"\d]|^\s*(?:null|true|false)\s*$/.test(text) ? jsonOr(text.trim()) : toValue(text);
}

/** The enginedata of a form. */
export function enginedataOf(draft: BreadcrumbDraft): JsonObject {
  const { branches, otherwise, forwardQuery, rest } = draft;
  const when = branches.map(({ conditions, outcome, headers, cookies, rest: others }) => ({
    ...others,
    if: Object.fromEntries(conditions.map(({ name, value }) => [name, value])),
    ...outcomeMembers(outcome),
    ...(headers.trim() !== '' && { headers: readLines(headers, headerText) }),
    ...(cookies.trim() !== '' && { cookies: readLines(cookies, cookieText) }),
  }));
  return {
    ...rest,
    ...(when.length > 0 && { when }),
    ...outcomeMembers(otherwise),
    ...(forwardQuery && { forward_query: true }),
  };
}

/** A part of the visitors, in per cent. */
export interface Share {
  /** The index of its branch; undefined for the others. */
  readonly branch: number | undefined;
  readonly percent: number;
}

/**
 * The shares of visitors by percentage, which are allocated one after the other, and the rest;
 * empty without a percentage. What exceeds 100 % begins again at 0, where earlier branches come
 * first.
 */
export function sharesOf({ branches }: Pick<BreadcrumbDraft, 'branches'>): readonly Share[] {
  const shares: Share[] = [];
  let taken = 0;
  branches.forEach(({ conditions }, branch) => {
    const value = conditions.find(({ name }) => name === 'percent')?.value;
    if (typeof value !== 'number' || !(value >= 0 && value <= 100)) return;
    const percent = Math.min(value, 100 - taken);
    taken += percent;
    shares.push({ branch, percent });
  });
  if (shares.length > 0 && taken < 100) shares.push({ branch: undefined, percent: 100 - taken });
  return shares;
}

/** The values of a condition in all branches, each once. */
export function valuesOf(
  { branches }: Pick<BreadcrumbDraft, 'branches'>,
  condition: string,
): readonly string[] {
  const values = branches.flatMap(({ conditions }) =>
    conditions.filter(({ name }) => name === condition).flatMap(({ value }) => value),
  );
  return [...new Set(values.filter((one) => typeof one === 'string'))];
}
