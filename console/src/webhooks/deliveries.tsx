import { useEffect, useRef, useState } from 'preact/hooks';
import { call, may } from '../api/api.ts';
import { useAction, useLoad } from '../components/loading.ts';
import { Countdown } from '../components/countdown.tsx';
import { goTo, linkTo, type Route } from '../route.ts';
import { texts } from '../texts.ts';
import { Busy, CopyCurl, Fault, msText, When } from '../components/ui.tsx';
import '../components/panes.css';
import { parseJson } from '../api/json.ts';

const t = texts.webhooks;

/** A row of webhook.deliveries. */
interface Attempt {
  readonly id: string;
  readonly seq: number;
  readonly last_seq?: number;
  readonly attempt: number;
  readonly at: string;
  readonly status?: number;
  readonly outcome: keyof typeof t.outcomes;
  readonly error?: string;
  readonly ms: number;
  readonly next_attempt?: string;
}

interface AttemptPage {
  readonly rows: readonly Attempt[];
  readonly next: number | null;
}

interface HeaderField {
  readonly name: string;
  readonly value: string;
}

interface Delivery {
  readonly id: string;
  readonly seq: number;
  readonly last_seq?: number;
  readonly body: string;
  readonly truncated: boolean;
  readonly next_attempt?: string;
  readonly attempts: readonly (Attempt & {
    readonly method?: string;
    readonly url?: string;
    readonly headers?: readonly HeaderField[];
    readonly answer_headers?: readonly HeaderField[];
    readonly answer?: string;
  })[];
}

interface PanesProps {
  readonly hook: string;
  readonly route: Route;
  /** Changes when the deliveries are to be read again. */
  readonly turn: number;
  /** A result of useLive. */
  readonly live: number;
  readonly onReplay: () => void;
}

/** The attempts of a hook, and beside them the delivery that the URL names. */
export function DeliveryPanes({ hook, route: { path, params }, turn, live, onReplay }: PanesProps) {
  const [, screen = 'webhooks', , chosen] = path.split('/');
  const outcome = params.get('outcome') ?? '';
  const filters = { id: hook, ...(outcome !== '' && { outcome }) };
  const attempts = useLoad(
    (signal) => call<AttemptPage>('webhook.deliveries', { ...filters, limit: 50 }, { signal }),
    [hook, outcome, turn],
    live,
  );
  const [older, setOlder] = useState<AttemptPage | undefined>();
  useEffect(() => {
    setOlder(undefined);
  }, [hook, outcome]);
  const next = older === undefined ? attempts.data?.next : older.next;
  const more = async (): Promise<void> => {
    const page = await call<AttemptPage>('webhook.deliveries', { ...filters, before: next });
    setOlder((before) => ({ ...page, rows: [...(before?.rows ?? []), ...page.rows] }));
  };
  const rows = [...(attempts.data?.rows ?? []), ...(older?.rows ?? [])];
  const place = `/${screen}/${hook}`;
  return (
    <div class={chosen === undefined ? '' : 'panes'}>
      <div>
        <OutcomeFilter place={place} outcome={outcome} />
        <Fault error={attempts.error} onRetry={attempts.reload} />
        {attempts.data === undefined && attempts.error === undefined ? <Busy /> : null}
        {attempts.data !== undefined && rows.length === 0 ? (
          <p class="note">{outcome === '' ? t.noDeliveries : t.noneFound}</p>
        ) : null}
        <ol class="attempts" aria-label={t.deliveries}>
          {rows.map((one) => (
            <AttemptRow
              key={`${one.seq} ${one.attempt}`}
              attempt={one}
              href={linkTo(`${place}/${one.id}`, { outcome })}
              isChosen={one.id === chosen}
            />
          ))}
        </ol>
        {typeof next === 'number' ? (
          <button type="button" onClick={() => void more()}>
            {texts.states.more}
          </button>
        ) : null}
      </div>
      {chosen === undefined ? null : (
        <DeliveryView key={chosen} {...{ hook, id: chosen, place, turn, live, onReplay }} />
      )}
    </div>
  );
}

