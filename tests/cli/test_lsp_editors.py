"""`--dialect lsp` in editors that are installed here: nothing but what `msp-bridge editors` prints, and a real mutmut."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from support.command_line import console_script
from support.files import written

from msp_bridge.cli.editor_files import parse
from msp_bridge.cli.editors import TEXTS, plugin
from msp_bridge.errors import ConfigurationError

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


EGLOT = """
(package-initialize)
(unless (require 'eglot nil t) (princ "no eglot") (kill-emacs 0))
(load "{plugin}")
(defvar out nil)
(defun note (text) (push text out))
(setq eglot-sync-connect 120 eglot-connect-timeout 120)
(find-file "calc/core.py")
(setq last-nonmenu-event ?\\r)  ; else eglot would ask by a menu
(apply #'eglot (eglot--guess-contact))
(defun shown ()
  (flymake-start)
  (mapcar (lambda (found)
            (format "%d:%d %s %s" (line-number-at-pos (flymake-diagnostic-beg found))
                    (save-excursion (goto-char (flymake-diagnostic-beg found)) (current-column))
                    (flymake-diagnostic-type found) (flymake-diagnostic-text found)))
          (sort (flymake-diagnostics)
                (lambda (a b) (< (flymake-diagnostic-beg a) (flymake-diagnostic-beg b))))))
(defun wait (true)
  (let ((until (+ (float-time) 120)))
    (while (and (not (funcall true)) (< (float-time) until)) (accept-process-output nil 0.05))
    (unless (funcall true) (note "timed out"))))
(defun note-shown (what) (note (format "%s: %s" what (string-join (shown) " | "))))

;; a code action tests the line of the cursor
(goto-char (point-min))
(search-forward "return a > 10")
(cl-letf (((symbol-function 'completing-read)
           (lambda (_ actions &rest _)
             (dolist (action actions) (note (format "action: %s" (car action))))
             (car (nth 0 actions)))))
  (eglot-code-actions (point) (point) nil t))
(wait (lambda () (= (length (shown)) 2)))
(note-shown "tested")

;; an edit of the line drops them, and a save tests what was edited
(backward-delete-char 2)
(insert "20")
(eglot--signal-textDocument/didChange)
(wait (lambda () (null (shown))))
(note-shown "edited")
(save-buffer)
(wait (lambda () (= (length (shown)) 2)))
(note-shown "saved")
(eglot-shutdown (eglot-current-server))
(with-temp-file "{found}" (insert (string-join (reverse out) "\\n")))
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project of mutmut's, with a function that is tested halfway."""
    root = tmp_path / "project"
    written(root, FILES)
    subprocess.run(["git", "init", "--quiet"], cwd=root, check=True)
    return root


def driven(root: Path, editor: str, drive: str, ending: str, *argv: str) -> list[str]:
    """What `drive` has noted in the editor, which has loaded what the command `editors` prints for it."""
    home = root.parent
    script = console_script(home / "bin" / "msp-bridge")
    environment = {**os.environ, "MSP_BRIDGE_CACHE": str(home / "cache"), "HOME": str(home)}
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
    printing = [str(script), "editors", editor, "--python", sys.executable]
    printed = subprocess.run(printing, cwd=root, env=environment, capture_output=True, text=True, timeout=120)
    assert printed.returncode == 0, printed.stderr
    plugin, driver, found = home / f"plugin{ending}", home / f"drive{ending}", home / "found"
    plugin.write_text(printed.stdout)
    driver.write_text(drive.format(plugin=plugin, found=found))
    done = subprocess.run([*argv, str(driver)], cwd=root, env=environment, capture_output=True, text=True, timeout=500)
    if done.stdout.startswith("no eglot"):
        pytest.skip("this Emacs has no eglot: it is part of Emacs 29, and a package for those before")
    assert found.exists(), done.stdout + done.stderr
    return found.read_text().splitlines()


@pytest.mark.skipif(shutil.which("nvim") is None, reason="nvim is not installed")
def test_neovim_underlines_what_survives(root: Path) -> None:
    assert driven(root, "neovim-lsp", DRIVE, ".lua", "nvim", "--headless", "-u", "NONE", "-n", "-S") == [
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
    ]


@pytest.mark.skipif(shutil.which("emacs") is None, reason="emacs is not installed")
def test_eglot_shows_what_survives(root: Path) -> None:
    def warnings(number: int) -> str:
        found = [(13, "operator: > to >=", STRICTER), (15, "number: 10 to 11", LARGER)]
        shown = (f"6:{column} eglot-warning {text.replace(' ', f' [{code}]: ', 1)}" for column, code, text in found)
        return " | ".join(shown).replace("10", str(number)).replace("11", str(number + 1))

    assert driven(root, "emacs-lsp", EGLOT, ".el", "emacs", "--batch", "-l") == [
        "action: Test the mutants of this line",
        "action: Test the mutants of big",
        "action: Test the mutants of this file",
        "action: Test the mutants of what changed since HEAD",
        f"tested: {warnings(10)}",
        "edited: ",
        f"saved: {warnings(20)}",
    ]


COMMAND_LINES = ("jetbrains-lsp", "eclipse-lsp")


def split(command_line: str) -> list[str]:
    """As LSP4IJ and Eclipse do: at blanks outside of double quotes."""
    return [found[0] or found[1] for found in re.findall(r'"([^"]*)"|(\S+)', command_line)]


def test_a_template_for_jetbrains_starts_this_bridge() -> None:
    printed = plugin(TEXTS["jetbrains-lsp"], ["/opt/a b/msp-bridge", "serve", "stdio", "--config", "/x y/z.toml"])
    template = json.loads(printed)
    command = ["/opt/a b/msp-bridge", "serve", "stdio", "--config", "/x y/z.toml", "--dialect", "lsp"]
    assert split(template["programArgs"]["default"]) == command
    patterns = {pattern for each in template["fileTypeMappings"] for pattern in each["fileType"]["patterns"]}
    assert {"*.py", "*.ts", "*.cs", "*.rs", "*.go"} <= patterns
    assert all(each["languageId"] for each in template["fileTypeMappings"])


def test_a_launch_configuration_of_eclipse_starts_this_bridge() -> None:
    printed = plugin(TEXTS["eclipse-lsp"], ["/opt/a b/m&p", "serve", "stdio", "--config", "/x y/z.toml"])
    values = {each.get("key", "").rpartition(".")[2]: each.get("value", "") for each in ET.fromstring(printed.encode())}
    assert values["ATTR_LOCATION"] == "/opt/a b/m&p"
    command = ["serve", "stdio", "--config", "/x y/z.toml", "--dialect", "lsp"]
    assert split(values["ATTR_TOOL_ARGUMENTS"]) == command


@pytest.mark.parametrize("editor", COMMAND_LINES)
def test_what_can_not_be_part_of_a_command_line_is_an_error(editor: str) -> None:
    with pytest.raises(ConfigurationError, match="can't be part of a command line"):
        plugin(TEXTS[editor], ["/opt/msp-bridge", "serve", "stdio", "--config", 'a"b.toml'])


@pytest.mark.parametrize("editor", [name for name in TEXTS if name.endswith("-lsp") and name not in COMMAND_LINES])
def test_settings_start_this_bridge_as_a_language_server(editor: str) -> None:
    printed = plugin(TEXTS[editor], ["/opt/a b/msp-bridge", "serve", "stdio", "--jobs", "2"])
    command = ["/opt/a b/msp-bridge", "serve", "stdio", "--jobs", "2", "--dialect", "lsp"]
    match TEXTS[editor].rpartition(".")[2]:
        case "json":
            settings = parse(printed)
            server = (settings.get("servers") or settings.get("clients") or settings["lsp"]).popitem()[1]
            binary = server.get("binary", {})
            assert server.get("command", [binary.get("path"), *binary.get("arguments", ())]) == command
        case "toml":
            server = tomllib.loads(printed)["language-server"]["msp-bridge"]
            assert [server["command"], *server["args"]] == command
        case _:
            assert (
                re.findall(r'"([^"\n]*)",? ?', printed[printed.index(f'"{command[0]}"') :])[: len(command)] == command
            )
