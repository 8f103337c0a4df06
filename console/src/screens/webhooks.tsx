import { useState } from 'preact/hooks';
import { call } from '../api.ts';
import { linkTo, type Route } from '../route.ts';
import { texts } from '../texts.ts';
import { Busy, Fault, ScreenHead, useLoad, When } from '../ui.tsx';

const t = texts.webhooks;

interface Hook {
  readonly id: string;
  readonly name?: string;
  readonly url: string;
  readonly method: string;
  readonly event: readonly string[];
  readonly active?: boolean;
}

interface Attempt {
  readonly id: string;
  readonly seq: number;
  readonly last_seq?: number;
  readonly attempt: number;
  readonly at: string;
  readonly status?: number;
  readonly outcome: string;
  readonly error?: string;
  readonly ms: number;
  readonly answer?: string;
}

interface Deliveries {
  readonly rows: readonly Attempt[];
  readonly queued: number;
  readonly waiting: number;
}

/** All webhooks, or one with its deliveries. */
export function Webhooks({ route }: { route: Route }) {
  const id = route.path.split('/')[2];
  return id === undefined ? <HookList /> : <HookView key={id} id={id} />;
}

function HookList() {
  const hooks = useLoad(
    (signal) => call<{ rows: readonly Hook[] }>('webhook.list', {}, { signal }),
    [],
  );
  return (
    <>
      <ScreenHead title={t.title} lead={t.lead} shown={['webhook.list', {}]} />
      <Fault error={hooks.error} onRetry={hooks.reload} />
      {hooks.data === undefined && hooks.error === undefined ? <Busy /> : null}
      {hooks.data?.rows.length === 0 ? (
        <div class="empty">
          <h2>{t.empty}</h2>
          <p>{t.emptyHint}</p>
        </div>
      ) : null}
      <ul class="cards">
        {hooks.data?.rows.map((hook) => (
          <li key={hook.id}>
            <h2>
              <a href={`#/webhooks/${hook.id}`}>{hook.name ?? hook.url}</a> <State hook={hook} />
            </h2>
            <p class="note">
              {hook.method} {hook.url}
            </p>
            <p class="note">{hook.event.join(', ')}</p>
          </li>
        ))}
      </ul>
    </>
  );
}

function State({ hook: { active = true } }: { hook: Hook }) {
  return <span class={active ? 'tag good' : 'tag'}>{active ? t.active : t.paused}</span>;
}

function HookView({ id }: { id: string }) {
  const hook = useLoad((signal) => call<Hook>('webhook.read', { id }, { signal }), [id]);
  const deliveries = useLoad(
    (signal) => call<Deliveries>('webhook.deliveries', { id }, { signal }),
    [id],
  );
  const reload = (): void => {
    hook.reload();
    deliveries.reload();
  };
  const { data } = hook;
  return (
    <>
      <ScreenHead title={data?.name ?? data?.url ?? t.title} shown={['webhook.deliveries', { id }]}>
        <a class="quiet-button" href="#/webhooks">
          {t.all}
        </a>
      </ScreenHead>
      <Fault error={hook.error ?? deliveries.error} onRetry={reload} />
      {data === undefined ? null : <HookFacts hook={data} depth={deliveries.data} />}
      {data === undefined ? null : <Actions hook={data} onDone={reload} />}
      <h2>{t.deliveries}</h2>
      {deliveries.data?.rows.length === 0 ? <p class="note">{t.noDeliveries}</p> : null}
      <ol class="changes">
        {deliveries.data?.rows.map((one) => (
          <AttemptView key={`${one.id} ${one.attempt}`} hook={id} attempt={one} onDone={reload} />
        ))}
      </ol>
    </>
  );
}

function HookFacts({ hook, depth }: { hook: Hook; depth: Deliveries | undefined }) {
  return (
    <dl class="facts">
      <div>
        <dt>{t.endpoint}</dt>
        <dd>
          {hook.method} {hook.url} <State hook={hook} />
        </dd>
      </div>
      <div>
        <dt>{t.events}</dt>
        <dd>{hook.event.join(', ')}</dd>
      </div>
      <div>
        <dt>{t.queued}</dt>
        <dd>{depth?.queued ?? '–'}</dd>
      </div>
      <div>
        <dt>{t.waiting}</dt>
        <dd>{depth?.waiting ?? '–'}</dd>
      </div>
    </dl>
  );
}

/** Runs actions one at a time, with what the last one said. */
function useAction(onDone: () => void) {
  const [error, setError] = useState<unknown>();
  const [said, setSaid] = useState('');
  const run = async (action: () => Promise<string>): Promise<void> => {
    setError(undefined);
    try {
      setSaid(await action());
      onDone();
    } catch (failure) {
      setError(failure);
    }
  };
  return { error, said, run };
}

function Actions({ hook: { id, active = true }, onDone }: { hook: Hook; onDone: () => void }) {
  const { error, said, run } = useAction(onDone);
  const act = (name: string, text: string) => () =>
    void run(async () => {
      await call(name, { id });
      return text;
    });
  const rotate = async (): Promise<string> => {
    if (!confirm(t.rotateConfirm)) return '';
    const { secret } = await call<{ secret: string }>('webhook.rotate', { id });
    return `${t.secret} ${secret}`;
  };
  return (
    <>
      <p class="actions">
        <button type="button" onClick={act('webhook.test', t.tested)}>
          {t.test}
        </button>
        <button type="button" onClick={act(active ? 'webhook.pause' : 'webhook.resume', '')}>
          {active ? t.pause : t.resume}
        </button>
        <button type="button" onClick={() => void run(rotate)}>
          {t.rotate}
        </button>
      </p>
      <p role="status">{said}</p>
      <Fault error={error} />
    </>
  );
}

function AttemptView({
  hook,
  attempt: one,
  onDone,
}: {
  hook: string;
  attempt: Attempt;
  onDone: () => void;
}) {
  const { error, said, run } = useAction(onDone);
  const isFailed = !one.outcome.startsWith('completed');
  const replay = async (): Promise<string> => {
    await call('webhook.replay', { id: hook, delivery: one.id });
    return t.replayed;
  };
  return (
    <li class={isFailed ? 'failed' : 'insert'}>
      <p>
        <b>{one.last_seq === undefined ? one.seq : `${one.seq}–${one.last_seq}`}</b>{' '}
        {one.status ?? ''} <span class={isFailed ? 'tag' : 'tag good'}>{one.outcome}</span>
      </p>
      <p class="note">
        <When time={one.at} /> · {one.ms} ms · {t.attempt} {one.attempt}
      </p>
      {one.error === undefined ? null : <p class="problem">{one.error}</p>}
      {one.answer === undefined || one.answer === '' ? null : (
        <details>
          <summary>{t.answered}</summary>
          <pre class="body" tabIndex={0}>
            {one.answer}
          </pre>
        </details>
      )}
      <p class="actions">
        <button type="button" class="quiet-button" onClick={() => void run(replay)}>
          {t.replay}
        </button>
        <a class="quiet-button" href={linkTo(`/webhooks/${hook}`)}>
          {one.id}
        </a>
      </p>
      <p role="status">{said}</p>
      <Fault error={error} />
    </li>
  );
}