function OutcomeFilter({ place, outcome }: { place: string; outcome: string }) {
  return (
    <label class="inline-field outcome-filter">
      {t.outcome}
      <select
        value={outcome}
        onChange={({ currentTarget }) => {
          goTo(place, { outcome: currentTarget.value });
        }}
      >
        <option value="">{t.anyOutcome}</option>
        {Object.entries(t.outcomes).map(([name, text]) => (
          <option key={name} value={name}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

function seqText({ seq, last_seq: last }: Pick<Attempt, 'seq' | 'last_seq'>): string {
  return last === undefined || last === seq ? String(seq) : `${seq}–${last}`;
}

function Outcome({
  attempt: { outcome, status },
}: {
  attempt: Pick<Attempt, 'outcome' | 'status'>;
}) {
  const isGood = outcome.startsWith('completed');
  return (
    <>
      <b class={isGood ? '' : 'bad-text'}>{status ?? t.noAnswer}</b>
      <span class={isGood ? 'tag good' : 'tag bad'}>{t.outcomes[outcome]}</span>
    </>
  );
}

function AttemptRow({
  attempt: one,
  href,
  isChosen,
}: {
  attempt: Attempt;
  href: string;
  isChosen: boolean;
}) {
  return (
    <li>
      <a class="attempt" href={href} aria-current={isChosen ? 'true' : undefined}>
        <span class="attempt-seq">{seqText(one)}</span>
        <span class="attempt-main">
          <Outcome attempt={one} />
          <span class="note attempt-time">
            <When time={one.at} /> · {msText(one.ms)} · {t.attempt} {one.attempt}
          </span>
          {one.error === undefined ? null : <span class="problem">{one.error}</span>}
          {one.next_attempt === undefined ? null : (
            <span class="note">
              {t.next} <Countdown until={one.next_attempt} />
            </span>
          )}
        </span>
      </a>
    </li>
  );
}

function DeliveryView({
  hook,
  id,
  place,
  turn,
  live,
  onReplay,
}: {
  hook: string;
  id: string;
  place: string;
  turn: number;
  live: number;
  onReplay: () => void;
}) {
  const input = { id: hook, delivery: id };
  const delivery = useLoad(
    (signal) => call<Delivery>('webhook.delivery', input, { signal }),
    [hook, id, turn],
    live,
  );
  const { error, said, run } = useAction(onReplay);
  const replay = async (): Promise<string> => {
    await call('webhook.replay', input);
    return t.replayed;
  };
  const { data } = delivery;
  const section = useRef<HTMLElement>(null);
  useEffect(() => {
    section.current?.focus({ preventScroll: true });
    section.current?.scrollIntoView({ block: 'nearest' });
  }, []);
  return (
    <section ref={section} class="panel delivery" aria-label={t.delivery} tabIndex={-1}>
      <div class="panel-head">
        <h2>
          {t.delivery} {data === undefined ? '' : seqText(data)}
        </h2>
        <CopyCurl shown={['webhook.delivery', input]} />
        {may('webhook') ? (
          <button type="button" class="quiet-button" onClick={() => void run(replay)}>
            {t.replay}
          </button>
        ) : null}
        <a class="quiet-button" href={linkTo(place)}>
          {t.close}
        </a>
      </div>
      <p role="status">{said}</p>
      <Fault error={error ?? delivery.error} />
      {data === undefined ? delivery.error === undefined && <Busy /> : <Facts delivery={data} />}
    </section>
  );
}

function Facts({ delivery }: { delivery: Delivery }) {
  const [newest] = delivery.attempts;
  return (
    <>
      <p class="note">
        {t.messageId} <code>{delivery.id}</code>
      </p>
      {delivery.next_attempt === undefined ? null : (
        <p>
          {t.next} <Countdown until={delivery.next_attempt} />
        </p>
      )}
      <h3>{t.request}</h3>
      {newest?.url === undefined ? null : (
        <p class="note">
          {newest.method} {newest.url}
        </p>
      )}
      <Headers fields={newest?.headers} />
      <pre class="body" tabIndex={0}>
        {prettyJson(delivery)}
      </pre>
      {delivery.truncated ? <p class="note">{t.truncated}</p> : null}
      <h3>{t.answers}</h3>
      <ol class="answers">
        {delivery.attempts.map((one) => (
          <li key={one.attempt}>
            <p>
              <Outcome attempt={one} />{' '}
              <span class="note">
                {t.attempt} {one.attempt} · <When time={one.at} /> · {msText(one.ms)}
              </span>
            </p>
            {one.error === undefined ? null : <p class="problem">{one.error}</p>}
            <Headers fields={one.answer_headers} />
            {one.answer === undefined ? null : (
              <pre class="body" tabIndex={0}>
                {one.answer}
              </pre>
            )}
          </li>
        ))}
      </ol>
    </>
  );
}

function Headers({ fields }: { fields: readonly HeaderField[] | undefined }) {
  if (fields === undefined) return null;
  return (
    <details>
      <summary>{t.headers(fields.length)}</summary>
      <dl class="facts">
        {fields.map(({ name, value }, at) => (
          // oxlint-disable-next-line react/no-array-index-key -- a name may come twice
          <div key={`${name} ${at}`}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}

function prettyJson({ body, truncated }: Pick<Delivery, 'body' | 'truncated'>): string {
  if (truncated) return body;
  try {
    return JSON.stringify(parseJson(body), undefined, 2);
  } catch {
    return body;
  }
}
