import fc from 'fast-check';

/**
 * Any character of Unicode, every third one of ASCII: a unit of `fc.string`. Its own unit `binary`
 * counts all of them in a table first, which takes a second.
 */
export const anyCharacter = fc
  .oneof(
    fc.integer({ min: 0, max: 0x7f }),
    fc.integer({ min: 0x80, max: 0xd7ff }),
    fc.integer({ min: 0xe000, max: 0x10ffff }),
  )
  .map((code) => String.fromCodePoint(code));
