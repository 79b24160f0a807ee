"""The contents of a log as REPAIR carries them from one place to another."""

from __future__ import annotations

from dataclasses import dataclass

from indextables.model.actions import AddAction, MetadataAction, ProtocolAction, SkipAction, TxnAction


@dataclass(frozen=True, slots=True)
class LogContents:
    """What a log says about its newest version, or what is left of it."""

    version: int
    protocol: ProtocolAction
    metadata: MetadataAction
    adds: tuple[AddAction, ...]
    skips: tuple[SkipAction, ...] = ()
    txns: tuple[TxnAction, ...] = ()
