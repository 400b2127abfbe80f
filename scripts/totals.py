"""Adds up JUnit reports and prints one line: "N passed, N failed, N skipped".

Exits with 1 when a report is missing, a test failed, or none passed.
"""

import pathlib
import sys
import xml.etree.ElementTree as ElementTree


def count(report: pathlib.Path) -> tuple[int, int, int]:
    """Passed, failed and skipped test cases of one report."""
    passed = failed = skipped = 0
    for case in ElementTree.parse(report).iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif case.find("skipped") is not None:
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped


def main(reports: list[pathlib.Path]) -> int:
    """Print the totals of `reports`."""
    missing = [report for report in reports if not report.is_file()]
    for report in missing:
        print(f"totals.py: no report {report}: its test runner did not finish", file=sys.stderr)
    counts = [count(report) for report in reports if report not in missing]
    passed, failed, skipped = (sum(column) for column in zip((0, 0, 0), *counts, strict=True))
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if missing or failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main([pathlib.Path(argument) for argument in sys.argv[1:]]))
