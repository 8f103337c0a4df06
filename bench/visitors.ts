import visitors from './visitors.json' with { type: 'json' };

/** A number from which one can count on without meeting those of another run. */
export function firstVisitor(): number {
  return Date.now() * 1_000;
}

/** The header fields by which a visitor differs from the next one, by its number. */
export function visitorFields(visitor: number): Readonly<Record<string, string>> {
  const { agents, accepts, languages } = visitors;
  return {
    'User-Agent': agents[visitor % agents.length] ?? '',
    Accept: accepts[visitor % accepts.length] ?? '',
    'Accept-Language': languages[visitor % languages.length] ?? '',
    Referer: `https://www.example.com/${visitor}`,
    Cookie: `visitor=${visitor}; theme=dark`,
  };
}

/** The input of wrk.lua, which creates the same visitors. */
export function visitorArguments(): readonly string[] {
  const { agents, accepts, languages } = visitors;
  const lists = [agents, languages, accepts].flatMap((list) => [String(list.length), ...list]);
  return [String(firstVisitor()), ...lists];
}
