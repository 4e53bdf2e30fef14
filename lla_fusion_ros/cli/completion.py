"""`lla-fusion completion`: what a shell needs to complete verbs and their options."""

from __future__ import annotations

import argparse
import shlex

NAME = "completion"
HELP = "print what makes your shell complete verbs, options and files"
EXAMPLE = "lla-fusion completion bash"

BASH = """_lla_fusion() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" verb="${{COMP_WORDS[1]}}" options=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "{verbs}" -- "$word"))
        return
    fi
    case "$verb" in
{cases}
    esac
    case "$word" in
        -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
        *) COMPREPLY=($(compgen -f -- "$word")) ;;
    esac
}}
complete -o filenames -F _lla_fusion lla-fusion"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "shell",
        choices=("bash", "zsh", "fish"),
        help="bash and zsh read it with `source <(lla-fusion completion bash)` in their start-up file; "
        "for fish, write it to ~/.config/fish/completions/lla-fusion.fish",
    )


def run(args: argparse.Namespace) -> int:
    from lla_fusion_ros.cli.main import find_verbs, parser_of

    verbs = find_verbs()
    options = {
        name: [action for action in parser_of(verb)._actions if action.option_strings]
        for name, verb in verbs.items()
    }
    if args.shell == "fish":
        print("complete -c lla-fusion -f -n __fish_use_subcommand")
        for name, verb in verbs.items():
            print(f"complete -c lla-fusion -n __fish_use_subcommand -a {name} -d {shlex.quote(verb.help)}")
            for action in options[name]:
                words = [
                    f"-l {word[2:]}" if word.startswith("--") else f"-s {word[1:]}"
                    for word in action.option_strings
                ]
                about = shlex.quote((action.help or "").replace("%%", "%"))
                seen = f"'__fish_seen_subcommand_from {name}'"
                print(f"complete -c lla-fusion -n {seen} {' '.join(words)} -d {about}")
        return 0
    cases = "\n".join(
        f'        {name}) options="{" ".join(word for action in own for word in action.option_strings)}" ;;'
        for name, own in options.items()
    )
    if args.shell == "zsh":
        print("autoload -U +X bashcompinit && bashcompinit")
    print(BASH.format(verbs=" ".join(verbs), cases=cases))
    return 0
