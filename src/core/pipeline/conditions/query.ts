import { isJsonObject } from '../../values/json/json.ts';
import { conditionValuesMax, defineCondition, listText, setOf } from './condition.ts';

/** A parameter of the query, and its values; undefined for any value. */
interface Parameter {
  readonly name: string;
  readonly values: ReadonlySet<string> | undefined;
}

/** `query`: parameters of the query by name: a value, a list of values, or `*` for any. */
export const query = defineCondition<readonly Parameter[]>({
  name: 'query',
  parse(value) {
    if (!isJsonObject(value)) return undefined;
    const entries = Object.entries(value);
    if (entries.length === 0 || entries.length > conditionValuesMax) return undefined;
    const parameters = entries.map(([name, wanted]): Parameter | undefined => {
      const values = setOf(wanted, (text) => text);
      return values && { name, values: values.has('*') ? undefined : values };
    });
    return parameters.every((one) => one !== undefined) ? parameters : undefined;
  },
  holds: (parameters, context) =>
    parameters.every(({ name, values }) => {
      const sent = context.values(name);
      return values === undefined ? sent.size > 0 : !values.isDisjointFrom(sent);
    }),
  explain: (parameters) => `It needs ${parameters.map(text).join(' and ')} in the query.`,
  vary: [],
  needs: {},
  preview: {},
});

function text({ name, values }: Parameter): string {
  return values === undefined ? name : `${name}=${listText(values).replaceAll(', ', ' or ')}`;
}
