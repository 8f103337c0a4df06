import { useEffect, useRef, useState } from 'preact/hooks';
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
}: {
  label: string;
  rows: readonly Row[];
  isEnd: boolean;
  onEnd: () => void;
  row: (row: Row) => preact.JSX.Element;
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
