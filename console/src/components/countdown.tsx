import { useEffect, useState } from 'preact/hooks';
import { texts } from '../texts.ts';

/** The time until a moment, counted down each second: `4 min 12 s`. */
export function Countdown({ until }: { until: string }) {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => {
      setNow(Date.now());
    }, 1000);
    return () => {
      clearInterval(timer);
    };
  }, []);
  return (
    <time dateTime={until} class="countdown">
      {remaining(Date.parse(until) - now)}
    </time>
  );
}

function remaining(ms: number): string {
  if (ms <= 0) return texts.webhooks.soon;
  const seconds = Math.ceil(ms / 1000);
  const parts: readonly (readonly [number, string])[] = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'min'],
    [seconds % 60, 's'],
  ];
  const first = parts.findIndex(([value]) => value > 0);
  return parts
    .slice(first, first + 2)
    .map(([value, unit]) => `${value} ${unit}`)
    .join(' ');
}
