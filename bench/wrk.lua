-- Makes wrk end its output with one line of JSON: the LoadResult of load.ts.
function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '{"requests":%d,"seconds":%.6f,"bytes":%.0f,"p50Us":%d,"p99Us":%d,"refused":%d,"broken":%d}\n',
    summary.requests,
    summary.duration / 1e6,
    summary.bytes,
    latency:percentile(50),
    latency:percentile(99),
    errors.status,
    errors.connect + errors.read + errors.write + errors.timeout
  ))
end
