"""`cronring completion`: the script that a shell needs."""

import click
from click.shell_completion import get_completion_class

from cronring.cli.printing import say


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a SHELL, job keys included.

    \b
    bash:  echo 'eval "$(cronring completion bash)"' >> ~/.bashrc
    zsh:   echo 'eval "$(cronring completion zsh)"'  >> ~/.zshrc
    fish:  cronring completion fish > ~/.config/fish/completions/cronring.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None, f"click knows {shell}"
    root = ctx.find_root().command
    say(kind(root, {}, "cronring", "_CRONRING_COMPLETE").source())
