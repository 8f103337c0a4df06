import { LRUCache } from 'lru-cache';
import type { WaymarkEvent } from '../model/event.ts';
import { eventTextsCharactersMax } from './limits.ts';
import { eventText, type EventText } from './body.ts';

/** Caches the texts of the latest events, because many hooks get the same event. */
export function rememberEventTexts(
  eventAt: (logSeq: number) => WaymarkEvent,
): (logSeq: number) => EventText {
  const texts = new LRUCache<number, EventText>({
    maxSize: eventTextsCharactersMax,
    sizeCalculation: ({ head, tail }) => head.length + tail.length,
  });
  return (logSeq) => {
    const known = texts.get(logSeq);
    if (known !== undefined) return known;
    const text = eventText(eventAt(logSeq));
    texts.set(logSeq, text);
    return text;
  };
}
