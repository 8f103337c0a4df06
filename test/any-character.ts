import fc from 'fast-check';

/**
 * Any character of Unicode, one in three of ASCII: a unit of `fc.string`. Its own unit `binary`
 * builds a table of all characters first, which takes a second.
 */
export const anyCharacter = fc
  .oneof(
    fc.integer({ min: 0, max: 0x7f }),
    fc.integer({ min: 0x80, max: 0xd7ff }),
    fc.integer({ min: 0xe000, max: 0x10ffff }),
  )
  .map((code) => String.fromCodePoint(code));
