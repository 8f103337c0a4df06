import { useEffect, useRef, useState } from 'preact/hooks';

const rowHeight = 44;
const spare = 10;

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
  const [top, setTop] = useState(0);
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
  const first = Math.max(0, Math.floor(top / rowHeight) - spare);
  const last = Math.min(rows.length, Math.ceil((top + height) / rowHeight) + spare);
  useEffect(() => {
    if (!isEnd && last >= rows.length - 2 * spare) onEnd();
  }, [last, rows.length, isEnd]);
  return (
    <div
      ref={box}
      class="virtual"
      tabIndex={-1}
      onScroll={({ currentTarget }) => {
        setTop(currentTarget.scrollTop);
      }}
    >
      <ul aria-label={label} style={{ height: `${rows.length * rowHeight}px` }}>
        {rows.slice(first, last).map((one, at) => (
          <li
            key={first + at}
            aria-setsize={isEnd ? rows.length : -1}
            aria-posinset={first + at + 1}
            style={{ transform: `translateY(${(first + at) * rowHeight}px)` }}
          >
            {row(one)}
          </li>
        ))}
      </ul>
    </div>
  );
}
