-- Writes cells, if all that was read is as it was.
--
-- Keys: the intents, then the cells, those to be changed last, then the lists of names.
-- Arguments: who asks, and a request packed with MessagePack: how many cells there are; how many of
--   them are to be changed; their values as they were read, false where there was no cell; and for
--   each change five values: which cell; its new value, or false if it is removed; for how many
--   milliseconds it is needed, or 0 for good; which of the lists its name is in, or 0; its entry there.
-- Answer: 1 if it is done, and 0 if something is not as it was: then nothing is changed.

-- More values than this do not fit on the stack of Lua.
local MOST = 4000

local request = cmsgpack.unpack(ARGV[2])
local cells, changeable, were, changes = request[1], request[2], request[3], request[4]

-- Whatever comes of it, its owner has no more to change.
local function forget_intents()
  if redis.call('EXISTS', KEYS[1]) == 1 then
    for place = cells - changeable + 2, cells + 1 do
      local intent = redis.call('HGET', KEYS[1], KEYS[place])
      if intent and string.match(intent, '^%d+ (.*)$') == ARGV[1] then
        redis.call('HDEL', KEYS[1], KEYS[place])
      end
    end
  end
end

for from = 1, cells, MOST do
  local to = math.min(from + MOST - 1, cells)
  local part = redis.call('MGET', unpack(KEYS, from + 1, to + 1))
  for place = from, to do
    if part[place - from + 1] ~= were[place] then
      forget_intents()
      return 0
    end
  end
end

-- What needs room comes first: without it Redis stops at the first command, before anything is done.
for place = 1, #changes, 5 do
  local cell, value, life, list = changes[place], changes[place + 1], changes[place + 2], changes[place + 3]
  if value then
    if life > 0 then
      redis.call('SET', KEYS[cell + 1], value, 'PX', string.format('%.0f', life))
    else
      redis.call('SET', KEYS[cell + 1], value)
    end
    if list > 0 then
      redis.call('ZADD', KEYS[cells + 1 + list], 0, changes[place + 4])
    end
  end
end
for place = 1, #changes, 5 do
  local cell, value, list = changes[place], changes[place + 1], changes[place + 3]
  if not value then
    redis.call('DEL', KEYS[cell + 1])
    if list > 0 then
      redis.call('ZREM', KEYS[cells + 1 + list], changes[place + 4])
    end
  end
end
forget_intents()
return 1
