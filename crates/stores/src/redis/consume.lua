-- Takes asks in order, each all or nothing, as the meters of Tollgate's core do: what is decided here
-- must be decided there in the same way, to the byte, and a test holds them together. Whatever it has
-- no port for it declines, and then nothing is changed. What is not plain is decided by
-- consume_any.lua, which is the rest of this script.
--
-- Keys: the intents, then the cells that are only read, then those of the meters.
-- Arguments: numbers, packed one after the other with MessagePack; the values that the cells must have that
--   are only read, empty for no cell; what the values of meters begin with, for each definition; and, if the
--   asks are not plain, two lists packed with MessagePack. No tables are made of what every call has.
--   The numbers are: how many cells are only read; the time in seconds and nanoseconds, false for the
--   server's; 1 if a meter that is not there may have been lost; and where runs begin. Then come definitions and
--   costs, which are named by where they begin. A definition: which argument meters begin with, how many rules there are,
--   and five numbers for each. What an ask costs: the weight, and three numbers for each rule.
--   Asks are plain if each is at one meter with one rule, a bucket or a window: then they are runs of
--   meters at which the same is asked, each how many meters, their definition, how many rows each has, and for
--   each row the cost and how many are alike. Otherwise there are no runs, and the lists are: for each meter
--   its definition; and the asks: how many are alike, the seconds and nanoseconds that a receipt lives, how many
--   meters it pays at, and for each of these its number and the cost.
-- Answer: 0 declined; 1 busy, if someone else is about to change a meter; or a list: 2, the time in
--   seconds and nanoseconds, of rows of asks that are alike whose last ones were refused their
--   number and how many were granted, how many meters were written, and the values of the cells before.
--
-- A number of 64 bits is two here, its billions and the rest, as a double holds 53 bits. Instants are
-- so seconds and nanoseconds. Weights are below 2^53, and one number. In a value they take five bytes and four.

local BILLION = 1000000000
-- Beyond this second, in the year 2508, sums of instants might not fit 64 bits.
local LAST_SECOND = 17000000000
-- As the core has it.
local LOWS_MAX = 32
-- A meter stays for so much longer than it matters: what was written late, or by another clock, too.
local KEPT_MS = 90000
-- A plain meter whose end is still in the same span of so many seconds is written in place, which leaves its expiry:
-- that takes a third of what it takes to set both. So it stays for this much less, at worst.
local SAME_END_S = 30
-- More values than this do not fit on the stack of Lua.
local KEYS_MAX = 4000
-- Up to here a double counts without leaving anything out.
local DOUBLE_MAX = 9007199254740992

local BUCKET, WINDOW, SLIDING, SLOTS = 1, 2, 3, 4
local DECLINED, BUSY, TAKEN = 0, 1, 2

local floor, ceil, fmod = math.floor, math.ceil, math.fmod
local find, read, written = string.find, struct.unpack, struct.pack

local numbers = {cmsgpack.unpack(ARGV[1])}
local reads, now_s, now_n, first_run, last_run = numbers[1], numbers[2], numbers[3], numbers[5], #numbers

local last_key = #KEYS
if last_key > KEYS_MAX then
  return DECLINED
end

local time = redis.call('TIME')
local server_ms = time[1] * 1000 + floor(time[2] / 1000)
if not now_s then
  now_s, now_n = tonumber(time[1]), time[2] * 1000
end
if now_s > LAST_SECOND then
  return DECLINED
end

if redis.call('EXISTS', KEYS[1]) == 1 then
  local intents = redis.call('HMGET', KEYS[1], unpack(KEYS, reads + 2))
  for place = 1, last_key - reads - 1 do
    if intents[place] and tonumber(string.match(intents[place], '^%d+')) > server_ms then
      return BUSY
    end
  end
end

local values = redis.call('MGET', unpack(KEYS, 2))
for place = 1, reads do
  if (values[place] or '') ~= ARGV[place + 1] then
    return DECLINED
  end
end

