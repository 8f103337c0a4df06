/** How a line is shown. */
interface LineStyle {
  readonly colour: boolean;
  /** Whether the line begins with its time in UTC. */
  readonly hasTime: boolean;
}

/** A line of pino: an object with these fields and those of the message. */
interface PinoLine {
  readonly level: number;
  readonly time: string;
  readonly msg: string;
  readonly pid?: number;
  readonly err?: unknown;
}

/**
 * Returns the function that shows a line of pino to people, with its line end: the time, the level,
 * the message, its fields as JSON, and below these the stack of `err`.
 */
export function readableLines({ colour, hasTime }: LineStyle): (line: string) => string {
  const paint = (code: number, text: string): string => {
    return colour && text !== '' ? `\x1b[${code}m${text}\x1b[39;49m` : text;
  };
  return (line) => {
    const { level, time, msg, pid, err, ...fields } = JSON.parse(line) as PinoLine;
    const [name, code] = levels.get(level) ?? [`LEVEL ${level}`, grey];
    const begin = hasTime ? `[${time.slice(11, 23)}] ` : '';
    const process = pid === undefined ? '' : ` (${pid})`;
    const message = paint(cyan, withoutControls(msg));
    const { stack, details } = errorParts(err);
    const more = Object.keys(fields).length === 0 ? '' : ` ${paint(grey, shownAs(fields))}`;
    const below = stack + (details === undefined ? '' : `    ${paint(grey, shownAs(details))}\n`);
    return `${begin}${paint(code, name)}${process}: ${message}${more}\n${below}`;
  };
}

const cyan = 36;
const grey = 90;

/** The names and ANSI colours of pino's levels. */
const levels: ReadonlyMap<number, readonly [name: string, colour: number]> = new Map([
  [10, ['TRACE', grey]],
  [20, ['DEBUG', 34]],
  [30, ['INFO', 32]],
  [40, ['WARN', 33]],
  [50, ['ERROR', 31]],
  [60, ['FATAL', 41]],
]);

/** The indented stack of an error as pino writes it, with those of its causes; its other fields. */
function errorParts(err: unknown): { readonly stack: string; readonly details?: unknown } {
  if (err === undefined) return { stack: '' };
  if (typeof err !== 'object' || err === null) return { stack: '', details: err };
  const { stack, ...others } = err as { readonly stack?: unknown };
  if (typeof stack !== 'string') return { stack: '', details: err };
  // The stack begins with both.
  const { type: _type, message: _message, ...details } = others as Record<string, unknown>;
  const indented = withoutControls(stack).replaceAll(/^/gm, '    ');
  return { stack: `${indented}\n`, ...(Object.keys(details).length > 0 && { details }) };
}

function shownAs(value: unknown): string {
  return withoutControls(JSON.stringify(value));
}

/** Text whose only control characters are line breaks: others would reach the terminal. */
function withoutControls(text: string): string {
  return text.replaceAll(controls, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}

const controls = /(?!\n)\p{Cc}/gu;
