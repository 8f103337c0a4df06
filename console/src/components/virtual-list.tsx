import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { keepRow, leftRow } from '../route.ts';
import { texts } from '../texts.ts';

const rowHeight = 44;
const spare = 10;
/** The next page is loaded when fewer rows than this follow those in view. */
const prefetchedRows = 200;
/** Browsers show no element higher than some ten million pixels. */
const rowsMax = 300_000;

/**
 * A list that renders only the rows in view, so that its length costs nothing. It asks for more rows
 * when its end comes near.
 */
export function VirtualList<Row>({
  label,
  rows,
  isEnd,
  onEnd,
  row,
  keepsPlace = false,
}: {
  label: string;
  rows: readonly Row[];
  isEnd: boolean;
  onEnd: () => void;
  row: (row: Row) => preact.JSX.Element;
  /** Whether the way back to the screen leads to the same rows: for its main list. */
  keepsPlace?: boolean;
}) {
  const box = useRef<HTMLDivElement>(null);
  // A row, not a distance: scrolling within a row renders nothing.
  const [topRow, setTopRow] = useState(0);
  const [height, setHeight] = useState(600);
  useEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    const resized = new ResizeObserver(() => {
      setHeight(element.clientHeight);
    });
    resized.observe(element);
    return () => {
      resized.disconnect();
    };
  }, []);
  const count = Math.min(rows.length, rowsMax);
  const first = Math.max(0, topRow - spare);
  const last = Math.min(count, topRow + Math.ceil(height / rowHeight) + 1 + spare);
  const isFull = rows.length >= rowsMax;
  usePlace(box, { isKept: keepsPlace, topRow, count, isEnd });
  useEffect(() => {
    if (!isEnd && !isFull && last >= rows.length - prefetchedRows) onEnd();
  }, [last, rows.length, isEnd]);
  return (
    <>
      <div
        ref={box}
        class="virtual"
        style={{ '--rows-height': `${count * rowHeight + 2}px` }}
        tabIndex={-1}
        onScroll={({ currentTarget }) => {
          setTopRow(Math.floor(currentTarget.scrollTop / rowHeight));
        }}
      >
        <ul
          aria-label={label}
          style={{ height: `${count * rowHeight}px`, paddingTop: `${first * rowHeight}px` }}
        >
          {rows.slice(first, last).map((one, at) => (
            <li
              key={first + at}
              aria-setsize={isEnd ? rows.length : -1}
              aria-posinset={first + at + 1}
            >
              {row(one)}
            </li>
          ))}
        </ul>
      </div>
      {isFull ? <p class="note">{texts.states.firstRows(rowsMax)}</p> : null}
    </>
  );
}

/** Shows the rows again that a person has left, once they are there, and keeps those in view. */
function usePlace(
  box: { readonly current: HTMLDivElement | null },
  given: { isKept: boolean; topRow: number; count: number; isEnd: boolean },
): void {
  const { isKept, topRow, count, isEnd } = given;
  const wanted = useRef(isKept ? leftRow() : 0);
  useLayoutEffect(() => {
    if (wanted.current === 0 || (count <= wanted.current && !isEnd)) return;
    box.current?.scrollTo({ top: wanted.current * rowHeight });
    wanted.current = 0;
  }, [count, isEnd]);
  useEffect(() => {
    // Browsers refuse hundreds of such calls in a few seconds.
    if (!isKept || wanted.current > 0) return undefined;
    const timer = setTimeout(() => {
      keepRow(topRow);
    }, 100);
    return () => {
      clearTimeout(timer);
    };
  }, [topRow, isKept]);
}
