"""Completion of the command line: the script for a shell, and what tables complete to."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem, get_completion_class

_PROGRAM = "indextables"


@click.command()
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a script that makes a shell complete commands.

    \b
    ~/.bashrc                   eval "$(indextables completion bash)"
    ~/.zshrc, after compinit    eval "$(indextables completion zsh)"
    ~/.config/fish/config.fish  indextables completion fish | source
    """  # noqa: D301 - the backspace of click's verbatim paragraphs
    completer = get_completion_class(shell)
    assert completer is not None
    script = completer(ctx.find_root().command, {}, _PROGRAM, f"_{_PROGRAM.upper()}_COMPLETE")
    click.echo(script.source_template % script.source_vars())


def directories(_ctx: click.Context, _param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Let the shell complete directories, which tables are."""
    return [CompletionItem(typed, type="dir")]


VERBS = (completion,)
