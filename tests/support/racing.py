"""A handle whose first commit loses a race."""

from __future__ import annotations

from dataclasses import replace


class Racing:
    """Lets another writer commit just before the first commit of a handle is put."""

    def __init__(self, table, other):
        self.log, self.other = table.log, other

    def __enter__(self):
        commit, raced = self.log.commit, []

        def late(plan, *begin):
            build = plan.build

            def slow(base):
                actions = build(base)
                if not raced:
                    raced.append(True)
                    self.other()
                return actions

            return commit(replace(plan, build=slow), *begin)

        self.log.commit = late
        return self

    def __exit__(self, *_):
        del self.log.commit
        return False
