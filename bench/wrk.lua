-- Each request is that of another visitor, with another browser, language, cookie and referer. The arguments
-- are the number of the first visitor, then the agents, languages and values of Accept, each list after its
-- length.
local agents, languages, accepts = {}, {}, {}
local visitor, head

local function list(args, at, into)
  local count = tonumber(args[at])
  for i = 1, count do into[i] = args[at + i] end
  return at + count + 1
end

function init(args)
  visitor = tonumber(args[1])
  local at = list(args, 2, agents)
  at = list(args, at, languages)
  list(args, at, accepts)
  head = wrk.format():gsub('\r\n$', '')
end

function request()
  visitor = visitor + 1
  return string.format(
    '%sUser-Agent: %s\r\nAccept: %s\r\nAccept-Language: %s\r\nReferer: https://www.example.com/%.0f\r\n' ..
      'Cookie: visitor=%.0f; theme=dark\r\n\r\n',
    head,
    agents[visitor % #agents + 1],
    accepts[visitor % #accepts + 1],
    languages[visitor % #languages + 1],
    visitor,
    visitor
  )
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
