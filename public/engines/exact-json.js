/*
 * JSON whose numbers are kept: a number that a double does not hold, such as 9007199254740993,
 * becomes `JSON.rawJSON` of its text (ECMA-262), which JSON.stringify writes again. A browser
 * without JSON.rawJSON reads it as a double, as JSON.parse does.
 */

/** Numbers of 16 digits or more, or with an exponent. A match in a string only costs time. */
const longNumber = /[\s:,[]-?\d(?:[\d.]{15}|[\d.]*[eE])/;

/** Parses JSON; throws a SyntaxError. */
export function parseJson(text) {
  return parseWith(text, (number) => JSON.rawJSON(number));
}

/** Parses JSON for a template, which shows a number that a double does not hold by its text. */
export function parseForTemplate(text) {
  return parseWith(text, (number) => number);
}

/** The number that a text means: a double, or its raw JSON if none holds it. */
export function numberOf(text) {
  const value = Number(text);
  const isJson = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(text);
  return isJson && 'rawJSON' in JSON && !isHeld(value, text) ? JSON.rawJSON(text) : value;
}

function parseWith(text, exact) {
  // What knows rawJSON gives the texts of numbers as well.
  if (!('rawJSON' in JSON) || !longNumber.test(` ${text}`)) return JSON.parse(text);
  return JSON.parse(text, (_name, value, { source }) => {
    if (typeof value !== 'number' || source === undefined || isHeld(value, source)) return value;
    return exact(source);
  });
}

/** Whether a double has the value of a number's text. */
function isHeld(value, text) {
  return Number.isFinite(value) && decimalOf(text) === decimalOf(String(value));
}

/** A number as its digits without zeros at the ends, with the power of ten behind them. */
function decimalOf(text) {
  const [, sign, whole, fraction = '', power = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text);
  const all = whole + fraction;
  let [start, end] = [0, all.length];
  while (start < end && all[start] === '0') start += 1;
  while (end > start && all[end - 1] === '0') end -= 1;
  if (start === end) return '0';
  const exponent = Number(power) - fraction.length + all.length - end;
  return `${sign}${all.slice(start, end)}e${exponent}`;
}
