"""`python -m contactdynamics` is the command ``cdyn``."""

from .cli import main

if __name__ == "__main__":
    main()
