-- The rest of consume.lua: asks at meters of any kind, and at several of them.

-- The first multiple of a grain that is not before now. A step of the remainder fits a double: the
-- longest grain is 2.5 * 10^14.
local function date_of(grain)
  if grain == 1 then
    return now_s, now_n
  end
  local digits, base = 3, 1000
  if grain > 9000000000000 then
    digits, base = 9, 10
  end
  local over = fmod(now_s, grain)
  for _ = 1, digits do
    over = fmod(over * base, grain)
  end
  over = fmod(over + now_n, grain)
  if over == 0 then
    return now_s, now_n
  end
  return sum(now_s, now_n, split(grain - over))
end

-- What a rule means now.
local function prepared(kind, second, third, fourth, fifth)
  local rule = {kind = kind}
  if kind == BUCKET then
    rule.scale, rule.fill_fraction = second, fifth
    rule.most_s, rule.most_n = sum(now_s, now_n, third, fourth)
  else
    rule.limit = second
  end
  if kind == WINDOW or kind == SLIDING then
    rule.length_s, rule.length_n = third, fourth
  end
  if kind == WINDOW then
    rule.ends_s, rule.ends_n = sum(now_s, now_n, third, fourth)
  elseif kind == SLIDING then
    rule.gone_s, rule.gone_n = difference(now_s, now_n, third, fourth)
    rule.date_s, rule.date_n = date_of(fifth)
  end
  return rule
end

