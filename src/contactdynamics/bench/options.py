"""The options of a benchmark: default, meaning and bounds, as experiments have them."""

from functools import wraps

from ..experiments.options import Option, Options


def takes(**told: Option):
    """A benchmark with these options, keyword arguments of its function: default, meaning and bounds stand together."""

    def with_options(function):
        options = Options(**told)

        @wraps(function)
        def benchmark(echo, *argument, **settings):
            return function(echo, *argument, **(options | settings))

        benchmark.options = options
        return benchmark

    return with_options
