/**
 * A JSON number that a double does not hold, such as 9007199254740993: its text, in one form for
 * each value, made by `JSON.rawJSON`. JSON.stringify writes the text. Whatever takes it for
 * another value throws: arithmetic, templates and structuredClone.
 */
export interface ExactNumber {
  readonly rawJSON: string;
}

declare global {
  interface JSON {
    /** ECMA-262, JSON.rawJSON: a value that JSON.stringify writes as this text. */
    rawJSON(text: string): ExactNumber;
    isRawJSON(value: unknown): value is ExactNumber;
    parse(text: string, reviver: NumberReviver): unknown;
  }
}

/** A function that JSON.parse calls for each value, with the text of a number. */
type NumberReviver = (
  name: string,
  value: unknown,
  context: { readonly source?: string },
) => unknown;

/** The digits of a number that are kept, without the zeros at its ends. */
export const numberDigitsMax = 400;
/** The digits before the point of a number, and the zeros behind it before its first digit. */
export const numberExponentMax = 1_000;
/** From this length on, a whole number is kept as digits: as a double it reads 1e+21. */
const plainDigitsMin = 22;

/**
 * A number in a JSON text that a double may not hold: it has 16 digits or more, or an exponent. A
 * match inside a string only costs time.
 */
const longNumber = /[\s:,[]-?\d(?:[\d.]{15}|[\d.]*[eE])/;

/**
 * Parses JSON; numbers that doubles do not hold become an ExactNumber, also those with more digits
 * than are kept, which `tooLong` gets. An old browser has no JSON.rawJSON: there, they become
 * doubles. Throws a SyntaxError.
 */
export function parseNumbers(text: string, tooLong?: (source: string) => void): unknown {
  const isKept = 'rawJSON' in JSON && longNumber.test(text);
  if (!isKept) return JSON.parse(text) as unknown;
  return JSON.parse(text, (_name, member, { source }) => {
    if (typeof member !== 'number' || source === undefined) return member;
    const exact = numberOf(source);
    if (exact === undefined) tooLong?.(source);
    return exact ?? JSON.rawJSON(source);
  });
}

/** Whether a value is a number that a double does not hold. */
export function isExactNumber(value: unknown): value is ExactNumber {
  return JSON.isRawJSON(value);
}

/** Whether a JSON value has a number that a double does not hold, at any depth. */
export function hasExactNumber(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return isExactNumber(value) || Object.values(value).some(hasExactNumber);
}

/** A JSON value with other values in place of its strings, numbers and literals. */
export function mapLeaves(value: unknown, map: (leaf: unknown) => unknown): unknown {
  if (Array.isArray(value)) return value.map((one) => mapLeaves(one, map));
  if (typeof value !== 'object' || value === null || isExactNumber(value)) return map(value);
  // fromEntries, because a member may have any name, such as `__proto__`.
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [name, mapLeaves(one, map)] as const),
  );
}

/** A JSON value with other values in place of the numbers that a double does not hold. */
export function mapExactNumbers(value: unknown, map: (number: ExactNumber) => unknown): unknown {
  return mapLeaves(value, (leaf) => (isExactNumber(leaf) ? map(leaf) : leaf));
}

/** The value of a number as JSON writes it; undefined if it has more digits than are kept. */
export function numberOf(text: string): number | ExactNumber | undefined {
  const value = Number(text);
  if (String(value) === text) return value;
  const decimal = decimalOf(text);
  const isPlain = text.length >= plainDigitsMin && /^-?\d+$/.test(text);
  if (!isPlain && Number.isFinite(value) && isSame(decimal, decimalOf(String(value)))) return value;
  const { digits, exponent } = decimal;
  if (digits.length > numberDigitsMax || Math.abs(exponent) > numberExponentMax) return undefined;
  return JSON.rawJSON(textOf(decimal));
}

/** A JSON value with the texts of its exact numbers in their place, which a thread can get. */
export function withNumberTexts<T>(value: T): T {
  return hasExactNumber(value) ? (mapExactNumbers(value, ({ rawJSON }) => rawJSON) as T) : value;
}

/** Compares two numbers by their values: -1, 0 or 1. */
export function compareNumbers(one: number | ExactNumber, other: number | ExactNumber): number {
  if (typeof one === 'number' && typeof other === 'number') return Math.sign(one - other);
  return compareDecimals(decimalOf(textOfNumber(one)), decimalOf(textOfNumber(other)));
}

