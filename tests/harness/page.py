"""Write the figures of the harness into docs/reliability.md: `python -m harness.page`, from `tests`.

The figures come from the result files under benchmarks/results/reliability; the
page holds them between marks.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from harness.mutants import REASONS
from simulation.page import PAGE, with_section
from simulation.run import RESULTS

_SHORT = 70


def _result(name: str) -> dict[str, Any] | None:
    file = RESULTS / f"{name}.json"
    return json.loads(file.read_text()) if file.exists() else None


def _over(figures: dict[str, Any] | None) -> str:
    """The commit that figures were made on."""
    return f", over {figures['commit']}" if figures and figures.get("commit") else ""


def kills_text() -> str:
    """Killed processes, and processes behind a bad network."""
    kills = _result("kills")
    proxied = _result("proxied")
    lines = [
        "Real processes on a local disk are killed with SIGKILL: by their own hand when they are about to touch a",
        "file of the table for the n-th time, or from outside after some time; some of them beside another writer",
        "that goes on. Afterwards two readers, one of which shares no code with the other, must find what was",
        "acknowledged, all or nothing of what was under way, and nothing else; every version that is offered must",
        "open; somebody else must be able to write, merge, checkpoint and purge; and CHECK must be content.",
        "",
        f"`cd tests && python -m harness.kills --until 1000`{_over(kills)}; a seed alone: `--seeds 17`.",
        "",
    ]
    if kills is not None:
        verbs = ", ".join(f"{count:,} in {verb}" for verb, count in sorted(kills["verbs"].items()))
        lines += [
            (
                "| runs | killed on the way | beside another writer | verbs acknowledged | under way | of these landed "
                "| promises broken |"
            ),
            "|---:|---:|---:|---:|---:|---:|---:|",
            (
                f"| {kills['runs']:,} | {kills['killed']:,} | {kills['beside']:,} | {kills['acknowledged']:,} | "
                f"{kills['under_way']:,} | {kills['landed']:,} | {len(kills['broken']):,} |"
            ),
            "",
            f"Killed: {verbs}.",
            "",
        ]
    lines += [
        "Spark applications are killed with their JVM while they write: `pytest tests/spark/test_killed_driver.py`.",
        "",
        "### Bad networks",
        "",
        "Requests to moto (S3) and azurite (Azure) pass a proxy that does to one in eight what networks do: the",
        "request never arrives, the answer is lost or the connection reset after the server has acted, half of the",
        "answer comes, the request is carried out twice, or it is refused with 500 or 503. What a verb says",
        "afterwards must be true.",
        "",
        f"`cd tests && python -m harness.proxied --seeds 0:50 --keep`{_over(proxied)}",
    ]
    if proxied:
        lines += [
            "",
            "| store | runs | requests | faults | acknowledged | failed | unknown | promises broken |",
            "|---|---:|---:|---:|---:|---:|---:|---:|",
        ]
    lines += [
        f"| {name} | {found['runs']} | {found['requests']:,} | {sum(found['faults'].values()):,} | "
        f"{found['acknowledged']:,} | {found['failed']:,} | {found['unknown']:,} | {len(found['broken']):,} |"
        for name, found in (proxied or {"stores": {}})["stores"].items()
    ]
    return "\n".join(lines)


def lists_text() -> str:
    """Lists that processes append to and read, checked for anomalies."""
    lists = _result("lists")
    lines = [
        "Clients append elements to lists and read them: an element is a row, a row of an overwrite with",
        "`expected_version`, or a word that UPDATE adds to a text; reads are scans, filters, searches, older versions and",
        "followers. From the reads alone a checker infers in which order the appends took effect, and looks for lost",
        "appends, dirty and intermediate reads, elements that are there twice, incompatible orders, and cycles of",
        "dependencies (G0, G1c, G-single, G2, also with the order of the clock), after",
        "[Elle](https://github.com/jepsen-io/elle). None is allowed. `make simulate LEVEL=lists` does it in simulated",
        "histories; here three writers, two readers and a process that merges and erases history are real, and some",
        "are killed with SIGKILL.",
        "",
        f"`cd tests && python -m lists.processes --until {lists['runs'] if lists else 100}`"
        + (f", over {lists['commit']}" if lists else ""),
    ]
    if lists:
        outcomes = lists["outcomes"]
        lines += [
            "",
            "| histories | killed | transactions | refused | unknown | acknowledged appends | lists read | anomalies |",
            "|---:|---:|---:|---:|---:|---:|---:|---:|",
            (
                f"| {lists['runs']:,} | {lists['killed']:,} | {lists['transactions']:,} | "
                f"{outcomes.get('aborted', 0):,} | {outcomes.get('unknown', 0):,} | {lists['appends']:,} | "
                f"{lists['reads']:,} | {sum(map(len, lists['broken'].values())):,} |"
            ),
        ]
    return "\n".join(lines)


def ingestion_text() -> str:
    """Logs that are followed and files that are loaded by processes that are killed."""
    found = _result("ingestion")
    lines = [
        "`indextables tail -f` follows a log that is written meanwhile, with half lines, and rotated: renamed, copied and cut",
        "short, removed and created again, cut short, rewritten under the same inode, or a link that is pointed elsewhere. One",
        "process or two do so, and are killed with SIGKILL and started again. Every whole line must be in the table once,",
        "unless [the guide](howto/small-commits.md#follow-a-log-file) says that it was gone before anyone could read it; a",
        "process that follows the table must be given its rows once and in order. `indextables load` of CSV, JSON lines,",
        "Parquet and logs is killed on its way: all rows of its commit or none. With a planted bug, a file that is known by",
        "its inode and size alone, two of the first six seeds find lines that are missing or torn.",
        "",
        f"`cd tests && python -m ingestion.run --until {found['runs'] if found else 100}`"
        + (f", over {found['commit']}" if found else ""),
    ]
    if found:
        lines += [
            "",
            "| runs | killed | rotations | lines written | loaded | gone unread | rows followed | loads | landed | broken |",
            "|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
            (
                f"| {found['runs']:,} | {found['killed']:,} | {sum(found['rotations'].values()):,} | {found['lines']:,} | "
                f"{found['arrived']:,} | {found['excused']:,} | {found['followed']:,} | {found['loads']:,} | "
                f"{found['loads_landed']:,} | {len(found['broken']):,} |"
            ),
        ]
    return "\n".join(lines)


def streams_text() -> str:
    """Streams that are killed and started again, on each line of Spark that was tried."""
    lines = [
        "A Spark application copies five tables with a stream each, two files at a time, while another process appends to",
        "them: three of ours, and two Delta tables that deltalake writes. The application, its JVM and its Python workers are",
        "killed with SIGKILL, at any moment or soon after a batch was begun, and started again from the checkpoints, ten times",
        "in a story. Then each copy must have every row once.",
        "",
        "`cd tests && python -m streams.kills --until 30`, with the Python of `make test-spark` for an older Spark:",
        "`../build/spark-3.5/bin/python -m streams.kills --until 30`",
        "",
        "| Spark | applications killed | streams of our tables | of Delta tables | in the middle of a batch | rows compared | broken | commit |",
        "|---|---:|---:|---:|---:|---:|---:|---|",
    ]
    for file in sorted(RESULTS.glob("stream-kills-*.json")):
        figures = json.loads(file.read_text())
        kills, moments = figures["kills"], figures["moments"]
        lines.append(
            f"| {file.stem.rpartition('-')[2]} | {figures['runs']:,} | {kills.get('ours', 0):,} | {kills.get('delta', 0):,} | "
            f"{moments.get('in a batch', 0):,} | {figures['rows']:,} | {len(figures['broken']):,} | {figures['commit']} |"
        )
    return "\n".join(lines)


def stories_text() -> str:
    """Stories of other systems, and what becomes of them here."""
    told = _result("stories")
    if told is None:
        return ""
    lines = [
        "Stories that other systems published, told again step by step (`tests/harness/stories.py`): ten writers append",
        "at once, as processes on a local disk and in the simulation; a DELETE is planned, others append rows that",
        "match it, and it is tried again; a conditional put takes effect and its reply is lost, or it is sent again and",
        "fails against itself. *Refused* writers were told that nothing was committed, and nothing was.",
        "",
        f"`cd tests && python -m harness.stories --appends {told['appends']} --keep`",
        "",
        "| story | source | there | writes | acknowledged | refused | rows lost | doubled | unexpected | over |",
        "|---|---|---|---:|---:|---:|---:|---:|---:|---|",
    ]
    lines += [
        f"| {name} | [{story['source']}]({story['url']}) | {story['there']} | {story['writes']:,} | "
        f"{story['acknowledged']:,} | {story['refused']:,} | {story['lost']:,} | {story['doubled']:,} | "
        f"{story['unexpected']:,} | {story['commit']} |"
        for name, story in told["stories"].items()
    ]
    return "\n".join(lines)


def versions_text() -> str:
    """Turns of two releases at one table."""
    turns = _result("two-versions")
    lines = [
        "The commit of 0.2.0 and this tree take turns at one table, each in a process that keeps its handle open: create,",
        "append, grow, overwrite, delete, update, MERGE, restore, merge splits, checkpoint, truncate, purge. After every turn",
        "both are asked for rows, filters, counts, searches, sums and an older version, and both must give the answers of",
        "a dictionary of rows. Now and then this tree closes the log (REPAIR ... SWAP, the one protocol that 0.2.0 does not",
        "know): 0.2.0 must refuse to write, and read every row.",
        "",
        f"`cd tests && python -m versions.two_versions --until {turns['runs'] if turns else 100}`"
        + (f", over {turns['commit']}" if turns else ""),
    ]
    if turns:
        verbs = turns["verbs"]
        by = {
            who: sum(times for verb, times in verbs.items() if verb.endswith(who))
            for who in ("earlier", "this")
        }
        lines += [
            "",
            "| tables | turns of 0.2.0 | turns of this tree | logs closed | writes refused | times compared | broken |",
            "|---:|---:|---:|---:|---:|---:|---:|",
            (
                f"| {turns['runs']:,} | {by['earlier']:,} | {by['this']:,} | {verbs.get('swap by this', 0):,} | "
                f"{turns['refused']:,} | {turns['answers']:,} | {len(turns['broken']):,} |"
            ),
        ]
    return "\n".join(lines)


def power_text() -> str:
    """Power cuts, replayed from records of what a local disk was asked to do."""
    power = _result("power")
    if power is None:
        return ""
    verbs = ", ".join(f"{count:,} of {verb}" for verb, count in sorted(power["verbs"].items()))
    return "\n".join(
        [
            "Every verb that writes is recorded on a local disk, call by call. A replay stops the record somewhere and",
            "makes a disk as a power cut may leave it: the content of a file is safe only once the file was synced, a",
            "name only once its directory was; anything else may have happened or not, each by itself, and a file that",
            "was not synced is empty, cut short, zeros or whole. The table that is left must hold what was acknowledged, all",
            "or nothing of what was under way, and nothing else; every version that is offered must open; and somebody",
            "else must be able to write, merge, checkpoint and purge. Hard links are there; without them a version that",
            "was not acknowledged may be left cut short, which the error says.",
            "",
            f"`cd tests && python -m harness.power --replays {power['replays']} --keep`{_over(power)}",
            "",
            "| replays | verbs acknowledged | under way | of these landed | promises broken |",
            "|---:|---:|---:|---:|---:|",
            (
                f"| {power['replays']:,} | {power['acknowledged']:,} | {power['under_way']:,} | {power['landed']:,} | "
                f"{len(power['broken']):,} |"
            ),
            "",
            f"Replays: {verbs}.",
        ]
    )


def soak_text() -> str:
    """The soak, quarter by quarter."""
    soak = _result("soak")
    if soak is None:
        return ""
    rows = {
        "commit, p50 ms": [f"{found['p50']:,.0f}" for found in soak["commit_ms"]],
        "commit, p99 ms": [f"{found['p99']:,.0f}" for found in soak["commit_ms"]],
        "refresh, p50 ms": [f"{found['p50']:,.1f}" for found in soak["refresh_ms"]],
        "refresh, p99 ms": [f"{found['p99']:,.0f}" for found in soak["refresh_ms"]],
        "memory, MiB": [f"{found:,}" for found in soak["memory_mib"]],
        "open files": [f"{found:,}" for found in soak["open_files"]],
        "threads": [f"{found:,}" for found in soak["threads"]],
    }
    return "\n".join(
        [
            (
                f"Two writers, two readers that search, and a keeper that merges and purges, in one process for "
                f"{soak['seconds']:,.0f} seconds:"
            ),
            (
                f"{soak['commits']:,} commits and {soak['refreshes']:,} refreshes, {soak['lost']} rows lost, "
                f"{soak['doubled']} doubled, {len(soak['failures'])} failures, at most {soak['most_threads']} threads."
            ),
            "",
            (
                f"`cd tests && python -m harness.soak --seconds {soak['seconds']:.0f} --keep`{_over(soak)}, on two cores that others used "
                "too"
            ),
            "",
            "| quarter of the run | first | second | third | last |",
            "|---|---:|---:|---:|---:|",
            *(f"| {name} | {' | '.join(cells)} |" for name, cells in rows.items()),
        ]
    )


def rivals_text() -> str:
    """What others lose under the same treatment."""
    rivals = _result("rivals")
    if rivals is None:
        return ""
    lines = [
        "Writers killed while they append, four processes that append at once, and every file of a finished table",
        "flipped, cut, emptied, deleted or exchanged for a sibling, one damage at a time. *Other rows* are damaged",
        "tables that read as something else than what was written, without an error.",
        "",
        f"`cd tests && python -m harness.rivals --keep`{_over(rivals)}",
        "",
        "| system | kills | rows lost | appends at once | refused | rows lost | damages | truth | error | other rows |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, found in rivals["systems"].items():
        killed, busy, damaged = found["killed writers"], found["writers at once"], found["damaged files"]
        lines.append(
            f"| {name} {found['version']} | {killed['kills']} | {killed['lost'] + killed['doubled']} | "
            f"{busy['appends']} | {busy['refused']} | {busy['lost'] + busy['doubled']} | {damaged['damages']} | "
            f"{damaged['truth']} | {damaged['error']} | {damaged['other rows']} |"
        )
    return "\n".join(
        [
            *lines,
            "",
            "The one damage that IndexTables does not notice is its newest version file deleted: the table then reads",
            "as it was before, and nothing that is left knows better.",
        ]
    )


def mutant_counts(kept: dict[str, Any]) -> dict[str, int]:
    """How many mutants ended in which way; `unexplained` are survivors without a reason."""
    ends = Counter(fate["end"] for fate in kept["mutants"])
    alive = [fate for fate in kept["mutants"] if fate["end"] == "survived"]
    explained = sum(reason_of(fate) is not None for fate in alive)
    since = sum(bool(fate.get("since")) for fate in kept["mutants"])
    return {
        "drawn": len(kept["mutants"]),
        "tests": ends["test"] + ends["time"] - since,
        "histories": ends["history"],
        "since": since,
        "equivalent": explained,
        "unexplained": len(alive) - explained,
    }


def reason_of(fate: dict[str, Any]) -> str | None:
    """Why a mutant that survived is no bug; None if nobody has said so."""
    for reason in json.loads(REASONS.read_text()):
        if all(reason[key] == fate[key] for key in ("file", "code", "was", "becomes")):
            why: str = reason["why"]
            return why
    return None


def mutants_text() -> str:
    """Mutants drawn by a seed, and those that nothing can notice."""
    kept = _result("mutants")
    if kept is None:
        return ""
    counts, histories = mutant_counts(kept), kept["histories"]
    budget = f" --budget {kept['budget']:.0f}" if kept["budget"] else ""
    lines = [
        "Bugs need not be planted by hand. A mutant is one small change to a line that tests cover: a comparison, a",
        "condition or a constant changed, a statement removed, arguments swapped, a result dropped. Mutants of the code",
        "that commits, writes checkpoints, cleans up, writes and rewrites are drawn by a seed. Each runs against the tests",
        "that cover its line, the fastest file first and no longer than a budget, and if none of them fails against",
        f"{histories['log']} histories of the log and {histories['table']} of tables. A survivor is a test to be written, or a",
        "change that nothing can notice.",
        "",
        "Which tests cover a line was recorded for 4,360 tests: those of `tests/unit` and most of `tests/property`; all other",
        "tests were not asked. The budget was 100 seconds for most mutants and 60 for the others. The tests of",
        "the last four mutants were each tried against their mutant by hand.",
        "",
        (
            f"`cd tests && python -m harness.mutants --seed {kept['seed']} --count {counts['drawn']}{budget} --resume`, "
            f"over commit {kept['commit']}; of {kept['covered']:,} mutants:"
        ),
        "",
        "| drawn | noticed by tests | by histories alone | by tests written since | equivalent | left |",
        "|---:|---:|---:|---:|---:|---:|",
        (
            f"| {counts['drawn']:,} | {counts['tests']:,} | {counts['histories']:,} | {counts['since']:,} | "
            f"{counts['equivalent']:,} | {counts['unexplained']:,} |"
        ),
    ]
    same = [
        f"| {fate['file']} | `{_short(fate['was'])}` | `{_short(fate['becomes'])}` | {reason_of(fate)} |"
        for fate in kept["mutants"]
        if fate["end"] == "survived" and reason_of(fate) is not None
    ]
    if same:
        lines += [
            "",
            "The equivalent ones:",
            "",
            "| file | was | becomes | why nothing changes |",
            "|---|---|---|---|",
        ]
    return "\n".join([*lines, *same])


def _short(text: str) -> str:
    """A piece of code on one line of a table."""
    line = " ".join(text.split()).replace("|", "\\|")
    return line if len(line) <= _SHORT else f"{line[:_SHORT]}..."


def branches_text() -> str:
    """What the simulation reaches of the log."""
    kept = _result("branches")
    if kept is None:
        return ""
    histories = ", ".join(f"{count} {level}" for level, count in kept["histories"].items())
    rows, whole = [], Counter()
    for folder, files in _by_folder(kept["files"]).items():
        sums = Counter()
        for found in files:
            sums.update({key: found[key] for key in ("statements", "reached", "branches", "taken")})
        whole.update(sums)
        rows.append(_branch_row(f"`{folder}`", sums))
    return "\n".join(
        [
            "How much of the log histories alone reach, without a unit test. What they do not reach is mostly refusing damaged",
            "and foreign files, which [damaged files](#damaged-files) and unit tests are about, and logs too long for a history;",
            "the result file names every line.",
            "",
            (
                f"`cd tests && python -m simulation.branches --histories {kept['asked']}`, over commit {kept['commit']}; "
                f"histories: {histories}."
            ),
            "",
            "| | statements | reached | branches | taken |",
            "|---|---:|---:|---:|---:|",
            *rows,
            _branch_row("all", whole),
        ]
    )


def _by_folder(files: dict[str, Any]) -> dict[str, list[Any]]:
    folders: dict[str, list[Any]] = {}
    for name, found in files.items():
        if found["statements"]:
            folders.setdefault(name.rpartition("/")[0], []).append(found)
    return folders


def _branch_row(name: str, sums: Counter[str]) -> str:
    reached, taken = sums["reached"] / sums["statements"], sums["taken"] / sums["branches"]
    return f"| {name} | {sums['statements']:,} | {reached:.0%} | {sums['branches']:,} | {taken:.0%} |"


def render(page: str) -> str:
    """The page with today's figures."""
    sections = {
        "mutants": mutants_text(),
        "branches": branches_text(),
        "kills": kills_text(),
        "lists": lists_text(),
        "ingestion": ingestion_text(),
        "streams": streams_text(),
        "stories": stories_text(),
        "two versions": versions_text(),
        "power": power_text(),
        "soak": soak_text(),
        "rivals": rivals_text(),
    }
    for name, text in sections.items():
        page = with_section(page, name, text)
    return page


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text()))
