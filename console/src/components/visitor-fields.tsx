import { goTo, type Route } from '../route.ts';
import { texts } from '../texts.ts';
import { Field } from './ui.tsx';

const t = texts.visitor;

/** The classes of devices. */
const devices = [
  ...['mobile', 'tablet', 'desktop', 'bot', 'ios', 'android', 'windows', 'macos', 'linux'],
];

/** The properties by which operations describe a visitor. */
const visitorFields = [
  ...(['device', 'country', 'lang', 'user', 'role', 'place', 'region', 'city'] as const),
  ...(['ip', 'at', 'draw'] as const),
];

/** A property by which operations describe a visitor. */
export type VisitorField = (typeof visitorFields)[number];

/** A visitor as it is written in a form; without the properties that are empty. */
export type VisitorInput = Readonly<Partial<Record<VisitorField, string>>>;

/** The input of an operation for a visitor. */
export function visitorInput(visitor: VisitorInput): Record<string, string | number> {
  const given = Object.entries(visitor).filter(([, text]) => text.trim() !== '');
  return Object.fromEntries(
    given.map(([name, text]) => {
      const isNumber = name === 'draw' && Number.isFinite(Number(text));
      return [name, isNumber ? Number(text) : text.trim()];
    }),
  );
}

/**
 * As visitorInput, for an operation whose visitor would otherwise be the caller: a visitor without
 * properties has a time at least. A moment of the past, `as_of`, gives the time by itself.
 */
export function previewInput(
  visitor: VisitorInput,
  asOf?: string,
): Record<string, string | number> {
  return {
    ...(asOf === undefined ? { at: new Date().toISOString() } : { as_of: asOf }),
    ...visitorInput(visitor),
  };
}

/** The visitor that the parameters of a screen describe. */
export function visitorOf(params: Readonly<Record<string, string>>): VisitorInput {
  return Object.fromEntries(
    visitorFields.flatMap((name) => (params[name] === undefined ? [] : [[name, params[name]]])),
  );
}

/** The visitor that the address of a screen describes, and a function that changes it. */
export function useVisitor(
  { path, params }: Route,
  names: readonly VisitorField[],
): readonly [VisitorInput, (visitor: VisitorInput) => void] {
  const visitor = Object.fromEntries(
    names.map((name) => [name, params.get(name) ?? '']).filter(([, value]) => value !== ''),
  ) as VisitorInput;
  const others = Object.fromEntries(
    [...params].filter(([name]) => !names.some((one) => one === name)),
  );
  return [
    visitor,
    (changed) => {
      goTo(path, { ...others, ...changed }, true);
    },
  ];
}

/** Fields of a form that describe a visitor. */
export function VisitorFields({
  names,
  visitor,
  onInput,
}: {
  names: readonly VisitorField[];
  visitor: VisitorInput;
  onInput: (visitor: VisitorInput) => void;
}) {
  return (
    <>
      {names.map((name) => (
        <Field key={name} label={t[name]}>
          {name === 'device' ? (
            <select
              value={visitor.device ?? ''}
              onChange={({ currentTarget }) => {
                onInput({ ...visitor, device: currentTarget.value });
              }}
            >
              <option value="">{t.anyDevice}</option>
              {devices.map((device) => (
                <option key={device} value={device}>
                  {device}
                </option>
              ))}
            </select>
          ) : (
            <input
              type="text"
              spellcheck={false}
              placeholder={name in t.hints ? t.hints[name as keyof typeof t.hints] : undefined}
              value={visitor[name] ?? ''}
              onInput={({ currentTarget }) => {
                onInput({ ...visitor, [name]: currentTarget.value });
              }}
            />
          )}
        </Field>
      ))}
    </>
  );
}
