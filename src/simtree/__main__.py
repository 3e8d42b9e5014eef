"""``python -m simtree`` is the command ``simtree``."""

from simtree.cli import main

if __name__ == "__main__":
    main()
