import { winnerName, type Explanation, type Tried, type Winner } from '../model/explanation.ts';
import { answerAbsence, outcomeOf, type Asked, type Look, type Source } from '../rules/source.ts';

/**
 * What asking the sources in their order would come to, and why
 * (docs/design/operations.md#explain). The sources behind the one that answers are looked into as
 * well, for whoever wonders about a rule there.
 */
export function explainFrom(sources: readonly Source[], asked: Asked, opened: number): Explanation {
  const tried: Tried[] = [];
  let winner: Winner | undefined;
  let notes: readonly string[] = [];
  for (const source of sources) {
    const { answer, ...looked } = source.look(asked, opened);
    tried.push({
      source: source.name,
      ...(winner === undefined ? looked : beaten(looked, winner)),
    });
    if (answer === undefined || winner !== undefined) continue;
    const { mount, id, status } = answer;
    winner = {
      source: source.name,
      ...(mount === undefined ? { id: id ?? '' } : { mount }),
      status,
    };
    notes = answer.notes ?? [];
    tried.push(...(answer.over ?? []));
  }
  if (winner !== undefined) return { winner, status: winner.status, tried, notes };
  const { status } = outcomeOf(() => answerAbsence(asked.method));
  return { winner: null, status, tried, notes };
}

function beaten(
  { candidates, omitted }: Omit<Look, 'answer'>,
  winner: Winner,
): Pick<Tried, 'candidates' | 'omitted'> {
  const lost = {
    code: 'earlier_source',
    says: `The source ${winner.source} is asked before it, and ${winnerName(winner)} answers.`,
  } as const;
  return {
    candidates: candidates.map((one) => (one.lost === undefined ? { ...one, lost } : one)),
    ...(omitted !== undefined && { omitted }),
  };
}
