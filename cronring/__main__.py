"""`python -m cronring`: the command line, where the PATH has no `cronring`."""

from cronring.cli.main import main

if __name__ == "__main__":
    main()