/** A JSON value in which doubles of the same type stand for the numbers that none holds. */
export function withStandIns<T>(value: T): T {
  return hasExactNumber(value) ? (mapExactNumbers(value, standInNumber) as T) : value;
}

/** A double that stands for a number in the check of its type: whole if that is whole. */
export function standInNumber(number: ExactNumber): number {
  return isWhole(number) ? 1 : 0.5;
}

/** Whether a number has no fraction. */
function isWhole({ rawJSON: text }: ExactNumber): boolean {
  const { digits, exponent } = decimalOf(text);
  return exponent >= digits.length;
}

/** The text of a number in RFC 8785, which only equal numbers share. */
export function canonicalNumber({ rawJSON: text }: ExactNumber): string {
  const value = Number(text);
  const isHeld = Number.isFinite(value) && isSame(decimalOf(text), decimalOf(String(value)));
  return isHeld ? String(value) : text;
}

/** The greatest double that is not greater than a number, and the nearest one. */
export function doublesOf({ rawJSON: text }: ExactNumber): {
  readonly below: number;
  readonly nearest: number;
  /** Whether the number is the double below. */
  readonly isHeld: boolean;
} {
  const nearest = Number(text);
  const order = compareNumbers(JSON.rawJSON(text), nearest);
  return { nearest, below: order < 0 ? nextBelow(nearest) : nearest, isHeld: order === 0 };
}

/** A number as ±0.`digits` × 10^`exponent`; zero has no digits. */
interface Decimal {
  readonly isNegative: boolean;
  /** Without zeros at the ends. */
  readonly digits: string;
  readonly exponent: number;
}

/** The decimal of a number as JSON writes it, or `Infinity`, which is greater than all others. */
export function decimalOf(text: string): Decimal {
  const [, sign, whole = '', fraction = '', power = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? [];
  if (whole === '') return { isNegative: text.startsWith('-'), digits: '1', exponent: Infinity };
  const all = whole + fraction;
  let [start, end] = [0, all.length];
  while (start < end && all[start] === '0') start += 1;
  while (end > start && all[end - 1] === '0') end -= 1;
  const digits = all.slice(start, end);
  if (digits === '') return { isNegative: false, digits, exponent: 0 };
  return { isNegative: sign === '-', digits, exponent: whole.length - start + Number(power) };
}

function textOfNumber(value: number | ExactNumber): string {
  return typeof value === 'number' ? String(value) : value.rawJSON;
}

function isSame(one: Decimal, other: Decimal): boolean {
  return compareDecimals(one, other) === 0;
}

function compareDecimals(one: Decimal, other: Decimal): number {
  const [sign, otherSign] = [signOf(one), signOf(other)];
  if (sign !== otherSign) return sign < otherSign ? -1 : 1;
  if (one.exponent !== other.exponent) return one.exponent < other.exponent ? -sign : sign;
  if (one.digits === other.digits) return 0;
  return one.digits < other.digits ? -sign : sign;
}

function signOf({ isNegative, digits }: Decimal): number {
  if (digits === '') return 0;
  return isNegative ? -1 : 1;
}

/** The text of a decimal: one that is no longer than the number of digits kept has no exponent. */
function textOf({ isNegative, digits, exponent }: Decimal): string {
  const sign = isNegative ? '-' : '';
  if (exponent > numberDigitsMax || exponent <= -6) {
    const [first = '', rest] = [digits[0], digits.slice(1)];
    const power = exponent - 1;
    return `${sign}${first}${rest && `.${rest}`}e${power < 0 ? '' : '+'}${power}`;
  }
  if (exponent >= digits.length) return sign + digits.padEnd(exponent, '0');
  if (exponent > 0) return `${sign}${digits.slice(0, exponent)}.${digits.slice(exponent)}`;
  return `${sign}0.${'0'.repeat(-exponent)}${digits}`;
}

const doubleBytes = 8;

/** The greatest double that is less than another one. */
function nextBelow(value: number): number {
  if (value === 0) return -Number.MIN_VALUE;
  const view = new DataView(new ArrayBuffer(doubleBytes));
  view.setFloat64(0, value);
  view.setBigInt64(0, view.getBigInt64(0) + (value > 0 ? -1n : 1n));
  return view.getFloat64(0);
}
