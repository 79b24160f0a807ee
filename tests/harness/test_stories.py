"""What other systems published of lost rows and false conflicts does not happen here."""

from __future__ import annotations

import pytest

from harness.stories import stories

pytestmark = pytest.mark.slow

STORIES = dict(stories(appends=10))


@pytest.mark.parametrize("name", STORIES)
def test_the_story_ends_as_its_writers_were_told(name):
    figures = STORIES[name].tell()
    assert figures.sound, figures
    assert figures.acknowledged + figures.refused == figures.writes
    assert figures.acknowledged >= 0.9 * figures.writes
