import { single, type Metric } from './metrics.ts';

/** What is known of a process, under the names that Prometheus' own clients use. */
export function processMetrics(): readonly Metric[] {
  const { user, system } = process.cpuUsage();
  const { active } = performance.eventLoopUtilization();
  return [
    single('counter', 'process_cpu_seconds_total', {
      help: 'CPU time that the process has used.',
      value: (user + system) / 1e6,
    }),
    single('gauge', 'process_resident_memory_bytes', {
      help: 'Memory of the process that is resident.',
      value: process.memoryUsage.rss(),
    }),
    single('gauge', 'process_start_time_seconds', {
      help: 'When the process started, in seconds since 1970.',
      value: performance.timeOrigin / 1000,
    }),
    single('counter', 'waymark_event_loop_active_seconds_total', {
      help: 'Time that the event loop was busy: near one second a second, the process is full.',
      value: active / 1000,
    }),
  ];
}
