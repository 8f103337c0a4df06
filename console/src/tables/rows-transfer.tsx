import { useState } from 'preact/hooks';
import { call, type JsonObject, type Problem } from '../api/api.ts';
import type { ShownRow } from './table-shape.ts';
import { texts } from '../texts.ts';
import { Fault, ScreenHead } from '../components/ui.tsx';
import { Undo } from '../history/undo.tsx';
import { parseJson } from '../api/json.ts';

const t = texts.tables;
const pageRows = 1000;

interface ImportReport {
  readonly done: boolean;
  readonly imported: number;
  readonly unchanged: number;
  readonly refused: number;
  readonly refusals: readonly { readonly line: number; readonly why: string }[];
  readonly kept: number;
  readonly unknowns: readonly { readonly line: number; readonly problems: readonly Problem[] }[];
  readonly txn: string | null;
}

/** Import of rows from NDJSON, in two steps and with an undo; and export of all rows. */
export function Transfer({ table }: { table: string }) {
  return (
    <>
      <ScreenHead
        title={t.transferOf(table)}
        back={{ href: `#/tables/${table}`, name: table }}
        shown={['record.list', { table, limit: pageRows }]}
      />
      <Export table={table} />
      <Import table={table} />
    </>
  );
}

function Export({ table }: { table: string }) {
  const [count, setCount] = useState<number>();
  const [error, setError] = useState<unknown>();
  const run = async (): Promise<void> => {
    setError(undefined);
    setCount(0);
    try {
      const parts: string[] = [];
      let rows = 0;
      for (let after: string | null | undefined; after !== null;) {
        const page: { rows: readonly ShownRow[]; next: string | null } = await call('record.list', {
          ...{ table, limit: pageRows },
          ...(after !== undefined && { after }),
        });
        parts.push(page.rows.map((row) => `${JSON.stringify(lineOf(row))}\n`).join(''));
        rows += page.rows.length;
        setCount(rows);
        after = page.next;
      }
      save(new Blob(parts, { type: 'application/x-ndjson' }), `${table}.ndjson`);
    } catch (failure) {
      setError(failure);
    }
  };
  return (
    <section class="panel">
      <h2>{t.exportTitle}</h2>
      <p class="note">{t.exportLead}</p>
      <p class="actions">
        <button type="button" onClick={() => void run()}>
          {t.exportButton}
        </button>
      </p>
      <p role="status">{count === undefined ? '' : t.rows(count)}</p>
      <Fault error={error} />
    </section>
  );
}

/** A row as an import takes it again. */
function lineOf({ id: _id, seq: _seq, problems: _problems, ...row }: ShownRow): JsonObject {
  return { a: 'svc1.record.insert', v: row };
}

function save(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}

/** The lines as userinterface.import takes them; a line may be a row alone. */
function linesOf(text: string, table: string): string {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  return lines
    .map((line) => {
      try {
        const value = parseJson(line) as JsonObject;
        const isWrite = typeof value.a === 'string' && typeof value.v === 'object';
        return isWrite ? line : JSON.stringify({ a: 'svc1.record.insert', v: { ...value, table } });
      } catch {
        // The server says what is wrong with it.
        return line;
      }
    })
    .join('\n');
}

function Import({ table }: { table: string }) {
  const [text, setText] = useState('');
  const [last, setLast] = useState<{ readonly of: string; readonly report: ImportReport }>();
  const [error, setError] = useState<unknown>();
  const [isRunning, setRunning] = useState(false);
  const ndjson = linesOf(text, table);
  // The lines may have changed since the request: what it found does not hold for others.
  const report = last?.of === ndjson ? last.report : undefined;
  const run = async (isDry: boolean): Promise<void> => {
    setError(undefined);
    setRunning(true);
    try {
      const v = { ndjson, ...(isDry && { dry_run: true }) };
      setLast({ of: ndjson, report: await call<ImportReport>('userinterface.import', v) });
    } catch (failure) {
      setError(failure);
    }
    setRunning(false);
  };
  return (
    <section class="panel">
      <h2>{t.importTitle}</h2>
      <p class="note">{t.importLead}</p>
      <Lines text={text} onChange={setText} />
      <p class="actions">
        <button
          type="button"
          disabled={isRunning || text.trim() === ''}
          onClick={() => void run(true)}
        >
          {t.tryImport}
        </button>
        {report?.done === false && report.refused === 0 && report.imported > 0 ? (
          <button
            type="button"
            class="main-button"
            disabled={isRunning}
            onClick={() => void run(false)}
          >
            {t.confirmImport(report.imported)}
          </button>
        ) : null}
      </p>
      <Fault error={error} />
      {report === undefined ? null : <ReportView report={report} />}
      {report?.done === true && report.txn !== null ? (
        <UndoImport key={report.txn} table={table} txn={report.txn} />
      ) : null}
    </section>
  );
}

/** The lines of an import: typed, or those of a file. */
function Lines({ text, onChange }: { text: string; onChange: (text: string) => void }) {
  return (
    <>
      <input
        type="file"
        class="file-input"
        aria-label={t.file}
        accept=".ndjson,.jsonl,.json"
        onChange={({ currentTarget: { files } }) => {
          void files?.[0]?.text().then(onChange);
        }}
      />
      <textarea
        class="mono"
        rows={8}
        spellcheck={false}
        aria-label={t.lines}
        placeholder={'{"name":"Brass"}\n{"name":"Slate"}'}
        value={text}
        onInput={({ currentTarget }) => {
          onChange(currentTarget.value);
        }}
      />
    </>
  );
}

function UndoImport({ table, txn }: { table: string; txn: string }) {
  const [isUndoing, setUndoing] = useState(false);
  if (isUndoing) {
    return (
      <Undo
        selection={{ table, txn }}
        operation="record.invalidate"
        onClose={() => {
          setUndoing(false);
        }}
      />
    );
  }
  return (
    <button
      type="button"
      onClick={() => {
        setUndoing(true);
      }}
    >
      {t.undoImport}
    </button>
  );
}

function ReportView({ report }: { report: ImportReport }) {
  const { done, imported, unchanged, refused, refusals, kept, unknowns } = report;
  const facts: readonly (readonly [string, number])[] = [
    [done ? t.imported : t.wouldImport, imported],
    [t.unchanged, unchanged],
    [t.refused, refused],
    [t.kept, kept],
  ];
  return (
    <>
      <dl class="facts">
        {facts.map(([name, count]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{count.toLocaleString()}</dd>
          </div>
        ))}
      </dl>
      <ul class="plan">
        {refusals.map(({ line, why }) => (
          <li key={line} class="problem">
            {t.line(line)}: {why}
          </li>
        ))}
        {unknowns.flatMap(({ line, problems }) =>
          problems.map(({ message }) => (
            <li key={`${line} ${message}`}>
              {t.line(line)}: {message}
            </li>
          )),
        )}
      </ul>
    </>
  );
}
