-- msp-bridge in Neovim (0.7 and newer): mutants that no test kills, as diagnostics.
-- For every project: save this as ~/.config/nvim/plugin/msp-bridge.lua. Then
--
--   :MutationTest           tests the mutants of this file; with a range, of these lines
--   :MutationTestProject    tests the whole project, and lists what survives in the quickfix window
--   :MutationTestCancel     stops

local command = { "msp-bridge", "serve", "stdio" } -- a project with msp-bridge in its .venv starts that
local namespace = vim.api.nvim_create_namespace("msp-bridge")
local servers = {} -- by the project's directory: its connection, and the requests that run
local found = {} -- by buffer: diagnostics

local function say(text, level)
  vim.notify("msp-bridge: " .. text, level or vim.log.levels.INFO)
end

local function root_of(file)
  local from = vim.fn.fnamemodify(file, ":p:h")
  for _, name in ipairs({ "msp-bridge.toml", ".git", "pyproject.toml", "package.json", "Cargo.toml", "go.mod", "pom.xml" }) do
    local mark = vim.fn.findfile(name, from .. ";")
    mark = mark ~= "" and mark or vim.fn.finddir(name, from .. ";")
    if mark ~= "" then
      return (vim.fn.fnamemodify(mark, ":p"):gsub("/$", ""):match("^(.*)/[^/]*$"))
    end
  end
  return vim.fn.getcwd()
end

-- MSP's columns count UTF-16 code units from 1, Neovim's bytes from 0.
local function position(lines, place)
  local line = lines[place.line] or ""
  local known, column = pcall(vim.str_byteindex, line, place.column - 1, true)
  return place.line - 1, known and column or #line
end

local function diagnostic(lines, mutant)
  local lnum, col = position(lines, mutant.location.start)
  local end_lnum, end_col = position(lines, mutant.location["end"])
  local what = mutant.status == "NoCoverage" and "no test runs this" or "no test kills it"
  return {
    lnum = lnum,
    col = col,
    end_lnum = end_lnum,
    end_col = end_col,
    severity = vim.diagnostic.severity.WARN,
    source = "msp-bridge",
    code = mutant.mutatorName,
    message = what .. ": " .. mutant.mutatorName .. ", " .. (mutant.replacement or ""):gsub("\n.*", " …"),
  }
end

local function show(root, files)
  for path, file in pairs(files) do
    for _, mutant in ipairs(file.mutants) do
      if mutant.status == "Survived" or mutant.status == "NoCoverage" then
        local buffer = vim.fn.bufadd(root .. "/" .. path)
        vim.fn.bufload(buffer)
        found[buffer] = found[buffer] or {}
        table.insert(found[buffer], diagnostic(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), mutant))
        vim.diagnostic.set(namespace, buffer, found[buffer])
      end
    end
  end
end

-- What was found in these lines (1-based, inclusive) is out of date.
local function forget(buffer, first, last)
  found[buffer] = vim.tbl_filter(function(known)
    return known.lnum + 1 < first or known.lnum + 1 > last
  end, found[buffer] or {})
  vim.diagnostic.set(namespace, buffer, found[buffer])
end

local function start(root)
  local argv = vim.deepcopy(command)
  if vim.fn.executable(root .. "/.venv/bin/msp-bridge") == 1 then
    argv[1] = root .. "/.venv/bin/msp-bridge"
  end
  local dispatchers = {
    notification = function(method, params)
      if method == "reportMutationTestProgress" then
        vim.schedule(function()
          show(root, params.files)
        end)
      end
    end,
    on_exit = function(code)
      servers[root] = nil
      if code ~= 0 then
        vim.schedule(function()
          say(argv[1] .. " has failed: try `" .. argv[1] .. " doctor` in " .. root, vim.log.levels.ERROR)
        end)
      end
    end,
  }
  local known, rpc
  if vim.fn.has("nvim-0.10") == 1 then
    known, rpc = pcall(vim.lsp.rpc.start, argv, dispatchers, { cwd = root })
  else
    known, rpc = pcall(vim.lsp.rpc.start, argv[1], vim.list_slice(argv, 2), dispatchers, { cwd = root })
  end
  if not known or not rpc then
    return say("can't start " .. argv[1], vim.log.levels.ERROR)
  end
  rpc.request("configure", vim.empty_dict(), function() end) -- what is wrong, mutationTest says too
  return { rpc = rpc, running = {} }
end

local function test(root, params, done)
  servers[root] = servers[root] or start(root)
  if not servers[root] then
    return
  end
  local server, id = servers[root], nil
  _, id = server.rpc.request("mutationTest", params, function(err)
    vim.schedule(function()
      server.running[id] = nil
      if err then
        say(err.message, vim.log.levels.ERROR)
      else
        done()
      end
    end)
  end)
  if id then
    server.running[id] = true
  end
end

vim.api.nvim_create_user_command("MutationTest", function(arguments)
  vim.cmd("silent update") -- the tests run on what is on disk
  local buffer = vim.api.nvim_get_current_buf()
  local file = vim.api.nvim_buf_get_name(buffer)
  local target, first, last = { path = file }, 1, math.huge
  if arguments.range > 0 then
    first, last = arguments.line1, arguments.line2
    target.range = { start = { line = first, column = 1 }, ["end"] = { line = last + 1, column = 1 } }
  end
  forget(buffer, first, last)
  test(root_of(file), { files = { target } }, function()
    say(#found[buffer] .. " mutants of this file that no test kills")
  end)
end, { range = true, desc = "Test the mutants of this file, or of these lines" })

vim.api.nvim_create_user_command("MutationTestProject", function()
  vim.cmd("silent wall")
  found = {}
  vim.diagnostic.reset(namespace)
  test(root_of(vim.api.nvim_buf_get_name(0)), vim.empty_dict(), function()
    vim.diagnostic.setqflist({ namespace = namespace, title = "Mutants that no test kills" })
  end)
end, { desc = "Test the mutants of the whole project" })

vim.api.nvim_create_user_command("MutationTestCancel", function()
  for _, server in pairs(servers) do
    for id in pairs(server.running) do
      server.rpc.notify("$/cancelRequest", { id = id })
    end
    server.running = {} -- Neovim keeps the answer to a cancelled request to itself
  end
  say("stopped")
end, { desc = "Stop testing mutants" })
