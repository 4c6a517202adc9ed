"""`--dialect lsp` in editors that are installed here: nothing but what `msp-bridge editors` prints, and a real mutmut."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cli.test_editors import console_script

FILES = {
    "pyproject.toml": '[tool.mutmut]\nsource_paths = ["calc"]\n',
    "calc/__init__.py": "",
    "calc/core.py": "def add(a, b):\n    return a + b\n\n\ndef big(a):\n    return a > 10\n",
    "tests/test_core.py": "from calc.core import add, big\n\n\ndef test_add():\n    assert add(1, 2) == 3\n    assert big(50)\n",
    "msp-bridge.toml": 'adapter = "mutmut"\n',
}
STRICTER = 'mutmut Survived: ">" -> ">="; 1 test ran through it'
LARGER = 'mutmut Survived: "10" -> "11"; 1 test ran through it'
DRIVE = """
local out = {{}}
local function note(text) table.insert(out, text) end
vim.notify = function(text) note("said: " .. text) end
vim.lsp.handlers["window/showMessage"] = function(_, result) note("message: " .. result.message) end
vim.cmd("filetype on")
vim.cmd("source {plugin}")
vim.cmd("edit calc/core.py")
local buffer = vim.api.nvim_get_current_buf()
local function client() return vim.lsp.get_active_clients()[1] end
local function wait(until_true)
  if not vim.wait(90000, until_true, 20) then note("timed out") end
end
local function shown()
  local lines = {{}}
  for _, found in ipairs(vim.diagnostic.get(buffer)) do
    table.insert(lines, (found.lnum + 1) .. ":" .. found.col .. " " .. found.source .. " " .. found.message)
  end
  return table.concat(lines, " | ")
end
wait(function() return client() and client().initialized end)

-- a code action tests the line of the cursor
local params = vim.lsp.util.make_given_range_params({{ 6, 4 }}, {{ 6, 4 }}, buffer, "utf-16")
params.context = {{ diagnostics = {{}} }}
local actions = client().request_sync("textDocument/codeAction", params, 60000, buffer).result
for _, action in ipairs(actions) do note("action: " .. action.title) end
client().request_sync("workspace/executeCommand", actions[1].command, 60000, buffer)
wait(function() return #vim.diagnostic.get(buffer) >= 2 end)
note("tested: " .. shown())

-- an edit above moves them
vim.api.nvim_buf_set_lines(buffer, 0, 0, false, {{ "# a comment" }})
wait(function() return vim.diagnostic.get(buffer)[1].lnum == 6 end)
note("moved: " .. shown())

-- and a save tests what was edited
vim.api.nvim_buf_set_lines(buffer, 6, 7, false, {{ "    return a > 20" }})
wait(function() return #vim.diagnostic.get(buffer) == 0 end)
note("edited: " .. shown())
vim.cmd("write")
wait(function() return #vim.diagnostic.get(buffer) >= 2 end)
note("saved: " .. shown())
local lenses = client().request_sync("textDocument/codeLens", {{ textDocument = params.textDocument }}, 60000, buffer).result
for _, lens in ipairs(lenses) do note("lens: " .. (lens.range.start.line + 1) .. " " .. lens.command.title) end
vim.fn.writefile(out, "{found}")
vim.cmd("qa!")
"""


@pytest.mark.skipif(shutil.which("nvim") is None, reason="nvim is not installed")
def test_neovim_underlines_what_survives(tmp_path: Path) -> None:
    root = tmp_path / "project"
    for path, text in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    script = console_script(tmp_path / "bin" / "msp-bridge")
    environment = {**os.environ, "MSP_BRIDGE_CACHE": str(tmp_path / "cache"), "HOME": str(tmp_path)}
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
    argv = [str(script), "editors", "neovim-lsp", "--python", sys.executable]
    printed = subprocess.run(argv, cwd=root, env=environment, capture_output=True, text=True, timeout=60, check=True)
    plugin, drive, found = tmp_path / "plugin.lua", tmp_path / "drive.lua", tmp_path / "found"
    plugin.write_text(printed.stdout)
    drive.write_text(DRIVE.format(plugin=plugin, found=found))
    argv = ["nvim", "--headless", "-u", "NONE", "-n", "-S", str(drive)]
    done = subprocess.run(argv, cwd=root, env=environment, capture_output=True, text=True, timeout=300)
    assert found.exists(), done.stderr
    assert found.read_text().splitlines() == [
        "action: Test the mutants of this line",
        "action: Test the mutants of big",
        "action: Test the mutants of this file",
        "action: Test the mutants of what changed since HEAD",
        f"tested: 6:13 {STRICTER} | 6:15 {LARGER}",
        f"moved: 7:13 {STRICTER} | 7:15 {LARGER}",
        "edited: ",
        f"saved: 7:13 {STRICTER} | 7:15 {LARGER.replace('10', '20').replace('11', '21')}",
        "lens: 1 2 mutants: 2 survived · test",
        "lens: 2 test the mutants",
        "lens: 6 2 mutants: 2 survived · test",
    ], done.stderr
