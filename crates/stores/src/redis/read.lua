-- Reads cells, and says of some that someone is about to change them.
--
-- Keys: the intents, then the cells.
-- Arguments: who asks; for how many milliseconds it means to; how many of the cells, the last ones,
--   are to be changed.
-- Answer: the time in seconds and microseconds, then the values, nothing where there is no cell; or
--   'busy' if someone else is about to change one of them.

-- More values than this do not fit on the stack of Lua.
local MOST = 4000

local function values(first)
  local found = {}
  for from = first, #KEYS, MOST do
    local to = math.min(from + MOST - 1, #KEYS)
    local part = redis.call('MGET', unpack(KEYS, from, to))
    for place = 1, to - from + 1 do
      found[#found + 1] = part[place]
    end
  end
  return found
end

-- MGET takes a key of another type for none, and what is written then would replace it.
local function check_missing(found)
  for place = 1, #KEYS - 1 do
    if not found[place] and redis.call('EXISTS', KEYS[place + 1]) == 1 then
      return redis.call('GET', KEYS[place + 1])
    end
  end
end

local time = redis.call('TIME')
local count = tonumber(ARGV[3])
if count > 0 then
  local milliseconds = time[1] * 1000 + math.floor(time[2] / 1000)
  local first = #KEYS - count + 1
  if redis.call('EXISTS', KEYS[1]) == 1 then
    for place = first, #KEYS do
      local intent = redis.call('HGET', KEYS[1], KEYS[place])
      if intent then
        local until_when, who = string.match(intent, '^(%d+) (.*)$')
        if who ~= ARGV[1] and tonumber(until_when) > milliseconds then
          return {'busy'}
        end
      end
    end
  end
  -- Not said, an intent is missed by nobody but its owner, who may have to try again.
  local intent = string.format('%.0f %s', milliseconds + ARGV[2], ARGV[1])
  for place = first, #KEYS do
    redis.pcall('HSET', KEYS[1], KEYS[place], intent)
  end
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
local found = values(2)
check_missing(found)
table.insert(found, 1, time[2])
table.insert(found, 1, time[1])
return found
