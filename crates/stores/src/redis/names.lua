-- Lists the names of the cells of a kind, each once, in order.
--
-- Keys: the list of that kind.
-- Arguments: what the keys of its cells begin with; the entry after which it begins, or '' for the
--   first; how many names at most.
-- Answer: the names. Cells that are gone by themselves are taken off the list.

-- A name, its part if it has one, and what comes after all entries of that name.
local function split(entry)
  local place = 1
  while true do
    local zero = string.find(entry, '%z', place)
    local kind = string.byte(entry, zero + 1)
    if kind ~= 255 then
      local escaped = string.sub(entry, 1, zero - 1)
      return (string.gsub(escaped, '(%z)\255', '%1')), kind == 1 and string.sub(entry, zero + 2), escaped .. '\0\2'
    end
    place = zero + 2
  end
end

local names, from = {}, ARGV[2] == '' and '-' or '(' .. ARGV[2]
while #names < tonumber(ARGV[3]) do
  local entry = redis.call('ZRANGEBYLEX', KEYS[1], from, '+', 'LIMIT', 0, 1)[1]
  if not entry then
    break
  end
  local name, part, behind = split(entry)
  local key = ARGV[1] .. #name .. ':' .. name
  if part then
    key = key .. ':' .. part
  end
  if redis.call('EXISTS', key) == 1 then
    names[#names + 1] = name
    from = '(' .. behind
  else
    redis.call('ZREM', KEYS[1], entry)
    from = '(' .. entry
  end
end
return names
