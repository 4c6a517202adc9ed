"""What `msp-bridge editors` prints works in the editors that are installed here."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from support.command_line import TESTS
from test_editors import editors, elsewhere, project

__all__ = ["elsewhere", "project"]  # fixtures


def installed(editor: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(editor) is None, reason=f"{editor} is not installed")


def environment(project: Path) -> dict[str, str]:
    own = {"PYTHONPATH": str(TESTS), "MSP_BRIDGE_CACHE": str(project.parent / "cache"), "HOME": str(project.parent)}
    return {**os.environ, **own}


def run_editor(project: Path, *argv: str) -> str:
    done = subprocess.run(argv, cwd=project, env=environment(project), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def in_neovim(project: Path, elsewhere: Path, drive: str) -> list[str]:
    """The lines that `drive` has put into the table `lines`; `said` is what the plugin has said last."""
    plugin, driver, found = (project.with_name(name) for name in ("msp-bridge.lua", "drive.lua", "found"))
    plugin.write_text(editors(project, elsewhere, "neovim").stdout)
    driver.write_text(f"""
        local said
        vim.notify = function(text) said = text end
        vim.cmd("source {plugin}")
        vim.cmd("edit a.py")
        {drive}
        vim.fn.writefile(lines, "{found}")
        vim.cmd("qa!")
    """)
    said = run_editor(project, "nvim", "--headless", "-u", "NONE", "-n", "-S", str(driver))
    assert found.exists(), said
    return found.read_text().splitlines()


@installed("nvim")
def test_neovim_shows_what_survives(project: Path, elsewhere: Path) -> None:
    drive = """
        local lines = {}
        for _, command in ipairs({ "MutationTest", "2MutationTest", "MutationTestProject" }) do
          said = nil
          vim.cmd(command)
          vim.wait(60000, function() return said or #vim.fn.getqflist() > 0 end, 10)
          table.insert(lines, said or "in the quickfix list: " .. #vim.fn.getqflist())
        end
        for _, known in ipairs(vim.diagnostic.get(vim.fn.bufnr('a.py'))) do
          table.insert(lines, known.lnum .. ":" .. known.col .. "-" .. known.end_col .. " " .. known.message)
        end
    """
    assert in_neovim(project, elsewhere, drive) == [
        "msp-bridge: 2 mutants of this file that no test kills",
        "msp-bridge: 2 mutants of this file that no test kills",
        "in the quickfix list: 2",
        "0:15-16 no test kills it: digit, 2",  # bytes: 3 of €, 4 of 𝄞
        "1:8-9 no test kills it: digit, 2",
    ]


@installed("nvim")
def test_neovim_shows_what_is_wrong(project: Path, elsewhere: Path) -> None:
    (project / "scripted.json").unlink()
    drive = """
        vim.cmd("MutationTest")
        vim.wait(60000, function() return said end, 10)
        local lines = { said }
    """
    [said] = in_neovim(project, elsewhere, drive)
    assert said.startswith("msp-bridge: scripted is not set up in")


@installed("nvim")
def test_vim_lists_what_survives(project: Path, elsewhere: Path, tmp_path: Path) -> None:
    compiler, found = tmp_path / "vim/compiler/mutants.vim", tmp_path / "found"
    compiler.parent.mkdir(parents=True)
    compiler.write_text(editors(project, elsewhere, "vim").stdout)
    drive = tmp_path / "drive.vim"
    drive.write_text(f"""
        set rtp^={tmp_path}/vim
        compiler mutants
        silent make a.py
        call writefile(map(getqflist(), 'bufname(v:val.bufnr) . ":" . v:val.lnum . ":" . v:val.col'), "{found}")
        qa!
    """)
    said = run_editor(project, "nvim", "--headless", "-u", "NONE", "-n", "-S", str(drive))
    assert found.read_text().splitlines() == ["a.py:1:12", "a.py:2:9"], said


@installed("emacs")
def test_emacs_lists_what_survives(project: Path, elsewhere: Path, tmp_path: Path) -> None:
    plugin, drive = tmp_path / "msp-bridge.el", tmp_path / "drive.el"
    plugin.write_text(editors(project, elsewhere, "emacs").stdout)
    drive.write_text(f"""
        (load "{plugin}")
        (find-file "a.py")
        (defun listed ()
          (with-current-buffer "*mutants*"
            (let ((until (+ (float-time) 60)))
              (while (and (< (float-time) until) (not (string-match-p "done\\\\." (buffer-string))))
                (accept-process-output nil 0.05)))
            (princ (buffer-string))))
        (msp-bridge-test)
        (listed)
        (with-current-buffer "a.py" (msp-bridge-test 2 2))
        (listed)
        (with-current-buffer "*mutants*"
          (goto-char (point-min))
          (compile-goto-error))
        (princ (format "at line %d of %s\\n" (line-number-at-pos) (buffer-name)))
        (msp-bridge-stop)
    """)
    said = run_editor(project, "emacs", "-Q", "--batch", "-l", str(drive))
    first, second = "a.py:1:12: Survived: digit, 2", "a.py:2:9: Survived: digit, 2"
    end = "Mutation testing is done."
    assert [line for line in said.splitlines() if re.match("a.py|Mut|at", line)] == [
        first, second, end, second, end, "at line 2 of a.py",
    ], said  # fmt: skip


@installed("emacs")
def test_emacs_finds_a_project_outside_of_version_control(project: Path, elsewhere: Path, tmp_path: Path) -> None:
    plugin, root = tmp_path / "msp-bridge.el", tmp_path / "bare"
    plugin.write_text(editors(project, elsewhere, "emacs").stdout)
    (root / "src").mkdir(parents=True)
    (root / "pyproject.toml").touch()
    look = f'(progn (load "{plugin}") (find-file "{root}/src/a.py") (princ (concat (msp-bridge--root) "\\n")))'
    assert run_editor(project, "emacs", "-Q", "--batch", "--eval", look).splitlines()[0] == f"{root}/"
