"""The report about a table: facts, advice from the planners of the verbs, and one HTML page of both."""

from __future__ import annotations

from indextables.report.advice import Recommendation
from indextables.report.facts import Bar, ReportFacts, facts_of
from indextables.report.page import render_report

__all__ = ["Bar", "Recommendation", "ReportFacts", "facts_of", "render_report"]
