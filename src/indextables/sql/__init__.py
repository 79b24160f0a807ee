"""The maintenance commands as SQL text: grammar, commands, runner, and search inside SELECT."""