-- What meters begin with, and rules, by where a definition begins.
local definitions = {}
for place = 1, #uses do
  local from = uses[place]
  if not definitions[from] then
    local rules = {}
    for rule = from + 2, from + 2 + (numbers[from + 1] - 1) * 5, 5 do
      rules[#rules + 1] = prepared(unpack(numbers, rule, rule + 4))
    end
    definitions[from] = {ARGV[numbers[from]], rules}
  end
end

-- What asks cost, by where that begins.
local costs = {}
do
  local place = 1
  while place <= #asks do
    local last = place + 3 + asks[place + 3] * 2
    for line = place + 4, last, 2 do
      local from = asks[line + 1]
      local rules = numbers[uses[asks[line]] + 1]
      costs[from] = costs[from] or {unpack(numbers, from, from + rules * 3)}
    end
    place = last + 1
  end
end

-- The states of rules, as they are now. Each reader gets the words of a meter and the place where the
-- state begins, and answers the state and the place behind it, or nothing where it has no port.

-- All that it will ever hold is there from the start: a table that grows is made anew.
local function bucket(s, n, fraction)
  return {s = s, n = n, fraction = fraction, lows = {}, next_s = 0, next_n = 0, next_fraction = 0}
end

local function fresh(rule)
  local kind = rule.kind
  if kind == BUCKET then
    return bucket(now_s, now_n, 0)
  elseif kind == WINDOW then
    return {s = rule.ends_s, n = rule.ends_n, spent = 0}
  end
  return {used = 0, list = {}}
end

local function read_bucket(words, place)
  local s, n = words[place], words[place + 1]
  if s > LAST_SECOND then
    return nil
  end
  if is_after(now_s, now_n, s, n) then
    return bucket(now_s, now_n, 0), place + 4
  end
  return bucket(s, n, words[place + 2] * BILLION + words[place + 3]), place + 4
end

local function read_window(words, place, rule)
  local s, n = words[place], words[place + 1]
  local spent = words[place + 2] * BILLION + words[place + 3]
  if is_after(s, n, now_s, now_n) then
    return {s = s, n = n, spent = spent}, place + 4
  elseif spent > rule.limit then
    -- Debt, which spills into the windows that follow.
    return nil
  end
  return fresh(rule), place + 4
end

-- Instants and weights, those that count.
local function read_sliding(words, place, rule)
  local used, list, length = 0, {}, 0
  local gone_s, gone_n = rule.gone_s, rule.gone_n
  local last = place + 1 + words[place + 1] * 4
  for from = place + 2, last, 4 do
    local s, n = words[from], words[from + 1]
    if s > gone_s or (s == gone_s and n > gone_n) then
      local billions, rest = words[from + 2], words[from + 3]
      used = used + billions * BILLION + rest
      list[length + 1], list[length + 2], list[length + 3], list[length + 4] = s, n, billions, rest
      length = length + 4
    end
  end
  return {used = used, list = list}, last + 1
end

-- Names, weights and ends, of those that hold.
local function read_slots(words, place)
  local used, list, length = 0, {}, 0
  local last = place + 1 + words[place + 1] * 6
  for from = place + 2, last, 6 do
    local s, n = words[from + 4], words[from + 5]
    if s > now_s or (s == now_s and n > now_n) then
      used = used + words[from + 2] * BILLION + words[from + 3]
      for word = 0, 5 do
        list[length + 1 + word] = words[from + word]
      end
      length = length + 6
    end
  end
  return {used = used, list = list}, last + 1
end

local READERS = {read_bucket, read_window, read_sliding, read_slots}

local WORD, WORD_BYTES = 'I5I4', 9
-- Most words that are read or written at once: more do not fit on the stack of Lua.
local WORDS_MAX = 1000

-- The words of a value that begins so, each as two numbers; nothing if it begins otherwise, or is closed.
local function words_of(value, head)
  if find(value, head, 1, true) ~= 1 then
    return nil
  end
  local from = #head + 1
  local until_s, until_n, reason_bytes = read('>I5I4I2', value, from)
  if is_after(until_s, until_n, now_s, now_n) then
    return nil
  end
  from = from + #OPEN + reason_bytes
  local left = (#value - from + 1) / WORD_BYTES
  if left ~= floor(left) then
    return nil
  end
  local words = {read('>' .. string.rep(WORD, math.min(left, WORDS_MAX)), value, from)}
  -- What is read ends with the place behind it.
  words[#words] = nil
  while left > WORDS_MAX do
    left, from = left - WORDS_MAX, from + WORDS_MAX * WORD_BYTES
    local more = {read('>' .. string.rep(WORD, math.min(left, WORDS_MAX)), value, from)}
    local last = #words
    for word = 1, #more - 1 do
      words[last + word] = more[word]
    end
  end
  return words
end

-- A meter as it is now; nothing where there is no port for what it holds.
local function opened(value, definition)
  local rules, states = definition[2], {}
  if not value then
    for number = 1, #rules do
      states[number] = fresh(rules[number])
    end
    return {definition = definition, states = states, words = {}, is_paid = false, s = 0, n = 0,
      born_s = now_s, born_n = now_n, changed_s = 0, changed_n = 0}
  end
  local words = words_of(value, definition[1])
  if not words or words[1] > LAST_SECOND or is_after(words[3], words[4], now_s, now_n)
    or is_after(words[5], words[6], now_s, now_n) then
    return nil
  end
  local place = 9
  for number = 1, #rules do
    local rule = rules[number]
    local state
    state, place = READERS[rule.kind](words, place, rule)
    -- What is promised ahead comes next, and then the low points.
    if not state or words[place] ~= 0 or words[place + 1] ~= 0 then
      return nil
    end
    local lows, count = state.lows, words[place + 3] * 4
    if count > 0 and not lows then
      return nil
    end
    for word = 1, count do
      lows[word] = words[place + 3 + word]
    end
    states[number] = state
    place = place + 4 + count
  end
  if place ~= #words + 1 then
    return nil
  end
  return {definition = definition, states = states, words = words, is_paid = false,
    s = words[1], n = words[2],
    born_s = words[3], born_n = words[4], changed_s = words[7], changed_n = words[8]}
end

local meters = {}
for place = 1, #uses do
  local is_read, meter = pcall(opened, values[reads + place], definitions[uses[place]])
  if not is_read or not meter then
    return DECLINED
  end
  meters[place] = meter
end

-- Whether a weight passes a bucket now. What it would hold then is kept until it is paid.
local function passes_bucket(rule, state, cost_s, cost_n, cost_fraction)
  scale, fill_fraction, most_s, most_n = rule.scale, rule.fill_fraction, rule.most_s, rule.most_n
  local s, n, fraction = filled(state.s, state.n, state.fraction, cost_s, cost_n, cost_fraction)
  state.next_s, state.next_n, state.next_fraction = s, n, fraction
  return s ~= nil
end

local function passes(meter, cost)
  local rules, states, weight = meter.definition[2], meter.states, cost[1]
  for number = 1, #rules do
    local rule, state = rules[number], states[number]
    local kind = rule.kind
    if kind == BUCKET then
      local at = number * 3 - 1
      if not passes_bucket(rule, state, cost[at], cost[at + 1], cost[at + 2]) then
        return false
      end
    elseif kind == WINDOW then
      -- Rules that were changed may have left a window that has yet to begin.
      if weight > rule.limit - state.spent or is_after(state.s, state.n, rule.ends_s, rule.ends_n) then
        return false
      end
    elseif weight > rule.limit - state.used then
      return false
    end
  end
  return true
end

local function pay_bucket(state)
  note(state.lows, difference(state.s, state.n, now_s, now_n))
  state.s, state.n, state.fraction = state.next_s, state.next_n, state.next_fraction
end

-- Entries are never more than the core keeps, for each that passes has a date or a unit of its own.
local function pay_sliding(rule, state, weight)
  local list = state.list
  local last = #list
  state.used = state.used + weight
  if last > 0 and not is_after(rule.date_s, rule.date_n, list[last - 3], list[last - 2]) then
    list[last - 1], list[last] = split(list[last - 1] * BILLION + list[last] + weight)
    return
  end
  list[last + 1], list[last + 2] = rule.date_s, rule.date_n
  list[last + 3], list[last + 4] = split(weight)
end

local function hold(state, weight, hold_of)
  local list = state.list
  local last = #list
  state.used = state.used + weight
  list[last + 1], list[last + 2] = hold_of.s, hold_of.n
  list[last + 3], list[last + 4] = split(weight)
  list[last + 5], list[last + 6] = hold_of.ends_s, hold_of.ends_n
end

local function pay(meter, cost, hold_of)
  local rules, states, weight = meter.definition[2], meter.states, cost[1]
  for number = 1, #rules do
    local rule, state = rules[number], states[number]
    local kind = rule.kind
    if kind == BUCKET then
      pay_bucket(state)
    elseif kind == WINDOW then
      state.spent = state.spent + weight
    elseif kind == SLIDING then
      pay_sliding(rule, state, weight)
    else
      hold(state, weight, hold_of)
    end
  end
  meter.s, meter.n = hold_of.s, hold_of.n
  meter.is_paid = true
end

local function all_pass(first, last)
  for place = first, last, 2 do
    if not passes(meters[asks[place]], costs[asks[place + 1]]) then
      return false
    end
  end
  return true
end

-- A name higher than any at the meters of an ask, and than the time.
local function named(hold_of, first, last)
  local s, n = now_s, now_n
  for place = first, last, 2 do
    local meter = meters[asks[place]]
    if is_after(meter.s, meter.n, s, n) then
      s, n = meter.s, meter.n
    end
  end
  hold_of.s, hold_of.n = sum(s, n, 0, 1)
end

-- What so many asks cost that are alike; nothing if a double does not hold it, or each holds slots of
-- its own.
local function cost_of_many(cost, rules, count)
  local many = {cost[1] * count}
  for number = 1, #rules do
    local rule, at = rules[number], number * 3 - 1
    if rule.kind == SLOTS then
      return nil
    elseif rule.kind == BUCKET then
      many[at], many[at + 1], many[at + 2] =
        many_fill(rule.scale, cost[at], cost[at + 1], cost[at + 2], count)
      if not many[at] then
        return nil
      end
    end
  end
  return many
end

-- Whether so many that are alike pass, with what they cost together at each meter; nothing where that
-- cannot be told.
local function many_pass(first, last, count)
  local many = {}
  for place = first, last, 2 do
    local meter = meters[asks[place]]
    local cost = cost_of_many(costs[asks[place + 1]], meter.definition[2], count)
    if not cost then
      return nil
    end
    many[place] = cost
  end
  for place = first, last, 2 do
    if not passes(meters[asks[place]], many[place]) then
      return false
    end
  end
  return true, many
end

-- Time stands still here: those that are alike and pass are the first ones, and pay at once what they
-- would one after the other. Says how many they are; nothing if that cannot be told.
local function take_many(first, last, count, hold_of)
  local passed, many = many_pass(first, last, count)
  if passed == nil then
    return nil
  end
  local least, most = 0, count
  if passed then
    least = count
  else
    while most - least > 1 do
      local middle = floor((least + most) / 2)
      if many_pass(first, last, middle) then
        least = middle
      else
        most = middle
      end
    end
    if least == 0 then
      return 0
    end
    passed, many = many_pass(first, last, least)
  end
  named(hold_of, first, last)
  hold_of.s, hold_of.n = sum(hold_of.s, hold_of.n, 0, least - 1)
  for place = first, last, 2 do
    pay(meters[asks[place]], many[place], hold_of)
  end
  return least
end

-- Who is alike and comes after one that was refused is refused, too.
local function take_one_by_one(first, last, count, hold_of)
  local done = 0
  while done < count and all_pass(first, last) do
    named(hold_of, first, last)
    for at = first, last, 2 do
      pay(meters[asks[at]], costs[asks[at + 1]], hold_of)
    end
    done = done + 1
  end
  return done
end

local place, number = 1, 0
while place <= #asks do
  local count, first = asks[place], place + 4
  local last = first + asks[place + 3] * 2 - 2
  local hold_of = {}
  hold_of.ends_s, hold_of.ends_n = sum(now_s, now_n, asks[place + 1], asks[place + 2])
  local done = count > 1 and take_many(first, last, count, hold_of)
  done = done or take_one_by_one(first, last, count, hold_of)
  number = number + 1
  if done < count then
    refused[#refused + 1], refused[#refused + 2] = number, done
  end
  place = last + 2
end

local NONE = {}

local function write_list(words, last, list, each)
  words[last + 1], words[last + 2] = 0, #list / each
  last = last + 2
  for word = 1, #list do
    words[last + word] = list[word]
  end
  return last + #list
end

-- The value of a meter, and until when it matters; nothing if no one knows.
local function closed(meter)
  local definition, states = meter.definition, meter.states
  local rules = definition[2]
  -- Those that were read are written over: a new table would have to grow first.
  local words = meter.words
  local were, last, ends_s, ends_n = #words, 8, now_s, now_n
  words[1], words[2], words[3], words[4] = meter.s, meter.n, meter.born_s, meter.born_n
  words[5], words[6], words[7], words[8] = now_s, now_n, meter.changed_s, meter.changed_n
  for number = 1, #rules do
    local rule, state = rules[number], states[number]
    local kind = rule.kind
    local s, n = state.s, state.n
    if kind == BUCKET or kind == WINDOW then
      words[last + 1], words[last + 2] = s, n
      words[last + 3], words[last + 4] = split(state.fraction or state.spent)
      last = last + 4
    elseif kind == SLIDING then
      local list = state.list
      last = write_list(words, last, list, 4)
      s, n = sum(list[#list - 3], list[#list - 2], rule.length_s, rule.length_n)
    else
      local list = state.list
      last = write_list(words, last, list, 6)
      s, n = list[5], list[6]
      for at = 11, #list, 6 do
        if is_after(list[at], list[at + 1], s, n) then
          s, n = list[at], list[at + 1]
        end
      end
    end
    words[last + 1], words[last + 2] = 0, 0
    last = write_list(words, last + 2, state.lows or NONE, 4)
    if is_after(s, n, ends_s, ends_n) then
      ends_s, ends_n = s, n
    end
  end
  for word = were, last + 1, -1 do
    words[word] = nil
  end
  local parts = {definition[1], OPEN}
  for from = 1, last, WORDS_MAX * 2 do
    local behind = math.min(from + WORDS_MAX * 2, last + 1)
    parts[#parts + 1] =
      written('>' .. string.rep(WORD, (behind - from) / 2), unpack(words, from, behind - 1))
  end
  return table.concat(parts), ends_s, ends_n
end

for number = 1, #uses do
  local meter = meters[number]
  if meter.is_paid then
    local value, s, n = closed(meter)
    new[number] = value
    if s <= LAST_SECOND then
      -- Rounded up, and then as long again as clocks may differ.
      lives[number] = (s - now_s) * 1000 + ceil((n - now_n) / 1000000) + KEPT_MS
    end
  end
end

return finished()
