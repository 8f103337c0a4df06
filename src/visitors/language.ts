import { preferredLanguage } from '../http/negotiation.ts';
import { languageFieldCharactersMax, languagesRemembered } from '../model/limits.ts';
import { remembered } from '../model/remembered.ts';

/** Tells which language an Accept-Language field likes best. */
export type LanguageReader = typeof preferredLanguage;

/** Makes a reader that does not find out again what most browsers send. */
export function rememberLanguages(): LanguageReader {
  const known = remembered<{ readonly language: string | undefined }>(languagesRemembered);
  return (field) => {
    if (field === undefined || field.length > languageFieldCharactersMax) {
      return preferredLanguage(field);
    }
    let entry = known.get(field);
    if (entry === undefined) {
      entry = { language: preferredLanguage(field) };
      known.set(field, entry);
    }
    return entry.language;
  };
}
