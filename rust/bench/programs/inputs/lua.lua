-- Tables, strings and closures. Argument: rounds.
local sum, seed = 0, 7
local function random(limit)
  seed = (seed * 1103515245 + 12345) % 2147483648
  return seed % limit
end
for round = 1, tonumber(arg[1]) do
  local words, keys = {}, {}
  for i = 1, 30000 do
    local key = "key" .. random(8000)
    words[key] = (words[key] or "") .. string.char(97 + i % 26)
  end
  for key in pairs(words) do keys[#keys + 1] = key end
  table.sort(keys)
  for i, key in ipairs(keys) do sum = (sum * 31 + #words[key] + key:byte(-1)) % 1000000007 end
  local rows = {}
  for i = 1, 8000 do rows[i] = { i, tostring(i):rep(i % 20), { round } } end
  local each = coroutine.wrap(function() for i = 1, #rows do coroutine.yield(#rows[i][2]) end end)
  for length in each do sum = sum + length end
  sum = (sum + #(("x"):rep(20000):gsub("x", "yz"))) % 1000000007
end
print(sum)