-- MGET takes a key of another type for none, and what is written then would replace it.
local missing
for place = reads + 1, last_key - 1 do
  if not values[place] then
    missing = missing or {}
    missing[#missing + 1] = KEYS[place + 1]
  end
end
if missing and (numbers[4] == 1 or redis.call('EXISTS', unpack(missing)) > 0) then
  return DECLINED
end

local function is_after(s, n, other_s, other_n)
  return s > other_s or (s == other_s and n > other_n)
end

local function sum(s, n, more_s, more_n)
  n = n + more_n
  if n >= BILLION then
    return s + more_s + 1, n - BILLION
  end
  return s + more_s, n
end

local function difference(s, n, less_s, less_n)
  n = n - less_n
  if n < 0 then
    return s - less_s - 1, n + BILLION
  end
  return s - less_s, n
end

-- A weight as two numbers.
local function split(weight)
  if weight < BILLION then
    return 0, weight
  end
  local rest = fmod(weight, BILLION)
  return (weight - rest) / BILLION, rest
end

-- Forgets the low point that makes the least difference: the next one takes its span.
local function join_nearest(lows)
  local nearest, least_s, least_n
  for from = 5, #lows, 4 do
    local s, n = difference(lows[from + 2], lows[from + 3], lows[from - 2], lows[from - 1])
    if not nearest or is_after(least_s, least_n, s, n) then
      nearest, least_s, least_n = from, s, n
    end
  end
  lows[nearest + 2], lows[nearest + 3] = lows[nearest - 2], lows[nearest - 1]
  for _ = 1, 4 do
    table.remove(lows, nearest - 4)
  end
end

-- Now the bucket is so far away from full.
local function note(lows, full_s, full_n)
  local s, n, last = now_s, now_n, #lows
  while last > 0 do
    if is_after(lows[last - 3], lows[last - 2], s, n) then
      s, n = lows[last - 3], lows[last - 2]
    end
    if is_after(full_s, full_n, lows[last - 1], lows[last]) then
      break
    end
    lows[last], lows[last - 1], lows[last - 2], lows[last - 3] = nil, nil, nil, nil
    last = last - 4
  end
  if last == 0 or is_after(s, n, lows[last - 3], lows[last - 2]) then
    lows[last + 1], lows[last + 2], lows[last + 3], lows[last + 4] = s, n, full_s, full_n
    if last + 4 > LOWS_MAX * 4 then
      join_nearest(lows)
    end
  end
end

-- Rows whose last asks were refused.
local refused = {}
-- Of meters that are to be written: the value, for how long it stays; or its end, and the place from which on it is
-- written over what is there.
local new, lives, places = {}, {}, {}

-- Writes what is to be written, and gives the answer.
local function finished()
  local count, untils = 0, {}
  for meter = 1, last_key - reads - 1 do
    local value = new[meter]
    if value then
      local key, place, life = KEYS[reads + 1 + meter], places[meter], lives[meter]
      if place then
        redis.call('SETRANGE', key, place, value)
      elseif life then
        -- A text, for numbers are slow to write, and meters of one kind live equally long.
        local until_ms = untils[life]
        if not until_ms then
          until_ms = string.format('%.0f', server_ms + life)
          untils[life] = until_ms
        end
        redis.call('SET', key, value, 'PXAT', until_ms)
      else
        redis.call('SET', key, value)
      end
      count = count + 1
    end
  end
  return {TAKEN, now_s, now_n, refused, count, values}
end

-- What so many that are alike cost at a bucket; nothing if a double does not hold it.
local function many_fill(scale, s, n, fraction, count)
  if scale * count > DOUBLE_MAX then
    return nil
  end
  fraction = fraction * count
  local carry = floor(fraction / scale)
  n = n * count + carry
  local billions = floor(n / BILLION)
  return s * count + billions, n - billions * BILLION, fraction - carry * scale
end

-- A value as it begins when nothing is closed: no instant, and no reason.
local OPEN = string.rep('\0', 11)
-- The latest payment, the birth, the last payment, the last change; of a bucket when it is full and a fraction, of
-- a window when it ends and what was spent; and how many promises and low points there are.
local PLAIN = '>I5I4I5I4I5I4I5I4I5I4I5I4I9I9'
local PLAIN_BYTES = 72
local LOW, LOW_BYTES = 'I5I4I5I4', 18
local PLAIN_LOW = PLAIN .. LOW

-- Of the bucket whose turn it is: how a nanosecond is divided, and the last instant at which it may be full.
local scale, fill_fraction, most_s, most_n

-- A bucket once so much was paid; nothing if that does not pass now.
local function filled(s, n, fraction, cost_s, cost_n, cost_fraction)
  -- Two fractions may be more than a double holds, so they are not added.
  local room = scale - cost_fraction
  if fraction >= room then
    fraction, n = fraction - room, n + 1
  else
    fraction = fraction + cost_fraction
  end
  s, n = sum(s, n, cost_s, cost_n)
  local late = n
  if fraction > fill_fraction then
    late = n + 1
  end
  if s < most_s or (s == most_s and late <= most_n) then
    return s, n, fraction
  end
end

-- How many of those pass a bucket that are alike, the first ones, and how it is then.
local function filled_by_most(s, n, fraction, cost, count)
  local cost_s, cost_n, cost_fraction = numbers[cost + 1], numbers[cost + 2], numbers[cost + 3]
  local done = 0
  if scale * count > DOUBLE_MAX then
    while done < count do
      local next_s, next_n, next_fraction = filled(s, n, fraction, cost_s, cost_n, cost_fraction)
      if not next_s then
        break
      end
      s, n, fraction, done = next_s, next_n, next_fraction, done + 1
    end
    return done, s, n, fraction
  end
  local most = count + 1
  while most - done > 1 do
    local middle = floor((done + most) / 2)
    if filled(s, n, fraction, many_fill(scale, cost_s, cost_n, cost_fraction, middle)) then
      done = middle
    else
      most = middle
    end
  end
  if done > 0 then
    s, n, fraction = filled(s, n, fraction, many_fill(scale, cost_s, cost_n, cost_fraction, done))
  end
  return done, s, n, fraction
end

-- Plain asks are decided in a straight line, without a table for a meter: a function that is called, or a table
-- that is made, for each of thousands of them takes longer than the decision. What is met that is not plain
-- leaves them to the rest of the script.
local is_plain, meter, row, at = first_run < last_run, 0, 0, first_run
while is_plain and at < last_run do
  local definition = numbers[at + 1]
  local head, rule = ARGV[numbers[definition]] .. OPEN, definition + 2
  local from, last, first_row = #head + 1, meter + numbers[at], at + 3
  local place_behind = tostring(#head)
  at = first_row + numbers[at + 2] * 2
  if numbers[rule] == BUCKET then
    scale, fill_fraction = numbers[rule + 1], numbers[rule + 4]
    most_s, most_n = sum(now_s, now_n, numbers[rule + 2], numbers[rule + 3])
    while meter < last do
      meter = meter + 1
      local value = values[reads + meter]
      local paid_s, paid_n, changed_s, changed_n = 0, 0, 0, 0
      local name_s, name_n, born_s, born_n, s, n = 0, 0, now_s, now_n, now_s, now_n
      local fraction, count, low_s, low_n, low_full_s, low_full_n, lows = 0, 0
      -- When it ended, if it can be written in place.
      local ended_s
      if value then
        count = (#value - from + 1 - PLAIN_BYTES) / LOW_BYTES
        if count < 0 or find(value, head, 1, true) ~= 1 then
          is_plain = false
          break
        end
        local billions, promises, low_count
        name_s, name_n, born_s, born_n, paid_s, paid_n, changed_s, changed_n, s, n,
          billions, fraction, promises, low_count, low_s, low_n, low_full_s, low_full_n
          = read(count == 1 and PLAIN_LOW or PLAIN, value, from)
        if promises ~= 0 or low_count ~= count or name_s > LAST_SECOND or s > LAST_SECOND
          or born_s > now_s or (born_s == now_s and born_n > now_n)
          or paid_s > now_s or (paid_s == now_s and paid_n > now_n) then
          is_plain = false
          break
        end
        if count > 1 then
          lows = {read('>' .. string.rep(LOW, count), value, from + PLAIN_BYTES)}
          -- What is read ends with the place behind it.
          lows[count * 4 + 1] = nil
        elseif count == 1 then
          ended_s = s
        end
        if s < now_s or (s == now_s and n < now_n) then
          s, n, fraction = now_s, now_n, 0
        else
          fraction = billions * BILLION + fraction
        end
      end
      local full_s, full_n = s - now_s, n - now_n
      if full_n < 0 then
        full_s, full_n = full_s - 1, full_n + BILLION
      end
      local granted = 0
      for place = first_row, at - 1, 2 do
        local cost, alike = numbers[place], numbers[place + 1]
        row = row + 1
        local done, next_s, next_n, next_fraction = 1
        if alike == 1 then
          local cost_fraction = numbers[cost + 3]
          next_s, next_n = s + numbers[cost + 1], n + numbers[cost + 2]
          if fraction >= scale - cost_fraction then
            next_fraction, next_n = fraction - (scale - cost_fraction), next_n + 1
          else
            next_fraction = fraction + cost_fraction
          end
          if next_n >= BILLION then
            next_s, next_n = next_s + 1, next_n - BILLION
          end
          if next_s > most_s or (next_s == most_s
            and (next_n > most_n or (next_n == most_n and next_fraction > fill_fraction))) then
            done = 0
          end
        else
          done, next_s, next_n, next_fraction = filled_by_most(s, n, fraction, cost, alike)
        end
        if done > 0 then
          s, n, fraction, granted = next_s, next_n, next_fraction, granted + done
        end
        if done < alike then
          refused[#refused + 1], refused[#refused + 2] = row, done
        end
      end
      if granted > 0 then
        if name_s < now_s or (name_s == now_s and name_n < now_n) then
          name_s, name_n = now_s, now_n
        end
        name_n = name_n + granted
        if name_n >= BILLION then
          name_s, name_n = name_s + 1, name_n - BILLION
        end
        -- How far from full it was is noted: most often that replaces what was noted before.
        if count > 1 then
          note(lows, full_s, full_n)
        elseif count == 0 then
          count, low_s, low_n, low_full_s, low_full_n = 1, now_s, now_n, full_s, full_n
        elseif full_s < low_full_s or (full_s == low_full_s and full_n <= low_full_n) then
          if low_s < now_s or (low_s == now_s and low_n < now_n) then
            low_s, low_n = now_s, now_n
          end
          low_full_s, low_full_n = full_s, full_n
        elseif low_s < now_s or (low_s == now_s and low_n < now_n) then
          lows = {low_s, low_n, low_full_s, low_full_n, now_s, now_n, full_s, full_n}
        end
        local billions = 0
        if fraction >= BILLION then
          billions, fraction = split(fraction)
        end
        if lows then
          count = #lows / 4
          new[meter] = head .. written(PLAIN, name_s, name_n, born_s, born_n, now_s, now_n,
            changed_s, changed_n, s, n, billions, fraction, 0, count)
            .. written('>' .. string.rep(LOW, count), unpack(lows))
        else
          local ending = written(PLAIN_LOW, name_s, name_n, born_s, born_n, now_s, now_n,
            changed_s, changed_n, s, n, billions, fraction, 0, 1,
            low_s, low_n, low_full_s, low_full_n)
          if ended_s and floor(ended_s / SAME_END_S) == floor(s / SAME_END_S) then
            new[meter], places[meter] = ending, place_behind
          else
            new[meter] = head .. ending
          end
        end
        if s <= LAST_SECOND then
          lives[meter] = (s - now_s) * 1000 + ceil((n - now_n) / 1000000) + KEPT_MS
        end
      end
    end
  else
    local limit = numbers[rule + 1]
    local ends_s, ends_n = sum(now_s, now_n, numbers[rule + 2], numbers[rule + 3])
    while meter < last do
      meter = meter + 1
      local value = values[reads + meter]
      local paid_s, paid_n, changed_s, changed_n = 0, 0, 0, 0
      local name_s, name_n, born_s, born_n, s, n, spent = 0, 0, now_s, now_n, ends_s, ends_n, 0
      local ended_s
      if value then
        local billions, promises, low_count
        if #value ~= from - 1 + PLAIN_BYTES or find(value, head, 1, true) ~= 1 then
          is_plain = false
          break
        end
        name_s, name_n, born_s, born_n, paid_s, paid_n, changed_s, changed_n, s, n,
          billions, spent, promises, low_count = read(PLAIN, value, from)
        ended_s, spent = s, billions * BILLION + spent
        if promises ~= 0 or low_count ~= 0 or name_s > LAST_SECOND
          or born_s > now_s or (born_s == now_s and born_n > now_n)
          or paid_s > now_s or (paid_s == now_s and paid_n > now_n) then
          is_plain = false
          break
        end
        if s < now_s or (s == now_s and n <= now_n) then
          -- Debt spills into the windows that follow.
          if spent > limit then
            is_plain = false
            break
          end
          s, n, spent = ends_s, ends_n, 0
        end
      end
      -- Rules that were changed may have left a window that has yet to begin.
      local has_begun = s < ends_s or (s == ends_s and n <= ends_n)
      local granted = 0
      for place = first_row, at - 1, 2 do
        local weight, alike = numbers[numbers[place]], numbers[place + 1]
        row = row + 1
        local done = 0
        if has_begun then
          done = floor((limit - spent) / weight)
          if done * weight > limit - spent then
            done = done - 1
          end
          if done > alike then
            done = alike
          elseif done < 0 then
            done = 0
          end
        end
        spent, granted = spent + done * weight, granted + done
        if done < alike then
          refused[#refused + 1], refused[#refused + 2] = row, done
        end
      end
      if granted > 0 then
        if name_s < now_s or (name_s == now_s and name_n < now_n) then
          name_s, name_n = now_s, now_n
        end
        name_n = name_n + granted
        if name_n >= BILLION then
          name_s, name_n = name_s + 1, name_n - BILLION
        end
        local billions = 0
        if spent >= BILLION then
          billions, spent = split(spent)
        end
        local ending = written(PLAIN, name_s, name_n, born_s, born_n, now_s, now_n,
          changed_s, changed_n, s, n, billions, spent, 0, 0)
        if ended_s and floor(ended_s / SAME_END_S) == floor(s / SAME_END_S) then
          new[meter], places[meter] = ending, place_behind
        else
          new[meter] = head .. ending
        end
        if s <= LAST_SECOND then
          lives[meter] = (s - now_s) * 1000 + ceil((n - now_n) / 1000000) + KEPT_MS
        end
      end
    end
  end
end

if is_plain then
  return finished()
end

-- The same asks, as the rest of the script takes them.
local uses, asks
if first_run < last_run then
  refused, new, lives, places, uses, asks = {}, {}, {}, {}, {}, {}
  at = first_run
  while at < last_run do
    local first_row = at + 3
    local behind = first_row + numbers[at + 2] * 2
    for _ = 1, numbers[at] do
      uses[#uses + 1] = numbers[at + 1]
      for place = first_row, behind - 1, 2 do
        local last = #asks
        asks[last + 1], asks[last + 2], asks[last + 3] = numbers[place + 1], 0, 0
        asks[last + 4], asks[last + 5], asks[last + 6] = 1, #uses, numbers[place]
      end
    end
    at = behind
  end
else
  uses, asks = cmsgpack.unpack(ARGV[#ARGV])
end
