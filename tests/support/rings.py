"""The rings of tests: which run in `make check`, in `make test`, and only in `make test-all`. A plug-in of pytest.

There are three rings, each within the next:

- The core (`make check`, `pytest --core`): tests that need no tool; the aim is a minute for all of them. A new file
  is in the core unless NOT_CORE names it.
- The main ring (`make test`, `pytest --main`): each promise to users once, with each real tool; the aim is eight minutes on two
  cores.
- All (`make test-all`, `pytest`): also the combinations, and what is dear; the aim is twenty minutes. COMBINATIONS and DEAR
  name them. A test is a combination if a test of the main ring holds the same promise: with another version of the tool,
  on a platform without isolation, through another transport, at each await or each message instead of some, with random
  edits, or for one more project. It is dear if it takes three seconds of CPU or more, and what it runs of the bridge
  itself, cheaper tests of the main ring run, too: coverage with a context for each test says so, but for a branch or two.
  Of each tool the main ring keeps what everybody meets: verdicts, edits, a cancel, a suite that fails.

`make soak` runs `tests/soak` and `tests/fuzz` for hours instead of seconds.
"""

import random
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
IN_CORE = pytest.StashKey[bool]()

# What starts tools, or takes longer than half a second of CPU: directories, files, and parts of the names of tests in a file.
NOT_CORE: dict[str, tuple[str, ...]] = dict.fromkeys(
    (
        "adapters/test_cancel_everywhere.py",
        "adapters/test_cargo_mutants_real.py",
        "adapters/test_cargo_mutants_running.py",
        "adapters/test_cosmic_ray_discovery.py",
        "adapters/test_cosmic_ray_running.py",
        "adapters/test_cosmic_ray_safety.py",
        "adapters/test_generic_isolation.py",
        "adapters/test_gremlins.py",
        "adapters/test_gremlins_modules.py",
        "adapters/test_ignoring.py",
        "adapters/test_mutmut_discovery.py",
        "adapters/test_mutmut_verdicts.py",
        "adapters/test_mutmut_warm.py",
        "adapters/test_pit.py",
        "adapters/test_pit_compiled.py",
        "adapters/test_pit_coverage.py",
        "adapters/test_pit_frameworks.py",
        "adapters/test_pit_isolation.py",
        "adapters/test_pit_settings.py",
        "adapters/test_pit_started.py",
        "adapters/test_pit_suites.py",
        "adapters/test_stryker_js_discovery.py",
        "adapters/test_stryker_js_faults.py",
        "adapters/test_stryker_js_install.py",
        "adapters/test_stryker_js_isolation.py",
        "adapters/test_stryker_js_kept_listings.py",
        "adapters/test_stryker_js_open_run.py",
        "adapters/test_stryker_js_process_state.py",
        "adapters/test_stryker_js_running.py",
        "adapters/test_stryker_js_started.py",
        "adapters/test_stryker_net_copies.py",
        "adapters/test_stryker_net_preparing.py",
        "adapters/test_stryker_net_real.py",
        "adapters/test_stryker_net_results.py",
        "browse/test_browse_mutmut.py",
        "cli/test_completion.py",
        "cli/test_real_editors.py",
        "cli/test_lsp_editors.py",
        "cli/test_page_examples.py",
        "cli/test_run_docs.py",
        "cli/test_run_since.py",
        "cli/test_run_verify.py",
        "cli/test_survivors_life.py",
        "cluster/test_conformance_on_a_cluster.py",
        "cluster/test_failures.py",
        "cluster/test_networks.py",
        "cluster/test_other_workers.py",
        "editors",
        "faults",
        "fuzz",
        "processes",
        "python_engine/test_corpus.py",
        "python_engine/test_engine.py",
        "isolation",
        "python_engine/test_kept_mutants.py",
        "python_engine/test_listing.py",
        "python_engine/test_mutant_limits.py",
        "python_engine/test_steadiness.py",
        "python_engine/test_surroundings.py",
        "python_engine/test_survivors_after_edits.py",
        "python_engine/test_unmeasured.py",
        "real",
        "server/test_ending.py",
        "server/test_mcp.py",
        "soak",
        "test_docker.py",
        "test_oracle.py",
        "test_the_written_adapter.py",
    ),
    (),
) | {
    "adapters/test_conformance.py": (
        "mutmut",
        "command",
        "generic",
        "StrykerJS",
        "net_repo",
        "real",
        "gremlins",
        "PIT",
    ),
    "adapters/test_generic_running.py": ("test_the_results_are_those_of_the_tool_itself", "portable"),
    "adapters/test_mutmut_setup.py": (
        "test_an_installation_without_what_mutmut_needs",
        "test_a_plugin_that_the_tests_need",
        "test_a_suite_that_fails_is_diagnosed",
    ),
    "adapters/test_stryker_js_setup.py": (
        "test_the_named_configuration_file_is_the_one_that_counts",
        "test_wrong_settings_are_refused",
        "node_that_is_too_old",
        "test_the_doctor",
        "test_packages_may_be",
        "test_the_threshold_is_that_of_the_configuration",
        "test_an_option_that_nothing_knows",
    ),
    "adapters/test_stryker_js_workspaces.py": ("has_the_statuses_of_strykerjs", "test_what_a_package_of_the_workspace"),
    "cli/test_run_reports.py": ("test_the_shards_are_the_whole",),
    "dialects/test_every_dialect.py": ("test_each_request_gets_one_answer",),
    "dialects/test_lsp_documents.py": ("test_functions_are_found_in_several_threads", "test_are_made_in_slices"),
    "dialects/test_msp_alpha.py": ("test_a_client_written_from",),
    "dialects/test_mtp.py": ("test_a_client_written_from", "test_the_client_that_drives_dotnet"),
    "dialects/test_test_runner.py": ("test_a_client_written_from",),
    "python_engine/test_made_files.py": ("test_it_is_there_after_an_edit",),
    "python_engine/test_started_processes.py": ("test_a_mutant_is_tested", "test_after_an_edit"),
    "reports/test_html.py": ("test_a_browser_shows",),
    "reports/test_live.py": ("test_a_browser_shows",),
    "reports/test_phases.py": ("test_the_python_engine_says",),
    # The protocol is the same behind each stream: the core has it in memory.
    "server/test_configure_and_discover.py": ("stdio", "tcp"),
    "server/test_mutation_test.py": ("stdio", "tcp"),
    "server/test_order.py": ("stdio", "tcp"),
    "server/test_limits.py": ("test_a_client_that_sends_and_never_reads",),
    "server/test_faults.py": ("test_discovering_thirty_thousand_mutants",),
    "server/test_lsp.py": ("test_a_real_mutmut",),
    "server/test_mcp_http.py": ("test_a_signal_ends",),
    "server/test_security_mcp_http.py": ("test_agents_over_http",),
    "server/test_mcp_protocol.py": ("test_answers_stay_short", "test_a_client_that_sends_and_never_reads"),
    "toolkit/test_install.py": ("test_each_command_installs", "test_the_command_for_an_externally_managed"),
    "workspace/test_diagnosis.py": ("test_it_is_called_what_it_is_called",),
    "workspace/test_interpreter.py": ("test_an_environment_with_nothing_but_the_bridge",),
    "workspace/test_projects.py": ("test_it_gives_way_at_the_root",),
}
# Of the corpus: kinds of code for which the engine does what it does for a kind that the main ring has.
FURTHER_KINDS = """asyncio_loop awkward_code beneath_pytest c_extension cache_at_import fixed_port flaky known_wrong knows_forks leak
left_behind made_at_import module_state namespace_package native_threads needs_another opened_at_import programs pytest_plugin
random_numbers random_order real_time recompiled session_fixture shared_at_import signals sqlite_cwd threads"""
# The same form: what only `make test-all` runs.
COMBINATIONS: dict[str, tuple[str, ...]] = {
    # StrykerJS 8 by its command line, where StrykerJS 9 as a server holds the same; a run's results are tested with both.
    "adapters/test_stryker_js_discovery.py": ("command line",),
    "adapters/test_stryker_js_faults.py": ("command line",),
    # The network of the machine: `isolation/` and `test_generic_isolation.py` have it, and the way back from it, without StrykerJS.
    "adapters/test_stryker_js_isolation.py": ("portable", "need_the_network"),
    "adapters/test_stryker_js_kept_listings.py": ("command line",),
    # Further layouts: each package manager has the one that asks most of it, and the core has each command.
    "adapters/test_stryker_js_install.py": (
        "[npm]",
        "[npm, a workspace]",
        "[pnpm]",
        "[pnpm, a part of a workspace]",
        "[Yarn]",
        "[Yarn, a workspace]",
        "[Yarn 1]",
    ),
    # Vitest has one process more between StrykerJS and the tests.
    "adapters/test_stryker_js_started.py": ("js_mocha",),
    "adapters/test_stryker_js_running.py": (
        "no_time_runs_out[command line]",
        "is_started_again_once[command line]",
    ),
    # Without isolation, where it is the same code from the sandbox on; the conformance suites have both.
    "adapters/test_generic_running.py": ("portable",),
    # `test_polyglot.py` has these requests with each tool in one session, and the tests of running, of discovery and of isolation
    # what else the suite asks: scopes, edits, a cancel, requests side by side, a tree that stays as it was.
    # The stand-in for cargo and the scripted dotnet have the whole suite, and PIT and gremlins tests of verdicts, a cancel,
    # edits, requests side by side and a red suite.
    "adapters/test_conformance.py": ("by a command", "generic", "StrykerJS", "net_repo", "real", "gremlins", "PIT"),
    # The real gremlins and PIT, each with a test of a cancel of its own. cosmic-ray's tests run in mutmut's engine.
    "adapters/test_cancel_everywhere.py": ("gremlins", "pit", "says_the_same[cosmic-ray]"),
    # The main ring has one run of the real cargo-mutants, and one with nextest.
    "adapters/test_cargo_mutants_real.py": ("kept_builds",),
    # The workspace has modules of which verdicts depend, the till programs that tests build and run.
    "adapters/test_gremlins_modules.py": (
        "test_a_module_with_vendored_ones",
        "test_mutants_of_an_older_gremlins",
        "test_processes_that_tests_start_have_the_mutant[off]",
        "its_directory_in_a_variable[True-names.go]",
        "its_directory_in_a_variable[False-sub/sub.go]",
        "in_programs_that_they_build_has_the_verdict_of_a_fresh_process[True]",
    ),
    # More of what one test has each: shared binaries, failing tests, fresh processes.
    "adapters/test_gremlins.py": (
        "verdicts_of_binaries_of_their_own[early",
        "test_data_outside_of_the_module",
        "test_failing_tests_are_named_whose_package_prints_a_lot",
        "test_tags_and_options_of_the_linker",
        "leave_out_tests_that_fail_without_a_mutant[False]",
    ),
    # `test_pit_reading.py` has how errors of the real Maven are read. A verification by it takes 30 s of CPU:
    # `test_pit_fresh_runs.py` has a script in its place.
    "adapters/test_pit.py": (
        "test_a_compile_error_is_named[Maven]",
        "test_verdicts_are_those_of_pit",
    ),
    # `test_gremlins.py` has tests that fail isolated, in the same way.
    "adapters/test_pit_isolation.py": ("fail_inside",),
    "adapters/test_pit_started.py": ("tests[off]", "compiled_classes"),
    # Another framework, another language: `test_pit_reading.py` has what the adapter makes of them.
    "adapters/test_pit_frameworks.py": (),
    # `test_pit.py` has verdicts of the oldest and the newest version, `test_pit_reading.py` what the adapter makes of settings.
    "adapters/test_pit_settings.py": (),
    "adapters/test_stryker_js_setup.py": (
        "portable",
        "command line",
        "test_the_threshold_is_that_of_the_configuration",  # the configuration that was named has one
    ),
    # A package of a workspace is tested there by `test_what_a_package_of_the_workspace_writes_beside_itself`.
    "adapters/test_stryker_js_workspaces.py": (
        "portable",
        "test_a_part_of_a_workspace_has_the_statuses_of_strykerjs_alone",
        "test_what_a_package_of_the_workspace_writes_beside_itself_stays_in_its_copy[isolated-pnpm]",
    ),
    "python_engine/test_corpus.py": (
        "guard",
        "off",
        "overlays",
        *(f"says[{kind}-on]" for kind in FURTHER_KINDS.split()),
        # cosmic-ray's mutants of these two are in the main ring, and `test_no_coverage.py` has processes that are spawned.
        *(f"test_mutmut_says_what_a_fresh_process_says[{kind}-on]" for kind in ("at_import", "spawn", "src_layout")),
        # The engine is the one that mutmut's mutants are tested by, in the same projects.
        *(f"cosmic_ray_says_what_a_fresh_process_says[{kind}-on]" for kind in ("awkward_code", "late_imports")),
    ),
    "test_oracle.py": (
        "[beside",
        "test_a_runtime_error_is_contradicted",
        "test_pytest_may_fail_after_the_last_test_also_without_a_mutant",  # the exit code counts for neither
    ),
    # What is hardest to find and to end is ended: a daemon that has no environment, and ignores SIGTERM.
    "processes/test_process_tree.py": tuple(
        f"{end}[{kind}-"
        for end in ("ends_everything_when_one_is_killed", "killed_with_its_bridge_leaves_nothing")
        for kind in ("child", "stubborn child", "daemon")
    ),
    # The same on a socket, on which `test_ending.py`, `test_faults.py` and `test_order.py` have what a socket could change.
    "server/test_configure_and_discover.py": ("tcp",),
    "server/test_mutation_test.py": ("tcp",),
    # A fault of disk, tree or tool is met by code that all adapters share: mutmut has it in the main ring.
    "faults/test_broken_places.py": ("stryker-js]",),
    "faults/test_broken_tools.py": (
        "own_words[cosmic-ray]",
        "is_none_is_reported[cosmic-ray]",
        "disturbs_nothing[cosmic-ray]",
        # Both tools are found when they come, here and there; `test_mutmut_setup.py` and `test_cosmic_ray_discovery.py` name them.
        "named_with_its_remedy_and_found_later[cosmic-ray]",
    ),
    "faults/test_changes_meanwhile.py": ("stryker-js]",),
    "faults/test_harmful_tests.py": ("cosmic-ray]", "stryker-js]"),
    "faults/test_stopped_tools.py": ("stryker-js]",),
    # Many files are copied, looked at and copied again in `toolkit/test_sandbox.py`.
    "faults/test_odd_trees.py": ("stryker-js]", "test_ten_thousand_files"),
    "cluster/test_networks.py": ("test_a_slow_network",),
    # Real limits in a real suite: `isolation/test_namespaces.py` and `test_fork_server.py` have each limit.
    "python_engine/test_mutant_limits.py": (
        "test_a_mutant_that_uses_up",
        "stands_still[in a conftest.py]",  # earlier than in a test
    ),
    # `test_init.py` and `test_diagnosis.py` have what the commands make of each tool, the adapters' tests a doctor of it.
    "real/test_polyglot.py": ("test_the_commands_that_set_a_project_up_know_every_tool",),
    # The same commands as in Python's tutorial, with another tool, of which `test_polyglot.py` has a session.
    "real/test_tutorials.py": ("[javascript]",),
    # The same commands on another forge, or with another tool.
    "cli/test_run_docs.py": ("GitLab",),
    "cli/test_run_verify.py": ("[cosmic-ray]",),
    # `test_failures.py` has the conformance suite on a cluster with a scripted adapter, `test_other_workers.py` mutmut.
    "cluster/test_conformance_on_a_cluster.py": (),
    # Other verdicts than the corpus has, in the same way, from projects that are larger.
    "adapters/test_cosmic_ray_running.py": (
        "test_the_statuses_are_those_of_exec",
        # The engine's, with cosmic-ray's mutants: `test_mutmut_verdicts.py` and `test_engine.py` have them with mutmut's.
        "test_a_restart_begins_when_mutants_are_listed",
    ),
    # What runs at import is tested again by `test_what_each_edit_has_tested_again`, whatever was edited, and
    # `test_no_coverage.py` has what tests compute for others.
    "real/test_incremental_dependencies.py": ("test_a_survivor_at_import", "test_what_only_shows_alone"),
    # The next server and a test that is gone: `test_kept.py` has its file, too. `spawn` is the other way to a new interpreter.
    # Of programs that run others, a shell is one.
    "python_engine/test_no_coverage.py": (
        "the next one]",
        "had_computed_for_it[delete-",
        "[forkserver]",
        "[by a file of make]",
        "[by another program]",
    ),
    # Further things that a fork must not share, that lead tests to another tree, or that a module starts.
    "python_engine/test_session_server.py": tuple(
        f"share_more_than_memory[{kind}]" for kind in ("asked for its process", "process", "reads", "socket")
    ),
    "python_engine/test_engine.py": tuple(
        f"is_refused_by_its_path[{way}]" for way in ("PYTHONPATH", "conftest.py", "pythonpath")
    ),
    "python_engine/test_started_processes.py": ("the next one]",),  # `test_kept.py` has the rule
    "python_engine/test_early_jobs.py": ("none_is_used[a process that is waited for]",),
    # The same client through another transport.
    "dialects/test_msp_alpha.py": ("is_served[socket]", "is_served[websocket]"),
    "dialects/test_mtp.py": ("is_served[socket]", "is_served[stdio]"),
    "server/test_mcp_http.py": ("with_all_that_runs[legacy]",),
    # A call at import; `test_calls_of_anything_else_are_effects` has it, and a new class is registered by a test here.
    "python_engine/test_import_effects.py": ("run_by_tests_of_others[handler]",),
    # Random requests; in each dialect a test has each kind, and MSP has them mixed.
    "dialects/test_every_dialect.py": tuple(
        f"test_each_request_gets_one_answer_and_each_mutant_one_result[{dialect}]"
        for dialect in ("lsp", "mcp", "msp-alpha", "mtp", "test-runner")
    ),
    # Real installations, by pip: the core has each command.
    "toolkit/test_install.py": (
        "test_each_command_installs_what_it_names[-m venv]",
        "test_the_command_for_an_externally_managed_interpreter_installs",
    ),
    "dialects/test_test_runner.py": ("is_served[socket]",),
    # The same at other moments, or in one more project: `test_tests_that_something_kills_are_run_once_more` has one.
    "adapters/test_cosmic_ray_safety.py": ("test_sigkill_of_tests_changes_no_status",),
    # Beside the project, as in a workspace, or installed.
    "adapters/test_mutmut_warm.py": ("mutants_meet[beside]",),
    "adapters/test_stryker_net_copies.py": ("at_any_moment_leaves_nothing[1]",),
    # With random requests, edits and moments; each kind of request, edit and kill has a test of its own.
    "soak/test_soak.py": (),
    "real/test_incremental_edits.py": (),
    # Kills, faults, edits and frameworks with the real Stryker.NET: a test has its verdicts, and the scripted one keeps all
    # promises and fails.
    "adapters/test_stryker_net_preparing.py": (
        "test_mutants_get_the_verdicts_of_their_tests",  # of tests that share static fields the main ring has them
        "test_a_tool_or_a_bridge_that_is_killed",
        "test_code_that_does_not_compile",
        "test_edits_of_code_and_tests_and_red_tests",
        "test_tests_that_keep_the_tool_from_testing",
    ),
    "adapters/test_stryker_net_real.py": (),
    # More similar ways to go on with what is open.
    "adapters/test_stryker_js_process_state.py": (
        "[command line]",
        "reaches_no_later_request",
        "decide_together[js_mocha",  # Vitest has one process more between StrykerJS and the tests
    ),
    "adapters/test_stryker_js_open_run.py": (
        "test_no_time_at_all_lets_nothing_stay",
        "test_of_several_runs_that_are_open",
        # A killed StrykerJS is started anew in `test_stryker_js_running.py`.
        "test_what_waits_has_run_no_mutant_and_what_is_killed_meanwhile",
    ),
}
# The same form: what is dear.
DEAR: dict[str, tuple[str, ...]] = {
    "adapters/test_cancel_everywhere.py": ("says_the_same[cargo-mutants]", "says_the_same[generic]"),
    "adapters/test_cargo_mutants_real.py": ("test_fresh_processes_run_the_tests_as_it_is_configured[configuration",),
    "adapters/test_gremlins_modules.py": (
        "test_each_mutant_of_a_workspaces_module",
        "test_programs_that_tests_start_by_another_package",
    ),
    "adapters/test_stryker_js_discovery.py": ("test_a_configuration_is_read_anew", "test_files_may_have_any_name"),
    "adapters/test_stryker_js_kept_listings.py": ("test_the_next_bridge_lists",),
    "adapters/test_stryker_js_open_run.py": ("test_mutants_that_a_checker_refuses", "test_nothing_of_it_is_there"),
    "adapters/test_stryker_js_process_state.py": ("in_the_variables_of_modules", "test_a_change_that_comes_late"),
    "adapters/test_stryker_js_running.py": (
        "gets_its_own_alone[command line]",
        "no_time_runs_out[served]",
        "is_started_again_once[served]",
        "test_a_mutant_that_is_late_once",
        "test_a_survivor_is_tested_again_that_is_late",
        "test_the_number_of_jobs",
        "test_vitest_finds_a_set_up_file",
    ),
    "cli/test_run_docs.py": ("test_the_commands_of_the_examples",),
    "cli/test_run_verify.py": ("test_the_tests_are_those_that_the_tools_configuration_selects",),
    "cluster/test_failures.py": ("test_tests_end_on_the_workers", "test_a_client_that_was_suspended"),
    "editors/test_vscode.py": ("test_two_trusted_folders",),
    "faults/test_broken_places.py": ("test_two_servers_on_one_project",),
    "faults/test_changes_meanwhile.py": ("test_a_project_deleted_during_a_run",),
    "python_engine/test_kept_mutants.py": ("test_the_next_bridge_asks_mutmut_again",),
    "real/test_new_user.py": (),
    "real/test_tutorials.py": ("[python]",),
    "server/test_mcp.py": ("test_a_cancelled_call_and_a_signal", "test_a_project_that_can_not_be_tested"),
    "test_the_written_adapter.py": ("test_the_written_adapter_keeps_its_promises",),
}
FURTHER = (COMBINATIONS, DEAR)
# The same form: tests that start Python processes, in which nobody sees what they run. `make mutants` would run them for each mutant.
ELSEWHERE: dict[str, tuple[str, ...]] = {
    "server/test_limits.py": ("test_sigterm_ends_a_server",),
    "server/test_security_tls.py": ("test_a_server_for_other_machines",),
    "server/test_security_token.py": (
        "test_a_server_for_other_machines",
        "test_other_machines_are_let_in",
        "test_stdio_needs_no_token",
        "test_tools_do_not_inherit",
        "test_without_any_option",
    ),
    "server/test_security_websocket.py": ("test_a_session_over", "test_over_websocket_a_client_that_reads_nothing"),
    "workspace/test_projects.py": ("test_doctor_names",),
    "workspace/test_targets.py": ("test_changes_are_lines",),
}
# What takes longest, of what would come late, begins first, after the core: no process is left alone with it at the end.
LONG = (
    "python_engine/test_corpus.py",
    "python_engine/test_engine.py",
    "real/test_incremental_dependencies.py",
    "real/test_incremental_edits.py",
    "real/test_polyglot.py",
    "soak/test_soak.py",
    "test_oracle.py",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--core", action="store_true", help="only the tests that need no tool")
    parser.addoption("--main", action="store_true", help="each promise once: without combinations and what is dear")
    parser.addoption("--in-process", action="store_true", help="without the tests that start Python processes")
    parser.addoption("--shuffle", type=int, metavar="SEED", help="files, and the tests of each, in a random order")


def pytest_configure(config: pytest.Config) -> None:
    gone = [name for name in (*NOT_CORE, *COMBINATIONS, *DEAR, *ELSEWHERE, *LONG) if not (TESTS / name).exists()]
    if gone:
        raise pytest.UsageError(f"{__file__} names what is not there: {', '.join(sorted(gone))}")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if not collection_path.is_relative_to(TESTS):
        return None
    name = collection_path.relative_to(TESTS).as_posix()
    left_out = (NOT_CORE,) if config.option.core else FURTHER if config.option.main else ()
    return True if any(table.get(name) == () for table in left_out) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    whole = Path(config.rootpath) == TESTS.parent and config.args == ["tests"]
    if whole and not config.option.core:
        for table in (NOT_CORE, ELSEWHERE, *(FURTHER if not config.option.main else ())):
            _check_names(table, items)
    for item in items:
        core = not _named(item, NOT_CORE)
        item.stash[IN_CORE] = core
        if core:
            item.add_marker(pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning"))
    if config.option.core:
        _select(config, items, [item for item in items if item.stash[IN_CORE]])
    if config.option.in_process:
        _select(config, items, [item for item in items if not _named(item, ELSEWHERE)])
    if config.option.main:
        _select(config, items, [item for item in items if not any(_named(item, table) for table in FURTHER)])
    if config.option.shuffle is not None:
        _shuffle(items, random.Random(config.option.shuffle))
    items.sort(key=lambda item: (not item.stash[IN_CORE], _file_of(item) not in LONG))


def _select(config: pytest.Config, items: list[pytest.Item], selected: list[pytest.Item]) -> None:
    kept = set(selected)
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = selected


def _shuffle(items: list[pytest.Item], chance: random.Random) -> None:
    """Shuffle files, and the tests within each: tests of one file share what is expensive."""
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    order = list(files)
    chance.shuffle(order)
    for tests in files.values():
        chance.shuffle(tests)
    items[:] = [item for path in order for item in files[path]]


@cache
def _names_of(path: Path) -> tuple[str, ...]:
    """The names by which a table can have the file: its own, and those of the directories around it."""
    if not path.is_relative_to(TESTS):
        return ("",)
    file = path.relative_to(TESTS)
    return (file.as_posix(), *(parent.as_posix() for parent in file.parents))


def _file_of(item: pytest.Item) -> str:
    return _names_of(item.path)[0]


def _named(item: pytest.Item, table: dict[str, tuple[str, ...]]) -> bool:
    """Whether `table` names the test, its file or a directory around it."""
    tables = (table[name] for name in _names_of(item.path) if name in table)
    return any(not parts or any(part in item.name for part in parts) for parts in tables)


def _check_names(table: dict[str, tuple[str, ...]], items: list[pytest.Item]) -> None:
    """Raises UsageError if `table` names a test that is not there."""
    names: dict[str, list[str]] = {}
    for item in items:
        names.setdefault(_file_of(item), []).append(item.name)
    for file, parts in table.items():
        for part in parts:
            if not any(part in name for name in names.get(file, [])):
                raise pytest.UsageError(f"{__file__} names {file}::{part}, which is not there")
