-- Where a request has the cookie visitor, it is another one each time, counted on from that number.
local first = string.match(wrk.headers['Cookie'] or '', '^visitor=(%d+)$')
if first then
  local visitor = tonumber(first)
  local head
  wrk.headers['Cookie'] = nil
  function request()
    head = head or wrk.format():gsub('\r\n$', '')
    visitor = visitor + 1
    return string.format('%sCookie: visitor=%.0f\r\n\r\n', head, visitor)
  end
end

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
