"""Raw rating files in WORKBank's layout, small and valid, to mutate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tables import write_rows

RATINGS, STATEMENTS = "domain_worker_desires.csv", "task_statement_with_metadata.csv"
DETAILED, REFERENCE = "tasks_to_dwas.csv", "dwa_reference.csv"
GET, ANALYSE, MOVE = "4.A.1.a.1", "4.A.2.a.4", "4.A.3.a.2"
NAMES = {GET: "Getting Information", ANALYSE: "Analyzing Data or Information", MOVE: "Handling and Moving Objects"}
Rows = list[list[object]]


def raw_rows() -> dict[str, Rows]:
    """Return the four files: 14 tasks, 6 of getting information, 6 of analysing, one of moving, one of nothing."""
    ratings: Rows = [
        ["Task ID", "User ID", "Self-reported Expertise", "Automation Desire Rating", "Human Agency Scale Rating"]
    ]
    statements: Rows = [
        [
            "O*NET-SOC Code",
            "Task ID",
            "Importance",
            "Occupation Employment",
            "Skill (O*NET Work Activity)",
            "Skill ID (O*NET Generalized Work Activity ID)",
        ]
    ]
    detailed: Rows = [["Task ID", "DWA ID"]]
    reference: Rows = [["DWA ID", "DWA Title", "IWA ID", "IWA Title"]]
    for task in range(14):
        listed = [] if task == 13 else [MOVE] if task == 12 else [GET, ANALYSE] if task < 6 else [ANALYSE]
        statements.append([f"11-{task % 3}", task, 3.5, 1000, [NAMES[one] for one in listed], listed])
        for worker in range(4):
            expertise = ("Expert", "Average", "Novice")[worker % 3]
            ratings.append([task, f"w{worker}", expertise, 1 + (task + worker) % 5, 1 + (task // 3 + worker) % 5])
        for number, one in enumerate(listed):
            detailed.append([task, f"{one}.I0{1 + task % 2}.D0{number + 1}"])
    for one in (GET, ANALYSE, MOVE):
        for middle in (1, 2):
            for last in (1, 2):
                iwa = f"{one}.I0{middle}"
                reference.append([f"{iwa}.D0{last}", f"detail {last} of {iwa}", iwa, f"part {middle} of {one}"])
    return {RATINGS: ratings, STATEMENTS: statements, DETAILED: detailed, REFERENCE: reference}


def write_raw(folder: Path, change: Callable[[dict[str, Rows]], object] | None = None) -> Path:
    """Write the files, after a change, in folders of their own below ``folder``."""
    files = raw_rows()
    if change is not None:
        change(files)
    for name, rows in files.items():
        place = folder / ("onet" if name in (DETAILED, REFERENCE) else "ratings")
        place.mkdir(parents=True, exist_ok=True)
        write_rows(place / name, rows)
    return folder
