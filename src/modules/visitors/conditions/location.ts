import { parseAddress } from '../../../core/values/network/cidr.ts';
import { Networks } from '../../../core/values/network/networks.ts';
import { countryCode, placeName } from '../../../core/http/visitor.ts';
import {
  defineCondition,
  listOf,
  listText,
  setOf,
  nonEmptyText,
  textField,
  type ConditionType,
} from '../../../core/pipeline/conditions/condition.ts';
import { clientAddress } from '../../../core/values/network/peer.ts';

/** `country`: the visitor's country, as ISO 3166-1 codes. */
const country = defineCondition<ReadonlySet<string>>({
  name: 'country',
  parse: (value) => setOf(value, countryCode),
  holds: (countries, { visitor }) => countries.has(visitor.location().country ?? ''),
  explain(countries, { visitor }) {
    const found = visitor.location().country;
    const where = found === undefined ? notKnown : `the visitor is in ${found}`;
    return `It applies to visitors in ${listText(countries)}; ${where}.`;
  },
  vary: [],
  needs: { location: true },
  preview: {
    country: textField(
      "The visitor's country, as an ISO 3166-1 code such as CH.",
      (text) => {
        const code = countryCode(text);
        return code === undefined ? undefined : { country: code };
      },
      { form: 'two letters such as CH' },
    ),
  },
});

/** `region`: the region within the country, by code (`ZH`, `CH-ZH`) or name, in any case. */
const region = defineCondition<ReadonlySet<string>>({
  name: 'region',
  parse: (value) => setOf(value, placeName),
  holds: (wanted, { visitor }) => visitor.location().regions.some((name) => wanted.has(name)),
  explain: (wanted, { visitor }) => explainNames(wanted, visitor.location().regions),
  vary: [],
  needs: { location: true },
  preview: {
    region: textField("The visitor's region: a code or a name.", (text) => {
      const name = placeName(text);
      return name === undefined ? undefined : { regions: [name] };
    }),
  },
});

/** `city`: the city by name, in any case. */
const city = defineCondition<ReadonlySet<string>>({
  name: 'city',
  parse: (value) => setOf(value, placeName),
  holds: (wanted, { visitor }) => visitor.location().cities.some((name) => wanted.has(name)),
  explain: (wanted, { visitor }) => explainNames(wanted, visitor.location().cities),
  vary: [],
  needs: { location: true },
  preview: {
    city: textField("The visitor's city, by name.", (text) => {
      const name = placeName(text);
      return name === undefined ? undefined : { cities: [name] };
    }),
  },
});

/** `place`: the `[node] place` of the node that answers the request, such as a shop. */
const place = defineCondition<ReadonlySet<string>>({
  name: 'place',
  parse: (value) => setOf(value, nonEmptyText),
  holds: (places, { visitor }) => places.has(visitor.place() ?? ''),
  explain(places, { visitor }) {
    const own = visitor.place();
    const where = own === undefined ? 'this node has no [node] place' : `this node is at ${own}`;
    return `It applies to nodes at ${listText(places)}; ${where}.`;
  },
  vary: [],
  needs: {},
  preview: {
    place: textField('The `[node] place` of the node that answers.', (text) => ({ place: text })),
  },
});

/** `ip`: addresses and networks. */
const ip = defineCondition<Networks>({
  name: 'ip',
  parse(value) {
    const texts = listOf(value, (text) => text);
    return texts && Networks.parse(texts);
  },
  holds: (networks, context) => context.isIn(networks),
  explain({ texts }, { visitor: { address } }) {
    return `It applies to addresses in ${listText(texts)}; the visitor's address is ${address}.`;
  },
  vary: [],
  needs: {},
  preview: {
    ip: textField(
      'Address of the visitor.',
      (text) => {
        const parsed = parseAddress(text);
        return parsed && { address: clientAddress(parsed.toString()) };
      },
      { form: 'an IP address' },
    ),
  },
});

/** Conditions about where the visitor is. */
export const locationConditions: readonly ConditionType[] = [country, region, city, place, ip];

const notKnown = "the visitor's location is unknown";

function explainNames(wanted: ReadonlySet<string>, found: readonly string[]): string {
  const where = found.length === 0 ? notKnown : `the visitor is in ${listText(found)}`;
  return `It applies to visitors in ${listText(wanted)}; ${where}.`;
}
