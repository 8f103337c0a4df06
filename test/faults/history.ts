/** A write of one record, as a client has seen it. */
interface ClientWrite {
  readonly record: string;
  /** The written value, which no other write has. */
  readonly value: string;
  /** The seq that the record must have before it, if the client demands one. */
  readonly ifSeq: number | undefined;
  /** When it was sent and answered, in milliseconds; Infinity without an answer. */
  readonly sentMs: number;
  readonly answeredMs: number;
  /** The seq of its change; `conflict` if it was refused; undefined without an answer. */
  readonly outcome: number | 'conflict' | undefined;
}

/** A change of a record in the log. */
interface LoggedWrite {
  readonly seq: number;
  readonly record: string;
  readonly value: string;
}

/**
 * Checks that writes are linearizable (Herlihy and Wing, 1990): there is one order of all writes
 * that explains every answer, and in which a write that was answered before another one was sent
 * comes first. In general, a checker must search for that order. Here the log is that order, so a
 * check takes n log n steps: (1) each write with an answer is in the log once, with the seq of the
 * answer; one without an answer at most once; nothing else is in the log; (2) no write has a lower
 * seq than one that was answered before it was sent; (3) a write that demanded a seq follows the
 * change with that seq directly; (4) a refusal was right: the record had another seq at some moment
 * between the request and its answer. Returns a sentence for each violation.
 */
export function linearizabilityViolations(
  writes: readonly ClientWrite[],
  log: readonly LoggedWrite[],
): readonly string[] {
  return [
    ...unfaithful(writes, log),
    ...outOfTime(writes, log),
    ...unchecked(writes, log),
    ...wronglyRefused(writes, log),
  ];
}

function unfaithful(writes: readonly ClientWrite[], log: readonly LoggedWrite[]): string[] {
  const violations: string[] = [];
  const logged = new Map<string, number>();
  for (const { value, seq } of log) {
    if (logged.has(value)) violations.push(`${value} is in the log twice`);
    logged.set(value, seq);
  }
  const known = new Set<string>();
  for (const { value, outcome } of writes) {
    known.add(value);
    const seq = logged.get(value);
    if (typeof outcome === 'number' && seq !== outcome) {
      violations.push(`${value} was answered with seq ${outcome}, and the log has ${seq}`);
    }
    if (outcome === 'conflict' && seq !== undefined) {
      violations.push(`${value} was refused, and the log has it`);
    }
  }
  for (const { value } of log) {
    if (!known.has(value)) violations.push(`the log has ${value}, which nobody wrote`);
  }
  return violations;
}

function outOfTime(writes: readonly ClientWrite[], log: readonly LoggedWrite[]): string[] {
  const logged = new Map(log.map(({ value, seq }) => [value, seq]));
  const placed = writes.flatMap((write) => {
    const seq = logged.get(write.value);
    return seq === undefined ? [] : [{ ...write, seq }];
  });
  const sent = placed.toSorted((a, b) => a.sentMs - b.sentMs);
  const answered = placed.toSorted((a, b) => a.answeredMs - b.answeredMs);
  const violations: string[] = [];
  let [newest, at] = [0, 0];
  for (const write of sent) {
    for (; (answered[at]?.answeredMs ?? Infinity) < write.sentMs; at += 1) {
      newest = Math.max(newest, answered[at]?.seq ?? 0);
    }
    if (write.seq < newest) {
      violations.push(
        `${write.value} has seq ${write.seq}, although ${newest} was answered before`,
      );
    }
  }
  return violations;
}

/** The seqs of each record's changes, in their order. */
function seqsOf(log: readonly LoggedWrite[]): ReadonlyMap<string, readonly number[]> {
  const seqs = new Map<string, number[]>();
  for (const { record, seq } of log) {
    const of = seqs.get(record) ?? [];
    of.push(seq);
    seqs.set(record, of);
  }
  return seqs;
}

function unchecked(writes: readonly ClientWrite[], log: readonly LoggedWrite[]): string[] {
  const seqs = seqsOf(log);
  const logged = new Map(log.map(({ value, seq }) => [value, seq]));
  return writes.flatMap(({ record, value, ifSeq }) => {
    const seq = logged.get(value);
    if (seq === undefined || ifSeq === undefined) return [];
    const of = seqs.get(record) ?? [];
    const before = of[of.indexOf(seq) - 1];
    return before === ifSeq ? [] : [`${value} demanded seq ${ifSeq}, and follows ${before}`];
  });
}

function wronglyRefused(writes: readonly ClientWrite[], log: readonly LoggedWrite[]): string[] {
  const seqs = seqsOf(log);
  const byLogged = new Map(writes.map((write) => [write.value, write]));
  const sentMsOf = new Map(log.map(({ seq, value }) => [seq, byLogged.get(value)?.sentMs ?? 0]));
  return writes.flatMap(({ record, value, ifSeq, answeredMs, outcome }) => {
    if (outcome !== 'conflict' || ifSeq === undefined) return [];
    const later = (seqs.get(record) ?? []).filter((seq) => seq > ifSeq);
    const isRight = later.some((seq) => (sentMsOf.get(seq) ?? 0) <= answeredMs);
    return isRight ? [] : [`${value} was refused, although the record had seq ${ifSeq}`];
  });
}

export type { ClientWrite, LoggedWrite };
