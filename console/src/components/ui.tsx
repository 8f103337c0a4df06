import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, curlOf, type EnvelopeOptions } from '../api/api.ts';
import type { RowPages } from './loading.ts';
import { texts } from '../texts.ts';

/** The operation that a screen reads, for the button that copies it. */
export type Shown = readonly [name: string, v: object, options?: EnvelopeOptions];

/** A button that copies the command which reads the same with curl. */
export function CopyCurl({ shown: [name, v, options] }: { shown: Shown }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(curlOf(name, v, options));
    setCopied(true);
    setTimeout(() => {
      setCopied(false);
    }, 2000);
  };
  return (
    <button type="button" class="text-button" title={texts.copy.label} onClick={() => void copy()}>
      <span aria-live="polite">{isCopied ? texts.copy.done : texts.copy.curl}</span>
    </button>
  );
}

/** A link to the screen above. */
export interface BackLink {
  readonly href: string;
  readonly name: string;
}

/** The top of a screen: the way back, its heading, what it reads, and its own buttons. */
export function ScreenHead({
  title,
  lead,
  back,
  shown,
  children,
}: {
  title: string;
  lead?: string;
  back?: BackLink | undefined;
  shown?: Shown | undefined;
  children?: ComponentChildren;
}) {
  useEffect(() => {
    document.title = `${title} · ${texts.product}`;
  }, [title]);
  return (
    <header class="screen-head">
      <div>
        {back === undefined ? null : (
          <a class="back" href={back.href}>
            {back.name}
          </a>
        )}
        <h1>{title}</h1>
        {lead === undefined ? null : <p class="lead">{lead}</p>}
      </div>
      <div class="screen-tools">
        {children}
        {shown === undefined ? null : <CopyCurl shown={shown} />}
      </div>
    </header>
  );
}

/** Scrolls the current one of a row of links into view: on a phone, the row is wider than the screen. */
export function useCurrentInView<E extends HTMLElement>(current: string) {
  const row = useRef<E>(null);
  useEffect(() => {
    const link = row.current?.querySelector('[aria-current]');
    link?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }, [current]);
  return row;
}

/** A failure as the server says it, with a button to try again. */
export function Fault({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  if (error === undefined) return null;
  const text = error instanceof Error ? error.message : texts.states.failed;
  const field = error instanceof ApiError ? error.field : undefined;
  return (
    <div class="fault" role="alert">
      <p>
        {field === undefined ? null : <b>{field}: </b>}
        {text}
      </p>
      {onRetry === undefined ? null : (
        <button type="button" onClick={onRetry}>
          {texts.states.retry}
        </button>
      )}
    </div>
  );
}

/** A screen that could not load what its URL names. */
export function FailedScreen(props: {
  title: string;
  back?: BackLink;
  error: unknown;
  onRetry?: () => void;
}) {
  const { title, back, ...fault } = props;
  return (
    <>
      <ScreenHead title={title} back={back} />
      <Fault {...fault} />
    </>
  );
}

/** A name with its value, in a list of facts (`dl`). */
export function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** A figure with its name, and a line about it. */
export function Tile({
  name,
  value,
  isBad = false,
  children,
}: {
  name: string;
  value: string;
  isBad?: boolean;
  children?: ComponentChildren;
}) {
  return (
    <div class={isBad ? 'tile bad' : 'tile'}>
      <dt>{name}</dt>
      <dd>
        <b>{value}</b>
        <span>{children}</span>
      </dd>
    </div>
  );
}

/** A screen for which the session lacks the scope. */
export function NoScope({ title, scope }: { title: string; scope?: string }) {
  return (
    <>
      <ScreenHead title={title} />
      <p class="note">{scope === undefined ? texts.states.unbound : texts.states.scope(scope)}</p>
    </>
  );
}

/** A line that says that something is loading, read out politely. */
export function Busy({ text = texts.states.loading }: { text?: string }) {
  return (
    <p class="busy" role="status">
      {text}
    </p>
  );
}

/** A labelled control of a form, with what is wrong with it. */
export function Field({
  label,
  problems = [],
  children,
}: {
  label: string;
  problems?: readonly string[];
  children: ComponentChildren;
}) {
  return (
    <div class="field">
      <label>
        <span class="field-label">{label}</span>
        {children}
      </label>
      {problems.map((problem) => (
        <span key={problem} class="problem" role="status">
          {problem}
        </span>
      ))}
    </div>
  );
}

const units: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
];
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });
const dateTime = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' });

/** A time in words, with the exact one as its title. */
export function When({ time }: { time: string }) {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return <>{time}</>;
  const seconds = (date.getTime() - Date.now()) / 1000;
  const [unit, size] = units.find(([, one]) => Math.abs(seconds) >= one) ?? ['second', 1];
  const isFar = Math.abs(seconds) > 7 * 86_400;
  const words = isFar ? dateTime.format(date) : relative.format(Math.round(seconds / size), unit);
  return (
    <time dateTime={time} title={dateTime.format(date)}>
      {words}
    </time>
  );
}

const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

/** A count in few characters: 1.2K. */
export function shortCount(value: number): string {
  return compact.format(value);
}

const rate = new Intl.NumberFormat('en', { maximumSignificantDigits: 2 });

/** A number a second, with two digits. */
export function rateText(value: number): string {
  return value < 100 ? rate.format(value) : shortCount(value);
}

/** A number of bytes with its unit. */
export function bytesText(bytes: number): string {
  const names = ['B', 'KB', 'MB', 'GB', 'TB'];
  const at =
    bytes < 1 ? 0 : Math.min(names.length - 1, Math.floor(Math.log(bytes) / Math.log(1024)));
  const value = bytes / 1024 ** at;
  return `${value.toFixed(value < 10 && at > 0 ? 1 : 0)} ${names[at] ?? ''}`;
}

/** A duration in few characters. */
export function msText(ms: number): string {
  if (ms >= 1000) return `${(ms / 1000).toFixed(1)} s`;
  return `${ms.toFixed(ms < 10 ? 1 : 0)} ms`;
}

const icons = {
  up: 'M8 13V3M3.5 7.5 8 3l4.5 4.5',
  down: 'M8 3v10M3.5 8.5 8 13l4.5-4.5',
  remove: 'M3.5 3.5l9 9M12.5 3.5l-9 9',
} as const;

/** A small drawing for a button that has a label of its own. */
export function Icon({ name }: { name: keyof typeof icons }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={icons[name]} />
    </svg>
  );
}

/**
 * Saves on Ctrl+S; returns the function that ends it. It belongs into useLayoutEffect: a key may be
 * pressed before the browser has painted the form.
 */
export function saveByKey(save: () => void): () => void {
  const pressed = (event: KeyboardEvent): void => {
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== 's') return;
    event.preventDefault();
    save();
  };
  addEventListener('keydown', pressed);
  return () => {
    removeEventListener('keydown', pressed);
  };
}

/** A button to read a list again that is too long to be read again at each change. */
export function StaleList({ isStale, reload }: Pick<RowPages<unknown>, 'isStale' | 'reload'>) {
  if (!isStale) return null;
  return (
    <p role="status">
      <button type="button" class="quiet-button" onClick={reload}>
        {texts.states.stale}
      </button>
    </p>
  );
}

const clockTime = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' });

/** The mark that what is shown may be old, because the tab has no connection. */
export function Disconnected({ since }: { since: number | undefined }) {
  return (
    <p class="disconnected" role="status">
      {since === undefined ? null : (
        <span>{texts.states.disconnected(clockTime.format(since))}</span>
      )}
    </p>
  );
}
