import { millionths } from '../../../core/http/visitor.ts';
import { seedInCookie, seedCookie } from '../bucket.ts';
import type { Condition, ConditionType } from '../../../core/pipeline/conditions/condition.ts';

const millionthsPerCent = millionths / 100;

/** `percent`: a share of all visitors. A cookie keeps a visitor in the same share. */
export const percent: ConditionType = {
  name: 'percent',
  parse(value) {
    if (typeof value !== 'number' || !(value >= 0 && value <= 100)) return undefined;
    return shareOf(0, Math.round(value * millionthsPerCent));
  },
  vary: ['Cookie', 'User-Agent'],
  needs: {},
  answerFields({ origin, fields, visitor }) {
    if (seedInCookie(fields) !== undefined) return [];
    return ['Set-Cookie', seedCookie(visitor.seed(), { secure: origin.startsWith('https:') })];
  },
  preview: {
    draw: {
      schema: {
        type: 'number',
        nullable: true,
        minimum: 0,
        exclusiveMaximum: 100,
        description: "The visitor's bucket for percentages (percent), from 0 to 100.",
      },
      traits: (value) => ({ bucket: Math.floor((Number(value) / 100) * millionths) }),
      form: 'a number from 0 up to 100',
    },
  },
};

function shareOf(from: number, size: number): Condition {
  const end = size === 0 ? from : (from + size) % millionths || millionths;
  return {
    name: 'percent',
    type: percent,
    holds: (context) => (context.bucket() - from + millionths) % millionths < size,
    explain: (context) =>
      `It applies to ${text(size)} % of the visitors, the buckets from ${text(from)} ` +
      `to ${text(end)}; this visitor has the bucket ${text(context.bucket())}.`,
    share: { from, size, startingAt: (start) => shareOf(start, size) },
  };
}

function text(parts: number): string {
  return String(parts / millionthsPerCent);
}
